/* The cuBLASLt handle of a GPU, shared by the programs that are open on it.
 *
 * cublasLtDestroy synchronizes the device, and on doing so invalidates every capture
 * under way there, thread-local or not: with a handle a program, freeing one could break
 * the building of another in another thread. So the handle lives as long as any program
 * on the GPU does, and when it is destroyed none is left that could capture. cuBLASLt
 * allows one handle in several threads at once. */
#ifndef GX_LT_HANDLE_H
#define GX_LT_HANDLE_H

#include <gexec/status.h>

/* The GPU is current. Every acquire that succeeds is released once. */
gx_status gx_lt_handle_acquire(int ordinal, void **lt, gx_error *err) GX_MUST_CHECK;
void gx_lt_handle_release(int ordinal);

#endif
