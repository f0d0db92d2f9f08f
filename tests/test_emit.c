/* The expanded graph as YAML that loads again, and as DOT; data sections. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "emit.h"
#include "support_model.h"

static const char trained[] =
    "gexec: 1\nname: \"two words: \\\"quoted\\\"\"\nprecision: tf32\n"
    "dims: {batch: 3, hidden: 8, n: 2}\n%s"
    "inputs: {x: {shape: [batch, 4]}, y: {shape: [batch], dtype: i32}}\n"
    "params:\n"
    "  w1: {shape: [4, hidden], init: he_normal}\n"
    "  b1: {shape: [hidden], init: {torch_linear: {fan_in: 4}}}\n"
    "  w2: {shape: [hidden, 5], init: {normal: {std: 0.1}}}\n"
    "  b2: {shape: [5], trainable: false}\n"
    "ops:\n"
    "  - {op: gemm, name: fc1, a: x, b: w1, epilogue: {bias: b1, act: relu}, out: h0}\n"
    "  - repeat:\n"
    "      name: blk\n"
    "      count: n\n"
    "      carry: {h: h0}\n"
    "      params: {w: {shape: [hidden, hidden], init: xavier_uniform}}\n"
    "      ops:\n"
    "        - {op: gemm, name: fc, a: h, b: w, epilogue: {act: gelu_tanh}}\n"
    "        - {op: add, name: s, a: h, b: fc, out: h}\n"
    "  - {op: gemm, name: fc2, a: h, b: w2, epilogue: {bias: b2}, out: logits}\n"
    "  - {op: softmax_cross_entropy, name: loss, logits: logits, labels: y}\n"
    "backward: loss\n"
    "optimizer: {adamw: {lr: 1.0e-3, weight_decay: 0.01}}\n"
    "metrics: {accuracy: {logits: logits, labels: y}}\n"
    "outputs: [loss, h]\n";

static gx_graph *parse(const char *text, const char *folder,
                       const gx_load_options *options)
{
    gx_diagnostics *list = gx_diagnostics_create();
    gx_graph *graph;
    gx_error err;
    char *all;

    if (gx_graph_parse(text, strlen(text), "model.yaml", folder, options, &graph, list,
                       &err) != GX_OK) {
        all = gx_diagnostics_text(list);
        print_error("%s\n", text);
        fail_msg("%s", all);
    }
    gx_diagnostics_free(list);
    return graph;
}

static void compare_values(const gx_graph *a, const gx_graph *b)
{
    assert_int_equal(a->n_values, b->n_values);
    for (size_t i = 0; i < a->n_values; i++) {
        const gx_value *v = &a->values[i];
        const gx_value *w = &b->values[i];

        assert_string_equal(v->name, w->name);
        assert_int_equal(v->kind, w->kind);
        assert_int_equal(v->dtype, w->dtype);
        assert_int_equal(v->rank, w->rank);
        assert_memory_equal(v->dim, w->dim, sizeof v->dim);
        assert_int_equal(v->is_output, w->is_output);
        assert_int_equal(v->fed, w->fed);
        assert_int_equal(v->frozen, w->frozen);
        assert_int_equal(v->has_init, w->has_init);
        assert_int_equal(v->init.kind, w->init.kind);
        assert_true(v->init.a == w->init.a && v->init.b == w->init.b);
        assert_int_equal(v->fan_in, w->fan_in);
        assert_int_equal(v->index_limit, w->index_limit);
        assert_int_equal(v->index_ignored, w->index_ignored);
        assert_int_equal(v->producer, w->producer);
        assert_int_equal(v->n_readers, w->n_readers);
        assert_int_equal(v->n_products, w->n_products);
    }
}

static void compare_nodes(const gx_graph *a, const gx_graph *b)
{
    assert_int_equal(a->n_nodes, b->n_nodes);
    for (size_t i = 0; i < a->n_nodes; i++) {
        const gx_node *v = &a->nodes[i];
        const gx_node *w = &b->nodes[i];

        assert_string_equal(v->name, w->name);
        assert_ptr_equal(v->op, w->op);
        assert_int_equal(v->phase, w->phase);
        assert_string_equal(v->origin, w->origin);
        assert_int_equal(v->n_fields, w->n_fields);
        for (int f = 0; f < v->n_fields; f++) {
            assert_string_equal(v->fields[f].key, w->fields[f].key);
            assert_string_equal(v->fields[f].text, w->fields[f].text);
        }
    }
}

/* The graph, its YAML, the graph of that, and that one's YAML. */
static void check_round_trip(const char *text, const char *folder,
                             const gx_load_options *options)
{
    gx_graph *graph = parse(text, folder, options);
    char *yaml = gx_graph_yaml(graph);
    gx_graph *again = parse(yaml, folder, NULL);
    char *yaml_again = gx_graph_yaml(again);

    assert_string_equal(yaml, yaml_again);
    assert_true(again->expanded);
    assert_int_equal(graph->kind, again->kind);
    assert_int_equal(graph->precision, again->precision);
    assert_string_equal(graph->name, again->name);
    assert_true(graph->rate == again->rate);
    compare_values(graph, again);
    compare_nodes(graph, again);
    assert_int_equal(graph->n_logged, again->n_logged);
    for (size_t i = 0; i < graph->n_logged; i++) {
        assert_string_equal(gx_graph_logged(graph, i), gx_graph_logged(again, i));
        assert_int_equal(graph->logged[i], again->logged[i]);
    }
    const gx_data_info a = gx_graph_data(graph), b = gx_graph_data(again);

    assert_int_equal(a.n_train, b.n_train);
    assert_int_equal(a.n_held, b.n_held);
    assert_int_equal(a.batch, b.batch);
    assert_int_equal(a.epochs, b.epochs);
    assert_int_equal(a.shuffle, b.shuffle);
    assert_int_equal(a.drop_last, b.drop_last);
    assert_string_equal(a.batch_dim ? a.batch_dim : "", b.batch_dim ? b.batch_dim : "");
    free(yaml);
    free(yaml_again);
    gx_graph_free(graph);
    gx_graph_free(again);
}

/* Writes rows of `width` (0: scalars) that count up, modulo `limit` where it is not 0. */
static void write_rows(const char *folder, const char *name, gx_dtype dtype, int64_t rows,
                       int64_t width, int limit)
{
    gx_tensor t = { .dtype = dtype, .rank = width > 0 ? 2 : 1, .dim = { rows, width } };
    int32_t *data = malloc((size_t)(rows * (width + 1)) * sizeof *data);
    char path[4200];
    gx_error err;

    for (int64_t i = 0; i < gx_count(&t); i++) {
        if (dtype == GX_I32)
            data[i] = (int32_t)(limit > 0 ? i % limit : i);
        else
            ((float *)data)[i] = (float)i;
    }
    t.data = data;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_ok(gx_npy_write(path, &t, &err), &err);
    free(data);
}

static const char *data_folder(void)
{
    static char folder[4096];

    if (folder[0] == '\0') {
        snprintf(folder, sizeof folder, "%s/data", test_folder());
        assert_int_equal(mkdir(folder, 0700), 0);
        write_rows(folder, "x.npy", GX_F32, 10, 4, 0);
        write_rows(folder, "y.npy", GX_I32, 10, 0, 5);
        write_rows(folder, "split.npy", GX_I32, 10, 0, 2);
        write_rows(folder, "all.npy", GX_I32, 10, 0, 1);
        write_rows(folder, "wide.npy", GX_F32, 10, 5, 0);
        write_rows(folder, "short.npy", GX_I32, 9, 0, 5);
        write_rows(folder, "flat.npy", GX_F32, 10, 0, 0);
        write_rows(folder, "w2.npy", GX_F32, 8, 5, 0);
    }
    return folder;
}

static void expanded_models_load_again(void **state)
{
    static const char data[] =
        "data: {x: {file: x.npy, scale: 0.0625, shift: -1}, y: y.npy, "
        "split: split.npy, shuffle: true, epochs: 3}\n";
    static const char *const keep[] = { "fc1.product", "blk.0.h" };
    const gx_load_options kept = { .keep = keep, .n_keep = 2, .keep_gradients = true };
    const gx_load_options eval = { .kind = GX_EVAL };
    char text[4000];

    (void)state;
    snprintf(text, sizeof text, trained, "");
    check_round_trip(text, NULL, NULL);
    check_round_trip(text, NULL, &kept);
    check_round_trip(text, NULL, &eval);
    snprintf(text, sizeof text, trained, data);
    check_round_trip(text, data_folder(), NULL);
    check_round_trip(text, data_folder(), &kept);
    check_round_trip(text, data_folder(), &eval);
}

/* Rates, norms and sums are ops and state of the expanded model; an evaluation names none
 * of what training makes. */
static void expanded_training_loads_again(void **state)
{
    static const char *const sections[] = {
        "momentum: {lr: 0.1, dampening: 0.5}",
        ("adam: {}, schedule: {step: {every: 10, factor: 0.1, warmup: 3}}, "
         "groups: [{params: [w1, \"blk.*.w\"], weight_decay: 0.1, lr: 0.25}]"),
        "sgd: {lr: 1}, schedule: constant, accumulate: 3",
        "nesterov: {lr: 1}, clip_norm: 0.125, accumulate: 2",
    };
    const gx_load_options eval = { .kind = GX_EVAL };
    char text[4000], more[4400];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(sections); i++) {
        snprintf(text, sizeof text, trained, "");
        char *at = strstr(text, "optimizer: {");

        assert_non_null(at);
        *at = '\0';
        snprintf(more, sizeof more,
                 "%soptimizer: {%s}\nmetrics: {accuracy: {logits: logits, labels: y}, "
                 "grad_norm: {}}\noutputs: [loss, h, grad_norm%s]\n",
                 text, sections[i],
                 strstr(sections[i], "schedule") ? ", gexec.rate" : "");
        check_round_trip(more, NULL, NULL);
        check_round_trip(more, NULL, &eval);
    }
}

static void files_are_named_as_they_were(void **state)
{
    gx_graph *graph = parse("gexec: 1\ninputs: {x: {shape: [2, 8]}}\n"
                            "params: {w: {shape: [8, 5], from: w2.npy}}\n"
                            "ops: [{op: gemm, name: h, a: x, b: w}]\noutputs: [h]\n",
                            data_folder(), NULL);
    char *yaml = gx_graph_yaml(graph);

    (void)state;
    assert_has(yaml, "init: {file: w2.npy}");
    free(yaml);
    gx_graph_free(graph);
}

static void an_expanded_model_has_its_sizes(void **state)
{
    const gx_set set = { "batch", "5" };
    char text[4000];
    gx_graph *graph;
    gx_error err;
    char *yaml;

    (void)state;
    snprintf(text, sizeof text, trained, "");
    graph = parse(text, NULL, NULL);
    yaml = gx_graph_yaml(graph);
    gx_graph_free(graph);
    assert_fails(gx_graph_parse(yaml, strlen(yaml), "m", NULL,
                                &(gx_load_options){ .sets = &set, .n_sets = 1 }, &graph,
                                NULL, &err),
                 GX_ERR_MODEL, &err,
                 "set batch=5: \"batch\" cannot be overridden: an expanded model has "
                 "its sizes written out");
    assert_null(graph);
    free(yaml);
}

static void what_is_expanded_is_checked(void **state)
{
    static const struct {
        const char *text, *message;
    } bad[] = {
        { "expanded: maybe\n", "\"maybe\" is not known; expected train or eval" },
        { "expanded: train\nbackward: l\n", "unknown key \"backward\"" },
        { "expanded: train\ninputs: {}\n", "unknown key \"inputs\"" },
        { "expanded: train\ntensors: {x: {shape: [1]}}\n", "\"x\" has no \"kind\"" },
        { "expanded: train\ntensors: {x: {kind: temp, shape: [1]}}\n",
          "expected input, param, state or data" },
        { "expanded: train\ntensors: [x]\n", "expected a map of tensors" },
        { "expanded: train\nlogged: [x]\n", "expected a map from logged names" },
        { "expanded: train\nrate: fast\n", "expected a decimal number" },
    };
    char text[400];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        snprintf(text, sizeof text, "gexec: 1\n%sops: [{op: relu, name: r, x: q}]\n",
                 bad[i].text);
        assert_mistake(text, bad[i].message);
    }
}

static void data_sections_are_checked(void **state)
{
    static const struct {
        const char *data, *message; /* NULL: good */
    } cases[] = {
        { "{x: x.npy, y: y.npy}", NULL },
        { "{x: x.npy, y: y.npy, split: split.npy, epochs: 1 + 1}", NULL },
        { "{x: x.npy}", NULL },
        { "{x: none.npy}", "none.npy: No such file" },
        { "{x: wide.npy}", "rows of wide.npy have shape [5], input \"x\" takes [4]" },
        { "{x: flat.npy}", "rows of flat.npy have shape [], input \"x\" takes [4]" },
        { "{x: x.npy, y: short.npy}",
          "short.npy has 9 rows, the files before it have 10" },
        { "{x: x.npy, y: flat.npy}", "flat.npy holds floats, input \"y\" is i32" },
        { "{x: x.npy, split: short.npy}",
          "short.npy: row 2 is 2; a split is 0 (train) or 1" },
        { "{x: x.npy, split: x.npy}", "x.npy: expected one integer a row" },
        { "{x: x.npy, split: y.npy}", "y.npy: row 2 is 2" },
        { "{x: {scale: 2}}", "needs a \"file\"" },
        { "{x: {file: x.npy, scale: .inf}}", "expected a decimal number" },
        { "{x: [x.npy]}", "found a list" },
        { "{x: x.npy, epochs: 0}", "epochs is 1 or more" },
        { "{x: x.npy, shuffle: yes}", "expected true or false" },
        { "{shuffle: true}", "data feeds no input" },
        { "{z: x.npy}", "there is no input \"z\" to feed" },
        { "{k: x.npy}", "first size must be a dim" },
        { "{x: x.npy, o: y.npy}",
          "expected \"batch\" as the first size, found \"other\"" },
        { "{x: ../x.npy}", "leaves the folder" },
        { "[x.npy]", "expected a map from inputs to files" },
    };
    char text[800];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        test_model model;

        snprintf(
            text, sizeof text,
            "gexec: 1\ndims: {batch: 2, other: 2}\ninputs:\n  x: {shape: [batch, 4]}\n"
            "  y: {shape: [batch], dtype: i32}\n  k: {shape: [2, 4]}\n"
            "  o: {shape: [other], dtype: i32}\ndata: %s\n"
            "ops: [{op: relu, name: r, x: x}]\n",
            cases[i].data);
        model = test_model_read(text, data_folder(), NULL);
        if (cases[i].message)
            assert_has(model.mistakes, cases[i].message);
        else
            assert_string_equal(model.mistakes, "");
        test_model_free(&model);
    }
    assert_mistake("gexec: 1\ndims: {b: 2}\ninputs: {split: {shape: [b]}}\n"
                   "data: {split: none.npy}\nops: [{op: relu, name: r, x: split}]\n",
                   "an input that stands beside data cannot be named \"split\"");
    assert_mistake("gexec: 1\ndims: {b: 0}\ninputs: {x: {shape: [b]}}\n"
                   "data: {x: none.npy}\nops: [{op: relu, name: r, x: x}]\n",
                   "is the batch of the data: 1 or more, not 0");
}

static void rows_are_counted(void **state)
{
    char text[4000];
    gx_graph *graph;
    gx_data_info info;

    (void)state;
    snprintf(text, sizeof text, trained,
             "data: {x: x.npy, y: y.npy, split: split.npy}\n");
    graph = parse(text, data_folder(), NULL);
    info = gx_graph_data(graph);
    assert_int_equal(info.n_train, 5);
    assert_int_equal(info.n_held, 5);
    assert_int_equal(info.batch, 3);
    assert_string_equal(info.batch_dim, "batch");
    assert_false(info.shuffle);
    assert_false(info.drop_last);
    assert_int_equal(info.epochs, 0);
    assert_true(graph->values[0].fed && graph->values[1].fed);
    gx_graph_free(graph);
}

static void scalars_are_quoted_where_it_matters(void **state)
{
    static const struct {
        const char *text, *yaml;
    } cases[] = {
        { "fc1", "fc1" },
        { "blk.3.w", "blk.3.w" },
        { "1e-4", "1e-4" },
        { "true", "true" },
        { "", "\"\"" },
        { "y", "\"y\"" },
        { "null", "\"null\"" },
        { "-", "\"-\"" },
        { "---", "\"---\"" },
        { "...", "\"...\"" },
        { "a b", "\"a b\"" },
        { "a\"b\\c", "\"a\\\"b\\\\c\"" },
        { "a\tb\n", "\"a\\tb\\n\"" },
        { "#", "\"#\"" },
        { "a: b", "\"a: b\"" },
        { "\x01", "\"\\x01\"" },
        { "caf\xc3\xa9", "\"caf\xc3\xa9\"" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        gx_text text = { 0 };
        char *bytes;

        gx_put_scalar(&text, cases[i].text);
        bytes = gx_text_take(&text);
        assert_string_equal(bytes, cases[i].yaml);
        free(bytes);
    }
}

static size_t count(const char *text, const char *part)
{
    size_t n = 0;

    for (const char *at = text; (at = strstr(at, part)) != NULL; at++)
        n++;
    return n;
}

static void dot_shows_ops_and_tensors(void **state)
{
    char text[4000];
    gx_graph *graph;
    char *dot;

    (void)state;
    snprintf(text, sizeof text, trained, "");
    graph = parse(text, NULL, NULL);
    dot = gx_graph_dot(graph);
    assert_has(dot, "digraph \"two words: \\\"quoted\\\"\" {");
    assert_has(dot, "label=\"fc1\\nepilogue\"");
    assert_has(dot, "label=\"fc1.product\\nf32 [3, 8]\"");
    assert_has(dot, "label=\"w1\\nf32 [4, 8]\"");
    assert_int_equal(count(dot, "shape=box"), graph->n_nodes);
    assert_has(dot, "#ffe0cc"); /* backward */
    assert_has(dot, "#d8f0d0"); /* optimizer */
    assert_int_equal(count(dot, "{"), count(dot, "}"));
    free(dot);
    gx_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expanded_models_load_again),
        cmocka_unit_test(expanded_training_loads_again),
        cmocka_unit_test(files_are_named_as_they_were),
        cmocka_unit_test(an_expanded_model_has_its_sizes),
        cmocka_unit_test(what_is_expanded_is_checked),
        cmocka_unit_test(data_sections_are_checked),
        cmocka_unit_test(rows_are_counted),
        cmocka_unit_test(scalars_are_quoted_where_it_matters),
        cmocka_unit_test(dot_shows_ops_and_tensors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
