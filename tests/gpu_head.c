/* The end of a network in one kernel, on a device: every sample of the losses in every
 * shape against the references, and the same bits however often blocks race. */
#include <string.h>

#include "support.h"
#include "support_gpu.h"
#include "support_group.h"

/* --- every sample in every shape --- */

/* One kernel with a loss in it. */
static bool is_head(const gx_graph *graph, const gx_alternative *at, int32_t first)
{
    (void)graph;
    (void)first;
    return strncmp(at->name, "head", 4) == 0 ||
           (strcmp(at->pattern[0], "gemm") != 0 && at->pattern[1] && at->pattern[2] &&
            strcmp(at->pattern[2], "epilogue.bwd") == 0);
}

static int check_groups(test_device *s, const test_walk *walk, int shift)
{
    return test_groups_check(s, walk, is_head, TEST_CALLS, shift);
}

static void every_sample_is_right_in_every_shape(void **state)
{
    static const char *const rows[] = { "softmax_cross_entropy", "mse", "l1",
                                        "bce_with_logits" };
    static const char *const precisions[] = { "f32", "tf32", "bf16", "f16" };
    test_device *s = *state;
    int ran = 0;

    for (size_t i = 0; i < ARRAY_SIZE(rows) * ARRAY_SIZE(precisions); i++) {
        const gx_op *op = gx_op_find(rows[i / 4]);

        for (const char *const *text = op->samples; *text; text++) {
            test_walk walk = test_walk_parse(*text, precisions[i % 4], GX_TRAIN, s->seed);

            test_walk_step(&walk);
            ran += check_groups(s, &walk, 0);
            if (i % 4 == 0) /* the tensor cores want aligned operands */
                ran += check_groups(s, &walk, 1);
            test_walk_free(&walk);
        }
    }
    print_message("%d groups and shapes\n", ran);
    assert_true(ran > 150);
}

/* --- many blocks --- */

#define MODEL(rows, loss)                                                       \
    "gexec: 1\nname: m\nprecision: tf32\ninputs:\n"                             \
    "  x: {shape: [" rows ", 32], init: normal}\n"                              \
    "  t: {shape: [" rows ", 10], dtype: f32, init: normal}\n"                  \
    "  y: {shape: [" rows "], dtype: i32, init: {integers: [0, 10]}}\n"         \
    "params:\n  w: {shape: [32, 10], init: normal}\n  b: {shape: [10]}\nops:\n" \
    "  - {op: gemm, name: fc, a: x, b: w, epilogue: {bias: b}, out: z}\n"       \
    "  - {op: " loss "}\nbackward: loss\noptimizer: {sgd: {lr: 0.01}}\n"        \
    "outputs: [loss]\n"

/* The order of the sums does not hang on which block comes last, and the counter is zero
 * again after each step. */
static void the_last_block_adds_up_in_one_order(void **state)
{
    static const char *const texts[] = {
        MODEL("5000", "softmax_cross_entropy, name: loss, logits: z, labels: y"),
        MODEL("5000", "softmax_cross_entropy, name: loss, logits: z, labels: y, "
                      "ignore_index: 3"),
        MODEL("5000", "mse, name: loss, x: z, target: t"),
    };
    static const char *const forced[] = { "head", "head_bwd", "fused" };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(texts) * ARRAY_SIZE(forced); i++) {
        uint64_t bits[4];

        for (int way = 0; way < 4; way++) {
            const gpu_options options = { .force = forced[i % ARRAY_SIZE(forced)],
                                          .programmatic = way / 2 ? GX_ON : GX_OFF,
                                          .seed = 5 };
            gpu_program p;

            gpu_open_text(&p, texts[i / ARRAY_SIZE(forced)], &options);
            assert_true(gx_plan_info_get(p.plan).n_forced > 0);
            gpu_run(&p, way % 2 ? GX_MODE_GRAPH : GX_MODE_EAGER,
                    test_is_short() ? 10 : 300);
            bits[way] = gpu_bits(&p);
            gpu_close(&p);
            assert_int_equal(bits[way], bits[0]);
        }
    }
}

/* --- written by hand --- */

#define BY_HAND_OF(values, targets, op, fields)                           \
    "gexec: 1\nname: m\nprecision: $P\ninputs:\n"                         \
    "  x: {shape: [70, 32], init: " values "}\n"                          \
    "  t: {shape: [70, 10], dtype: f32, init: " targets "}\n"             \
    "  y: {shape: [70], dtype: i32, init: {integers: [0, 10]}}\n"         \
    "params:\n  w: {shape: [32, 10], init: " values "}\n"                 \
    "  b: {shape: [10]}\nops:\n"                                          \
    "  - {op: gemm, name: fc, a: x, b: w, epilogue: {bias: b}, out: z}\n" \
    "  - {op: " op ", " fields ", name: loss}\n"                          \
    "  - {op: " op ".bwd, " fields ", name: dz}\n"                        \
    "  - {op: epilogue.bwd, name: back, dy: dz, dbias: db}\n"             \
    "outputs: [loss, dz, db]\n"
#define BY_HAND(op, fields) BY_HAND_OF("normal", "{uniform: [0, 1]}", op, fields)

/* The value in front of its derivative, which no derived graph has. */
static void a_loss_in_front_of_its_derivative_is_right(void **state)
{
    static const char *const texts[] = {
        BY_HAND("softmax_cross_entropy", "logits: z, labels: y"),
        BY_HAND("mse", "x: z, target: t"),
        /* Its derivative jumps at the target, from which rounding is kept away. */
        BY_HAND_OF("{integers: [-2, 3]}", "{uniform: [0.25, 0.75]}", "l1",
                   "x: z, target: t"),
        BY_HAND("bce_with_logits", "x: z, target: t"),
    };
    static const char *const precisions[] = { "f32", "tf32", "bf16", "f16" };
    test_device *s = *state;
    int ran = 0;

    for (size_t i = 0; i < ARRAY_SIZE(texts) * ARRAY_SIZE(precisions); i++) {
        test_walk walk =
            test_walk_parse(texts[i / 4], precisions[i % 4], GX_TRAIN, s->seed);

        test_walk_step(&walk);
        ran += check_groups(s, &walk, 0);
        test_walk_free(&walk);
    }
    /* Of 4, 5 and 3 ops, by one shape each at least. */
    assert_true(ran >= 3 * 16);
}

int main(void)
{
    gpu_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_sample_is_right_in_every_shape,
                                        test_device_open, test_device_close),
        cmocka_unit_test_setup_teardown(a_loss_in_front_of_its_derivative_is_right,
                                        test_device_open, test_device_close),
        cmocka_unit_test(the_last_block_adds_up_in_one_order),
    };

    return cmocka_run_group_tests_name("gpu_head", tests, NULL, NULL);
}
