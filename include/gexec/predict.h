/* What would graphs buy: from a trace of eager launches, the repeating step as a CUDA
 * graph. No device is needed. Times are nanoseconds. */
#ifndef GEXEC_PREDICT_H
#define GEXEC_PREDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <gexec/ceilings.h>
#include <gexec/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    GX_PREDICT_ASSUMPTIONS = 12,
    GX_PREDICT_SENTENCE = 320 /* bytes of one, with its NUL */
};

/* What a graph costs on a card. Each `_error` is how far the figure beside it may be off,
 * either way. */
typedef struct gx_predict_costs {
    char card[128];         /* of which these are; "" where it is not known */
    double node_ns;         /* the least that a dependent kernel takes in a graph */
    double programmatic_ns; /* the same for one that overlaps the kernel before it */
    double trace_ns;        /* a kernel's traced time, less what it adds to an untraced
                             * chain: the time stamps around it and the drain that the
                             * next launch hides */
    double trace_error_ns;
    double copy_ns; /* a copy in a chain, beside its traced time */
    double copy_error_ns;
    double engine_ns; /* the same of a whole buffer from or to the host, which an engine
                       * of its own copies */
    double engine_error_ns;
    double beside_ns; /* a kernel, while another stream's work runs beside it */
    double beside_error_ns;
    double join_ns; /* an edge from one stream's work to another's */
    double join_error_ns;
    double step_ns; /* a replay beside its nodes, back to back */
    double step_error_ns;
    double host_ns;       /* the host's part of a replay: none is faster */
    double build_node_ns; /* capture and instantiation, a node */
    double n_sm;          /* blocks that fill the card */
} gx_predict_costs;

/* Measured on an H100. */
GX_API gx_predict_costs gx_predict_costs_default(void);
/* With what was measured on a card in place of the default, where it was. */
GX_API gx_predict_costs gx_predict_costs_of(const gx_ceilings *ceilings);

/* How the step was found. */
typedef enum gx_predict_by {
    GX_PREDICT_BY_NONE,
    GX_PREDICT_BY_RANGE,    /* ranges that are named as steps */
    GX_PREDICT_BY_SEQUENCE, /* launches that repeat, by name and grid */
    GX_PREDICT_BY_NAMES,    /* launches that repeat by name, with other grids each time */
    GX_PREDICT_BY_OUTER /* nothing repeats but single kernels: the outermost range that
                         * holds nearly all of them */
} gx_predict_by;

/* What has to change before the step can be captured, or before a replay pays. */
typedef enum gx_obstacle_kind {
    GX_OBSTACLE_SYNC,     /* the host waits; no capture allows it */
    GX_OBSTACLE_COPY,     /* a copy or fill that blocks, on the legacy stream */
    GX_OBSTACLE_PAGEABLE, /* a copy from or to pageable memory */
    GX_OBSTACLE_ALLOC,    /* memory allocated or freed */
    GX_OBSTACLE_POOL,     /* the same in the order of a stream: becomes a node, is fine */
    GX_OBSTACLE_LEGACY, /* work on the legacy default stream, which nothing can capture */
    GX_OBSTACLE_CONTENT, /* steps whose work differs from the others' */
    GX_OBSTACLE_BETWEEN, /* the host waits between two steps: replays do not run back to
                          * back */
    GX_OBSTACLE_KINDS
} gx_obstacle_kind;

typedef struct gx_obstacle {
    gx_obstacle_kind kind;
    uint32_t name;   /* text: of the call, or of the device work */
    int64_t n;       /* in all steps */
    int64_t n_steps; /* that have it; 0 of BETWEEN */
} gx_obstacle;

typedef struct gx_prediction {
    gx_predict_by by; /* BY_NONE: there is no prediction, and `why_not` says why */
    char why_not[GX_PREDICT_SENTENCE];
    uint32_t range_name;     /* text; of BY_RANGE and BY_OUTER */
    int64_t process, device; /* the one with the most eager work */
    int64_t n_steps;         /* that were found */
    int64_t n_same;          /* of them with the same work: these are predicted from */
    int64_t n_nodes, n_kernels, n_copies, n_fills; /* a step */
    int64_t n_streams, n_joins;                    /* a step */
    double eager_ns;        /* from step to step as traced, median: tracing slows the
                             * host, so that without it a step may take far less */
    double naive_ns;        /* the sum of traced times of kernels, copies and fills */
    double replay_ns;       /* of the graph, from the first node's start to the last
                             * one's end */
    double step_ns;         /* from step to step, replays back to back */
    double low_ns, high_ns; /* of step_ns: p5 and p95 of the steps, with costs at the
                             * ends of their error */
    double build_ns;        /* capture and instantiation, once */
    double payback_steps;  /* after which that is won back at the earliest, since eager_ns
                            * is as traced; < 0: never */
    gx_obstacle *obstacle; /* by kind, then the most frequent first */
    size_t n_obstacles;
    bool after_removal; /* of obstacles: the figures hold once they are gone */
    char assumption[GX_PREDICT_ASSUMPTIONS][GX_PREDICT_SENTENCE];
    size_t n_assumptions;
} gx_prediction;

/* "synchronizing call", ... */
GX_API const char *gx_obstacle_kind_name(gx_obstacle_kind kind);

/* Of a finished trace, which has to outlive it. `options` names steps and window as for
 * the figures; `costs` NULL: the default. A trace without a step, or of graphs already,
 * is no error. The caller frees. */
GX_API gx_status gx_prediction_create(const gx_trace *trace,
                                      const gx_trace_options *options,
                                      const gx_predict_costs *costs,
                                      gx_prediction **prediction,
                                      gx_error *err) GX_MUST_CHECK;
GX_API void gx_prediction_free(gx_prediction *prediction);

#ifdef __cplusplus
}
#endif
#endif
