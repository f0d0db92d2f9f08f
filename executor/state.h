/* The persistent tensors of a model on a device. */
#ifndef GX_STATE_H
#define GX_STATE_H

#include "device.h"
#include "host_rows.h"

typedef struct gx_entry {
    const char *name;
    gx_value_kind kind; /* PARAM, STATE or DATA */
    gx_dtype dtype;
    int rank;
    int64_t dim[GX_MAX_RANK];
    int64_t index_limit, index_ignored; /* as of the model's values */
    const char *index_advice; /* what to do about a label that is refused, or "" */
    void *data;
    const struct gx_entry *master; /* what the optimizer updates in place of this one */
    const struct gx_entry *copy; /* of a master: the parameter that is rounded from it */
} gx_entry;

typedef struct gx_label_counts gx_label_counts; /* label_counts.c */

/* Of the counter of steps of a part's programs, and of their log. */
typedef struct gx_progress {
    int64_t steps; /* at most what the counter holds once all that was submitted has run,
                    * but for launches of a graph that was handed out */
    int64_t log_from; /* rows of steps before this one are not in the log */
} gx_progress;

struct gx_state {
    gx_device *device;
    uint64_t seed;
    bool exact;
    bool repeats;      /* what is random is random at the start, and repeats that */
    gx_entry *entries; /* parameters and state first, then data */
    size_t n_entries;
    const gx_entry **by_name; /* sorted */
    void *block; /* parameters and state, contiguous: what a snapshot copies */
    size_t block_bytes;
    void *data_block;
    size_t data_bytes;
    gx_arena *arena;               /* names */
    gx_host_rows *rows;            /* of data that stream; NULL: none do */
    gx_position at[GX_N_PARTS];    /* where streaming programs stand */
    gx_label_counts *label_counts; /* as far as anyone asked */
    gx_progress progress[GX_N_PARTS];
};

struct gx_snapshot {
    gx_device *device;
    const gx_state *state;
    void *copy;
    size_t bytes;
    gx_position at[GX_N_PARTS];
    gx_progress progress[GX_N_PARTS];
};

/* gx_state_create, for timing a plan: data that stream stay in their files, so that its
 * programs cannot be fed, and large random tensors repeat their first values, since
 * making them takes far longer than running on them. */
gx_status gx_state_create_unfed(const gx_graph *graph, int device, gx_state **state,
                                gx_error *err) GX_MUST_CHECK;
/* Puts the first values of `from` into a tensor on the device: all of them, or in a state
 * for timing what it repeats. */
gx_status gx_state_fill_first(const gx_state *state, gx_device *device,
                              const gx_value *from, const gx_tensor *to,
                              gx_error *err) GX_MUST_CHECK;

const gx_entry *gx_state_find(const gx_state *state, const char *name);

static inline int64_t gx_entry_count(const gx_entry *entry)
{
    int64_t n = 1;

    for (int i = 0; i < entry->rank; i++)
        n *= entry->dim[i];
    return n;
}

void gx_label_counts_free(gx_state *state);

/* --- snapshot.c --- */

/* The tensor of that name was written: where it counts rows, or is of the data, nothing
 * that follows from it is known. */
void gx_state_forget(gx_state *state, const char *written);
/* The same once it is written: where it counts steps, the log has no row of those before;
 * where it is the log, its rows are the caller's. Waits where it counts steps. */
gx_status gx_state_follow(gx_state *state, const char *written,
                          gx_error *err) GX_MUST_CHECK;
/* GX_ERR_LIMIT where the counter of steps cannot hold n more. */
gx_status gx_state_count(gx_state *state, gx_part part, int64_t n_steps,
                         gx_error *err) GX_MUST_CHECK;
/* Where programs of a part stand, read from the device where it is not known: that
 * waits. */
gx_status gx_state_locate(gx_state *state, gx_part part, gx_error *err) GX_MUST_CHECK;

/* --- state_data.c: values on their way into a data entry --- */

/* Fills "data.NAME" from its file and "data.train" and "data.held" from the split of the
 * model: shapes must be the graph's, labels must be in range. */
gx_status gx_state_fill_data(gx_state *state, const gx_graph *graph,
                             const gx_entry *entry, gx_error *err) GX_MUST_CHECK;

/* The rows of part 0 (training) or 1 (held out), ascending; `n` are expected. */
gx_status gx_list_rows(const gx_data_spec *data, int part, int64_t n, int32_t *rows,
                       gx_error *err) GX_MUST_CHECK;

static inline bool gx_is_unscaled(double scale, double shift)
{
    return !(scale < 1 || scale > 1 || shift < 0 || shift > 0);
}

/* A value of a file as the model has it; -0 stays what it is where nothing is scaled. */
static inline double gx_scaled(double value, double scale, double shift)
{
    return gx_is_unscaled(scale, shift) ? value : value * scale + shift;
}

/* Element i of the tensor in `file`, an i32 column, scaled: `value` has to be an integer,
 * and in [0, limit) where there is a limit, or `ignored` where that is not 0. `advice`
 * ends the message of a label that is not. */
gx_status gx_check_label(double value, int64_t limit, int64_t ignored, const char *advice,
                         const char *path, const gx_tensor *file, int64_t i,
                         gx_error *err) GX_MUST_CHECK;

/* The tightest limit that any program of the model sets on a value, or on the input that
 * a value "data.INPUT" is gathered for; an index outside is ignored where all of them do
 * so. 0: none. `advice` names the op that asks for it, as the end of a message; it is
 * written to the arena, or "". */
void gx_find_limit(const gx_graph *const *graphs, size_t n_graphs, const char *name,
                   gx_arena *arena, int64_t *limit, int64_t *ignored,
                   const char **advice);

/* Each number must be an integer in [0, limit), or `ignored` where that is not 0. The
 * message starts with `where` and names the place. */
gx_status gx_check_indices(const gx_tensor *tensor, int64_t limit, int64_t ignored,
                           const char *where, gx_error *err) GX_MUST_CHECK;

/* --- state_master.c --- */

/* Ties each parameter that an optimizer of the graph updates through a master to that. */
void gx_state_pair_masters(gx_state *state, const gx_graph *graph);

/* --- state_check.c --- */

/* What is wrong with a learning rate, as the end of a sentence that starts with it; NULL:
 * nothing. */
const char *gx_rate_misfit(double rate);
/* Of gexec's own state a rate has to be a number from 0 up, the scale of the loss one
 * above 0, and a counter an integer. `host` has the entry's shape. */
gx_status gx_check_own(const gx_entry *entry, const gx_tensor *host,
                       gx_error *err) GX_MUST_CHECK;

/* --- host_check.c --- */

/* A host tensor must have the shape of the tensor `name` that it is copied from or to,
 * data unless it is empty, and its dtype; or, with `any_float`, f32 or f64, which are
 * converted. */
gx_status gx_check_host(const char *name, gx_dtype dtype, int rank, const int64_t *dim,
                        const gx_tensor *host, bool any_float,
                        gx_error *err) GX_MUST_CHECK;

#endif
