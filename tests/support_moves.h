/* Random calls of the ops that move elements, and what has to come of them. */
#ifndef GX_SUPPORT_MOVES_H
#define GX_SUPPORT_MOVES_H

#include "ops.h"
#include "support.h"

/* "transpose", "reshape", "slice", "slice.bwd", "concat", NULL */
extern const char *const test_moves[];

/* A call of `op` with random shapes of up to `most` along an axis, type and attributes,
 * and no data. Returns the index of its output, which stands behind its inputs. A
 * list among the attributes lives until the next draw. */
int test_move_draw(test_random *random, const char *op, int64_t most, gx_call *call);

/* How every element is marked: the k-th one of input i, as a number below 2^16. */
uint16_t test_move_mark(int i, int64_t k);
/* The marks that the row's reference puts into the output; the caller frees. */
double *test_move_expected(const gx_call *call, int out);

#endif
