/* Timing a whole plan. */
#include "measure.h"
#include "state.h"

/* Where there is no room for a second copy of the model the plan is not timed, and stays
 * as it would be without timing. */
gx_status gx_trial_time(gx_trial *trial, const gx_exec_options *options, double *us,
                        gx_error *err)
{
    const gx_graph *graph = trial->plan->graph;
    gx_error own = { 0 };
    gx_status st = GX_OK;

    if (!trial->state)
        st = gx_state_create_unfed(graph, trial->plan->device, &trial->state, &own);
    if (st == GX_OK)
        st = gx_measure_plan(trial->plan, trial->state, options, us, &own);
    if (st == GX_OK)
        return GX_OK;
    *us = -1;
    if (st == GX_ERR_DEVICE_MEMORY || (options && st == GX_ERR_UNSUPPORTED))
        return GX_OK;
    return GX_FAIL_NATIVE(err, st, own.native, "timing the plan: %s", own.message);
}
