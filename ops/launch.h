/* The one seam through which every kernel of gexec is launched, and the CUDA checks. */
#ifndef GX_LAUNCH_H
#define GX_LAUNCH_H

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include "ops.h"

#ifdef __cplusplus
extern "C" {
#endif

gx_status gx_status_of_cuda(int cuda_error);
/* Turns a CUDA or cuBLASLt status into ours, with the call's text, the error's name and
 * text, and, where the driver has one, its own log line. Clears CUDA's last error. */
gx_status gx_check_cuda(int cuda_error, const char *call, const char *file, int line,
                        gx_error *err);
gx_status gx_check_cublas(int cublas_status, const char *call, const char *file, int line,
                          gx_error *err);
#define GX_CUDA(call, err) gx_check_cuda((int)(call), #call, __FILE__, __LINE__, (err))
#define GX_CUBLAS(call, err) \
    gx_check_cublas((int)(call), #call, __FILE__, __LINE__, (err))

/* Launches through cudaLaunchKernelExC on ctx->stream, with the programmatic attribute
 * where ctx allows it. A grid with a zero size is an assert: callers launch nothing then.
 */
gx_status gx_launch(gx_ctx *ctx, const char *name, const void *kernel, dim3 grid,
                    dim3 block, size_t shared_bytes, void **args, gx_error *err);

/* Blocks of a cluster that every card with clusters takes, and that some take; the first
 * cards that have clusters. */
enum { GX_MAX_CLUSTER = 8, GX_MAX_LARGE_CLUSTER = 16, GX_CLUSTER_CC = 90 };

/* The same with blocks in clusters of `cluster` along y, which divides grid.y; 1: none.
 */
gx_status gx_launch_cluster(gx_ctx *ctx, const char *name, const void *kernel, dim3 grid,
                            dim3 block, unsigned cluster, size_t shared_bytes,
                            void **args, gx_error *err);

/* Loads a kernel before any capture, and raises its dynamic shared memory limit. */
gx_status gx_load_kernel(const void *kernel, size_t shared_bytes, const char *name,
                         gx_error *err);

/* The same for clusters of `cluster` blocks along y, more than GX_MAX_CLUSTER too.
 * GX_ERR_UNSUPPORTED where the device has no room for one. */
gx_status gx_load_cluster_kernel(const void *kernel, dim3 block, unsigned cluster,
                                 size_t shared_bytes, const char *name, gx_error *err);

#ifdef __cplusplus
}
#endif
#endif
