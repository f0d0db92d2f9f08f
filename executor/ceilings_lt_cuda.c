/* The best rate of arithmetic that large square products by cuBLASLt show. */
#include <math.h>

#include <cublasLt.h>

#include "ceilings_kernels.h"
#include "ceilings_parts.h"
#include "launch.h"

enum {
    MAX_ALGORITHMS = 8,
    REPEATS = 5,       /* blocks of the winner, of which the fastest counts */
    MOST_LAUNCHES = 32 /* of a block */
};

static const double block_s = 10e-3;

/* The next larger size, of eight times the work, is left out where a product of this
 * one takes longer. */
static const double enough_s = 2e-3;

static const int64_t sizes[] = { 2048, 4096, 8192 };

/* Each type with the words that its noise is made of: both signs, sizes of 0.5 to 2.
 * Values matter, for a card draws less power on zeros and computes faster. */
typedef struct gx_product_type {
    cudaDataType_t data;
    cublasComputeType_t compute;
    size_t bytes;
    uint32_t random, fixed;
} gx_product_type;

static const gx_product_type types[GX_RATES] = {
    [GX_RATE_F32] = { CUDA_R_32F, CUBLAS_COMPUTE_32F, 4, 0x80ffffff, 0x3f000000 },
    [GX_RATE_TF32] = { CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, 4, 0x80ffffff,
                       0x3f000000 },
    [GX_RATE_BF16] = { CUDA_R_16BF, CUBLAS_COMPUTE_32F, 2, 0x80ff80ff, 0x3f003f00 },
    [GX_RATE_F16] = { CUDA_R_16F, CUBLAS_COMPUTE_32F, 2, 0x87ff87ff, 0x38003800 },
};

typedef struct gx_square {
    const gx_product_type *type;
    cublasOperation_t
        trans_a; /* T: sums run along memory, as tensor cores take any type */
    int64_t n;
    cublasLtMatmulDesc_t operation;
    cublasLtMatrixLayout_t layout; /* of a, b and d */
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulHeuristicResult_t found[MAX_ALGORITHMS];
    int n_found;
} gx_square;

static void close_square(gx_square *square)
{
    if (square->preference)
        (void)GX_CUBLAS(cublasLtMatmulPreferenceDestroy(square->preference), NULL);
    if (square->layout)
        (void)GX_CUBLAS(cublasLtMatrixLayoutDestroy(square->layout), NULL);
    if (square->operation)
        (void)GX_CUBLAS(cublasLtMatmulDescDestroy(square->operation), NULL);
}

static gx_status describe(gx_square *square, uint64_t workspace_bytes, gx_error *err)
{
    const uint64_t n = (uint64_t)square->n;

    GX_TRY(GX_CUBLAS(
        cublasLtMatmulDescCreate(&square->operation, square->type->compute, CUDA_R_32F),
        err));
    GX_TRY(GX_CUBLAS(
        cublasLtMatmulDescSetAttribute(square->operation, CUBLASLT_MATMUL_DESC_TRANSA,
                                       &square->trans_a, sizeof square->trans_a),
        err));
    GX_TRY(GX_CUBLAS(
        cublasLtMatrixLayoutCreate(&square->layout, square->type->data, n, n, square->n),
        err));
    GX_TRY(GX_CUBLAS(cublasLtMatmulPreferenceCreate(&square->preference), err));
    return GX_CUBLAS(cublasLtMatmulPreferenceSetAttribute(
                         square->preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                         &workspace_bytes, sizeof workspace_bytes),
                     err);
}

/* A type that the card or the library lacks leaves the list empty. */
static gx_status find_algorithms(const gx_ceilings_bench *bench, gx_square *square,
                                 gx_error *err)
{
    int n = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        bench->device->lt, square->operation, square->layout, square->layout,
        square->layout, square->layout, square->preference, MAX_ALGORITHMS, square->found,
        &n);

    if (status == CUBLAS_STATUS_NOT_SUPPORTED)
        return GX_OK;
    GX_TRY(gx_check_cublas((int)status, "cublasLtMatmulAlgoGetHeuristic", __FILE__,
                           __LINE__, err));
    for (int i = 0; i < n; i++)
        if (square->found[i].state == CUBLAS_STATUS_SUCCESS)
            square->found[square->n_found++] = square->found[i];
    return GX_OK;
}

static gx_status multiply(const gx_ceilings_bench *bench, const gx_square *square,
                          int algorithm, gx_error *err)
{
    const size_t matrix = (size_t)(square->n * square->n) * square->type->bytes;
    const cublasLtMatmulHeuristicResult_t *found = &square->found[algorithm];
    const float one = 1, zero = 0;
    char *a = bench->memory, *b = a + matrix, *d = b + matrix;

    return GX_CUBLAS(cublasLtMatmul(bench->device->lt, square->operation, &one, a,
                                    square->layout, b, square->layout, &zero, d,
                                    square->layout, d, square->layout, &found->algo,
                                    bench->workspace, found->workspaceSize,
                                    bench->device->stream),
                     err);
}

/* Seconds of one of n products. */
static gx_status time_products(const gx_ceilings_bench *bench, const gx_square *square,
                               int algorithm, int n, double *seconds, gx_error *err)
{
    GX_TRY(gx_stopwatch_start(&bench->watch, bench->device, err));
    for (int i = 0; i < n; i++)
        GX_TRY(multiply(bench, square, algorithm, err));
    GX_TRY(gx_stopwatch_stop(&bench->watch, bench->device, seconds, err));
    *seconds /= n;
    return GX_OK;
}

/* Tries each algorithm shortly and the best of them in blocks; the seconds of a product
 * are infinite where there is no algorithm. */
static gx_status search(const gx_ceilings_bench *bench, const gx_square *square,
                        double *seconds, gx_error *err)
{
    int best = 0, n = MOST_LAUNCHES;
    double once;

    *seconds = INFINITY;
    for (int i = 0; i < square->n_found; i++) {
        GX_TRY(time_products(bench, square, i, 1, &once, err)); /* brings it in */
        GX_TRY(time_products(bench, square, i, 2, &once, err));
        if (once < *seconds) {
            *seconds = once;
            best = i;
        }
    }
    if (square->n_found == 0)
        return GX_OK;
    if (*seconds * n > block_s)
        n = (int)fmax(1, block_s / *seconds);
    for (int i = 0; i < REPEATS; i++) {
        GX_TRY(time_products(bench, square, best, n, &once, err));
        *seconds = fmin(*seconds, once);
    }
    return GX_OK;
}

static gx_status measure_square(const gx_ceilings_bench *bench,
                                const gx_product_type *type, cublasOperation_t trans_a,
                                int64_t n, double *seconds, gx_error *err)
{
    gx_square square = { .type = type, .trans_a = trans_a, .n = n };

    *seconds = INFINITY;
    gx_status st = describe(&square, (uint64_t)bench->workspace_bytes, err);
    if (st == GX_OK)
        st = find_algorithms(bench, &square, err);
    if (st == GX_OK)
        st = search(bench, &square, seconds, err);
    close_square(&square);
    return st;
}

static gx_status measure_rate(const gx_ceilings_bench *bench, const gx_product_type *type,
                              double *flops_per_s, gx_error *err)
{
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const double n = (double)sizes[i];
        double seconds, other;

        /* Over what the products before have written, too. */
        GX_TRY(gx_ceilings_fill(bench, type->random, type->fixed, err));
        GX_TRY(measure_square(bench, type, CUBLAS_OP_T, sizes[i], &seconds, err));
        GX_TRY(measure_square(bench, type, CUBLAS_OP_N, sizes[i], &other, err));
        seconds = fmin(seconds, other);
        if (seconds > 0 && isfinite(seconds))
            *flops_per_s = fmax(*flops_per_s, 2 * n * n * n / seconds);
        if (seconds > enough_s)
            break;
    }
    return GX_OK;
}

gx_status gx_ceilings_products(const gx_ceilings_bench *bench, gx_ceilings *ceilings,
                               gx_error *err)
{
    for (int i = 0; i < GX_RATES; i++)
        GX_TRY(measure_rate(bench, &types[i], &ceilings->flops_per_s[i], err));
    return GX_OK;
}
