/* What stands out in a profile: each pattern is named only where its figure says so. */
#include <stdlib.h>

#include "profile_parts.h"

/* Idle time matters from this share of a step's span on: less is not worth an effort. */
static const double idle_matters = 0.10;
/* A class of gaps is the reason when it has most of the idle time. */
static const double most = 0.50;
/* A kernel is small when it takes less than so many dependent nodes that do nothing:
 * then half of its step and more is launching. */
static const double small_nodes = 2.0;
/* The same where the card's node latency was not measured. */
static const double small_kernel_s = 3e-6;
/* Of a step's device time. */
static const double copies_matter = 0.10;
/* Of the time from one step's start to the next one's. */
static const double step_gap_matters = 0.10;
/* A graph that saves less than this does not repay the effort of having one. */
static const double graph_saves = 0.05;

enum { EAGER, GRAPH };

static gx_profile_pattern *add(gx_profile *profile, const char *name)
{
    gx_profile_pattern *const pattern = &profile->pattern[profile->n_patterns++];

    *pattern = (gx_profile_pattern){ .name = name };
    return pattern;
}

static gx_words ns_words(double ns)
{
    return gx_words_seconds(ns < 0 ? -1.0 : ns * 1e-9);
}

static bool has_steps(const gx_profile_pass *pass)
{
    return pass->trace && pass->n_steps > 0;
}

/* The pass that shows what a step is at best. */
static const gx_profile_pass *best_pass(const gx_profile *profile)
{
    return has_steps(&profile->pass[GRAPH]) ? &profile->pass[GRAPH]
                                            : &profile->pass[EAGER];
}

static void find_host_bound(gx_profile *profile)
{
    const gx_profile_pass *const pass = &profile->pass[EAGER];
    double span = 0, idle = 0, host = 0;
    gx_profile_pattern *pattern;

    for (size_t i = 0; has_steps(pass) && i < pass->n_steps; i++) {
        span += (double)(pass->step[i].end - pass->step[i].start);
        idle += (double)pass->step[i].idle;
        host += (double)pass->step[i].gaps[GX_GAP_HOST].ns;
    }
    if (!(idle >= idle_matters * span && host >= most * idle && host > 0))
        return;
    pattern = add(profile, "host-bound launches");
    snprintf(
        pattern->found, sizeof pattern->found,
        "an eager step is idle for %.1f%% of its span, and %.1f%% of that (%s a step)"
        " is the device waiting for the host to get to the next launch",
        100 * idle / span, 100 * host / idle,
        ns_words(host / (double)pass->n_steps).text);
    snprintf(pattern->advice, sizeof pattern->advice,
             "replay the step as one graph (gexec run --graph), or give each launch more "
             "to do: a larger batch, fused ops");
}

static gx_status median_kernel(const gx_profile_pass *pass, gx_summary *summary,
                               gx_error *err)
{
    size_t n, n_kernels = 0;
    const gx_trace_activity *const activities = gx_trace_activities(pass->trace, &n);
    int64_t *ns = calloc(n + 1, sizeof *ns);
    gx_status st;

    if (!ns)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the patterns of a profile");
    for (size_t i = 0; i < n; i++)
        if (activities[i].kind == GX_TRACE_KERNEL && pass->step_of[i] != GX_TRACE_NONE)
            ns[n_kernels++] = activities[i].end - activities[i].start;
    st = gx_profile_summary(ns, n_kernels, summary, err);
    free(ns);
    return st;
}

static gx_status find_small_kernels(gx_profile *profile, gx_error *err)
{
    const gx_profile_pass *const pass = best_pass(profile);
    const bool known = profile->has_ceilings && profile->ceilings.node_s > 0;
    const double limit_s =
        known ? small_nodes * profile->ceilings.node_s : small_kernel_s;
    gx_profile_pattern *pattern;
    gx_summary kernel;

    if (!has_steps(pass))
        return GX_OK;
    GX_TRY(median_kernel(pass, &kernel, err));
    if (!kernel.n || kernel.median * 1e-9 >= limit_s)
        return GX_OK;
    pattern = add(profile, "small kernels");
    if (known)
        snprintf(pattern->found, sizeof pattern->found,
                 "half of the kernels take less than %s, where a dependent node that does"
                 " nothing takes %s",
                 ns_words(kernel.median).text,
                 gx_words_seconds(profile->ceilings.node_s).text);
    else
        snprintf(pattern->found, sizeof pattern->found,
                 "half of the kernels take less than %s (a node's latency on this card is"
                 " not measured: gexec doctor --measure)",
                 ns_words(kernel.median).text);
    snprintf(pattern->advice, sizeof pattern->advice,
             "fewer and larger kernels: fuse ops, raise the batch, or let short ones "
             "overlap (--pdl on, --lanes 3)");
    return GX_OK;
}

static void find_transfers(gx_profile *profile)
{
    const gx_profile_pass *const pass = best_pass(profile);
    double all = 0, copies = 0;
    gx_profile_pattern *pattern;
    size_t n = 0;
    const gx_trace_activity *const activities =
        has_steps(pass) ? gx_trace_activities(pass->trace, &n) : NULL;

    for (size_t i = 0; i < n; i++) {
        const double ns = (double)(activities[i].end - activities[i].start);

        if (pass->step_of[i] == GX_TRACE_NONE)
            continue;
        all += ns;
        copies += activities[i].kind == GX_TRACE_COPY ? ns : 0;
    }
    if (!(copies > 0 && copies >= copies_matter * all))
        return;
    pattern = add(profile, "transfers");
    snprintf(pattern->found, sizeof pattern->found,
             "copies are %.1f%% of a step's device time (%s of %s)", 100 * copies / all,
             ns_words(copies / (double)pass->n_steps).text,
             ns_words(all / (double)pass->n_steps).text);
    snprintf(pattern->advice, sizeof pattern->advice,
             "keep what a step reads on the device (`data:` in the model, "
             "gx_exec_bind in a program)");
}

static void find_synchronization(gx_profile *profile)
{
    for (int p = EAGER; p <= GRAPH; p++) {
        const gx_profile_pass *const pass = &profile->pass[p];
        gx_profile_pattern *pattern;

        if (!has_steps(pass) || pass->n_waiting_calls == 0)
            continue;
        pattern = add(profile, "synchronization");
        snprintf(pattern->found, sizeof pattern->found,
                 "the host waits for the device %lld times inside %zu steps (%s)",
                 (long long)pass->n_waiting_calls, pass->n_steps,
                 gx_mode_name(pass->mode));
        snprintf(pattern->advice, sizeof pattern->advice,
                 "fetch results without waiting (gx_exec_fetch) and wait once, after "
                 "many steps");
        return;
    }
}

static gx_status find_step_gaps(gx_profile *profile, gx_error *err)
{
    const gx_profile_pass *const pass = &profile->pass[GRAPH];
    gx_profile_pattern *pattern;
    gx_summary gap, step;

    if (!has_steps(pass))
        return GX_OK;
    GX_TRY(gx_profile_figure_of(pass, GX_FIGURE_STEP_GAP, &gap, err));
    GX_TRY(gx_profile_figure_of(pass, GX_FIGURE_STEP, &step, err));
    if (!gap.n || !(gap.median > 0 && gap.median >= step_gap_matters * step.median))
        return GX_OK;
    pattern = add(profile, "step gaps");
    snprintf(pattern->found, sizeof pattern->found,
             "between two replays the device is idle for %s, %.1f%% of the %s from one "
             "step to the next, as traced",
             ns_words(gap.median).text, 100 * gap.median / step.median,
             ns_words(step.median).text);
    snprintf(pattern->advice, sizeof pattern->advice,
             "put several steps into one launch (--steps-per-launch auto)");
    return GX_OK;
}

static void find_idle_graph(gx_profile *profile)
{
    const gx_compare *const timing = &profile->timing;
    const gx_summary ratio = gx_series_summary(&timing->ratio);
    const gx_summary eager = gx_series_summary(&timing->way[GX_WAY_EAGER].steady);
    const gx_summary graph = gx_series_summary(&timing->way[GX_WAY_GRAPH].steady);
    gx_profile_pattern *pattern;

    if (!ratio.n || ratio.median < 1 - graph_saves)
        return;
    pattern = add(profile, "a graph that does not pay");
    snprintf(pattern->found, sizeof pattern->found,
             "untraced, a step takes %s as a graph and %s eagerly: %.3f times as long",
             gx_words_seconds(graph.median).text, gx_words_seconds(eager.median).text,
             ratio.median);
    snprintf(pattern->advice, sizeof pattern->advice,
             "launches are not what bounds this step: look at its longest ops, or make "
             "it smaller if it has to be quick");
}

gx_status gx_profile_patterns(gx_profile *profile, gx_error *err)
{
    profile->n_patterns = 0;
    find_host_bound(profile);
    GX_TRY(find_small_kernels(profile, err));
    find_transfers(profile);
    find_synchronization(profile);
    GX_TRY(find_step_gaps(profile, err));
    find_idle_graph(profile);
    return GX_OK;
}
