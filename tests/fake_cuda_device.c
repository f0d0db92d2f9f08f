/* The simulated CUDA: the device, memory, copies, kernels. */
#include "fake_cuda_parts.h"

#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    int current, n_devices, cc, driver;
    size_t free_bytes;
    unsigned most_cluster;
} card = { .n_devices = 1,
           .cc = 90,
           .driver = 13000,
           .free_bytes = (size_t)8 << 30,
           .most_cluster = 16 };

void fake_set_device_count(int n_devices)
{
    card.n_devices = n_devices;
}

void fake_set_cc(int cc)
{
    card.cc = cc;
}

void fake_set_driver(int version)
{
    card.driver = version;
}

void fake_set_most_cluster(unsigned blocks)
{
    card.most_cluster = blocks;
}

void fake_set_free_bytes(size_t bytes)
{
    card.free_bytes = bytes;
}

/* --- the device --- */

WRAPS(cudaGetDeviceCount);
WRAPS(cudaGetDevice);
WRAPS(cudaSetDevice);
WRAPS(cudaDeviceGetAttribute);
WRAPS(cudaGetDeviceProperties);
WRAPS(cudaDriverGetVersion);
WRAPS(cudaRuntimeGetVersion);
WRAPS(cudaMemGetInfo);
WRAPS(cudaProfilerStart);
WRAPS(cudaProfilerStop);

cudaError_t __wrap_cudaGetDeviceCount(int *n)
{
    ENTER(cudaGetDeviceCount);
    if (fake_is_real())
        return __real_cudaGetDeviceCount(n);
    *n = card.n_devices;
    return cudaSuccess;
}

cudaError_t __wrap_cudaGetDevice(int *device)
{
    ENTER(cudaGetDevice);
    if (fake_is_real())
        return __real_cudaGetDevice(device);
    *device = card.current;
    return cudaSuccess;
}

cudaError_t __wrap_cudaSetDevice(int device)
{
    ENTER(cudaSetDevice);
    if (fake_is_real())
        return __real_cudaSetDevice(device);
    if (device < 0 || device >= card.n_devices)
        return fake_error(cudaErrorInvalidDevice);
    card.current = device;
    return cudaSuccess;
}

cudaError_t __wrap_cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute,
                                          int device)
{
    ENTER(cudaDeviceGetAttribute);
    if (fake_is_real())
        return __real_cudaDeviceGetAttribute(value, attribute, device);
    switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
        *value = 132;
        break;
    case cudaDevAttrComputeCapabilityMajor:
        *value = card.cc / 10;
        break;
    case cudaDevAttrComputeCapabilityMinor:
        *value = card.cc % 10;
        break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
        *value = 227 << 10;
        break;
    default:
        *value = 1;
        break;
    }
    return cudaSuccess;
}

cudaError_t __wrap_cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
    ENTER(cudaGetDeviceProperties);
    if (fake_is_real())
        return __real_cudaGetDeviceProperties(properties, device);
    memset(properties, 0, sizeof *properties);
    snprintf(properties->name, sizeof properties->name, "simulated GPU");
    properties->major = card.cc / 10;
    properties->minor = card.cc % 10;
    properties->multiProcessorCount = 132;
    properties->l2CacheSize = 50 << 20;
    return cudaSuccess;
}

cudaError_t __wrap_cudaDriverGetVersion(int *version)
{
    ENTER(cudaDriverGetVersion);
    if (fake_is_real())
        return __real_cudaDriverGetVersion(version);
    *version = card.driver;
    return cudaSuccess;
}

cudaError_t __wrap_cudaRuntimeGetVersion(int *version)
{
    ENTER(cudaRuntimeGetVersion);
    return __real_cudaRuntimeGetVersion(version);
}

cudaError_t __wrap_cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    ENTER(cudaMemGetInfo);
    if (fake_is_real())
        return __real_cudaMemGetInfo(free_bytes, total_bytes);
    *free_bytes = card.free_bytes;
    *total_bytes = (size_t)8 << 30;
    return cudaSuccess;
}

cudaError_t __wrap_cudaProfilerStart(void)
{
    ENTER(cudaProfilerStart);
    return fake_is_real() ? __real_cudaProfilerStart() : cudaSuccess;
}

cudaError_t __wrap_cudaProfilerStop(void)
{
    ENTER(cudaProfilerStop);
    return fake_is_real() ? __real_cudaProfilerStop() : cudaSuccess;
}

/* --- functions of the driver --- */

#if CUDART_VERSION >= 12050
WRAPS(cudaGetDriverEntryPointByVersion);
#else
WRAPS(cudaGetDriverEntryPoint);
#endif

/* Looks at what the driver would refuse. No kernel runs and reads a map: it tells tests
 * its type, with which it begins. */
static CUresult simulate_map(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank,
                             void *data, const cuuint64_t *sizes,
                             const cuuint64_t *strides, const cuuint32_t *box,
                             const cuuint32_t *steps, CUtensorMapInterleave interleave,
                             CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                             CUtensorMapFloatOOBfill fill)
{
    const int planned = fake_enter("cuTensorMapEncodeTiled");

    (void)interleave, (void)swizzle, (void)promotion, (void)fill;
    if (planned != 0)
        return (CUresult)planned;
    if ((uintptr_t)map % 64 != 0 || rank != 2 || (uintptr_t)data % 16 != 0 ||
        strides[0] % 16 != 0)
        return CUDA_ERROR_INVALID_VALUE;
    for (cuuint32_t i = 0; i < rank; i++) {
        if (sizes[i] == 0 || box[i] == 0 || box[i] > 256 || steps[i] != 1)
            return CUDA_ERROR_INVALID_VALUE;
    }
    memset(map, 0, sizeof *map);
    memcpy(map, &type, sizeof type);
    return CUDA_SUCCESS;
}

/* One function alone is asked for. */
static cudaError_t simulate_entry(const char *name, void **function,
                                  enum cudaDriverEntryPointQueryResult *found)
{
    CUresult (*const map)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *,
                          const cuuint64_t *, const cuuint64_t *, const cuuint32_t *,
                          const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
                          CUtensorMapL2promotion, CUtensorMapFloatOOBfill) = simulate_map;

    *function = NULL;
    *found = cudaDriverEntryPointSymbolNotFound;
    if (strcmp(name, "cuTensorMapEncodeTiled") == 0 && card.driver >= 12000) {
        memcpy(function, &map, sizeof map);
        *found = cudaDriverEntryPointSuccess;
    }
    return cudaSuccess;
}

#if CUDART_VERSION >= 12050
cudaError_t
__wrap_cudaGetDriverEntryPointByVersion(const char *name, void **function,
                                        unsigned version, unsigned long long flags,
                                        enum cudaDriverEntryPointQueryResult *found)
{
    ENTER(cudaGetDriverEntryPointByVersion);
    if (fake_is_real())
        return __real_cudaGetDriverEntryPointByVersion(name, function, version, flags,
                                                       found);
    return simulate_entry(name, function, found);
}
#else
cudaError_t __wrap_cudaGetDriverEntryPoint(const char *name, void **function,
                                           unsigned long long flags,
                                           enum cudaDriverEntryPointQueryResult *found)
{
    ENTER(cudaGetDriverEntryPoint);
    if (fake_is_real())
        return __real_cudaGetDriverEntryPoint(name, function, flags, found);
    return simulate_entry(name, function, found);
}
#endif

/* --- memory --- */

WRAPS(cudaMalloc);
WRAPS(cudaFree);
WRAPS(cudaMallocHost);
WRAPS(cudaFreeHost);
WRAPS(cudaMallocAsync);
WRAPS(cudaLaunchHostFunc);
WRAPS(cudaMemcpyAsync);
WRAPS(cudaMemsetAsync);

enum { DIRTY_BYTES = 1 << 20 };

static cudaError_t simulate_alloc(void **memory, size_t bytes)
{
    const cudaError_t unsafe = fake_unsafe();

    if (unsafe != cudaSuccess)
        return unsafe;
    *memory = NULL;
    if (posix_memalign(memory, 256, bytes ? bytes : 1) != 0)
        return fake_error(cudaErrorMemoryAllocation);
    /* The rest of a large block stays untouched, for that takes time and real memory. */
    memset(*memory, 0x5a, bytes < DIRTY_BYTES ? bytes : DIRTY_BYTES);
    return cudaSuccess;
}

cudaError_t __wrap_cudaMalloc(void **memory, size_t bytes)
{
    ENTER(cudaMalloc);
    const cudaError_t error =
        fake_is_real() ? __real_cudaMalloc(memory, bytes) : simulate_alloc(memory, bytes);
    fake_born(FAKE_MEMORY, error == cudaSuccess ? *memory : NULL, (int)error);
    return error;
}

cudaError_t __wrap_cudaMallocHost(void **memory, size_t bytes)
{
    ENTER(cudaMallocHost);
    const cudaError_t error = fake_is_real() ? __real_cudaMallocHost(memory, bytes)
                                             : simulate_alloc(memory, bytes);
    fake_born(FAKE_PINNED, error == cudaSuccess ? *memory : NULL, (int)error);
    return error;
}

cudaError_t __wrap_cudaFree(void *memory)
{
    const int planned = fake_enter("cudaFree");
    cudaError_t error = cudaSuccess;

    if (!memory)
        return fake_error(planned);
    fake_died(FAKE_MEMORY, memory);
    fake_order_finish(NULL);
    if (fake_is_real())
        error = __real_cudaFree(memory);
    else
        free(memory);
    return planned != 0 ? fake_error(planned) : error;
}

cudaError_t __wrap_cudaFreeHost(void *memory)
{
    const int planned = fake_enter("cudaFreeHost");
    cudaError_t error = cudaSuccess;

    fake_died(FAKE_PINNED, memory);
    fake_order_finish(NULL);
    if (fake_is_real())
        error = __real_cudaFreeHost(memory);
    else
        free(memory);
    return planned != 0 ? fake_error(planned) : error;
}

/* gexec never calls these two: for tests of what a capture must refuse. */
cudaError_t __wrap_cudaMallocAsync(void **memory, size_t bytes, cudaStream_t stream)
{
    static char block[256];
    bool captured;

    ENTER(cudaMallocAsync);
    if (fake_is_real())
        return __real_cudaMallocAsync(memory, bytes, stream);
    *memory = block;
    return fake_enqueue(stream, (fake_node){ .type = cudaGraphNodeTypeMemAlloc },
                        &captured);
}

cudaError_t __wrap_cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function,
                                      void *user)
{
    bool captured;

    ENTER(cudaLaunchHostFunc);
    if (fake_is_real())
        return __real_cudaLaunchHostFunc(stream, function, user);
    const cudaError_t error =
        fake_enqueue(stream, (fake_node){ .type = cudaGraphNodeTypeHost }, &captured);
    if (error == cudaSuccess && !captured)
        function(user);
    return error;
}

cudaError_t __wrap_cudaMemcpyAsync(void *to, const void *from, size_t bytes,
                                   enum cudaMemcpyKind kind, cudaStream_t stream)
{
    bool captured;

    ENTER(cudaMemcpyAsync);
    if (fake_is_real())
        return __real_cudaMemcpyAsync(to, from, bytes, kind, stream);
    const cudaError_t error = fake_enqueue(
        stream, (fake_node){ .type = cudaGraphNodeTypeMemcpy, .copy = kind }, &captured);
    if (error == cudaSuccess && !captured)
        fake_order_copy((fake_stream *)stream, to, from, bytes);
    return error;
}

fake_node fake_fill_node(void *memory, unsigned char byte, size_t bytes)
{
    return (fake_node){ .type = cudaGraphNodeTypeMemset,
                        .memset = { .dst = memory,
                                    .value = byte,
                                    .elementSize = 1,
                                    .width = bytes,
                                    .height = 1 } };
}

cudaError_t __wrap_cudaMemsetAsync(void *memory, int byte, size_t bytes,
                                   cudaStream_t stream)
{
    bool captured;

    ENTER(cudaMemsetAsync);
    if (fake_is_real())
        return __real_cudaMemsetAsync(memory, byte, bytes, stream);
    const cudaError_t error = fake_enqueue(
        stream, fake_fill_node(memory, (unsigned char)byte, bytes), &captured);
    if (error == cudaSuccess && !captured)
        fake_order_fill((fake_stream *)stream, memory, byte, bytes);
    return error;
}

/* --- kernels --- */

WRAPS(cudaFuncGetAttributes);
WRAPS(cudaFuncSetAttribute);
WRAPS(cudaLaunchKernelExC);
WRAPS(cudaOccupancyMaxActiveClusters);

static void (*on_attributes)(void);
static int shared_limit;

void fake_on_attributes(void (*hook)(void))
{
    on_attributes = hook;
}

int fake_shared_limit(void)
{
    return shared_limit;
}

cudaError_t __wrap_cudaFuncGetAttributes(struct cudaFuncAttributes *attributes,
                                         const void *kernel)
{
    ENTER(cudaFuncGetAttributes);
    if (fake_is_real())
        return __real_cudaFuncGetAttributes(attributes, kernel);
    memset(attributes, 0, sizeof *attributes);
    attributes->maxDynamicSharedSizeBytes = 48 << 10;
    attributes->maxThreadsPerBlock = 1024;
    if (on_attributes) {
        void (*const hook)(void) = on_attributes;

        on_attributes = NULL;
        hook();
    }
    return cudaSuccess;
}

cudaError_t __wrap_cudaFuncSetAttribute(const void *kernel,
                                        enum cudaFuncAttribute attribute, int value)
{
    ENTER(cudaFuncSetAttribute);
    if (fake_is_real())
        return __real_cudaFuncSetAttribute(kernel, attribute, value);
    if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize)
        shared_limit = value;
    return cudaSuccess;
}

cudaError_t __wrap_cudaOccupancyMaxActiveClusters(int *n_clusters, const void *kernel,
                                                  const cudaLaunchConfig_t *config)
{
    ENTER(cudaOccupancyMaxActiveClusters);
    if (fake_is_real())
        return __real_cudaOccupancyMaxActiveClusters(n_clusters, kernel, config);
    *n_clusters = config->gridDim.y <= card.most_cluster;
    return cudaSuccess;
}

static void (*on_launch)(void **args);

void fake_on_launch(void (*hook)(void **args))
{
    on_launch = hook;
}

cudaError_t __wrap_cudaLaunchKernelExC(const cudaLaunchConfig_t *config,
                                       const void *kernel, void **args)
{
    fake_node node = { .type = cudaGraphNodeTypeKernel };
    bool captured;

    ENTER(cudaLaunchKernelExC);
    if (fake_is_real())
        return __real_cudaLaunchKernelExC(config, kernel, args);
    if (on_launch)
        on_launch(args);
    for (unsigned i = 0; i < config->numAttrs; i++)
        node.programmatic |=
            config->attrs[i].id == cudaLaunchAttributeProgrammaticStreamSerialization;
    fake_condition_note(
        &node, config->stream ? ((const fake_stream *)config->stream)->capture : NULL,
        kernel, args);
    return fake_enqueue(config->stream, node, &captured);
}
