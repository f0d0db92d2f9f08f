/* Products by the kernels of large ones, with operands of which every one is exact, of
 * tf32 once it is rounded: what is made of a product need not reckon with its being
 * rounded in between. `value` of an operand is what the product has of it. */
#ifndef EMULATE_PRODUCT_H
#define EMULATE_PRODUCT_H

#include "emulate_operand.h"
#include "wgmma.h"

typedef struct emulate_product {
    int64_t m, n, k;
    int64_t wide; /* elements that rows of a and b are longer than what is used of them */
    bool a_turned, b_turned; /* stored [k, m]; [n, k] */
    gx_tile_math math;
    /* what emulate_make_product finds */
    emulate_operand a, b;
    int64_t lda, ldb;
    gx_wgmma_maps maps;
    double *value, *magnitude; /* [m, n] */
} emulate_product;

/* As gemm_wgmma_cuda.c maps an operand: what a box has of it. Rounded to tf32 where that
 * is the operand's math and it is not to be summed. */
typedef struct emulate_map {
    int64_t rows, columns, ld;
    int box_rows;
    bool is_summed;
} emulate_map;
void emulate_map_matrix(const emulate_operand *of, const emulate_map *as,
                        CUtensorMap *map);
int emulate_line(gx_tile_math math);

void emulate_make_product(emulate_product *product, test_random *random);
void emulate_drop_product(emulate_product *product);

/* Where the kernels keep tiles that they have not finished; of emulate_alloc. */
void *emulate_handed(gx_tile_math math, int n_sm);

#endif
