/* Programmatic edges of a plan: which there are, what each gains, and which to leave. */
#ifndef GX_EDGES_H
#define GX_EDGES_H

#include "plan.h"
#include "state.h"

/* Unit `unit` may start while `before`, the unit before it on its lane, ends. */
typedef struct gx_edge {
    int32_t before, unit;
    int32_t set; /* edges between units of equal keys and alternatives are one set */
} gx_edge;

/* edges.c: the edges that layout allows, those that are kept full among them, in the
 * order of the units; `edges` has room for one a unit. Which of them end at a kernel of
 * ours, and so are programmatic indeed, a capture shows. */
gx_status gx_edges_list(const gx_plan *plan, gx_edge *edges, size_t *n_edges,
                        int32_t *n_sets, gx_error *err) GX_MUST_CHECK;

#if GX_HAVE_CUDA

/* edges_cuda.c: what the edges of one set gain, each: the step with the set full less the
 * step with it programmatic, all else as the plan has it, in pairs of blocks. */
typedef struct gx_edge_gain {
    int64_t n_edges; /* that are programmatic in a graph; 0: nothing was measured */
    double gain_us, spread_us; /* median, and between the quartiles */
} gx_edge_gain;

/* Of every set; `gains` has room for n_sets. The state is used up. */
gx_status gx_edges_measure(gx_plan *plan, gx_state *state, const gx_edge *edges,
                           size_t n_edges, int32_t n_sets, gx_edge_gain *gains,
                           gx_error *err) GX_MUST_CHECK;

/* Keeps full what costs more than the spread of its measurement, as far as `budget_s`
 * reaches; all else is programmatic. */
gx_status gx_edges_choose(gx_plan *plan, gx_state *state, double budget_s,
                          gx_error *err) GX_MUST_CHECK;

#endif
#endif
