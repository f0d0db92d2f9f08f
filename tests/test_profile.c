/* Profilers where they cannot be: a build without CUPTI, and bad arguments. */
#include "support.h"

#if GX_HAVE_CUPTI

static void bad_arguments_are_errors(void **state)
{
    const gx_profiler_options less_than_none = { .n_records = -1 };
    gx_profiler *profiler;
    gx_trace *trace;
    gx_profiler_losses losses;
    gx_error err;

    (void)state;
    assert_fails(gx_profiler_open(NULL, NULL, &err), GX_ERR_ARGUMENT, &err, "NULL");
    assert_fails(gx_profiler_open(&less_than_none, &profiler, &err), GX_ERR_ARGUMENT,
                 &err, "-1 records");
    assert_null(profiler);
    assert_fails(gx_profiler_start(NULL, &err), GX_ERR_ARGUMENT, &err, "NULL");
    assert_fails(gx_profiler_stop(NULL, &err), GX_ERR_ARGUMENT, &err, "NULL");
    assert_fails(gx_profiler_attach(NULL, NULL, &err), GX_ERR_ARGUMENT, &err, "NULL");
    assert_fails(gx_profiler_trace(NULL, NULL, &losses, &err), GX_ERR_ARGUMENT, &err,
                 "trace");
    assert_fails(gx_profiler_trace(NULL, &trace, NULL, &err), GX_ERR_ARGUMENT, &err,
                 "losses");
    assert_fails(gx_profiler_trace(NULL, &trace, &losses, &err), GX_ERR_ARGUMENT, &err,
                 "profiler is NULL");
    gx_profiler_free(NULL);
}

#else

static void a_build_without_cupti_says_so(void **state)
{
    gx_profiler *profiler;
    char text[80] = "something";
    gx_error err;

    (void)state;
    assert_fails(gx_profiler_open(NULL, &profiler, &err), GX_ERR_UNSUPPORTED, &err,
                 "built without CUPTI");
    assert_null(profiler);
    assert_fails(gx_profiler_available(text, sizeof text, &err), GX_ERR_UNSUPPORTED, &err,
                 "built without CUPTI");
    assert_string_equal(text, "");
    gx_profiler_free(profiler);
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
#if GX_HAVE_CUPTI
        cmocka_unit_test(bad_arguments_are_errors),
#else
        cmocka_unit_test(a_build_without_cupti_says_so),
#endif
    };

    return cmocka_run_group_tests_name("profile", tests, NULL, NULL);
}
