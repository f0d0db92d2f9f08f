/* Series of measured values and what is said of them. */
#include "figures.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

bool gx_series_add(gx_series *series, double value)
{
    if (series->n == series->capacity) {
        const size_t capacity = series->capacity ? 2 * series->capacity : 64;
        double *grown = realloc(series->values, capacity * sizeof *grown);

        if (!grown)
            return false;
        series->values = grown;
        series->capacity = capacity;
    }
    series->values[series->n++] = value;
    return true;
}

void gx_series_free(gx_series *series)
{
    free(series->values);
    *series = (gx_series){ 0 };
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;

    return (x > y) - (x < y);
}

static double quantile(const double *sorted, size_t n, double share)
{
    const double place = share * (double)(n - 1);
    const size_t below = (size_t)place;
    const size_t above = below + 1 < n ? below + 1 : below;

    return sorted[below] + (place - (double)below) * (sorted[above] - sorted[below]);
}

gx_summary gx_series_summary(const gx_series *series)
{
    gx_summary summary = { -1, -1, -1, 0 };
    double *sorted = series->n ? malloc(series->n * sizeof *sorted) : NULL;

    if (!sorted)
        return summary;
    for (size_t i = 0; i < series->n; i++)
        if (series->values[i] == series->values[i])
            sorted[summary.n++] = series->values[i];
    if (summary.n) {
        qsort(sorted, summary.n, sizeof *sorted, ascending);
        summary.median = quantile(sorted, summary.n, 0.5);
        summary.p5 = quantile(sorted, summary.n, 0.05);
        summary.p95 = quantile(sorted, summary.n, 0.95);
    }
    free(sorted);
    return summary;
}

double gx_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

uint64_t gx_random_next(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}
