/* Which nodes an alternative may cover, and what lies between them. */
#include <stdlib.h>
#include <string.h>

#include "builder.h"
#include "plan.h"

static bool is_op(const gx_graph *graph, int32_t node, const char *name)
{
    return strcmp(graph->nodes[node].op->name, name) == 0;
}

static int32_t pattern_length(const gx_alternative *alternative)
{
    int32_t n = 0;

    while (alternative->pattern[n])
        n++;
    return n;
}

/* The op that stands at place i of a group under the alternative; NULL: none may. */
static const char *name_at(const gx_alternative *alternative, int32_t length, int32_t i)
{
    if (i < length)
        return alternative->pattern[i];
    if (alternative->repeat == GX_REPEAT_LAST)
        return alternative->pattern[length - 1];
    return alternative->repeat == GX_REPEAT_ALL ? alternative->pattern[i % length] : NULL;
}

/* How many of at most `most` nodes from `first` on are what the pattern says. */
static int32_t matching(const gx_graph *graph, const gx_alternative *alternative,
                        int32_t first, int32_t most)
{
    const int32_t length = pattern_length(alternative);
    const int32_t left = (int32_t)graph->n_nodes - first;
    int32_t n = 0;

    while (n < most && n < left) {
        const char *name = name_at(alternative, length, n);

        if (!name || !is_op(graph, first + n, name))
            break;
        n++;
    }
    return n;
}

static bool matches_once(const gx_graph *graph, const gx_alternative *alternative,
                         int32_t first, int32_t length)
{
    if (first < 0 || first + length > (int32_t)graph->n_nodes)
        return false;
    for (int32_t i = 0; i < length; i++) {
        if (!is_op(graph, first + i, alternative->pattern[i]))
            return false;
    }
    return true;
}

/* Both runs of GX_REPEAT_BOTH, whole; 0: they do not stand there. */
static int32_t both_runs(const gx_graph *graph, const gx_alternative *alternative,
                         int32_t first)
{
    const int32_t length = pattern_length(alternative) - 1;
    const char *last = alternative->pattern[length];
    int32_t n_repeats = 0, at = first;

    if (matches_once(graph, alternative, first - length, length))
        return 0;
    for (; matches_once(graph, alternative, at, length); at += length)
        n_repeats++;
    if (n_repeats == 0 || n_repeats > GX_MAX_REPEATS || at >= (int32_t)graph->n_nodes ||
        !is_op(graph, at, last))
        return 0;
    while (at < (int32_t)graph->n_nodes && is_op(graph, at, last))
        at++;
    return at - first;
}

bool gx_match_pattern(const gx_graph *graph, const gx_alternative *alternative,
                      int32_t first, int32_t n)
{
    const int32_t length = pattern_length(alternative);

    if (alternative->repeat == GX_REPEAT_BOTH)
        return first >= 0 && n > 0 && both_runs(graph, alternative, first) == n;
    if (first < 0 || n < length || n < 1 ||
        (alternative->repeat == GX_REPEAT_ALL && (n % length != 0 || n == length)))
        return false;
    return matching(graph, alternative, first, n) == n;
}

/* As many whole patterns as one group takes. */
static int32_t taken_patterns(const gx_graph *graph, const gx_alternative *alternative,
                              int32_t first)
{
    const int32_t length = pattern_length(alternative);
    const int32_t n =
        matching(graph, alternative, first, length * GX_MAX_REPEATS) / length;
    gx_call *calls;
    int taken;

    if (n < 2)
        return 0;
    calls = malloc((size_t)(n * length) * sizeof *calls);
    if (!calls)
        return 0; /* it is one way of several */
    gx_match_calls(graph, first, n * length, calls);
    taken =
        alternative->takes(&(gx_group){ .n_calls = (int)(n * length), .call = calls });
    free(calls);
    return taken < 2 ? 0 : taken * length;
}

int32_t gx_match_length(const gx_graph *graph, const gx_alternative *alternative,
                        int32_t first)
{
    const int32_t length = pattern_length(alternative);

    if (alternative->repeat == GX_REPEAT_ALL)
        return taken_patterns(graph, alternative, first);
    if (alternative->repeat == GX_REPEAT_BOTH)
        return both_runs(graph, alternative, first);
    if (!gx_match_pattern(graph, alternative, first, length))
        return 0;
    if (alternative->repeat == GX_ONCE)
        return length;
    /* In the middle of a run the same run would match again, shorter. */
    if (length == 1 && first > 0 && is_op(graph, first - 1, alternative->pattern[0]))
        return 0;
    return matching(graph, alternative, first, INT32_MAX);
}

int32_t gx_match_shorter(const gx_alternative *alternative, int32_t n)
{
    const int32_t length = pattern_length(alternative);

    return alternative->repeat == GX_REPEAT_ALL && n >= 3 * length ? n - length : 0;
}

bool gx_match_covers(const gx_graph *graph, const gx_alternative *alternative,
                     int32_t first, int32_t n)
{
    if (alternative->repeat != GX_REPEAT_ALL)
        return gx_match_length(graph, alternative, first) == n;
    return gx_match_pattern(graph, alternative, first, n) &&
           n <= gx_match_length(graph, alternative, first);
}

static gx_tensor operand(const gx_graph *graph, int32_t id)
{
    gx_tensor tensor = { .rank = -1 };

    if (id < 0)
        return tensor;
    const gx_value *value = &graph->values[id];

    tensor.dtype = value->dtype;
    tensor.rank = value->rank;
    memcpy(tensor.dim, value->dim, sizeof tensor.dim);
    tensor.data = (void *)((uintptr_t)id + 1);
    return tensor;
}

/* Products alone read it, which may round it so; and most do, but for ties. */
static bool is_to_tf32(const gx_graph *graph, int32_t id)
{
    const gx_value *value = id >= 0 ? &graph->values[id] : NULL;

    return graph->precision == GX_PRECISION_TF32 && value != NULL &&
           value->kind == GX_VALUE_TEMP && !value->is_output && value->dtype == GX_F32 &&
           value->n_readers > 0 && value->n_readers == value->n_products;
}

void gx_match_calls(const gx_graph *graph, int32_t first, int32_t n, gx_call *calls)
{
    for (int32_t i = 0; i < n; i++) {
        const gx_node *node = &graph->nodes[first + i];
        gx_call *call = &calls[i];
        int n_args = 0, n_attrs = 0;

        memset(call, 0, sizeof *call);
        call->op = node->op;
        call->name = node->name;
        call->precision = graph->precision;
        for (const gx_field *field = node->op->fields; field->name; field++) {
            if (gx_is_tensor_field(field)) {
                call->arg[n_args] = operand(graph, node->arg[n_args]);
                if (field->kind == GX_FIELD_OUT && is_to_tf32(graph, node->arg[n_args]))
                    call->to_tf32 |= UINT32_C(1) << n_args;
                n_args++;
            } else {
                call->attr[n_attrs] = node->attr[n_attrs];
                n_attrs++;
            }
        }
        for (; n_args < GX_MAX_ARGS; n_args++)
            call->arg[n_args] = operand(graph, -1);
    }
}

/* How many of the nodes read value `id`. */
static int32_t count_readers(const gx_graph *graph, int32_t first, int32_t n, int32_t id)
{
    int32_t n_readers = 0;

    for (int32_t i = first; i < first + n; i++) {
        const gx_node *node = &graph->nodes[i];
        bool reads = false;
        int arg = 0;

        for (const gx_field *field = node->op->fields; field->name; field++) {
            if (!gx_is_tensor_field(field))
                continue;
            reads |= field->kind != GX_FIELD_OUT && node->arg[arg] == id;
            arg++;
        }
        n_readers += reads;
    }
    return n_readers;
}

void gx_match_elided(const gx_graph *graph, int32_t first, int32_t n, bool *elided)
{
    memset(elided, 0, (size_t)n * GX_MAX_ARGS * sizeof *elided);
    for (int32_t i = 0; i < n; i++) {
        const gx_node *node = &graph->nodes[first + i];
        int arg = -1;

        for (const gx_field *field = node->op->fields; field->name; field++) {
            if (!gx_is_tensor_field(field))
                continue;
            arg++;
            const int32_t id = node->arg[arg];

            if (field->kind != GX_FIELD_OUT || id < 0)
                continue;
            const gx_value *value = &graph->values[id];

            if (value->kind == GX_VALUE_TEMP && !value->is_output &&
                count_readers(graph, first, n, id) == value->n_readers)
                elided[i * GX_MAX_ARGS + arg] = true;
        }
    }
}
