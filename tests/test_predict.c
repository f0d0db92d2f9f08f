/* Predictions from traces that are made record by record. */
#include <math.h>
#include <stdio.h>

#include <gexec/predict.h>

#include "predict_model.h"
#include "support_trace_made.h"

/* Costs that are easy to add up. */
static gx_predict_costs round_costs(void)
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
    costs.host_ns = 0;
    costs.n_sm = 100;
    return costs;
}

/* Writes a trace of launches one after the other, on thread 10 unless told. */
typedef struct writer {
    gx_trace *trace;
    int64_t now, correlation, thread;
} writer;

static void call(writer *w, const char *name)
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

static gx_trace_activity launched(writer *w, const char *name, int64_t stream,
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
static void launch(writer *w, const char *name, int64_t stream, int64_t ns)
{
    const gx_trace_activity activity = launched(w, name, stream, 100, ns);

    assert_ok(gx_trace_add_activity(w->trace, &activity, &err), &err);
    w->now += 200 + ns;
}

/* The kernel runs while the host goes on. */
static void launch_beside(writer *w, const char *name, int64_t stream, int64_t ns)
{
    const gx_trace_activity activity = launched(w, name, stream, 100, ns);

    assert_ok(gx_trace_add_activity(w->trace, &activity, &err), &err);
}

static gx_prediction *predict(gx_trace *trace, const gx_trace_options *options)
{
    const gx_predict_costs costs = round_costs();
    gx_prediction *prediction;

    assert_ok(gx_trace_finish(trace, &err), &err);
    assert_ok(gx_prediction_create(trace, options, &costs, &prediction, &err), &err);
    return prediction;
}

static void assert_near(double value, double wanted)
{
    if (fabs(value - wanted) > 1e-6 * fabs(wanted) + 1e-9)
        fail_msg("%.9g, expected %.9g", value, wanted);
}

static const gx_obstacle *find_obstacle(const gx_prediction *prediction,
                                        gx_obstacle_kind kind)
{
    for (size_t i = 0; i < prediction->n_obstacles; i++)
        if (prediction->obstacle[i].kind == kind)
            return &prediction->obstacle[i];
    return NULL;
}

/* Three kernels, of which the second is shorter than a node can be. */
static void step(writer *w)
{
    launch(w, "a", 7, 3100);
    launch(w, "b", 7, 500);
    launch(w, "c", 7, 2100);
}

static const double step_ns = 3000 + 1000 + 2000 + 2000;

static void a_sequence_that_repeats_is_the_step(void **state)
{
    writer w = { *state, 1000, 0, 10 };
    gx_prediction *prediction;

    for (int i = 0; i < 6; i++) {
        step(&w);
        w.now += 5000;
    }
    prediction = predict(*state, NULL);
    assert_int_equal(prediction->by, GX_PREDICT_BY_SEQUENCE);
    assert_int_equal(prediction->n_steps, 6);
    assert_int_equal(prediction->n_same, 6);
    assert_int_equal(prediction->n_nodes, 3);
    assert_int_equal(prediction->n_streams, 1);
    assert_near(prediction->step_ns, step_ns);
    assert_near(prediction->replay_ns, step_ns - 2000);
    assert_near(prediction->naive_ns, 3100 + 500 + 2100);
    assert_near(prediction->eager_ns, 5700 + 3 * 220 + 5000);
    assert_int_equal(prediction->n_obstacles, 0);
    assert_near(prediction->payback_steps,
                prediction->build_ns / (prediction->eager_ns - step_ns));
    gx_prediction_free(prediction);
}

static void warm_up_and_tail_are_no_steps(void **state)
{
    writer w = { *state, 1000, 0, 10 };
    gx_prediction *prediction;

    launch(&w, "load", 7, 9000);
    launch(&w, "a", 7, 90000);
    launch(&w, "tune", 7, 800);
    launch(&w, "c", 7, 70000);
    for (int i = 0; i < 5; i++) {
        w.now += 5000;
        step(&w);
    }
    w.now += 5000;
    launch(&w, "a", 7, 3100);
    launch(&w, "save", 7, 3100);
    prediction = predict(*state, NULL);
    assert_int_equal(prediction->by, GX_PREDICT_BY_SEQUENCE);
    assert_int_equal(prediction->n_steps, 5);
    assert_int_equal(prediction->n_nodes, 3);
    assert_near(prediction->step_ns, step_ns);
    gx_prediction_free(prediction);
}

static void ranges_are_the_step_where_there_are_any(void **state)
{
    writer w = { *state, 1000, 0, 10 };
    gx_prediction *prediction;

    for (int i = 0; i < 3; i++) {
        const int64_t start = w.now;

        step(&w);
        step(&w);
        add_range(*state, GX_TRACE_PUSH_POP, "step", start, w.now, 10);
        w.now += 100;
    }
    prediction = predict(*state, NULL);
    assert_int_equal(prediction->by, GX_PREDICT_BY_RANGE);
    assert_string_equal(gx_trace_text_at(*state, prediction->range_name), "step");
    assert_int_equal(prediction->n_steps, 3);
    assert_int_equal(prediction->n_nodes, 6);
    assert_near(prediction->step_ns, 2 * step_ns - 2000);
    gx_prediction_free(prediction);
}

static void what_another_thread_launches_meanwhile_belongs_to_the_step(void **state)
{
    writer w = { *state, 1000, 0, 10 };
    gx_prediction *prediction;

    for (int i = 0; i < 3; i++) {
        const int64_t start = w.now;

        launch(&w, "forward", 7, 1100);
        w.thread = 11;
        launch(&w, "backward", 7, 2100);
        w.thread = 10;
        add_range(*state, GX_TRACE_PUSH_POP, "ProfilerStep#3", start, w.now, 10);
        w.now += 10;
        launch(&w, "outside", 7, 50000);
    }
    prediction = predict(*state, NULL);
    assert_int_equal(prediction->by, GX_PREDICT_BY_RANGE);
    assert_int_equal(prediction->n_nodes, 2);
    assert_near(prediction->replay_ns, 1000 + 2000);
    gx_prediction_free(prediction);
}

/* a, then b beside c, then d behind both. */
static void step_of_two_streams(writer *w)
{
    launch(w, "a", 7, 1100);
    call(w, "cudaEventRecord_v3020");
    call(w, "cudaStreamWaitEvent_v3020");
    launch_beside(w, "b", 8, 5100);
    launch_beside(w, "c", 7, 3100);
    call(w, "cudaEventRecord_v3020");
    call(w, "cudaStreamWaitEvent_v3020");
    w->now += 6000;
    launch(w, "d", 7, 2100);
}

static void streams_join_where_events_are_visible(void **state)
{
    writer w = { *state, 1000, 0, 10 };
    gx_prediction *prediction;

    for (int i = 0; i < 4; i++)
        step_of_two_streams(&w);
    prediction = predict(*state, NULL);
    assert_int_equal(prediction->n_nodes, 4);
    assert_int_equal(prediction->n_streams, 2);
    assert_int_equal(prediction->n_joins, 2);
    assert_near(prediction->replay_ns, 1000 + 5000 + 2000);
    /* And the range reaches to none of it side by side. */
    assert_near(prediction->high_ns, 1000 + 5000 + 3000 + 2000 + 2000);
    gx_prediction_free(prediction);
}

static void streams_without_events_are_independent(void **state)
{
    writer w = { *state, 1000, 0, 10 };
    gx_prediction *prediction;
    bool said = false;

    for (int i = 0; i < 4; i++) {
        launch(&w, "a", 7, 1100);
        launch(&w, "b", 8, 5100);
        launch(&w, "d", 7, 2100);
    }
    prediction = predict(*state, NULL);
    assert_int_equal(prediction->n_joins, 0);
    assert_near(prediction->replay_ns, 5000);
    for (size_t i = 0; i < prediction->n_assumptions; i++)
        said = said || strstr(prediction->assumption[i], "independent");
    assert_true(said);
    gx_prediction_free(prediction);
}

/* Two streams of kernels that each fill the card take turns. */
static void a_card_has_room_for_so_many_blocks(void **state)
{
    writer w = { *state, 1000, 0, 10 };
    gx_prediction *prediction;

    for (int i = 0; i < 8; i++) {
        gx_trace_activity activity =
            launched(&w, i % 2 ? "a" : "b", 7 + i % 2, 100, 4100);

        activity.grid[0] = 50;
        activity.grid[1] = 2;
        assert_ok(gx_trace_add_activity(*state, &activity, &err), &err);
        w.now += 5000;
    }
    prediction = predict(*state, NULL);
    assert_int_equal(prediction->n_nodes, 2);
    assert_near(prediction->replay_ns, 8000);
    gx_prediction_free(prediction);
}

static void what_stands_in_the_way_is_named(void **state)
{
    writer w = { *state, 1000, 0, 10 };
    gx_prediction *prediction;
    const gx_obstacle *one;

    for (int i = 0; i < 4; i++) {
        const int64_t start = w.now;
        gx_trace_activity copy;

        step(&w);
        call(&w, "cudaStreamSynchronize_v3020");
        call(&w, "cudaStreamSynchronize_v3020");
        call(&w, "cudaMalloc_v3020");
        call(&w, "cudaMallocAsync_v11020");
        call(&w, "cudaMemcpy_v3020");
        copy = kernel(w.now, w.now + 900, w.correlation);
        copy.kind = GX_TRACE_COPY;
        copy.name = text(*state, "copy host to device");
        copy.source = GX_TRACE_MEMORY_PAGEABLE;
        copy.target = GX_TRACE_MEMORY_OTHER;
        copy.legacy_stream = true;
        assert_ok(gx_trace_add_activity(*state, &copy, &err), &err);
        w.now += 1000;
        add_range(*state, GX_TRACE_PUSH_POP, "step", start, w.now, 10);
        w.now += 10;
        call(&w, "cudaEventSynchronize_v3020");
    }
    prediction = predict(*state, NULL);
    one = find_obstacle(prediction, GX_OBSTACLE_SYNC);
    assert_non_null(one);
    assert_string_equal(gx_trace_text_at(*state, one->name),
                        "cudaStreamSynchronize_v3020");
    assert_int_equal(one->n, 8);
    assert_int_equal(one->n_steps, 4);
    one = find_obstacle(prediction, GX_OBSTACLE_COPY);
    assert_non_null(one);
    assert_int_equal(one->n, 4);
    one = find_obstacle(prediction, GX_OBSTACLE_PAGEABLE);
    assert_non_null(one);
    assert_int_equal(one->n, 4);
    one = find_obstacle(prediction, GX_OBSTACLE_ALLOC);
    assert_non_null(one);
    assert_string_equal(gx_trace_text_at(*state, one->name), "cudaMalloc_v3020");
    assert_non_null(find_obstacle(prediction, GX_OBSTACLE_POOL));
    assert_non_null(find_obstacle(prediction, GX_OBSTACLE_LEGACY));
    one = find_obstacle(prediction, GX_OBSTACLE_BETWEEN);
    assert_non_null(one);
    assert_int_equal(one->n, 3); /* the last one follows the last step */
    assert_null(find_obstacle(prediction, GX_OBSTACLE_CONTENT));
    assert_true(prediction->after_removal);
    /* The copy takes its traced time. */
    assert_near(prediction->replay_ns, step_ns - 2000 + 900 + 100);
    gx_prediction_free(prediction);
}

static void a_synchronizing_call_orders_streams(void **state)
{
    writer w = { *state, 1000, 0, 10 };
    gx_prediction *prediction;

    for (int i = 0; i < 4; i++) {
        launch(&w, "a", 7, 3100);
        call(&w, "cudaDeviceSynchronize_v3020");
        launch(&w, "b", 8, 2100);
    }
    prediction = predict(*state, NULL);
    assert_int_equal(prediction->n_nodes, 2);
    assert_near(prediction->replay_ns, 3000 + 2000);
    assert_true(prediction->after_removal);
    gx_prediction_free(prediction);
}

static void steps_of_other_work_are_told_and_left_out(void **state)
{
    writer w = { *state, 1000, 0, 10 };
    gx_prediction *prediction;
    const gx_obstacle *one;

    for (int i = 0; i < 5; i++) {
        const int64_t start = w.now;

        step(&w);
        if (i == 0)
            launch(&w, "evaluate", 7, 900000);
        add_range(*state, GX_TRACE_PUSH_POP, "step", start, w.now, 10);
        w.now += 100;
    }
    prediction = predict(*state, NULL);
    assert_int_equal(prediction->n_steps, 5);
    assert_int_equal(prediction->n_same, 4);
    assert_near(prediction->step_ns, step_ns);
    one = find_obstacle(prediction, GX_OBSTACLE_CONTENT);
    assert_non_null(one);
    assert_int_equal(one->n, 1);
    assert_false(prediction->after_removal);
    gx_prediction_free(prediction);
}

/* Kernels that overlap their stream's last one were launched programmatically: what they
 * share counts once. */
static void overlap_on_one_stream_counts_once(void **state)
{
    writer w = { *state, 1000, 0, 10 };
    gx_prediction *prediction;

    for (int i = 0; i < 4; i++) {
        const int64_t start = w.now;
        gx_trace_activity a = launched(&w, "a", 7, 1000, 4100);
        gx_trace_activity b = launched(&w, "b", 7, 0, 0);

        b.start = a.end - 1000;
        b.end = b.start + 3100;
        assert_ok(gx_trace_add_activity(*state, &a, &err), &err);
        assert_ok(gx_trace_add_activity(*state, &b, &err), &err);
        w.now = b.end + 100;
        add_range(*state, GX_TRACE_PUSH_POP, "step", start, w.now, 10);
        w.now += 10;
    }
    prediction = predict(*state, NULL);
    assert_near(prediction->replay_ns, 4000 + 2000);
    gx_prediction_free(prediction);
}

static void a_chain_of_short_kernels_costs_a_node_each(void **state)
{
    writer w = { *state, 1000, 0, 10 };
    gx_prediction *prediction;

    for (int i = 0; i < 3; i++) {
        const int64_t start = w.now;

        for (int j = 0; j < 100; j++)
            launch(&w, "tiny", 7, 1050);
        add_range(*state, GX_TRACE_PUSH_POP, "step 1", start, w.now, 10);
        w.now += 10;
    }
    prediction = predict(*state, NULL);
    assert_int_equal(prediction->n_nodes, 100);
    assert_near(prediction->replay_ns, 100 * 1000);
    assert_near(prediction->naive_ns, 100 * 1050);
    gx_prediction_free(prediction);
}

/* Nothing but one kernel repeats: a range around all of them knows better. */
static void the_outermost_range_is_better_than_a_single_kernel(void **state)
{
    writer w = { *state, 1000, 0, 10 };
    const int64_t start = w.now;
    gx_prediction *prediction;

    for (int j = 0; j < 10; j++) {
        const int64_t inner = w.now;

        launch(&w, "tiny", 7, 1200);
        add_range(*state, GX_TRACE_PUSH_POP, "op", inner, w.now, 10);
    }
    add_range(*state, GX_TRACE_PUSH_POP, "eager", start - 1, w.now + 1, 10);
    prediction = predict(*state, NULL);
    assert_int_equal(prediction->by, GX_PREDICT_BY_OUTER);
    assert_string_equal(gx_trace_text_at(*state, prediction->range_name), "eager");
    assert_int_equal(prediction->n_steps, 1);
    assert_near(prediction->replay_ns, 10 * 1100);
    gx_prediction_free(prediction);
}

static void grids_that_change_are_told(void **state)
{
    writer w = { *state, 1000, 0, 10 };
    gx_prediction *prediction;

    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 3; j++) {
            static const char *const names[] = { "a", "b", "c" };
            gx_trace_activity activity = launched(&w, names[j], 7, 100, 2100);

            activity.grid[0] = 10 + i;
            assert_ok(gx_trace_add_activity(*state, &activity, &err), &err);
            w.now += 3000;
        }
    prediction = predict(*state, NULL);
    assert_int_equal(prediction->by, GX_PREDICT_BY_NAMES);
    assert_int_equal(prediction->n_steps, 6);
    assert_int_equal(prediction->n_nodes, 3);
    gx_prediction_free(prediction);
}

static void without_repetition_there_is_no_prediction(void **state)
{
    writer w = { *state, 1000, 0, 10 };
    gx_prediction *prediction;

    for (int i = 0; i < 40; i++) {
        char name[16];

        snprintf(name, sizeof name, "k%d", i);
        launch(&w, name, 7, 2000);
    }
    prediction = predict(*state, NULL);
    assert_int_equal(prediction->by, GX_PREDICT_BY_NONE);
    assert_non_null(strstr(prediction->why_not, "no step was found"));
    gx_prediction_free(prediction);
}

static void replays_are_graphs_already(void **state)
{
    gx_prediction *prediction;

    for (int i = 0; i < 4; i++) {
        const int64_t start = 1000 + 10000 * i;

        add_call(*state, "cudaGraphLaunch_v10000", start, start + 10, 1 + i);
        for (int j = 0; j < 3; j++)
            add_node_kernel(*state, start + 100 + 1000 * j, start + 900 + 1000 * j, 1 + i,
                            50 + j);
    }
    prediction = predict(*state, NULL);
    assert_int_equal(prediction->by, GX_PREDICT_BY_NONE);
    assert_non_null(strstr(prediction->why_not, "replayed from graphs already"));
    gx_prediction_free(prediction);
}

/* Eager work outside of them does not turn steps of replays into eager ones. */
static void steps_that_replay_are_graphs_already(void **state)
{
    writer w = { *state, 1000, 0, 10 };
    gx_prediction *prediction;

    for (int i = 0; i < 10; i++)
        step(&w);
    for (int i = 0; i < 2; i++) {
        add_call(*state, "cudaGraphLaunch_v10000", w.now, w.now + 10, 900 + i);
        add_node_kernel(*state, w.now + 100, w.now + 900, 900 + i, 50);
        add_range(*state, GX_TRACE_PUSH_POP, "step", w.now - 1, w.now + 1000, 10);
        w.now += 2000;
    }
    prediction = predict(*state, NULL);
    assert_int_equal(prediction->by, GX_PREDICT_BY_NONE);
    assert_non_null(strstr(prediction->why_not, "replay graphs already"));
    gx_prediction_free(prediction);
}

static void an_empty_trace_is_no_error(void **state)
{
    gx_prediction *prediction = predict(*state, NULL);

    assert_int_equal(prediction->by, GX_PREDICT_BY_NONE);
    assert_non_null(strstr(prediction->why_not, "no work of a GPU"));
    gx_prediction_free(prediction);
}

static void a_trace_has_to_be_finished(void **state)
{
    gx_prediction *prediction;

    assert_fails(gx_prediction_create(*state, NULL, NULL, &prediction, &err),
                 GX_ERR_STATE, &err, "not finished");
    assert_null(prediction);
}

static void costs_come_from_ceilings(void **state)
{
    gx_ceilings ceilings = { .card = "a card",
                             .node_s = 1.5e-6,
                             .programmatic_node_s = -1,
                             .step_s = 2.5e-6,
                             .graph_host_s = 3e-6 };
    const gx_predict_costs costs = gx_predict_costs_of(&ceilings);

    (void)state;
    assert_string_equal(costs.card, "a card");
    assert_near(costs.node_ns, 1500);
    assert_near(costs.step_ns, 2500);
    assert_near(costs.host_ns, 3000);
    /* What was not measured stays as it is. */
    assert_near(costs.programmatic_ns, gx_predict_costs_default().programmatic_ns);
}

/* --- the sequence alone --- */

static size_t period(const char *letters, size_t *covered)
{
    uint64_t symbols[256];
    const size_t n = strlen(letters);
    size_t length, first, end;

    assert_true(n < 256);
    for (size_t i = 0; i < n; i++)
        symbols[i] = (unsigned char)letters[i];
    assert_ok(gx_predict_period(symbols, n, &length, covered, &first, &end, &err), &err);
    return length;
}

static void the_block_that_covers_most_is_found(void **state)
{
    static const struct {
        const char *letters;
        size_t length, covered;
    } cases[] = {
        { "", 0, 0 },
        { "a", 0, 0 },
        { "abcdef", 0, 0 },
        { "aa", 1, 2 },
        { "abab", 2, 4 },
        { "aabaab", 3, 6 },
        { "aaaaabaaaaabaaaaab", 6, 18 },
        { "xyzabcabcabcqrs", 3, 9 },
        /* Interrupted, and whole on both sides. */
        { "abcdabcdabcdXabcdabcd", 4, 20 },
        /* Letters that each stand in the block more than once. */
        { "abbaababbaababbaab", 6, 18 },
        { "llllhllllhllllhllllh", 5, 20 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        size_t covered;

        print_message("'%s'\n", cases[i].letters);
        assert_int_equal(period(cases[i].letters, &covered), cases[i].length);
        assert_int_equal(covered, cases[i].covered);
    }
}

/* A million launches of 250 a step: done in a second, where n squared would take hours.
 */
static void a_million_launches_are_no_trouble(void **state)
{
    enum { N = 1000000, STEP = 250 };
    uint64_t *symbols = malloc(N * sizeof *symbols);
    size_t length, covered, first, end;

    (void)state;
    assert_non_null(symbols);
    for (size_t i = 0; i < N; i++)
        symbols[i] = i % STEP * (i % STEP) % 97;
    assert_ok(gx_predict_period(symbols, N, &length, &covered, &first, &end, &err), &err);
    assert_int_equal(length, STEP);
    assert_int_equal(covered, N);
    /* The other extreme: nothing ever comes again. */
    for (size_t i = 0; i < N; i++)
        symbols[i] = i;
    assert_ok(gx_predict_period(symbols, N, &length, &covered, &first, &end, &err), &err);
    assert_int_equal(length, 0);
    free(symbols);
}

#define MADE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        MADE(a_sequence_that_repeats_is_the_step),
        MADE(warm_up_and_tail_are_no_steps),
        MADE(ranges_are_the_step_where_there_are_any),
        MADE(what_another_thread_launches_meanwhile_belongs_to_the_step),
        MADE(streams_join_where_events_are_visible),
        MADE(streams_without_events_are_independent),
        MADE(a_card_has_room_for_so_many_blocks),
        MADE(what_stands_in_the_way_is_named),
        MADE(a_synchronizing_call_orders_streams),
        MADE(steps_of_other_work_are_told_and_left_out),
        MADE(overlap_on_one_stream_counts_once),
        MADE(a_chain_of_short_kernels_costs_a_node_each),
        MADE(the_outermost_range_is_better_than_a_single_kernel),
        MADE(grids_that_change_are_told),
        MADE(without_repetition_there_is_no_prediction),
        MADE(replays_are_graphs_already),
        MADE(steps_that_replay_are_graphs_already),
        MADE(an_empty_trace_is_no_error),
        MADE(a_trace_has_to_be_finished),
        cmocka_unit_test(costs_come_from_ceilings),
        cmocka_unit_test(the_block_that_covers_most_is_found),
        cmocka_unit_test(a_million_launches_are_no_trouble),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
