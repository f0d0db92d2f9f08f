/* Our own product kernel: out = op(a) op(b) and what follows it, a tile of out a block.
 */
#ifndef GX_GEMM_TILE_H
#define GX_GEMM_TILE_H

#include "launch.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gx_tile_math {
    GX_TILE_F32,  /* f32 operands, ordinary cores */
    GX_TILE_TF32, /* f32 operands rounded to tf32, tensor cores */
    GX_TILE_BF16, /* bf16 operands, tensor cores */
    GX_TILE_F16   /* f16 operands, tensor cores */
} gx_tile_math;

/* Tile shapes, rows x columns of out; each block is 8 warps, which share the k of a tile.
 */
#define GX_TILE_LIST(X) \
    X(0, 16, 16)        \
    X(1, 32, 16)        \
    X(2, 64, 16)        \
    X(3, 32, 32)        \
    X(4, 64, 64)
enum { GX_N_TILES = 5 };

typedef enum gx_tile_tail {
    GX_TAIL_NONE,
    GX_TAIL_FORWARD,  /* pre = product + bias, out = act(pre); bias and pre may be NULL */
    GX_TAIL_BACKWARD, /* out = product * act'(saved), dbias = column sums; both may be
                         NULL */
    /* Of gx_direct_launch alone: the product, and along k */
    GX_TAIL_SUMS_OF_A, /* dbias = sums of the rows of op(a), [m] */
    GX_TAIL_SUMS_OF_B  /* dbias = sums of the columns of op(b), [n] */
} gx_tile_tail;

/* Whether the operands themselves are summed up beside the product. */
static inline bool gx_tail_sums(gx_tile_tail tail)
{
    return tail == GX_TAIL_SUMS_OF_A || tail == GX_TAIL_SUMS_OF_B;
}

typedef struct gx_tile {
    int64_t m, n, k;
    const void *a, *b;
    void *out;
    int64_t lda, ldb; /* elements from row to row, as stored */
    bool trans_a, trans_b;
    int chunk_a, chunk_b; /* bytes that may be copied at once: 16, 4 or an element */
    gx_tile_math math;
    int shape; /* of GX_TILE_LIST */
    gx_tile_tail tail;
    int act;
    const void *bias;
    void *pre;
    const void *saved; /* y or pre, as GX_ACT_LIST says */
    void *dbias;
    float *partial; /* [row tiles, n]: gx_tile_launch, where there are several rows */
} gx_tile;

/* What products do that are more than one product and one tail. They have kernels of
 * their own, so that the plain ones keep their registers. */
typedef struct gx_tile_more {
    int64_t n_batches;
    int64_t stride_a,
        stride_b;      /* elements from one matrix to the next; 0: all share it */
    bool sum;          /* the products are added up, in order: one out */
    float alpha, beta; /* product = alpha op(a) op(b) + beta c */
    const void *c;     /* or NULL */
    /* elements from row to row of c, and of out where nothing follows; else n. Zeros
     * stand behind the n columns of out. */
    int64_t ldc, ld_out;
    float scale;          /* forward: pre = scale product + bias + residual */
    const void *residual; /* or NULL */
    bool again;           /* forward: out = last_scale y + last_residual */
    void *y;              /* act(pre); NULL: not kept */
    float last_scale;
    const void *last_residual; /* or NULL */
} gx_tile_more;

/* Rows and columns of a tile of this shape. */
int gx_tile_rows(int shape);
int gx_tile_columns(int shape);
/* Dynamic shared memory that a block needs. */
size_t gx_tile_shared_bytes(gx_tile_math math, int shape);

/* n is at least 1, or rows of out are wider; m too, unless there are column sums. The
 * launch is one kernel, or two where `partial` is used. `more` may be NULL; column sums
 * go with one out alone. */
gx_status gx_tile_load(const gx_tile *tile, const gx_tile_more *more,
                       gx_error *err) GX_MUST_CHECK;
gx_status gx_tile_launch(const gx_tile *tile, const gx_tile_more *more, gx_ctx *ctx,
                         gx_error *err) GX_MUST_CHECK;

/* Zeros behind the columns of a matrix: rows lie ld > columns elements apart. */
gx_status gx_zero_rest_load(gx_dtype dtype, gx_error *err) GX_MUST_CHECK;
gx_status gx_zero_rest_launch(void *out, gx_dtype dtype, int64_t rows, int64_t columns,
                              int64_t ld, gx_ctx *ctx, gx_error *err) GX_MUST_CHECK;

/* Packs y > 0 as the bit mask that cuBLASLt's relu backward reads: one bit an element,
 * `ld` bits (a multiple of 128) a row of y, least significant bit first. */
gx_status gx_relu_mask_load(gx_dtype dtype, gx_error *err) GX_MUST_CHECK;
gx_status gx_relu_mask_launch(const void *y, gx_dtype dtype, int64_t rows,
                              int64_t columns, int64_t ld, void *mask, gx_ctx *ctx,
                              gx_error *err) GX_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
