/* Data files and splits on their way to the device. */
#include "state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_ELEMENTS = 1 << 16 };

static double element(const gx_tensor *tensor, int64_t i)
{
    switch (tensor->dtype) {
    case GX_F32:
        return ((const float *)tensor->data)[i];
    case GX_BF16:
        return gx_bf16_to_float(((const uint16_t *)tensor->data)[i]);
    case GX_F16:
        return gx_f16_to_float(((const uint16_t *)tensor->data)[i]);
    case GX_I32:
        return ((const int32_t *)tensor->data)[i];
    default:
        return ((const double *)tensor->data)[i];
    }
}

static int64_t row_size(const gx_tensor *tensor)
{
    int64_t n = 1;

    for (int i = 1; i < tensor->rank; i++)
        n *= tensor->dim[i];
    return n ? n : 1;
}

gx_status gx_check_indices(const gx_tensor *tensor, int64_t limit, const char *where,
                           gx_error *err)
{
    const int64_t n = gx_count(tensor);
    const int64_t row = row_size(tensor);

    for (int64_t i = 0; i < n; i++) {
        const double value = element(tensor, i);

        if (value >= 0 && value < (double)limit && value == rint(value))
            continue;
        return GX_FAIL(err, GX_ERR_DATA,
                       "%s: row %lld: value %.10g is not an integer in [0, %lld)", where,
                       (long long)(i / row), value, (long long)limit);
    }
    return GX_OK;
}

static gx_status check_file_shape(const gx_tensor *file, const gx_entry *entry,
                                  const char *path, gx_error *err)
{
    const gx_tensor expected = { .rank = entry->rank };
    gx_tensor shape = expected;
    char found_text[128], expected_text[128];

    memcpy(shape.dim, entry->dim, sizeof shape.dim);
    if (gx_same_shape(file, &shape))
        return GX_OK;
    return GX_FAIL(
        err, GX_ERR_SHAPE, "%s: shape %s, but the model has %s for '%s'", path,
        gx_shape_text(file->rank, file->dim, found_text, sizeof found_text),
        gx_shape_text(entry->rank, entry->dim, expected_text, sizeof expected_text),
        entry->name);
}

/* In an i32 tensor a number with a fraction is a mistake of the file, not to be rounded.
 */
static gx_status scale_chunk(const gx_tensor *file, const gx_data_column *column,
                             const gx_entry *entry, int64_t first, int64_t n, double *out,
                             gx_error *err)
{
    const int64_t row = row_size(file);

    for (int64_t i = 0; i < n; i++) {
        const double value = element(file, first + i);
        const double scaled = value * column->scale + column->shift;

        out[i] = scaled;
        if (entry->dtype != GX_I32)
            continue;
        if (scaled != rint(scaled) || fabs(scaled) > INT32_MAX)
            return GX_FAIL(err, GX_ERR_DATA, "%s: row %lld: value %.10g is not an i32",
                           column->path, (long long)((first + i) / row), scaled);
        if (entry->index_limit > 0 &&
            (scaled < 0 || scaled >= (double)entry->index_limit))
            return GX_FAIL(err, GX_ERR_DATA,
                           "%s: row %lld: label %.0f is not in [0, %lld)", column->path,
                           (long long)((first + i) / row), scaled,
                           (long long)entry->index_limit);
    }
    return GX_OK;
}

static gx_status put_column(gx_state *state, const gx_tensor *file,
                            const gx_data_column *column, const gx_entry *entry,
                            gx_error *err)
{
    const size_t bytes = gx_device_element_bytes(state->device, entry->dtype);
    const int64_t n = gx_count(file);
    double *chunk = malloc(CHUNK_ELEMENTS * sizeof *chunk);
    gx_status st = GX_OK;

    if (!chunk)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for data");
    for (int64_t at = 0; at < n && st == GX_OK; at += CHUNK_ELEMENTS) {
        const int64_t count = n - at < CHUNK_ELEMENTS ? n - at : CHUNK_ELEMENTS;

        st = scale_chunk(file, column, entry, at, count, chunk, err);
        if (st == GX_OK)
            st = gx_device_put(state->device, (char *)entry->data + (size_t)at * bytes,
                               entry->dtype, chunk, GX_F64, count, state->exact, err);
    }
    free(chunk);
    return st;
}

static gx_status fill_column(gx_state *state, const gx_data_column *column,
                             const gx_entry *entry, gx_error *err)
{
    gx_tensor file = { 0 };
    gx_status st = gx_npy_read(column->path, &file, err);

    if (st == GX_OK)
        st = check_file_shape(&file, entry, column->path, err);
    if (st == GX_OK)
        st = put_column(state, &file, column, entry, err);
    free(file.data);
    return st;
}

/* The rows of a part, ascending; without a split file every row is in part 0. */
static gx_status list_rows(const gx_data_spec *data, const gx_tensor *split, int part,
                           const gx_entry *entry, int32_t *rows, gx_error *err)
{
    const int64_t expected = gx_entry_count(entry);
    int64_t n = 0;

    for (int64_t row = 0; row < data->n_rows; row++) {
        const double at = split ? element(split, row) : 0;

        if (at != 0 && at != 1)
            return GX_FAIL(err, GX_ERR_DATA,
                           "%s: row %lld: %.10g; expected 0 (training) or 1 (held out)",
                           data->split_path, (long long)row, at);
        if ((int)at != part)
            continue;
        if (n < expected)
            rows[n] = (int32_t)row;
        n++;
    }
    if (n != expected)
        return GX_FAIL(
            err, GX_ERR_DATA,
            "%s: %lld rows of part %d, but there were %lld when the model was read",
            data->split_path ? data->split_path : "split", (long long)n, part,
            (long long)expected);
    return GX_OK;
}

static gx_status fill_rows(gx_state *state, const gx_data_spec *data, int part,
                           const gx_entry *entry, gx_error *err)
{
    const int64_t n = gx_entry_count(entry);
    gx_tensor split = { 0 };
    int32_t *rows = malloc((size_t)(n ? n : 1) * sizeof *rows);
    gx_status st = GX_OK;

    if (!rows)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for %lld row numbers",
                       (long long)n);
    if (data->split_path) {
        st = gx_npy_read(data->split_path, &split, err);
        if (st == GX_OK && gx_count(&split) != data->n_rows)
            st = GX_FAIL(err, GX_ERR_SHAPE, "%s: %lld values for %lld rows of data",
                         data->split_path, (long long)gx_count(&split),
                         (long long)data->n_rows);
    }
    if (st == GX_OK)
        st = list_rows(data, data->split_path ? &split : NULL, part, entry, rows, err);
    if (st == GX_OK)
        st = gx_device_put(state->device, entry->data, GX_I32, rows, GX_I32, n,
                           state->exact, err);
    free(split.data);
    free(rows);
    return st;
}

gx_status gx_state_fill_data(gx_state *state, const gx_graph *graph,
                             const gx_entry *entry, gx_error *err)
{
    const gx_data_spec *data = &graph->data;

    if (strcmp(entry->name, "data.train") == 0)
        return fill_rows(state, data, 0, entry, err);
    if (strcmp(entry->name, "data.held") == 0)
        return fill_rows(state, data, 1, entry, err);
    for (size_t i = 0; i < data->n_columns; i++) {
        const char *input = graph->values[data->columns[i].input].name;

        if (strcmp(entry->name + strlen("data."), input) == 0)
            return fill_column(state, &data->columns[i], entry, err);
    }
    return GX_FAIL(err, GX_ERR_MODEL, "no data file for '%s'", entry->name);
}
