/* Products by cuBLASLt of which an operand is transposed in the workspace before: by a
 * copy, or by the way back through an epilogue that makes it. */
#include "gemm_cuda.h"
#include "gemm_lt.h"
#include "gemm_tile.h"
#include "move_kernels.h"

enum { COPY_ALIGNMENT = 4 /* elements of 4 bytes: the library's widest loads take 16 */ };

/* Multiplications below which no copy pays: all of the product takes less than the launch
 * of one. Plans of small models are then made no slower by trying it. */
#define LEAST_TURNED 0x1p24
/* Bytes of a copy: a workspace that large is missed elsewhere. */
#define MOST_TURNED 0x1p30

/* --- when it applies --- */

/* The tensor cores of sm_90 take tf32 along k alone, so that a product whose operands
 * both have k along their columns is far slower than one where one has it along its rows;
 * of 16 bits they take either. */
static const char *refuses_turning(const gx_group *group, const gx_ctx *ctx, bool of_b)
{
    const char *reason = gx_gemm_lt_refuses(group, ctx);

    if (reason != NULL)
        return reason;
    const gx_product product = gx_product_of(&group->call[0]);
    const double k = (double)product.k * (double)product.n_batches;

    if (product.dtype != GX_F32 || product.precision != GX_PRECISION_TF32)
        return "only tf32 gains by it";
    if (!product.trans_a || product.trans_b)
        return "k runs along the rows of an operand already";
    if (k * (double)product.m * (double)product.n < LEAST_TURNED)
        return "too small for a copy to pay";
    if (k * (double)(of_b ? product.n : product.m) * sizeof(float) > MOST_TURNED)
        return "the copy would have more than 1 GiB";
    return NULL;
}

const char *gx_gemm_lt_turned_refuses(const gx_group *group, const gx_ctx *ctx)
{
    return refuses_turning(group, ctx, false);
}

const char *gx_gemm_lt_turned_b_refuses(const gx_group *group, const gx_ctx *ctx)
{
    const char *reason = refuses_turning(group, ctx, true);

    if (reason != NULL)
        return reason;
    const gx_product product = gx_product_of(&group->call[0]);

    return product.n < product.m ? NULL : "the first operand is not the larger one";
}

/* --- what is asked of the library --- */

/* The copy that goes ahead of a product which then reads it in the operand's place. */
static gx_turn turn_operand(gx_lt_product *lt, bool of_b, void *workspace)
{
    const void **data = of_b ? &lt->b : &lt->a;
    int64_t *ld = of_b ? &lt->ldb : &lt->lda;
    int64_t *stride = of_b ? &lt->stride_b : &lt->stride_a;
    bool *trans = of_b ? &lt->trans_b : &lt->trans_a;
    const int64_t lines = of_b ? lt->n : lt->m;
    const int64_t pitch = gx_round_up(lt->k, COPY_ALIGNMENT);
    const int64_t n_copies = *stride != 0 ? lt->n_batches : 1; /* 0: all share it */
    gx_turn turn = {
        .rows = lt->k,
        .columns = lines,
        .row_from = *ld,
        .column_to = pitch,
        .element_bytes = (int32_t)gx_dtype_bytes(lt->dtype),
        .to_tf32 = true, /* see refuses_turning */
        .from = *data,
        .to = workspace,
    };

    if (n_copies > 1)
        turn.axis[turn.n_axes++] = gx_move_along(n_copies, *stride, lines * pitch);
    gx_turn_finish(&turn);
    *data = workspace;
    *ld = pitch;
    *stride = *stride != 0 ? lines * pitch : 0;
    *trans = !*trans;
    lt->skip_bytes = (size_t)gx_round_up(n_copies * lines * pitch * turn.element_bytes,
                                         GX_WORKSPACE_ALIGNMENT);
    return turn;
}

/* --- an operand that is copied --- */

static gx_status prepare_turned(const gx_group *group, const gx_ctx *ctx, bool of_b,
                                gx_prepared *prepared, gx_error *err)
{
    gx_lt_product lt = gx_gemm_lt_product(&group->call[0]);
    const gx_turn turn = turn_operand(&lt, of_b, gx_planned_workspace());

    GX_TRY(gx_turn_load(&turn, err));
    return gx_gemm_lt_prepare_product(&lt, ctx, prepared, err);
}

static gx_status launch_turned(const gx_group *group, const gx_prepared *prepared,
                               bool of_b, gx_ctx *ctx, gx_error *err)
{
    gx_lt_product lt = gx_gemm_lt_product(&group->call[0]);
    const gx_turn turn = turn_operand(&lt, of_b, ctx->workspace);

    GX_TRY(gx_turn_launch(&turn, ctx, err));
    return gx_gemm_lt_launch_product(&lt, prepared, ctx, err);
}

gx_status gx_gemm_lt_turned_prepare(const gx_group *group, const gx_ctx *ctx,
                                    gx_prepared *prepared, gx_error *err)
{
    return prepare_turned(group, ctx, false, prepared, err);
}

gx_status gx_gemm_lt_turned_launch(const gx_group *group, const gx_prepared *prepared,
                                   gx_ctx *ctx, gx_error *err)
{
    return launch_turned(group, prepared, false, ctx, err);
}

gx_status gx_gemm_lt_turned_b_prepare(const gx_group *group, const gx_ctx *ctx,
                                      gx_prepared *prepared, gx_error *err)
{
    return prepare_turned(group, ctx, true, prepared, err);
}

gx_status gx_gemm_lt_turned_b_launch(const gx_group *group, const gx_prepared *prepared,
                                     gx_ctx *ctx, gx_error *err)
{
    return launch_turned(group, prepared, true, ctx, err);
}

/* --- an operand that the group makes --- */

/* {way back, [sums of the bias], product}: the calls ahead of the product. */
static gx_group back_of(const gx_group *group)
{
    return gx_group_part(group, 0, group->n_calls - 1);
}

static const gx_call *gemm_of(const gx_group *group)
{
    return &group->call[group->n_calls - 1];
}

/* Its dx is the second operand, as of a weight that is stored [in, out]. */
static bool turns_b(const gx_group *group)
{
    return gx_feeds(&group->call[0], GX_EPILOGUE_BWD_DX, gemm_of(group), GX_GEMM_B);
}

/* The product reads dx, once, all of it, and nothing else that the group makes. */
static const char *refuses_operand(const gx_group *group)
{
    const gx_call *back = &group->call[0];
    const gx_product product = gx_product_of(gemm_of(group));
    const bool of_b = turns_b(group);
    const int in = of_b ? (int)GX_GEMM_B : (int)GX_GEMM_A;

    if (!gx_has(back, GX_EPILOGUE_BWD_DX) ||
        !gx_feeds(back, GX_EPILOGUE_BWD_DX, gemm_of(group), in))
        return "the product does not read dx";
    if (gx_gemm_reads_group(group, group->n_calls - 1, in))
        return "the product reads what the group makes twice";
    const gx_tensor *dx = &back->arg[GX_EPILOGUE_BWD_DX];

    if (product.n_batches != 1 || product.k != gx_rows(dx) ||
        (of_b ? product.n : product.m) != gx_columns(dx))
        return "the product uses a part of dx, or parts by themselves";
    return NULL;
}

const char *gx_gemm_lt_turned_dx_refuses(const gx_group *group, const gx_ctx *ctx)
{
    const gx_group back = back_of(group);
    const gx_group alone = gx_group_part(group, group->n_calls - 1, 1);
    const char *reason = refuses_operand(group);

    if (reason == NULL)
        reason = refuses_turning(&alone, ctx, turns_b(group));
    return reason != NULL ? reason : gx_epilogue_refuses_wide(&back, ctx);
}

/* The product that is left, and the kernel ahead of it. */
static gx_epilogue_turned turn_back(const gx_group *group, void *workspace,
                                    gx_lt_product *lt)
{
    const gx_group back = back_of(group);
    const gx_turn turn = turn_operand(lt, turns_b(group), workspace);

    return (gx_epilogue_turned){ .back = gx_epilogue_back_of(&back),
                                 .turned = workspace,
                                 .pitch = turn.column_to };
}

gx_status gx_gemm_lt_turned_dx_prepare(const gx_group *group, const gx_ctx *ctx,
                                       gx_prepared *prepared, gx_error *err)
{
    gx_lt_product lt = gx_gemm_lt_product(gemm_of(group));
    const gx_epilogue_turned turned = turn_back(group, gx_planned_workspace(), &lt);

    GX_TRY(gx_epilogue_check_wide(&turned.back, err));
    GX_TRY(gx_epilogue_turned_load(&turned, err));
    return gx_gemm_lt_prepare_product(&lt, ctx, prepared, err);
}

gx_status gx_gemm_lt_turned_dx_launch(const gx_group *group, const gx_prepared *prepared,
                                      gx_ctx *ctx, gx_error *err)
{
    gx_lt_product lt = gx_gemm_lt_product(gemm_of(group));
    const gx_epilogue_turned turned = turn_back(group, ctx->workspace, &lt);

    GX_TRY(gx_epilogue_turned_launch(&turned, ctx, err));
    return gx_gemm_lt_launch_product(&lt, prepared, ctx, err);
}
