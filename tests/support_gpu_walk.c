#include "support_gpu_walk.h"

#include <stdlib.h>
#include <string.h>

void gpu_fill(test_walk *walk, const char *name, double most, test_random *random)
{
    const gx_dtype dtype = walk->graph->precision == GX_PRECISION_BF16 ? GX_BF16 : GX_F16;
    double *x = test_walk_tensor(walk, name);

    for (int64_t i = 0; i < test_walk_count(walk, name); i++)
        x[i] = gx_round_to(dtype, test_random_real(random, -most, most));
}

void gpu_write_input(gpu_program *program, const test_walk *truth, const char *name,
                     double factor)
{
    const int32_t id = gx_graph_value_id(truth->graph, name);
    const int64_t n = test_walk_count(truth, name);
    gx_tensor host = { .dtype = GX_F64, .rank = truth->graph->values[id].rank };
    double *x = malloc((size_t)n * sizeof *x);
    gx_error err;

    assert_non_null(x);
    memcpy(host.dim, truth->graph->values[id].dim, sizeof host.dim);
    for (int64_t i = 0; i < n; i++)
        x[i] = factor * truth->data[id][i];
    host.data = x;
    assert_ok(gx_exec_write(program->exec, name, &host, &err), &err);
    free(x);
}

double *gpu_read_output(gpu_program *program, const test_walk *truth, const char *name)
{
    const int32_t id = gx_graph_value_id(truth->graph, name);
    gx_tensor host = { .dtype = GX_F64, .rank = truth->graph->values[id].rank };
    gx_error err;

    memcpy(host.dim, truth->graph->values[id].dim, sizeof host.dim);
    host.data = malloc((size_t)test_walk_count(truth, name) * sizeof(double));
    assert_non_null(host.data);
    assert_ok(gx_exec_read(program->exec, name, &host, &err), &err);
    return host.data;
}
