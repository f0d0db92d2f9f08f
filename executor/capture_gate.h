/* Keeps calls that wait for the whole device away from captures.
 *
 * A capture in thread-local mode does not mind what other threads do, with one exception: a
 * call that synchronizes the device invalidates every capture on it. cublasLtDestroy does so
 * (cuBLAS documentation, cublasLtCreate), so freeing one program could break the building of
 * another. The gate is the process's: captures pass it side by side, device-wide calls alone.
 * Replays do not pass it. */
#ifndef GX_CAPTURE_GATE_H
#define GX_CAPTURE_GATE_H

void gx_capture_enter(void);
void gx_capture_leave(void);

/* Waits until no capture of gexec's is under way; captures wait until it is left. Not from
 * inside a capture. */
void gx_device_wide_enter(void);
void gx_device_wide_leave(void);

#endif
