/* Initialisers, read from the document. */
#ifndef GX_INIT_H
#define GX_INIT_H

#include "document.h"
#include "reader.h"

bool gx_read_init(gx_reader *reader, const gx_doc *doc, gx_init *init);
/* From the path alone, as `from:` gives it. */
bool gx_read_init_path(gx_reader *reader, const gx_doc *doc, gx_init *init);

/* The words that the format knows, by gx_init_kind; NULL past the end. */
const char *gx_init_word(size_t i);

#endif
