/* The CUDA alternatives of the products and of the epilogue, without a GPU: what each
 * takes and what it refuses, how a batch is made one matrix, and that every sample is
 * planned, run and captured by each with the launches that it declares. */
#include "fake_cuda_paths.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gemm_cuda.h"
#include "plan.h"
#include "support_walk.h"

#define INPUT(name, shape) "  " name ": {shape: " shape ", init: normal}\n"
#define HEAD                                                                           \
    "gexec: 1\nname: m\nprecision: $P\ninputs:\n" INPUT("x", "[6, 8]")                 \
        INPUT("w", "[8, 16]") INPUT("xb", "[3, 6, 8]") INPUT("xt", "[3, 8, 6]")        \
            INPUT("wb", "[3, 8, 16]") INPUT("c", "[6, 16]") INPUT("r", "[6, 16]")      \
                INPUT("cb", "[3, 6, 16]") INPUT("rb", "[3, 6, 16]") INPUT("s", "[16]") \
                    INPUT("s2", "[4, 16]") INPUT("xt2", "[8, 7]")                      \
                        INPUT("w17", "[8, 17]") "ops:\n  - {op: gemm, name: y, "

static test_walk open_walk(const char *fields, const char *precision)
{
    char text[2000];

    snprintf(text, sizeof text, "%s%s}\noutputs: [y]\n", HEAD, fields);
    return test_walk_parse(text, precision, GX_TRAIN, 1);
}

/* --- how a batch is seen --- */

static void a_batch_that_lies_as_one_matrix_is_one(void **state)
{
    static const struct {
        const char *fields;
        int64_t m, n, k, n_batches, stride_a, stride_b;
        bool sum;
        int64_t lda, ldb, ldc, ld_out;
    } cases[] = {
        { "a: x, b: w", 6, 16, 8, 1, 0, 0, false, 8, 16, 0, 16 },
        { "a: xb, b: w", 18, 16, 8, 1, 48, 0, false, 8, 16, 0, 16 },
        { "a: xb, b: wb", 6, 16, 8, 3, 48, 128, false, 8, 16, 0, 16 },
        { "a: x, b: wb", 6, 16, 8, 3, 0, 128, false, 8, 16, 0, 16 },
        { "a: xt, b: w, trans_a: true", 6, 16, 8, 3, 48, 0, false, 6, 16, 0, 16 },
        { "a: xb, b: wb, sum_batch: true", 6, 16, 8, 3, 48, 128, true, 8, 16, 0, 16 },
        { "a: xt, b: wb, trans_a: true, sum_batch: true", 6, 16, 24, 1, 48, 128, false, 6,
          16, 0, 16 },
        /* What is used differs from what lies from row to row. */
        { "a: xb, b: w, n: 13, ld: {b: 16, out: 20}", 18, 13, 8, 1, 48, 0, false, 8, 16,
          0, 20 },
        { "a: xb, b: wb, n: 13, c: cb, ld: {b: 16, c: 16}", 6, 13, 8, 3, 48, 128, false,
          8, 16, 16, 13 },
        { "a: xt, b: wb, trans_a: true, m: 5, n: 3, sum_batch: true, ld: {a: 6, b: 16}",
          5, 3, 24, 1, 48, 128, false, 6, 16, 0, 3 },
        { "a: x, b: s2, trans_b: true, k: 7, ld: {a: 8, b: 16}", 6, 4, 7, 1, 0, 0, false,
          8, 16, 0, 4 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        test_walk model = open_walk(cases[i].fields, "f32");
        gx_call call;

        gx_match_calls(model.graph, 0, 1, &call);
        const gx_product product = gx_product_of(&call);

        assert_int_equal(product.m, cases[i].m);
        assert_int_equal(product.n, cases[i].n);
        assert_int_equal(product.k, cases[i].k);
        assert_int_equal(product.n_batches, cases[i].n_batches);
        assert_int_equal(product.stride_a, cases[i].stride_a);
        assert_int_equal(product.stride_b, cases[i].stride_b);
        assert_int_equal(product.sum, cases[i].sum);
        assert_int_equal(product.lda, cases[i].lda);
        assert_int_equal(product.ldb, cases[i].ldb);
        assert_int_equal(product.ldc, cases[i].ldc);
        assert_int_equal(product.ld_out, cases[i].ld_out);
        test_walk_free(&model);
    }
}

/* --- what is refused --- */

/* The alternative of that name whose pattern is n ops from the first node on. */
static const gx_alternative *find(const gx_graph *graph, const char *name, int32_t n)
{
    const gx_alternative *at;

    for (size_t i = 0; (at = gx_alternative_at(i)); i++) {
        if (strcmp(at->name, name) == 0 && gx_match_length(graph, at, 0) == n)
            return at;
    }
    fail_msg("no alternative %s of %d ops", name, n);
    return NULL;
}

static void alternatives_refuse_what_they_do_not_do(void **state)
{
    static const struct {
        const char *fields, *name;
        int32_t n;
        const char *why; /* NULL: it takes it */
    } cases[] = {
        { "a: xb, b: wb", "lt", 1, NULL },
        { "a: xb, b: wb, c: cb, alpha: 2", "lt", 1, NULL },
        { "a: xb, b: wb, sum_batch: true", "lt", 1, "does not add up" },
        { "a: xb, b: wb, sum_batch: true", "tile", 1, NULL },
        { "a: x, b: w, epilogue: {scale: 2, residual: r, bias: s, act: relu}", "lt_fused",
          2, NULL },
        { "a: xb, b: wb, epilogue: {bias: s, act: relu}", "lt_fused", 2, NULL },
        { "a: x, b: w, c: c, epilogue: {residual: r, bias: s}", "lt_fused", 2,
          "adds one tensor" },
        { "a: x, b: w, c: c, epilogue: {residual: r, bias: s}", "fused", 2, NULL },
        { "a: x, b: w, epilogue: {bias: s, act: silu}", "lt_fused", 2, "no other" },
        { "a: xb, b: wb, epilogue: {bias: s, act: silu, residual: rb, order: [bias, act, "
          "residual]}",
          "fused", 3, NULL },
        { "a: x, b: w, epilogue: {bias: s, act: relu, residual: r, scale: 2, order: "
          "[act, scale, bias, residual]}",
          "fused", 3, "does more than scale and add" },
        { "a: x, b: w, n: 13, c: c, ld: {b: 16, c: 16, out: 20}", "lt", 1, NULL },
        { "a: x, b: w, n: 13, c: c, ld: {b: 16, c: 16, out: 20}", "tile", 1, NULL },
        { "a: x, b: w, n: 13, ld: {b: 16}, epilogue: {act: relu}", "lt_fused", 2, NULL },
        { "a: x, b: w, n: 13, ld: {b: 16}, epilogue: {act: relu}", "fused", 2, NULL },
        { "a: x, b: w, n: 12, ld: {b: 16}, epilogue: {act: relu}", "direct_fused", 2,
          NULL },
        { "a: x, b: w, ld: {out: 17}", "direct", 1, "more than one plain product" },
        { "a: x, b: w, ld: {out: 17}}\n  - {op: epilogue, name: e, x: y, act: relu",
          "fused", 2, "zeros stand behind" },
        { "a: x, b: w, ld: {out: 17}}\n  - {op: epilogue, name: e, x: y, act: relu",
          "lt_fused", 2, "zeros stand behind" },
        { "a: xt2, b: w, trans_a: true, m: 6, ld: {a: 7}", "direct", 1, "no tile shape" },
        { "a: x, b: w17, n: 16, ld: {b: 17}", "direct", 1, NULL },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        test_walk model = open_walk(cases[i].fields, "tf32");
        const gx_alternative *at = find(model.graph, cases[i].name, cases[i].n);
        gx_call calls[3];
        bool elided[3 * GX_MAX_ARGS];
        const gx_ctx ctx = { .cc = 90, .shared_optin_bytes = 200 << 10 };
        const gx_group group = { .n_calls = cases[i].n, .call = calls, .elided = elided };

        gx_match_calls(model.graph, 0, cases[i].n, calls);
        gx_match_elided(model.graph, 0, cases[i].n, elided);
        const char *why = at->refuses(&group, &ctx);

        if (cases[i].why)
            assert_has(why ? why : "nothing", cases[i].why);
        else if (why)
            fail_msg("%s: %s refuses: %s", cases[i].fields, cases[i].name, why);
        test_walk_free(&model);
    }
}

/* The same tensors, and another part of them. */
static void keys_tell_apart_what_is_used_of_rows(void **state)
{
    static const char *const fields[] = { "a: x, b: w, n: 13, ld: {b: 16, out: 16}",
                                          "a: x, b: w, n: 14, ld: {b: 16, out: 16}",
                                          "a: x, b: w" };
    char key[ARRAY_SIZE(fields)][GX_KEY_SIZE];
    uint64_t hash[ARRAY_SIZE(fields)][2];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
        test_walk model = open_walk(fields[i], "f32");

        gx_site_key(model.graph, 0, 1, key[i], hash[i]);
        for (size_t k = 0; k < i; k++) {
            assert_string_not_equal(key[i], key[k]);
            assert_true(hash[i][0] != hash[k][0] && hash[i][1] != hash[k][1]);
        }
        test_walk_free(&model);
    }
}

/* --- each sample through each alternative --- */

static gx_status run_both(gx_plan *plan, gx_state *state, gx_error *err)
{
    gx_exec *exec = NULL;
    gx_status st = gx_exec_create(plan, state, NULL, &exec, err);

    if (st == GX_OK)
        st = gx_exec_run(exec, GX_MODE_EAGER, 1, err);
    if (st == GX_OK)
        st = gx_exec_run(exec, GX_MODE_GRAPH, 2, err);
    if (st == GX_OK)
        st = gx_exec_sync(exec, err);
    gx_exec_free(exec);
    return st;
}

static gx_status run_forced(const gx_graph *graph, const char *force, int *n_forced,
                            gx_error *err)
{
    const gx_plan_options options = {
        .device = 0, .cache_folder = "", .lanes = 1, .no_measure = true, .force = force
    };
    const gx_state_options state_options = { .device = 0, .seed = 7 };
    gx_plan *plan = NULL;
    gx_state *state = NULL;
    gx_status st = gx_plan_create(graph, &options, &plan, err);

    if (st == GX_OK)
        st = gx_state_create(&graph, 1, &state_options, &state, err);
    if (st == GX_OK)
        st = run_both(plan, state, err);
    if (st == GX_OK)
        *n_forced += (int)gx_plan_info_get(plan).n_forced;
    gx_state_free(state);
    gx_plan_free(plan);
    return st;
}

static void every_sample_runs_with_every_alternative(void **state)
{
    static const char *const rows[] = { "gemm", "gemm.bwd", "epilogue", "epilogue.bwd" };
    static const char *const forced[] = { NULL,    "lt",       "tile",
                                          "fused", "lt_fused", "kernel" };
    static const char *const precisions[] = { "f32", "bf16", "f16" };
    int n_forced = 0;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows) * ARRAY_SIZE(precisions); i++) {
        const gx_op *op = gx_op_find(rows[i / ARRAY_SIZE(precisions)]);

        for (const char *const *text = op->samples; *text; text++) {
            char *made = test_walk_text(*text, precisions[i % ARRAY_SIZE(precisions)]);
            gx_graph *graph;
            gx_error err;

            assert_ok(gx_graph_parse(made, strlen(made), "sample.yaml", ".", NULL, &graph,
                                     NULL, &err),
                      &err);
            for (size_t k = 0; k < ARRAY_SIZE(forced); k++) {
                if (run_forced(graph, forced[k], &n_forced, &err) != GX_OK)
                    fail_msg("%s\n%s: %s", made, forced[k] ? forced[k] : "first",
                             err.message);
            }
            gx_graph_free(graph);
            free(made);
        }
    }
    assert_true(n_forced > 300);
    assert_int_equal(fake_live(), 0);
}

/* --- each call fails once --- */

typedef struct planned {
    gx_plan *plan;
    gx_state *state;
} planned;

static gx_status make_exec(void *user, gx_error *err)
{
    const planned *of = user;
    gx_exec *exec = NULL;
    const gx_status st = gx_exec_create(of->plan, of->state, NULL, &exec, err);

    fake_quiet(true); /* what gives back has no status */
    gx_exec_free(exec);
    fake_quiet(false);
    return st;
}

static void each_call_of_a_product_may_fail(void **state)
{
    static const char *const fields[] = {
        "a: xb, b: wb, c: cb, alpha: 0.5",
        /* c has a layout of its own, and zeros stand behind the columns. */
        "a: xb, b: wb, n: 13, c: cb, ld: {b: 16, c: 16, out: 18}",
    };
    const gx_plan_options options = {
        .device = 0, .cache_folder = "", .lanes = 1, .no_measure = true, .force = "lt"
    };
    const gx_state_options state_options = { .device = 0, .seed = 7 };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
        test_walk model = open_walk(fields[i], "f32");
        const gx_graph *graph = model.graph;
        planned of;
        gx_error err;

        assert_ok(gx_plan_create(graph, &options, &of.plan, &err), &err);
        assert_ok(gx_state_create(&graph, 1, &state_options, &of.state, &err), &err);
        assert_true(path_fail_some_calls(make_exec, &of, 3) > 20);
        gx_state_free(of.state);
        gx_plan_free(of.plan);
        test_walk_free(&model);
    }
    assert_int_equal(fake_live(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_that_lies_as_one_matrix_is_one),
        cmocka_unit_test(alternatives_refuse_what_they_do_not_do),
        cmocka_unit_test(keys_tell_apart_what_is_used_of_rows),
        cmocka_unit_test(every_sample_runs_with_every_alternative),
        cmocka_unit_test(each_call_of_a_product_may_fail),
    };

    path_start(false);
    return cmocka_run_group_tests_name("fault_gemm", tests, NULL, NULL);
}
