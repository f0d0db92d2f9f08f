/* Measures what a card can do at best: copies within sets of growing size, and by way of
 * its parts products and latencies. */
#include <math.h>
#include <string.h>
#include <time.h>

#include "ceilings_kernels.h"
#include "ceilings_parts.h"
#include "launch.h"
#include "need.h"

#define MIB ((int64_t)1 << 20)

static const int64_t least_set = 64 << 10;
static const int64_t largest_set = 1024 * MIB; /* the largest product fits, too */
static const int64_t lt_workspace = 32 * MIB;

/* Moved by one launch, so that launching it is a matter of a thousandth. */
static const int64_t moved_bytes = 4096 * MIB;

static const double warm_s = 0.2; /* until the clocks are up */

enum {
    BLOCKS_PER_SM = 4, /* that all fit at once */
    REPEATS = 5,       /* launches of which the fastest counts */
    WARM_COPIES = 8,
    MOST_WARM = 400 /* rounds, whatever the events say */
};

/* --- kernels --- */

static gx_status launch(const gx_ceilings_bench *bench, const char *name,
                        const void *kernel, void **args, gx_error *err)
{
    gx_ctx ctx = gx_device_ctx(bench->device, 0);
    const dim3 grid = { (unsigned)(BLOCKS_PER_SM * ctx.n_sm), 1, 1 };
    const dim3 block = { GX_CEILINGS_BLOCK, 1, 1 };

    return gx_launch(&ctx, name, kernel, grid, block, 0, args, err);
}

gx_status gx_ceilings_fill(const gx_ceilings_bench *bench, uint32_t random,
                           uint32_t fixed, gx_error *err)
{
    void *words = bench->memory;
    int64_t n = bench->memory_bytes / (int64_t)sizeof(uint32_t);
    void *args[] = { &words, &n, &random, &fixed };

    return launch(bench, "noise", gx_noise_kernel(), args, err);
}

/* Copies within the first `bytes` of the memory, half of them read and half written. */
static gx_status launch_copy(const gx_ceilings_bench *bench, int64_t bytes, gx_error *err)
{
    const void *from = bench->memory;
    void *to = (char *)bench->memory + bytes / 2;
    int64_t n_units = bytes / 2 / GX_CEILINGS_UNIT;
    int64_t n_moves = moved_bytes / 2 / GX_CEILINGS_UNIT;
    void *args[] = { &to, &from, &n_units, &n_moves };

    return launch(bench, "copy", gx_copy_kernel(), args, err);
}

/* --- copies --- */

static gx_status time_copies(const gx_ceilings_bench *bench, int64_t bytes, int n,
                             double *seconds, gx_error *err)
{
    GX_TRY(gx_stopwatch_start(&bench->watch, bench->device, err));
    for (int i = 0; i < n; i++)
        GX_TRY(launch_copy(bench, bytes, err));
    return gx_stopwatch_stop(&bench->watch, bench->device, seconds, err);
}

static gx_status warm_up(const gx_ceilings_bench *bench, gx_error *err)
{
    double spent = 0;

    for (int i = 0; i < MOST_WARM && spent < warm_s; i++) {
        double seconds;

        GX_TRY(time_copies(bench, 16 * MIB, WARM_COPIES, &seconds, err));
        spent += seconds;
    }
    return GX_OK;
}

static gx_status measure_copies(const gx_ceilings_bench *bench, gx_ceilings *ceilings,
                                gx_error *err)
{
    for (int64_t bytes = least_set; bytes <= largest_set; bytes *= 2) {
        double best = INFINITY;

        for (int i = -1; i < REPEATS; i++) { /* the first brings the set in */
            double seconds;

            GX_TRY(time_copies(bench, bytes, 1, &seconds, err));
            if (i >= 0 && seconds < best)
                best = seconds;
        }
        if (best > 0 && isfinite(best))
            ceilings->copy[ceilings->n_copy++] =
                (gx_copy_rate){ .bytes = bytes,
                                .bytes_per_s = (double)moved_bytes / best };
    }
    return GX_OK;
}

/* --- all of it --- */

static gx_status measure_with(const gx_ceilings_bench *bench, gx_ceilings *ceilings,
                              gx_error *err)
{
    GX_TRY(gx_load_kernel(gx_noise_kernel(), 0, "noise", err));
    GX_TRY(gx_load_kernel(gx_copy_kernel(), 0, "copy", err));
    GX_TRY(gx_ceilings_fill(bench, UINT32_MAX, 0, err));
    GX_TRY(warm_up(bench, err));
    /* Products last: they draw the power that makes a card slow down. */
    GX_TRY(gx_ceilings_latencies(bench, ceilings, err));
    GX_TRY(measure_copies(bench, ceilings, err));
    return gx_ceilings_products(bench, ceilings, err);
}

static gx_status measure_on(gx_device *device, gx_ceilings *ceilings, gx_error *err)
{
    gx_ceilings_bench bench = {
        .device = device,
        .memory_bytes = largest_set,
        .workspace_bytes = lt_workspace,
    };

    gx_status st =
        gx_device_alloc(device, (size_t)(largest_set + lt_workspace), &bench.memory, err);
    if (st == GX_ERR_DEVICE_MEMORY)
        gx_error_prefix(err, "measuring needs 1056 MiB of the card's memory");
    if (st != GX_OK)
        return st;
    bench.workspace = (char *)bench.memory + bench.memory_bytes;
    st = gx_stopwatch_open(&bench.watch, err);
    if (st == GX_OK) {
        st = measure_with(&bench, ceilings, err);
        /* Nothing may run any more in what is freed now. */
        st = gx_first(st, gx_device_sync(device, err));
        gx_stopwatch_close(&bench.watch);
    }
    gx_device_release(device, bench.memory);
    return st;
}

static void set_date(gx_ceilings *ceilings)
{
    const time_t now = time(NULL);
    struct tm utc;

    if (gmtime_r(&now, &utc))
        (void)strftime(ceilings->date, sizeof ceilings->date, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

gx_status gx_ceilings_measure(int device, gx_ceilings *ceilings, gx_error *err)
{
    gx_ceilings found = gx_ceilings_none();
    gx_device *opened = NULL;
    gx_device_info info;
    int previous = 0;

    gx_error_clear(err);
    GX_TRY(gx_need_place(ceilings, "ceilings", err));
    *ceilings = found;
    if (device < 0)
        return GX_FAIL(err, GX_ERR_ARGUMENT,
                       "device %d is no GPU, and has no ceilings to measure", device);
    GX_TRY(gx_device_info_get(device, &info, err));
    memcpy(found.card, info.name, sizeof found.card);
    found.driver_version = info.driver_version;
    found.runtime_version = info.runtime_version;
    set_date(&found);
    GX_TRY(gx_device_open(device, NULL, &opened, err));
    gx_status st = gx_device_enter(opened, &previous, err);
    if (st == GX_OK) {
        st = measure_on(opened, &found, err);
        gx_device_leave(opened, previous);
    }
    gx_device_close(opened);
    if (st == GX_OK)
        *ceilings = found;
    return st;
}
