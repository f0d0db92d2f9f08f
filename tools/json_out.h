/* JSON, written: escaping, commas and nesting in one place. */
#ifndef GX_JSON_OUT_H
#define GX_JSON_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <gexec/status.h>

/* Bytes of the well-formed UTF-8 sequence at `bytes`, 0 where there is none. */
size_t gx_utf8_sequence(const char *bytes);

typedef struct gx_json gx_json;

gx_json *gx_json_create(void); /* NULL: out of memory */
void gx_json_free(gx_json *json);

/* `key` is NULL inside an array and for the document itself. Every call tolerates a
 * writer that is NULL or has run out of memory; gx_json_write reports that. */
void gx_json_object(gx_json *json, const char *key);
void gx_json_array(gx_json *json, const char *key);
void gx_json_end(gx_json *json); /* of the innermost object or array */
/* NULL text is null; bytes that are no UTF-8 become U+FFFD. */
void gx_json_text(gx_json *json, const char *key, const char *text);
/* NaN and infinities are null: JSON has no such numbers. */
void gx_json_real(gx_json *json, const char *key, double value);
/* A figure that counts as not measured below 0, and is null then. */
void gx_json_figure(gx_json *json, const char *key, double value);
void gx_json_integer(gx_json *json, const char *key, int64_t value);
void gx_json_bool(gx_json *json, const char *key, bool value);
void gx_json_reals(gx_json *json, const char *key, const double *values, size_t n);
void gx_json_shape(gx_json *json, const char *key, int rank, const int64_t *dim);

/* Microseconds with three decimals, exactly. */
void gx_json_us(gx_json *json, const char *key, int64_t ns);

/* A document that goes to `out` as it is made: what fails is told by ferror(out). With
 * `in_html` it may stand inside a script element. NULL: out of memory. */
gx_json *gx_json_stream(FILE *out, bool in_html);

/* Writes the document to `path` through a temporary file, or to standard output for "-".
 */
gx_status gx_json_write(gx_json *json, const char *path, gx_error *err) GX_MUST_CHECK;
/* The document in one line on standard output, for a reader that waits for it. */
gx_status gx_json_line(gx_json *json, gx_error *err) GX_MUST_CHECK;

#endif
