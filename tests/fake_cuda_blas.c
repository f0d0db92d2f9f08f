/* The simulated cuBLASLt: descriptors are the library's own, which needs no GPU for them;
 * handles, algorithms and products are made up. */
#include "fake_cuda_parts.h"

#include <stdlib.h>
#include <string.h>

/* Of the made-up algorithm; not 0, so that workspaces are used. */
enum { WORKSPACE_BYTES = 1 << 12, N_ALGORITHMS = 2 };

static const fake_algorithm *algorithms; /* NULL: without a time */
static int n_algorithms = N_ALGORITHMS, most_wanted;

void fake_set_algorithms(const fake_algorithm *list, int n)
{
    algorithms = n > 0 ? list : NULL;
    n_algorithms = n > 0 ? n : N_ALGORITHMS;
    most_wanted = 0;
}

int fake_algorithms_wanted(void)
{
    return most_wanted;
}

#define ENTER_LT(name)                          \
    do {                                        \
        const int planned_ = fake_enter(#name); \
        if (planned_ != 0)                      \
            return (cublasStatus_t)planned_;    \
    } while (0)

/* --- the library --- */

WRAPS(cublasLtCreate);
WRAPS(cublasLtDestroy);
WRAPS(cublasLtGetVersion);
WRAPS(cublasLtGetStatusName);
WRAPS(cublasLtGetStatusString);

cublasStatus_t __wrap_cublasLtCreate(cublasLtHandle_t *handle)
{
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;

    ENTER_LT(cublasLtCreate);
    if (fake_is_real())
        status = __real_cublasLtCreate(handle);
    else if (!(*handle = malloc(1)))
        abort();
    fake_born(FAKE_HANDLE, *handle, (int)status);
    return status;
}

cublasStatus_t __wrap_cublasLtDestroy(cublasLtHandle_t handle)
{
    const int planned = fake_enter("cublasLtDestroy");
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;

    fake_died(FAKE_HANDLE, handle);
    if (fake_is_real())
        status = __real_cublasLtDestroy(handle);
    else
        free(handle);
    return planned != 0 ? (cublasStatus_t)planned : status;
}

size_t __wrap_cublasLtGetVersion(void)
{
    (void)fake_enter("cublasLtGetVersion");
    return __real_cublasLtGetVersion();
}

const char *__wrap_cublasLtGetStatusName(cublasStatus_t status)
{
    (void)fake_enter("cublasLtGetStatusName");
    return __real_cublasLtGetStatusName(status);
}

const char *__wrap_cublasLtGetStatusString(cublasStatus_t status)
{
    (void)fake_enter("cublasLtGetStatusString");
    return __real_cublasLtGetStatusString(status);
}

/* --- descriptors --- */

WRAPS(cublasLtMatmulDescCreate);
WRAPS(cublasLtMatmulDescDestroy);
WRAPS(cublasLtMatmulDescSetAttribute);
WRAPS(cublasLtMatrixLayoutCreate);
WRAPS(cublasLtMatrixLayoutDestroy);
WRAPS(cublasLtMatrixLayoutSetAttribute);
WRAPS(cublasLtMatmulPreferenceCreate);
WRAPS(cublasLtMatmulPreferenceDestroy);
WRAPS(cublasLtMatmulPreferenceSetAttribute);

cublasStatus_t __wrap_cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *descriptor,
                                               cublasComputeType_t compute,
                                               cudaDataType_t scale)
{
    ENTER_LT(cublasLtMatmulDescCreate);
    const cublasStatus_t status =
        __real_cublasLtMatmulDescCreate(descriptor, compute, scale);
    fake_born(FAKE_DESCRIPTOR, *descriptor, (int)status);
    return status;
}

cublasStatus_t __wrap_cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t descriptor)
{
    const int planned = fake_enter("cublasLtMatmulDescDestroy");

    fake_died(FAKE_DESCRIPTOR, descriptor);
    const cublasStatus_t status = __real_cublasLtMatmulDescDestroy(descriptor);
    return planned != 0 ? (cublasStatus_t)planned : status;
}

cublasStatus_t
__wrap_cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t descriptor,
                                      cublasLtMatmulDescAttributes_t attribute,
                                      const void *value, size_t size)
{
    ENTER_LT(cublasLtMatmulDescSetAttribute);
    return __real_cublasLtMatmulDescSetAttribute(descriptor, attribute, value, size);
}

cublasStatus_t __wrap_cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout,
                                                 cudaDataType_t type, uint64_t rows,
                                                 uint64_t columns, int64_t leading)
{
    ENTER_LT(cublasLtMatrixLayoutCreate);
    const cublasStatus_t status =
        __real_cublasLtMatrixLayoutCreate(layout, type, rows, columns, leading);
    fake_born(FAKE_LAYOUT, *layout, (int)status);
    return status;
}

cublasStatus_t __wrap_cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    const int planned = fake_enter("cublasLtMatrixLayoutDestroy");

    fake_died(FAKE_LAYOUT, layout);
    const cublasStatus_t status = __real_cublasLtMatrixLayoutDestroy(layout);
    return planned != 0 ? (cublasStatus_t)planned : status;
}

cublasStatus_t
__wrap_cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                        cublasLtMatrixLayoutAttribute_t attribute,
                                        const void *value, size_t size)
{
    ENTER_LT(cublasLtMatrixLayoutSetAttribute);
    return __real_cublasLtMatrixLayoutSetAttribute(layout, attribute, value, size);
}

cublasStatus_t
__wrap_cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference)
{
    ENTER_LT(cublasLtMatmulPreferenceCreate);
    const cublasStatus_t status = __real_cublasLtMatmulPreferenceCreate(preference);
    fake_born(FAKE_PREFERENCE, *preference, (int)status);
    return status;
}

cublasStatus_t
__wrap_cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    const int planned = fake_enter("cublasLtMatmulPreferenceDestroy");

    fake_died(FAKE_PREFERENCE, preference);
    const cublasStatus_t status = __real_cublasLtMatmulPreferenceDestroy(preference);
    return planned != 0 ? (cublasStatus_t)planned : status;
}

cublasStatus_t __wrap_cublasLtMatmulPreferenceSetAttribute(
    cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,
    const void *value, size_t size)
{
    ENTER_LT(cublasLtMatmulPreferenceSetAttribute);
    return __real_cublasLtMatmulPreferenceSetAttribute(preference, attribute, value,
                                                       size);
}

/* --- algorithms and products --- */

WRAPS(cublasLtMatmulAlgoGetHeuristic);
WRAPS(cublasLtMatmulAlgoCheck);
WRAPS(cublasLtMatmul);

cublasStatus_t __wrap_cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t operation, cublasLtMatrixLayout_t a,
    cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
    cublasLtMatmulPreference_t preference, int n_wanted,
    cublasLtMatmulHeuristicResult_t *results, int *n_found)
{
    ENTER_LT(cublasLtMatmulAlgoGetHeuristic);
    if (fake_is_real())
        return __real_cublasLtMatmulAlgoGetHeuristic(
            handle, operation, a, b, c, d, preference, n_wanted, results, n_found);
    most_wanted = n_wanted > most_wanted ? n_wanted : most_wanted;
    *n_found = n_wanted < n_algorithms ? n_wanted : n_algorithms;
    for (int i = 0; i < *n_found; i++) {
        memset(&results[i], 0, sizeof results[i]);
        results[i].algo.data[0] = (uint64_t)i + 1;
        results[i].workspaceSize = WORKSPACE_BYTES;
        results[i].state = CUBLAS_STATUS_SUCCESS;
    }
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t __wrap_cublasLtMatmulAlgoCheck(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t operation, cublasLtMatrixLayout_t a,
    cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
    const cublasLtMatmulAlgo_t *algo, cublasLtMatmulHeuristicResult_t *result)
{
    ENTER_LT(cublasLtMatmulAlgoCheck);
    if (fake_is_real())
        return __real_cublasLtMatmulAlgoCheck(handle, operation, a, b, c, d, algo,
                                              result);
    memset(result, 0, sizeof *result);
    result->algo = *algo;
    result->workspaceSize = WORKSPACE_BYTES;
    result->state = CUBLAS_STATUS_SUCCESS;
    return CUBLAS_STATUS_SUCCESS;
}

/* A fill and a kernel, as of a product whose sum is split. */
cublasStatus_t
__wrap_cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                      const void *alpha, const void *a, cublasLtMatrixLayout_t layout_a,
                      const void *b, cublasLtMatrixLayout_t layout_b, const void *beta,
                      const void *c, cublasLtMatrixLayout_t layout_c, void *d,
                      cublasLtMatrixLayout_t layout_d, const cublasLtMatmulAlgo_t *algo,
                      void *workspace, size_t workspace_bytes, cudaStream_t stream)
{
    fake_node kernel = { .type = cudaGraphNodeTypeKernel };
    bool captured;

    ENTER_LT(cublasLtMatmul);
    if (fake_is_real())
        return __real_cublasLtMatmul(handle, operation, alpha, a, layout_a, b, layout_b,
                                     beta, c, layout_c, d, layout_d, algo, workspace,
                                     workspace_bytes, stream);
    if (!fake_is_alive(FAKE_HANDLE, handle) || workspace_bytes < WORKSPACE_BYTES)
        fake_note_mistake("a product without a handle or without its workspace");
    const fake_algorithm *const algorithm =
        algorithms ? &algorithms[algo->data[0] - 1] : NULL;
    if (algorithm) {
        kernel.ms = algorithm->ms;
        kernel.hot_ms = algorithm->hot_ms;
    }
    if (fake_enqueue(stream, fake_fill_node(workspace, 0, WORKSPACE_BYTES), &captured) !=
            cudaSuccess ||
        fake_enqueue(stream, kernel, &captured) != cudaSuccess)
        return CUBLAS_STATUS_EXECUTION_FAILED;
    if (algorithm && algorithm->is_wrong && !captured)
        memset(d, 0, sizeof(float));
    return CUBLAS_STATUS_SUCCESS;
}
