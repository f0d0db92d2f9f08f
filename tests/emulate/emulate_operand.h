/* Operands of emulated kernels, in the types that they have there and in double. */
#ifndef EMULATE_OPERAND_H
#define EMULATE_OPERAND_H

#include "emulate.h"
#include "gemm_tile.h"
#include "support.h"

typedef struct emulate_operand {
    gx_dtype dtype;
    int64_t n;
    void *memory;      /* of emulate_alloc */
    double *value;     /* what it holds; outputs: what it must hold */
    double *magnitude; /* outputs: of what was added up, of which errors are a part */
} emulate_operand;

gx_dtype emulate_dtype(gx_tile_math math);

/* Numbers about 0, rounded to the type; `value` is what tensor cores see of them. */
emulate_operand emulate_input(gx_tile_math math, int64_t n, test_random *random);
/* The same as ordinary cores see them. */
emulate_operand emulate_plain_input(gx_dtype dtype, int64_t n, test_random *random);
/* Whole numbers from -2 to 2: some dozens of products of two of them add up to a number
 * that every type holds. */
emulate_operand emulate_whole_input(gx_dtype dtype, int64_t n, test_random *random);
/* NaNs; value and magnitude are 0. */
emulate_operand emulate_output(gx_dtype dtype, int64_t n);
void emulate_drop(emulate_operand *operand);

/* Fails the test, which is `what`, where an element is not what it must be. */
void emulate_compare(const emulate_operand *operand, const char *name, const char *what);
/* What tensor cores see of what is there now; the caller frees. */
double *emulate_seen(const emulate_operand *operand, gx_tile_math math);
/* The output is all NaNs, as before. */
void emulate_forget(emulate_operand *operand);

#endif
