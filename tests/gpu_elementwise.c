/* Kernels of elementwise ops, reductions, softmax and activations by themselves: at
 * addresses that allow no vectors, past 2^31 elements, and with the same bits each time.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "builder.h"
#include "launch.h"
#include "support.h"
#include "support_gpu.h"
#include "support_walk.h"

enum { GUARD = 64 };

/* Rows that have an alternative of their own; activations are epilogues. */
static const char *const rows[] = {
    "epilogue", "epilogue.bwd", "add",     "sub",        "mul", "scale",
    "sum",      "sum.bwd",      "mean",    "mean.bwd",   "max", "max.bwd",
    "sum_to",   "broadcast_to", "softmax", "softmax.bwd"
};

static bool is_listed(const char *name)
{
    bool listed = false;

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        listed |= strcmp(rows[i], name) == 0;
    return listed;
}

typedef struct setting {
    gx_ctx ctx;
    cudaStream_t stream;
    gx_error err;
    int n_checked;
} setting;

static int set_up(void **state)
{
    setting *s = calloc(1, sizeof *s);

    assert_non_null(s);
    assert_int_equal(cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking),
                     cudaSuccess);
    s->ctx.stream = s->stream;
    assert_int_equal(
        cudaDeviceGetAttribute(&s->ctx.n_sm, cudaDevAttrMultiProcessorCount, 0),
        cudaSuccess);
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    setting *s = *state;

    assert_int_equal(cudaStreamDestroy(s->stream), cudaSuccess);
    free(s);
    return 0;
}

/* --- one op --- */

typedef struct site {
    gx_call call;
    void *block[GX_MAX_ARGS];
    const char *what;
} site;

static size_t bytes_of(const gx_tensor *tensor)
{
    return (size_t)gx_count(tensor) * gx_dtype_bytes(tensor->dtype);
}

static void make(site *at, int arg, const gx_tensor *like, int shift)
{
    gx_tensor *tensor = &at->call.arg[arg];
    const size_t before = (size_t)shift * gx_dtype_bytes(like->dtype);
    const size_t bytes = before + bytes_of(like) + GUARD;

    *tensor = *like;
    assert_int_equal(cudaMalloc(&at->block[arg], bytes), cudaSuccess);
    assert_int_equal(cudaMemset(at->block[arg], 0xff, bytes), cudaSuccess); /* NaN */
    tensor->data = (char *)at->block[arg] + before;
}

static void drop(site *at)
{
    for (int i = 0; i < GX_MAX_ARGS; i++)
        assert_int_equal(cudaFree(at->block[i]), cudaSuccess);
}

static void put(const gx_tensor *tensor, const double *values)
{
    const int64_t n = gx_count(tensor);
    char *bytes = malloc(bytes_of(tensor) + 1);

    assert_non_null(bytes);
    for (int64_t i = 0; i < n; i++) {
        const float value = (float)values[i];
        const uint16_t half = tensor->dtype == GX_F16 ? gx_f16_from_float(value)
                                                      : gx_bf16_from_float(value);

        if (tensor->dtype != GX_F32)
            memcpy(bytes + 2 * i, &half, sizeof half);
        else
            memcpy(bytes + 4 * i, &value, sizeof value);
    }
    assert_int_equal(
        cudaMemcpy(tensor->data, bytes, bytes_of(tensor), cudaMemcpyHostToDevice),
        cudaSuccess);
    free(bytes);
}

/* The numbers, and what lies behind them is as it was. */
static double *get(const gx_tensor *tensor)
{
    const int64_t n = gx_count(tensor);
    const size_t size = bytes_of(tensor);
    unsigned char *bytes = malloc(size + GUARD);
    double *values = malloc(((size_t)n + 1) * sizeof *values);

    assert_non_null(bytes);
    assert_non_null(values);
    assert_int_equal(
        cudaMemcpy(bytes, tensor->data, size + GUARD, cudaMemcpyDeviceToHost),
        cudaSuccess);
    for (int64_t i = 0; i < n; i++) {
        float value = 0;
        uint16_t half = 0;

        memcpy(&half, bytes + 2 * i, sizeof half);
        if (tensor->dtype == GX_BF16)
            value = gx_bf16_to_float(half);
        else if (tensor->dtype == GX_F16)
            value = gx_f16_to_float(half);
        else
            memcpy(&value, bytes + 4 * i, sizeof value);
        values[i] = (double)value;
    }
    for (int i = 0; i < GUARD; i++)
        assert_int_equal(bytes[size + (size_t)i], 0xff);
    free(bytes);
    return values;
}

/* Runs the op's own alternatives, with a workspace that holds NaN. One that moves 16
 * bytes at a time may refuse addresses that are `shift` elements off. */
static void run(setting *s, const site *at, int shift)
{
    const gx_group group = { .n_calls = 1, .call = &at->call };
    const gx_alternative *alternative;
    int ran = 0;

    for (size_t i = 0; (alternative = gx_alternative_at(i)); i++) {
        gx_prepared prepared = { .n_algos = 0 };

        if (strcmp(alternative->pattern[0], gx_op_name(at->call.op)) != 0 ||
            alternative->pattern[1] != NULL ||
            alternative->refuses(&group, &s->ctx) != NULL)
            continue;
        const gx_status st = alternative->prepare(&group, &s->ctx, &prepared, &s->err);
        if (st == GX_ERR_UNSUPPORTED && shift > 0)
            continue;
        assert_ok(st, &s->err);
        assert_int_equal(cudaMalloc(&s->ctx.workspace, prepared.workspace_bytes + 1),
                         cudaSuccess);
        assert_int_equal(cudaMemset(s->ctx.workspace, 0xff, prepared.workspace_bytes),
                         cudaSuccess);
        assert_int_equal(cudaDeviceSynchronize(), cudaSuccess);
        s->ctx.n_launched = 0;
        assert_ok(alternative->launch(&group, &prepared, &s->ctx, &s->err), &s->err);
        assert_int_equal(s->ctx.n_launched, prepared.n_launches);
        assert_int_equal(cudaStreamSynchronize(s->stream), cudaSuccess);
        assert_int_equal(cudaFree(s->ctx.workspace), cudaSuccess);
        ran++;
    }
    assert_true(ran > 0);
}

/* --- the nodes of a model --- */

static bool is_tensor(const gx_field *field)
{
    return field->kind == GX_FIELD_IN || field->kind == GX_FIELD_INOUT ||
           field->kind == GX_FIELD_OUT;
}

static void bind(site *at, const test_walk *model, const gx_node *node, int shift)
{
    int n_args = 0, n_attrs = 0;

    memset(at, 0, sizeof *at);
    at->call.op = node->op;
    at->call.name = at->what = node->name;
    for (int i = 0; i < GX_MAX_ARGS; i++)
        at->call.arg[i].rank = -1;
    for (const gx_field *field = gx_op_fields(node->op); field->name; field++) {
        if (!is_tensor(field)) {
            at->call.attr[n_attrs] = node->attr[n_attrs];
            n_attrs++;
            continue;
        }
        const int arg = n_args++;
        const int32_t id = node->arg[arg];

        if (id < 0)
            continue;
        const gx_value *value = &model->graph->values[id];
        gx_tensor like = { .dtype = value->dtype, .rank = value->rank };

        memcpy(like.dim, value->dim, sizeof like.dim);
        make(at, arg, &like, shift);
        if (field->kind != GX_FIELD_OUT)
            put(&at->call.arg[arg], model->data[id]);
    }
}

/* Each output twice: near what the reference made, and with the same bits. */
static void check_node(setting *s, const test_walk *model, const gx_node *node, int shift)
{
    double *first[GX_MAX_ARGS] = { NULL };
    site at;

    bind(&at, model, node, shift);
    for (int time = 0; time < 2; time++) {
        run(s, &at, shift);
        for (int i = 0; i < gx_n_args(node->op); i++) {
            const gx_tensor *out = &at.call.arg[i];

            if (gx_arg_kind(node->op, i) != GX_FIELD_OUT || node->arg[i] < 0)
                continue;
            double *got = get(out);
            const int64_t n = gx_count(out);
            const double error = test_error(got, model->data[node->arg[i]], n);
            /* The reference rounds what it stores as well; sums may nearly cancel. */
            const double allowed =
                4 * node->op->tolerance[out->dtype == GX_BF16  ? GX_PRECISION_BF16
                                        : out->dtype == GX_F16 ? GX_PRECISION_F16
                                                               : GX_PRECISION_F32];

            if (!(error <= allowed))
                fail_msg("%s \"%s\", shift %d: error %g, allowed %g", node->op->name,
                         node->name, shift, error, allowed);
            if (time == 1)
                assert_memory_equal(got, first[i], (size_t)n * sizeof *got);
            free(first[i]);
            first[i] = got;
            s->n_checked++;
        }
    }
    for (int i = 0; i < GX_MAX_ARGS; i++)
        free(first[i]);
    drop(&at);
}

/* Without an optimizer: what the nodes read is still there after the step. */
static char *without_optimizer(const char *sample)
{
    char *text = strdup(sample);
    char *line = text ? strstr(text, "optimizer:") : NULL;

    assert_non_null(text);
    if (line) {
        const char *rest = strchr(line, '\n') + 1;

        memmove(line, rest, strlen(rest) + 1);
    }
    return text;
}

static void every_node_of_the_samples_is_right_at_any_address(void **state)
{
    static const char *const precision[] = { "f32", "bf16", "f16" };
    setting *s = *state;
    const uint64_t seed = test_seed();

    for (size_t i = 0; i < gx_op_count(); i++) {
        /* Samples of what trains name what the optimizer makes. */
        if (gx_op_at(i)->phase == GX_PHASE_OPTIMIZER)
            continue;
        for (const char *const *sample = gx_op_at(i)->samples; *sample; sample++) {
            if (strstr(*sample, "gexec.")) /* what only an optimizer makes */
                continue;
            char *text = without_optimizer(*sample);

            for (int p = 0; p < 3; p++) {
                test_walk model = test_walk_parse(text, precision[p], GX_TRAIN, seed);

                test_walk_step(&model);
                for (size_t k = 0; k < model.graph->n_nodes; k++) {
                    const gx_node *node = &model.graph->nodes[k];

                    for (int shift = 0; shift < 2 && is_listed(node->op->name); shift++) {
                        if (!test_is_short() || (shift + p) % 2 == 0)
                            check_node(s, &model, node, shift);
                    }
                }
                test_walk_free(&model);
            }
            free(text);
        }
    }
    print_message("%d outputs\n", s->n_checked);
    assert_true(s->n_checked > (test_is_short() ? 500 : 1000));
}

/* --- past 2^31 elements --- */

static bool is_everywhere(const gx_tensor *out, int64_t from, int64_t n, double value)
{
    double *got;
    gx_tensor part = { .dtype = out->dtype, .rank = 1, .dim = { n } };
    bool same = true;

    part.data = (char *)out->data + (size_t)from * gx_dtype_bytes(out->dtype);
    uint16_t *bytes = malloc(bytes_of(&part));

    assert_non_null(bytes);
    assert_int_equal(
        cudaMemcpy(bytes, part.data, bytes_of(&part), cudaMemcpyDeviceToHost),
        cudaSuccess);
    got = malloc((size_t)n * sizeof *got);
    assert_non_null(got);
    for (int64_t i = 0; i < n; i++) {
        got[i] = (double)gx_bf16_to_float(bytes[i]);
        same &= got[i] == value;
    }
    free(bytes);
    free(got);
    return same;
}

/* 65536 x 32769 ones in bf16: doubled by add, and summed up along either axis. */
static void indexes_pass_two_to_the_31(void **state)
{
    setting *s = *state;
    enum { ROWS = 65536, COLUMNS = 32769 };
    const gx_tensor all = { .dtype = GX_BF16, .rank = 2, .dim = { ROWS, COLUMNS } };
    const gx_tensor row = { .dtype = GX_BF16, .rank = 1, .dim = { COLUMNS } };
    const gx_tensor column = { .dtype = GX_BF16, .rank = 1, .dim = { ROWS } };
    static const int64_t axis[] = { 0, 1 };
    size_t free_bytes = 0, total_bytes = 0;
    site add = { .what = "add" }, sum = { .what = "sum" };

    if (test_is_short())
        skip();
    assert_int_equal(cudaMemGetInfo(&free_bytes, &total_bytes), cudaSuccess);
    if (free_bytes < bytes_of(&all) / 2 * 5)
        skip();
    add.call.op = gx_op_find("add");
    for (int i = 0; i < GX_MAX_ARGS; i++)
        add.call.arg[i].rank = sum.call.arg[i].rank = -1;
    make(&add, GX_BINARY_A, &all, 0);
    make(&add, GX_BINARY_B, &row, 0);
    make(&add, GX_BINARY_OUT, &all, 0);
    assert_int_equal(cudaMemset(add.call.arg[0].data, 0x3f, bytes_of(&all)), cudaSuccess);
    assert_int_equal(cudaMemset(add.call.arg[1].data, 0x3f, bytes_of(&row)), cudaSuccess);
    const double value = (double)gx_bf16_to_float(0x3f3f);

    run(s, &add, 0);
    assert_true(is_everywhere(&add.call.arg[GX_BINARY_OUT], 0, COLUMNS, 2 * value));
    assert_true(is_everywhere(&add.call.arg[GX_BINARY_OUT], (int64_t)(ROWS - 1) * COLUMNS,
                              COLUMNS, 2 * value));
    sum.call.op = gx_op_find("sum");
    sum.call.arg[GX_REDUCE_X] = add.call.arg[GX_BINARY_A];
    for (int k = 0; k < 2; k++) {
        const gx_tensor *out = k == 0 ? &row : &column;
        const double n = k == 0 ? ROWS : COLUMNS;

        make(&sum, GX_REDUCE_OUT, out, 0);
        sum.call.attr[GX_REDUCE_AXIS] = (gx_attr){ .i = 1, .list = &axis[k] };
        run(s, &sum, 0);
        assert_true(is_everywhere(&sum.call.arg[GX_REDUCE_OUT], 0, gx_count(out),
                                  gx_round_to(GX_BF16, n * value)));
        drop(&sum);
        sum.block[GX_REDUCE_OUT] = NULL;
    }
    drop(&add);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_node_of_the_samples_is_right_at_any_address,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(indexes_pass_two_to_the_31, set_up, tear_down),
    };

    gpu_start();
    return cmocka_run_group_tests_name("gpu_elementwise", tests, NULL, NULL);
}
