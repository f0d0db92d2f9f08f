/* Offsets in a block of memory that is planned, not yet allocated. What was given back
 * can be had again by whoever is ordered behind its last users, of which there is one a
 * lane. */
#ifndef GX_OFFSETS_H
#define GX_OFFSETS_H

#include <stdbool.h>
#include <stdint.h>

#include <gexec/status.h>

enum { GX_OFFSET_LANES = 3 };

/* True when a user may start who is ordered behind the units in `last` (-1: none). */
typedef bool gx_ordered_fn(const void *user, const int32_t last[GX_OFFSET_LANES]);

typedef struct gx_offsets gx_offsets;

gx_offsets *gx_offsets_create(int64_t alignment); /* NULL: out of memory */
void gx_offsets_free(gx_offsets *offsets);

/* Finds room for `bytes`, which are rounded up to the alignment, and to one alignment at
 * least. *block names it when it is given back. */
gx_status gx_offsets_take(gx_offsets *offsets, int64_t bytes, gx_ordered_fn *ordered,
                          const void *user, int32_t *block, int64_t *offset,
                          gx_error *err) GX_MUST_CHECK;
void gx_offsets_give(gx_offsets *offsets, int32_t block,
                     const int32_t last[GX_OFFSET_LANES]);

/* The largest end of any block so far. */
int64_t gx_offsets_bytes(const gx_offsets *offsets);

#endif
