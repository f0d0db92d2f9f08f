/* What a card's nodes, replays and launches cost by themselves. */
#include <math.h>
#include <string.h>

#include "capture.h"
#include "ceilings_kernels.h"
#include "ceilings_parts.h"
#include "empty.h"
#include "exec_model.h"
#include "launch.h"

enum {
    /* The cost of a node is the slope between the last two lengths. That of a step is
     * what the first takes beyond its nodes: it runs for long enough that the host stays
     * ahead, and is short enough for the step to show. */
    STEP_NODES = 16,
    SHORT_NODES = 64,
    LONG_NODES = 512,
    /* Copies and diamonds: slopes between two numbers of them. */
    FEW_PARTS = 16,
    MANY_PARTS = 64,
    SPIN_CYCLES = 3000, /* of a kernel that runs beside another: a microsecond or two */
    FEW_BYTES = 4,
    BUFFER_BYTES = 64 << 10,
    LARGE_BYTES = 512 << 10,

    REPEATS = 9, /* blocks, of which the median counts */
    MOST_REPLAYS = 200,
    LAUNCHES = 256, /* eager ones of a block: fewer than a stream takes in advance */
    HOST_REPLAYS = 100
};

static const double block_s = 4e-3;

/* --- chains --- */

typedef struct gx_link_chain {
    gx_device *device;
    int n_nodes;
    bool programmatic;
} gx_link_chain;

static gx_status launch_links(const gx_link_chain *chain, gx_error *err)
{
    gx_ctx ctx = gx_device_ctx(chain->device, 0);
    const void *kernel = chain->programmatic ? gx_overlap_kernel() : gx_empty_kernel();
    const dim3 one = { 1, 1, 1 };
    void *no_arguments[1] = { NULL };

    ctx.programmatic = chain->programmatic;
    for (int i = 0; i < chain->n_nodes; i++)
        GX_TRY(gx_launch(&ctx, "empty", kernel, one, one, 0, no_arguments, err));
    return GX_OK;
}

static gx_status record_links(void *user, gx_error *err)
{
    return launch_links(user, err);
}

/* A figure that cannot be is n/a. */
static double plausible(double seconds)
{
    return isfinite(seconds) && seconds > 0 ? seconds : -1;
}

static gx_status time_replays(const gx_ceilings_bench *bench, void *graph_exec, int n,
                              double *seconds, gx_error *err)
{
    GX_TRY(gx_stopwatch_start(&bench->watch, bench->device, err));
    for (int i = 0; i < n; i++)
        GX_TRY(gx_graph_submit(bench->device, graph_exec, err));
    return gx_stopwatch_stop(&bench->watch, bench->device, seconds, err);
}

/* Median seconds of one replay, back to back. */
static gx_status time_graph(const gx_ceilings_bench *bench, void *graph_exec,
                            double *seconds, gx_error *err)
{
    double block[REPEATS];
    double once;
    int n = MOST_REPLAYS;

    GX_TRY(time_replays(bench, graph_exec, 2, &once, err));
    GX_TRY(time_replays(bench, graph_exec, 2, &once, err));
    once /= 2;
    if (once * n > block_s)
        n = (int)fmax(1, block_s / once);
    for (int i = 0; i < REPEATS; i++)
        GX_TRY(time_replays(bench, graph_exec, n, &block[i], err));
    *seconds = gx_median(block, REPEATS) / n;
    return GX_OK;
}

/* Median seconds of one replay of what `record` enqueues. */
static gx_status time_recorded(const gx_ceilings_bench *bench, gx_record_fn *record,
                               void *user, double *seconds, gx_error *err)
{
    gx_graph_cost cost;
    void *graph = NULL;
    void *graph_exec = NULL;

    *seconds = -1;
    gx_status st = gx_record(bench->device, record, user, &graph, err);
    if (st == GX_OK)
        st = gx_graph_start(bench->device, graph, &graph_exec, &cost, err);
    if (st == GX_OK)
        st = time_graph(bench, graph_exec, seconds, err);
    gx_graph_end(graph, graph_exec);
    return st;
}

/* -1 where the edges of the graph are not those that were asked for. */
static gx_status time_chain(const gx_ceilings_bench *bench, int n_nodes,
                            bool programmatic, double *seconds, gx_error *err)
{
    gx_link_chain chain = { bench->device, n_nodes, programmatic };
    gx_graph_cost cost;
    void *graph = NULL;
    void *graph_exec = NULL;
    int64_t n_edges = 0;

    *seconds = -1;
    gx_status st = gx_record(bench->device, record_links, &chain, &graph, err);
    if (st == GX_OK)
        st = gx_graph_programmatic_edges(graph, &n_edges, err);
    if (st == GX_OK && n_edges == (programmatic ? n_nodes - 1 : 0)) {
        st = gx_graph_start(bench->device, graph, &graph_exec, &cost, err);
        if (st == GX_OK)
            st = time_graph(bench, graph_exec, seconds, err);
    }
    gx_graph_end(graph, graph_exec);
    return st;
}

static gx_status measure_node(const gx_ceilings_bench *bench, bool programmatic,
                              double *node_s, gx_error *err)
{
    double few, many;

    GX_TRY(time_chain(bench, SHORT_NODES, programmatic, &few, err));
    GX_TRY(time_chain(bench, LONG_NODES, programmatic, &many, err));
    *node_s =
        few > 0 && many > 0 ? plausible((many - few) / (LONG_NODES - SHORT_NODES)) : -1;
    return GX_OK;
}

static gx_status measure_step(const gx_ceilings_bench *bench, double node_s,
                              double *step_s, gx_error *err)
{
    double seconds;

    GX_TRY(time_chain(bench, STEP_NODES, false, &seconds, err));
    *step_s = node_s > 0 && seconds > 0 ? plausible(seconds - STEP_NODES * node_s) : -1;
    return GX_OK;
}

/* --- copies --- */

typedef struct gx_copy_chain {
    gx_link_chain link; /* one kernel */
    void *to, *pinned;
    size_t bytes;
    int n;
} gx_copy_chain;

static gx_status record_copies(void *user, gx_error *err)
{
    const gx_copy_chain *chain = user;
    const cudaStream_t stream = chain->link.device->stream;

    for (int i = 0; i < chain->n; i++) {
        GX_TRY(launch_links(&chain->link, err));
        GX_TRY(GX_CUDA(cudaMemcpyAsync(chain->to, chain->pinned, chain->bytes,
                                       cudaMemcpyHostToDevice, stream),
                       err));
    }
    return GX_OK;
}

/* Seconds that a kernel and a copy of `bytes` take in a chain of such pairs. */
static gx_status time_pair(const gx_ceilings_bench *bench, void *pinned, size_t bytes,
                           double *pair_s, gx_error *err)
{
    double seconds[2];

    for (int i = 0; i < 2; i++) {
        gx_copy_chain chain = {
            .link = { bench->device, 1, false },
            .to = bench->memory,
            .pinned = pinned,
            .bytes = bytes,
            .n = i == 0 ? FEW_PARTS : MANY_PARTS,
        };

        GX_TRY(time_recorded(bench, record_copies, &chain, &seconds[i], err));
    }
    *pair_s = (seconds[1] - seconds[0]) / (MANY_PARTS - FEW_PARTS);
    return GX_OK;
}

/* A few bytes go another way than a whole buffer, which an engine of its own copies: what
 * that costs beside the bytes follows from two sizes. */
static gx_status measure_copies(const gx_ceilings_bench *bench, void *pinned,
                                gx_ceilings *ceilings, gx_error *err)
{
    double few, buffer, large;

    GX_TRY(time_pair(bench, pinned, FEW_BYTES, &few, err));
    GX_TRY(time_pair(bench, pinned, BUFFER_BYTES, &buffer, err));
    GX_TRY(time_pair(bench, pinned, LARGE_BYTES, &large, err));
    const double byte_s = (large - buffer) / (LARGE_BYTES - BUFFER_BYTES);

    ceilings->copy_node_s = plausible(few - ceilings->node_s);
    ceilings->copy_engine_s =
        plausible(buffer - BUFFER_BYTES * byte_s - ceilings->node_s);
    return GX_OK;
}

static gx_status measure_copy(const gx_ceilings_bench *bench, gx_ceilings *ceilings,
                              gx_error *err)
{
    void *pinned = NULL;

    if (ceilings->node_s < 0)
        return GX_OK;
    GX_TRY(GX_CUDA(cudaMallocHost(&pinned, LARGE_BYTES), err));
    memset(pinned, 0, LARGE_BYTES);
    const gx_status st = measure_copies(bench, pinned, ceilings, err);
    return gx_first(st, GX_CUDA(cudaFreeHost(pinned), err));
}

/* --- parting and joining --- */

typedef struct gx_diamonds {
    gx_device *device;
    cudaEvent_t event[2]; /* parted, done */
    int n;
} gx_diamonds;

static gx_status launch_on(gx_device *device, int lane, gx_error *err)
{
    gx_ctx ctx = gx_device_ctx(device, lane);
    const dim3 one = { 1, 1, 1 };
    void *no_arguments[1] = { NULL };

    return gx_launch(&ctx, "empty", gx_empty_kernel(), one, one, 0, no_arguments, err);
}

/* One node, then two side by side, then the next one: two nodes on the path, one parting
 * and one joining. */
static gx_status record_diamonds(void *user, gx_error *err)
{
    const gx_diamonds *diamonds = user;
    void *const *const stream = diamonds->device->lane_stream;
    const cudaEvent_t *const event = diamonds->event;

    for (int i = 0; i < diamonds->n; i++) {
        GX_TRY(launch_on(diamonds->device, 0, err));
        GX_TRY(GX_CUDA(cudaEventRecord(event[0], stream[0]), err));
        GX_TRY(GX_CUDA(cudaStreamWaitEvent(stream[1], event[0], 0), err));
        GX_TRY(launch_on(diamonds->device, 1, err));
        GX_TRY(launch_on(diamonds->device, 0, err));
        GX_TRY(GX_CUDA(cudaEventRecord(event[1], stream[1]), err));
        GX_TRY(GX_CUDA(cudaStreamWaitEvent(stream[0], event[1], 0), err));
    }
    return launch_on(diamonds->device, 0, err);
}

/* A quarter of the card, so that two fit beside each other. */
static gx_status spin_on(gx_device *device, int lane, gx_error *err)
{
    gx_ctx ctx = gx_device_ctx(device, lane);
    const dim3 grid = { (unsigned)(ctx.n_sm < 4 ? 1 : ctx.n_sm / 4), 1, 1 };
    const dim3 block = { GX_CEILINGS_BLOCK, 1, 1 };
    int cycles = SPIN_CYCLES;
    void *arguments[] = { &cycles };

    return gx_launch(&ctx, "spin", gx_spin_kernel(), grid, block, 0, arguments, err);
}

static gx_status record_alone(void *user, gx_error *err)
{
    const gx_diamonds *chain = user;

    for (int i = 0; i < chain->n; i++)
        GX_TRY(spin_on(chain->device, 0, err));
    return GX_OK;
}

/* Two chains of that many nodes side by side. */
static gx_status record_beside(void *user, gx_error *err)
{
    const gx_diamonds *chains = user;
    void *const *const stream = chains->device->lane_stream;
    const cudaEvent_t *const event = chains->event;

    GX_TRY(launch_on(chains->device, 0, err));
    GX_TRY(GX_CUDA(cudaEventRecord(event[0], stream[0]), err));
    GX_TRY(GX_CUDA(cudaStreamWaitEvent(stream[1], event[0], 0), err));
    for (int i = 0; i < chains->n; i++)
        for (int lane = 0; lane < 2; lane++)
            GX_TRY(spin_on(chains->device, lane, err));
    GX_TRY(GX_CUDA(cudaEventRecord(event[1], stream[1]), err));
    GX_TRY(GX_CUDA(cudaStreamWaitEvent(stream[0], event[1], 0), err));
    return launch_on(chains->device, 0, err);
}

static gx_status slope(const gx_ceilings_bench *bench, gx_record_fn *record,
                       const cudaEvent_t event[2], double *part_s, gx_error *err)
{
    double seconds[2];

    for (int i = 0; i < 2; i++) {
        gx_diamonds parts = { .device = bench->device,
                              .event = { event[0], event[1] },
                              .n = i == 0 ? FEW_PARTS : MANY_PARTS };

        GX_TRY(time_recorded(bench, record, &parts, &seconds[i], err));
    }
    *part_s = (seconds[1] - seconds[0]) / (MANY_PARTS - FEW_PARTS);
    return GX_OK;
}

static gx_status measure_lanes(const gx_ceilings_bench *bench, const cudaEvent_t event[2],
                               gx_ceilings *ceilings, gx_error *err)
{
    double diamond, alone, level;

    GX_TRY(slope(bench, record_diamonds, event, &diamond, err));
    GX_TRY(slope(bench, record_alone, event, &alone, err));
    GX_TRY(slope(bench, record_beside, event, &level, err));
    ceilings->join_s = plausible((diamond - 2 * ceilings->node_s) / 2);
    ceilings->beside_s = plausible(level - alone);
    return GX_OK;
}

static gx_status measure_join(const gx_ceilings_bench *bench, gx_ceilings *ceilings,
                              gx_error *err)
{
    cudaEvent_t event[2] = { NULL, NULL };
    gx_status st = GX_OK;

    if (ceilings->node_s < 0)
        return GX_OK;
    for (int i = 0; i < 2 && st == GX_OK; i++)
        st = GX_CUDA(cudaEventCreateWithFlags(&event[i], cudaEventDisableTiming), err);
    if (st == GX_OK)
        st = measure_lanes(bench, event, ceilings, err);
    for (int i = 0; i < 2; i++)
        if (event[i])
            st = gx_first(st, GX_CUDA(cudaEventDestroy(event[i]), err));
    return st;
}

/* --- the host --- */

static gx_status measure_launch(const gx_ceilings_bench *bench, double *launch_s,
                                gx_error *err)
{
    const gx_link_chain chain = { bench->device, LAUNCHES, false };
    double block[REPEATS];

    for (int i = -1; i < REPEATS; i++) {
        GX_TRY(gx_device_sync(bench->device, err));
        const double begin = gx_exec_clock();

        GX_TRY(launch_links(&chain, err));
        block[i < 0 ? 0 : i] = gx_exec_clock() - begin;
    }
    *launch_s = plausible(gx_median(block, REPEATS) / LAUNCHES);
    return gx_device_sync(bench->device, err);
}

gx_status gx_ceilings_latencies(const gx_ceilings_bench *bench, gx_ceilings *ceilings,
                                gx_error *err)
{
    const bool has_programmatic = bench->device->cc >= 90;
    double host_s = -1;

    GX_TRY(gx_load_kernel(gx_empty_kernel(), 0, "empty", err));
    GX_TRY(gx_load_kernel(gx_overlap_kernel(), 0, "empty", err));
    GX_TRY(gx_load_kernel(gx_spin_kernel(), 0, "spin", err));
    GX_TRY(measure_node(bench, false, &ceilings->node_s, err));
    if (has_programmatic)
        GX_TRY(measure_node(bench, true, &ceilings->programmatic_node_s, err));
    GX_TRY(measure_copy(bench, ceilings, err));
    GX_TRY(measure_join(bench, ceilings, err));
    GX_TRY(measure_step(bench, ceilings->node_s, &ceilings->step_s, err));
    GX_TRY(measure_launch(bench, &ceilings->launch_s, err));
    GX_TRY(gx_empty_graph_host(bench->device->ordinal, 1, HOST_REPLAYS, 0, &host_s, err));
    ceilings->graph_host_s = plausible(host_s);
    return GX_OK;
}
