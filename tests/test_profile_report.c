/* What a profile says: text, JSON, CSV. */
#include <stdio.h>
#include <sys/wait.h>

#include "profile_made.h"

static const char model[] = "gexec: 1\n"
                            "name: small\n"
                            "precision: tf32\n"
                            "inputs:\n"
                            "  x: {shape: [64, 64]}\n"
                            "params:\n"
                            "  w: {shape: [64, 64], init: zeros}\n"
                            "ops:\n"
                            "  - {op: gemm, name: fc, a: x, b: w, out: h}\n"
                            "  - {op: relu, name: bend, x: h, out: y}\n"
                            "outputs: [y]\n";

static const char *const names[] = { "model.yaml" };

/* Two passes of four steps; the plan is one of the CPU, whose units are the ops. */
static void make(gx_profile *profile, gx_args *args)
{
    gx_session *const session = &profile->timing.session;
    const gx_plan_options options = { .device = GX_CPU };

    *args = (gx_args){ .names = (const char **)names,
                       .n_names = 1,
                       .seed = 1,
                       .top = 15,
                       .steps_per_launch = 1 };
    *profile = (gx_profile){ .schedule = { 0, 3, 4, 1 } };
    session->args = args;
    session->steps_per_launch = 1;
    session->device = 0;
    snprintf(session->device_info.name, sizeof session->device_info.name, "A card");
    assert_ok(gx_graph_parse(model, sizeof model - 1, "m", NULL, NULL,
                             &session->graph[GX_PROGRAM_TRAIN], NULL, &err),
              &err);
    assert_ok(gx_plan_create(session->graph[GX_PROGRAM_TRAIN], &options,
                             &session->plan[GX_PROGRAM_TRAIN], &err),
              &err);
    for (int i = 0; i < 2; i++) {
        gx_profile_pass *const pass = &profile->pass[i];

        *pass = start_pass(i ? GX_MODE_GRAPH : GX_MODE_EAGER);
        add_plain_steps(pass->trace, 4, i ? 20 : 300, i == 0);
        assert_ok(gx_trace_finish(pass->trace, &err), &err);
        pass->expected = 8;
        pass->expected_steps = 4;
        pass->free_before = pass->free_after = -1;
    }
    for (int i = 0; i < 3; i++) {
        assert_true(gx_series_add(&profile->timing.way[GX_WAY_EAGER].steady, 0.8e-6));
        assert_true(gx_series_add(&profile->timing.way[GX_WAY_GRAPH].steady, 0.4e-6));
        assert_true(gx_series_add(&profile->timing.ratio, 0.5));
    }
}

static char *print(const gx_profile *profile)
{
    char *printed = NULL;
    size_t n;
    FILE *out = open_memstream(&printed, &n);

    assert_non_null(out);
    gx_profile_print(profile, out);
    assert_int_equal(fclose(out), 0);
    return printed;
}

/* The session's graph and plan too. */
static void drop(gx_profile *profile)
{
    gx_profile_free(profile);
}

static void the_verdict_stands_first(void **state)
{
    gx_profile profile;
    gx_args args;
    char *printed;

    (void)state;
    make(&profile, &args);
    profile.has_ceilings = true;
    profile.ceilings = made_ceilings();
    assert_ok(gx_profile_figures(&profile, &err), &err);
    printed = print(&profile);
    assert_int_equal(
        strncmp(printed,
                "The graph is 2.00 times as fast as eager launches, 0.40 us against 0.80 "
                "us a step; an eager step is idle for 60.0% of its span, 100.0% of that "
                "waiting for the host to get to the launch; a replay is idle for 9.1% of "
                "its span, 100.0% of that between work that was launched already.\n",
                150),
        0);
    assert_has(printed, "9.1% of its span, 100.0% of that between work");
    assert_has(printed, "small, tf32, on GPU 0, A card: 1 x (0 steps waited, 3 to warm "
                        "up, 4 traced)");
    assert_has(printed, "eager: 4 steps traced, 8 kernels, copies and fills, as many as "
                        "expected\n");
    assert_has(printed, "idle between ops, eager, a step: 1 of 1 pairs, the longest in "
                        "total first\n");
    assert_has(printed, "fc -> bend: 0.30 us host  (p95 0.30 us)");
    assert_has(printed, "fc -> bend: 0.02 us device");
    assert_has(printed, "host-bound launches: an eager step");
    assert_has(printed, "floor of a step: ");
    assert_has(printed, "the latency of its 2 nodes, 2.00 us");
    assert_null(strstr(printed, "EXPECTED"));
    free(printed);
    drop(&profile);
}

static void what_is_not_known_is_not_a_number(void **state)
{
    gx_profile profile;
    gx_args args;
    char *printed;

    (void)state;
    make(&profile, &args);
    assert_ok(gx_profile_figures(&profile, &err), &err);
    printed = print(&profile);
    assert_has(printed, "floors: n/a; this card's ceilings are not measured: gexec "
                        "doctor --measure");
    free(printed);
    drop(&profile);
}

static void what_should_be_there_is_held_against_what_is(void **state)
{
    gx_profile profile;
    gx_args args;
    char *printed;

    (void)state;
    make(&profile, &args);
    profile.pass[1].expected = 12;
    profile.pass[1].expected_steps = 6;
    profile.pass[0].losses.dropped = 5;
    profile.pass[0].expected = -1;
    profile.pass[1].stats.programmatic_edges = 7;
    profile.timing.session.steps_per_launch = 8;
    assert_ok(gx_profile_figures(&profile, &err), &err);
    printed = print(&profile);
    assert_has(printed, "with 7 programmatic edges");
    assert_has(printed, "graph: 4 steps traced (EXPECTED 6), 8 kernels, copies and fills "
                        "(EXPECTED 12: nodes x steps)");
    assert_has(printed, "LOST: 5 records dropped");
    assert_has(printed, "how many a step launches is not known");
    assert_has(printed, "traced with one step a launch; timed with 8 steps a launch");
    free(printed);
    drop(&profile);
}

static void timing_is_told_without_traces(void **state)
{
    gx_profile profile;
    gx_args args;
    char *printed;

    (void)state;
    make(&profile, &args);
    for (int i = 0; i < 2; i++) {
        gx_trace_free(profile.pass[i].trace);
        profile.pass[i].trace = NULL;
        profile.pass[i].status = GX_ERR_UNSUPPORTED;
        snprintf(profile.pass[i].missing, sizeof profile.pass[i].missing, "not there");
    }
    assert_ok(gx_profile_figures(&profile, &err), &err);
    printed = print(&profile);
    assert_has(printed, "The graph is 2.00 times as fast as eager launches, 0.40 us "
                        "against 0.80 us a step; there is no trace.\n");
    assert_has(printed, "No trace of the graph: not there\n");
    assert_has(printed, "untraced, steady");
    assert_has(printed, "costs of the graph");
    free(printed);
    drop(&profile);
}

static void a_trace_without_steps_is_no_success(void **state)
{
    gx_profile profile;
    gx_args args;

    (void)state;
    make(&profile, &args);
    gx_trace_free(profile.pass[1].trace);
    profile.pass[1].trace = gx_trace_create();
    assert_non_null(profile.pass[1].trace);
    add_launched(profile.pass[1].trace, "k", 10, 20, 30, 0);
    assert_ok(gx_trace_finish(profile.pass[1].trace, &err), &err);
    assert_ok(gx_profile_figures(&profile, &err), &err);
    assert_int_equal(gx_status_exit(profile.pass[1].status), 4);
    assert_has(profile.pass[1].missing, "none of a step");
    free(print(&profile));
    drop(&profile);
}

/* --- overhead --- */

static void add_overhead(gx_trace *trace, const char *name, int64_t start, int64_t end,
                         int64_t inside)
{
    const gx_trace_overhead overhead = {
        .name = text(trace, name), .start = start, .end = end, .inside = inside
    };

    assert_ok(gx_trace_add_overhead(trace, &overhead, &err), &err);
}

/* The eager trace made anew: of three kinds, one of a number alone, two in the window. */
static void make_with_overhead(gx_profile *profile, gx_args *args)
{
    gx_trace *trace = gx_trace_create();

    make(profile, args);
    assert_non_null(trace);
    gx_trace_free(profile->pass[0].trace);
    profile->pass[0].trace = trace;
    add_plain_steps(trace, 4, 300, true);
    add_overhead(trace, "buffer flush", 1000, 2000, 1000);
    add_overhead(trace, "buffer flush", 2000, 5000, 3000);
    add_overhead(trace, "overhead of kind 589824", 500, 8500, 6000); /* from before on */
    add_overhead(trace, "lazy function loading", 1, 40001, GX_TRACE_NONE);
    assert_ok(gx_trace_finish(trace, &err), &err);
    assert_ok(gx_profile_figures(profile, &err), &err);
}

static void overhead_is_summed_by_kind(void **state)
{
    gx_profile profile;
    gx_args args;
    char *printed;

    (void)state;
    make_with_overhead(&profile, &args);
    printed = print(&profile);
    assert_has(printed,
               "\n  overhead of tracing and driver inside the window: 3 records, 10.0 "
               "us, longest 6.00 us: overhead of kind 589824 1, 6.00 us; buffer flush "
               "2, 4.00 us; before it: 2 records, 42.0 us\n");
    assert_has(printed, "\n  overhead of tracing and driver: n/a; ");
    free(printed);
    drop(&profile);
}

static void no_overhead_is_told_apart_from_none_known(void **state)
{
    gx_profile profile;
    gx_args args;
    char *printed;

    (void)state;
    make(&profile, &args);
    gx_trace_expect_overhead(profile.pass[0].trace);
    assert_ok(gx_profile_figures(&profile, &err), &err);
    printed = print(&profile);
    assert_has(
        printed,
        "\n  overhead of tracing and driver inside the window: none; before it: none\n");
    assert_has(printed, "\n  overhead of tracing and driver: n/a; ");
    free(printed);
    drop(&profile);
}

/* --- for programs --- */

static void check_json(const char *path)
{
    char command[4200];

    snprintf(command, sizeof command, "awk -f tests/cli/json.awk '%s'", path);
    assert_int_equal(system(command), 0);
}

static void json_has_every_step(void **state)
{
    gx_profile profile;
    gx_args args;
    char *path = test_path("profile.json");
    char *written;
    size_t n_steps = 0;

    (void)state;
    make(&profile, &args);
    profile.has_ceilings = true;
    profile.ceilings = made_ceilings();
    assert_ok(gx_profile_figures(&profile, &err), &err);
    assert_ok(gx_profile_write_json(&profile, path, &err), &err);
    check_json(path);
    written = test_read(path, NULL);
    assert_has(written, "\"schema\": \"gexec-profile/1\"");
    assert_has(written, "\"card\": \"A card\"");
    assert_has(written, "\"alternative\": \"reference\"");
    assert_has(written, "\"name\": \"host-bound launches\"");
    for (const char *at = written; (at = strstr(at, "\"start_ns\"")) != NULL; at++)
        n_steps++;
    assert_int_equal(n_steps, 8);
    free(written);
    free(path);
    drop(&profile);
}

static void json_has_overhead_by_kind(void **state)
{
    static const char *const parts[] = {
        "\"overhead\":{\"inside\":{\"n\":3,\"ns\":10000,\"longest_ns\":6000},"
        "\"before\":{\"n\":2,\"ns\":42000},\"kinds\":[",
        "{\"name\":\"overheadofkind589824\",\"inside\":{\"n\":1,\"ns\":6000,"
        "\"longest_ns\":6000},\"before\":{\"n\":1,\"ns\":2000}}",
        "{\"name\":\"bufferflush\",\"inside\":{\"n\":2,\"ns\":4000,"
        "\"longest_ns\":3000},\"before\":{\"n\":0,\"ns\":0}}",
        "{\"name\":\"lazyfunctionloading\",\"inside\":{\"n\":0,\"ns\":0,"
        "\"longest_ns\":0},\"before\":{\"n\":1,\"ns\":40000}}",
        "\"overhead\":null", /* of the graph */
    };
    gx_profile profile;
    gx_args args;
    char *path = test_path("overhead.json");
    char *written;
    size_t n = 0;

    (void)state;
    make_with_overhead(&profile, &args);
    assert_ok(gx_profile_write_json(&profile, path, &err), &err);
    check_json(path);
    written = test_read(path, NULL);
    for (const char *at = written; *at; at++)
        if (!strchr(" \n", *at))
            written[n++] = *at;
    written[n] = '\0';
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
        assert_has(written, parts[i]);
    free(written);
    free(path);
    drop(&profile);
}

static void json_without_traces_is_whole(void **state)
{
    gx_profile profile;
    gx_args args;
    char *path = test_path("bare.json");
    char *written;

    (void)state;
    make(&profile, &args);
    for (int i = 0; i < 2; i++) {
        gx_trace_free(profile.pass[i].trace);
        profile.pass[i].trace = NULL;
        snprintf(profile.pass[i].missing, sizeof profile.pass[i].missing, "no \"tool\"");
    }
    assert_ok(gx_profile_figures(&profile, &err), &err);
    assert_ok(gx_profile_write_json(&profile, path, &err), &err);
    check_json(path);
    written = test_read(path, NULL);
    assert_has(written, "\"missing\": \"no \\\"tool\\\"\"");
    assert_has(written, "\"ceilings\": null");
    free(written);
    free(path);
    drop(&profile);
}

static size_t count(const char *line, size_t length, char wanted)
{
    size_t n = 0;
    bool quoted = false;

    for (size_t i = 0; i < length; i++) {
        quoted ^= line[i] == '"';
        n += line[i] == wanted && (!quoted || wanted == '"');
    }
    return n;
}

static void csv_has_a_row_an_op_and_a_kernel(void **state)
{
    gx_profile profile;
    gx_args args;
    char *path = test_path("ops.csv");
    char *written;
    size_t n_rows = 0;

    (void)state;
    make(&profile, &args);
    /* A name with all that CSV minds. */
    gx_trace_free(profile.pass[1].trace);
    profile.pass[1].trace = gx_trace_create();
    add_range(profile.pass[1].trace, "step", 10, 100);
    add_launched(profile.pass[1].trace, "f<int, \"x\">(a,b)", 20, 40, 50, 0);
    assert_ok(gx_trace_finish(profile.pass[1].trace, &err), &err);
    assert_ok(gx_profile_figures(&profile, &err), &err);
    assert_ok(gx_profile_write_csv(&profile, path, &err), &err);
    written = test_read(path, NULL);
    assert_has(written, ",\"f<int, \"\"x\"\">(a,b)\",\"kernel\",1,");
    assert_has(written, "eager,op,\"fc\",\"reference\",\"forward\",0,0,\"\",\"\",4,0.5,");
    for (const char *line = written; *line; line += strcspn(line, "\n") + 1) {
        assert_int_equal(count(line, strcspn(line, "\n"), ','), 28);
        n_rows++;
        if (!line[strcspn(line, "\n")])
            break;
    }
    /* A title; two ops with a kernel each; an op with one, and one with none. */
    assert_int_equal(n_rows, 1 + 4 + 3);
    free(written);
    free(path);
    drop(&profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_verdict_stands_first),
        cmocka_unit_test(what_is_not_known_is_not_a_number),
        cmocka_unit_test(what_should_be_there_is_held_against_what_is),
        cmocka_unit_test(timing_is_told_without_traces),
        cmocka_unit_test(a_trace_without_steps_is_no_success),
        cmocka_unit_test(overhead_is_summed_by_kind),
        cmocka_unit_test(no_overhead_is_told_apart_from_none_known),
        cmocka_unit_test(json_has_every_step),
        cmocka_unit_test(json_has_overhead_by_kind),
        cmocka_unit_test(json_without_traces_is_whole),
        cmocka_unit_test(csv_has_a_row_an_op_and_a_kernel),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
