/* Factors that a model may leave out: then they are 1. */
#ifndef GX_FACTOR_H
#define GX_FACTOR_H

#include "ops.h"

static inline double gx_factor(const gx_node *node, int attr)
{
    return node->attr[attr].present ? node->attr[attr].r : 1.0;
}

static inline double gx_call_factor(const gx_call *call, int attr)
{
    return call->attr[attr].present ? call->attr[attr].r : 1.0;
}

#endif
