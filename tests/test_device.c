/* The CPU as a device: memory, copies, and values that change their type on the way. */
#include <math.h>
#include <string.h>

#include "device.h"
#include "support.h"

static int set_up(void **state)
{
    gx_error err = { 0 };
    gx_device *device;

    assert_ok(gx_device_open(GX_CPU, NULL, &device, &err), &err);
    *state = device;
    return 0;
}

static int tear_down(void **state)
{
    gx_device_close(*state);
    return 0;
}

static void memory_is_aligned_and_copies_are_whole(void **state)
{
    gx_device *device = *state;
    unsigned char bytes[1000], back[1000];
    void *a, *b, *nothing;
    gx_error err = { 0 };

    for (int i = 0; i < 1000; i++)
        bytes[i] = (unsigned char)(i * 31);
    assert_ok(gx_device_alloc(device, 1000, &a, &err), &err);
    assert_ok(gx_device_alloc(device, 1000, &b, &err), &err);
    assert_ok(gx_device_alloc(device, 0, &nothing, &err), &err);
    assert_non_null(nothing);
    assert_int_equal((uintptr_t)a % GX_ALIGNMENT, 0);
    assert_ok(gx_device_upload(device, a, bytes, 1000, &err), &err);
    assert_ok(gx_device_copy(device, b, a, 1000, &err), &err);
    assert_ok(gx_device_download(device, back, b, 1000, &err), &err);
    assert_memory_equal(bytes, back, 1000);
    assert_ok(gx_device_fill(device, b, 0x5a, 999, &err), &err);
    assert_ok(gx_device_download(device, back, b, 1000, &err), &err);
    assert_int_equal(back[998], 0x5a);
    assert_int_equal(back[999], bytes[999]);
    gx_device_release(device, nothing);
    gx_device_release(device, b);
    gx_device_release(device, a);
    gx_device_release(device, NULL);
}

static void every_value_is_held_as_a_rounded_double(void **state)
{
    gx_device *device = *state;
    const double in[] = { 1.0 / 3, -2.7, 1e30, 0 };
    double held[4], back[4];
    uint16_t narrow[4];
    gx_error err = { 0 };

    assert_int_equal(gx_device_element_bytes(device, GX_BF16), sizeof(double));
    assert_ok(gx_device_put(device, held, GX_BF16, in, GX_F64, 4, false, &err), &err);
    for (int i = 0; i < 4; i++)
        assert_true(held[i] == gx_round_to(GX_BF16, in[i]));
    assert_ok(gx_device_get(device, narrow, GX_BF16, held, GX_BF16, 4, &err), &err);
    assert_ok(gx_device_put(device, back, GX_BF16, narrow, GX_BF16, 4, false, &err),
              &err);
    assert_memory_equal(held, back, sizeof held);
    assert_ok(gx_device_put(device, held, GX_BF16, in, GX_F64, 4, true, &err), &err);
    assert_memory_equal(held, in, sizeof in);
}

static void what_no_integer_holds_is_refused_with_its_place(void **state)
{
    gx_device *device = *state;
    const double in[][2] = {
        { 1, NAN }, { 1, INFINITY }, { 1, 3e9 }, { 1, -2147483649.0 }
    };
    const double good[] = { -2147483648.0, 2147483647.0 };
    double held[2];
    gx_error err = { 0 };

    for (size_t i = 0; i < ARRAY_SIZE(in); i++)
        assert_fails(gx_device_put(device, held, GX_I32, in[i], GX_F64, 2, false, &err),
                     GX_ERR_DATA, &err, "element 1 is");
    gx_error_clear(&err);
    assert_ok(gx_device_put(device, held, GX_I32, good, GX_F64, 2, false, &err), &err);
    assert_memory_equal(held, good, sizeof good);
}

static void a_broken_or_capturing_device_takes_no_work(void **state)
{
    gx_device *device = *state;
    void *memory = NULL;
    char byte = 0;
    gx_error err = { 0 };

    device->capturing = true;
    assert_fails(gx_device_fill(device, &byte, 1, 1, &err), GX_ERR_STATE, &err,
                 "capture");
    device->capturing = false;
    device->broken = true;
    assert_fails(gx_device_alloc(device, 8, &memory, &err), GX_ERR_BROKEN, &err,
                 "failed");
    assert_null(memory);
    assert_fails(gx_device_sync(device, &err), GX_ERR_BROKEN, &err, "failed");
    device->broken = false;
}

static void devices_that_are_not_there_are_named(void **state)
{
    gx_device *device;
    gx_device_info info;
    int stream, n_devices = 77;
    gx_error err = { 0 };
    const gx_status st = gx_device_count(&n_devices, &err);

    (void)state;
    assert_fails(gx_device_open(-5, NULL, &device, &err), GX_ERR_ARGUMENT, &err, "-5");
    assert_null(device);
    assert_fails(gx_device_open(GX_CPU, &stream, &device, &err), GX_ERR_ARGUMENT, &err,
                 "streams");
    if (st != GX_OK)
        assert_int_equal(n_devices, 0);
    gx_error_clear(&err);
    assert_true(gx_device_info_get(9999, &info, &err) != GX_OK);
    assert_true(err.message[0] != 0);
    assert_ok(gx_device_info_get(GX_CPU, &info, &err), &err);
    assert_string_equal(info.name, "CPU");
    assert_true(info.memory_bytes > 0 && info.free_bytes > 0);
    assert_true(info.free_bytes <= info.memory_bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_aligned_and_copies_are_whole),
        cmocka_unit_test(every_value_is_held_as_a_rounded_double),
        cmocka_unit_test(what_no_integer_holds_is_refused_with_its_place),
        cmocka_unit_test(a_broken_or_capturing_device_takes_no_work),
        cmocka_unit_test(devices_that_are_not_there_are_named),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
