/* A data set in host memory, from which batches are gathered. */
#include "host_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "shuffle.h"
#include "state.h"

enum { CHUNK_ELEMENTS = 1 << 14 };

/* --- what is checked when it is opened --- */

/* An i8 is read as the resident data set reads it: into 32 bits. */
static gx_status check_chunk(const gx_host_column *column, int64_t first, int64_t n,
                             double *chunk, gx_error *err)
{
    gx_tensor file = { .rank = column->rows.head.rank };

    memcpy(file.dim, column->rows.head.dim, sizeof file.dim);
    gx_npy_rows_get(&column->rows, first, n, chunk);
    for (int64_t i = 0; i < n; i++) {
        if (column->rows.head.type != 'f' &&
            !(fabs(chunk[i]) <= 2147483648.0 && chunk[i] < 2147483648.0))
            return GX_FAIL(err, GX_ERR_DATA,
                           "%s: element %lld is %.0f, which does not fit into 32 bits",
                           column->path, (long long)(first + i), chunk[i]);
        if (column->dtype == GX_I32)
            GX_TRY(gx_check_label(gx_scaled(chunk[i], column->scale, column->shift),
                                  column->index_limit, column->index_ignored,
                                  column->index_advice, column->path, &file, first + i,
                                  err));
    }
    return GX_OK;
}

static gx_status check_integers(const gx_host_column *column, gx_error *err)
{
    const gx_npy *head = &column->rows.head;
    const bool wide = head->type != 'f' && head->bytes == 8;
    double *chunk;
    gx_status st = GX_OK;

    if (column->dtype != GX_I32 && !wide)
        return GX_OK;
    chunk = malloc(CHUNK_ELEMENTS * sizeof *chunk);
    if (!chunk)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for data");
    for (int64_t at = 0; at < head->count && st == GX_OK; at += CHUNK_ELEMENTS) {
        const int64_t left = head->count - at;

        st = check_chunk(column, at, left < CHUNK_ELEMENTS ? left : CHUNK_ELEMENTS, chunk,
                         err);
    }
    free(chunk);
    return st;
}

/* The file is looked at anew: it may have changed since the model was read. */
static gx_status check_shape(const gx_host_column *column, const gx_value *input,
                             int64_t n_rows, gx_error *err)
{
    const gx_npy *head = &column->rows.head;
    gx_tensor found = { .rank = head->rank };
    gx_tensor expected = { .rank = input->rank };
    char found_text[128], expected_text[128];

    memcpy(found.dim, head->dim, sizeof found.dim);
    memcpy(expected.dim, input->dim, sizeof expected.dim);
    expected.dim[0] = n_rows;
    if (gx_same_shape(&found, &expected))
        return GX_OK;
    return GX_FAIL(
        err, GX_ERR_SHAPE, "%s: shape %s, but the model has %s for '%s'", column->path,
        gx_shape_text(found.rank, found.dim, found_text, sizeof found_text),
        gx_shape_text(expected.rank, expected.dim, expected_text, sizeof expected_text),
        column->name);
}

/* --- open and free --- */

static gx_status open_column(gx_host_rows *rows, const gx_graph *graph,
                             const gx_data_column *from, const gx_graph *const *graphs,
                             size_t n_graphs, gx_error *err)
{
    const gx_value *input = &graph->values[from->input];
    gx_host_column *column = &rows->columns[rows->n_columns];

    *column = (gx_host_column){ .name = gx_arena_text(rows->arena, input->name),
                                .path = gx_arena_text(rows->arena, from->path),
                                .dtype = input->dtype,
                                .width = 1,
                                .scale = from->scale,
                                .shift = from->shift };
    if (!column->name || !column->path)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for data");
    gx_find_limit(graphs, n_graphs, input->name, rows->arena, &column->index_limit,
                  &column->index_ignored, &column->index_advice);
    for (int i = 1; i < input->rank; i++)
        column->width *= input->dim[i];
    rows->n_columns++;
    GX_TRY(gx_npy_rows_open(column->path, &column->rows, err));
    GX_TRY(check_shape(column, input, rows->n_rows, err));
    return check_integers(column, err);
}

static gx_status alloc_scratch(gx_host_rows *rows, gx_error *err)
{
    int64_t widest = 1;

    for (size_t i = 0; i < rows->n_columns; i++)
        if (rows->columns[i].width > widest)
            widest = rows->columns[i].width;
    rows->scratch = malloc((size_t)widest * sizeof *rows->scratch);
    if (!rows->scratch)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for a row of %lld numbers",
                       (long long)widest);
    return GX_OK;
}

static gx_status list_part(gx_host_rows *rows, const gx_data_spec *data, gx_part part,
                           gx_error *err)
{
    const int64_t n = part == GX_PART_TRAIN ? data->n_train : data->n_held;

    rows->list[part] = malloc((size_t)(n ? n : 1) * sizeof *rows->list[part]);
    if (!rows->list[part])
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for %lld row numbers",
                       (long long)n);
    rows->n_listed[part] = n;
    return gx_list_rows(data, (int)part, n, rows->list[part], err);
}

static gx_status open_files(gx_host_rows *rows, const gx_graph *const *graphs,
                            size_t n_graphs, const gx_graph *graph, gx_error *err)
{
    const gx_data_spec *data = &graph->data;

    rows->n_rows = data->n_rows;
    rows->columns =
        gx_arena_alloc(rows->arena, (data->n_columns + 1) * sizeof *rows->columns);
    if (!rows->columns)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for data");
    for (size_t i = 0; i < data->n_columns; i++)
        GX_TRY(open_column(rows, graph, &data->columns[i], graphs, n_graphs, err));
    GX_TRY(alloc_scratch(rows, err));
    GX_TRY(list_part(rows, data, GX_PART_TRAIN, err));
    return list_part(rows, data, GX_PART_HELD, err);
}

gx_status gx_host_rows_open(const gx_graph *const *graphs, size_t n_graphs,
                            gx_host_rows **rows, gx_error *err)
{
    const gx_graph *graph = NULL;
    gx_host_rows *made;
    gx_status st;

    *rows = NULL;
    for (size_t g = n_graphs; g-- > 0;)
        if (graphs[g]->data.streams)
            graph = graphs[g];
    if (!graph)
        return GX_OK;
    made = calloc(1, sizeof *made);
    if (made)
        made->arena = gx_arena_create();
    if (!made || !made->arena)
        st = GX_FAIL(err, GX_ERR_MEMORY, "out of memory for data");
    else
        st = open_files(made, graphs, n_graphs, graph, err);
    if (st != GX_OK)
        gx_host_rows_free(made);
    else
        *rows = made;
    return st;
}

void gx_host_rows_free(gx_host_rows *rows)
{
    if (!rows)
        return;
    for (size_t i = 0; i < rows->n_columns; i++)
        gx_npy_rows_close(&rows->columns[i].rows);
    for (int part = 0; part < GX_N_PARTS; part++)
        free(rows->list[part]);
    free(rows->scratch);
    gx_arena_free(rows->arena);
    free(rows);
}

const gx_host_column *gx_host_rows_find(const gx_host_rows *rows, const char *input)
{
    for (size_t i = 0; i < rows->n_columns; i++)
        if (strcmp(rows->columns[i].name, input) == 0)
            return &rows->columns[i];
    return NULL;
}

/* --- batches --- */

gx_status gx_walk_of(const gx_graph *graph, uint64_t seed, gx_walk *walk, gx_error *err)
{
    const gx_data_spec *data = &graph->data;
    const bool train = graph->kind == GX_TRAIN;
    const gx_node *end = NULL;

    for (size_t i = 0; i < graph->n_nodes; i++)
        if (strcmp(graph->nodes[i].op_name, "step.end") == 0)
            end = &graph->nodes[i];
    if (!end)
        return GX_FAIL(err, GX_ERR_MODEL, "no step.end counts the rows of the data");
    *walk = (gx_walk){
        .part = train ? GX_PART_TRAIN : GX_PART_HELD,
        .shuffle = data->shuffle && train,
        .seed = seed,
        .batch = graph->values[data->columns[0].input].dim[0],
        .taken = end->attr[GX_STEP_BATCH].i,
        .total = end->attr[GX_STEP_TOTAL].i,
        .need = end->attr[GX_STEP_NEED].i,
    };
    return GX_OK;
}

int64_t gx_walk_place(const gx_walk *walk, int64_t n, gx_position at, int64_t j)
{
    const int64_t i = at.sample + j < n ? at.sample + j : n - 1;

    return walk->shuffle ? gx_shuffle_index((uint32_t)i, (uint32_t)n, walk->seed,
                                            (uint32_t)at.epoch)
                         : i;
}

void gx_host_rows_pick(const gx_host_rows *rows, const gx_walk *walk, gx_position at,
                       int32_t *picked)
{
    const int32_t *list = rows->list[walk->part];
    const int64_t n = rows->n_listed[walk->part];

    for (int64_t j = 0; j < walk->batch; j++)
        picked[j] = list[gx_walk_place(walk, n, at, j)];
}

void gx_walk_advance(const gx_walk *walk, gx_position *at)
{
    const int64_t sample = at->sample + walk->taken;
    const bool ends = walk->total - sample < walk->need;

    if (walk->total <= 0)
        return;
    at->sample = ends ? 0 : (int32_t)sample;
    at->epoch += ends;
}

/* A row as it lies in the file, where that is how the input has it. */
static bool is_plain(const gx_host_column *column)
{
    return gx_is_unscaled(column->scale, column->shift) &&
           gx_npy_rows_dtype(&column->rows) == column->dtype;
}

static gx_status gather_row(const gx_host_rows *rows, const gx_host_column *column,
                            int64_t row, bool as_doubles, void *to, gx_error *err)
{
    double *values = as_doubles ? (double *)to : rows->scratch;

    gx_npy_rows_get(&column->rows, row * column->width, column->width, values);
    for (int64_t i = 0; i < column->width; i++) {
        values[i] = gx_scaled(values[i], column->scale, column->shift);
        if (as_doubles)
            values[i] = gx_round_to(column->dtype, values[i]);
    }
    return as_doubles
               ? GX_OK
               : gx_device_convert(to, column->dtype, values, GX_F64, column->width, err);
}

gx_status gx_host_rows_gather(const gx_host_rows *rows, const gx_host_column *column,
                              const int32_t *picked, int64_t n, bool as_doubles, void *to,
                              gx_error *err)
{
    const size_t element = as_doubles ? sizeof(double) : gx_dtype_bytes(column->dtype);
    const size_t row_bytes = (size_t)column->width * element;
    char *at = to;

    for (int64_t j = 0; j < n; j++, at += row_bytes) {
        if (!as_doubles && is_plain(column))
            memcpy(at, column->rows.data + (size_t)picked[j] * row_bytes, row_bytes);
        else
            GX_TRY(gather_row(rows, column, picked[j], as_doubles, at, err));
    }
    return GX_OK;
}
