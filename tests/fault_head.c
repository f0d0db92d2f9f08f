/* The end of a network in one kernel, without a GPU: what it takes and what it refuses,
 * that every sample of the losses is planned, run and captured by it with the launches
 * that it declares, and the tickets in front of a workspace. */
#include "fake_cuda_planned.h"

#include <stdio.h>
#include <string.h>

#include "head_kernels.h"
#include "plan.h"
#include "support_group.h"

#define INPUT(name, shape) "  " name ": {shape: " shape ", init: normal}\n"
#define PARAM(name, shape) "  " name ": {shape: " shape ", init: normal}\n"
#define MODEL                                                                   \
    "gexec: 1\nname: m\nprecision: $P\ninputs:\n" INPUT("x", "[40, 8]")         \
        INPUT("xt", "[8, 40]") INPUT("xb", "[2, 40, 8]") INPUT("t", "[40, 16]") \
            INPUT("tb", "[2, 40, 16]")                                          \
                INPUT("r", "[40, 16]") "  y: {shape: [40], dtype: i32}\n"       \
                                       "params:\n" PARAM("w", "[8, 16]")        \
                                           PARAM("wb", "[2, 8, 16]")            \
                                               PARAM("wide", "[8, 130]")        \
                                                   PARAM("b", "[16]")           \
                                                       PARAM("bw", "[130]") "ops:\n"

#define SCE "  - {op: softmax_cross_entropy, name: loss, logits: z, labels: y}\n"
#define MSE "  - {op: mse, name: loss, x: z, target: t}\n"
#define TRAIN "backward: loss\noptimizer: {sgd: {lr: 0.1}}\noutputs: [loss]\n"

static const char *write_model(char *text, size_t size, const char *ops)
{
    snprintf(text, size, "%s%s%s", MODEL, ops, TRAIN);
    return text;
}

static test_walk open_model(const char *ops, const char *precision)
{
    char text[3000];

    return test_walk_parse(write_model(text, sizeof text, ops), precision, GX_TRAIN, 1);
}

/* --- what is refused --- */

#define FC(fields) "  - {op: gemm, name: fc, a: x, b: w" fields ", out: z}\n"
#define FC_BIAS FC(", epilogue: {bias: b}")

static void heads_refuse_what_they_do_not_do(void **state)
{
    static const struct {
        const char *ops, *name;
        int32_t n;
        const char *why; /* NULL: it takes it */
    } cases[] = {
        { FC_BIAS SCE, "head", 5, NULL },
        { FC_BIAS SCE, "head", 4, NULL },
        { FC_BIAS SCE, "head_bwd", 3, NULL },
        { FC_BIAS MSE, "head_bwd", 3, NULL },
        { FC("") SCE, "head_bwd", 2, NULL },
        { FC("") MSE, "head_bwd", 2, NULL },
        { FC(", alpha: 2") SCE, "head_bwd", 2, "one plain product" },
        { FC(", epilogue: {bias: b, act: relu}") SCE, "head_bwd", 3, "more than a bias" },
        { FC(", ld: {out: 20}") SCE, "head_bwd", 2, "zeros stand behind" },
        { FC_BIAS MSE, "head", 5, NULL },
        { FC("") SCE, "head", 3, NULL },
        { FC("") MSE, "head", 3, NULL },
        { FC_BIAS SCE, "fused", 3, NULL },
        { FC_BIAS MSE, "fused", 3, NULL },
        { "  - {op: gemm, name: fc, a: xt, b: w, trans_a: true, epilogue: {bias: b}, "
          "out: z}\n" SCE,
          "head", 5, NULL },
        { "  - {op: gemm, name: fc, a: x, b: wide, epilogue: {bias: bw}, out: z}\n" SCE,
          "head", 5, "more than 128 classes" },
        { "  - {op: gemm, name: fc, a: x, b: wide, epilogue: {bias: bw}, out: z}\n" SCE,
          "fused", 3, NULL },
        { FC(", alpha: 2, epilogue: {bias: b}") SCE, "head", 5, "one plain product" },
        { FC(", epilogue: {bias: b, scale: 2}") SCE, "head", 4, "one plain product" },
        { FC(", epilogue: {bias: b, act: relu}") SCE, "head", 5, "more than a bias" },
        { FC(", epilogue: {bias: b, residual: r}") SCE, "head", 5, "one plain product" },
        { "  - {op: gemm, name: fc, a: xb, b: w, epilogue: {bias: b}, out: z}\n"
          "  - {op: mse, name: loss, x: z, target: tb}\n",
          "head", 5, NULL },
        { "  - {op: gemm, name: fc, a: xb, b: wb, epilogue: {bias: b}, out: z}\n"
          "  - {op: mse, name: loss, x: z, target: tb}\n",
          "head", 5, "one plain product" },
        { "  - {op: gemm, name: fc, a: x, b: wide, n: 16, ld: {b: 130}, epilogue: {bias: "
          "b}, out: z}\n" SCE,
          "head", 5, NULL },
        { FC(", ld: {out: 20}") SCE, "head", 3, "zeros stand behind" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        test_group g;
        char text[3000];

        test_group_open(&g, write_model(text, sizeof text, cases[i].ops), "tf32",
                        cases[i].name, cases[i].n);
        test_group_refuses(&g, cases[i].why);
        test_group_close(&g);
    }
}

/* --- each sample --- */

static void every_sample_of_a_loss_runs_in_one_kernel(void **state)
{
    static const char *const rows[] = { "softmax_cross_entropy", "mse", "l1",
                                        "bce_with_logits", NULL };
    static const char *const precisions[] = { "f32", "tf32", "bf16", "f16", NULL };
    static const char *const forced[] = { "head", "head_bwd", "fused" };

    (void)state;
    for (size_t f = 0; f < ARRAY_SIZE(forced); f++)
        assert_true(planned_samples(rows, precisions, forced[f], NULL, NULL) > 40);
    assert_int_equal(fake_live(), 0);
}

/* --- what it makes of a model --- */

static void a_classifier_ends_in_one_launch(void **state)
{
    static const char *const precisions[] = { "f32", "tf32", "bf16", "f16" };
    static const int sources[] = { GX_HEAD_PLAIN, GX_HEAD_TENSOR, GX_HEAD_TENSOR,
                                   GX_HEAD_TENSOR };

    (void)state;
    for (size_t p = 0; p < ARRAY_SIZE(precisions); p++) {
        test_walk model = open_model(FC_BIAS SCE, precisions[p]);
        planned of = planned_open(model.graph, "head", 1);
        const gx_unit *unit = NULL;

        for (size_t i = 0; i < of.plan->n_units; i++) {
            if (of.plan->units[i].n_nodes == 5)
                unit = &of.plan->units[i];
        }
        assert_non_null(unit);
        assert_string_equal(unit->alternative->name, "head");
        assert_int_equal(unit->n_launches, 1);
        assert_int_equal(unit->algo[1], sources[p]);
        /* 40 rows in blocks of 16: three losses, and as many sums of 16 columns. */
        assert_int_equal(unit->workspace_bytes,
                         3 * sizeof(double) + 3 * 16 * sizeof(float));
        planned_close(&of);
        test_walk_free(&model);
    }
}

/* Without the value no block leaves anything for another; it is one launch of its own,
 * on a lane of its own. */
static void a_head_without_the_value_adds_nothing_up(void **state)
{
    static const char *const texts[] = { FC_BIAS SCE, FC_BIAS MSE, FC("") SCE,
                                         FC("") MSE };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        test_walk model = open_model(texts[i], "tf32");
        planned of = planned_open(model.graph, "head_bwd", 2);
        const gx_unit *head = test_unit_of(of.plan, "loss.bwd");
        const gx_unit *value = test_unit_of(of.plan, "loss");

        assert_string_equal(head->alternative->name, "head_bwd");
        assert_int_equal(head->n_nodes, i < 2 ? 3 : 2);
        assert_ptr_equal(head, test_unit_of(of.plan, i < 2 ? "fc.product" : "fc"));
        assert_int_equal(head->n_launches, 1);
        assert_int_equal(head->workspace_bytes, 0);
        assert_int_equal(head->lane, 0);
        assert_int_equal(value->n_nodes, 1);
        assert_int_equal(value->n_launches, 1);
        assert_int_equal(value->workspace_bytes, 0);
        assert_int_equal(value->lane, 1);
        planned_close(&of);
        test_walk_free(&model);
    }
}

/* A node alone, prepared by its only alternative. */
typedef struct lone {
    gx_call call;
    bool elided[GX_MAX_ARGS];
    gx_group group;
    gx_ctx ctx;
    const gx_alternative *alternative;
    gx_prepared prepared;
} lone;

static void prepare_lone(lone *of, const gx_graph *graph, const char *node)
{
    const int32_t id = gx_graph_node_id(graph, node);
    gx_error err;
    size_t i = 0;

    memset(of, 0, sizeof *of);
    of->group = (gx_group){ .n_calls = 1, .call = &of->call, .elided = of->elided };
    of->ctx = (gx_ctx){ .cc = 90, .n_sm = 132 };
    gx_match_calls(graph, id, 1, &of->call);
    gx_match_elided(graph, id, 1, of->elided);
    while ((of->alternative = gx_alternative_at(i)) &&
           gx_match_length(graph, of->alternative, id) != 1)
        i++;
    assert_non_null(of->alternative);
    assert_ok(of->alternative->prepare(&of->group, &of->ctx, &of->prepared, &err), &err);
}

#define LONE_MODEL                                                   \
    "gexec: 1\nname: m\nprecision: f32\ninputs:\n  x: {shape: %s}\n" \
    "  t: {shape: %s%s}\nops:\n  - {op: %s, name: loss}\noutputs: [loss]\n"

/* The value alone is one launch, with one more where rows are counted apart; of few
 * elements there is one way to do it. */
static void a_loss_is_one_launch(void **state)
{
    static const struct {
        const char *x, *t, *op;
        int n_launches, n_algos;
    } cases[] = {
        { "[64, 10]", "[64]", "softmax_cross_entropy, logits: x, labels: t", 1, 1 },
        { "[64, 10]", "[64]",
          "softmax_cross_entropy, logits: x, labels: t, ignore_index: 0", 1, 1 },
        { "[16, 1024]", "[16]", "softmax_cross_entropy, logits: x, labels: t", 1, 1 },
        { "[17, 1024]", "[17]", "softmax_cross_entropy, logits: x, labels: t", 1, 2 },
        { "[17, 1024]", "[17]",
          "softmax_cross_entropy, logits: x, labels: t, ignore_index: 0", 2, 2 },
        { "[32, 512]", "[32, 512]", "mse, x: x, target: t", 1, 1 },
        { "[128, 512]", "[128, 512]", "mse, x: x, target: t", 1, 1 },
        { "[129, 512]", "[129, 512]", "mse, x: x, target: t", 1, 2 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char text[600];
        lone alone;

        snprintf(text, sizeof text, LONE_MODEL, cases[i].x, cases[i].t,
                 cases[i].op[0] == 's' ? ", dtype: i32" : "", cases[i].op);
        test_walk model = test_walk_parse(text, "f32", GX_TRAIN, 1);
        planned of = planned_open(model.graph, NULL, 1);

        assert_int_equal(test_unit_of(of.plan, "loss")->n_launches, cases[i].n_launches);
        prepare_lone(&alone, model.graph, "loss");
        assert_int_equal(alone.prepared.n_algos, cases[i].n_algos);
        planned_close(&of);
        test_walk_free(&model);
    }
}

/* One block down the rows has whole column sums, and one block at all the whole loss. */
static void what_blocks_leave_hangs_on_the_shape(void **state)
{
    gx_head head = { .source = GX_HEAD_TENSOR, .rows = 64, .columns = 10 };

    (void)state;
    head.is_softmax = true;
    head.shape = 0;
    assert_int_equal(gx_head_row_tiles(&head), 4);
    assert_int_equal(gx_head_blocks(&head), 4);
    head.shape = 2;
    assert_int_equal(gx_head_blocks(&head), 1);
    head.is_softmax = false;
    head.columns = 33;
    assert_int_equal(gx_head_blocks(&head), 3);
    head.source = GX_HEAD_MEMORY;
    head.shape = 1;
    assert_int_equal(gx_head_row_tiles(&head), 1);
    assert_int_equal(gx_head_blocks(&head), 2);
    /* The columns that the threads of a warp hold, by warp, at least a float a thread. */
    head.is_softmax = true;
    assert_int_equal(gx_head_shared_bytes(&head), 4 * 16 * 128);
    head.columns = 1000;
    assert_int_equal(gx_head_shared_bytes(&head), 4 * 8 * 1024);
    head.columns = 2;
    assert_int_equal(gx_head_shared_bytes(&head), 4 * 512);
}

/* --- tickets --- */

static gx_status make_workspace(void *user, gx_error *err)
{
    gx_device *device = user;
    void *workspace = NULL;
    const gx_status st = gx_workspace_alloc(device, 40, &workspace, err);

    if (st != GX_OK) {
        assert_null(workspace);
        return st;
    }
    gx_ctx ctx = { .cc = 90 };

    gx_workspace_use(&ctx, workspace, 40);
    for (size_t i = 0; i < GX_TICKET_BYTES / sizeof *ctx.tickets; i++)
        assert_int_equal(ctx.tickets[i], 0);
    assert_ptr_equal((char *)ctx.tickets + GX_TICKET_BYTES, workspace);
    memset(workspace, 1, 40);
    fake_quiet(true);
    gx_workspace_release(device, workspace);
    fake_quiet(false);
    return GX_OK;
}

static void a_workspace_has_zeros_in_front(void **state)
{
    gx_device *device;
    void *workspace = &device;
    gx_ctx ctx = { .cc = 90 };
    gx_error err;

    (void)state;
    assert_ok(gx_device_open(0, NULL, &device, &err), &err);
    assert_ok(make_workspace(device, &err), &err);
    assert_true(path_fail_each_call(make_workspace, device) >= 2);

    assert_ok(gx_workspace_alloc(device, 0, &workspace, &err), &err);
    assert_null(workspace);
    gx_workspace_use(&ctx, workspace, 0);
    assert_null(ctx.tickets);
    gx_workspace_release(device, workspace);
    assert_true(gx_workspace_size(SIZE_MAX - 1) == SIZE_MAX);
    gx_device_close(device);
}

static void several_blocks_need_a_ticket(void **state)
{
    static const char *const ops[] = { "softmax_cross_entropy, logits: x, labels: t",
                                       "accuracy, logits: x, labels: t",
                                       "topk, logits: x, labels: t, k: 2",
                                       "mse, x: x, target: t" };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
        const bool has_labels = ops[i][0] != 'm';
        char text[600];
        gx_error err = { 0 };
        lone alone;

        snprintf(text, sizeof text, LONE_MODEL, "[129, 512]",
                 has_labels ? "[129]" : "[129, 512]", has_labels ? ", dtype: i32" : "",
                 ops[i]);
        test_walk model = test_walk_parse(text, "f32", GX_TRAIN, 1);

        prepare_lone(&alone, model.graph, "loss");
        assert_int_equal(alone.prepared.n_launches, 1);
        assert_true(alone.prepared.workspace_bytes >= 2 * sizeof(double));
        assert_fails(
            alone.alternative->launch(&alone.group, &alone.prepared, &alone.ctx, &err),
            GX_ERR_STATE, &err, "a workspace without tickets");
        test_walk_free(&model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_refuse_what_they_do_not_do),
        cmocka_unit_test(every_sample_of_a_loss_runs_in_one_kernel),
        cmocka_unit_test(a_classifier_ends_in_one_launch),
        cmocka_unit_test(a_head_without_the_value_adds_nothing_up),
        cmocka_unit_test(a_loss_is_one_launch),
        cmocka_unit_test(what_blocks_leave_hangs_on_the_shape),
        cmocka_unit_test(a_workspace_has_zeros_in_front),
        cmocka_unit_test(several_blocks_need_a_ticket),
    };

    path_start(false);
    return cmocka_run_group_tests_name("fault_head", tests, NULL, NULL);
}
