/* Four small programs of which each runs a step eagerly and as a graph, to hold
 * predictions from the eager trace against:
 *
 *   sync      the host waits in the middle of the step; the graph does without
 *   pageable  the step's input is copied from pageable memory; the graph's from pinned
 *   streams   two streams that part and join
 *   chain     fifty kernels of about a microsecond
 *
 * usage: whatif_programs CASE           times both ways, prints JSON
 *        whatif_programs CASE --trace   12 eager steps in ranges "step", for a profiler
 *                                       that waits for cudaProfilerStart */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>
#if GX_HAVE_NVTX
#include <nvtx3/nvToolsExt.h>
#endif

enum { BLOCKS = 30, EAGER_STEPS = 50, REPLAYS = 400, WARM_UP = 50, TRACED = 12 };
enum { N = 1 << 16, COPY_BYTES = 64 << 10, THREADS = 256 };

#define CHECK(call) check((call), #call, __LINE__)

static void check(cudaError_t code, const char *call, int line)
{
    if (code == cudaSuccess)
        return;
    fprintf(stderr, "line %d: %s: %s\n", line, call, cudaGetErrorString(code));
    exit(code == cudaErrorNoDevice || code == cudaErrorInsufficientDriver ? 3 : 4);
}

/* x = a x + 1, `rounds` times; dependent, so that time grows with the rounds. */
__global__ static void affine(float *x, int n, float a, int rounds)
{
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);

    if (i >= n)
        return;
    float value = x[i];
    for (int r = 0; r < rounds; r++)
        value = a * value + 1.0f;
    x[i] = value;
}

typedef struct program {
    float *x, *y;
    void *pageable, *pinned;
    cudaStream_t stream, other;
    cudaEvent_t parted, joined;
} program;

static void launch(float *x, int n, int rounds, cudaStream_t stream)
{
    float a = 0.5f;
    void *arguments[] = { &x, &n, &a, &rounds };
    const dim3 grid((unsigned)((n + THREADS - 1) / THREADS)), block(THREADS);

    CHECK(cudaLaunchKernel((const void *)affine, grid, block, arguments, 0, stream));
}

/* One step; `graph`: as it can be captured. */
typedef void step_fn(program *p, bool graph);

static void step_sync(program *p, bool graph)
{
    for (int i = 0; i < 20; i++) {
        launch(p->x, N, 200, p->stream);
        if (i == 9 && !graph)
            CHECK(cudaStreamSynchronize(p->stream));
    }
}

static void step_pageable(program *p, bool graph)
{
    CHECK(cudaMemcpyAsync(p->x, graph ? p->pinned : p->pageable, COPY_BYTES,
                          cudaMemcpyHostToDevice, p->stream));
    for (int i = 0; i < 16; i++)
        launch(p->x, N, 200, p->stream);
}

static void step_streams(program *p, bool graph)
{
    (void)graph;
    launch(p->x, N / 8, 200, p->stream);
    CHECK(cudaEventRecord(p->parted, p->stream));
    CHECK(cudaStreamWaitEvent(p->other, p->parted, 0));
    for (int i = 0; i < 12; i++) {
        launch(p->x, N / 8, 400, p->stream);
        if (i < 8)
            launch(p->y, N / 8, 400, p->other);
    }
    CHECK(cudaEventRecord(p->joined, p->other));
    CHECK(cudaStreamWaitEvent(p->stream, p->joined, 0));
    for (int i = 0; i < 2; i++)
        launch(p->x, N / 8, 200, p->stream);
}

static void step_chain(program *p, bool graph)
{
    (void)graph;
    for (int i = 0; i < 50; i++)
        launch(p->x, 1024, 1, p->stream);
}

static const struct {
    const char *name;
    step_fn *step;
} cases[] = { { "sync", step_sync },
              { "pageable", step_pageable },
              { "streams", step_streams },
              { "chain", step_chain } };

static void set_up(program *p)
{
    CHECK(cudaMalloc((void **)&p->x, N * sizeof *p->x));
    CHECK(cudaMalloc((void **)&p->y, N * sizeof *p->y));
    CHECK(cudaMemset(p->x, 0, N * sizeof *p->x));
    CHECK(cudaMemset(p->y, 0, N * sizeof *p->y));
    CHECK(cudaMallocHost(&p->pinned, COPY_BYTES));
    p->pageable = calloc(1, COPY_BYTES);
    if (!p->pageable)
        exit(4);
    memset(p->pinned, 0, COPY_BYTES);
    CHECK(cudaStreamCreateWithFlags(&p->stream, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&p->other, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&p->parted, cudaEventDisableTiming));
    CHECK(cudaEventCreateWithFlags(&p->joined, cudaEventDisableTiming));
}

static cudaGraphExec_t capture(program *p, step_fn *step)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;

    CHECK(cudaStreamBeginCapture(p->stream, cudaStreamCaptureModeThreadLocal));
    step(p, true);
    CHECK(cudaStreamEndCapture(p->stream, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphUpload(exec, p->stream));
    CHECK(cudaGraphDestroy(graph));
    return exec;
}

/* Microseconds a step; exec NULL: eager. */
static double time_block(program *p, step_fn *step, cudaGraphExec_t exec, int n)
{
    cudaEvent_t begin, end;
    float ms;

    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    CHECK(cudaStreamSynchronize(p->stream));
    CHECK(cudaEventRecord(begin, p->stream));
    for (int i = 0; i < n; i++) {
        if (exec)
            CHECK(cudaGraphLaunch(exec, p->stream));
        else
            step(p, false);
    }
    CHECK(cudaEventRecord(end, p->stream));
    CHECK(cudaEventSynchronize(end));
    CHECK(cudaEventElapsedTime(&ms, begin, end));
    CHECK(cudaEventDestroy(begin));
    CHECK(cudaEventDestroy(end));
    return 1e3 * ms / n;
}

static int compare(const void *left, const void *right)
{
    const double a = *(const double *)left;
    const double b = *(const double *)right;

    return (a > b) - (a < b);
}

static void print_blocks(const char *way, double *blocks)
{
    qsort(blocks, BLOCKS, sizeof *blocks, compare);
    printf(", \"%s_us\": %.3f, \"%s_blocks_us\": [", way,
           (blocks[BLOCKS / 2 - 1] + blocks[BLOCKS / 2]) / 2, way);
    for (int i = 0; i < BLOCKS; i++)
        printf("%s%.3f", i ? ", " : "", blocks[i]);
    printf("]");
}

static void time_both(program *p, const char *name, step_fn *step)
{
    const cudaGraphExec_t exec = capture(p, step);
    cudaDeviceProp properties;
    double eager[BLOCKS], graph[BLOCKS];

    time_block(p, step, NULL, WARM_UP);
    time_block(p, step, exec, REPLAYS);
    for (int i = 0; i < BLOCKS; i++) {
        eager[i] = time_block(p, step, NULL, EAGER_STEPS);
        graph[i] = time_block(p, step, exec, REPLAYS);
    }
    CHECK(cudaGetDeviceProperties(&properties, 0));
    printf("{\"case\": \"%s\", \"card\": \"%s\"", name, properties.name);
    print_blocks("eager", eager);
    print_blocks("graph", graph);
    printf("}\n");
    CHECK(cudaGraphExecDestroy(exec));
}

static void run_traced(program *p, step_fn *step)
{
    for (int i = 0; i < WARM_UP; i++)
        step(p, false);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaProfilerStart());
    for (int i = 0; i < TRACED; i++) {
#if GX_HAVE_NVTX
        nvtxRangePushA("step");
#endif
        step(p, false);
#if GX_HAVE_NVTX
        nvtxRangePop();
#endif
    }
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaProfilerStop());
}

int main(int argc, char **argv)
{
    const bool trace = argc == 3 && strcmp(argv[2], "--trace") == 0;
    program p = {};

    for (size_t i = 0; (argc == 2 || trace) && i < sizeof cases / sizeof cases[0]; i++) {
        if (strcmp(argv[1], cases[i].name) != 0)
            continue;
        set_up(&p);
        if (trace)
            run_traced(&p, cases[i].step);
        else
            time_both(&p, cases[i].name, cases[i].step);
        return 0;
    }
    fprintf(stderr, "usage: whatif_programs sync|pageable|streams|chain [--trace]\n");
    return 2;
}
