/* A text that grows. */
#ifndef GX_TEXT_H
#define GX_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include <gexec/status.h>

/* Start with { 0 }; free(text.bytes), or hand it on. */
typedef struct gx_text {
    char *bytes; /* NUL-terminated; NULL while nothing was added */
    size_t length, capacity;
    bool failed; /* memory ran out: the text is not whole */
} gx_text;

void gx_text_add(gx_text *text, const char *bytes, size_t length);
void gx_text_put(gx_text *text, const char *words);
void gx_text_format(gx_text *text, const char *format, ...) GX_PRINTF(2, 3);

/* The bytes, never NULL unless memory ran out, which frees them. The caller frees. */
char *gx_text_take(gx_text *text);

#endif
