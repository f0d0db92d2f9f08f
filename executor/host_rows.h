/* A data set in host memory: which rows make a batch, and their values. The rows, their
 * order and every value are those of the data set on the device (step.c, state_data.c).
 */
#ifndef GX_HOST_ROWS_H
#define GX_HOST_ROWS_H

#include "device.h"
#include "npy_rows.h"

typedef enum gx_part { GX_PART_TRAIN, GX_PART_HELD, GX_N_PARTS } gx_part;

/* Where a program stands in its part of the data: what gexec.sample and gexec.epoch hold
 * on the device once all that was submitted has run. */
typedef struct gx_position {
    bool known;
    int32_t sample, epoch;
} gx_position;

typedef struct gx_host_column {
    const char *name; /* of the input */
    const char *path; /* of its file */
    gx_dtype dtype;   /* of the input */
    int64_t width;    /* elements of a row */
    double scale, shift;
    int64_t index_limit, index_ignored; /* 0: none */
    const char *index_advice; /* what to do about a label that is refused, or "" */
    gx_npy_rows rows;
} gx_host_column;

typedef struct gx_host_rows {
    gx_host_column *columns;
    size_t n_columns;
    int32_t *list[GX_N_PARTS]; /* the rows of a part, ascending */
    int64_t n_listed[GX_N_PARTS];
    int64_t n_rows;
    double *scratch; /* a row of any column */
    gx_arena *arena;
} gx_host_rows;

/* Opens the files of a model whose data stream, and goes through all integers: each must
 * fit, and be in the range that the ops which read it ask for. *rows is NULL where no
 * graph streams. */
gx_status gx_host_rows_open(const gx_graph *const *graphs, size_t n_graphs,
                            gx_host_rows **rows, gx_error *err) GX_MUST_CHECK;
void gx_host_rows_free(gx_host_rows *rows);

/* The column of an input; NULL: none. */
const gx_host_column *gx_host_rows_find(const gx_host_rows *rows, const char *input);

/* How a program goes through its part. */
typedef struct gx_walk {
    gx_part part;
    bool shuffle;
    uint64_t seed;
    int64_t batch; /* rows of a step */
    int64_t taken; /* samples by which a step moves on */
    int64_t total, need;
} gx_walk;

/* As the program's last op moves its counters on. */
gx_status gx_walk_of(const gx_graph *graph, uint64_t seed, gx_walk *walk,
                     gx_error *err) GX_MUST_CHECK;
/* Where row j of the batch at a position stands in the list of the part's n rows. */
int64_t gx_walk_place(const gx_walk *walk, int64_t n, gx_position at, int64_t j);
/* The rows of the batch at a position, as `gather` takes them. */
void gx_host_rows_pick(const gx_host_rows *rows, const gx_walk *walk, gx_position at,
                       int32_t *picked);
/* Moves on by a step, as `step.end` does. */
void gx_walk_advance(const gx_walk *walk, gx_position *at);

/* Values of the picked rows in the input's type, one row behind the other; as doubles
 * where `as_doubles`, rounded to that type. */
gx_status gx_host_rows_gather(const gx_host_rows *rows, const gx_host_column *column,
                              const int32_t *picked, int64_t n, bool as_doubles, void *to,
                              gx_error *err) GX_MUST_CHECK;

#endif
