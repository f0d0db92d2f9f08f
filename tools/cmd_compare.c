/* gexec compare: the same model by eager launches and by one graph replay. */
#include <string.h>

#include "compare.h"
#include "interrupt.h"

enum { BITS_STEPS = 20 };

static gx_status make_unfused(gx_compare *compare, gx_error *err)
{
    gx_session *const session = &compare->session;
    gx_graph *const graph = session->graph[GX_PROGRAM_TRAIN];
    gx_plan_options options = gx_session_plan_options(session);

    options.unfused = true;
    options.force = NULL;
    options.pin_file = NULL;
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

static gx_status compare_model(gx_compare *compare, const gx_args *args, gx_error *err)
{
    const int64_t k = args->steps_per_launch;
    gx_mode mode;
    int device;
    gx_status st;

    GX_TRY(gx_device_choose(args, true, &device, &mode, err));
    GX_TRY(gx_session_load(&compare->session, args, &(gx_session_needs){ 0 }, device,
                           GX_MODE_GRAPH, err));
    compare->nvml = gx_nvml_open(compare->session.device_info.pci_bus_id);
    compare->bits_steps = args->steps > 0 ? args->steps : BITS_STEPS;
    compare->bits_steps = (compare->bits_steps + k - 1) / k * k;
    GX_TRY(gx_session_open(&compare->session, err));
    gx_interrupt_watch();
    if (args->nsys_window)
        GX_TRY(gx_profiler_window(true, err));
    st = make_ways(compare, err);
    if (args->nsys_window)
        st = gx_first(st, gx_profiler_window(false, st == GX_OK ? err : NULL));
    return st;
}

int gx_cmd_compare(const gx_args *args)
{
    gx_compare compare = { 0 };
    gx_error err = { 0 };
    int exit_status;
    gx_status st = compare_model(&compare, args, &err);

    if (st == GX_OK && (!args->json || strcmp(args->json, "-") != 0))
        gx_compare_print(&compare, stdout);
    if (st == GX_OK && args->json)
        st = gx_compare_write_json(&compare, &err);
    if (st != GX_OK)
        exit_status = gx_say_error(args, &err);
    else if (compare.interrupted)
        exit_status = GX_EXIT_INTERRUPTED;
    else
        exit_status = compare.difference.found ? GX_EXIT_NO : GX_EXIT_OK;
    gx_compare_free(&compare);
    return exit_status;
}
