/* A small data set for tests of programs whose data stream. */
#include "support_stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void write_file(const char *name, const gx_tensor *tensor)
{
    char *path = test_path(name);
    gx_error err = { 0 };

    assert_ok(gx_npy_write(path, tensor, &err), &err);
    free(path);
}

void test_rows_write(void)
{
    float x[TEST_ROWS * TEST_WIDTH];
    int32_t y[TEST_ROWS], split[TEST_ROWS];

    for (int i = 0; i < TEST_ROWS * TEST_WIDTH; i++)
        x[i] = (float)(i * 37 % 101) / 50 - 1;
    x[5] = -0.0f;
    for (int i = 0; i < TEST_ROWS; i++) {
        y[i] = i * 7 % TEST_CLASSES;
        split[i] = i % 4 == 2;
    }
    write_file("x.npy", &(gx_tensor){ .dtype = GX_F32,
                                      .rank = 2,
                                      .dim = { TEST_ROWS, TEST_WIDTH },
                                      .data = x });
    write_file(
        "y.npy",
        &(gx_tensor){ .dtype = GX_I32, .rank = 1, .dim = { TEST_ROWS }, .data = y });
    write_file(
        "split.npy",
        &(gx_tensor){ .dtype = GX_I32, .rank = 1, .dim = { TEST_ROWS }, .data = split });
}

static gx_graph *load(gx_kind kind, gx_streaming stream, int64_t batch_rows,
                      const char *precision, const char *more, const char *of_loss)
{
    const gx_load_options options = { .kind = kind,
                                      .batch_rows = batch_rows,
                                      .stream = stream };
    char text[2000];
    gx_graph *graph;
    gx_error err = { 0 };

    snprintf(text, sizeof text,
             "gexec: 1\nname: rows\nprecision: %s\ndims: {batch: 8}\n"
             "data: {x: x.npy, y: y.npy, split: split.npy, shuffle: true%s}\n"
             "inputs:\n  x: {shape: [batch, 3]}\n  y: {shape: [batch], dtype: i32}\n"
             "params: {w: {shape: [3, 4], init: he_normal}, b: {shape: [4]}}\n"
             "ops:\n  - {op: gemm, name: fc, a: x, b: w, epilogue: {bias: b}, out: h}\n"
             "  - {op: softmax_cross_entropy, name: loss, logits: h, labels: y%s}\n"
             "backward: loss\noptimizer: {adamw: {lr: 0.05}}\n"
             "metrics: {accuracy: {logits: h, labels: y}}\noutputs: [loss, x, y]\n",
             precision, more, of_loss);
    assert_ok(gx_graph_parse(text, strlen(text), "rows.yaml", test_folder(), &options,
                             &graph, NULL, &err),
              &err);
    return graph;
}

gx_graph *test_rows_load(gx_kind kind, gx_streaming stream, int64_t batch_rows,
                         const char *precision, const char *more)
{
    return load(kind, stream, batch_rows, precision, more, "");
}

gx_graph *test_rows_load_ignoring(gx_kind kind, gx_streaming stream, int64_t batch_rows)
{
    return load(kind, stream, batch_rows, "f32", "", ", ignore_index: 2");
}
