/* What the epilogue shares with the activations that are ops of their own. */
#ifndef GX_EPILOGUE_H
#define GX_EPILOGUE_H

#include "ops.h"

/* Each reports and returns false when the value is not like that: a float tensor of one
 * dimension or more; one of the shape and type of another. */
bool gx_expect_rows(gx_diagnostics *list, const gx_node *node, const char *key,
                    const gx_value *value);
bool gx_expect_same(gx_diagnostics *list, const gx_node *node, const char *key,
                    const gx_value *value, const gx_value *like);

void gx_epilogue_grad(gx_builder *builder, int32_t node);

/* --- act_math.c: in double --- */

/* In place. */
void gx_act_apply(gx_act act, double *x, int64_t n);
/* dy act'; `saved` is y or pre, as GX_ACT_LIST says. */
double gx_act_back(gx_act act, double dy, double saved);

/* Elementwise in f32: a few roundings of 2^-24, and the own error of tanh, erfc or exp of
 * a few units, which counts where an activation is near zero. bf16: the result is rounded
 * to 8 bits, 2^-9; f16: to 11, 2^-12. */
#define GX_EPILOGUE_TOLERANCE  \
    {                          \
        4e-6, 4e-6, 5e-3, 7e-4 \
    }
/* The bias gradient sums some thousand rows in f32; terms of either sign cancel. */
#define GX_EPILOGUE_BWD_TOLERANCE \
    {                             \
        2e-5, 2e-5, 5e-3, 7e-4    \
    }

#endif
