/* The path of a step: what the forward and the backward pass go on from. What stands off
 * it may run beside them. */
#ifndef GX_PASS_PATH_H
#define GX_PASS_PATH_H

#include "plan.h"

typedef struct gx_pass_path {
    const gx_graph *graph;
    int32_t *last; /* by value: the last node of the passes that goes on from it; -1: none
                    */
} gx_pass_path;

/* `home` as in gx_plan, of which a view reads nothing; NULL: there are no views. The path
 * is empty after a failure. */
gx_status gx_pass_path_find(const gx_graph *graph, const int32_t *home,
                            gx_pass_path *path, gx_error *err) GX_MUST_CHECK;
void gx_pass_path_free(gx_pass_path *path);

/* True where nodes [first, first + n), as one unit, are backward and the pass does not go
 * on from them: weight gradients and sums of such, a loss behind its derivative. `home`
 * as it was when the path was found. */
bool gx_pass_path_is_beside(const gx_pass_path *path, const int32_t *home, int32_t first,
                            int32_t n);

#endif
