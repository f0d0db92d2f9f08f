/* The YAML that plan files and the plan cache are made of. */
#ifndef GX_PLAN_DOC_H
#define GX_PLAN_DOC_H

#include "document.h"
#include "plan.h"
#include "text.h"

/* --- reading; what does not fit is reported and gives false or NULL --- */

/* Reads and parses a file; `list` gets its text as source. GX_ERR_READ where it cannot be
 * read, GX_ERR_MODEL where it is not such a document; `expected` says what an empty one
 * should be. */
gx_status gx_plan_doc_load(const char *path, const char *expected, gx_arena *arena,
                           gx_diagnostics *list, const gx_doc **doc,
                           gx_error *err) GX_MUST_CHECK;

/* A map whose keys are all among `keys` (ends with NULL; NULL: any). */
bool gx_plan_doc_is_map(gx_diagnostics *list, const gx_doc *doc, const char *what,
                        const char *const *keys);
/* NULL where the map does not have it. */
const gx_doc *gx_plan_doc_get(const gx_doc *map, const char *key);
/* These report a key that is missing. */
const char *gx_plan_doc_text(gx_diagnostics *list, const gx_doc *map, const char *key);
bool gx_plan_doc_int(gx_diagnostics *list, const gx_doc *map, const char *key,
                     int64_t *value);
bool gx_plan_doc_bool(gx_diagnostics *list, const gx_doc *map, const char *key,
                      bool *value);

/* How an alternative is to run: what cache and plan file both keep of it. */
typedef struct gx_choice_fields {
    double us;
    int64_t n_launches, workspace_bytes;
    bool has_algo;
    unsigned char algo[GX_ALGO_BYTES];
} gx_choice_fields;
bool gx_plan_doc_choice(gx_diagnostics *list, const gx_doc *map,
                        gx_choice_fields *fields);

/* Whether the map `device` describes this device; reports the first thing that differs.
 */
bool gx_plan_doc_same_device(gx_diagnostics *list, const gx_doc *map,
                             const gx_device_info *device);

/* --- writing --- */

void gx_plan_doc_quote(gx_text *text, const char *words);
void gx_plan_doc_put_real(gx_text *text, double value);
void gx_plan_doc_put_device(gx_text *text, const gx_device_info *device);
/* "us: 3.5, launches: 1, workspace: 0[, algo: ...]" */
void gx_plan_doc_put_choice(gx_text *text, const gx_choice_fields *fields);

/* Writes a file beside `path` and renames it. Frees the text. */
gx_status gx_plan_doc_save(const char *path, gx_text *text, gx_error *err) GX_MUST_CHECK;

#endif
