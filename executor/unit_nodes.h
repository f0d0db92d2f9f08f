/* Whose the nodes of a captured graph are, and whether each unit added what it promised.
 * Only with CUDA.
 *
 * Work that went to another stream than the captured one adds no node, and would run now,
 * at each capture, instead of at each replay. Asking the driver for the number of nodes
 * behind each unit tells, but takes longer the more there are; so a capture only notes
 * behind each unit where its stream stands, and when it is done finds these places in the
 * list of the nodes. Where something is not as promised it is captured again, and asks.
 */
#ifndef GX_UNIT_NODES_H
#define GX_UNIT_NODES_H

#include "capture.h"
#include "exec_model.h"

/* The end of a unit, or of a branch with what decides it, among the nodes of its graph.
 */
typedef struct gx_unit_end {
    size_t unit;      /* GX_NO_UNIT: a branch */
    size_t body;      /* the branch in whose body it is, from 1; 0: in none */
    const void *last; /* what its stream goes on from, see gx_record_last */
    size_t n_nodes;   /* up to here; while nothing is asked, once it was settled */
} gx_unit_end;

#define GX_NO_UNIT SIZE_MAX

typedef struct gx_unit_nodes {
    gx_exec *exec;
    bool asks;         /* behind each unit */
    gx_unit_end *ends; /* in the order in which they were captured */
    size_t n_ends;
    int *seen;              /* by unit: what its first capture added; -1: none yet */
    size_t n_steps, n_body; /* while it asks: nodes so far, and of the current body */
    size_t n_settled;       /* ends up to that of the last body that was settled */
} gx_unit_nodes;

/* For so many steps of the program in one graph. Freed also after a failure. */
gx_status gx_unit_nodes_open(gx_unit_nodes *nodes, gx_exec *exec, int n_steps,
                             gx_error *err) GX_MUST_CHECK;
void gx_unit_nodes_close(gx_unit_nodes *nodes);

/* Before each capture. */
void gx_unit_nodes_begin(gx_unit_nodes *nodes, bool asks);
/* A body is captured next. */
void gx_unit_nodes_enter(gx_unit_nodes *nodes);
/* Behind a unit or a branch that was captured on `stream`. Where it asks, and more or
 * fewer nodes came than were promised, the capture fails. */
gx_status gx_unit_nodes_end(gx_unit_nodes *nodes, size_t unit, size_t body, void *stream,
                            gx_error *err) GX_MUST_CHECK;

/* Finds in the nodes of a body, or of the steps (0), what was noted in a capture that did
 * not ask; bodies in their order. *kept becomes false where a unit has not added what it
 * promised, or not `n_more` nodes stand behind the last. */
gx_status gx_unit_nodes_settle(gx_unit_nodes *nodes, size_t body,
                               const gx_node_list *list, size_t n_more, bool *kept,
                               gx_error *err) GX_MUST_CHECK;
/* What captures have seen of the units that promise nothing is what they promise from now
 * on: after a capture that was found to be good. */
void gx_unit_nodes_learn(const gx_unit_nodes *nodes);
/* The unit that captured the node, by its place in the list; GX_NO_UNIT: none did. */
size_t gx_unit_nodes_unit(const gx_unit_nodes *nodes, size_t body, size_t node);
/* Who captured it, as a text for messages. */
const char *gx_unit_nodes_owner(const gx_unit_nodes *nodes, size_t body, size_t node);

#endif
