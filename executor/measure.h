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

/* Median steady device time in us of a step of a laid-out plan, by graphs of so many
 * steps
 * (`options` may be NULL). The steps change the state. */
gx_status gx_measure_plan(const gx_plan *plan, gx_state *state,
                          const gx_exec_options *options, double *us,
                          gx_error *err) GX_MUST_CHECK;

/* plan_trial_cuda.c: the plan on trial, and a state for it: made once, since filling it
 * takes longer than running on it. Free the state. */
typedef struct gx_trial {
    gx_plan *plan;
    const gx_plan_options *options;
    gx_state *state;
} gx_trial;

/* As gx_measure_plan; *us is -1 where the device has no room for a second copy of the
 * model, or cannot do it that way. */
gx_status gx_trial_time(gx_trial *trial, const gx_exec_options *options, double *us,
                        gx_error *err) GX_MUST_CHECK;

#endif
