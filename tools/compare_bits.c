/* The bits of `gexec compare`: every output, parameter and state after some steps. */
#include <stdlib.h>
#include <string.h>

#include "compare.h"
#include "host_tensor.h"

/* Values in the order in which a difference is told: what a reader knows first. */
static bool belongs(const gx_value_info *value, int pass)
{
    switch (pass) {
    case 0:
        return value->kind == GX_VALUE_TEMP && value->is_output;
    case 1:
        return value->kind == GX_VALUE_PARAM;
    case 2:
        return value->kind == GX_VALUE_STATE;
    default:
        return false;
    }
}

enum { N_PASSES = 3 };

static gx_status run_from_start(gx_compare *compare, gx_way way, gx_error *err)
{
    const gx_way_times *const times = &compare->way[way];

    GX_TRY(gx_state_restore(compare->session.state, compare->start, err));
    GX_TRY(gx_exec_run(times->exec, times->mode, compare->bits_steps, err));
    return gx_exec_sync(times->exec, err);
}

/* Reads every compared value of the graph into `tensors`, by value index. */
static gx_status read_all(gx_compare *compare, gx_way way, gx_tensor *tensors,
                          gx_error *err)
{
    const gx_graph *const graph = compare->session.graph[GX_PROGRAM_TRAIN];

    for (size_t i = 0; i < gx_graph_value_count(graph); i++) {
        const gx_value_info value = gx_graph_value(graph, i);

        for (int pass = 0; pass < N_PASSES; pass++)
            if (belongs(&value, pass))
                GX_TRY(gx_host_tensor_read(compare->way[way].exec, &value, GX_N_DTYPES,
                                           &tensors[i], err));
    }
    return GX_OK;
}

/* Bits, not numbers: equal NaNs are equal, 0 and -0 are not. */
static void compare_tensor(const gx_value_info *value, const gx_tensor *eager,
                           const gx_tensor *graph, gx_difference *difference)
{
    const size_t bytes = gx_dtype_bytes(eager->dtype);
    const int64_t n = gx_count(eager);
    const char *const a = eager->data;
    const char *const b = graph->data;

    if (memcmp(a, b, (size_t)n * bytes) == 0)
        return;
    difference->n_elements = n;
    snprintf(difference->tensor, sizeof difference->tensor, "%s", value->name);
    for (int64_t i = 0; i < n; i++) {
        if (memcmp(a + (size_t)i * bytes, b + (size_t)i * bytes, bytes) == 0)
            continue;
        if (!difference->found) {
            difference->position = gx_words_position(eager, i);
            difference->eager = gx_host_tensor_at(eager, i);
            difference->graph = gx_host_tensor_at(graph, i);
        }
        difference->found = true;
        difference->n_differ++;
    }
}

static void find_difference(gx_compare *compare, const gx_tensor *eager,
                            const gx_tensor *graph_tensors)
{
    const gx_graph *const graph = compare->session.graph[GX_PROGRAM_TRAIN];

    for (int pass = 0; pass < N_PASSES; pass++)
        for (size_t i = 0; i < gx_graph_value_count(graph); i++) {
            const gx_value_info value = gx_graph_value(graph, i);

            if (!belongs(&value, pass))
                continue;
            compare->n_compared++;
            if (!compare->difference.found)
                compare_tensor(&value, &eager[i], &graph_tensors[i],
                               &compare->difference);
        }
}

static void free_all(gx_tensor *tensors, size_t n)
{
    for (size_t i = 0; tensors && i < n; i++)
        free(tensors[i].data);
    free(tensors);
}

gx_status gx_compare_bits(gx_compare *compare, gx_error *err)
{
    const size_t n = gx_graph_value_count(compare->session.graph[GX_PROGRAM_TRAIN]);
    gx_tensor *eager = calloc(n + 1, sizeof *eager);
    gx_tensor *graph = calloc(n + 1, sizeof *graph);
    gx_status st = GX_OK;

    if (!eager || !graph)
        st = GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    if (st == GX_OK)
        st = run_from_start(compare, GX_WAY_EAGER, err);
    if (st == GX_OK)
        st = read_all(compare, GX_WAY_EAGER, eager, err);
    if (st == GX_OK)
        st = run_from_start(compare, GX_WAY_GRAPH, err);
    if (st == GX_OK)
        st = read_all(compare, GX_WAY_GRAPH, graph, err);
    if (st == GX_OK)
        find_difference(compare, eager, graph);
    free_all(eager, n);
    free_all(graph, n);
    return st;
}
