/* Selection: which alternative runs each group of nodes. */
#ifndef GX_SELECT_H
#define GX_SELECT_H

#include "plan.h"

/* One alternative on one site, and what is known of it. */
typedef struct gx_candidate {
    const gx_alternative *alternative;
    const char *refused; /* why it cannot be chosen; NULL: it can */
    bool known;          /* examined, or found in the cache: nothing more to find out */
    bool cached;
    bool over_tolerance; /* accepted only since it is forced */
    double us;           /* < 0: not measured */
    bool has_algo;
    unsigned char algo[GX_ALGO_BYTES];
    int n_launches; /* -1: not known */
    size_t workspace_bytes;
} gx_candidate;

/* Consecutive nodes that some alternative may cover. Sites with equal keys are one. */
typedef struct gx_site {
    const char *key;
    int32_t first, n; /* the first nodes of that key */
    gx_candidate *candidates;
    size_t n_candidates;
} gx_site;

typedef struct gx_selector gx_selector;

/* Finds out what it takes to run a candidate: sets `refused`, or launches, workspace and
 * algorithm, and with `measure` its time; one that is forced may be over the tolerance.
 * `best_us` is the best time on this site so far; < 0: none. */
typedef gx_status gx_examine_fn(const gx_selector *selector, const gx_site *site,
                                gx_candidate *candidate, double best_us, gx_error *err);

struct gx_selector {
    const gx_graph *graph;
    gx_arena *arena; /* of the plan: keys and reasons live on */
    const gx_alternative *(*alternative_at)(size_t i);
    gx_ctx ctx; /* for `refuses` */
    bool unfused;
    bool measure;
    bool beside;            /* what is off the path may run on a lane of its own */
    const char *force;      /* names with commas between them; NULL: none */
    struct gx_cache *cache; /* NULL: none */
    gx_examine_fn *examine;
    void *user;
};

/* Fills plan->units, ordered as the nodes; the graph and the arena are set. */
gx_status gx_select(const gx_selector *selector, gx_plan *plan,
                    gx_error *err) GX_MUST_CHECK;

/* On the CPU: one unit for each node. */
gx_status gx_select_reference(gx_plan *plan, gx_error *err) GX_MUST_CHECK;

/* Sets what a unit of these nodes has whoever runs it: nodes, phase, elided outputs. */
gx_status gx_unit_start(gx_plan *plan, gx_unit *unit, int32_t first, int32_t n,
                        const gx_alternative *alternative, gx_error *err) GX_MUST_CHECK;

/* Finds out what is not known yet of the candidates of a site, in the cache or by
 * selector->examine. */
gx_status gx_select_examine(const gx_selector *selector, const gx_site *site,
                            gx_error *err) GX_MUST_CHECK;
/* `name` is one of those in `force`. */
bool gx_is_forced(const char *force, const char *name);
/* Puts a candidate into the unit that it covers; `key` lives as long as the plan. */
void gx_unit_take(gx_unit *unit, const char *key, const gx_candidate *candidate);
/* Counts in plan->info the units that were cached, measured, forced. */
void gx_count_choices(const gx_selector *selector, gx_plan *plan);

/* --- chunks.c --- */

/* Cuts a run of updates that is one unit into several, in a new list of units; *any:
 * there was one to cut. What they cost is not known then: gx_examine_updates finds it
 * out, and *good is false where one cannot be run. */
gx_status gx_cut_updates(gx_plan *plan, bool *any, gx_error *err) GX_MUST_CHECK;
gx_status gx_examine_updates(const gx_selector *selector, gx_plan *plan, bool *good,
                             gx_error *err) GX_MUST_CHECK;

/* --- select_cuda.c, select_algos_cuda.c --- */

typedef struct gx_bench gx_bench;

/* Scratch memory and inputs for gx_bench_examine, which is selector->examine with the
 * bench as `user`. The device stays the caller's and is current. */
gx_status gx_bench_open(gx_device *device, gx_bench **bench, gx_error *err) GX_MUST_CHECK;
void gx_bench_close(gx_bench *bench);
gx_status gx_bench_examine(const gx_selector *selector, const gx_site *site,
                           gx_candidate *candidate, double best_us,
                           gx_error *err) GX_MUST_CHECK;

/* --- plan_cache.c, plan_cache_file.c --- */

typedef struct gx_cache gx_cache;

/* The device's file in `folder` (NULL: the user's cache folder; "": there is none, and
 * what is added is known until the cache is closed). A file that cannot be used is no
 * error: gx_cache_note says why it was left aside. */
gx_status gx_cache_open(const char *folder, const gx_device_info *device,
                        gx_cache **cache, gx_error *err) GX_MUST_CHECK;
void gx_cache_close(gx_cache *cache);
/* Fills the candidate when the cache knows it, which is `cached` unless it was measured
 * since the cache was opened; texts live in `arena`. */
bool gx_cache_find(const gx_cache *cache, const char *key, gx_candidate *candidate,
                   gx_arena *arena);
/* Remembers a candidate. When memory is out it is only not remembered, and noted. */
void gx_cache_add(gx_cache *cache, const char *key, const gx_candidate *candidate);

/* How a whole step was measured to run best, by the hash of its units. */
typedef struct gx_step_choice {
    int n_lanes;
    bool programmatic;
    double lane_us[GX_MAX_LANES], programmatic_us[2];
    const int32_t
        *full_edges; /* units whose edge is full, though it could be otherwise */
    size_t n_full_edges;
} gx_step_choice;
/* The list lives as long as the cache; one that is added is copied. */
bool gx_cache_find_step(const gx_cache *cache, const char *key, gx_step_choice *choice);
void gx_cache_add_step(gx_cache *cache, const char *key, const gx_step_choice *choice);

/* How many steps a launch were measured to run best, by the hash of the plan. */
typedef struct gx_launch_choice {
    int steps_per_launch;
    bool loop;
    double us[GX_N_LAUNCH_TRIALS]; /* as gx_plan_info's trials; < 0: not tried */
} gx_launch_choice;
bool gx_cache_find_launch(const gx_cache *cache, const char *key,
                          gx_launch_choice *choice);
void gx_cache_add_launch(gx_cache *cache, const char *key,
                         const gx_launch_choice *choice);

/* Whether an IF node around the updates was measured to run best, likewise. */
typedef struct gx_skip_choice {
    bool skip_if;
    double us[2]; /* as gx_plan_info's skip_us */
} gx_skip_choice;
bool gx_cache_find_skip(const gx_cache *cache, const char *key, gx_skip_choice *choice);
void gx_cache_add_skip(gx_cache *cache, const char *key, const gx_skip_choice *choice);

/* Which order of the nodes was measured to run best, by the hashes of the units in both.
 */
typedef struct gx_order_choice {
    gx_node_order order;
    double us[2]; /* as gx_plan_info's order_us */
} gx_order_choice;
bool gx_cache_find_order(const gx_cache *cache, const char *key, gx_order_choice *choice);
void gx_cache_add_order(gx_cache *cache, const char *key, const gx_order_choice *choice);

/* Writes what was added, together with what others have written meanwhile. */
void gx_cache_save(gx_cache *cache);
/* NULL, or why the cache could not be read or written; lives as long as the cache. */
const char *gx_cache_note(const gx_cache *cache);

/* --- plan.c, plan_cuda.c --- */

/* Seconds of a clock that only goes forward. */
double gx_plan_clock(void);

/* plan_launch.c: the ways that are tried to put steps into launches, with no times. */
void gx_launch_trials(gx_launch_trial trials[GX_N_LAUNCH_TRIALS]);
/* True where a launch may hold so many steps at all. */
bool gx_launch_is_possible(int64_t steps_per_launch, bool loop);

enum { GX_PLAN_HASH_SIZE = 40 };

#if GX_HAVE_CUDA
/* "#" and 32 digits over the order and the units' keys, alternatives and algorithms. */
void gx_plan_hash(const gx_plan *plan, char text[GX_PLAN_HASH_SIZE]);
/* plan_launch_cuda.c: how many steps a launch, as remembered or as measured now. `cache`
 * may be NULL. */
gx_status gx_choose_launch(gx_plan *plan, const gx_plan_options *options, gx_cache *cache,
                           gx_error *err) GX_MUST_CHECK;
/* plan_skip_cuda.c: whether graphs have the updates in an IF node: as asked for, as
 * remembered or as measured now. `cache` may be NULL. */
gx_status gx_choose_skip(gx_plan *plan, const gx_plan_options *options,
                         const gx_device_info *device, gx_cache *cache,
                         gx_error *err) GX_MUST_CHECK;
/* Units, layout, lanes and edges for plan->graph on a GPU. */
gx_status gx_plan_cuda(gx_plan *plan, const gx_plan_options *options,
                       const gx_device_info *device, gx_error *err) GX_MUST_CHECK;
#endif

/* --- plan_file.c --- */

/* Reads a complete plan for plan->graph into its units, lanes and edges. What does not
 * fit the graph or the device is an error that names it. */
gx_status gx_plan_file_read(gx_plan *plan, const char *path, const gx_device_info *device,
                            gx_error *err) GX_MUST_CHECK;

#endif
