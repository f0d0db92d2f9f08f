/* What the emulation of kernels finds in how they use the copy engine and the tensor
 * cores of sm_90: each fault shows in some order of events. */
#include "emulated_engines.h"

#include "emulate_product.h"

enum { N = ENGINE_ROWS * ENGINE_COLUMNS, ORDERS = 20 };

typedef struct fixture {
    emulate_product product;
    float *out;
    uint64_t seed;
} fixture;

static int open_fixture(void **state)
{
    static fixture f;
    gx_error err = { 0 };

    f.seed = test_seed();
    test_random random = test_random_start(f.seed);

    f.product = (emulate_product){
        .m = ENGINE_ROWS, .n = ENGINE_COLUMNS, .k = GX_WGMMA_K, .math = GX_TILE_BF16
    };
    emulate_make_product(&f.product, &random);
    f.out = emulate_alloc(N * sizeof *f.out);
    assert_ok(engine_load(&err), &err);
    *state = &f;
    return 0;
}

static int close_fixture(void **state)
{
    fixture *f = *state;

    emulate_drop_product(&f->product);
    emulate_free(f->out);
    return 0;
}

static gx_status launch(const fixture *f, engine_fault fault, int order, gx_error *err)
{
    gx_ctx ctx = { .cc = 90 };

    emulate_seed(f->seed + (uint64_t)order);
    return engine_launch(fault, &f->product.maps, f->out, &ctx, err);
}

static bool is_right(const fixture *f)
{
    for (int i = 0; i < N; i++) {
        if (!((double)f->out[i] == f->product.value[i]))
            return false;
    }
    return true;
}

static void what_waits_for_all_is_right_in_every_order(void **state)
{
    const fixture *f = *state;
    gx_error err = { 0 };

    for (int order = 0; order < ORDERS; order++) {
        assert_ok(launch(f, ENGINES_RIGHT, order, &err), &err);
        assert_true(is_right(f));
    }
}

static void what_does_not_wait_is_wrong_in_some(void **state)
{
    static const engine_fault faults[] = { NO_WAIT_FOR_COPIES, NO_WAIT_FOR_PRODUCTS,
                                           STAGE_TAKEN_EARLY };
    const fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
        int n_wrong = 0;

        for (int order = 0; order < ORDERS; order++) {
            gx_error err = { 0 };

            n_wrong += launch(f, faults[i], order, &err) != GX_OK || !is_right(f);
        }
        assert_true(n_wrong > ORDERS / 4);
    }
}

static void misuse_is_named(void **state)
{
    static const struct {
        engine_fault fault;
        const char *text;
    } cases[] = {
        { BARRIER_NOT_MADE, "no barrier was made at" },
        { ARRIVAL_TOO_MANY, "one arrival too many, " },
        { BYTES_TOO_FEW, "threads wait for ever: thread 0 of block (0, 0) in "
                         "mbarrier.try_wait" },
        { COPY_LEFT_BEHIND, "copies are under way when the cluster ends" },
        { HALF_A_WARPGROUP, "threads wait for ever: thread 0 of block (0, 0) in "
                            "wgmma.wait_group" },
        { OTHER_OPERANDS, "threads 0 and 77 of block 0 multiply other things" },
        { OTHER_NUMBER, "a barrier of " },
    };
    const fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        int found = 0;

        for (int order = 0; order < ORDERS; order++) {
            gx_error err = { 0 };

            if (launch(f, cases[i].fault, order, &err) == GX_OK)
                continue;
            assert_has(err.message, cases[i].text);
            found++;
        }
        assert_true(found > 0);
    }
}

int main(void)
{
#define WITH_FIXTURE(test) \
    cmocka_unit_test_setup_teardown(test, open_fixture, close_fixture)
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(what_waits_for_all_is_right_in_every_order),
        WITH_FIXTURE(what_does_not_wait_is_wrong_in_some),
        WITH_FIXTURE(misuse_is_named),
    };

    return cmocka_run_group_tests_name("emulated_engines", tests, NULL, NULL);
}
