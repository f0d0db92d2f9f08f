/* A plan for a GPU while it is made: its units in one order of the nodes, or in two. */
#ifndef GX_PLANNING_H
#define GX_PLANNING_H

#include "measure.h"
#include "select.h"

/* With so many the updates have a lane of their own, and are cut. */
enum { GX_UPDATE_LANES = GX_MAX_LANES };

/* The device is opened when the first candidate has to be examined: with a warm cache
 * nothing is, and neither streams nor a handle of the library are made. It then stays
 * open until the plan is made, since making the handle takes long. */
typedef struct gx_workshop {
    const gx_plan_options *options;
    gx_device *device;
    int previous; /* the device that was current */
    gx_bench *bench;
} gx_workshop;

/* A list of units for all nodes. */
typedef struct gx_unit_list {
    gx_unit *units;
    size_t n;
} gx_unit_list;

/* One order of the nodes: its units, and how a step of them was measured to run best, but
 * for its edges. */
typedef struct gx_way {
    gx_node_order order;
    gx_unit_list alone;      /* for one lane, where all that a step does takes its time */
    gx_unit_list whole, cut; /* for more: updates in one launch; in several, NULL: not
                                made yet */
    bool tries_updates;      /* a step with a lane for the updates is worth timing */
    bool is_timed;
    gx_step_choice choice;
    double us; /* < 0: not known */
} gx_way;

typedef struct gx_planning {
    gx_plan *plan;
    const gx_plan_options *options;
    gx_cache *cache; /* NULL: none */
    gx_workshop *shop;
    gx_selector selector;
    gx_way ways[2]; /* that of a plan as derived or as asked for first */
    int n_ways;
    gx_way *way; /* at hand: plan->graph stands in its order */
} gx_planning;

/* --- plan_cuda.c --- */

/* Puts plan->graph in the way's order; the units are still to be laid out. */
gx_status gx_planning_use_way(gx_planning *p, gx_way *way, gx_error *err) GX_MUST_CHECK;
void gx_planning_use_units(gx_planning *p, gx_unit_list list);
/* gx_plan_hash of these units in the way at hand, which they then are. */
void gx_planning_hash(gx_planning *p, gx_unit_list list, char text[GX_PLAN_HASH_SIZE]);
/* Lays the way at hand out for so many lanes, or for those that have something to do. */
gx_status gx_planning_lay_out(gx_planning *p, int n_lanes, gx_error *err) GX_MUST_CHECK;
/* The way as it is before the step is timed. */
gx_status gx_planning_lay_out_first(gx_planning *p, gx_way *way,
                                    gx_error *err) GX_MUST_CHECK;
/* Whether an update could start before the last gradient is there: what waits for a norm
 * of all gradients, or is one launch, gains nothing. Asked before the parts are examined,
 * which takes time, and that before the step is timed, which takes memory. */
gx_status gx_planning_look_at_updates(gx_planning *p, gx_error *err) GX_MUST_CHECK;

/* --- plan_step_cuda.c --- */

/* The way at hand as laid out first; afterwards as it runs best, but for its edges. */
gx_status gx_planning_time_way(gx_planning *p, gx_trial *trial,
                               gx_error *err) GX_MUST_CHECK;
/* The way at hand is laid out first. One that was timed against another is taken as it
 * was timed; its edges are still to be chosen. */
gx_status gx_planning_choose_step(gx_planning *p, gx_trial *trial,
                                  gx_error *err) GX_MUST_CHECK;

/* --- plan_order_cuda.c --- */

/* Of two ways the one that has more of what is forced, or the faster one, laid out
 * first; of one that, as it is. */
gx_status gx_planning_choose_way(gx_planning *p, gx_trial *trial,
                                 gx_error *err) GX_MUST_CHECK;

#endif
