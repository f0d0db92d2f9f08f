/* Programs in several threads: a capture does not mind what other threads do. */
#include "support_gpu.h"

#include <pthread.h>
#include <stdatomic.h>

#include <cuda_runtime_api.h>

/* CMocka's checks end the test from the thread that runs it alone, so threads count. */
typedef struct poller {
    cudaEvent_t event;
    atomic_bool stop;
    atomic_long n_polls, n_failed;
} poller;

static void *poll(void *user)
{
    poller *p = user;

    while (!atomic_load(&p->stop)) {
        if (cudaEventQuery(p->event) != cudaSuccess)
            atomic_fetch_add(&p->n_failed, 1);
        atomic_fetch_add(&p->n_polls, 1);
    }
    return NULL;
}

static void another_thread_may_ask_for_events_while_graphs_are_built(void **state)
{
    const int n_builds = test_is_short() ? 10 : 200;
    poller p = { .event = NULL };
    gpu_program program;
    pthread_t thread;
    void *memory = NULL;
    gx_error err;

    (void)state;
    assert_int_equal(cudaEventCreate(&p.event), 0);
    assert_int_equal(cudaEventRecord(p.event, NULL), 0);
    assert_int_equal(cudaMalloc(&memory, 16 * 33 * sizeof(float)), 0);
    assert_int_equal(cudaMemset(memory, 0, 16 * 33 * sizeof(float)), 0);
    gpu_open(&program, NULL);
    assert_int_equal(pthread_create(&thread, NULL, poll, &p), 0);
    void *places[2] = { memory, NULL };
    assert_int_equal(cudaMalloc(&places[1], 16 * 33 * sizeof(float)), 0);
    assert_int_equal(cudaMemset(places[1], 0, 16 * 33 * sizeof(float)), 0);
    gx_status st = GX_OK;
    int n_built = 0;
    for (; n_built < n_builds && st == GX_OK; n_built++) {
        st = gx_exec_bind(program.exec, "x", places[n_built % 2], &err);
        if (st == GX_OK)
            st = gx_exec_capture(program.exec, &err);
    }
    atomic_store(&p.stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_ok(st, &err);
    assert_int_equal(gx_exec_stats_get(program.exec).instantiations, n_builds);
    assert_true(atomic_load(&p.n_polls) > 0);
    assert_int_equal(atomic_load(&p.n_failed), 0);
    gpu_close(&program);
    assert_int_equal(cudaFree(places[0]), 0);
    assert_int_equal(cudaFree(places[1]), 0);
    assert_int_equal(cudaEventDestroy(p.event), 0);
}

typedef struct builder {
    gpu_program program;
    int64_t n_steps;
    atomic_bool stop;
    atomic_long n_done;
    gx_status status;
    gx_error err;
} builder;

/* Programs with graphs, freed one after the other. */
static void *free_programs(void *user)
{
    builder *b = user;

    while (!atomic_load(&b->stop) && b->status == GX_OK) {
        gx_exec *exec = NULL;

        b->status =
            gx_exec_create(b->program.plan, b->program.state, NULL, &exec, &b->err);
        if (b->status == GX_OK)
            b->status = gx_exec_capture(exec, &b->err);
        gx_exec_free(exec);
        atomic_fetch_add(&b->n_done, 1);
    }
    return NULL;
}

static void another_thread_may_free_its_program_while_a_graph_is_built(void **state)
{
    const int n_builds = test_is_short() ? 5 : 100;
    const gpu_options options = { .seed = 2 };
    builder other = { .status = GX_OK };
    gpu_program program;
    pthread_t thread;
    gx_status st = GX_OK;
    gx_error err;

    (void)state;
    gpu_open(&program, &options);
    gpu_run(&program, GX_MODE_GRAPH, 5);
    const uint64_t expected = gpu_bits(&program);
    gpu_close(&program);

    gpu_open(&other.program, NULL);
    assert_int_equal(pthread_create(&thread, NULL, free_programs, &other), 0);
    for (int i = 0; i < n_builds && st == GX_OK; i++) {
        gpu_open(&program, &options);
        st = gx_exec_run(program.exec, GX_MODE_GRAPH, 5, &err);
        if (st == GX_OK && gpu_bits(&program) != expected)
            st = GX_ERR_DATA;
        gpu_close(&program);
    }
    atomic_store(&other.stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_ok(st, &err);
    assert_ok(other.status, &other.err);
    assert_true(atomic_load(&other.n_done) > 0);
    gpu_close(&other.program);
}

static void *train(void *user)
{
    builder *b = user;

    for (int64_t done = 0; done < b->n_steps && b->status == GX_OK; done += 10)
        b->status = gx_exec_run(b->program.exec, GX_MODE_GRAPH, 10, &b->err);
    if (b->status == GX_OK)
        b->status = gx_exec_sync(b->program.exec, &b->err);
    return NULL;
}

static void programs_in_threads_give_the_bits_of_one_alone(void **state)
{
    enum { THREADS = 4 };
    const int n_steps = test_is_short() ? 50 : 1000;
    const gpu_options options = { .batch = 16, .inner = 2048, .outer = 64 };
    static builder builders[THREADS];
    pthread_t thread[THREADS];
    gpu_program alone;

    (void)state;
    gpu_open(&alone, &options);
    gpu_run(&alone, GX_MODE_GRAPH, n_steps);
    const uint64_t expected = gpu_bits(&alone);
    gpu_close(&alone);
    for (int i = 0; i < THREADS; i++) {
        builders[i].n_steps = n_steps;
        builders[i].status = GX_OK;
        gpu_open(&builders[i].program, &options);
    }
    /* The first steps build the graphs, all at once. */
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, train, &builders[i]), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    for (int i = 0; i < THREADS; i++) {
        assert_ok(builders[i].status, &builders[i].err);
        assert_int_equal(gpu_bits(&builders[i].program), expected);
        gpu_close(&builders[i].program);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_thread_may_ask_for_events_while_graphs_are_built),
        cmocka_unit_test(another_thread_may_free_its_program_while_a_graph_is_built),
        cmocka_unit_test(programs_in_threads_give_the_bits_of_one_alone),
    };

    gpu_start();
    return cmocka_run_group_tests_name("gpu_threads", tests, NULL, NULL);
}
