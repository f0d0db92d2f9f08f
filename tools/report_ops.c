/* The ops of a report: units of a plan, or, of traces alone, names of kernels. */
#include <stdlib.h>
#include <string.h>

#include "report_page.h"

/* More rows than this no one reads, and joining two traces takes their product. */
enum { MOST_OPS = 1000 };

const gx_profile_pass *gx_report_pass(const gx_report *report, size_t side)
{
    for (size_t i = 0; report->profile && i < 2; i++)
        if (report->profile->pass[i].trace == report->side[side].trace)
            return &report->profile->pass[i];
    return NULL;
}

static gx_report_op *add(gx_report_ops *ops, size_t *capacity, gx_error *err)
{
    if (ops->n == *capacity) {
        const size_t more = 2 * *capacity + 32;
        gx_report_op *const grown = realloc(ops->items, more * sizeof *grown);

        if (!grown) {
            (void)GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
            return NULL;
        }
        ops->items = grown;
        *capacity = more;
    }
    ops->items[ops->n] = (gx_report_op){ .traced = { NULL, NULL } };
    return &ops->items[ops->n++];
}

static gx_report_op *find_profiled(gx_report_ops *ops, const gx_profile_op *op)
{
    for (size_t i = 0; i < ops->n; i++)
        if (ops->items[i].profiled[0] && ops->items[i].profiled[0]->unit == op->unit)
            return &ops->items[i];
    return NULL;
}

static gx_report_op *find_traced(const gx_report *report, gx_report_ops *ops,
                                 const gx_trace_op *op)
{
    const char *const name = gx_trace_text_at(report->side[1].trace, op->name);

    for (size_t i = 0; i < ops->n; i++) {
        const gx_trace_op *const other = ops->items[i].traced[0];

        if (other && other->kind == op->kind &&
            strcmp(gx_trace_text_at(report->side[0].trace, other->name), name) == 0)
            return &ops->items[i];
    }
    return NULL;
}

static gx_status add_profiled(const gx_report *report, size_t side, gx_report_ops *ops,
                              size_t *capacity, gx_error *err)
{
    const gx_profile_pass *const pass = gx_report_pass(report, side);

    for (size_t i = 0; pass && i < pass->n_ops; i++) {
        gx_report_op *op = side ? find_profiled(ops, &pass->op[i]) : NULL;

        if (!op)
            op = add(ops, capacity, err);
        if (!op)
            return GX_ERR_MEMORY;
        op->profiled[side] = &pass->op[i];
    }
    return GX_OK;
}

static gx_status add_traced(const gx_report *report, size_t side, gx_report_ops *ops,
                            size_t *capacity, gx_error *err)
{
    const gx_trace_figures *const figures = report->side[side].figures;
    const size_t n = figures->n_ops < MOST_OPS ? figures->n_ops : MOST_OPS;

    ops->n_left_out += figures->n_ops - n;
    for (size_t i = 0; i < n; i++) {
        gx_report_op *op = side ? find_traced(report, ops, &figures->op[i]) : NULL;

        if (!op)
            op = add(ops, capacity, err);
        if (!op)
            return GX_ERR_MEMORY;
        op->traced[side] = &figures->op[i];
    }
    return GX_OK;
}

gx_status gx_report_ops_of(const gx_report *report, gx_report_ops *ops, gx_error *err)
{
    size_t capacity = 0;

    *ops = (gx_report_ops){ .items = NULL };
    for (size_t i = 0; i < report->n_sides; i++)
        if (report->profile)
            GX_TRY(add_profiled(report, i, ops, &capacity, err));
        else
            GX_TRY(add_traced(report, i, ops, &capacity, err));
    return GX_OK;
}

void gx_report_ops_free(gx_report_ops *ops)
{
    free(ops->items);
    *ops = (gx_report_ops){ .items = NULL };
}

/* --- as JSON --- */

static const char *const kinds[GX_TRACE_KINDS] = { "kernel", "copy", "fill", "graph" };

static void put_dims(gx_json *json, const char *key, const int32_t dim[3])
{
    if (!dim[0]) {
        gx_json_text(json, key, NULL);
        return;
    }
    gx_json_array(json, key);
    for (int i = 0; i < 3; i++)
        gx_json_integer(json, NULL, dim[i]);
    gx_json_end(json);
}

static void put_known(gx_json *json, const char *key, int64_t value)
{
    if (value == GX_TRACE_NONE)
        gx_json_text(json, key, NULL);
    else
        gx_json_integer(json, key, value);
}

static void put_launch(gx_json *json, const int32_t grid[3], const int32_t block[3],
                       int32_t registers, int64_t shared_bytes)
{
    put_dims(json, "grid", grid);
    put_dims(json, "block", block);
    put_known(json, "registers", registers);
    put_known(json, "shared", shared_bytes);
}

static void put_profiled(gx_json *json, const gx_profile_op *op)
{
    static const char *const bounds[] = { NULL, "compute", "memory", "latency" };

    gx_json_integer(json, "calls", op->calls);
    gx_json_integer(json, "total", op->total_ns);
    gx_json_real(json, "share", op->share);
    gx_json_integer(json, "median", op->median_ns);
    gx_json_integer(json, "p95", op->p95_ns);
    gx_json_figure(json, "flops", op->flops);
    gx_json_figure(json, "bytes", op->bytes);
    gx_json_figure(json, "flop_rate", op->flop_rate);
    gx_json_figure(json, "byte_rate", op->byte_rate);
    gx_json_figure(json, "floor", op->floor_s);
    gx_json_figure(json, "of_floor", op->of_floor);
    gx_json_text(json, "bound", bounds[op->bound]);
    gx_json_array(json, "kernels");
    for (size_t i = 0; i < op->n_kernels; i++) {
        const gx_profile_kernel *const kernel = &op->kernel[i];

        gx_json_object(json, NULL);
        gx_json_text(json, "name", kernel->name);
        gx_json_text(json, "kind", kinds[kernel->kind]);
        gx_json_integer(json, "calls", kernel->calls);
        gx_json_integer(json, "total", kernel->total_ns);
        gx_json_integer(json, "median", kernel->median_ns);
        gx_json_integer(json, "p95", kernel->p95_ns);
        put_launch(json, kernel->grid, kernel->block, kernel->registers,
                   kernel->shared_bytes);
        gx_json_end(json);
    }
    gx_json_end(json);
}

static void put_traced(gx_json *json, const gx_report_side *side, const gx_trace_op *op)
{
    size_t n;
    const gx_trace_activity *const example =
        &gx_trace_activities(side->trace, &n)[op->example];
    int64_t all = 0;

    for (int i = 0; i < GX_TRACE_KINDS; i++)
        all += side->figures->kind[i].ns;
    gx_json_integer(json, "calls", op->share.n);
    gx_json_integer(json, "total", op->share.ns);
    gx_json_real(json, "share", all > 0 ? (double)op->share.ns / (double)all : 0);
    gx_json_integer(json, "median", op->median_ns);
    gx_json_integer(json, "p95", op->p95_ns);
    gx_json_array(json, "kernels");
    gx_json_object(json, NULL);
    gx_json_text(json, "name", gx_trace_text_at(side->trace, op->name));
    gx_json_text(json, "kind", kinds[op->kind]);
    put_launch(json, example->grid, example->block, example->registers,
               example->shared_bytes);
    gx_json_end(json);
    gx_json_end(json);
}

static void put_op(gx_json *json, const gx_report *report, const gx_report_op *op)
{
    static const char *const phases[] = { "forward", "backward", "optimizer", "step" };
    const size_t known = op->profiled[0] || op->traced[0] ? 0 : 1;

    gx_json_object(json, NULL);
    if (report->profile) {
        const gx_profile_op *const profiled = op->profiled[known];

        gx_json_text(json, "name", profiled->name);
        gx_json_text(json, "alternative", profiled->alternative);
        /* What no unit claims has no phase. */
        gx_json_text(json, "phase",
                     profiled->unit == SIZE_MAX ? NULL : phases[profiled->phase]);
        gx_json_integer(json, "lane", profiled->lane);
    } else {
        const gx_trace_op *const traced = op->traced[known];

        gx_json_text(json, "name",
                     gx_trace_text_at(report->side[known].trace, traced->name));
        gx_json_text(json, "kind", kinds[traced->kind]);
    }
    gx_json_array(json, "sides");
    for (size_t i = 0; i < report->n_sides; i++) {
        if (!op->profiled[i] && !op->traced[i]) {
            gx_json_text(json, NULL, NULL);
            continue;
        }
        gx_json_object(json, NULL);
        if (report->profile)
            put_profiled(json, op->profiled[i]);
        else
            put_traced(json, &report->side[i], op->traced[i]);
        gx_json_end(json);
    }
    gx_json_end(json);
    gx_json_end(json);
}

void gx_report_put_ops(gx_json *json, const gx_report *report, const gx_report_ops *ops)
{
    gx_json_array(json, "ops");
    for (size_t i = 0; i < ops->n; i++)
        put_op(json, report, &ops->items[i]);
    gx_json_end(json);
    gx_json_integer(json, "ops_left_out", (int64_t)ops->n_left_out);
}
