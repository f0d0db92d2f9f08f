/* Measuring on the device, for selection. Empty without CUDA: never called then. */
#ifndef GX_MEASURE_H
#define GX_MEASURE_H

#include "device.h"
#include "plan.h"

/* `workspace` is one of gx_workspace_alloc, or NULL where none is asked for. */

/* A launch of a group on the device. */
typedef struct gx_group_time {
    double us;      /* median, of a chain of copies in a small graph */
    double once_us; /* by itself */
    int n_nodes;    /* in a graph */
    bool given_up;  /* us is once_us */
} gx_group_time;

/* The group is bound to device memory and prepared. One that takes longer than
 * `give_up_us` by itself (<= 0: however long) is not timed any further. The chain is a
 * burst of some milliseconds. */
gx_status gx_measure_group(gx_device *device, const gx_group *group,
                           const gx_alternative *alternative, const gx_prepared *prepared,
                           void *workspace, double give_up_us, gx_group_time *time,
                           gx_error *err) GX_MUST_CHECK;

/* A launch as it is in a long run: the same chain, launched back to back until a card
 * that is limited by its power has found its clocks, and timed from then on. *us is the
 * time of a burst before, > 0, and the mean sustained time behind. */
gx_status gx_measure_sustained(gx_device *device, const gx_group *group,
                               const gx_alternative *alternative,
                               const gx_prepared *prepared, void *workspace, double *us,
                               gx_error *err) GX_MUST_CHECK;

/* Launches the group once and waits. */
gx_status gx_run_group(gx_device *device, const gx_group *group,
                       const gx_alternative *alternative, const gx_prepared *prepared,
                       void *workspace, gx_error *err) GX_MUST_CHECK;

/* Median steady device time in us of a step of a laid-out plan, by graphs of so many
 * steps (`options` may be NULL); long steps run for a while before. The steps change the
 * state. */
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
