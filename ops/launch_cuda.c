/* The launch seam. */
#include "launch.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#ifndef GX_CUDA_ARCHITECTURES
#define GX_CUDA_ARCHITECTURES "unknown"
#endif

gx_status gx_launch(gx_ctx *ctx, const char *name, const void *kernel, dim3 grid,
                    dim3 block, size_t shared_bytes, void **args, gx_error *err)
{
    return gx_launch_cluster(ctx, name, kernel, grid, block, 1, shared_bytes, args, err);
}

static cudaLaunchAttribute cluster_of(unsigned blocks)
{
    cudaLaunchAttribute attribute;

    memset(&attribute, 0, sizeof attribute);
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = 1;
    attribute.val.clusterDim.y = blocks;
    attribute.val.clusterDim.z = 1;
    return attribute;
}

gx_status gx_launch_cluster(gx_ctx *ctx, const char *name, const void *kernel, dim3 grid,
                            dim3 block, unsigned cluster, size_t shared_bytes,
                            void **args, gx_error *err)
{
    const bool first = ctx->n_launched == 0;
    const bool programmatic =
        ctx->programmatic && ctx->cc >= 90 && (!first || ctx->programmatic_first);
    cudaLaunchAttribute attributes[2];
    unsigned n_attributes = 0;
    char call[160];

    assert(grid.x > 0 && grid.y > 0 && grid.z > 0);
    memset(attributes, 0, sizeof attributes);
    if (programmatic) {
        attributes[n_attributes].id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attributes[n_attributes++].val.programmaticStreamSerializationAllowed = 1;
    }
    if (cluster > 1)
        attributes[n_attributes++] = cluster_of(cluster);
    const cudaLaunchConfig_t config = {
        .gridDim = grid,
        .blockDim = block,
        .dynamicSmemBytes = shared_bytes,
        .stream = ctx->stream,
        .attrs = attributes,
        .numAttrs = n_attributes,
    };
    const cudaError_t error = cudaLaunchKernelExC(&config, kernel, args);

    if (error == cudaSuccess) {
        ctx->n_launched++;
        return GX_OK;
    }
    snprintf(call, sizeof call,
             "cudaLaunchKernelExC(%s, grid %u x %u x %u, block %u, shared %zu)", name,
             grid.x, grid.y, grid.z, block.x * block.y * block.z, shared_bytes);
    return gx_check_cuda((int)error, call, __FILE__, __LINE__, err);
}

/* The current device as "sm_90"; "unknown" where it cannot be asked. */
static void device_architecture(char *text, size_t size)
{
    int device = 0, major = 0, minor = 0;

    if (cudaGetDevice(&device) == cudaSuccess &&
        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) ==
            cudaSuccess &&
        cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) ==
            cudaSuccess)
        snprintf(text, size, "sm_%d%d", major, minor);
    else
        snprintf(text, size, "unknown");
    (void)cudaGetLastError();
}

static gx_status load_kernel(const void *kernel, size_t shared_bytes, const char *name,
                             gx_error *err)
{
    struct cudaFuncAttributes attributes;
    char call[160];
    const cudaError_t error = cudaFuncGetAttributes(&attributes, kernel);

    if (gx_status_of_cuda((int)error) == GX_ERR_UNSUPPORTED) {
        char device[16];

        (void)cudaGetLastError();
        device_architecture(device, sizeof device);
        return GX_FAIL_NATIVE(err, GX_ERR_UNSUPPORTED, (int)error,
                              "kernel %s: %s (%s): built for %s; device is %s", name,
                              cudaGetErrorString(error), cudaGetErrorName(error),
                              GX_CUDA_ARCHITECTURES, device);
    }
    snprintf(call, sizeof call, "cudaFuncGetAttributes(%s)", name);
    GX_TRY(gx_check_cuda((int)error, call, __FILE__, __LINE__, err));
    if (shared_bytes <= (size_t)attributes.maxDynamicSharedSizeBytes)
        return GX_OK;
    snprintf(call, sizeof call, "cudaFuncSetAttribute(%s, dynamic shared memory %zu)",
             name, shared_bytes);
    return gx_check_cuda(
        (int)cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  (int)shared_bytes),
        call, __FILE__, __LINE__, err);
}

/* A kernel has one limit, which is raised and never lowered: of two threads that both
 * found the old one, that with the smaller need might set its own last. */
static pthread_mutex_t limits = PTHREAD_MUTEX_INITIALIZER;

gx_status gx_load_kernel(const void *kernel, size_t shared_bytes, const char *name,
                         gx_error *err)
{
    pthread_mutex_lock(&limits);
    const gx_status st = load_kernel(kernel, shared_bytes, name, err);

    pthread_mutex_unlock(&limits);
    return st;
}

/* How many of these clusters the device can run at once: none where a part of it that
 * they have to share has too few multiprocessors, or memory. */
static gx_status find_room(const void *kernel, dim3 block, unsigned cluster,
                           size_t shared_bytes, const char *name, gx_error *err)
{
    cudaLaunchAttribute attribute = cluster_of(cluster);
    const cudaLaunchConfig_t config = {
        .gridDim = { 1, cluster, 1 },
        .blockDim = block,
        .dynamicSmemBytes = shared_bytes,
        .attrs = &attribute,
        .numAttrs = 1,
    };
    char call[160];
    int n_clusters = 0;

    snprintf(call, sizeof call, "cudaOccupancyMaxActiveClusters(%s, %u blocks)", name,
             cluster);
    GX_TRY(
        gx_check_cuda((int)cudaOccupancyMaxActiveClusters(&n_clusters, kernel, &config),
                      call, __FILE__, __LINE__, err));
    if (n_clusters < 1)
        return GX_FAIL(err, GX_ERR_UNSUPPORTED,
                       "kernel %s: the device has no room for a cluster of %u blocks",
                       name, cluster);
    return GX_OK;
}

gx_status gx_load_cluster_kernel(const void *kernel, dim3 block, unsigned cluster,
                                 size_t shared_bytes, const char *name, gx_error *err)
{
    char call[160];

    GX_TRY(gx_load_kernel(kernel, shared_bytes, name, err));
    snprintf(call, sizeof call, "cudaFuncSetAttribute(%s, clusters of %u)", name,
             cluster);
    if (cluster > GX_MAX_CLUSTER)
        GX_TRY(
            gx_check_cuda((int)cudaFuncSetAttribute(
                              kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1),
                          call, __FILE__, __LINE__, err));
    return find_room(kernel, block, cluster, shared_bytes, name, err);
}
