/* The walk on the CPU: values, rounding, what failed, and the reuse of memory. */
#include <math.h>
#include <string.h>

#include "exec_model.h"
#include "support.h"

/* Each hidden tensor is read by the layer above and again by the backward pass. */
static const char deep[] =
    "gexec: 1\n"
    "name: deep\n"
    "dims: {batch: 6, width: 5, layers: 8}\n"
    "precision: f32\n"
    "inputs:\n"
    "  x: {shape: [batch, width], init: normal}\n"
    "  t: {shape: [batch, width], init: normal}\n"
    "ops:\n"
    "  - repeat:\n"
    "      name: blk\n"
    "      count: layers\n"
    "      carry: {h: x}\n"
    "      params:\n"
    "        w: {shape: [width, width], init: he_normal}\n"
    "        b: {shape: [width], init: {uniform: [-0.1, 0.1]}}\n"
    "      ops:\n"
    "        - {op: gemm, name: fc, a: h, b: w, epilogue: {bias: b, "
    "act: gelu_tanh}}\n"
    "        - {op: add, a: h, b: fc, out: h}\n"
    "  - {op: mse, name: loss, x: h, target: t}\n"
    "backward: loss\n"
    "optimizer: {adamw: {lr: 1.0e-2}}\n"
    "outputs: [loss, h]\n";

static gx_graph *parse(const char *text)
{
    gx_graph *graph;
    gx_error err = { 0 };

    assert_ok(
        gx_graph_parse(text, strlen(text), "model.yaml", NULL, NULL, &graph, NULL, &err),
        &err);
    return graph;
}

typedef struct program {
    gx_graph *graph;
    gx_state *state;
    gx_plan *plan;
    gx_exec *exec;
} program;

static program start(const char *text, uint64_t seed, bool exact, bool reuse_off)
{
    const gx_state_options state_options = { .device = GX_CPU,
                                             .seed = seed,
                                             .exact = exact };
    const gx_plan_options plan_options = { .device = GX_CPU, .reuse_off = reuse_off };
    program p = { .graph = parse(text) };
    const gx_graph *list[] = { p.graph };
    gx_error err = { 0 };

    assert_ok(gx_state_create(list, 1, &state_options, &p.state, &err), &err);
    assert_ok(gx_plan_create(p.graph, &plan_options, &p.plan, &err), &err);
    assert_ok(gx_exec_create(p.plan, p.state, NULL, &p.exec, &err), &err);
    return p;
}

static void stop(program *p)
{
    gx_exec_free(p->exec);
    gx_plan_free(p->plan);
    gx_state_free(p->state);
    gx_graph_free(p->graph);
}

static void run(program *p, int64_t n_steps)
{
    gx_error err = { 0 };

    assert_ok(gx_exec_run(p->exec, GX_MODE_CPU, n_steps, &err), &err);
}

static double read_scalar(program *p, const char *name)
{
    double value = NAN;
    gx_tensor host = { .dtype = GX_F64, .data = &value };
    gx_error err = { 0 };

    assert_ok(gx_exec_read(p->exec, name, &host, &err), &err);
    return value;
}

static void memory_reuse_does_not_change_a_bit(void **state)
{
    const uint64_t seed = test_seed();
    program reusing = start(deep, seed, false, false);
    program plain = start(deep, seed, false, true);

    (void)state;
    assert_true(gx_plan_info_get(reusing.plan).arena_bytes <
                gx_plan_info_get(plain.plan).arena_bytes);
    for (int step = 0; step < 5; step++) {
        run(&reusing, 1);
        run(&plain, 1);
        assert_int_equal(reusing.state->block_bytes, plain.state->block_bytes);
        assert_memory_equal(reusing.state->block, plain.state->block,
                            plain.state->block_bytes);
        assert_true(read_scalar(&reusing, "loss") == read_scalar(&plain, "loss"));
    }
    assert_true(isfinite(read_scalar(&plain, "loss")));
    stop(&plain);
    stop(&reusing);
}

static void training_lowers_the_loss(void **state)
{
    program p = start(deep, test_seed(), false, false);
    double first, last;

    (void)state;
    run(&p, 1);
    first = read_scalar(&p, "loss");
    run(&p, 60);
    last = read_scalar(&p, "loss");
    assert_true(last < 0.7 * first);
    stop(&p);
}

static void results_are_rounded_to_their_types_unless_exact(void **state)
{
    static const char text[] = "gexec: 1\nname: r\nprecision: bf16\n"
                               "inputs: {x: {shape: [4, 8], init: normal}}\n"
                               "params: {w: {shape: [8, 4], init: normal}}\n"
                               "ops: [{op: gemm, name: y, a: x, b: w}]\noutputs: [y]\n";
    double y[2][16];
    int n_differ = 0;

    (void)state;
    for (int exact = 0; exact < 2; exact++) {
        program p = start(text, 5, exact, false);
        gx_tensor host = {
            .dtype = GX_F64, .rank = 2, .dim = { 4, 4 }, .data = y[exact]
        };
        gx_error err = { 0 };

        run(&p, 1);
        assert_ok(gx_exec_read(p.exec, "y", &host, &err), &err);
        stop(&p);
    }
    for (int i = 0; i < 16; i++) {
        assert_true(y[0][i] == gx_round_to(GX_BF16, y[0][i]));
        n_differ += !(y[1][i] == gx_round_to(GX_BF16, y[1][i]));
    }
    assert_true(n_differ > 8);
}

static gx_status refuse(const gx_call *call, gx_error *err)
{
    (void)call;
    return GX_FAIL(err, GX_ERR_DATA, "it will not do");
}

static void a_failure_names_its_op_once_and_ends_the_step(void **state)
{
    program p = start(deep, 1, false, false);
    gx_op broken = *p.exec->calls[1].op;
    gx_error err = { 0 };

    (void)state;
    broken.reference = refuse;
    p.exec->calls[1].op = &broken;
    assert_int_equal(gx_walk_cpu(p.exec, &err), GX_ERR_DATA);
    assert_has(err.message, p.exec->calls[1].name);
    assert_has(err.message, ": it will not do");
    assert_null(
        strstr(strstr(err.message, p.exec->calls[1].name) + 1, p.exec->calls[1].name));
    stop(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_reuse_does_not_change_a_bit),
        cmocka_unit_test(training_lowers_the_loss),
        cmocka_unit_test(results_are_rounded_to_their_types_unless_exact),
        cmocka_unit_test(a_failure_names_its_op_once_and_ends_the_step),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
