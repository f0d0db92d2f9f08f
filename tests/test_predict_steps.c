/* Which step is found in a trace. */
#include "support_predict_made.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        MADE(a_sequence_that_repeats_is_the_step),
        MADE(warm_up_and_tail_are_no_steps),
        MADE(ranges_are_the_step_where_there_are_any),
        MADE(what_another_thread_launches_meanwhile_belongs_to_the_step),
        MADE(steps_of_other_work_are_told_and_left_out),
        MADE(the_outermost_range_is_better_than_a_single_kernel),
        MADE(grids_that_change_are_told),
        MADE(without_repetition_there_is_no_prediction),
        MADE(replays_are_graphs_already),
        MADE(steps_that_replay_are_graphs_already),
        cmocka_unit_test(the_block_that_covers_most_is_found),
        cmocka_unit_test(a_million_launches_are_no_trouble),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
