/* What keeps a profiler from being opened. A failure may be tried again. */
#include "fake_cuda_trace.h"

#include <stdio.h>
#include <stdlib.h>

#if GX_HAVE_CUPTI

#include "support_alone.h"

static void fail_to_open(const char *script, int native, const char *text)
{
    gx_profiler *profiler = NULL;
    gx_error err;

    assert_int_equal(setenv("FAKE_CUPTI", script, 1), 0);
    assert_fails(gx_profiler_open(NULL, &profiler, &err), GX_ERR_UNSUPPORTED, &err, text);
    assert_null(profiler);
    assert_int_equal(err.native, native);
}

static void what_keeps_cupti_from_starting_is_told(void **state)
{
    gx_profiler *profiler;
    gx_error err;

    (void)state;
    trace_use("");
    fail_to_open("enable=35", 35, "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES");
    fail_to_open("enable=35", 35, "Times by events (gexec compare) need no such right");
    fail_to_open("register=35", 35, "cuptiActivityRegisterCallbacks");
    fail_to_open("callback=35", 35, "cuptiEnableCallback");
    fail_to_open("subscribe=39", 39, "run without nsys");
#ifdef CUPTI_SUBSCRIBER_NAME_MAX_LEN
    fail_to_open("subscribe=39 holder=Some-Tool", 39, "another tool, Some-Tool, holds");
#endif
    fail_to_open("subscribe=999", 999, "driver");
    fail_to_open("version=18", 0, "API version 18, older than");
    assert_int_equal(setenv("GEXEC_CUPTI", getenv("GX_FAKE_CUPTI_LACKING"), 1), 0);
    fail_to_open("", 0, "lacks cuptiGetGraphNodeId");
    assert_int_equal(setenv("GEXEC_CUPTI", "/nowhere/libcupti.so", 1), 0);
    fail_to_open("", 0, "GEXEC_CUPTI names a file that cannot be loaded");
    trace_use("");
    assert_ok(gx_profiler_open(NULL, &profiler, &err), &err);
    gx_profiler_free(profiler);
}

static void cupti_is_found_without_being_asked_for_records(void **state)
{
    char text[400];
    gx_error err;

    (void)state;
    trace_use("subscribe=39");
    assert_ok(gx_profiler_available(text, sizeof text, &err), &err);
    assert_has(text, "fake_cupti");
    assert_has(text, "API version");
    assert_int_equal(setenv("GEXEC_CUPTI", "/nowhere/libcupti.so", 1), 0);
    assert_fails(gx_profiler_available(text, sizeof text, &err), GX_ERR_UNSUPPORTED, &err,
                 "/nowhere/libcupti.so");
    assert_string_equal(text, "");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_keeps_cupti_from_starting_is_told),
        cmocka_unit_test(cupti_is_found_without_being_asked_for_records),
    };

    return test_each_alone(argc, argv, tests, ARRAY_SIZE(tests));
}

#else

int main(void)
{
    fprintf(stderr, "no CUPTI in this build\n");
    return TEST_SKIPPED;
}

#endif
