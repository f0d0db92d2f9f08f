/* A program on the GPU beside the same graph as a test_walk, which is its reference. */
#ifndef GX_SUPPORT_GPU_WALK_H
#define GX_SUPPORT_GPU_WALK_H

#include "support_gpu.h"
#include "support_walk.h"

/* Random numbers in [-most, most) that the 16-bit type of the graph's precision has. */
void gpu_fill(test_walk *walk, const char *name, double most, test_random *random);

/* Gives the program what the reference has, times a factor. */
void gpu_write_input(gpu_program *program, const test_walk *truth, const char *name,
                     double factor);

/* As doubles; the caller frees. */
double *gpu_read_output(gpu_program *program, const test_walk *truth, const char *name);

#endif
