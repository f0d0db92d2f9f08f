/* The alternatives that run the end of a network in one kernel, of every loss. */
#ifndef GX_HEAD_H
#define GX_HEAD_H

#include <string.h>

#include "cuda_call.h"
#include "head_kernels.h"

/* Of a group of a loss and its derivative, or of one of them, in any order: the loss or
 * the derivative, or NULL. */
static inline const gx_call *gx_find_loss_call(const gx_group *group, bool derivative)
{
    for (int i = 0; i < group->n_calls; i++) {
        if ((strstr(gx_op_name(group->call[i].op), ".bwd") != NULL) == derivative)
            return &group->call[i];
    }
    return NULL;
}

/* [gemm, [epilogue,]] a loss's derivative and its value, in either order[, epilogue.bwd]:
 * a bias without an activation, and its gradient. Behind a product also the derivative
 * without the value, under a name of its own: then no block waits for another. */
const char *gx_head_refuses(const gx_group *group, const gx_ctx *ctx);
gx_status gx_head_prepare(const gx_group *group, const gx_ctx *ctx, gx_prepared *prepared,
                          gx_error *err) GX_MUST_CHECK;
gx_status gx_head_launch_group(const gx_group *group, const gx_prepared *prepared,
                               gx_ctx *ctx, gx_error *err) GX_MUST_CHECK;

/* Of such a group, for other kernels: how it hangs together, whatever its sizes; and what
 * there is to make, but for the shape and what several blocks leave. */
const char *gx_head_refuses_calls(const gx_group *group);
gx_head gx_head_of(const gx_group *group);

/* The same of a loss of each element behind a large product, see wgmma_head.cu. */
const char *gx_wgmma_head_refuses(const gx_group *group, const gx_ctx *ctx);
gx_status gx_wgmma_head_prepare(const gx_group *group, const gx_ctx *ctx,
                                gx_prepared *prepared, gx_error *err) GX_MUST_CHECK;
gx_status gx_wgmma_head_launch_group(const gx_group *group, const gx_prepared *prepared,
                                     gx_ctx *ctx, gx_error *err) GX_MUST_CHECK;

/* What a loss adds to the table of its alternatives. */
#define GX_HEAD_ALTERNATIVE(alternative, ops)                                            \
    {                                                                                    \
        .name = alternative, .pattern = ops, .elides = true, .refuses = gx_head_refuses, \
        .prepare = gx_head_prepare, .launch = gx_head_launch_group                       \
    }
#define GX_HEAD_ORDER(name, first, second)                                            \
    static const char *const name##_sums[] = { first, second, "epilogue.bwd", NULL }; \
    static const char *const name##_head_bare[] = { "gemm", first, second, NULL };    \
    static const char *const name##_head[] = { "gemm", "epilogue", first, second,     \
                                               NULL };                                \
    static const char *const name##_head_sums[] = { "gemm", "epilogue",     first,    \
                                                    second, "epilogue.bwd", NULL }
#define GX_HEAD_PATTERNS(name, op)                                                 \
    GX_HEAD_ORDER(name, op, op ".bwd");                                            \
    GX_HEAD_ORDER(name##_behind, op ".bwd", op);                                   \
    static const char *const name##_head_bwd_bare[] = { "gemm", op ".bwd", NULL }; \
    static const char *const name##_head_bwd[] = { "gemm", "epilogue", op ".bwd", NULL }
#define GX_HEAD_ALTERNATIVES_OF(name)                  \
    GX_HEAD_ALTERNATIVE("fused", name##_sums),         \
        GX_HEAD_ALTERNATIVE("head", name##_head_bare), \
        GX_HEAD_ALTERNATIVE("head", name##_head),      \
        GX_HEAD_ALTERNATIVE("head", name##_head_sums)
#define GX_HEAD_ALTERNATIVES(name)                                         \
    GX_HEAD_ALTERNATIVES_OF(name), GX_HEAD_ALTERNATIVES_OF(name##_behind), \
        GX_HEAD_ALTERNATIVE("head_bwd", name##_head_bwd_bare),             \
        GX_HEAD_ALTERNATIVE("head_bwd", name##_head_bwd)

#define GX_WGMMA_HEAD(alternative, ops)                                        \
    {                                                                          \
        .name = alternative, .pattern = ops, .elides = true,                   \
        .refuses = gx_wgmma_head_refuses, .prepare = gx_wgmma_head_prepare,    \
        .launch = gx_wgmma_head_launch_group, .release = gx_gemm_wgmma_release \
    }
#define GX_WGMMA_HEADS(name)                                   \
    GX_WGMMA_HEAD("wgmma_head", name##_head_bare),             \
        GX_WGMMA_HEAD("wgmma_head", name##_head),              \
        GX_WGMMA_HEAD("wgmma_head", name##_behind_head_bare),  \
        GX_WGMMA_HEAD("wgmma_head", name##_behind_head),       \
        GX_WGMMA_HEAD("wgmma_head_bwd", name##_head_bwd_bare), \
        GX_WGMMA_HEAD("wgmma_head_bwd", name##_head_bwd)

/* --- loss_cuda.c, pointwise_loss_cuda.c --- */

/* What keeps a loss and its derivative from being one kernel; NULL: nothing. Without a
 * loss (NULL): what keeps the derivative from being in one. */
const char *gx_sce_refuses_pair(const gx_call *loss, const gx_call *bwd);
const char *gx_pointwise_refuses_pair(const gx_call *loss, const gx_call *bwd);
gx_pointwise_kind gx_pointwise_kind_of(const gx_call *call);

#endif
