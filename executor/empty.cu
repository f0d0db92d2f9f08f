/* A kernel that does nothing: what a launch costs by itself, and whether ours can run
 * here. */
#include "empty.h"

static __global__ void empty_kernel(void)
{
}

const void *gx_empty_kernel(void)
{
    return (const void *)empty_kernel;
}
