/* The plan: selection (which alternative runs each group) and layout (order, lanes,
 * lifetimes, one arena). Pure data; exec.c binds it to memory. */
#ifndef GX_PLAN_H
#define GX_PLAN_H

#include "device.h"

typedef struct gx_rejected {
    const char *alternative;
    double us; /* < 0: not measured */
    const char *reason;
} gx_rejected;

/* One unit: consecutive nodes [first_node, first_node + n_nodes) that one alternative
 * runs; on the CPU a unit is one node and `alternative` is NULL. */
typedef struct gx_unit {
    int32_t first_node, n_nodes;
    const gx_alternative *alternative;
    gx_phase phase;
    int lane;
    bool has_algo;
    unsigned char algo[GX_ALGO_BYTES];
    size_t workspace_bytes;
    int n_launches;  /* graph nodes it adds, as declared or counted when planned; -1
                        unknown */
    double us;       /* measured when selected; < 0: not */
    bool cached;     /* taken from the cache or a pinned plan */
    const char *key; /* see gx_site_key; NULL on the CPU */
    gx_rejected *rejected;
    size_t n_rejected;
    /* set by layout */
    bool is_view;   /* what it makes lies where its input lies: nothing is run */
    int32_t *waits; /* units of other lanes, at most one of each, that must have ended
                       before this one starts */
    int n_waits;
    bool signals;            /* a unit of another lane waits for it: record an event */
    bool programmatic_first; /* its only predecessor is the unit before it on its lane */
    bool full_edge; /* and yet is behind a full edge: measured to cost less. Of the first
                       unit of a step: its edge from the step before in a launch */
    bool *elided;   /* [n_nodes * GX_MAX_ARGS], see gx_group; NULL: nothing */
    bool *steady;   /* likewise, of the first step of a launch */
    bool skips;     /* updates, none of which does anything in a step that has none */
} gx_unit;

/* A tensor that is trained, or lives from step to step. */
static inline bool gx_is_lasting(const gx_value *value)
{
    return value->kind == GX_VALUE_PARAM || value->kind == GX_VALUE_STATE;
}

/* Graph nodes that the unit adds; -1: not known before it is captured. */
static inline int gx_planned_launches(const gx_unit *unit)
{
    return unit->is_view ? 0 : unit->n_launches;
}

struct gx_plan {
    const gx_graph *graph; /* with its nodes as the units count them */
    const gx_graph *given; /* the caller's, whose nodes stand as derived */
    gx_graph *reordered;   /* its nodes, data first; NULL: not made, or no other order */
    gx_node_order order;   /* never GX_ORDER_AUTO */
    gx_arena *arena;
    int device;
    gx_unit *units;
    size_t n_units;
    gx_slot_info *slots; /* by value id */
    int32_t *home; /* by value id: the value whose memory it has; itself but for views */
    size_t arena_bytes; /* inputs, outputs and temporaries */
    size_t naive_bytes; /* the same without reuse */
    size_t workspace_bytes[GX_MAX_LANES];
    int n_lanes;
    size_t n_early; /* units that update and start before all weight gradients are there:
                       of lane 2 alone */
    bool programmatic;
    bool skip_if; /* in a graph the units that skip are the body of an IF node */
    bool unfused;
    gx_plan_info info;
};

/* --- node_order.c: in which order the nodes stand --- */

/* order[i]: which node of the graph stands at place i when what the backward pass goes on
 * from comes first and what stands beside it, weight gradients and sums of such, behind
 * the last backward node; all else, and each of the two among themselves, as in the
 * graph. What reads nothing that the pass has made, as the value of a loss, stays where
 * it is, and so does a node whose result or operand a node that it would pass touches.
 * `order` has room for the nodes; *differs: it is another order than the graph's. */
gx_status gx_data_first(const gx_graph *graph, int32_t *order, bool *differs,
                        gx_error *err) GX_MUST_CHECK;
/* Sets plan->order and the graph in it; units of another order must not be used then. */
gx_status gx_plan_use_order(gx_plan *plan, gx_node_order order,
                            gx_error *err) GX_MUST_CHECK;

/* The order of that name; false: none has it. */
bool gx_node_order_find(const char *name, gx_node_order *order);

/* --- match.c: which alternatives may cover nodes [first, first + n) --- */

/* True when the pattern fits these nodes by name. */
bool gx_match_pattern(const gx_graph *graph, const gx_alternative *alternative,
                      int32_t first, int32_t n);
/* How many nodes from `first` on the alternative covers at most: where its last op
 * repeats, the whole run, and 0 in the middle of one. 0: none. */
int32_t gx_match_length(const gx_graph *graph, const gx_alternative *alternative,
                        int32_t first);
/* Of n nodes under an alternative whose pattern repeats: one pattern less, so that the
 * last may go with what follows it; 0: it is n or nothing. */
int32_t gx_match_shorter(const gx_alternative *alternative, int32_t n);
/* True when it may cover just these nodes. */
bool gx_match_covers(const gx_graph *graph, const gx_alternative *alternative,
                     int32_t first, int32_t n);
/* The calls of nodes [first, first + n) before binding: operand data holds value id + 1,
 * so that connections can be compared. `calls` has room for n. */
void gx_match_calls(const gx_graph *graph, int32_t first, int32_t n, gx_call *calls);
/* elided[i] for outputs that only nodes of the group read and that nobody keeps. */
void gx_match_elided(const gx_graph *graph, int32_t first, int32_t n, bool *elided);

/* --- layout.c: pure C --- */

/* Views, lanes, waits, lifetimes and offsets for the units that stand in the plan. A view
 * of a temporary, or of an input, lies in its memory; without reuse all are copies.
 * What the backward pass does not go on from, weight gradients and the value of the loss,
 * goes to lane 1 when n_lanes is 2, and so does what follows from that alone; when it is
 * 3 the updates go to lane 2. Two values share memory only when every reader of the first
 * is ordered before the writer of the second, across lanes too. element_bytes 0: the
 * types' own sizes; 8: the CPU. */
gx_status gx_layout(gx_plan *plan, int n_lanes, bool reuse, size_t element_bytes,
                    gx_error *err) GX_MUST_CHECK;

/* --- skip.c: updates that a step may have to skip --- */

/* True when nodes [first, first + n) do nothing in a step whose update is skipped: each
 * is an update that reads the number of it, and they make nothing else. */
bool gx_unit_skips(const gx_graph *graph, int32_t first, int32_t n);
bool gx_plan_may_skip(const gx_plan *plan);
/* GX_ERR_UNSUPPORTED where a driver of this CUDA version (13000) has no conditional
 * nodes; `what` needs one. */
gx_status gx_need_conditions(int driver, const char *what, gx_error *err) GX_MUST_CHECK;

/* --- site_key.c --- */

enum { GX_KEY_SIZE = 200 };

/* What nodes [first, first + n) are to an alternative, as one line of text: equal keys
 * mean equal ops, shapes, types, attributes, precision, connections and elidable values.
 * Long ones are cut; the hash at the end is of the whole. */
void gx_site_key(const gx_graph *graph, int32_t first, int32_t n, char key[GX_KEY_SIZE],
                 uint64_t hash[2]);

#endif
