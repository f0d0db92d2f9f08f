/* The kernel that decides a branch in a graph, for gx_launch. Its arguments: the
 * condition's handle, and where in device memory the number of the step's update stands
 * (int32_t; -1: the step has none, and the branch is skipped). */
#ifndef GX_SET_BRANCH_H
#define GX_SET_BRANCH_H

#ifdef __cplusplus
extern "C" {
#endif

const void *gx_set_branch_kernel(void);

#ifdef __cplusplus
}
#endif
#endif
