/* Measuring on the device, for selection. Empty without CUDA: never called then. */
#ifndef GX_MEASURE_H
#define GX_MEASURE_H

#include "device.h"
#include "plan.h"

/* `workspace` is one of gx_workspace_alloc, or NULL where none is asked for. */

/* Median device time in us of one launch of the group by this alternative, as a chain of
 * copies in a small graph; *n_nodes gets the graph nodes that one launch adds. The group
 * is bound to device memory and prepared. One that is far slower than `best_us` (<= 0:
 * there is none) is timed once, by itself. */
gx_status gx_measure_group(gx_device *device, const gx_group *group,
                           const gx_alternative *alternative, const gx_prepared *prepared,
                           void *workspace, double best_us, double *us, int *n_nodes,
                           gx_error *err) GX_MUST_CHECK;

/* Launches the group once and waits. */
gx_status gx_run_group(gx_device *device, const gx_group *group,
                       const gx_alternative *alternative, const gx_prepared *prepared,
                       void *workspace, gx_error *err) GX_MUST_CHECK;

/* Median steady device time in us of the whole step of a laid-out plan as a graph. The
 * steps change the state. */
gx_status gx_measure_plan(const gx_plan *plan, gx_state *state, double *us,
                          gx_error *err) GX_MUST_CHECK;

#endif
