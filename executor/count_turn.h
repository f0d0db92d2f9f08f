/* The kernel that counts the turns of a loop in a graph, for gx_launch. Its arguments:
 * the condition's handle, the count of turns in device memory, and how many there are to
 * be. */
#ifndef GX_COUNT_TURN_H
#define GX_COUNT_TURN_H

#ifdef __cplusplus
extern "C" {
#endif

const void *gx_count_turn_kernel(void);

#ifdef __cplusplus
}
#endif
#endif
