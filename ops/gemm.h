/* What the two files of the products share. */
#ifndef GX_GEMM_H
#define GX_GEMM_H

#include "factor.h"
#include "ops.h"

enum { GX_SHAPE_TEXT = 128 };

/* --- gemm_grad.c --- */

void gx_gemm_grad(gx_builder *builder, int32_t id);
bool gx_gemm_bwd_expand(gx_builder *builder, int32_t id);

#endif
