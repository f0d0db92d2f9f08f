/* `gexec compare` over sizes: the points, what is kept of each, and how it is told. */
#ifndef GX_SWEEP_H
#define GX_SWEEP_H

#include "compare.h"
#include "remarks.h"

enum { GX_SWEEP_DIMS = 6, GX_SWEEP_POINTS = 4096 };

/* One --set of which a list was given. */
typedef struct gx_sweep_dim {
    const char *name;
    const char **values; /* expressions, as they were given */
    size_t n;
} gx_sweep_dim;

/* One combination of sizes. Figures are there where it was begun and did not fail. */
typedef struct gx_sweep_point {
    size_t at[GX_SWEEP_DIMS];    /* which value of each dim */
    int64_t size[GX_SWEEP_DIMS]; /* what it came to; -1: not known */
    bool begun, interrupted;
    gx_status status;
    char reason[GX_MESSAGE_SIZE]; /* of a failure, in one line */

    gx_way_times way[GX_N_WAYS]; /* their execs are gone */
    gx_series order, ratio, ratio_unfused;
    gx_series sm_mhz, memory_mhz;
    uint64_t throttle;
    int64_t block, bits_steps, n_compared, steps_per_launch;
    bool step_loop;
    gx_difference difference;
    double empty_s, pays_after; /* < 0: n/a; never */
    double select_s;
    gx_exec_stats stats;
    gx_words plan; /* its mark */
    gx_idle_flags idle;
} gx_sweep_point;

typedef struct gx_sweep {
    const gx_args *args;
    int device;
    gx_device_info device_info;
    char driver[80], clocks_lack[160]; /* of NVML; empty: not said */
    char *model, *precision;           /* of the first point that loaded; NULL */
    gx_sweep_dim dim[GX_SWEEP_DIMS];
    size_t n_dims;
    char *text; /* that the values point into */
    gx_sweep_point *point;
    size_t n_points;
    bool interrupted;
} gx_sweep;

/* --- the points --- */

/* Cuts the lists of --set and makes a point of every combination, the last list's values
 * running fastest. What is wrong has been said where it returns false. */
bool gx_sweep_create(gx_sweep *sweep, const gx_args *args);
void gx_sweep_free(gx_sweep *sweep);

/* Moves the figures of a comparison that was made into a point. */
void gx_sweep_take(gx_sweep_point *point, gx_compare *compare);
void gx_sweep_fail(gx_sweep_point *point, const gx_error *err);

/* True when the point has figures. */
bool gx_sweep_has_figures(const gx_sweep_point *point);
/* "8", or the expression where what it came to is not known. */
gx_words gx_sweep_size(const gx_sweep *sweep, const gx_sweep_point *point, size_t dim);
/* "batch=8, hidden=128" of the dims from `first` on. */
void gx_sweep_point_text(const gx_sweep *sweep, const gx_sweep_point *point, size_t first,
                         char *text, size_t size);

/* The same reason behind every point: then it is the model's or the command line's. NULL
 * where there is none. */
const gx_sweep_point *gx_sweep_common_failure(const gx_sweep *sweep);
/* 130 interrupted, 1 bits differ, else the worst of the failures, or 0. */
int gx_sweep_exit(const gx_sweep *sweep);

/* --- what is said of it --- */

void gx_sweep_verdict(const gx_sweep *sweep, FILE *out); /* one line */
void gx_sweep_print(const gx_sweep *sweep, FILE *out);
void gx_sweep_put_csv(const gx_sweep *sweep, FILE *out);
void gx_sweep_put_svg(const gx_sweep *sweep, FILE *out);
gx_status gx_sweep_write_json(const gx_sweep *sweep, const char *path,
                              gx_error *err) GX_MUST_CHECK;

#endif
