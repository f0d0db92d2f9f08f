/* The step of a trace as a CUDA graph: figures over its steps, and what is assumed. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "need.h"
#include "predict_model.h"

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

/* A trace of which the device ran this much in replays is one of graphs. */
static const double mostly_replays = 0.9;

/* An H100 80GB HBM3, driver 580, CUDA 13.0: a chain of kernels that add 1 to a word took
 * 0.96 us a node, 0.66 with programmatic edges; the same kernel's traced time, launched
 * eagerly, was 1.056 us; a graph of one such node, back to back, took 2.0 to 2.3 us. */
/* What traces show of a copy beside its bytes: 0.74 to 0.80 us of a few from the host,
 * and 4.5 us where an engine copies a buffer, on an H100. The rest of what a copy costs a
 * chain is before and behind it. */
static const double traced_copy_ns = 770.0;
static const double traced_engine_ns = 4500.0;

gx_predict_costs gx_predict_costs_default(void)
{
    return (gx_predict_costs){
        .card = "NVIDIA H100 80GB HBM3",
        .node_ns = 960.0,
        .programmatic_ns = 660.0,
        .trace_ns = 96.0,
        .trace_error_ns = 32.0, /* the step of its clock */
        .copy_ns = 1500.0,
        .copy_error_ns = 600.0,
        .engine_ns = 3500.0,
        .engine_error_ns = 1500.0,
        .beside_ns = 450.0,
        .beside_error_ns = 100.0,
        .join_ns = 150.0,
        .join_error_ns = 50.0,
        .step_ns = 1190.0,
        .step_error_ns = 150.0,
        .host_ns = 2000.0,
        .build_node_ns = 10000.0,
        .n_sm = 132.0,
    };
}

gx_predict_costs gx_predict_costs_of(const gx_ceilings *ceilings)
{
    gx_predict_costs costs = gx_predict_costs_default();

    snprintf(costs.card, sizeof costs.card, "%s", ceilings->card);
    if (ceilings->node_s > 0.0)
        costs.node_ns = 1e9 * ceilings->node_s;
    if (ceilings->programmatic_node_s > 0.0)
        costs.programmatic_ns = 1e9 * ceilings->programmatic_node_s;
    if (ceilings->copy_node_s > 0.0)
        costs.copy_ns = fmax(0.0, 1e9 * ceilings->copy_node_s - traced_copy_ns);
    if (ceilings->copy_engine_s > 0.0)
        costs.engine_ns = fmax(0.0, 1e9 * ceilings->copy_engine_s - traced_engine_ns);
    if (ceilings->beside_s > 0.0)
        costs.beside_ns = 1e9 * ceilings->beside_s;
    if (ceilings->join_s > 0.0)
        costs.join_ns = 1e9 * ceilings->join_s;
    if (ceilings->step_s > 0.0)
        costs.step_ns = 1e9 * ceilings->step_s;
    if (ceilings->graph_host_s > 0.0)
        costs.host_ns = 1e9 * ceilings->graph_host_s;
    return costs;
}

/* --- what the device did --- */

static bool is_replayed(const gx_trace *trace, const gx_trace_activity *activity)
{
    if (activity->kind == GX_TRACE_GRAPH)
        return true;
    return activity->call == GX_TRACE_NONE
               ? activity->node != GX_TRACE_NONE
               : trace->calls[activity->call].kind == GX_TRACE_CALL_GRAPH;
}

static int64_t launched_at(const gx_trace *trace, const gx_trace_activity *activity)
{
    return activity->call == GX_TRACE_NONE ? activity->start
                                           : trace->calls[activity->call].start;
}

/* Which activities the window holds; NULL: all. */
static gx_status find_window(const gx_trace *trace, const char *given, bool **within,
                             gx_error *err)
{
    const size_t n = trace->n_activities;
    gx_trace_span *spans = calloc(trace->n_ranges + 1, sizeof *spans);
    gx_trace_query *queries = calloc(n + 1, sizeof *queries);
    size_t n_spans = 0;
    gx_status st = GX_OK;

    *within = NULL;
    if (!spans || !queries)
        st = GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the steps of a trace");
    else
        n_spans = gx_trace_select_window(trace, given, spans);
    if (st == GX_OK && given && given[0] && n_spans == 0)
        st = GX_FAIL(err, GX_ERR_DATA, "no range is named '%s'", given);
    if (st == GX_OK && n_spans) {
        *within = calloc(n + 1, sizeof **within);
        for (size_t i = 0; i < n; i++)
            queries[i] =
                (gx_trace_query){ .key = trace->activities[i].process,
                                  .time = launched_at(trace, &trace->activities[i]),
                                  .index = (int32_t)i };
        st = *within ? gx_trace_cover(spans, n_spans, queries, n, err)
                     : GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
        for (size_t i = 0; st == GX_OK && i < n; i++)
            (*within)[queries[i].index] = queries[i].range != GX_TRACE_NONE;
    }
    free(spans);
    free(queries);
    return st;
}

/* Device work of one process and device. */
typedef struct use {
    size_t first, end; /* of the trace's activities */
    int64_t eager_ns, replayed_ns;
} use;

static use find_use(const gx_trace *trace, const bool *within)
{
    const size_t n = trace->n_activities;
    use best = { 0 };

    for (size_t first = 0, end; first < n; first = end) {
        const gx_trace_activity *const head = &trace->activities[first];
        use now = { .first = first };

        for (end = first; end < n && trace->activities[end].process == head->process &&
                          trace->activities[end].device == head->device;
             end++) {
            const gx_trace_activity *const activity = &trace->activities[end];
            int64_t *const ns =
                is_replayed(trace, activity) ? &now.replayed_ns : &now.eager_ns;

            if (!within || within[end])
                *ns = gx_trace_sum(*ns, activity->end - activity->start);
        }
        now.end = end;
        if (first == 0 || now.eager_ns > best.eager_ns ||
            (now.eager_ns == best.eager_ns && now.replayed_ns > best.replayed_ns))
            best = now;
    }
    return best;
}

static int compare_items(const void *left, const void *right)
{
    const gx_predict_item *const a = left;
    const gx_predict_item *const b = right;
    const int order = COMPARE(a->at, b->at);

    return order != 0 ? order : COMPARE(a->activity, b->activity);
}

static gx_status take_items(gx_predict_work *work, const use *of, const bool *within,
                            gx_error *err)
{
    const gx_trace *const trace = work->trace;

    work->process = trace->activities[of->first].process;
    work->device = trace->activities[of->first].device;
    work->item = calloc(of->end - of->first + 1, sizeof *work->item);
    if (!work->item)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the steps of a trace");
    for (size_t i = of->first; i < of->end; i++)
        if ((!within || within[i]) && !is_replayed(trace, &trace->activities[i]))
            work->item[work->n_items++] =
                (gx_predict_item){ .at = launched_at(trace, &trace->activities[i]),
                                   .activity = (int32_t)i,
                                   .step = GX_TRACE_NONE };
    qsort(work->item, work->n_items, sizeof *work->item, compare_items);
    return GX_OK;
}

/* --- figures over the steps --- */

static int compare_reals(const void *left, const void *right)
{
    const double a = *(const double *)left;
    const double b = *(const double *)right;

    return COMPARE(a, b);
}

/* Of sorted values, between neighbours in proportion. */
static double quantile(const double *values, size_t n, double q)
{
    const double at = q * (double)(n - 1);
    const size_t below = (size_t)at;

    return below + 1 < n ? values[below] +
                               (at - (double)below) * (values[below + 1] - values[below])
                         : values[n - 1];
}

static int compare_contents(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left;
    const uint64_t b = *(const uint64_t *)right;

    return COMPARE(a, b);
}

/* What most steps do, and how many. */
static gx_status commonest(const gx_predict_work *work, uint64_t *content,
                           int64_t *n_same, gx_error *err)
{
    uint64_t *contents = calloc(work->n_steps, sizeof *contents);
    int64_t run = 0;

    if (!contents)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the steps of a trace");
    for (size_t i = 0; i < work->n_steps; i++)
        contents[i] = work->step[i].content;
    qsort(contents, work->n_steps, sizeof *contents, compare_contents);
    *n_same = 0;
    for (size_t i = 0; i < work->n_steps; i++) {
        run = i && contents[i] == contents[i - 1] ? run + 1 : 1;
        if (run > *n_same) {
            *n_same = run;
            *content = contents[i];
        }
    }
    free(contents);
    return GX_OK;
}

/* Of the device, from a step's first start to the next one's, or of a lone one to its
 * end. */
static double eager_step(const gx_predict_work *work, size_t i)
{
    const gx_predict_step *const step = &work->step[i];
    int64_t start = INT64_MAX, next = INT64_MAX, end = INT64_MIN;

    for (size_t j = step->first; j < step->first + step->n; j++) {
        const gx_trace_activity *const activity = gx_predict_activity(work, j);

        start = activity->start < start ? activity->start : start;
        end = activity->end > end ? activity->end : end;
    }
    if (i + 1 == work->n_steps)
        return work->n_steps == 1 ? (double)(end - start) : -1.0;
    for (size_t j = step[1].first; j < step[1].first + step[1].n; j++) {
        const int64_t other = gx_predict_activity(work, j)->start;

        next = other < next ? other : next;
    }
    return next > start ? (double)(next - start) : (double)(end - start);
}

static gx_predict_costs at_end_of_error(const gx_predict_costs *costs, double sign)
{
    gx_predict_costs moved = *costs;

    moved.trace_ns -= sign * costs->trace_error_ns;
    moved.copy_ns += sign * costs->copy_error_ns;
    moved.engine_ns += sign * costs->engine_error_ns;
    moved.beside_ns += sign * costs->beside_error_ns;
    moved.join_ns += sign * costs->join_error_ns;
    moved.step_ns += sign * costs->step_error_ns;
    return moved;
}

static double whole_step(double replay_ns, const gx_predict_costs *costs)
{
    const double step = replay_ns + costs->step_ns;

    return step > costs->host_ns ? step : costs->host_ns;
}

typedef struct samples {
    double *eager, *naive, *replay, *low, *high;
    size_t n, n_eager;
} samples;

/* Of the steps with the commonest work, or of all where each does something else. */
static gx_status take_samples(const gx_predict_work *work, uint64_t content,
                              const gx_predict_costs *costs, samples *of,
                              gx_prediction *prediction, gx_error *err)
{
    const bool all = prediction->n_same == 1;
    const gx_predict_costs low = at_end_of_error(costs, -1.0);
    const gx_predict_costs high = at_end_of_error(costs, 1.0);

    for (size_t i = 0; i < work->n_steps; i++) {
        gx_predict_path path, other;
        const double eager = eager_step(work, i);

        if (!all && work->step[i].content != content)
            continue;
        GX_TRY(gx_predict_longest_path(work, &work->step[i], costs, false, &path, err));
        of->replay[of->n] = path.replay_ns;
        of->naive[of->n] = path.naive_ns;
        GX_TRY(gx_predict_longest_path(work, &work->step[i], &low, true, &other, err));
        of->low[of->n] = whole_step(other.replay_ns, &low);
        GX_TRY(gx_predict_longest_path(work, &work->step[i], &high, false, &other, err));
        /* Streams that cannot run side by side after all. */
        of->high[of->n] = whole_step(other.serial_ns, &high);
        of->n++;
        if (eager >= 0.0)
            of->eager[of->n_eager++] = eager;
        prediction->n_streams = path.n_streams;
        prediction->n_joins = path.n_joins;
    }
    return GX_OK;
}

static void count_nodes(const gx_predict_work *work, uint64_t content,
                        gx_prediction *prediction)
{
    const gx_predict_step *step = work->step;

    while (step->content != content)
        step++;
    prediction->n_nodes = (int64_t)step->n;
    for (size_t i = step->first; i < step->first + step->n; i++) {
        const gx_trace_kind kind = gx_predict_activity(work, i)->kind;

        prediction->n_kernels += kind == GX_TRACE_KERNEL;
        prediction->n_copies += kind == GX_TRACE_COPY;
        prediction->n_fills += kind == GX_TRACE_FILL;
    }
}

static double median(double *values, size_t n)
{
    if (n == 0)
        return -1.0;
    qsort(values, n, sizeof *values, compare_reals);
    return quantile(values, n, 0.5);
}

static gx_status fill_figures(const gx_predict_work *work, uint64_t content,
                              const gx_predict_costs *costs, gx_prediction *prediction,
                              gx_error *err)
{
    const size_t n = work->n_steps;
    double *const room = calloc(5 * n, sizeof *room);
    samples of = { room, room + n, room + 2 * n, room + 3 * n, room + 4 * n, 0, 0 };
    gx_status st;

    if (!room)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the steps of a trace");
    st = take_samples(work, content, costs, &of, prediction, err);
    if (st == GX_OK) {
        prediction->eager_ns = median(of.eager, of.n_eager);
        prediction->naive_ns = median(of.naive, of.n);
        prediction->replay_ns = median(of.replay, of.n);
        prediction->step_ns = whole_step(prediction->replay_ns, costs);
        qsort(of.low, of.n, sizeof *of.low, compare_reals);
        qsort(of.high, of.n, sizeof *of.high, compare_reals);
        prediction->low_ns = quantile(of.low, of.n, 0.05);
        prediction->high_ns = quantile(of.high, of.n, 0.95);
        prediction->build_ns = (double)prediction->n_nodes * costs->build_node_ns;
        prediction->payback_steps =
            prediction->eager_ns > prediction->step_ns
                ? prediction->build_ns / (prediction->eager_ns - prediction->step_ns)
                : -1.0;
    }
    free(room);
    return st;
}

/* --- assumptions --- */

GX_PRINTF(2, 3)
static void assume(gx_prediction *prediction, const char *format, ...)
{
    va_list list;

    if (prediction->n_assumptions == GX_PREDICT_ASSUMPTIONS)
        return;
    va_start(list, format);
    vsnprintf(prediction->assumption[prediction->n_assumptions++], GX_PREDICT_SENTENCE,
              format, list);
    va_end(list);
}

static void assume_order(const gx_predict_work *work, gx_prediction *prediction)
{
    if (prediction->n_streams < 2) {
        assume(prediction, "the graph is one chain, in the order of the launches");
        return;
    }
    assume(
        prediction,
        "the %lld streams of a step begin and end with it; along each the order is kept",
        (long long)prediction->n_streams);
    if (work->n_marks == 0)
        assume(prediction,
               "no call in the steps orders the streams: they are taken as independent");
    else
        assume(
            prediction,
            "streams wait for each other where calls of the launching thread order them "
            "(%lld joins a step): a wait counts for the work of all other streams "
            "before the latest event record, a synchronizing call for all work before "
            "it, unless the trace shows the two at the same time",
            (long long)prediction->n_joins);
    assume(prediction, "kernels of several streams share the card by their blocks, take "
                       "a little longer beside others, and the range reaches to none "
                       "running side by side");
}

static void list_assumptions(const gx_predict_work *work, const use *of,
                             gx_prediction *prediction)
{
    if (prediction->by == GX_PREDICT_BY_OUTER)
        assume(prediction, "each range is one step, since nothing smaller repeats than a "
                           "single kernel");
    if (prediction->by == GX_PREDICT_BY_NAMES)
        assume(prediction,
               "grids or sizes that differ from step to step are those of one "
               "graph after all");
    assume_order(work, prediction);
    assume(prediction, "a kernel takes its traced time less what tracing adds, and never "
                       "less than an empty node");
    assume(prediction,
           "replays follow each other without a wait of the host, at the clocks "
           "of the trace");
    if (prediction->n_same == 1 && prediction->n_steps > 1)
        assume(prediction,
               "each step does other work: the figures are of them all, and the "
               "counts of one");
    if (prediction->n_copies)
        assume(prediction, "a copy takes its traced time and what the card's copies cost "
                           "a chain before and behind it");
    if (of->replayed_ns > 0)
        assume(prediction,
               "what the trace replays from graphs already is not part of the step");
}

/* --- all of it --- */

static gx_status predict(gx_predict_work *work, const gx_trace_options *options,
                         const gx_predict_costs *costs, gx_prediction *prediction,
                         gx_error *err)
{
    const gx_trace *const trace = work->trace;
    uint64_t content = 0;
    bool *within;
    use of;
    gx_status st;

    GX_TRY(find_window(trace, options->within, &within, err));
    of = find_use(trace, within);
    if (of.eager_ns + of.replayed_ns == 0) {
        snprintf(prediction->why_not, sizeof prediction->why_not,
                 "the trace shows no work of a GPU");
        st = GX_OK;
    } else if ((double)of.replayed_ns >=
               mostly_replays * ((double)of.eager_ns + (double)of.replayed_ns)) {
        snprintf(prediction->why_not, sizeof prediction->why_not,
                 "the device's work is replayed from graphs already");
        st = GX_OK;
    } else {
        st = take_items(work, &of, within, err);
        if (st == GX_OK)
            st = gx_predict_find_steps(work, prediction, err);
    }
    free(within);
    if (st != GX_OK || work->n_steps == 0)
        return st;
    prediction->process = work->process;
    prediction->device = work->device;
    prediction->n_steps = (int64_t)work->n_steps;
    GX_TRY(commonest(work, &content, &prediction->n_same, err));
    count_nodes(work, content, prediction);
    if (prediction->n_kernels == 0) {
        prediction->by = GX_PREDICT_BY_NONE;
        snprintf(prediction->why_not, sizeof prediction->why_not,
                 "what repeats in the trace holds no kernels");
        return GX_OK;
    }
    GX_TRY(gx_predict_read_calls(work, prediction, err));
    GX_TRY(fill_figures(work, content, costs, prediction, err));
    list_assumptions(work, &of, prediction);
    return GX_OK;
}

gx_status gx_prediction_create(const gx_trace *trace, const gx_trace_options *options,
                               const gx_predict_costs *costs, gx_prediction **prediction,
                               gx_error *err)
{
    static const gx_trace_options nothing_asked;
    const gx_predict_costs usual = gx_predict_costs_default();
    gx_predict_work work = { .trace = trace };
    gx_status st;

    gx_error_clear(err);
    GX_TRY(gx_need_place(prediction, "prediction", err));
    *prediction = NULL;
    GX_TRY(gx_need(trace, "trace", err));
    if (!trace->finished)
        return GX_FAIL(err, GX_ERR_STATE, "the trace is not finished");
    if (!options)
        options = &nothing_asked;
    *prediction = calloc(1, sizeof **prediction);
    if (!*prediction)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    work.step_name = options->step;
    st = predict(&work, options, costs ? costs : &usual, *prediction, err);
    free(work.item);
    free(work.step);
    free(work.mark);
    free(work.spans);
    if (st != GX_OK) {
        gx_prediction_free(*prediction);
        *prediction = NULL;
    }
    return st;
}

void gx_prediction_free(gx_prediction *prediction)
{
    if (!prediction)
        return;
    free(prediction->obstacle);
    free(prediction);
}
