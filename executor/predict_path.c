/* One step as a graph: each kernel, copy and fill a node, an edge along each stream and
 * wherever the trace shows that one stream waits for others. */
#include <stdlib.h>
#include <string.h>

#include "predict_model.h"

/* What has been launched so far, as far as another stream can wait for it: the latest
 * finish, whose it is, and the latest of all other streams. */
typedef struct front {
    double best, second;          /* finish; 0: nothing */
    int64_t best_end, second_end; /* the same work's end in the trace */
    size_t best_stream, second_stream;
} front;

typedef struct lane {
    int64_t stream;
    double begin, finish;
    int64_t traced_end; /* INT64_MIN: nothing ran on it yet */
} lane;

typedef struct waiter {
    int64_t thread;
    front for_what;
    bool pending;
} waiter;

enum { MOST_WAITERS = 16 }; /* threads of a step that make streams wait; more share one */

typedef struct walker {
    const gx_predict_work *work;
    const gx_predict_costs *costs;
    bool programmatic;
    lane *lanes;       /* sorted by stream */
    const lane *first; /* the same after a first walk, or NULL */
    size_t n_lanes;
    front now, recorded, barrier;
    bool any_record;
    waiter waiters[MOST_WAITERS];
    size_t n_waiters;
    double room_ns; /* time of nodes, each by the share of the card that it fills */
    gx_predict_path *path;
} walker;

static int compare_lanes(const void *left, const void *right)
{
    const lane *const a = left;
    const lane *const b = right;

    return (a->stream > b->stream) - (a->stream < b->stream);
}

static size_t find_lane(const walker *w, int64_t stream)
{
    size_t low = 0;
    size_t high = w->n_lanes - 1;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (w->lanes[middle].stream < stream)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void front_add(front *f, size_t stream, double finish, int64_t traced_end)
{
    if (f->best > 0.0 && stream == f->best_stream) {
        f->best = finish > f->best ? finish : f->best;
        f->best_end = traced_end;
    } else if (finish > f->best) {
        f->second = f->best;
        f->second_end = f->best_end;
        f->second_stream = f->best_stream;
        f->best = finish;
        f->best_end = traced_end;
        f->best_stream = stream;
    } else if (finish > f->second) {
        f->second = finish;
        f->second_end = traced_end;
        f->second_stream = stream;
    }
}

static void front_merge(front *f, const front *other)
{
    if (other->best > 0.0)
        front_add(f, other->best_stream, other->best, other->best_end);
    if (other->second > 0.0)
        front_add(f, other->second_stream, other->second, other->second_end);
}

/* When work of this stream may start that waits for the front. What ran at the same time
 * in the trace was not waited for. */
static double front_floor(const front *f, size_t stream, int64_t traced_start)
{
    if (f->best > 0.0 && f->best_stream != stream && f->best_end <= traced_start)
        return f->best;
    return f->second > 0.0 && f->second_stream != stream && f->second_end <= traced_start
               ? f->second
               : 0.0;
}

static waiter *waiter_of(walker *w, int64_t thread, bool make)
{
    for (size_t i = 0; i < w->n_waiters; i++)
        if (w->waiters[i].thread == thread)
            return &w->waiters[i];
    if (!make)
        return NULL;
    if (w->n_waiters < MOST_WAITERS) {
        w->waiters[w->n_waiters].thread = thread;
        w->n_waiters++;
    }
    return &w->waiters[w->n_waiters - 1];
}

/* An event's stream is not in the trace: a wait counts for all other streams' work that
 * lay before the latest record. */
static void pass_mark(walker *w, const gx_predict_mark *mark)
{
    if (mark->kind == GX_MARK_RECORD) {
        w->recorded = w->now;
        w->any_record = true;
    } else if (mark->kind == GX_MARK_SYNC) {
        w->barrier = w->now;
    } else {
        waiter *const one = waiter_of(w, mark->thread, true);

        front_merge(&one->for_what, w->any_record ? &w->recorded : &w->now);
        one->pending = true;
    }
}

/* Only these calls can launch a kernel that overlaps the one before it. */
static bool may_be_programmatic(const gx_trace *trace, const gx_trace_activity *activity)
{
    const char *name;

    if (activity->kind != GX_TRACE_KERNEL || activity->call == GX_TRACE_NONE)
        return false;
    name = gx_trace_text_at(trace, trace->calls[activity->call].name);
    return strncmp(name, "cudaLaunchKernelEx", 18) == 0 ||
           strncmp(name, "cuLaunchKernelEx", 16) == 0;
}

static bool is_of_host(gx_trace_memory memory)
{
    return memory == GX_TRACE_MEMORY_PAGEABLE || memory == GX_TRACE_MEMORY_PINNED;
}

/* A buffer of some size goes from or to the host by an engine of its own. */
static bool takes_engine(const gx_trace_activity *activity)
{
    enum { BUFFER_BYTES = 32 << 10 };

    return activity->bytes >= BUFFER_BYTES &&
           (is_of_host(activity->source) || is_of_host(activity->target));
}

static double copy_ns(const gx_predict_costs *costs, const gx_trace_activity *activity)
{
    return takes_engine(activity) ? costs->engine_ns : costs->copy_ns;
}

/* What the node takes in a chain, behind work of its stream that ended at `traced_end`.
 */
static double node_ns(const walker *w, const gx_trace_activity *activity,
                      int64_t traced_end)
{
    const gx_predict_costs *const costs = w->costs;
    const bool overlaps = traced_end > activity->start;
    const int64_t from = overlaps ? traced_end : activity->start;
    const double traced = activity->end > from ? (double)(activity->end - from) : 0.0;
    const bool saves =
        w->programmatic && !overlaps && may_be_programmatic(w->work->trace, activity);
    const double least = overlaps || saves ? costs->programmatic_ns : costs->node_ns;
    const double saved = saves ? costs->node_ns - costs->programmatic_ns : 0.0;
    const double untraced = activity->kind == GX_TRACE_COPY
                                ? traced + copy_ns(costs, activity)
                                : traced - costs->trace_ns - saved;

    return untraced > least ? untraced : least;
}

/* By the first walk another stream is at work then. */
static bool runs_beside(const walker *w, size_t own, double start)
{
    for (size_t i = 0; w->first && i < w->n_lanes; i++)
        if (i != own && w->first[i].begin <= start && start < w->first[i].finish)
            return true;
    return false;
}

/* The share of the card that a node fills. Copies have engines of their own. */
static double share_of_card(const gx_trace_activity *activity,
                            const gx_predict_costs *costs)
{
    double blocks = 1.0;

    if (activity->kind != GX_TRACE_KERNEL || activity->grid[0] <= 0)
        return 0.0;
    for (int i = 0; i < 3; i++)
        blocks *= activity->grid[i] > 0 ? activity->grid[i] : 1;
    return blocks >= costs->n_sm ? 1.0 : blocks / costs->n_sm;
}

static int64_t thread_of(const walker *w, const gx_trace_activity *activity)
{
    return activity->call == GX_TRACE_NONE ? GX_TRACE_NONE
                                           : w->work->trace->calls[activity->call].thread;
}

static void pass_item(walker *w, size_t i)
{
    const gx_trace_activity *const activity = gx_predict_activity(w->work, i);
    const size_t index = find_lane(w, activity->stream);
    lane *const own = &w->lanes[index];
    waiter *const waits = waiter_of(w, thread_of(w, activity), false);
    const double alone = node_ns(w, activity, own->traced_end);
    double cost = alone;
    double start = own->finish;
    double floor = front_floor(&w->barrier, index, activity->start);

    if (waits && waits->pending) {
        const double event = front_floor(&waits->for_what, index, activity->start);

        w->path->n_joins += event > 0.0;
        floor = event > floor ? event : floor;
        *waits = (waiter){ .thread = waits->thread };
    }
    if (floor > 0.0 && floor + w->costs->join_ns > start)
        start = floor + w->costs->join_ns;
    /* A programmatic launch hides what it costs to be launched beside others. */
    if (activity->kind == GX_TRACE_KERNEL && runs_beside(w, index, start) &&
        !may_be_programmatic(w->work->trace, activity))
        cost += w->costs->beside_ns;
    if (own->traced_end == INT64_MIN)
        own->begin = start;
    own->finish = start + cost;
    if (activity->end > own->traced_end)
        own->traced_end = activity->end;
    front_add(&w->now, index, own->finish, own->traced_end);
    w->room_ns += alone * share_of_card(activity, w->costs);
    w->path->serial_ns += cost;
    w->path->naive_ns += (double)(activity->end - activity->start);
    if (own->finish > w->path->replay_ns)
        w->path->replay_ns = own->finish;
}

static void walk(walker *w, const gx_predict_step *step)
{
    size_t mark = step->first_mark;
    const size_t end = step->first_mark + step->n_marks;

    for (size_t i = step->first; i < step->first + step->n; i++) {
        for (; mark < end && w->work->mark[mark].at < w->work->item[i].at; mark++)
            pass_mark(w, &w->work->mark[mark]);
        pass_item(w, i);
    }
    if (w->room_ns > w->path->replay_ns)
        w->path->replay_ns = w->room_ns;
}

/* When each stream begins and ends, for the walk that counts. */
static gx_status walk_first(walker *w, const gx_predict_step *step, gx_error *err)
{
    gx_predict_path unused = { 0 };
    walker first = *w;

    first.path = &unused;
    first.lanes = malloc(w->n_lanes * sizeof *first.lanes);
    if (!first.lanes)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the streams of a step");
    memcpy(first.lanes, w->lanes, w->n_lanes * sizeof *first.lanes);
    walk(&first, step);
    w->first = first.lanes;
    return GX_OK;
}

gx_status gx_predict_longest_path(const gx_predict_work *work,
                                  const gx_predict_step *step,
                                  const gx_predict_costs *costs, bool programmatic,
                                  gx_predict_path *path, gx_error *err)
{
    walker w = {
        .work = work, .costs = costs, .programmatic = programmatic, .path = path
    };

    gx_status st = GX_OK;

    *path = (gx_predict_path){ 0 };
    w.lanes = calloc(step->n + 1, sizeof *w.lanes);
    if (!w.lanes)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the streams of a step");
    for (size_t i = 0; i < step->n; i++)
        w.lanes[i] = (lane){ .stream = gx_predict_activity(work, step->first + i)->stream,
                             .traced_end = INT64_MIN };
    qsort(w.lanes, step->n, sizeof *w.lanes, compare_lanes);
    for (size_t i = 0; i < step->n; i++)
        if (i == 0 || w.lanes[i].stream != w.lanes[w.n_lanes - 1].stream)
            w.lanes[w.n_lanes++] = w.lanes[i];
    if (w.n_lanes > 1)
        st = walk_first(&w, step, err);
    if (st == GX_OK)
        walk(&w, step);
    path->n_streams = (int64_t)w.n_lanes;
    free((void *)w.first);
    free(w.lanes);
    return st;
}
