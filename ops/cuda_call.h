/* What the refuses and prepare hooks of the CUDA alternatives share: shapes and operands.
 */
#ifndef GX_CUDA_CALL_H
#define GX_CUDA_CALL_H

#include <stddef.h>

#include "ops.h"

/* Bytes that a table of tensors may take among a kernel's arguments: every driver takes
 * 4 KB of arguments, and the rest is for those that are not tables. */
enum { GX_TABLE_BYTES = 3584 };

/* Operand `arg` of a call has memory that this alternative must write or may read. */
static inline bool gx_is_elided(const gx_group *group, int call, int arg)
{
    return group->elided != NULL && group->elided[call * GX_MAX_ARGS + arg];
}

/* Operand `arg` of a call may be loaded ahead of the wait for the kernels before. */
static inline bool gx_is_steady(const gx_group *group, int call, int arg)
{
    return group->steady != NULL && group->steady[call * GX_MAX_ARGS + arg];
}

/* Output `arg` may be stored rounded to tf32. */
static inline bool gx_is_to_tf32(const gx_call *call, int arg)
{
    return (call->to_tf32 >> arg & 1) != 0;
}

/* The output that one call makes is what another reads. */
static inline bool gx_feeds(const gx_call *from, int out, const gx_call *to, int in)
{
    return gx_has(from, out) && gx_has(to, in) && from->arg[out].data == to->arg[in].data;
}

/* The pointer, or NULL for an operand that is absent. */
static inline void *gx_data(const gx_call *call, int arg)
{
    return gx_has(call, arg) ? call->arg[arg].data : NULL;
}

static inline gx_act gx_act_of(const gx_call *call, int attr)
{
    return (gx_act)call->attr[attr].i;
}

/* What the derivative of an activation reads of the forward pass; NULL: nothing. */
static inline const void *gx_act_saved(const gx_call *call, gx_act act, int y, int pre)
{
    switch (gx_act_reads_of[act]) {
    case GX_ACT_READS_Y:
        return gx_data(call, y);
    case GX_ACT_READS_PRE:
        return gx_data(call, pre);
    default:
        return NULL;
    }
}

/* A tensor as a matrix: its last size is the columns. */
static inline int64_t gx_columns(const gx_tensor *tensor)
{
    return tensor->rank > 0 ? tensor->dim[tensor->rank - 1] : 1;
}

static inline int64_t gx_rows(const gx_tensor *tensor)
{
    int64_t rows = 1;

    for (int i = 0; i + 1 < tensor->rank; i++)
        rows *= tensor->dim[i];
    return rows;
}

/* The largest power of two, up to `most`, that divides the address. */
static inline unsigned gx_alignment_of(const void *data, unsigned most)
{
    unsigned bytes = most;

    while (bytes > 1 && (uintptr_t)data % bytes != 0)
        bytes /= 2;
    return bytes;
}

static inline int64_t gx_divide_up(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

#endif
