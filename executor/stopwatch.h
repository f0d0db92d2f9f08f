/* Times on the device between two events of lane 0's stream. Only with CUDA. */
#ifndef GX_STOPWATCH_H
#define GX_STOPWATCH_H

#include <stddef.h>

#include "device.h"

typedef struct gx_stopwatch {
    void *begin, *end; /* cudaEvent_t */
} gx_stopwatch;

gx_status gx_stopwatch_open(gx_stopwatch *watch, gx_error *err) GX_MUST_CHECK;
void gx_stopwatch_close(gx_stopwatch *watch);

/* What is enqueued between the two is timed; stop waits for it. */
gx_status gx_stopwatch_start(const gx_stopwatch *watch, const gx_device *device,
                             gx_error *err) GX_MUST_CHECK;
gx_status gx_stopwatch_stop(const gx_stopwatch *watch, const gx_device *device,
                            double *seconds, gx_error *err) GX_MUST_CHECK;

/* Sorts the values; n > 0. */
double gx_median(double *values, size_t n);

#endif
