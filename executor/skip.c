/* Updates that a step may have to skip, since its gradients overflowed or since it only
 * adds to them: which units they are, and what an IF node around them needs. */
#include <string.h>

#include "builder.h"
#include "plan.h"
#include "resolve.h"

/* The number of the update is negative where the step has none. */
static bool is_update(const gx_graph *graph, int32_t id)
{
    return id >= 0 && graph->values[id].producer >= 0 &&
           strcmp(graph->values[id].name, GX_UPDATE) == 0;
}

/* Such a row then does nothing, and makes no value of its own, which would be missing. */
static bool skips(const gx_graph *graph, const gx_node *node)
{
    bool reads = false;

    for (int arg = 0; arg < gx_n_args(node->op); arg++) {
        const gx_field_kind kind = gx_arg_kind(node->op, arg);

        if (kind == GX_FIELD_OUT && node->arg[arg] >= 0)
            return false;
        reads |= kind == GX_FIELD_IN && is_update(graph, node->arg[arg]);
    }
    return reads;
}

bool gx_unit_skips(const gx_graph *graph, int32_t first, int32_t n)
{
    for (int32_t i = first; i < first + n; i++)
        if (graph->nodes[i].phase != GX_PHASE_OPTIMIZER ||
            !skips(graph, &graph->nodes[i]))
            return false;
    return n > 0;
}

bool gx_plan_may_skip(const gx_plan *plan)
{
    for (size_t u = 0; u < plan->n_units; u++)
        if (plan->units[u].skips)
            return true;
    return false;
}

gx_status gx_need_conditions(int driver, const char *what, gx_error *err)
{
    enum { HAS_CONDITIONS = 12040 };

    if (driver >= HAS_CONDITIONS)
        return GX_OK;
    return GX_FAIL(err, GX_ERR_UNSUPPORTED,
                   "%s needs a driver of CUDA 12.4 or newer, and this one is of CUDA "
                   "%d.%d",
                   what, driver / 1000, driver % 1000 / 10);
}
