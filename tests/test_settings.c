/* The optimizer section: what it refuses, and how code writes it. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support_walk.h"

/* Parameters whose gradients are given: p.grad is what gp holds, q.grad gq, r.grad gr. */
#define HEAD                                                                        \
    "gexec: 1\nname: m\nprecision: $P\ninputs:\n  gp: {shape: [5], init: normal}\n" \
    "  gq: {shape: [5], init: normal}\n  gr: {shape: [5], init: normal}\n"          \
    "  z: {shape: [5], init: zeros}\n"                                              \
    "params:\n  p: {shape: [5], init: normal}\n  q: {shape: [5], init: normal}\n"   \
    "  blk.r: {shape: [5], init: normal}\n"                                         \
    "ops:\n  - {op: add, name: sp, a: gp, b: z, out: p.grad}\n"                     \
    "  - {op: add, name: sq, a: gq, b: z, out: q.grad}\n"                           \
    "  - {op: add, name: sr, a: gr, b: z, out: blk.r.grad}\n"

static void mistakes_are_named_where_they_stand(void **state)
{
    static const struct {
        const char *section, *message;
    } cases[] = {
        { "sgd: {lr: 1}, schedul: constant",
          "24:27: unknown key \"schedul\" in optimizer; did you mean \"schedule\"?" },
        { "sgd: {lr: 1, clip_norm: 1}", "24:26: \"clip_norm\" stands beside \"sgd\"" },
        { "sgd: {lr: 1}, schedule: cosinus",
          "24:37: there is no schedule \"cosinus\"; did you mean \"cosine\"?" },
        { "sgd: {lr: 1}, schedule: {cosine: {}}",
          "24:38: the schedule cosine lacks the setting \"steps\"" },
        { "sgd: {lr: 1}, schedule: cosine",
          "24:37: the schedule cosine lacks the setting \"steps\"" },
        { "sgd: {lr: 1}, schedule: {step: {every: 2, factr: 1}}",
          "24:55: the schedule step has no setting \"factr\"; did you mean \"factor\"?" },
        { "sgd: {lr: 1}, schedule: {constant: {end: 1}}",
          "24:49: the schedule constant has no setting \"end\"" },
        { "sgd: {lr: 1}, schedule: {linear: {steps: 5, warmup: 5}}",
          "24:54: schedule \"gexec.rate\": steps is 5, expected more than warmup, which "
          "is 5 "
          "and is counted in steps" },
        { "sgd: {lr: 1}, schedule: {linear: {steps: 0}}", "steps is 0, expected 1 to" },
        { "sgd: {lr: 1}, schedule: {linear: {steps: 3000000000, warmup: 5}}",
          "steps is 3000000000, expected 1 to 2147483647" },
        { "sgd: {lr: 1}, schedule: {step: {every: 0, factor: 1}}",
          "every is 0, expected 1" },
        { "sgd: {lr: 1}, schedule: {step: {every: 1, factor: -1}}",
          "factor is -1, expected 0 or more" },
        { "sgd: {lr: 1}, schedule: [constant]", "24:37: expected a schedule, as in" },
        { "sgd: {lr: 1}, clip_norm: 0", "24:38: clip_norm is \"0\", expected a number" },
        { "sgd: {lr: 1}, clip_norm: x", "24:38: clip_norm is \"x\", expected a number" },
        { "sgd: {lr: 1}, accumulate: 0", "24:39: accumulate is 0, expected 1 to" },
        { "sgd: {lr: 1}, accumulate: 2.5", "24:39: " },
        { "sgd: {lr: 1, accumulate: 2}", "24:26: \"accumulate\" stands beside \"sgd\"" },
        { "sgd: {lr: 1}, groups: {params: p}", "24:35: expected a list of groups" },
        { "sgd: {lr: 1}, groups: [{lr: 2}]", "24:36: the group lacks \"params\"" },
        { "sgd: {lr: 1}, groups: [{params: []}]", "a group of no parameters" },
        { "sgd: {lr: 1}, groups: [{params: p}]", "24:37: the group sets nothing" },
        { "sgd: {lr: 1}, groups: [{params: [p, blk.s], lr: 2}]",
          "24:49: no parameter is called \"blk.s\"; did you mean \"blk.r\"?" },
        { "sgd: {lr: 1}, groups: [{params: [\"blk.*.b\"], lr: 2}]",
          "24:46: no parameter that is trained fits \"blk.*.b\"" },
        { "sgd: {lr: 1}, groups: [{params: gp, lr: 2}]",
          "24:45: no parameter that is trained is called \"gp\"" },
        { "sgd: {lr: 1}, groups: [{params: q, lr: 2}, {params: [p, \"*\"], lr: 3}]",
          "24:69: parameter \"q\" is in two groups: in this one, and in that of line "
          "24" },
        { "sgd: {lr: 1}, groups: [{params: q, lr: -2}]",
          "24:52: lr is \"-2\", expected a number, 0 or more" },
        { "sgd: {lr: 1}, groups: [{params: q, weight_deca: 2}]",
          "24:48: sgd has no setting \"weight_deca\"; did you mean \"weight_decay\"?" },
        { "sgd: {lr: 1}, groups: [{params: q, weight_decay: -2}]",
          "24:62: sgd \"q.sgd\": weight_decay is -2, expected 0 or more" },
        { "sgd: {lr: 1}, groups: [{params: q, accumulate: 2}]",
          "24:48: sgd has no setting \"accumulate\"" },
        { "sgd: {lr: 1}, groups: [{params: q, lr: 2}], accumulate: 1}\n"
          "metrics: {grad_norm: {x: p}",
          "grad_norm takes no fields" },
        { "sgd: {lr: 1}}\nmetrics: {a: {op: grad_norm}, b: {op: grad_norm}",
          "metric \"b\" is the norm of all gradients, as \"a\" is" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char text[3000];
        char *head = test_walk_text(HEAD, "f32");

        /* the section stands on line 24 */
        snprintf(text, sizeof text, "%s%s\noptimizer: {%s}\n", head,
                 "outputs: [p.grad]\n\n\n\n\n\n", cases[i].section);
        free(head);
        char *mistakes = test_walk_mistakes(text, GX_TRAIN);

        assert_has(mistakes, cases[i].message);
        free(mistakes);
    }
}

static void a_frozen_parameter_is_in_no_group(void **state)
{
    char *mistakes = test_walk_mistakes(
        "gexec: 1\ninputs:\n  t: {shape: [5]}\nparams:\n  p: {shape: [5]}\n"
        "  f: {shape: [5], trainable: false}\n"
        "ops:\n  - {op: add, name: s, a: p, b: f}\n  - {op: mse, name: loss, x: s, "
        "target: t}\nbackward: loss\n"
        "optimizer: {sgd: {lr: 1}, groups: [{params: f, lr: 2}]}\n",
        GX_TRAIN);

    (void)state;
    assert_has(mistakes, "11:45: parameter \"f\" is not trained, so no group has it");
    free(mistakes);
}

static void the_names_of_sums_are_gexecs_own(void **state)
{
    char *mistakes = test_walk_mistakes(
        "gexec: 1\ninputs:\n  t: {shape: [5]}\nparams:\n  p: {shape: [5]}\n"
        "ops:\n  - {op: relu, name: p.sum, x: t}\n  - {op: mse, name: loss, x: p, "
        "target: p.sum}\nbackward: loss\n"
        "optimizer: {sgd: {lr: 1}, accumulate: 2}\n",
        GX_TRAIN);

    (void)state;
    assert_has(mistakes, "name \"p.sum\" is gexec's own here");
    free(mistakes);
}

/* --- built in code --- */

static void code_has_the_same_section(void **state)
{
    static const gx_field_text fields[] = {
        { "lr", "0.1" },          { "schedule", "linear" }, { "schedule.steps", "4" },
        { "clip_norm", "1" },     { "accumulate", "2" },    { "groups.0.params.0", "w" },
        { "groups.0.lr", "0.2" },
    };
    gx_graph *graph;
    gx_error err;

    (void)state;
    assert_ok(gx_graph_create("m", "f32", &graph, &err), &err);
    assert_ok(gx_graph_add_tensor(graph, GX_ROLE_INPUT, "t", GX_F32, 1, (int64_t[]){ 3 },
                                  "normal", &err),
              &err);
    assert_ok(gx_graph_add_tensor(graph, GX_ROLE_PARAM, "w", GX_F32, 1, (int64_t[]){ 3 },
                                  "zeros", &err),
              &err);
    assert_ok(gx_graph_add_op(graph, "mse", "loss",
                              (gx_field_text[]){ { "x", "w" }, { "target", "t" } }, 2,
                              &err),
              &err);
    assert_ok(gx_graph_set_backward(graph, "loss", &err), &err);
    assert_ok(gx_graph_set_optimizer(graph, "sgd", fields, ARRAY_SIZE(fields), &err),
              &err);
    assert_ok(gx_graph_finish(graph, GX_TRAIN, NULL, &err), &err);
    assert_int_equal(gx_graph_accumulate(graph), 2);
    for (const char *const *name =
             (const char *const[]){ "gexec.lr.1", "gexec.rate.1", "w.sum", "gexec.clip",
                                    "gexec.grad_norm", NULL };
         *name; name++)
        assert_true(gx_graph_find(graph, *name) >= 0);
    gx_graph_free(graph);
}

static void code_that_names_no_schedule_is_refused(void **state)
{
    static const struct {
        gx_field_text field;
        const char *message;
    } cases[] = {
        { { "schedule.steps", "4" }, "\"schedule.steps\" needs \"schedule\"" },
        { { "groups.1.lr", "4" }, "expected \"groups.N.SETTING\", with N from 0 on" },
        { { "groups.x", "4" }, "expected \"groups.N.SETTING\", with N from 0 on" },
        { { "groups.0.lr", "4" }, "the group names no parameters" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const gx_field_text fields[] = { { "lr", "0.1" }, cases[i].field };
        gx_graph *graph;
        gx_error err;

        assert_ok(gx_graph_create("m", "f32", &graph, &err), &err);
        assert_ok(gx_graph_set_optimizer(graph, "sgd", fields, 2, &err), &err);
        assert_fails(gx_graph_finish(graph, GX_TRAIN, NULL, &err), GX_ERR_MODEL, &err,
                     cases[i].message);
        gx_graph_free(graph);
    }
}

/* What the catalogue says of the rate of a section that has none. */
static void the_catalogue_tells_the_rate_that_is_meant(void **state)
{
    static const char says[] = "of an optimizer section a number, ";
    static const char *const names[] = { "sgd", "momentum", "nesterov", "adam", "adamw" };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        const gx_field *field = gx_op_fields(gx_op_find(names[i]));
        gx_graph *graph;
        char *head = test_walk_text(HEAD, "f32"), text[1200];
        gx_error err = { 0 };

        while (strcmp(field->name, "lr") != 0)
            field++;
        const char *told = strstr(field->doc, says);

        assert_non_null(told);
        told += strlen(says);
        snprintf(text, sizeof text, "%soptimizer: {%s: {}}\n", head, names[i]);
        if (gx_graph_parse(text, strlen(text), "m", NULL, NULL, &graph, NULL, &err) ==
            GX_OK)
            assert_true(strtod(told, NULL) == gx_graph_rate(graph));
        else
            assert_string_equal(told, "which it must have");
        gx_graph_free(graph);
        free(head);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mistakes_are_named_where_they_stand),
        cmocka_unit_test(a_frozen_parameter_is_in_no_group),
        cmocka_unit_test(the_names_of_sums_are_gexecs_own),
        cmocka_unit_test(code_has_the_same_section),
        cmocka_unit_test(the_catalogue_tells_the_rate_that_is_meant),
        cmocka_unit_test(code_that_names_no_schedule_is_refused),
    };

    return cmocka_run_group_tests_name("settings", tests, NULL, NULL);
}
