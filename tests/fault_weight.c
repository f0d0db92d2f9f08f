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

/* --- dx transposed when it is made --- */

#define TURNED_HEAD                                                                \
    "gexec: 1\nname: m\nprecision: $P\ninputs:\n" INPUT("x", "[259, 258]")         \
        INPUT("d", "[259, 256]") INPUT("e", "[259, 256]") INPUT("f", "[259, 254]") \
            INPUT("u", "[258, 259]") INPUT("xb", "[2, 130, 258]")                  \
                INPUT("db", "[2, 130, 256]") INPUT("x4", "[4, 258]")               \
                    INPUT("d4", "[4, 256]") "ops:\n"
#define TURNED_BACK(dy, more)                                                           \
    "  - {op: epilogue.bwd, name: r, dy: " dy ", y: " dy ", act: relu, dx: dx" more "}" \
    "\n"
#define TURNED_SUMS "  - {op: epilogue.bwd, name: s, dy: dx, dbias: g}\n"

static void dx_is_transposed_where_the_product_reads_it_and_it_pays(void **state)
{
    static const struct {
        const char *ops, *precision, *outputs;
        int32_t n;
        const char *why; /* NULL: it takes it */
    } cases[] = {
        { TURNED_BACK("d", "") TURNED_SUMS PRODUCT("a: x, b: dx, trans_a: true"), "tf32",
          "g, dx, y", 3, NULL },
        { TURNED_BACK("d", "") TURNED_SUMS PRODUCT("a: dx, b: x, trans_a: true"), "tf32",
          "g, y", 3, NULL },
        { TURNED_BACK("d", "") PRODUCT("a: x, b: dx, trans_a: true, alpha: 2"), "tf32",
          "y, dx", 2, NULL },
        { TURNED_BACK("d", ", dbias: g") PRODUCT("a: x, b: dx, trans_a: true"), "tf32",
          "g, y", 2, NULL },
        { TURNED_BACK("db", ", dbias: g")
              PRODUCT("a: xb, b: dx, trans_a: true, sum_batch: true"),
          "tf32", "g, y", 2, NULL },
        { TURNED_BACK("d", "") PRODUCT("a: x, b: dx, trans_a: true"), "f32", "y", 2,
          "only tf32" },
        { TURNED_BACK("d", "") PRODUCT("a: x, b: dx, trans_a: true"), "bf16", "y", 2,
          "only tf32" },
        { TURNED_BACK("d4", "") PRODUCT("a: x4, b: dx, trans_a: true"), "tf32", "y", 2,
          "too small" },
        { TURNED_BACK("d", "") PRODUCT("a: u, b: dx"), "tf32", "y", 2,
          "an operand already" },
        { TURNED_BACK("d", "") PRODUCT("a: x, b: e, trans_a: true"), "tf32", "dx, y", 2,
          "does not read dx" },
        { "  - {op: epilogue.bwd, name: r, dy: d, dbias: g}\n" PRODUCT(
              "a: x, b: d, trans_a: true"),
          "tf32", "g, y", 2, "does not read dx" },
        { TURNED_BACK("d", "") PRODUCT("a: dx, b: dx, trans_a: true"), "tf32", "y", 2,
          "the group makes twice" },
        { TURNED_BACK("d", "")
              PRODUCT("a: x, b: dx, trans_a: true, n: 255, ld: {b: 256}"),
          "tf32", "y", 2, "a part of dx" },
        { TURNED_BACK("db", "") PRODUCT("a: xb, b: dx, trans_a: true"), "tf32", "y", 2,
          "parts by themselves" },
        { TURNED_BACK("f", "") PRODUCT("a: x, b: dx, trans_a: true"), "tf32", "y", 2,
          "no multiples of 16 bytes" },
        { TURNED_BACK("d", "") "  - {op: epilogue.bwd, name: s, dy: e, dbias: "
                               "g}\n" PRODUCT("a: x, b: dx, trans_a: true"),
          "tf32", "g, y", 3, "not of this epilogue" },
        { TURNED_BACK("d", ", dbias: h")
              TURNED_SUMS PRODUCT("a: x, b: dx, trans_a: true"),
          "tf32", "h, g, y", 3, "two gradients" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char text[3000];
        test_group g;

        snprintf(text, sizeof text, "%s%soutputs: [%s]\n", TURNED_HEAD, cases[i].ops,
                 cases[i].outputs);
        test_group_open(&g, text, cases[i].precision, "lt_turned_dx", cases[i].n);
        assert_int_equal(g.first, 0);
        test_group_refuses(&g, cases[i].why);
        test_group_close(&g);
    }
}

static const char turned_model[] = TURNED_HEAD TURNED_BACK("d", "")
    TURNED_SUMS PRODUCT("a: x, b: dx, trans_a: true") OUTPUTS("g, dx, y");

static void column_sums_of_a_transposed_dx_need_clusters(void **state)
{
    const gx_ctx older = { .cc = 80, .shared_optin_bytes = 100 << 10 };
    test_group g;

    (void)state;
    test_group_open(&g, turned_model, "tf32", "lt_turned_dx", 3);
    assert_has(g.at->refuses(&g.group, &older), "need clusters");
    test_group_close(&g);
}

/* The way back loads vectors; the product's other operand may stand anywhere. */
static void a_dx_that_is_not_aligned_is_not_transposed(void **state)
{
    static const int args[] = { GX_EPILOGUE_BWD_DY, GX_EPILOGUE_BWD_Y,
                                GX_EPILOGUE_BWD_DX };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(args); i++) {
        gx_prepared prepared = { .n_algos = 1 };
        gx_error err = { 0 };
        test_group g;

        test_group_open(&g, turned_model, "tf32", "lt_turned_dx", 3);
        test_group_align(&g);
        g.calls[0].arg[args[i]].data = (char *)g.calls[0].arg[args[i]].data + 8;
        assert_int_equal(g.at->prepare(&g.group, &test_card, &prepared, &err),
                         GX_ERR_UNSUPPORTED);
        assert_has(err.message, "are not aligned to 16 bytes");
        assert_null(prepared.state);
        test_group_close(&g);
    }
}

/* Its rows start at multiples of 16 bytes, ahead of the library's own workspace, and
 * where nothing else reads dx the transposed is all that is stored. */
static void a_transposed_dx_lies_ahead_of_the_librarys_workspace(void **state)
{
    enum { LIBRARY = 4096 }; /* of the simulated one */
    static const struct {
        const char *ops, *outputs;
        size_t copy_bytes;
        bool is_elided;
    } cases[] = {
        { TURNED_BACK("d", "") TURNED_SUMS PRODUCT("a: x, b: dx, trans_a: true"), "g, y",
          256 * 260 * 4, true },
        { TURNED_BACK("d", "") TURNED_SUMS PRODUCT("a: x, b: dx, trans_a: true"),
          "g, dx, y", 256 * 260 * 4, false },
        { TURNED_BACK("d", "") PRODUCT("a: dx, b: x, trans_a: true"), "y", 256 * 260 * 4,
          true },
        { TURNED_BACK("db", "") PRODUCT("a: xb, b: dx, trans_a: true, sum_batch: true"),
          "y", 256 * 260 * 4, true },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char text[3000];

        snprintf(text, sizeof text, "%s%soutputs: [%s]\n", TURNED_HEAD, cases[i].ops,
                 cases[i].outputs);
        test_walk model = test_walk_parse(text, "tf32", GX_TRAIN, 1);
        planned of = planned_open(model.graph, "lt_turned_dx", 1);
        const gx_unit *unit = test_unit_of(of.plan, "y");

        assert_string_equal(unit->alternative->name, "lt_turned_dx");
        assert_ptr_equal(unit, test_unit_of(of.plan, "r"));
        assert_int_equal(unit->workspace_bytes, cases[i].copy_bytes + LIBRARY);
        assert_int_equal(unit->elided[GX_EPILOGUE_BWD_DX], cases[i].is_elided);
        planned_close(&of);
        test_walk_free(&model);
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
    assert_true(planned_samples(rows, precisions, "lt_turned_dx", NULL, NULL) >= 3);
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
    static const struct {
        const char *text, *force;
    } cases[] = {
        { planned_layers, "direct_weight" },
        { planned_layers, "lt_weight" },
        { planned_layers, "wide_fused" },
        { turned_model, "lt_turned_dx" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        test_walk model = test_walk_parse(cases[i].text, "tf32", GX_TRAIN, 1);
        planned of = planned_open(model.graph, cases[i].force, 2);

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
        cmocka_unit_test(dx_is_transposed_where_the_product_reads_it_and_it_pays),
        cmocka_unit_test(column_sums_of_a_transposed_dx_need_clusters),
        cmocka_unit_test(a_dx_that_is_not_aligned_is_not_transposed),
        cmocka_unit_test(a_transposed_dx_lies_ahead_of_the_librarys_workspace),
        cmocka_unit_test(every_sample_runs_with_every_alternative),
        cmocka_unit_test(a_bias_alone_or_with_its_weight_goes_to_lane_1),
        cmocka_unit_test(each_call_may_fail),
    };

    path_start(false);
    return cmocka_run_group_tests_name("fault_weight", tests, NULL, NULL);
}
