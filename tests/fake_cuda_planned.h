/* Graphs planned on the simulated CUDA with an alternative forced, and run. */
#ifndef FAKE_CUDA_PLANNED_H
#define FAKE_CUDA_PLANNED_H

#include "fake_cuda_paths.h"
#include "plan.h"

/* fc1 and fc2 with biases over x [40, 8], relu between them; mse, sgd, bf16. */
extern const char planned_layers[];

typedef struct planned {
    gx_plan *plan;
    gx_state *state;
} planned;

/* On GPU 0, nothing measured; `force` may be NULL. The graph stays the caller's. */
planned planned_open(const gx_graph *graph, const char *force, int lanes);
void planned_close(planned *of);

/* A path_run of a `planned`: makes a program, runs a step eagerly and two by replay, and
 * waits. */
gx_status planned_run(void *user, gx_error *err);

/* Told of each plan before it runs. */
typedef void planned_look(const gx_plan *plan, void *user);

/* Plans the model of a file, which must come out with the data gradients first, and runs
 * it. */
void planned_data_first(const char *path, const char *force, int lanes,
                        planned_look *look, void *user);

/* Plans every sample of the rows in each of the precisions (both end with NULL) and runs
 * it; a failure fails the test. `look` may be NULL. Returns how many units were forced.
 */
int planned_samples(const char *const *rows, const char *const *precisions,
                    const char *force, planned_look *look, void *user);

/* What a unit's nodes make, its kernel may write while it still reads and writes all the
 * others: fails the test where two of these values lie in the same place. */
void planned_check_memory(const gx_plan *plan, const gx_unit *unit);

#endif
