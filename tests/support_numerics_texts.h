/* The texts of the models whose numbers are known, and what is in their tensors. Of
 * support_numerics_models.c alone. */
#ifndef GX_SUPPORT_NUMERICS_TEXTS_H
#define GX_SUPPORT_NUMERICS_TEXTS_H

#include <stdint.h>

#define HEAD "gexec: 1\nname: m\nprecision: $P\n"

/* --- gradients that are added --- */

/* p is read by a scale, twice by a product, and directly; s twice by one sum:
 * 2 (3 + 2 p) - 1 with p = 2. w is read by two products and b by two biases; with rows of
 * ones, each product makes of an element 4 times as much: the way through both gives
 * 3 * 4, and 3 for the last bias. */
#define SHARED                                                                      \
    HEAD "inputs:\n  x: {shape: [3, 4], init: ones}\nparams:\n"                     \
         "  p: {shape: [6, 5], init: {constant: 2}}\n"                              \
         "  w: {shape: [4, 4], init: ones}\n  v: {shape: [4, 4], init: ones}\n"     \
         "  b: {shape: [4]}\nops:\n"                                                \
         "  - {op: scale, name: h, x: p, factor: 3}\n"                              \
         "  - {op: mul, name: g, a: p, b: p}\n  - {op: add, name: s, a: h, b: g}\n" \
         "  - {op: add, name: t, a: s, b: s}\n  - {op: sub, name: u, a: t, b: p}\n" \
         "  - {op: sum, name: one, x: u, dtype: f32}\n"                             \
         "  - {op: gemm, name: c, a: x, b: w}\n"                                    \
         "  - {op: gemm, name: d, a: c, b: w, trans_b: true}\n"                     \
         "  - {op: sum, name: two, x: d, dtype: f32}\n"                             \
         "  - {op: gemm, name: e, a: x, b: v, epilogue: {bias: b}}\n"               \
         "  - {op: gemm, name: f, a: e, b: v, epilogue: {bias: b, act: relu}}\n"    \
         "  - {op: sum, name: three, x: f, dtype: f32}\n"                           \
         "  - {op: add, name: both, a: one, b: two}\n"                              \
         "  - {op: add, name: loss, a: both, b: three}\n"                           \
         "backward: loss\noutputs: [p.grad, w.grad, v.grad, b.grad]\n"

static double thirteen(int64_t row, int64_t column)
{
    (void)row, (void)column;
    return 13;
}

static double twenty_four(int64_t row, int64_t column)
{
    (void)row, (void)column;
    return 24;
}

static double fifteen(int64_t row, int64_t column)
{
    (void)row, (void)column;
    return 15;
}

/* --- sums that bf16 cannot keep --- */

/* A third of the rows are 1, the others 2^-8, which is half of what bf16 can add to 1:
 * the sum is 2048 + 16 of 6144 rows and 128 + 1 of 384, both bf16, and one that is kept
 * in bf16 stops at 256 or loses the small ones. Some kernels take few rows alone. */
#define SMALL_SUMS(rows)                                                                 \
    HEAD                                                                                 \
        "inputs:\n  dy: {shape: [" rows ", 8]}\n  eye: {shape: [8, 8]}\n"                \
        "  ones: {shape: [" rows ", 8], init: ones}\nparams:\n"                          \
        "  b: {shape: [8]}\n  c: {shape: [8]}\nops:\n"                                   \
        "  - {op: epilogue.bwd, name: alone, dy: dy, dbias: alone}\n"                    \
        "  - {op: gemm, name: product, a: dy, b: eye}\n"                                 \
        "  - {op: epilogue.bwd, name: behind, dy: product, y: ones, act: relu, dx: dx, " \
        "dbias: behind}\n"                                                               \
        "  - {op: gemm, name: weight, a: ones, b: dy, trans_a: true}\n"                  \
        "  - {op: sum, name: sum, x: dy, axis: 0}\n"                                     \
        "  - {op: sum_to, name: sum_to, x: dy, shape: 8}\n"                              \
        "outputs: [alone, behind, dx, weight, sum, sum_to]\n"

/* The same through derived gradients. */
#define SMALL_GRADIENTS                                                                  \
    HEAD                                                                                 \
        "inputs:\n  dy: {shape: [6144, 8]}\n  eye: {shape: [8, 8]}\n"                    \
        "  ones: {shape: [6144, 8], init: ones}\nparams:\n"                              \
        "  w: {shape: [8, 8], init: ones}\n  b: {shape: [8]}\n  c: {shape: [8]}\nops:\n" \
        "  - {op: gemm, name: h, a: ones, b: w, epilogue: {bias: b, act: relu}}\n"       \
        "  - {op: gemm, name: y, a: h, b: eye}\n"                                        \
        "  - {op: add, name: z, a: y, b: c}\n  - {op: mul, name: m, a: z, b: dy}\n"      \
        "  - {op: sum, name: loss, x: m, dtype: f32}\n"                                  \
        "backward: loss\noutputs: [w.grad, b.grad, c.grad]\n"

/* The same as a backward pass has them: the gradients of a bias, a weight and the rows
 * below, and what stands around those. */
#define SMALL_LAYERS                                                                    \
    HEAD "inputs:\n  dy: {shape: [192, 8]}\n  eye: {shape: [8, 8]}\n"                   \
         "  ones: {shape: [192, 8], init: ones}\nops:\n"                                \
         "  - {op: epilogue.bwd, name: bias, dy: dy, dbias: bias}\n"                    \
         "  - {op: gemm, name: weight, a: ones, b: dy, trans_a: true}\n"                \
         "  - {op: gemm, name: data, a: dy, b: eye, trans_b: true}\n"                   \
         "  - {op: epilogue.bwd, name: dx, dy: data, y: ones, act: relu, dx: dx}\n"     \
         "  - {op: epilogue.bwd, name: behind, dy: dx, dbias: behind}\n"                \
         "  - {op: gemm, name: weight2, a: ones, b: dy, trans_a: true}\n"               \
         "  - {op: gemm, name: data2, a: dy, b: eye, trans_b: true}\n"                  \
         "  - {op: epilogue.bwd, name: dx2, dy: data2, y: ones, act: relu, dx: dx2}\n"  \
         "  - {op: epilogue.bwd, name: bias3, dy: dy, dbias: bias3}\n"                  \
         "  - {op: gemm, name: weight3, a: dy, b: ones, trans_a: true}\n"               \
         "  - {op: gemm, name: dx3, a: dy, b: eye}\n"                                   \
         "  - {op: epilogue.bwd, name: dx4, dy: dy, y: ones, act: relu, dx: dx4}\n"     \
         "  - {op: epilogue.bwd, name: bias4, dy: dx4, dbias: bias4}\n"                 \
         "outputs: [bias, weight, dx, behind, weight2, dx2, bias3, weight3, dx3, dx4, " \
         "bias4]\n"

/* The gradients of two layers' parameters one behind the other, and two ways back. */
#define SMALL_RUNS                                                                     \
    HEAD "inputs:\n  dy: {shape: [192, 8]}\n  eye: {shape: [8, 8]}\n"                  \
         "  ones: {shape: [192, 8], init: ones}\nops:\n"                               \
         "  - {op: epilogue.bwd, name: bias, dy: dy, dbias: bias}\n"                   \
         "  - {op: gemm, name: weight, a: ones, b: dy, trans_a: true}\n"               \
         "  - {op: epilogue.bwd, name: bias2, dy: dy, dbias: bias2}\n"                 \
         "  - {op: gemm, name: weight2, a: ones, b: dy, trans_a: true}\n"              \
         "  - {op: gemm, name: data, a: dy, b: eye, trans_b: true}\n"                  \
         "  - {op: epilogue.bwd, name: dx, dy: data, y: ones, act: relu, dx: dx}\n"    \
         "  - {op: gemm, name: data2, a: dx, b: eye, trans_b: true}\n"                 \
         "  - {op: epilogue.bwd, name: dx2, dy: data2, y: ones, act: relu, dx: dx2}\n" \
         "outputs: [bias, weight, bias2, weight2, dx, dx2]\n"

/* The gradients of a layer's parameters, and their updates behind them. */
#define UPDATES(in, out, optimizer)                                                     \
    HEAD "inputs:\n  dy: {shape: [192, " #out "]}\n  ones: {shape: [192, " #in          \
         "], init: ones}\nparams:\n  w: {shape: [" #in ", " #out                        \
         "], init: ones}\n  b: {shape: [" #out "]}\nops:\n"                             \
         "  - {op: gemm, name: h, a: ones, b: w, epilogue: {bias: b}}\n"                \
         "  - {op: mul, name: m, a: h, b: dy}\n  - {op: sum, name: loss, x: m, dtype: " \
         "f32}\nbackward: loss\noptimizer: {" optimizer "}\noutputs: [w.grad, "         \
         "b.grad]\n"

/* The same of a way back and of the gradient of a weight that reads what it makes, as
 * either operand and large enough to have it transposed: x as it is, and sums of it. */
#define TURNED_SUMS                                                                  \
    HEAD "inputs:\n  dy: {shape: [1536, 128]}\n  ones: {shape: [1536, 128], init: "  \
         "ones}\nops:\n"                                                             \
         "  - {op: epilogue.bwd, name: back, dy: dy, y: ones, act: relu, dx: dx}\n"  \
         "  - {op: epilogue.bwd, name: bias, dy: dx, dbias: bias}\n"                 \
         "  - {op: gemm, name: weight, a: ones, b: dx, trans_a: true}\n"             \
         "  - {op: epilogue.bwd, name: back2, dy: dy, y: ones, act: relu, dx: dx2, " \
         "dbias: bias2}\n"                                                           \
         "  - {op: gemm, name: weight2, a: dx2, b: ones, trans_a: true}\n"           \
         "outputs: [dx, bias, weight, bias2, weight2]\n"

static double one_and_small(int64_t row, int64_t column)
{
    (void)column;
    return row % 3 == 0 ? 1 : 0x1p-8;
}

static double sum_of_small(int64_t row, int64_t column)
{
    (void)row, (void)column;
    return 2064;
}

static double sum_of_few(int64_t row, int64_t column)
{
    (void)row, (void)column;
    return 129;
}

static double sum_of_layer(int64_t row, int64_t column)
{
    (void)row, (void)column;
    return 64.5;
}

static double identity(int64_t row, int64_t column)
{
    return row == column;
}

/* --- operands that tf32 cannot hold --- */

/* 1 + j 2^-12 has more bits than tf32, which makes 1 or 1 + 2^-10 of it. The identity
 * leaves it as it is, on either side of a product and through what may be fused. */
#define WIDE                                                                             \
    HEAD "inputs:\n  a: {shape: [64, 64]}\n  eye: {shape: [64, 64]}\n"                   \
         "  ones: {shape: [64, 64], init: ones}\nparams:\n  z: {shape: [64]}\nops:\n"    \
         "  - {op: gemm, name: left, a: a, b: eye}\n"                                    \
         "  - {op: gemm, name: right, a: eye, b: a, trans_a: true, trans_b: true}\n"     \
         "  - {op: gemm, name: bias, a: a, b: eye, epilogue: {bias: z}}\n"               \
         "  - {op: gemm, name: relu, a: eye, b: a, epilogue: {bias: z, act: relu}}\n"    \
         "  - {op: gemm, name: back, a: a, b: eye, trans_b: true}\n"                     \
         "  - {op: epilogue.bwd, name: e, dy: back, y: ones, act: relu, dx: dx, dbias: " \
         "db}\n"                                                                         \
         "outputs: [left, right, bias, relu, dx, db]\n"

static double wide(int64_t row, int64_t column)
{
    return 1 + (double)((row + 3 * column) % 7) * 0x1p-12;
}

static double wide_transposed(int64_t row, int64_t column)
{
    return wide(column, row);
}

static double wide_sum(int64_t column, int64_t unused)
{
    double sum = 0;

    (void)unused;
    for (int64_t row = 0; row < 64; row++)
        sum += wide(row, column);
    return sum;
}

/* The same through derived gradients of data, weights and a bias: dg is the identity, and
 * f is above zero everywhere. */
#define WIDE_GRADIENTS                                                                   \
    HEAD "inputs:\n  a: {shape: [64, 64]}\n  eye: {shape: [64, 64]}\nparams:\n"          \
         "  p: {shape: [64, 64], init: zeros}\n  q: {shape: [64, 64], init: zeros}\n  "  \
         "v: {shape: [64, 64], init: zeros}\n"                                           \
         "  w: {shape: [64, 64], init: zeros}\n  u: {shape: [64, 64], init: zeros}\n"    \
         "  b: {shape: [64], init: ones}\nops:\n"                                        \
         "  - {op: add, name: p1, a: p, b: eye}\n  - {op: add, name: q1, a: q, b: a}\n"  \
         "  - {op: add, name: v1, a: v, b: a}\n  - {op: add, name: w1, a: w, b: eye}\n"  \
         "  - {op: add, name: u1, a: u, b: eye}\n"                                       \
         "  - {op: gemm, name: f, a: p1, b: w1, epilogue: {bias: b, act: relu}}\n"       \
         "  - {op: gemm, name: g, a: f, b: v1}\n  - {op: mul, name: gd, a: g, b: eye}\n" \
         "  - {op: gemm, name: k, a: q1, b: u1}\n"                                       \
         "  - {op: mul, name: kd, a: k, b: eye}\n"                                       \
         "  - {op: sum, name: one, x: gd}\n  - {op: sum, name: two, x: kd}\n"            \
         "  - {op: add, name: loss, a: one, b: two}\n"                                   \
         "backward: loss\noutputs: [p.grad, w.grad, u.grad, b.grad]\n"

/* A third op behind a product: a bias and an activation, then a residual. */
#define WIDE_THIRD                                                                     \
    HEAD "inputs:\n  a: {shape: [64, 64]}\n  eye: {shape: [64, 64]}\n"                 \
         "  zero: {shape: [64, 64], init: zeros}\nparams:\n  z: {shape: [64]}\nops:\n" \
         "  - {op: gemm, name: f, a: a, b: eye, epilogue: {bias: z, act: relu}}\n"     \
         "  - {op: epilogue, name: g, x: f, residual: zero}\n"                         \
         "outputs: [g]\n"

/* What an activation is applied to is kept beside what it makes. */
#define WIDE_KEPT                                                                        \
    HEAD                                                                                 \
        "inputs:\n  a: {shape: [64, 64]}\n  eye: {shape: [64, 64]}\n"                    \
        "  zero: {shape: [64, 64], init: zeros}\nparams:\n  z: {shape: [64]}\nops:\n"    \
        "  - {op: gemm, name: f, a: a, b: eye}\n"                                        \
        "  - {op: epilogue, name: g, x: f, bias: z, act: relu, pre: g_pre}\n"            \
        "  - {op: gemm, name: h, a: eye, b: a, alpha: 2}\n"                              \
        "  - {op: epilogue, name: i, x: h, scale: 0.5, residual: zero, act: relu, pre: " \
        "i_pre}\n"                                                                       \
        "outputs: [g, g_pre, i, i_pre]\n"

static double wide_row_sum(int64_t row, int64_t unused)
{
    double sum = 0;

    (void)unused;
    for (int64_t column = 0; column < 64; column++)
        sum += wide(row, column);
    return sum;
}

/* --- the end of a network in one kernel --- */

/* A product and its bias, a loss that is a sum, and the bias's gradient: the sum over the
 * rows of the loss's derivative. */
#define TAIL_OPS(bias, inputs, op, fields)                                       \
    HEAD "inputs:\n  x: {shape: [1536, 8]}\n  eye: {shape: [8, 8]}\n"            \
         "  c: {shape: [8], init: zeros}\n" inputs                               \
         "params:\n  b: {shape: [8]}\n  w: {shape: [8, 8], init: zeros}\nops:\n" \
         "  - {op: add, name: eye1, a: w, b: eye}\n"                             \
         "  - {op: gemm, name: y, a: x, b: eye1" bias "}\n"                      \
         "  - {op: " op ", " fields ", name: loss, reduction: sum}\n"
#define TAIL(bias, more, inputs, op, fields) \
    TAIL_OPS(bias, inputs, op, fields) "backward: loss\noutputs: [y" more "]\n"
/* With the loss in front of its derivative, as it may be written. */
#define TAIL_BY_HAND(bias, sums, more, inputs, op, fields)              \
    TAIL_OPS(bias, inputs, op, fields)                                  \
    "  - {op: " op ".bwd, " fields ", name: dz, reduction: sum}\n" sums \
    "outputs: [y, loss" more "]\n"
#define BIAS_BY_HAND "  - {op: epilogue.bwd, name: back, dy: dz, dbias: b.grad}\n"
#define POINTS "  t: {shape: [1536, 8], init: zeros}\n"
#define LABELS "  t: {shape: [1536], dtype: i32, init: {integers: [7, 8]}}\n"

/* 2 y of mse is 1 or 2^-8. */
static double half_of_small(int64_t row, int64_t column)
{
    return one_and_small(row, column) / 2;
}

static double sum_of_halves(int64_t row, int64_t column)
{
    (void)row, (void)column;
    return 516;
}

/* A sigmoid of 1 in every type, and a sign of 1. */
static double far_out(int64_t row, int64_t column)
{
    return 32 * wide(row, column);
}

static double one(int64_t row, int64_t column)
{
    (void)row, (void)column;
    return 1;
}

static double sum_of_ones(int64_t row, int64_t column)
{
    (void)row, (void)column;
    return 1536;
}

/* Eight shares of an eighth, of which the last is the label's. */
static double even(int64_t row, int64_t column)
{
    (void)column;
    return wide(row, 0);
}

static double share(int64_t row, int64_t column)
{
    (void)row;
    return column == 7 ? 0.125 - 1 : 0.125;
}

static double sum_of_shares(int64_t column, int64_t unused)
{
    (void)unused;
    return 1536 * share(0, column);
}

/* --- products that fill a card --- */

/* Just so many rows, columns and multiplications that the kernels for large products take
 * them on a card of 132 multiprocessors, and no size is a multiple of a tile's. The
 * second operand repeats the identity, so column c of a product is column c mod 88 of the
 * first. What follows is exact far from zero: there gelu_tanh is the identity or zero,
 * and its derivative one or zero. */
#define LARGE                                                                          \
    HEAD "inputs:\n  dy: {shape: [192, 88]}\n  far: {shape: [192, 88]}\n"              \
         "  spread: {shape: [88, 8200]}\n  turned: {shape: [8200, 88]}\n"              \
         "  kept: {shape: [192, 8200]}\nparams:\n"                                     \
         "  s: {shape: [8200], init: {constant: 16}}\nops:\n"                          \
         "  - {op: gemm, name: alone, a: dy, b: turned, trans_b: true}\n"              \
         "  - {op: gemm, name: gelu, a: far, b: spread, epilogue: {bias: s, act: "     \
         "gelu_tanh}}\n"                                                               \
         "  - {op: gemm, name: relu, a: far, b: turned, trans_b: true, epilogue: "     \
         "{bias: s, act: relu}}\n"                                                     \
         "  - {op: gemm, name: data, a: dy, b: turned, trans_b: true}\n"               \
         "  - {op: epilogue.bwd, name: behind, dy: data, pre: kept, act: gelu_tanh, "  \
         "dx: dx, dbias: behind}\n"                                                    \
         "  - {op: gemm, name: data2, a: dy, b: spread}\n"                             \
         "  - {op: epilogue.bwd, name: dx2, dy: data2, y: kept, act: relu, dx: dx2}\n" \
         "  - {op: epilogue.bwd, name: behind2, dy: dx2, dbias: behind2}\n"            \
         "outputs: [alone, gelu, relu, dx, behind, behind2]\n"

/* Whole multiples of 16, which bf16 holds. */
static double far_away(int64_t row, int64_t column)
{
    return 16 * (double)((3 * row + 5 * column) % 7 - 3);
}

static double spread(int64_t row, int64_t column)
{
    return column % 88 == row;
}

static double spread_turned(int64_t row, int64_t column)
{
    return spread(column, row);
}

static double far_spread(int64_t row, int64_t column)
{
    const double pre = far_away(row, column % 88) + 16;

    return pre > 0 ? pre : 0;
}

/* Every third column is off. */
static double far_kept(int64_t row, int64_t column)
{
    (void)row;
    return column % 3 == 0 ? -16 : 16;
}

static double small_where_kept(int64_t row, int64_t column)
{
    return column % 3 == 0 ? 0 : one_and_small(row, column);
}

static double sum_where_kept(int64_t column, int64_t unused)
{
    return column % 3 == 0 ? 0 : sum_of_layer(column, unused);
}

#define LARGE_SUM(name)                                                        \
    {                                                                          \
        name, 1, 8200, 1, .value = sum_where_kept, .addend = small_where_kept, \
                          .n_addends = 192                                     \
    }

#endif
