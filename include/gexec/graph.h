/* A model: loaded from YAML or built in code, checked, expanded, and then read-only. */
#ifndef GEXEC_GRAPH_H
#define GEXEC_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <gexec/op.h>
#include <gexec/status.h>
#include <gexec/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gx_graph gx_graph;

/* Which program of a model: training has backward and optimizer where the model asks for
 * them; evaluation has the forward ops, the metrics and the held-out rows alone. A model
 * without `backward` gives the same ops for both. */
typedef enum gx_kind { GX_TRAIN, GX_EVAL } gx_kind;

/* --- diagnostics: every mistake that one pass over a file can find --- */

typedef struct gx_diagnostics gx_diagnostics;

typedef struct gx_diagnostic {
    int line; /* from 1; 0 when the mistake has no place, as in a graph built in code */
    int column;
    const char *message;
    const char *source; /* the line itself, or "" */
} gx_diagnostic;

GX_API gx_diagnostics *gx_diagnostics_create(void); /* NULL: out of memory */
GX_API void gx_diagnostics_free(gx_diagnostics *diagnostics);
GX_API size_t gx_diagnostics_count(const gx_diagnostics *diagnostics);
/* The i-th by position; strings live as long as the list, and are empty beyond its end.
 */
GX_API gx_diagnostic gx_diagnostics_at(const gx_diagnostics *diagnostics, size_t i);
/* "file:line:column: message", the line itself and a caret, for all; the caller frees. */
GX_API char *gx_diagnostics_text(const gx_diagnostics *diagnostics);

/* --- loading --- */

/* One `--set name=value`. */
typedef struct gx_set {
    const char *name;
    const char *value;
} gx_set;

/* Where the rows of a data set are: on the device, from which each step gathers its
 * batch; or in host memory, from which the host gathers batches and copies them ahead of
 * the steps. */
typedef enum gx_streaming {
    GX_STREAM_AS_WRITTEN, /* as `data: {stream: }` says; `auto` is on the device: whether
                             it fits there is what gx_data_fits tells */
    GX_STREAM_ON,
    GX_STREAM_OFF
} gx_streaming;

typedef struct gx_load_options {
    gx_kind kind;
    const gx_set *sets; /* overrides of dims; a name that is no dim is a diagnostic */
    size_t n_sets;
    const char *const *keep; /* tensors to keep readable as if named under `outputs` */
    size_t n_keep;
    bool keep_gradients; /* keep the gradient "NAME.grad" of every parameter NAME */
    /* 0: as written. Else the rows that a step takes from the data, as for a last batch
     * that is not full: the shapes of inputs have it in place of the batch dim.
     * Parameters, state, other dims and counts of repeats keep what the written batch
     * gives them, so that the program shares its state with the one of whole batches. */
    int64_t batch_rows;
    gx_streaming stream; /* whether rows of the data stream, whatever the model says */
} gx_load_options;

/* Reads, checks and expands the model in `path`. `options` may be NULL: training, no
 * sets. On failure *graph is NULL, `err` holds the first mistake, and `diagnostics` (may
 * be NULL) all of them. The caller frees the graph. */
GX_API gx_status gx_graph_load(const char *path, const gx_load_options *options,
                               gx_graph **graph, gx_diagnostics *diagnostics,
                               gx_error *err) GX_MUST_CHECK;

/* The same from memory. `name` stands for the file in messages; `folder` is where
 * relative paths of the model start ("." when NULL). */
GX_API gx_status gx_graph_parse(const char *text, size_t length, const char *name,
                                const char *folder, const gx_load_options *options,
                                gx_graph **graph, gx_diagnostics *diagnostics,
                                gx_error *err) GX_MUST_CHECK;

GX_API void gx_graph_free(gx_graph *graph);

/* --- building in code: create, add, finish; then as if loaded --- */

/* A field of an op as text, as YAML would have it: {"epilogue.bias", "b1"}. */
typedef struct gx_field_text {
    const char *key;
    const char *text;
} gx_field_text;

typedef enum gx_role { GX_ROLE_INPUT, GX_ROLE_PARAM } gx_role;

/* `precision` is "f32", "tf32", "bf16" or "f16"; strings are copied by all of these. */
GX_API gx_status gx_graph_create(const char *name, const char *precision,
                                 gx_graph **graph, gx_error *err) GX_MUST_CHECK;
/* `init` is an initialiser as in YAML, such as "he_normal" or "normal: {std: 0.02}"; NULL
 * for zeros. */
GX_API gx_status gx_graph_add_tensor(gx_graph *graph, gx_role role, const char *name,
                                     gx_dtype dtype, int rank, const int64_t *dim,
                                     const char *init, gx_error *err) GX_MUST_CHECK;
GX_API gx_status gx_graph_add_op(gx_graph *graph, const char *op, const char *name,
                                 const gx_field_text *fields, size_t n_fields,
                                 gx_error *err) GX_MUST_CHECK;
GX_API gx_status gx_graph_set_backward(gx_graph *graph, const char *loss,
                                       gx_error *err) GX_MUST_CHECK;
/* What the YAML has beside the optimizer's map is a field too: "clip_norm", "accumulate",
 * {"schedule", "cosine"}, "schedule.steps", {"loss_scale", "dynamic"},
 * "loss_scale.initial", {"master", "f32"}, "groups.0.params.0", "groups.0.lr". */
GX_API gx_status gx_graph_set_optimizer(gx_graph *graph, const char *op,
                                        const gx_field_text *fields, size_t n_fields,
                                        gx_error *err) GX_MUST_CHECK;
GX_API gx_status gx_graph_add_metric(gx_graph *graph, const char *name,
                                     const gx_field_text *fields, size_t n_fields,
                                     gx_error *err) GX_MUST_CHECK;
GX_API gx_status gx_graph_add_output(gx_graph *graph, const char *name,
                                     gx_error *err) GX_MUST_CHECK;
/* Checks and expands what was added, for `kind`. */
GX_API gx_status gx_graph_finish(gx_graph *graph, gx_kind kind,
                                 gx_diagnostics *diagnostics,
                                 gx_error *err) GX_MUST_CHECK;

/* --- inspection; strings live as long as the graph --- */

typedef enum gx_value_kind {
    GX_VALUE_INPUT, /* given from outside, or gathered from data */
    GX_VALUE_PARAM, /* trained */
    GX_VALUE_STATE, /* lives from step to step: moments, counters, the log */
    GX_VALUE_DATA,  /* a data set on the device, read only */
    GX_VALUE_TEMP   /* made by an op */
} gx_value_kind;

typedef struct gx_value_info {
    const char *name;
    gx_value_kind kind;
    gx_dtype dtype;
    int rank;
    int64_t dim[GX_MAX_RANK];
    bool is_output; /* named under `outputs`, or read by the caller of a finished graph */
    bool trainable; /* a parameter, and not declared `trainable: false` */
    bool fed;       /* an input that the data section feeds */
    int line;       /* where it stands in the file; 0 when derived */
} gx_value_info;

typedef enum gx_phase {
    GX_PHASE_FORWARD,
    GX_PHASE_BACKWARD,
    GX_PHASE_OPTIMIZER,
    GX_PHASE_STEP /* counters and the log */
} gx_phase;

typedef struct gx_node_info {
    const char *name;
    const gx_op *op;
    gx_phase phase;
    double flops;
    double bytes; /* each operand once, one updated in place twice */
    int line;
} gx_node_info;

GX_API const char *gx_graph_name(const gx_graph *graph);
GX_API const char *gx_graph_precision(const gx_graph *graph);
GX_API gx_kind gx_graph_kind(const gx_graph *graph);
/* What a dim of the model came to; -1 where it has none of this name. */
GX_API int64_t gx_graph_dim(const gx_graph *graph, const char *name);
GX_API size_t gx_graph_value_count(const gx_graph *graph);
GX_API gx_value_info gx_graph_value(const gx_graph *graph, size_t i);
/* True when an op of the optimizer writes value i. */
GX_API bool gx_graph_updates(const gx_graph *graph, size_t i);
/* Index of a value by name, or -1. */
GX_API ptrdiff_t gx_graph_find(const gx_graph *graph, const char *name);
GX_API size_t gx_graph_node_count(const gx_graph *graph);
GX_API gx_node_info gx_graph_node(const gx_graph *graph, size_t i);

/* The data section, resolved; rows are 0 where the model has none. */
typedef struct gx_data_info {
    int64_t n_train; /* rows of split 0, or all */
    int64_t n_held;  /* rows of split 1 */
    int64_t batch;
    int epochs; /* 0 when the model names none */
    bool shuffle;
    bool drop_last;
    const char *batch_dim; /* the dim symbol that is the batch, or NULL */
    bool streams;          /* the host feeds each step */
    bool stream_auto;      /* the model leaves it open: `stream: auto`, or nothing */
} gx_data_info;
GX_API gx_data_info gx_graph_data(const gx_graph *graph);
/* The files that a model reads beside its own: data and split (`is_data`), and initial
 * values. `path` is NULL beyond the end, and where an i stands for nothing. */
typedef struct gx_file_info {
    const char *path;
    bool is_data;
} gx_file_info;
GX_API size_t gx_graph_file_count(const gx_graph *graph);
GX_API gx_file_info gx_graph_file(const gx_graph *graph, size_t i);

/* The scalars that each step writes to the log, in column order: the loss, scalar
 * outputs, metrics. i beyond the end gives NULL. */
GX_API const char *gx_graph_logged(const gx_graph *graph, size_t i);
/* How values of several steps become one: what one batch of all their rows would have.
 * The mean, weighted by the rows of each step, or by those that count where a loss has
 * `ignore_index` (gx_graph_logged_labels); for a perplexity the exponential of such a
 * mean of the loss; for what is a sum over the rows, as a loss with `reduction: sum`, the
 * sum. Where none of them gives that, as for a sum and a mean in one loss, a maximum or a
 * square of a mean, the mean of the steps, each counting the same. */
typedef enum gx_average {
    GX_AVERAGE_MEAN,
    GX_AVERAGE_EXP_OF_MEAN_LOG,
    GX_AVERAGE_SUM,
    GX_AVERAGE_STEPS
} gx_average;
GX_API gx_average gx_graph_logged_average(const gx_graph *graph, size_t i);
/* The input whose labels say which rows count in column i, for gx_state_count_labels;
 * NULL: all do. A step in which none counts tells nan, and has no weight. */
GX_API const char *gx_graph_logged_labels(const gx_graph *graph, size_t i);
enum { GX_MAX_LOGGED = 6, GX_LOG_ROWS = 4096 };
/* The learning rate that the optimizer starts with; 0 when there is none. Groups of
 * parameters may have others: state "gexec.lr.N". */
GX_API double gx_graph_rate(const gx_graph *graph);
/* Steps whose gradients one update takes the mean of: the one whose number, counted from
 * 1, is a multiple updates. 1: each step does. */
GX_API int64_t gx_graph_accumulate(const gx_graph *graph);

/* The graph as YAML that loads again to the same graph (every repeat, derived gradient
 * and optimizer step written out), or as a DOT digraph; the caller frees. NULL: out of
 * memory. */
GX_API char *gx_graph_yaml(const gx_graph *graph);
GX_API char *gx_graph_dot(const gx_graph *graph);

/* Seconds that reading took and that checking took, for the cost ledger. */
GX_API void gx_graph_times(const gx_graph *graph, double *parse_s, double *check_s);

#ifdef __cplusplus
}
#endif
#endif
