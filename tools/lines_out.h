/* Text of any format that is made whole before its file is touched. */
#ifndef GX_LINES_OUT_H
#define GX_LINES_OUT_H

#include <stdio.h>

#include <gexec/gexec.h>

typedef struct gx_lines_out {
    FILE *out; /* what is written here is kept in memory */
    char *bytes;
    size_t length;
} gx_lines_out;

/* Undone by gx_lines_end, which is owed only where this succeeded. */
gx_status gx_lines_begin(gx_lines_out *lines, gx_error *err) GX_MUST_CHECK;
/* gx_lines_write of what was written. */
gx_status gx_lines_end(gx_lines_out *lines, const char *path,
                       gx_error *err) GX_MUST_CHECK;

/* Writes the text and a line break to `path` through a temporary file, or to standard
 * output for "-". */
gx_status gx_lines_write(const char *path, const char *bytes, size_t length,
                         gx_error *err) GX_MUST_CHECK;

/* A field of CSV between quotes (RFC 4180). */
void gx_lines_quote(const char *text, FILE *out);

#endif
