/* Inline functions that kernels share with the host. */
#ifndef GX_HOST_DEVICE_H
#define GX_HOST_DEVICE_H

#if defined(__CUDACC__)
#define GX_HOST_DEVICE __host__ __device__
#else
#define GX_HOST_DEVICE
#endif

#endif
