/* Groups of a model's nodes. */
#include "support_group.h"

#include <string.h>

#include "support.h"

const gx_ctx test_card = { .cc = 90, .shared_optin_bytes = 227 << 10 };

static const gx_alternative *find_at(const gx_graph *graph, const char *name, int32_t n,
                                     int32_t first)
{
    const gx_alternative *at;

    for (size_t i = 0; (at = gx_alternative_at(i)); i++) {
        if (strcmp(at->name, name) == 0 && gx_match_length(graph, at, first) == n)
            return at;
    }
    return NULL;
}

void test_group_open(test_group *g, const char *text, const char *precision,
                     const char *name, int32_t n)
{
    *g = (test_group){ .text = text,
                       .model = test_walk_parse(text, precision, GX_TRAIN, 1) };
    const gx_graph *graph = g->model.graph;

    assert_in_range(n, 1, TEST_GROUP_CALLS);
    while (!(g->at = find_at(graph, name, n, g->first))) {
        if (++g->first == (int32_t)graph->n_nodes)
            fail_msg("no alternative %s of %d ops", name, n);
    }
    gx_match_calls(graph, g->first, n, g->calls);
    gx_match_elided(graph, g->first, n, g->elided);
    g->group = (gx_group){ .n_calls = n,
                           .call = g->calls,
                           .elided = g->at->elides ? g->elided : NULL };
}

void test_group_close(test_group *g)
{
    test_walk_free(&g->model);
}

void test_group_refuses(const test_group *g, const char *why)
{
    const char *reason = g->at->refuses(&g->group, &test_card);

    if (why ? !reason || !strstr(reason, why) : reason != NULL)
        fail_msg("%s\n%s: %s; expected: %s", g->text, g->at->name,
                 reason ? reason : "takes it", why ? why : "takes it");
}

/* Before binding an operand's address is a small number of its own. */
void test_group_align(test_group *g)
{
    for (int c = 0; c < g->group.n_calls; c++) {
        for (int arg = 0; arg < GX_MAX_ARGS; arg++)
            g->calls[c].arg[arg].data =
                (void *)((uintptr_t)g->calls[c].arg[arg].data * 4096);
    }
}

#if GX_HAVE_CUDA
static bool is_wanted(const gx_graph *graph, test_wants *wants, int32_t first, int32_t n)
{
    const gx_alternative *at;

    for (size_t i = 0; (at = gx_alternative_at(i)); i++) {
        if (wants(graph, at, first) && gx_match_length(graph, at, first) == n)
            return true;
    }
    return false;
}

int test_groups_check(test_device *device, const test_walk *walk, test_wants *wants,
                      int32_t most, int shift)
{
    const gx_graph *graph = walk->graph;
    bool elided[TEST_CALLS * GX_MAX_ARGS];
    int ran = 0;

    assert_in_range(most, 1, TEST_CALLS);
    for (int32_t k = 0; k < (int32_t)graph->n_nodes; k++) {
        for (int32_t n = 1; n <= most; n++) {
            if (!is_wanted(graph, wants, k, n))
                continue;
            gx_match_elided(graph, k, n, elided);
            ran += test_nodes_check(device, walk, (size_t)k, n, shift, elided);
        }
    }
    return ran;
}
#endif

const gx_unit *test_unit_of(const gx_plan *plan, const char *node)
{
    const int32_t id = gx_graph_node_id(plan->graph, node);

    for (size_t u = 0; u < plan->n_units; u++) {
        if (plan->units[u].first_node <= id &&
            id < plan->units[u].first_node + plan->units[u].n_nodes)
            return &plan->units[u];
    }
    fail_msg("no unit has %s", node);
    return NULL;
}
