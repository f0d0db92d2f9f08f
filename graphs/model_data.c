/* The section `data`: which files feed which inputs, and the rows that they hold. */
#include <stdlib.h>
#include <string.h>

#include "npy.h"
#include "reader.h"

/* The keys of the section that are no inputs. In an expanded model `batch_dim` is one. */
static bool is_option(const gx_reader *r, const char *key)
{
    for (size_t i = 0; gx_keys_data[i]; i++) {
        if (strcmp(gx_keys_data[i], key) == 0)
            return true;
    }
    return r->graph->expanded && strcmp(key, "batch_dim") == 0;
}

static void report_no_input(gx_reader *r, const char *key, gx_pos pos)
{
    const gx_graph *graph = r->graph;
    const char **names = calloc(graph->n_values + 8, sizeof *names);
    size_t n = 0;

    for (size_t i = 0; names && i < graph->n_values; i++) {
        if (graph->values[i].kind == GX_VALUE_INPUT)
            names[n++] = graph->values[i].name;
    }
    for (size_t i = 0; names && gx_keys_data[i]; i++)
        names[n++] = gx_keys_data[i];
    const char *near = names ? gx_nearest(key, names, n) : NULL;

    if (near)
        gx_report(r->list, pos, "there is no input \"%s\" to feed; did you mean \"%s\"?",
                  key, near);
    else
        gx_report(
            r->list, pos,
            "there is no input \"%s\" to feed; beside inputs data has split, shuffle, "
            "epochs, drop_last and stream",
            key);
    free(names);
}

/* --- one column --- */

static bool read_column_map(gx_reader *r, const gx_doc *doc, gx_data_column *column,
                            const gx_doc **file)
{
    const gx_doc *scale = gx_doc_get(doc, "scale");
    const gx_doc *shift = gx_doc_get(doc, "shift");
    bool good = gx_check_keys(r, doc, gx_keys_column, "a column of data");

    *file = gx_doc_get(doc, "file");
    if (!*file) {
        gx_report(r->list, doc->pos, "a column of data needs a \"file\"");
        return false;
    }
    if (scale)
        good = gx_read_real_doc(r, scale, &column->scale) && good;
    if (shift)
        good = gx_read_real_doc(r, shift, &column->shift) && good;
    return good;
}

/* The rows of the file fit the input: type, and shape after the first size. */
static bool check_rows(gx_reader *r, const gx_data_column *column, const gx_npy *npy)
{
    const gx_value *input = &r->graph->values[column->input];
    const char *path = gx_relative_path(r->graph, column->path);
    char is[120], should[120];

    if (npy->type == 'f' && input->dtype == GX_I32) {
        gx_report(r->list, column->pos, "%s holds floats, input \"%s\" is i32", path,
                  input->name);
        return false;
    }
    if (npy->rank == 0) {
        gx_report(r->list, column->pos, "%s holds one number, expected rows", path);
        return false;
    }
    if (!input->has_shape || input->rank == 0)
        return false;
    if (npy->rank == input->rank &&
        memcmp(npy->dim + 1, input->dim + 1,
               (size_t)(npy->rank - 1) * sizeof npy->dim[0]) == 0)
        return true;
    gx_report(r->list, column->pos, "rows of %s have shape %s, input \"%s\" takes %s",
              path, gx_shape_text(npy->rank - 1, npy->dim + 1, is, sizeof is),
              input->name,
              gx_shape_text(input->rank - 1, input->dim + 1, should, sizeof should));
    return false;
}

/* All files have as many rows as the first one. */
static void check_count(gx_reader *r, const char *path, gx_pos pos, int64_t rows)
{
    gx_data_spec *data = &r->graph->data;

    if (data->n_rows < 0) {
        data->n_rows = rows;
        if (rows > INT32_MAX)
            gx_report(r->list, pos, "%s has %lld rows, more than %d (limit on rows)",
                      gx_relative_path(r->graph, path), (long long)rows, INT32_MAX);
    } else if (data->n_rows != rows) {
        gx_report(r->list, pos, "%s has %lld rows, the files before it have %lld",
                  gx_relative_path(r->graph, path), (long long)rows,
                  (long long)data->n_rows);
    }
}

static void read_column(gx_reader *r, const char *key, gx_pos key_pos, const gx_doc *doc)
{
    gx_data_spec *data = &r->graph->data;
    gx_data_column *column = &data->columns[data->n_columns];
    const gx_doc *file = doc;
    gx_error err;
    gx_npy npy;

    *column = (gx_data_column){ .input = gx_graph_value_id(r->graph, key), .scale = 1 };
    if (column->input < 0 || r->graph->values[column->input].kind != GX_VALUE_INPUT) {
        report_no_input(r, key, key_pos);
        return;
    }
    r->graph->values[column->input].fed = true;
    if (doc->kind == GX_DOC_MAP && !read_column_map(r, doc, column, &file))
        return;
    if (!gx_read_text_doc(r, file, "the path of a .npy file"))
        return;
    column->pos = file->pos;
    column->path = gx_confine_path(r->graph, file->text, file->pos, r->list);
    if (!column->path)
        return;
    data->n_columns++;
    gx_error_clear(&err);
    if (gx_npy_head(column->path, &npy, &err) != GX_OK)
        gx_report(r->list, column->pos, "%s", err.message);
    else if (check_rows(r, column, &npy))
        check_count(r, column->path, column->pos, npy.dim[0]);
}

/* --- the split --- */

static void count_rows(gx_reader *r, const gx_tensor *split)
{
    gx_data_spec *data = &r->graph->data;
    const int32_t *row = split->data;

    for (int64_t i = 0; i < split->dim[0]; i++) {
        if (row[i] != 0 && row[i] != 1) {
            gx_report(r->list, data->split_pos,
                      "%s: row %lld is %d; a split is 0 (train) or 1 (held out)",
                      gx_relative_path(r->graph, data->split_path), (long long)i,
                      (int)row[i]);
            return;
        }
        data->n_train += row[i] == 0;
        data->n_held += row[i] == 1;
    }
    check_count(r, data->split_path, data->split_pos, split->dim[0]);
}

static void read_split(gx_reader *r, const gx_doc *doc)
{
    gx_data_spec *data = &r->graph->data;
    gx_tensor split;
    gx_error err;

    if (!gx_read_text_doc(r, doc, "the path of a .npy file"))
        return;
    data->split_pos = doc->pos;
    data->split_path = gx_confine_path(r->graph, doc->text, doc->pos, r->list);
    if (!data->split_path)
        return;
    if (gx_npy_read(data->split_path, &split, &err) != GX_OK) {
        gx_report(r->list, doc->pos, "%s", err.message);
        return;
    }
    if (split.dtype != GX_I32 || split.rank != 1)
        gx_report(r->list, doc->pos,
                  "%s: expected one integer a row, 0 (train) or 1 (held "
                  "out)",
                  doc->text);
    else
        count_rows(r, &split);
    free(split.data);
}

/* --- the batch --- */

/* The first size of an input as it is written; NULL where there is none. */
static const gx_doc *first_size(const gx_doc *inputs, const char *name)
{
    const gx_doc *input = inputs ? gx_doc_get(inputs, name) : NULL;
    const gx_doc *shape =
        input && input->kind == GX_DOC_MAP ? gx_doc_get(input, "shape") : NULL;

    return shape && shape->kind == GX_DOC_LIST && shape->n > 0 ? shape->item[0] : NULL;
}

static const gx_dim *find_dim(const gx_graph *graph, const char *name)
{
    for (size_t i = 0; i < graph->n_dims; i++) {
        if (strcmp(graph->dims[i].name, name) == 0)
            return &graph->dims[i];
    }
    return NULL;
}

void gx_find_batch_rows(gx_reader *r, const gx_doc *inputs, const gx_doc *data)
{
    const int64_t rows = r->options ? r->options->batch_rows : 0;
    const gx_pos nowhere = { 0 };

    if (rows == 0)
        return;
    if (rows < 0) {
        gx_report(r->list, nowhere, "batch_rows is %lld: 1 or more is expected",
                  (long long)rows);
        return;
    }
    if (r->graph->expanded) {
        gx_report(r->list, nowhere,
                  "batch_rows is %lld: an expanded model has its sizes written out",
                  (long long)rows);
        return;
    }
    for (size_t i = 0; data && data->kind == GX_DOC_MAP && i < data->n; i++) {
        const gx_doc *size =
            inputs && inputs->kind == GX_DOC_MAP && !is_option(r, data->key[i])
                ? first_size(inputs, data->key[i])
                : NULL;
        const gx_dim *dim =
            size && size->kind == GX_DOC_SCALAR ? find_dim(r->graph, size->text) : NULL;

        if (!dim)
            continue;
        r->batch = &r->graph->dims[dim - r->graph->dims];
        r->written_batch = dim->value;
        r->batch_rows = rows;
        return;
    }
    if (gx_diagnostics_count(r->list) == 0)
        gx_report(r->list, nowhere, "batch_rows is %lld: no data feeds the model",
                  (long long)rows);
}

void gx_use_batch_rows(gx_reader *r, bool use)
{
    if (r->batch)
        r->batch->value = use ? r->batch_rows : r->written_batch;
}

static void set_batch(gx_reader *r, const gx_dim *dim, gx_pos pos)
{
    gx_data_spec *data = &r->graph->data;

    if (!data->batch_dim) {
        data->batch_dim = dim->name;
        data->batch = dim->value;
        if (dim->value < 1)
            gx_report(r->list, pos,
                      "dim \"%s\" is the batch of the data: 1 or more, not %lld",
                      dim->name, (long long)dim->value);
    } else if (strcmp(data->batch_dim, dim->name) != 0) {
        gx_report(
            r->list, pos,
            "inputs that data feeds have one batch: expected \"%s\" as the first size, "
            "found \"%s\"",
            data->batch_dim, dim->name);
    }
}

/* Every fed input starts with the same dim. */
static void find_batch(gx_reader *r, const gx_doc *inputs)
{
    const gx_data_spec *data = &r->graph->data;

    for (size_t i = 0; i < data->n_columns; i++) {
        const gx_value *input = &r->graph->values[data->columns[i].input];
        const gx_doc *size = first_size(inputs, input->name);
        const gx_dim *dim = NULL;

        if (size && size->kind == GX_DOC_SCALAR)
            dim = find_dim(r->graph, size->text);
        if (dim)
            set_batch(r, dim, size->pos);
        else if (input->has_shape)
            gx_report(
                r->list, size ? size->pos : input->pos,
                "input \"%s\" is fed by data: its first size must be a dim, such as "
                "batch",
                input->name);
    }
}

static void read_batch(gx_reader *r, const gx_doc *doc)
{
    const gx_doc *written = gx_doc_get(doc, "batch_dim");
    const gx_dim *dim;

    if (!written) {
        gx_report(r->list, doc->pos, "data of an expanded model needs \"batch_dim\"");
        return;
    }
    if (!gx_read_text_doc(r, written, "the name of a dim"))
        return;
    dim = find_dim(r->graph, written->text);
    if (dim)
        set_batch(r, dim, written->pos);
    else
        gx_report(r->list, written->pos, "there is no dim \"%s\"", written->text);
}

/* --- the section --- */

/* An expanded model has its gathers written out, or has none. */
static void apply_streaming(gx_reader *r, const gx_doc *doc)
{
    gx_data_spec *data = &r->graph->data;
    const gx_streaming asked = r->options ? r->options->stream : GX_STREAM_AS_WRITTEN;

    if (asked == GX_STREAM_AS_WRITTEN || (asked == GX_STREAM_ON) == data->streams)
        return;
    if (r->graph->expanded)
        gx_report(r->list, doc->pos,
                  "an expanded model is written out to %s: expand "
                  "the model that it was made of again",
                  data->streams ? "stream its data" : "gather its data on the device");
    else
        data->streams = asked == GX_STREAM_ON;
}

static void read_streaming(gx_reader *r, const gx_doc *doc)
{
    gx_data_spec *data = &r->graph->data;
    const gx_doc *stream = gx_doc_get(doc, "stream");

    data->stream_auto =
        !stream || (stream->kind == GX_DOC_SCALAR && strcmp(stream->text, "auto") == 0);
    if (data->stream_auto)
        return;
    if (stream->kind == GX_DOC_SCALAR && gx_read_bool(stream->text, &data->streams))
        return;
    gx_report(r->list, stream->pos, "stream is true, false or auto");
}

static void read_options(gx_reader *r, const gx_doc *doc)
{
    gx_data_spec *data = &r->graph->data;
    const gx_doc *shuffle = gx_doc_get(doc, "shuffle");
    const gx_doc *drop_last = gx_doc_get(doc, "drop_last");
    const gx_doc *epochs = gx_doc_get(doc, "epochs");
    int64_t n = 0;

    if (shuffle)
        gx_read_bool_doc(r, shuffle, &data->shuffle);
    if (drop_last)
        gx_read_bool_doc(r, drop_last, &data->drop_last);
    read_streaming(r, doc);
    apply_streaming(r, doc);
    if (!epochs || !gx_read_int_doc(r, epochs, &n))
        return;
    if (n < 1 || n > INT32_MAX)
        gx_report(r->list, epochs->pos, "epochs is 1 or more, and below 2^31");
    else
        data->epochs = (int)n;
}

static void check_counts(gx_reader *r, const gx_doc *doc)
{
    gx_data_spec *data = &r->graph->data;

    if (data->n_rows < 0)
        data->n_rows = 0;
    if (!data->split_path)
        data->n_train = data->n_rows;
    if (data->n_columns == 0)
        gx_report(r->list, doc->pos, "data feeds no input");
    else if (data->n_rows > 0 && data->n_train == 0)
        gx_report(r->list, data->split_pos,
                  "no row is for training: every one is held out");
    else if (data->drop_last && data->n_rows > 0 && data->batch > data->n_train)
        gx_report(r->list, data->split_path ? data->split_pos : data->columns[0].pos,
                  "drop_last leaves nothing: a batch is %lld, training has %lld rows",
                  (long long)data->batch, (long long)data->n_train);
}

void gx_read_data(gx_reader *r, const gx_doc *doc, const gx_doc *inputs)
{
    gx_data_spec *data = &r->graph->data;
    const gx_doc *split;

    if (!gx_expect(r, doc, GX_DOC_MAP, "a map from inputs to files"))
        return;
    data->columns = gx_arena_alloc(r->graph->arena, (doc->n + 1) * sizeof *data->columns);
    if (!data->columns)
        return;
    data->n_rows = -1;
    read_options(r, doc);
    for (size_t i = 0; i < doc->n; i++) {
        const int32_t id = gx_graph_value_id(r->graph, doc->key[i]);

        if (!is_option(r, doc->key[i]))
            read_column(r, doc->key[i], doc->key_pos[i], doc->item[i]);
        else if (id >= 0 && r->graph->values[id].kind == GX_VALUE_INPUT)
            gx_report(
                r->list, r->graph->values[id].pos,
                "an input that stands beside data cannot be named \"%s\": the word has "
                "a meaning there",
                doc->key[i]);
    }
    split = gx_doc_get(doc, "split");
    if (split)
        read_split(r, split);
    if (r->graph->expanded)
        read_batch(r, doc);
    else
        find_batch(r, inputs && inputs->kind == GX_DOC_MAP ? inputs : NULL);
    check_counts(r, doc);
}
