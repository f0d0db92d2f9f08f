/* Small products on a device: two layers of many sizes, each product with what follows it
 * by every candidate of every alternative, against the references. */
#include <stdio.h>
#include <string.h>

#include "plan.h"
#include "support.h"
#include "support_gpu.h"
#include "support_rows.h"

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

/* Every group that begins with a product, and every way back through an epilogue. */
static int check_model(test_device *s, const test_walk *walk)
{
    const gx_graph *graph = walk->graph;
    bool elided[TEST_CALLS * GX_MAX_ARGS];
    int ran = 0;

    for (int32_t k = 0; k < (int32_t)graph->n_nodes; k++) {
        const bool is_product = strcmp(graph->nodes[k].op_name, "gemm") == 0;

        if (!is_product && strcmp(graph->nodes[k].op_name, "epilogue.bwd") != 0)
            continue;
        for (int32_t n = 1; n <= (is_product ? 2 : 1); n++) {
            const char *next = n == 2 ? graph->nodes[k + 1].op_name : "";

            if (n == 2 && strcmp(next, "epilogue") != 0 &&
                strcmp(next, "epilogue.bwd") != 0)
                continue;
            gx_match_elided(graph, k, n, elided);
            ran += test_nodes_check(s, walk, (size_t)k, n, 0, elided);
        }
    }
    return ran;
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
        ran += check_model(s, &walk);
        test_walk_free(&walk);
    }
    print_message("%d groups and shapes\n", ran);
    assert_true(ran > 1000);
}

int main(void)
{
    gpu_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(small_products_are_right_in_every_shape,
                                        test_device_open, test_device_close),
    };

    return cmocka_run_group_tests_name("gpu_direct", tests, NULL, NULL);
}
