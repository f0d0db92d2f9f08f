/* Ends a loop in a graph behind its last turn, and leaves the count as the next launch
 * wants it. */
#include "count_turn.h"

static __global__ void count_turn_kernel(cudaGraphConditionalHandle handle, int *turns,
                                         int n_turns)
{
    const int done = *turns + 1;

    *turns = done < n_turns ? done : 0;
    if (done >= n_turns)
        cudaGraphSetConditional(handle, 0);
}

const void *gx_count_turn_kernel(void)
{
    return (const void *)count_turn_kernel;
}
