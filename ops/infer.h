/* What the infer hooks of rows share. */
#ifndef GX_INFER_H
#define GX_INFER_H

#include "ops.h"

/* Reports what is wrong with field `key` of a node, at its place, after the op's name. */
void gx_misfit(gx_diagnostics *list, const gx_node *node, const char *key,
               const char *format, ...) GX_PRINTF(4, 5);

/* Each reports and returns false when the value is not like that. */
bool gx_expect_float(gx_diagnostics *list, const gx_node *node, const char *key,
                     const gx_value *value);
bool gx_expect_dtype(gx_diagnostics *list, const gx_node *node, const char *key,
                     const gx_value *value, gx_dtype dtype);
bool gx_expect_rank(gx_diagnostics *list, const gx_node *node, const char *key,
                    const gx_value *value, int rank);
bool gx_expect_like(gx_diagnostics *list, const gx_node *node, const char *key,
                    const gx_value *value, int rank, const int64_t *dim);

/* The derivative of an activation has what GX_ACT_LIST says that it reads; `key` is the
 * field that names the activation. */
bool gx_expect_act_operand(gx_diagnostics *list, const gx_node *node, const char *key,
                           gx_act act, const gx_value *y, const gx_value *pre);

/* Shape of an output; NULL is an output that is absent. */
void gx_set_shape(gx_value *value, gx_dtype dtype, int rank, const int64_t *dim);

/* Values must be in [0, limit) from now on, or in a smaller range that is known; `node`
 * is the one that asks for it. */
void gx_limit_index(gx_value *value, int64_t limit, const char *node);
/* The same, but `ignored` is allowed too, unless another reader does not take it. */
void gx_limit_index_or(gx_value *value, int64_t limit, int64_t ignored, const char *node);

/* The text of a field as the model has it, for a node that is derived from this one; NULL
 * where it is not written. */
const char *gx_written(const gx_node *node, const char *key);

/* Elements of the value that is operand `arg`; 0 where it is absent. */
double gx_elements(const gx_graph *graph, const gx_node *node, int arg);

#endif
