/* Free blocks stand in bins by the power of two of their size. A search looks at a
 * bounded number of them in each bin, so that planning stays linear in the number of
 * values; free neighbours are joined. */
#include "offsets.h"

#include <stdlib.h>

enum {
    N_BINS = 48,
    SEARCH_LIMIT = 16, /* blocks looked at in one bin */
    NONE = -1
};

typedef struct block {
    int64_t offset, bytes;
    int32_t before, after;  /* neighbours in memory */
    int32_t previous, next; /* in the bin; `next` also links spare records */
    int32_t last[GX_OFFSET_LANES];
    bool is_free;
} block;

struct gx_offsets {
    int64_t alignment;
    block *blocks;
    int32_t n_blocks, capacity;
    int32_t spare; /* records of blocks that were joined to others */
    int32_t end;   /* the block with the highest offset */
    int32_t bin[N_BINS];
    int64_t bytes;
};

gx_offsets *gx_offsets_create(int64_t alignment)
{
    gx_offsets *offsets = calloc(1, sizeof *offsets);

    if (!offsets)
        return NULL;
    offsets->alignment = alignment;
    offsets->spare = NONE;
    offsets->end = NONE;
    for (int i = 0; i < N_BINS; i++)
        offsets->bin[i] = NONE;
    return offsets;
}

void gx_offsets_free(gx_offsets *offsets)
{
    if (!offsets)
        return;
    free(offsets->blocks);
    free(offsets);
}

int64_t gx_offsets_bytes(const gx_offsets *offsets)
{
    return offsets->bytes;
}

static int bin_of(const gx_offsets *offsets, int64_t bytes)
{
    int64_t units = bytes / offsets->alignment;
    int bin = 0;

    while (units > 1 && bin < N_BINS - 1) {
        units >>= 1;
        bin++;
    }
    return bin;
}

static void enter_bin(gx_offsets *offsets, int32_t i)
{
    block *b = &offsets->blocks[i];
    int32_t *head = &offsets->bin[bin_of(offsets, b->bytes)];

    b->is_free = true;
    b->previous = NONE;
    b->next = *head;
    if (*head != NONE)
        offsets->blocks[*head].previous = i;
    *head = i;
}

static void leave_bin(gx_offsets *offsets, int32_t i)
{
    block *b = &offsets->blocks[i];

    if (b->previous != NONE)
        offsets->blocks[b->previous].next = b->next;
    else
        offsets->bin[bin_of(offsets, b->bytes)] = b->next;
    if (b->next != NONE)
        offsets->blocks[b->next].previous = b->previous;
    b->is_free = false;
}

/* A record for a block, or NONE when memory is out. */
static int32_t new_record(gx_offsets *offsets)
{
    if (offsets->spare != NONE) {
        const int32_t i = offsets->spare;

        offsets->spare = offsets->blocks[i].next;
        return i;
    }
    if (offsets->n_blocks == offsets->capacity) {
        const int32_t capacity = offsets->capacity ? offsets->capacity * 2 : 64;
        block *blocks = realloc(offsets->blocks, (size_t)capacity * sizeof *blocks);

        if (!blocks)
            return NONE;
        offsets->blocks = blocks;
        offsets->capacity = capacity;
    }
    return offsets->n_blocks++;
}

/* The tightest of the first few fitting blocks of the lowest bin that has one. */
static int32_t search(const gx_offsets *offsets, int64_t bytes, gx_ordered_fn *ordered,
                      const void *user)
{
    for (int bin = bin_of(offsets, bytes); bin < N_BINS; bin++) {
        int32_t best = NONE;
        int looked = 0;

        for (int32_t i = offsets->bin[bin]; i != NONE && looked < SEARCH_LIMIT;
             i = offsets->blocks[i].next, looked++) {
            const block *b = &offsets->blocks[i];

            if (b->bytes >= bytes && ordered(user, b->last) &&
                (best == NONE || b->bytes < offsets->blocks[best].bytes))
                best = i;
        }
        if (best != NONE)
            return best;
    }
    return NONE;
}

/* Puts what block i has beyond `bytes` into a free block of its own. */
static gx_status split(gx_offsets *offsets, int32_t i, int64_t bytes, gx_error *err)
{
    int32_t rest;

    if (offsets->blocks[i].bytes == bytes)
        return GX_OK;
    rest = new_record(offsets);
    if (rest == NONE)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the layout");
    block *b = &offsets->blocks[i];
    block *r = &offsets->blocks[rest];

    *r = *b;
    r->offset = b->offset + bytes;
    r->bytes = b->bytes - bytes;
    r->before = i;
    b->after = rest;
    b->bytes = bytes;
    if (r->after != NONE)
        offsets->blocks[r->after].before = rest;
    if (offsets->end == i)
        offsets->end = rest;
    enter_bin(offsets, rest);
    return GX_OK;
}

/* A block behind all others, or the last one made longer when it is free. */
static gx_status extend(gx_offsets *offsets, int64_t bytes, gx_ordered_fn *ordered,
                        const void *user, int32_t *result, gx_error *err)
{
    const int32_t end = offsets->end;
    int64_t total;
    int32_t i;

    if (end != NONE && offsets->blocks[end].is_free &&
        offsets->blocks[end].bytes < bytes && ordered(user, offsets->blocks[end].last)) {
        if (__builtin_add_overflow(offsets->blocks[end].offset, bytes, &total))
            return GX_FAIL(err, GX_ERR_LIMIT, "more bytes than can be addressed");
        leave_bin(offsets, end);
        offsets->blocks[end].bytes = bytes;
        *result = end;
    } else {
        if (__builtin_add_overflow(offsets->bytes, bytes, &total))
            return GX_FAIL(err, GX_ERR_LIMIT, "more bytes than can be addressed");
        i = new_record(offsets);
        if (i == NONE)
            return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the layout");
        offsets->blocks[i] = (block){
            .offset = offsets->bytes, .bytes = bytes, .before = end, .after = NONE
        };
        if (end != NONE)
            offsets->blocks[end].after = i;
        offsets->end = i;
        *result = i;
    }
    offsets->bytes = total;
    return GX_OK;
}

gx_status gx_offsets_take(gx_offsets *offsets, int64_t bytes, gx_ordered_fn *ordered,
                          const void *user, int32_t *block_id, int64_t *offset,
                          gx_error *err)
{
    const int64_t unit = offsets->alignment;
    int64_t rounded;
    int32_t i;

    if (__builtin_add_overflow(bytes > 0 ? bytes : 1, unit - 1, &rounded))
        return GX_FAIL(err, GX_ERR_LIMIT, "more bytes than can be addressed");
    rounded -= rounded % unit;
    i = search(offsets, rounded, ordered, user);
    if (i != NONE) {
        leave_bin(offsets, i);
        GX_TRY(split(offsets, i, rounded, err));
    } else {
        GX_TRY(extend(offsets, rounded, ordered, user, &i, err));
    }
    *block_id = i;
    *offset = offsets->blocks[i].offset;
    return GX_OK;
}

/* Joins free block b to free block a, its neighbour before it. */
static void join(gx_offsets *offsets, int32_t a, int32_t b)
{
    block *x = &offsets->blocks[a];
    block *y = &offsets->blocks[b];

    leave_bin(offsets, a);
    leave_bin(offsets, b);
    x->bytes += y->bytes;
    x->after = y->after;
    if (y->after != NONE)
        offsets->blocks[y->after].before = a;
    if (offsets->end == b)
        offsets->end = a;
    for (int lane = 0; lane < GX_OFFSET_LANES; lane++) {
        if (y->last[lane] > x->last[lane])
            x->last[lane] = y->last[lane];
    }
    y->next = offsets->spare;
    offsets->spare = b;
    enter_bin(offsets, a);
}

void gx_offsets_give(gx_offsets *offsets, int32_t i, const int32_t last[GX_OFFSET_LANES])
{
    block *b = &offsets->blocks[i];
    const int32_t before = b->before;
    const int32_t after = b->after;

    for (int lane = 0; lane < GX_OFFSET_LANES; lane++)
        b->last[lane] = last[lane];
    enter_bin(offsets, i);
    if (after != NONE && offsets->blocks[after].is_free)
        join(offsets, i, after);
    if (before != NONE && offsets->blocks[before].is_free)
        join(offsets, before, i);
}
