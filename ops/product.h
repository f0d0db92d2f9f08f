/* The matrix product of the CPU, in double. */
#ifndef GX_PRODUCT_H
#define GX_PRODUCT_H

#include <stdint.h>

/* A matrix seen through strides: element (i, j) is data[i * row + j * column]. */
typedef struct gx_matrix {
    const double *data;
    int64_t row, column;
} gx_matrix;

/* out[m, n] (rows out_row elements apart, not overlapping a or b) = a[m, k] b[k, n]. Each
 * element is summed in the order of k, whatever the processor, so the bits are the same
 * on all. Never reads out before it has written it. */
void gx_product(int64_t m, int64_t n, int64_t k, gx_matrix a, gx_matrix b, double *out,
                int64_t out_row);

/* out += a b, further along the same sums. */
void gx_product_add(int64_t m, int64_t n, int64_t k, gx_matrix a, gx_matrix b,
                    double *out, int64_t out_row);

#endif
