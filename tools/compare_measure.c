/* The measurements of `gexec compare`. */
#include <math.h>

#include "compare.h"
#include "interrupt.h"

/* A block is about this long, so that submitting fills the queue and clocks settle. */
static const double block_s = 0.010;

/* As long as the host waits at most between launches of empty kernels: by then its caches
 * are cold, and a longer step makes nothing of it longer but the measuring. */
static const double most_busy_s = 0.005;

/* Single steps a way: in rounds, so that no way has the machine's good or bad moment. */
enum { ROUNDS = 5, SINGLES = 50, LEAST_STEPS = 20, MOST_STEPS = 5000 };

static gx_status add(gx_series *series, double value, gx_error *err)
{
    return gx_series_add(series, value) ? GX_OK
                                        : GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
}

/* Every measurement starts from the same state on an idle device. */
static gx_status restart(gx_compare *compare, gx_exec *exec, gx_error *err)
{
    GX_TRY(gx_state_restore(compare->session.state, compare->start, err));
    return gx_exec_sync(exec, err);
}

/* The order of the ways, drawn anew. */
static void shuffle(uint64_t *random, gx_way *order)
{
    for (int i = 0; i < GX_N_WAYS; i++)
        order[i] = (gx_way)i;
    for (int i = GX_N_WAYS - 1; i > 0; i--) {
        const int j = (int)(gx_random_next(random) % (uint64_t)(i + 1));
        const gx_way kept = order[i];

        order[i] = order[j];
        order[j] = kept;
    }
}

static gx_status note_clocks(gx_compare *compare, gx_error *err)
{
    const gx_clocks clocks = gx_nvml_clocks(compare->nvml);

    if (!clocks.known)
        return GX_OK;
    compare->throttle |= clocks.throttle;
    GX_TRY(add(&compare->sm_mhz, clocks.sm_mhz, err));
    return add(&compare->memory_mhz, clocks.memory_mhz, err);
}

/* --- single steps --- */

/* One submission to an idle device; with K steps a launch it is K steps in every way. */
static gx_status single(gx_compare *compare, gx_way_times *way, gx_error *err)
{
    const int64_t k = compare->session.steps_per_launch;
    gx_timing timing;

    GX_TRY(gx_exec_time(way->exec, way->mode, k, &timing, err));
    GX_TRY(add(&way->host, timing.host_s / (double)k, err));
    return add(&way->wall, timing.wall_s / (double)k, err);
}

/* A graph of as many empty kernels as a replay has nodes, under the replay's conditions:
 * before each launch the host waits for as long as it did between replays. */
static gx_status measure_empty(const gx_compare *compare, int64_t n_nodes,
                               gx_series *empty, gx_error *err)
{
    const double k = (double)compare->session.steps_per_launch;
    const gx_summary wall = gx_series_summary(&compare->way[GX_WAY_GRAPH].wall);
    double empty_s = -1;

    GX_TRY(gx_empty_graph_host(compare->session.device, n_nodes, SINGLES,
                               fmin(k * wall.median, most_busy_s), &empty_s, err));
    return add(empty, empty_s / k, err);
}

static gx_status measure_singles(gx_compare *compare, uint64_t *random, gx_error *err)
{
    const int64_t nodes = gx_exec_stats_get(compare->way[GX_WAY_GRAPH].exec).graph_nodes;
    gx_series empty = { 0 };
    gx_status st = GX_OK;

    for (int round = 0; round < ROUNDS && st == GX_OK && !gx_interrupted(); round++) {
        gx_way order[GX_N_WAYS];

        shuffle(random, order);
        for (int i = 0; i < GX_N_WAYS && st == GX_OK; i++) {
            gx_way_times *const way = &compare->way[order[i]];

            st = restart(compare, way->exec, err);
            for (int s = 0; s < SINGLES && st == GX_OK; s++)
                st = single(compare, way, err);
        }
        if (st == GX_OK && nodes > 0)
            st = measure_empty(compare, nodes, &empty, err);
    }
    compare->empty_s = gx_series_summary(&empty).median;
    gx_series_free(&empty);
    return st;
}

/* --- blocks --- */

/* Steps that fill a block in the slowest way, a multiple of the steps a launch. */
static gx_status choose_block(gx_compare *compare, gx_error *err)
{
    const gx_args *const args = compare->session.args;
    const int64_t k = compare->session.steps_per_launch;
    const gx_way_times *const graph = &compare->way[GX_WAY_GRAPH];
    gx_timing timing;
    double n;

    if (args->block > 0) {
        compare->block = (args->block + k - 1) / k * k;
        return GX_OK;
    }
    GX_TRY(restart(compare, graph->exec, err));
    GX_TRY(gx_exec_time(graph->exec, graph->mode, k, &timing, err));
    GX_TRY(gx_exec_time(graph->exec, graph->mode, 4 * k, &timing, err));
    n = timing.device_s > 0 ? ceil(block_s * (double)(4 * k) / timing.device_s)
                            : LEAST_STEPS;
    n = fmin(fmax(n, LEAST_STEPS), MOST_STEPS);
    compare->block = ((int64_t)n + k - 1) / k * k;
    return GX_OK;
}

static gx_status block(gx_compare *compare, gx_way_times *way, gx_error *err)
{
    const double n = (double)compare->block;
    gx_timing timing;

    GX_TRY(restart(compare, way->exec, err));
    const double waited = gx_exec_stats_get(way->exec).data_wait_s;
    GX_TRY(gx_exec_time(way->exec, way->mode, compare->block, &timing, err));
    if (compare->session.streams)
        GX_TRY(add(&way->wait, (gx_exec_stats_get(way->exec).data_wait_s - waited) / n,
                   err));
    GX_TRY(note_clocks(compare, err));
    GX_TRY(add(&way->queued, timing.host_s / n, err));
    return add(&way->steady, timing.device_s / n, err);
}

static double last(const gx_series *series)
{
    return series->values[series->n - 1];
}

static gx_status measure_pair(gx_compare *compare, uint64_t *random, gx_error *err)
{
    gx_way order[GX_N_WAYS];
    double place = 0;

    shuffle(random, order);
    for (int i = 0; i < GX_N_WAYS; i++) {
        GX_TRY(block(compare, &compare->way[order[i]], err));
        if (order[i] == GX_WAY_GRAPH)
            place = i;
    }
    const double graph = last(&compare->way[GX_WAY_GRAPH].steady);
    GX_TRY(add(&compare->order, place, err));
    GX_TRY(add(&compare->ratio, graph / last(&compare->way[GX_WAY_EAGER].steady), err));
    return add(&compare->ratio_unfused,
               graph / last(&compare->way[GX_WAY_UNFUSED].steady), err);
}

gx_status gx_compare_measure(gx_compare *compare, gx_error *err)
{
    uint64_t random = compare->session.args->seed;

    GX_TRY(choose_block(compare, err));
    /* Not counted: the first block of each way finds cold caches and low clocks. */
    for (int i = 0; i < GX_N_WAYS; i++) {
        gx_way_times *const way = &compare->way[i];
        gx_timing timing;

        GX_TRY(restart(compare, way->exec, err));
        GX_TRY(gx_exec_time(way->exec, way->mode, compare->block, &timing, err));
    }
    gx_measured_begin();
    gx_status st = measure_singles(compare, &random, err);
    for (int64_t pair = 0; pair < compare->session.args->pairs && st == GX_OK; pair++) {
        if (gx_interrupted())
            break;
        st = measure_pair(compare, &random, err);
    }
    gx_measured_end();
    compare->interrupted = gx_interrupted();
    compare->stats = gx_exec_stats_get(compare->way[GX_WAY_GRAPH].exec);
    return st;
}

double gx_compare_launch_host(const gx_compare *compare)
{
    const gx_summary host = gx_series_summary(&compare->way[GX_WAY_GRAPH].host);

    return host.n ? host.median * (double)compare->session.steps_per_launch : -1;
}

double gx_compare_build_a_node(const gx_compare *compare)
{
    const gx_exec_stats *const stats = &compare->stats;

    if (stats->graph_nodes <= 0 || stats->capture_s < 0 || stats->instantiate_s < 0)
        return -1;
    return (stats->capture_s + stats->instantiate_s) / (double)stats->graph_nodes;
}

double gx_compare_pays_after(const gx_compare *compare)
{
    const gx_exec_stats stats = compare->stats;
    const gx_summary eager = gx_series_summary(&compare->way[GX_WAY_EAGER].steady);
    const gx_summary graph = gx_series_summary(&compare->way[GX_WAY_GRAPH].steady);

    if (!eager.n || !graph.n || !(graph.median < eager.median))
        return -1;
    return ceil((stats.capture_s + stats.instantiate_s + stats.upload_s) /
                (eager.median - graph.median));
}

void gx_compare_release(gx_compare *compare)
{
    gx_session *const session = &compare->session;

    gx_snapshot_free(compare->start);
    compare->start = NULL;
    gx_exec_free(compare->unfused_exec);
    compare->unfused_exec = NULL;
    for (int i = 0; i < GX_N_WAYS; i++)
        compare->way[i].exec = NULL;
    for (int i = 0; i < GX_N_PROGRAMS; i++)
        for (int k = 0; k < 2; k++) {
            gx_exec_free(session->exec[i][k]);
            session->exec[i][k] = NULL;
        }
    gx_state_free(session->state);
    session->state = NULL;
}

void gx_compare_free(gx_compare *compare)
{
    for (int i = 0; i < GX_N_WAYS; i++) {
        gx_series_free(&compare->way[i].host);
        gx_series_free(&compare->way[i].wall);
        gx_series_free(&compare->way[i].queued);
        gx_series_free(&compare->way[i].steady);
        gx_series_free(&compare->way[i].wait);
    }
    gx_series_free(&compare->order);
    gx_series_free(&compare->ratio);
    gx_series_free(&compare->ratio_unfused);
    gx_series_free(&compare->sm_mhz);
    gx_series_free(&compare->memory_mhz);
    gx_snapshot_free(compare->start);
    gx_exec_free(compare->unfused_exec);
    gx_plan_free(compare->unfused_plan);
    gx_nvml_close(compare->nvml);
    gx_session_close(&compare->session);
}
