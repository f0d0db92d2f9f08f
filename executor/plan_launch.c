/* The ways to put steps into launches that are worth a trial. */
#include "select.h"

/* Unrolled, what a launch costs shrinks with their number; in a loop it shrinks as well,
 * but each turn costs. So one loop is tried, as long as the longest of them. */
static const int unrolled[GX_N_LAUNCH_TRIALS - 1] = { 1, 2, 4, 8, 16, 32, 64 };

void gx_launch_trials(gx_launch_trial trials[GX_N_LAUNCH_TRIALS])
{
    for (int i = 0; i < GX_N_LAUNCH_TRIALS - 1; i++)
        trials[i] = (gx_launch_trial){ .steps_per_launch = unrolled[i], .us = -1 };
    trials[GX_N_LAUNCH_TRIALS - 1] = (gx_launch_trial){
        .steps_per_launch = unrolled[GX_N_LAUNCH_TRIALS - 2], .loop = true, .us = -1
    };
}

bool gx_launch_is_possible(int64_t steps_per_launch, bool loop)
{
    return steps_per_launch >= 1 && steps_per_launch <= GX_MAX_STEPS_PER_LAUNCH &&
           !(loop && steps_per_launch == 1);
}
