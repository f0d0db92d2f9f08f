/* The rows of a .npy file, read where they lie: of a file that is larger than memory too.
 */
#ifndef GX_NPY_ROWS_H
#define GX_NPY_ROWS_H

#include "npy.h"

typedef struct gx_npy_rows {
    gx_npy head;               /* as they are read here: never column-major */
    const unsigned char *data; /* row-major, little-endian */
    void *mapping;
    size_t mapped_bytes;
    void *copy; /* of a file that is column-major or cannot be mapped; NULL: none */
} gx_npy_rows;

/* Maps the file, which must not change while it is open. A column-major one, and one that
 * cannot be mapped, is read into host memory as a whole. */
gx_status gx_npy_rows_open(const char *path, gx_npy_rows *rows,
                           gx_error *err) GX_MUST_CHECK;
/* What a failed open left is taken too. */
void gx_npy_rows_close(gx_npy_rows *rows);

/* The type in which elements lie as they are in the file: GX_F32, GX_F64 or GX_I32;
 * GX_N_DTYPES where they must be converted. */
gx_dtype gx_npy_rows_dtype(const gx_npy_rows *rows);
/* Elements [first, first + n) as doubles, which hold each of them (an i8 beyond 2^53 is
 * rounded). */
void gx_npy_rows_get(const gx_npy_rows *rows, int64_t first, int64_t n, double *out);

#endif
