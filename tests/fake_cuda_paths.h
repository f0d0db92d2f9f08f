/* Paths through the library on the simulated CUDA, on which each call is made to fail. */
#ifndef FAKE_CUDA_PATHS_H
#define FAKE_CUDA_PATHS_H

#include "support.h"

#include "exec_model.h"
#include "fake_cuda.h"

/* A perceptron of two layers that trains on labels with AdamW; inputs x [4, 3] and y [4].
 */
typedef struct path_program {
    gx_graph *graph;
    gx_plan *plan;
    gx_state *state;
    gx_exec *exec; /* NULL until path_make_exec */
} path_program;

/* Graph, plan (for so many lanes, nothing measured) and state on GPU 0. */
void path_open(path_program *program, int lanes);
/* The same with a dynamic loss scale, whose updates are in a branch where the plan has
 * `skip_if`; `programmatic`: edges wherever layout allows them. */
void path_open_scaled(path_program *program, int lanes, gx_choice skip_if,
                      bool programmatic);
void path_make_exec(path_program *program);
void path_write_inputs(path_program *program);
void path_close(path_program *program);

gx_status path_try_write_inputs(gx_exec *exec, gx_error *err);
/* Makes a program, replays two launches and waits; leaves fake_quiet on. */
gx_status path_try_replays(const gx_exec_options *options, path_program *program,
                           gx_error *err);

/* Runs the path once to count its calls, and then, for each single call, once with that
 * call failing: the status is an error whose message names the call, all that the path
 * made is freed, and the path runs well right afterwards. A path turns fake_quiet on
 * before it calls what returns nothing. Returns how many calls the path makes; with
 * GX_TEST_SHORT three of each function fail, as in path_fail_some_calls. */
typedef gx_status path_run(void *user, gx_error *err);
long path_fail_each_call(path_run *run, void *user);
/* The same for a long path: of each function at most `most` calls, the first and the last
 * among them. Returns how many calls were made to fail. */
long path_fail_some_calls(path_run *run, void *user, long most);

/* With the real calls behind: skips the program where there is no GPU. */
void path_start(bool real);

#endif
