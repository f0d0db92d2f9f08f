/* Parts of tensors: slices, and tensors one after the other. */
#include <string.h>

#include "infer.h"
#include "resolve.h"
#include "samples.h"
#include "shape.h"

#define SLICE_FIELDS                                                                       \
    { "axis", GX_FIELD_INT, false, "0", NULL, "a negative one counts from the end" },      \
        { "start", GX_FIELD_INT, false,                                                    \
          "0",     NULL,         "first index; a negative one counts from the end" },      \
        { "stop", GX_FIELD_INT, false,                                                     \
          NULL,   NULL,         "index behind the last; left away: the end of the axis" }, \
    {                                                                                      \
        "step", GX_FIELD_INT, false, "1", NULL, "every step-th element, 1 or more"         \
    }

static const gx_field slice_fields[] = {
    { "x", GX_FIELD_IN, true, NULL, NULL, "any type, one dimension or more" },
    { "out", GX_FIELD_OUT, true, NULL, NULL, "x from start up to stop along axis" },
    SLICE_FIELDS,
    { 0 },
};

static const gx_field slice_bwd_fields[] = {
    { "dy", GX_FIELD_IN, true, NULL, NULL, "gradient of slice's out" },
    { "dx", GX_FIELD_OUT, true, NULL, NULL, "like slice's x" },
    SLICE_FIELDS,
    { "size", GX_FIELD_INT, true, NULL, NULL, "of the axis in slice's x" },
    { 0 },
};

static const gx_field concat_fields[] = {
    { "x.0", GX_FIELD_IN, true, NULL, NULL,
      "of one type, and one shape but for the size of axis" },
    { "x.1", GX_FIELD_IN, false, NULL, NULL, "" },
    { "x.2", GX_FIELD_IN, false, NULL, NULL, "" },
    { "x.3", GX_FIELD_IN, false, NULL, NULL, "" },
    { "x.4", GX_FIELD_IN, false, NULL, NULL, "" },
    { "x.5", GX_FIELD_IN, false, NULL, NULL, "" },
    { "x.6", GX_FIELD_IN, false, NULL, NULL, "" },
    { "x.7", GX_FIELD_IN, false, NULL, NULL, "" },
    { "out", GX_FIELD_OUT, true, NULL, NULL, "the sizes of axis added up" },
    { "axis", GX_FIELD_INT, false, "0", NULL, "a negative one counts from the end" },
    { 0 },
};

/* --- shapes --- */

static int64_t index_of(int64_t i, int64_t size)
{
    return i < 0 ? i + size : i;
}

gx_slice_range gx_slice_range_of(int rank, int64_t size, const gx_attr *attr)
{
    const gx_attr *stop = &attr[GX_SLICE_STOP];
    const int64_t step = attr[GX_SLICE_STEP].i;
    const int64_t start = index_of(attr[GX_SLICE_START].i, size);
    const int64_t end = stop->present ? index_of(stop->i, size) : size;

    return (gx_slice_range){
        .axis = gx_axis_of(attr[GX_SLICE_AXIS].i, rank),
        .start = start,
        .count = (end - start) / step + ((end - start) % step != 0),
        .step = step,
    };
}

static bool expect_index(gx_diagnostics *list, const gx_node *node, const char *key,
                         int64_t i, int64_t size)
{
    if (i >= -size && i <= size)
        return true;
    gx_misfit(list, node, key,
              "%s is %lld, expected one from %lld to %lld: the axis has "
              "%lld elements",
              key, (long long)i, (long long)-size, (long long)size, (long long)size);
    return false;
}

/* False after a report. */
static bool check_slice(gx_diagnostics *list, const gx_node *node, int64_t size)
{
    const gx_attr *stop = &node->attr[GX_SLICE_STOP];
    const int64_t start = node->attr[GX_SLICE_START].i;
    const int64_t step = node->attr[GX_SLICE_STEP].i;

    if (step < 1) {
        gx_misfit(list, node, "step", "step is %lld, expected 1 or more",
                  (long long)step);
        return false;
    }
    if (!expect_index(list, node, "start", start, size) ||
        (stop->present && !expect_index(list, node, "stop", stop->i, size)))
        return false;
    if (stop->present && index_of(stop->i, size) < index_of(start, size)) {
        gx_misfit(list, node, "stop", "stop is %lld, which lies before start %lld",
                  (long long)stop->i, (long long)start);
        return false;
    }
    return true;
}

static void slice_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                        gx_diagnostics *list)
{
    const gx_value *x = value[GX_SLICE_X];
    const int64_t axis = node->attr[GX_SLICE_AXIS].i;
    int64_t dim[GX_MAX_RANK];

    (void)graph;
    if (!gx_expect_axis(list, node, "axis", axis, "x", x))
        return;
    const int at = gx_axis_of(axis, x->rank);

    if (!check_slice(list, node, x->dim[at]))
        return;
    memcpy(dim, x->dim, sizeof dim);
    dim[at] = gx_slice_range_of(x->rank, x->dim[at], node->attr).count;
    gx_set_shape(value[GX_SLICE_OUT], x->dtype, x->rank, dim);
}

static void slice_bwd_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                            gx_diagnostics *list)
{
    const gx_value *dy = value[GX_SLICE_BWD_DY];
    const int64_t axis = node->attr[GX_SLICE_AXIS].i;
    const int64_t size = node->attr[GX_SLICE_BWD_SIZE].i;
    int64_t dim[GX_MAX_RANK], others = 1;

    (void)graph;
    if (!gx_expect_axis(list, node, "axis", axis, "dy", dy))
        return;
    const int at = gx_axis_of(axis, dy->rank);

    memcpy(dim, dy->dim, sizeof dim);
    dim[at] = 1;
    others = gx_span_count(dim, 0, dy->rank);
    if (size < 0 || size > GX_LIMIT_ELEMENTS / (others > 0 ? others : 1)) {
        gx_misfit(list, node, "size",
                  "size is %lld, expected 0 or more, and up to %lld elements in all",
                  (long long)size, (long long)GX_LIMIT_ELEMENTS);
        return;
    }
    if (!check_slice(list, node, size))
        return;
    dim[at] = gx_slice_range_of(dy->rank, size, node->attr).count;
    if (!gx_expect_like(list, node, "dy", dy, dy->rank, dim))
        return;
    dim[at] = size;
    gx_set_shape(value[GX_SLICE_BWD_DX], dy->dtype, dy->rank, dim);
}

static void concat_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                         gx_diagnostics *list)
{
    const gx_value *first = value[GX_CONCAT_X];
    const int64_t axis = node->attr[GX_CONCAT_AXIS].i;
    int64_t dim[GX_MAX_RANK], sum = 0;
    bool ended = false;

    (void)graph;
    if (!gx_expect_axis(list, node, "axis", axis, "x.0", first))
        return;
    const int at = gx_axis_of(axis, first->rank);

    memcpy(dim, first->dim, sizeof dim);
    for (int i = 0; i < GX_CONCAT_MOST; i++) {
        const gx_value *x = value[GX_CONCAT_X + i];
        char key[16];

        gx_item_key(key, "x", i);
        if (x && ended) {
            gx_misfit(list, node, key, "x has an item %d and no item %d", i, i - 1);
            return;
        }
        ended = !x;
        if (!x)
            continue;
        dim[at] = x->rank == first->rank ? x->dim[at] : first->dim[at];
        if (!gx_expect_dtype(list, node, key, x, first->dtype) ||
            !gx_expect_like(list, node, key, x, first->rank, dim))
            return;
        sum += x->dim[at];
    }
    dim[at] = sum;
    gx_set_shape(value[GX_CONCAT_OUT], first->dtype, first->rank, dim);
}

/* --- derivatives --- */

static void slice_grad(gx_builder *builder, int32_t id)
{
    const gx_graph *graph = gx_builder_graph(builder);
    const gx_node *node = &graph->nodes[id];
    const int32_t x = node->arg[GX_SLICE_X];
    const int rank = graph->values[x].rank;
    const int axis = gx_axis_of(node->attr[GX_SLICE_AXIS].i, rank);
    const int64_t size = graph->values[x].dim[axis];
    const gx_attr *stop = &node->attr[GX_SLICE_STOP];
    const char *out = gx_builder_wanted_name(builder, x);
    const gx_field_text fields[] = {
        { "dy", gx_builder_gradient(builder, node->arg[GX_SLICE_OUT]) },
        { "dx", out },
        { "axis", gx_int_text(builder, axis) },
        { "start", gx_int_text(builder, node->attr[GX_SLICE_START].i) },
        { "stop", stop->present ? gx_int_text(builder, stop->i) : NULL },
        { "step", gx_int_text(builder, node->attr[GX_SLICE_STEP].i) },
        { "size", gx_int_text(builder, size) },
    };

    if (!out)
        return;
    gx_builder_node(builder, "slice.bwd", gx_builder_name(builder, node->origin, "bwd"),
                    id, fields, 7);
    gx_builder_contribute(builder, x, out);
}

/* The zeros depend on nothing. */
static void slice_bwd_grad(gx_builder *builder, int32_t id)
{
    const gx_node *node = &gx_builder_graph(builder)->nodes[id];
    const int32_t dy = node->arg[GX_SLICE_BWD_DY];
    const gx_attr *stop = &node->attr[GX_SLICE_STOP];
    const char *out = gx_builder_wanted_name(builder, dy);
    const gx_field_text fields[] = {
        { "x", gx_builder_gradient(builder, node->arg[GX_SLICE_BWD_DX]) },
        { "out", out },
        { "axis", gx_int_text(builder, node->attr[GX_SLICE_AXIS].i) },
        { "start", gx_int_text(builder, node->attr[GX_SLICE_START].i) },
        { "stop", stop->present ? gx_int_text(builder, stop->i) : NULL },
        { "step", gx_int_text(builder, node->attr[GX_SLICE_STEP].i) },
    };

    if (!out)
        return;
    gx_builder_node(builder, "slice", gx_builder_name(builder, node->origin, "bwd"), id,
                    fields, 6);
    gx_builder_contribute(builder, dy, out);
}

/* Each input's gradient is its part of dy. */
static void concat_grad(gx_builder *builder, int32_t id)
{
    const gx_graph *graph = gx_builder_graph(builder);
    const char *origin = graph->nodes[id].origin;
    const char *dy = gx_builder_gradient(builder, graph->nodes[id].arg[GX_CONCAT_OUT]);
    int64_t start = 0;

    for (int i = 0; i < GX_CONCAT_MOST && graph->nodes[id].arg[GX_CONCAT_X + i] >= 0;
         i++) {
        const gx_node *node = &graph->nodes[id];
        const int32_t x = node->arg[GX_CONCAT_X + i];
        const gx_value *value = &graph->values[x];
        const int axis = gx_axis_of(node->attr[GX_CONCAT_AXIS].i, value->rank);
        const int64_t end = start + value->dim[axis];
        const char *out = gx_builder_wanted_name(builder, x);
        const char *suffix = gx_arena_format(graph->arena, "bwd.%d", i);
        const gx_field_text fields[] = {
            { "x", dy },
            { "out", out },
            { "axis", gx_int_text(builder, axis) },
            { "start", gx_int_text(builder, start) },
            { "stop", gx_int_text(builder, end) },
        };

        start = end;
        if (!out || !suffix)
            continue;
        gx_builder_node(builder, "slice", gx_builder_name(builder, origin, suffix), id,
                        fields, 5);
        gx_builder_contribute(builder, x, out);
    }
}

/* --- references --- */

static void copy(double *to, const double *from, int64_t n)
{
    if (n > 0)
        memcpy(to, from, (size_t)n * sizeof *to);
}

/* Visits the runs of a slice: between `part`, which is the slice, and `whole`. */
static void walk_slice(const gx_call *call, double *part, double *whole,
                       const gx_tensor *shape, bool back)
{
    const int rank = shape->rank;
    const int axis = gx_axis_of(call->attr[GX_SLICE_AXIS].i, rank);
    const int64_t size = shape->dim[axis];
    const gx_slice_range range = gx_slice_range_of(rank, size, call->attr);
    const int64_t outer = gx_span_count(shape->dim, 0, axis);
    const int64_t inner = gx_span_count(shape->dim, axis + 1, rank);

    for (int64_t o = 0; o < outer; o++) {
        for (int64_t i = 0; i < range.count; i++) {
            double *in_part = part + (o * range.count + i) * inner;
            double *in_whole = whole + (o * size + range.start + i * range.step) * inner;

            if (back)
                copy(in_whole, in_part, inner);
            else
                copy(in_part, in_whole, inner);
        }
    }
}

static gx_status slice_reference(const gx_call *call, gx_error *err)
{
    const gx_tensor *x = &call->arg[GX_SLICE_X];

    (void)err;
    walk_slice(call, call->arg[GX_SLICE_OUT].data, x->data, x, false);
    return GX_OK;
}

static gx_status slice_bwd_reference(const gx_call *call, gx_error *err)
{
    const gx_tensor *dx = &call->arg[GX_SLICE_BWD_DX];
    double *to = dx->data;
    const int64_t n = gx_count(dx);

    (void)err;
    for (int64_t i = 0; i < n; i++)
        to[i] = 0;
    walk_slice(call, call->arg[GX_SLICE_BWD_DY].data, to, dx, true);
    return GX_OK;
}

static gx_status concat_reference(const gx_call *call, gx_error *err)
{
    const gx_tensor *out = &call->arg[GX_CONCAT_OUT];
    const int axis = gx_axis_of(call->attr[GX_CONCAT_AXIS].i, out->rank);
    const int64_t outer = gx_span_count(out->dim, 0, axis);
    const int64_t row = gx_span_count(out->dim, axis, out->rank);
    int64_t start = 0;

    (void)err;
    for (int i = 0; i < GX_CONCAT_MOST && gx_has(call, GX_CONCAT_X + i); i++) {
        const gx_tensor *x = &call->arg[GX_CONCAT_X + i];
        const int64_t width = gx_span_count(x->dim, axis, x->rank);

        for (int64_t o = 0; o < outer; o++)
            copy((double *)out->data + o * row + start,
                 (const double *)x->data + o * width, width);
        start += width;
    }
    return GX_OK;
}

/* Of x only the slice is read. */
static double slice_bytes(const gx_graph *graph, const gx_node *node)
{
    const gx_value *out = &graph->values[node->arg[GX_SLICE_OUT]];

    return 2 * gx_elements(graph, node, GX_SLICE_OUT) *
           (double)gx_dtype_bytes(out->dtype);
}

const gx_op gx_slice_ops[] = {
    {
        .name = "slice",
        .summary = "a part of an axis",
        .formula = "out[.., i, ..] = x[.., start + i step, ..]",
        .fields = slice_fields,
        .phase = GX_PHASE_FORWARD,
        .moves = true,
        .rows = GX_ROWS_KEEP,
        .infer = slice_infer,
        .reference = slice_reference,
        .grad = slice_grad,
        .bytes = slice_bytes,
        .samples = gx_slice_samples,
        .tolerance = { GX_MOVED, GX_MOVED, GX_MOVED, GX_MOVED },
    },
    {
        .name = "slice.bwd",
        .summary = "derivative of slice",
        .formula = "dx[.., start + i step, ..] = dy[.., i, ..], 0 elsewhere",
        .fields = slice_bwd_fields,
        .phase = GX_PHASE_BACKWARD,
        .moves = true,
        .infer = slice_bwd_infer,
        .reference = slice_bwd_reference,
        .grad = slice_bwd_grad,
        .samples = gx_slice_bwd_samples,
        .tolerance = { GX_MOVED, GX_MOVED, GX_MOVED, GX_MOVED },
    },
    {
        .name = "concat",
        .summary = "tensors one after the other along an axis",
        .formula = "out = [x.0, x.1, ...] along axis",
        .fields = concat_fields,
        .phase = GX_PHASE_FORWARD,
        .moves = true,
        .rows = GX_ROWS_ALONG,
        .infer = concat_infer,
        .reference = concat_reference,
        .grad = concat_grad,
        .samples = gx_concat_samples,
        .tolerance = { GX_MOVED, GX_MOVED, GX_MOVED, GX_MOVED },
    },
    { 0 },
};
