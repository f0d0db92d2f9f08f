/* Tensor maps: what the copy engine of sm_90 is told of a matrix. */
#ifndef GX_TENSOR_MAP_H
#define GX_TENSOR_MAP_H

#include <cuda.h>
#include <cudaTypedefs.h>

#include "launch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A matrix of f32, bf16 or f16 as it is stored. `data` and its rows, `ld` elements apart,
 * are aligned to 16 bytes. What lies outside of rows and columns is read as zero. */
typedef struct gx_mapped {
    const void *data;
    gx_dtype dtype;
    int64_t rows, columns, ld;
    int box_rows, box_columns; /* what one copy brings; a row of it has 128 bytes */
    bool to_tf32;              /* f32: rounded as it is copied */
} gx_mapped;

/* The driver's function, which is looked up and never linked: the program has to start
 * where there is no driver. Before any capture. */
gx_status gx_tensor_map_find(PFN_cuTensorMapEncodeTiled_v12000 *encode,
                             gx_error *err) GX_MUST_CHECK;

/* Writes the map, on the host alone: legal during capture. A box lies in shared memory in
 * the 128-byte swizzle. */
gx_status gx_tensor_map_encode(PFN_cuTensorMapEncodeTiled_v12000 encode,
                               const gx_mapped *matrix, CUtensorMap *map,
                               gx_error *err) GX_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
