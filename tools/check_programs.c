/* One step of every program against the same step in exact doubles. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "host_tensor.h"
#include "interrupt.h"
#include "remarks.h"

/* --- one start for all --- */

gx_status gx_check_copy_state(gx_check *check, gx_error *err)
{
    const gx_graph *const graph = check->exact.graph[GX_PROGRAM_TRAIN];

    for (size_t i = 0; i < gx_graph_value_count(graph); i++) {
        const gx_value_info value = gx_graph_value(graph, i);
        gx_tensor tensor = { .dtype = GX_F64, .rank = value.rank };
        gx_status st;

        if (value.kind != GX_VALUE_PARAM && value.kind != GX_VALUE_STATE &&
            value.kind != GX_VALUE_DATA)
            continue;
        memcpy(tensor.dim, value.dim, sizeof tensor.dim);
        GX_TRY(gx_host_tensor_alloc(&tensor, err));
        st = gx_state_read(check->rounded.state, value.name, &tensor, err);
        if (st == GX_OK)
            st = gx_state_write(check->exact.state, value.name, &tensor, err);
        free(tensor.data);
        GX_TRY(st);
    }
    return GX_OK;
}

/* Generated and given inputs, rounded, for the exact program as well. */
static gx_status copy_inputs(gx_exec *from, const gx_graph *graph, gx_exec *to,
                             gx_error *err)
{
    for (size_t i = 0; i < gx_graph_value_count(graph); i++) {
        const gx_value_info value = gx_graph_value(graph, i);
        gx_tensor tensor;
        gx_status st;

        if (value.kind != GX_VALUE_INPUT || value.fed)
            continue;
        st = gx_host_tensor_read(from, &value, GX_F64, &tensor, err);
        if (st == GX_ERR_ARGUMENT) { /* no op reads it */
            gx_error_clear(err);
            continue;
        }
        GX_TRY(st);
        st = gx_exec_write(to, value.name, &tensor, err);
        free(tensor.data);
        GX_TRY(st);
    }
    return GX_OK;
}

/* Where an update takes several steps, the step that is checked is the last of them. */
static gx_status go_to_update(const gx_graph *graph, gx_state *state, gx_error *err)
{
    const int64_t n = gx_graph_accumulate(graph);
    int32_t step;
    const gx_tensor counter = { .dtype = GX_I32, .rank = 1, .dim = { 1 }, .data = &step };
    gx_tensor read = counter;

    if (n == 1)
        return GX_OK;
    GX_TRY(gx_state_read(state, "gexec.step", &read, err));
    step += (int32_t)(n - 1 - step % n);
    return gx_state_write(state, "gexec.step", &counter, err);
}

/* The largest rate that a parameter is updated with. */
static gx_status find_rate(gx_check *check, gx_error *err)
{
    const gx_graph *const graph = check->exact.graph[GX_PROGRAM_TRAIN];

    check->rate = gx_graph_rate(graph);
    for (size_t i = 0; i < gx_graph_value_count(graph); i++) {
        const gx_value_info value = gx_graph_value(graph, i);
        double rate = 0;
        gx_tensor cell = { .dtype = GX_F64, .rank = 1, .dim = { 1 }, .data = &rate };

        if (strncmp(value.name, "gexec.lr.", strlen("gexec.lr.")) != 0)
            continue;
        GX_TRY(gx_state_read(check->exact.state, value.name, &cell, err));
        check->rate = fmax(check->rate, rate);
    }
    return GX_OK;
}

/* --- comparing --- */

/* NaN anywhere makes the error NaN, which is within no bound. */
static void compare_tensors(const gx_tensor *found, const gx_tensor *expected,
                            gx_check_row *row)
{
    const int64_t n = gx_count(expected);
    double error = 0, norm = 0;
    bool is_first = true;

    for (int64_t i = 0; i < n; i++) {
        const double a = gx_host_tensor_at(found, i);
        const double r = gx_host_tensor_at(expected, i);
        const double off = fabs(a - r);

        error += off * off;
        norm += r * r;
        row->largest = fmax(row->largest, fabs(r));
        if (is_first || off > row->worst || (off != off && row->worst == row->worst)) {
            row->worst = off;
            row->position = gx_words_position(expected, i);
            row->found = a;
            row->expected = r;
        }
        is_first = false;
    }
    row->error = sqrt(error);
    row->norm = sqrt(norm);
}

static gx_status compare_value(gx_check *check, gx_exec *exec, const char *program,
                               size_t index, const gx_value_info *value, gx_error *err)
{
    gx_check_row *grown = realloc(check->rows, (check->n_rows + 1) * sizeof *grown);
    gx_tensor found = { 0 };
    gx_tensor expected = { 0 };
    gx_status st;

    if (!grown)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    check->rows = grown;
    st = gx_host_tensor_read(exec, value, GX_F64, &found, err);
    if (st == GX_OK)
        st = gx_host_tensor_read(check->reference, value, GX_F64, &expected, err);
    if (st == GX_OK) {
        gx_check_row *const row = &check->rows[check->n_rows++];

        *row = (gx_check_row){ .program = program, .index = index, .value = *value };
        compare_tensors(&found, &expected, row);
        gx_check_judge(check, row);
    }
    free(found.data);
    free(expected.data);
    return st;
}

static gx_status compare_all(gx_check *check, gx_exec *exec, const char *program,
                             gx_error *err)
{
    const gx_graph *const graph = check->exact.graph[GX_PROGRAM_TRAIN];

    for (size_t i = 0; i < gx_graph_value_count(graph) && !gx_interrupted(); i++) {
        const gx_value_info value = gx_graph_value(graph, i);

        if (gx_check_compares(&value))
            GX_TRY(compare_value(check, exec, program, i, &value, err));
    }
    return GX_OK;
}

/* --- the programs --- */

static gx_status load_session(gx_session *session, const gx_args *args, bool exact,
                              bool stream, int device, gx_mode mode, gx_error *err)
{
    return gx_session_load(session, args,
                           &(gx_session_needs){ .keep_gradients = true,
                                                .exact = exact,
                                                .stream = stream,
                                                .no_pin = device == GX_CPU },
                           device, mode, err);
}

static gx_status open_session(gx_session *session, gx_exec **exec, gx_error *err)
{
    GX_TRY(gx_session_open(session, err));
    return gx_session_exec(session, GX_PROGRAM_TRAIN, false, exec, err);
}

/* The programs whose model is looked at before the work; then it is said where they run.
 */
static gx_status load_first(gx_check *check, int device, gx_error *err)
{
    GX_TRY(load_session(&check->rounded, check->args, false, false, GX_CPU, GX_MODE_CPU,
                        err));
    if (device != GX_CPU)
        GX_TRY(load_session(&check->device, check->args, false, false, device,
                            GX_MODE_GRAPH, err));
    gx_session_say(&check->rounded, device == GX_CPU);
    if (device != GX_CPU)
        gx_session_say(&check->device, true);
    return GX_OK;
}

/* Comparisons that are ahead. */
static size_t count_planned(const gx_check *check, bool with_device)
{
    const gx_graph *const graph = check->exact.graph[GX_PROGRAM_TRAIN];
    size_t n = 0;

    for (size_t i = 0; i < gx_graph_value_count(graph); i++) {
        const gx_value_info value = gx_graph_value(graph, i);

        n += gx_check_compares(&value);
    }
    return n * (with_device ? 3 : 1) +
           (check->args->samples ? gx_check_count_gradients(check) : 0);
}

gx_status gx_check_step(gx_exec *exec, gx_mode mode, gx_error *err)
{
    GX_TRY(gx_exec_run(exec, mode, 1, err));
    return gx_exec_sync(exec, err);
}

static gx_status check_device(gx_check *check, gx_exec *rounded, gx_error *err)
{
    gx_snapshot *start = NULL;
    gx_exec *exec;
    gx_status st;

    GX_TRY(open_session(&check->device, &exec, err));
    GX_TRY(go_to_update(check->exact.graph[GX_PROGRAM_TRAIN], check->device.state, err));
    GX_TRY(copy_inputs(rounded, check->exact.graph[GX_PROGRAM_TRAIN], exec, err));
    GX_TRY(gx_state_save(check->device.state, &start, err));
    st = gx_check_step(exec, GX_MODE_EAGER, err);
    if (st == GX_OK)
        st = compare_all(check, exec, "eager", err);
    if (st == GX_OK)
        st = gx_state_restore(check->device.state, start, err);
    if (st == GX_OK)
        st = gx_check_step(exec, GX_MODE_GRAPH, err);
    if (st == GX_OK)
        st = compare_all(check, exec, "graph", err);
    gx_snapshot_free(start);
    return st;
}

gx_status gx_check_programs(gx_check *check, int device, gx_error *err)
{
    gx_snapshot *start = NULL, *rounded_start = NULL;
    gx_exec *rounded;
    gx_status st;

    GX_TRY(load_first(check, device, err));
    GX_TRY(open_session(&check->rounded, &rounded, err));
    /* Rows on the device are copied from one state to the other, those that stream are
     * rounded in both. */
    GX_TRY(load_session(&check->exact, check->args, true, check->rounded.streams, GX_CPU,
                        GX_MODE_CPU, err));
    GX_TRY(open_session(&check->exact, &check->reference, err));
    check->coarsest = gx_check_coarsest(check->exact.graph[GX_PROGRAM_TRAIN]);
    check->n_planned = count_planned(check, device != GX_CPU);
    GX_TRY(go_to_update(check->exact.graph[GX_PROGRAM_TRAIN], check->rounded.state, err));
    GX_TRY(gx_check_copy_state(check, err));
    GX_TRY(find_rate(check, err));
    GX_TRY(copy_inputs(rounded, check->exact.graph[GX_PROGRAM_TRAIN], check->reference,
                       err));
    GX_TRY(gx_state_save(check->exact.state, &start, err));
    st = gx_state_save(check->rounded.state, &rounded_start, err);
    if (st == GX_OK)
        st = gx_check_step(rounded, GX_MODE_CPU, err);
    if (st == GX_OK)
        st = gx_check_step(check->reference, GX_MODE_CPU, err);
    if (st == GX_OK)
        st = compare_all(check, rounded, "cpu", err);
    if (st == GX_OK && device != GX_CPU && !gx_interrupted())
        st = check_device(check, rounded, err);
    if (st == GX_OK && !gx_interrupted())
        st = gx_check_rounding(check, rounded, rounded_start, err);
    /* The differences start where this step did. */
    if (st == GX_OK)
        st = gx_state_restore(check->exact.state, start, err);
    gx_snapshot_free(rounded_start);
    gx_snapshot_free(start);
    return st;
}
