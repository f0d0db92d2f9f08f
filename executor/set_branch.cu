/* Decides a branch in a graph: its body runs where the step has an update. */
#include "set_branch.h"

#include "kernel.cuh"

static __global__ void set_branch_kernel(cudaGraphConditionalHandle handle,
                                         const int32_t *update)
{
    gx_begin_kernel();
    cudaGraphSetConditional(handle, *update >= 0);
}

const void *gx_set_branch_kernel(void)
{
    return (const void *)set_branch_kernel;
}
