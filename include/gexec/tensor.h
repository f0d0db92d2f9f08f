/* Types, shapes, and a view of a tensor's memory. */
#ifndef GEXEC_TENSOR_H
#define GEXEC_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <gexec/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* type, name in YAML, bytes of an element */
#define GX_DTYPE_LIST(X)                                                       \
    X(GX_F32, "f32", 4)                                                        \
    X(GX_BF16, "bf16", 2)                                                      \
    X(GX_I32, "i32", 4)                                                        \
    X(GX_F64, "f64", 8) /* host only: how the CPU device holds every tensor */ \
    X(GX_F16, "f16", 2) /* IEEE half precision */

typedef enum gx_dtype {
#define GX_DTYPE_ENUM(type, name, bytes) type,
    GX_DTYPE_LIST(GX_DTYPE_ENUM)
#undef GX_DTYPE_ENUM
        GX_N_DTYPES
} gx_dtype;

enum { GX_MAX_RANK = 8 };

/* Row-major, contiguous. Rank 0 is a scalar of one element. Sizes are 0 or more. */
typedef struct gx_tensor {
    gx_dtype dtype;
    int rank;
    int64_t dim[GX_MAX_RANK];
    void *data; /* host or device, as the function that takes it says */
} gx_tensor;

GX_API const char *gx_dtype_name(gx_dtype dtype);
GX_API size_t gx_dtype_bytes(gx_dtype dtype);

/* Elements of a tensor; 1 for rank 0; INT64_MAX where there are more. */
GX_API int64_t gx_count(const gx_tensor *tensor);

/* "[64, 256]" into `text`, cut at `size`; returns `text`. A rank that no tensor has is
 * said, and `dim` is not read. */
GX_API char *gx_shape_text(int rank, const int64_t *dim, char *text, size_t size);

/* Same rank and sizes; false for a rank that no tensor has. */
GX_API bool gx_same_shape(const gx_tensor *a, const gx_tensor *b);

/* What an op computes on: f32, bf16 or f16. */
GX_API bool gx_is_float(gx_dtype dtype);

/* Round to nearest, ties to even; NaN stays NaN. f16 has subnormals, and what is half a
 * step beyond its largest number, 65504, becomes an infinity. */
GX_API uint16_t gx_bf16_from_float(float value);
GX_API float gx_bf16_to_float(uint16_t bits);
GX_API uint16_t gx_f16_from_float(float value);
GX_API float gx_f16_to_float(uint16_t bits);

/* `value` as a tensor of `dtype` would hold it: rounded once. */
GX_API double gx_round_to(gx_dtype dtype, double value);

/* Reads a .npy file (versions 1 to 3, C or Fortran order, little-endian f2 f4 f8 i1 i4 i8
 * u1) into a new tensor in C order: floats as GX_F32 (f8 as GX_F64), integers as GX_I32;
 * an i8 that does not fit is GX_ERR_DATA. tensor->data is malloc'd and the caller's. */
GX_API gx_status gx_npy_read(const char *path, gx_tensor *tensor,
                             gx_error *err) GX_MUST_CHECK;
/* Writes f2, f4, f8 or i4 (bf16 as f4), through a temporary file that is renamed at the
 * end. Links are followed and an older file's mode is kept; what is no file, such as a
 * pipe, is written to. */
GX_API gx_status gx_npy_write(const char *path, const gx_tensor *tensor,
                              gx_error *err) GX_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
