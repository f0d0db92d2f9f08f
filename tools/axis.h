/* A scale of a picture: which values it holds, where they lie, which are marked. */
#ifndef GX_AXIS_H
#define GX_AXIS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct gx_axis {
    bool log;
    double low, high; /* values at its ends */
    double from, to;  /* places of them, in pixels; they may run downwards */
} gx_axis;

enum { GX_AXIS_TICKS = 24 };

/* True when positive values span more than a decade. */
bool gx_axis_wants_log(double least, double most);

/* An axis that holds least to most, its ends at round values; linear ones start at 0. */
gx_axis gx_axis_fit(double least, double most, bool log, double from, double to);
/* An axis that holds least to most with a little room, its ends as they fall. */
gx_axis gx_axis_around(double least, double most, bool log, double from, double to);

double gx_axis_place(const gx_axis *axis, double value);

/* Round values from low to high, ascending; at least two unless the axis is a point. The
 * number of them. */
size_t gx_axis_ticks(const gx_axis *axis, double ticks[GX_AXIS_TICKS]);

#endif
