/* The head of a .npy file, and reading from any stream. */
#ifndef GX_NPY_H
#define GX_NPY_H

#include <stdbool.h>
#include <stdio.h>

#include <gexec/tensor.h>

typedef struct gx_npy {
    char type; /* 'f' float, 'i' signed, 'u' unsigned */
    int bytes; /* of an element */
    bool fortran;
    int rank;
    int64_t dim[GX_MAX_RANK];
    int64_t count; /* elements */
} gx_npy;

/* Reads the head alone, and checks that the file is as long as it says. */
gx_status gx_npy_head(const char *path, gx_npy *npy, gx_error *err) GX_MUST_CHECK;

/* gx_npy_read from a stream that can seek; `name` is for messages. */
gx_status gx_npy_read_stream(FILE *file, const char *name, gx_tensor *tensor,
                             gx_error *err) GX_MUST_CHECK;

#endif
