/* The end of a network in one kernel: which groups of ops are one, and what the kernel
 * gets for them. */
#include "head.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

#include "gemm_cuda.h"
#include "head_kernels.h"
#include "ticket.h"

enum {
    SOFTMAX_COLUMNS = 1024, /* of an x that is there; they lie in shared memory */
    PRODUCT_COLUMNS = 128,  /* of a softmax in the kernel of its product */
    PRODUCT_BLOCKS = 1024,  /* more than these are no small product */
    MEMORY_BLOCKS = 4096,
    PARTIAL_SUMS = 1 << 16, /* of columns, which the last block adds up */
    COUNTED_ROWS = 1 << 16, /* every block counts all of them */
    K_AT_ONCE = 4,          /* neighbours along k that a thread of tensor cores loads */
    COLUMNS_AT_ONCE = 2,
    VECTOR = 16
};

/* --- the calls of a group --- */

typedef struct head_calls {
    const gx_call *gemm, *epilogue, *loss, *sums; /* NULL: not there */
    const gx_call *bwd;
} head_calls;

static head_calls find_calls(const gx_group *group)
{
    head_calls calls = { .gemm = NULL };

    for (int32_t i = 0; i < group->n_calls; i++) {
        const gx_call *call = &group->call[i];
        const char *name = gx_op_name(call->op);
        const gx_call **place = strcmp(name, "gemm") == 0           ? &calls.gemm
                                : strcmp(name, "epilogue") == 0     ? &calls.epilogue
                                : strcmp(name, "epilogue.bwd") == 0 ? &calls.sums
                                : strstr(name, ".bwd")              ? &calls.bwd
                                                                    : &calls.loss;

        *place = call;
    }
    return calls;
}

static bool is_softmax(const head_calls *calls)
{
    return strcmp(gx_op_name(calls->bwd->op), "softmax_cross_entropy.bwd") == 0;
}

/* An output's address, or NULL where it is absent or need not be written. */
static void *wanted(const gx_group *group, const gx_call *call, int arg)
{
    return gx_is_elided(group, (int)(call - group->call), arg) ? NULL
                                                               : gx_data(call, arg);
}

/* --- when it applies --- */

static const char *refuses_product(const gx_group *group, const head_calls *calls)
{
    const char *reason = gx_gemm_refuses(group);

    if (reason)
        return reason;
    const gx_product product = gx_product_of(calls->gemm);

    if (product.n_batches != 1 || product.sum || product.alpha != 1.0 || product.c)
        return "more than one plain product";
    if (gx_has_wide_out(&product))
        return "zeros stand behind the columns of the product";
    if (product.m == 0 || product.n == 0 || product.k == 0)
        return "of size zero";
    if (product.m > INT_MAX || product.n > INT_MAX || product.k > INT_MAX)
        return "a size of 2^31 or more";
    return NULL;
}

static const char *refuses_bias(const gx_group *group, const head_calls *calls)
{
    const gx_call *gemm = calls->gemm, *epilogue = calls->epilogue;

    if (!epilogue)
        return gx_feeds(gemm, GX_GEMM_OUT, calls->bwd, GX_SCE_BWD_LOGITS)
                   ? NULL
                   : "the loss is not of the product";
    if (!gx_feeds(gemm, GX_GEMM_OUT, epilogue, GX_EPILOGUE_X) ||
        !gx_feeds(epilogue, GX_EPILOGUE_OUT, calls->bwd, GX_SCE_BWD_LOGITS))
        return "the loss is not of the product and its bias";
    if (wanted(group, gemm, GX_GEMM_OUT))
        return "the product itself is read elsewhere";
    if (gx_act_of(epilogue, GX_EPILOGUE_ACT) != GX_ACT_NONE ||
        gx_call_factor(epilogue, GX_EPILOGUE_SCALE) != 1.0 ||
        gx_has(epilogue, GX_EPILOGUE_RESIDUAL) || gx_has(epilogue, GX_EPILOGUE_PRE))
        return "more than a bias between the product and the loss";
    return NULL;
}

static const char *refuses_sums(const gx_group *group, const head_calls *calls)
{
    const gx_call *sums = calls->sums;

    if (!gx_feeds(calls->bwd, GX_SCE_BWD_DLOGITS, sums, GX_EPILOGUE_BWD_DY))
        return "the gradient of a bias that is not behind this loss";
    if (gx_act_of(sums, GX_EPILOGUE_BWD_ACT) != GX_ACT_NONE)
        return "an activation between the product and the loss";
    if (wanted(group, sums, GX_EPILOGUE_BWD_DX))
        return "the derivative is wanted twice";
    if (gx_has(sums, GX_EPILOGUE_BWD_DBIAS) &&
        sums->arg[GX_EPILOGUE_BWD_DBIAS].dtype != sums->arg[GX_EPILOGUE_BWD_DY].dtype)
        return "the gradient of the bias differs in type";
    return NULL;
}

/* --- what the kernel gets --- */

/* Rows begin at vectors; of one row alone it is of no account where the next would be. */
static bool takes_vectors_of_a(const gx_head *head)
{
    return head->a_k == 1 && (head->rows == 1 || head->a_row % K_AT_ONCE == 0);
}

static bool takes_vectors_of_b(const gx_head *head)
{
    if (head->b_k == 1)
        return head->columns == 1 || head->b_column % K_AT_ONCE == 0;
    return head->columns % COLUMNS_AT_ONCE == 0 && head->b_k % COLUMNS_AT_ONCE == 0;
}

static void add_product(gx_head *head, const gx_group *group, const head_calls *calls)
{
    const gx_product product = gx_product_of(calls->gemm);
    const gx_call *last = calls->epilogue ? calls->epilogue : calls->gemm;

    head->rows = product.m;
    head->columns = product.n;
    head->k = product.k;
    head->steady_b = gx_is_steady(group, 0, GX_GEMM_B);
    head->a = product.a;
    head->b = product.b;
    head->a_row = product.trans_a ? 1 : product.lda;
    head->a_k = product.trans_a ? product.lda : 1;
    head->b_k = product.trans_b ? 1 : product.ldb;
    head->b_column = product.trans_b ? product.ldb : 1;
    if (calls->epilogue)
        head->bias = gx_data(calls->epilogue, GX_EPILOGUE_BIAS);
    head->out = wanted(group, last, calls->epilogue ? GX_EPILOGUE_OUT : GX_GEMM_OUT);
    head->source = GX_HEAD_PLAIN;
    /* tf32 needs what bf16 needs: all of a vector, and pairs of columns. */
    if ((head->dtype != GX_F32 || product.precision == GX_PRECISION_TF32) &&
        head->k % K_AT_ONCE == 0 && takes_vectors_of_a(head) && takes_vectors_of_b(head))
        head->source = GX_HEAD_TENSOR;
}

static void add_softmax(gx_head *head, const gx_call *bwd)
{
    const bool is_mean = bwd->attr[GX_SCE_REDUCTION].i == GX_REDUCTION_MEAN;

    head->is_softmax = true;
    head->labels = bwd->arg[GX_SCE_BWD_LABELS].data;
    head->ignores = bwd->attr[GX_SCE_IGNORE_INDEX].present;
    head->ignored = (int32_t)bwd->attr[GX_SCE_IGNORE_INDEX].i;
    head->counts = head->ignores && is_mean;
    head->smoothing = (float)bwd->attr[GX_SCE_LABEL_SMOOTHING].r;
    head->share = is_mean ? 1.0 / (double)head->rows : 1.0;
}

static void add_points(gx_head *head, const gx_call *bwd)
{
    const bool is_mean = bwd->attr[GX_MSE_REDUCTION].i == GX_REDUCTION_MEAN;

    head->kind = gx_pointwise_kind_of(bwd);
    head->target = bwd->arg[GX_MSE_BWD_TARGET].data;
    head->target_dtype = bwd->arg[GX_MSE_BWD_TARGET].dtype;
    head->share = is_mean ? 1.0 / (double)(head->rows * head->columns) : 1.0;
}

/* The losses have their operands at the same numbers. */
_Static_assert((int)GX_SCE_BWD_LOGITS == (int)GX_MSE_BWD_X &&
                   (int)GX_SCE_OUT == (int)GX_MSE_OUT &&
                   (int)GX_SCE_BWD_DLOGITS == (int)GX_MSE_BWD_DX &&
                   (int)GX_SCE_BWD_DY == (int)GX_MSE_BWD_DY,
               "one description for all");

gx_head gx_head_of(const gx_group *group)
{
    const head_calls calls = find_calls(group);
    const gx_tensor *x = &calls.bwd->arg[GX_SCE_BWD_LOGITS];
    gx_head head = {
        .source = GX_HEAD_MEMORY,
        .rows = gx_rows(x),
        .columns = gx_columns(x),
        .dtype = x->dtype,
        .x = x->data,
        .loss = calls.loss ? wanted(group, calls.loss, GX_SCE_OUT) : NULL,
        .dx = wanted(group, calls.bwd, GX_SCE_BWD_DLOGITS),
        .dbias = calls.sums ? wanted(group, calls.sums, GX_EPILOGUE_BWD_DBIAS) : NULL,
    };

    if (calls.gemm)
        add_product(&head, group, &calls);
    if (is_softmax(&calls))
        add_softmax(&head, calls.bwd);
    else
        add_points(&head, calls.bwd);
    return head;
}

static bool sums_over_blocks(const gx_head *head)
{
    return head->dbias && gx_head_row_tiles(head) > 1;
}

static bool has_partials(const gx_head *head)
{
    return (head->loss && gx_head_blocks(head) > 1) || sums_over_blocks(head);
}

static size_t loss_bytes(const gx_head *head)
{
    return (size_t)gx_head_blocks(head) * sizeof(double);
}

static size_t workspace_bytes(const gx_head *head)
{
    const int64_t sums =
        sums_over_blocks(head) ? gx_head_row_tiles(head) * head->columns : 0;

    return has_partials(head) ? loss_bytes(head) + (size_t)sums * sizeof(float) : 0;
}

/* --- shapes --- */

/* Of shapes with as many rows the narrowest that holds all columns. */
static bool is_narrowest(const gx_head *head, gx_head_shape shape)
{
    if (shape.columns < head->columns)
        return false;
    for (int i = 0; i < gx_head_n_shapes(head->source); i++) {
        const gx_head_shape other = gx_head_shape_of(head->source, i);

        if (other.rows == shape.rows && other.columns >= head->columns &&
            other.columns < shape.columns)
            return false;
    }
    return true;
}

/* No shape of which most would lie idle, where a smaller one is there. */
static bool fits(const gx_head *at, int i)
{
    gx_head head = *at;
    const gx_head_shape first = gx_head_shape_of(head.source, 0);
    const gx_head_shape shape = gx_head_shape_of(head.source, i);
    const bool is_product = head.source != GX_HEAD_MEMORY;

    head.shape = i;
    if (shape.rows > first.rows && head.rows <= shape.rows / (is_product ? 2 : 4))
        return false;
    if (head.is_softmax && is_product && !is_narrowest(&head, shape))
        return false;
    if (!head.is_softmax && shape.columns > first.columns &&
        head.columns <= shape.columns / 2)
        return false;
    if (sums_over_blocks(&head) && gx_head_row_tiles(&head) * head.columns > PARTIAL_SUMS)
        return false;
    return gx_head_blocks(&head) <= (is_product ? PRODUCT_BLOCKS : MEMORY_BLOCKS);
}

static const char *refuses_size(const gx_head *head)
{
    if (head->rows == 0 || head->columns == 0)
        return "of size zero";
    if (head->rows > INT_MAX || head->columns > INT_MAX)
        return "a size of 2^31 or more";
    if (head->is_softmax && head->source == GX_HEAD_MEMORY &&
        head->columns > SOFTMAX_COLUMNS)
        return "more than 1024 classes";
    if (head->is_softmax && head->source != GX_HEAD_MEMORY &&
        head->columns > PRODUCT_COLUMNS)
        return "more than 128 classes";
    if (head->counts && head->rows > COUNTED_ROWS)
        return "more than 65536 rows, of which some are ignored";
    for (int i = 0; i < gx_head_n_shapes(head->source); i++) {
        if (fits(head, i))
            return NULL;
    }
    return "so large that its parts fill the card by themselves";
}

const char *gx_head_refuses_calls(const gx_group *group)
{
    const head_calls calls = find_calls(group);
    const char *reason = is_softmax(&calls)
                             ? gx_sce_refuses_pair(calls.loss, calls.bwd)
                             : gx_pointwise_refuses_pair(calls.loss, calls.bwd);

    if (!reason &&
        gx_has(calls.bwd, is_softmax(&calls) ? (int)GX_SCE_BWD_DY : (int)GX_MSE_BWD_DY))
        reason = "the gradient of the loss is not 1";
    if (!reason && calls.gemm)
        reason = refuses_product(group, &calls);
    if (!reason && calls.gemm)
        reason = refuses_bias(group, &calls);
    if (!reason && calls.sums)
        reason = refuses_sums(group, &calls);
    return reason;
}

const char *gx_head_refuses(const gx_group *group, const gx_ctx *ctx)
{
    const char *reason = gx_head_refuses_calls(group);

    (void)ctx;
    if (reason)
        return reason;
    const gx_head head = gx_head_of(group);

    return refuses_size(&head);
}

/* --- hooks --- */

/* Candidates are the shapes that fit, in table order. */
static gx_status choose_shape(gx_head *head, const gx_ctx *ctx, gx_prepared *prepared,
                              gx_error *err)
{
    enum { MOST_SHAPES = 32 };
    const int n_shapes = gx_head_n_shapes(head->source);
    bool fit[MOST_SHAPES];

    assert(n_shapes <= MOST_SHAPES);
    if (prepared->has_algo && prepared->algo[1] != head->source)
        return GX_FAIL(err, GX_ERR_UNSUPPORTED, "a shape of another kernel is pinned");
    for (int i = 0; i < n_shapes; i++) {
        head->shape = i;
        fit[i] = fits(head, i) && gx_head_shared_bytes(head) <= ctx->shared_optin_bytes;
    }
    GX_TRY(gx_take_shape(fit, n_shapes, prepared, &head->shape, err));
    prepared->algo[1] = (unsigned char)head->source;
    return GX_OK;
}

gx_status gx_head_prepare(const gx_group *group, const gx_ctx *ctx, gx_prepared *prepared,
                          gx_error *err)
{
    gx_head head = gx_head_of(group);

    if (head.source == GX_HEAD_TENSOR && (gx_alignment_of(head.a, VECTOR) < VECTOR ||
                                          gx_alignment_of(head.b, VECTOR) < VECTOR))
        return GX_FAIL(err, GX_ERR_UNSUPPORTED,
                       "the operands are not aligned to %d bytes", VECTOR);
    GX_TRY(choose_shape(&head, ctx, prepared, err));
    prepared->workspace_bytes = workspace_bytes(&head);
    prepared->n_launches = 1;
    return gx_head_load(&head, err);
}

gx_status gx_head_launch_group(const gx_group *group, const gx_prepared *prepared,
                               gx_ctx *ctx, gx_error *err)
{
    gx_head head = gx_head_of(group);

    head.shape = prepared->algo[0];
    if (has_partials(&head)) {
        GX_TRY(gx_take_ticket(ctx, &head.ticket, err));
        head.partial_loss = ctx->workspace;
        head.partial_bias = (float *)(void *)((char *)ctx->workspace + loss_bytes(&head));
    }
    return gx_head_launch(&head, ctx, err);
}
