/* .npy files in and out. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "npy.h"
#include "support.h"

/* A file of that version with that dict and data; the caller frees the path. */
static char *write_npy(int version, const char *dict, const void *data, size_t size)
{
    const size_t length = strlen(dict) + 1;
    const size_t prefix = version == 1 ? 10 : 12;
    unsigned char *bytes = calloc(1, prefix + length + size);
    char *path;

    memcpy(bytes, "\x93NUMPY", 6);
    bytes[6] = (unsigned char)version;
    bytes[8] = (unsigned char)length;
    bytes[9] = (unsigned char)(length >> 8);
    sprintf((char *)bytes + prefix, "%s", dict);
    bytes[prefix + length - 1] = '\n';
    if (size > 0)
        memcpy(bytes + prefix + length, data, size);
    path = test_write("t.npy", bytes, prefix + length + size);
    free(bytes);
    return path;
}

static gx_tensor read_good(int version, const char *dict, const void *data, size_t size)
{
    char *path = write_npy(version, dict, data, size);
    gx_tensor tensor;
    gx_error err;

    assert_ok(gx_npy_read(path, &tensor, &err), &err);
    free(path);
    return tensor;
}

static void every_version_is_read(void **state)
{
    const float data[] = { 1, 2, 3, 4, 5, 6 };

    (void)state;
    for (int version = 1; version <= 3; version++) {
        gx_tensor t = read_good(
            version, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", data,
            sizeof data);

        assert_int_equal(t.dtype, GX_F32);
        assert_int_equal(t.rank, 2);
        assert_int_equal(t.dim[0], 2);
        assert_int_equal(t.dim[1], 3);
        assert_memory_equal(t.data, data, sizeof data);
        free(t.data);
    }
}

static void heads_may_be_spaced_otherwise(void **state)
{
    static const char *const heads[] = {
        "{'descr':'<i4','fortran_order':False,'shape':(2,)}",
        "{ \"shape\" : ( 2 , ) , \"fortran_order\" : True , \"descr\" : \"<i4\" }   ",
        "{'fortran_order': False, 'shape': (2L,), 'descr': '<i4', }                  ",
    };
    const int32_t data[] = { 7, -8 };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(heads); i++) {
        gx_tensor t = read_good(1, heads[i], data, sizeof data);

        assert_int_equal(t.rank, 1);
        assert_memory_equal(t.data, data, sizeof data);
        free(t.data);
    }
}

static void integers_become_i32(void **state)
{
    const int8_t i1[] = { -128, 127, 0 };
    const uint8_t u1[] = { 255, 128, 0 };
    const int64_t i8[] = { INT32_MIN, INT32_MAX, -1 };
    gx_tensor t;

    (void)state;
    t = read_good(1, "{'descr': '|i1', 'fortran_order': False, 'shape': (3,), }", i1, 3);
    assert_int_equal(t.dtype, GX_I32);
    assert_memory_equal(t.data, ((const int32_t[]){ -128, 127, 0 }), 12);
    free(t.data);
    t = read_good(1, "{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }", u1, 3);
    assert_memory_equal(t.data, ((const int32_t[]){ 255, 128, 0 }), 12);
    free(t.data);
    t = read_good(1, "{'descr': '<i8', 'fortran_order': False, 'shape': (3,), }", i8, 24);
    assert_memory_equal(t.data, ((const int32_t[]){ INT32_MIN, INT32_MAX, -1 }), 12);
    free(t.data);
}

static double half(uint16_t bits)
{
    const double sign = bits & 0x8000 ? -1 : 1;
    const int exponent = bits >> 10 & 31;
    const double fraction = (bits & 1023) / 1024.0;

    if (exponent == 31)
        return fraction > 0 ? (double)NAN : sign * INFINITY;
    return sign *
           (exponent == 0 ? fraction * 0x1p-14 : (1 + fraction) * pow(2, exponent - 15));
}

static void every_half_is_exact(void **state)
{
    uint16_t *data = malloc(65536 * sizeof *data);
    gx_tensor t;

    (void)state;
    for (uint32_t i = 0; i < 65536; i++)
        data[i] = (uint16_t)i;
    t = read_good(1, "{'descr': '<f2', 'fortran_order': False, 'shape': (65536,), }",
                  data, 131072);
    assert_int_equal(t.dtype, GX_F32);
    for (uint32_t i = 0; i < 65536; i++) {
        const double got = (double)((const float *)t.data)[i];
        const double expected = half((uint16_t)i);

        if (isnan(expected) ? !isnan(got) : memcmp(&got, &expected, sizeof got) != 0)
            fail_msg("half %04x gave %a", i, got);
    }
    free(t.data);
    free(data);
}

static void column_major_files_are_turned(void **state)
{
    /* [2, 3, 4] with the value of its place in row-major order, stored column-major */
    double data[24];
    int64_t at = 0;
    gx_tensor t;

    (void)state;
    for (int c = 0; c < 4; c++) {
        for (int b = 0; b < 3; b++) {
            for (int a = 0; a < 2; a++)
                data[at++] = (a * 3 + b) * 4 + c;
        }
    }
    t = read_good(2, "{'descr': '<f8', 'fortran_order': True, 'shape': (2, 3, 4), }",
                  data, sizeof data);
    assert_int_equal(t.dtype, GX_F64);
    for (int i = 0; i < 24; i++)
        assert_true(((const double *)t.data)[i] == i);
    free(t.data);
}

static void empty_and_scalar_files_are_read(void **state)
{
    const float one = 3;
    gx_tensor t;

    (void)state;
    t = read_good(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (), }", &one, 4);
    assert_int_equal(t.rank, 0);
    assert_true(*(const float *)t.data == 3);
    free(t.data);
    t = read_good(1, "{'descr': '<f4', 'fortran_order': True, 'shape': (0, 7), }", NULL,
                  0);
    assert_int_equal(gx_count(&t), 0);
    free(t.data);
}

static void bad_files_are_refused(void **state)
{
    static const struct {
        const char *head;
        size_t size; /* bytes of data */
        const char *message;
    } bad[] = {
        { "{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }", 4, "big-endian" },
        { "{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }", 8, "is not read" },
        { "{'descr': '<u4', 'fortran_order': False, 'shape': (1,), }", 4, "is not read" },
        { "{'descr': '|b1', 'fortran_order': False, 'shape': (1,), }", 1, "is not read" },
        { "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", 8, "is not read" },
        { "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", 4,
          "not a plain one" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 7, "cut short" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 9,
          "1 bytes follow the data" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627777,), }", 0,
          "limit on elements" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 99999999999999,), }", 0,
          "limit on elements" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }",
          0, "not a tuple of sizes" },
        { "{'descr': '<f8', 'fortran_order': False, 'shape': (1099511627776,), }", 8,
          "cut short" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }", 4,
          "more than 8 dimensions" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", 4,
          "tuple of sizes" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (1), }", 4,
          "tuple of sizes" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': [1], }", 4, "not a tuple" },
        { "{'descr': '<f4', 'fortran_order': 0, 'shape': (1,), }", 4, "True nor False" },
        { "{'descr': '<f4', 'fortran_order': False, }", 4, "lacks" },
        { "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", 4,
          "twice" },
        { "{'descr': '<f4', 'x': 1, 'fortran_order': False, 'shape': (1,), }", 4,
          "a key other than" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), } x", 4, "goes on" },
        { "descr", 4, "not a dict" },
        { "{'descr", 4, "not a dict" },
        { "", 4, "not a dict" },
    };
    const char zeros[16] = "";
    gx_tensor t;
    gx_error err;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        char *path = write_npy(1, bad[i].head, zeros, bad[i].size);

        assert_fails(gx_npy_read(path, &t, &err), GX_ERR_DATA, &err, bad[i].message);
        assert_null(t.data);
        free(path);
    }
}

static void integers_that_do_not_fit_are_refused(void **state)
{
    const int64_t data[] = { 1, INT64_C(1) << 31 };
    char *path = write_npy(1, "{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }",
                           data, sizeof data);
    gx_tensor t;
    gx_error err;

    (void)state;
    assert_fails(gx_npy_read(path, &t, &err), GX_ERR_DATA, &err,
                 "element 1 is 2147483648");
    free(path);
}

static void every_cut_is_refused(void **state)
{
    const float data[] = { 1, 2 };
    char *path = write_npy(3, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }",
                           data, sizeof data);
    size_t length;
    char *bytes = test_read(path, &length);
    gx_tensor t;
    gx_error err;

    (void)state;
    for (size_t n = 0; n < length; n++) {
        free(path);
        path = test_write("cut.npy", bytes, n);
        assert_fails(gx_npy_read(path, &t, &err), GX_ERR_DATA, &err, "");
    }
    free(path);
    bytes[6] = 4;
    path = test_write("cut.npy", bytes, length);
    assert_fails(gx_npy_read(path, &t, &err), GX_ERR_DATA, &err, "version");
    free(path);
    free(bytes);
}

static void what_is_no_file_is_refused(void **state)
{
    char *fifo = test_path("fifo");
    gx_tensor t;
    gx_error err;

    (void)state;
    assert_fails(gx_npy_read("tests/data/none.npy", &t, &err), GX_ERR_READ, &err,
                 "No such");
    assert_fails(gx_npy_read("tests", &t, &err), GX_ERR_READ, &err, "not a plain file");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_fails(gx_npy_read(fifo, &t, &err), GX_ERR_READ, &err, "not a plain file");
    free(fifo);
}

static void what_is_written_is_read_back(void **state)
{
    test_random random = test_random_start(test_seed());
    static const gx_dtype types[] = { GX_F32, GX_F64, GX_I32, GX_BF16, GX_F16 };
    char *path = test_path("out.npy");
    gx_tensor back;
    gx_error err;

    (void)state;
    for (int i = 0; i < 80; i++) {
        gx_tensor t = { .dtype = types[i % 5],
                        .rank = (int)test_random_int(&random, 0, 4) };

        for (int d = 0; d < t.rank; d++)
            t.dim[d] = test_random_int(&random, i % 7 == 0 ? 0 : 1, 20);
        const int64_t n = gx_count(&t);
        const size_t bytes = (size_t)n * gx_dtype_bytes(t.dtype);

        t.data = malloc(bytes + 8);
        for (size_t k = 0; k < bytes; k++)
            ((unsigned char *)t.data)[k] =
                (unsigned char)test_random_int(&random, 0, 100);
        assert_ok(gx_npy_write(path, &t, &err), &err);
        assert_ok(gx_npy_read(path, &back, &err), &err);
        assert_true(gx_same_shape(&t, &back));
        const bool narrow = t.dtype == GX_BF16 || t.dtype == GX_F16;

        assert_int_equal(back.dtype, narrow ? GX_F32 : t.dtype);
        for (int64_t k = 0; narrow && k < n; k++) {
            const uint16_t half = ((const uint16_t *)t.data)[k];

            assert_true(
                ((const float *)back.data)[k] ==
                (t.dtype == GX_BF16 ? gx_bf16_to_float(half) : gx_f16_to_float(half)));
        }
        if (!narrow && bytes > 0)
            assert_memory_equal(back.data, t.data, bytes);
        free(back.data);
        free(t.data);
    }
    free(path);
}

static void heads_are_aligned_and_files_replaced_whole(void **state)
{
    float data[3] = { 1, 2, 3 };
    gx_tensor t = { .dtype = GX_F32, .rank = 1, .dim = { 3 }, .data = data };
    char *path =
        test_write_text("old.npy", "something older and longer than the new file");
    char *beside;
    size_t length;
    struct stat info;
    char *bytes;
    gx_error err;

    (void)state;
    assert_ok(gx_npy_write(path, &t, &err), &err);
    bytes = test_read(path, &length);
    assert_int_equal(length, 128 + 12);
    assert_memory_equal(bytes, "\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', ", 26);
    assert_int_equal(bytes[127], '\n');
    free(bytes);
    beside = test_path("missing/t.npy");
    assert_fails(gx_npy_write(beside, &t, &err), GX_ERR_WRITE, &err, "No such file");
    free(beside);
    free(path);
    path = test_path("folder.npy");
    assert_int_equal(mkdir(path, 0700), 0);
    assert_fails(gx_npy_write(path, &t, &err), GX_ERR_WRITE, &err, "directory");
    assert_int_equal(stat(path, &info), 0);
    free(path);
}

static void what_is_no_file_is_written_to_and_not_replaced(void **state)
{
    double values[2] = { 1, 2 };
    const gx_tensor tensor = { .dtype = GX_F64, .rank = 1, .dim = { 2 }, .data = values };
    struct stat there;
    gx_error err;

    (void)state;
    assert_ok(gx_npy_write("/dev/null", &tensor, &err), &err);
    assert_int_equal(stat("/dev/null", &there), 0);
    assert_true(S_ISCHR(there.st_mode));
    assert_int_equal(gx_npy_write("/dev/full", &tensor, &err), GX_ERR_WRITE);
    assert_int_equal(stat("/dev/full", &there), 0);
    assert_true(S_ISCHR(there.st_mode));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_version_is_read),
        cmocka_unit_test(heads_may_be_spaced_otherwise),
        cmocka_unit_test(integers_become_i32),
        cmocka_unit_test(every_half_is_exact),
        cmocka_unit_test(column_major_files_are_turned),
        cmocka_unit_test(empty_and_scalar_files_are_read),
        cmocka_unit_test(bad_files_are_refused),
        cmocka_unit_test(integers_that_do_not_fit_are_refused),
        cmocka_unit_test(every_cut_is_refused),
        cmocka_unit_test(what_is_no_file_is_refused),
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(what_is_no_file_is_written_to_and_not_replaced),
        cmocka_unit_test(heads_are_aligned_and_files_replaced_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
