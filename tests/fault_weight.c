/* The gradient of a bias as an op of its own, without a GPU: with which ops around it it
 * is one kernel and with which not, that every alternative runs and may fail, and that it
 * stands beside the backward pass and not in it. */
#include "fake_cuda_planned.h"

#include <stdio.h>
#include <string.h>

#include "gemm_cuda.h"
#include "plan.h"
#include "support_group.h"

#define INPUT(name, shape) "  " name ": {shape: " shape ", init: normal}\n"
#define HEAD                                                                        \
    "gexec: 1\nname: m\nprecision: $P\ninputs:\n" INPUT("x", "[6, 8]")              \
        INPUT("xt", "[8, 6]") INPUT("d", "[6, 16]") INPUT("e", "[6, 16]")           \
            INPUT("w", "[8, 16]") INPUT("wide", "[16, 8]") INPUT("xb", "[3, 6, 8]") \
                INPUT("db", "[3, 6, 16]") INPUT("x0", "[0, 8]")                     \
                    INPUT("d0", "[0, 16]") "ops:\n"

#define SUMS "  - {op: epilogue.bwd, name: s, dy: d, dbias: g}\n"
#define PRODUCT(fields) "  - {op: gemm, name: y, " fields "}\n"
#define BACK "  - {op: epilogue.bwd, name: r, dy: e, y: d, act: relu, dx: back}\n"
#define OUTPUTS(names) "outputs: [" names "]\n"

/* --- what is one kernel --- */

static void groups_refuse_what_they_do_not_do(void **state)
{
    static const struct {
        const char *ops, *name;
        int32_t n;
        const char *why; /* NULL: it takes it */
    } cases[] = {
        { SUMS PRODUCT("a: x, b: d, trans_a: true"), "direct_weight", 2, NULL },
        { SUMS PRODUCT("a: x, b: d, trans_a: true"), "lt_weight", 2, NULL },
        { SUMS PRODUCT("a: d, b: x, trans_a: true"), "direct_weight", 2, NULL },
        { SUMS PRODUCT("a: d, b: x, trans_a: true"), "lt_weight", 2, NULL },
        { SUMS PRODUCT("a: d, b: d, trans_a: true"), "direct_weight", 2, NULL },
        /* x lies transposed: the library's kernel does it */
        { SUMS PRODUCT("a: xt, b: d"), "direct_weight", 2, "is not transposed" },
        { SUMS PRODUCT("a: xt, b: d"), "lt_weight", 2, NULL },
        { SUMS PRODUCT("a: d, b: xt, trans_a: true, trans_b: true"), "direct_weight", 2,
          "both operands are transposed" },
        { SUMS PRODUCT("a: d, b: wide"), "direct_weight", 2, "the rows that the bias" },
        { SUMS PRODUCT("a: d, b: wide"), "lt_weight", 2, "the rows that the bias" },
        { SUMS PRODUCT("a: w, b: d, trans_b: true"), "lt_weight", 2,
          "the rows that the bias" },
        { SUMS PRODUCT("a: x, b: e, trans_a: true"), "direct_weight", 2,
          "the rows that the bias" },
        { SUMS PRODUCT("a: x, b: d, trans_a: true, alpha: 2"), "direct_weight", 2,
          "one plain product" },
        { SUMS PRODUCT("a: x, b: d, trans_a: true, alpha: 2"), "lt_weight", 2,
          "one plain product" },
        { SUMS PRODUCT("a: x, b: d, c: w, trans_a: true"), "lt_weight", 2,
          "one plain product" },
        { "  - {op: epilogue.bwd, name: s, dy: d, y: e, act: relu, dbias: g}\n" PRODUCT(
              "a: x, b: d, trans_a: true"),
          "direct_weight", 2, "more than the gradient of a bias" },
        { "  - {op: epilogue.bwd, name: s, dy: d, dx: c, dbias: g}\n" PRODUCT(
              "a: x, b: d, trans_a: true"),
          "lt_weight", 2, "more than the gradient of a bias" },
        { "  - {op: epilogue.bwd, name: s, dy: db, dbias: g}\n" PRODUCT(
              "a: xb, b: db, trans_a: true, sum_batch: true"),
          "direct_weight", 2, NULL },
        { "  - {op: epilogue.bwd, name: s, dy: db, dbias: g}\n" PRODUCT(
              "a: xb, b: db, trans_a: true"),
          "direct_weight", 2, "one plain product" },
        { "  - {op: epilogue.bwd, name: s, dy: d0, dbias: g}\n" PRODUCT(
              "a: x0, b: d0, trans_a: true"),
          "direct_weight", 2, "of size zero" },
        { "  - {op: epilogue.bwd, name: s, dy: d0, dbias: g}\n" PRODUCT(
              "a: x0, b: d0, trans_a: true"),
          "lt_weight", 2, "a size is zero" },
        { BACK "  - {op: epilogue.bwd, name: y, dy: back, dbias: g}\n", "fused", 2,
          NULL },
        { BACK "  - {op: epilogue.bwd, name: y, dy: back, dbias: g}\n", "wide_fused", 2,
          NULL },
        { BACK "  - {op: epilogue.bwd, name: y, dy: d, dbias: g}\n", "fused", 2,
          "not of this epilogue" },
        { BACK "  - {op: epilogue.bwd, name: y, dy: back, dx: c, dbias: g}\n",
          "wide_fused", 2, "more than the gradient of a bias" },
        { "  - {op: epilogue.bwd, name: r, dy: e, dx: back, dbias: c}\n"
          "  - {op: epilogue.bwd, name: y, dy: back, dbias: g}\n",
          "fused", 2, "two gradients of a bias" },
        { "  - {op: gemm, name: p, a: x, b: w}\n"
          "  - {op: epilogue.bwd, name: r, dy: p, y: d, act: relu, dx: back}\n"
          "  - {op: epilogue.bwd, name: y, dy: back, dbias: g}\n",
          "direct_fused", 3, NULL },
        { "  - {op: gemm, name: p, a: x, b: w}\n"
          "  - {op: epilogue.bwd, name: r, dy: p, y: d, act: relu, dx: back}\n"
          "  - {op: epilogue.bwd, name: y, dy: e, dbias: g}\n",
          "direct_fused", 3, "not of this epilogue" },
        { "  - {op: gemm, name: p, a: x, b: w}\n"
          "  - {op: epilogue.bwd, name: r, dy: p, y: d, act: relu, dx: back}\n"
          "  - {op: epilogue.bwd, name: y, dy: p, dbias: g}\n",
          "fused", 3, "not of this epilogue" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char text[3000];
        test_group g;

        snprintf(text, sizeof text, "%s%s%s", HEAD, cases[i].ops,
                 strstr(cases[i].ops, "dx: back") ? OUTPUTS("g, back")
                 : strstr(cases[i].ops, "dx: c")  ? OUTPUTS("g, c, y")
                                                  : OUTPUTS("g, y"));
        test_group_open(&g, text, "tf32", cases[i].name, cases[i].n);
        assert_int_equal(g.first, 0);
        test_group_refuses(&g, cases[i].why);
        test_group_close(&g);
    }
}

/* Vectors are loaded from 16 bytes on. */
static void operands_that_are_not_aligned_are_refused(void **state)
{
    static const char *const texts[] = {
        HEAD SUMS PRODUCT("a: x, b: d, trans_a: true") OUTPUTS("g, y"),
        HEAD SUMS PRODUCT("a: d, b: x, trans_a: true") OUTPUTS("g, y"),
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(texts) * 3; i++) {
        gx_prepared prepared = { .n_algos = 1 };
        gx_error err = { 0 };
        test_group g;

        test_group_open(&g, texts[i / 3], "bf16", "direct_weight", 2);
        assert_int_equal(g.first, 0);
        test_group_align(&g);
        if (i % 3 > 0) {
            gx_tensor *shifted =
                &g.calls[1].arg[i % 3 == 1 ? (int)GX_GEMM_A : (int)GX_GEMM_B];

            shifted->data = (char *)shifted->data + 2;
            if (shifted->data == (char *)g.calls[0].arg[GX_EPILOGUE_BWD_DY].data + 2)
                g.calls[0].arg[GX_EPILOGUE_BWD_DY].data = shifted->data;
        }
        const gx_status st = g.at->prepare(&g.group, &test_card, &prepared, &err);

        assert_int_equal(st, i % 3 > 0 ? GX_ERR_UNSUPPORTED : GX_OK);
        if (st != GX_OK)
            assert_has(err.message, "are not aligned to 16 bytes");
        test_group_close(&g);
    }
}

/* --- each sample through each alternative --- */

static void every_sample_runs_with_every_alternative(void **state)
{
    static const char *const rows[] = { "gemm", "gemm.bwd", NULL };
    static const char *const precisions[] = { "f32", "tf32", "bf16", "f16", NULL };
    static const char *const forced[] = { "direct_weight", "lt_weight", "direct_fused",
                                          "lt_fused",      "fused",     "wide_fused" };

    (void)state;
    for (size_t k = 0; k < ARRAY_SIZE(forced); k++)
        assert_true(planned_samples(rows, precisions, forced[k], NULL, NULL) > 10);
    assert_int_equal(fake_live(), 0);
}

/* --- two layers --- */

/* Whatever the gradient of a bias goes with but the way back itself: the backward pass
 * does not go on from it. */
static void a_bias_alone_or_with_its_weight_goes_to_lane_1(void **state)
{
    static const struct {
        const char *force;
        int32_t n_nodes; /* of the unit of fc1's bias */
        int lane;
    } cases[] = {
        { NULL, 1, 1 },           { "direct_weight", 2, 1 }, { "lt_weight", 2, 1 },
        { "direct_fused", 3, 0 }, { "fused", 3, 0 },         { "wide_fused", 2, 0 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        test_walk model = test_walk_parse(planned_layers, "", GX_TRAIN, 1);
        planned of = planned_open(model.graph, cases[i].force, 2);
        const gx_unit *unit = test_unit_of(of.plan, "fc1.bwd.bias");

        assert_int_equal(unit->n_nodes, cases[i].n_nodes);
        assert_int_equal(unit->lane, cases[i].lane);
        assert_int_equal(test_unit_of(of.plan, "fc1.bwd.weight")->lane, 1);
        assert_int_equal(test_unit_of(of.plan, "fc1.bwd.act")->lane, 0);
        planned_close(&of);
        test_walk_free(&model);
    }
}

static void each_call_may_fail(void **state)
{
    static const char *const names[] = { "direct_weight", "lt_weight", "wide_fused" };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        test_walk model = test_walk_parse(planned_layers, "", GX_TRAIN, 1);
        planned of = planned_open(model.graph, names[i], 2);

        assert_true(gx_plan_info_get(of.plan).n_forced > 0);
        assert_true(path_fail_some_calls(planned_run, &of, 3) > 20);
        planned_close(&of);
        test_walk_free(&model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_refuse_what_they_do_not_do),
        cmocka_unit_test(operands_that_are_not_aligned_are_refused),
        cmocka_unit_test(every_sample_runs_with_every_alternative),
        cmocka_unit_test(a_bias_alone_or_with_its_weight_goes_to_lane_1),
        cmocka_unit_test(each_call_may_fail),
    };

    path_start(false);
    return cmocka_run_group_tests_name("fault_weight", tests, NULL, NULL);
}
