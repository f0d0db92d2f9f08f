/* Shared by the files that read .npy. */
#ifndef GX_NPY_HEAD_H
#define GX_NPY_HEAD_H

#include "npy.h"

/* Opens a plain file to read; the caller closes it. */
gx_status gx_npy_open(const char *path, FILE **file, gx_error *err) GX_MUST_CHECK;

/* Leaves the stream at the first byte of the data, which is all that is left of it. */
gx_status gx_npy_head_stream(FILE *file, const char *name, gx_npy *npy,
                             gx_error *err) GX_MUST_CHECK;

#endif
