/* How many labels of each row count, for a mean that leaves the others out: what the
 * figures of several steps are weighted by. */
#include <stdlib.h>
#include <string.h>

#include "need.h"
#include "resolve.h"
#include "state.h"

enum { CHUNK_ELEMENTS = 1 << 16 };

struct gx_label_counts {
    gx_label_counts *next;
    const char *input; /* which has the labels */
    int64_t ignored;
    gx_part part;
    int64_t n_rows;
    int64_t of_row[]; /* of the part, in its order */
};

void gx_label_counts_free(gx_state *state)
{
    while (state->label_counts) {
        gx_label_counts *const first = state->label_counts;

        state->label_counts = first->next;
        free(first);
    }
}

/* --- the labels --- */

static void count_chunk(const double *labels, int64_t n_rows, int64_t width,
                        int64_t ignored, int64_t *of_row)
{
    for (int64_t i = 0; i < n_rows; i++) {
        of_row[i] = 0;
        for (int64_t k = 0; k < width; k++)
            of_row[i] += labels[i * width + k] != (double)ignored;
    }
}

/* Rows of `width` labels each that are looked at together. */
static gx_status alloc_chunk(int64_t width, int64_t *n_rows, double **chunk,
                             gx_error *err)
{
    *n_rows = width < CHUNK_ELEMENTS ? CHUNK_ELEMENTS / (width ? width : 1) : 1;
    *chunk = malloc((size_t)(*n_rows * (width ? width : 1)) * sizeof **chunk);
    if (!*chunk)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for labels");
    return GX_OK;
}

/* Of data that stream. */
static gx_status count_in_files(const gx_host_rows *rows, gx_label_counts *counts,
                                gx_error *err)
{
    const gx_host_column *column = gx_host_rows_find(rows, counts->input);
    const int32_t *list = rows->list[counts->part];
    int64_t size;
    double *chunk;
    gx_status st = GX_OK;

    if (!column)
        return GX_FAIL(err, GX_ERR_ARGUMENT, "the state has no rows for '%s'",
                       counts->input);
    GX_TRY(alloc_chunk(column->width, &size, &chunk, err));
    for (int64_t at = 0; at < counts->n_rows && st == GX_OK; at += size) {
        const int64_t n = counts->n_rows - at < size ? counts->n_rows - at : size;

        st = gx_host_rows_gather(rows, column, list + at, n, true, chunk, err);
        if (st == GX_OK)
            count_chunk(chunk, n, column->width, counts->ignored, counts->of_row + at);
    }
    free(chunk);
    return st;
}

/* All rows of a data set on the device. */
static gx_status count_all(const gx_state *state, const gx_entry *labels, int64_t ignored,
                           int64_t *of_row, gx_error *err)
{
    const int64_t n_rows = labels->dim[0];
    const int64_t width = n_rows > 0 ? gx_entry_count(labels) / n_rows : 0;
    const size_t row_bytes =
        (size_t)width * gx_device_element_bytes(state->device, labels->dtype);
    int64_t size;
    double *chunk;
    gx_status st = GX_OK;

    GX_TRY(alloc_chunk(width, &size, &chunk, err));
    for (int64_t at = 0; at < n_rows && st == GX_OK; at += size) {
        const int64_t n = n_rows - at < size ? n_rows - at : size;

        st = gx_device_get(state->device, chunk, GX_F64,
                           (const char *)labels->data + (size_t)at * row_bytes,
                           labels->dtype, n * width, err);
        if (st == GX_OK)
            count_chunk(chunk, n, width, ignored, of_row + at);
    }
    free(chunk);
    return st;
}

static gx_status count_on_device(gx_state *state, gx_label_counts *counts, gx_error *err)
{
    char name[GX_LIMIT_NAME + 8] = "data.";
    const gx_entry *labels,
        *list = gx_state_find(state,
                              counts->part == GX_PART_TRAIN ? "data.train" : "data.held");
    int64_t *of_row;
    int32_t *rows;
    gx_status st;

    strncat(name, counts->input, GX_LIMIT_NAME);
    labels = gx_state_find(state, name);
    if (!labels || !list || gx_entry_count(list) != counts->n_rows)
        return GX_FAIL(err, GX_ERR_ARGUMENT, "the state has no rows for '%s'",
                       counts->input);
    of_row = malloc((size_t)(labels->dim[0] + 1) * sizeof *of_row);
    rows = malloc((size_t)(counts->n_rows + 1) * sizeof *rows);
    st = of_row && rows ? GX_OK
                        : GX_FAIL(err, GX_ERR_MEMORY, "out of memory for %lld rows",
                                  (long long)labels->dim[0]);
    if (st == GX_OK)
        st = count_all(state, labels, counts->ignored, of_row, err);
    if (st == GX_OK)
        st = gx_device_get(state->device, rows, GX_I32, list->data, list->dtype,
                           counts->n_rows, err);
    for (int64_t i = 0; i < counts->n_rows && st == GX_OK; i++)
        counts->of_row[i] = of_row[rows[i]];
    free(of_row);
    free(rows);
    return st;
}

/* --- what is kept of them --- */

static gx_status find_counts(gx_state *state, const char *input, int64_t ignored,
                             const gx_walk *walk, gx_label_counts **found, gx_error *err)
{
    const char *const kept = gx_arena_text(state->arena, input);
    gx_label_counts *made;
    gx_status st;

    for (*found = state->label_counts; *found; *found = (*found)->next)
        if ((*found)->part == walk->part && (*found)->ignored == ignored &&
            strcmp((*found)->input, input) == 0)
            return GX_OK;
    made = malloc(sizeof *made + (size_t)walk->total * sizeof made->of_row[0]);
    if (!made || !kept) {
        free(made);
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for %lld rows",
                       (long long)walk->total);
    }
    *made = (gx_label_counts){
        .input = kept, .ignored = ignored, .part = walk->part, .n_rows = walk->total
    };
    st = state->rows ? count_in_files(state->rows, made, err)
                     : count_on_device(state, made, err);
    if (st != GX_OK) {
        free(made);
        return st;
    }
    made->next = state->label_counts;
    state->label_counts = *found = made;
    return GX_OK;
}

/* --- steps --- */

static gx_status count_steps(gx_state *state, const gx_graph *graph, size_t column,
                             gx_position at, int64_t n_steps, int64_t *counts,
                             gx_error *err)
{
    const gx_counted *counted = &graph->counted[column];
    gx_label_counts *labels;
    gx_walk walk;

    GX_TRY(gx_walk_of(graph, state->seed, &walk, err));
    if (at.sample < 0 || at.sample >= walk.total || at.epoch < 0)
        return GX_FAIL(err, GX_ERR_ARGUMENT,
                       "sample %d of epoch %d is none of the %lld rows", (int)at.sample,
                       (int)at.epoch, (long long)walk.total);
    GX_TRY(find_counts(state, graph->values[counted->labels].name, counted->ignored,
                       &walk, &labels, err));
    for (int64_t i = 0; i < n_steps; i++) {
        counts[i] = 0;
        for (int64_t j = 0; j < walk.batch; j++)
            counts[i] += labels->of_row[gx_walk_place(&walk, walk.total, at, j)];
        gx_walk_advance(&walk, &at);
    }
    return GX_OK;
}

gx_status gx_state_count_labels(gx_state *state, const gx_graph *graph, size_t column,
                                int32_t sample, int32_t epoch, int64_t n_steps,
                                int64_t *counts, gx_error *err)
{
    const gx_position at = { .known = true, .sample = sample, .epoch = epoch };
    int previous;
    gx_status st;

    gx_error_clear(err);
    GX_TRY(gx_need(state, "state", err));
    GX_TRY(gx_need(graph, "graph", err));
    GX_TRY(gx_need_place(counts, "counts", err));
    if (!gx_graph_logged_labels(graph, column) || graph->data.n_columns == 0)
        return GX_FAIL(err, GX_ERR_ARGUMENT,
                       "column %zu of the log leaves out no rows of a data set", column);
    GX_TRY(gx_device_enter(state->device, &previous, err));
    st = count_steps(state, graph, column, at, n_steps, counts, err);
    gx_device_leave(state->device, previous);
    return st;
}
