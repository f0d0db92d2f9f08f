/* `gexec run --blocks`: timed blocks on demand, so that another program can alternate its
 * own with them on one card. */
#include <stdlib.h>
#include <string.h>

#include "remarks.h"
#include "run_report.h"

#define EXPECTED "expected `time N`, `losses N`, `reset` or `quit`"

enum { LINE_SIZE = 256, LARGEST = 1000000 };

static gx_status answer_ready(const gx_run *run, gx_error *err)
{
    const gx_exec_stats stats = gx_exec_stats_get(run->exec);
    const gx_session *const session = &run->session;
    const bool on_cpu = session->device == GX_CPU;
    gx_json *json = gx_json_create();
    gx_status st;

    gx_json_object(json, NULL);
    gx_json_bool(json, "ready", true);
    gx_json_text(json, "model", gx_graph_name(session->graph[run->program]));
    gx_json_text(json, "mode", gx_mode_name(session->mode));
    gx_json_text(json, "precision", gx_graph_precision(session->graph[run->program]));
    gx_json_text(json, "plan", gx_plan_mark(session->plan[run->program]).text);
    gx_json_integer(json, "steps_per_launch", session->steps_per_launch);
    gx_json_figure(json, "launches_per_step",
                   on_cpu ? -1 : (double)stats.launches_per_step);
    gx_json_figure(json, "graph_nodes",
                   stats.graph_nodes > 0 ? (double)stats.graph_nodes : -1);
    gx_json_environment(json, "environment", session);
    gx_idle_flags_put(json, gx_idle_flags_of(session));
    gx_json_end(json);
    st = gx_json_line(json, err);
    gx_json_free(json);
    return st;
}

static gx_status answer_error(const char *message, gx_error *err)
{
    gx_json *json = gx_json_create();
    gx_status st;

    gx_json_object(json, NULL);
    gx_json_text(json, "error", message);
    gx_json_end(json);
    st = gx_json_line(json, err);
    gx_json_free(json);
    return st;
}

static gx_status answer_time(gx_run *run, int64_t n, gx_error *err)
{
    gx_timing timing;
    gx_json *json;
    gx_status st;

    GX_TRY(gx_exec_time(run->exec, run->session.mode, n, &timing, err));
    run->history.steps += n;
    json = gx_json_create();
    gx_json_object(json, NULL);
    gx_json_integer(json, "steps", n);
    gx_json_figure(json, "host_s", timing.host_s);
    gx_json_figure(json, "wall_s", timing.wall_s);
    gx_json_figure(json, "device_s", timing.device_s);
    gx_json_end(json);
    st = gx_json_line(json, err);
    gx_json_free(json);
    return st;
}

static gx_status answer_losses(gx_run *run, int64_t n, gx_error *err)
{
    const gx_graph *const graph = run->session.graph[run->program];
    double *rows = malloc(GX_LOG_ROWS * GX_MAX_LOGGED * sizeof *rows);
    gx_json *json = gx_json_create();
    size_t n_columns = 0;
    gx_status st;

    while (n_columns < GX_MAX_LOGGED && gx_graph_logged(graph, n_columns))
        n_columns++;
    st = rows ? gx_exec_log(run->exec, n, rows, err)
              : GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    for (int64_t i = 0; i < n && st == GX_OK; i++)
        rows[i] = rows[i * (int64_t)n_columns];
    if (st == GX_OK) {
        gx_json_object(json, NULL);
        gx_json_reals(json, "losses", rows, (size_t)n);
        gx_json_end(json);
        st = gx_json_line(json, err);
    }
    gx_json_free(json);
    free(rows);
    return st;
}

static gx_status answer_reset(gx_run *run, const gx_snapshot *start, gx_error *err)
{
    gx_json *json;
    gx_status st;

    GX_TRY(gx_state_restore(run->session.state, start, err));
    GX_TRY(gx_exec_sync(run->exec, err));
    run->history.steps = 0;
    json = gx_json_create();
    gx_json_object(json, NULL);
    gx_json_bool(json, "reset", true);
    gx_json_end(json);
    st = gx_json_line(json, err);
    gx_json_free(json);
    return st;
}

/* "word N" and nothing behind it; N is -1 where it is left out. */
static bool read_line(const char *line, char *word, int64_t *n)
{
    char rest;
    long long number;
    const int found = sscanf(line, "%31s %lld %c", word, &number, &rest);

    *n = found >= 2 ? number : -1;
    return found == 1 || (found == 2 && number >= 1 && number <= LARGEST);
}

static gx_status obey(gx_run *run, const gx_snapshot *start, const char *line, bool *quit,
                      gx_error *err)
{
    const int64_t k = run->session.steps_per_launch;
    char word[32] = "";
    int64_t n;

    if (!read_line(line, word, &n))
        return answer_error(EXPECTED, err);
    if (strcmp(word, "quit") == 0 && n < 0) {
        *quit = true;
        return GX_OK;
    }
    if (strcmp(word, "reset") == 0 && n < 0)
        return answer_reset(run, start, err);
    if (strcmp(word, "time") == 0 && n > 0) {
        if (run->session.mode == GX_MODE_GRAPH && n % k)
            return answer_error("N is no multiple of the steps per launch", err);
        return answer_time(run, n, err);
    }
    if (strcmp(word, "losses") == 0 && n > 0) {
        if (n > GX_LOG_ROWS || n > run->history.steps)
            return answer_error("there are not so many steps behind", err);
        if (!gx_graph_logged(run->session.graph[run->program], 0))
            return answer_error("the model logs no loss", err);
        return answer_losses(run, n, err);
    }
    return answer_error(EXPECTED, err);
}

/* The next line, without its end, as far as there is room; false at the end of `in`.
 * `wrong`: what keeps it from being read as text, or NULL. */
static bool next_line(FILE *in, char *line, const char **wrong)
{
    size_t n = 0;
    int c = getc(in);

    *wrong = NULL;
    if (c == EOF)
        return false;
    for (; c != EOF && c != '\n'; c = getc(in)) {
        if (c == '\0' && !*wrong)
            *wrong = "the line holds a byte 0: " EXPECTED;
        if (n + 1 < LINE_SIZE)
            line[n++] = (char)c;
        else if (!*wrong)
            *wrong = "the line is too long: " EXPECTED;
    }
    line[n] = '\0';
    return true;
}

gx_status gx_run_serve(gx_run *run, FILE *in, gx_error *err)
{
    gx_snapshot *start = NULL;
    char line[LINE_SIZE];
    const char *wrong;
    bool quit = false;
    gx_status st;

    GX_TRY(gx_state_save(run->session.state, &start, err));
    st = answer_ready(run, err);
    while (st == GX_OK && !quit && next_line(in, line, &wrong))
        st = wrong ? answer_error(wrong, err) : obey(run, start, line, &quit, err);
    gx_snapshot_free(start);
    return st;
}
