/* The list of mistakes that one pass over a model finds. */
#ifndef GX_DIAGNOSTICS_H
#define GX_DIAGNOSTICS_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <gexec/graph.h>

/* A place in the file, from 1; line 0: no place. */
typedef struct gx_pos {
    int32_t line;
    int32_t column;
} gx_pos;

/* Gives the list the file's name and text (copied), for "file:line:column" and the line.
 */
void gx_diagnostics_source(gx_diagnostics *list, const char *file, const char *text,
                           size_t length);

/* Adds a mistake. After GX_MAX_DIAGNOSTICS (50) only the count goes on. */
void gx_report(gx_diagnostics *list, gx_pos pos, const char *format, ...) GX_PRINTF(3, 4);

/* Fills `err` with the first mistake by position, as "file:line:column: message", or,
 * where there is none, returns GX_OK. */
gx_status gx_diagnostics_status(const gx_diagnostics *list, gx_error *err);

/* Of `names` (n of them) the one nearest to `name` by edit distance, or NULL when none is
 * near enough to be worth naming. */
const char *gx_nearest(const char *name, const char *const *names, size_t n);

#endif
