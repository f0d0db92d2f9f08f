/* The kernel that does nothing, for gx_launch. */
#ifndef GX_EMPTY_H
#define GX_EMPTY_H

#ifdef __cplusplus
extern "C" {
#endif

const void *gx_empty_kernel(void);

#ifdef __cplusplus
}
#endif
#endif
