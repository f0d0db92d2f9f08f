/* Eager against graph: what is measured, and how it is told. */
#ifndef GX_COMPARE_H
#define GX_COMPARE_H

#include "figures.h"
#include "json_out.h"
#include "nvml.h"
#include "session.h"

/* The rows of the table. UNFUSED is the model planned without groups, launched eagerly.
 */
typedef enum gx_way { GX_WAY_UNFUSED, GX_WAY_EAGER, GX_WAY_GRAPH, GX_N_WAYS } gx_way;

typedef struct gx_way_times {
    gx_exec *exec;
    gx_mode mode;
    gx_series host, wall;     /* seconds a step, the device idle before */
    gx_series queued, steady; /* seconds a step, in blocks, by pair */
    gx_series wait;   /* for data, of the same blocks; none where they do not stream */
    int64_t launches; /* of one step; < 0: unknown */
} gx_way_times;

/* Where bits first differ. */
typedef struct gx_difference {
    bool found;
    char tensor[208];
    gx_words position;
    double eager, graph;
    int64_t n_elements, n_differ; /* of that tensor */
} gx_difference;

typedef struct gx_compare {
    gx_session session;
    gx_plan *unfused_plan;
    gx_exec *unfused_exec;
    gx_snapshot *start;
    gx_way_times way[GX_N_WAYS];
    int64_t block;           /* steps of a block */
    gx_series order;         /* by pair: place of the graph among the three, 0 to 2 */
    gx_series ratio;         /* by pair: graph / eager, steady */
    gx_series ratio_unfused; /* graph / unfused */
    double empty_s;          /* host time of a graph of as many empty kernels; < 0: n/a */
    int64_t bits_steps, n_compared;
    gx_difference difference;
    gx_nvml *nvml;
    gx_series sm_mhz, memory_mhz;
    uint64_t throttle;
    bool interrupted;
    gx_exec_stats stats; /* of the graph's exec, when all was measured */
} gx_compare;

/* Loads the model for `device` and makes its state; then makes the three ways, compares
 * their bits and measures them. Free in any case. */
gx_status gx_compare_open(gx_compare *compare, const gx_args *args,
                          const gx_session_needs *needs, int device,
                          gx_error *err) GX_MUST_CHECK;
gx_status gx_compare_run(gx_compare *compare, gx_error *err) GX_MUST_CHECK;
/* Host and wall of single steps, then the blocks. An interrupt ends it early. */
gx_status gx_compare_measure(gx_compare *compare, gx_error *err) GX_MUST_CHECK;
/* Runs steps both ways from one state and compares every output, parameter and state. */
gx_status gx_compare_bits(gx_compare *compare, gx_error *err) GX_MUST_CHECK;
/* Gives back what lies on the device: execs, snapshot, state. The figures stay. */
void gx_compare_release(gx_compare *compare);
void gx_compare_free(gx_compare *compare);

/* Host seconds of one launch of the graph, of all its steps, to an idle device; < 0: n/a.
 */
double gx_compare_launch_host(const gx_compare *compare);
/* Seconds of capture and instantiation by node of the graph; < 0: n/a. */
double gx_compare_build_a_node(const gx_compare *compare);
/* Steps until the graph has paid for itself; < 0: never. */
double gx_compare_pays_after(const gx_compare *compare);

/* What was spent once before the first replay, in its order. */
typedef struct gx_cost {
    const char *name;
    double seconds; /* < 0: n/a */
} gx_cost;
enum { GX_MOST_COSTS = 11 };
/* How many there are. */
size_t gx_compare_costs(const gx_compare *compare, gx_cost costs[GX_MOST_COSTS]);

void gx_compare_print(const gx_compare *compare, FILE *out);
/* Parts of it: what building cost, the bits, the machine. */
void gx_compare_print_costs(const gx_compare *compare, FILE *out);
void gx_compare_print_bits(const gx_compare *compare, FILE *out);
void gx_compare_print_environment(const gx_compare *compare, FILE *out);
gx_status gx_compare_write_json(const gx_compare *compare, gx_error *err) GX_MUST_CHECK;

/* The members of that JSON, into the object that is open. */
void gx_compare_put(gx_json *json, const gx_compare *compare);
/* Parts of that JSON: a series as figures and raw values, the ways, the bits. */
void gx_compare_put_series(gx_json *json, const char *key, const gx_series *series);
void gx_compare_put_ways(gx_json *json, const gx_way_times *ways,
                         int64_t steps_per_launch);
void gx_compare_put_bits(gx_json *json, const gx_difference *difference, int64_t steps,
                         int64_t n_compared);

#endif
