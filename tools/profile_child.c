/* The process of a traced pass. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile_pass.h"

enum { WORD = 1, MODE, FOLDER, RECORDS, COMMAND };

typedef struct child {
    gx_args args;
    gx_session session;
    gx_mode mode;
    const char *folder;
    int64_t n_records;
    gx_profiler *profiler;
    gx_exec *exec;
    gx_pass_result result;
} child;

static gx_status run_steps(child *c, int64_t n_steps, gx_error *err)
{
    if (n_steps > 0)
        GX_TRY(gx_exec_run(c->exec, c->mode, n_steps, err));
    return gx_exec_sync(c->exec, err);
}

static gx_status run_cycle(child *c, gx_error *err)
{
    gx_status st;

    GX_TRY(run_steps(c, c->args.wait, err));
    GX_TRY(run_steps(c, c->args.warmup, err));
    GX_TRY(gx_profiler_start(c->profiler, err));
    st = run_steps(c, c->args.active, err);
    return gx_first(st, gx_profiler_stop(c->profiler, st == GX_OK ? err : NULL));
}

static gx_status free_bytes(const child *c, int64_t *bytes, gx_error *err)
{
    gx_device_info info;

    GX_TRY(gx_device_info_get(c->session.device, &info, err));
    *bytes = info.free_bytes;
    return GX_OK;
}

static gx_status keep_trace(child *c, gx_error *err)
{
    char *path = gx_pass_path(c->folder, "trace");
    gx_trace *trace = NULL;
    gx_status st;

    st = path ? gx_profiler_trace(c->profiler, &trace, &c->result.losses, err)
              : GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    if (st == GX_OK)
        st = gx_trace_write(trace, path, err);
    gx_trace_free(trace);
    free(path);
    return st;
}

static gx_status read_model(const child *c, gx_error *err)
{
    char *const path = gx_pass_path(c->folder, GX_PASS_MODEL);
    gx_status st;

    if (!path)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    st = gx_model_text_read(c->args.model, path, c->args.names[0], err);
    free(path);
    return st;
}

static gx_status trace_pass(child *c, gx_error *err)
{
    const gx_profiler_options options = { .n_records = c->n_records };
    gx_mode mode;
    int device;

    /* Before the first CUDA call of the process. */
    GX_TRY(gx_profiler_open(&options, &c->profiler, err));
    GX_TRY(gx_device_choose_bare(&c->args, true, &device, &mode, err));
    GX_TRY(read_model(c, err));
    GX_TRY(gx_session_load(&c->session, &c->args, &(gx_session_needs){ 0 }, device,
                           c->mode, err));
    GX_TRY(free_bytes(c, &c->result.free_before, err));
    GX_TRY(gx_session_open(&c->session, err));
    GX_TRY(gx_session_exec(&c->session, GX_PROGRAM_TRAIN, false, &c->exec, err));
    GX_TRY(gx_profiler_attach(c->profiler, c->exec, err));
    if (c->mode == GX_MODE_GRAPH)
        GX_TRY(gx_exec_capture(c->exec, err));
    for (int64_t i = 0; i < c->args.repeat; i++)
        GX_TRY(run_cycle(c, err));
    GX_TRY(free_bytes(c, &c->result.free_after, err));
    c->result.stats = gx_exec_stats_get(c->exec);
    return keep_trace(c, err);
}

/* The flags are those of the command, but for what the pinned plan says already. */
static bool take_words(child *c, char **words, int n_words, char *plan)
{
    if (strcmp(words[MODE], gx_mode_name(GX_MODE_GRAPH)) == 0)
        c->mode = GX_MODE_GRAPH;
    else if (strcmp(words[MODE], gx_mode_name(GX_MODE_EAGER)) == 0)
        c->mode = GX_MODE_EAGER;
    else
        return false;
    errno = 0;
    c->n_records = strtoll(words[RECORDS], NULL, 10);
    if (errno != 0 || c->n_records < 0 ||
        !gx_args_parse(&c->args, n_words - RECORDS, words + RECORDS) ||
        !c->args.command || c->args.n_names != 1)
        return false;
    c->args.plan = plan;
    c->args.force = NULL;
    c->args.lanes = -1;
    c->args.programmatic = GX_AUTO;
    c->args.order = GX_ORDER_AUTO;
    c->args.skip = GX_AUTO;
    c->args.steps_per_launch = 1;
    c->args.step_loop = GX_AUTO;
    c->args.no_cache = true;
    c->args.quiet = true;
    return true;
}

int gx_pass_main(int argc, char **argv)
{
    child c = { .result = { .free_before = -1, .free_after = -1 } };
    gx_error err = { 0 };
    gx_status st = GX_ERR_ARGUMENT;
    char *plan;

    if (argc <= COMMAND) {
        fputs("gexec: " GX_TRACED_PASS " is for the program itself\n", stderr);
        return GX_EXIT_USAGE;
    }
    c.folder = argv[FOLDER];
    plan = gx_pass_path(c.folder, "plan");
    if (plan && take_words(&c, argv, argc, plan))
        st = trace_pass(&c, &err);
    c.result.status = st;
    snprintf(c.result.message, sizeof c.result.message, "%s",
             err.message[0] ? err.message : gx_status_text(st));
    gx_profiler_free(c.profiler);
    gx_session_close(&c.session);
    gx_error_clear(&err);
    st = gx_pass_write(c.folder, &c.result, &err);
    if (st != GX_OK)
        fprintf(stderr, "gexec: a traced pass: %s\n", err.message);
    gx_args_free(&c.args);
    free(plan);
    return st == GX_OK ? GX_EXIT_OK : GX_EXIT_FAILED;
}
