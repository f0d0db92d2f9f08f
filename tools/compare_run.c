/* The three ways of `gexec compare`: made, compared to the bit, measured. */
#include "compare.h"
#include "remarks.h"

enum { BITS_STEPS = 20 };

static gx_status make_unfused(gx_compare *compare, gx_error *err)
{
    gx_session *const session = &compare->session;
    gx_graph *const graph = session->graph[GX_PROGRAM_TRAIN];
    gx_plan_options options = gx_session_plan_options(session);

    options.unfused = true;
    options.force = NULL;
    options.pin_file = NULL;
    options.steps_per_launch = 0;
    options.skip_if = GX_OFF; /* no graph is made of it */
    GX_TRY(gx_plan_create(graph, &options, &compare->unfused_plan, err));
    GX_TRY(gx_exec_create(compare->unfused_plan, session->state, NULL,
                          &compare->unfused_exec, err));
    return gx_session_write_inputs(session, graph, compare->unfused_exec, err);
}

/* Eager and graph are two modes of one exec: one plan, one arena, one set of algorithms.
 */
static gx_status make_ways(gx_compare *compare, gx_error *err)
{
    gx_session *const session = &compare->session;
    gx_exec *exec;

    GX_TRY(gx_session_exec(session, GX_PROGRAM_TRAIN, true, &exec, err));
    GX_TRY(gx_exec_capture(exec, err));
    const int64_t k = session->steps_per_launch;
    compare->bits_steps = (compare->bits_steps + k - 1) / k * k;
    GX_TRY(make_unfused(compare, err));
    compare->way[GX_WAY_UNFUSED].exec = compare->unfused_exec;
    compare->way[GX_WAY_UNFUSED].mode = GX_MODE_EAGER;
    compare->way[GX_WAY_EAGER].exec = exec;
    compare->way[GX_WAY_EAGER].mode = GX_MODE_EAGER;
    compare->way[GX_WAY_GRAPH].exec = exec;
    compare->way[GX_WAY_GRAPH].mode = GX_MODE_GRAPH;
    GX_TRY(gx_state_save(session->state, &compare->start, err));
    GX_TRY(gx_compare_bits(compare, err));
    GX_TRY(gx_compare_measure(compare, err));
    for (int i = 0; i < GX_N_WAYS; i++)
        compare->way[i].launches =
            gx_exec_stats_get(compare->way[i].exec).launches_per_step;
    return GX_OK;
}

gx_status gx_compare_open(gx_compare *compare, const gx_args *args,
                          const gx_session_needs *needs, int device, gx_error *err)
{
    GX_TRY(gx_session_load(&compare->session, args, needs, device, GX_MODE_GRAPH, err));
    gx_session_say(&compare->session, false);
    compare->nvml = gx_nvml_open(compare->session.device_info.pci_bus_id);
    compare->bits_steps = args->steps > 0 ? args->steps : BITS_STEPS;
    return gx_session_open(&compare->session, err);
}

gx_status gx_compare_run(gx_compare *compare, gx_error *err)
{
    const bool window = compare->session.args->nsys_window;
    gx_status st;

    if (window)
        GX_TRY(gx_profiler_window(true, err));
    st = make_ways(compare, err);
    if (window)
        st = gx_first(st, gx_profiler_window(false, st == GX_OK ? err : NULL));
    return st;
}
