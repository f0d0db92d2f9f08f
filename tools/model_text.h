/* The text of a model, read once however often it is parsed: a pipe gives it once. */
#ifndef GX_MODEL_TEXT_H
#define GX_MODEL_TEXT_H

#include <gexec/gexec.h>

typedef struct gx_model_text {
    char *bytes; /* NULL: not read yet */
    size_t length;
    char *folder; /* where paths of the model start */
} gx_model_text;

/* Reads `path` where that was not done. `name` is the model as the command line has it:
 * what lies under /dev or /proc is a stream, whose paths start in the current folder. */
gx_status gx_model_text_read(gx_model_text *text, const char *path, const char *name,
                             gx_error *err) GX_MUST_CHECK;
void gx_model_text_free(gx_model_text *text);

/* True when `path` is what standard input is. */
bool gx_is_standard_input(const char *path);

#endif
