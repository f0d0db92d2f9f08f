/* The ticket that the blocks of a kernel draw, so that the last of them finishes what all
 * have left: the device's side is ticket.cuh. */
#ifndef GX_TICKET_H
#define GX_TICKET_H

#include "cuda_call.h"

/* A word of zero on the device, which the kernel leaves as zero: see gx_ctx. */
static inline gx_status gx_take_ticket(const gx_ctx *ctx, unsigned **ticket,
                                       gx_error *err)
{
    *ticket = ctx->tickets;
    return *ticket ? GX_OK : GX_FAIL(err, GX_ERR_STATE, "a workspace without tickets");
}

#endif
