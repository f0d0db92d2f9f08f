/* The ranges of a program, said once: NVTX hears them, and a profiler where one is
 * attached. Ranges are the thread's own: whoever begins one ends it. */
#ifndef GX_RANGES_H
#define GX_RANGES_H

#include "exec_model.h"

/* "step", "forward", ... */
extern const char *const gx_range_names[GX_N_NAMED_RANGES];

void gx_range_capture_begin(gx_exec *exec);
/* To a profiler a replay of one step is a step like any other. */
void gx_range_replay_begin(gx_exec *exec);
/* A unit's range by itself: around a node that is made for it behind the steps' end. */
void gx_range_unit_begin(gx_exec *exec, size_t unit);
void gx_range_end(gx_exec *exec);

/* The ranges of one step: step > forward | backward | optimizer > unit. */
typedef struct gx_step_ranges {
    gx_exec *exec;
    int phase; /* whose range is open; -1: none */
} gx_step_ranges;

void gx_ranges_step_begin(gx_step_ranges *ranges, gx_exec *exec);
void gx_ranges_unit_begin(gx_step_ranges *ranges, size_t unit);
void gx_ranges_unit_end(gx_step_ranges *ranges);
/* Closes what is open of the step, also after a failure. */
void gx_ranges_step_end(gx_step_ranges *ranges);

#endif
