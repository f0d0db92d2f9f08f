/* The persistent tensors of a model on a device. */
#ifndef GX_STATE_H
#define GX_STATE_H

#include "device.h"

typedef struct gx_entry {
    const char *name;
    gx_value_kind kind; /* PARAM, STATE or DATA */
    gx_dtype dtype;
    int rank;
    int64_t dim[GX_MAX_RANK];
    int64_t index_limit;
    void *data;
    const struct gx_entry *master; /* what the optimizer updates in place of this one */
    const struct gx_entry *copy; /* of a master: the parameter that is rounded from it */
} gx_entry;

struct gx_state {
    gx_device *device;
    uint64_t seed;
    bool exact;
    gx_entry *entries; /* parameters and state first, then data */
    size_t n_entries;
    const gx_entry **by_name; /* sorted */
    void *block; /* parameters and state, contiguous: what a snapshot copies */
    size_t block_bytes;
    void *data_block;
    size_t data_bytes;
    gx_arena *arena; /* names */
};

struct gx_snapshot {
    gx_device *device;
    const gx_state *state;
    void *copy;
    size_t bytes;
};

const gx_entry *gx_state_find(const gx_state *state, const char *name);

static inline int64_t gx_entry_count(const gx_entry *entry)
{
    int64_t n = 1;

    for (int i = 0; i < entry->rank; i++)
        n *= entry->dim[i];
    return n;
}

/* --- state_data.c: values on their way into a data entry --- */

/* Fills "data.NAME" from its file and "data.train" and "data.held" from the split of the
 * model: shapes must be the graph's, labels must be in range. */
gx_status gx_state_fill_data(gx_state *state, const gx_graph *graph,
                             const gx_entry *entry, gx_error *err) GX_MUST_CHECK;

/* Each of n numbers must be an integer in [0, limit). `row_size` elements make a row; the
 * message starts with `where`. */
gx_status gx_check_indices(const gx_tensor *tensor, int64_t limit, const char *where,
                           gx_error *err) GX_MUST_CHECK;

/* --- state_master.c --- */

/* Ties each parameter that an optimizer of the graph updates through a master to that. */
void gx_state_pair_masters(gx_state *state, const gx_graph *graph);

/* --- host_check.c --- */

/* A host tensor must have the shape of the tensor `name` that it is copied from or to,
 * data unless it is empty, and its dtype; or, with `any_float`, f32 or f64, which are
 * converted. */
gx_status gx_check_host(const char *name, gx_dtype dtype, int rank, const int64_t *dim,
                        const gx_tensor *host, bool any_float,
                        gx_error *err) GX_MUST_CHECK;

#endif
