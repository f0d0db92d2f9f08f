/* The builder inside: what the files that make a checked graph of a written one share. */
#ifndef GX_BUILDER_H
#define GX_BUILDER_H

#include "resolve.h"

/* What has reached a value on the way back; by value id. */
typedef struct gx_gradient {
    const char *sum;         /* the contributions added up so far; NULL: none */
    int n_expected, n_given; /* contributions */
    bool wanted;             /* a trained parameter lies behind the value */
    bool is_seed; /* that of the loss itself: 1, which is no value, or the scale
                     of the loss */
} gx_gradient;

/* Parameters that are updated with the same settings. */
typedef struct gx_param_group {
    gx_field_value *fields; /* settings of the row */
    int n_fields;
    bool has_rate; /* one of its own; else the section's */
    double rate;
    const char *rate_name;      /* the operand `lr` of its updates */
    bool used;                  /* a parameter of it is updated */
    int n_patterns, n_settings; /* written */
    gx_pos pos;
} gx_param_group;

/* In which type weights, or moments, are kept. */
typedef enum gx_kept { GX_KEPT_UNSAID, GX_KEPT_LIKE_PARAM, GX_KEPT_F32 } gx_kept;

/* The optimizer section, checked. */
typedef struct gx_training {
    const gx_op *op;        /* NULL: there is none, or a mistake was reported */
    gx_param_group *groups; /* [0]: parameters that no group names */
    size_t n_groups;
    int32_t *group_of; /* by value id, for the values that stood when it was read */
    size_t n_values;
    gx_field_value *schedule; /* fields of the row "schedule"; NULL: none */
    int n_schedule;
    int64_t accumulate;                            /* steps that make one update */
    const gx_field_value *accumulate_field, *clip; /* NULL: not written */
    gx_kept master, moments;
    const gx_field_value *scale; /* of the loss; NULL: none */
    bool dynamic;
    double first_scale;
    gx_field_value *scaling; /* fields of the row "loss_scale" */
    int n_scaling;
} gx_training;

/* Scratch memory lives in the graph's arena too, so that one check at the end sees that
 * memory ran out. */
struct gx_builder {
    gx_graph *graph;
    gx_diagnostics *list;
    gx_phase phase; /* of the nodes that are appended */
    bool written;   /* the node that is bound stands in the file */
    int32_t *order; /* ids of the nodes that the program has, in order */
    size_t n_order, order_capacity;
    gx_gradient *gradients; /* NULL outside the backward walk */
    size_t n_gradients;
    int32_t walked; /* the node whose gradient is being derived */
    gx_training training;
    double rate; /* of the optimizer, where has_rate */
    bool has_rate;
    size_t n_hints; /* searches for a nearest tensor name so far */
};

/* --- bind.c --- */

/* Finds the row, operands and attributes of a node and claims its outputs. False after a
 * report. */
bool gx_bind(gx_builder *builder, int32_t id);
/* Calls infer where every input has a shape; true when every output has one then. */
bool gx_infer(gx_builder *builder, int32_t id);
/* Reads one attribute's text; reports and returns false when it is not one. */
bool gx_read_attr(gx_builder *builder, const gx_field *field, const char *text,
                  gx_pos pos, gx_attr *attr);

/* --- bind_list.c --- */

/* The key is that of one item of a list: "axis.1" beside "axis.0". */
bool gx_is_list_item(const gx_node *node, const char *key);
/* The field whose list has this key, right or not; or NULL. */
const gx_field *gx_list_of(const gx_op *op, const char *key);
/* Reads a field that is a list, absent or not; reports and returns false where an item is
 * not an integer, or none of its words. */
bool gx_read_list(gx_builder *builder, int32_t id, const gx_field *field, gx_attr *attr);

/* --- bind.c again --- */

/* Of the values that stand, the name nearest to `name`, or NULL. */
const char *gx_nearest_value(gx_builder *builder, const char *name);

/* --- field.c --- */

/* The row's field of that name, or NULL; *index counts among tensors or among the others.
 */
const gx_field *gx_field_find(const gx_op *op, const char *name, int *index);
const char *gx_nearest_field(const gx_op *op, const char *name, bool tensors);

static inline bool gx_is_tensor_field(const gx_field *field)
{
    return field->kind == GX_FIELD_IN || field->kind == GX_FIELD_INOUT ||
           field->kind == GX_FIELD_OUT;
}

static inline bool gx_is_list_field(const gx_field *field)
{
    return field->kind == GX_FIELD_INTS || field->kind == GX_FIELD_WORDS;
}

/* The kind of tensor field `arg` of a row. */
gx_field_kind gx_arg_kind(const gx_op *op, int arg);
int gx_n_args(const gx_op *op);
/* Reports a required field that is not written; `kind` says what is expected. */
void gx_report_lack(gx_builder *builder, const gx_node *node, const gx_field *field,
                    const char *kind);
/* Reports a key that the row does not have. */
void gx_report_no_field(gx_builder *builder, const gx_node *node,
                        const gx_field_value *written);

/* --- builder.c --- */

void gx_builder_init(gx_builder *builder, gx_graph *graph, gx_diagnostics *list);
/* Binds, infers and expands one node, and puts it in order. False: a mistake was
 * reported, of this node or of one that it reads from. */
bool gx_builder_place(gx_builder *builder, int32_t id);
/* gx_builder_node with a place of its own for each field; pos is the node's. */
int32_t gx_builder_append(gx_builder *builder, const char *op, const char *name,
                          int32_t origin, const gx_field_value *fields, int n_fields,
                          gx_pos pos);

/* Reports a tensor or an op of that name, which the model must leave to gexec: `what`
 * says for which tensor of `of`. */
void gx_report_taken_name(gx_builder *builder, const char *name, const char *what,
                          const char *of);

/* --- backward.c --- */

/* Reports what the model calls by the name of a gradient that is derived. */
void gx_check_gradient_names(gx_builder *builder);
/* The loss that `graph->backward` names; -1 after a report. */
int32_t gx_find_loss(gx_builder *builder);
/* Derives the gradient of the loss for every trained parameter that leads to it. */
void gx_derive_backward(gx_builder *builder, int32_t loss);

/* --- program.c: what gexec adds around the model's own ops --- */

/* The data set on the device and its row list. */
void gx_add_data(gx_builder *builder);
/* A gather for each input that the data feeds. */
void gx_add_gathers(gx_builder *builder);
void gx_add_metrics(gx_builder *builder);
/* Chooses what is logged, and appends step.end where there is something to keep. */
void gx_add_step_end(gx_builder *builder);
/* Makes gexec's own state of that name when it is one and is not there yet. */
void gx_ensure_state(gx_builder *builder, const char *name);

/* A value that lives from step to step; -1 after a report. */
int32_t gx_add_state(gx_builder *builder, const char *name, gx_dtype dtype, int rank,
                     const int64_t *dim, gx_init init);

/* The metrics that training makes, where the gradients are: before the updates. The
 * section of the one that asks for `op`, or NULL. */
#define GX_METRIC_NORM "grad_norm"
#define GX_METRIC_SCALE "loss_scale"
#define GX_METRIC_SKIPPED "skipped"
const gx_section *gx_training_metric(const gx_graph *graph, const char *op);
/* A metric of that name is one of them. */
bool gx_is_training_metric(const gx_graph *graph, const char *name);

/* --- settings.c --- */

/* Checks the optimizer section, and takes its rate: into builder->training. */
void gx_check_optimizer(gx_builder *builder);

/* --- mixed_settings.c --- */

/* Takes a field of the optimizer section that is about mixed precision; false: it is not.
 */
bool gx_check_mixed(gx_builder *builder, const gx_field_value *field);
/* The type in which the moments of a parameter of that type are kept. */
gx_dtype gx_moment_type(const gx_builder *builder, gx_dtype param);

/* --- param_groups.c --- */

/* Gives each trained parameter that the patterns of the section name its group. */
void gx_check_groups(gx_builder *builder);
/* Reads one setting of the row, written in the section or in a group; false after a
 * report. */
bool gx_check_setting(gx_builder *builder, const gx_op *op, const gx_field_value *field);
bool gx_check_rate(gx_builder *builder, const gx_field_value *field, double *rate);

/* --- training.c --- */

/* Reports what the model calls by the name of state that the optimizer keeps. */
void gx_check_moment_names(gx_builder *builder);
/* Rates, sums of gradients, their norm, and one update for each trained parameter that
 * has a gradient; of all these what the model asks for. */
void gx_add_training(gx_builder *builder);

/* --- prune.c --- */

/* Takes backward and optimizer ops, and what reads from them, out of the order. */
void gx_drop_training(gx_builder *builder);
/* Marks what is named under outputs and keep. Where a mistake was found before, a name
 * that may be a derived one is not missed. */
void gx_mark_outputs(gx_builder *builder);
/* In an evaluation program leaves only forward ops that something asks for. */
void gx_prune(gx_builder *builder);
/* Readers, updates, fans, index limits; after the order is final. */
void gx_annotate(gx_graph *graph);

#endif
