/* The persistent tensors of a model, on the CPU. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "resolve.h"
#include "state.h"
#include "support.h"

static const char model[] = "gexec: 1\n"
                            "name: small\n"
                            "dims: {batch: 2, hidden: 3}\n"
                            "precision: f32\n"
                            "inputs:\n"
                            "  x: {shape: [batch, 4], init: normal}\n"
                            "  t: {shape: [batch, hidden], init: normal}\n"
                            "params:\n"
                            "  w: {shape: [4, hidden], init: he_normal}\n"
                            "  b: {shape: [hidden], init: {constant: 0.1}}\n"
                            "ops:\n"
                            "  - {op: gemm, name: y, a: x, b: w, epilogue: {bias: b}}\n"
                            "  - {op: mse, name: loss, x: y, target: t}\n"
                            "backward: loss\n"
                            "optimizer: {sgd: {lr: 0.5}}\n"
                            "outputs: [loss]\n";

static gx_graph *parse(const char *text, gx_kind kind, const char *hidden,
                       const char *folder)
{
    const gx_set set = { "hidden", hidden };
    const gx_load_options options = { .kind = kind,
                                      .sets = &set,
                                      .n_sets = hidden != NULL };
    gx_graph *graph;
    gx_error err = { 0 };

    assert_ok(gx_graph_parse(text, strlen(text), "model.yaml", folder, &options, &graph,
                             NULL, &err),
              &err);
    return graph;
}

static gx_state *make(const gx_graph *graph, uint64_t seed, bool exact)
{
    const gx_state_options options = { .device = GX_CPU, .seed = seed, .exact = exact };
    gx_state *state;
    gx_error err = { 0 };

    assert_ok(gx_state_create(&graph, 1, &options, &state, &err), &err);
    return state;
}

static void read_doubles(gx_state *state, const char *name, int rank, const int64_t *dim,
                         double *out)
{
    gx_tensor host = { .dtype = GX_F64, .rank = rank, .data = out };
    gx_error err = { 0 };

    for (int i = 0; i < rank; i++)
        host.dim[i] = dim[i];
    assert_ok(gx_state_read(state, name, &host, &err), &err);
}

static void first_values_follow_the_seed_and_the_declared_type(void **unused)
{
    static const char narrow[] = "gexec: 1\nname: n\nprecision: bf16\n"
                                 "inputs: {x: {shape: [2, 40], init: normal}}\n"
                                 "params: {w: {shape: [40, 3], init: normal}}\n"
                                 "ops: [{op: gemm, name: y, a: x, b: w}]\noutputs: [y]\n";
    gx_graph *graph = parse(narrow, GX_TRAIN, NULL, NULL);
    const uint64_t seed = test_seed();
    gx_state *a = make(graph, seed, false);
    gx_state *b = make(graph, seed, false);
    gx_state *other = make(graph, seed + 1, false);
    gx_state *exact = make(graph, seed, true);
    double wa[120], wb[120], wo[120], we[120];
    const int64_t dim[] = { 40, 3 };
    int n_rounded = 0;

    (void)unused;
    read_doubles(a, "w", 2, dim, wa);
    read_doubles(b, "w", 2, dim, wb);
    read_doubles(other, "w", 2, dim, wo);
    read_doubles(exact, "w", 2, dim, we);
    assert_memory_equal(wa, wb, sizeof wa);
    assert_memory_not_equal(wa, wo, sizeof wa);
    for (int i = 0; i < 120; i++) {
        assert_true(wa[i] == gx_round_to(GX_BF16, we[i]));
        n_rounded += wa[i] < we[i] || wa[i] > we[i];
    }
    assert_true(n_rounded > 60);
    gx_state_free(exact);
    gx_state_free(other);
    gx_state_free(b);
    gx_state_free(a);
    gx_graph_free(graph);
}

static void what_is_written_is_read_back(void **unused)
{
    gx_graph *graph = parse(model, GX_TRAIN, NULL, NULL);
    gx_state *state = make(graph, 1, false);
    float in[] = { 1.5f, -2.25f, 3e-3f }, out[3];
    double wide[] = { 1.0 / 3, 2, -0.0 }, back[3];
    const gx_tensor from = { .dtype = GX_F32, .rank = 1, .dim = { 3 }, .data = in };
    const gx_tensor from_wide = {
        .dtype = GX_F64, .rank = 1, .dim = { 3 }, .data = wide
    };
    gx_tensor to = { .dtype = GX_F32, .rank = 1, .dim = { 3 }, .data = out };
    gx_error err = { 0 };

    (void)unused;
    assert_ok(gx_state_write(state, "b", &from, &err), &err);
    assert_ok(gx_state_read(state, "b", &to, &err), &err);
    assert_memory_equal(in, out, sizeof in);
    assert_ok(gx_state_write(state, "b", &from_wide, &err), &err);
    read_doubles(state, "b", 1, (int64_t[]){ 3 }, back);
    for (int i = 0; i < 3; i++)
        assert_true(back[i] == (double)(float)wide[i]);
    gx_state_free(state);
    gx_graph_free(graph);
}

static void wrong_names_shapes_and_types_are_named(void **unused)
{
    gx_graph *graph = parse(model, GX_TRAIN, NULL, NULL);
    gx_state *state = make(graph, 1, false);
    float values[4] = { 0 };
    double negative_nan = copysign(NAN, -1);
    gx_tensor host = { .dtype = GX_F32, .rank = 1, .dim = { 4 }, .data = values };
    const gx_tensor no_count = {
        .dtype = GX_F64, .rank = 1, .dim = { 1 }, .data = &negative_nan
    };
    gx_error err = { 0 };

    (void)unused;
    assert_fails(gx_state_write(state, "b", &host, &err), GX_ERR_SHAPE, &err,
                 "'b': expected shape [3], found [4]");
    assert_fails(gx_state_read(state, "gexec.stepp", &host, &err), GX_ERR_ARGUMENT, &err,
                 "'gexec.step'");
    host.dim[0] = 3;
    host.dtype = GX_BF16;
    assert_fails(gx_state_write(state, "b", &host, &err), GX_ERR_SHAPE, &err,
                 "'b': expected f32 or f64, found bf16");
    assert_fails(gx_state_set_rate(state, NAN, &err), GX_ERR_ARGUMENT, &err, "nan");
    /* The sign that some NaNs have is not told. */
    assert_fails(gx_state_set_rate(state, copysign(NAN, -1), &err), GX_ERR_ARGUMENT, &err,
                 "of nan is not a number");
    assert_fails(gx_state_write(state, "gexec.step", &no_count, &err), GX_ERR_DATA, &err,
                 "element 0 is nan, which no i32 holds");
    assert_fails(gx_state_set_rate(state, -1, &err), GX_ERR_ARGUMENT, &err,
                 "-1 is not a number from 0 up");
    assert_fails(gx_state_set_rate(state, 1e39, &err), GX_ERR_ARGUMENT, &err,
                 "1e+39 is out of f32's range");
    assert_ok(gx_state_set_rate(state, 1e38, &err), &err);
    assert_ok(gx_state_set_rate(state, 1e-60, &err), &err);
    gx_state_free(state);
    gx_graph_free(graph);
}

static void a_value_that_its_state_cannot_have_is_refused(void **unused)
{
    static const char scaled[] =
        "gexec: 1\nprecision: f16\n"
        "inputs: {t: {shape: [6], dtype: f32, init: {constant: 0.5}}}\n"
        "params: {w: {shape: [6], init: normal}, v: {shape: [6], init: normal}}\n"
        "ops:\n"
        "  - {op: mul, name: y, a: w, b: v}\n"
        "  - {op: mse, name: loss, x: y, target: t}\n"
        "backward: loss\n"
        "optimizer: {sgd: {lr: 0.1}, groups: [{params: v, lr: 0.2}], "
        "loss_scale: {dynamic: {}}}\n"
        "outputs: [loss]\n";
    static const struct {
        const char *name;
        int rank;
        double value;
        const char *says; /* NULL: it is taken */
    } rows[] = {
        { "gexec.lr", 1, -1, "gexec.lr: element 0, -1, is not a number from 0 up" },
        { "gexec.lr", 1, NAN, "is not a number from 0 up" },
        { "gexec.lr", 1, INFINITY, "gexec.lr: element 0, inf, is out of f32's range" },
        { "gexec.lr.1", 1, -0.5, "gexec.lr.1: element 0, -0.5, is not a number from" },
        { "gexec.scale", 0, 0, "gexec.scale: element 0, 0, is not a number above 0" },
        { "gexec.scale", 0, -2, "is not a number above 0 that f32 holds" },
        { "gexec.scale", 0, NAN, "is not a number above 0" },
        { "gexec.scale", 0, INFINITY, "is not a number above 0" },
        { "gexec.step", 1, 1.5, "gexec.step: element 0, 1.5, is not an integer" },
        { "gexec.skipped", 1, 0.25, "gexec.skipped: element 0, 0.25, is not an integer" },
        { "gexec.step", 1, 1e19, "which no i32 holds" },
        { "gexec.lr", 1, 0, NULL },
        { "gexec.scale", 0, 0.5, NULL },
        { "gexec.step", 1, 3, NULL },
    };
    gx_graph *graph = parse(scaled, GX_TRAIN, NULL, NULL);

    (void)unused;
    for (int exact = 0; exact < 2; exact++) {
        gx_state *state = make(graph, 1, exact);

        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            double value = rows[i].value, before, after;
            const gx_tensor host = {
                .dtype = GX_F64, .rank = rows[i].rank, .dim = { 1 }, .data = &value
            };
            gx_error err = { 0 };

            read_doubles(state, rows[i].name, rows[i].rank, (int64_t[]){ 1 }, &before);
            if (!rows[i].says) {
                assert_ok(gx_state_write(state, rows[i].name, &host, &err), &err);
                continue;
            }
            assert_fails(gx_state_write(state, rows[i].name, &host, &err), GX_ERR_DATA,
                         &err, rows[i].says);
            read_doubles(state, rows[i].name, rows[i].rank, (int64_t[]){ 1 }, &after);
            assert_memory_equal(&before, &after, sizeof before);
        }
        gx_state_free(state);
    }
    gx_graph_free(graph);
}

static void a_snapshot_brings_parameters_and_state_back(void **unused)
{
    gx_graph *graph = parse(model, GX_TRAIN, NULL, NULL);
    gx_state *state = make(graph, 1, false);
    gx_state *other = make(graph, 1, false);
    double before[12], after[12], zeros[12] = { 0 }, rate;
    const int64_t dim[] = { 4, 3 };
    const gx_tensor host = { .dtype = GX_F64, .rank = 2, .dim = { 4, 3 }, .data = zeros };
    gx_snapshot *snapshot;
    gx_error err = { 0 };

    (void)unused;
    read_doubles(state, "w", 2, dim, before);
    assert_ok(gx_state_save(state, &snapshot, &err), &err);
    assert_ok(gx_state_write(state, "w", &host, &err), &err);
    assert_ok(gx_state_set_rate(state, 0.25, &err), &err);
    read_doubles(state, GX_STATE_LR, 1, (int64_t[]){ 1 }, &rate);
    assert_true(rate == 0.25);
    assert_ok(gx_state_restore(state, snapshot, &err), &err);
    read_doubles(state, "w", 2, dim, after);
    assert_memory_equal(before, after, sizeof before);
    read_doubles(state, GX_STATE_LR, 1, (int64_t[]){ 1 }, &rate);
    assert_true(rate == 0.5);
    assert_fails(gx_state_restore(other, snapshot, &err), GX_ERR_ARGUMENT, &err,
                 "another state");
    gx_snapshot_free(snapshot);
    gx_snapshot_free(NULL);
    gx_state_free(other);
    gx_state_free(state);
    gx_graph_free(graph);
}

static void programs_of_one_model_share_their_tensors(void **unused)
{
    gx_graph *graphs[] = { parse(model, GX_TRAIN, NULL, NULL),
                           parse(model, GX_EVAL, NULL, NULL) };
    gx_graph *other = parse(model, GX_EVAL, "5", NULL);
    const gx_graph *clash[] = { graphs[0], other };
    const gx_state_options options = { .device = GX_CPU };
    gx_state *state;
    gx_error err = { 0 };
    size_t n_data = 0;

    (void)unused;
    assert_ok(gx_state_create((const gx_graph *const *)graphs, 2, &options, &state, &err),
              &err);
    for (size_t i = 0; i < state->n_entries; i++) {
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(state->entries[i].name, state->entries[k].name);
        assert_int_equal((uintptr_t)state->entries[i].data % GX_ALIGNMENT, 0);
        n_data += state->entries[i].kind == GX_VALUE_DATA;
    }
    assert_int_equal(n_data, 0);
    assert_non_null(gx_state_find(state, "w"));
    assert_non_null(gx_state_find(state, GX_EVAL_STEP));
    assert_null(gx_state_find(state, "y"));
    gx_state_free(state);
    assert_fails(gx_state_create(clash, 2, &options, &state, &err), GX_ERR_SHAPE, &err,
                 "f32 [3] in one program and f32 [5] in another");
    assert_null(state);
    gx_graph_free(other);
    gx_graph_free(graphs[1]);
    gx_graph_free(graphs[0]);
}

static void too_much_memory_is_refused_before_any_is_taken(void **unused)
{
    static const char large[] = "gexec: 1\nname: large\nprecision: f32\n"
                                "inputs: {x: {shape: [1, 900000]}}\n"
                                "params: {w: {shape: [900000, 1000000], init: normal}}\n"
                                "ops: [{op: gemm, name: y, a: x, b: w}]\noutputs: [y]\n";
    gx_graph *graph = parse(large, GX_TRAIN, NULL, NULL);
    const gx_graph *list[] = { graph };
    const gx_state_options options = { .device = GX_CPU };
    gx_state *state;
    gx_error err = { 0 };

    (void)unused;
    assert_fails(gx_state_create(list, 1, &options, &state, &err), GX_ERR_MEMORY, &err,
                 "need 7200000");
    assert_has(err.message, "are free on the host");
    assert_null(state);
    gx_graph_free(graph);
}

/* --- data --- */

static const char with_data[] = "gexec: 1\n"
                                "name: data\n"
                                "dims: {batch: 2}\n"
                                "precision: f32\n"
                                "data:\n"
                                "  x: x.npy\n"
                                "  y: y.npy\n"
                                "  split: split.npy\n"
                                "inputs:\n"
                                "  x: {shape: [batch, 2]}\n"
                                "  y: {shape: [batch], dtype: i32}\n"
                                "params: {w: {shape: [2, 3], init: he_normal}}\n"
                                "ops:\n"
                                "  - {op: gemm, name: z, a: x, b: w}\n"
                                "  - {op: softmax_cross_entropy, name: loss, logits: z, "
                                "labels: y}\n"
                                "backward: loss\n"
                                "optimizer: {sgd: {lr: 0.5}}\n"
                                "outputs: [loss]\n";

enum { ROWS = 7 };
static const int32_t split[ROWS] = { 0, 1, 0, 0, 1, 0, 0 };

static void write_npy(const char *name, gx_dtype dtype, int rank, int64_t columns,
                      void *data)
{
    const gx_tensor tensor = {
        .dtype = dtype, .rank = rank, .dim = { ROWS, columns }, .data = data
    };
    char *path = test_path(name);
    gx_error err = { 0 };

    assert_ok(gx_npy_write(path, &tensor, &err), &err);
    free(path);
}

static void write_data(int32_t bad_label)
{
    float x[ROWS * 2];
    int32_t y[ROWS], parts[ROWS];

    for (int i = 0; i < ROWS; i++) {
        x[2 * i] = (float)i;
        x[2 * i + 1] = (float)i / 4;
        y[i] = i == 5 ? bad_label : i % 3;
        parts[i] = split[i];
    }
    write_npy("x.npy", GX_F32, 2, 2, x);
    write_npy("y.npy", GX_I32, 1, 0, y);
    write_npy("split.npy", GX_I32, 1, 0, parts);
}

static void data_and_row_lists_come_from_the_files(void **unused)
{
    gx_graph *graphs[2];
    const gx_state_options options = { .device = GX_CPU };
    double x[ROWS * 2], train[5], held[2];
    gx_state *state;
    gx_error err = { 0 };

    (void)unused;
    write_data(1);
    graphs[0] = parse(with_data, GX_TRAIN, NULL, test_folder());
    graphs[1] = parse(with_data, GX_EVAL, NULL, test_folder());
    assert_ok(gx_state_create((const gx_graph *const *)graphs, 2, &options, &state, &err),
              &err);
    read_doubles(state, "data.x", 2, (int64_t[]){ ROWS, 2 }, x);
    for (int i = 0; i < ROWS; i++)
        assert_true(x[2 * i] == i && x[2 * i + 1] == i / 4.0);
    read_doubles(state, "data.train", 1, (int64_t[]){ 5 }, train);
    read_doubles(state, "data.held", 1, (int64_t[]){ 2 }, held);
    assert_memory_equal(train, ((double[]){ 0, 2, 3, 5, 6 }), sizeof train);
    assert_memory_equal(held, ((double[]){ 1, 4 }), sizeof held);
    gx_state_free(state);
    gx_graph_free(graphs[1]);
    gx_graph_free(graphs[0]);
}

static void a_label_out_of_range_is_named_with_file_row_and_value(void **unused)
{
    gx_graph *graph;
    const gx_graph *list[1];
    const gx_state_options options = { .device = GX_CPU };
    int32_t labels[ROWS] = { 0, 0, 3, 0, 0, 0, 0 };
    const gx_tensor host = {
        .dtype = GX_I32, .rank = 1, .dim = { ROWS }, .data = labels
    };
    gx_state *state;
    gx_error err = { 0 };

    (void)unused;
    write_data(3);
    graph = parse(with_data, GX_TRAIN, NULL, test_folder());
    list[0] = graph;
    assert_fails(gx_state_create(list, 1, &options, &state, &err), GX_ERR_DATA, &err,
                 "y.npy: row 5: label 3 is not in [0, 3)");
    write_data(-1);
    assert_fails(gx_state_create(list, 1, &options, &state, &err), GX_ERR_DATA, &err,
                 "row 5: label -1");
    write_data(2);
    assert_ok(gx_state_create(list, 1, &options, &state, &err), &err);
    assert_fails(gx_state_write(state, "data.y", &host, &err), GX_ERR_DATA, &err,
                 "row 2: value 3");
    gx_state_free(state);
    gx_graph_free(graph);
}

static void files_that_changed_since_the_model_was_read_are_refused(void **unused)
{
    gx_graph *graph;
    const gx_graph *list[1];
    const gx_state_options options = { .device = GX_CPU };
    float wide[ROWS * 3] = { 0 };
    int32_t all[ROWS] = { 0 };
    gx_state *state;
    gx_error err = { 0 };

    (void)unused;
    write_data(1);
    graph = parse(with_data, GX_TRAIN, NULL, test_folder());
    list[0] = graph;
    write_npy("x.npy", GX_F32, 2, 3, wide);
    assert_fails(gx_state_create(list, 1, &options, &state, &err), GX_ERR_SHAPE, &err,
                 "x.npy: shape [7, 3], but the model has [7, 2]");
    write_data(1);
    write_npy("split.npy", GX_I32, 1, 0, all);
    assert_fails(gx_state_create(list, 1, &options, &state, &err), GX_ERR_DATA, &err,
                 "7 rows of part 0, but there were 5");
    all[4] = 2;
    write_npy("split.npy", GX_I32, 1, 0, all);
    assert_fails(gx_state_create(list, 1, &options, &state, &err), GX_ERR_DATA, &err,
                 "row 4: 2; expected 0");
    gx_graph_free(graph);
}

static void only_the_cpu_is_exact(void **unused)
{
    gx_graph *graph = parse(model, GX_TRAIN, NULL, NULL);
    const gx_graph *list[] = { graph };
    const gx_state_options options = { .device = 0, .exact = true };
    const gx_state_options none = { .device = -7 };
    gx_state *state;
    gx_error err = { 0 };

    (void)unused;
    assert_fails(gx_state_create(list, 1, &options, &state, &err), GX_ERR_ARGUMENT, &err,
                 "exact");
    assert_fails(gx_state_create(list, 1, &none, &state, &err), GX_ERR_ARGUMENT, &err,
                 "-7");
    gx_graph_free(graph);
}

/* As for a plan: the CPU, or the first GPU where the library has CUDA. */
static void a_state_needs_no_options(void **unused)
{
    gx_graph *graph = parse(model, GX_TRAIN, NULL, NULL);
    const gx_graph *list[] = { graph };
    const int device = gx_has_cuda() ? 0 : GX_CPU;
    gx_state *state;
    gx_error err = { 0 };
    gx_error reason = { 0 };
    int n = 0;

    (void)unused;
    if (device != GX_CPU && (gx_device_count(&n, &reason) != GX_OK || n == 0)) {
        assert_int_not_equal(gx_state_create(list, 1, NULL, &state, &err), GX_OK);
        assert_null(state);
    } else {
        assert_ok(gx_state_create(list, 1, NULL, &state, &err), &err);
        assert_int_equal(gx_state_device(state), device);
        gx_state_free(state);
    }
    gx_graph_free(graph);
}

/* `from` is for inputs and state as it is for parameters. */
static void tensors_of_every_section_come_from_files(void **unused)
{
    static const char text[] = "gexec: 1\nname: n\nprecision: f32\n"
                               "inputs: {x: {shape: [7, 2], from: x.npy}}\n"
                               "state: {s: {shape: [7, 2], from: x.npy}}\n"
                               "ops: [{op: add, name: y, a: x, b: s}]\noutputs: [y]\n";
    double x[ROWS * 2];

    (void)unused;
    write_data(1);
    gx_graph *graph = parse(text, GX_TRAIN, NULL, test_folder());
    gx_state *state = make(graph, 1, false);

    assert_int_equal(graph->values[gx_graph_value_id(graph, "x")].init.kind,
                     GX_INIT_FILE);
    read_doubles(state, "s", 2, (int64_t[]){ ROWS, 2 }, x);
    for (int i = 0; i < ROWS; i++)
        assert_true(x[2 * i] == i && x[2 * i + 1] == i / 4.0);
    gx_state_free(state);
    gx_graph_free(graph);
}

/* The program of the rows that are left over shares the parameters of the whole one, also
 * where their sizes are computed from the batch. */
static void a_short_batch_changes_inputs_alone(void **unused)
{
    static const char text[] =
        "gexec: 1\nname: n\nprecision: f32\ndims: {batch: 2, hidden: 3 * batch}\n"
        "data: {x: {file: x.npy, scale: 1}, y: y.npy}\n"
        "inputs: {x: {shape: [batch, 2]}, y: {shape: [batch], dtype: i32}}\n"
        "params: {w: {shape: [2, hidden], init: ones}, b: {shape: [3 * batch]}}\nops:\n"
        "  - {op: gemm, name: z, a: x, b: w, epilogue: {bias: b}}\n"
        "  - repeat: {name: r, count: batch, carry: {h: z}, "
        "ops: [{op: relu, name: h, x: h}]}\n"
        "  - {op: softmax_cross_entropy, name: loss, logits: h, labels: y}\n"
        "backward: loss\noptimizer: {sgd: {lr: 0.5}}\noutputs: [z, loss]\n";
    const gx_set set = { "batch", "4" };
    const gx_load_options whole = { .sets = &set, .n_sets = 1 };
    gx_load_options part = whole;
    const gx_state_options options = { .device = GX_CPU };
    gx_graph *graphs[3];
    gx_state *state;
    gx_error err = { 0 };

    (void)unused;
    write_data(1);
    part.batch_rows = 3;
    for (int i = 0; i < 2; i++)
        assert_ok(gx_graph_parse(text, strlen(text), "m", test_folder(),
                                 i ? &part : &whole, &graphs[i], NULL, &err),
                  &err);
    for (int i = 0; i < 2; i++) {
        const gx_value *z = &graphs[i]->values[gx_graph_value_id(graphs[i], "z")];

        assert_int_equal(z->dim[0], i ? 3 : 4);
        assert_int_equal(z->dim[1], 12);
        assert_int_equal(gx_graph_data(graphs[i]).batch, i ? 3 : 4);
        assert_true(gx_graph_node_id(graphs[i], "r.3.h") >= 0);
    }
    assert_ok(gx_state_create((const gx_graph *const *)graphs, 2, &options, &state, &err),
              &err);
    gx_state_free(state);

    char *yaml = gx_graph_yaml(graphs[1]); /* the short one, written out */

    assert_ok(gx_graph_parse(yaml, strlen(yaml), "m", test_folder(), NULL, &graphs[2],
                             NULL, &err),
              &err);
    assert_int_equal(gx_graph_data(graphs[2]).batch, 3);
    gx_graph_free(graphs[2]);
    assert_fails(gx_graph_parse(yaml, strlen(yaml), "m", test_folder(), &part, &graphs[2],
                                NULL, &err),
                 GX_ERR_MODEL, &err, "sizes written out");
    free(yaml);
    part.batch_rows = -1;
    assert_fails(gx_graph_parse(text, strlen(text), "m", test_folder(), &part, &graphs[2],
                                NULL, &err),
                 GX_ERR_MODEL, &err, "batch_rows is -1: 1 or more is expected");
    assert_fails(gx_graph_parse(model, strlen(model), "m", NULL,
                                &(gx_load_options){ .batch_rows = 1 }, &graphs[2], NULL,
                                &err),
                 GX_ERR_MODEL, &err, "batch_rows is 1: no data feeds the model");
    gx_graph_free(graphs[1]);
    gx_graph_free(graphs[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_values_follow_the_seed_and_the_declared_type),
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(wrong_names_shapes_and_types_are_named),
        cmocka_unit_test(a_value_that_its_state_cannot_have_is_refused),
        cmocka_unit_test(a_snapshot_brings_parameters_and_state_back),
        cmocka_unit_test(programs_of_one_model_share_their_tensors),
        cmocka_unit_test(too_much_memory_is_refused_before_any_is_taken),
        cmocka_unit_test(data_and_row_lists_come_from_the_files),
        cmocka_unit_test(a_label_out_of_range_is_named_with_file_row_and_value),
        cmocka_unit_test(files_that_changed_since_the_model_was_read_are_refused),
        cmocka_unit_test(only_the_cpu_is_exact),
        cmocka_unit_test(a_state_needs_no_options),
        cmocka_unit_test(tensors_of_every_section_come_from_files),
        cmocka_unit_test(a_short_batch_changes_inputs_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
