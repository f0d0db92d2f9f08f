/* Parts of YAML text. */
#ifndef GX_EMIT_H
#define GX_EMIT_H

#include "graph_model.h"
#include "text.h"

/* A scalar that any YAML reader takes as this text: plain where that is safe, else in
 * double quotes. */
void gx_put_scalar(gx_text *text, const char *scalar);
void gx_put_init(gx_text *text, const gx_graph *graph, const gx_init *init);

#endif
