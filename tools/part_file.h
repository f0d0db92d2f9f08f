/* A file that appears under its name when it is whole. */
#ifndef GX_PART_FILE_H
#define GX_PART_FILE_H

#include <stdio.h>

#include "beside.h"

typedef struct gx_part_file {
    FILE *out;
    gx_beside beside; /* unused for "-", standard output */
} gx_part_file;

gx_status gx_part_open(gx_part_file *file, const char *path, gx_error *err) GX_MUST_CHECK;
/* Gives the file its name where `st`, which is handed on, is GX_OK; else removes it. To
 * be called once after gx_part_open, whatever that gave. */
gx_status gx_part_close(gx_part_file *file, gx_status st, gx_error *err) GX_MUST_CHECK;

#endif
