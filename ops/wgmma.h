/* Our kernels for large products, on the tensor cores of sm_90: see wgmma_tile.cuh. */
#ifndef GX_WGMMA_H
#define GX_WGMMA_H

#include "gemm_tile.h"
#include "pointwise_loss_kernels.h"
#include "tensor_map.h"
#include "weights.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    GX_WGMMA_CC = 90,    /* and no other: later cards lack the instruction */
    GX_WGMMA_ROWS = 128, /* of a block's tile; a cluster has two, one above the other */
    GX_WGMMA_COLUMNS = 256, /* of a tile */
    GX_WGMMA_K = 64,        /* of a stage: 128 bytes, what the swizzle covers */
    GX_WGMMA_K_TF32 = 32,   /* the same in 4 bytes */
    GX_WGMMA_BOX = 64       /* columns of a tile that a box of `b` has */
};

/* The operands as the copy engine reads them. Rows of a box are 128 bytes: of k where k
 * runs along the rows of the operand, and there a box has all rows of a tile's `a`, or 64
 * columns of its `b`; else of rows or columns of the tile, at each k of a stage. */
typedef struct gx_wgmma_maps {
    CUtensorMap a, b;
} gx_wgmma_maps;

/* Whether the build has code for sm_90a. Without it nothing below may be called. */
bool gx_wgmma_is_built(void);
/* There is a kernel that does what follows this activation. */
bool gx_wgmma_has_act(int act);
size_t gx_wgmma_shared_bytes(void);
/* Where blocks keep the tiles that they have not finished. */
size_t gx_wgmma_handed_bytes(gx_tile_math math, int n_sm);

/* math is bf16 or f16, m, n and k are at least 1 and below 2^31, n and rows of the
 * operands are multiples of 8, every pointer is aligned to 16 bytes, not both operands
 * are turned, and nothing follows a turned `a`. With dbias `partial` has
 * [m / GX_WGMMA_ROWS rounded up, n], and the launch is two kernels. `handed`, which only
 * a product that something follows needs, has gx_wgmma_handed_bytes of workspace. */
gx_status gx_wgmma_load(const gx_tile *tile, gx_error *err) GX_MUST_CHECK;
gx_status gx_wgmma_launch(const gx_tile *tile, const gx_wgmma_maps *maps, void *handed,
                          gx_ctx *ctx, gx_error *err) GX_MUST_CHECK;

/* --- wgmma_head.cu --- */

/* A loss of each element of a b + bias, and its derivative. Outputs are NULL where not
 * wanted. */
typedef struct gx_wgmma_head {
    gx_wgmma_maps maps;
    int m, n, k;
    bool b_turned;
    gx_tile_math math;
    const void *bias; /* or NULL */
    void *out;        /* a b + bias */
    gx_pointwise_kind kind;
    const void *target;
    gx_dtype target_dtype; /* f32 or like the operands */
    double share;          /* of an element in the loss */
    float *loss;
    void *dx;
    void *handed;     /* gx_wgmma_handed_bytes of workspace */
    double *partial;  /* [gx_wgmma_head_blocks] where the loss is wanted */
    unsigned *ticket; /* 0; the kernel leaves it so */
} gx_wgmma_head;

int64_t gx_wgmma_head_blocks(const gx_wgmma_head *head, int n_sm);

/* One kernel. As gx_wgmma_launch, with `a` never turned; the target, as large as the
 * product, is aligned too. */
gx_status gx_wgmma_head_load(const gx_wgmma_head *head, gx_error *err) GX_MUST_CHECK;
gx_status gx_wgmma_head_launch(const gx_wgmma_head *head, gx_ctx *ctx,
                               gx_error *err) GX_MUST_CHECK;

/* --- wgmma_update.cu --- */

enum { GX_WGMMA_LAYERS = 7 }; /* of a launch: as many as its arguments have room for */

/* The weight's gradient is a^T b, with a stored [k, m] and b [k, n], of tf32 [n, k]; the
 * bias's the sums of the columns of `sums`, of which a box has as many rows as of `a`. */
typedef struct gx_wgmma_layer {
    gx_wgmma_maps maps;
    CUtensorMap sums;
    int m, n, k;
    int n_bias;
    void *out, *dbias; /* [m, n], [n_bias]: where somebody else reads it, or NULL */
    gx_updated weight, bias;
} gx_wgmma_layer;

/* Adam's update of the weights and biases of layers, which are of one type. */
typedef struct gx_wgmma_update {
    gx_wgmma_layer layer[GX_WGMMA_LAYERS];
    int n_layers;
    gx_tile_math math;
    gx_update_settings settings;
    const int32_t *step;
    void *gradients; /* gx_wgmma_handed_bytes of workspace */
} gx_wgmma_update;

size_t gx_wgmma_update_shared_bytes(void);

/* One kernel. math is bf16, f16 or tf32, sizes are at least 1, m and n are multiples of
 * 8, and every pointer to operands, weights and their moments is aligned to 16 bytes.
 * Nothing that is updated may be an operand. */
gx_status gx_wgmma_update_load(gx_tile_math math, gx_error *err) GX_MUST_CHECK;
gx_status gx_wgmma_update_launch(const gx_wgmma_update *update, gx_ctx *ctx,
                                 gx_error *err) GX_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
