/* What gexec check lets pass and what not: tensors that are rounding alone, types that
 * are coarser than the model's, elements where the loss bends. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "check.h"
#include "host_tensor.h"
#include "support.h"

/* Softmax does not see what is added to a whole row, so the gradient of bk is 0. */
static const char key_bias[] =
    "gexec: 1\n"
    "name: key-bias\n"
    "inputs:\n"
    "  x: {shape: [2, 5, 8], init: {normal: {std: 1}}}\n"
    "  t: {shape: [2, 5, 8], init: {normal: {std: 1}}}\n"
    "params:\n"
    "  wq: {shape: [8, 8], init: xavier_normal}\n"
    "  bq: {shape: [8], init: {normal: {std: 0.1}}}\n"
    "  wk: {shape: [8, 8], init: xavier_normal}\n"
    "  bk: {shape: [8], init: {normal: {std: 0.1}}}\n"
    "ops:\n"
    "  - {op: gemm, name: q, a: x, b: wq, epilogue: {bias: bq}}\n"
    "  - {op: gemm, name: k, a: x, b: wk, epilogue: {bias: bk}}\n"
    "  - {op: gemm, name: s, a: q, b: k, trans_b: true}\n"
    "  - {op: softmax, name: p, x: s}\n"
    "  - {op: gemm, name: o, a: p, b: x}\n"
    "  - {op: mse, name: loss, x: o, target: t}\n"
    "backward: loss\n"
    "optimizer: {adamw: {lr: 1.0e-3}}\n"
    "outputs: [loss]\n";

static gx_check check;
static gx_args args;

/* What the rounded program, or the exact one, is made to have got wrong. */
static struct {
    const char *name;
    bool in_exact;
    double factor, shift;
} wrong;

gx_status __real_gx_host_tensor_read(gx_exec *exec, const gx_value_info *value,
                                     gx_dtype dtype, gx_tensor *tensor, gx_error *err);
gx_status __wrap_gx_host_tensor_read(gx_exec *exec, const gx_value_info *value,
                                     gx_dtype dtype, gx_tensor *tensor, gx_error *err);

gx_status __wrap_gx_host_tensor_read(gx_exec *exec, const gx_value_info *value,
                                     gx_dtype dtype, gx_tensor *tensor, gx_error *err)
{
    GX_TRY(__real_gx_host_tensor_read(exec, value, dtype, tensor, err));
    if (wrong.name && dtype == GX_F64 && strcmp(wrong.name, value->name) == 0 &&
        wrong.in_exact == (exec == check.reference))
        for (int64_t i = 0; i < gx_count(tensor); i++) {
            double *const element = (double *)tensor->data + i;

            *element = *element * wrong.factor + wrong.shift;
        }
    return GX_OK;
}

static void make(const char *text, const char *seed)
{
    char *const path = test_write_text("model.yaml", text);
    char *argv[] = { "gexec", "check", path, "--device", "cpu", "--seed", (char *)seed };
    gx_error err = { 0 };

    assert_true(gx_args_parse(&args, (int)ARRAY_SIZE(argv), argv));
    check = (gx_check){ .args = &args };
    assert_ok(gx_check_programs(&check, GX_CPU, &err), &err);
    assert_ok(gx_check_gradients(&check, &err), &err);
    free(path);
}

static void unmake(void)
{
    gx_session_close(&check.rounded);
    gx_session_close(&check.exact);
    free(check.rows);
    free(check.gradients);
    free(check.rounding);
    gx_args_free(&args);
}

static const gx_check_row *row_of(const char *name)
{
    for (size_t i = 0; i < check.n_rows; i++)
        if (strcmp(check.rows[i].value.name, name) == 0)
            return &check.rows[i];
    fail_msg("%s is not compared", name);
    return NULL;
}

static const gx_gradient_row *gradient_of(const char *name)
{
    for (size_t i = 0; i < check.n_gradients; i++)
        if (strcmp(check.gradients[i].parameter.name, name) == 0)
            return &check.gradients[i];
    fail_msg("the gradient of %s is not checked", name);
    return NULL;
}

static void what_is_rounding_alone_passes(void **state)
{
    static const char *const seeds[] = { "1", "2", "3", "4", "5", "6" };

    (void)state;
    for (size_t s = 0; s < ARRAY_SIZE(seeds); s++) {
        make(key_bias, seeds[s]);
        for (size_t i = 0; i < check.n_rows; i++)
            if (!check.rows[i].ok)
                fail_msg("seed %s: %s failed", seeds[s], check.rows[i].value.name);
        assert_true(row_of("bk.grad")->by_rounding);
        /* Of the other gradients rounding makes little: they have no more than before. */
        assert_false(row_of("wk.grad")->by_rounding);
        assert_false(row_of("wk")->by_rounding);
        unmake();
    }
}

/* The same error at every start is none of rounding, however small the right result. */
static void what_is_wrong_fails(void **state)
{
    static const struct {
        const char *name;
        double factor, shift;
    } cases[] = {
        { "bk.grad", 1, 1e-6 }, /* others are near 0.1 */
        { "bk.grad", 1, NAN },   { "bk.grad", 1, INFINITY },
        { "wk.grad", 1.001, 0 }, { "wk.grad", 0, 0 },
        { "bk.m", 1, 1e-7 },     { "bk", 1, 3e-3 }, /* the rate is 1e-3 */
        { "wk", 1, 2e-3 },                          /* all of them the other way */
        { "loss", 1.001, 0 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        wrong.name = cases[i].name;
        wrong.factor = cases[i].factor;
        wrong.shift = cases[i].shift;
        make(key_bias, "1");
        if (row_of(cases[i].name)->ok)
            fail_msg("case %zu: %s passed", i, cases[i].name);
        assert_false(row_of(cases[i].name)->by_rounding);
        unmake();
    }
    wrong.name = NULL;
}

static void tolerance_goes_by_the_coarsest_type(void **state)
{
    static const char model[] = "gexec: 1\n"
                                "inputs:\n"
                                "  x: {shape: [4, 3], init: {normal: {std: 1}}}\n"
                                "params:\n"
                                "  w: {shape: [3, 5], init: he_normal}\n"
                                "ops:\n"
                                "  - {op: cast, name: xb, x: x, dtype: bf16}\n"
                                "  - {op: cast, name: wb, x: w, dtype: bf16}\n"
                                "  - {op: gemm, name: y, a: xb, b: wb}\n"
                                "  - {op: cast, name: yf, x: y, dtype: f32}\n"
                                "  - {op: mean, name: loss, x: yf}\n"
                                "backward: loss\n"
                                "optimizer: {sgd: {lr: 0.1}}\n"
                                "outputs: [loss]\n";

    (void)state;
    make(model, "1");
    assert_int_equal(check.coarsest, GX_COARSE_BF16);
    assert_true(row_of("w.grad")->ok);
    assert_false(row_of("w.grad")->by_rounding);
    unmake();
    make(key_bias, "1");
    assert_int_equal(check.coarsest, GX_COARSE_F32);
    unmake();
}

/* All of h is 0, where relu bends, so b has no derivative and v and w have one of 0. */
static void bends_are_left_out(void **state)
{
    static const char relu[] = "gexec: 1\n"
                               "inputs:\n"
                               "  x: {shape: [4, 3], init: zeros}\n"
                               "  t: {shape: [4, 2], init: {normal: {std: 1}}}\n"
                               "params:\n"
                               "  w: {shape: [3, 5], init: he_normal}\n"
                               "  b: {shape: [5]}\n"
                               "  v: {shape: [5, 2], init: he_normal}\n"
                               "ops:\n"
                               "  - {op: gemm, name: h, a: x, b: w, epilogue: {bias: b, "
                               "act: relu}}\n"
                               "  - {op: gemm, name: y, a: h, b: v}\n"
                               "  - {op: mse, name: loss, x: y, target: t}\n"
                               "backward: loss\n"
                               "optimizer: {sgd: {lr: 0.1}}\n"
                               "outputs: [loss]\n";
    static const char max[] = "gexec: 1\n"
                              "params:\n"
                              "  w: {shape: [3, 4], init: ones}\n"
                              "ops:\n"
                              "  - {op: max, name: m, x: w, axis: 1}\n"
                              "  - {op: mean, name: loss, x: m}\n"
                              "backward: loss\n"
                              "optimizer: {sgd: {lr: 0.1}}\n"
                              "outputs: [loss]\n";

    (void)state;
    make(relu, "1");
    assert_int_equal(gradient_of("b")->n_bends, 4);
    assert_int_equal(gradient_of("b")->n_elements, 0);
    assert_true(gradient_of("b")->ok);
    assert_int_equal(gradient_of("v")->n_bends, 0);
    assert_int_equal(gradient_of("v")->n_elements, 4);
    unmake();
    make(max, "1");
    assert_int_equal(gradient_of("w")->n_bends, 4);
    assert_int_equal(gradient_of("w")->n_elements, 0);
    unmake();
}

static void wrong_gradient_of_a_smooth_loss_is_no_bend(void **state)
{
    (void)state;
    wrong.name = "wq.grad";
    wrong.in_exact = true;
    wrong.factor = 1.01;
    wrong.shift = 0;
    make(key_bias, "1");
    assert_false(gradient_of("wq")->ok);
    assert_int_equal(gradient_of("wq")->n_bends, 0);
    assert_int_equal(gradient_of("wq")->n_elements, 4);
    assert_true(gradient_of("wk")->ok);
    unmake();
    wrong.name = NULL;
    wrong.in_exact = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_rounding_alone_passes),
        cmocka_unit_test(what_is_wrong_fails),
        cmocka_unit_test(tolerance_goes_by_the_coarsest_type),
        cmocka_unit_test(bends_are_left_out),
        cmocka_unit_test(wrong_gradient_of_a_smooth_loss_is_no_bend),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
