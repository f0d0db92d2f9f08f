/* Fills in captured graphs become kernels: in their places, with their edges, and nothing
 * is left behind where a call fails. */
#include "fake_cuda_paths.h"

#include <stdlib.h>

#include "capture.h"
#include "empty.h"
#include "fake_cuda_parts.h"
#include "launch.h"
#include "measure.h"

/* --- a graph of our own --- */

enum { MEMORY_BYTES = 4096, N_NODES = 8, N_FILLS = 5, PINNED = 5 };

typedef struct fills {
    gx_device *device;
    char *memory, *pinned;
    void *graph, *graph_exec;
    size_t before[N_NODES], after[N_NODES]; /* places that the hooks heard of */
    size_t n_before, n_after;
} fills;

static int open_fills(void **state)
{
    fills *f = calloc(1, sizeof *f);
    gx_error err;

    assert_non_null(f);
    fake_begin();
    gx_error_clear(&err);
    assert_ok(gx_device_open(0, NULL, &f->device, &err), &err);
    assert_ok(gx_device_alloc(f->device, MEMORY_BYTES, (void **)&f->memory, &err), &err);
    assert_int_equal(cudaMallocHost((void **)&f->pinned, MEMORY_BYTES), 0);
    *state = f;
    return 0;
}

static int close_fills(void **state)
{
    fills *f = *state;

    assert_int_equal(cudaFreeHost(f->pinned), 0);
    gx_device_release(f->device, f->memory);
    gx_device_close(f->device);
    free(f);
    assert_null(fake_mistake());
    assert_int_equal(fake_live(), 0);
    return 0;
}

static gx_status launch_kernel(gx_ctx *ctx, gx_error *err)
{
    void *no_arguments[1] = { NULL };
    const dim3 one = { 1, 1, 1 };

    return gx_launch(ctx, "empty", gx_empty_kernel(), one, one, 0, no_arguments, err);
}

/* The simulated memset node of this place, whose parameters are not those of bytes. */
static void reshape(void *graph, size_t place, struct cudaMemsetParams params)
{
    fake_node *node = ((fake_graph *)graph)->nodes[place];

    assert_int_equal(node->type, cudaGraphNodeTypeMemset);
    node->memset = params;
}

static gx_status record_nodes(void *user, gx_error *err)
{
    fills *f = user;
    gx_ctx ctx = gx_device_ctx(f->device, 0);

    ctx.programmatic = ctx.programmatic_first = true;
    GX_TRY(GX_CUDA(cudaMemsetAsync(f->memory, 0x155, 300, ctx.stream), err));
    GX_TRY(launch_kernel(&ctx, err));
    GX_TRY(GX_CUDA(cudaMemsetAsync(f->memory, 1, 1, ctx.stream), err));
    GX_TRY(GX_CUDA(cudaMemsetAsync(f->memory, 2, 2, ctx.stream), err));
    GX_TRY(launch_kernel(&ctx, err)); /* behind a fill, with data of its own */
    GX_TRY(GX_CUDA(cudaMemsetAsync(f->pinned, 3, 3, ctx.stream), err));
    GX_TRY(GX_CUDA(cudaMemcpyAsync(f->memory, f->memory + 64, 64,
                                   cudaMemcpyDeviceToDevice, ctx.stream),
                   err));
    return GX_CUDA(cudaMemsetAsync(f->memory, 4, 4, ctx.stream), err);
}

static void note_before(void *user, size_t place)
{
    fills *f = user;

    f->before[f->n_before++] = place;
}

static void note_after(void *user, size_t place)
{
    fills *f = user;

    f->after[f->n_after++] = place;
}

static gx_status replace_in(fills *f, gx_error *err)
{
    const gx_fill_hooks hooks = { note_before, note_after, f };
    gx_node_counts counts = { .fills = 0 };
    gx_node_list list;

    f->n_before = f->n_after = 0;
    GX_TRY(gx_graph_list(f->graph, &list, err));
    gx_status st = gx_graph_look(&list, &counts, err);
    if (st == GX_OK && counts.fills == N_FILLS) {
        reshape(f->graph, 2,
                (struct cudaMemsetParams){ .dst = f->memory + 2,
                                           .pitch = 64,
                                           .value = 0x12345,
                                           .elementSize = 2,
                                           .width = 7,
                                           .height = 9 });
        reshape(f->graph, 3,
                (struct cudaMemsetParams){ .dst = f->memory + 4,
                                           .pitch = 64, /* means nothing */
                                           .value = 0x89abcdef,
                                           .elementSize = 4,
                                           .width = 5,
                                           .height = 1 });
    }
    if (st == GX_OK)
        st = gx_graph_replace_fills(f->graph, &list, counts.fills, &hooks, err);
    free(list.node);
    return st;
}

static gx_status make_graph(void *user, gx_error *err)
{
    fills *f = user;
    gx_graph_cost cost;

    f->graph = f->graph_exec = NULL;
    gx_status st = gx_record(f->device, record_nodes, f, &f->graph, err);
    if (st == GX_OK)
        st = replace_in(f, err);
    if (st == GX_OK)
        st = gx_graph_start(f->device, f->graph, &f->graph_exec, &cost, err);
    if (st == GX_OK)
        st = gx_graph_submit(f->device, f->graph_exec, err);
    return st;
}

static gx_status make_and_end(void *user, gx_error *err)
{
    fills *f = user;
    const gx_status st = make_graph(user, err);

    fake_quiet(true);
    gx_graph_end(f->graph, f->graph_exec);
    f->graph = f->graph_exec = NULL;
    return st;
}

/* --- what the graph is then --- */

static void assert_fill(const fake_node *node, gx_fill expected)
{
    assert_int_equal(node->type, cudaGraphNodeTypeKernel);
    assert_ptr_equal(node->fill.to, expected.to);
    assert_int_equal(node->fill.row_bytes, expected.row_bytes);
    assert_int_equal(node->fill.n_rows, expected.n_rows);
    assert_int_equal(node->fill.pitch, expected.pitch);
    assert_int_equal(node->fill.word, expected.word);
}

/* In the order of the edges, which is that of the capture. */
static void each_kernel_fills_what_the_fill_did_in_its_place(void **state)
{
    static const bool fills_here[N_NODES] = { true,  false, true,  true,
                                              false, false, false, true };
    fills *f = *state;
    gx_error err;

    gx_error_clear(&err);
    assert_ok(make_graph(f, &err), &err);
    const fake_graph *graph = f->graph;
    unsigned char *const memory = (unsigned char *)f->memory;
    assert_int_equal(graph->n_nodes, N_NODES);
    assert_fill(graph->nodes[0], (gx_fill){ memory, 300, 1, 0, 0x55555555 });
    assert_fill(graph->nodes[2], (gx_fill){ memory + 2, 14, 9, 64, 0x23452345 });
    assert_fill(graph->nodes[3], (gx_fill){ memory + 4, 20, 1, 0, 0x89abcdef });
    assert_fill(graph->nodes[7], (gx_fill){ memory, 4, 1, 0, 0x04040404 });
    for (size_t i = 0; i < N_NODES; i++)
        assert_int_equal(graph->nodes[i]->fill.to != NULL, fills_here[i]);
    assert_int_equal(graph->nodes[PINNED]->type, cudaGraphNodeTypeMemset);
    assert_int_equal(graph->nodes[6]->type, cudaGraphNodeTypeMemcpy);
    gx_graph_end(f->graph, f->graph_exec);
}

static void edges_keep_their_data(void **state)
{
    fills *f = *state;
    int64_t n_programmatic = 0;
    gx_error err;

    gx_error_clear(&err);
    assert_ok(make_graph(f, &err), &err);
    const fake_graph *graph = f->graph;
    assert_int_equal(graph->n_edges, N_NODES - 1);
    assert_ok(gx_graph_programmatic_edges(f->graph, &n_programmatic, &err), &err);
    assert_int_equal(n_programmatic, 2);
    for (size_t i = 0; i < graph->n_edges; i++)
        assert_int_equal(graph->edges[i].data.type,
                         graph->edges[i].to == graph->nodes[1] ||
                                 graph->edges[i].to == graph->nodes[4]
                             ? cudaGraphDependencyTypeProgrammatic
                             : cudaGraphDependencyTypeDefault);
    gx_graph_end(f->graph, f->graph_exec);
}

static void hooks_hear_of_the_fills_places(void **state)
{
    static const size_t places[] = { 0, 2, 3, 7 };
    fills *f = *state;
    gx_error err;

    gx_error_clear(&err);
    assert_ok(make_graph(f, &err), &err);
    assert_int_equal(f->n_before, ARRAY_SIZE(places));
    assert_int_equal(f->n_after, ARRAY_SIZE(places));
    assert_memory_equal(f->before, places, sizeof places);
    assert_memory_equal(f->after, places, sizeof places);
    gx_graph_end(f->graph, f->graph_exec);
}

static void each_call_may_fail(void **state)
{
    static const char *const calls[] = { "cudaGraphMemsetNodeGetParams",
                                         "cudaPointerGetAttributes",
                                         "cudaFuncGetAttributes",
                                         "cudaGraphAddKernelNode",
                                         "cudaGraphGetEdges",
                                         "cudaGraphAddDependencies",
                                         "cudaGraphDestroyNode" };
    gx_error err;

    assert_true(path_fail_each_call(make_and_end, *state) >= 30);
    fake_begin();
    gx_error_clear(&err);
    assert_ok(make_and_end(*state, &err), &err);
    for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
        assert_true(fake_calls(calls[i]) > 0);
    assert_int_equal(fake_calls("cudaGraphAddDependencies"), 1);
    fake_quiet(false);
}

/* --- programs --- */

static size_t count_type(const fake_graph *graph, enum cudaGraphNodeType type)
{
    size_t n = 0;

    for (size_t i = 0; i < graph->n_nodes; i++) {
        n += graph->nodes[i]->type == type;
        if (graph->nodes[i]->body)
            n += count_type(graph->nodes[i]->body, type);
    }
    return n;
}

/* The simulated products begin with a fill each. */
static void no_replay_of_a_program_has_a_fill(int lanes, const gx_exec_options *options)
{
    path_program program;
    gx_error err;

    path_open(&program, lanes);
    assert_ok(gx_exec_create(program.plan, program.state, options, &program.exec, &err),
              &err);
    path_write_inputs(&program);
    fake_begin();
    assert_ok(gx_exec_run(program.exec, GX_MODE_GRAPH, options->steps_per_launch, &err),
              &err);
    const gx_exec_stats stats = gx_exec_stats_get(program.exec);
    const fake_graph *graph = program.exec->graph[0];
    assert_true(fake_calls("cudaGraphAddKernelNode") > 0);
    assert_int_equal(fake_calls("cudaGraphDestroyNode"),
                     fake_calls("cudaGraphAddKernelNode"));
    assert_int_equal(count_type(graph, cudaGraphNodeTypeMemset), 0);
    assert_int_equal(count_type(graph, cudaGraphNodeTypeKernel) +
                         count_type(graph, cudaGraphNodeTypeMemcpy) +
                         count_type(graph, cudaGraphNodeTypeConditional),
                     stats.graph_nodes);
    if (!options->step_loop)
        assert_int_equal(stats.graph_nodes,
                         options->steps_per_launch * stats.launches_per_step);
    assert_null(fake_mistake());
    path_close(&program);
    assert_int_equal(fake_live(), 0);
}

static void programs_replay_kernels_alone(void **state)
{
    (void)state;
    for (int lanes = 1; lanes <= 3; lanes++)
        for (int loop = 0; loop < 2; loop++)
            for (int k = 1; k <= 3; k += 2)
                no_replay_of_a_program_has_a_fill(
                    lanes, &(gx_exec_options){ .steps_per_launch = k,
                                               .step_loop = loop && k > 1 });
}

static const gx_alternative *plain;

static gx_status fill_and_launch(const gx_group *group, const gx_prepared *prepared,
                                 gx_ctx *ctx, gx_error *err)
{
    GX_TRY(GX_CUDA(cudaMemsetAsync(group->call[0].arg[0].data, 0, 0, ctx->stream), err));
    return plain->launch(group, prepared, ctx, err);
}

static size_t fills_in_bodies(const fake_graph *graph)
{
    size_t n = 0;

    for (size_t i = 0; i < graph->n_nodes; i++)
        if (graph->nodes[i]->body)
            n += count_type(graph->nodes[i]->body, cudaGraphNodeTypeMemset);
    return n;
}

/* An update of our own does not fill anything, but a library's product in a branch may.
 * Beside the branch fills stay. */
static void neither_has_the_body_of_a_branch(void **state)
{
    path_program program;
    gx_alternative filling;
    size_t u = 0;
    gx_error err;

    (void)state;
    path_open_scaled(&program, 2, GX_ON, false);
    path_make_exec(&program);
    path_write_inputs(&program);
    while (!program.plan->units[u].skips)
        u++;
    gx_unit *unit = &program.plan->units[u];
    plain = unit->alternative;
    filling = *plain;
    filling.launch = fill_and_launch;
    unit->alternative = &filling;
    unit->n_launches = program.exec->units[u].prepared.n_launches + 1;
    assert_ok(gx_exec_run(program.exec, GX_MODE_GRAPH, 2, &err), &err);
    const fake_graph *graph = program.exec->graph[0];
    assert_true(count_type(graph, cudaGraphNodeTypeConditional) > 0);
    assert_int_equal(fills_in_bodies(graph), 0);
    assert_true(count_type(graph, cudaGraphNodeTypeMemset) > 0);
    unit->alternative = plain;
    path_close(&program);
    assert_null(fake_mistake());
    assert_int_equal(fake_live(), 0);
}

static size_t n_replayed_fills, n_replayed_kernels;

static void ignore_work(const fake_node *what, const fake_node *node)
{
    (void)what;
    (void)node;
}

static void ignore_clone(const fake_node *node, const fake_node *original)
{
    (void)node;
    (void)original;
}

static void count_replayed(const fake_node *nodes, size_t n_nodes)
{
    for (size_t i = 0; i < n_nodes; i++) {
        n_replayed_fills += nodes[i].type == cudaGraphNodeTypeMemset;
        n_replayed_kernels += nodes[i].fill.to != NULL;
    }
}

/* What is measured is what a program would replay. */
static void measured_graphs_have_none_either(void **state)
{
    static const fake_watcher watcher = { .work = ignore_work,
                                          .cloned = ignore_clone,
                                          .replayed = count_replayed };
    path_program program;
    gx_error err;

    (void)state;
    path_open(&program, 1);
    gx_plan_free(program.plan);
    const gx_plan_options options = {
        .device = 0, .cache_folder = "", .lanes = 1, .force = "lt"
    };
    n_replayed_fills = n_replayed_kernels = 0;
    fake_watch(&watcher);
    assert_ok(gx_plan_create(program.graph, &options, &program.plan, &err), &err);
    fake_watch(NULL);
    assert_true(n_replayed_kernels > 0);
    assert_int_equal(n_replayed_fills, 0);
    path_close(&program);
    assert_int_equal(fake_live(), 0);
}

int main(void)
{
#define WITH_FILLS(test) cmocka_unit_test_setup_teardown(test, open_fills, close_fills)
    const struct CMUnitTest tests[] = {
        WITH_FILLS(each_kernel_fills_what_the_fill_did_in_its_place),
        WITH_FILLS(edges_keep_their_data),
        WITH_FILLS(hooks_hear_of_the_fills_places),
        WITH_FILLS(each_call_may_fail),
        cmocka_unit_test(programs_replay_kernels_alone),
        cmocka_unit_test(neither_has_the_body_of_a_branch),
        cmocka_unit_test(measured_graphs_have_none_either),
    };

    return cmocka_run_group_tests_name("fault_fills", tests, NULL, NULL);
}
