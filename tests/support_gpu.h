/* Small models trained on a GPU, as the tests with the label gpu want them. */
#ifndef GX_SUPPORT_GPU_H
#define GX_SUPPORT_GPU_H

#include "support.h"

/* Skips the program where there is no GPU; GX_REQUIRE_GPU makes that a failure. */
void gpu_start(void);

typedef struct gpu_program {
    gx_graph *graph;
    gx_plan *plan;
    gx_state *state;
    gx_exec *exec;
} gpu_program;

typedef struct gpu_options {
    int64_t batch, inner, outer; /* 0: 16, 33, 7 */
    int n_layers;                /* 0: 2 */
    int lanes;                   /* 0: 1 */
    int steps_per_launch;
    bool step_loop;
    const char *force;      /* an alternative; NULL: none */
    gx_choice programmatic; /* GX_AUTO: off */
    gx_choice skip_if;      /* GX_AUTO: off, as nothing is measured */
    const char *folder;     /* where the model's data are; NULL: here */
    void *stream;
    uint64_t seed;
    gx_kind kind;
} gpu_options;

/* A perceptron [batch, inner] -> outer -> ... -> outer that trains on labels with AdamW;
 * nothing is measured, so that two of the same options have the same plan. The inputs are
 * written. */
void gpu_open(gpu_program *program, const gpu_options *options);
void gpu_close(gpu_program *program);
/* As gpu_open, from a text. Inputs are left to the caller. */
void gpu_open_text(gpu_program *program, const char *text, const gpu_options *options);
/* The same text on the CPU, to compare with. */
void gpu_open_cpu(gpu_program *program, const char *text);

void gpu_run(gpu_program *program, gx_mode mode, int64_t n_steps);
/* A hash over the bits of every parameter and state. Waits. */
uint64_t gpu_bits(gpu_program *program);
int32_t gpu_step_count(gpu_program *program);
double gpu_scalar(gpu_program *program, const char *name);

#endif
