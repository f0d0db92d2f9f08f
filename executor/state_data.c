/* Data files and splits on their way to the device. */
#include "state.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "number.h"

enum { CHUNK_ELEMENTS = 1 << 16, PLACE_TEXT = 256 };

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

static bool is_allowed(double value, int64_t limit, int64_t ignored)
{
    return (value >= 0 && value < (double)limit && value == rint(value)) ||
           (ignored != 0 && value == (double)ignored);
}

/* "row 3", or where a row has several elements "row 3, element 7", with an index for each
 * size after the first. */
static const char *place_text(const gx_tensor *tensor, int64_t i, char *text, size_t size)
{
    int64_t step = row_size(tensor);
    int used = snprintf(text, size, "row %lld", (long long)(i / step));

    for (int k = 1; k < tensor->rank && used > 0 && (size_t)used < size; k++) {
        i %= step;
        step /= tensor->dim[k];
        used += snprintf(text + used, size - (size_t)used, "%s%lld",
                         k == 1 ? ", element " : " ", (long long)(i / step));
    }
    return text;
}

/* What is allowed beside the range, as the end of a message. */
static const char *beside_text(int64_t ignored, char *text, size_t size)
{
    text[0] = 0;
    if (ignored != 0)
        snprintf(text, size, " and not %lld, which is ignored", (long long)ignored);
    return text;
}

gx_status gx_check_indices(const gx_tensor *tensor, int64_t limit, int64_t ignored,
                           const char *where, gx_error *err)
{
    const int64_t n = gx_count(tensor);
    char place[PLACE_TEXT], beside[64];

    for (int64_t i = 0; i < n; i++) {
        const double value = element(tensor, i);

        if (is_allowed(value, limit, ignored))
            continue;
        return GX_FAIL(err, GX_ERR_DATA,
                       "%s: %s: value %.10g is not an integer in [0, %lld)%s", where,
                       place_text(tensor, i, place, sizeof place), gx_unsigned_nan(value),
                       (long long)limit, beside_text(ignored, beside, sizeof beside));
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
gx_status gx_check_label(double value, int64_t limit, int64_t ignored, const char *advice,
                         const char *path, const gx_tensor *file, int64_t i,
                         gx_error *err)
{
    char place[PLACE_TEXT], beside[64];

    if (value != rint(value) || fabs(value) > INT32_MAX)
        return GX_FAIL(err, GX_ERR_DATA, "%s: %s: value %.10g is not an i32", path,
                       place_text(file, i, place, sizeof place), gx_unsigned_nan(value));
    if (limit > 0 && !is_allowed(value, limit, ignored))
        return GX_FAIL(err, GX_ERR_DATA, "%s: %s: label %.0f is not in [0, %lld)%s%s",
                       path, place_text(file, i, place, sizeof place), value,
                       (long long)limit, beside_text(ignored, beside, sizeof beside),
                       advice);
    return GX_OK;
}

static gx_status scale_chunk(const gx_tensor *file, const gx_data_column *column,
                             const gx_entry *entry, int64_t first, int64_t n, double *out,
                             gx_error *err)
{
    for (int64_t i = 0; i < n; i++) {
        out[i] = gx_scaled(element(file, first + i), column->scale, column->shift);
        if (entry->dtype == GX_I32)
            GX_TRY(gx_check_label(out[i], entry->index_limit, entry->index_ignored,
                                  entry->index_advice, column->path, file, first + i,
                                  err));
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

/* Without a split file every row is in part 0. */
static gx_status list_part(const gx_data_spec *data, const gx_tensor *split, int part,
                           int64_t expected, int32_t *rows, gx_error *err)
{
    int64_t n = 0;

    for (int64_t row = 0; row < data->n_rows; row++) {
        const double at = split ? element(split, row) : 0;

        if (at != 0 && at != 1)
            return GX_FAIL(err, GX_ERR_DATA,
                           "%s: row %lld: %.10g; expected 0 (training) or 1 (held out)",
                           data->split_path, (long long)row, gx_unsigned_nan(at));
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

gx_status gx_list_rows(const gx_data_spec *data, int part, int64_t n, int32_t *rows,
                       gx_error *err)
{
    gx_tensor split = { 0 };
    gx_status st = GX_OK;

    if (data->split_path) {
        st = gx_npy_read(data->split_path, &split, err);
        if (st == GX_OK && gx_count(&split) != data->n_rows)
            st = GX_FAIL(err, GX_ERR_SHAPE, "%s: %lld values for %lld rows of data",
                         data->split_path, (long long)gx_count(&split),
                         (long long)data->n_rows);
    }
    if (st == GX_OK)
        st = list_part(data, data->split_path ? &split : NULL, part, n, rows, err);
    free(split.data);
    return st;
}

static gx_status fill_rows(gx_state *state, const gx_data_spec *data, int part,
                           const gx_entry *entry, gx_error *err)
{
    const int64_t n = gx_entry_count(entry);
    int32_t *rows = malloc((size_t)(n ? n : 1) * sizeof *rows);
    gx_status st;

    if (!rows)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for %lld row numbers",
                       (long long)n);
    st = gx_list_rows(data, part, n, rows, err);
    if (st == GX_OK)
        st = gx_device_put(state->device, entry->data, GX_I32, rows, GX_I32, n,
                           state->exact, err);
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
