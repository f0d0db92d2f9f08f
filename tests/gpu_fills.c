/* Fills in captured graphs on a GPU: kernels in their place write the same bytes and no
 * other, wherever the graph has them. */
#include <stdlib.h>
#include <string.h>

#include <cuda.h>

#include "capture.h"
#include "count_turn.h"
#include "cuda_compat.h"
#include "empty.h"
#include "launch.h"
#include "set_branch.h"
#include "support_gpu.h"

#define assert_cuda(call) assert_int_equal((int)(call), (int)cudaSuccess)

/* Fills are small, or as large as several turns of a grid take. */
enum { BYTES = 1 << 20, SMALL = 300, N_WORKS = 80, REPLAYS = 3 };

/* The runtime fills bytes alone; these also write elements of 2 and 4. */
typedef struct fill_calls {
    __typeof__(cuMemsetD2D8Async) *of_1;
    __typeof__(cuMemsetD2D16Async) *of_2;
    __typeof__(cuMemsetD2D32Async) *of_4;
} fill_calls;

typedef struct gpu_fills {
    gx_device *device;
    fill_calls call;
    unsigned char *memory; /* on the device */
    unsigned char *model;  /* what it must hold */
    cudaStream_t side;     /* for a body */
    void *stream;          /* that the work goes to; NULL: lane 0's */
    uint64_t seed;
    /* of a loop or a branch */
    gx_loop loop;
    void *body;
    int *turns;
    uint64_t condition;
    int32_t *update;
} gpu_fills;

static void find_call(const char *name, void *function)
{
    enum cudaDriverEntryPointQueryResult found;
    void *symbol = NULL;

    assert_cuda(gx_compat_driver_entry(name, &symbol, &found));
    assert_non_null(symbol);
    memcpy(function, &symbol, sizeof symbol);
}

static int open_fills(void **state)
{
    gpu_fills *f = calloc(1, sizeof *f);
    gx_error err;

    assert_non_null(f);
    f->model = malloc(BYTES);
    assert_non_null(f->model);
    f->seed = test_seed();
    gx_error_clear(&err);
    assert_ok(gx_device_open(0, NULL, &f->device, &err), &err);
    assert_ok(gx_device_alloc(f->device, BYTES, (void **)&f->memory, &err), &err);
    assert_ok(gx_device_alloc(f->device, sizeof(int), (void **)&f->turns, &err), &err);
    assert_ok(gx_device_alloc(f->device, sizeof(int32_t), (void **)&f->update, &err),
              &err);
    assert_cuda(cudaStreamCreateWithFlags(&f->side, cudaStreamNonBlocking));
    find_call("cuMemsetD2D8Async", &f->call.of_1);
    find_call("cuMemsetD2D16Async", &f->call.of_2);
    find_call("cuMemsetD2D32Async", &f->call.of_4);
    assert_ok(gx_load_kernel(gx_empty_kernel(), 0, "empty", &err), &err);
    assert_ok(gx_load_kernel(gx_count_turn_kernel(), 0, "count_turn", &err), &err);
    assert_ok(gx_load_kernel(gx_set_branch_kernel(), 0, "set_branch", &err), &err);
    *state = f;
    return 0;
}

static int close_fills(void **state)
{
    gpu_fills *f = *state;

    assert_cuda(cudaStreamDestroy(f->side));
    gx_device_release(f->device, f->update);
    gx_device_release(f->device, f->turns);
    gx_device_release(f->device, f->memory);
    gx_device_close(f->device);
    free(f->model);
    free(f);
    return 0;
}

/* --- work, on the card and in the model --- */

typedef struct fill_work {
    int element;
    size_t at, width, height, pitch;
    uint32_t value;
} fill_work;

/* Odd sizes and addresses, as far as elements may have them. */
static fill_work draw_fill(test_random *random)
{
    const int element = 1 << test_random_int(random, 0, 2);
    const bool is_large = test_random_int(random, 0, 9) == 0;
    const bool has_rows = test_random_int(random, 0, 1) == 1;
    fill_work work = {
        .element = element,
        .at = (size_t)element * (size_t)test_random_int(random, 0, 5000),
        .width = (size_t)test_random_int(random, 1, is_large ? 1 << 16 : SMALL),
        .height = has_rows ? (size_t)test_random_int(random, 2, is_large ? 3 : 50) : 1,
        .value = (uint32_t)test_random_bits(random),
    };

    work.pitch = (size_t)element *
                 (work.width + (size_t)test_random_int(random, 0, has_rows ? 20 : 0));
    assert_true(work.at + work.height * work.pitch <= BYTES);
    return work;
}

static CUresult fill_on(const gpu_fills *f, const fill_work *w, CUstream stream)
{
    const CUdeviceptr to = (CUdeviceptr)(uintptr_t)(f->memory + w->at);

    switch (w->element) {
    case 1:
        return f->call.of_1(to, w->pitch, (unsigned char)w->value, w->width, w->height,
                            stream);
    case 2:
        return f->call.of_2(to, w->pitch, (unsigned short)w->value, w->width, w->height,
                            stream);
    default:
        return f->call.of_4(to, w->pitch, w->value, w->width, w->height, stream);
    }
}

static void fill_model(const gpu_fills *f, const fill_work *w)
{
    for (size_t row = 0; row < w->height; row++)
        for (size_t i = 0; i < w->width * (size_t)w->element; i++)
            f->model[w->at + row * w->pitch + i] =
                (unsigned char)(w->value >> 8 * (i % (size_t)w->element));
}

static gx_status copy_work(const gpu_fills *f, test_random *random, gx_ctx *ctx,
                           gx_error *err)
{
    const size_t half = BYTES / 2;
    const size_t bytes = (size_t)test_random_int(random, 1, 5000);
    const size_t from = (size_t)test_random_int(random, 0, (int64_t)(half - bytes));
    const size_t to = half + (size_t)test_random_int(random, 0, (int64_t)(half - bytes));

    if (ctx)
        return GX_CUDA(cudaMemcpyAsync(f->memory + to, f->memory + from, bytes,
                                       cudaMemcpyDeviceToDevice, ctx->stream),
                       err);
    memcpy(f->model + to, f->model + from, bytes);
    return GX_OK;
}

static gx_status fill_or_fail(const gpu_fills *f, test_random *random, gx_ctx *ctx,
                              gx_error *err)
{
    const fill_work work = draw_fill(random);

    if (!ctx) {
        fill_model(f, &work);
        return GX_OK;
    }
    const CUresult error = fill_on(f, &work, ctx->stream);
    return error == CUDA_SUCCESS ? GX_OK
                                 : GX_FAIL(err, GX_ERR_CUDA, "a fill: %d", (int)error);
}

/* The same each time: fills, one behind the other and between kernels and copies. Without
 * a ctx in the model. A programmatic edge is one between kernels. */
static gx_status work(const gpu_fills *f, gx_ctx *ctx, gx_error *err)
{
    test_random random = test_random_start(f->seed);
    void *no_arguments[1] = { NULL };
    const dim3 one = { 1, 1, 1 };

    for (int i = 0; i < N_WORKS; i++) {
        const int64_t kind = test_random_int(&random, 0, 9);

        if (kind == 0)
            GX_TRY(copy_work(f, &random, ctx, err));
        else if (kind > 2)
            GX_TRY(fill_or_fail(f, &random, ctx, err));
        if (ctx && (kind == 0 || kind > 2))
            ctx->n_launched = 0;
        else if (ctx)
            GX_TRY(gx_launch(ctx, "empty", gx_empty_kernel(), one, one, 0, no_arguments,
                             err));
    }
    return GX_OK;
}

/* --- recording it --- */

static gx_ctx ctx_of(const gpu_fills *f)
{
    gx_ctx ctx = gx_device_ctx(f->device, 0);

    ctx.programmatic = true; /* between kernels that follow one another */
    return ctx;
}

static gx_status record_work(void *user, gx_error *err)
{
    const gpu_fills *f = user;
    gx_ctx ctx = ctx_of(f);

    if (f->stream)
        ctx.stream = f->stream;
    ctx.programmatic = f->stream == NULL;
    return work(f, &ctx, err);
}

static gx_status record_turn(void *user, gx_error *err)
{
    gpu_fills *f = user;
    gx_ctx ctx = gx_device_ctx(f->device, 0);
    int n_turns = REPLAYS;
    void *args[] = { &f->loop.handle, &f->turns, &n_turns };
    const dim3 one = { 1, 1, 1 };

    GX_TRY(record_work(f, err));
    return gx_launch(&ctx, "count_turn", gx_count_turn_kernel(), one, one, 0, args, err);
}

static gx_status record_branch(void *user, gx_error *err)
{
    gpu_fills *f = user;
    gx_ctx ctx = gx_device_ctx(f->device, 0);
    void *args[] = { &f->condition, &f->update };
    const dim3 one = { 1, 1, 1 };

    GX_TRY(gx_record_condition(f->device, &f->condition, err));
    GX_TRY(gx_launch(&ctx, "set_branch", gx_set_branch_kernel(), one, one, 0, args, err));
    f->stream = f->side;
    const gx_status st =
        gx_record_branch(f->device, f->side, f->condition, record_work, f, &f->body, err);
    f->stream = NULL;
    return st;
}

/* --- what is held against what --- */

static gx_node_counts counts_of(void *graph, gx_node_list *list)
{
    gx_node_counts counts;
    gx_error err;

    gx_error_clear(&err);
    assert_ok(gx_graph_list(graph, list, &err), &err);
    assert_ok(gx_graph_look(list, &counts, &err), &err);
    return counts;
}

static size_t count_edges(void *graph)
{
    size_t n = 0;

    assert_cuda(gx_compat_graph_edges(graph, NULL, NULL, NULL, &n));
    return n;
}

/* Replaces the fills of a graph or a body. */
static void replace_fills(void *graph)
{
    int64_t n_programmatic_before, n_programmatic;
    gx_node_list list, again;
    gx_error err;

    gx_error_clear(&err);
    const gx_node_counts before = counts_of(graph, &list);
    const size_t n_edges = count_edges(graph);
    assert_ok(gx_graph_programmatic_edges(graph, &n_programmatic_before, &err), &err);
    assert_true(before.fills > N_WORKS / 4);
    assert_ok(gx_graph_replace_fills(graph, &list, before.fills, NULL, &err), &err);
    const gx_node_counts after = counts_of(graph, &again);
    assert_int_equal(after.fills, 0);
    assert_int_equal(after.kernels, before.kernels + before.fills);
    assert_int_equal(after.copies, before.copies);
    assert_int_equal(again.n, list.n);
    assert_int_equal(count_edges(graph), n_edges);
    assert_ok(gx_graph_programmatic_edges(graph, &n_programmatic, &err), &err);
    assert_int_equal(n_programmatic, n_programmatic_before);
    free(list.node);
    free(again.node);
}

/* Bytes that no fill is likely to write. */
static void begin(const gpu_fills *f)
{
    test_random random = test_random_start(f->seed ^ 1);
    gx_error err;

    gx_error_clear(&err);
    for (size_t i = 0; i < BYTES; i++)
        f->model[i] = (unsigned char)test_random_bits(&random);
    assert_cuda(cudaMemcpy(f->memory, f->model, BYTES, cudaMemcpyHostToDevice));
    assert_cuda(cudaMemset(f->turns, 0, sizeof *f->turns));
    assert_cuda(cudaMemset(f->update, 0, sizeof *f->update));
    assert_cuda(cudaDeviceSynchronize());
}

static void compare(const gpu_fills *f)
{
    unsigned char *found = malloc(BYTES);
    gx_error err;

    gx_error_clear(&err);
    assert_non_null(found);
    assert_ok(gx_device_sync(f->device, &err), &err);
    assert_cuda(cudaMemcpy(found, f->memory, BYTES, cudaMemcpyDeviceToHost));
    assert_ok(work(f, NULL, &err), &err);
    for (size_t i = 0; i < BYTES; i++)
        if (found[i] != f->model[i])
            fail_msg("byte %zu is %d, expected %d (GX_TEST_SEED=%llu)", i, found[i],
                     f->model[i], (unsigned long long)f->seed);
    free(found);
}

/* Replays; a launch makes as many turns. */
static void replay(const gpu_fills *f, void *graph, int n_turns)
{
    void *graph_exec = NULL;
    gx_graph_cost cost;
    gx_error err;

    gx_error_clear(&err);
    begin(f);
    assert_ok(gx_graph_start(f->device, graph, &graph_exec, &cost, &err), &err);
    for (int i = 0; i < REPLAYS; i++) {
        assert_ok(gx_graph_submit(f->device, graph_exec, &err), &err);
        for (int turn = 1; turn < n_turns; turn++)
            assert_ok(work(f, NULL, &err), &err);
        compare(f);
    }
    gx_graph_end(graph, graph_exec);
}

/* --- scenarios --- */

static void the_model_is_what_eager_work_does(void **state)
{
    gpu_fills *f = *state;
    gx_error err;

    gx_error_clear(&err);
    begin(f);
    assert_ok(record_work(f, &err), &err);
    compare(f);
}

static void a_graph_of_kernels_writes_the_same_bytes(void **state)
{
    gpu_fills *f = *state;
    void *graph = NULL;
    gx_error err;

    gx_error_clear(&err);
    for (int round = 0; round < (test_is_short() ? 1 : 5); round++, f->seed++) {
        assert_ok(gx_record(f->device, record_work, f, &graph, &err), &err);
        replace_fills(graph);
        replay(f, graph, 1);
    }
}

static void so_does_the_body_of_a_loop(void **state)
{
    gpu_fills *f = *state;
    void *graph = NULL;
    gx_error err;

    if (!test_has_conditions())
        skip();
    gx_error_clear(&err);
    assert_ok(gx_record_loop(f->device, record_turn, f, &f->loop, &graph, &err), &err);
    replace_fills(f->loop.body);
    replay(f, graph, REPLAYS);
}

static void so_does_the_body_of_a_branch(void **state)
{
    gpu_fills *f = *state;
    void *graph = NULL;
    gx_error err;

    if (!test_has_conditions())
        skip();
    gx_error_clear(&err);
    assert_ok(gx_record(f->device, record_branch, f, &graph, &err), &err);
    replace_fills(f->body);
    replay(f, graph, 1);
}

int main(void)
{
#define WITH_FILLS(test) cmocka_unit_test_setup_teardown(test, open_fills, close_fills)
    gpu_start();
    const struct CMUnitTest tests[] = {
        WITH_FILLS(the_model_is_what_eager_work_does),
        WITH_FILLS(a_graph_of_kernels_writes_the_same_bytes),
        WITH_FILLS(so_does_the_body_of_a_loop),
        WITH_FILLS(so_does_the_body_of_a_branch),
    };

    return cmocka_run_group_tests_name("gpu_fills", tests, NULL, NULL);
}
