/* The two traced passes, one process after the other. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "interrupt.h"
#include "lines_out.h"
#include "profile_pass.h"

/* --- the folder that a pass works in --- */

static gx_status make_folder(char *folder, size_t size, gx_error *err)
{
    const char *base = getenv("TMPDIR");

    snprintf(folder, size, "%s/gexec-profile-XXXXXX",
             base && base[0] && strlen(base) < size - 32 ? base : "/tmp");
    if (!mkdtemp(folder))
        return GX_FAIL_NATIVE(err, GX_ERR_WRITE, errno, "%s: %s", folder,
                              strerror(errno));
    return GX_OK;
}

/* With whatever a process that died left in it. */
static void remove_folder(const char *folder)
{
    DIR *const list = opendir(folder);
    const struct dirent *entry;

    while (list && (entry = readdir(list)) != NULL) {
        char *path;

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        path = gx_pass_path(folder, entry->d_name);
        if (path)
            unlink(path);
        free(path);
    }
    if (list)
        closedir(list);
    rmdir(folder);
}

/* --- a pass --- */

static int64_t n_steps(const gx_profile_schedule *schedule)
{
    return schedule->active * schedule->repeat;
}

/* Launches or nodes of a step; < 0: not known, as where an IF node skips some. How often
 * a library launches is known from a capture alone, and eager launches were captured when
 * they were timed: the plan is the same. */
static int64_t a_step(const gx_profile *profile, const gx_exec_stats *stats, gx_mode mode)
{
    const gx_plan *const plan = profile->timing.session.plan[GX_PROGRAM_TRAIN];

    if (mode == GX_MODE_GRAPH)
        return gx_plan_info_get(plan).skip_if ? -1 : stats->graph_nodes;
    return stats->launches_per_step >= 0 ? stats->launches_per_step
                                         : profile->timing.way[GX_WAY_EAGER].launches;
}

/* The model as it was read, which may have been a pipe. */
static gx_status leave_model(const gx_model_text *model, const char *folder,
                             gx_error *err)
{
    char *const path = gx_pass_path(folder, GX_PASS_MODEL);
    gx_status st;

    if (!path)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    st = gx_lines_write(path, model->bytes, model->length, err);
    free(path);
    return st;
}

/* The words of this process with those of the pass before them. */
static gx_status spawn(const gx_profile *profile, const gx_profile_pass *pass,
                       char *folder, gx_error *err)
{
    const gx_session *const session = &profile->timing.session;
    const gx_args *const args = session->args;
    /* The copy of a batch that streams is one more. */
    const int64_t launches =
        profile->timing.way[GX_WAY_EAGER].launches + session->streams;
    char word[] = GX_TRACED_PASS;
    char stream[] = "--stream";
    char mode[16];
    char records[32];
    char **words = calloc((size_t)args->argc + 6, sizeof *words);
    gx_status st;

    if (!words)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    snprintf(mode, sizeof mode, "%s", gx_mode_name(pass->mode));
    snprintf(records, sizeof records, "%lld",
             (long long)(launches > 0 ? launches * n_steps(&profile->schedule) : 0));
    words[0] = args->argv[0];
    words[1] = word;
    words[2] = mode;
    words[3] = folder;
    words[4] = records;
    memcpy(words + 5, args->argv + 1, (size_t)(args->argc - 1) * sizeof *words);
    if (session->streams && !args->stream) /* how much room there is may change */
        words[4 + args->argc] = stream;
    st = gx_pass_spawn(words, err);
    free(words);
    return st;
}

static gx_status take_trace(gx_profile_pass *pass, const char *folder, gx_error *err)
{
    char *path = gx_pass_path(folder, "trace");
    gx_status st;

    if (!path)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    st = gx_trace_read(path, &pass->trace, err);
    free(path);
    if (st == GX_OK)
        st = gx_trace_finish(pass->trace, err);
    if (st == GX_OK)
        return GX_OK;
    gx_trace_free(pass->trace);
    pass->trace = NULL;
    return st;
}

static gx_status take_result(const gx_profile *profile, gx_profile_pass *pass,
                             const char *folder, gx_error *err)
{
    gx_pass_result result;
    int64_t each;

    GX_TRY(gx_pass_read(folder, &result, err));
    if (result.status != GX_OK)
        return GX_FAIL(err, result.status, "%s", result.message);
    pass->stats = result.stats;
    pass->losses = result.losses;
    pass->free_before = result.free_before;
    pass->free_after = result.free_after;
    each = a_step(profile, &pass->stats, pass->mode);
    pass->expected_steps = n_steps(&profile->schedule);
    if (each >= 0 && profile->timing.session.streams)
        each++; /* the copy of a batch */
    pass->expected = each >= 0 ? each * pass->expected_steps : -1;
    return take_trace(pass, folder, err);
}

static gx_status run_pass(const gx_profile *profile, gx_profile_pass *pass, gx_error *err)
{
    const gx_plan *const plan = profile->timing.session.plan[GX_PROGRAM_TRAIN];
    char folder[2048];
    char *pinned;
    gx_status st;

    GX_TRY(make_folder(folder, sizeof folder, err));
    pinned = gx_pass_path(folder, "plan");
    st = pinned ? gx_plan_write(plan, pinned, err)
                : GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    free(pinned);
    if (st == GX_OK)
        st = leave_model(profile->timing.session.args->model, folder, err);
    if (st == GX_OK)
        st = spawn(profile, pass, folder, err);
    if (st == GX_OK)
        st = take_result(profile, pass, folder, err);
    remove_folder(folder);
    return st;
}

void gx_profile_trace(gx_profile *profile, gx_error errors[2])
{
    static const gx_mode modes[2] = { GX_MODE_EAGER, GX_MODE_GRAPH };

    for (int i = 0; i < 2; i++) {
        gx_profile_pass *const pass = &profile->pass[i];
        gx_error *const err = &errors[i];

        gx_error_clear(err);
        *pass = (gx_profile_pass){ .mode = modes[i],
                                   .expected = -1,
                                   .free_before = -1,
                                   .free_after = -1,
                                   .lane_overlap_ns = -1 };
        pass->status = gx_interrupted() ? GX_FAIL(err, GX_ERR_STATE, "interrupted")
                                        : run_pass(profile, pass, err);
        if (pass->status != GX_OK)
            snprintf(pass->missing, sizeof pass->missing, "%.250s", err->message);
    }
}
