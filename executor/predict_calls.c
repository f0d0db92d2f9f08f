/* What a step's calls say: what stands in the way of a capture, and which order between
 * streams is visible. */
#include <stdlib.h>
#include <string.h>

#include "predict_model.h"

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))
#define N(array) (sizeof(array) / sizeof((array)[0]))

const char *gx_obstacle_kind_name(gx_obstacle_kind kind)
{
    static const char *const names[GX_OBSTACLE_KINDS] = {
        "synchronizing call", "blocking copy", "pageable copy", "allocation",
        "pool allocation",    "legacy stream", "other work",    "wait between steps"
    };

    return (unsigned)kind < GX_OBSTACLE_KINDS ? names[kind] : "?";
}

typedef enum meaning { NOTHING, SYNC, COPY, ALLOC, POOL, RECORD, WAIT } meaning;

/* Names may carry a version or a suffix of streams: cudaFree_v3020, cuMemAlloc_v2. */
static bool is_call(const char *name, const char *call)
{
    const size_t n = strlen(call);

    return strncmp(name, call, n) == 0 && (name[n] == '\0' || name[n] == '_');
}

static bool is_one_of(const char *name, const char *const *calls)
{
    for (; *calls; calls++)
        if (is_call(name, *calls))
            return true;
    return false;
}

static bool is_asynchronous(const char *name)
{
    return strstr(name, "Async") != NULL;
}

static meaning meaning_of(const char *name, gx_trace_call_kind kind)
{
    static const char *const syncs[] = { "cudaDeviceSynchronize",
                                         "cudaStreamSynchronize",
                                         "cudaEventSynchronize",
                                         "cudaThreadSynchronize",
                                         "cuCtxSynchronize",
                                         "cuStreamSynchronize",
                                         "cuEventSynchronize",
                                         "hipDeviceSynchronize",
                                         "hipStreamSynchronize",
                                         "hipEventSynchronize",
                                         NULL };
    static const char *const allocs[] = { "cudaMalloc",         "cudaFree",
                                          "cudaMallocHost",     "cudaHostAlloc",
                                          "cudaFreeHost",       "cudaMallocManaged",
                                          "cudaMallocPitch",    "cudaMalloc3D",
                                          "cudaMallocArray",    "cudaMalloc3DArray",
                                          "cudaFreeArray",      "cudaHostRegister",
                                          "cudaHostUnregister", "cuMemAlloc",
                                          "cuMemAllocPitch",    "cuMemAllocHost",
                                          "cuMemHostAlloc",     "cuMemAllocManaged",
                                          "cuMemFree",          "cuMemFreeHost",
                                          "cuMemHostRegister",  "cuMemHostUnregister",
                                          "cuMemCreate",        "cuMemRelease",
                                          "cuMemMap",           "cuMemUnmap",
                                          "hipMalloc",          "hipFree",
                                          "hipHostMalloc",      "hipHostFree",
                                          "hipMallocManaged",   NULL };
    static const char *const pools[] = { "cudaMallocAsync",
                                         "cudaFreeAsync",
                                         "cudaMallocFromPoolAsync",
                                         "cuMemAllocAsync",
                                         "cuMemAllocFromPoolAsync",
                                         "cuMemFreeAsync",
                                         "hipMallocAsync",
                                         "hipFreeAsync",
                                         NULL };
    static const char *const records[] = { "cudaEventRecord", "cudaEventRecordWithFlags",
                                           "cuEventRecord",   "cuEventRecordWithFlags",
                                           "hipEventRecord",  NULL };
    static const char *const waits[] = { "cudaStreamWaitEvent", "cuStreamWaitEvent",
                                         "hipStreamWaitEvent", NULL };

    if (kind == GX_TRACE_CALL_COPY || kind == GX_TRACE_CALL_FILL)
        return is_asynchronous(name) ? NOTHING : COPY;
    if (kind != GX_TRACE_CALL_OTHER)
        return NOTHING;
    if (is_one_of(name, syncs))
        return SYNC;
    if (is_one_of(name, allocs))
        return ALLOC;
    if (is_one_of(name, pools))
        return POOL;
    if (is_one_of(name, records))
        return RECORD;
    return is_one_of(name, waits) ? WAIT : NOTHING;
}

/* Something in the way, once for each time it is met. */
typedef struct meeting {
    gx_obstacle_kind kind;
    uint32_t name;
    int32_t step;
} meeting;

typedef struct meetings {
    meeting *items;
    size_t n, room;
} meetings;

static gx_status meet(meetings *list, gx_obstacle_kind kind, uint32_t name, int32_t step,
                      gx_error *err)
{
    if (list->n == list->room) {
        const size_t room = list->room ? 2 * list->room : 64;
        meeting *const grown = realloc(list->items, room * sizeof *grown);

        if (!grown)
            return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the calls of a trace");
        list->items = grown;
        list->room = room;
    }
    list->items[list->n++] = (meeting){ kind, name, step };
    return GX_OK;
}

/* --- calls --- */

static int compare_marks(const void *left, const void *right)
{
    const gx_predict_mark *const a = left;
    const gx_predict_mark *const b = right;
    int order = COMPARE(a->step, b->step);

    if (order == 0)
        order = COMPARE(a->at, b->at);
    if (order == 0)
        order = COMPARE(a->kind, b->kind);
    return order != 0 ? order : COMPARE(a->thread, b->thread);
}

static gx_status take_call(gx_predict_work *work, const gx_trace_call *call, meaning what,
                           int32_t step, meetings *list, gx_error *err)
{
    static const gx_obstacle_kind kinds[] = { [SYNC] = GX_OBSTACLE_SYNC,
                                              [COPY] = GX_OBSTACLE_COPY,
                                              [ALLOC] = GX_OBSTACLE_ALLOC,
                                              [POOL] = GX_OBSTACLE_POOL };

    if (step == GX_TRACE_NONE) {
        const bool between = call->start > work->step[0].from &&
                             call->start < work->step[work->n_steps - 1].from;

        return between && (what == SYNC || what == COPY)
                   ? meet(list, GX_OBSTACLE_BETWEEN, call->name, GX_TRACE_NONE, err)
                   : GX_OK;
    }
    if (what == RECORD || what == WAIT || what == SYNC || what == COPY)
        work->mark[work->n_marks++] =
            (gx_predict_mark){ .step = step,
                               .kind = what == RECORD ? GX_MARK_RECORD
                                       : what == WAIT ? GX_MARK_WAIT
                                                      : GX_MARK_SYNC,
                               .at = call->start,
                               .thread = call->thread };
    return what == RECORD || what == WAIT
               ? GX_OK
               : meet(list, kinds[what], call->name, step, err);
}

static gx_status read_calls(gx_predict_work *work, meetings *list, gx_error *err)
{
    const gx_trace *const trace = work->trace;
    gx_trace_query *queries = calloc(trace->n_calls + 1, sizeof *queries);
    size_t n = 0;
    gx_status st;

    work->mark = calloc(trace->n_calls + 1, sizeof *work->mark);
    if (!queries || !work->mark) {
        st = GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the calls of a trace");
        goto done;
    }
    for (size_t i = 0; i < trace->n_calls; i++) {
        const gx_trace_call *const call = &trace->calls[i];

        if (call->process == work->process && !call->twin &&
            meaning_of(gx_trace_text_at(trace, call->name), call->kind) != NOTHING)
            queries[n++] = (gx_trace_query){ .key = call->process,
                                             .time = call->start,
                                             .index = (int32_t)i };
    }
    st = gx_trace_cover(work->spans, work->n_spans, queries, n, err);
    for (size_t i = 0; st == GX_OK && i < n; i++) {
        const gx_trace_call *const call = &trace->calls[queries[i].index];

        st = take_call(work, call,
                       meaning_of(gx_trace_text_at(trace, call->name), call->kind),
                       queries[i].range, list, err);
    }
    if (work->n_marks)
        qsort(work->mark, work->n_marks, sizeof *work->mark, compare_marks);
    for (size_t i = 0; i < work->n_marks; i++) {
        gx_predict_step *const step = &work->step[work->mark[i].step];

        if (step->n_marks++ == 0)
            step->first_mark = i;
    }
done:
    free(queries);
    return st;
}

/* --- device work --- */

static bool is_pageable(const gx_trace_activity *activity)
{
    return activity->kind == GX_TRACE_COPY &&
           (activity->source == GX_TRACE_MEMORY_PAGEABLE ||
            activity->target == GX_TRACE_MEMORY_PAGEABLE);
}

static gx_status read_work(const gx_predict_work *work, meetings *list, gx_error *err)
{
    for (size_t i = 0; i < work->n_items; i++) {
        const gx_trace_activity *const activity = gx_predict_activity(work, i);
        const int32_t step = work->item[i].step;

        if (step == GX_TRACE_NONE)
            continue;
        if (is_pageable(activity))
            GX_TRY(meet(list, GX_OBSTACLE_PAGEABLE, activity->name, step, err));
        if (activity->legacy_stream)
            GX_TRY(meet(list, GX_OBSTACLE_LEGACY, 0, step, err));
    }
    return GX_OK;
}

/* --- the list --- */

static int compare_meetings(const void *left, const void *right)
{
    const meeting *const a = left;
    const meeting *const b = right;
    int order = COMPARE(a->kind, b->kind);

    if (order == 0)
        order = COMPARE(a->name, b->name);
    return order != 0 ? order : COMPARE(a->step, b->step);
}

static int compare_obstacles(const void *left, const void *right)
{
    const gx_obstacle *const a = left;
    const gx_obstacle *const b = right;
    int order = COMPARE(a->kind, b->kind);

    if (order == 0)
        order = COMPARE(b->n, a->n);
    return order != 0 ? order : COMPARE(a->name, b->name);
}

static gx_status sum_up(meetings *list, const gx_predict_work *work,
                        gx_prediction *prediction, gx_error *err)
{
    size_t n = 0;

    /* One more: the caller may add that steps differ. */
    prediction->obstacle = calloc(list->n + 1, sizeof *prediction->obstacle);
    if (!prediction->obstacle)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the calls of a trace");
    if (list->n)
        qsort(list->items, list->n, sizeof *list->items, compare_meetings);
    for (size_t i = 0; i < list->n; i++) {
        const meeting *const now = &list->items[i];
        const meeting *const last = i ? now - 1 : NULL;
        const bool same = last && last->kind == now->kind && last->name == now->name;
        gx_obstacle *const obstacle = &prediction->obstacle[same ? n - 1 : n];

        if (!same)
            *obstacle = (gx_obstacle){ .kind = now->kind, .name = now->name };
        n += !same;
        obstacle->n++;
        obstacle->n_steps +=
            now->step != GX_TRACE_NONE && (!same || last->step != now->step);
    }
    prediction->n_obstacles = n;
    if (prediction->n_same < prediction->n_steps)
        prediction->obstacle[prediction->n_obstacles++] =
            (gx_obstacle){ .kind = GX_OBSTACLE_CONTENT,
                           .n = prediction->n_steps - prediction->n_same,
                           .n_steps = prediction->n_steps - prediction->n_same };
    if (prediction->n_obstacles)
        qsort(prediction->obstacle, prediction->n_obstacles, sizeof *prediction->obstacle,
              compare_obstacles);
    /* What only a few steps do is a warm-up's. */
    for (size_t i = 0; i < prediction->n_obstacles; i++) {
        const gx_obstacle *const obstacle = &prediction->obstacle[i];

        if ((obstacle->kind < GX_OBSTACLE_POOL || obstacle->kind == GX_OBSTACLE_LEGACY) &&
            2 * obstacle->n >= (int64_t)work->n_steps)
            prediction->after_removal = true;
    }
    return GX_OK;
}

gx_status gx_predict_read_calls(gx_predict_work *work, gx_prediction *prediction,
                                gx_error *err)
{
    meetings list = { 0 };
    gx_status st = read_calls(work, &list, err);

    if (st == GX_OK)
        st = read_work(work, &list, err);
    if (st == GX_OK)
        st = sum_up(&list, work, prediction, err);
    free(list.items);
    return st;
}
