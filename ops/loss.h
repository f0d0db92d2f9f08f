/* What the derivatives of losses share: dy, the gradient of the loss itself, which is 1
 * where it is absent and else the scale of the loss. */
#ifndef GX_LOSS_H
#define GX_LOSS_H

#include "infer.h"
#include "resolve.h"

#define GX_LOSS_DY                                       \
    {                                                    \
        "dy", GX_FIELD_IN, false, NULL, NULL,            \
            "f32 scalar: the loss's gradient; absent: 1" \
    }

/* dy: NULL where it is absent. */
static inline bool gx_expect_loss_dy(gx_diagnostics *list, const gx_node *node,
                                     const gx_value *dy)
{
    return !dy || (gx_expect_dtype(list, node, "dy", dy, GX_F32) &&
                   gx_expect_rank(list, node, "dy", dy, 0));
}

/* The name of the gradient of the loss; NULL where it is exactly 1. */
static inline const char *gx_loss_gradient(gx_builder *builder, int32_t loss)
{
    const char *dy = gx_builder_gradient(builder, loss);

    return gx_builder_is_one(dy) ? NULL : dy;
}

/* In a reference, of operand `arg`. */
static inline double gx_loss_dy(const gx_call *call, int arg)
{
    return gx_has(call, arg) ? *(const double *)call->arg[arg].data : 1;
}

#endif
