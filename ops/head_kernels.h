/* The end of a network in one kernel: its last product, bias, loss, the loss's
 * derivative and the bias's gradient; and the same behind a product that is there. */
#ifndef GX_HEAD_KERNELS_H
#define GX_HEAD_KERNELS_H

#include "launch.h"
#include "pointwise_loss_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gx_head_source {
    GX_HEAD_MEMORY, /* x is there */
    GX_HEAD_PLAIN,  /* x = a b + bias, f32 sums on the ordinary cores */
    GX_HEAD_TENSOR, /* the same on the tensor cores, f32 rounded to tf32 */
} gx_head_source;

/* Shapes by source: rows of a block, columns of a block, warps. All columns of a row of
 * a softmax are in one block; GX_HEAD_MEMORY takes as many columns as there are then. */
#define GX_HEAD_MEMORY_LIST(X) \
    X(0, 16, 32, 16)           \
    X(1, 64, 32, 16)           \
    X(2, 256, 32, 16)
#define GX_HEAD_PLAIN_LIST(X) \
    X(0, 16, 16, 16)          \
    X(1, 16, 32, 16)          \
    X(2, 16, 128, 8)
#define GX_HEAD_TENSOR_LIST(X) \
    X(0, 16, 16, 16)           \
    X(1, 32, 16, 16)           \
    X(2, 64, 16, 16)           \
    X(3, 16, 32, 16)           \
    X(4, 16, 64, 8)            \
    X(5, 16, 128, 8)

typedef struct gx_head_shape {
    int rows, columns, warps;
} gx_head_shape;

/* Outputs are NULL where not wanted. */
typedef struct gx_head {
    gx_head_source source;
    int shape; /* of the source's list */
    int64_t rows, columns;
    gx_dtype dtype;
    const void *x; /* GX_HEAD_MEMORY */
    /* the product: elements from row to row and from column to column */
    int64_t k;
    const void *a, *b;
    int64_t a_row, a_k, b_k, b_column;
    bool steady_b;    /* no kernel since the last full edge has written b */
    const void *bias; /* or NULL */
    void *out;        /* product + bias */
    /* the loss */
    bool is_softmax;
    const int32_t *labels;
    bool ignores, counts; /* counts: the rows that are left are what is divided by */
    int32_t ignored;
    float smoothing;
    gx_pointwise_kind kind;
    const void *target;
    gx_dtype target_dtype; /* f32 or like x */
    double share;          /* of a row or an element in the loss, if none is ignored */
    float *loss;
    void *dx, *dbias;
    /* what several blocks leave for the last of them */
    double *partial_loss; /* [blocks] */
    float *partial_bias;  /* [row tiles, columns] */
    unsigned *ticket;     /* 0; NULL: nothing is added up over blocks */
} gx_head;

/* Shapes that a source has, and one of them. */
int gx_head_n_shapes(gx_head_source source);
gx_head_shape gx_head_shape_of(gx_head_source source, int shape);
/* Blocks down the rows, and all. */
int64_t gx_head_row_tiles(const gx_head *head);
int64_t gx_head_blocks(const gx_head *head);
size_t gx_head_shared_bytes(const gx_head *head);

/* Of no size zero. One launch. GX_HEAD_TENSOR: a and b are aligned to 16 bytes, a_k is 1
 * and k a multiple of 4; b_k is 1, or b_column is 1 and b_k and columns are even. Lines
 * along k, if there are two, begin multiples of 4 elements apart. */
gx_status gx_head_load(const gx_head *head, gx_error *err) GX_MUST_CHECK;
gx_status gx_head_launch(const gx_head *head, gx_ctx *ctx, gx_error *err) GX_MUST_CHECK;

/* The kernels of head_product.cu, and NULL for a shape that is none. */
const void *gx_head_tensor_kernel(const gx_head *head);
const void *gx_head_plain_kernel(const gx_head *head);

#ifdef __cplusplus
}
#endif
#endif
