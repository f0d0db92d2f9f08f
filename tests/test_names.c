/* What names and numbers of a model may be, and what a model without a name is called. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support_model.h"
#include "support_walk.h"

#define OPS "ops:\n  - {op: relu, name: r, x: x}\n"

/* The longest name that is taken leaves room for what is derived from it. */
static void names_have_their_limit(void **state)
{
    char text[1000], name[GX_LIMIT_WRITTEN_NAME + 2];

    (void)state;
    for (int more = 0; more < 2; more++) {
        gx_graph *graph;
        gx_error err = { 0 };
        const size_t n = (size_t)(GX_LIMIT_WRITTEN_NAME + more);

        memset(name, 'a', n);
        name[n] = '\0';
        snprintf(
            text, sizeof text,
            "gexec: 1\ninputs: {x: {shape: [2, 3]}, t: {shape: [2, 4]}}\n"
            "params:\n  w: {shape: [3, 4], init: ones}\n  b: {shape: [4]}\nops:\n"
            "  - {op: gemm, a: x, b: w, epilogue: {bias: b, act: gelu_tanh},\n"
            "     name: %s}\n  - {op: mse, name: l, x: %s, target: t}\nbackward: l\n",
            name, name);
        if (more) {
            assert_fails(
                gx_graph_parse(text, strlen(text), "m", NULL, NULL, &graph, NULL, &err),
                GX_ERR_MODEL, &err, "m:8:12: name \"aaaa");
            assert_has(err.message, "longer than 160 bytes (limit on names)");
        } else {
            assert_ok(
                gx_graph_parse(text, strlen(text), "m", NULL, NULL, &graph, NULL, &err),
                &err);
            gx_graph_free(graph);
        }
    }
    assert_mistake("gexec: 1\ndims: {"
                   "a23456789a123456789a123456789a123456789"
                   "a123456789a123456789a123456789a123456789a123456789a123456789"
                   "a123456789a123456789a123456789a123456789a123456789a123456789"
                   "a123456789: 1}\n" OPS,
                   "2:8: dim \"a234");
}

static void numbers_fit_f32(void **state)
{
    static const struct {
        const char *text, *message;
    } bad[] = {
        { "params: {w: {shape: [2], init: {constant: 1e39}}}\n", "2:43: 1e39 is out of" },
        { "params: {w: {shape: [2], init: {constant: 1e-50}}}\n", "1e-50 is out of" },
        { "params: {w: {shape: [2], init: {normal: {std: 4e38}}}}\n", "4e38 is out of" },
        { "params: {w: {shape: [2], init: {uniform: [-1e300, 1]}}}\n",
          "-1e300 is out of f32's range" },
    };
    char text[400];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        snprintf(text, sizeof text, "gexec: 1\n%s" OPS, bad[i].text);
        assert_mistake(text, bad[i].message);
    }
    assert_true(gx_fits_f32(3.4028234e38) && gx_fits_f32(-1e-45) && gx_fits_f32(0));
    assert_false(gx_fits_f32(3.4028236e38) || gx_fits_f32(-1e-46));
}

/* A file's name is any bytes; what is printed of its model has to be a model again. */
static void a_model_is_called_as_its_file(void **state)
{
    static const struct {
        const char *file, *name;
    } cases[] = { { "a/b.yaml", "a/b.yaml" },
                  { "caf\xc3\xa9", "caf\xc3\xa9" },
                  { "caf\xe9.yaml", "caf?.yaml" },
                  { "\xed\xa0\x80\xc0\x80\x01", "??????" },
                  { "\xf0\x9f\x98\x80\xf0\x9f", "\xf0\x9f\x98\x80??" } };
    const char *text = "gexec: 1\ninputs: {x: {shape: [2]}}\n" OPS;
    char longer[GX_LIMIT_NAME + 50] = "";

    (void)state;
    for (size_t i = 0; i <= ARRAY_SIZE(cases); i++) {
        gx_graph *graph, *again;
        gx_error err = { 0 };

        memset(longer, 'a', sizeof longer - 1);
        assert_ok(gx_graph_parse(text, strlen(text),
                                 i < ARRAY_SIZE(cases) ? cases[i].file : longer, NULL,
                                 NULL, &graph, NULL, &err),
                  &err);
        if (i < ARRAY_SIZE(cases))
            assert_string_equal(gx_graph_name(graph), cases[i].name);
        char *yaml = gx_graph_yaml(graph);

        assert_ok(gx_graph_parse(yaml, strlen(yaml), "m", NULL, NULL, &again, NULL, &err),
                  &err);
        assert_string_equal(gx_graph_name(graph), gx_graph_name(again));
        free(yaml);
        gx_graph_free(graph);
        gx_graph_free(again);
    }
}

/* A model that trains and asks for `output`; the caller frees. */
static char *asking_for(const char *output)
{
    enum { SIZE = 400 };
    char *const text = malloc(SIZE);

    assert_non_null(text);
    snprintf(text, SIZE,
             "gexec: 1\nname: m\n"
             "inputs: {x: {shape: [2, 3]}, t: {shape: [2, 4]}}\n"
             "params: {w: {shape: [3, 4], init: ones}}\nops:\n"
             "  - {op: gemm, name: h, a: x, b: w}\n"
             "  - {op: mse, name: l, x: h, target: t}\n"
             "backward: l\noptimizer: {adamw: {lr: 0.1}}\n"
             "outputs: [l, %s]\n",
             output);
    return text;
}

/* What training makes may be asked for in an evaluation and is not there; what it does
 * not make is the mistake that it is in training. */
static void an_evaluation_knows_what_training_makes(void **state)
{
    static const char *const made[] = { "w.grad", "w.v", "h.grad", "gexec.lr" };
    static const char *const wrong[] = { "w.grd", "v.grad", "w.q", "hh.grad",
                                         "gexec.lrr" };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(made); i++) {
        char *const text = asking_for(made[i]);

        for (int kind = 0; kind < 2; kind++) {
            test_walk model =
                test_walk_parse(text, "f32", kind ? GX_EVAL : GX_TRAIN, test_seed());

            test_walk_free(&model);
        }
        free(text);
    }
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        char *const text = asking_for(wrong[i]);
        char *const in_training = test_walk_mistakes(text, GX_TRAIN);
        char *const in_evaluation = test_walk_mistakes(text, GX_EVAL);

        assert_has(in_evaluation, "model.yaml:10:14: there is no tensor \"");
        assert_string_equal(in_evaluation, in_training);
        free(in_training);
        free(in_evaluation);
        free(text);
    }
}

/* What is to be kept besides has no place in the model. */
static void an_evaluation_knows_what_may_be_kept(void **state)
{
    static const char *const names[] = { "w.grad", "w.grd" };
    char *const text = asking_for("h");

    (void)state;
    for (int i = 0; i < 2; i++) {
        const gx_load_options options = { .kind = GX_EVAL,
                                          .keep = &names[i],
                                          .n_keep = 1 };
        gx_graph *graph;
        gx_error err = { 0 };
        const gx_status st =
            gx_graph_parse(text, strlen(text), "m", NULL, &options, &graph, NULL, &err);

        assert_int_equal(st, i == 0 ? GX_OK : GX_ERR_MODEL);
        assert_has(err.message, i == 0 ? "" : "m: there is no tensor \"w.grd\"");
        gx_graph_free(graph);
    }
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_their_limit),
        cmocka_unit_test(numbers_fit_f32),
        cmocka_unit_test(a_model_is_called_as_its_file),
        cmocka_unit_test(an_evaluation_knows_what_training_makes),
        cmocka_unit_test(an_evaluation_knows_what_may_be_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
