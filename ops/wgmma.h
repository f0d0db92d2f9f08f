/* Our product kernel for large matrices, on the tensor cores of sm_90: see wgmma.cu. */
#ifndef GX_WGMMA_H
#define GX_WGMMA_H

#include "gemm_tile.h"
#include "tensor_map.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    GX_WGMMA_CC = 90,    /* and no other: later cards lack the instruction */
    GX_WGMMA_ROWS = 128, /* of a block's tile; a cluster has two, one above the other */
    GX_WGMMA_COLUMNS = 256, /* of a tile */
    GX_WGMMA_K = 64,        /* of a stage: 128 bytes, what the swizzle covers */
    GX_WGMMA_PIECE = 64     /* rows that have partial column sums of their own */
};

/* The operands as the copy engine reads them: boxes of 64 rows of 64, but for an `a` that
 * is not turned, of which one has all rows of a tile. */
typedef struct gx_wgmma_maps {
    CUtensorMap a, b;
} gx_wgmma_maps;

/* Whether the build has code for sm_90a. Without it nothing below may be called. */
bool gx_wgmma_is_built(void);
/* There is a kernel that does what follows this activation. */
bool gx_wgmma_has_act(int act);
size_t gx_wgmma_shared_bytes(void);

/* math is bf16 or f16, m, n and k are at least 1 and below 2^31, n and rows of the
 * operands are multiples of 8, every pointer is aligned to 16 bytes, not both operands
 * are turned, and nothing follows a turned `a`. With dbias `partial` has
 * [m / GX_WGMMA_PIECE rounded up, n], and the launch is two kernels. */
gx_status gx_wgmma_load(const gx_tile *tile, gx_error *err) GX_MUST_CHECK;
gx_status gx_wgmma_launch(const gx_tile *tile, const gx_wgmma_maps *maps, gx_ctx *ctx,
                          gx_error *err) GX_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
