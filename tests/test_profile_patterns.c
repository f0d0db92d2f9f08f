/* Patterns: each is named where its figure says so, and only there. */
#include "profile_made.h"

static const gx_profile_schedule ten = { .active = 10, .repeat = 1 };
static const gx_profile_unit units[2] = { { .name = "a" }, { .name = "b" } };

enum { EAGER, GRAPH };

static const gx_profile_pattern *named(const gx_profile *profile, const char *name)
{
    for (size_t i = 0; i < profile->n_patterns; i++)
        if (strcmp(profile->pattern[i].name, name) == 0)
            return &profile->pattern[i];
    return NULL;
}

static void look(gx_profile *profile)
{
    assert_ok(gx_profile_patterns(profile, &err), &err);
    for (size_t i = 0; i < profile->n_patterns; i++) {
        assert_true(profile->pattern[i].found[0] != '\0');
        assert_true(profile->pattern[i].advice[0] != '\0');
    }
}

static void finish_one(gx_profile_pass *pass)
{
    finish_pass(pass, &ten);
    assert_ok(gx_profile_ops(pass, units, 2, &err), &err);
}

/* Steps that nothing is wrong with: kernels of 10 us that follow one another closely. */
static gx_profile_pass good_pass(gx_mode mode, int64_t gap, int64_t step_gap)
{
    gx_profile_pass pass = start_pass(mode);
    int64_t at = 1000000;

    for (int64_t i = 0; i < 5; i++) {
        add_range(pass.trace, "step", at - 500, at + 20000);
        add_launched(pass.trace, "k", at - 400, at, at + 10000, 0);
        add_launched(pass.trace, "k", at - 300, at + 10000 + gap, at + 20000 + gap, 1);
        at += 20000 + gap + step_gap;
    }
    finish_one(&pass);
    return pass;
}

static gx_profile good(void)
{
    return (gx_profile){ .pass = { good_pass(GX_MODE_EAGER, 100, 600),
                                   good_pass(GX_MODE_GRAPH, 100, 600) },
                         .has_ceilings = true,
                         .ceilings = made_ceilings() };
}

static void nothing_stands_out_of_good_steps(void **state)
{
    gx_profile profile = good();

    (void)state;
    look(&profile);
    assert_int_equal(profile.n_patterns, 0);
    gx_profile_free(&profile);
}

static void nothing_is_said_without_traces(void **state)
{
    gx_profile profile = { .has_ceilings = true, .ceilings = made_ceilings() };

    (void)state;
    look(&profile);
    assert_int_equal(profile.n_patterns, 0);
}

static void host_bound_launches(void **state)
{
    gx_profile profile = { .pass = { start_pass(GX_MODE_EAGER) } };

    (void)state;
    add_plain_steps(profile.pass[EAGER].trace, 4, 300, true);
    finish_one(&profile.pass[EAGER]);
    look(&profile);
    assert_non_null(named(&profile, "host-bound launches"));
    assert_has(named(&profile, "host-bound launches")->found,
               "idle for 60.0% of its span, and 100.0% of that (0.30 us a step)");
    gx_profile_free(&profile);

    /* As idle, but the launch calls had returned. */
    profile = (gx_profile){ .pass = { start_pass(GX_MODE_EAGER) } };
    add_plain_steps(profile.pass[EAGER].trace, 4, 300, false);
    finish_one(&profile.pass[EAGER]);
    look(&profile);
    assert_null(named(&profile, "host-bound launches"));
    gx_profile_free(&profile);

    /* Idle as much, and a quarter of it the host's. */
    profile = (gx_profile){ .pass = { start_pass(GX_MODE_EAGER) } };
    add_range(profile.pass[EAGER].trace, "step", 900, 3000);
    add_launched(profile.pass[EAGER].trace, "k", 950, 1000, 1100, 0);
    add_launched(profile.pass[EAGER].trace, "k", 1110, 1200, 1300, 0);
    add_launched(profile.pass[EAGER].trace, "k", 1120, 1600, 1700, 1);
    finish_one(&profile.pass[EAGER]);
    look(&profile);
    assert_null(named(&profile, "host-bound launches"));
    gx_profile_free(&profile);

    /* The host's, but next to nothing. */
    profile = (gx_profile){ .pass = { start_pass(GX_MODE_EAGER) } };
    add_plain_steps(profile.pass[EAGER].trace, 4, 10, true);
    finish_one(&profile.pass[EAGER]);
    look(&profile);
    assert_null(named(&profile, "host-bound launches"));
    gx_profile_free(&profile);
}

static void small_kernels(void **state)
{
    gx_profile profile = good();

    (void)state;
    profile.ceilings.node_s = 6e-6; /* kernels take 10 us */
    look(&profile);
    assert_non_null(named(&profile, "small kernels"));
    assert_has(named(&profile, "small kernels")->found, "less than 10.0 us");
    profile.ceilings.node_s = 4e-6;
    look(&profile);
    assert_null(named(&profile, "small kernels"));
    gx_profile_free(&profile);

    profile = (gx_profile){ .pass = { start_pass(GX_MODE_EAGER) } };
    add_plain_steps(profile.pass[EAGER].trace, 4, 10, true); /* of 0.1 us */
    finish_one(&profile.pass[EAGER]);
    look(&profile);
    assert_has(named(&profile, "small kernels")->found, "gexec doctor --measure");
    gx_profile_free(&profile);
}

/* Two kernels of 10 us and a copy. */
static gx_profile with_copy(int64_t ns)
{
    gx_profile profile = { .pass = { start_pass(GX_MODE_EAGER) } };
    gx_trace *const trace = profile.pass[EAGER].trace;
    gx_trace_activity *activity;

    add_range(trace, "step", 500, 30000);
    add_launched(trace, "k", 600, 1000, 11000, 0);
    add_launched(trace, "k", 700, 11000, 21000, 1);
    add_call(trace, "cudaMemcpyAsync", 800, 810, 1);
    activity = made_activity(trace, "copy", 21000, 21000 + ns, 1, 1);
    activity->kind = GX_TRACE_COPY;
    add(trace, activity);
    finish_one(&profile.pass[EAGER]);
    return profile;
}

static void transfers(void **state)
{
    gx_profile profile = with_copy(5000);

    (void)state;
    look(&profile);
    assert_has(named(&profile, "transfers")->found, "20.0% of a step's device time");
    gx_profile_free(&profile);
    profile = with_copy(1000);
    look(&profile);
    assert_null(named(&profile, "transfers"));
    gx_profile_free(&profile);
}

static void synchronization(void **state)
{
    gx_profile profile = good();

    (void)state;
    profile.pass[EAGER].n_waiting_calls = 5;
    look(&profile);
    assert_has(named(&profile, "synchronization")->found,
               "waits for the device 5 times inside 5 steps (eager)");
    gx_profile_free(&profile);
}

static void step_gaps(void **state)
{
    gx_profile profile = { .pass = { { 0 }, good_pass(GX_MODE_GRAPH, 0, 5000) } };

    (void)state;
    look(&profile);
    assert_has(named(&profile, "step gaps")->found,
               "idle for 5.00 us, 20.0% of the 25.0 us");
    gx_profile_free(&profile);
    profile = (gx_profile){ .pass = { { 0 }, good_pass(GX_MODE_GRAPH, 0, 2000) } };
    look(&profile);
    assert_null(named(&profile, "step gaps"));
    gx_profile_free(&profile);
    /* Of eager launches they say nothing about a graph. */
    profile = (gx_profile){ .pass = { good_pass(GX_MODE_EAGER, 0, 5000) } };
    look(&profile);
    assert_null(named(&profile, "step gaps"));
    gx_profile_free(&profile);
}

static void a_graph_that_does_not_pay(void **state)
{
    gx_profile profile = good();

    (void)state;
    assert_true(gx_series_add(&profile.timing.ratio, 0.97));
    assert_true(gx_series_add(&profile.timing.way[GX_WAY_EAGER].steady, 100e-6));
    assert_true(gx_series_add(&profile.timing.way[GX_WAY_GRAPH].steady, 97e-6));
    look(&profile);
    assert_has(named(&profile, "a graph that does not pay")->found,
               "97.0 us as a graph and 100 us eagerly: 0.970 times as long");
    profile.timing.ratio.values[0] = 0.9;
    look(&profile);
    assert_null(named(&profile, "a graph that does not pay"));
    gx_profile_free(&profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_stands_out_of_good_steps),
        cmocka_unit_test(nothing_is_said_without_traces),
        cmocka_unit_test(host_bound_launches),
        cmocka_unit_test(small_kernels),
        cmocka_unit_test(transfers),
        cmocka_unit_test(synchronization),
        cmocka_unit_test(step_gaps),
        cmocka_unit_test(a_graph_that_does_not_pay),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
