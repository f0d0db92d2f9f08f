/* What the files of the products share. */
#ifndef GX_GEMM_H
#define GX_GEMM_H

#include <string.h>

#include "epilogue_order.h"
#include "factor.h"
#include "ops.h"

enum { GX_SHAPE_TEXT = 128 };

/* The sizes of a product and the rows of what it reads and makes: attributes of gemm from
 * GX_GEMM_M on and of gemm.bwd from GX_GEMM_BWD_M on. An expanded gemm has m, n and k
 * wherever it has one of the others. */
typedef enum gx_product_size {
    GX_PRODUCT_M,
    GX_PRODUCT_N,
    GX_PRODUCT_K,
    GX_PRODUCT_LD_A,
    GX_PRODUCT_LD_B,
    GX_PRODUCT_LD_C,
    GX_PRODUCT_LD_OUT,
    GX_N_PRODUCT_SIZES
} gx_product_size;

/* --- gemm.c --- */

/* The steps behind the product. */
gx_epilogue_steps gx_gemm_steps(const gx_node *node);

/* --- gemm_infer.c --- */

extern const char *const gx_product_size_keys[GX_N_PRODUCT_SIZES]; /* fields */

typedef struct gx_product_sizes {
    int64_t m, n, k;
} gx_product_sizes;

/* Of a gemm or gemm.bwd whose shapes have been found to fit; `first` is its attribute m.
 */
gx_product_sizes gx_product_sizes_of(const gx_graph *graph, const gx_node *node,
                                     int first);

/* Whether one of ld.a, ld.b, ld.c and ld.out is given. */
static inline bool gx_has_wide_rows(const gx_attr *size)
{
    return size[GX_PRODUCT_LD_A].present || size[GX_PRODUCT_LD_B].present ||
           size[GX_PRODUCT_LD_C].present || size[GX_PRODUCT_LD_OUT].present;
}

void gx_gemm_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                   gx_diagnostics *list);
void gx_gemm_bwd_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                       gx_diagnostics *list);

/* --- gemm_grad.c --- */

void gx_gemm_grad(gx_builder *builder, int32_t id);
bool gx_gemm_bwd_expand(gx_builder *builder, int32_t id);

#endif
