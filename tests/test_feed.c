/* Programs whose data stream, on the CPU: the same steps to the bit as with the data set
 * on the device. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "state.h"
#include "support.h"
#include "support_stream.h"

/* --- the programs of a model, streaming or not --- */

enum { TRAIN, TRAIN_SHORT, EVAL, EVAL_SHORT, N_PROGRAMS };

typedef struct programs {
    gx_graph *graph[N_PROGRAMS];
    gx_state *state;
    gx_plan *plan[N_PROGRAMS];
    gx_exec *exec[N_PROGRAMS];
} programs;

static programs open_programs(gx_streaming stream, const char *precision,
                              const char *more, uint64_t seed)
{
    const gx_kind kinds[] = { GX_TRAIN, GX_TRAIN, GX_EVAL, GX_EVAL };
    const int64_t rows[] = { 0, 7, 0, 2 };
    const gx_plan_options plan_options = { .device = GX_CPU };
    const gx_state_options options = { .device = GX_CPU, .seed = seed };
    programs p;
    gx_error err = { 0 };

    for (int i = 0; i < N_PROGRAMS; i++)
        p.graph[i] = test_rows_load(kinds[i], stream, rows[i], precision, more);
    assert_ok(gx_state_create((const gx_graph *const *)p.graph, N_PROGRAMS, &options,
                              &p.state, &err),
              &err);
    for (int i = 0; i < N_PROGRAMS; i++) {
        assert_ok(gx_plan_create(p.graph[i], &plan_options, &p.plan[i], &err), &err);
        assert_ok(gx_exec_create(p.plan[i], p.state, NULL, &p.exec[i], &err), &err);
    }
    return p;
}

static void close_programs(programs *p)
{
    for (int i = 0; i < N_PROGRAMS; i++) {
        gx_exec_free(p->exec[i]);
        gx_plan_free(p->plan[i]);
    }
    gx_state_free(p->state);
    for (int i = 0; i < N_PROGRAMS; i++)
        gx_graph_free(p->graph[i]);
}

static void run(const programs *p, int program, int64_t n)
{
    gx_error err = { 0 };

    assert_ok(gx_exec_run(p->exec[program], GX_MODE_CPU, n, &err), &err);
}

/* Every parameter and state, and the inputs of the program that ran last. */
static void assert_equal(const programs *a, const programs *b, int last)
{
    gx_error err = { 0 };

    for (size_t i = 0; i < gx_graph_value_count(a->graph[last]); i++) {
        const gx_value_info value = gx_graph_value(a->graph[last], i);
        gx_tensor tensor[2];

        if (value.kind == GX_VALUE_DATA ||
            (value.kind == GX_VALUE_TEMP && !value.is_output))
            continue;
        for (int k = 0; k < 2; k++) {
            tensor[k] = (gx_tensor){ .dtype = value.dtype == GX_I32 ? GX_I32 : GX_F64,
                                     .rank = value.rank };
            memcpy(tensor[k].dim, value.dim, sizeof value.dim);
            tensor[k].data = calloc((size_t)gx_count(&tensor[k]) + 1, sizeof(double));
            assert_ok(gx_exec_read((k ? b : a)->exec[last], value.name, &tensor[k], &err),
                      &err);
        }
        if (memcmp(tensor[0].data, tensor[1].data,
                   (size_t)gx_count(&tensor[0]) * gx_dtype_bytes(tensor[0].dtype)) != 0)
            fail_msg("'%s' differs", value.name);
        free(tensor[0].data);
        free(tensor[1].data);
    }
}

/* Two epochs and an evaluation, compared on the way. */
static void compare_runs(const char *precision, const char *more)
{
    const uint64_t seed = test_seed();
    programs resident = open_programs(GX_STREAM_OFF, precision, more, seed);
    programs stream = open_programs(GX_STREAM_ON, precision, more, seed);

    for (int epoch = 0; epoch < 2; epoch++) {
        run(&resident, TRAIN, 2);
        run(&stream, TRAIN, 2);
        assert_equal(&resident, &stream, TRAIN);
        run(&resident, TRAIN, 1);
        run(&stream, TRAIN, 1);
        run(&resident, TRAIN_SHORT, 1);
        run(&stream, TRAIN_SHORT, 1);
        assert_equal(&resident, &stream, TRAIN_SHORT);
        run(&resident, EVAL, 1);
        run(&stream, EVAL, 1);
        assert_equal(&resident, &stream, EVAL);
        run(&resident, EVAL_SHORT, 1);
        run(&stream, EVAL_SHORT, 1);
        assert_equal(&resident, &stream, EVAL_SHORT);
    }
    /* over the end of an epoch with whole batches alone */
    run(&resident, TRAIN, 9);
    run(&stream, TRAIN, 9);
    assert_equal(&resident, &stream, TRAIN);
    close_programs(&stream);
    close_programs(&resident);
}

static void streaming_changes_no_bit(void **state)
{
    (void)state;
    test_rows_write();
    compare_runs("f32", "");
    compare_runs("bf16", "");
    compare_runs("f16", "");
    compare_runs("f32", ", drop_last: true");
}

static void scaled_columns_are_scaled(void **state)
{
    char text[] = "gexec: 1\nname: s\nprecision: %s\ndims: {batch: 5}\n"
                  "data: {x: {file: x.npy, scale: 0.3, shift: -0.7}, z: {file: y.npy, "
                  "scale: 2, shift: 1}, w: y.npy}\n"
                  "inputs: {x: {shape: [batch, 3]}, z: {shape: [batch], dtype: i32}, "
                  "w: {shape: [batch]}}\n"
                  "ops: [{op: relu, name: r, x: x}]\noutputs: [x, z, w, r]\n";
    static const char *const precisions[] = { "f32", "bf16", "f16" };
    gx_error err = { 0 };

    (void)state;
    test_rows_write();
    for (size_t p = 0; p < ARRAY_SIZE(precisions); p++) {
        double x[2][15], w[2][5];
        int32_t z[2][5];

        for (int k = 0; k < 2; k++) {
            const gx_load_options options = { .stream =
                                                  k ? GX_STREAM_ON : GX_STREAM_OFF };
            char model[1000];
            gx_graph *graph;
            gx_plan *plan;
            gx_state *made;
            gx_exec *exec;
            gx_tensor to_x = {
                .dtype = GX_F64, .rank = 2, .dim = { 5, 3 }, .data = x[k]
            };
            gx_tensor to_z = { .dtype = GX_I32, .rank = 1, .dim = { 5 }, .data = z[k] };
            gx_tensor to_w = { .dtype = GX_F64, .rank = 1, .dim = { 5 }, .data = w[k] };

            snprintf(model, sizeof model, text, precisions[p]);
            assert_ok(gx_graph_parse(model, strlen(model), "s", test_folder(), &options,
                                     &graph, NULL, &err),
                      &err);
            assert_ok(gx_plan_create(graph, &(gx_plan_options){ .device = GX_CPU }, &plan,
                                     &err),
                      &err);
            assert_ok(gx_state_create((const gx_graph *const *)&graph, 1,
                                      &(gx_state_options){ .device = GX_CPU }, &made,
                                      &err),
                      &err);
            assert_ok(gx_exec_create(plan, made, NULL, &exec, &err), &err);
            assert_ok(gx_exec_run(exec, GX_MODE_CPU, 4, &err), &err);
            assert_ok(gx_exec_read(exec, "x", &to_x, &err), &err);
            assert_ok(gx_exec_read(exec, "z", &to_z, &err), &err);
            assert_ok(gx_exec_read(exec, "w", &to_w, &err), &err);
            gx_exec_free(exec);
            gx_state_free(made);
            gx_plan_free(plan);
            gx_graph_free(graph);
        }
        assert_memory_equal(x[0], x[1], sizeof x[0]);
        assert_memory_equal(z[0], z[1], sizeof z[0]);
        assert_memory_equal(w[0], w[1], sizeof w[0]);
        assert_true(z[0][0] % 2 == 1); /* 2 y + 1 */
    }
}

/* --- where a program stands --- */

static void write_counter(gx_state *state, const char *name, int32_t value)
{
    const gx_tensor host = { .dtype = GX_I32, .rank = 1, .dim = { 1 }, .data = &value };
    gx_error err = { 0 };

    assert_ok(gx_state_write(state, name, &host, &err), &err);
}

static void written_counters_and_snapshots_are_followed(void **state)
{
    const uint64_t seed = test_seed();
    programs resident, stream;
    gx_snapshot *before[2];
    gx_error err = { 0 };

    (void)state;
    test_rows_write();
    resident = open_programs(GX_STREAM_OFF, "f32", "", seed);
    stream = open_programs(GX_STREAM_ON, "f32", "", seed);
    for (int k = 0; k < 2; k++) {
        programs *p = k ? &stream : &resident;

        run(p, TRAIN, 1);
        assert_ok(gx_state_save(p->state, &before[k], &err), &err);
        run(p, TRAIN, 3);
        assert_ok(gx_state_restore(p->state, before[k], &err), &err);
        run(p, TRAIN, 1);
    }
    assert_equal(&resident, &stream, TRAIN);
    for (int k = 0; k < 2; k++) {
        programs *p = k ? &stream : &resident;

        write_counter(p->state, "gexec.sample", 11);
        write_counter(p->state, "gexec.epoch", 5);
        run(p, TRAIN, 2);
        gx_snapshot_free(before[k]);
    }
    assert_equal(&resident, &stream, TRAIN);
    write_counter(stream.state, "gexec.sample", -1);
    assert_fails(gx_exec_run(stream.exec[TRAIN], GX_MODE_CPU, 1, &err), GX_ERR_DATA, &err,
                 "gexec.sample is -1");
    close_programs(&stream);
    close_programs(&resident);
}

/* A program that gathers on the device and one that streams share counters. */
static void a_resident_program_beside_moves_the_counters_on(void **state)
{
    gx_graph *graphs[2];
    gx_plan *plan[2];
    gx_exec *exec[2];
    gx_state *made;
    const gx_state_options options = { .device = GX_CPU, .seed = 3 };
    int32_t sample = -1;
    gx_tensor counter = { .dtype = GX_I32, .rank = 1, .dim = { 1 }, .data = &sample };
    double x[2][24];
    gx_error err = { 0 };

    (void)state;
    test_rows_write();
    graphs[0] = test_rows_load(GX_TRAIN, GX_STREAM_ON, 0, "f32", "");
    graphs[1] = test_rows_load(GX_TRAIN, GX_STREAM_OFF, 0, "f32", "");
    assert_ok(gx_state_create((const gx_graph *const *)graphs, 2, &options, &made, &err),
              &err);
    for (int i = 0; i < 2; i++) {
        assert_ok(gx_plan_create(graphs[i], &(gx_plan_options){ .device = GX_CPU },
                                 &plan[i], &err),
                  &err);
        assert_ok(gx_exec_create(plan[i], made, NULL, &exec[i], &err), &err);
    }
    assert_ok(gx_exec_run(exec[0], GX_MODE_CPU, 1, &err), &err);
    assert_ok(gx_exec_run(exec[1], GX_MODE_CPU, 1, &err), &err);
    assert_ok(gx_state_read(made, "gexec.sample", &counter, &err), &err);
    assert_int_equal(sample, 16);
    /* the third batch, once by each */
    for (int i = 0; i < 2; i++) {
        gx_tensor to = { .dtype = GX_F64, .rank = 2, .dim = { 8, 3 }, .data = x[i] };

        write_counter(made, "gexec.sample", 8);
        assert_ok(gx_exec_run(exec[1], GX_MODE_CPU, 1, &err), &err);
        assert_ok(gx_exec_run(exec[i], GX_MODE_CPU, 1, &err), &err);
        assert_ok(gx_exec_read(exec[i], "x", &to, &err), &err);
    }
    assert_memory_equal(x[0], x[1], sizeof x[0]);
    for (int i = 0; i < 2; i++) {
        gx_exec_free(exec[i]);
        gx_plan_free(plan[i]);
    }
    gx_state_free(made);
    for (int i = 0; i < 2; i++)
        gx_graph_free(graphs[i]);
}

/* --- the graph --- */

static void a_graph_that_streams_has_no_data_and_no_gather(void **state)
{
    gx_graph *graph, *again;
    gx_error err = { 0 };
    char *yaml, *second;

    (void)state;
    test_rows_write();
    graph = test_rows_load(GX_TRAIN, GX_STREAM_ON, 0, "f32", "");
    assert_true(gx_graph_data(graph).streams);
    assert_true(gx_graph_data(graph).stream_auto);
    for (size_t i = 0; i < gx_graph_value_count(graph); i++) {
        const gx_value_info value = gx_graph_value(graph, i);

        assert_int_not_equal(value.kind, GX_VALUE_DATA);
        assert_int_equal(value.fed, value.kind == GX_VALUE_INPUT);
    }
    for (size_t i = 0; i < gx_graph_node_count(graph); i++)
        assert_string_not_equal(gx_op_name(gx_graph_node(graph, i).op), "gather");
    yaml = gx_graph_yaml(graph);
    assert_has(yaml, "stream: true");
    assert_ok(gx_graph_parse(yaml, strlen(yaml), "again", test_folder(), NULL, &again,
                             NULL, &err),
              &err);
    assert_true(gx_graph_data(again).streams);
    second = gx_graph_yaml(again);
    assert_string_equal(yaml, second);
    gx_graph_free(again);
    /* what is written out cannot be had another way */
    const gx_load_options off = { .stream = GX_STREAM_OFF };
    assert_fails(gx_graph_parse(yaml, strlen(yaml), "again", test_folder(), &off, &again,
                                NULL, &err),
                 GX_ERR_MODEL, &err, "written out to stream");
    free(second);
    free(yaml);
    gx_graph_free(graph);
}

static void the_model_and_the_caller_say_whether_data_stream(void **state)
{
    static const struct {
        const char *more;
        gx_streaming asked;
        bool streams, is_auto;
    } cases[] = {
        { "", GX_STREAM_AS_WRITTEN, false, true },
        { ", stream: auto", GX_STREAM_AS_WRITTEN, false, true },
        { ", stream: true", GX_STREAM_AS_WRITTEN, true, false },
        { ", stream: false", GX_STREAM_AS_WRITTEN, false, false },
        { ", stream: false", GX_STREAM_ON, true, false },
        { ", stream: true", GX_STREAM_OFF, false, false },
    };

    (void)state;
    test_rows_write();
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        gx_graph *graph =
            test_rows_load(GX_TRAIN, cases[i].asked, 0, "f32", cases[i].more);
        const gx_data_info info = gx_graph_data(graph);

        assert_int_equal(info.streams, cases[i].streams);
        assert_int_equal(info.stream_auto, cases[i].is_auto);
        gx_graph_free(graph);
    }
}

static void a_fed_input_is_not_written_by_hand(void **state)
{
    programs p;
    double x[24] = { 0 };
    const gx_tensor host = { .dtype = GX_F64, .rank = 2, .dim = { 8, 3 }, .data = x };
    gx_error err = { 0 };

    (void)state;
    test_rows_write();
    p = open_programs(GX_STREAM_ON, "f32", "", 1);
    assert_fails(gx_exec_write(p.exec[TRAIN], "x", &host, &err), GX_ERR_STATE, &err,
                 "fed from the model's data");
    assert_fails(gx_exec_bind(p.exec[TRAIN], "x", x, &err), GX_ERR_STATE, &err,
                 "fed from the model's data");
    close_programs(&p);
}

static void what_streaming_costs_is_counted(void **state)
{
    programs p;
    gx_exec_stats stats;

    (void)state;
    test_rows_write();
    p = open_programs(GX_STREAM_ON, "f32", "", 1);
    stats = gx_exec_stats_get(p.exec[TRAIN]);
    assert_int_equal(stats.data_steps, 0);
    run(&p, TRAIN, 3);
    stats = gx_exec_stats_get(p.exec[TRAIN]);
    assert_int_equal(stats.data_steps, 3);
    assert_true(stats.data_wait_s >= 0);
    close_programs(&p);
    p = open_programs(GX_STREAM_OFF, "f32", "", 1);
    run(&p, TRAIN, 3);
    stats = gx_exec_stats_get(p.exec[TRAIN]);
    assert_int_equal(stats.data_steps, 0);
    assert_true(stats.data_wait_s < 0);
    close_programs(&p);
}

/* --- bad files --- */

static void labels_are_checked_when_the_files_are_opened(void **state)
{
    int32_t y[TEST_ROWS] = { 0 };
    const gx_tensor bad = { .dtype = GX_I32, .rank = 1, .dim = { TEST_ROWS }, .data = y };
    const gx_state_options options = { .device = GX_CPU };
    gx_graph *graph;
    gx_state *made;
    char *path;
    gx_error err = { 0 };

    (void)state;
    test_rows_write();
    graph = test_rows_load(GX_TRAIN, GX_STREAM_ON, 0, "f32", "");
    path = test_path("y.npy");
    y[40] = 4;
    assert_ok(gx_npy_write(path, &bad, &err), &err);
    assert_fails(
        gx_state_create((const gx_graph *const *)&graph, 1, &options, &made, &err),
        GX_ERR_DATA, &err, "row 40: label 4 is not in [0, 4)");
    assert_null(made);
    y[40] = -1;
    assert_ok(gx_npy_write(path, &bad, &err), &err);
    assert_fails(
        gx_state_create((const gx_graph *const *)&graph, 1, &options, &made, &err),
        GX_ERR_DATA, &err, "row 40: label -1");
    /* a file that is another one by now */
    const gx_tensor few = {
        .dtype = GX_I32, .rank = 1, .dim = { TEST_ROWS - 1 }, .data = y
    };
    assert_ok(gx_npy_write(path, &few, &err), &err);
    assert_fails(
        gx_state_create((const gx_graph *const *)&graph, 1, &options, &made, &err),
        GX_ERR_SHAPE, &err, "[40], but the model has [41]");
    remove(path);
    assert_fails(
        gx_state_create((const gx_graph *const *)&graph, 1, &options, &made, &err),
        GX_ERR_READ, &err, "y.npy");
    free(path);
    gx_graph_free(graph);
}

/* --- whether it fits --- */

static void what_does_not_fit_is_told(void **state)
{
    char *path = test_path("x.npy");
    gx_graph *graph;
    bool fits = false;
    gx_error err = { 0 };
    FILE *file;

    (void)state;
    test_rows_write();
    graph = test_rows_load(GX_TRAIN, GX_STREAM_OFF, 0, "f32", "");
    assert_ok(gx_data_fits(graph, GX_CPU, &fits, &err), &err);
    assert_true(fits);
    gx_graph_free(graph);

    /* 2^31 - 1 rows of 2^20 numbers, a file full of holes: as doubles 16 PiB */
    static const char model[] =
        "gexec: 1\nname: big\nprecision: f32\ndims: {batch: 8}\ndata: {x: x.npy}\n"
        "inputs: {x: {shape: [batch, 16777216]}}\n"
        "ops: [{op: relu, name: r, x: x}]\noutputs: [r]\n";
    file = fopen(path, "wb");
    assert_non_null(file);
    fprintf(file, "\x93NUMPY%c%c%c%c%-117s\n", 1, 0, 118, 0,
            "{'descr': '|u1', 'fortran_order': False, 'shape': (65536, 16777216), }");
    assert_int_equal(fseeko(file, 128 + (INT64_C(1) << 40) - 1, SEEK_SET), 0);
    if (fputc(0, file) == EOF || fclose(file) != 0) {
        print_message("the file system takes no file of 1 TiB\n");
        remove(path);
        free(path);
        skip();
    }
    assert_ok(gx_graph_parse(model, sizeof model - 1, "big", test_folder(), NULL, &graph,
                             NULL, &err),
              &err);
    assert_ok(gx_data_fits(graph, GX_CPU, &fits, &err), &err);
    assert_false(fits);
    gx_graph_free(graph);

    /* Parameters that do not fit either: the data are not to blame. */
    static const char wide[] =
        "gexec: 1\nname: wide\nprecision: f32\ndims: {batch: 8}\ndata: {x: x.npy}\n"
        "inputs: {x: {shape: [batch, 16777216]}}\n"
        "params: {w: {shape: [16777216, 60000], init: zeros}}\n"
        "ops: [{op: gemm, name: g, a: x, b: w}]\noutputs: [g]\n";
    assert_ok(gx_graph_parse(wide, sizeof wide - 1, "wide", test_folder(), NULL, &graph,
                             NULL, &err),
              &err);
    assert_ok(gx_data_fits(graph, GX_CPU, &fits, &err), &err);
    assert_true(fits);
    gx_graph_free(graph);
    remove(path);
    free(path);
}

/* Labels of the step's batch that are not 2. */
static int64_t count_in_batch(gx_exec *exec, int64_t rows)
{
    int32_t y[TEST_ROWS];
    gx_tensor host = { .dtype = GX_I32, .rank = 1, .dim = { rows }, .data = y };
    gx_error err = { 0 };
    int64_t n = 0;

    assert_ok(gx_exec_read(exec, "y", &host, &err), &err);
    for (int64_t i = 0; i < rows; i++)
        n += y[i] != 2;
    return n;
}

/* Whole batches of three epochs, past the last row too, and of the held-out rows. */
static void count_a_program(gx_kind kind, gx_streaming stream, int64_t rows)
{
    const gx_state_options options = { .device = GX_CPU, .seed = 5 };
    gx_graph *graph = test_rows_load_ignoring(kind, stream, 0);
    int64_t counts[12] = { 0 };
    gx_state *state;
    gx_plan *plan;
    gx_exec *exec;
    gx_error err = { 0 };

    assert_string_equal(gx_graph_logged_labels(graph, 0), "y");
    assert_null(gx_graph_logged_labels(graph, 1)); /* accuracy */
    assert_ok(gx_state_create((const gx_graph *const *)&graph, 1, &options, &state, &err),
              &err);
    assert_ok(gx_plan_create(graph, &(gx_plan_options){ .device = GX_CPU }, &plan, &err),
              &err);
    assert_ok(gx_exec_create(plan, state, NULL, &exec, &err), &err);
    assert_ok(gx_state_count_labels(state, graph, 0, 0, 0, 12, counts, &err), &err);
    for (int i = 0; i < 12; i++) {
        assert_ok(gx_exec_run(exec, GX_MODE_CPU, 1, &err), &err);
        assert_int_equal(counts[i], count_in_batch(exec, rows));
    }
    assert_fails(gx_state_count_labels(state, graph, 1, 0, 0, 1, counts, &err),
                 GX_ERR_ARGUMENT, &err, "column 1 of the log leaves out no rows");
    assert_fails(gx_state_count_labels(state, graph, 0, TEST_ROWS, 0, 1, counts, &err),
                 GX_ERR_ARGUMENT, &err, "sample 41 of epoch 0 is none of the");
    gx_exec_free(exec);
    gx_plan_free(plan);
    gx_state_free(state);
    gx_graph_free(graph);
}

static void labels_that_count_are_those_of_the_batch(void **state)
{
    (void)state;
    test_rows_write();
    for (int k = 0; k < 2; k++) {
        count_a_program(GX_TRAIN, k ? GX_STREAM_ON : GX_STREAM_OFF, 8);
        count_a_program(GX_EVAL, k ? GX_STREAM_ON : GX_STREAM_OFF, 8);
    }
}

/* Labels that are written by hand are counted anew. */
static void written_labels_are_counted(void **state)
{
    gx_graph *graph = test_rows_load_ignoring(GX_TRAIN, GX_STREAM_OFF, 0);
    int32_t y[TEST_ROWS];
    const gx_tensor host = {
        .dtype = GX_I32, .rank = 1, .dim = { TEST_ROWS }, .data = y
    };
    int64_t count = -1;
    gx_state *made;
    gx_error err = { 0 };

    (void)state;
    assert_ok(gx_state_create((const gx_graph *const *)&graph, 1,
                              &(gx_state_options){ .device = GX_CPU }, &made, &err),
              &err);
    for (int32_t label = 1; label <= 2; label++) {
        for (int i = 0; i < TEST_ROWS; i++)
            y[i] = label;
        assert_ok(gx_state_write(made, "data.y", &host, &err), &err);
        assert_ok(gx_state_count_labels(made, graph, 0, 0, 0, 1, &count, &err), &err);
        assert_int_equal(count, label == 2 ? 0 : 8);
    }
    gx_state_free(made);
    gx_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streaming_changes_no_bit),
        cmocka_unit_test(scaled_columns_are_scaled),
        cmocka_unit_test(written_counters_and_snapshots_are_followed),
        cmocka_unit_test(a_resident_program_beside_moves_the_counters_on),
        cmocka_unit_test(a_graph_that_streams_has_no_data_and_no_gather),
        cmocka_unit_test(the_model_and_the_caller_say_whether_data_stream),
        cmocka_unit_test(a_fed_input_is_not_written_by_hand),
        cmocka_unit_test(what_streaming_costs_is_counted),
        cmocka_unit_test(labels_are_checked_when_the_files_are_opened),
        cmocka_unit_test(what_does_not_fit_is_told),
        cmocka_unit_test(labels_that_count_are_those_of_the_batch),
        cmocka_unit_test(written_labels_are_counted),
    };

    return cmocka_run_group_tests_name("feed", tests, NULL, NULL);
}
