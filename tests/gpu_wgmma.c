/* Large products on sm_90: sizes that no tile divides, each with what may follow it,
 * against a reference in doubles, element by element; and the same bits again. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_call.h"
#include "support.h"
#include "support_gpu_walk.h"
#include "support_group.h"
#include "wgmma.h"

enum { TEXT_BYTES = 2000, FEWEST = 1 << 27 /* multiplications that are taken */ };

/* --- models --- */

enum { MOST_OUTPUTS = 3 };

/* What follows the product q, and what comes of it. */
typedef struct tail {
    const char *ops, *outputs[MOST_OUTPUTS];
    bool has_bias, has_kept;
    const char *force;     /* NULL: "wgmma_fused", or "wgmma" where nothing follows */
    const char *kept_type; /* NULL: that of all others */
} tail;

static const tail tails[] = {
    { .ops = "", .outputs = { "q" } },
    { .ops = "  - {op: epilogue, name: y, x: q, bias: s, act: gelu_tanh, pre: p}\n",
      .outputs = { "y", "p" },
      .has_bias = true },
    { .ops =
          "  - {op: epilogue.bwd, name: back, dy: q, pre: kept, act: gelu_tanh, dx: dx, "
          "dbias: db}\n",
      .outputs = { "dx", "db" },
      .has_kept = true },
    { .ops = "  - {op: epilogue, name: y, x: q, bias: s, act: relu}\n",
      .outputs = { "y" },
      .has_bias = true },
    { .ops = "  - {op: epilogue.bwd, name: dx, dy: q, y: kept, act: relu, dx: dx}\n"
             "  - {op: epilogue.bwd, name: sums, dy: dx, dbias: db}\n",
      .outputs = { "dx", "db" },
      .has_kept = true },
    { .ops = "  - {op: epilogue, name: y, x: q, act: silu, pre: p}\n",
      .outputs = { "y", "p" } },
    { .ops = "  - {op: epilogue.bwd, name: back, dy: q, pre: kept, act: silu, dx: dx}\n",
      .outputs = { "dx" },
      .has_kept = true },
    { .ops = "  - {op: epilogue, name: y, x: q, bias: s}\n",
      .outputs = { "y" },
      .has_bias = true },
    { .ops = "  - {op: epilogue.bwd, name: sums, dy: q, dbias: db}\n",
      .outputs = { "db" } },
    /* The kept one is what a loss wants. */
    { .ops =
          "  - {op: epilogue, name: y, x: q, bias: s}\n"
          "  - {op: mse.bwd, name: back, x: y, target: kept, dx: slope, reduction: sum}\n"
          "  - {op: mse, name: loss, x: y, target: kept, reduction: sum}\n",
      .outputs = { "slope", "loss" },
      .has_bias = true,
      .has_kept = true,
      .force = "wgmma_head" },
    { .ops = "  - {op: mse.bwd, name: back, x: q, target: kept, dx: slope, reduction: "
             "sum}\n",
      .outputs = { "slope" },
      .has_kept = true,
      .force = "wgmma_head_bwd",
      .kept_type = "f32" },
    { .ops = "  - {op: epilogue, name: y, x: q, bias: s}\n"
             "  - {op: bce_with_logits, name: loss, x: y, target: kept}\n"
             "  - {op: bce_with_logits.bwd, name: back, x: y, target: kept, dx: slope}\n",
      .outputs = { "loss", "slope" },
      .has_bias = true,
      .has_kept = true,
      .force = "wgmma_head",
      .kept_type = "f32" },
    { .ops =
          "  - {op: epilogue, name: y, x: q, bias: s}\n"
          "  - {op: l1, name: loss, x: y, target: kept, reduction: sum}\n"
          "  - {op: l1.bwd, name: back, x: y, target: kept, dx: slope, reduction: sum}\n",
      .outputs = { "slope", "loss", "y" },
      .has_bias = true,
      .has_kept = true,
      .force = "wgmma_head",
      .kept_type = "f32" },
    { .ops = "  - {op: epilogue, name: y, x: q, bias: s}\n"
             "  - {op: bce_with_logits.bwd, name: back, x: y, target: kept, dx: slope, "
             "reduction: sum}\n",
      .outputs = { "slope", "y" },
      .has_bias = true,
      .has_kept = true,
      .force = "wgmma_head_bwd" },
};

typedef struct product {
    int64_t m, n, k;
    bool a_turned, b_turned;
    int64_t wide; /* elements behind what is used of each row of a and b */
    const char *precision;
    const tail *tail;
} product;

/* Sizes that the shapes do not say. */
static void write_sizes(char *text, size_t size, const product *p, long long row_a,
                        long long row_b)
{
    char m[32] = "";

    if (p->a_turned)
        snprintf(m, sizeof m, ", m: %lld", (long long)p->m);
    snprintf(text, size, "%s, n: %lld, k: %lld, ld: {a: %lld, b: %lld}", m,
             (long long)p->n, (long long)p->k, row_a, row_b);
}

static void write_model(char *text, const product *p)
{
    const long long m = p->m, n = p->n, k = p->k;
    const long long row_a = (p->a_turned ? m : k) + p->wide;
    const long long row_b = (p->b_turned ? k : n) + p->wide;
    char bias[64] = "", kept[96] = "", used[200] = "", outputs[64] = "";

    if (p->tail->has_bias)
        snprintf(bias, sizeof bias, "  s: {shape: [%lld]}\n", n);
    if (p->tail->has_kept)
        snprintf(kept, sizeof kept, "  kept: {shape: [%lld, %lld]%s%s}\n", m, n,
                 p->tail->kept_type ? ", dtype: " : "",
                 p->tail->kept_type ? p->tail->kept_type : "");
    for (int o = 0; o < MOST_OUTPUTS && p->tail->outputs[o]; o++) {
        strcat(outputs, o > 0 ? ", " : "");
        strcat(outputs, p->tail->outputs[o]);
    }
    if (p->wide > 0)
        write_sizes(used, sizeof used, p, row_a, row_b);
    snprintf(text, TEXT_BYTES,
             "gexec: 1\nname: m\nprecision: %s\ninputs:\n  a: {shape: [%lld, %lld]}\n"
             "  b: {shape: [%lld, %lld]}\n%s%sops:\n"
             "  - {op: gemm, name: q, a: a, b: b, trans_a: %s, trans_b: %s%s}\n%s"
             "outputs: [%s]\n",
             p->precision, p->a_turned ? k : m, row_a, p->b_turned ? n : k, row_b, bias,
             kept, p->a_turned ? "true" : "false", p->b_turned ? "true" : "false", used,
             p->tail->ops, outputs);
}

/* --- the reference --- */

/* A step in exact doubles. Elements of the product are about as large as 1. */
static test_walk open_truth(const char *text, const product *p, test_random *random)
{
    test_walk walk = test_walk_parse(text, p->precision, GX_TRAIN, 1);

    gpu_fill(&walk, "a", 1, random);
    gpu_fill(&walk, "b", 3 / sqrt((double)p->k), random);
    if (p->tail->has_bias)
        gpu_fill(&walk, "s", 2, random);
    if (p->tail->has_kept)
        gpu_fill(&walk, "kept", 3, random);
    walk.exact = true;
    test_walk_step(&walk);
    return walk;
}

static bool is_l1(const product *p)
{
    return strstr(p->tail->ops, "l1.bwd") != NULL;
}

/* What an element may be off: what rounding makes, of itself, twice, and of the product
 * that something follows; and, of the product's size, what its own sums do. */
static double allowed(const product *p, const test_walk *truth, const char *output,
                      int64_t i)
{
    const double rounding = strcmp(p->precision, "bf16") == 0 ? 0x1p-8 : 0x1p-10;
    const double noise = 1e-3, want = test_walk_tensor(truth, output)[i];

    if (strcmp(output, "db") == 0)
        return rounding * fabs(want) + (noise + 2 * rounding) * sqrt((double)p->m);
    if (strcmp(output, "loss") == 0)
        return noise * fabs(want);
    const double of_product = rounding * fabs(test_walk_tensor(truth, "q")[i]) + noise;

    if (strcmp(output, "slope") != 0)
        return rounding * fabs(want) + of_product;
    /* Twice what its x is off by; or a sign, which nobody knows of what is about 0. */
    if (is_l1(p) && fabs(test_walk_tensor(truth, "y")[i] -
                         test_walk_tensor(truth, "kept")[i]) <= of_product)
        return 2;
    return is_l1(p) ? 0 : rounding * fabs(want) + 2 * of_product;
}

static void expect_close(const product *p, const char *output, const double *got,
                         const test_walk *truth)
{
    const double *want = test_walk_tensor(truth, output);
    const int64_t n = test_walk_count(truth, output);
    int64_t first = -1, n_wrong = 0;

    for (int64_t i = 0; i < n; i++) {
        if (fabs(got[i] - want[i]) <= allowed(p, truth, output, i))
            continue;
        first = n_wrong++ == 0 ? i : first;
    }
    if (n_wrong > 0)
        fail_msg("%lld x %lld x %lld, %s, turned: %d %d\n%s%s[%lld] is %.9g, expected "
                 "%.9g; %lld of %lld are wrong",
                 (long long)p->m, (long long)p->n, (long long)p->k, p->precision,
                 p->a_turned, p->b_turned, p->tail->ops, output, (long long)first,
                 got[first], want[first], (long long)n_wrong, (long long)n);
}

/* --- programs --- */

static bool is_logged(const product *p)
{
    return strstr(p->tail->ops, "name: loss") != NULL;
}

static void open_program(gpu_program *program, const product *p, const char *text,
                         const test_walk *truth)
{
    const gpu_options options = { .force = p->tail->force    ? p->tail->force
                                           : p->tail->ops[0] ? "wgmma_fused"
                                                             : "wgmma" };

    gpu_open_text(program, text, &options);
    /* What logs a loss is another unit. */
    if (gx_plan_info_get(program->plan).n_forced != 1 ||
        program->plan->n_units != (is_logged(p) ? 2 : 1))
        fail_msg("%s does not take all of it:\n%s", options.force, text);
    gpu_write_input(program, truth, "b", 1);
    if (p->tail->has_bias)
        gpu_write_input(program, truth, "s", 1);
    if (p->tail->has_kept)
        gpu_write_input(program, truth, "kept", 1);
}

/* Steps in the first mode and, after other numbers, in each mode again: what is found
 * then is not what was left there. */
static void check_steps(gpu_program *program, const product *p, const test_walk *truth)
{
    static const gx_mode modes[] = { GX_MODE_EAGER, GX_MODE_EAGER, GX_MODE_GRAPH,
                                     GX_MODE_GRAPH };
    double *first[MOST_OUTPUTS] = { NULL };

    for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
        gpu_write_input(program, truth, "a", -0.5);
        gpu_run(program, modes[i], 1);
        gpu_write_input(program, truth, "a", 1);
        gpu_run(program, modes[i], i % 2 ? 3 : 1);
        for (size_t o = 0; o < MOST_OUTPUTS && p->tail->outputs[o]; o++) {
            const char *name = p->tail->outputs[o];
            const size_t bytes = (size_t)test_walk_count(truth, name) * sizeof(double);
            double *got = gpu_read_output(program, truth, name);

            if (i == 0) {
                expect_close(p, name, got, truth);
                first[o] = got;
                continue;
            }
            assert_memory_equal(got, first[o], bytes);
            free(got);
        }
    }
    for (size_t o = 0; o < MOST_OUTPUTS; o++)
        free(first[o]);
}

static void check(const product *p, test_random *random)
{
    char text[TEXT_BYTES];
    gpu_program program;

    write_model(text, p);
    test_walk truth = open_truth(text, p, random);

    open_program(&program, p, text, &truth);
    check_steps(&program, p, &truth);
    gpu_close(&program);
    test_walk_free(&truth);
}

/* --- sizes --- */

static bool is_taken(int64_t m, int64_t n, int64_t k, int n_sm)
{
    return m * n * k >= FEWEST &&
           gx_divide_up(m, GX_WGMMA_ROWS) * gx_divide_up(n, GX_WGMMA_COLUMNS) >= n_sm / 2;
}

/* Tiles that are not full, down, across and along k; rows in the first block of a cluster
 * alone, in one tile alone, in one column of tiles; less than a stage of k; more tiles
 * than blocks, and more of them down than are made before the next column. */
static const int64_t sizes[][3] = {
    { 129, 8200, 128 }, { 63, 16648, 128 },   { 641, 2568, 88 },   { 8321, 8, 2024 },
    { 4097, 4104, 8 },  { 1999, 2056, 1000 }, { 2177, 1024, 136 }, { 1999, 4088, 1000 },
};

static void whatever_follows_is_right_at_any_size(void **state)
{
    const test_device *s = *state;
    test_random random = test_random_start(s->seed);
    int ran = 0;

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        const int64_t *size = sizes[i];
        for (size_t t = 0; t < ARRAY_SIZE(tails); t++) {
            const product p = {
                .m = size[0],
                .n = size[1],
                .k = size[2],
                .b_turned = (i + t) % 2,
                .precision = (i + t) / 2 % 2 ? "f16" : "bf16",
                .tail = &tails[t],
            };

            /* Of each size a fifth: the reference takes long. */
            if (t % 5 != i % 5 || !is_taken(p.m, p.n, p.k, s->ctx.n_sm))
                continue;
            check(&p, &random);
            ran++;
        }
    }
    print_message("%d products\n", ran);
    assert_true(ran > 0);
}

/* The inner size is then that of rows, so it is any. */
static void a_first_operand_that_is_turned_is_read_right(void **state)
{
    static const int64_t turned[][3] = {
        { 136, 8200, 125 },
        { 2000, 1032, 67 },
        { 64, 16648, 127 },
        { 4104, 4096, 9 },
    };
    const test_device *s = *state;
    test_random random = test_random_start(s->seed + 1);
    int ran = 0;

    for (size_t i = 0; i < 2 * ARRAY_SIZE(turned); i++) {
        const int64_t *size = turned[i / 2];
        const product p = {
            .m = size[0],
            .n = size[1],
            .k = size[2],
            .a_turned = true,
            .wide = i % 4 < 2 ? 0 : 8,
            .precision = i % 2 ? "f16" : "bf16",
            .tail = &tails[0],
        };

        if (!is_taken(p.m, p.n, p.k, s->ctx.n_sm) || (test_is_short() && i % 3 != 0))
            continue;
        check(&p, &random);
        ran++;
    }
    print_message("%d products\n", ran);
    assert_true(ran > 0);
}

/* Fresh sizes of every kind. */
static void random_sizes_are_right(void **state)
{
    const test_device *s = *state;
    test_random random = test_random_start(s->seed + 2);
    const int n_wanted = test_is_short() ? 2 : (int)ARRAY_SIZE(tails) / 2;

    for (int ran = 0; ran < n_wanted;) {
        const product p = {
            .m = test_random_int(&random, 1, 4000),
            .n = 8 * test_random_int(&random, 1, 500),
            .k = 8 * test_random_int(&random, 1, 100),
            .b_turned = test_random_int(&random, 0, 1),
            .wide = 8 * test_random_int(&random, 0, 2),
            .precision = test_random_int(&random, 0, 1) ? "f16" : "bf16",
            .tail = &tails[test_random_int(&random, 0, ARRAY_SIZE(tails) - 1)],
        };

        if (!is_taken(p.m, p.n, p.k, s->ctx.n_sm) ||
            p.m * p.n * p.k > 6 * (int64_t)FEWEST)
            continue;
        check(&p, &random);
        ran++;
    }
}

/* --- what lies around the results --- */

static bool is_product(const gx_graph *graph, const gx_alternative *at, int32_t first)
{
    (void)first, (void)graph;
    return strncmp(at->name, "wgmma", 5) == 0;
}

/* By every alternative, over NaNs: nothing behind results or workspace is written. */
static void nothing_else_is_written(void **state)
{
    test_device *s = *state;
    test_random random = test_random_start(s->seed + 3);
    const size_t n_tails = test_is_short() ? 3 : ARRAY_SIZE(tails);

    for (size_t t = 0; t < n_tails; t++) {
        const product p = {
            .m = sizes[0][0],
            .n = sizes[0][1],
            .k = sizes[0][2],
            .b_turned = t % 2,
            .precision = t / 2 % 2 ? "f16" : "bf16",
            .tail = &tails[t],
        };
        char text[TEXT_BYTES];

        if (!is_taken(p.m, p.n, p.k, s->ctx.n_sm))
            continue;
        write_model(text, &p);
        test_walk truth = open_truth(text, &p, &random);

        assert_true(test_groups_check(s, &truth, is_product, 3, 0) > 0);
        test_walk_free(&truth);
    }
}

int main(void)
{
    gpu_start();
    const char *reason = !gx_wgmma_is_built()              ? "built without sm_90a"
                         : test_device_cc() != GX_WGMMA_CC ? "the card is not sm_90"
                                                           : NULL;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(whatever_follows_is_right_at_any_size,
                                        test_device_open, test_device_close),
        cmocka_unit_test_setup_teardown(a_first_operand_that_is_turned_is_read_right,
                                        test_device_open, test_device_close),
        cmocka_unit_test_setup_teardown(random_sizes_are_right, test_device_open,
                                        test_device_close),
        cmocka_unit_test_setup_teardown(nothing_else_is_written, test_device_open,
                                        test_device_close),
    };

    if (reason != NULL) {
        fprintf(stderr, "skipped: %s\n", reason);
        return TEST_SKIPPED;
    }
    return cmocka_run_group_tests_name("gpu_wgmma", tests, NULL, NULL);
}
