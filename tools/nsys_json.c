/* The figures of traces as JSON, and their gaps as CSV. */
#include <string.h>

#include "json_out.h"
#include "lines_out.h"
#include "nsys_report.h"

enum { SCHEMA = 2 };

static void put_share(gx_json *json, const char *key, gx_trace_share share)
{
    gx_json_object(json, key);
    gx_json_integer(json, "n", share.n);
    gx_json_integer(json, "ns", share.ns);
    gx_json_end(json);
}

static void put_gap(gx_json *json, const gx_trace *trace, const gx_trace_gap *gap)
{
    size_t n;
    const gx_trace_activity *const activities = gx_trace_activities(trace, &n);

    gx_json_object(json, NULL);
    gx_json_integer(json, "start_ns", gap->start);
    gx_json_integer(json, "ns", gap->end - gap->start);
    gx_json_text(json, "class", gx_gap_class_name(gap->type));
    gx_json_bool(json, "between_steps", gap->between_steps);
    gx_json_text(json, "after", gx_trace_text_at(trace, activities[gap->before].name));
    gx_json_text(json, "before", gx_trace_text_at(trace, activities[gap->after].name));
    gx_json_end(json);
}

static void put_streams(gx_json *json, const gx_trace_device *device)
{
    gx_json_array(json, "streams");
    for (size_t i = 0; i < device->n_streams; i++) {
        gx_json_object(json, NULL);
        gx_json_integer(json, "stream", device->stream[i].stream);
        gx_json_integer(json, "kernels", device->stream[i].n_kernels);
        if (device->stream[i].median_ns == GX_TRACE_NONE)
            gx_json_text(json, "median_distance_ns", NULL);
        else
            gx_json_integer(json, "median_distance_ns", device->stream[i].median_ns);
        gx_json_end(json);
    }
    gx_json_end(json);
}

static void put_device(gx_json *json, const gx_trace_file *file,
                       const gx_trace_device *device)
{
    const int64_t pid = gx_trace_file_pid(file, device->process);

    gx_json_object(json, NULL);
    gx_json_integer(json, "device", device->device);
    gx_json_text(json, "name", gx_nsys_gpu_name(file, device->device));
    if (pid != GX_TRACE_NONE)
        gx_json_integer(json, "process", pid);
    for (int k = 0; k < GX_TRACE_KINDS; k++)
        put_share(json, gx_nsys_kind_name((gx_trace_kind)k), device->kind[k]);
    gx_json_integer(json, "start_ns", device->start);
    gx_json_integer(json, "span_ns", device->span);
    gx_json_integer(json, "busy_ns", device->busy);
    gx_json_integer(json, "idle_ns", device->idle);
    gx_json_integer(json, "n_gaps", (int64_t)device->n_gaps);
    gx_json_object(json, "gaps");
    for (int c = 0; c < GX_GAP_CLASSES; c++)
        put_share(json, gx_gap_class_name((gx_gap_class)c), device->gaps[c]);
    gx_json_end(json);
    gx_json_object(json, "step_gaps");
    for (int c = 0; c < GX_GAP_CLASSES; c++)
        put_share(json, gx_gap_class_name((gx_gap_class)c), device->step_gaps[c]);
    gx_json_end(json);
    gx_json_array(json, "largest_gaps");
    for (size_t i = 0; i < device->n_largest; i++)
        put_gap(json, file->trace, &device->gap[device->largest[i]]);
    gx_json_end(json);
    put_streams(json, device);
    gx_json_end(json);
}

static void put_lines(gx_json *json, const char *key, const gx_lines *lines)
{
    gx_json_array(json, key);
    for (size_t i = 0; i < lines->n; i++)
        gx_json_text(json, NULL, lines->items[i]);
    gx_json_end(json);
}

static void put_op(gx_json *json, const gx_trace *trace, const gx_trace_op *op)
{
    size_t n;
    const gx_trace_activity *const example = &gx_trace_activities(trace, &n)[op->example];

    gx_json_object(json, NULL);
    gx_json_text(json, "name", gx_trace_text_at(trace, op->name));
    gx_json_text(json, "kind", gx_nsys_kind_name(op->kind));
    gx_json_integer(json, "n", op->share.n);
    gx_json_integer(json, "ns", op->share.ns);
    gx_json_integer(json, "median_ns", op->median_ns);
    gx_json_integer(json, "p95_ns", op->p95_ns);
    gx_json_integer(json, "least_ns", op->least_ns);
    gx_json_integer(json, "most_ns", op->most_ns);
    if (op->kind == GX_TRACE_KERNEL) {
        gx_json_array(json, "grid");
        for (int i = 0; i < 3; i++)
            gx_json_integer(json, NULL, example->grid[i]);
        gx_json_end(json);
        gx_json_array(json, "block");
        for (int i = 0; i < 3; i++)
            gx_json_integer(json, NULL, example->block[i]);
        gx_json_end(json);
        gx_json_figure(json, "registers", example->registers);
        gx_json_figure(json, "shared_bytes", (double)example->shared_bytes);
    }
    gx_json_end(json);
}

static void put_tables(gx_json *json, const gx_nsys_report *report)
{
    const gx_trace_figures *const figures = report->figures;
    const gx_trace *const trace = report->file.trace;

    gx_json_array(json, "ops");
    for (size_t i = 0; i < figures->n_ops; i++)
        put_op(json, trace, &figures->op[i]);
    gx_json_end(json);
    gx_json_array(json, "ranges");
    for (size_t i = 0; i < figures->n_ranges; i++) {
        const gx_trace_range_sum *const range = &figures->range[i];

        gx_json_object(json, NULL);
        gx_json_text(json, "name", gx_trace_text_at(trace, range->name));
        gx_json_text(json, "domain", gx_trace_text_at(trace, range->domain));
        gx_json_text(json, "by",
                     range->by == GX_TRACE_BY_NONE ? "several"
                                                   : gx_nsys_by_name(range->by));
        gx_json_integer(json, "n", range->share.n);
        gx_json_integer(json, "ns", range->share.ns);
        gx_json_end(json);
    }
    gx_json_end(json);
    gx_json_object(json, "attributed");
    for (int b = 0; b < GX_TRACE_BYS; b++)
        put_share(json, gx_nsys_by_name((gx_trace_by)b), figures->by[b]);
    gx_json_end(json);
    put_share(json, "nodes_before_window", figures->nodes_before_window);
}

static void put_calls(gx_json *json, const gx_trace_figures *figures)
{
    gx_json_object(json, "calls");
    for (int k = 0; k < GX_TRACE_CALL_KINDS; k++) {
        gx_json_object(json, gx_nsys_call_name((gx_trace_call_kind)k));
        gx_json_integer(json, "n", figures->calls[k].n);
        gx_json_integer(json, "ns", figures->calls[k].ns);
        if (k != GX_TRACE_CALL_OTHER)
            gx_json_integer(json, "without_work", figures->calls_without_work[k]);
        gx_json_end(json);
    }
    gx_json_end(json);
}

static void put_report(gx_json *json, const gx_nsys_report *report)
{
    static const char *const modes[] = { NULL, "graph", "node" };
    const gx_trace_file *const file = &report->file;
    const gx_trace_figures *const figures = report->figures;
    const gx_trace_dropped dropped = gx_trace_dropped_get(file->trace);

    gx_json_object(json, NULL);
    gx_json_text(json, "path", file->path);
    gx_json_text(json, "format", file->format == GX_TRACE_NSYS ? "nsys" : "kineto");
    gx_json_text(json, "version", file->version[0] ? file->version : NULL);
    gx_json_text(json, "schema", file->schema[0] ? file->schema : NULL);
    gx_json_text(json, "graph_trace", modes[file->graph_mode]);
    gx_json_bool(json, "whole_graphs", gx_nsys_is_whole_graph(report));
    gx_json_integer(json, "n_steps", figures->n_steps);
    gx_json_text(json, "within",
                 figures->within ? gx_trace_text_at(file->trace, figures->within_name)
                                 : NULL);
    gx_json_array(json, "devices");
    for (size_t i = 0; i < figures->n_devices; i++)
        put_device(json, file, &figures->device[i]);
    gx_json_end(json);
    if (gx_nsys_has_calls(report))
        put_calls(json, figures);
    else
        gx_json_text(json, "calls", NULL);
    put_tables(json, report);
    gx_nsys_put_prediction(json, &report->predicted, file);
    gx_json_object(json, "dropped");
    gx_json_integer(json, "no_time", dropped.no_time);
    gx_json_integer(json, "backwards", dropped.backwards);
    gx_json_integer(json, "before_call", dropped.before_call);
    gx_json_end(json);
    put_lines(json, "tables_not_found", &file->absent);
    put_lines(json, "remarks", &file->remarks);
    gx_json_end(json);
}

gx_status gx_nsys_write_json(const gx_nsys_report *reports, size_t n, const char *path,
                             gx_error *err)
{
    gx_json *const json = gx_json_create();
    gx_status st;

    gx_json_object(json, NULL);
    gx_json_integer(json, "gexec_nsys", SCHEMA);
    gx_json_array(json, "traces");
    for (size_t i = 0; i < n; i++)
        put_report(json, &reports[i]);
    gx_json_end(json);
    gx_json_end(json);
    st = gx_json_write(json, path, err);
    gx_json_free(json);
    return st;
}

/* --- CSV --- */

static const char *range_name(const gx_trace *trace, const gx_trace_activity *activity)
{
    size_t n;
    const gx_trace_range *const ranges = gx_trace_ranges(trace, &n);

    return activity->range == GX_TRACE_NONE
               ? ""
               : gx_trace_text_at(trace, ranges[activity->range].name);
}

static void put_side(const gx_trace *trace, const gx_trace_activity *activity, FILE *out)
{
    fputc(',', out);
    gx_lines_quote(gx_trace_text_at(trace, activity->name), out);
    fputc(',', out);
    gx_lines_quote(range_name(trace, activity), out);
}

static void put_gaps(const gx_nsys_report *report, const gx_trace_device *device,
                     FILE *out)
{
    const gx_trace *const trace = report->file.trace;
    const int64_t pid = gx_trace_file_pid(&report->file, device->process);
    size_t n;
    const gx_trace_activity *const activities = gx_trace_activities(trace, &n);

    for (size_t i = 0; i < device->n_gaps; i++) {
        const gx_trace_gap *const gap = &device->gap[i];

        fputc('\n', out);
        gx_lines_quote(report->file.path, out);
        if (pid == GX_TRACE_NONE)
            fputc(',', out);
        else
            fprintf(out, ",%lld", (long long)pid);
        fprintf(out, ",%lld,%lld,%lld,%s,%d", (long long)device->device,
                (long long)gap->start, (long long)(gap->end - gap->start),
                gx_gap_class_name(gap->type), gap->between_steps);
        put_side(trace, &activities[gap->before], out);
        put_side(trace, &activities[gap->after], out);
    }
}

gx_status gx_nsys_write_csv(const gx_nsys_report *reports, size_t n, const char *path,
                            gx_error *err)
{
    gx_lines_out lines;

    GX_TRY(gx_lines_begin(&lines, err));
    fputs("file,process,device,start_ns,ns,class,between_steps,after,after_range,before,"
          "before_range",
          lines.out);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < reports[i].figures->n_devices; j++)
            put_gaps(&reports[i], &reports[i].figures->device[j], lines.out);
    return gx_lines_end(&lines, path, err);
}
