/* cuBLASLt: descriptors, the choice of an algorithm, and the call. */
#include "lt.h"

#include <stdlib.h>
#include <string.h>

#include "cuda_call.h"

enum {
    FEW_CANDIDATES = 8,
    MANY_CANDIDATES = 64,
    MAX_ALIGNMENT = 256,
    SMALL_WORKSPACE = 4 << 20,
    LARGE_WORKSPACE = 32 << 20
};

/* Below this many multiplications a product cannot use a large workspace well. */
#define SMALL_PRODUCT 1e8

/* A product that takes as long as this is worth many candidates: the heuristic sorts them
 * by what it expects, and the fastest was seen far behind its first ones. */
#define LONG_PRODUCT_S 50e-6

/* What is looked up before the launch. D is out transposed, as the library sees it:
 * column by column, so that the bias runs along its rows. Its A is our b, its B is our a.
 */
typedef struct lt_state {
    cublasLtMatmulDesc_t operation;
    cublasLtMatrixLayout_t a, b, d;
    cublasLtMatrixLayout_t c; /* NULL: as d */
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulAlgo_t algo;
    size_t library_bytes; /* of workspace, behind what the caller uses */
} lt_state;

_Static_assert(sizeof(cublasLtMatmulAlgo_t) == GX_ALGO_BYTES,
               "a plan keeps an algorithm in GX_ALGO_BYTES bytes");

static cudaDataType_t library_type(gx_dtype dtype)
{
    return dtype == GX_BF16 ? CUDA_R_16BF : dtype == GX_F16 ? CUDA_R_16F : CUDA_R_32F;
}

static cublasComputeType_t compute_type(const gx_lt_product *product)
{
    const bool tf32 = product->dtype == GX_F32 && product->precision == GX_PRECISION_TF32;

    return tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

#define SET_OPERATION(state, attribute, value, err)                                  \
    GX_TRY(GX_CUBLAS(cublasLtMatmulDescSetAttribute((state)->operation, (attribute), \
                                                    &(value), sizeof(value)),        \
                     (err)))

#define SET_PREFERENCE(state, attribute, value, err)                                 \
    GX_TRY(GX_CUBLAS(cublasLtMatmulPreferenceSetAttribute(                           \
                         (state)->preference, (attribute), &(value), sizeof(value)), \
                     (err)))

static gx_status set_pointers(lt_state *state, const gx_lt_product *product,
                              gx_error *err)
{
    if (product->bias != NULL)
        SET_OPERATION(state, CUBLASLT_MATMUL_DESC_BIAS_POINTER, product->bias, err);
    if (product->aux != NULL) {
        SET_OPERATION(state, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, product->aux,
                      err);
        SET_OPERATION(state, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, product->aux_ld, err);
    }
    return GX_OK;
}

static gx_status make_operation(lt_state *state, const gx_lt_product *product,
                                gx_error *err)
{
    const cublasOperation_t trans_a = product->trans_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t trans_b = product->trans_a ? CUBLAS_OP_T : CUBLAS_OP_N;

    GX_TRY(GX_CUBLAS(
        cublasLtMatmulDescCreate(&state->operation, compute_type(product), CUDA_R_32F),
        err));
    SET_OPERATION(state, CUBLASLT_MATMUL_DESC_TRANSA, trans_a, err);
    SET_OPERATION(state, CUBLASLT_MATMUL_DESC_TRANSB, trans_b, err);
    SET_OPERATION(state, CUBLASLT_MATMUL_DESC_EPILOGUE, product->epilogue, err);
    return set_pointers(state, product, err);
}

static gx_status set_batch(cublasLtMatrixLayout_t layout, int64_t n_batches,
                           int64_t stride, gx_error *err)
{
    const int32_t count = (int32_t)n_batches;

    if (n_batches == 1)
        return GX_OK;
    GX_TRY(GX_CUBLAS(cublasLtMatrixLayoutSetAttribute(layout,
                                                      CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                                      &count, sizeof count),
                     err));
    return GX_CUBLAS(
        cublasLtMatrixLayoutSetAttribute(
            layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride),
        err);
}

static gx_status make_layouts(lt_state *state, const gx_lt_product *product,
                              gx_error *err)
{
    const uint64_t m = (uint64_t)product->m, n = (uint64_t)product->n;
    const uint64_t k = (uint64_t)product->k;
    const uint64_t rows_a = product->trans_b ? k : n, rows_b = product->trans_a ? m : k;
    const cudaDataType_t type = library_type(product->dtype);

    GX_TRY(GX_CUBLAS(cublasLtMatrixLayoutCreate(&state->a, type, rows_a,
                                                product->trans_b ? n : k, product->ldb),
                     err));
    GX_TRY(GX_CUBLAS(cublasLtMatrixLayoutCreate(&state->b, type, rows_b,
                                                product->trans_a ? k : m, product->lda),
                     err));
    GX_TRY(GX_CUBLAS(cublasLtMatrixLayoutCreate(&state->d, type, n, m, product->ld_out),
                     err));
    GX_TRY(set_batch(state->a, product->n_batches, product->stride_b, err));
    GX_TRY(set_batch(state->b, product->n_batches, product->stride_a, err));
    GX_TRY(set_batch(state->d, product->n_batches, product->m * product->ld_out, err));
    if (product->c == NULL || product->ldc == product->ld_out)
        return GX_OK;
    GX_TRY(
        GX_CUBLAS(cublasLtMatrixLayoutCreate(&state->c, type, n, m, product->ldc), err));
    return set_batch(state->c, product->n_batches, product->m * product->ldc, err);
}

static cublasLtMatrixLayout_t layout_of_c(const lt_state *state)
{
    return state->c != NULL ? state->c : state->d;
}

/* What every row is aligned to where rows are wider than what is used of them: kernels
 * were chosen that took the rows of a wide operand for aligned as its first. */
static uint32_t alignment_of(const void *data, int64_t columns, int64_t ld,
                             gx_dtype dtype)
{
    const uintptr_t row = columns != ld ? (uintptr_t)ld * gx_dtype_bytes(dtype) : 0;

    return gx_alignment_of((const void *)((uintptr_t)data | row), MAX_ALIGNMENT);
}

static double work_of(const gx_lt_product *product)
{
    return (double)product->m * (double)product->n * (double)product->k *
           (double)product->n_batches;
}

/* By the rough rate of a large card: on a smaller one, launches that are as long are of
 * smaller products, and have fewer candidates. */
static int n_candidates(const gx_lt_product *product)
{
    const bool is_f32 = product->dtype == GX_F32;
    const bool is_tf32 = is_f32 && product->precision == GX_PRECISION_TF32;
    const double flops_per_s = !is_f32 ? 8e14 : is_tf32 ? 4e14 : 5e13;

    return 2 * work_of(product) / flops_per_s < LONG_PRODUCT_S ? FEW_CANDIDATES
                                                               : MANY_CANDIDATES;
}

/* Split products keep their partial sums in f32 or do not split: a partial sum that is
 * rounded to 16 bits loses what cancels later. */
static gx_status make_preference(lt_state *state, const gx_lt_product *product,
                                 gx_error *err)
{
    const uint64_t workspace =
        work_of(product) < SMALL_PRODUCT ? SMALL_WORKSPACE : LARGE_WORKSPACE;
    const uint32_t reduction =
        CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    const gx_dtype dtype = product->dtype;
    const int64_t n = product->n;
    const int64_t columns_a = product->trans_a ? product->m : product->k;
    const int64_t columns_b = product->trans_b ? product->k : n;
    const uint32_t align_a = alignment_of(product->b, columns_b, product->ldb, dtype);
    const uint32_t align_b = alignment_of(product->a, columns_a, product->lda, dtype);
    const uint32_t align_d = alignment_of(product->out, n, product->ld_out, dtype);
    const uint32_t align_c =
        product->c != NULL ? alignment_of(product->c, n, product->ldc, dtype) : align_d;

    GX_TRY(GX_CUBLAS(cublasLtMatmulPreferenceCreate(&state->preference), err));
    SET_PREFERENCE(state, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace, err);
    SET_PREFERENCE(state, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reduction, err);
    SET_PREFERENCE(state, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, align_a, err);
    SET_PREFERENCE(state, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, align_b, err);
    SET_PREFERENCE(state, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, align_c, err);
    SET_PREFERENCE(state, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, align_d, err);
    return GX_OK;
}

static gx_status no_algorithm(const gx_lt_product *product, const char *why,
                              gx_error *err)
{
    return GX_FAIL(err, GX_ERR_UNSUPPORTED,
                   "cuBLASLt has no algorithm for %s%s, m %lld, n %lld, k %lld, "
                   "batch %lld, trans_a %d, trans_b %d, epilogue %d: %s",
                   gx_dtype_name(product->dtype),
                   compute_type(product) == CUBLAS_COMPUTE_32F ? "" : " (tf32)",
                   (long long)product->m, (long long)product->n, (long long)product->k,
                   (long long)product->n_batches, product->trans_a, product->trans_b,
                   (int)product->epilogue, why);
}

/* The heuristic says success with no results, or that nothing is supported; both mean the
 * same to a caller. */
static gx_status choose_algorithm(lt_state *state, const gx_lt_product *product,
                                  const gx_ctx *ctx, gx_prepared *prepared, gx_error *err)
{
    cublasLtMatmulHeuristicResult_t found[MANY_CANDIDATES];
    int n_found = 0, n_usable = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        ctx->lt, state->operation, state->a, state->b, layout_of_c(state), state->d,
        state->preference, n_candidates(product), found, &n_found);

    if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE)
        return no_algorithm(product, cublasLtGetStatusName(status), err);
    GX_TRY(gx_check_cublas((int)status, "cublasLtMatmulAlgoGetHeuristic", __FILE__,
                           __LINE__, err));
    for (int i = 0; i < n_found; i++) {
        if (found[i].state == CUBLAS_STATUS_SUCCESS)
            found[n_usable++] = found[i];
    }
    if (n_usable == 0)
        return no_algorithm(product, "the heuristic found nothing", err);
    prepared->n_algos = n_usable;
    if (prepared->algo_choice < 0 || prepared->algo_choice >= n_usable)
        return GX_FAIL(err, GX_ERR_ARGUMENT, "cuBLASLt: candidate %d of %d",
                       prepared->algo_choice, n_usable);
    state->algo = found[prepared->algo_choice].algo;
    state->library_bytes = found[prepared->algo_choice].workspaceSize;
    return GX_OK;
}

static gx_status check_pinned(lt_state *state, const gx_lt_product *product,
                              const gx_ctx *ctx, gx_prepared *prepared, gx_error *err)
{
    cublasLtMatmulHeuristicResult_t result;

    memset(&result, 0, sizeof result);
    memcpy(&state->algo, prepared->algo, sizeof state->algo);
    const cublasStatus_t status =
        cublasLtMatmulAlgoCheck(ctx->lt, state->operation, state->a, state->b,
                                layout_of_c(state), state->d, &state->algo, &result);

    if (status != CUBLAS_STATUS_SUCCESS || result.state != CUBLAS_STATUS_SUCCESS) {
        (void)cudaGetLastError();
        return no_algorithm(product, "the pinned algorithm does not apply", err);
    }
    prepared->n_algos = 1;
    state->library_bytes = result.workspaceSize;
    return GX_OK;
}

static gx_status fill_state(lt_state *state, const gx_lt_product *product,
                            const gx_ctx *ctx, gx_prepared *prepared, gx_error *err)
{
    GX_TRY(make_operation(state, product, err));
    GX_TRY(make_layouts(state, product, err));
    GX_TRY(make_preference(state, product, err));
    if (prepared->has_algo)
        GX_TRY(check_pinned(state, product, ctx, prepared, err));
    else
        GX_TRY(choose_algorithm(state, product, ctx, prepared, err));
    memcpy(prepared->algo, &state->algo, sizeof state->algo);
    prepared->has_algo = true;
    prepared->workspace_bytes = product->skip_bytes + state->library_bytes;
    prepared->n_launches = -1;
    return GX_OK;
}

gx_status gx_lt_prepare(const gx_lt_product *product, const gx_ctx *ctx,
                        gx_prepared *prepared, gx_error *err)
{
    lt_state *state = calloc(1, sizeof *state);

    if (state == NULL)
        return GX_FAIL(err, GX_ERR_MEMORY, "no memory for a cuBLASLt product");
    prepared->state = state;
    const gx_status st = fill_state(state, product, ctx, prepared, err);

    if (st != GX_OK)
        gx_lt_release(prepared);
    return st;
}

gx_status gx_lt_launch(const gx_lt_product *product, const gx_prepared *prepared,
                       gx_ctx *ctx, gx_error *err)
{
    lt_state *state = prepared->state;
    const float alpha = product->alpha, beta = product->c != NULL ? product->beta : 0.0f;
    const void *c = product->c != NULL ? product->c : product->out;
    char *workspace = ctx->workspace;

    GX_TRY(set_pointers(state, product, err));
    GX_TRY(GX_CUBLAS(
        cublasLtMatmul(ctx->lt, state->operation, &alpha, product->b, state->a,
                       product->a, state->b, &beta, c, layout_of_c(state), product->out,
                       state->d, &state->algo,
                       state->library_bytes > 0 ? workspace + product->skip_bytes : NULL,
                       state->library_bytes, ctx->stream),
        err));
    ctx->n_launched++;
    return GX_OK;
}

void gx_lt_release(gx_prepared *prepared)
{
    lt_state *state = prepared->state;

    if (state == NULL)
        return;
    if (state->preference != NULL)
        cublasLtMatmulPreferenceDestroy(state->preference);
    if (state->c != NULL)
        cublasLtMatrixLayoutDestroy(state->c);
    if (state->d != NULL)
        cublasLtMatrixLayoutDestroy(state->d);
    if (state->b != NULL)
        cublasLtMatrixLayoutDestroy(state->b);
    if (state->a != NULL)
        cublasLtMatrixLayoutDestroy(state->a);
    if (state->operation != NULL)
        cublasLtMatmulDescDestroy(state->operation);
    free(state);
    prepared->state = NULL;
}
