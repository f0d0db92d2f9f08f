/* A scale of a picture: which values it holds, where they lie, which are marked. */
#include "axis.h"

#include <math.h>

/* Few enough that their labels do not touch. */
enum { STEPS = 5 };

/* Values that are round but for the last bits of a product count as round. */
static const double slack = 1e-9;

bool gx_axis_wants_log(double least, double most)
{
    return least > 0 && most / least > 10;
}

/* 1, 2 or 5 times a power of ten: the largest that is not above `value`, which is > 0. */
static double round_below(double value)
{
    const double decade = pow(10, floor(log10(value) + slack));
    const double share = value / decade * (1 + slack);

    return decade * (share >= 5 ? 5 : share >= 2 ? 2 : 1);
}

static double round_next(double value)
{
    const double decade = pow(10, floor(log10(value) + slack));
    const double share = value / decade * (1 + slack);

    return decade * (share >= 5 ? 10 : share >= 2 ? 5 : 2);
}

static double round_above(double value)
{
    const double below = round_below(value);

    return value <= below * (1 + slack) ? below : round_next(below);
}

static double step_of(double span)
{
    return round_above(span / STEPS);
}

gx_axis gx_axis_fit(double least, double most, bool log, double from, double to)
{
    gx_axis axis = { .log = log, .from = from, .to = to };

    if (log) {
        axis.low = round_below(least);
        axis.high = round_above(most);
        if (!(axis.high > axis.low))
            axis.high = round_next(axis.low);
    } else {
        const double step = step_of(most > 0 ? most : 1);

        axis.high = step * ceil(most / step - slack);
        if (!(axis.high > 0))
            axis.high = step;
    }
    return axis;
}

gx_axis gx_axis_around(double least, double most, bool log, double from, double to)
{
    gx_axis axis = { .log = log, .from = from, .to = to };

    if (log) {
        const double room = pow(most / least, 0.05);

        axis.low = least / room;
        axis.high = most * room;
    } else {
        double room = 0.05 * (most - least);

        if (!(room > 0))
            room = most > 0 ? 0.1 * most : 1;
        axis.low = least - room;
        axis.high = most + room;
    }
    return axis;
}

double gx_axis_place(const gx_axis *axis, double value)
{
    const double share = axis->log ? log(value / axis->low) / log(axis->high / axis->low)
                                   : (value - axis->low) / (axis->high - axis->low);

    return axis->from + share * (axis->to - axis->from);
}

static size_t linear_ticks(const gx_axis *axis, double ticks[GX_AXIS_TICKS])
{
    const double step = step_of(axis->high - axis->low);
    size_t n = 0;

    for (double i = ceil(axis->low / step - slack);
         n < GX_AXIS_TICKS && i * step <= axis->high * (1 + slack); i++)
        ticks[n++] = i * step;
    return n;
}

static size_t log_ticks(const gx_axis *axis, double ticks[GX_AXIS_TICKS])
{
    /* Beyond some decades the powers of ten say enough, then every n-th of them. */
    const double decades = log10(axis->high / axis->low);
    const double every = decades > 4 ? ceil(decades / 10) : 0;
    double tick = round_below(axis->low);
    size_t n = 0;

    if (every > 0)
        tick = pow(10, floor(log10(axis->low) + slack));
    while (n < GX_AXIS_TICKS && tick <= axis->high * (1 + slack)) {
        if (tick >= axis->low * (1 - slack))
            ticks[n++] = tick;
        tick = every > 0 ? tick * pow(10, every) : round_next(tick);
    }
    return n;
}

size_t gx_axis_ticks(const gx_axis *axis, double ticks[GX_AXIS_TICKS])
{
    const size_t n = axis->log ? log_ticks(axis, ticks) : 0;

    return n >= 3 ? n : linear_ticks(axis, ticks);
}
