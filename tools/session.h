/* A model as the command line holds it: its programs, one state, and execs made when they
 * are first needed. */
#ifndef GX_SESSION_H
#define GX_SESSION_H

#include <gexec/gexec.h>

#include "args.h"
#include "text_format.h"

/* The programs of a model. A short one has as many rows as the last batch of an epoch. */
typedef enum gx_program {
    GX_PROGRAM_TRAIN,
    GX_PROGRAM_TRAIN_SHORT,
    GX_PROGRAM_EVAL,
    GX_PROGRAM_EVAL_SHORT,
    GX_N_PROGRAMS
} gx_program;

/* What a command wants of a model beyond its training graph. */
typedef struct gx_session_needs {
    bool data_programs; /* the short batch and evaluation, as far as the data ask for them
                         */
    bool keep_gradients;
    bool exact;  /* CPU: doubles, not rounded */
    bool stream; /* the data stream, as in another session */
    bool no_pin; /* --plan is for another session */
    bool quiet;  /* what is wrong with the model is in the error alone, not printed */
} gx_session_needs;

typedef struct gx_session {
    const gx_args *args;
    gx_session_needs needs;
    int device;
    gx_mode mode;
    gx_device_info device_info;
    gx_graph *graph[GX_N_PROGRAMS]; /* NULL: the model has no such program */
    int64_t rows[GX_N_PROGRAMS];    /* rows of its batch; 0 without data */
    gx_plan *plan[GX_N_PROGRAMS];
    gx_exec *exec[GX_N_PROGRAMS][2]; /* with one step a launch, and with several */
    gx_state *state;
    gx_data_info data;
    bool streams;     /* the data stream */
    bool no_room;     /* they do since they do not fit on the device */
    bool is_expanded; /* the model is one program, written out */
    /* In graph mode; else 1. Where the flags leave it to measuring it is 1 until the plan
     * of training is made. */
    int64_t steps_per_launch;
    bool step_loop;    /* they are a loop on the device */
    gx_tensor *inputs; /* of args->inputs */
    double state_s;    /* seconds that making the state took; < 0: not made */
} gx_session;

/* Which device and mode the flags ask for. `needs_gpu`: the command makes no sense
 * without one. Where the device is not there, what is wrong with the model is told in its
 * place.
 */
gx_status gx_device_choose(const gx_args *args, bool needs_gpu, int *device,
                           gx_mode *mode, gx_error *err) GX_MUST_CHECK;
/* The same, which leaves the model alone. */
gx_status gx_device_choose_bare(const gx_args *args, bool needs_gpu, int *device,
                                gx_mode *mode, gx_error *err) GX_MUST_CHECK;

/* A flag says that there has to be one. */
bool gx_asks_for_gpu(const gx_args *args);

/* Loads the model and the files of --in as a session does and keeps nothing: what is
 * wrong with them. `quiet`: in the error alone, else printed as by gx_session_load. */
gx_status gx_session_try(const gx_args *args, bool quiet, gx_error *err) GX_MUST_CHECK;

/* Loads the graphs and the files of --in, and checks their names. Diagnostics of the
 * model are printed here, and err->message is empty then. Close in any case. */
gx_status gx_session_load(gx_session *session, const gx_args *args,
                          const gx_session_needs *needs, int device, gx_mode mode,
                          gx_error *err) GX_MUST_CHECK;
/* Makes the state and writes the parameters of --in to it. */
gx_status gx_session_open(gx_session *session, gx_error *err) GX_MUST_CHECK;
void gx_session_close(gx_session *session);

/* The exec of a program, made at the first call: plan, exec, inputs of --in.
 * `unrolled`: with the steps a launch that the flags ask for, else one a launch. */
gx_status gx_session_exec(gx_session *session, gx_program program, bool unrolled,
                          gx_exec **exec, gx_error *err) GX_MUST_CHECK;

/* The options of a plan that the flags ask for. */
gx_plan_options gx_session_plan_options(const gx_session *session);
/* Writes the inputs of --in to an exec of `graph`. */
gx_status gx_session_write_inputs(const gx_session *session, const gx_graph *graph,
                                  gx_exec *exec, gx_error *err) GX_MUST_CHECK;

/* Variables of the environment that change what CUDA does; ends with NULL. */
extern const char *const gx_cuda_variables[];

/* Writes `host` to a persistent tensor; integers may stand for reals. */
gx_status gx_session_write_state(gx_session *session, const gx_value_info *value,
                                 const gx_tensor *host, gx_error *err) GX_MUST_CHECK;
/* What stands behind the name of a plan file for each program: "", ".short", ... */
const char *gx_program_ending(gx_program program);
/* True when the graph trains, and value i is a trainable parameter that nothing updates.
 */
bool gx_is_left_out(const gx_graph *graph, size_t i);

/* The type that a value is held in: its own, or double in exact programs. */
gx_dtype gx_session_dtype(const gx_session *session, const gx_value_info *value);

/* True when a step changes parameters or state of the model's own. */
bool gx_graph_trains(const gx_graph *graph);
/* "cpu", "eager", "graph". */
const char *gx_mode_name(gx_mode mode);
/* "NVIDIA H100 (GPU 0)", "CPU". */
gx_words gx_session_place(const gx_session *session);
/* Stands for what a plan chose, so that two results can be told to share it: 16 digits.
 */
gx_words gx_plan_mark(const gx_plan *plan);

#endif
