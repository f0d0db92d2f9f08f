/* A trace: what a device did, which calls caused it, and under which ranges; and the
 * figures that follow. Filled by a reader of somebody's profile or by a profiler. Times
 * are whole nanoseconds of one clock from end to end. No device is needed. */
#ifndef GEXEC_TRACE_H
#define GEXEC_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <gexec/status.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    GX_TRACE_NONE = -1,  /* an index or an id that is not known */
    GX_TRACE_LARGEST = 5 /* gaps that are named one by one */
};

/* A range that was never closed lasts to the end of the trace. */
#define GX_TRACE_OPEN INT64_MAX
/* Times lie between plus and minus this, so that no difference overflows. */
#define GX_TRACE_MOST_TIME (INT64_C(1) << 61)

typedef enum gx_trace_kind {
    GX_TRACE_KERNEL,
    GX_TRACE_COPY,
    GX_TRACE_FILL,
    GX_TRACE_GRAPH, /* a whole replay, of which the trace shows no nodes */
    GX_TRACE_KINDS
} gx_trace_kind;

typedef enum gx_trace_call_kind {
    GX_TRACE_CALL_KERNEL,
    GX_TRACE_CALL_GRAPH,
    GX_TRACE_CALL_COPY,
    GX_TRACE_CALL_FILL,
    GX_TRACE_CALL_OTHER,
    GX_TRACE_CALL_KINDS
} gx_trace_call_kind;

/* How an activity came by its range. */
typedef enum gx_trace_by {
    GX_TRACE_BY_NONE,
    GX_TRACE_BY_LAUNCH,    /* the call lies inside, on the same thread */
    GX_TRACE_BY_START_END, /* as before, of the start/end ranges of the process that were
                            * open the one that began last, on whichever thread */
    GX_TRACE_BY_CAPTURE,   /* the node that it replays was captured inside */
    GX_TRACE_BY_REPLAY, /* a replayed node of which only the graph's launch lies inside */
    GX_TRACE_BYS
} gx_trace_by;

/* What a copy reads or writes. */
typedef enum gx_trace_memory {
    GX_TRACE_MEMORY_UNKNOWN,
    GX_TRACE_MEMORY_PAGEABLE,
    GX_TRACE_MEMORY_PINNED,
    GX_TRACE_MEMORY_OTHER /* of a device, managed, an array */
} gx_trace_memory;

typedef struct gx_trace_activity {
    gx_trace_kind kind;
    uint32_t name; /* of gx_trace_text */
    int64_t start, end;
    int64_t process, device, stream;
    int64_t correlation;       /* GX_TRACE_NONE: no call is known */
    int64_t node;              /* graph node, of the exec's side; GX_TRACE_NONE */
    int64_t bytes;             /* GX_TRACE_NONE */
    int32_t grid[3], block[3]; /* 0: not known */
    int32_t registers;         /* a thread; GX_TRACE_NONE */
    int64_t shared_bytes;      /* a block; GX_TRACE_NONE */
    gx_trace_memory source, target;
    int32_t source_device, target_device; /* of a copy from peer to peer; GX_TRACE_NONE */
    bool legacy_stream;                   /* known to be on the legacy default stream */
    int32_t group, lane, body;            /* of gexec's own plans; GX_TRACE_NONE */
    /* What gx_trace_finish finds out. */
    int32_t call;  /* index of the call that launched it; GX_TRACE_NONE */
    int32_t range; /* index of the range that it is attributed to; GX_TRACE_NONE */
    gx_trace_by by;
} gx_trace_activity;

/* Every field at "not known". */
gx_trace_activity gx_trace_activity_none(void);

/* A call of the runtime or the driver. */
typedef struct gx_trace_call {
    int64_t start, end;
    int64_t process, thread;
    int64_t correlation; /* GX_TRACE_NONE */
    uint32_t name;
    /* What gx_trace_finish finds out. */
    gx_trace_call_kind kind;
    bool twin; /* another row of a call that is there already: charged to that one */
    int64_t n_activities;
} gx_trace_call;

typedef enum gx_trace_range_kind {
    GX_TRACE_PUSH_POP,  /* nests, on one thread */
    GX_TRACE_START_END, /* may overlap and cross threads */
    GX_TRACE_RANGE_KINDS
} gx_trace_range_kind;

typedef struct gx_trace_range {
    gx_trace_range_kind kind;
    uint32_t name, domain; /* texts; an empty domain is the default one */
    int64_t start, end;    /* end: GX_TRACE_OPEN where it was never closed */
    int64_t process, thread;
} gx_trace_range;

/* The creation of a graph node. */
typedef struct gx_trace_node {
    int64_t id, original; /* GX_TRACE_NONE: not cloned from another */
    int64_t time;
    int64_t process, thread;
} gx_trace_node;

/* Time that the tracing tool or the driver took for itself. Nothing of it counts as
 * device work. */
typedef struct gx_trace_overhead {
    uint32_t name; /* what it was taken for */
    int64_t start, end;
    int64_t inside; /* ns of it in windows of the tool, the rest lies ahead of one (what
                     * follows the last is not told); GX_TRACE_NONE: it touches none */
    int64_t process;
    int64_t thread, device; /* whichever the record names; GX_TRACE_NONE */
    int64_t correlation;    /* of the call that it lies in; GX_TRACE_NONE */
} gx_trace_overhead;

typedef struct gx_trace gx_trace;

/* NULL: out of memory. */
GX_API gx_trace *gx_trace_create(void);
GX_API void gx_trace_free(gx_trace *trace);

/* The number of a text, the same for the same bytes. What is no UTF-8, and NUL, becomes
 * U+FFFD; other control characters become blanks. The empty text is 0. */
GX_API gx_status gx_trace_text(gx_trace *trace, const char *bytes, size_t length,
                               uint32_t *text, gx_error *err) GX_MUST_CHECK;
/* Never NULL; lives until the next text is added. */
GX_API const char *gx_trace_text_at(const gx_trace *trace, uint32_t text);

/* What copies of this kind are called; the kinds are numbered as CUPTI does, and as every
 * tool that stands on it. */
GX_API const char *gx_trace_copy_name(int64_t kind);

/* What overhead of this kind is called, the kinds numbered as CUPTI does; NULL for one
 * that is not known. */
GX_API const char *gx_trace_overhead_name(int64_t kind);

/* Copies a record. A time beyond GX_TRACE_MOST_TIME is GX_ERR_DATA; a kind that there is
 * not, or a text that gx_trace_text did not number, GX_ERR_ARGUMENT. */
GX_API gx_status gx_trace_add_activity(gx_trace *trace, const gx_trace_activity *activity,
                                       gx_error *err) GX_MUST_CHECK;
GX_API gx_status gx_trace_add_call(gx_trace *trace, const gx_trace_call *call,
                                   gx_error *err) GX_MUST_CHECK;
GX_API gx_status gx_trace_add_range(gx_trace *trace, const gx_trace_range *range,
                                    gx_error *err) GX_MUST_CHECK;
GX_API gx_status gx_trace_add_node(gx_trace *trace, const gx_trace_node *node,
                                   gx_error *err) GX_MUST_CHECK;
/* Overhead is recorded: where no record of it comes there was none. */
GX_API void gx_trace_expect_overhead(gx_trace *trace);
GX_API gx_status gx_trace_add_overhead(gx_trace *trace, const gx_trace_overhead *overhead,
                                       gx_error *err) GX_MUST_CHECK;

/* Activities, and overhead, that no clock can have seen; they are left out of everything.
 */
typedef struct gx_trace_dropped {
    int64_t no_time;     /* start and end are 0 */
    int64_t backwards;   /* it ends before it starts */
    int64_t before_call; /* it starts before the call that launched it */
} gx_trace_dropped;

/* Joins activities with calls and ranges, once, after the last record. Activities are
 * sorted by process, device and start, calls by process and correlation, overhead by
 * start. */
GX_API gx_status gx_trace_finish(gx_trace *trace, gx_error *err) GX_MUST_CHECK;

GX_API gx_trace_dropped gx_trace_dropped_get(const gx_trace *trace);
GX_API const gx_trace_activity *gx_trace_activities(const gx_trace *trace, size_t *n);
GX_API const gx_trace_call *gx_trace_calls(const gx_trace *trace, size_t *n);
GX_API const gx_trace_range *gx_trace_ranges(const gx_trace *trace, size_t *n);
GX_API const gx_trace_node *gx_trace_nodes(const gx_trace *trace, size_t *n);
/* False where nothing told of overhead, so that how much there was is not known. */
GX_API bool gx_trace_tells_overhead(const gx_trace *trace);
GX_API const gx_trace_overhead *gx_trace_overheads(const gx_trace *trace, size_t *n);

/* --- from process to process --- */

/* A trace as a file, finished or not, with everything that it holds, written as
 * gx_npy_write writes: no half-written one stays. */
GX_API gx_status gx_trace_write(const gx_trace *trace, const char *path,
                                gx_error *err) GX_MUST_CHECK;
/* GX_ERR_READ for a file that is none of gx_trace_write's, of another version or cut
 * short, and for damage that contradicts itself: kinds, texts and indexes that there are
 * not, records out of order. There is no checksum: another time or size, or other letters
 * of a name, are not noticed. The caller frees. */
GX_API gx_status gx_trace_read(const char *path, gx_trace **trace,
                               gx_error *err) GX_MUST_CHECK;

/* --- figures --- */

/* Of a gap, by the launch call of the activity that ends it. */
typedef enum gx_gap_class {
    GX_GAP_HOST,    /* it began after the activity before had ended */
    GX_GAP_LAUNCH,  /* it was under way then */
    GX_GAP_DEVICE,  /* it had returned, or both activities belong to one graph launch */
    GX_GAP_UNKNOWN, /* the trace has no such call */
    GX_GAP_CLASSES
} gx_gap_class;

GX_API const char *gx_gap_class_name(gx_gap_class class_of_gap);

/* How many, and how long together. */
typedef struct gx_trace_share {
    int64_t n, ns;
} gx_trace_share;

typedef struct gx_trace_gap {
    int64_t start, end;
    int32_t before, after; /* activities */
    gx_gap_class type;
    bool between_steps; /* behind the last activity of a step, before the next one's */
} gx_trace_gap;

/* Distances over the kernels of a stream: from the furthest end so far to the next
 * start, where that is later. */
typedef struct gx_trace_stream {
    int64_t stream, n_kernels, n_distances;
    int64_t median_ns; /* GX_TRACE_NONE where there is no distance */
} gx_trace_stream;

/* One device as one process used it. */
typedef struct gx_trace_device {
    int64_t process, device;
    gx_trace_share kind[GX_TRACE_KINDS];
    int64_t n_activities;
    int64_t start, end;       /* of the first and of the last */
    int64_t span, busy, idle; /* idle = span - busy = the sum of the gaps */
    gx_trace_share gaps[GX_GAP_CLASSES];
    gx_trace_share step_gaps[GX_GAP_CLASSES]; /* those of `gaps` between two steps */
    gx_trace_gap *gap;                        /* in order of time */
    size_t n_gaps;
    size_t largest[GX_TRACE_LARGEST]; /* of `gap`, the largest first */
    size_t n_largest;
    gx_trace_stream *stream;
    size_t n_streams;
} gx_trace_device;

/* Activities of one name. */
typedef struct gx_trace_op {
    gx_trace_kind kind;
    uint32_t name;
    gx_trace_share share;
    int64_t median_ns, p95_ns, least_ns, most_ns;
    int32_t example; /* one of them */
} gx_trace_op;

typedef struct gx_trace_range_sum {
    uint32_t name, domain; /* of the innermost range */
    gx_trace_share share;
    gx_trace_by by; /* BY_NONE where they came in different ways */
} gx_trace_range_sum;

typedef struct gx_trace_options {
    const char *step;   /* ranges of this name, a number after it or not, are the steps;
                         * NULL: "step", "ProfilerStep", or "replay" of the domain
                         * "gexec", whichever first has any inside the window */
    const char *within; /* only what was launched inside ranges of this name; NULL: inside
                         * "measured" of the domain "gexec" where there is such a range;
                         * empty: everything */
} gx_trace_options;

typedef struct gx_trace_figures {
    gx_trace_device *device;
    size_t n_devices;
    gx_trace_op *op; /* the longest first */
    size_t n_ops;
    gx_trace_range_sum *range; /* the longest first */
    size_t n_ranges;
    gx_trace_share by[GX_TRACE_BYS];
    /* Device work of replayed nodes whose creation lies before anything else that the
     * trace saw on the host: the ranges of that time are not in it. */
    gx_trace_share nodes_before_window;
    gx_trace_share calls[GX_TRACE_CALL_KINDS];       /* each call once */
    int64_t calls_without_work[GX_TRACE_CALL_KINDS]; /* captured, or its work is lost */
    gx_trace_share kind[GX_TRACE_KINDS];
    int64_t n_replayed; /* activities that belong to a launch of a graph */
    int64_t n_steps;    /* ranges that are steps; 0: none were found */
    uint32_t step_name; /* text */
    bool within;        /* only a window was counted */
    uint32_t within_name;
} gx_trace_figures;

/* Of a finished trace, which has to outlive them. `options` may be NULL. */
GX_API gx_status gx_trace_figures_create(const gx_trace *trace,
                                         const gx_trace_options *options,
                                         gx_trace_figures **figures,
                                         gx_error *err) GX_MUST_CHECK;
GX_API void gx_trace_figures_free(gx_trace_figures *figures);

#ifdef __cplusplus
}
#endif
#endif
