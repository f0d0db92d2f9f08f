/* Traces of launches that are made record by record, for the tests of predictions. */
#ifndef TEST_PREDICT_MADE_H
#define TEST_PREDICT_MADE_H

#include <math.h>
#include <stdio.h>

#include <gexec/predict.h>

#include "predict_model.h"
#include "support_trace_made.h"

/* Costs that are easy to add up. */
static inline gx_predict_costs round_costs(void)
{
    gx_predict_costs costs = gx_predict_costs_default();

    costs.node_ns = 1000;
    costs.programmatic_ns = 600;
    costs.trace_ns = 100;
    costs.trace_error_ns = 0;
    costs.step_ns = 2000;
    costs.step_error_ns = 0;
    costs.copy_ns = costs.copy_error_ns = 0;
    costs.join_ns = costs.join_error_ns = 0;
    costs.beside_ns = costs.beside_error_ns = 0;
    costs.engine_ns = costs.engine_error_ns = 0;
    costs.host_ns = 0;
    costs.n_sm = 100;
    return costs;
}

/* Writes a trace of launches one after the other, on thread 10 unless told. */
typedef struct writer {
    gx_trace *trace;
    int64_t now, correlation, thread;
} writer;

static inline void call(writer *w, const char *name)
{
    const gx_trace_call one = { .start = w->now,
                                .end = w->now + 10,
                                .process = 1,
                                .thread = w->thread,
                                .correlation = ++w->correlation,
                                .name = text(w->trace, name) };

    assert_ok(gx_trace_add_call(w->trace, &one, &err), &err);
    w->now += 20;
}

static inline gx_trace_activity launched(writer *w, const char *name, int64_t stream,
                                         int64_t delay, int64_t ns)
{
    gx_trace_activity activity;

    call(w, "cudaLaunchKernel_v7000");
    activity = kernel(w->now + delay, w->now + delay + ns, w->correlation);
    activity.name = text(w->trace, name);
    activity.stream = stream;
    activity.grid[0] = 1;
    activity.grid[1] = activity.grid[2] = 1;
    return activity;
}

/* The host waits until the kernel has ended before it goes on. */
static inline void launch(writer *w, const char *name, int64_t stream, int64_t ns)
{
    const gx_trace_activity activity = launched(w, name, stream, 100, ns);

    assert_ok(gx_trace_add_activity(w->trace, &activity, &err), &err);
    w->now += 200 + ns;
}

/* The kernel runs while the host goes on. */
static inline void launch_beside(writer *w, const char *name, int64_t stream, int64_t ns)
{
    const gx_trace_activity activity = launched(w, name, stream, 100, ns);

    assert_ok(gx_trace_add_activity(w->trace, &activity, &err), &err);
}

static inline gx_prediction *predict(gx_trace *trace, const gx_trace_options *options)
{
    const gx_predict_costs costs = round_costs();
    gx_prediction *prediction;

    assert_ok(gx_trace_finish(trace, &err), &err);
    assert_ok(gx_prediction_create(trace, options, &costs, &prediction, &err), &err);
    return prediction;
}

static inline void assert_near(double value, double wanted)
{
    if (fabs(value - wanted) > 1e-6 * fabs(wanted) + 1e-9)
        fail_msg("%.9g, expected %.9g", value, wanted);
}

static inline const gx_obstacle *find_obstacle(const gx_prediction *prediction,
                                               gx_obstacle_kind kind)
{
    for (size_t i = 0; i < prediction->n_obstacles; i++)
        if (prediction->obstacle[i].kind == kind)
            return &prediction->obstacle[i];
    return NULL;
}

/* Three kernels, of which the second is shorter than a node can be. */
static inline void step(writer *w)
{
    launch(w, "a", 7, 3100);
    launch(w, "b", 7, 500);
    launch(w, "c", 7, 2100);
}

static const double step_ns = 3000 + 1000 + 2000 + 2000;

#define MADE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

#endif
