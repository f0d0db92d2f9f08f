/* 16-bit parameters whose weights and moments are kept in f32. */
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support_walk.h"

enum { N = 5 };

static gx_dtype dtype_of(const test_walk *model, const char *name)
{
    const ptrdiff_t id = gx_graph_find(model->graph, name);

    assert_true(id >= 0);
    return gx_graph_value(model->graph, (size_t)id).dtype;
}

static bool has(const test_walk *model, const char *name)
{
    return gx_graph_find(model->graph, name) >= 0;
}

static void assert_near(double x, double y, double error)
{
    if (!(fabs(x - y) <= error * (1 + fabs(y)))) {
        print_error("%.17g is not %.17g\n", x, y);
        fail();
    }
}

/* p.grad and q.grad are what gp and gq hold. */
#define GIVEN                                                                       \
    "gexec: 1\nname: m\nprecision: $P\ninputs:\n  gp: {shape: [5], init: normal}\n" \
    "  gq: {shape: [5], init: normal}\n  z: {shape: [5], init: zeros}\n"            \
    "params:\n  p: {shape: [5], init: normal}\n  q: {shape: [5], init: normal}\n"   \
    "ops:\n  - {op: add, name: sp, a: gp, b: z, out: p.grad}\n"                     \
    "  - {op: add, name: sq, a: gq, b: z, out: q.grad}\n"

static test_walk given(const char *section, const char *precision)
{
    char text[2000];

    snprintf(text, sizeof text, GIVEN "optimizer: {%s}\n", section);
    return test_walk_parse(text, precision, GX_TRAIN, 77);
}

static void assert_is_copy(const test_walk *model, const char *param, const char *master)
{
    for (int i = 0; i < N; i++)
        assert_true(
            test_walk_tensor(model, param)[i] ==
            gx_round_to(dtype_of(model, param), test_walk_tensor(model, master)[i]));
}

static void a_master_starts_as_the_parameter_before_it_is_rounded(void **state)
{
    test_walk wide = given("sgd: {lr: 1}", "f32");
    test_walk narrow = given("sgd: {lr: 1}, master: f32", "bf16");

    (void)state;
    assert_int_equal(dtype_of(&narrow, "p.master"), GX_F32);
    assert_false(has(&wide, "p.master"));
    assert_memory_equal(test_walk_tensor(&wide, "p"),
                        test_walk_tensor(&narrow, "p.master"), N * sizeof(double));
    assert_memory_not_equal(test_walk_tensor(&narrow, "p"),
                            test_walk_tensor(&narrow, "p.master"), N * sizeof(double));
    assert_is_copy(&narrow, "p", "p.master");
    test_walk_free(&narrow);
    test_walk_free(&wide);
}

/* 1000 updates of which each is less than half a step between two 16-bit numbers. */
static void tiny_updates_add_up_in_a_master(void **state)
{
    static const char *const precisions[] = { "bf16", "f16" };

    (void)state;
    for (size_t k = 0; k < ARRAY_SIZE(precisions); k++) {
        test_walk with = given("sgd: {lr: 1.0e-4}, master: f32", precisions[k]);
        test_walk without = given("sgd: {lr: 1.0e-4}", precisions[k]);

        for (int i = 0; i < N; i++) {
            test_walk_tensor(&with, "p.master")[i] = test_walk_tensor(&with, "p")[i] = 1;
            test_walk_tensor(&without, "p")[i] = 1;
            test_walk_tensor(&with, "gp")[i] = test_walk_tensor(&without, "gp")[i] = 1;
        }
        for (int step = 0; step < 1000; step++) {
            test_walk_step(&with);
            test_walk_step(&without);
            assert_is_copy(&with, "p", "p.master");
        }
        for (int i = 0; i < N; i++) {
            assert_true(test_walk_tensor(&without, "p")[i] == 1);
            assert_near(test_walk_tensor(&with, "p.master")[i], 0.9, 1e-4);
            assert_near(test_walk_tensor(&with, "p")[i], 0.9, 2e-3);
        }
        test_walk_free(&without);
        test_walk_free(&with);
    }
}

/* From gradients that both types hold, a master goes as a parameter in f32 does. */
static void check_as_f32(const char *section, const char *precision)
{
    test_random random = test_random_start(test_seed());
    char text[400];

    snprintf(text, sizeof text, "%s, master: f32, moments: f32", section);
    test_walk narrow = given(text, precision);
    test_walk wide = given(section, "f32");

    for (int step = 0; step < 30; step++) {
        for (int i = 0; i < N; i++) {
            const gx_dtype dtype = dtype_of(&narrow, "p");
            const double p = gx_round_to(dtype, test_random_real(&random, -1, 1));
            const double q = gx_round_to(dtype, test_random_real(&random, -1, 1));

            test_walk_tensor(&narrow, "gp")[i] = test_walk_tensor(&wide, "gp")[i] = p;
            test_walk_tensor(&narrow, "gq")[i] = test_walk_tensor(&wide, "gq")[i] = q;
        }
        test_walk_step(&narrow);
        test_walk_step(&wide);
        assert_memory_equal(test_walk_tensor(&narrow, "p.master"),
                            test_walk_tensor(&wide, "p"), N * sizeof(double));
        assert_memory_equal(test_walk_tensor(&narrow, "q.master"),
                            test_walk_tensor(&wide, "q"), N * sizeof(double));
        assert_is_copy(&narrow, "p", "p.master");
        assert_is_copy(&narrow, "q", "q.master");
    }
    test_walk_free(&wide);
    test_walk_free(&narrow);
}

static void masters_and_moments_go_as_in_f32(void **state)
{
    static const char clipped[] =
        "adamw: {lr: 0.01}, clip_norm: 0.3, accumulate: 3, schedule: {linear: {steps: "
        "9}}, groups: [{params: q, lr: 0.02, weight_decay: 0.5}]";
    static const char *const sections[] = {
        "sgd: {lr: 0.1, weight_decay: 0.1}",
        "momentum: {lr: 0.1, dampening: 0.2}",
        "nesterov: {lr: 0.1, weight_decay: 0.1}",
        "adam: {lr: 0.01, weight_decay: 0.1}",
        "adamw: {lr: 0.01}",
        clipped,
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(sections); i++) {
        check_as_f32(sections[i], "bf16");
        check_as_f32(sections[i], "f16");
    }
}

static void moments_have_the_type_that_is_asked_for(void **state)
{
    static const struct {
        const char *section, *precision, *moment;
        gx_dtype dtype;
    } cases[] = {
        { "adamw: {}", "bf16", "p.m", GX_BF16 },
        { "adamw: {}", "bf16", "p.v", GX_BF16 },
        { "adamw: {}, moments: f32", "bf16", "p.v", GX_F32 },
        { "adamw: {}, moments: param", "bf16", "p.v", GX_BF16 },
        /* squares of gradients are below what f16 holds */
        { "adamw: {}", "f16", "p.v", GX_F32 },
        { "adamw: {}, moments: param", "f16", "p.m", GX_F16 },
        { "momentum: {lr: 1}, moments: f32", "bf16", "q.buf", GX_F32 },
        { "momentum: {lr: 1}, moments: f32", "f32", "q.buf", GX_F32 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        test_walk model = given(cases[i].section, cases[i].precision);

        assert_int_equal(dtype_of(&model, cases[i].moment), cases[i].dtype);
        assert_false(has(&model, "p.master"));
        test_walk_free(&model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_master_starts_as_the_parameter_before_it_is_rounded),
        cmocka_unit_test(tiny_updates_add_up_in_a_master),
        cmocka_unit_test(masters_and_moments_go_as_in_f32),
        cmocka_unit_test(moments_have_the_type_that_is_asked_for),
    };

    return cmocka_run_group_tests_name("masters", tests, NULL, NULL);
}
