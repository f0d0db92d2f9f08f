/* NVTX ranges of the domain "gexec". Without NVTX every call is empty, and nothing of it
 * is left in the program. Ranges are the thread's own: whoever begins one ends it. */
#ifndef GX_NVTX_H
#define GX_NVTX_H

#include "exec_model.h"

/* The ranges of one step: step > forward | backward | optimizer > unit. */
typedef struct gx_step_ranges {
    int phase; /* whose range is open; -1: none */
} gx_step_ranges;

#if GX_HAVE_NVTX

/* Registers a text, which the tool behind NVTX copies; when an exec is made, never later.
 */
const void *gx_range_register(const char *text);

void gx_range_capture_begin(void);
void gx_range_replay_begin(void);
void gx_range_end(void);

void gx_ranges_step_begin(gx_step_ranges *ranges);
void gx_ranges_unit_begin(gx_step_ranges *ranges, const gx_unit *unit,
                          const gx_bound_unit *bound);
void gx_ranges_unit_end(void);
/* Closes what is open of the step, also after a failure. */
void gx_ranges_step_end(gx_step_ranges *ranges);

#else

static inline const void *gx_range_register(const char *text)
{
    (void)text;
    return NULL;
}

static inline void gx_range_capture_begin(void)
{
}

static inline void gx_range_replay_begin(void)
{
}

static inline void gx_range_end(void)
{
}

static inline void gx_ranges_step_begin(gx_step_ranges *ranges)
{
    ranges->phase = -1;
}

static inline void gx_ranges_unit_begin(gx_step_ranges *ranges, const gx_unit *unit,
                                        const gx_bound_unit *bound)
{
    (void)ranges;
    (void)unit;
    (void)bound;
}

static inline void gx_ranges_unit_end(void)
{
}

static inline void gx_ranges_step_end(gx_step_ranges *ranges)
{
    (void)ranges;
}

#endif
#endif
