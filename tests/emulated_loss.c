/* Softmax cross-entropy and the end of a network in one kernel, run on the CPU by
 * tests/emulate. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulate_operand.h"
#include "head_kernels.h"
#include "loss_kernels.h"

enum { IGNORED = 1 };

/* `source` is that of a head; `alone`: not in one. */
typedef struct softmax {
    int rows, columns, k;
    gx_dtype dtype;
    bool alone, has_loss, has_dx, has_dbias, ignores, turned;
    gx_head_source source;
    int shape, blocks;
    double smoothing;
} softmax;

typedef struct operands {
    emulate_operand x, a, b, bias, out, loss, dx, dbias;
    int32_t *labels;
    double *logits;
    int n_left; /* rows that are not ignored */
} operands;

static bool has_product(const softmax *s)
{
    return !s->alone && s->source != GX_HEAD_MEMORY;
}

static void multiply(const softmax *s, operands *o)
{
    const bool rounds = s->dtype == GX_F32 && s->source == GX_HEAD_TENSOR;
    const gx_tile_math math = rounds ? GX_TILE_TF32 : GX_TILE_F32;
    double *a = emulate_seen(&o->a, math), *b = emulate_seen(&o->b, math);

    for (int i = 0; i < s->rows * s->columns; i++) {
        const int r = i / s->columns, c = i % s->columns;
        double x = o->bias.value[c], size = fabs(x);

        for (int k = 0; k < s->k; k++) {
            const double term =
                a[r * s->k + k] * b[s->turned ? c * s->k + k : k * s->columns + c];

            x += term;
            size += fabs(term);
        }
        o->logits[i] = o->out.value[i] = x;
        o->out.magnitude[i] = size;
    }
    free(a);
    free(b);
}

static void expect_row(const softmax *s, operands *o, int r, double share)
{
    const double *x = o->logits + r * s->columns;
    const double even = s->smoothing / s->columns;
    const int label = o->labels[r];
    double most = -INFINITY, total = 0;

    if (s->ignores && label == IGNORED)
        return;
    for (int c = 0; c < s->columns; c++)
        most = fmax(most, x[c]);
    for (int c = 0; c < s->columns; c++)
        total += exp(x[c] - most);
    for (int c = 0; c < s->columns; c++) {
        const double target = (c == label ? 1 - s->smoothing : 0) + even;
        const double dx = share * (exp(x[c] - most) / total - target);

        o->loss.value[0] += share * target * (log(total) + most - x[c]);
        o->dx.value[r * s->columns + c] = dx;
        o->dx.magnitude[r * s->columns + c] = share;
        o->dbias.value[c] += dx;
        o->dbias.magnitude[c] += share;
    }
    o->loss.magnitude[0] += share * 4;
}

static operands make_operands(const softmax *s, test_random *random)
{
    const int64_t n = (int64_t)s->rows * s->columns;
    operands o = {
        .x = emulate_plain_input(s->dtype, n, random),
        .a = emulate_plain_input(s->dtype, (int64_t)s->rows * s->k, random),
        .b = emulate_plain_input(s->dtype, (int64_t)s->columns * s->k, random),
        .bias = emulate_plain_input(s->dtype, s->columns, random),
        .out = emulate_output(s->dtype, n),
        .loss = emulate_output(GX_F32, 1),
        .dx = emulate_output(s->dtype, n),
        .dbias = emulate_output(s->dtype, s->columns),
        .labels = emulate_alloc((size_t)s->rows * sizeof(int32_t)),
        .logits = malloc((size_t)n * sizeof(double)),
    };

    assert_non_null(o.logits);
    memcpy(o.logits, o.x.value, (size_t)n * sizeof(double));
    if (has_product(s))
        multiply(s, &o);
    for (int r = 0; r < s->rows; r++) {
        o.labels[r] = r == 0 ? 0 : (int32_t)test_random_int(random, 0, s->columns - 1);
        o.n_left += !s->ignores || o.labels[r] != IGNORED;
    }
    for (int r = 0; r < s->rows; r++)
        expect_row(s, &o, r, 1.0 / o.n_left);
    return o;
}

static gx_status run_alone(const softmax *s, const operands *o, gx_ctx *ctx,
                           gx_error *err)
{
    double *const place = ctx->workspace;
    gx_sce sce = {
        .rows = s->rows,
        .classes = s->columns,
        .dtype = s->dtype,
        .logits = o->x.memory,
        .labels = o->labels,
        .out = s->has_loss ? o->loss.memory : NULL,
        .dlogits = s->has_dx ? o->dx.memory : NULL,
        .ignores = s->ignores,
        .ignored = IGNORED,
        .smoothing = (float)s->smoothing,
        .divisor = s->rows,
        .share = 1.0 / s->rows,
        .counts = s->ignores,
        .partial = place + 1,
        .blocks = s->blocks,
    };

    if (s->ignores && !gx_sce_is_one_pass(&sce))
        sce.counted = place;
    if (s->has_loss && s->blocks > 1)
        sce.ticket = ctx->tickets;
    const gx_status st = gx_sce_load(&sce, err);

    return st == GX_OK ? gx_sce_launch(&sce, ctx, err) : st;
}

static gx_status run_head(const softmax *s, const operands *o, gx_ctx *ctx, gx_error *err)
{
    char *const place = ctx->workspace;
    gx_head head = {
        .source = s->source,
        .shape = s->shape,
        .rows = s->rows,
        .columns = s->columns,
        .dtype = s->dtype,
        .x = o->x.memory,
        .k = s->k,
        .a = o->a.memory,
        .b = o->b.memory,
        .a_row = s->k,
        .a_k = 1,
        .b_k = s->turned ? 1 : s->columns,
        .b_column = s->turned ? s->k : 1,
        .bias = o->bias.memory,
        .out = o->out.memory,
        .is_softmax = true,
        .labels = o->labels,
        .ignores = s->ignores,
        .counts = s->ignores,
        .ignored = IGNORED,
        .smoothing = (float)s->smoothing,
        .share = 1.0 / s->rows,
        .loss = s->has_loss ? o->loss.memory : NULL,
        .dx = s->has_dx ? o->dx.memory : NULL,
        .dbias = s->has_dbias ? o->dbias.memory : NULL,
    };

    if (gx_head_blocks(&head) > 1 && (s->has_loss || s->has_dbias)) {
        head.ticket = ctx->tickets;
        head.partial_loss = (double *)(void *)place;
        head.partial_bias =
            (float *)(void *)(place + (size_t)gx_head_blocks(&head) * sizeof(double));
    }
    const gx_status st = gx_head_load(&head, err);

    return st == GX_OK ? gx_head_launch(&head, ctx, err) : st;
}

static void check(const softmax *s, test_random *random)
{
    operands o = make_operands(s, random);
    unsigned *ticket = emulate_alloc(sizeof *ticket);
    gx_ctx ctx = { .cc = 90, .n_sm = 132, .tickets = ticket };
    gx_error err = { 0 };
    char what[160];

    *ticket = 0;
    ctx.workspace = emulate_alloc(1 << 20);
    snprintf(what, sizeof what, "%s, %d x %d, %s, shape or blocks %d%s%s%s%s%s",
             gx_dtype_name(s->dtype), s->rows, s->columns,
             s->alone         ? "alone"
             : has_product(s) ? s->source == GX_HEAD_PLAIN ? "plain" : "tensor"
                              : "memory",
             s->alone ? s->blocks : s->shape, s->has_loss ? ", loss" : "",
             s->has_dx ? ", dx" : "", s->has_dbias ? ", dbias" : "",
             s->ignores ? ", ignores" : "", s->smoothing > 0 ? ", smoothing" : "");
    if ((s->alone ? run_alone(s, &o, &ctx, &err) : run_head(s, &o, &ctx, &err)) !=
        GX_OK) {
        print_error("%s: %s\n", what, err.message);
        fail();
    }
    if (s->has_loss)
        emulate_compare(&o.loss, "loss", what);
    if (s->has_dx)
        emulate_compare(&o.dx, "dx", what);
    if (s->has_dbias)
        emulate_compare(&o.dbias, "dbias", what);
    if (has_product(s))
        emulate_compare(&o.out, "out", what);
    assert_int_equal(*ticket, 0);
    emulate_operand *const all[] = { &o.x,   &o.a,    &o.b,  &o.bias,
                                     &o.out, &o.loss, &o.dx, &o.dbias };
    for (size_t i = 0; i < ARRAY_SIZE(all); i++)
        emulate_drop(all[i]);
    emulate_free(o.labels);
    emulate_free(ticket);
    emulate_free(ctx.workspace);
    free(o.logits);
}

static const gx_dtype dtypes[] = { GX_F32, GX_BF16, GX_F16 };
/* Rows of one shape of the kernels each, full and not, and one of many classes. */
static const int class_counts[] = { 2, 10, 16, 17, 100, 129, 300, 400, 1000, 1100 };

static void alone(void **state)
{
    const uint64_t *seed = *state;
    test_random random = test_random_start(*seed);
    static const int row_counts[] = { 1, 64, 300 };

    for (int i = 0; i < (int)ARRAY_SIZE(class_counts) * 12; i++) {
        const int what = i % 3; /* the loss, the derivative, both */
        softmax s = { .rows = row_counts[i / 3 % 3],
                      .columns = class_counts[i / 12],
                      .k = 1,
                      .dtype = dtypes[test_random_int(&random, 0, 2)],
                      .alone = true,
                      .has_loss = what != 1,
                      .has_dx = what != 0,
                      .ignores = i % 4 == 3,
                      .blocks = i % 4 < 2 ? 1 : 3,
                      .smoothing = i % 5 == 4 ? 0.125 : 0.0 };

        if (s.columns > 200 && s.rows > 64)
            s.rows = 40;
        if (s.ignores && s.rows == 1)
            s.rows = 5;
        emulate_seed(test_random_bits(&random));
        check(&s, &random);
    }
}

/* More than a block has threads, of which in the last some add up what two have left. */
static void alone_in_many_blocks(void **state)
{
    const uint64_t *seed = *state;
    test_random random = test_random_start(*seed);

    for (int i = 0; i < 4; i++) {
        const bool is_wide = i % 2 != 0;
        softmax s = { .columns = is_wide ? 1100 : 129,
                      .k = 1,
                      .dtype = dtypes[i % 3],
                      .alone = true,
                      .has_loss = true,
                      .has_dx = i > 0 && i < 3,
                      .ignores = i >= 2,
                      .blocks = GX_LOSS_THREADS + 3 };

        s.rows = s.blocks * (int)gx_sce_rows_at_once(s.columns) - (is_wide ? 0 : 3);
        emulate_seed(test_random_bits(&random));
        check(&s, &random);
    }
}

static void memory(void **state)
{
    const uint64_t *seed = *state;
    test_random random = test_random_start(*seed);
    static const int row_counts[] = { 1, 64, 70, 300 };

    for (int i = 0; i < 7 * 9; i++) {
        softmax s = { .rows = row_counts[i % 4],
                      .columns = class_counts[i / 9],
                      .k = 1,
                      .dtype = dtypes[i % 3],
                      .has_loss = i % 5 != 4,
                      .has_dx = true,
                      .has_dbias = i % 4 != 3,
                      .ignores = i % 7 == 6,
                      .source = GX_HEAD_MEMORY,
                      .shape = i / 3 % 3,
                      .smoothing = i % 5 == 3 ? 0.125 : 0.0 };

        if (s.columns > 200 && s.rows > 64)
            s.rows = 70;
        if (s.ignores)
            s.rows = 64;
        emulate_seed(test_random_bits(&random));
        check(&s, &random);
    }
}

static void product(void **state)
{
    const uint64_t *seed = *state;
    test_random random = test_random_start(*seed);

    for (int i = 0; i < 3 * 9; i++) {
        const bool is_tensor = i % 9 < 6;
        softmax s = { .rows = 70,
                      .k = 36,
                      .dtype = dtypes[i / 9],
                      .has_loss = i % 5 != 4,
                      .has_dx = true,
                      .has_dbias = i % 4 != 3,
                      .ignores = i % 7 == 6,
                      .turned = i % 2 == 0,
                      .source = is_tensor ? GX_HEAD_TENSOR : GX_HEAD_PLAIN,
                      .shape = is_tensor ? i % 9 : i % 9 - 6,
                      .smoothing = i % 3 == 1 ? 0.125 : 0.0 };
        const gx_head_shape shape = gx_head_shape_of(s.source, s.shape);

        s.columns = i % 4 == 2 ? shape.columns : shape.columns - 6;
        emulate_seed(test_random_bits(&random));
        check(&s, &random);
    }
}

int main(void)
{
    static uint64_t seed;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(alone, &seed),
        cmocka_unit_test_prestate(alone_in_many_blocks, &seed),
        cmocka_unit_test_prestate(memory, &seed),
        cmocka_unit_test_prestate(product, &seed),
    };

    seed = test_seed();
    return cmocka_run_group_tests_name("emulated_loss", tests, NULL, NULL);
}
