/* Several layers one after the other in one launch: see chain.cu. */
#ifndef GX_CHAIN_H
#define GX_CHAIN_H

#include "gemm_tile.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Pieces of 16 columns that a block makes of each layer, pieces of 8 rows that a cluster
 * takes through all of them. */
#define GX_CHAIN_LIST(X) \
    X(0, 1, 1)           \
    X(1, 2, 1)           \
    X(2, 4, 1)           \
    X(3, 1, 2)           \
    X(4, 2, 2)           \
    X(5, 4, 2)
enum { GX_N_CHAINS = 6 };

/* out = act(a b + bias), or (a b) act'(saved) on the way back, where a is the out of the
 * layer before. */
typedef struct gx_chain_layer {
    const void *b;
    const void *other; /* bias [n], or on the way back `saved` [m, n]; NULL: none */
    void *out;         /* [m, n]; NULL: not kept */
    void *pre;         /* [m, n], what act is applied to; NULL: not kept */
    int n, k, ldb;     /* ldb: elements from row to row of b, as stored */
    int act;
} gx_chain_layer;

typedef struct gx_chain {
    const void *a; /* of the first layer, [m, k] */
    int m, n_layers;
    bool backward;
    bool trans_b;  /* each b is stored [n, k], else [k, n] */
    bool ragged;   /* rows of the first b, stored [n, k], do not begin at vectors of 4 */
    bool steady_b; /* no kernel since the last full edge has written the first b */
    gx_tile_math math;
    int shape; /* of GX_CHAIN_LIST */
    gx_chain_layer layer[GX_MAX_REPEATS];
} gx_chain;

typedef struct gx_chain_shape {
    int rows;    /* that a cluster takes */
    int columns; /* that a block makes */
    int at_once; /* neighbours among them that a thread loads at once */
} gx_chain_shape;

/* Lives as long as the program. */
const gx_chain_shape *gx_chain_shape_at(int shape);
/* Blocks of a cluster: as many as make the widest layer. */
int gx_chain_cluster(const gx_chain *chain);
/* k of the first layer up to which its b may be ragged. */
int gx_chain_ragged_k(const gx_chain *chain);
/* Dynamic shared memory that a block needs. */
size_t gx_chain_shared_bytes(const gx_chain *chain);

/* One kernel; m, n and k are at least 1, and a cluster is of GX_MAX_LARGE_CLUSTER at
 * most. Where b is stored [k, n], n and ldb are multiples of what a thread loads at once;
 * else k and ldb are of 4, but for a ragged first one. */
gx_status gx_chain_load(const gx_chain *chain, gx_error *err) GX_MUST_CHECK;
gx_status gx_chain_launch(const gx_chain *chain, gx_ctx *ctx,
                          gx_error *err) GX_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
