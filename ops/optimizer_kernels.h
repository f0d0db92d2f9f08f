/* One update over a table of tensors, which travels among the kernel's arguments.
 */
#ifndef GX_OPTIMIZER_KERNELS_H
#define GX_OPTIMIZER_KERNELS_H

#include "cuda_call.h"
#include "launch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Elements that a block takes at a time. */
enum { GX_OPTIMIZER_CHUNK = 2048 };

typedef enum gx_update_rule {
    GX_UPDATE_SGD,
    GX_UPDATE_MOMENTUM,
    GX_UPDATE_ADAM
} gx_update_rule;

/* What the tensors of a group have in common. Kept small: it travels in each table. */
typedef struct gx_update_settings {
    const float *lr;
    double log_beta1, log_beta2; /* adam; -HUGE_VAL for 0 */
    double shrink;               /* adam: param shrinks by lr shrink */
    float decay;                 /* added to the gradient: decay param */
    float take1;                 /* of the gradient: 1 - beta1, or 1 - dampening */
    float keep2, take2; /* adam: beta2, 1 - beta2; momentum: keep2 of the old buf */
    float eps;
    bool nesterov;
} gx_update_settings;

enum {
    GX_UPDATE_SETTINGS = 4, /* groups of one launch */
    GX_UPDATE_WORDS = GX_TABLE_BYTES / sizeof(uint64_t)
};

/* An entry is its pointers (param, grad, state, the master last), its elements, and a
 * word that holds the chunks of the entries before it and, above them, which settings it
 * has. */
enum { GX_UPDATE_GROUP_SHIFT = 32, GX_UPDATE_MAX_POINTERS = 5 };

typedef struct gx_update_table {
    gx_update_rule rule;
    int n_pointers; /* of an entry */
    int n_entries, n_settings;
    gx_dtype dtype, grad_dtype, state_dtype;
    bool has_master;
    bool wide; /* every tensor is aligned to the elements that a thread takes at once */
    bool many; /* wide, of narrow types, and so many chunks that memory's rate decides */
    int32_t accumulate;
    int64_t n_chunks;
    const int32_t *step; /* NULL: each step is an update, and none is told apart; below 0:
                            there is none */
    const float *scale;  /* NULL: 1 */
    gx_update_settings settings[GX_UPDATE_SETTINGS];
    uint64_t words[GX_UPDATE_WORDS]; /* no entry is empty */
} gx_update_table;

/* optimizer_cuda.c: those of an update by itself; equal ones are equal bytes. */
void gx_update_settings_of(const gx_call *call, gx_update_settings *settings);

/* No tensor's type has more than two bytes. */
static inline bool gx_update_is_narrow(const gx_update_table *table)
{
    return table->dtype != GX_F32 && table->grad_dtype != GX_F32 &&
           table->state_dtype != GX_F32 && !table->has_master;
}

gx_status gx_update_load(const gx_update_table *table, gx_error *err) GX_MUST_CHECK;
gx_status gx_update_launch(const gx_update_table *table, gx_ctx *ctx,
                           gx_error *err) GX_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
