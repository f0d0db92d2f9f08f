/* Products by cuBLASLt: plain, with the epilogue or what of it stands ahead of the
 * activation, with the derivative of the epilogue, and with the sums that a bias wants.
 */
#include "gemm_cuda.h"
#include "gemm_lt.h"
#include "gemm_tile.h"

enum {
    MASK_ALIGNMENT = 128, /* bits of a row of the relu mask */
    AUX_ALIGNMENT = 8,    /* elements of a row that an epilogue keeps */
    AUX_BYTES = 16
};

/* --- when it applies --- */

const char *gx_gemm_lt_refuses(const gx_group *group, const gx_ctx *ctx)
{
    const char *reason = gx_gemm_refuses(group);

    (void)ctx;
    if (reason != NULL)
        return reason;
    const gx_product product = gx_product_of(&group->call[0]);

    if (product.m == 0 || product.n == 0 || product.k == 0 || product.n_batches == 0)
        return "a size is zero";
    if (product.sum)
        return "cuBLASLt does not add up the products of a batch";
    if (product.n_batches > INT32_MAX)
        return "cuBLASLt has batches of up to 2^31 - 1";
    return NULL;
}

/* Rows of what an epilogue keeps or reads lie n elements apart. */
static const char *refuses_aux(const gx_call *call, int arg)
{
    const gx_tensor *aux = &call->arg[arg];

    if (gx_columns(aux) % AUX_ALIGNMENT != 0)
        return "cuBLASLt keeps the pre-activation in rows of a multiple of 8 elements";
    return NULL;
}

/* gelu is the library's in its tanh form alone. */
static const char *refuses_act(gx_act act)
{
    if (act == GX_ACT_NONE || act == GX_ACT_RELU || act == GX_ACT_GELU_TANH)
        return NULL;
    return "cuBLASLt has relu and gelu_tanh, and no other activation";
}

/* A product, and an epilogue whose steps ahead of the activation the library has. */
static const char *refuses_steps(const gx_group *group, const gx_ctx *ctx)
{
    const char *reason = gx_gemm_lt_refuses(group, ctx);

    if (reason == NULL)
        reason = gx_gemm_refuses_link(group, GX_EPILOGUE_X);
    if (reason == NULL && gx_has(&group->call[1], GX_EPILOGUE_RESIDUAL) &&
        gx_product_of(&group->call[0]).c != NULL)
        reason = "cuBLASLt adds one tensor, and there are c and a residual";
    return reason;
}

const char *gx_gemm_lt_forward_refuses(const gx_group *group, const gx_ctx *ctx)
{
    const char *reason = refuses_steps(group, ctx);

    if (reason != NULL)
        return reason;
    const gx_call *epilogue = &group->call[1];
    const gx_act act = gx_act_of(epilogue, GX_EPILOGUE_ACT);
    const bool adds = gx_has(epilogue, GX_EPILOGUE_RESIDUAL);
    const gx_product product = gx_product_of(&group->call[0]);

    if (!adds && !gx_has(epilogue, GX_EPILOGUE_BIAS) && act == GX_ACT_NONE &&
        gx_call_factor(epilogue, GX_EPILOGUE_SCALE) == 1.0)
        return "there is neither bias nor activation";
    if (refuses_act(act) != NULL)
        return refuses_act(act);
    if (gx_kept_of(group) == NULL)
        return NULL;
    if (act != GX_ACT_GELU_TANH)
        return "cuBLASLt keeps the pre-activation of gelu alone";
    if (product.n_batches != 1)
        return "the pre-activation of a batch of products is kept";
    return refuses_aux(epilogue, GX_EPILOGUE_X);
}

/* The library writes what is kept, so that the kernel behind it reads that alone. */
const char *gx_gemm_lt_bias_refuses(const gx_group *group, const gx_ctx *ctx)
{
    const char *reason = refuses_steps(group, ctx);

    if (reason != NULL)
        return reason;
    if (gx_act_of(&group->call[1], GX_EPILOGUE_ACT) == GX_ACT_NONE)
        return "there is no activation";
    if (gx_keeps_product(group))
        return "nothing is done ahead of the activation";
    if (gx_kept_of(group) == NULL)
        return "the pre-activation is not kept";
    if (gx_is_elided(group, 1, GX_EPILOGUE_OUT))
        return "nothing reads what the activation makes";
    return NULL;
}

const char *gx_gemm_lt_backward_refuses(const gx_group *group, const gx_ctx *ctx)
{
    const char *reason = gx_gemm_lt_refuses(group, ctx);

    if (reason == NULL)
        reason = gx_gemm_refuses_backward(group);
    if (reason != NULL)
        return reason;
    const gx_call *backward = &group->call[1];
    const gx_act act = gx_act_of(backward, GX_EPILOGUE_BWD_ACT);

    if (act == GX_ACT_NONE)
        return "there is no activation to go back through";
    if (refuses_act(act) != NULL)
        return refuses_act(act);
    if (!gx_has(backward, GX_EPILOGUE_BWD_DX) ||
        gx_is_elided(group, 1, GX_EPILOGUE_BWD_DX))
        return "dx is not wanted";
    if (gx_product_of(&group->call[0]).n_batches != 1)
        return "the mask or pre-activation of a batch of products is read";
    return act == GX_ACT_GELU_TANH ? refuses_aux(backward, GX_EPILOGUE_BWD_PRE) : NULL;
}

const char *gx_gemm_lt_weight_refuses(const gx_group *group, const gx_ctx *ctx)
{
    const gx_group alone = gx_weight_product(group);
    const char *reason = gx_gemm_lt_refuses(&alone, ctx);

    return reason != NULL ? reason : gx_gemm_refuses_weight(group);
}

/* --- what is asked of the library --- */

/* Scale, bias and residual. */
static void add_steps(const gx_call *call, gx_lt_product *lt)
{
    const float scale = (float)gx_call_factor(call, GX_EPILOGUE_SCALE);

    lt->bias = gx_data(call, GX_EPILOGUE_BIAS);
    lt->alpha *= scale;
    lt->beta *= scale;
    if (gx_has(call, GX_EPILOGUE_RESIDUAL)) {
        lt->c = call->arg[GX_EPILOGUE_RESIDUAL].data;
        lt->ldc = lt->n;
        lt->beta = 1.0f;
    }
    if (gx_has(call, GX_EPILOGUE_BIAS))
        lt->epilogue = CUBLASLT_EPILOGUE_BIAS;
}

static void add_epilogue(const gx_group *group, gx_lt_product *lt)
{
    const gx_call *call = &group->call[1];
    const gx_act act = gx_act_of(call, GX_EPILOGUE_ACT);
    const bool has_bias = gx_has(call, GX_EPILOGUE_BIAS);

    add_steps(call, lt);
    lt->out = call->arg[GX_EPILOGUE_OUT].data;
    lt->aux = gx_kept_of(group);
    if (lt->aux != NULL) {
        lt->aux_ld = lt->n;
        lt->epilogue =
            has_bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
    } else if (act == GX_ACT_GELU_TANH) {
        lt->epilogue = has_bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
    } else if (act == GX_ACT_RELU) {
        lt->epilogue = has_bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    }
}

static void add_backward(const gx_group *group, void *workspace, gx_lt_product *lt)
{
    const gx_call *call = &group->call[1];
    const bool has_sums = gx_has(&group->call[group->n_calls - 1], GX_EPILOGUE_BWD_DBIAS);

    lt->out = call->arg[GX_EPILOGUE_BWD_DX].data;
    lt->bias = gx_bias_sums_of(group);
    if (gx_act_of(call, GX_EPILOGUE_BWD_ACT) == GX_ACT_GELU_TANH) {
        lt->aux = call->arg[GX_EPILOGUE_BWD_PRE].data;
        lt->aux_ld = lt->n;
        lt->epilogue = has_sums ? CUBLASLT_EPILOGUE_DGELU_BGRAD : CUBLASLT_EPILOGUE_DGELU;
        return;
    }
    lt->aux = workspace;
    lt->aux_ld = gx_round_up(lt->n, MASK_ALIGNMENT);
    lt->epilogue = has_sums ? CUBLASLT_EPILOGUE_DRELU_BGRAD : CUBLASLT_EPILOGUE_DRELU;
    lt->skip_bytes =
        (size_t)gx_round_up(lt->m * (lt->aux_ld / 8), GX_WORKSPACE_ALIGNMENT);
}

/* Sums along k. The library's A is our b, and the other way round. */
static void add_sums(const gx_group *group, gx_lt_product *lt)
{
    lt->bias = group->call[0].arg[GX_EPILOGUE_BWD_DBIAS].data;
    lt->epilogue = gx_sums_first_operand(group) ? CUBLASLT_EPILOGUE_BGRADB
                                                : CUBLASLT_EPILOGUE_BGRADA;
}

gx_lt_product gx_gemm_lt_product(const gx_call *gemm)
{
    const gx_product product = gx_product_of(gemm);

    return (gx_lt_product){
        .m = product.m,
        .n = product.n,
        .k = product.k,
        .trans_a = product.trans_a,
        .trans_b = product.trans_b,
        .dtype = product.dtype,
        .precision = product.precision,
        .a = product.a,
        .b = product.b,
        .n_batches = product.n_batches,
        .stride_a = product.stride_a,
        .stride_b = product.stride_b,
        .lda = product.lda,
        .ldb = product.ldb,
        .ldc = product.ldc,
        .ld_out = product.ld_out,
        .alpha = (float)product.alpha,
        .beta = (float)product.beta,
        .c = product.c,
        .out = gemm->arg[GX_GEMM_OUT].data,
        .epilogue = CUBLASLT_EPILOGUE_DEFAULT,
    };
}

static gx_lt_product describe(const gx_group *group, void *workspace)
{
    const bool is_weight = gx_is_weight(group);
    gx_lt_product lt = gx_gemm_lt_product(&group->call[is_weight ? 1 : 0]);

    if (is_weight)
        add_sums(group, &lt);
    else if (gx_is_backward(group))
        add_backward(group, workspace, &lt);
    else if (group->n_calls == 2)
        add_epilogue(group, &lt);
    return lt;
}

/* The product that leaves the pre-activation where it is kept. */
static gx_lt_product describe_kept(const gx_group *group)
{
    gx_lt_product lt = gx_gemm_lt_product(&group->call[0]);

    add_steps(&group->call[1], &lt);
    lt.out = gx_kept_of(group);
    return lt;
}

/* The activation behind it. */
static gx_epilogue describe_act(const gx_group *group)
{
    const gx_call *call = &group->call[1];
    const gx_tensor *out = &call->arg[GX_EPILOGUE_OUT];
    gx_epilogue e = {
        .rows = gx_rows(out),
        .columns = gx_columns(out),
        .dtype = out->dtype,
        .act = (int)gx_act_of(call, GX_EPILOGUE_ACT),
        .to_tf32 = gx_is_to_tf32(call, GX_EPILOGUE_OUT),
        .x = gx_kept_of(group),
        .out = out->data,
        .scale = 1.0f,
    };

    e.wide = gx_epilogue_is_wide(&e);
    return e;
}

static bool needs_mask(const gx_lt_product *lt)
{
    return lt->epilogue == CUBLASLT_EPILOGUE_DRELU ||
           lt->epilogue == CUBLASLT_EPILOGUE_DRELU_BGRAD;
}

/* --- hooks --- */

gx_status gx_gemm_lt_prepare_product(const gx_lt_product *lt, const gx_ctx *ctx,
                                     gx_prepared *prepared, gx_error *err)
{
    if (lt->ld_out > lt->n)
        GX_TRY(gx_zero_rest_load(lt->dtype, err));
    return gx_lt_prepare(lt, ctx, prepared, err);
}

gx_status gx_gemm_lt_launch_product(const gx_lt_product *lt, const gx_prepared *prepared,
                                    gx_ctx *ctx, gx_error *err)
{
    if (lt->ld_out > lt->n)
        GX_TRY(gx_zero_rest_launch(lt->out, lt->dtype, lt->m * lt->n_batches, lt->n,
                                   lt->ld_out, ctx, err));
    return gx_lt_launch(lt, prepared, ctx, err);
}

gx_status gx_gemm_lt_prepare(const gx_group *group, const gx_ctx *ctx,
                             gx_prepared *prepared, gx_error *err)
{
    const gx_lt_product lt = describe(group, gx_planned_workspace());

    if (lt.aux != NULL && gx_alignment_of(lt.aux, AUX_BYTES) < AUX_BYTES)
        return GX_FAIL(err, GX_ERR_UNSUPPORTED,
                       "cuBLASLt: the pre-activation must be at a multiple of %d bytes",
                       AUX_BYTES);
    if (needs_mask(&lt))
        GX_TRY(gx_relu_mask_load(lt.dtype, err));
    return gx_gemm_lt_prepare_product(&lt, ctx, prepared, err);
}

gx_status gx_gemm_lt_launch(const gx_group *group, const gx_prepared *prepared,
                            gx_ctx *ctx, gx_error *err)
{
    const gx_lt_product lt = describe(group, ctx->workspace);

    if (needs_mask(&lt))
        GX_TRY(gx_relu_mask_launch(group->call[1].arg[GX_EPILOGUE_BWD_Y].data, lt.dtype,
                                   lt.m, lt.n, lt.aux_ld, lt.aux, ctx, err));
    return gx_gemm_lt_launch_product(&lt, prepared, ctx, err);
}

gx_status gx_gemm_lt_bias_prepare(const gx_group *group, const gx_ctx *ctx,
                                  gx_prepared *prepared, gx_error *err)
{
    const gx_lt_product lt = describe_kept(group);
    const gx_epilogue act = describe_act(group);

    GX_TRY(gx_epilogue_load(&act, err));
    return gx_gemm_lt_prepare_product(&lt, ctx, prepared, err);
}

gx_status gx_gemm_lt_bias_launch(const gx_group *group, const gx_prepared *prepared,
                                 gx_ctx *ctx, gx_error *err)
{
    const gx_lt_product lt = describe_kept(group);
    const gx_epilogue act = describe_act(group);

    GX_TRY(gx_gemm_lt_launch_product(&lt, prepared, ctx, err));
    return gx_epilogue_launch(&act, ctx, err);
}
