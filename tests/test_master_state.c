/* Masters and the scale of the loss as state of a program on the CPU: what is written,
 * saved, and gone on with. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exec_model.h"
#include "support.h"

enum { N = 6 };

static const char model[] =
    "gexec: 1\nname: m\nprecision: f16\n"
    "inputs: {t: {shape: [6], dtype: f32, init: {constant: 0.5}}}\n"
    "params: {w: {shape: [6], init: normal}}\n"
    "ops: [{op: mse, name: loss, x: w, target: t}]\nbackward: loss\n"
    "optimizer: {adamw: {lr: 0.01}, master: f32, accumulate: 2, loss_scale: "
    "{dynamic: {initial: 65536, growth_interval: 3}}}\n"
    "outputs: [loss]\n";

typedef struct program {
    gx_graph *graph;
    gx_plan *plan;
    gx_state *state;
    gx_exec *exec;
} program;

static program start(bool exact)
{
    const gx_plan_options plan = { .device = GX_CPU };
    const gx_state_options options = { .device = GX_CPU, .seed = 3, .exact = exact };
    program p;
    gx_error err = { 0 };

    assert_ok(
        gx_graph_parse(model, strlen(model), "m.yaml", ".", NULL, &p.graph, NULL, &err),
        &err);
    const gx_graph *list[] = { p.graph };

    assert_ok(gx_plan_create(p.graph, &plan, &p.plan, &err), &err);
    assert_ok(gx_state_create(list, 1, &options, &p.state, &err), &err);
    assert_ok(gx_exec_create(p.plan, p.state, NULL, &p.exec, &err), &err);
    return p;
}

static void stop(program *p)
{
    gx_exec_free(p->exec);
    gx_state_free(p->state);
    gx_plan_free(p->plan);
    gx_graph_free(p->graph);
}

static gx_tensor tensor(gx_dtype dtype, void *data)
{
    return (gx_tensor){ .dtype = dtype, .rank = 1, .dim = { N }, .data = data };
}

static void put(program *p, const char *name, double *values)
{
    const gx_tensor host = tensor(GX_F64, values);
    gx_error err = { 0 };

    assert_ok(gx_state_write(p->state, name, &host, &err), &err);
}

static void get(program *p, const char *name, double *values)
{
    gx_tensor host = tensor(GX_F64, values);
    gx_error err = { 0 };

    assert_ok(gx_state_read(p->state, name, &host, &err), &err);
}

static double cell(program *p, const char *name, int rank)
{
    double value;
    gx_tensor host = { .dtype = GX_F64, .rank = rank, .dim = { 1 }, .data = &value };
    gx_error err = { 0 };

    assert_ok(gx_state_read(p->state, name, &host, &err), &err);
    return value;
}

static void run(program *p, int steps)
{
    gx_error err = { 0 };

    assert_ok(gx_exec_run(p->exec, GX_MODE_CPU, steps, &err), &err);
}

static void a_parameter_and_its_master_are_written_together(void **unused)
{
    double values[N] = { 1.0 / 3, -2.0 / 3, 1e-3, 5, 100.0 / 7, 0 };
    double w[N], master[N];

    (void)unused;
    for (int exact = 0; exact < 2; exact++) {
        program p = start(exact);

        for (int by_master = 0; by_master < 2; by_master++) {
            values[0] += 1;
            put(&p, by_master ? "w.master" : "w", values);
            get(&p, "w", w);
            get(&p, "w.master", master);
            for (int i = 0; i < N; i++) {
                assert_true(master[i] ==
                            (exact ? values[i] : gx_round_to(GX_F32, values[i])));
                assert_true(w[i] == (exact ? values[i] : gx_round_to(GX_F16, values[i])));
            }
        }
        stop(&p);
    }
}

/* As it is for a check against exact doubles: both start from the rounded parameter. */
static void an_exact_state_takes_up_a_rounded_parameter_beside_its_master(void **unused)
{
    double master[N] = { 1.0 / 3, -2.0 / 3, 1e-3, 5, 100.0 / 7, 0 };
    double w[N], found[N];
    program p = start(true);

    (void)unused;
    for (int i = 0; i < N; i++) {
        master[i] = gx_round_to(GX_F32, master[i]);
        w[i] = gx_round_to(GX_F16, master[i]);
    }
    put(&p, "w", w);
    put(&p, "w.master", master);
    get(&p, "w", found);
    assert_memory_equal(w, found, sizeof w);
    get(&p, "w.master", found);
    assert_memory_equal(master, found, sizeof master);
    stop(&p);
}

static void nothing_is_rounded_in_exact_steps(void **unused)
{
    program p = start(true);
    double w[N], master[N];
    int n_wide = 0;

    (void)unused;
    run(&p, 4);
    get(&p, "w", w);
    get(&p, "w.master", master);
    assert_memory_equal(w, master, sizeof w);
    for (int i = 0; i < N; i++)
        n_wide += w[i] < gx_round_to(GX_F32, w[i]) || w[i] > gx_round_to(GX_F32, w[i]);
    assert_true(n_wide > N / 2);
    stop(&p);
}

static void halves_are_read_and_written_as_they_are(void **unused)
{
    uint16_t in[N] = { 0x3c00, 0x0001, 0x8000, 0x7bff, 0xb555, 0x03ff }, out[N];
    const gx_tensor from = tensor(GX_F16, in);
    gx_tensor to = tensor(GX_F16, out);
    program p = start(false);
    double master[N];
    gx_error err = { 0 };

    (void)unused;
    assert_ok(gx_state_write(p.state, "w", &from, &err), &err);
    assert_ok(gx_state_read(p.state, "w", &to, &err), &err);
    assert_memory_equal(in, out, sizeof in);
    get(&p, "w.master", master);
    for (int i = 0; i < N; i++)
        assert_true(master[i] == (double)gx_f16_to_float(in[i]));
    stop(&p);
}

/* Overflows at the third step: the update of steps 3 and 4 is skipped (G15). */
static void an_overflow_is_skipped_and_the_run_goes_on(void **unused)
{
    program p = start(false);
    double before[4][N], after[4][N], large[N], usual[N];
    static const char *const names[] = { "w", "w.master", "w.m", "w.v" };
    gx_error err = { 0 };

    (void)unused;
    for (int i = 0; i < N; i++) {
        large[i] = 1000;
        usual[i] = 0.5;
    }
    run(&p, 2);
    for (int k = 0; k < 4; k++)
        get(&p, names[k], before[k]);
    const gx_tensor overflow = tensor(GX_F64, large), back = tensor(GX_F64, usual);

    assert_ok(gx_exec_write(p.exec, "t", &overflow, &err), &err);
    run(&p, 1);
    assert_ok(gx_exec_write(p.exec, "t", &back, &err), &err);
    assert_true(cell(&p, "gexec.skipped", 1) == 0);
    run(&p, 1);
    for (int k = 0; k < 4; k++) {
        get(&p, names[k], after[k]);
        assert_memory_equal(before[k], after[k], sizeof before[k]);
    }
    assert_true(cell(&p, "gexec.skipped", 1) == 1);
    assert_true(cell(&p, "gexec.scale", 0) == 32768);
    assert_true(cell(&p, "gexec.growth_tracker", 1) == 0);
    assert_true(cell(&p, "gexec.step", 1) == 4);
    run(&p, 2);
    get(&p, "w.master", after[1]);
    assert_memory_not_equal(before[1], after[1], sizeof before[1]);
    assert_true(cell(&p, "gexec.growth_tracker", 1) == 1);
    stop(&p);
}

/* Every tensor of one state to another, in the order of the graph, as they are saved. */
static void carry_over(program *from, program *to)
{
    for (size_t i = 0; i < gx_graph_value_count(from->graph); i++) {
        const gx_value_info value = gx_graph_value(from->graph, i);
        gx_tensor host = { .dtype = GX_F64, .rank = value.rank };
        gx_error err = { 0 };

        if (value.kind != GX_VALUE_PARAM && value.kind != GX_VALUE_STATE)
            continue;
        memcpy(host.dim, value.dim, sizeof host.dim);
        host.data = malloc((size_t)gx_count(&host) * sizeof(double));
        assert_non_null(host.data);
        assert_ok(gx_state_read(from->state, value.name, &host, &err), &err);
        assert_ok(gx_state_write(to->state, value.name, &host, &err), &err);
        free(host.data);
    }
}

static void compare_stopped(int first, bool exact)
{
    static const char *const names[] = { "w", "w.master", "w.m", "w.v", "w.sum" };
    program whole = start(exact), part = start(exact), rest = start(exact);
    double a[N], b[N];

    run(&whole, 20);
    run(&part, first);
    carry_over(&part, &rest);
    run(&rest, 20 - first);
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
        get(&whole, names[k], a);
        get(&rest, names[k], b);
        assert_memory_equal(a, b, sizeof a);
    }
    assert_true(cell(&whole, "gexec.scale", 0) == cell(&rest, "gexec.scale", 0));
    stop(&rest);
    stop(&part);
    stop(&whole);
}

static void a_run_that_was_stopped_goes_on(void **unused)
{
    (void)unused;
    for (int first = 0; first < 20; first++) {
        compare_stopped(first, false);
        compare_stopped(first, true);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_parameter_and_its_master_are_written_together),
        cmocka_unit_test(an_exact_state_takes_up_a_rounded_parameter_beside_its_master),
        cmocka_unit_test(nothing_is_rounded_in_exact_steps),
        cmocka_unit_test(halves_are_read_and_written_as_they_are),
        cmocka_unit_test(an_overflow_is_skipped_and_the_run_goes_on),
        cmocka_unit_test(a_run_that_was_stopped_goes_on),
    };

    return cmocka_run_group_tests_name("master_state", tests, NULL, NULL);
}
