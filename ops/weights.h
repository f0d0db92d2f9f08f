/* The gradients of several layers' parameters in one launch: see weights.cu. */
#ifndef GX_WEIGHTS_H
#define GX_WEIGHTS_H

#include "gemm_tile.h"
#include "optimizer_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Pieces of 16 rows and of 8 columns of a tile; whether blocks stay, as many as the
 * device holds, and take further tiles. Rows of less than 64 bytes are slow to read and
 * write, and of types of two bytes 16 columns are fewer. */
#define GX_WEIGHTS_LIST(X) \
    X(0, 1, 2, false)      \
    X(1, 1, 2, true)       \
    X(2, 2, 2, false)      \
    X(3, 2, 2, true)       \
    X(4, 1, 4, false)      \
    X(5, 1, 4, true)
/* Rows and columns of tiles that a block makes, whose operands lie in shared memory. */
#define GX_WEIGHTS_BLOCK_LIST(X) \
    X(6, 64, 64)                 \
    X(7, 64, 32)                 \
    X(8, 32, 64)                 \
    X(9, 32, 32)                 \
    X(10, 128, 32)               \
    X(11, 128, 64)
enum {
    GX_N_WARP_WEIGHTS = 6,
    GX_N_WEIGHTS = 12,
    GX_WEIGHTS_MOST_ROWS = 256 /* of a batch: more take one warp too long, and more
                                  shared memory than a block has */
};

/* out = op(a) b with a stored [k, m] and b [k, n], and dbias = the sums along k of one of
 * the two: that of them which is dz. */
typedef struct gx_weights_layer {
    const void *a, *b;
    void *out, *dbias;
    int m, n, k, lda, ldb;
} gx_weights_layer;

typedef struct gx_weights {
    int n_layers;
    /* set by gx_weights_launch: tiles of the layers before. Together, since a kernel
     * waits for each line of its arguments that it comes to. */
    unsigned first_tile[GX_MAX_REPEATS];
    bool sums_of_a; /* dbias is [m], else [n] */
    gx_tile_math math;
    int shape; /* of GX_WEIGHTS_LIST or GX_WEIGHTS_BLOCK_LIST */
    gx_weights_layer layer[GX_MAX_REPEATS];
} gx_weights;

/* A tensor that adam updates, of the type of its gradient. */
typedef struct gx_updated {
    void *param, *m, *v;
} gx_updated;

/* The same with the update of every weight and bias; `out` and `dbias` of a layer are
 * NULL where nobody else reads the gradient. */
typedef struct gx_weights_update {
    gx_weights weights;
    gx_update_settings settings;
    const int32_t *step;
    gx_updated weight[GX_MAX_REPEATS], bias[GX_MAX_REPEATS];
    bool is_ahead; /* what is updated, the counter and the rate are loaded ahead of the
                      wait: no kernel since the last full edge has written them */
} gx_weights_update;

/* Rows and columns of a tile of this shape. */
int gx_weights_rows(int shape);
int gx_weights_columns(int shape);
/* Whether there is a kernel of this shape for operands of such a type and such sizes: m
 * and lda, n and ldb are multiples of what is loaded of them at once. */
bool gx_weights_has(const gx_weights *weights);
/* Dynamic shared memory that a block of it needs. */
size_t gx_weights_shared_bytes(const gx_weights *weights);
/* Tiles of all layers. */
int64_t gx_weights_tiles(const gx_weights *weights);

/* One kernel; m, n and k are at least 1, k of no layer more than GX_WEIGHTS_MOST_ROWS,
 * and gx_weights_has holds. Operands, out and what is updated of weights begin at
 * multiples of 16 bytes, rows of the latter two behind each other. gx_weights_load and
 * _launch: out is not NULL; dbias may be. */
gx_status gx_weights_load(const gx_weights *weights, const gx_ctx *ctx,
                          gx_error *err) GX_MUST_CHECK;
gx_status gx_weights_launch(const gx_weights *weights, gx_ctx *ctx,
                            gx_error *err) GX_MUST_CHECK;
gx_status gx_weights_update_load(const gx_weights_update *update, const gx_ctx *ctx,
                                 gx_error *err) GX_MUST_CHECK;
gx_status gx_weights_update_launch(const gx_weights_update *update, gx_ctx *ctx,
                                   gx_error *err) GX_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
