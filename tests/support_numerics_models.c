/* Models whose results are known exactly. */
#include "support_numerics.h"

#include <stddef.h>
#include <string.h>

#if GX_HAVE_CUDA
#include "wgmma.h"
#endif

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
#define PRODUCTS "lt", "tile", "lt_fused", "fused"
#define NO_TF32                    \
    {                              \
        "f32", "bf16", "f16", NULL \
    }
#define EYE                                 \
    {                                       \
        "eye", 2, 64, 64, .value = identity \
    }
#define SMALL_EYE                         \
    {                                     \
        "eye", 2, 8, 8, .value = identity \
    }
#define SMALL(rows)                                              \
    {                                                            \
        { "dy", 2, rows, 8, .value = one_and_small }, SMALL_EYE, \
        {                                                        \
            0                                                    \
        }                                                        \
    }
#define UPDATE(name, in, out, optimizer, ...)                                           \
    {                                                                                   \
        name, UPDATES(in, out, optimizer), __VA_ARGS__,                                 \
            { { "dy", 2, 192, out, .value = one_and_small }, { 0 } },                   \
        {                                                                               \
            { "w.grad", 2, in, out, .value = sum_of_layer }, { "b.grad",                \
                                                               1,                       \
                                                               out,                     \
                                                               1,                       \
                                                               .value = sum_of_layer,   \
                                                               .addend = one_and_small, \
                                                               .n_addends = 192 },      \
            {                                                                           \
                0                                                                       \
            }                                                                           \
        }                                                                               \
    }
#define SMALL_SUM(name, sum, n)                                              \
    {                                                                        \
        name, 1, 8, 1, .value = sum, .addend = one_and_small, .n_addends = n \
    }

#define TURNED_SUM(name, rank, rows, columns)                                       \
    {                                                                               \
        name, rank, rows, columns, .value = sum_of_halves, .addend = one_and_small, \
                                   .n_addends = 1536                                \
    }

/* A loss whose derivative is summed up; and that loss behind a product of wide numbers.
 */
#define SUMS(name, text, x, addend_of, sum, rounding)             \
    {                                                             \
        name, text, NO_TF32, { "head", "fused", NULL },           \
            { { "x", 2, 1536, 8, .value = x }, SMALL_EYE },       \
        {                                                         \
            {                                                     \
                "b.grad", 1, 8, 1, sum, addend_of, 1536, rounding \
            }                                                     \
        }                                                         \
    }
#define WIDE_TAIL(name, text)                                     \
    {                                                             \
        name, text, { "f32" }, { "head" },                        \
            { { "x", 2, 1536, 8, .value = far_out }, SMALL_EYE }, \
        {                                                         \
            {                                                     \
                "y", 2, 1536, 8, .value = far_out                 \
            }                                                     \
        }                                                         \
    }
#define TRAINED ", epilogue: {bias: b}"
#define FIXED ", epilogue: {bias: c}"
#define TAILS(loss, t, op, fields, x, addend, sum, rounding)                            \
    SUMS(loss "_sums", TAIL(TRAINED, ", b.grad", t, op, fields), x, addend, sum,        \
         rounding),                                                                     \
        SUMS(loss "_hand_sums",                                                         \
             TAIL_BY_HAND(TRAINED, BIAS_BY_HAND, ", b.grad", t, op, fields), x, addend, \
             sum, rounding),                                                            \
        WIDE_TAIL(loss "_wide", TAIL(TRAINED, "", t, op, fields)),                      \
        WIDE_TAIL(loss "_fixed", TAIL(FIXED, "", t, op, fields)),                       \
        WIDE_TAIL(loss "_bare", TAIL("", "", t, op, fields)),                           \
        WIDE_TAIL(loss "_hand_wide",                                                    \
                  TAIL_BY_HAND(TRAINED, BIAS_BY_HAND, ", b.grad", t, op, fields)),      \
        WIDE_TAIL(loss "_hand_fixed", TAIL_BY_HAND(FIXED, "", ", dz", t, op, fields)),  \
        WIDE_TAIL(loss "_hand_bare", TAIL_BY_HAND("", "", ", dz", t, op, fields))

const numerics_model numerics_models[] = {
    { "shared",
      SHARED,
      { "f32", "tf32", "bf16", "f16", NULL },
      { PRODUCTS, NULL },
      { { 0 } },
      { { "p.grad", 2, 6, 5, .value = thirteen },
        { "w.grad", 2, 4, 4, .value = twenty_four },
        { "v.grad", 2, 4, 4, .value = twenty_four },
        { "b.grad", 1, 4, 1, .value = fifteen },
        { 0 } } },
    { "small_sums",
      SMALL_SUMS("6144"),
      NO_TF32,
      { PRODUCTS, "wide", NULL },
      SMALL(6144),
      { SMALL_SUM("alone", sum_of_small, 6144),
        SMALL_SUM("behind", sum_of_small, 6144),
        { "dx", 2, 6144, 8, .value = one_and_small },
        { "weight", 2, 8, 8, .value = sum_of_small },
        { "sum", 1, 8, 1, .value = sum_of_small },
        { "sum_to", 1, 8, 1, .value = sum_of_small },
        { 0 } } },
    { "few_sums",
      SMALL_SUMS("384"),
      NO_TF32,
      { PRODUCTS, "direct", "direct_fused", NULL },
      SMALL(384),
      { SMALL_SUM("alone", sum_of_few, 384),
        SMALL_SUM("behind", sum_of_few, 384),
        { "dx", 2, 384, 8, .value = one_and_small },
        { "weight", 2, 8, 8, .value = sum_of_few },
        { "sum", 1, 8, 1, .value = sum_of_few },
        { "sum_to", 1, 8, 1, .value = sum_of_few },
        { 0 } } },
    { "small_layers",
      SMALL_LAYERS,
      NO_TF32,
      { PRODUCTS, "direct_fused", "direct_pair", NULL },
      SMALL(192),
      { SMALL_SUM("bias", sum_of_layer, 192),
        { "weight", 2, 8, 8, .value = sum_of_layer },
        { "dx", 2, 192, 8, .value = one_and_small },
        SMALL_SUM("behind", sum_of_layer, 192),
        { "weight2", 2, 8, 8, .value = sum_of_layer },
        { "dx2", 2, 192, 8, .value = one_and_small },
        SMALL_SUM("bias3", sum_of_layer, 192),
        { "weight3", 2, 8, 8, .value = sum_of_layer },
        { "dx3", 2, 192, 8, .value = one_and_small },
        { "dx4", 2, 192, 8, .value = one_and_small },
        SMALL_SUM("bias4", sum_of_layer, 192),
        { 0 } } },
    { "small_runs",
      SMALL_RUNS,
      NO_TF32,
      { "chain", "weights", NULL },
      { { "dy", 2, 192, 8, .value = one_and_small }, SMALL_EYE, { 0 } },
      { SMALL_SUM("bias", sum_of_layer, 192),
        { "weight", 2, 8, 8, .value = sum_of_layer },
        SMALL_SUM("bias2", sum_of_layer, 192),
        { "weight2", 2, 8, 8, .value = sum_of_layer },
        { "dx", 2, 192, 8, .value = one_and_small },
        { "dx2", 2, 192, 8, .value = one_and_small },
        { 0 } } },
    { "turned_sums",
      TURNED_SUMS,
      { "f32", "tf32", NULL },
      { "lt_turned_dx", "wide_fused", NULL },
      { { "dy", 2, 1536, 128, .value = one_and_small }, { 0 } },
      { { "dx", 2, 1536, 128, .value = one_and_small },
        TURNED_SUM("bias", 1, 128, 1),
        TURNED_SUM("weight", 2, 128, 128),
        TURNED_SUM("bias2", 1, 128, 1),
        TURNED_SUM("weight2", 2, 128, 128),
        { 0 } } },
    UPDATE("small_adam", 8, 8, "adam: {}", { "bf16", NULL }, { "weights_update", NULL }),
    UPDATE("small_adamw", 8, 8, "adamw: {}", { "bf16", NULL },
           { "weights_update", NULL }),
    UPDATE("large_adam", 264, 8200, "adam: {}, moments: param", { "bf16", "f16", NULL },
           { "wgmma_update", NULL }),
    UPDATE("large_adamw", 264, 8200, "adamw: {}, moments: param", { "bf16", "f16", NULL },
           { "wgmma_update", NULL }),
    { "small_gradients",
      SMALL_GRADIENTS,
      NO_TF32,
      { PRODUCTS, NULL },
      SMALL(6144),
      { { "w.grad", 2, 8, 8, .value = sum_of_small },
        SMALL_SUM("b.grad", sum_of_small, 6144),
        SMALL_SUM("c.grad", sum_of_small, 6144),
        { 0 } } },
    { "large",
      LARGE,
      { "bf16", "f16", NULL },
      { "wgmma", "wgmma_fused", NULL },
      { { "dy", 2, 192, 88, .value = one_and_small },
        { "far", 2, 192, 88, .value = far_away },
        { "spread", 2, 88, 8200, .value = spread },
        { "turned", 2, 8200, 88, .value = spread_turned },
        { "kept", 2, 192, 8200, .value = far_kept },
        { 0 } },
      { { "alone", 2, 192, 8200, .value = one_and_small },
        { "gelu", 2, 192, 8200, .value = far_spread },
        { "relu", 2, 192, 8200, .value = far_spread },
        { "dx", 2, 192, 8200, .value = small_where_kept },
        LARGE_SUM("behind"),
        LARGE_SUM("behind2"),
        { 0 } } },
    { "wide",
      WIDE,
      { "f32", NULL },
      { PRODUCTS, NULL },
      { { "a", 2, 64, 64, .value = wide }, EYE, { 0 } },
      { { "left", 2, 64, 64, .value = wide },
        { "right", 2, 64, 64, .value = wide_transposed },
        { "bias", 2, 64, 64, .value = wide },
        { "relu", 2, 64, 64, .value = wide },
        { "dx", 2, 64, 64, .value = wide },
        { "db", 1, 64, 1, .value = wide_sum },
        { 0 } } },
    { "wide_gradients",
      WIDE_GRADIENTS,
      { "f32", NULL },
      { PRODUCTS, NULL },
      { { "a", 2, 64, 64, .value = wide }, EYE, { 0 } },
      { { "p.grad", 2, 64, 64, .value = wide_transposed },
        { "w.grad", 2, 64, 64, .value = wide_transposed },
        { "u.grad", 2, 64, 64, .value = wide_transposed },
        { "b.grad", 1, 64, 1, .value = wide_row_sum },
        { 0 } } },
    { "wide_kept",
      WIDE_KEPT,
      { "f32", NULL },
      { "lt", "tile", "lt_bias", "fused", NULL },
      { { "a", 2, 64, 64, .value = wide }, EYE, { 0 } },
      { { "g", 2, 64, 64, .value = wide },
        { "g_pre", 2, 64, 64, .value = wide },
        { "i", 2, 64, 64, .value = wide },
        { "i_pre", 2, 64, 64, .value = wide },
        { 0 } } },
    { "wide_third",
      WIDE_THIRD,
      { "f32", NULL },
      { "fused", NULL },
      { { "a", 2, 64, 64, .value = wide }, EYE, { 0 } },
      { { "g", 2, 64, 64, .value = wide }, { 0 } } },
    TAILS("mse", POINTS, "mse", "x: y, target: t", half_of_small, one_and_small,
          sum_of_halves, 0),
    TAILS("l1", POINTS, "l1", "x: y, target: t", far_out, one, sum_of_ones, 0),
    TAILS("bce", POINTS, "bce_with_logits", "x: y, target: t", far_out, one, sum_of_ones,
          0x1p-8),
    TAILS("sce", LABELS, "softmax_cross_entropy", "logits: y, labels: t", even, share,
          sum_of_shares, 0x1p-8),
    { 0 },
};

const numerics_model *numerics_find(const char *name)
{
    for (const numerics_model *model = numerics_models; model->name; model++)
        if (strcmp(model->name, name) == 0)
            return model;
    return NULL;
}

bool numerics_is_wide(const numerics_model *model)
{
    return model->precisions[1] == NULL;
}

bool numerics_has_f32(const char *alternative)
{
    return strncmp(alternative, "direct", 6) != 0 &&
           strncmp(alternative, "lt_turned", 9) != 0 &&
           strncmp(alternative, "wgmma", 5) != 0 && strcmp(alternative, "chain") != 0 &&
           strncmp(alternative, "weights", 7) != 0;
}

#if GX_HAVE_CUDA
bool numerics_is_there(const char *alternative, int cc)
{
    return strncmp(alternative, "wgmma", 5) != 0 ||
           (gx_wgmma_is_built() && cc == GX_WGMMA_CC);
}
#endif

bool numerics_is_needed(const numerics_model *model, const char *precision,
                        const char *alternative)
{
    if (strcmp(precision, "f32") == 0 && !numerics_has_f32(alternative))
        return false;
    for (const char *const *need = model->needed; *need; need++)
        if (strcmp(*need, alternative) == 0)
            return true;
    return false;
}
