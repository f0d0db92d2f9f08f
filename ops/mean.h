/* A mean over many values in a fixed order: one block does it all, or several blocks
 * leave partial sums and the last of them, which a ticket tells, adds them up. */
#ifndef GX_MEAN_H
#define GX_MEAN_H

#include <string.h>

#include "ticket.h"

enum {
    GX_MEAN_ONE_BLOCK = 16384, /* values up to which one block is the usual choice */
    GX_MEAN_TRY_FEWEST = 2048, /* between these both ways are worth measuring */
    GX_MEAN_TRY_MOST = 1 << 18
};

/* Blocks of the kernel; kept in the plan, since the order of the sum hangs on it. */
static inline int32_t gx_mean_blocks(const gx_prepared *prepared)
{
    int32_t blocks = 0;

    memcpy(&blocks, prepared->algo, sizeof blocks);
    return blocks;
}

/* `n` values; `blocks` is what several blocks would be. */
static inline gx_status gx_mean_prepare(int64_t n, int64_t blocks, gx_prepared *prepared,
                                        gx_error *err)
{
    int32_t chosen = (int32_t)blocks;
    const bool both = blocks > 1 && n >= GX_MEAN_TRY_FEWEST && n <= GX_MEAN_TRY_MOST;

    if (prepared->has_algo) {
        prepared->n_algos = 1;
        chosen = gx_mean_blocks(prepared);
        if (chosen < 1 || chosen > (1 << 20))
            return GX_FAIL(err, GX_ERR_UNSUPPORTED, "a mean by %d blocks is pinned",
                           chosen);
    } else {
        prepared->n_algos = both ? 2 : 1;
        if ((n <= GX_MEAN_ONE_BLOCK) != (prepared->algo_choice == 1))
            chosen = 1;
    }
    memset(prepared->algo, 0, sizeof prepared->algo);
    memcpy(prepared->algo, &chosen, sizeof chosen);
    prepared->has_algo = true;
    prepared->n_launches = 1;
    prepared->workspace_bytes = chosen > 1 ? (size_t)chosen * sizeof(double) : 0;
    return GX_OK;
}

/* NULL for one block, which needs none. */
static inline gx_status gx_mean_ticket(int32_t blocks, const gx_ctx *ctx,
                                       unsigned **ticket, gx_error *err)
{
    *ticket = NULL;
    return blocks > 1 ? gx_take_ticket(ctx, ticket, err) : GX_OK;
}

#endif
