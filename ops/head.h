/* The alternatives that run the end of a network in one kernel, of every loss. */
#ifndef GX_HEAD_H
#define GX_HEAD_H

#include "cuda_call.h"
#include "pointwise_loss_kernels.h"

/* [gemm, [epilogue,]] loss, its derivative[, epilogue.bwd]: a bias without an activation,
 * and its gradient. */
const char *gx_head_refuses(const gx_group *group, const gx_ctx *ctx);
gx_status gx_head_prepare(const gx_group *group, const gx_ctx *ctx, gx_prepared *prepared,
                          gx_error *err) GX_MUST_CHECK;
gx_status gx_head_launch_group(const gx_group *group, const gx_prepared *prepared,
                               gx_ctx *ctx, gx_error *err) GX_MUST_CHECK;

/* What a loss adds to the table of its alternatives. */
#define GX_HEAD_ALTERNATIVE(alternative, ops)                                            \
    {                                                                                    \
        .name = alternative, .pattern = ops, .elides = true, .refuses = gx_head_refuses, \
        .prepare = gx_head_prepare, .launch = gx_head_launch_group                       \
    }
#define GX_HEAD_PATTERNS(name, op)                                                    \
    static const char *const name##_sums[] = { op, op ".bwd", "epilogue.bwd", NULL }; \
    static const char *const name##_head_bare[] = { "gemm", op, op ".bwd", NULL };    \
    static const char *const name##_head[] = { "gemm", "epilogue", op, op ".bwd",     \
                                               NULL };                                \
    static const char *const name##_head_sums[] = { "gemm",    "epilogue",     op,    \
                                                    op ".bwd", "epilogue.bwd", NULL }
#define GX_HEAD_ALTERNATIVES(name)                     \
    GX_HEAD_ALTERNATIVE("fused", name##_sums),         \
        GX_HEAD_ALTERNATIVE("head", name##_head_bare), \
        GX_HEAD_ALTERNATIVE("head", name##_head),      \
        GX_HEAD_ALTERNATIVE("head", name##_head_sums)

/* --- loss_cuda.c, pointwise_loss_cuda.c --- */

/* What keeps a loss and a derivative behind it from being one kernel; NULL: nothing. */
const char *gx_sce_refuses_pair(const gx_call *loss, const gx_call *bwd);
const char *gx_pointwise_refuses_pair(const gx_call *loss, const gx_call *bwd);
gx_pointwise_kind gx_pointwise_kind_of(const gx_call *call);

#endif
