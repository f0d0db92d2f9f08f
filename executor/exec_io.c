/* Values in and out of a program: write, bind, read, fetch, the log. */
#include <stdlib.h>
#include <string.h>

#include "exec_cuda.h"
#include "feed.h"
#include "need.h"
#include "resolve.h"

static bool on_cpu(const gx_exec *exec)
{
    return exec->device->ordinal == GX_CPU;
}

/* --- names and shapes --- */

/* The index of a named value, or an error with the nearest name. */
static gx_status find(const gx_exec *exec, const char *name, int32_t *id, gx_error *err)
{
    const gx_graph *graph = exec->plan->graph;

    GX_TRY(gx_need(name, "name of a tensor", err));
    *id = gx_graph_value_id(graph, name);
    if (*id >= 0)
        return GX_OK;
    const char **names = malloc((graph->n_values + 1) * sizeof *names);
    if (!names)
        return GX_FAIL(err, GX_ERR_MEMORY, "no memory to look for '%s'", name);
    for (size_t i = 0; i < graph->n_values; i++)
        names[i] = graph->values[i].name;
    const char *nearest = gx_nearest(name, names, graph->n_values);
    free(names);
    return GX_FAIL(err, GX_ERR_ARGUMENT, "no tensor is named '%s'%s%s%s", name,
                   nearest ? "; the nearest is '" : "", nearest ? nearest : "",
                   nearest ? "'" : "");
}

static gx_status find_input(const gx_exec *exec, const char *name, int32_t *id,
                            gx_error *err)
{
    GX_TRY(find(exec, name, id, err));
    const gx_value *value = &exec->plan->graph->values[*id];
    if (value->kind != GX_VALUE_INPUT)
        return GX_FAIL(err, GX_ERR_ARGUMENT, "'%s' is no input of the model", name);
    if (value->fed)
        return GX_FAIL(err, GX_ERR_STATE, "input '%s' is fed from the model's data",
                       name);
    return GX_OK;
}

static void now_given(gx_exec *exec, int32_t id)
{
    exec->n_missing -= exec->missing[id];
    exec->missing[id] = false;
}

/* --- in --- */

static gx_status write_gpu(gx_exec *exec, const gx_value *value, void *to,
                           const gx_tensor *host, gx_error *err)
{
    const int64_t n = gx_count(host);
    const size_t bytes = (size_t)n * gx_dtype_bytes(value->dtype);
    gx_staging *staging = NULL;

    GX_TRY(gx_exec_cuda_stage(exec, bytes, &staging, err));
    if (host->dtype == value->dtype)
        memcpy(staging->memory, host->data, bytes);
    else
        GX_TRY(gx_device_convert(staging->memory, value->dtype, host->data, host->dtype,
                                 n, err));
    return gx_exec_cuda_send(exec, staging, to, bytes, err);
}

static gx_status write_input(gx_exec *exec, const char *name, const gx_tensor *host,
                             gx_error *err)
{
    int32_t id = -1;

    GX_TRY(find_input(exec, name, &id, err));
    const gx_value *value = &exec->plan->graph->values[id];
    void *to = exec->value_data[id];
    GX_TRY(gx_check_host(value->name, value->dtype, value->rank, value->dim, host, true,
                         err));
    if (value->index_limit > 0)
        GX_TRY(
            gx_check_indices(host, value->index_limit, value->index_ignored, name, err));
    /* An input that no op reads has no memory. */
    if (to && gx_count(host) > 0) {
        if (on_cpu(exec))
            GX_TRY(gx_device_put(exec->device, to, value->dtype, host->data, host->dtype,
                                 gx_count(host), exec->state->exact, err));
        else
            GX_TRY(write_gpu(exec, value, to, host, err));
    }
    now_given(exec, id);
    return GX_OK;
}

gx_status gx_exec_write(gx_exec *exec, const char *input, const gx_tensor *host,
                        gx_error *err)
{
    gx_error own;
    int previous = 0;

    err = gx_error_start(err, &own);
    GX_TRY(gx_exec_enter(exec, &previous, err));
    const gx_status st = write_input(exec, input, host, err);
    return gx_exec_leave(exec, previous, st, err);
}

/* What is under way still reads the old memory. The units stay prepared: what prepare
 * leaves depends on an operand's alignment, not on its address, which a launch is given.
 */
static gx_status rebind(gx_exec *exec, int32_t id, void *data, gx_error *err)
{
    if (!on_cpu(exec))
        GX_TRY(gx_exec_cuda_deliver(exec, err));
    gx_capture_drop(exec);
    for (int32_t i = 0; i < (int32_t)exec->plan->graph->n_values; i++) {
        if (exec->plan->home[i] != id) /* the input itself, and its views */
            continue;
        exec->value_data[i] = data;
        gx_exec_point(exec, i);
    }
    return GX_OK;
}

static gx_status bind_input(gx_exec *exec, const char *name, void *data, gx_error *err)
{
    int32_t id = -1;

    GX_TRY(find_input(exec, name, &id, err));
    if (!data || (uintptr_t)data % GX_ALIGNMENT != 0)
        return GX_FAIL(
            err, GX_ERR_ARGUMENT,
            "'%s' cannot live at %p: device memory aligned to %d bytes is expected", name,
            data, (int)GX_ALIGNMENT);
    if (exec->value_data[id] && exec->value_data[id] != data)
        GX_TRY(rebind(exec, id, data, err));
    now_given(exec, id);
    return GX_OK;
}

gx_status gx_exec_bind(gx_exec *exec, const char *input, void *device_data, gx_error *err)
{
    gx_error own;
    int previous = 0;

    err = gx_error_start(err, &own);
    GX_TRY(gx_exec_enter(exec, &previous, err));
    const gx_status st = bind_input(exec, input, device_data, err);
    return gx_exec_leave(exec, previous, st, err);
}

/* --- out --- */

/* Where a readable value lives, and how it looks. */
static gx_status find_readable(const gx_exec *exec, const char *name,
                               const gx_value **value, const void **data, gx_error *err)
{
    int32_t id = -1;

    GX_TRY(find(exec, name, &id, err));
    *value = &exec->plan->graph->values[id];
    *data = exec->value_data[id];
    const gx_value_kind kind = (*value)->kind;
    if (kind == GX_VALUE_TEMP && !(*value)->is_output)
        return GX_FAIL(err, GX_ERR_ARGUMENT,
                       "'%s' is not kept after a step; name it under outputs", name);
    if (!*data)
        return GX_FAIL(err, GX_ERR_ARGUMENT,
                       "'%s' has no memory: no op reads or writes it", name);
    const gx_value *home = &exec->plan->graph->values[exec->plan->home[id]];
    if (!exec->has_run && (home->kind == GX_VALUE_TEMP || home->fed))
        return GX_FAIL(err, GX_ERR_STATE,
                       "'%s' has no values yet: this program has run no step", name);
    return GX_OK;
}

static gx_status read_value(gx_exec *exec, const char *name, gx_tensor *host,
                            gx_error *err)
{
    const gx_value *value = NULL;
    const void *data = NULL;

    /* A persistent tensor need not be named by this program's graph. */
    if (name && gx_state_find(exec->state, name))
        return gx_state_read(exec->state, name, host, err);
    GX_TRY(find_readable(exec, name, &value, &data, err));
    GX_TRY(gx_check_host(value->name, value->dtype, value->rank, value->dim, host, true,
                         err));
    return gx_device_get(exec->device, host->data, host->dtype, data, value->dtype,
                         gx_count(host), err);
}

gx_status gx_exec_read(gx_exec *exec, const char *name, gx_tensor *host, gx_error *err)
{
    gx_error own;
    int previous = 0;

    err = gx_error_start(err, &own);
    GX_TRY(gx_exec_enter(exec, &previous, err));
    const gx_status st = read_value(exec, name, host, err);
    return gx_exec_leave(exec, previous, st, err);
}

static gx_status fetch_value(gx_exec *exec, const char *name, gx_tensor *host,
                             gx_error *err)
{
    const gx_value *value = NULL;
    const void *data = NULL;

    GX_TRY(find_readable(exec, name, &value, &data, err));
    GX_TRY(gx_check_host(value->name, value->dtype, value->rank, value->dim, host, false,
                         err));
    if (gx_count(host) == 0)
        return GX_OK;
    if (on_cpu(exec)) /* steps have run when they are submitted */
        return gx_device_get(exec->device, host->data, host->dtype, data, value->dtype,
                             gx_count(host), err);
    GX_TRY(gx_exec_cuda_fetch(exec, host->data, data,
                              (size_t)gx_count(host) * gx_dtype_bytes(value->dtype),
                              err));
    return exec->feed && value->fed ? gx_feed_cuda_read(exec, err) : GX_OK;
}

gx_status gx_exec_fetch(gx_exec *exec, const char *name, gx_tensor *host, gx_error *err)
{
    gx_error own;
    int previous = 0;

    err = gx_error_start(err, &own);
    GX_TRY(gx_exec_enter(exec, &previous, err));
    const gx_status st = fetch_value(exec, name, host, err);
    return gx_exec_leave(exec, previous, st, err);
}

/* --- the log --- */

/* Rows [first, first + n) of the log, which do not wrap, into `rows` of n_columns each.
 */
static gx_status read_rows(gx_exec *exec, const gx_entry *log, int64_t first, int64_t n,
                           size_t n_columns, double *rows, gx_error *err)
{
    const size_t width = (size_t)log->dim[1];
    const size_t row_bytes = width * gx_device_element_bytes(exec->device, log->dtype);
    const char *from = (const char *)log->data + (size_t)first * row_bytes;

    if (n == 0)
        return GX_OK;
    double *whole = malloc((size_t)n * width * sizeof *whole);
    if (!whole)
        return GX_FAIL(err, GX_ERR_MEMORY, "no memory for %lld rows of the log",
                       (long long)n);
    const gx_status st = gx_device_get(exec->device, whole, GX_F64, from, log->dtype,
                                       n * (int64_t)width, err);
    for (size_t i = 0; i < (size_t)n && st == GX_OK; i++)
        memcpy(rows + i * n_columns, whole + i * width, n_columns * sizeof *rows);
    free(whole);
    return st;
}

static gx_status read_log(gx_exec *exec, int64_t n_rows, double *rows, gx_error *err)
{
    const gx_graph *graph = exec->plan->graph;
    const bool train = graph->kind == GX_TRAIN;
    const gx_entry *log = gx_state_find(exec->state, train ? GX_STATE_LOG : GX_EVAL_LOG);
    const gx_entry *step =
        gx_state_find(exec->state, train ? GX_STATE_STEP : GX_EVAL_STEP);
    int32_t n_steps = 0;

    if (n_rows < 0 || n_rows > GX_LOG_ROWS)
        return GX_FAIL(err, GX_ERR_ARGUMENT, "%lld rows of the log, expected 0 to %d",
                       (long long)n_rows, (int)GX_LOG_ROWS);
    if (n_rows > 0)
        GX_TRY(gx_need_place(rows, "rows of the log", err));
    if (!log || !step || graph->n_logged == 0)
        return GX_FAIL(err, GX_ERR_STATE,
                       "the model logs nothing: it has no loss, no metric "
                       "and no scalar output");
    GX_TRY(
        gx_device_get(exec->device, &n_steps, GX_I32, step->data, step->dtype, 1, err));
    if (n_rows > n_steps)
        return GX_FAIL(err, GX_ERR_STATE, "%lld rows of the log after %d steps",
                       (long long)n_rows, (int)n_steps);
    const int64_t from =
        exec->state->progress[train ? GX_PART_TRAIN : GX_PART_HELD].log_from;
    if (n_rows > n_steps - from)
        return GX_FAIL(err, GX_ERR_STATE,
                       "%lld rows of the log after %lld steps: %s was written as %lld",
                       (long long)n_rows, (long long)(n_steps - from), step->name,
                       (long long)from);

    if (n_rows == 0)
        return GX_OK;
    /* Step s stands in row s % rows; the oldest wanted row may stand behind the newest.
     */
    const int64_t size = log->dim[0];
    const int64_t first = (n_steps - n_rows) % size;
    const int64_t before_wrap = n_rows < size - first ? n_rows : size - first;
    GX_TRY(read_rows(exec, log, first, before_wrap, graph->n_logged, rows, err));
    return read_rows(exec, log, 0, n_rows - before_wrap, graph->n_logged,
                     rows + (size_t)before_wrap * graph->n_logged, err);
}

gx_status gx_exec_log(gx_exec *exec, int64_t n_rows, double *rows, gx_error *err)
{
    gx_error own;
    int previous = 0;

    err = gx_error_start(err, &own);
    GX_TRY(gx_exec_enter(exec, &previous, err));
    const gx_status st = read_log(exec, n_rows, rows, err);
    return gx_exec_leave(exec, previous, st, err);
}
