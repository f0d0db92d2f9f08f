/* A YAML document as a tree in which everything knows where it stands.
 *
 * Scalars are text: nothing is typed by its looks. An alias is the node that it names, so
 * the tree may share branches; it has no cycles, and its size counts each branch as often
 * as it is met. */
#ifndef GX_DOCUMENT_H
#define GX_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena.h"
#include "diagnostics.h"

typedef enum gx_doc_kind { GX_DOC_SCALAR, GX_DOC_LIST, GX_DOC_MAP } gx_doc_kind;

typedef struct gx_doc gx_doc;

struct gx_doc {
    gx_doc_kind kind;
    bool quoted; /* a scalar in quotes, or a block scalar */
    gx_pos pos;
    const char *text;    /* scalar */
    size_t n;            /* items, or pairs */
    const gx_doc **item; /* list; map: values */
    const char **key;    /* map: no two are equal */
    gx_pos *key_pos;
    int height;       /* levels of lists and maps, from 0 for a scalar */
    int64_t expanded; /* nodes, with what aliases stand for */
};

/* Reads one document. NULL after a report: not YAML, empty, more than one document, keys
 * that stand twice, something that the format leaves out (tags, merge keys), or a limit
 * of graph_model.h. NULL without a report: memory is out. */
const gx_doc *gx_document_read(gx_arena *arena, const char *text, size_t length,
                               gx_diagnostics *list);
/* The same of a document that is no model: `expected` says what an empty one should be.
 */
const gx_doc *gx_document_read_as(gx_arena *arena, const char *text, size_t length,
                                  const char *expected, gx_diagnostics *list);

/* "text", "a list", "a map", "nothing". */
const char *gx_doc_what(const gx_doc *doc);

#endif
