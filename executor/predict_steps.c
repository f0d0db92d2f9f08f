/* Finds the step that a trace repeats: by ranges, else by the launches themselves. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "predict_model.h"

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ (hash >> 32);
}

/* Names and, where asked for, grids. */
static uint64_t symbol_of(const gx_trace_activity *activity, bool grids)
{
    uint64_t hash = mix((uint64_t)activity->kind + 1, activity->name);

    for (int i = 0; grids && i < 3; i++)
        hash = mix(mix(hash, (uint32_t)activity->grid[i]), (uint32_t)activity->block[i]);
    return grids && activity->kind != GX_TRACE_KERNEL
               ? mix(hash, (uint64_t)activity->bytes)
               : hash;
}

static int compare_items(const void *left, const void *right)
{
    const gx_predict_item *const a = left;
    const gx_predict_item *const b = right;
    /* What belongs to no step comes last. */
    int order = COMPARE((uint32_t)a->step, (uint32_t)b->step);

    if (order == 0)
        order = COMPARE(a->at, b->at);
    return order != 0 ? order : COMPARE(a->activity, b->activity);
}

/* Room for as many steps as there are items, and for their spans. */
static gx_status make_room(gx_predict_work *work, gx_error *err)
{
    free(work->step);
    free(work->spans);
    work->n_steps = work->n_spans = 0;
    work->step = calloc(work->n_items + 1, sizeof *work->step);
    work->spans = calloc(work->n_items + 1, sizeof *work->spans);
    if (!work->step || !work->spans)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the steps of a trace");
    return GX_OK;
}

static void add_step(gx_predict_work *work, size_t first, size_t n, int64_t from,
                     int64_t to)
{
    work->spans[work->n_spans++] = (gx_trace_span){
        .key = work->process, .start = from, .end = to, .range = (int32_t)work->n_steps
    };
    work->step[work->n_steps++] =
        (gx_predict_step){ .first = first, .n = n, .from = from, .to = to };
}

static void fill_contents(gx_predict_work *work, bool grids)
{
    for (size_t i = 0; i < work->n_steps; i++) {
        gx_predict_step *const step = &work->step[i];

        step->content = step->n;
        for (size_t j = step->first; j < step->first + step->n; j++) {
            work->item[j].step = (int32_t)i;
            step->content =
                mix(step->content, symbol_of(gx_predict_activity(work, j), grids));
        }
    }
}

/* --- by ranges --- */

typedef struct placing {
    gx_trace_span *spans;
    gx_trace_query *queries;
    size_t n_spans;
} placing;

/* Whether the device replays more inside the spans than it runs of eager launches. */
static gx_status replays_most(const gx_predict_work *work, placing *place,
                              int64_t eager_ns, bool *most, gx_error *err)
{
    const gx_trace *const trace = work->trace;
    int64_t replayed_ns = 0;
    size_t n = 0;

    for (size_t i = 0; i < trace->n_activities; i++) {
        const gx_trace_activity *const activity = &trace->activities[i];

        if (activity->process == work->process && activity->device == work->device &&
            activity->call != GX_TRACE_NONE &&
            trace->calls[activity->call].kind == GX_TRACE_CALL_GRAPH)
            place->queries[n++] =
                (gx_trace_query){ .key = activity->process,
                                  .time = trace->calls[activity->call].start,
                                  .index = (int32_t)i };
    }
    GX_TRY(gx_trace_cover(place->spans, place->n_spans, place->queries, n, err));
    for (size_t i = 0; i < n; i++) {
        const gx_trace_activity *const activity =
            &trace->activities[place->queries[i].index];

        if (place->queries[i].range != GX_TRACE_NONE)
            replayed_ns = gx_trace_sum(replayed_ns, activity->end - activity->start);
    }
    *most = replayed_ns > eager_ns;
    return GX_OK;
}

/* Gives each item the range that holds its launch; *eager_ns: of those that have one. */
static gx_status place_items(gx_predict_work *work, placing *place, int64_t *eager_ns,
                             gx_error *err)
{
    for (size_t i = 0; i < work->n_items; i++)
        place->queries[i] = (gx_trace_query){ .key = work->process,
                                              .time = work->item[i].at,
                                              .index = (int32_t)i };
    GX_TRY(
        gx_trace_cover(place->spans, place->n_spans, place->queries, work->n_items, err));
    *eager_ns = 0;
    for (size_t i = 0; i < work->n_items; i++) {
        gx_predict_item *const item = &work->item[place->queries[i].index];
        const gx_trace_activity *const activity =
            &work->trace->activities[item->activity];

        item->step = place->queries[i].range;
        if (item->step != GX_TRACE_NONE)
            *eager_ns = gx_trace_sum(*eager_ns, activity->end - activity->start);
    }
    return GX_OK;
}

static int compare_steps(const void *left, const void *right)
{
    const gx_predict_step *const a = left;
    const gx_predict_step *const b = right;

    return COMPARE(a->from, b->from);
}

/* Steps of the items that lie together in one range. */
static gx_status cut_by_ranges(gx_predict_work *work, gx_error *err)
{
    GX_TRY(make_room(work, err));
    qsort(work->item, work->n_items, sizeof *work->item, compare_items);
    for (size_t i = 0, end; i < work->n_items && work->item[i].step != GX_TRACE_NONE;
         i = end) {
        const gx_trace_range *const range = &work->trace->ranges[work->item[i].step];

        for (end = i + 1;
             end < work->n_items && work->item[end].step == work->item[i].step;)
            end++;
        add_step(work, i, end - i, range->start, range->end);
    }
    /* Ranges stand in the trace in any order. */
    qsort(work->step, work->n_steps, sizeof *work->step, compare_steps);
    for (size_t i = 0; i < work->n_steps; i++)
        work->spans[i] = (gx_trace_span){ .key = work->process,
                                          .start = work->step[i].from,
                                          .end = work->step[i].to,
                                          .range = (int32_t)i };
    fill_contents(work, true);
    return GX_OK;
}

static void without_step(gx_predict_work *work)
{
    for (size_t i = 0; i < work->n_items; i++)
        work->item[i].step = GX_TRACE_NONE;
    qsort(work->item, work->n_items, sizeof *work->item, compare_items);
}

static gx_status by_range(gx_predict_work *work, gx_prediction *prediction,
                          placing *place, gx_error *err)
{
    int64_t eager_ns;
    bool most;

    /* Only work within the window was taken, so its ranges need not be. */
    place->n_spans =
        gx_trace_select_steps(work->trace, work->step_name, NULL, 0, place->spans);
    if (place->n_spans == 0)
        return GX_OK;
    prediction->range_name = work->trace->ranges[place->spans[0].range].name;
    GX_TRY(place_items(work, place, &eager_ns, err));
    GX_TRY(cut_by_ranges(work, err));
    GX_TRY(replays_most(work, place, eager_ns, &most, err));
    if (most) {
        work->n_steps = 0;
        const char *const name = gx_trace_text_at(work->trace, prediction->range_name);

        snprintf(prediction->why_not, sizeof prediction->why_not,
                 "the steps (ranges named '%.100s%s') replay graphs already", name,
                 strlen(name) > 100 ? "..." : "");
    } else if (work->n_steps) {
        prediction->by = GX_PREDICT_BY_RANGE;
    } else {
        without_step(work);
    }
    return GX_OK;
}

/* --- by the outermost range --- */

static int compare_spans_outward(const void *left, const void *right)
{
    const gx_trace_span *const a = left;
    const gx_trace_span *const b = right;
    int order = COMPARE(a->start, b->start);

    return order != 0 ? order : COMPARE(b->end, a->end);
}

/* Keeps the ranges of the process that lie in no other. */
static void select_outermost(const gx_predict_work *work, placing *place)
{
    const gx_trace *const trace = work->trace;
    size_t n = 0;
    int64_t furthest = INT64_MIN;

    place->n_spans = 0;
    for (size_t i = 0; i < trace->n_ranges; i++) {
        const gx_trace_range *const range = &trace->ranges[i];

        if (range->process == work->process && range->end >= range->start)
            place->spans[n++] = (gx_trace_span){ .key = range->process,
                                                 .start = range->start,
                                                 .end = range->end,
                                                 .range = (int32_t)i };
    }
    if (n)
        qsort(place->spans, n, sizeof *place->spans, compare_spans_outward);
    for (size_t i = 0; i < n; i++)
        if (place->spans[i].end > furthest) {
            furthest = place->spans[i].end;
            place->spans[place->n_spans++] = place->spans[i];
        }
}

/* One name has to hold nearly all of the work. */
static gx_status by_outermost(gx_predict_work *work, gx_prediction *prediction,
                              placing *place, gx_error *err)
{
    int64_t eager_ns;
    size_t held = 0;
    uint32_t name = 0;

    select_outermost(work, place);
    GX_TRY(place_items(work, place, &eager_ns, err));
    for (size_t i = 0; i < work->n_items; i++)
        if (work->item[i].step != GX_TRACE_NONE) {
            const uint32_t other = work->trace->ranges[work->item[i].step].name;

            if (held == 0)
                name = other;
            if (other == name)
                held++;
            else
                work->item[i].step = GX_TRACE_NONE;
        }
    if (10 * held >= 9 * work->n_items) {
        GX_TRY(cut_by_ranges(work, err));
        prediction->range_name = name;
        prediction->by = GX_PREDICT_BY_OUTER;
    } else {
        without_step(work);
        fill_contents(work, prediction->by != GX_PREDICT_BY_NAMES);
    }
    return GX_OK;
}

/* --- by the sequence of launches --- */

static int compare_ns(const void *left, const void *right)
{
    const int64_t a = *(const int64_t *)left;
    const int64_t b = *(const int64_t *)right;

    return COMPARE(a, b);
}

/* The position of the block before which the host paused longest, in the median of the
 * copies in [first, end). */
static gx_status longest_pause(const gx_predict_work *work, size_t length, size_t first,
                               size_t end, size_t *block, gx_error *err)
{
    const size_t n_blocks = (end - first) / length;
    int64_t *pauses = calloc(n_blocks + 1, sizeof *pauses);
    int64_t longest = -1;

    if (!pauses)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the steps of a trace");
    for (size_t i = 0; i < length; i++) {
        size_t n = 0;

        for (size_t j = first + i; j < end && n < n_blocks; j += length)
            if (j > 0)
                pauses[n++] = work->item[j].at - work->item[j - 1].at;
        if (n == 0)
            continue;
        qsort(pauses, n, sizeof *pauses, compare_ns);
        if (pauses[n / 2] > longest) {
            longest = pauses[n / 2];
            *block = first + i;
        }
    }
    free(pauses);
    return GX_OK;
}

/* Makes a step wherever the block stands, found by the failure table of Knuth, Morris and
 * Pratt. */
static gx_status cut_by_block(gx_predict_work *work, const uint64_t *symbols,
                              size_t block, size_t length, gx_error *err)
{
    const uint64_t *const wanted = symbols + block;
    size_t *back = calloc(length + 1, sizeof *back);

    if (!back)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the steps of a trace");
    work->n_steps = work->n_spans = 0;
    for (size_t i = 1, matched = 0; i < length; i++) {
        while (matched && wanted[i] != wanted[matched])
            matched = back[matched];
        matched += wanted[i] == wanted[matched];
        back[i + 1] = matched;
    }
    for (size_t i = 0, matched = 0; i < work->n_items; i++) {
        while (matched && symbols[i] != wanted[matched])
            matched = back[matched];
        matched += symbols[i] == wanted[matched];
        if (matched == length) {
            const size_t first = i + 1 - length;

            add_step(work, first, length, work->item[first].at, work->item[i].at);
            matched = 0;
        }
    }
    free(back);
    return GX_OK;
}

/* Up to the next step the host's time is the step's, where that follows at once. */
static void stretch_spans(gx_predict_work *work)
{
    for (size_t i = 0; i + 1 < work->n_steps; i++) {
        gx_predict_step *const step = &work->step[i];

        if (step->first + step->n == step[1].first && step[1].from > step->to)
            work->spans[i].end = step->to = step[1].from - 1;
    }
}

/* A cycle may be cut anywhere. Where what repeats began and ended at once with a whole
 * block, that is it; else the cut that makes more steps, and where it hardly matters, the
 * longest pause of the host. */
static gx_status cut_by_cycle(gx_predict_work *work, const uint64_t *symbols,
                              size_t length, size_t first, size_t end, gx_error *err)
{
    const bool whole = (end - first) % length == 0;
    size_t cuts[] = { first, end - length, first };
    size_t best = 0, n_best = 0;

    GX_TRY(longest_pause(work, length, first, end, &cuts[2], err));
    for (size_t i = 0; i < 3; i++) {
        GX_TRY(cut_by_block(work, symbols, cuts[i], length, err));
        if (work->n_steps + (i == 2 && !whole) > n_best) {
            n_best = work->n_steps;
            best = i;
        }
    }
    if (best != 2)
        GX_TRY(cut_by_block(work, symbols, cuts[best], length, err));
    stretch_spans(work);
    return GX_OK;
}

/* Blocks have to cover half of the launches. */
static gx_status by_sequence(gx_predict_work *work, gx_prediction *prediction, bool grids,
                             uint64_t *symbols, gx_error *err)
{
    size_t length, covered, first, end;

    for (size_t i = 0; i < work->n_items; i++)
        symbols[i] = symbol_of(gx_predict_activity(work, i), grids);
    GX_TRY(
        gx_predict_period(symbols, work->n_items, &length, &covered, &first, &end, err));
    if (2 * covered < work->n_items || length == 0)
        return GX_OK;
    GX_TRY(make_room(work, err));
    GX_TRY(cut_by_cycle(work, symbols, length, first, end, err));
    fill_contents(work, grids);
    prediction->by = grids ? GX_PREDICT_BY_SEQUENCE : GX_PREDICT_BY_NAMES;
    return GX_OK;
}

static gx_status find_all(gx_predict_work *work, gx_prediction *prediction,
                          placing *place, uint64_t *symbols, gx_error *err)
{
    GX_TRY(by_range(work, prediction, place, err));
    if (prediction->by != GX_PREDICT_BY_NONE || prediction->why_not[0])
        return GX_OK;
    prediction->range_name = 0;
    GX_TRY(by_sequence(work, prediction, true, symbols, err));
    if (prediction->by == GX_PREDICT_BY_NONE)
        GX_TRY(by_sequence(work, prediction, false, symbols, err));
    /* Single kernels are no step that anyone means, if ranges know better. */
    if (work->n_steps == 0 || work->step[0].n == 1)
        GX_TRY(by_outermost(work, prediction, place, err));
    if (work->n_steps == 0)
        snprintf(prediction->why_not, sizeof prediction->why_not,
                 "no step was found: no ranges are named 'step', and no sequence of "
                 "launches that repeats covers half of the %zu; name ranges with "
                 "--step-range",
                 work->n_items);
    return GX_OK;
}

gx_status gx_predict_find_steps(gx_predict_work *work, gx_prediction *prediction,
                                gx_error *err)
{
    const size_t n = work->trace->n_activities + 1;
    placing place = { .spans = calloc(work->trace->n_ranges + 1, sizeof *place.spans),
                      .queries = calloc(n, sizeof *place.queries) };
    uint64_t *symbols = calloc(work->n_items + 1, sizeof *symbols);
    gx_status st;

    if (place.spans && place.queries && symbols)
        st = find_all(work, prediction, &place, symbols, err);
    else
        st = GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the steps of a trace");
    free(place.spans);
    free(place.queries);
    free(symbols);
    return st;
}
