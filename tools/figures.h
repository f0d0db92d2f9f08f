/* Series of measured values and what is said of them. */
#ifndef GX_FIGURES_H
#define GX_FIGURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gx_series {
    double *values;
    size_t n, capacity;
} gx_series;

typedef struct gx_summary {
    double median, p5, p95; /* -1 where there are no values */
    size_t n;
} gx_summary;

bool gx_series_add(gx_series *series, double value); /* false: out of memory */
void gx_series_free(gx_series *series);
/* Of the values that are no NaN. Percentiles lie between neighbours in proportion. */
gx_summary gx_series_summary(const gx_series *series);

/* Seconds of a clock that only goes forward. */
double gx_clock(void);

/* A small generator (splitmix64) for orders and samples, the same everywhere. */
uint64_t gx_random_next(uint64_t *state);

#endif
