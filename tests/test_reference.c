/* The meaning of ops on the CPU: forms, edges, exactness. */
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "shuffle.h"
#include "support_walk.h"

#define HEAD "gexec: 1\nname: m\nprecision: $P\n"

/* --- gelu (G01, G02) --- */

static double gelu_by_tanh(double x)
{
    return 0.5 * x * (1.0 + tanh(sqrt(2.0 / acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

static double gelu_by_erf(double x)
{
    return 0.5 * x * erfc(-x / sqrt(2.0));
}

static void gelu_tanh_is_the_tanh_form_and_no_other(void **state)
{
    enum { N = 121 };
    test_walk model = test_walk_parse(
        HEAD "inputs:\n  x: {shape: [121]}\nops:\n  - {op: gelu_tanh, name: y, x: x}\n"
             "outputs: [y]\n",
        "f32", GX_TRAIN, 1);
    double *x = test_walk_tensor(&model, "x");
    double to_tanh = 0, to_erf = 0;

    (void)state;
    for (int i = 0; i < N; i++)
        x[i] = -6.0 + 0.1 * i;
    test_walk_step(&model);
    for (int i = 0; i < N; i++) {
        const double y = test_walk_tensor(&model, "y")[i];

        to_tanh = fmax(to_tanh, fabs(y - gelu_by_tanh(x[i])));
        to_erf = fmax(to_erf, fabs(y - gelu_by_erf(x[i])));
    }
    assert_true(to_tanh < 1e-6);
    assert_true(to_erf > 1e-4);
    test_walk_free(&model);
}

/* In the tails, where 1 + tanh cancels, sign and digits stay. */
static void gelu_slope_keeps_its_sign_and_digits(void **state)
{
    static const long double at[] = { -6, -5, -4, -3.7L, -1, 0, 1, 4, 6 };
    static const char *const precision[] = { "f32", "bf16" };

    (void)state;
    for (int p = 0; p < 2; p++) {
        test_walk model = test_walk_parse(
            HEAD "inputs:\n  x: {shape: [9]}\n  dy: {shape: [9], init: ones}\n"
                 "ops:\n  - {op: gelu_tanh.bwd, name: dx, dy: dy, x: x}\noutputs: [dx]\n",
            precision[p], GX_TRAIN, 1);
        const gx_dtype dtype = p ? GX_BF16 : GX_F32;
        double *x = test_walk_tensor(&model, "x");

        for (int i = 0; i < 9; i++)
            x[i] = gx_round_to(dtype, (double)at[i]);
        test_walk_step(&model);
        for (int i = 0; i < 9; i++) {
            /* long double, and 1 + tanh u written as exp(u) / cosh u: no cancellation */
            const long double v = x[i], c = sqrtl(2.0L / acosl(-1.0L));
            const long double u = c * (v + 0.044715L * v * v * v);
            const long double one_plus = expl(u) / coshl(u);
            const long double du = c * (1.0L + 3.0L * 0.044715L * v * v);
            const double slope =
                (double)(0.5L * one_plus + 0.5L * v * du / (coshl(u) * coshl(u)));
            const double dx = test_walk_tensor(&model, "dx")[i];

            assert_true(signbit(dx) == signbit(slope));
            assert_true(fabs(dx - slope) <= (p ? 4e-3 : 1e-6) * fabs(slope));
        }
        test_walk_free(&model);
    }
}

/* --- products (G03, G08, G11, G12) --- */

/* m = 3, n = 5, k = 7, distinct integers, every pair of transposes: exact. */
static void transposed_products_are_exact(void **state)
{
    (void)state;
    for (int flags = 0; flags < 4; flags++) {
        const bool ta = flags & 1, tb = flags & 2;
        char text[600];

        snprintf(text, sizeof text,
                 HEAD
                 "inputs:\n  a: {shape: %s}\n  b: {shape: %s}\n"
                 "ops:\n  - {op: gemm, name: y, a: a, b: b, trans_a: %s, trans_b: %s}\n"
                 "outputs: [y]\n",
                 ta ? "[7, 3]" : "[3, 7]", tb ? "[5, 7]" : "[7, 5]",
                 ta ? "true" : "false", tb ? "true" : "false");
        test_walk model = test_walk_parse(text, "f32", GX_TRAIN, 1);
        double *a = test_walk_tensor(&model, "a"), *b = test_walk_tensor(&model, "b");

        for (int i = 0; i < 21; i++)
            a[i] = i + 1;
        for (int i = 0; i < 35; i++)
            b[i] = 100 + 3 * i;
        test_walk_step(&model);
        for (int i = 0; i < 3; i++) {
            for (int j = 0; j < 5; j++) {
                double sum = 0;

                for (int k = 0; k < 7; k++)
                    sum += (ta ? a[k * 3 + i] : a[i * 7 + k]) *
                           (tb ? b[j * 7 + k] : b[k * 5 + j]);
                assert_true(test_walk_tensor(&model, "y")[i * 5 + j] == sum);
            }
        }
        test_walk_free(&model);
    }
}

static void an_operand_is_not_rounded_to_tf32(void **state)
{
    test_walk model =
        test_walk_parse(HEAD "inputs:\n  a: {shape: [1, 1], init: {constant: 1024.5}}\n"
                             "  b: {shape: [1, 1], init: ones}\n"
                             "ops:\n  - {op: gemm, name: y, a: a, b: b}\noutputs: [y]\n",
                        "f32", GX_TRAIN, 1);

    (void)state;
    test_walk_step(&model);
    assert_true(*test_walk_tensor(&model, "y") == 1024.5);
    test_walk_free(&model);
}

/* Temporaries hold NaN before each step: k = 0 has to write, and nothing may be read. */
static void an_empty_sum_gives_the_bias(void **state)
{
    test_walk model = test_walk_parse(
        HEAD
        "inputs:\n  a: {shape: [3, 0]}\nparams:\n  w: {shape: [0, 2], init: zeros}\n"
        "  b: {shape: [2], init: {constant: -1.5}}\nops:\n"
        "  - {op: gemm, name: y, a: a, b: w}\n"
        "  - {op: gemm, name: z, a: a, b: w, epilogue: {bias: b}}\noutputs: [y, z]\n",
        "f32", GX_TRAIN, 1);

    (void)state;
    test_walk_step(&model);
    for (int i = 0; i < 6; i++) {
        assert_true(test_walk_tensor(&model, "y")[i] == 0);
        assert_true(test_walk_tensor(&model, "z")[i] == -1.5);
    }
    test_walk_free(&model);
}

/* The bias gradient of 4096 ones is 4096, in bf16 too (G13). */
static void a_bias_gradient_does_not_stop_growing(void **state)
{
    test_walk model = test_walk_parse(
        HEAD "inputs:\n  dy: {shape: [4096, 3], init: ones}\n"
             "ops:\n  - {op: epilogue.bwd, name: e, dy: dy, dbias: db}\noutputs: [db]\n",
        "bf16", GX_TRAIN, 1);

    (void)state;
    test_walk_step(&model);
    for (int i = 0; i < 3; i++)
        assert_true(test_walk_tensor(&model, "db")[i] == 4096);
    test_walk_free(&model);
}

/* The product that an epilogue follows is a tensor of its own, and rounded as one. */
static void a_bf16_product_is_rounded_before_its_epilogue(void **state)
{
    test_walk model = test_walk_parse(
        HEAD "inputs:\n  a: {shape: [1, 2], init: ones}\nparams:\n  w: {shape: [2, 1], "
             "init: zeros}\n"
             "  b: {shape: [1]}\nops:\n"
             "  - {op: gemm, name: y, a: a, b: w, epilogue: {bias: b}}\noutputs: [y]\n",
        "bf16", GX_TRAIN, 1);

    (void)state;
    test_walk_tensor(&model, "w")[0] = 256;
    test_walk_tensor(&model, "w")[1] = 1; /* 257 is not a bf16: 256 */
    *test_walk_tensor(&model, "b") = -256;
    test_walk_step(&model);
    assert_true(*test_walk_tensor(&model, "y.product") == 256);
    assert_true(*test_walk_tensor(&model, "y") == 0);
    test_walk_free(&model);
}

static void relu_passes_nan_on_and_stops_infinite_gradients(void **state)
{
    test_walk model = test_walk_parse(
        HEAD "inputs:\n  x: {shape: [3]}\n  dy: {shape: [3]}\nops:\n"
             "  - {op: relu, name: y, x: x}\n  - {op: relu.bwd, name: dx, dy: dy, y: y}\n"
             "outputs: [y, dx]\n",
        "f32", GX_TRAIN, 1);
    double *x = test_walk_tensor(&model, "x"), *dy = test_walk_tensor(&model, "dy");

    (void)state;
    x[0] = -1, x[1] = NAN, x[2] = 2;
    dy[0] = INFINITY, dy[1] = 1, dy[2] = 3;
    test_walk_step(&model);
    assert_true(test_walk_tensor(&model, "y")[0] == 0);
    assert_true(isnan(test_walk_tensor(&model, "y")[1]));
    assert_true(test_walk_tensor(&model, "dx")[0] == 0);
    assert_true(test_walk_tensor(&model, "dx")[2] == 3);
    test_walk_free(&model);
}

/* --- losses and metrics --- */

static void cross_entropy_is_the_mean_over_rows(void **state)
{
    enum { ROWS = 5, CLASSES = 4 };
    test_random random = test_random_start(test_seed());
    test_walk model = test_walk_parse(
        HEAD "inputs:\n  x: {shape: [5, 4]}\n  y: {shape: [5], dtype: i32}\nops:\n"
             "  - {op: softmax_cross_entropy, name: loss, logits: x, labels: y}\n"
             "  - {op: softmax_cross_entropy.bwd, name: dx, logits: x, labels: y}\n"
             "outputs: [loss, dx]\n",
        "f32", GX_TRAIN, 1);
    double *x = test_walk_tensor(&model, "x"), *y = test_walk_tensor(&model, "y");
    double loss = 0, dx[ROWS * CLASSES];

    (void)state;
    for (int i = 0; i < ROWS; i++) {
        double sum = 0;

        y[i] = (double)test_random_int(&random, 0, CLASSES - 1);
        for (int j = 0; j < CLASSES; j++) {
            x[i * CLASSES + j] = test_random_real(&random, -5, 5);
            sum += exp(x[i * CLASSES + j]);
        }
        loss += -log(exp(x[i * CLASSES + (int)y[i]]) / sum) / ROWS;
        for (int j = 0; j < CLASSES; j++)
            dx[i * CLASSES + j] =
                (exp(x[i * CLASSES + j]) / sum - (j == (int)y[i])) / ROWS;
    }
    model.exact = true;
    test_walk_step(&model);
    assert_true(fabs(*test_walk_tensor(&model, "loss") - loss) < 1e-12);
    assert_true(test_error(test_walk_tensor(&model, "dx"), dx, ROWS * CLASSES) < 1e-12);
    test_walk_free(&model);
}

/* exp(1000) has no double; a difference of 1000 has. */
static void cross_entropy_of_large_logits_is_finite(void **state)
{
    test_walk model = test_walk_parse(
        HEAD "inputs:\n  x: {shape: [1, 2]}\n  y: {shape: [1], dtype: i32}\nops:\n"
             "  - {op: softmax_cross_entropy, name: loss, logits: x, labels: y}\n"
             "  - {op: softmax_cross_entropy.bwd, name: dx, logits: x, labels: y}\n"
             "outputs: [loss, dx]\n",
        "f32", GX_TRAIN, 1);

    (void)state;
    test_walk_tensor(&model, "x")[0] = 1000;
    test_walk_tensor(&model, "x")[1] = 2000;
    test_walk_step(&model);
    assert_true(*test_walk_tensor(&model, "loss") == 1000);
    assert_true(test_walk_tensor(&model, "dx")[0] == -1);
    assert_true(test_walk_tensor(&model, "dx")[1] == 1);
    test_walk_free(&model);
}

/* Calls the reference of one node by hand, to see it refuse. */
static void a_label_out_of_range_is_refused(void **state)
{
    const gx_op *op = gx_op_find("softmax_cross_entropy");
    double x[] = { 0, 1, 2, 3 }, y[] = { 1, 2 }, out = 0;
    gx_call call = { .op = op };
    gx_error err = { 0 };

    (void)state;
    call.arg[GX_SCE_LOGITS] = (gx_tensor){ GX_F64, 2, { 2, 2 }, x };
    call.arg[GX_SCE_LABELS] = (gx_tensor){ GX_F64, 1, { 2 }, y };
    call.arg[GX_SCE_OUT] = (gx_tensor){ GX_F64, 0, { 0 }, &out };
    assert_fails(op->reference(&call, &err), GX_ERR_DATA, &err,
                 "label 2 of row 1 is not between 0 and 1");
    y[1] = -1;
    assert_fails(op->reference(&call, &err), GX_ERR_DATA, &err, "label -1 of row 1");
    y[1] = 0;
    gx_error_clear(&err);
    assert_ok(op->reference(&call, &err), &err);
}

static void mse_is_the_mean_over_elements(void **state)
{
    test_walk model = test_walk_parse(
        HEAD "inputs:\n  x: {shape: [2, 2], init: {constant: 3}}\n  t: {shape: [2, 2], "
             "init: ones}\n"
             "ops:\n  - {op: mse, name: loss, x: x, target: t}\n"
             "  - {op: mse.bwd, name: dx, x: x, target: t}\noutputs: [loss, dx]\n",
        "f32", GX_TRAIN, 1);

    (void)state;
    test_walk_step(&model);
    assert_true(*test_walk_tensor(&model, "loss") == 4);
    for (int i = 0; i < 4; i++)
        assert_true(test_walk_tensor(&model, "dx")[i] == 1);
    test_walk_free(&model);
}

static void accuracy_takes_the_first_of_equals(void **state)
{
    static const double logits[] = { 1, 1, 0, 0, 2, 2, NAN, 1, 0, 5, 4, 3 };
    static const double labels[] = { 0, 0, 1, 0 };
    test_walk model = test_walk_parse(
        HEAD
        "inputs:\n  x: {shape: [4, 3]}\n  y: {shape: [4], dtype: i32}\n"
        "ops:\n  - {op: accuracy, name: acc, logits: x, labels: y}\noutputs: [acc]\n",
        "f32", GX_TRAIN, 1);

    (void)state;
    memcpy(test_walk_tensor(&model, "x"), logits, sizeof logits);
    memcpy(test_walk_tensor(&model, "y"), labels, sizeof labels);
    test_walk_step(&model);
    /* row 0: class 0, right; row 1: class 1, wrong; row 2: NaN is skipped, right; row 3
     */
    assert_true(*test_walk_tensor(&model, "acc") == 0.75);
    test_walk_free(&model);
}

/* --- the step's own ops, called by hand --- */

static void gather_follows_the_shuffle_and_repeats_the_last_row(void **state)
{
    enum { ROWS = 9, N = 5, BATCH = 3, WIDTH = 2 };
    const gx_op *op = gx_op_find("gather");
    double data[ROWS * WIDTH], index[N] = { 8, 0, 3, 7, 1 }, sample = 3, epoch = 2;
    double out[BATCH * WIDTH];
    gx_call call = { .op = op, .seed = test_seed() };
    gx_error err = { 0 };

    (void)state;
    for (int i = 0; i < ROWS * WIDTH; i++)
        data[i] = i;
    call.arg[GX_GATHER_DATA] = (gx_tensor){ GX_F64, 2, { ROWS, WIDTH }, data };
    call.arg[GX_GATHER_INDEX] = (gx_tensor){ GX_F64, 1, { N }, index };
    call.arg[GX_GATHER_SAMPLE] = (gx_tensor){ GX_F64, 1, { 1 }, &sample };
    call.arg[GX_GATHER_EPOCH] = (gx_tensor){ GX_F64, 1, { 1 }, &epoch };
    call.arg[GX_GATHER_OUT] = (gx_tensor){ GX_F64, 2, { BATCH, WIDTH }, out };
    for (int shuffle = 0; shuffle < 2; shuffle++) {
        call.attr[GX_GATHER_SHUFFLE].i = shuffle;
        assert_ok(op->reference(&call, &err), &err);
        for (uint32_t j = 0; j < BATCH; j++) {
            const uint32_t at = 3 + j < N ? 3 + j : N - 1;
            const int row =
                (int)index[shuffle ? gx_shuffle_index(at, N, call.seed, 2) : at];

            assert_true(out[j * WIDTH] == row * WIDTH &&
                        out[j * WIDTH + 1] == row * WIDTH + 1);
        }
    }
    index[4] = ROWS;
    call.attr[GX_GATHER_SHUFFLE].i = 0;
    assert_fails(op->reference(&call, &err), GX_ERR_DATA, &err, "row 9 is not one of 9");
}

static void step_end_counts_and_begins_epochs(void **state)
{
    const gx_op *op = gx_op_find("step.end");
    static double log[GX_LOG_ROWS * GX_MAX_LOGGED];
    double step = GX_LOG_ROWS - 1, sample = 0, epoch = 0, loss = 0.5;
    gx_call call = { .op = op };
    gx_error err = { 0 };

    (void)state;
    for (int i = 0; i < GX_MAX_ARGS; i++)
        call.arg[i].rank = -1;
    call.arg[GX_STEP_STEP] = (gx_tensor){ GX_F64, 1, { 1 }, &step };
    call.arg[GX_STEP_SAMPLE] = (gx_tensor){ GX_F64, 1, { 1 }, &sample };
    call.arg[GX_STEP_EPOCH] = (gx_tensor){ GX_F64, 1, { 1 }, &epoch };
    call.arg[GX_STEP_LOG] = (gx_tensor){ GX_F64, 2, { GX_LOG_ROWS, GX_MAX_LOGGED }, log };
    call.arg[GX_STEP_V0] = (gx_tensor){ GX_F64, 0, { 0 }, &loss };
    call.attr[GX_STEP_BATCH].i = 4;
    call.attr[GX_STEP_TOTAL].i = 10;
    call.attr[GX_STEP_NEED].i = 4; /* the last two samples are dropped */

    assert_ok(op->reference(&call, &err), &err);
    assert_true(step == GX_LOG_ROWS && sample == 4 && epoch == 0);
    assert_true(log[(GX_LOG_ROWS - 1) * GX_MAX_LOGGED] == 0.5);
    loss = 0.25; /* the log begins again at its first row */
    assert_ok(op->reference(&call, &err), &err);
    assert_true(sample == 0 && epoch == 1 && log[0] == 0.25);

    call.attr[GX_STEP_NEED].i = 1; /* a short batch is taken */
    for (int i = 0; i < 2; i++)
        assert_ok(op->reference(&call, &err), &err);
    assert_true(sample == 8 && epoch == 1);
    assert_ok(op->reference(&call, &err), &err);
    assert_true(sample == 0 && epoch == 2);

    call.attr[GX_STEP_TOTAL].i = 8; /* whole batches: what is left is just enough */
    call.attr[GX_STEP_NEED].i = 4;
    assert_ok(op->reference(&call, &err), &err);
    assert_true(sample == 4 && epoch == 2);
    assert_ok(op->reference(&call, &err), &err);
    assert_true(sample == 0 && epoch == 3);

    call.attr[GX_STEP_TOTAL].i = 0; /* no data */
    assert_ok(op->reference(&call, &err), &err);
    assert_true(sample == 0 && epoch == 3 && step == GX_LOG_ROWS + 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gelu_tanh_is_the_tanh_form_and_no_other),
        cmocka_unit_test(gelu_slope_keeps_its_sign_and_digits),
        cmocka_unit_test(transposed_products_are_exact),
        cmocka_unit_test(an_operand_is_not_rounded_to_tf32),
        cmocka_unit_test(an_empty_sum_gives_the_bias),
        cmocka_unit_test(a_bias_gradient_does_not_stop_growing),
        cmocka_unit_test(a_bf16_product_is_rounded_before_its_epilogue),
        cmocka_unit_test(relu_passes_nan_on_and_stops_infinite_gradients),
        cmocka_unit_test(cross_entropy_is_the_mean_over_rows),
        cmocka_unit_test(cross_entropy_of_large_logits_is_finite),
        cmocka_unit_test(a_label_out_of_range_is_refused),
        cmocka_unit_test(mse_is_the_mean_over_elements),
        cmocka_unit_test(accuracy_takes_the_first_of_equals),
        cmocka_unit_test(gather_follows_the_shuffle_and_repeats_the_last_row),
        cmocka_unit_test(step_end_counts_and_begins_epochs),
    };

    return cmocka_run_group_tests_name("reference", tests, NULL, NULL);
}
