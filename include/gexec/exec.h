/* Running a graph: persistent tensors on a device, a plan, and programs that step.
 *
 *     state   the tensors that outlive a step, on one device; shared by programs
 *     plan    which alternative runs each group, order, lanes, addresses
 *     exec    a plan bound to a state: it primes, captures, replays
 *
 * Objects are used by one thread at a time; different objects by different threads at
 * once. A state outlives its execs and its snapshots; a plan and a graph outlive their
 * execs too. The current CUDA device of the caller is left as it was. Device index GX_CPU
 * is the CPU. */
#ifndef GEXEC_EXEC_H
#define GEXEC_EXEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <gexec/graph.h>
#include <gexec/status.h>
#include <gexec/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { GX_CPU = -1 };

/* --- devices --- */

typedef struct gx_device_info {
    char name[128];
    int ordinal;
    int cc_major, cc_minor; /* compute capability; 0 on the CPU */
    int n_sm;
    int64_t l2_bytes;
    int64_t memory_bytes, free_bytes;
    int driver_version, runtime_version; /* as CUDA writes them: 13000; 0 on the CPU */
    size_t cublaslt_version;
    char pci_bus_id[32]; /* "00000000:1b:00.0"; "" where it is not known */
} gx_device_info;

/* True where the library was built with CUDA. */
GX_API bool gx_has_cuda(void);
GX_API bool gx_has_nvtx(void);
/* Space-separated architectures that the kernels were built for; "" without CUDA. */
GX_API const char *gx_cuda_architectures(void);

/* Usable GPUs. GX_ERR_NO_DEVICE with the reason in `err` where there are none: no driver,
 * a driver that is too old, no device, built without CUDA, no kernel image for it. */
GX_API gx_status gx_device_count(int *n_devices, gx_error *err) GX_MUST_CHECK;
GX_API gx_status gx_device_info_get(int device, gx_device_info *info,
                                    gx_error *err) GX_MUST_CHECK;

/* --- state --- */

typedef struct gx_state gx_state;

typedef struct gx_state_options {
    int device;    /* GX_CPU or a GPU's ordinal */
    uint64_t seed; /* of initial values, generated inputs and the shuffle */
    bool exact;    /* CPU only: hold doubles without rounding to the declared types */
    void *stream;  /* a cudaStream_t of the caller's, or NULL for one of its own */
} gx_state_options;

/* Whether the data set of a graph that keeps it on the device has room there beside the
 * rest: parameters and state twice, since a program keeps a copy while it is made, and
 * the tensors of one step, each by itself. Where it has none, load the model again with
 * GX_STREAM_ON. True as well where the rest alone has no room: streaming is no help then.
 */
GX_API gx_status gx_data_fits(const gx_graph *graph, int device, bool *fits,
                              gx_error *err) GX_MUST_CHECK;

/* Makes every persistent tensor (parameters, state, data) that the graphs name: the
 * graphs are the programs of one model, and a name means one tensor. `options` may be
 * NULL: device 0 or the CPU as the build has it, seed 0. Reads files, checks label
 * ranges, adds the memory up and compares it with what is free before it allocates. Files
 * of data that stream are mapped, and must not change until the state is freed; their
 * rows are rounded to the input's type on an exact state too. */
GX_API gx_status gx_state_create(const gx_graph *const *graphs, size_t n_graphs,
                                 const gx_state_options *options, gx_state **state,
                                 gx_error *err) GX_MUST_CHECK;
/* Freeing the last state on a GPU waits for the device as a whole (cublasLtDestroy does),
 * which would invalidate a capture of the caller's own there. */
GX_API void gx_state_free(gx_state *state);
GX_API int gx_state_device(const gx_state *state);

/* Copies a persistent tensor from or to the host and waits for it. The host tensor's
 * dtype is the declared one, or GX_F64 or GX_F32, converted with rounding, of which an
 * exact state has none; shapes must be equal. Writing a parameter writes its master too,
 * and writing the master the parameter; but on an exact state a parameter that is just
 * what the master would be rounded to stays, so that a state that was saved rounded can
 * be gone on with. GX_ERR_DATA for a learning rate ("gexec.lr", "gexec.lr.N") that
 * gx_state_set_rate refuses, for a scale of the loss ("gexec.scale") that is no number
 * above 0, and for a counter of gexec's that is no integer. Not legal while a capture is
 * under way. */
GX_API gx_status gx_state_write(gx_state *state, const char *name, const gx_tensor *host,
                                gx_error *err) GX_MUST_CHECK;
GX_API gx_status gx_state_read(gx_state *state, const char *name, gx_tensor *host,
                               gx_error *err) GX_MUST_CHECK;

/* A copy of all parameters and state (not of the data), on the device; freed before its
 * state is. */
typedef struct gx_snapshot gx_snapshot;
GX_API gx_status gx_state_save(gx_state *state, gx_snapshot **snapshot,
                               gx_error *err) GX_MUST_CHECK;
GX_API gx_status gx_state_restore(gx_state *state, const gx_snapshot *snapshot,
                                  gx_error *err) GX_MUST_CHECK;
GX_API void gx_snapshot_free(gx_snapshot *snapshot);

/* Sets the learning rate (state "gexec.lr"); takes effect at the next step that is
 * submitted, without a rebuild. Rounded to f32: what lies below its smallest number, as
 * a schedule may come to, is 0. */
GX_API gx_status gx_state_set_rate(gx_state *state, double rate,
                                   gx_error *err) GX_MUST_CHECK;

/* For column i of the log whose mean leaves rows out (gx_graph_logged_labels): the labels
 * that count in each of the n steps that a program of the graph does from `sample` of
 * `epoch` on, as gexec.sample and gexec.epoch have them before. Exact: from the labels
 * themselves, which are read at the first call. */
GX_API gx_status gx_state_count_labels(gx_state *state, const gx_graph *graph, size_t i,
                                       int32_t sample, int32_t epoch, int64_t n_steps,
                                       int64_t *counts, gx_error *err) GX_MUST_CHECK;

/* --- plan --- */

typedef struct gx_plan gx_plan;

typedef enum gx_choice { GX_AUTO, GX_ON, GX_OFF } gx_choice;

/* In which order a plan's nodes stand. */
typedef enum gx_node_order {
    GX_ORDER_AUTO,      /* as measured */
    GX_ORDER_DERIVED,   /* as in the graph: layer by layer */
    GX_ORDER_DATA_FIRST /* the data gradients of all layers, then what stands beside them:
                           weight and bias gradients */
} gx_node_order;
/* "auto", "derived", "data-first"; NULL for any other number. */
GX_API const char *gx_node_order_name(gx_node_order order);

enum {
    GX_STEPS_AUTO = -1, /* as many steps a launch as measured to be fastest */
    GX_MAX_STEPS_PER_LAUNCH = 4096,
    GX_N_LAUNCH_TRIALS = 8,
    GX_MAX_LANES = 3 /* of a plan */
};

typedef struct gx_plan_options {
    int device;
    bool unfused; /* every op by itself, no groups: what people have without gexec */
    /* Names of alternatives to take wherever they apply, with commas between them; NULL:
     * none. */
    const char *force;
    const char *pin_file; /* a plan file: read and obeyed when it exists, else written */
    const char *cache_folder; /* NULL: the user's cache folder; "": no cache */
    int lanes;                /* 0: one to three, as measured; else 1, 2 or 3 */
    gx_choice programmatic;   /* programmatic dependent launch; auto: as measured */
    bool reuse_off;           /* no sharing of arena memory: ground truth for tests */
    bool no_measure; /* take the first alternative that applies; nothing is timed */
    /* GX_STEPS_AUTO: how many steps a launch should hold is measured, remembered in the
     * cache and written to a new plan file; gx_plan_info has it, for gx_exec_options. 0
     * or a number of the caller's: nothing is measured. Where the data stream it is 1. */
    int steps_per_launch;
    gx_choice step_loop; /* of them: a loop on the device, or unrolled; auto: either */
    /* How a graph skips the updates of a step that overflowed, or that only adds to the
     * gradients, where a model has a loss_scale. On: they are the body of an IF node;
     * off: each kernel looks for itself, as in eager mode; auto: as measured, and off
     * where the driver has no such nodes. The bits are the same. On is GX_ERR_ARGUMENT
     * for a graph that skips nothing, GX_ERR_UNSUPPORTED for a driver older than
     * CUDA 12.4. */
    gx_choice skip_if;
    int64_t longest_launch; /* steps that a launch can have at most; 0: no limit */
    /* Of the backward pass. Auto: the step is timed both ways where an alternative could
     * gain by data first, which keeps each layer's gradient in memory until its weight
     * gradient is made; with no_measure, as derived. Data first is GX_ERR_ARGUMENT for
     * the CPU. */
    gx_node_order order;
} gx_plan_options;

/* Selection and layout. `options` may be NULL: device 0 or the CPU as the build has it.
 * Measures on the device, unless the device is the CPU or the plan is pinned or cached.
 */
GX_API gx_status gx_plan_create(const gx_graph *graph, const gx_plan_options *options,
                                gx_plan **plan, gx_error *err) GX_MUST_CHECK;
GX_API void gx_plan_free(gx_plan *plan);

/* Writes the plan file, as gx_npy_write writes: no half-written one stays. */
GX_API gx_status gx_plan_write(const gx_plan *plan, const char *path,
                               gx_error *err) GX_MUST_CHECK;

/* The graph whose nodes the units count: the one that the plan was made of, or the same
 * with its nodes in another order. Value ids are the same in both. Lives as long as the
 * plan. */
GX_API const gx_graph *gx_plan_graph(const gx_plan *plan);

/* What takes as long as this in a burst of some milliseconds is measured in a run of a
 * tenth of a second besides: a card that is limited by its power is slower then. Of an
 * alternative that loses by the burst alone measured_us stays that of the burst. */
#define GX_SUSTAINED_US 100

/* One unit: a group of consecutive nodes of gx_plan_graph that one alternative runs. */
typedef struct gx_unit_info {
    size_t first_node, n_nodes;
    const char *alternative;
    int lane;
    gx_phase phase;
    double measured_us; /* < 0: not measured */
    size_t workspace_bytes;
    size_t n_rejected;
    double flops;
    double bytes;         /* of its nodes, without values that never leave it */
    const int32_t *waits; /* units of other lanes that end before it begins */
    size_t n_waits;
    bool programmatic; /* a kernel of ours may start it while the unit before it ends */
    bool full_edge; /* could be programmatic too, but that was measured to cost more; of
                       the first unit: to the step before in a launch of several */
    bool in_if;     /* in a graph it stands in the body of an IF node, by itself or with
                       units beside it */
} gx_unit_info;
typedef struct gx_rejected_info {
    const char *alternative;
    double measured_us; /* < 0: not measured */
    const char *reason; /* "slower", "does not apply: ...", "error 3e-2 over ..." */
} gx_rejected_info;
GX_API size_t gx_plan_unit_count(const gx_plan *plan);
GX_API gx_unit_info gx_plan_unit(const gx_plan *plan, size_t i);
GX_API gx_rejected_info gx_plan_rejected(const gx_plan *plan, size_t unit, size_t i);

/* One way to put steps into launches, and what a step took then. */
typedef struct gx_launch_trial {
    int steps_per_launch;
    bool loop;
    double us; /* < 0: not tried */
} gx_launch_trial;

typedef struct gx_plan_info {
    int device;
    int n_lanes;
    bool programmatic;
    bool unfused;
    size_t n_cached;   /* units whose choice came from the cache or the pinned file */
    size_t n_measured; /* units whose choice was measured now */
    size_t arena_bytes, workspace_bytes, persistent_bytes, naive_bytes;
    double select_s, layout_s;
    double lane_us[GX_MAX_LANES]; /* step time with 1, 2, 3 lanes, which may have other
                                      kernels; < 0: not tried */
    double programmatic_us[2];    /* off, on; < 0: not tried */
    int steps_per_launch;         /* as measured; 0: not asked for */
    bool step_loop;
    gx_launch_trial launch_trial[GX_N_LAUNCH_TRIALS];
    bool skip_if;           /* graphs have their updates in an IF node */
    double skip_us[2];      /* step time without and with it; < 0: not tried */
    size_t n_forced;        /* units that took the forced alternative */
    const char *cache_note; /* why the cache was not read or written; NULL: it was */
    gx_node_order order;    /* of gx_plan_graph; never GX_ORDER_AUTO */
    double order_us[2];     /* step time as derived, data first; < 0: not tried */
} gx_plan_info;
GX_API gx_plan_info gx_plan_info_get(const gx_plan *plan);
/* Where value i of the graph lies: offset in the arena, its lane-safe lifetime as unit
 * indexes; offset -1 for persistent and for elided values, and for inputs that stream. */
typedef struct gx_slot_info {
    int64_t offset;
    size_t bytes;
    int64_t first_unit, last_unit;
    bool elided; /* inside a fused group, never stored */
} gx_slot_info;
GX_API gx_slot_info gx_plan_slot(const gx_plan *plan, size_t value);

/* A programmatic edge: `unit` follows `before` on its lane. */
typedef struct gx_edge_info {
    size_t before, unit;
    size_t n_equal;    /* edges between units equal to these, measured as one */
    bool programmatic; /* in this plan; false: full, since it was measured to cost more */
    double gain_us;    /* of this edge: < 0 where it costs */
    double spread_us;  /* between the quartiles of the pairs */
} gx_edge_info;
/* Measures on the device what each programmatic edge gains: the step as a graph with the
 * edge full less the step with it programmatic, all else as planned, by paired blocks.
 * `edges` has room for gx_plan_unit_count; there are none where the plan has no
 * programmatic edges. The plan is as it was afterwards, also on failure; no program of it
 * may be captured meanwhile. GX_ERR_NO_DEVICE for a plan that is for the CPU. */
GX_API gx_status gx_plan_measure_edges(gx_plan *plan, gx_edge_info *edges,
                                       size_t *n_edges, gx_error *err) GX_MUST_CHECK;

/* --- exec --- */

typedef struct gx_exec gx_exec;

typedef enum gx_mode {
    GX_MODE_CPU,   /* the double reference, op by op; only on GX_CPU */
    GX_MODE_EAGER, /* one launch at a time on the stream */
    GX_MODE_GRAPH  /* one replay of the captured graph */
} gx_mode;

typedef struct gx_exec_options {
    int steps_per_launch; /* 0 or 1: one; K: K steps in one graph */
    /* The K steps are one step, recorded once in a loop that runs on the device (a WHILE
     * node), which costs some microseconds a turn; else they are unrolled. Needs a driver
     * of CUDA 12.4 or newer. GX_ERR_ARGUMENT where data stream. */
    bool step_loop;
    bool no_prime_check; /* keep false: else nothing is primed; for tests of priming */
} gx_exec_options;

/* Allocates arena and workspaces, prepares each unit, loads every kernel, and primes the
 * step once on saved and restored state. `options` may be NULL. */
GX_API gx_status gx_exec_create(const gx_plan *plan, gx_state *state,
                                const gx_exec_options *options, gx_exec **exec,
                                gx_error *err) GX_MUST_CHECK;
GX_API void gx_exec_free(gx_exec *exec);

/* Captures, instantiates and uploads now; else the first run in graph mode does. */
GX_API gx_status gx_exec_capture(gx_exec *exec, gx_error *err) GX_MUST_CHECK;

/* Copies a host tensor into an input, ordered before the steps submitted later; the host
 * memory may be reused on return. Same rule in every mode: a step sees the values of the
 * last write. GX_ERR_STATE for an input that data feeds. */
GX_API gx_status gx_exec_write(gx_exec *exec, const char *input, const gx_tensor *host,
                               gx_error *err) GX_MUST_CHECK;

/* Makes an input live at the caller's device memory (256-byte aligned, whole tensor). A
 * captured graph is dropped and built again at the next run; counted in the stats. The
 * memory is the caller's and must outlive the exec or the next bind. */
GX_API gx_status gx_exec_bind(gx_exec *exec, const char *input, void *device_data,
                              gx_error *err) GX_MUST_CHECK;

/* Submits n steps and returns; the CPU has done them on return. With K steps per launch n
 * must be a multiple of K in graph mode. GX_ERR_LIMIT where gexec.step (gexec.eval.step),
 * an i32, could not count them. Where data feeds the model, a step takes a whole
 * batch, always: past the last row of an epoch it repeats that row. A last batch of its
 * true size is another program of the model (gx_load_options.batch_rows).
 * Where the data stream, this call gathers the batches, on the caller's thread and one
 * launch ahead: while the device is busy with a launch the next one's batch is gathered
 * and copied. It waits only for room in two slots, and returns with a launch or two under
 * way. */
GX_API gx_status gx_exec_run(gx_exec *exec, gx_mode mode, int64_t n_steps,
                             gx_error *err) GX_MUST_CHECK;
/* Waits for what was submitted and reports a device fault if there was one. */
GX_API gx_status gx_exec_sync(gx_exec *exec, gx_error *err) GX_MUST_CHECK;

/* Copies an output, an input or a persistent tensor to the host and waits. Outputs live
 * until the next step is submitted. dtypes as gx_state_read. GX_ERR_STATE for what a step
 * makes, batches among it, where this program has run none. */
GX_API gx_status gx_exec_read(gx_exec *exec, const char *name, gx_tensor *host,
                              gx_error *err) GX_MUST_CHECK;
/* The same without waiting: `host` holds the values of the steps submitted so far after
 * the next gx_exec_sync, whatever is submitted in between. dtype must be the declared
 * one. `host->data` must stay valid until then. */
GX_API gx_status gx_exec_fetch(gx_exec *exec, const char *name, gx_tensor *host,
                               gx_error *err) GX_MUST_CHECK;

/* The last `n_rows` rows of the log (n_rows x gx_graph_logged count doubles, oldest
 * first); at most GX_LOG_ROWS. Waits. GX_ERR_STATE for more rows than steps were run on
 * this state since gexec.step (gexec.eval.step) was last written: a saved state has no
 * log. */
GX_API gx_status gx_exec_log(gx_exec *exec, int64_t n_rows, double *rows,
                             gx_error *err) GX_MUST_CHECK;

/* --- measuring --- */

/* Times of one block. All in seconds for the whole block of n steps, except host. */
typedef struct gx_timing {
    double host_s;   /* first call entered to last call returned */
    double wall_s;   /* submit to synchronized, the device idle before */
    double device_s; /* between events around the block; < 0 on the CPU: no events */
} gx_timing;
GX_API gx_status gx_exec_time(gx_exec *exec, gx_mode mode, int64_t n_steps,
                              gx_timing *timing, gx_error *err) GX_MUST_CHECK;

/* What building cost, in seconds; < 0: not done. Counts say what was launched. */
typedef struct gx_exec_stats {
    double prime_s, prepare_s, capture_s, instantiate_s, upload_s, first_launch_s;
    int64_t graph_launches, eager_steps, rebuilds, instantiations;
    int64_t launches_per_step; /* kernel, copy and fill launches of one eager step */
    /* Of the captured graph: all K steps; in a loop one step and the two nodes that
     * repeat it; with an IF node what is in it, itself and what decides it; 0: not
     * captured. */
    int64_t graph_nodes;
    int64_t programmatic_edges;
    size_t device_bytes; /* arena, workspaces and the batches that stream */
    /* Of data that stream, as of the last gx_exec_sync: seconds from the end of the step
     * before (or the begin of the run) to when a step's batch was there, by events, for
     * all the steps that are counted; on the CPU the gathering. < 0: nothing streams. */
    double data_wait_s;
    int64_t data_steps;
} gx_exec_stats;
GX_API gx_exec_stats gx_exec_stats_get(const gx_exec *exec);

/* The captured cudaGraph_t, owned by the exec, to sit as a child graph in the caller's
 * own; captures first if need be. GX_ERR_STATE where data
 * stream: a launch needs its batch; and where steps are a loop, which CUDA allows in no
 * child graph. Nor does it allow an IF node: where the plan has one, the steps are
 * captured again without, and the exec's own launches have none from here on; the bits
 * are the same.
 */
GX_API gx_status gx_exec_cuda_graph(gx_exec *exec, void **graph,
                                    gx_error *err) GX_MUST_CHECK;

/* Host seconds to launch a graph of `n_nodes` empty kernels in a chain, the median of
 * `repeats` launches to an idle device: the limit that a replay is held against. With
 * busy_s > 0 the device works for so long behind each launch, at most 1 s, and the host
 * waits for that before the next, all as gx_exec_time does with a step that takes so
 * long: a host that has waited finds its caches cold, and launches take longer. Give it
 * what a launch of the replay takes; 0: one launch follows another at once. */
GX_API gx_status gx_empty_graph_host(int device, int64_t n_nodes, int repeats,
                                     double busy_s, double *median_s,
                                     gx_error *err) GX_MUST_CHECK;

/* cudaProfilerStart and cudaProfilerStop, for `nsys profile -c cudaProfilerApi`; the
 * window should open before the capture. */
GX_API gx_status gx_profiler_window(bool open, gx_error *err) GX_MUST_CHECK;
/* An NVTX range "measured" around what the caller measures; nothing without NVTX. */
GX_API void gx_measured_begin(void);
GX_API void gx_measured_end(void);

#ifdef __cplusplus
}
#endif
#endif
