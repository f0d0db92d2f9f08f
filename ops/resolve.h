/* From a flat graph to a checked one: rows, shapes, gradients, the optimizer, the step.
 */
#ifndef GX_RESOLVE_H
#define GX_RESOLVE_H

#include "ops.h"

/* Binds every node, infers shapes, expands, derives the backward pass, appends optimizer,
 * metrics and step.end, prunes what the graph's kind does not need, and counts readers.
 * Reports every mistake it can find. Memory running out is seen in the arena. */
void gx_resolve(gx_graph *graph, gx_diagnostics *list);

/* Names of the state that gexec itself keeps; the evaluation program has its own. */
#define GX_STATE_STEP "gexec.step" /* i32 [1], steps done */
#define GX_STATE_LR "gexec.lr"     /* f32 [1] */
/* A group of parameters with a rate of its own has "gexec.lr.N", N from 1. What a step
 * makes: its rate under a schedule ("gexec.rate.N" of a group), the norm of all
 * gradients, and what clips them. */
#define GX_RATE "gexec.rate"
#define GX_GRADIENT_NORM "gexec.grad_norm"
#define GX_CLIP "gexec.clip"
/* The scale of the loss, a scalar; updates that were skipped; those made since the scale
 * changed; norm of the scaled gradients, and the number of the update, -1: none. */
#define GX_STATE_SCALE "gexec.scale"
#define GX_STATE_SKIPPED "gexec.skipped"
#define GX_STATE_TRACKER "gexec.growth_tracker"
#define GX_SCALED_NORM "gexec.scaled_norm"
#define GX_UNSCALE "gexec.unscale"
#define GX_UPDATE "gexec.update"
#define GX_STATE_SAMPLE "gexec.sample" /* i32 [1], next sample of the epoch */
#define GX_STATE_EPOCH "gexec.epoch"   /* i32 [1] */
#define GX_STATE_LOG "gexec.log"       /* f32 [GX_LOG_ROWS, GX_MAX_LOGGED] */
#define GX_EVAL_STEP "gexec.eval.step"
#define GX_EVAL_SAMPLE "gexec.eval.sample"
#define GX_EVAL_EPOCH "gexec.eval.epoch"
#define GX_EVAL_LOG "gexec.eval.log"
/* Data of input NAME is "data.NAME"; row lists are "data.train" and "data.held" (i32). */

/* --- for the hooks of rows --- */

gx_graph *gx_builder_graph(gx_builder *builder);

/* Appends a node in the current phase and resolves it at once; a field whose text is NULL
 * is left out. Returns its id or -1. The new node counts as derived from `origin`. */
int32_t gx_builder_node(gx_builder *builder, const char *op, const char *name,
                        int32_t origin, const gx_field_text *fields, size_t n_fields);

/* For expand: turns `node` itself into another op with these fields. It keeps its name
 * and its outputs, and stands after the nodes that were appended meanwhile. */
void gx_builder_rewrite(gx_builder *builder, int32_t node, const char *op,
                        const gx_field_text *fields, size_t n_fields);

/* Name of operand `arg` of a node, or NULL where it is absent. */
const char *gx_builder_operand(gx_builder *builder, int32_t node, int arg);

/* A list of integers as fields "key.0", "key.1", ...: fills `fields`, returns how many.
 */
size_t gx_builder_list(gx_builder *builder, const char *key, int n, const int64_t *list,
                       gx_field_text *fields);

/* A fresh name "stem.suffix", numbered when it is taken; in the graph's arena. */
const char *gx_builder_name(gx_builder *builder, const char *stem, const char *suffix);

/* Name of the gradient that has reached value `id`, or NULL: none flows there. Where it
 * was read more than once the contributions are added first. */
const char *gx_builder_gradient(gx_builder *builder, int32_t id);
/* The gradient is exactly 1, that of the loss itself, and no tensor: only rows that say
 * so meet it. */
bool gx_builder_is_one(const char *gradient);
/* True when a gradient for value `id` is wanted: it leads to a trained parameter. */
bool gx_builder_wants(gx_builder *builder, int32_t id);
/* The name under which a contribution to the gradient of `id` should be made. */
const char *gx_builder_gradient_name(gx_builder *builder, int32_t id);
/* The same name, or NULL where nobody wants that gradient. */
const char *gx_builder_wanted_name(gx_builder *builder, int32_t id);
/* Hands in value `gradient` as a contribution to the gradient of `id`. */
void gx_builder_contribute(gx_builder *builder, int32_t id, const char *gradient);
/* A mistake found while deriving, at the place of `node`. */
void gx_builder_report(gx_builder *builder, int32_t node, const char *format, ...)
    GX_PRINTF(3, 4);
/* Gives a node that stands already an optional output that it did not have. */
const char *gx_builder_add_output(gx_builder *builder, int32_t node, const char *key,
                                  const char *name);

#endif
