/* The CUDA alternatives of gemm, alone and with the ops beside it. */
#ifndef GX_GEMM_CUDA_H
#define GX_GEMM_CUDA_H

#include <string.h>

#include "epilogue_cuda.h"
#include "factor.h"
#include "gemm_tile.h"
#include "weights.h"

/* --- parts of a workspace --- */

enum { GX_WORKSPACE_ALIGNMENT = 256 };

static inline int64_t gx_round_up(int64_t n, int64_t unit)
{
    return gx_divide_up(n, unit) * unit;
}

/* Before there is a workspace: any address that is as aligned as one. */
static inline void *gx_planned_workspace(void)
{
    return (void *)(uintptr_t)GX_WORKSPACE_ALIGNMENT;
}

/* What a group computes: products, and what follows them in the same group. */
typedef struct gx_product {
    int64_t m, n, k;
    bool trans_a, trans_b;
    gx_dtype dtype;
    gx_precision precision;
    const void *a, *b;
    int64_t n_batches;          /* products; a batch that is one matrix counts as 1 */
    int64_t stride_a, stride_b; /* elements from one to the next; 0: all have the same */
    /* elements from row to row, as stored; of c where there is one */
    int64_t lda, ldb, ldc, ld_out;
    bool sum; /* the products are added up */
    double alpha, beta;
    const void *c; /* NULL: nothing is added */
} gx_product;

gx_product gx_product_of(const gx_call *call);

/* Rows of out are wider than the product: zeros stand behind its columns. */
static inline bool gx_has_wide_out(const gx_product *product)
{
    return product->ld_out != product->n;
}

/* The second call goes back through the epilogue of the layer before. */
static inline bool gx_is_backward(const gx_group *group)
{
    return group->n_calls >= 2 && gx_is_back(&group->call[1]);
}

/* The gradients of a layer's parameters: the first call sums up the columns of the dy
 * that the product of the second adds up in its k. */
static inline bool gx_is_weight(const gx_group *group)
{
    return group->n_calls == 2 && gx_is_back(&group->call[0]);
}

/* `n` calls of a group from `first` on, as a group. */
static inline gx_group gx_group_part(const gx_group *group, int first, int n)
{
    return (gx_group){
        .n_calls = n,
        .call = &group->call[first],
        .elided = group->elided ? group->elided + first * GX_MAX_ARGS : NULL,
        .steady = group->steady ? group->steady + first * GX_MAX_ARGS : NULL,
    };
}

/* The product of such a group by itself. */
static inline gx_group gx_weight_product(const gx_group *group)
{
    return gx_group_part(group, 1, 1);
}

/* Its dy is the first operand of the product, whose weight is stored [out, in]. */
static inline bool gx_sums_first_operand(const gx_group *group)
{
    return !gx_feeds(&group->call[0], GX_EPILOGUE_BWD_DY, &group->call[1], GX_GEMM_B) ||
           group->call[1].attr[GX_GEMM_TRANS_B].i;
}

/* The product is read elsewhere too, and is what the activation is applied to: nothing
 * is done before. */
static inline bool gx_keeps_product(const gx_group *group)
{
    const gx_call *next = &group->call[1];

    return group->n_calls >= 2 && !gx_is_backward(group) &&
           !gx_is_elided(group, 0, GX_GEMM_OUT) && !gx_has(next, GX_EPILOGUE_BIAS) &&
           !gx_has(next, GX_EPILOGUE_RESIDUAL) &&
           gx_call_factor(next, GX_EPILOGUE_SCALE) == 1.0 &&
           !gx_has(next, GX_EPILOGUE_PRE);
}

/* Where what the first activation of a forward group is applied to must be stored, or
 * NULL. */
static inline void *gx_kept_of(const gx_group *group)
{
    if (gx_keeps_product(group))
        return group->call[0].arg[GX_GEMM_OUT].data;
    if (gx_is_elided(group, 1, GX_EPILOGUE_PRE))
        return NULL;
    return gx_data(&group->call[1], GX_EPILOGUE_PRE);
}

/* --- gemm_group_cuda.c --- */

/* What no alternative takes: a gemm that was not expanded, types that differ. */
const char *gx_gemm_refuses(const gx_group *group);
/* The second call of the group works on the product of the first, as its operand `in`,
 * and nothing needs the product unless it is what the activation is applied to. */
const char *gx_gemm_refuses_link(const gx_group *group, int in);
/* A product, the way back through the epilogue before it, and at most the column sums of
 * that. */
const char *gx_gemm_refuses_backward(const gx_group *group);
/* Call `i` of the group reads, as another operand than `in` (-1: as any), what an earlier
 * one makes. Not after the binding: then what is elided has no address. */
bool gx_gemm_reads_group(const gx_group *group, int i, int in);
/* The gradients of a bias and a weight whose kernel sums up what the product loads. */
const char *gx_gemm_refuses_weight(const gx_group *group);
/* The third call scales what the second makes and adds a tensor, and does no more. */
const char *gx_gemm_refuses_third(const gx_group *group);

/* --- gemm_cuda.c --- */

/* What our kernels get for a group, but for shape and partial sums. `plain`: it is one
 * product and one tail. */
gx_tile gx_gemm_tile_of(const gx_group *group, bool *plain);

/* --- gemm_direct_cuda.c --- */

const char *gx_gemm_direct_refuses(const gx_group *group, const gx_ctx *ctx);
const char *gx_gemm_direct_forward_refuses(const gx_group *group, const gx_ctx *ctx);
const char *gx_gemm_direct_backward_refuses(const gx_group *group, const gx_ctx *ctx);
const char *gx_gemm_direct_weight_refuses(const gx_group *group, const gx_ctx *ctx);
gx_status gx_gemm_direct_prepare(const gx_group *group, const gx_ctx *ctx,
                                 gx_prepared *prepared, gx_error *err) GX_MUST_CHECK;
gx_status gx_gemm_direct_launch(const gx_group *group, const gx_prepared *prepared,
                                gx_ctx *ctx, gx_error *err) GX_MUST_CHECK;

/* Which of n tile shapes is run: the one that is pinned, or candidate algo_choice of
 * those that fit, in table order. Leaves it in `prepared`, with how many candidates there
 * are. */
gx_status gx_take_shape(const bool *fits, int n, gx_prepared *prepared, int *shape,
                        gx_error *err) GX_MUST_CHECK;

/* --- gemm_wgmma_cuda.c --- */

/* Large products of bf16 and f16 on sm_90, alone, and with what follows. */
const char *gx_gemm_wgmma_refuses(const gx_group *group, const gx_ctx *ctx);
const char *gx_gemm_wgmma_forward_refuses(const gx_group *group, const gx_ctx *ctx);
const char *gx_gemm_wgmma_backward_refuses(const gx_group *group, const gx_ctx *ctx);
gx_status gx_gemm_wgmma_prepare(const gx_group *group, const gx_ctx *ctx,
                                gx_prepared *prepared, gx_error *err) GX_MUST_CHECK;
gx_status gx_gemm_wgmma_launch(const gx_group *group, const gx_prepared *prepared,
                               gx_ctx *ctx, gx_error *err) GX_MUST_CHECK;
void gx_gemm_wgmma_release(gx_prepared *prepared);
/* Weight gradients and adam's updates as gx_gemm_weights_update has them, of those. */
const char *gx_gemm_wgmma_update_refuses(const gx_group *group, const gx_ctx *ctx);
gx_status gx_gemm_wgmma_update_prepare(const gx_group *group, const gx_ctx *ctx,
                                       gx_prepared *prepared,
                                       gx_error *err) GX_MUST_CHECK;
gx_status gx_gemm_wgmma_update_launch(const gx_group *group, const gx_prepared *prepared,
                                      gx_ctx *ctx, gx_error *err) GX_MUST_CHECK;

/* --- gemm_pair_cuda.c --- */

/* Both gradients of a layer: weight and data, with the bias's in front and the way back
 * through the epilogue before the layer behind, where the group has those. */
const char *gx_gemm_pair_refuses(const gx_group *group, const gx_ctx *ctx);
gx_status gx_gemm_pair_prepare(const gx_group *group, const gx_ctx *ctx,
                               gx_prepared *prepared, gx_error *err) GX_MUST_CHECK;
gx_status gx_gemm_pair_launch(const gx_group *group, const gx_prepared *prepared,
                              gx_ctx *ctx, gx_error *err) GX_MUST_CHECK;

/* --- gemm_chain_cuda.c --- */

/* Layers one after the other: products and what follows each, or data gradients and the
 * ways back behind them. */
int gx_gemm_chain_takes(const gx_group *run);
const char *gx_gemm_chain_refuses(const gx_group *group, const gx_ctx *ctx);
gx_status gx_gemm_chain_prepare(const gx_group *group, const gx_ctx *ctx,
                                gx_prepared *prepared, gx_error *err) GX_MUST_CHECK;
gx_status gx_gemm_chain_launch(const gx_group *group, const gx_prepared *prepared,
                               gx_ctx *ctx, gx_error *err) GX_MUST_CHECK;

/* --- gemm_weights_cuda.c --- */

/* The gradients of the biases and weights of several layers. */
int gx_gemm_weights_takes(const gx_group *run);
const char *gx_gemm_weights_refuses(const gx_group *group, const gx_ctx *ctx);
gx_status gx_gemm_weights_prepare(const gx_group *group, const gx_ctx *ctx,
                                  gx_prepared *prepared, gx_error *err) GX_MUST_CHECK;
gx_status gx_gemm_weights_launch(const gx_group *group, const gx_prepared *prepared,
                                 gx_ctx *ctx, gx_error *err) GX_MUST_CHECK;
/* The same, and adam's updates of those parameters behind them. */
const char *gx_gemm_weights_update_refuses(const gx_group *group, const gx_ctx *ctx);
gx_status gx_gemm_weights_update_prepare(const gx_group *group, const gx_ctx *ctx,
                                         gx_prepared *prepared,
                                         gx_error *err) GX_MUST_CHECK;
gx_status gx_gemm_weights_update_launch(const gx_group *group,
                                        const gx_prepared *prepared, gx_ctx *ctx,
                                        gx_error *err) GX_MUST_CHECK;
/* Of such a group, for other kernels: how it hangs together, whatever the products are
 * like; and what there is to make, `plain` as gx_gemm_tile_of has it and no size 0,
 * gradients that only the group reads NULL. */
const char *gx_gemm_refuses_updates(const gx_group *group);
gx_weights_update gx_gemm_updates_of(const gx_group *group, bool *plain);

/* --- gemm_lt_cuda.c --- */

const char *gx_gemm_lt_refuses(const gx_group *group, const gx_ctx *ctx);
const char *gx_gemm_lt_forward_refuses(const gx_group *group, const gx_ctx *ctx);
const char *gx_gemm_lt_backward_refuses(const gx_group *group, const gx_ctx *ctx);
const char *gx_gemm_lt_weight_refuses(const gx_group *group, const gx_ctx *ctx);
gx_status gx_gemm_lt_prepare(const gx_group *group, const gx_ctx *ctx,
                             gx_prepared *prepared, gx_error *err) GX_MUST_CHECK;
gx_status gx_gemm_lt_launch(const gx_group *group, const gx_prepared *prepared,
                            gx_ctx *ctx, gx_error *err) GX_MUST_CHECK;

/* The product and what stands ahead of an activation, written where that is kept for the
 * way back; and the activation of what was written. */
const char *gx_gemm_lt_bias_refuses(const gx_group *group, const gx_ctx *ctx);
gx_status gx_gemm_lt_bias_prepare(const gx_group *group, const gx_ctx *ctx,
                                  gx_prepared *prepared, gx_error *err) GX_MUST_CHECK;
gx_status gx_gemm_lt_bias_launch(const gx_group *group, const gx_prepared *prepared,
                                 gx_ctx *ctx, gx_error *err) GX_MUST_CHECK;

/* --- gemm_turned_cuda.c --- */

/* A product with k along the columns of both operands, of which the first is transposed
 * in the workspace before; or the second, where that is the smaller one. */
const char *gx_gemm_lt_turned_refuses(const gx_group *group, const gx_ctx *ctx);
const char *gx_gemm_lt_turned_b_refuses(const gx_group *group, const gx_ctx *ctx);
gx_status gx_gemm_lt_turned_prepare(const gx_group *group, const gx_ctx *ctx,
                                    gx_prepared *prepared, gx_error *err) GX_MUST_CHECK;
gx_status gx_gemm_lt_turned_b_prepare(const gx_group *group, const gx_ctx *ctx,
                                      gx_prepared *prepared, gx_error *err) GX_MUST_CHECK;
gx_status gx_gemm_lt_turned_launch(const gx_group *group, const gx_prepared *prepared,
                                   gx_ctx *ctx, gx_error *err) GX_MUST_CHECK;
gx_status gx_gemm_lt_turned_b_launch(const gx_group *group, const gx_prepared *prepared,
                                     gx_ctx *ctx, gx_error *err) GX_MUST_CHECK;

/* The gradient of a weight behind the way back whose dx it reads, and the bias's sums of
 * that between them or with it: dx is left transposed in the workspace when it is made.
 */
const char *gx_gemm_lt_turned_dx_refuses(const gx_group *group, const gx_ctx *ctx);
gx_status gx_gemm_lt_turned_dx_prepare(const gx_group *group, const gx_ctx *ctx,
                                       gx_prepared *prepared,
                                       gx_error *err) GX_MUST_CHECK;
gx_status gx_gemm_lt_turned_dx_launch(const gx_group *group, const gx_prepared *prepared,
                                      gx_ctx *ctx, gx_error *err) GX_MUST_CHECK;

#endif
