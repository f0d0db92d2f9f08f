/* What a group that begins with a gemm computes, and whether its calls hang together. */
#include "builder.h"
#include "gemm_cuda.h"

/* --- the product --- */

static int64_t batch_of(const gx_tensor *tensor)
{
    int64_t n = 1;

    for (int i = 0; i + 2 < tensor->rank; i++)
        n *= tensor->dim[i];
    return n;
}

/* What is declared is what lies from row to row, however much of it a product uses. */
static int64_t row_of(const gx_tensor *tensor)
{
    return tensor->dim[tensor->rank - 1];
}

/* A batch that lies as one matrix is one: rows of a with one b for all, and sums over
 * rows of both. */
static void join_batch(gx_product *product, bool shares_b)
{
    if (product->n_batches == 1) {
        product->sum = false;
    } else if (product->sum && product->n_batches == 0) {
        product->k = 0;
    } else if (product->sum && product->trans_a && !product->trans_b) {
        product->k *= product->n_batches;
    } else if (!product->sum && shares_b && !product->trans_a) {
        product->m *= product->n_batches;
    } else {
        return;
    }
    product->n_batches = 1;
    product->sum = false;
}

gx_product gx_product_of(const gx_call *call)
{
    const gx_tensor *a = &call->arg[GX_GEMM_A], *b = &call->arg[GX_GEMM_B];
    const gx_tensor *out = &call->arg[GX_GEMM_OUT];
    const bool trans_a = call->attr[GX_GEMM_TRANS_A].i != 0;
    const double beta = gx_call_factor(call, GX_GEMM_BETA);
    const gx_attr *n = &call->attr[GX_GEMM_N], *k = &call->attr[GX_GEMM_K];
    gx_product product = {
        .m = out->dim[out->rank - 2],
        .n = n->present ? n->i : out->dim[out->rank - 1],
        .k = k->present ? k->i : a->dim[a->rank - 2 + !trans_a],
        .trans_a = trans_a,
        .trans_b = call->attr[GX_GEMM_TRANS_B].i != 0,
        .dtype = out->dtype,
        .precision = call->precision,
        .a = a->data,
        .b = b->data,
        .n_batches = batch_of(a->rank > 2 ? a : b),
        .sum = call->attr[GX_GEMM_SUM_BATCH].i != 0,
        .alpha = gx_call_factor(call, GX_GEMM_ALPHA),
        .beta = beta,
        .c = beta != 0.0 ? gx_data(call, GX_GEMM_C) : NULL,
        .lda = row_of(a),
        .ldb = row_of(b),
        .ldc = gx_has(call, GX_GEMM_C) ? row_of(&call->arg[GX_GEMM_C]) : 0,
        .ld_out = row_of(out),
    };

    product.stride_a = a->rank > 2 ? a->dim[a->rank - 2] * product.lda : 0;
    product.stride_b = b->rank > 2 ? b->dim[b->rank - 2] * product.ldb : 0;
    join_batch(&product, b->rank == 2);
    return product;
}

/* --- the group --- */

const char *gx_gemm_refuses(const gx_group *group)
{
    const gx_call *gemm = &group->call[0];
    const gx_dtype dtype = gemm->arg[GX_GEMM_OUT].dtype;

    if (gx_has(gemm, GX_GEMM_BIAS) || gx_has(gemm, GX_GEMM_RESIDUAL) ||
        gemm->attr[GX_GEMM_SCALE].present || gx_act_of(gemm, GX_GEMM_ACT) != GX_ACT_NONE)
        return "the epilogue is not an op of its own yet";
    if (!gx_is_float(dtype))
        return "only f32, bf16 and f16";
    if (gemm->arg[GX_GEMM_A].dtype != dtype || gemm->arg[GX_GEMM_B].dtype != dtype)
        return "the operands differ in type";
    if (gx_has(gemm, GX_GEMM_C) && gemm->arg[GX_GEMM_C].dtype != dtype)
        return "the operands differ in type";
    return NULL;
}

const char *gx_gemm_refuses_link(const gx_group *group, int in)
{
    const gx_call *gemm = &group->call[0], *next = &group->call[1];

    if (!gx_feeds(gemm, GX_GEMM_OUT, next, in))
        return "the second op does not work on the product";
    const gx_product product = gx_product_of(gemm);

    if (gx_has_wide_out(&product))
        return "zeros stand behind the columns of the product";
    if (!gx_is_elided(group, 0, GX_GEMM_OUT) && !gx_keeps_product(group))
        return "the product itself is read elsewhere";
    /* The product would have to be there twice. Bound, an elided product has no address.
     */
    for (int arg = 0; gemm->arg[GX_GEMM_OUT].data != NULL && arg < GX_MAX_ARGS; arg++) {
        if (arg != in && gx_feeds(gemm, GX_GEMM_OUT, next, arg))
            return "the second op reads the product twice";
    }
    return NULL;
}

const char *gx_gemm_refuses_backward(const gx_group *group)
{
    const char *reason = gx_gemm_refuses(group);

    if (reason == NULL)
        reason = gx_gemm_refuses_link(group, GX_EPILOGUE_BWD_DY);
    if (reason == NULL && group->n_calls == 3)
        reason = gx_epilogue_refuses_split(group, 1);
    return reason;
}

/* dy is [k, columns] as the product reads it, and k all its rows: then what a kernel adds
 * up along k is what the bias wants. */
const char *gx_gemm_refuses_weight(const gx_group *group)
{
    const gx_call *sums = &group->call[0], *gemm = &group->call[1];
    const gx_group alone = gx_weight_product(group);
    const char *reason = gx_gemm_refuses(&alone);

    if (reason == NULL)
        reason = gx_epilogue_refuses_sums(sums);
    if (reason != NULL)
        return reason;
    const gx_product product = gx_product_of(gemm);
    const int arg = gx_sums_first_operand(group) ? GX_GEMM_A : GX_GEMM_B;

    if (!gx_feeds(sums, GX_EPILOGUE_BWD_DY, gemm, arg) ||
        (arg == GX_GEMM_A && !product.trans_a))
        return "the product does not add up the rows that the bias does";
    if (product.n_batches != 1 || product.alpha != 1.0 || product.c != NULL)
        return "more than one plain product";
    if (gx_has_wide_out(&product))
        return "zeros stand behind the columns of the product";
    if (gx_count(&sums->arg[GX_EPILOGUE_BWD_DBIAS]) !=
        (arg == GX_GEMM_A ? product.m : product.n))
        return "the product uses fewer columns than the bias has";
    return NULL;
}

/* Not after the binding: then what is elided has no address. */
static bool reads(const gx_call *from, int out, const gx_call *to, int in)
{
    return from->arg[out].data != NULL && gx_feeds(from, out, to, in);
}

static bool makes(const gx_call *call, const void *data)
{
    for (int arg = 0; arg < gx_n_args(call->op); arg++) {
        if (gx_arg_kind(call->op, arg) != GX_FIELD_IN && gx_has(call, arg) &&
            call->arg[arg].data == data)
            return true;
    }
    return false;
}

bool gx_gemm_reads_group(const gx_group *group, int i, int in)
{
    const gx_call *call = &group->call[i];

    for (int arg = 0; arg < gx_n_args(call->op); arg++) {
        if (arg == in || gx_arg_kind(call->op, arg) == GX_FIELD_OUT || !gx_has(call, arg))
            continue;
        for (int before = 0; before < i; before++) {
            if (makes(&group->call[before], call->arg[arg].data))
                return true;
        }
    }
    return false;
}

const char *gx_gemm_refuses_third(const gx_group *group)
{
    const gx_call *gemm = &group->call[0], *middle = &group->call[1];
    const gx_call *last = &group->call[2];

    if (!gx_feeds(middle, GX_EPILOGUE_OUT, last, GX_EPILOGUE_X))
        return "the third op does not work on what the second makes";
    if (gx_has(last, GX_EPILOGUE_BIAS) || gx_has(last, GX_EPILOGUE_PRE) ||
        gx_act_of(last, GX_EPILOGUE_ACT) != GX_ACT_NONE)
        return "the third op does more than scale and add a residual";
    if (reads(middle, GX_EPILOGUE_OUT, last, GX_EPILOGUE_RESIDUAL) ||
        reads(gemm, GX_GEMM_OUT, last, GX_EPILOGUE_RESIDUAL) ||
        (gx_has(middle, GX_EPILOGUE_PRE) &&
         reads(middle, GX_EPILOGUE_PRE, last, GX_EPILOGUE_RESIDUAL)))
        return "the third op reads what the group makes twice";
    return NULL;
}

/* --- shapes --- */

gx_status gx_take_shape(const bool *fits, int n, gx_prepared *prepared, int *shape,
                        gx_error *err)
{
    const int wanted = prepared->has_algo ? prepared->algo[0] : prepared->algo_choice;
    int n_fit = 0, chosen = -1;

    for (int i = 0; i < n; i++) {
        if (fits[i] && wanted == (prepared->has_algo ? i : n_fit))
            chosen = i;
        n_fit += fits[i];
    }
    if (chosen < 0)
        return GX_FAIL(err, GX_ERR_UNSUPPORTED, "tile shape %d of %d does not fit",
                       wanted, n);
    prepared->n_algos = prepared->has_algo ? 1 : n_fit;
    memset(prepared->algo, 0, sizeof prepared->algo);
    prepared->algo[0] = (unsigned char)chosen;
    prepared->has_algo = true;
    *shape = chosen;
    return GX_OK;
}
