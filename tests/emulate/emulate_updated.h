/* What adam updates beside a gradient, for tests of kernels that make both. */
#ifndef EMULATE_UPDATED_H
#define EMULATE_UPDATED_H

#include "emulate_operand.h"
#include "weights.h"

/* A parameter and its moments, in the order of gx_updated. */
enum { EMULATE_PARAM, EMULATE_M, EMULATE_V, EMULATE_N_UPDATED };

typedef struct emulate_updated {
    emulate_operand of[EMULATE_N_UPDATED];
    void *before[EMULATE_N_UPDATED];
} emulate_updated;

/* Some of the gradient's type and size, and what its update must leave. */
emulate_updated emulate_make_updated(const emulate_operand *gradient,
                                     test_random *random);
void emulate_drop_updated(emulate_updated *updated);
/* As they were before any update. */
gx_updated emulate_bring_back(const emulate_updated *updated);
void emulate_compare_updated(const emulate_updated *updated, const char *of,
                             const char *what);

/* The settings of that update; `lr` and `step`, of emulate_alloc, are the caller's. */
gx_update_settings emulate_update_settings(void **lr, void **step);

#endif
