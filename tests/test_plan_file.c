/* Plan files, which are obeyed or refused. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plan.h"
#include "support.h"

static gx_graph *parse(const char *width, gx_kind kind)
{
    static const char model[] =
        "gexec: 1\nname: m\nprecision: f32\ndims: {width: 8}\n"
        "inputs: {x: {shape: [4, width], init: normal}, t: {shape: [4, 3], init: "
        "normal}}\n"
        "params: {w: {shape: [width, 3], init: he_normal}, b: {shape: [3], init: "
        "zeros}}\n"
        "ops:\n"
        "  - {op: gemm, name: y, a: x, b: w, epilogue: {bias: b, act: relu}}\n"
        "  - {op: mse, name: loss, x: y, target: t}\n"
        "backward: loss\noptimizer: {sgd: {lr: 0.1}}\noutputs: [loss]\n";
    const gx_set set = { "width", width };
    const gx_load_options options = { .kind = kind, .sets = &set, .n_sets = 1 };
    gx_graph *graph;
    gx_error err = { 0 };

    assert_ok(gx_graph_parse(model, strlen(model), "m.yaml", NULL, &options, &graph, NULL,
                             &err),
              &err);
    return graph;
}

static char *write_plan(const gx_graph *graph)
{
    char *path = test_path("plan.yaml");
    const gx_plan_options options = { .device = GX_CPU, .pin_file = path };
    gx_plan *plan;
    gx_error err = { 0 };

    remove(path);
    assert_ok(gx_plan_create(graph, &options, &plan, &err), &err);
    gx_plan_free(plan);
    return path;
}

static void a_pinned_plan_is_written_once_and_then_obeyed(void **state)
{
    gx_graph *graph = parse("8", GX_TRAIN);
    char *path = write_plan(graph);
    const gx_plan_options options = { .device = GX_CPU, .pin_file = path };
    char *again = test_path("again.yaml");
    char *first, *second;
    size_t length;
    gx_plan *plan;
    gx_error err = { 0 };

    (void)state;
    assert_ok(gx_plan_create(graph, &options, &plan, &err), &err);
    assert_int_equal(gx_plan_info_get(plan).n_cached, gx_graph_node_count(graph));
    assert_int_equal(gx_plan_unit_count(plan), gx_graph_node_count(graph));
    assert_ok(gx_plan_write(plan, again, &err), &err);
    first = test_read(path, &length);
    second = test_read(again, &length);
    assert_string_equal(first, second);

    /* Full edges are part of it. */
    plan->units[2].full_edge = true;
    assert_ok(gx_plan_write(plan, path, &err), &err);
    gx_plan_free(plan);
    assert_ok(gx_plan_create(graph, &options, &plan, &err), &err);
    for (size_t u = 0; u < plan->n_units; u++)
        assert_int_equal(plan->units[u].full_edge, u == 2);
    gx_plan_free(plan);
    free(second);
    free(first);
    free(again);
    free(path);
    gx_graph_free(graph);
}

/* Replaces `from` by `to` in the plan file, and tries to use it. */
static void try_changed(const gx_graph *graph, const char *from, const char *to,
                        gx_status status, const char *message)
{
    char *path = write_plan(graph);
    const gx_plan_options options = { .device = GX_CPU, .pin_file = path };
    size_t length;
    char *text = test_read(path, &length);
    char *at = strstr(text, from);
    FILE *file = fopen(path, "w");
    gx_plan *plan;
    gx_error err = { 0 };

    assert_non_null(at);
    assert_non_null(file);
    fprintf(file, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    fclose(file);
    assert_fails(gx_plan_create(graph, &options, &plan, &err), status, &err, message);
    assert_has(err.message, "plan.yaml:");
    assert_null(plan);
    free(text);
    free(path);
}

static void a_plan_that_does_not_fit_is_an_error_that_names_it(void **state)
{
    gx_graph *graph = parse("8", GX_TRAIN);
    const char *first = gx_graph_node(graph, 0).name;
    const char *second = gx_graph_node(graph, 1).name;
    char quoted[300], other[300], message[300];

    (void)state;
    snprintf(quoted, sizeof quoted, "[\"%s\"]", first);
    try_changed(graph, quoted, "[\"nobody\"]", GX_ERR_MODEL, "no op \"nobody\"");
    snprintf(other, sizeof other, "[\"%s\"]", second);
    snprintf(message, sizeof message,
             "op \"%s\" does not come next in the graph; expected %s", second, first);
    try_changed(graph, quoted, other, GX_ERR_MODEL, message);
    try_changed(graph, "f32[4, 8]", "f32[4, 9]", GX_ERR_MODEL, "planned for f32: gemm");
    try_changed(graph, "alternative: \"reference\"", "alternative: \"tile\"",
                GX_ERR_MODEL, "no alternative \"tile\" covers");
    try_changed(graph, "name: \"CPU\"", "name: \"Card 9\"", GX_ERR_MODEL,
                "made for the card \"Card 9\"; this one is \"CPU\"");
    try_changed(graph, "driver: 0", "driver: 13000", GX_ERR_MODEL,
                "made for driver 13000");
    try_changed(graph, "kind: train", "kind: eval", GX_ERR_MODEL, "kind");
    try_changed(graph, "order: derived", "order: data-first", GX_ERR_MODEL,
                "order: expected \"derived\", as it is on the CPU");
    try_changed(graph, "order: derived", "order: [derived]", GX_ERR_MODEL, "order");
    try_changed(graph, "order: derived", "ordr: derived", GX_ERR_MODEL,
                "did you mean \"order\"?");
    try_changed(graph, "lanes: 1", "lanes: 7", GX_ERR_MODEL, "expected 1 to 3");
    try_changed(graph,
                "units:", "launch: {steps: 4097, loop: false}\nunits:", GX_ERR_MODEL,
                "expected 1 to 4096 steps");
    try_changed(graph, "units:", "launch: {steps: 1, loop: true}\nunits:", GX_ERR_MODEL,
                "more than one in a loop");
    try_changed(graph, "units:", "launch: {steps: 2}\nunits:", GX_ERR_MODEL, "loop");
    try_changed(graph, "units:", "launch: 2\nunits:", GX_ERR_MODEL, "launch");
    try_changed(graph, "units:", "skip_if: perhaps\nunits:", GX_ERR_MODEL, "skip_if");
    try_changed(graph, "units:", "skip_if: true\nunits:", GX_ERR_MODEL,
                "skip_if: no unit of this plan can be skipped");
    try_changed(graph, "    key:", "    full_edge: maybe\n    key:", GX_ERR_MODEL,
                "full_edge");
    try_changed(graph, "lanes: 1", "lane: 1", GX_ERR_MODEL, "did you mean \"lanes\"?");
    try_changed(graph, "launches: -1", "launches: many", GX_ERR_MODEL, "an integer");
    try_changed(graph, "workspace: 0", "workspace: 0, algo: 12", GX_ERR_MODEL,
                "128 hexadecimal digits");
    try_changed(graph, "gexec_plan: 2", "gexec_plan: 1", GX_ERR_MODEL,
                "a plan of format 1, expected 2: another gexec wrote it");
    try_changed(graph, "gexec: \"", "gexec: \"9", GX_ERR_MODEL, "made by gexec 9");
    try_changed(graph, "units:", "units: [", GX_ERR_MODEL, "plan.yaml");
    gx_graph_free(graph);
}

static void an_empty_plan_is_named_as_one(void **state)
{
    gx_graph *graph = parse("8", GX_TRAIN);
    char *path = test_write_text("empty.yaml", "");
    const gx_plan_options options = { .device = GX_CPU, .pin_file = path };
    gx_plan *plan;
    gx_error err = { 0 };

    (void)state;
    assert_fails(
        gx_plan_create(graph, &options, &plan, &err), GX_ERR_MODEL, &err,
        "the file is empty: expected a plan, which starts with \"gexec_plan: 2\"");
    free(path);
    gx_graph_free(graph);
}

static void a_plan_with_an_op_too_few_is_refused(void **state)
{
    gx_graph *graph = parse("8", GX_TRAIN);
    char *path = write_plan(graph);
    const gx_plan_options options = { .device = GX_CPU, .pin_file = path };
    size_t length;
    char *text = test_read(path, &length);
    char *last = NULL;
    gx_plan *plan;
    gx_error err = { 0 };
    FILE *file;

    (void)state;
    for (char *at = strstr(text, "  - nodes"); at; at = strstr(at + 1, "  - nodes"))
        last = at;
    file = fopen(path, "w");
    assert_non_null(file);
    fwrite(text, 1, (size_t)(last - text), file);
    fclose(file);
    assert_fails(gx_plan_create(graph, &options, &plan, &err), GX_ERR_MODEL, &err,
                 "no unit has op");
    free(text);
    free(path);
    gx_graph_free(graph);
}

static void a_plan_of_other_sizes_or_of_another_program_is_refused(void **state)
{
    gx_graph *graph = parse("8", GX_TRAIN);
    gx_graph *wider = parse("9", GX_TRAIN);
    gx_graph *eval = parse("8", GX_EVAL);
    char *path = write_plan(graph);
    const gx_plan_options options = { .device = GX_CPU, .pin_file = path };
    const gx_plan_options unfused = { .device = GX_CPU,
                                      .pin_file = path,
                                      .unfused = true };
    gx_plan *plan;
    gx_error err = { 0 };

    (void)state;
    assert_fails(gx_plan_create(wider, &options, &plan, &err), GX_ERR_MODEL, &err,
                 "the graph has f32: gemm f32[4, 9]");
    assert_fails(gx_plan_create(eval, &options, &plan, &err), GX_ERR_MODEL, &err, "kind");
    assert_fails(gx_plan_create(graph, &unfused, &plan, &err), GX_ERR_ARGUMENT, &err,
                 "an unfused plan is asked for");
    free(path);
    gx_graph_free(eval);
    gx_graph_free(wider);
    gx_graph_free(graph);
}

static void a_plan_file_that_cannot_be_written_leaves_nothing(void **state)
{
    gx_graph *graph = parse("8", GX_TRAIN);
    char *path = test_path("no/such/folder/plan.yaml");
    const gx_plan_options options = { .device = GX_CPU, .pin_file = path };
    gx_plan *plan;
    gx_error err = { 0 };

    (void)state;
    assert_fails(gx_plan_create(graph, &options, &plan, &err), GX_ERR_WRITE, &err,
                 "no/such/folder");
    assert_null(plan);
    free(path);
    gx_graph_free(graph);
}

/* A pipe is written to where the caller asks for it, and never read: who opens one to
 * read waits for a writer. */
static void a_pipe_is_not_replaced_and_not_waited_for(void **state)
{
    gx_graph *graph = parse("8", GX_TRAIN);
    char *path = test_path("pipe.yaml"), bytes[11];
    const gx_plan_options options = { .device = GX_CPU, .pin_file = path };
    struct stat there;
    gx_plan *plan, *none;
    gx_error err = { 0 };

    (void)state;
    assert_ok(gx_plan_create(graph, &(gx_plan_options){ .device = GX_CPU }, &plan, &err),
              &err);
    assert_int_equal(mkfifo(path, 0600), 0);
    alarm(20);
    assert_fails(gx_plan_create(graph, &options, &none, &err), GX_ERR_READ, &err,
                 "pipe.yaml: not a file");
    assert_null(none);
    alarm(0);
    const int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_ok(gx_plan_write(plan, path, &err), &err);
    assert_int_equal(lstat(path, &there), 0);
    assert_true(S_ISFIFO(there.st_mode));
    assert_int_equal(read(fd, bytes, sizeof bytes), sizeof bytes);
    assert_memory_equal(bytes, "gexec_plan:", sizeof bytes);
    close(fd);
    unlink(path);
    free(path);
    gx_plan_free(plan);
    gx_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pinned_plan_is_written_once_and_then_obeyed),
        cmocka_unit_test(a_plan_that_does_not_fit_is_an_error_that_names_it),
        cmocka_unit_test(an_empty_plan_is_named_as_one),
        cmocka_unit_test(a_plan_with_an_op_too_few_is_refused),
        cmocka_unit_test(a_plan_of_other_sizes_or_of_another_program_is_refused),
        cmocka_unit_test(a_plan_file_that_cannot_be_written_leaves_nothing),
        cmocka_unit_test(a_pipe_is_not_replaced_and_not_waited_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
