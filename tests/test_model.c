/* Reading a model into a flat graph. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support_model.h"

#define HEAD "gexec: 1\ndims: {b: 4, n: 3}\ninputs: {x: {shape: [b, n]}}\n"
#define OPS "ops:\n  - {op: relu, name: r, x: x}\n"

/* --- head and dims --- */

static void a_small_model_is_read(void **state)
{
    gx_graph *graph = test_model_good(
        "gexec: 1\nname: tiny\nprecision: tf32\ndims: {b: 4, h: 2 * b + 1}\n"
        "inputs: {x: {shape: [b, 8]}, y: {shape: [b], dtype: i32}}\n"
        "params: {w: {shape: [8, h], init: he_normal}, c: {shape: [h]}}\n"
        "state: {k: {shape: [], dtype: i32, init: ones}}\n"
        "ops:\n  - {op: gemm, name: fc, a: x, b: w, epilogue: {bias: c, act: relu}, out: "
        "h}\n"
        "  - {op: loss, name: l, x: h}\n"
        "backward: l\noptimizer: {sgd: {lr: 1e-4}}\nmetrics: {m: {op: loss, x: h}}\n"
        "outputs: [l, h]\n");

    (void)state;
    assert_string_equal(gx_graph_name(graph), "tiny");
    assert_string_equal(gx_graph_precision(graph), "tf32");
    assert_int_equal(gx_graph_value_count(graph), 5);
    assert_int_equal(gx_graph_find(graph, "w"), 2);
    assert_int_equal(gx_graph_find(graph, "h"), -1); /* the resolver makes it */
    assert_int_equal(gx_graph_value(graph, 2).dim[1], 9);
    assert_int_equal(gx_graph_value(graph, 2).line, 6);
    assert_int_equal(gx_graph_value(graph, 1).dtype, GX_I32);
    assert_int_equal(gx_graph_value(graph, 4).rank, 0);
    assert_int_equal(graph->values[3].init.kind, GX_INIT_ZEROS);
    assert_true(graph->values[3].has_init);
    assert_false(graph->values[0].has_init);
    assert_null(gx_graph_value(graph, 5).name);
    assert_int_equal(gx_graph_node_count(graph), 2);
    assert_string_equal(test_field(graph, "fc", "epilogue.bias"), "c");
    assert_string_equal(test_field(graph, "fc", "epilogue.act"), "relu");
    assert_string_equal(test_field(graph, "l", "out"), "l");
    assert_string_equal(graph->backward, "l");
    assert_string_equal(graph->optimizer.op_name, "sgd");
    assert_string_equal(graph->optimizer.fields[0].text, "1e-4");
    assert_string_equal(graph->metrics[0].name, "m");
    assert_string_equal(graph->metrics[0].op_name, "loss");
    assert_int_equal(graph->metrics[0].n_fields, 1);
    assert_string_equal(graph->outputs[1], "h");
    gx_graph_free(graph);
}

static void every_key_is_checked_at_every_level(void **state)
{
    static const struct {
        const char *text, *message;
    } bad[] = {
        { HEAD OPS "optimiser: {sgd: {lr: 1}}\n",
          "unknown key \"optimiser\" in the model; did you mean \"optimizer\"?" },
        { "gexec: 1\ninputs: {x: {shap: [1], shape: [1]}}\n" OPS,
          "did you mean \"shape\"" },
        { "gexec: 1\nparams: {x: {shape: [1], trainabel: false}}\n" OPS,
          "did you mean \"trainable\"" },
        { "gexec: 1\nstate: {x: {shape: [1], dtipe: f32}}\n" OPS,
          "did you mean \"dtype\"" },
        { HEAD "data: {z: x.npy}\n" OPS, "there is no input \"z\" to feed; beside" },
        { HEAD "data: {shufle: true}\n" OPS, "did you mean \"shuffle\"?" },
        { HEAD "data: {x: {fle: x.npy}}\n" OPS, "did you mean \"file\"" },
        { HEAD "ops:\n  - repeat: {nam: b, count: 1, ops: []}\n",
          "did you mean \"name\"" },
        { HEAD OPS "wobble: 1\n", "expected gexec, name, dims" },
        { HEAD OPS "rate: 1\n", "unknown key \"rate\"" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_mistake(bad[i].text, bad[i].message);
}

static void the_head_is_checked(void **state)
{
    static const struct {
        const char *text, *message;
    } bad[] = {
        { "name: x\n" OPS, "\"gexec: 1\" is missing" },
        { "gexec: 2\n" OPS, "version \"2\" of the format is not known" },
        { "gexec: 01\n" OPS, "version \"01\"" },
        { "gexec: [1]\n" OPS, "expected the version of the format, 1, found a list" },
        { HEAD "precision: fp16\n" OPS,
          "\"fp16\" is not known; expected f32, tf32, bf16 or f16" },
        { HEAD "precision: 32\n" OPS, "expected f32, tf32, bf16 or f16" },
        { HEAD "name: {a: b}\n" OPS, "expected a name, found a map" },
        { HEAD, "the model has no \"ops\"" },
        { HEAD "ops: {}\n", "expected a list of ops, found a map" },
        { HEAD "ops: []\n", "a model of no ops" },
        { HEAD "ops: [relu]\n", "expected an op" },
        { HEAD "ops: [{name: a}]\n", "expected an op, as in {op: gemm" },
        { "- gexec: 1\n", "expected a model, which is a map" },
        { "gexec 1\n", "expected a model, which is a map" },
        { HEAD OPS "outputs: r\n", "expected a list of tensors" },
        { HEAD OPS "optimizer: sgd\n", "expected an optimizer" },
        { HEAD OPS "optimizer: {sgd: {lr: 1}, adamw: {lr: 1}}\n", "found 2 keys" },
        { HEAD OPS "optimizer: {sgd: {lr: 1e-3, lr: 1e-2}}\n",
          "key \"lr\" stands twice, on line 6 and on line 6" },
        { HEAD OPS "metrics: [accuracy]\n", "expected a map of metrics" },
        { HEAD OPS "backward:\n", "expected the name of a tensor, found nothing" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_mistake(bad[i].text, bad[i].message);
}

static void every_mistake_is_found_in_one_pass(void **state)
{
    test_model model = test_model_read("gexec: 1\nprecision: f8\ndims: {b: 0x4}\n"
                                       "inputs: {x: {shape: [q]}}\nparams: {w: {}}\n"
                                       "ops: [{op: relu}]\noutputs: 3\n",
                                       NULL, NULL);

    (void)state;
    assert_int_equal(model.n_mistakes, 6);
    assert_has(model.mistakes, "model.yaml:2:12: ");
    assert_has(model.mistakes, "model.yaml:3:11: ");
    assert_has(model.mistakes, "model.yaml:4:22: there is no dim \"q\"");
    assert_has(model.mistakes, "model.yaml:5:13: \"w\" has no \"shape\"");
    assert_has(model.mistakes, "model.yaml:6:7: op \"relu\" has no name");
    assert_has(model.mistakes, "model.yaml:7:10: ");
    test_model_free(&model);
}

static void dims_can_be_set(void **state)
{
    const gx_set good[] = { { "b", "7" }, { "b", "2 * 8" } };
    const gx_set unknown[] = { { "bach", "7" } };
    const gx_set odd[] = { { "b", "0x7" } };
    const gx_set negative[] = { { "b", "-1" } };
    const gx_set itself[] = { { "b", "b" } };
    const char *text = "gexec: 1\ndims: {b: 4, batch: b + 1}\n"
                       "inputs: {x: {shape: [b, batch]}}\n" OPS;
    test_model model =
        test_model_read(text, NULL, &(gx_load_options){ .sets = good, .n_sets = 2 });

    (void)state;
    assert_string_equal(model.mistakes, "");
    assert_int_equal(model.graph->values[0].dim[0], 16);
    assert_int_equal(model.graph->values[0].dim[1], 17);
    test_model_free(&model);
    model =
        test_model_read(text, NULL, &(gx_load_options){ .sets = unknown, .n_sets = 1 });
    assert_has(model.mistakes,
               "set bach=7: there is no dim \"bach\"; did you mean \"batch\"?");
    test_model_free(&model);
    model = test_model_read(text, NULL, &(gx_load_options){ .sets = odd, .n_sets = 1 });
    assert_has(model.mistakes, "set b=0x7: \"0x7\": expected a whole decimal number");
    test_model_free(&model);
    model =
        test_model_read(text, NULL, &(gx_load_options){ .sets = negative, .n_sets = 1 });
    assert_has(model.mistakes, "set b=-1: a dim is 0 or more");
    test_model_free(&model);
    model =
        test_model_read(text, NULL, &(gx_load_options){ .sets = itself, .n_sets = 1 });
    assert_has(model.mistakes,
               "set b=b: there is no dim \"b\"; an override is a number, or "
               "an expression of numbers and of the dims above \"b\"");
    assert_int_equal(model.n_mistakes, 1);
    test_model_free(&model);
}

/* --- tensors --- */

static void tensors_are_checked(void **state)
{
    static const struct {
        const char *text, *message;
    } bad[] = {
        { "inputs: {x: {dtype: f32}}", "\"x\" has no \"shape\"" },
        { "inputs: {x: {shape: 3}}",
          "expected a shape such as [batch, 64], found \"3\"" },
        { "inputs: {x: {shape: [3, -1]}}", "a size is 0 or more, \"-1\" is -1" },
        { "inputs: {x: {shape: [010]}}", "does not start with 0" },
        { "inputs: {x: {shape: [1,1,1,1,1,1,1,1,1]}}", "at most 8 sizes, found 9" },
        { "inputs: {x: {shape: [1048576, 1048577]}}", "limit on elements of a tensor" },
        { "inputs: {x: {shape: [0, 9223372036854775807]}}",
          "limit on elements of a tensor" },
        { "inputs: {x: {shape: [1], dtype: f64}}", "\"f64\" is not known; expected f32" },
        { "inputs: {x: {shape: [1], dtype: float}}", "expected f32, bf16, f16 or i32" },
        { "inputs: {x: }", "expected a map such as {shape: [64, 10]}, found nothing" },
        { "inputs: [x]", "expected a map of tensors by name, found a list" },
        { "inputs: {1x: {shape: [1]}}", "\"1x\" is not a name" },
        { "inputs: {gexec.x: {shape: [1]}}", "are gexec's own" },
        { "params: {data.x: {shape: [1]}}", "are gexec's own" },
        { "params: {w: {shape: [2, 2]}}", "parameter \"w\" has no \"init\"" },
        { "params: {w: {shape: [2], init: ones, from: w.npy}}", "stand both" },
        { "params: {w: {shape: [2], init: he_normal}}", "a shape of two sizes or more" },
        { "params: {w: {shape: [2], trainable: no}}",
          "expected true or false, found \"no\"" },
        { "params: {w: {shape: [2], trainable: \"no\"}}", "expected true or false" },
        { "state: {k: {shape: [], dtype: i32, init: normal}}",
          "does not give i32 values" },
        { "state: {k: {shape: [], dtype: i32, init: {constant: 0.5}}}", "i32 values" },
        { "inputs: {x: {shape: [1]}}\nparams: {x: {shape: [1]}}",
          "model.yaml:3:10: name \"x\" is taken: it stands on line 2 already" },
        { "params: {w: {shape: [2], from: none.npy}}", "none.npy: No such file" },
        { "params: {w: {shape: [2], from: ../w.npy}}", "leaves the folder" },
    };
    char text[400];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        snprintf(text, sizeof text, "gexec: 1\n%s\n" OPS, bad[i].text);
        assert_mistake(text, bad[i].message);
    }
}

static void words_are_names(void **state)
{
    gx_graph *graph = test_model_good("gexec: 1\ndims: {n: 2, no: 3}\n"
                                      "inputs: {x: {shape: [2, 3]}, y: {shape: [no, 4]}, "
                                      "n: {shape: [1]}, null: {shape: [n]}}\n"
                                      "ops:\n  - {op: gemm, name: on, a: x, b: y, out: "
                                      "off}\n  - {op: relu, x: off, out: yes}\n");

    (void)state;
    assert_true(gx_graph_find(graph, "y") >= 0);
    assert_true(gx_graph_find(graph, "n") >= 0);
    assert_true(gx_graph_find(graph, "null") >= 0);
    assert_string_equal(graph->nodes[1].name, "yes");
    gx_graph_free(graph);
}

static void default_types_follow_the_precision(void **state)
{
    gx_graph *graph =
        test_model_good("gexec: 1\nprecision: bf16\ninputs: {x: {shape: [1]}}\n"
                        "params: {w: {shape: [1], dtype: f32}}\n" OPS);

    (void)state;
    assert_int_equal(graph->values[0].dtype, GX_BF16);
    assert_int_equal(graph->values[1].dtype, GX_F32);
    gx_graph_free(graph);
}

static void f16_is_a_type_as_bf16_is(void **state)
{
    gx_graph *graph =
        test_model_good("gexec: 1\nprecision: f16\ninputs: {x: {shape: [1]}}\n"
                        "params: {w: {shape: [1], dtype: bf16}}\n" OPS);
    gx_graph *other = test_model_good("gexec: 1\ninputs: {x: {shape: [1], dtype: f16}}\n"
                                      "params: {w: {shape: [1]}}\n" OPS);

    (void)state;
    assert_int_equal(graph->values[0].dtype, GX_F16);
    assert_int_equal(graph->values[1].dtype, GX_BF16);
    assert_string_equal(gx_graph_precision(graph), "f16");
    assert_int_equal(other->values[0].dtype, GX_F16);
    assert_int_equal(other->values[1].dtype, GX_F32);
    gx_graph_free(other);
    gx_graph_free(graph);
}

static void paths_stay_in_the_folder(void **state)
{
    float stored[] = { 1, 2 };
    const gx_tensor t = { .dtype = GX_F32, .rank = 1, .dim = { 2 }, .data = stored };
    const char *text = "gexec: 1\nparams: {w: {shape: [2], from: %s}}\n"
                       "inputs: {x: {shape: [1]}}\n" OPS;
    char *inside = test_path("in");
    char *outside = test_path("outside.npy");
    char *file = test_path("in/w.npy");
    char *link_out = test_path("in/link.npy");
    char *link_in = test_path("in/same.npy");
    char full[400];
    test_model model;
    gx_error err;

    (void)state;
    assert_int_equal(mkdir(inside, 0700), 0);
    assert_ok(gx_npy_write(outside, &t, &err), &err);
    assert_ok(gx_npy_write(file, &t, &err), &err);
    assert_int_equal(symlink("../outside.npy", link_out), 0);
    assert_int_equal(symlink("w.npy", link_in), 0);
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = { "w.npy", "same.npy", "link.npy" };

        snprintf(full, sizeof full, text, names[i]);
        model = test_model_read(full, inside, NULL);
        if (i < 2)
            assert_string_equal(model.mistakes, "");
        else
            assert_has(model.mistakes, "is a link that leads out of the folder");
        test_model_free(&model);
    }
    free(inside);
    free(outside);
    free(file);
    free(link_out);
    free(link_in);
}

/* --- ops --- */

static void nested_fields_become_dotted(void **state)
{
    gx_graph *graph =
        test_model_good(HEAD "ops:\n  - {op: odd, name: o, a: {b: {c: 1, d: [x, "
                             "{e: y}]}}, f.g: 2}\n");

    (void)state;
    assert_string_equal(test_field(graph, "o", "a.b.c"), "1");
    assert_string_equal(test_field(graph, "o", "a.b.d.0"), "x");
    assert_string_equal(test_field(graph, "o", "a.b.d.1.e"), "y");
    assert_string_equal(test_field(graph, "o", "f.g"), "2");
    assert_null(test_field(graph, "o", "out"));
    gx_graph_free(graph);
}

static void ops_are_checked(void **state)
{
    static const struct {
        const char *text, *message;
    } bad[] = {
        { "- {op: relu, x: x}", "op \"relu\" has no name: give it \"name\", or \"out\"" },
        { "- {op: relu, name: a b, x: x}", "\"a b\" is not a name" },
        { "- {op: relu, name: gexec.r, x: x}", "are gexec's own" },
        { "- {op: relu, name: x, x: x}", "name \"x\" is taken" },
        { "- {op: relu, name: r, x: x, out: x}", "name \"x\" is taken" },
        { "- {op: relu, name: r, x: }", "expected a value, found nothing" },
        { "- {op: , name: r}", "expected the name of an op, found nothing" },
        { "- {op: [a], name: r}", "expected the name of an op, found a list" },
        { "- {op: relu, name: r, x: x, phase: late}",
          "\"late\" is not known; expected forward, backward, optimizer or step" },
        { "- {op: gemm, name: r, epilogue: {bias: b}, epilogue.bias: c}",
          "field \"epilogue.bias\" stands twice" },
        { "- {op: relu, name: r, x: x}\n  - {op: relu, name: r, x: x, out: q}",
          "model.yaml:6:22: name \"r\" is taken: it stands on line 5 already" },
        { "- {op: relu, name: r, x: x, out: h}\n  - {op: relu, name: h, x: x, out: q}",
          "name \"h\" is taken" },
        { "- {op: relu, name: r, x: x, out: h}\n  - {op: relu, name: s, x: x, out: r}",
          "name \"r\" is taken" },
    };
    char text[400];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        snprintf(text, sizeof text, HEAD "ops:\n  %s\n", bad[i].text);
        assert_mistake(text, bad[i].message);
    }
}

/* --- a graph in code --- */

static void a_graph_is_built_in_code(void **state)
{
    const int64_t dim[] = { 4, 3 };
    const gx_field_text fields[] = { { "x", "x" }, { "out", "h" } };
    const gx_field_text metric[] = { { "op", "accuracy" }, { "logits", "h" } };
    gx_graph *graph;
    gx_error err;

    (void)state;
    assert_fails(gx_graph_create("g", "fp16", &graph, &err), GX_ERR_ARGUMENT, &err,
                 "expected f32, tf32, bf16 or f16");
    assert_null(graph);
    assert_ok(gx_graph_create("g", "bf16", &graph, &err), &err);
    assert_ok(gx_graph_add_tensor(graph, GX_ROLE_INPUT, "x", GX_F32, 2, dim, NULL, &err),
              &err);
    assert_ok(gx_graph_add_tensor(graph, GX_ROLE_PARAM, "w", GX_BF16, 2, dim,
                                  "normal: {std: 0.5}", &err),
              &err);
    assert_false(graph->values[0].has_init);
    assert_true(graph->values[1].has_init && graph->values[1].init.b == 0.5);
    assert_fails(
        gx_graph_add_tensor(graph, GX_ROLE_PARAM, "w", GX_F32, 1, dim, NULL, &err),
        GX_ERR_MODEL, &err, "name \"w\" is taken");
    assert_fails(
        gx_graph_add_tensor(graph, GX_ROLE_PARAM, "a b", GX_F32, 1, dim, NULL, &err),
        GX_ERR_MODEL, &err, "is not a name");
    assert_fails(
        gx_graph_add_tensor(graph, GX_ROLE_PARAM, "v", GX_F32, 1, dim, "zero", &err),
        GX_ERR_MODEL, &err, "did you mean \"zeros\"");
    assert_fails(
        gx_graph_add_tensor(graph, GX_ROLE_PARAM, "v", GX_F64, 1, dim, NULL, &err),
        GX_ERR_ARGUMENT, &err, "expected f32, bf16, f16 or i32");
    assert_fails(
        gx_graph_add_tensor(graph, GX_ROLE_PARAM, "v", GX_F32, 9, dim, NULL, &err),
        GX_ERR_ARGUMENT, &err, "rank 9");
    assert_fails(
        gx_graph_add_tensor(graph, GX_ROLE_PARAM, "gexec.v", GX_F32, 1, dim, NULL, &err),
        GX_ERR_ARGUMENT, &err, "gexec's own");
    assert_ok(gx_graph_add_op(graph, "relu", "r", fields, 2, &err), &err);
    assert_fails(gx_graph_add_op(graph, "relu", "r", fields, 2, &err), GX_ERR_MODEL, &err,
                 "name \"r\" is taken");
    assert_fails(
        gx_graph_add_tensor(graph, GX_ROLE_PARAM, "r", GX_F32, 1, dim, NULL, &err),
        GX_ERR_MODEL, &err, "name \"r\" is taken by an op");
    assert_ok(gx_graph_set_backward(graph, "h", &err), &err);
    assert_ok(
        gx_graph_set_optimizer(graph, "sgd", &(gx_field_text){ "lr", "0.1" }, 1, &err),
        &err);
    assert_ok(gx_graph_add_metric(graph, "top", metric, 2, &err), &err);
    assert_fails(gx_graph_add_metric(graph, "top", metric, 2, &err), GX_ERR_ARGUMENT,
                 &err, "stands already");
    assert_string_equal(graph->metrics[0].op_name, "accuracy");
    assert_string_equal(graph->metrics[0].name, "top");
    assert_int_equal(graph->metrics[0].n_fields, 1);
    for (int i = 0; i < 9; i++)
        assert_ok(gx_graph_add_output(graph, i % 2 == 0 ? "h" : "x", &err), &err);
    assert_int_equal(graph->n_outputs, 9);
    assert_string_equal(graph->outputs[8], "h");
    assert_string_equal(graph->outputs[7], "x");
    graph->finished = true;
    assert_fails(gx_graph_add_output(graph, "h", &err), GX_ERR_STATE, &err,
                 "is finished");
    gx_graph_free(graph);
    gx_graph_free(NULL);
}

/* --- reading files --- */

static void files_are_read_whole(void **state)
{
    char *path = test_write("m.yaml", "a\0b\n", 4);
    char *text;
    size_t length;
    gx_error err;

    (void)state;
    gx_error_clear(&err);
    assert_ok(gx_read_file(path, &text, &length, &err), &err);
    assert_int_equal(length, 4);
    assert_memory_equal(text, "a\0b\n", 5);
    free(text);
    free(path);
    assert_fails(gx_read_file("tests/none.yaml", &text, &length, &err), GX_ERR_READ, &err,
                 "tests/none.yaml: No such file");
    assert_fails(gx_read_file("tests", &text, &length, &err), GX_ERR_READ, &err,
                 "Is a directory");
    assert_null(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_small_model_is_read),
        cmocka_unit_test(every_key_is_checked_at_every_level),
        cmocka_unit_test(the_head_is_checked),
        cmocka_unit_test(every_mistake_is_found_in_one_pass),
        cmocka_unit_test(dims_can_be_set),
        cmocka_unit_test(tensors_are_checked),
        cmocka_unit_test(words_are_names),
        cmocka_unit_test(default_types_follow_the_precision),
        cmocka_unit_test(f16_is_a_type_as_bf16_is),
        cmocka_unit_test(paths_stay_in_the_folder),
        cmocka_unit_test(nested_fields_become_dotted),
        cmocka_unit_test(ops_are_checked),
        cmocka_unit_test(a_graph_is_built_in_code),
        cmocka_unit_test(files_are_read_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
