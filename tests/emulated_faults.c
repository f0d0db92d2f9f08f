/* What the emulation of kernels finds: each fault shows in some order of the threads. */
#include "emulated_faults.h"

#include <string.h>

#include "emulate.h"
#include "support.h"

enum { N = FAULT_BLOCKS * FAULT_THREADS, SHARED = FAULT_THREADS * sizeof(float) };

typedef struct fixture {
    float *in, *out;
    uint64_t seed;
} fixture;

static int open_fixture(void **state)
{
    static fixture f;
    gx_error err = { 0 };

    f.in = emulate_alloc(N * sizeof *f.in);
    f.out = emulate_alloc(N * sizeof *f.out);
    f.seed = test_seed();
    for (int i = 0; i < N; i++)
        f.in[i] = (float)i;
    assert_ok(emulated_fault_load(SHARED, &err), &err);
    *state = &f;
    return 0;
}

static int close_fixture(void **state)
{
    const fixture *f = *state;

    emulate_free(f->in);
    emulate_free(f->out);
    return 0;
}

static gx_status launch(const fixture *f, emulated_fault fault, int order, gx_error *err)
{
    gx_ctx ctx = { .cc = 90 };

    emulate_seed(f->seed + (uint64_t)order);
    return emulated_fault_launch(fault, f->in, f->out, SHARED, &ctx, err);
}

static bool is_right(const fixture *f)
{
    for (int i = 0; i < N; i++) {
        const int next = i / FAULT_THREADS * FAULT_THREADS + (i + 1) % FAULT_THREADS;

        if (!(f->out[i] == f->in[next] + 1.0f))
            return false;
    }
    return true;
}

enum { ORDERS = 50 };

static void a_kernel_without_a_fault_is_right_in_every_order(void **state)
{
    const fixture *f = *state;
    gx_error err = { 0 };

    for (int order = 0; order < ORDERS; order++) {
        assert_ok(launch(f, NO_FAULT, order, &err), &err);
        assert_true(is_right(f));
    }
}

static void what_is_read_too_early_is_not_there(void **state)
{
    static const emulated_fault faults[] = { NO_BARRIER, NO_WAIT };
    const fixture *f = *state;
    gx_error err = { 0 };

    for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
        for (int order = 0; order < ORDERS; order++) {
            assert_ok(launch(f, faults[i], order, &err), &err);
            assert_false(is_right(f));
        }
    }
}

static void steady_memory_may_be_read_before_the_wait(void **state)
{
    const fixture *f = *state;
    gx_error err = { 0 };

    emulate_steady(f->in, true);
    assert_ok(launch(f, NO_WAIT, 0, &err), &err);
    assert_true(is_right(f));
    emulate_steady(f->in, false);
}

static void threads_that_wait_for_ever_are_named(void **state)
{
    const fixture *f = *state;
    gx_error err = { 0 };

    assert_fails(launch(f, HALF_A_BARRIER, 0, &err), GX_ERR_CUDA, &err,
                 "threads wait for ever: thread 0 of block (0, 0) in __shfl_xor_sync, "
                 "emulated_faults.cu:15");
    assert_fails(launch(f, TWO_BARRIERS, 0, &err), GX_ERR_CUDA, &err,
                 "different barriers");
    assert_fails(launch(f, WAIT_WITHOUT_ARRIVAL, 0, &err), GX_ERR_CUDA, &err,
                 "waits for the cluster without having arrived");
    assert_fails(launch(f, NOT_ROUNDED, 0, &err), GX_ERR_CUDA, &err,
                 "not rounded to tf32: 0x1.000002p+0");
}

/* Where a sanitizer looks, it ends the program. */
static void writing_outside_is_found(void **state)
{
    const fixture *f = *state;
    gx_error err = { 0 };

    if (test_is_short())
        skip();
    assert_fails(launch(f, WIDE_SHARED, 0, &err), GX_ERR_CUDA, &err,
                 "wrote at 256 of 256 bytes of shared memory");
    assert_fails(launch(f, WIDE_GLOBAL, 0, &err), GX_ERR_CUDA, &err,
                 "wrote at 512 of 512 bytes");
    memset(f->out + N, 0xff, sizeof *f->out); /* as it was */
}

/* Blocks begin and end in any order, so that this shows in some. */
static void other_blocks_are_used_while_they_run(void **state)
{
    static const emulated_fault faults[] = { EARLY_STORE, NO_CLUSTER_WAIT };
    static const char *const texts[] = { "has not begun", "has ended" };
    const fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
        int found = 0;

        for (int order = 0; order < ORDERS; order++) {
            gx_error err = { 0 };

            if (launch(f, faults[i], order, &err) == GX_OK)
                continue;
            assert_has(err.message, texts[i]);
            found++;
        }
        assert_true(found > 0);
    }
}

static void a_launch_that_a_card_refuses_is_refused(void **state)
{
    const fixture *f = *state;
    gx_ctx ctx = { .cc = 90 };
    gx_error err = { 0 };

    assert_fails(emulated_fault_launch(NO_FAULT, f->in, f->out, 64 << 10, &ctx, &err),
                 GX_ERR_CUDA, &err, "refused");
    assert_fails(emulated_fault_load(1 << 20, &err), GX_ERR_CUDA, &err, "shared memory");
    assert_ok(emulated_fault_load(64 << 10, &err), &err);
    assert_ok(emulated_fault_launch(NO_FAULT, f->in, f->out, 64 << 10, &ctx, &err), &err);
}

int main(void)
{
#define WITH_FIXTURE(test) \
    cmocka_unit_test_setup_teardown(test, open_fixture, close_fixture)
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(a_kernel_without_a_fault_is_right_in_every_order),
        WITH_FIXTURE(what_is_read_too_early_is_not_there),
        WITH_FIXTURE(steady_memory_may_be_read_before_the_wait),
        WITH_FIXTURE(threads_that_wait_for_ever_are_named),
        WITH_FIXTURE(writing_outside_is_found),
        WITH_FIXTURE(other_blocks_are_used_while_they_run),
        WITH_FIXTURE(a_launch_that_a_card_refuses_is_refused),
    };

    return cmocka_run_group_tests_name("emulated_faults", tests, NULL, NULL);
}
