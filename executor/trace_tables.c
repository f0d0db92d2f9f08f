/* Device time by name, and by range. */
#include <stdlib.h>
#include <string.h>

#include "trace_model.h"

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

/* One counted activity: what it is grouped by, and its time. */
typedef struct item {
    uint64_t major, minor;
    int64_t ns;
    int32_t activity;
} item;

static int compare_items(const void *left, const void *right)
{
    const item *const a = left;
    const item *const b = right;
    int order = COMPARE(a->major, b->major);

    if (order == 0)
        order = COMPARE(a->minor, b->minor);
    if (order == 0)
        order = COMPARE(a->ns, b->ns);
    return order != 0 ? order : COMPARE(a->activity, b->activity);
}

static size_t group_end(const item *items, size_t n, size_t first)
{
    size_t end = first + 1;

    while (end < n && items[end].major == items[first].major &&
           items[end].minor == items[first].minor)
        end++;
    return end;
}

static size_t count_groups(const item *items, size_t n)
{
    size_t groups = 0;

    for (size_t i = 0; i < n; i = group_end(items, n, i))
        groups++;
    return groups;
}

static int compare_ops(const void *left, const void *right)
{
    const gx_trace_op *const a = left;
    const gx_trace_op *const b = right;
    int order = COMPARE(b->share.ns, a->share.ns);

    if (order == 0)
        order = COMPARE(b->share.n, a->share.n);
    return order != 0 ? order : COMPARE(a->name, b->name);
}

/* Of items in order of their times. */
static gx_trace_op make_op(const gx_trace *trace, const item *items, size_t n)
{
    const gx_trace_activity *const example = &trace->activities[items[0].activity];
    const size_t middle = n / 2;
    gx_trace_op op = { .kind = example->kind,
                       .name = example->name,
                       .least_ns = items[0].ns,
                       .most_ns = items[n - 1].ns,
                       .p95_ns = items[(n * 95 + 99) / 100 - 1].ns,
                       .median_ns = items[middle].ns,
                       .example = items[0].activity };

    if (n % 2 == 0)
        op.median_ns =
            items[middle - 1].ns + (items[middle].ns - items[middle - 1].ns) / 2;
    for (size_t i = 0; i < n; i++)
        gx_trace_share_add(&op.share, items[i].ns);
    return op;
}

static int64_t length_of(const gx_trace_activity *activity)
{
    return activity->end - activity->start;
}

gx_status gx_trace_op_table(const gx_trace *trace, const bool *counted,
                            gx_trace_figures *figures, gx_error *err)
{
    item *items = calloc(trace->n_activities + 1, sizeof *items);
    size_t n = 0;
    gx_status st = GX_OK;

    if (!items)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the ops of a trace");
    for (size_t i = 0; i < trace->n_activities; i++)
        if (!counted || counted[i])
            items[n++] =
                (item){ (uint64_t)trace->activities[i].kind, trace->activities[i].name,
                        length_of(&trace->activities[i]), (int32_t)i };
    if (n)
        qsort(items, n, sizeof *items, compare_items);
    figures->op = calloc(count_groups(items, n) + 1, sizeof *figures->op);
    if (!figures->op)
        st = GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the ops of a trace");
    for (size_t i = 0, end; figures->op && i < n; i = end) {
        end = group_end(items, n, i);
        figures->op[figures->n_ops++] = make_op(trace, items + i, end - i);
    }
    if (figures->n_ops)
        qsort(figures->op, figures->n_ops, sizeof *figures->op, compare_ops);
    free(items);
    return st;
}

static int compare_range_sums(const void *left, const void *right)
{
    const gx_trace_range_sum *const a = left;
    const gx_trace_range_sum *const b = right;
    int order = COMPARE(b->share.ns, a->share.ns);

    if (order == 0)
        order = COMPARE(a->domain, b->domain);
    return order != 0 ? order : COMPARE(a->name, b->name);
}

gx_status gx_trace_range_table(const gx_trace *trace, const bool *counted,
                               gx_trace_figures *figures, gx_error *err)
{
    item *items = calloc(trace->n_activities + 1, sizeof *items);
    size_t n = 0;
    gx_status st = GX_OK;

    if (!items)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the ranges of a trace");
    for (size_t i = 0; i < trace->n_activities; i++) {
        const gx_trace_activity *const activity = &trace->activities[i];

        if (counted && !counted[i])
            continue;
        gx_trace_share_add(&figures->by[activity->by], length_of(activity));
        if (trace->before_window[i])
            gx_trace_share_add(&figures->nodes_before_window, length_of(activity));
        if (activity->range != GX_TRACE_NONE)
            items[n++] = (item){ trace->ranges[activity->range].domain,
                                 trace->ranges[activity->range].name, length_of(activity),
                                 (int32_t)i };
    }
    if (n)
        qsort(items, n, sizeof *items, compare_items);
    figures->range = calloc(count_groups(items, n) + 1, sizeof *figures->range);
    if (!figures->range)
        st = GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the ranges of a trace");
    for (size_t i = 0, end; figures->range && i < n; i = end) {
        gx_trace_range_sum *const sum = &figures->range[figures->n_ranges++];

        end = group_end(items, n, i);
        sum->domain = (uint32_t)items[i].major;
        sum->name = (uint32_t)items[i].minor;
        sum->by = trace->activities[items[i].activity].by;
        for (size_t j = i; j < end; j++) {
            gx_trace_share_add(&sum->share, items[j].ns);
            if (trace->activities[items[j].activity].by != sum->by)
                sum->by = GX_TRACE_BY_NONE;
        }
    }
    if (figures->n_ranges)
        qsort(figures->range, figures->n_ranges, sizeof *figures->range,
              compare_range_sums);
    free(items);
    return st;
}
