/* Small products on a device: two layers of many sizes, each product with what follows it
 * by every candidate of every alternative, against the references. */
#include <stdio.h>
#include <string.h>

#include "support.h"
#include "support_gpu.h"
#include "support_group.h"

/* Rows in one tile, in several of a cluster and in more than that; odd columns; k that is
 * no multiple of 4, less than a chunk, and more than one turn of all warps. */
static const int sizes[][4] = {
    /* rows, inner, middle, outer */
    { 1, 4, 8, 2 },      { 16, 10, 34, 6 },   { 17, 100, 36, 10 }, { 64, 784, 64, 10 },
    { 100, 36, 132, 7 }, { 128, 64, 16, 48 }, { 300, 20, 24, 12 }, { 32, 2100, 40, 64 },
};

/* Rows of x and of the weights are `wide` elements longer than what is used of them. */
static void write_model(char *text, size_t size, const int *n, const char *act,
                        bool turned, int wide)
{
    const int row[] = { n[turned ? 1 : 2] + wide, n[turned ? 2 : 3] + wide };
    char first[64], second[64], first_sizes[128] = "", second_sizes[128] = "";

    snprintf(first, sizeof first, "[%d, %d]", n[turned ? 2 : 1], row[0]);
    snprintf(second, sizeof second, "[%d, %d]", n[turned ? 3 : 2], row[1]);
    if (wide > 0) {
        snprintf(first_sizes, sizeof first_sizes, ", n: %d, k: %d, ld: {a: %d, b: %d}",
                 n[2], n[1], n[1] + wide, row[0]);
        snprintf(second_sizes, sizeof second_sizes, ", n: %d, ld: {b: %d}", n[3], row[1]);
    }
    snprintf(
        text, size,
        "gexec: 1\nname: m\nprecision: $P\ninputs:\n"
        "  x: {shape: [%d, %d], init: normal}\n"
        "  t: {shape: [%d, %d], dtype: f32, init: normal}\n"
        "params:\n  w1: {shape: %s, init: he_normal}\n"
        "  b1: {shape: [%d], init: normal}\n"
        "  w2: {shape: %s, init: he_normal}\n  b2: {shape: [%d], init: normal}\n"
        "ops:\n  - {op: gemm, name: h, a: x, b: w1%s%s, epilogue: {bias: b1, act: %s}}\n"
        "  - {op: gemm, name: y, a: h, b: w2%s%s, epilogue: {bias: b2, act: %s}}\n"
        "  - {op: mse, name: loss, x: y, target: t}\nbackward: loss\n"
        "optimizer: {sgd: {lr: 0.1}}\noutputs: [loss]\n",
        n[0], n[1] + wide, n[0], n[3], first, n[2], second, n[3],
        turned ? ", trans_b: true" : "", first_sizes, act,
        turned ? ", trans_b: true" : "", second_sizes, act);
}

/* The first is a product or the way back through an epilogue. */
static bool is_product(const gx_graph *graph, const gx_alternative *at, int32_t first)
{
    const char *const name = graph->nodes[first].op_name;

    (void)at;
    return strcmp(name, "gemm") == 0 || strcmp(name, "epilogue.bwd") == 0;
}

static void small_products_are_right_in_every_shape(void **state)
{
    static const char *const precisions[] = { "tf32", "bf16", "f16" };
    static const char *const acts[] = { "relu", "gelu_tanh", "silu", "tanh", "none" };
    static const int wide[] = { 0, 8, 3 };
    const size_t n_models = ARRAY_SIZE(sizes) * ARRAY_SIZE(precisions);
    test_device *s = *state;
    int ran = 0;

    for (size_t at = 0; at < n_models * ARRAY_SIZE(wide); at++) {
        const size_t i = at % n_models;
        const int *n = sizes[i / 3];
        char text[2000];

        write_model(text, sizeof text, n, acts[i % 5], i % 2, wide[at / n_models]);
        test_walk walk = test_walk_parse(text, precisions[i % 3], GX_TRAIN, s->seed);

        test_walk_step(&walk);
        ran += test_groups_check(s, &walk, is_product, 4, 0);
        test_walk_free(&walk);
    }
    print_message("%d groups and shapes\n", ran);
    assert_true(ran > 1000);
}

/* --- the gradients of a weight and of its bias --- */

/* dw = x^T dy, or its transpose where the weight is stored [out, in]. */
static test_walk open_weight(int64_t rows, int64_t in, int64_t out, bool turned,
                             const char *precision, uint64_t seed)
{
    char text[1000];

    snprintf(text, sizeof text,
             "gexec: 1\nname: m\nprecision: $P\ninputs:\n"
             "  x: {shape: [%lld, %lld], init: normal}\n"
             "  dy: {shape: [%lld, %lld], init: normal}\n"
             "ops:\n  - {op: epilogue.bwd, name: sums, dy: dy, dbias: db}\n"
             "  - {op: gemm, name: dw, a: %s, b: %s, trans_a: true}\n"
             "outputs: [db, dw]\n",
             (long long)rows, (long long)in, (long long)rows, (long long)out,
             turned ? "dy" : "x", turned ? "x" : "dy");
    return test_walk_parse(text, precision, GX_TRAIN, seed);
}

/* One row and none, a chunk that is not full, and more rows than all warps take in a
 * turn; odd sizes, which the kernel for small products may refuse and the others not. */
static void weights_and_their_biases_are_right(void **state)
{
    static const char *const precisions[] = { "f32", "tf32", "bf16", "f16" };
    static const int64_t fixed[][3] = {
        { 0, 8, 16 },     { 1, 2, 2 },      { 1, 1, 1 },
        { 7, 5, 3 },      { 16, 64, 64 },   { 33, 34, 66 },
        { 32, 512, 512 }, { 2100, 36, 10 }, { 700, 6, 94 },
    };
    test_device *s = *state;
    test_random random = test_random_start(s->seed);
    int ran = 0;

    for (size_t i = 0; i < 120; i++) {
        const int64_t even = 1 + (int64_t)(i % 3 > 0); /* most have a kernel */
        const bool is_fixed = i < 8 * ARRAY_SIZE(fixed);
        const int64_t rows =
            is_fixed ? fixed[i / 8][0] : test_random_int(&random, 1, i % 5 ? 100 : 3000);
        const int64_t in =
            is_fixed ? fixed[i / 8][1] : even * test_random_int(&random, 1, 100);
        const int64_t out =
            is_fixed ? fixed[i / 8][2] : even * test_random_int(&random, 1, 100);
        test_walk walk =
            open_weight(rows, in, out, i / 4 % 2, precisions[i % 4], s->seed + i);

        test_walk_step(&walk);
        const int of_group = test_nodes_check(s, &walk, 0, 2, 0, NULL);

        if (i % 4 > 0 && rows > 0 && in % 2 == 0 && out % 2 == 0)
            assert_true(of_group > 0);
        ran += of_group + test_nodes_check(s, &walk, 0, 1, 0, NULL) +
               test_nodes_check(s, &walk, 1, 1, 0, NULL);
        test_walk_free(&walk);
    }
    print_message("%d groups and shapes\n", ran);
    assert_true(ran > 600);
}

/* More rows than bf16 counts to: sums that are kept in it stop at 256. */
static void sums_beside_a_weight_are_kept_in_f32(void **state)
{
    static const char *const precisions[] = { "tf32", "bf16", "f16" };
    enum { ROWS = 4096 };
    test_device *s = *state;

    for (size_t i = 0; i < 2 * ARRAY_SIZE(precisions); i++) {
        test_walk walk = open_weight(ROWS, 4, 4, i % 2, precisions[i / 2], s->seed);
        const char *const inputs[] = { "x", "dy" };

        for (size_t k = 0; k < ARRAY_SIZE(inputs); k++) {
            double *data = test_walk_tensor(&walk, inputs[k]);

            for (int64_t at = 0; at < ROWS * 4; at++)
                data[at] = 1;
        }
        test_walk_step(&walk);
        assert_true(test_walk_tensor(&walk, "db")[3] == ROWS);
        assert_true(test_nodes_check(s, &walk, 0, 2, 0, NULL) > 0);
        test_walk_free(&walk);
    }
}

/* --- both gradients of a layer --- */

typedef struct pair_model {
    int64_t rows, in, out;
    bool turned, has_bias; /* turned: the weight is stored [out, in] */
    const char *act;       /* of the layer before; NULL: there is none */
} pair_model;

static test_walk open_pair(const pair_model *m, const char *precision, uint64_t seed)
{
    const bool reads_pre = m->act && strcmp(m->act, "gelu_tanh") == 0;
    char text[2000], back[200] = "";

    if (m->act)
        snprintf(
            back, sizeof back,
            "  - {op: epilogue.bwd, name: back, dy: dx, %s: kept, act: %s, dx: dh}\n",
            reads_pre ? "pre" : "y", m->act);
    snprintf(text, sizeof text,
             "gexec: 1\nname: m\nprecision: $P\ninputs:\n"
             "  x: {shape: [%lld, %lld], init: normal}\n"
             "  kept: {shape: [%lld, %lld], init: normal}\n"
             "  dz: {shape: [%lld, %lld], init: normal}\n"
             "  w: {shape: [%lld, %lld], init: normal}\n"
             "ops:\n%s  - {op: gemm, name: dw, a: %s, b: %s, trans_a: true}\n"
             "  - {op: gemm, name: dx, a: dz, b: w%s}\n%soutputs: [dw, %s%s]\n",
             (long long)m->rows, (long long)m->in, (long long)m->rows, (long long)m->in,
             (long long)m->rows, (long long)m->out,
             (long long)(m->turned ? m->out : m->in),
             (long long)(m->turned ? m->in : m->out),
             m->has_bias ? "  - {op: epilogue.bwd, name: sums, dy: dz, dbias: db}\n" : "",
             m->turned ? "dz" : "x", m->turned ? "x" : "dz",
             m->turned ? "" : ", trans_b: true", back, m->act ? "dh" : "dx",
             m->has_bias ? ", db" : "");
    return test_walk_parse(text, precision, GX_TRAIN, seed);
}

/* One row and none, tiles that are not full, a batch of several turns and the largest, k
 * that is no multiple of 4, and odd sizes, which are refused. */
static void both_gradients_of_a_layer_are_right(void **state)
{
    static const char *const precisions[] = { "f32", "tf32", "bf16", "f16" };
    static const char *const acts[] = { "relu", "gelu_tanh", NULL };
    static const int64_t fixed[][3] = {
        { 0, 8, 16 },    { 1, 2, 2 },    { 7, 5, 3 },     { 32, 512, 512 },
        { 64, 256, 10 }, { 257, 8, 8 },  { 256, 36, 94 }, { 33, 34, 66 },
        { 16, 4, 4 },    { 64, 16, 40 }, { 65, 1000, 6 },
    };
    test_device *s = *state;
    test_random random = test_random_start(s->seed);
    int ran = 0, n_groups = 0;

    for (size_t i = 0; i < 24 * (ARRAY_SIZE(fixed) + 10); i++) {
        const bool is_fixed = i / 24 < ARRAY_SIZE(fixed);
        const int64_t even = 1 + (int64_t)(i % 5 > 0); /* most have a kernel */
        const int64_t *n = is_fixed ? fixed[i / 24] : NULL;
        const pair_model m = {
            .rows = n ? n[0] : test_random_int(&random, 1, 256),
            .in = n ? n[1] : even * test_random_int(&random, 1, 150),
            .out = n ? n[2] : even * test_random_int(&random, 1, 150),
            .turned = i % 2,
            .has_bias = i / 2 % 2,
            .act = acts[i / 4 % 3],
        };
        const char *precision = precisions[test_random_int(&random, 0, 3)];
        const int n_calls = 2 + m.has_bias + (m.act != NULL);
        bool elided[TEST_CALLS * GX_MAX_ARGS];
        test_walk walk = open_pair(&m, precision, s->seed + i);

        test_walk_step(&walk);
        gx_match_elided(walk.graph, 0, n_calls, elided);
        const int of_group = test_nodes_check(s, &walk, 0, n_calls, 0, elided);

        if (strcmp(precision, "f32") != 0 && m.rows > 0 && m.rows <= 256 &&
            m.in % 2 == 0 && m.out % 2 == 0)
            assert_true(of_group > 0);
        else if (m.rows == 0 || m.rows > 256)
            assert_int_equal(of_group, 0);
        ran += of_group;
        n_groups += of_group > 0;
        test_walk_free(&walk);
    }
    print_message("%d groups, %d with their shapes\n", n_groups, ran);
    assert_true(n_groups > 200 && ran > 500);
}

static const char deep[] =
    "gexec: 1\nname: m\nprecision: tf32\ndims: {width: 128}\ninputs:\n"
    "  x: {shape: [32, width], init: normal}\n  t: {shape: [32, 10], init: normal}\n"
    "params:\n  w_last: {shape: [width, 10], init: torch_linear}\n"
    "  b_last: {shape: [10], init: zeros}\nops:\n  - repeat:\n      name: layer\n"
    "      count: 6\n      carry: {h: x}\n      params:\n"
    "        w: {shape: [width, width], init: torch_linear}\n"
    "        b: {shape: [width], init: zeros}\n      ops:\n"
    "        - {op: gemm, name: fc, a: h, b: w, epilogue: {bias: b, act: gelu_tanh}, "
    "out: h}\n"
    "  - {op: gemm, name: last, a: h, b: w_last, epilogue: {bias: b_last}, out: y}\n"
    "  - {op: mse, name: loss, x: y, target: t}\nbackward: loss\n"
    "optimizer: {adamw: {lr: 1.0e-2}}\noutputs: [loss]\n";

/* The same sums in the same order, in whatever order the blocks run, behind full edges
 * and behind programmatic ones. */
static void pairs_give_the_same_bits_again(void **state)
{
    static const struct {
        gx_mode mode;
        int lanes;
        gx_choice programmatic;
    } ways[] = { { GX_MODE_EAGER, 1, GX_OFF }, { GX_MODE_EAGER, 1, GX_OFF },
                 { GX_MODE_GRAPH, 1, GX_OFF }, { GX_MODE_GRAPH, 1, GX_ON },
                 { GX_MODE_GRAPH, 2, GX_ON },  { GX_MODE_GRAPH, 3, GX_ON } };
    uint64_t bits[ARRAY_SIZE(ways)];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
        const gpu_options options = { .lanes = ways[i].lanes,
                                      .programmatic = ways[i].programmatic,
                                      .force = "direct_pair",
                                      .seed = 5 };
        gpu_program p;
        size_t n_pairs = 0;

        gpu_open_text(&p, deep, &options);
        for (size_t u = 0; u < p.plan->n_units; u++)
            n_pairs += strcmp(p.plan->units[u].alternative->name, "direct_pair") == 0;
        assert_int_equal(n_pairs, 6);
        gpu_run(&p, ways[i].mode, 50);
        bits[i] = gpu_bits(&p);
        assert_true(bits[i] == bits[0]);
        gpu_close(&p);
    }
}

int main(void)
{
    gpu_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(small_products_are_right_in_every_shape,
                                        test_device_open, test_device_close),
        cmocka_unit_test_setup_teardown(weights_and_their_biases_are_right,
                                        test_device_open, test_device_close),
        cmocka_unit_test_setup_teardown(sums_beside_a_weight_are_kept_in_f32,
                                        test_device_open, test_device_close),
        cmocka_unit_test_setup_teardown(both_gradients_of_a_layer_are_right,
                                        test_device_open, test_device_close),
        cmocka_unit_test(pairs_give_the_same_bits_again),
    };

    return cmocka_run_group_tests_name("gpu_direct", tests, NULL, NULL);
}
