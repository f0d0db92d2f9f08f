/* What the alternatives share that leave a product to cuBLASLt. */
#ifndef GX_GEMM_LT_H
#define GX_GEMM_LT_H

#include "lt.h"

/* The product of a call by itself. */
gx_lt_product gx_gemm_lt_product(const gx_call *gemm);
/* As gx_lt_prepare and gx_lt_launch, and zeros behind the columns of the product where
 * rows of out are wider. */
gx_status gx_gemm_lt_prepare_product(const gx_lt_product *lt, const gx_ctx *ctx,
                                     gx_prepared *prepared, gx_error *err) GX_MUST_CHECK;
gx_status gx_gemm_lt_launch_product(const gx_lt_product *lt, const gx_prepared *prepared,
                                    gx_ctx *ctx, gx_error *err) GX_MUST_CHECK;

#endif
