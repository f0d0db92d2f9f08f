/* A model whose backward pass two orders are possible for, and alternatives which take
 * many layers at once in one of them. */
#include "order_made.h"

#include <string.h>

#include "launch.h"

/* --- the alternatives --- */

static const char kernel = 'k';
static const char *const chain[] = { "gemm", "epilogue.bwd", NULL };
static const char *const weights[] = { "epilogue.bwd", "gemm", NULL };

/* From the first pattern on, those whose derivative of an epilogue leads further back, or
 * has a bias gradient alone. */
static int takes(const gx_group *run, int at, bool goes_on)
{
    int n = 0;

    while (2 * n < run->n_calls &&
           (run->call[2 * n + at].arg[GX_EPILOGUE_BWD_DX].rank >= 0) == goes_on)
        n++;
    return n;
}

static int takes_chain(const gx_group *run)
{
    return takes(run, 1, true);
}

static int takes_weights(const gx_group *run)
{
    return takes(run, 0, false);
}

static gx_status prepare(const gx_group *group, const gx_ctx *ctx, gx_prepared *prepared,
                         gx_error *err)
{
    (void)group;
    (void)ctx;
    prepared->n_launches = 1;
    prepared->n_algos = 1;
    return gx_load_kernel(&kernel, 0, "together", err);
}

static gx_status launch(const gx_group *group, const gx_prepared *prepared, gx_ctx *ctx,
                        gx_error *err)
{
    const dim3 one = { 1, 1, 1 };

    (void)group;
    (void)prepared;
    return gx_launch(ctx, "together", &kernel, one, one, 0, NULL, err);
}

static gx_alternative together[2] = {
    { .name = "together",
      .pattern = chain,
      .repeat = GX_REPEAT_ALL,
      .takes = takes_chain,
      .prepare = prepare,
      .launch = launch },
    { .name = "together",
      .pattern = weights,
      .repeat = GX_REPEAT_ALL,
      .takes = takes_weights,
      .prepare = prepare,
      .launch = launch },
};
static bool has_together;

/* The table without those that repeat, and with these two, or not. */
const gx_alternative *__real_gx_alternative_at(size_t i);
const gx_alternative *__wrap_gx_alternative_at(size_t i);
const gx_alternative *__wrap_gx_alternative_at(size_t i)
{
    const gx_alternative *at;

    for (size_t k = 0; (at = __real_gx_alternative_at(k)); k++) {
        if (at->repeat != GX_REPEAT_ALL && i-- == 0)
            return at;
    }
    return has_together && i < ARRAY_SIZE(together) ? &together[i] : NULL;
}

/* --- a model --- */

#define LAYER(name, in, n)                                                      \
    "  - {op: gemm, name: " name ", a: " in ", b: w" n ", epilogue: {bias: b" n \
    ", act: relu}}\n"

static const char model[] =
    "gexec: 1\nname: ordered\nprecision: f32\n"
    "inputs: {x: {shape: [4, 8], init: normal}, t: {shape: [4, 8], init: normal}}\n"
    "params: {w1: {shape: [8, 8], init: he_normal}, b1: {shape: [8]}, "
    "w2: {shape: [8, 8], init: he_normal}, b2: {shape: [8]}, "
    "w3: {shape: [8, 8], init: he_normal}, b3: {shape: [8]}, "
    "w4: {shape: [8, 8], init: he_normal}, b4: {shape: [8]}}\n"
    "ops:\n" LAYER("a", "x", "1") LAYER("b", "a", "2") LAYER("c", "b", "3")
        LAYER("y", "c", "4") "  - {op: mse, name: loss, x: y, target: t}\n"
                             "backward: loss\noutputs: [loss]\n"
                             "optimizer: {adamw: {lr: 0.1}}\n";

void order_begin(void)
{
    order_offer(true);
    order_set_trial(false);
}

void order_offer(bool offered)
{
    has_together = offered;
}

void order_set_trial(bool trial)
{
    for (size_t i = 0; i < ARRAY_SIZE(together); i++)
        together[i].trial = trial;
}

gx_graph *order_load(void)
{
    gx_graph *graph = NULL;
    gx_error err;

    assert_ok(gx_graph_parse(model, strlen(model), "ordered.yaml", ".", NULL, &graph,
                             NULL, &err),
              &err);
    return graph;
}

gx_plan *order_plan(const gx_graph *graph, const gx_plan_options *options)
{
    gx_plan *plan = NULL;
    gx_error err;

    fake_begin();
    assert_ok(gx_plan_create(graph, options, &plan, &err), &err);
    assert_null(gx_plan_info_get(plan).cache_note);
    return plan;
}

size_t order_count(const gx_plan *plan)
{
    size_t n = 0;

    for (size_t u = 0; u < plan->n_units; u++) {
        if (strcmp(plan->units[u].alternative->name, "together") == 0)
            n += (size_t)plan->units[u].n_nodes;
    }
    return n;
}

void order_close(gx_plan *plan, gx_graph *graph)
{
    gx_plan_free(plan);
    gx_graph_free(graph);
    assert_int_equal(fake_live(), 0);
    assert_null(fake_mistake());
}
