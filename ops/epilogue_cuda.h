/* What groups share that have an epilogue, or sum up a bias's gradient by a call of its
 * own. */
#ifndef GX_EPILOGUE_CUDA_H
#define GX_EPILOGUE_CUDA_H

#include <string.h>

#include "cuda_call.h"
#include "epilogue_kernels.h"

/* The call is an epilogue.bwd. */
static inline bool gx_is_back(const gx_call *call)
{
    return strcmp(gx_op_name(call->op), "epilogue.bwd") == 0;
}

/* Where a way back through an epilogue leaves the sums of its columns: with the last call
 * of its group, which is the way back itself or a call behind it. */
static inline void *gx_bias_sums_of(const gx_group *group)
{
    return gx_data(&group->call[group->n_calls - 1], GX_EPILOGUE_BWD_DBIAS);
}

/* Every pointer and row allows 16 bytes at once. */
bool gx_epilogue_is_wide(const gx_epilogue *epilogue);

/* Why the call, an epilogue.bwd, is more than the sums of the columns of its dy; NULL: it
 * is no more. */
const char *gx_epilogue_refuses_sums(const gx_call *call);
/* Why calls `back` and `back` + 1 of the group, both epilogue.bwd, are not one: dx by the
 * first, and its column sums by the second. */
const char *gx_epilogue_refuses_split(const gx_group *group, int back);

/* One way back, or two calls that are one, for the kernels of large matrices. */
const char *gx_epilogue_refuses_wide(const gx_group *group, const gx_ctx *ctx);
gx_epilogue_bwd gx_epilogue_back_of(const gx_group *group);
/* GX_ERR_UNSUPPORTED where not every pointer allows 16 bytes at once. */
gx_status gx_epilogue_check_wide(const gx_epilogue_bwd *back,
                                 gx_error *err) GX_MUST_CHECK;

#endif
