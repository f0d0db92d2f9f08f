/* The CUDA alternatives of the products and of the epilogue, without a GPU: what each
 * takes and what it refuses, how a batch is made one matrix, and that every sample is
 * planned, run and captured by each with the launches that it declares. */
#include "fake_cuda_planned.h"

#include <stdio.h>

#include "epilogue_kernels.h"
#include "gemm_cuda.h"
#include "plan.h"
#include "support_group.h"

#define INPUT(name, shape) "  " name ": {shape: " shape ", init: normal}\n"
#define HEAD                                                                           \
    "gexec: 1\nname: m\nprecision: $P\ninputs:\n" INPUT("x", "[6, 8]")                 \
        INPUT("w", "[8, 16]") INPUT("xb", "[3, 6, 8]") INPUT("xt", "[3, 8, 6]")        \
            INPUT("wb", "[3, 8, 16]") INPUT("c", "[6, 16]") INPUT("r", "[6, 16]")      \
                INPUT("cb", "[3, 6, 16]") INPUT("rb", "[3, 6, 16]") INPUT("s", "[16]") \
                    INPUT("s2", "[4, 16]") INPUT("xt2", "[8, 7]")                      \
                        INPUT("w17", "[8, 17]") "ops:\n  - {op: gemm, name: y, "

static const char *write_model(char *text, size_t size, const char *fields)
{
    snprintf(text, size, "%s%s}\noutputs: [y]\n", HEAD, fields);
    return text;
}

static test_walk open_walk(const char *fields, const char *precision)
{
    char text[2000];

    return test_walk_parse(write_model(text, sizeof text, fields), precision, GX_TRAIN,
                           1);
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

/* --- what is launched --- */

static long count_kernels(const gx_graph *graph, const char *force)
{
    planned of = planned_open(graph, force, 1);
    gx_error err;

    fake_begin();
    assert_ok(planned_run(&of, &err), &err);
    planned_close(&of);
    return fake_calls("cudaLaunchKernelExC");
}

/* --- what is refused --- */

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
        test_group g;
        char text[2000];

        test_group_open(&g, write_model(text, sizeof text, cases[i].fields), "tf32",
                        cases[i].name, cases[i].n);
        assert_int_equal(g.first, 0);
        test_group_refuses(&g, cases[i].why);
        test_group_close(&g);
    }
}

/* --- the pre-activation written by the library --- */

#define KEPT_HEAD                                                                \
    "gexec: 1\nname: m\nprecision: $P\ninputs:\n" INPUT("x", "[6, 8]")           \
        INPUT("w", "[8, 16]") INPUT("xb", "[3, 6, 8]") INPUT("wb", "[3, 8, 16]") \
            INPUT("c", "[6, 16]") INPUT("r", "[6, 16]") INPUT("s", "[16]") "ops:\n"
#define KEPT_PRODUCT(fields) "  - {op: gemm, name: y, " fields "}\n"
#define KEPT_STEPS(fields) "  - {op: epilogue, name: e, x: y, " fields ", out: o}\n"

static void what_is_not_kept_is_not_written_ahead(void **state)
{
    static const struct {
        const char *ops, *outputs;
        const char *why; /* NULL: it takes it */
    } cases[] = {
        { KEPT_PRODUCT("a: x, b: w") KEPT_STEPS("bias: s, act: silu, pre: p"), "o, p",
          NULL },
        { KEPT_PRODUCT("a: xb, b: wb") KEPT_STEPS("bias: s, act: relu, pre: p"), "o, p",
          NULL },
        { KEPT_PRODUCT("a: x, b: w")
              KEPT_STEPS("scale: 2, residual: r, act: tanh, pre: p"),
          "o, p", NULL },
        { KEPT_PRODUCT("a: x, b: w, c: c") KEPT_STEPS("bias: s, act: silu, pre: p"),
          "o, p", NULL },
        { KEPT_PRODUCT("a: x, b: w, c: c") KEPT_STEPS("residual: r, act: silu, pre: p"),
          "o, p", "adds one tensor" },
        { KEPT_PRODUCT("a: x, b: w") KEPT_STEPS("bias: s, pre: p"), "o, p",
          "no activation" },
        { KEPT_PRODUCT("a: x, b: w") KEPT_STEPS("act: silu"), "o, y",
          "nothing is done ahead" },
        { KEPT_PRODUCT("a: x, b: w") KEPT_STEPS("bias: s, act: silu"), "o",
          "is not kept" },
        { KEPT_PRODUCT("a: x, b: w") KEPT_STEPS("bias: s, act: silu, pre: p"), "o",
          "is not kept" },
        { KEPT_PRODUCT("a: x, b: w") KEPT_STEPS("bias: s, act: silu, pre: p"), "p",
          "nothing reads what" },
        { KEPT_PRODUCT("a: x, b: w") KEPT_STEPS("bias: s, act: silu, pre: p"), "o, p, y",
          "read elsewhere" },
        { KEPT_PRODUCT("a: xb, b: wb, sum_batch: true") KEPT_STEPS("bias: s, act: silu, "
                                                                   "pre: p"),
          "o, p", "does not add up" },
        { KEPT_PRODUCT("a: x, b: w, ld: {out: 17}")
              KEPT_STEPS("act: silu, scale: 2, pre: p"),
          "o, p", "zeros stand behind" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        test_group g;
        char text[2000];

        snprintf(text, sizeof text, "%s%soutputs: [%s]\n", KEPT_HEAD, cases[i].ops,
                 cases[i].outputs);
        test_group_open(&g, text, "tf32", "lt_bias", 2);
        assert_int_equal(g.first, 0);
        test_group_refuses(&g, cases[i].why);
        test_group_close(&g);
    }
}

static int n_epilogues, n_rounded;

static void note_epilogue(void **args)
{
    n_epilogues++;
    n_rounded += ((const gx_epilogue *)args[0])->to_tf32;
}

/* By the kernel alone, and by that behind the library's product. */
static void what_products_alone_read_is_rounded_where_it_is_made(void **state)
{
    static const struct {
        const char *alternative, *outputs, *precision;
        int n_nodes;
        bool is_rounded;
    } cases[] = {
        { "kernel", "z, p", "tf32", 1, true },
        { "lt_bias", "z, p", "tf32", 2, true },
        { "kernel", "z, p, o", "tf32", 1, false },
        { "lt_bias", "z, p, o", "tf32", 2, false },
        { "kernel", "z, p", "f32", 1, false },
        { "lt_bias", "z, p", "f32", 2, false },
    };

    (void)state;
    fake_begin();
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        gx_prepared prepared = { .n_algos = 1 };
        gx_ctx ctx = test_card;
        gx_error err = { 0 };
        test_group g;
        char text[2000];

        snprintf(text, sizeof text,
                 "%s%s  - {op: gemm, name: last, a: o, b: w, trans_b: true, out: "
                 "z}\noutputs: [%s]\n",
                 KEPT_HEAD,
                 KEPT_PRODUCT("a: x, b: w") KEPT_STEPS("bias: s, act: gelu_tanh, pre: p"),
                 cases[i].outputs);
        test_group_open(&g, text, cases[i].precision, cases[i].alternative,
                        cases[i].n_nodes);
        test_group_align(&g);
        ctx.n_sm = 132;
        ctx.workspace = gx_planned_workspace();
        assert_ok(g.at->prepare(&g.group, &ctx, &prepared, &err), &err);
        n_epilogues = n_rounded = 0;
        fake_on_launch(note_epilogue);
        assert_ok(g.at->launch(&g.group, &prepared, &ctx, &err), &err);
        fake_on_launch(NULL);
        if (g.at->release)
            g.at->release(&prepared);
        assert_int_equal(n_epilogues, 1);
        assert_int_equal(n_rounded, cases[i].is_rounded);
        test_group_close(&g);
    }
}

/* The library's workspace is all there is, and one kernel stands behind the product. */
static void the_activation_of_what_is_kept_is_a_launch_of_its_own(void **state)
{
    static const char *const precisions[] = { "f32", "tf32", "bf16", "f16" };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(precisions); i++) {
        test_walk model = test_walk_parse(
            KEPT_HEAD KEPT_PRODUCT("a: x, b: w")
                KEPT_STEPS("bias: s, act: gelu_tanh, pre: p") "outputs: [o, p]\n",
            precisions[i], GX_TRAIN, 1);
        planned of = planned_open(model.graph, "lt_bias", 1);

        assert_string_equal(test_unit_of(of.plan, "e")->alternative->name, "lt_bias");
        assert_int_equal(test_unit_of(of.plan, "e")->n_nodes, 2);
        planned_close(&of);
        assert_true(count_kernels(model.graph, "lt_bias") >=
                    count_kernels(model.graph, "lt_fused") + 2);
        test_walk_free(&model);
    }
}

/* --- an operand that is transposed before --- */

#define LARGE                                                              \
    "gexec: 1\nname: m\nprecision: $P\ninputs:\n" INPUT("a", "[259, 258]") \
        INPUT("b", "[259, 256]") INPUT("ab", "[2, 130, 258]")              \
            INPUT("bb", "[2, 130, 256]") INPUT("s", "[130, 256]")
#define LARGER                                                                     \
    LARGE INPUT("t", "[256, 258]") INPUT("p", "[4, 256]") INPUT("q", "[4, 16384]") \
        INPUT("r", "[4, 16383]") INPUT("u", "[64, 259]")
#define ONE_PRODUCT "ops:\n  - {op: gemm, name: y, "

static void a_transpose_ahead_is_refused_where_it_cannot_pay(void **state)
{
    static const struct {
        const char *fields, *precision, *name;
        const char *why; /* NULL: it takes it */
    } cases[] = {
        { "a: a, b: b, trans_a: true", "tf32", "lt_turned", NULL },
        { "a: a, b: b, trans_a: true", "f32", "lt_turned", "only tf32" },
        { "a: a, b: b, trans_a: true", "bf16", "lt_turned", "only tf32" },
        { "a: t, b: a, trans_b: true", "tf32", "lt_turned", "an operand already" },
        { "a: b, b: u, trans_a: true, trans_b: true", "tf32", "lt_turned",
          "an operand already" },
        { "a: b, b: t", "tf32", "lt_turned", "an operand already" },
        { "a: p, b: q, trans_a: true", "tf32", "lt_turned", NULL },
        { "a: p, b: r, trans_a: true", "tf32", "lt_turned", "too small" },
        { "a: ab, b: bb, trans_a: true", "tf32", "lt_turned", NULL },
        { "a: ab, b: bb, trans_a: true, sum_batch: true", "tf32", "lt_turned", NULL },
        { "a: a, b: b, trans_a: true", "tf32", "lt_turned_b", NULL },
        { "a: a, b: a, trans_a: true", "tf32", "lt_turned_b", "not the larger" },
        { "a: a, b: b, trans_a: true", "f32", "lt_turned_b", "only tf32" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        test_group g;
        char text[2000];

        snprintf(text, sizeof text, "%s%s}\noutputs: [y]\n", LARGER ONE_PRODUCT,
                 cases[i].fields);
        test_group_open(&g, text, cases[i].precision, cases[i].name, 1);
        test_group_refuses(&g, cases[i].why);
        test_group_close(&g);
    }
}

/* Sizes alone: nothing that large is made. */
static void a_copy_of_more_than_1_gib_is_refused(void **state)
{
    static const struct {
        int64_t m, n, k;
        const char *name, *why;
    } cases[] = {
        { 16384, 8, 16384, "lt_turned", NULL },
        { 16385, 8, 16384, "lt_turned", "more than 1 GiB" },
        { 16385, 8, 16384, "lt_turned_b", NULL },
        { 8, 16385, 16384, "lt_turned", NULL },
        { 16386, 16385, 16384, "lt_turned_b", "more than 1 GiB" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const int64_t m = cases[i].m, n = cases[i].n, k = cases[i].k;
        test_group g;

        test_group_open(&g,
                        LARGE ONE_PRODUCT "a: a, b: b, trans_a: true}\noutputs: [y]\n",
                        "tf32", cases[i].name, 1);
        g.calls[0].arg[GX_GEMM_A] = (gx_tensor){ GX_F32, 2, { k, m }, NULL };
        g.calls[0].arg[GX_GEMM_B] = (gx_tensor){ GX_F32, 2, { k, n }, NULL };
        g.calls[0].arg[GX_GEMM_OUT] = (gx_tensor){ GX_F32, 2, { m, n }, NULL };
        test_group_refuses(&g, cases[i].why);
        test_group_close(&g);
    }
}

/* Rows of the copy start at multiples of 16 bytes, and the library's own workspace lies
 * behind it at one of 256. What all of a batch share is copied once. */
static void a_transposed_operand_lies_ahead_of_the_librarys_workspace(void **state)
{
    enum { LIBRARY = 4096 }; /* of the simulated one */
    static const struct {
        const char *fields, *force;
        size_t copy_bytes;
    } cases[] = {
        { "a: a, b: b, trans_a: true", "lt_turned", 258 * 260 * 4 + 224 },
        { "a: a, b: b, trans_a: true", "lt_turned_b", 256 * 260 * 4 },
        { "a: ab, b: bb, trans_a: true", "lt_turned", 2 * 258 * 132 * 4 + 192 },
        { "a: ab, b: bb, trans_a: true", "lt_turned_b", 2 * 256 * 132 * 4 },
        { "a: ab, b: s, trans_a: true", "lt_turned_b", 256 * 132 * 4 },
        { "a: ab, b: bb, m: 257, n: 255, trans_a: true, ld: {a: 258, b: 256}",
          "lt_turned", 2 * 257 * 132 * 4 + 224 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char text[2000];

        snprintf(text, sizeof text, "%s%s}\noutputs: [y]\n", LARGE ONE_PRODUCT,
                 cases[i].fields);
        test_walk model = test_walk_parse(text, "tf32", GX_TRAIN, 1);
        planned of = planned_open(model.graph, cases[i].force, 1);
        const gx_unit *unit = test_unit_of(of.plan, "y");

        assert_string_equal(unit->alternative->name, cases[i].force);
        assert_int_equal(cases[i].copy_bytes % 256, 0);
        assert_int_equal(unit->workspace_bytes, cases[i].copy_bytes + LIBRARY);
        planned_close(&of);
        test_walk_free(&model);
    }
}

/* Once eagerly and once in the capture, at least. */
static void the_transpose_is_a_launch_of_its_own(void **state)
{
    test_walk model =
        test_walk_parse(LARGE ONE_PRODUCT "a: a, b: b, trans_a: true}\noutputs: [y]\n",
                        "tf32", GX_TRAIN, 1);
    const long alone = count_kernels(model.graph, "lt");

    (void)state;
    assert_true(count_kernels(model.graph, "lt_turned") >= alone + 2);
    assert_true(count_kernels(model.graph, "lt_turned_b") >= alone + 2);
    test_walk_free(&model);
}

/* The way back is one kernel, transposed or not. */
static void dx_is_transposed_without_a_launch_of_its_own(void **state)
{
    test_walk model = test_walk_parse(
        LARGE
        "ops:\n  - {op: epilogue.bwd, name: r, dy: b, y: b, act: relu, dx: dx}\n"
        "  - {op: epilogue.bwd, name: sums, dy: dx, dbias: g}\n"
        "  - {op: gemm, name: y, a: a, b: dx, trans_a: true}\noutputs: [g, dx, y]\n",
        "tf32", GX_TRAIN, 1);

    (void)state;
    assert_int_equal(count_kernels(model.graph, "lt_turned_dx"),
                     count_kernels(model.graph, "wide_fused"));
    test_walk_free(&model);
}

static void every_sample_runs_with_an_operand_transposed(void **state)
{
    static const char *const rows[] = { "gemm", NULL };
    static const char *const precisions[] = { "tf32", NULL };

    (void)state;
    assert_true(planned_samples(rows, precisions, "lt_turned", NULL, NULL) >= 4);
    assert_true(planned_samples(rows, precisions, "lt_turned_b", NULL, NULL) >= 4);
    assert_int_equal(fake_live(), 0);
}

/* --- keys --- */

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

static void every_sample_runs_with_every_alternative(void **state)
{
    static const char *const rows[] = { "gemm", "gemm.bwd", "epilogue", "epilogue.bwd",
                                        NULL };
    static const char *const forced[] = { NULL,       "lt",      "tile",  "fused",
                                          "lt_fused", "lt_bias", "kernel" };
    static const char *const precisions[] = { "f32", "bf16", "f16", NULL };
    int n_forced = 0;

    (void)state;
    for (size_t k = 0; k < ARRAY_SIZE(forced); k++)
        n_forced += planned_samples(rows, precisions, forced[k], NULL, NULL);
    assert_true(n_forced > 300);
    assert_int_equal(fake_live(), 0);
}

/* --- each call fails once --- */

static void each_call_of_a_product_may_fail(void **state)
{
    static const struct {
        const char *head, *fields, *force;
    } cases[] = {
        { HEAD, "a: xb, b: wb, c: cb, alpha: 0.5", "lt" },
        /* c has a layout of its own, and zeros stand behind the columns. */
        { HEAD, "a: xb, b: wb, n: 13, c: cb, ld: {b: 16, c: 16, out: 18}", "lt" },
        { KEPT_HEAD,
          "  - {op: gemm, name: f, a: x, b: w}\n"
          "  - {op: epilogue, name: e, x: f, bias: s, act: silu, pre: p, out: o}\n"
          "  - {op: add, name: y, a: o, b: p",
          "lt_bias" },
        { LARGE ONE_PRODUCT, "a: a, b: b, trans_a: true, ld: {out: 257}", "lt_turned" },
        { LARGE ONE_PRODUCT, "a: ab, b: bb, trans_a: true", "lt_turned_b" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char text[2000];

        snprintf(text, sizeof text, "%s%s}\noutputs: [y]\n", cases[i].head,
                 cases[i].fields);
        test_walk model = test_walk_parse(text, "tf32", GX_TRAIN, 1);
        planned of = planned_open(model.graph, cases[i].force, 1);

        assert_int_equal(gx_plan_info_get(of.plan).n_forced, 1);
        assert_true(path_fail_some_calls(planned_run, &of, 3) > 20);
        planned_close(&of);
        test_walk_free(&model);
    }
    assert_int_equal(fake_live(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_that_lies_as_one_matrix_is_one),
        cmocka_unit_test(alternatives_refuse_what_they_do_not_do),
        cmocka_unit_test(what_is_not_kept_is_not_written_ahead),
        cmocka_unit_test(the_activation_of_what_is_kept_is_a_launch_of_its_own),
        cmocka_unit_test(what_products_alone_read_is_rounded_where_it_is_made),
        cmocka_unit_test(a_transpose_ahead_is_refused_where_it_cannot_pay),
        cmocka_unit_test(a_copy_of_more_than_1_gib_is_refused),
        cmocka_unit_test(a_transposed_operand_lies_ahead_of_the_librarys_workspace),
        cmocka_unit_test(the_transpose_is_a_launch_of_its_own),
        cmocka_unit_test(dx_is_transposed_without_a_launch_of_its_own),
        cmocka_unit_test(every_sample_runs_with_an_operand_transposed),
        cmocka_unit_test(keys_tell_apart_what_is_used_of_rows),
        cmocka_unit_test(every_sample_runs_with_every_alternative),
        cmocka_unit_test(each_call_of_a_product_may_fail),
    };

    path_start(false);
    return cmocka_run_group_tests_name("fault_gemm", tests, NULL, NULL);
}
