/* Times on the device, by events, and the median of several. */
#include "stopwatch.h"

#include <stdlib.h>

#include "launch.h"

void gx_stopwatch_close(gx_stopwatch *watch)
{
    if (watch->begin)
        (void)GX_CUDA(cudaEventDestroy(watch->begin), NULL);
    if (watch->end)
        (void)GX_CUDA(cudaEventDestroy(watch->end), NULL);
    *watch = (gx_stopwatch){ NULL, NULL };
}

gx_status gx_stopwatch_open(gx_stopwatch *watch, gx_error *err)
{
    cudaEvent_t begin = NULL, end = NULL;

    gx_status st = GX_CUDA(cudaEventCreateWithFlags(&begin, cudaEventDefault), err);
    if (st == GX_OK)
        st = GX_CUDA(cudaEventCreateWithFlags(&end, cudaEventDefault), err);
    *watch = (gx_stopwatch){ begin, end };
    if (st != GX_OK)
        gx_stopwatch_close(watch);
    return st;
}

gx_status gx_stopwatch_start(const gx_stopwatch *watch, const gx_device *device,
                             gx_error *err)
{
    return GX_CUDA(cudaEventRecord(watch->begin, device->stream), err);
}

gx_status gx_stopwatch_stop(const gx_stopwatch *watch, const gx_device *device,
                            double *seconds, gx_error *err)
{
    float ms = 0;

    GX_TRY(GX_CUDA(cudaEventRecord(watch->end, device->stream), err));
    GX_TRY(GX_CUDA(cudaEventSynchronize(watch->end), err));
    GX_TRY(GX_CUDA(cudaEventElapsedTime(&ms, watch->begin, watch->end), err));
    *seconds = 1e-3 * (double)ms;
    return GX_OK;
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;

    return (x > y) - (x < y);
}

double gx_median(double *values, size_t n)
{
    qsort(values, n, sizeof *values, compare_doubles);
    return 0.5 * (values[(n - 1) / 2] + values[n / 2]);
}
