/* Rows of a table by index, and the gradient of the table. */
#include <string.h>

#include "infer.h"
#include "resolve.h"
#include "samples.h"

static const gx_field embedding_fields[] = {
    { "table", GX_FIELD_IN, true, NULL, NULL, "[rows, n]" },
    { "index", GX_FIELD_IN, true, NULL, NULL, "i32, any shape, from 0 to rows - 1" },
    { "out", GX_FIELD_OUT, true, NULL, NULL, "the shape of index, then n" },
    { 0 },
};

static const gx_field embedding_bwd_fields[] = {
    { "dy", GX_FIELD_IN, true, NULL, NULL,
      "the shape of index, then n: gradient of embedding's out" },
    { "index", GX_FIELD_IN, true, NULL, NULL, "embedding's index" },
    { "dtable", GX_FIELD_OUT, true, NULL, NULL, "[rows, n]" },
    { "rows", GX_FIELD_INT, true, NULL, NULL, "rows of the table" },
    { 0 },
};

/* --- shapes --- */

static bool expect_index(gx_diagnostics *list, const gx_node *node, gx_value *index)
{
    if (!gx_expect_dtype(list, node, "index", index, GX_I32))
        return false;
    if (index->rank < GX_MAX_RANK)
        return true;
    gx_misfit(list, node, "index", "index has %d dimensions, expected at most %d",
              index->rank, GX_MAX_RANK - 1);
    return false;
}

static void embedding_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                            gx_diagnostics *list)
{
    const gx_value *table = value[GX_EMBEDDING_TABLE];
    gx_value *index = value[GX_EMBEDDING_INDEX];
    int64_t dim[GX_MAX_RANK];

    (void)graph;
    if (!gx_expect_float(list, node, "table", table) ||
        !gx_expect_rank(list, node, "table", table, 2) ||
        !expect_index(list, node, index))
        return;
    if (table->dim[0] == 0) {
        gx_misfit(list, node, "table", "table has no rows that an index could name");
        return;
    }
    gx_limit_index(index, table->dim[0], node->name);
    memcpy(dim, index->dim, sizeof dim);
    dim[index->rank] = table->dim[1];
    gx_set_shape(value[GX_EMBEDDING_OUT], table->dtype, index->rank + 1, dim);
}

static void embedding_bwd_infer(const gx_graph *graph, const gx_node *node,
                                gx_value **value, gx_diagnostics *list)
{
    const gx_value *dy = value[GX_EMBEDDING_BWD_DY];
    gx_value *index = value[GX_EMBEDDING_BWD_INDEX];
    const int64_t rows = node->attr[GX_EMBEDDING_BWD_ROWS].i;
    int64_t dim[GX_MAX_RANK];

    (void)graph;
    if (!gx_expect_float(list, node, "dy", dy) || !expect_index(list, node, index))
        return;
    memcpy(dim, index->dim, sizeof dim);
    dim[index->rank] = dy->rank > 0 ? dy->dim[dy->rank - 1] : 1;
    if (!gx_expect_like(list, node, "dy", dy, index->rank + 1, dim))
        return;
    if (rows < 1 ||
        rows > GX_LIMIT_ELEMENTS / (dim[index->rank] ? dim[index->rank] : 1)) {
        gx_misfit(list, node, "rows",
                  "rows is %lld, expected the rows of a table: 1 or more, and with %lld "
                  "columns at most 2^40 elements",
                  (long long)rows, (long long)dim[index->rank]);
        return;
    }
    gx_limit_index(index, rows, node->name);
    gx_set_shape(value[GX_EMBEDDING_BWD_DTABLE], dy->dtype, 2,
                 (const int64_t[]){ rows, dim[index->rank] });
}

/* --- derivative --- */

static void embedding_grad(gx_builder *builder, int32_t id)
{
    const gx_graph *graph = gx_builder_graph(builder);
    const gx_node *node = &graph->nodes[id];
    const int32_t table = node->arg[GX_EMBEDDING_TABLE];
    const char *out = gx_builder_wanted_name(builder, table);
    const gx_field_text fields[] = {
        { "dy", gx_builder_gradient(builder, node->arg[GX_EMBEDDING_OUT]) },
        { "index", gx_builder_operand(builder, id, GX_EMBEDDING_INDEX) },
        { "rows",
          gx_arena_format(graph->arena, "%lld", (long long)graph->values[table].dim[0]) },
        { "dtable", out },
    };

    if (!out)
        return;
    gx_builder_node(builder, "embedding.bwd",
                    gx_builder_name(builder, node->origin, "bwd"), id, fields, 4);
    gx_builder_contribute(builder, table, out);
}

/* --- references --- */

static gx_status check_index(double index, int64_t at, int64_t rows, gx_error *err)
{
    if (index >= 0 && index < (double)rows)
        return GX_OK;
    return GX_FAIL(err, GX_ERR_DATA, "index %g at element %lld is not between 0 and %lld",
                   index, (long long)at, (long long)rows - 1);
}

static gx_status embedding_reference(const gx_call *call, gx_error *err)
{
    const gx_tensor *table = &call->arg[GX_EMBEDDING_TABLE];
    const double *index = call->arg[GX_EMBEDDING_INDEX].data;
    const int64_t n = gx_count(&call->arg[GX_EMBEDDING_INDEX]), width = table->dim[1];

    for (int64_t i = 0; i < n; i++) {
        GX_TRY(check_index(index[i], i, table->dim[0], err));
        memcpy((double *)call->arg[GX_EMBEDDING_OUT].data + i * width,
               (const double *)table->data + (int64_t)index[i] * width,
               (size_t)width * sizeof(double));
    }
    return GX_OK;
}

static gx_status embedding_bwd_reference(const gx_call *call, gx_error *err)
{
    const gx_tensor *dtable = &call->arg[GX_EMBEDDING_BWD_DTABLE];
    const double *index = call->arg[GX_EMBEDDING_BWD_INDEX].data;
    const int64_t n = gx_count(&call->arg[GX_EMBEDDING_BWD_INDEX]);
    const int64_t width = dtable->dim[1];

    memset(dtable->data, 0, (size_t)gx_count(dtable) * sizeof(double));
    for (int64_t i = 0; i < n; i++) {
        GX_TRY(check_index(index[i], i, dtable->dim[0], err));
        const double *dy =
            (const double *)call->arg[GX_EMBEDDING_BWD_DY].data + i * width;
        double *row = (double *)dtable->data + (int64_t)index[i] * width;

        for (int64_t j = 0; j < width; j++)
            row[j] += dy[j];
    }
    return GX_OK;
}

/* --- cost: of the table only the rows that are named are read --- */

static double bytes_of(const gx_graph *graph, const gx_node *node, int arg)
{
    return gx_elements(graph, node, arg) *
           (double)gx_dtype_bytes(graph->values[node->arg[arg]].dtype);
}

static double embedding_bytes(const gx_graph *graph, const gx_node *node)
{
    return bytes_of(graph, node, GX_EMBEDDING_INDEX) +
           2 * bytes_of(graph, node, GX_EMBEDDING_OUT);
}

static double embedding_bwd_flops(const gx_graph *graph, const gx_node *node)
{
    return gx_elements(graph, node, GX_EMBEDDING_BWD_DY);
}

const gx_op gx_embedding_ops[] = {
    {
        .name = "embedding",
        .summary = "rows of a table by index, as torch.nn.functional.embedding",
        .formula = "out[i, ...] = table[index[i], ...]",
        .fields = embedding_fields,
        .phase = GX_PHASE_FORWARD,
        .rows = GX_ROWS_INDEX,
        .infer = embedding_infer,
        .reference = embedding_reference,
        .grad = embedding_grad,
        .bytes = embedding_bytes,
        .samples = gx_embedding_samples,
        /* A copy: only what the numbers of the table are rounded to counts. */
        .tolerance = { 1e-6, 1e-6, 5e-3, 7e-4 },
    },
    {
        .name = "embedding.bwd",
        .summary = "derivative of embedding; a row that no index names gets 0",
        .formula = "dtable[v, ...] = sum of dy[i, ...] over all i with index[i] = v, in "
                   "their order",
        .fields = embedding_bwd_fields,
        .phase = GX_PHASE_BACKWARD,
        .infer = embedding_bwd_infer,
        .reference = embedding_bwd_reference,
        .flops = embedding_bwd_flops,
        .samples = gx_embedding_bwd_samples,
        /* Sums of some thousand rows in f32, of either sign; bf16 and f16 are rounded
         * once, to 8 and 11 bits. */
        .tolerance = { 1e-5, 1e-5, 5e-3, 7e-4 },
    },
    { 0 },
};
