/* The steps of an epilogue in the order that a model asks for. */
#ifndef GX_EPILOGUE_ORDER_H
#define GX_EPILOGUE_ORDER_H

#include "resolve.h"

extern const char
    *const gx_epilogue_step_names[]; /* by gx_epilogue_step; ends with NULL */

/* What the field `order` says, in every row that has one. */
#define GX_ORDER_DOC                                                                 \
    "the steps that are given, in the order in which they are applied; else scale, " \
    "bias, residual, act"

/* The steps of a node: which it has, and its attribute `order`. */
typedef struct gx_epilogue_steps {
    bool has[GX_N_EPILOGUE_STEPS];
    const gx_attr *order;
} gx_epilogue_steps;

/* Reports and returns false where `order` is given and does not name each step once;
 * `prefix` stands before the names of the fields ("epilogue."). An activation `none` may
 * stand in it. */
bool gx_expect_order(gx_diagnostics *list, const gx_node *node, const char *prefix,
                     const gx_epilogue_steps *steps);

/* The steps of one op of a chain, each a bit 1 << gx_epilogue_step: those that the fixed
 * order of one epilogue allows. */
typedef struct gx_epilogue_chain {
    int n;
    unsigned steps[GX_N_EPILOGUE_STEPS];
} gx_epilogue_chain;

/* As few ops as do the steps in their order. Bias and residual stand in either order in
 * one op, since a sum is the same. */
gx_epilogue_chain gx_epilogue_split(const gx_epilogue_steps *steps);

/* What the ops of a chain get; NULL: not there. */
typedef struct gx_epilogue_operands {
    const char *x, *bias, *residual, *out, *pre, *act, *scale;
} gx_epilogue_operands;

/* Turns node `id` into the last op of the chain, after nodes for the others. */
void gx_epilogue_build(gx_builder *builder, int32_t id, const gx_epilogue_chain *chain,
                       const gx_epilogue_operands *operands);

/* `value` as text in the graph's arena; NULL for 1, so that a field is left out. */
const char *gx_factor_text(gx_builder *builder, double value);

#endif
