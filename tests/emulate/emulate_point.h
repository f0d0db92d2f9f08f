/* The pointwise losses in double. */
#ifndef EMULATE_POINT_H
#define EMULATE_POINT_H

#include <math.h>

#include "pointwise_loss_kernels.h"

/* The loss of an element; `slope` gets its derivative. */
static inline double emulate_point(gx_pointwise_kind kind, double x, double target,
                                   double *slope)
{
    switch (kind) {
    case GX_POINT_BCE:
        *slope = 1 / (1 + exp(-x)) - target;
        return fmax(x, 0) - x * target + log1p(exp(-fabs(x)));
    case GX_POINT_L1:
        *slope = (x > target) - (x < target);
        return fabs(x - target);
    default:
        *slope = 2 * (x - target);
        return (x - target) * (x - target);
    }
}

#endif
