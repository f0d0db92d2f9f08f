/* What a step becomes as a graph, and what stands in the way. */
#include "support_predict_made.h"

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

/* Beside another stream's work a kernel takes longer, one that may overlap its own
 * stream's does not; a buffer from the host costs its engine, a few bytes do not. */
static void what_runs_beside_and_what_is_copied_costs_more(void **state)
{
    writer w = { *state, 1000, 0, 10 };
    gx_predict_costs costs = round_costs();
    gx_prediction *prediction;

    costs.beside_ns = 300;
    costs.engine_ns = 4000;
    costs.copy_ns = 700;
    for (int i = 0; i < 4; i++) {
        launch(&w, "a", 7, 2100);
        launch(&w, "b", 8, 5100);
        launch(&w, "d", 7, 2100);
        for (int k = 0; k < 2; k++) {
            gx_trace_activity copy = launched(&w, "copy", 8, 0, 1000);

            copy.kind = GX_TRACE_COPY;
            copy.source = GX_TRACE_MEMORY_PINNED;
            copy.bytes = k == 0 ? 1 << 20 : 8;
            assert_ok(gx_trace_add_activity(*state, &copy, &err), &err);
            w.now += 2000;
        }
    }
    assert_ok(gx_trace_finish(*state, &err), &err);
    assert_ok(gx_prediction_create(*state, NULL, &costs, &prediction, &err), &err);
    assert_near(prediction->replay_ns, 5000 + 300 + 1000 + 4000 + 1000 + 700);
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
                             .copy_node_s = -1,
                             .copy_engine_s = 9e-6,
                             .beside_s = 4e-7,
                             .join_s = 2e-7,
                             .step_s = 2.5e-6,
                             .graph_host_s = 3e-6 };
    const gx_predict_costs costs = gx_predict_costs_of(&ceilings);

    (void)state;
    assert_string_equal(costs.card, "a card");
    assert_near(costs.node_ns, 1500);
    assert_near(costs.step_ns, 2500);
    assert_near(costs.host_ns, 3000);
    assert_near(costs.engine_ns, 4500);
    assert_near(costs.beside_ns, 400);
    assert_near(costs.join_ns, 200);
    /* What was not measured stays as it is. */
    assert_near(costs.copy_ns, gx_predict_costs_default().copy_ns);
    assert_near(costs.programmatic_ns, gx_predict_costs_default().programmatic_ns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        MADE(streams_join_where_events_are_visible),
        MADE(streams_without_events_are_independent),
        MADE(a_card_has_room_for_so_many_blocks),
        MADE(what_stands_in_the_way_is_named),
        MADE(what_runs_beside_and_what_is_copied_costs_more),
        MADE(a_synchronizing_call_orders_streams),
        MADE(overlap_on_one_stream_counts_once),
        MADE(a_chain_of_short_kernels_costs_a_node_each),
        MADE(an_empty_trace_is_no_error),
        MADE(a_trace_has_to_be_finished),
        cmocka_unit_test(costs_come_from_ceilings),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
