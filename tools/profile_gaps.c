/* Between which ops the device was idle, and what lanes did at the same time. */
#include <stdlib.h>

#include "profile_parts.h"

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

/* --- pairs of ops --- */

/* A gap inside a step. */
typedef struct gap_between {
    size_t before, after;
    int32_t step;
    gx_gap_class type;
    int64_t ns;
} gap_between;

/* Ops stand in the order of the units, and what none claims stands last. SIZE_MAX: work
 * that is in no step, so in no op. */
static size_t op_of(const gx_profile_pass *pass, const gx_trace_activity *activity)
{
    const size_t last = pass->n_ops - 1;

    if (activity->group >= 0 && (size_t)activity->group < pass->n_ops &&
        pass->op[activity->group].unit == (size_t)activity->group)
        return (size_t)activity->group;
    return pass->op[last].unit == SIZE_MAX ? last : SIZE_MAX;
}

static int compare_gaps(const void *left, const void *right)
{
    const gap_between *const a = left;
    const gap_between *const b = right;
    int order = COMPARE(a->before, b->before);

    if (order == 0)
        order = COMPARE(a->after, b->after);
    return order != 0 ? order : COMPARE(a->step, b->step);
}

static bool same_pair(const gap_between *a, const gap_between *b)
{
    return a->before == b->before && a->after == b->after;
}

static size_t collect_gaps(const gx_profile_pass *pass, gap_between *list)
{
    size_t n_activities, n = 0;
    const gx_trace_activity *const activities =
        gx_trace_activities(pass->trace, &n_activities);

    for (size_t d = 0; d < pass->figures->n_devices; d++) {
        const gx_trace_device *const device = &pass->figures->device[d];

        for (size_t i = 0; i < device->n_gaps; i++) {
            const gx_trace_gap *const gap = &device->gap[i];
            const gap_between found = { op_of(pass, &activities[gap->before]),
                                        op_of(pass, &activities[gap->after]),
                                        gx_profile_gap_step(pass, gap), gap->type,
                                        gap->end - gap->start };

            if (found.step != GX_TRACE_NONE && found.before != SIZE_MAX &&
                found.after != SIZE_MAX)
                list[n++] = found;
        }
    }
    if (n)
        qsort(list, n, sizeof *list, compare_gaps);
    return n;
}

static gx_status make_pair(const gx_profile_pass *pass, const gap_between *list, size_t n,
                           int64_t *ns, gx_profile_pair *pair, gx_error *err)
{
    gx_summary summary;

    *pair = (gx_profile_pair){ .before = list[0].before, .after = list[0].after };
    for (size_t s = 0; s < pass->n_steps; s++)
        ns[s] = 0;
    for (size_t i = 0; i < n; i++) {
        ns[list[i].step] += list[i].ns;
        pair->total_ns += list[i].ns;
        pair->gaps[list[i].type].n++;
        pair->gaps[list[i].type].ns += list[i].ns;
    }
    GX_TRY(gx_profile_summary(ns, pass->n_steps, &summary, err));
    pair->median_ns = gx_profile_ns(summary.median);
    pair->p95_ns = gx_profile_ns(summary.p95);
    return GX_OK;
}

static int longest_first(const void *left, const void *right)
{
    const gx_profile_pair *const a = left;
    const gx_profile_pair *const b = right;
    int order = COMPARE(b->total_ns, a->total_ns);

    if (order == 0)
        order = COMPARE(a->before, b->before);
    return order != 0 ? order : COMPARE(a->after, b->after);
}

static gx_status make_pairs(gx_profile_pass *pass, const gap_between *list, size_t n,
                            int64_t *ns, gx_error *err)
{
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && same_pair(&list[i], &list[end]);)
            end++;
        GX_TRY(make_pair(pass, list + i, end - i, ns, &pass->pair[pass->n_pairs], err));
        pass->n_pairs++;
    }
    if (pass->n_pairs)
        qsort(pass->pair, pass->n_pairs, sizeof *pass->pair, longest_first);
    return GX_OK;
}

gx_status gx_profile_pairs(gx_profile_pass *pass, gx_error *err)
{
    size_t n_gaps = 0;
    gap_between *list;
    int64_t *ns;
    gx_status st;

    for (size_t d = 0; d < pass->figures->n_devices; d++)
        n_gaps += pass->figures->device[d].n_gaps;
    list = calloc(n_gaps + 1, sizeof *list);
    ns = calloc(pass->n_steps + 1, sizeof *ns);
    pass->pair = calloc(n_gaps + 1, sizeof *pass->pair);
    if (list && ns && pass->pair)
        st = make_pairs(pass, list, collect_gaps(pass, list), ns, err);
    else
        st = GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the gaps of a profile");
    free(list);
    free(ns);
    return st;
}

/* --- lanes --- */

/* While a step goes on: until when each lane is busy, until when two of them are, and for
 * how long that has been so far. */
typedef struct sweep {
    int64_t until[GX_MAX_LANES];
    int64_t covered, both;
} sweep;

/* Activities come in order of their starts, so what other lanes still run when one begins
 * is known then. */
static void sweep_on(sweep *s, const gx_trace_activity *activity)
{
    const int lane = activity->lane < GX_MAX_LANES ? activity->lane : GX_MAX_LANES - 1;
    int64_t to = INT64_MIN, from = activity->start;

    for (int other = 0; other < GX_MAX_LANES; other++)
        if (other != lane && s->until[other] > to)
            to = s->until[other];
    if (to > activity->end)
        to = activity->end;
    if (from < s->covered)
        from = s->covered;
    if (to > from) {
        s->both += to - from;
        s->covered = to;
    }
    if (activity->end > s->until[lane])
        s->until[lane] = activity->end;
}

gx_status gx_profile_overlap(gx_profile_pass *pass, gx_error *err)
{
    size_t n;
    const gx_trace_activity *const activities = gx_trace_activities(pass->trace, &n);
    sweep *const steps = calloc(pass->n_steps + 1, sizeof *steps);
    int64_t *const both = calloc(pass->n_steps + 1, sizeof *both);
    bool several = false;
    sweep idle = { .covered = INT64_MIN };
    gx_summary summary = { .median = -1 };
    gx_status st = GX_OK;

    if (!steps || !both)
        st = GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the lanes of a profile");
    for (int lane = 0; lane < GX_MAX_LANES; lane++)
        idle.until[lane] = INT64_MIN;
    for (size_t i = 0; st == GX_OK && i < pass->n_steps; i++)
        steps[i] = idle;
    for (size_t i = 0; st == GX_OK && i < n; i++) {
        if (pass->step_of[i] == GX_TRACE_NONE || activities[i].lane == GX_TRACE_NONE)
            continue;
        several |= activities[i].lane > 0;
        sweep_on(&steps[pass->step_of[i]], &activities[i]);
    }
    for (size_t i = 0; st == GX_OK && i < pass->n_steps; i++)
        both[i] = steps[i].both;
    if (st == GX_OK && several)
        st = gx_profile_summary(both, pass->n_steps, &summary, err);
    pass->lane_overlap_ns = several ? summary.median : -1;
    free(steps);
    free(both);
    return st;
}
