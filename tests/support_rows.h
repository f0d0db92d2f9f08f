/* Calls of rows by themselves on a device: operands with numbers on both sides, every
 * alternative over old memory, compared with the row's reference. */
#ifndef GX_SUPPORT_ROWS_H
#define GX_SUPPORT_ROWS_H

#if GX_HAVE_CUDA

#include "launch.h"
#include "support_walk.h"

typedef struct test_device {
    gx_ctx ctx;
    cudaStream_t stream;
    uint64_t seed;
} test_device;

/* Compute capability of device 0: 90, say. */
int test_device_cc(void);
/* Set-up and tear-down of a test: one in *state. */
int test_device_open(void **state);
int test_device_close(void **state);

/* A tensor on the device, what was put there, and what the reference makes of it. */
typedef struct test_operand {
    gx_tensor device;
    double *host, *want;
    void *block;
    size_t bytes;
    bool is_output;
} test_operand;

/* `values` are rounded to the type; NULL: an output, over NaNs. `shift` elements behind
 * an aligned address. */
test_operand test_operand_make(gx_dtype dtype, int rank, const int64_t *dim, int shift,
                               const double *values);
/* Reads an output back, and looks at the bytes behind it. */
void test_operand_fetch(test_operand *operand);
void test_operand_drop(test_operand *operand);

/* Which of a call's operands have which memory. */
typedef struct test_call {
    gx_call call;
    test_operand *of[GX_MAX_ARGS];
} test_call;

/* A call without operands. */
gx_call test_call_of(const char *op);
void test_call_bind(test_call *call, int arg, test_operand *operand);
/* The alternative's pattern is these calls, or these are several of it where it may stand
 * several times. */
bool test_call_covers(const gx_alternative *alternative, const test_call *calls, int n);
/* Runs one candidate and waits; returns how many there are, 0 where it does not apply. */
int test_call_run(test_device *device, const gx_alternative *alternative,
                  const gx_group *group, int choice);
/* Every candidate of every alternative of these calls, against the references; returns
 * how many ran. `elided`, by [call * GX_MAX_ARGS + arg], are outputs that those which
 * elide need not write; without it each op keeps its own tolerance. */
enum { TEST_CALLS = 5 };
int test_call_check(test_device *device, const test_call *calls, int n,
                    const bool *elided);
/* The same of nodes of a model, on operands with the model's values, `shift` elements
 * behind an aligned address. */
int test_nodes_check(test_device *device, const test_walk *walk, size_t first, int n,
                     int shift, const bool *elided);

#endif
#endif
