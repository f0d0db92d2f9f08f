/* The persistent tensors of a model: one block for parameters and state, one for data. */
#include "state.h"

#include <stdlib.h>
#include <string.h>

#include "builder.h"
#include "infer.h"
#include "need.h"
#include "number.h"
#include "resolve.h"

/* Values that are made of a random tensor which repeats them. */
enum { TIMED_ELEMENTS = 1 << 20 };

/* --- which tensors there are --- */

/* Where an entry comes from: the graph and the value that name it first. */
typedef struct source {
    const gx_graph *graph;
    const gx_value *value;
    size_t order;
} source;

static int by_name_then_order(const void *a, const void *b)
{
    const source *x = a;
    const source *y = b;
    const int names = strcmp(x->value->name, y->value->name);

    if (names != 0)
        return names;
    return x->order < y->order ? -1 : 1;
}

static int params_first(const void *a, const void *b)
{
    const source *x = a;
    const source *y = b;
    const int x_data = x->value->kind == GX_VALUE_DATA;
    const int y_data = y->value->kind == GX_VALUE_DATA;

    if (x_data != y_data)
        return x_data - y_data;
    return x->order < y->order ? -1 : 1;
}

static gx_tensor shape_of(const gx_value *value)
{
    gx_tensor shape = { .dtype = value->dtype, .rank = value->rank };

    memcpy(shape.dim, value->dim, sizeof shape.dim);
    return shape;
}

static gx_status check_same(const gx_value *a, const gx_value *b, gx_error *err)
{
    const gx_tensor x = shape_of(a);
    const gx_tensor y = shape_of(b);
    char x_text[128], y_text[128];

    if (a->kind == b->kind && a->dtype == b->dtype && gx_same_shape(&x, &y))
        return GX_OK;
    return GX_FAIL(
        err, GX_ERR_SHAPE,
        "'%s' is %s %s in one program and %s %s in another of the same model", a->name,
        gx_dtype_name(a->dtype), gx_shape_text(x.rank, x.dim, x_text, sizeof x_text),
        gx_dtype_name(b->dtype), gx_shape_text(y.rank, y.dim, y_text, sizeof y_text));
}

/* One source for each name, parameters and state first, otherwise in the order of the
 * graphs. The caller frees. */
static gx_status collect(const gx_graph *const *graphs, size_t n_graphs, source **result,
                         size_t *n_result, gx_error *err)
{
    source *list;
    size_t n = 0, n_unique = 0;

    *result = NULL;
    for (size_t g = 0; g < n_graphs; g++) {
        for (size_t i = 0; i < graphs[g]->n_values; i++)
            n += gx_is_persistent(&graphs[g]->values[i]);
    }
    list = malloc((n ? n : 1) * sizeof *list);
    if (!list)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for %zu tensors", n);
    n = 0;
    for (size_t g = 0; g < n_graphs; g++) {
        for (size_t i = 0; i < graphs[g]->n_values; i++) {
            const gx_value *value = &graphs[g]->values[i];

            if (gx_is_persistent(value)) {
                list[n] = (source){ .graph = graphs[g], .value = value, .order = n };
                n++;
            }
        }
    }
    qsort(list, n, sizeof *list, by_name_then_order);
    for (size_t i = 0; i < n; i++) {
        if (n_unique > 0 &&
            strcmp(list[n_unique - 1].value->name, list[i].value->name) == 0) {
            const gx_status st = check_same(list[n_unique - 1].value, list[i].value, err);

            if (st != GX_OK) {
                free(list);
                return st;
            }
            continue;
        }
        list[n_unique++] = list[i];
    }
    qsort(list, n_unique, sizeof *list, params_first);
    *result = list;
    *n_result = n_unique;
    return GX_OK;
}

static int compare_entries(const void *a, const void *b)
{
    const gx_entry *const *x = a;
    const gx_entry *const *y = b;

    return strcmp((*x)->name, (*y)->name);
}

/* The op that set the limit of a value, and what can be done where it refuses a label. */
static const char *advice_of(const gx_graph *graph, const gx_value *value,
                             gx_arena *arena)
{
    const int32_t id =
        value->index_node ? gx_graph_node_id(graph, value->index_node) : -1;
    const gx_op *op = id >= 0 ? graph->nodes[id].op : NULL;
    const char *what = "is what reads it";
    const char *advice;
    int field;

    if (!op)
        return "";
    if (gx_field_find(op, "ignore_index", &field))
        what = graph->nodes[id].attr[field].present ? "ignores another"
                                                    : "is given no ignore_index";
    else if (gx_field_find(op, "labels", &field))
        what = "takes no ignore_index: leave it out, or give it labels of its own";
    advice = gx_arena_format(arena, "; '%s' (%s) %s", value->index_node, op->name, what);
    return advice ? advice : "";
}

void gx_find_limit(const gx_graph *const *graphs, size_t n_graphs, const char *name,
                   gx_arena *arena, int64_t *limit, int64_t *ignored, const char **advice)
{
    gx_value all = { .index_limit = 0 };
    const gx_graph *of = NULL;

    for (size_t g = 0; g < n_graphs; g++) {
        const char *input = strncmp(name, "data.", 5) == 0 ? name + 5 : name;
        const int32_t ids[] = { gx_graph_value_id(graphs[g], name),
                                gx_graph_value_id(graphs[g], input) };

        for (int i = 0; i < 2; i++) {
            const gx_value *value = ids[i] >= 0 ? &graphs[g]->values[ids[i]] : NULL;

            if (!value || value->index_limit == 0)
                continue;
            gx_limit_index_or(&all, value->index_limit, value->index_ignored,
                              value->index_node);
            if (all.index_node == value->index_node)
                of = graphs[g];
        }
    }
    *limit = all.index_limit;
    *ignored = all.index_ignored;
    *advice = of ? advice_of(of, &all, arena) : "";
}

static gx_status make_entries(gx_state *state, const gx_graph *const *graphs,
                              size_t n_graphs, const source *sources, size_t n,
                              gx_error *err)
{
    state->entries = gx_arena_alloc(state->arena, (n + 1) * sizeof *state->entries);
    state->by_name = gx_arena_alloc(state->arena, (n + 1) * sizeof *state->by_name);
    if (!state->entries || !state->by_name)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for %zu tensors", n);
    for (size_t i = 0; i < n; i++) {
        const gx_value *value = sources[i].value;
        gx_entry *entry = &state->entries[i];

        entry->name = gx_arena_text(state->arena, value->name);
        if (!entry->name)
            return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for %zu tensors", n);
        entry->kind = value->kind;
        entry->dtype = value->dtype;
        entry->rank = value->rank;
        memcpy(entry->dim, value->dim, sizeof entry->dim);
        if (entry->dtype == GX_I32)
            gx_find_limit(graphs, n_graphs, entry->name, state->arena,
                          &entry->index_limit, &entry->index_ignored,
                          &entry->index_advice);
        state->by_name[i] = entry;
    }
    state->n_entries = n;
    qsort(state->by_name, n, sizeof *state->by_name, compare_entries);
    return GX_OK;
}

/* --- memory --- */

/* Adds an entry's bytes, aligned; GX_ERR_LIMIT where no memory has so many. */
static gx_status add_bytes(const gx_state *state, const gx_entry *entry, size_t *total,
                           gx_error *err)
{
    size_t bytes = gx_device_element_bytes(state->device, entry->dtype);
    bool too_large = false;

    for (int i = 0; i < entry->rank; i++)
        too_large |= __builtin_mul_overflow(bytes, (size_t)entry->dim[i], &bytes);
    too_large |= __builtin_add_overflow(bytes, (size_t)GX_ALIGNMENT - 1, &bytes);
    bytes &= ~((size_t)GX_ALIGNMENT - 1);
    too_large |= __builtin_add_overflow(*total, bytes, total);
    if (too_large)
        return GX_FAIL(err, GX_ERR_LIMIT, "'%s': more bytes than can be addressed",
                       entry->name);
    return GX_OK;
}

static gx_status check_free(gx_state *state, gx_error *err)
{
    const bool cpu = state->device->ordinal == GX_CPU;
    size_t needed, free_bytes, total_bytes;

    if (__builtin_add_overflow(state->block_bytes, state->data_bytes, &needed))
        return GX_FAIL(err, GX_ERR_LIMIT, "more bytes than can be addressed");
    GX_TRY(gx_device_free_bytes(state->device, &free_bytes, &total_bytes, err));
    if (needed <= free_bytes)
        return GX_OK;
    return GX_FAIL(err, cpu ? GX_ERR_MEMORY : GX_ERR_DEVICE_MEMORY,
                   "parameters and state need %zu bytes and data %zu, together %.2f GiB; "
                   "%zu bytes (%.2f GiB) are free on %s",
                   state->block_bytes, state->data_bytes, (double)needed / (1 << 30),
                   free_bytes, (double)free_bytes / (1 << 30),
                   cpu ? "the host" : "the device");
}

static gx_status allocate(gx_state *state, gx_error *err)
{
    size_t *total[2] = { &state->block_bytes, &state->data_bytes };
    size_t at[2] = { 0, 0 };

    for (size_t i = 0; i < state->n_entries; i++) {
        const gx_entry *entry = &state->entries[i];

        GX_TRY(add_bytes(state, entry, total[entry->kind == GX_VALUE_DATA], err));
    }
    GX_TRY(check_free(state, err));
    GX_TRY(gx_device_alloc(state->device, state->block_bytes, &state->block, err));
    GX_TRY(gx_device_alloc(state->device, state->data_bytes, &state->data_block, err));
    for (size_t i = 0; i < state->n_entries; i++) {
        gx_entry *entry = &state->entries[i];
        const int is_data = entry->kind == GX_VALUE_DATA;

        entry->data = (char *)(is_data ? state->data_block : state->block) + at[is_data];
        GX_TRY(add_bytes(state, entry, &at[is_data], err));
    }
    return GX_OK;
}

/* --- first values --- */

/* Values from a file are read whole. */
static int64_t count_made(const gx_state *state, const gx_value *from, int64_t n)
{
    const bool is_file = from->has_init && from->init.kind == GX_INIT_FILE;

    return state->repeats && !is_file && n > TIMED_ELEMENTS ? TIMED_ELEMENTS : n;
}

gx_status gx_state_fill_first(const gx_state *state, gx_device *device,
                              const gx_value *from, const gx_tensor *to, gx_error *err)
{
    const int64_t n = gx_count(to), n_made = count_made(state, from, n);
    const size_t width = gx_dtype_bytes(to->dtype);
    double *values;
    gx_status st;

    if (n == 0)
        return GX_OK;
    values = malloc((size_t)n_made * sizeof *values);
    if (!values)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of host memory for the values of '%s'",
                       from->name);
    st = gx_init_fill(from, state->seed, values, n_made, err);
    if (st == GX_OK)
        st = gx_device_put(device, to->data, to->dtype, values, GX_F64, n_made,
                           state->exact, err);
    free(values);
    if (st != GX_OK || n_made == n)
        return st;
    return gx_device_repeat(device, to->data, (size_t)n_made * width, (size_t)n * width,
                            err);
}

static gx_status fill_initial(gx_state *state, const gx_graph *graph,
                              const gx_value *value, const gx_entry *entry, gx_error *err)
{
    gx_tensor to = { .dtype = entry->dtype, .rank = entry->rank, .data = entry->data };

    if (!value->has_init || value->init.kind == GX_INIT_ZEROS)
        return GX_OK; /* the block was cleared */
    memcpy(to.dim, entry->dim, sizeof to.dim);
    return gx_state_fill_first(state, state->device, gx_init_source(graph, value), &to,
                               err);
}

static gx_status fill(gx_state *state, const source *sources, gx_error *err)
{
    GX_TRY(gx_device_fill(state->device, state->block, 0, state->block_bytes, err));
    GX_TRY(gx_device_fill(state->device, state->data_block, 0, state->data_bytes, err));
    for (size_t i = 0; i < state->n_entries; i++) {
        const gx_entry *entry = &state->entries[i];

        if (entry->kind == GX_VALUE_DATA)
            GX_TRY(gx_state_fill_data(state, sources[i].graph, entry, err));
        else
            GX_TRY(fill_initial(state, sources[i].graph, sources[i].value, entry, err));
    }
    return gx_device_sync(state->device, err);
}

/* --- life --- */

static gx_status build(gx_state *state, const gx_graph *const *graphs, size_t n_graphs,
                       gx_error *err)
{
    source *sources = NULL;
    size_t n = 0;
    int previous;
    gx_status st;

    GX_TRY(gx_device_enter(state->device, &previous, err));
    st = collect(graphs, n_graphs, &sources, &n, err);
    if (st == GX_OK)
        st = make_entries(state, graphs, n_graphs, sources, n, err);
    for (size_t i = 0; i < n_graphs && st == GX_OK; i++)
        gx_state_pair_masters(state, graphs[i]);
    if (st == GX_OK)
        st = allocate(state, err);
    if (st == GX_OK)
        st = fill(state, sources, err);
    free(sources);
    gx_device_leave(state->device, previous);
    return st;
}

static gx_status create(const gx_graph *const *graphs, size_t n_graphs,
                        const gx_state_options *options, bool with_rows, gx_state **state,
                        gx_error *err)
{
    const gx_state_options usual = { .device = gx_has_cuda() ? 0 : GX_CPU };
    gx_state *made;
    gx_status st;

    gx_error_clear(err);
    GX_TRY(gx_need_place(state, "state", err));
    *state = NULL;
    if (!options)
        options = &usual;
    if (n_graphs > 0)
        GX_TRY(gx_need(graphs, "list of graphs", err));
    for (size_t i = 0; i < n_graphs; i++) {
        GX_TRY(gx_need(graphs[i], "graph", err));
        if (!graphs[i]->finished)
            return GX_FAIL(err, GX_ERR_ARGUMENT, "graph %zu is not finished", i);
    }
    if (options->exact && options->device != GX_CPU)
        return GX_FAIL(err, GX_ERR_ARGUMENT, "only the CPU holds exact doubles");
    made = calloc(1, sizeof *made);
    if (!made)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for a state");
    made->seed = options->seed;
    made->exact = options->exact;
    made->repeats = !with_rows;
    made->arena = gx_arena_create();
    if (!made->arena)
        st = GX_FAIL(err, GX_ERR_MEMORY, "out of memory for a state");
    else
        st = gx_device_open(options->device, options->stream, &made->device, err);
    if (st == GX_OK && with_rows)
        st = gx_host_rows_open(graphs, n_graphs, &made->rows, err);
    if (st == GX_OK)
        st = build(made, graphs, n_graphs, err);
    if (st != GX_OK) {
        gx_state_free(made);
        return st;
    }
    *state = made;
    return GX_OK;
}

gx_status gx_state_create(const gx_graph *const *graphs, size_t n_graphs,
                          const gx_state_options *options, gx_state **state,
                          gx_error *err)
{
    return create(graphs, n_graphs, options, true, state, err);
}

gx_status gx_state_create_unfed(const gx_graph *graph, int device, gx_state **state,
                                gx_error *err)
{
    return create(&graph, 1, &(gx_state_options){ .device = device }, false, state, err);
}

void gx_state_free(gx_state *state)
{
    int previous;

    if (!state)
        return;
    if (state->device) {
        /* The memory goes even when the device cannot be entered: release knows how. */
        const gx_status entered = gx_device_enter(state->device, &previous, NULL);

        gx_device_release(state->device, state->data_block);
        gx_device_release(state->device, state->block);
        if (entered == GX_OK)
            gx_device_leave(state->device, previous);
        gx_device_close(state->device);
    }
    gx_label_counts_free(state);
    gx_host_rows_free(state->rows);
    gx_arena_free(state->arena);
    free(state);
}

int gx_state_device(const gx_state *state)
{
    return state->device->ordinal;
}

const gx_entry *gx_state_find(const gx_state *state, const char *name)
{
    size_t low = 0, high = state->n_entries;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = strcmp(name, state->by_name[middle]->name);

        if (order == 0)
            return state->by_name[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

/* --- reading and writing --- */

static gx_status find(const gx_state *state, const char *name, const gx_entry **entry,
                      gx_error *err)
{
    const char *nearest;
    const char **names;

    GX_TRY(gx_need(state, "state", err));
    GX_TRY(gx_need(name, "name of a tensor", err));
    *entry = gx_state_find(state, name);
    if (*entry)
        return GX_OK;
    names = malloc((state->n_entries + 1) * sizeof *names);
    if (!names)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    for (size_t i = 0; i < state->n_entries; i++)
        names[i] = state->entries[i].name;
    nearest = gx_nearest(name, names, state->n_entries);
    free(names);
    if (nearest)
        return GX_FAIL(
            err, GX_ERR_ARGUMENT,
            "no parameter, state or data tensor is named '%s'; the nearest is '%s'", name,
            nearest);
    return GX_FAIL(err, GX_ERR_ARGUMENT,
                   "no parameter, state or data tensor is named '%s'", name);
}

static gx_status put(gx_state *state, const gx_entry *entry, const gx_tensor *host,
                     gx_error *err)
{
    return gx_device_put(state->device, entry->data, entry->dtype, host->data,
                         host->dtype, gx_entry_count(entry), state->exact, err);
}

/* On an exact state: the parameter is what its master, written now, is rounded to. It has
 * been taken from where it was rounded, and going on from there means going on with it.
 */
static bool is_rounded_copy(const gx_state *state, const gx_entry *master)
{
    const double *from = master->data;
    const double *copy = master->copy->data;
    const int64_t n = gx_entry_count(master);
    int64_t i = 0;

    if (!state->exact)
        return false;
    while (i < n && copy[i] == gx_round_to(master->copy->dtype, from[i]))
        i++;
    return i == n;
}

gx_status gx_state_write(gx_state *state, const char *name, const gx_tensor *host,
                         gx_error *err)
{
    const gx_entry *entry;
    int previous;
    gx_status st;

    gx_error_clear(err);
    GX_TRY(find(state, name, &entry, err));
    GX_TRY(gx_check_host(entry->name, entry->dtype, entry->rank, entry->dim, host, true,
                         err));
    if (entry->index_limit > 0)
        GX_TRY(
            gx_check_indices(host, entry->index_limit, entry->index_ignored, name, err));
    GX_TRY(gx_check_own(entry, host, err));
    GX_TRY(gx_device_enter(state->device, &previous, err));
    gx_state_forget(state, name);
    st = put(state, entry, host, err);
    if (st == GX_OK && entry->master)
        st = put(state, entry->master, host, err);
    if (st == GX_OK && entry->copy && !is_rounded_copy(state, entry))
        st = put(state, entry->copy, host, err);
    if (st == GX_OK)
        st = gx_state_follow(state, name, err);
    gx_device_leave(state->device, previous);
    return st;
}

gx_status gx_state_read(gx_state *state, const char *name, gx_tensor *host, gx_error *err)
{
    const gx_entry *entry;
    int previous;
    gx_status st;

    gx_error_clear(err);
    GX_TRY(find(state, name, &entry, err));
    GX_TRY(gx_check_host(entry->name, entry->dtype, entry->rank, entry->dim, host, true,
                         err));
    GX_TRY(gx_device_enter(state->device, &previous, err));
    st = gx_device_get(state->device, host->data, host->dtype, entry->data, entry->dtype,
                       gx_entry_count(entry), err);
    gx_device_leave(state->device, previous);
    return st;
}

gx_status gx_state_set_rate(gx_state *state, double rate, gx_error *err)
{
    const gx_tensor host = { .dtype = GX_F64, .rank = 1, .dim = { 1 }, .data = &rate };

    gx_error_clear(err);
    GX_TRY(gx_need(state, "state", err));

    const char *const wrong = gx_rate_misfit(rate);

    if (wrong)
        return GX_FAIL(err, GX_ERR_ARGUMENT, "a learning rate of %g %s",
                       gx_unsigned_nan(rate), wrong);
    if (!gx_state_find(state, GX_STATE_LR))
        return GX_FAIL(err, GX_ERR_STATE,
                       "the model has no optimizer, and so no learning rate");
    return gx_state_write(state, GX_STATE_LR, &host, err);
}
