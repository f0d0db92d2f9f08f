/* The whole of `gexec profile` on a simulated card: this program is the traced process as
 * well, and the tracing tool is made up. GX_TEST_PASS says what becomes of a pass:
 * "MODE:crash", "MODE:exit", "MODE:interrupt", "MODE:refuse" or "MODE:fault"; "*" is
 * both. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fake_cuda.h"
#include "profile_made.h"
#include "profile_pass.h"

/* --- the tracing tool --- */

struct gx_profiler {
    const gx_exec *exec;
    int64_t n_before, n_steps; /* of the exec: when recording began, and recorded */
    bool recording;
};

static gx_profiler tool;

gx_status __wrap_gx_profiler_open(const gx_profiler_options *options,
                                  gx_profiler **profiler, gx_error *error);
void __wrap_gx_profiler_free(gx_profiler *profiler);
gx_status __wrap_gx_profiler_attach(gx_profiler *profiler, gx_exec *exec,
                                    gx_error *error);
gx_status __wrap_gx_profiler_start(gx_profiler *profiler, gx_error *error);
gx_status __wrap_gx_profiler_stop(gx_profiler *profiler, gx_error *error);
gx_status __wrap_gx_profiler_trace(gx_profiler *profiler, gx_trace **trace,
                                   gx_profiler_losses *losses, gx_error *error);
gx_status __wrap_gx_trace_write(const gx_trace *trace, const char *path, gx_error *error);
gx_status __wrap_gx_trace_read(const char *path, gx_trace **trace, gx_error *error);
gx_status __wrap_gx_ceilings_load(const gx_device_info *info, const char *folder,
                                  gx_ceilings *ceilings, gx_error *error);
gx_status __wrap_gx_report_chrome(const gx_report *report, const char *path,
                                  int64_t most_events, int64_t *left_out,
                                  gx_error *error);
gx_status __wrap_gx_report_html(const gx_report *report, const char *path,
                                gx_error *error);

gx_status __wrap_gx_plan_create(const gx_graph *graph, const gx_plan_options *options,
                                gx_plan **plan, gx_error *error);
gx_status __real_gx_plan_create(const gx_graph *graph, const gx_plan_options *options,
                                gx_plan **plan, gx_error *error);

/* Kernels of the simulated card do nothing, so that none can be found good. */
gx_status __wrap_gx_plan_create(const gx_graph *graph, const gx_plan_options *options,
                                gx_plan **plan, gx_error *error)
{
    gx_plan_options blind = *options;

    blind.no_measure = true;
    return __real_gx_plan_create(graph, &blind, plan, error);
}

/* What GX_TEST_PASS says of the mode that this process is. */
static const char *mode_name;

static bool asked(const char *what)
{
    const char *const told = getenv("GX_TEST_PASS");
    const char *const colon = told ? strchr(told, ':') : NULL;

    return colon && strcmp(colon + 1, what) == 0 && mode_name &&
           (told[0] == '*' || strncmp(told, mode_name, (size_t)(colon - told)) == 0);
}

gx_status __wrap_gx_profiler_open(const gx_profiler_options *options,
                                  gx_profiler **profiler, gx_error *error)
{
    *profiler = NULL;
    assert_true(options->n_records > 0);
    assert_int_equal(fake_calls(NULL), 0); /* before any CUDA call */
    if (asked("refuse"))
        return GX_FAIL(error, GX_ERR_UNSUPPORTED, "the tool is held by another");
    *profiler = &tool;
    return GX_OK;
}

void __wrap_gx_profiler_free(gx_profiler *profiler)
{
    (void)profiler;
}

gx_status __wrap_gx_profiler_attach(gx_profiler *profiler, gx_exec *exec, gx_error *error)
{
    (void)error;
    profiler->exec = exec;
    assert_int_equal(gx_exec_stats_get(exec).graph_nodes, 0); /* before the capture */
    return GX_OK;
}

static int64_t steps_so_far(const gx_profiler *profiler)
{
    const gx_exec_stats stats = gx_exec_stats_get(profiler->exec);

    return stats.graph_launches + stats.eager_steps;
}

gx_status __wrap_gx_profiler_start(gx_profiler *profiler, gx_error *error)
{
    assert_false(profiler->recording);
    profiler->recording = true;
    profiler->n_before = steps_so_far(profiler);
    if (asked("crash"))
        abort();
    if (asked("exit"))
        exit(7);
    if (asked("interrupt")) {
        kill(getppid(), SIGINT);
        for (;;)
            pause();
    }
    return asked("fault") ? GX_FAIL(error, GX_ERR_CUDA, "an illegal address") : GX_OK;
}

gx_status __wrap_gx_profiler_stop(gx_profiler *profiler, gx_error *error)
{
    (void)error;
    assert_true(profiler->recording);
    profiler->recording = false;
    profiler->n_steps += steps_so_far(profiler) - profiler->n_before;
    return GX_OK;
}

gx_status __wrap_gx_profiler_trace(gx_profiler *profiler, gx_trace **trace,
                                   gx_profiler_losses *losses, gx_error *error)
{
    (void)error;
    *losses = (gx_profiler_losses){ .dropped = 3 };
    *trace = gx_trace_create();
    assert_non_null(*trace);
    add_plain_steps(*trace, profiler->n_steps, 50, true);
    return GX_OK;
}

/* A trace of plain steps is as good as their number. */
gx_status __wrap_gx_trace_write(const gx_trace *trace, const char *path, gx_error *error)
{
    FILE *const file = fopen(path, "w");
    size_t n;

    (void)error;
    assert_non_null(file);
    (void)gx_trace_ranges(trace, &n);
    fprintf(file, "%zu\n", n);
    assert_int_equal(fclose(file), 0);
    return GX_OK;
}

gx_status __wrap_gx_trace_read(const char *path, gx_trace **trace, gx_error *error)
{
    FILE *const file = fopen(path, "r");
    long long n = 0;

    (void)error;
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lld", &n), 1);
    fclose(file);
    *trace = gx_trace_create();
    assert_non_null(*trace);
    add_plain_steps(*trace, n, 50, true);
    return GX_OK;
}

gx_status __wrap_gx_ceilings_load(const gx_device_info *info, const char *folder,
                                  gx_ceilings *ceilings, gx_error *error)
{
    (void)info;
    (void)folder;
    (void)error;
    *ceilings = made_ceilings();
    return GX_OK;
}

static gx_status write_line(const char *path, const gx_report *report)
{
    FILE *const file = fopen(path, "w");

    assert_non_null(file);
    fprintf(file, "%s: %zu sides, %s first\n", report->title, report->n_sides,
            report->side[0].title);
    assert_int_equal(fclose(file), 0);
    return GX_OK;
}

gx_status __wrap_gx_report_chrome(const gx_report *report, const char *path,
                                  int64_t most_events, int64_t *left_out, gx_error *error)
{
    (void)most_events;
    (void)error;
    *left_out = 4;
    return write_line(path, report);
}

gx_status __wrap_gx_report_html(const gx_report *report, const char *path,
                                gx_error *error)
{
    (void)error;
    assert_non_null(report->profile);
    return write_line(path, report);
}

/* --- the command --- */

static char *scratch; /* TMPDIR of the command */

/* Where standard output or standard error goes while the command runs. */
typedef struct redirection {
    int number, kept;
    char *path;
} redirection;

static redirection redirect(FILE *stream, const char *name)
{
    redirection to = { .number = fileno(stream), .path = test_path(name) };
    const int file = open(to.path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    fflush(stream);
    to.kept = dup(to.number);
    assert_true(file >= 0 && to.kept >= 0 && dup2(file, to.number) >= 0);
    close(file);
    return to;
}

/* What was written; the caller frees. */
static char *restore(FILE *stream, redirection *to)
{
    char *written;

    fflush(stream);
    assert_true(dup2(to->kept, to->number) >= 0);
    close(to->kept);
    written = test_read(to->path, NULL);
    free(to->path);
    return written;
}

typedef struct outcome {
    int exit_status;
    char *out, *err;
} outcome;

#define MODEL "graphs/examples/mnist_mlp.yaml"

static outcome profile_file(const char *model, const char *told, int n_more,
                            const char *const *more)
{
    const char *words[48] = { "gexec", "profile",    model,     "--set", "hidden=8",
                              "--set", "batch=4",    "--pairs", "3",     "--block",
                              "4",     "--no-cache", "--lanes", "1",     "--pdl",
                              "off",   NULL };
    outcome result;
    gx_args args;
    int n = 16;

    assert_true(n + n_more < (int)ARRAY_SIZE(words));
    for (int i = 0; i < n_more; i++)
        words[n++] = more[i];
    setenv("GX_TEST_PASS", told, 1);
    assert_true(gx_args_parse(&args, n, (char **)words));
    redirection out = redirect(stdout, "out");
    redirection errors = redirect(stderr, "err");
    result.exit_status = args.command->run(&args);
    result.err = restore(stderr, &errors);
    result.out = restore(stdout, &out);
    gx_args_free(&args);
    return result;
}

static outcome profile(const char *told, int n_more, const char *const *more)
{
    return profile_file(MODEL, told, n_more, more);
}

static void drop(outcome *result)
{
    free(result->out);
    free(result->err);
}

static void nothing_is_left(void)
{
    DIR *const list = opendir(scratch);
    const struct dirent *entry;

    assert_non_null(list);
    while ((entry = readdir(list)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            fail_msg("%s is left in %s", entry->d_name, scratch);
    closedir(list);
    assert_int_equal(fake_live(), 0);
}

static void the_active_steps_of_every_cycle_are_traced(void **state)
{
    char *json = test_path("p.json"), *csv = test_path("p.csv");
    char *chrome = test_path("p.trace"), *html = test_path("p.html");
    const char *const more[] = { "--wait",   "1",    "--warmup", "2",  "--active", "3",
                                 "--repeat", "2",    "--json",   json, "--csv",    csv,
                                 "--chrome", chrome, "--html",   html };
    outcome result = profile("", ARRAY_SIZE(more), more);
    char *written;

    (void)state;
    assert_int_equal(result.exit_status, 0);
    assert_has(result.out, "eager: 6 steps traced, 12 kernels, copies and fills "
                           "(EXPECTED ");
    assert_has(result.out, ": launches x steps)");
    assert_has(result.out, "LOST: 3 records dropped");
    assert_has(result.out, "overhead of tracing and driver: n/a");
    assert_has(result.out, "graph: 6 steps traced");
    assert_has(result.err, "4 events were left out");
    written = test_read(json, NULL);
    assert_has(written, "\"expected_steps\": 6");
    assert_has(written, "\"steps_per_launch\": 1");
    free(written);
    written = test_read(html, NULL);
    assert_string_equal(written, "mnist-mlp: 2 sides, eager first\n");
    free(written);
    written = test_read(csv, NULL);
    assert_has(written, "\ngraph,kernel,");
    free(written);
    nothing_is_left();
    free(json);
    free(csv);
    free(chrome);
    free(html);
    drop(&result);
}

static void a_forced_and_unrolled_plan_is_traced_as_it_is(void **state)
{
    const char *const more[] = { "--force", "tile", "--steps-per-launch", "2", "-q" };
    outcome result = profile("", ARRAY_SIZE(more), more);

    (void)state;
    assert_int_equal(result.exit_status, 0);
    assert_has(result.out, "eager: 10 steps traced");
    assert_has(result.out, "graph: 10 steps traced");
    assert_has(result.out, "traced with one step a launch; timed with 2 steps a launch");
    assert_string_equal(result.err, "");
    nothing_is_left();
    drop(&result);
}

static void what_is_forced_for_nothing_is_told_of(void **state)
{
    char *json = test_path("forced.json");
    const char *const more[] = { "--force", "tile,wgmma_update,wgmma", "--json", json };
    outcome result = profile("", ARRAY_SIZE(more), more);
    char *written = test_read(json, NULL);

    (void)state;
    assert_int_equal(result.exit_status, 0);
    assert_has(written, "\"--force wgmma_update\"");
    assert_has(written, "\"--force wgmma\"");
    assert_null(strstr(written, "\"--force tile\""));
    free(written);
    free(json);
    assert_has(result.err, "gexec profile: --force wgmma_update: nothing takes it; ");
    assert_has(result.err, "--force wgmma: nothing takes it; ");
    assert_null(strstr(result.err, "--force tile"));
    drop(&result);
}

static void a_tool_that_cannot_be_had_leaves_the_timing(void **state)
{
    char *html = test_path("none.html");
    const char *const more[] = { "--html", html };
    outcome result = profile("*:refuse", ARRAY_SIZE(more), more);

    (void)state;
    assert_int_equal(result.exit_status, 3);
    assert_has(result.out, "there is no trace.\n");
    assert_has(result.out, "No trace of eager launches: the tool is held by another");
    assert_has(result.out, "untraced, steady");
    assert_has(result.out, "costs of the graph");
    assert_has(result.err, "the tool is held by another");
    assert_has(result.err, "there is no trace to write");
    assert_true(access(html, F_OK) != 0);
    nothing_is_left();
    free(html);
    drop(&result);
}

static void a_pass_that_fails_leaves_the_other(void **state)
{
    static const struct {
        const char *told, *reason;
    } cases[] = {
        { "graph:crash", "the traced process died of signal 6" },
        { "graph:exit", "the traced process exits with 7" },
        { "graph:fault", "an illegal address" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        outcome result = profile(cases[i].told, 0, NULL);

        assert_int_equal(result.exit_status, 4);
        assert_has(result.out, "eager: 10 steps traced");
        assert_null(strstr(result.out, "graph: 10 steps traced"));
        assert_has(result.out, "a replay was not traced");
        assert_has(result.err, "no trace of the graph: ");
        assert_has(result.err, cases[i].reason);
        nothing_is_left();
        drop(&result);
    }
}

static void a_model_from_a_pipe_is_that_of_each_pass(void **state)
{
    char name[32];
    size_t length;
    char *const model = test_read(MODEL, &length);
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], model, length), length);
    close(ends[1]);
    snprintf(name, sizeof name, "/dev/fd/%d", ends[0]);
    outcome result = profile_file(name, "", 0, NULL);
    assert_int_equal(result.exit_status, 0);
    assert_has(result.out, "eager: 10 steps traced");
    assert_has(result.out, "graph: 10 steps traced");
    nothing_is_left();
    close(ends[0]);
    free(model);
    drop(&result);
}

static void an_interrupt_ends_the_traced_process(void **state)
{
    outcome result = profile("eager:interrupt", 0, NULL);

    (void)state;
    assert_int_equal(result.exit_status, 130);
    assert_has(result.out, "No trace of eager launches: interrupted");
    assert_has(result.out, "No trace of the graph: interrupted");
    assert_has(result.out, "untraced, steady");
    nothing_is_left();
    drop(&result);
}

int main(int argc, char **argv)
{
    /* The last one leaves the process interrupted. */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_active_steps_of_every_cycle_are_traced),
        cmocka_unit_test(a_forced_and_unrolled_plan_is_traced_as_it_is),
        cmocka_unit_test(what_is_forced_for_nothing_is_told_of),
        cmocka_unit_test(a_tool_that_cannot_be_had_leaves_the_timing),
        cmocka_unit_test(a_pass_that_fails_leaves_the_other),
        cmocka_unit_test(a_model_from_a_pipe_is_that_of_each_pass),
        cmocka_unit_test(an_interrupt_ends_the_traced_process),
    };

    if (argc > 2 && strcmp(argv[1], GX_TRACED_PASS) == 0) {
        mode_name = argv[2];
        return gx_pass_main(argc, argv);
    }
    scratch = test_path("scratch");
    if (mkdir(scratch, 0700) != 0)
        return 1;
    setenv("TMPDIR", scratch, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
