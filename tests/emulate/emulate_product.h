/* Products by the kernels of large ones, with operands of which every one is exact: what
 * is made of a product need not reckon with its being rounded in between. */
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

void emulate_make_product(emulate_product *product, test_random *random);
void emulate_drop_product(emulate_product *product);

/* Where the kernels keep tiles that they have not finished; of emulate_alloc. */
void *emulate_handed(int n_sm);

#endif
