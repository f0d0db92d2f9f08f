/* The op table: what each unit of the plan had the device do, kernel by kernel. */
#include <stdlib.h>
#include <string.h>

#include "profile_parts.h"

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

/* An activity of a step. */
typedef struct work {
    size_t op;
    const gx_trace_activity *activity;
    int32_t step;
} work;

/* Launches of one name and one shape are one kernel. */
static int compare_kinds(const gx_trace_activity *a, const gx_trace_activity *b)
{
    int order = COMPARE(a->kind, b->kind);

    if (order == 0)
        order = COMPARE(a->name, b->name);
    for (int i = 0; i < 3 && order == 0; i++)
        order = COMPARE(a->grid[i], b->grid[i]);
    for (int i = 0; i < 3 && order == 0; i++)
        order = COMPARE(a->block[i], b->block[i]);
    return order;
}

static int compare_work(const void *left, const void *right)
{
    const work *const a = left;
    const work *const b = right;
    int order = COMPARE(a->op, b->op);

    if (order == 0)
        order = compare_kinds(a->activity, b->activity);
    return order != 0 ? order : COMPARE(a->activity, b->activity);
}

static int64_t length_of(const work *done)
{
    return done->activity->end - done->activity->start;
}

/* Work that no unit claims is an op of its own, behind those of the plan. */
static size_t op_of(const gx_trace_activity *activity, size_t n_units)
{
    return activity->group >= 0 && (size_t)activity->group < n_units
               ? (size_t)activity->group
               : n_units;
}

static size_t collect(const gx_profile_pass *pass, size_t n_units, work *list)
{
    size_t n_activities, n = 0;
    const gx_trace_activity *const activities =
        gx_trace_activities(pass->trace, &n_activities);

    for (size_t i = 0; i < n_activities; i++)
        if (pass->step_of[i] != GX_TRACE_NONE)
            list[n++] = (work){ op_of(&activities[i], n_units), &activities[i],
                                pass->step_of[i] };
    if (n)
        qsort(list, n, sizeof *list, compare_work);
    return n;
}

/* --- kernels --- */

static size_t kernel_end(const work *list, size_t n, size_t first)
{
    size_t end = first + 1;

    while (end < n && compare_kinds(list[first].activity, list[end].activity) == 0)
        end++;
    return end;
}

static gx_status make_kernel(const gx_trace *trace, const work *list, size_t n,
                             int64_t *ns, gx_profile_kernel *kernel, gx_error *err)
{
    const gx_trace_activity *const first = list[0].activity;
    gx_summary summary;

    *kernel = (gx_profile_kernel){ .name = gx_trace_text_at(trace, first->name),
                                   .kind = first->kind,
                                   .calls = (int64_t)n,
                                   .registers = first->registers,
                                   .shared_bytes = first->shared_bytes };
    memcpy(kernel->grid, first->grid, sizeof kernel->grid);
    memcpy(kernel->block, first->block, sizeof kernel->block);
    for (size_t i = 0; i < n; i++) {
        ns[i] = length_of(&list[i]);
        kernel->total_ns += ns[i];
    }
    GX_TRY(gx_profile_summary(ns, n, &summary, err));
    kernel->median_ns = gx_profile_ns(summary.median);
    kernel->p95_ns = gx_profile_ns(summary.p95);
    return GX_OK;
}

static int longest_first(const void *left, const void *right)
{
    const gx_profile_kernel *const a = left;
    const gx_profile_kernel *const b = right;
    int order = COMPARE(b->total_ns, a->total_ns);

    return order != 0 ? order : strcmp(a->name, b->name);
}

static gx_status make_kernels(const gx_trace *trace, const work *list, size_t n,
                              int64_t *ns, gx_profile_op *op, gx_error *err)
{
    for (size_t i = 0; i < n; i = kernel_end(list, n, i))
        op->n_kernels++;
    op->kernel = calloc(op->n_kernels + 1, sizeof *op->kernel);
    if (!op->kernel)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the kernels of a profile");
    for (size_t i = 0, k = 0, end; i < n; i = end, k++) {
        end = kernel_end(list, n, i);
        GX_TRY(make_kernel(trace, list + i, end - i, ns, &op->kernel[k], err));
    }
    if (op->n_kernels)
        qsort(op->kernel, op->n_kernels, sizeof *op->kernel, longest_first);
    return GX_OK;
}

/* --- ops --- */

/* A step's kernels together, over the steps in which there were any. */
static gx_status sum_by_step(const gx_profile_pass *pass, const work *list, size_t n,
                             int64_t *ns, gx_profile_op *op, gx_error *err)
{
    gx_summary summary;
    size_t n_steps = 0;

    for (size_t s = 0; s < pass->n_steps; s++)
        ns[s] = -1;
    for (size_t i = 0; i < n; i++) {
        int64_t *const sum = &ns[list[i].step];

        *sum = (*sum < 0 ? 0 : *sum) + length_of(&list[i]);
        op->total_ns += length_of(&list[i]);
    }
    for (size_t s = 0; s < pass->n_steps; s++)
        if (ns[s] >= 0)
            ns[n_steps++] = ns[s];
    GX_TRY(gx_profile_summary(ns, n_steps, &summary, err));
    op->median_ns = gx_profile_ns(summary.median);
    op->p95_ns = gx_profile_ns(summary.p95);
    return GX_OK;
}

static double per_second(double amount, int64_t ns)
{
    return amount >= 0 && ns > 0 ? amount / ((double)ns * 1e-9) : -1;
}

static void rate_op(gx_profile_op *op, double floor_s)
{
    op->flop_rate = per_second(op->flops, op->median_ns);
    op->byte_rate = per_second(op->bytes, op->median_ns);
    op->floor_s = floor_s;
    op->of_floor =
        floor_s >= 0 && op->median_ns > 0 ? floor_s / ((double)op->median_ns * 1e-9) : -1;
}

static gx_profile_op op_from(const gx_profile_unit *units, size_t n_units, size_t i)
{
    if (i == n_units)
        return (gx_profile_op){ .name = "",
                                .alternative = "",
                                .unit = SIZE_MAX,
                                .lane = GX_TRACE_NONE,
                                .flops = -1,
                                .bytes = -1 };
    return (gx_profile_op){ .name = units[i].name,
                            .alternative = units[i].alternative,
                            .phase = units[i].phase,
                            .lane = units[i].lane,
                            .unit = i,
                            .flops = units[i].flops,
                            .bytes = units[i].bytes,
                            .bound = units[i].bound };
}

static void share_out(gx_profile_pass *pass)
{
    double all = 0;

    for (size_t i = 0; i < pass->n_ops; i++)
        all += (double)pass->op[i].total_ns;
    for (size_t i = 0; i < pass->n_ops; i++)
        pass->op[i].share = all > 0 ? (double)pass->op[i].total_ns / all : 0;
}

static gx_status make_ops(gx_profile_pass *pass, const gx_profile_unit *units,
                          size_t n_units, const work *list, size_t n, int64_t *ns,
                          gx_error *err)
{
    for (size_t i = 0, end, at = 0; i <= n_units; i++, at = end) {
        gx_profile_op *const op = &pass->op[i];

        for (end = at; end < n && list[end].op == i;)
            end++;
        if (i == n_units && end == at)
            break; /* nothing is unclaimed */
        *op = op_from(units, n_units, i);
        pass->n_ops++;
        op->calls = (int64_t)(end - at);
        GX_TRY(make_kernels(pass->trace, list + at, end - at, ns, op, err));
        GX_TRY(sum_by_step(pass, list + at, end - at, ns, op, err));
        rate_op(op, i < n_units ? units[i].floor_s : -1);
    }
    share_out(pass);
    return GX_OK;
}

gx_status gx_profile_ops(gx_profile_pass *pass, const gx_profile_unit *units,
                         size_t n_units, gx_error *err)
{
    size_t n_activities;
    work *list;
    int64_t *ns;
    gx_status st;

    (void)gx_trace_activities(pass->trace, &n_activities);
    list = calloc(n_activities + 1, sizeof *list);
    ns = calloc(n_activities + pass->n_steps + 1, sizeof *ns);
    pass->op = calloc(n_units + 1, sizeof *pass->op);
    if (list && ns && pass->op)
        st = make_ops(pass, units, n_units, list, collect(pass, n_units, list), ns, err);
    else
        st = GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the ops of a profile");
    free(list);
    free(ns);
    return st;
}
