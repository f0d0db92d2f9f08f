/* Dropout. Its mask is a function of the seed, the op's stream, the step and the
 * element's index, so nothing is stored: the derivative is dropout again, of dy. */
#include "dropout.h"

#include "infer.h"
#include "name_map.h"
#include "resolve.h"
#include "samples.h"
#include "shape.h"

static const gx_field dropout_fields[] = {
    { "x", GX_FIELD_IN, true, NULL, NULL, "any shape" },
    { "step", GX_FIELD_IN, false, NULL, NULL,
      "i32 [1], the steps done; left away: gexec.step" },
    { "out", GX_FIELD_OUT, true, NULL, NULL, "like x" },
    { "p", GX_FIELD_REAL, false, "0.5", NULL, "share that is dropped, 0 to 1" },
    { "stream", GX_FIELD_INT, false, NULL, NULL,
      "number of the op's random sequence; left away: made from its name. Ops with the "
      "same one have the same mask" },
    { 0 },
};

static void dropout_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                          gx_diagnostics *list)
{
    const gx_value *x = value[GX_DROPOUT_X], *step = value[GX_DROPOUT_STEP];
    const double p = node->attr[GX_DROPOUT_P].r;

    (void)graph;
    if (!gx_expect_float(list, node, "x", x))
        return;
    if (step && (!gx_expect_dtype(list, node, "step", step, GX_I32) ||
                 !gx_expect_like(list, node, "step", step, 1, (const int64_t[]){ 1 })))
        return;
    if (!(p >= 0 && p <= 1)) {
        gx_misfit(list, node, "p", "p is %g, expected a share from 0 to 1", p);
        return;
    }
    if (node->attr[GX_DROPOUT_STREAM].i < 0) {
        gx_misfit(list, node, "stream", "stream is %lld, expected 0 or more",
                  (long long)node->attr[GX_DROPOUT_STREAM].i);
        return;
    }
    gx_set_shape(value[GX_DROPOUT_OUT], x->dtype, x->rank, x->dim);
}

/* An evaluation drops nothing: the same elements under the same shape. */
static void pass_on(gx_builder *builder, int32_t id)
{
    gx_graph *graph = gx_builder_graph(builder);
    const gx_value *x = &graph->values[graph->nodes[id].arg[GX_DROPOUT_X]];
    gx_field_text fields[2 + GX_MAX_RANK] = {
        { "x", x->name },
        { "out", gx_builder_operand(builder, id, GX_DROPOUT_OUT) },
    };

    const size_t n = gx_builder_list(builder, "shape", x->rank, x->dim, fields + 2);

    if (!gx_arena_failed(graph->arena))
        gx_builder_rewrite(builder, id, "reshape", fields, 2 + n);
}

/* Writes in what the model leaves away. The stream comes from the name, so another op in
 * the model changes no mask. */
static bool dropout_expand(gx_builder *builder, int32_t id)
{
    const gx_graph *graph = gx_builder_graph(builder);
    const gx_node *node = &graph->nodes[id];
    const char *step = gx_builder_operand(builder, id, GX_DROPOUT_STEP);
    const char *stream = gx_written(node, "stream");

    if (graph->kind == GX_EVAL) {
        pass_on(builder, id);
        return true;
    }
    if (step && stream)
        return false;
    const gx_field_text fields[] = {
        { "x", gx_builder_operand(builder, id, GX_DROPOUT_X) },
        { "step", step ? step : GX_STATE_STEP },
        { "out", gx_builder_operand(builder, id, GX_DROPOUT_OUT) },
        { "p", gx_written(node, "p") },
        { "stream",
          stream ? stream
                 : gx_int_text(builder, (int64_t)(gx_hash_text(node->name) >> 1)) },
    };

    if (fields[4].text)
        gx_builder_rewrite(builder, id, "dropout", fields, 5);
    return true;
}

static void dropout_grad(gx_builder *builder, int32_t id)
{
    const gx_node *node = &gx_builder_graph(builder)->nodes[id];
    const int32_t x = node->arg[GX_DROPOUT_X];
    const char *out = gx_builder_wanted_name(builder, x);
    const gx_field_text fields[] = {
        { "x", gx_builder_gradient(builder, node->arg[GX_DROPOUT_OUT]) },
        { "step", gx_builder_operand(builder, id, GX_DROPOUT_STEP) },
        { "out", out },
        { "p", gx_written(node, "p") },
        { "stream", gx_written(node, "stream") },
    };

    if (!out)
        return;
    gx_builder_node(builder, "dropout", gx_builder_name(builder, node->origin, "bwd"), id,
                    fields, 5);
    gx_builder_contribute(builder, x, out);
}

static gx_status dropout_reference(const gx_call *call, gx_error *err)
{
    const double *x = call->arg[GX_DROPOUT_X].data;
    double *out = call->arg[GX_DROPOUT_OUT].data;
    const int64_t n = gx_count(&call->arg[GX_DROPOUT_OUT]);
    const uint32_t step =
        (uint32_t)(int64_t) * (const double *)call->arg[GX_DROPOUT_STEP].data;
    const double p = call->attr[GX_DROPOUT_P].r;
    const double scale = gx_dropout_scale(p);
    const uint64_t bar = gx_dropout_bar(p);
    const uint64_t key =
        gx_dropout_key(call->seed, (uint64_t)call->attr[GX_DROPOUT_STREAM].i);
    uint32_t word[GX_DROPOUT_WORDS];

    (void)err;
    for (int64_t i = 0; i < n; i++) {
        if (i % GX_DROPOUT_WORDS == 0)
            gx_dropout_words(key, step, (uint64_t)i / GX_DROPOUT_WORDS, word);
        out[i] = word[i % GX_DROPOUT_WORDS] < bar ? 0 : scale * x[i];
    }
    return GX_OK;
}

static double dropout_flops(const gx_graph *graph, const gx_node *node)
{
    return gx_elements(graph, node, GX_DROPOUT_OUT);
}

const gx_op gx_dropout_ops[] = {
    {
        .name = "dropout",
        .summary = "drops a share of the elements, others in each step; nothing in an "
                   "evaluation. Its derivative is itself",
        .formula =
            "out = x / (1 - p) where kept, 0 where dropped (NaN and infinity too); "
            "dropped: word(seed, stream, step, index) < p 2^32",
        .fields = dropout_fields,
        .phase = GX_PHASE_FORWARD,
        .rows = GX_ROWS_EACH,
        .infer = dropout_infer,
        .expand = dropout_expand,
        .reference = dropout_reference,
        .grad = dropout_grad,
        .flops = dropout_flops,
        .samples = gx_dropout_samples,
        /* The rounding of 1 / (1 - p) and one of the product: 2^-24 in f32, 2^-9 in
         * bf16, 2^-12 in f16. */
        .tolerance = { 1e-6, 1e-6, 4e-3, 5e-4 },
    },
    { 0 },
};
