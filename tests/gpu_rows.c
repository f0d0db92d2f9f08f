/* Norms, embedding and losses on the device, one op or pair at a time: every sample at
 * odd addresses and over old memory, and sizes that the samples do not have. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"
#include "support_gpu.h"
#include "support_rows.h"
#include "support_walk.h"

/* --- every sample --- */

static bool is_checked(const char *op)
{
    static const char *const rows[] = {
        "layer_norm",
        "layer_norm.bwd",
        "rms_norm",
        "rms_norm.bwd",
        "embedding",
        "embedding.bwd",
        "mse",
        "mse.bwd",
        "l1",
        "l1.bwd",
        "bce_with_logits",
        "bce_with_logits.bwd",
        "softmax_cross_entropy",
        "softmax_cross_entropy.bwd",
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        if (strcmp(op, rows[i]) == 0)
            return true;
    }
    return false;
}

static int check_walk(test_device *s, const test_walk *walk, int shift)
{
    const gx_graph *graph = walk->graph;
    int ran = 0;

    for (size_t k = 0; k < graph->n_nodes; k++) {
        if (!is_checked(graph->nodes[k].op_name))
            continue;
        assert_true(test_nodes_check(s, walk, k, 1, shift, NULL) > 0);
        ran++;
        if (k + 1 < graph->n_nodes && is_checked(graph->nodes[k + 1].op_name))
            ran += test_nodes_check(s, walk, k, 2, shift, NULL);
    }
    return ran;
}

static void samples_are_right_at_any_address(void **state)
{
    static const char *const precisions[] = { "f32", "bf16", "f16" };
    test_device *s = *state;
    int ran = 0;

    for (size_t i = 0; i < gx_op_count(); i++) {
        const gx_op *op = gx_op_at(i);

        for (const char *const *text = op->samples; is_checked(gx_op_name(op)) && *text;
             text++) {
            for (int way = 0; way < 6; way++) {
                test_walk walk =
                    test_walk_parse(*text, precisions[way / 2], GX_TRAIN, s->seed);

                test_walk_step(&walk);
                ran += check_walk(s, &walk, way % 2);
                test_walk_free(&walk);
            }
        }
    }
    assert_true(ran > 600);
}

/* --- what the samples do not have --- */

/* Rows about 1e4 with a spread of 1, held and not held by a team: in f32 their squares
 * have no digits left for the variance. */
static void a_large_mean_cancels_nothing(void **state)
{
    static const int64_t columns[] = { 77, 768, 4096, 8197 };
    test_device *s = *state;
    test_random random = test_random_start(s->seed);

    for (size_t size = 0; size < ARRAY_SIZE(columns); size++) {
        const int64_t dim[] = { 5, columns[size] }, n = 5 * columns[size];
        double *x = calloc((size_t)n, sizeof *x), *dy = calloc((size_t)n, sizeof *dy);
        test_call forward = { .call = test_call_of("layer_norm") };
        test_call backward = { .call = test_call_of("layer_norm.bwd") };

        assert_true(x && dy);
        for (int64_t i = 0; i < n; i++) {
            x[i] = 1e4 + test_random_real(&random, -1.7, 1.7);
            dy[i] = test_random_real(&random, -1, 1);
        }
        test_operand ox = test_operand_make(GX_F32, 2, dim, 0, x),
                     ody = test_operand_make(GX_F32, 2, dim, 0, dy);
        test_operand out = test_operand_make(GX_F32, 2, dim, 0, NULL),
                     dx = test_operand_make(GX_F32, 2, dim, 0, NULL);

        test_call_bind(&forward, GX_LAYER_NORM_X, &ox);
        test_call_bind(&forward, GX_LAYER_NORM_OUT, &out);
        test_call_bind(&backward, GX_LAYER_NORM_BWD_X, &ox);
        test_call_bind(&backward, GX_LAYER_NORM_BWD_DY, &ody);
        test_call_bind(&backward, GX_LAYER_NORM_BWD_DX, &dx);
        forward.call.attr[GX_NORM_EPS] = (gx_attr){ .r = 1e-5, .present = true };
        backward.call.attr[GX_NORM_EPS] = (gx_attr){ .r = 1e-5, .present = true };
        assert_true(test_call_check(s, &forward, 1, NULL) > 0);
        assert_true(test_call_check(s, &backward, 1, NULL) > 0);
        test_operand_drop(&ox);
        test_operand_drop(&ody);
        test_operand_drop(&out);
        test_operand_drop(&dx);
        free(x);
        free(dy);
    }
}

/* A vocabulary of 50000, 4096 tokens: all different kinds of crowding. Small whole
 * numbers have exact sums, so every element is as expected, to the bit. */
static void a_large_table_gets_exact_sums(void **state)
{
    enum { VOCABULARY = 50000, WIDTH = 512, TOKENS = 4096 };
    test_device *s = *state;
    test_random random = test_random_start(s->seed);
    const int64_t dim[] = { TOKENS, WIDTH }, table[] = { VOCABULARY, WIDTH };
    double *dy = calloc((size_t)TOKENS * WIDTH, sizeof *dy);
    double *index = calloc(TOKENS, sizeof *index);

    if (test_is_short()) { /* synccheck would take too long */
        free(dy);
        free(index);
        skip();
    }
    test_operand dtable = test_operand_make(GX_F32, 2, table, 0, NULL);

    assert_true(dy && index);
    for (int64_t i = 0; i < (int64_t)TOKENS * WIDTH; i++)
        dy[i] = (double)test_random_int(&random, -8, 8);
    test_operand ody = test_operand_make(GX_F32, 2, dim, 0, dy);

    for (int kind = 0; kind < 3; kind++) { /* spread out, half of them equal, all equal */
        test_call b = { .call = test_call_of("embedding.bwd") };

        for (int i = 0; i < TOKENS; i++)
            index[i] = kind == 2 || (kind == 1 && i % 2)
                           ? 49999
                           : (double)test_random_int(&random, 0, VOCABULARY - 1);
        test_operand oi = test_operand_make(GX_I32, 1, dim, 0, index);

        test_call_bind(&b, GX_EMBEDDING_BWD_DY, &ody);
        test_call_bind(&b, GX_EMBEDDING_BWD_INDEX, &oi);
        test_call_bind(&b, GX_EMBEDDING_BWD_DTABLE, &dtable);
        b.call.attr[GX_EMBEDDING_BWD_ROWS].i = VOCABULARY;
        assert_int_equal(test_call_check(s, &b, 1, NULL), 1);
        assert_memory_equal(dtable.host, dtable.want,
                            (size_t)VOCABULARY * WIDTH * sizeof *dtable.host);
        test_operand_drop(&oi);
    }
    test_operand_drop(&ody);
    test_operand_drop(&dtable);
    free(dy);
    free(index);
}

/* What a caller's own memory may hold: an index that is no row gives NaN in its own row,
 * and nothing else is read or written. */
static void an_index_that_is_no_row_gives_nan(void **state)
{
    test_device *s = *state;
    const int64_t table[] = { 3, 4 }, n[] = { 4, 4 };
    const double w[12] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 };
    const double index[] = { 2, -1, 3, 0 };
    test_operand ow = test_operand_make(GX_F32, 2, table, 0, w),
                 oi = test_operand_make(GX_I32, 1, n, 0, index);
    test_operand out = test_operand_make(GX_F32, 2, n, 0, NULL),
                 dw = test_operand_make(GX_F32, 2, table, 0, NULL);
    test_operand ody = test_operand_make(
        GX_F32, 2, n, 0, (const double[16]){ [0] = 5, [4] = 7, [12] = 9 });
    gx_call call[] = { test_call_of("embedding"), test_call_of("embedding.bwd") };
    const gx_alternative *alternative;

    call[0].arg[GX_EMBEDDING_TABLE] = ow.device;
    call[0].arg[GX_EMBEDDING_INDEX] = oi.device;
    call[0].arg[GX_EMBEDDING_OUT] = out.device;
    call[1].arg[GX_EMBEDDING_BWD_DY] = ody.device;
    call[1].arg[GX_EMBEDDING_BWD_INDEX] = oi.device;
    call[1].arg[GX_EMBEDDING_BWD_DTABLE] = dw.device;
    call[1].attr[GX_EMBEDDING_BWD_ROWS].i = 3;
    for (size_t at = 0; (alternative = gx_alternative_at(at)); at++) {
        for (int i = 0; i < 2; i++) {
            const test_call b = { .call = call[i] };
            const gx_group group = { .n_calls = 1, .call = &call[i] };

            if (test_call_covers(alternative, &b, 1))
                assert_true(test_call_run(s, alternative, &group, 0) > 0);
        }
    }
    test_operand_fetch(&out);
    test_operand_fetch(&dw);
    for (int i = 0; i < 4; i++) {
        assert_true(out.host[i] == w[8 + i]);
        assert_true(isnan(out.host[4 + i]) && isnan(out.host[8 + i]));
        assert_true(out.host[12 + i] == w[i]);
    }
    assert_true(dw.host[0] == 9 && dw.host[8] == 5);
    for (int i = 0; i < 12; i++)
        assert_true(i == 0 || i == 8 || dw.host[i] == 0);
    test_operand_drop(&ow);
    test_operand_drop(&oi);
    test_operand_drop(&out);
    test_operand_drop(&dw);
    test_operand_drop(&ody);
}

/* A mean over no rows is no number, and its gradient 0: alone and as a pair. */
static void a_mean_of_ignored_rows_is_nan(void **state)
{
    enum { MOST = 40 * 1100 };
    static const int64_t classes[] = { 7, 1100 };
    test_device *s = *state;
    const int64_t scalar[] = { 1 };
    double *x = calloc(MOST, sizeof *x);
    double labels[40];
    int ran = 0;

    assert_non_null(x);
    for (int i = 0; i < 40; i++)
        labels[i] = -100;
    for (size_t size = 0; size < ARRAY_SIZE(classes); size++) {
        const int64_t dim[] = { 40, classes[size] };
        test_operand ox = test_operand_make(GX_F32, 2, dim, 0, x),
                     oy = test_operand_make(GX_I32, 1, dim, 0, labels);
        test_operand out = test_operand_make(GX_F32, 0, scalar, 0, NULL),
                     dx = test_operand_make(GX_F32, 2, dim, 0, NULL);
        test_call b[] = { { .call = test_call_of("softmax_cross_entropy") },
                          { .call = test_call_of("softmax_cross_entropy.bwd") } };
        const gx_alternative *alternative;

        for (int i = 0; i < 2; i++) {
            test_call_bind(&b[i], GX_SCE_LOGITS, &ox);
            test_call_bind(&b[i], GX_SCE_LABELS, &oy);
            test_call_bind(&b[i], GX_SCE_OUT, i == 0 ? &out : &dx);
            b[i].call.attr[GX_SCE_IGNORE_INDEX] = (gx_attr){ .i = -100, .present = true };
            b[i].call.attr[GX_SCE_LABEL_SMOOTHING] = (gx_attr){ .r = 0.1 };
        }
        for (size_t at = 0; (alternative = gx_alternative_at(at)); at++) {
            const test_call swapped[] = { b[1], b[0] };
            const bool is_swapped = test_call_covers(alternative, swapped, 2);
            const gx_call call[] = { b[is_swapped].call, b[!is_swapped].call };
            const gx_group group = { .n_calls = 2, .call = call };

            if (!is_swapped && !test_call_covers(alternative, b, 2))
                continue;
            for (int choice = 0, n = 1; choice < n; choice++) {
                assert_int_equal(cudaMemset(out.device.data, 0, out.bytes), cudaSuccess);
                assert_int_equal(cudaMemset(dx.device.data, 0xff, dx.bytes), cudaSuccess);
                n = test_call_run(s, alternative, &group, choice);
                test_operand_fetch(&out);
                test_operand_fetch(&dx);
                assert_true(isnan(out.host[0]));
                for (int64_t i = 0; i < 40 * classes[size]; i++)
                    assert_true(dx.host[i] == 0);
                ran++;
            }
        }
        test_operand_drop(&ox);
        test_operand_drop(&oy);
        test_operand_drop(&out);
        test_operand_drop(&dx);
    }
    assert_true(ran >= 4); /* in either order */
    free(x);
}

/* --- several blocks --- */

#define VALUES(rows)                                                          \
    "gexec: 1\nname: m\nprecision: f32\ninputs:\n"                            \
    "  x: {shape: [" rows ", 10], init: normal}\n"                            \
    "  t: {shape: [" rows ", 10], init: normal}\n"                            \
    "  y: {shape: [" rows "], dtype: i32, init: {integers: [0, 10]}}\nops:\n" \
    "  - {op: softmax_cross_entropy, name: sce, logits: x, labels: y}\n"      \
    "  - {op: softmax_cross_entropy, name: left, logits: x, labels: y, "      \
    "ignore_index: 3}\n"                                                      \
    "  - {op: mse, name: mse, x: x, target: t}\n"                             \
    "  - {op: accuracy, name: accuracy, logits: x, labels: y}\n"              \
    "  - {op: topk, name: topk, logits: x, labels: y, k: 3}\n"                \
    "outputs: [sce, left, mse, accuracy, topk]\n"

/* The last block, whichever it is, has what all have left, and the next kernel finds its
 * ticket at zero. */
static void a_mean_is_the_same_whichever_block_is_last(void **state)
{
    static const char *const texts[] = { VALUES("5000"), VALUES("120000") };
    static const char *const names[] = { "sce", "left", "mse", "accuracy", "topk" };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        double first[ARRAY_SIZE(names)];
        gpu_program cpu;

        gpu_open_cpu(&cpu, texts[i]);
        gpu_run(&cpu, GX_MODE_CPU, 1);
        for (int way = 0; way < 4; way++) {
            const gpu_options options = { .lanes = 1,
                                          .programmatic = way / 2 ? GX_ON : GX_OFF };
            gpu_program p;

            gpu_open_text(&p, texts[i], &options);
            for (int turn = 0; turn < (test_is_short() ? 2 : 50); turn++) {
                gpu_run(&p, way % 2 ? GX_MODE_GRAPH : GX_MODE_EAGER, 4);
                for (size_t v = 0; v < ARRAY_SIZE(names); v++) {
                    const double value = gpu_scalar(&p, names[v]);
                    const double want = gpu_scalar(&cpu, names[v]);

                    if (way == 0 && turn == 0)
                        first[v] = value;
                    assert_true(fabs(value - want) <= 1e-5 * want);
                    assert_true(value == first[v]);
                }
            }
            gpu_close(&p);
        }
        gpu_close(&cpu);
    }
}

int main(void)
{
    gpu_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(samples_are_right_at_any_address,
                                        test_device_open, test_device_close),
        cmocka_unit_test_setup_teardown(a_large_mean_cancels_nothing, test_device_open,
                                        test_device_close),
        cmocka_unit_test_setup_teardown(a_large_table_gets_exact_sums, test_device_open,
                                        test_device_close),
        cmocka_unit_test_setup_teardown(an_index_that_is_no_row_gives_nan,
                                        test_device_open, test_device_close),
        cmocka_unit_test_setup_teardown(a_mean_of_ignored_rows_is_nan, test_device_open,
                                        test_device_close),
        cmocka_unit_test(a_mean_is_the_same_whichever_block_is_last),
    };

    return cmocka_run_group_tests_name("rows", tests, NULL, NULL);
}
