/* Strided copies, and transposes through tiles in shared memory. */
#ifndef GX_MOVE_KERNELS_H
#define GX_MOVE_KERNELS_H

#include "launch.h"
#include "move.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Moves with something to do alone. */
gx_status gx_move_load(const gx_move *move, gx_error *err) GX_MUST_CHECK;
gx_status gx_move_launch(const gx_move *move, gx_ctx *ctx, gx_error *err) GX_MUST_CHECK;
gx_status gx_turn_load(const gx_turn *turn, gx_error *err) GX_MUST_CHECK;
gx_status gx_turn_launch(const gx_turn *turn, gx_ctx *ctx, gx_error *err) GX_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
