/* Inside the reader of models: what its files share. */
#ifndef GX_READER_H
#define GX_READER_H

#include "document.h"
#include "graph_model.h"
#include "name_map.h"

typedef struct gx_scope gx_scope; /* scope.h */

typedef struct gx_reader {
    gx_graph *graph;
    gx_diagnostics *list;
    const gx_catalogue *catalogue;
    const gx_load_options *options;
    gx_scope *top;
    gx_name_map *claims; /* every name that stands so far -> index in claim_pos */
    gx_pos *claim_pos;
    size_t n_claims, claims_capacity;
    gx_dim *batch; /* the dim that gx_load_options.batch_rows is for, or NULL */
    int64_t written_batch, batch_rows;
    int64_t n_turns; /* of all repeats */
    bool stopped;    /* a limit was passed: nothing more is read */
} gx_reader;

/* --- the keys of the format, level by level; each list ends with NULL --- */

extern const char *const gx_keys_model[];
extern const char *const gx_keys_expanded[]; /* of a model that is written out */
extern const char *const gx_keys_data[];
extern const char *const gx_keys_column[];
extern const char *const gx_keys_input[];
extern const char *const gx_keys_param[];
extern const char *const gx_keys_state[];
extern const char *const gx_keys_tensor[]; /* in an expanded model */
extern const char *const gx_keys_op[];     /* beside the fields of the row */
extern const char *const gx_keys_repeat[];
extern const char *const gx_keys_optimizer[]; /* beside the optimizer's name */
extern const char *const gx_keys_normal[];
extern const char *const gx_keys_fan[];
/* The words that a value may be. */
extern const char *const gx_words_precision[];
extern const char *const gx_words_dtype[];
extern const char *const gx_words_phase[];
extern const char *const gx_words_kind[]; /* of a tensor in an expanded model */
extern const char *const gx_words_expanded[];

/* --- looking at the document --- */

/* The value of a key, or NULL. */
const gx_doc *gx_doc_get(const gx_doc *map, const char *key);

/* False after a report "expected WHAT, found ...". */
bool gx_expect(gx_reader *reader, const gx_doc *doc, gx_doc_kind kind, const char *what);
/* False after reports of keys that are none of `keys`; `where` names the map. */
bool gx_check_keys(gx_reader *reader, const gx_doc *map, const char *const *keys,
                   const char *where);
/* "there is no KIND WORD", with the nearest of n words, or all of them. */
void gx_report_unknown(gx_reader *reader, gx_pos pos, const char *kind, const char *word,
                       const char *const *words, size_t n);
/* Index of the word, or -1 after a report. */
int gx_read_choice(gx_reader *reader, const gx_doc *doc, const char *const *words,
                   const char *what);
bool gx_read_real_doc(gx_reader *reader, const gx_doc *doc, double *value);
bool gx_read_int_doc(gx_reader *reader, const gx_doc *doc, int64_t *value);
bool gx_read_bool_doc(gx_reader *reader, const gx_doc *doc, bool *value);
/* A scalar that is not empty; NULL after a report. */
const char *gx_read_text_doc(gx_reader *reader, const gx_doc *doc, const char *what);
bool gx_read_shape_doc(gx_reader *reader, const gx_doc *doc, int *rank,
                       int64_t dim[GX_MAX_RANK]);

/* --- sections --- */

/* A tensor of `inputs`, `params`, `state` or `tensors`; its id or -1. `name` is
 * qualified. */
int32_t gx_read_tensor(gx_reader *reader, const char *name, gx_pos pos, const gx_doc *doc,
                       gx_value_kind kind);
void gx_read_tensors(gx_reader *reader, const gx_doc *model);
/* Where other rows than the written batch are asked for: finds the dim that is the batch.
 */
void gx_find_batch_rows(gx_reader *reader, const gx_doc *inputs, const gx_doc *data);
/* The batch dim is these rows from here on, or what was written again. Inputs have the
 * rows; what outlives a step, and so is shared with other programs, what was written. */
void gx_use_batch_rows(gx_reader *reader, bool use);
void gx_read_data(gx_reader *reader, const gx_doc *doc, const gx_doc *inputs);
void gx_read_ops(gx_reader *reader, const gx_doc *doc);
/* The fields of an optimizer or a metric, with names as `scope` has them. */
void gx_read_section(gx_reader *reader, const gx_doc *doc, gx_section *section);
/* The optimizer section; `doc` may be NULL. What stands beside the optimizer's own map
 * becomes fields too: "clip_norm", "accumulate", "master", "moments", "schedule"
 * (the kind), "schedule.SETTING", "loss_scale" and "loss_scale.SETTING",
 * "groups.N.params.K" and "groups.N.SETTING". */
void gx_read_optimizer(gx_reader *reader, const gx_doc *doc);

/* Puts what init.path was written as back: relative to the folder of the model. */
const char *gx_relative_path(const gx_graph *graph, const char *path);

#endif
