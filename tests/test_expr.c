/* Integer expressions over dims. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph_model.h"
#include "support.h"

static gx_dim dims[] = { { "batch", 64, { 0 } }, { "n", 3, { 0 } }, { "no", 7, { 0 } } };
static const gx_graph graph = { .dims = dims, .n_dims = ARRAY_SIZE(dims) };

static bool evaluate(const char *text, int64_t *value, char *message, size_t size)
{
    gx_diagnostics *list = gx_diagnostics_create();
    const bool good = gx_eval_int(&graph, text, (gx_pos){ 1, 1 }, list, value);

    assert_int_equal(gx_diagnostics_count(list), good ? 0 : 1);
    message[0] = '\0';
    if (!good)
        snprintf(message, size, "%s", gx_diagnostics_at(list, 0).message);
    gx_diagnostics_free(list);
    return good;
}

static void expressions_have_values(void **state)
{
    static const struct {
        const char *text;
        int64_t value;
    } good[] = {
        { "0", 0 },
        { "42", 42 },
        { "batch", 64 },
        { "2 * batch + 1", 129 },
        { "2+3*4", 14 },
        { "(2+3)*4", 20 },
        { "batch/4/2", 8 },
        { "10 - 3 - 2", 5 },
        { "7 % 4", 3 },
        { "-batch", -64 },
        { "- - 2", 2 },
        { "+2", 2 },
        { "n*no", 21 },
        { "9223372036854775807", INT64_MAX },
        { "-9223372036854775807 - 1", INT64_MIN },
        { "3037000499*3037000499", INT64_C(9223372030926249001) },
    };
    char message[200];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        int64_t value = -1;

        if (!evaluate(good[i].text, &value, message, sizeof message))
            fail_msg("%s: %s", good[i].text, message);
        if (value != good[i].value)
            fail_msg("%s gave %" PRId64, good[i].text, value);
    }
}

static void mistakes_are_named(void **state)
{
    static const struct {
        const char *text, *message;
    } bad[] = {
        { "", "expected an integer" },
        { "010", "does not start with 0" },
        { "08", "does not start with 0" },
        { "0o10", "whole decimal" },
        { "0x10", "whole decimal" },
        { "1:30", "expected an integer" },
        { "1_000", "whole decimal" },
        { "1e3", "whole decimal" },
        { "16.0", "whole decimal" },
        { "bach", "did you mean \"batch\"" },
        { "q", "there is no dim \"q\"" },
        { "7/2", "7 is no multiple of 2" },
        { "1/0", "division by zero" },
        { "1%0", "division by zero" },
        { "9223372036854775808", "64 bits" },
        { "9223372036854775807+1", "64 bits" },
        { "-9223372036854775807-2", "64 bits" },
        { "4294967296*4294967296", "64 bits" },
        { "(0-9223372036854775807-1)/(0-1)", "64 bits" },
        { "-(0-9223372036854775807-1)", "64 bits" },
        { "(1", "expected \")\"" },
        { "1)", "expected an integer" },
        { "1 2", "expected an integer" },
        { "2*", "expected an integer" },
        { "*2", "expected an integer" },
        { "a-b!", "there is no dim" },
        { "batch\n", "expected an integer" },
    };
    char message[200];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        int64_t value = 99;

        if (evaluate(bad[i].text, &value, message, sizeof message))
            fail_msg("\"%s\" gave %" PRId64, bad[i].text, value);
        assert_has(message, bad[i].message);
        assert_int_equal(value, 99);
    }
}

static void deep_expressions_are_refused(void **state)
{
    static const char signs[] = { '(', '-' };
    const size_t length = 100000;
    char *text = malloc(length + 2);
    char message[200];
    int64_t value;

    (void)state;
    for (size_t i = 0; i < sizeof signs; i++) {
        memset(text, signs[i], length);
        text[length] = '1';
        text[length + 1] = '\0';
        assert_false(evaluate(text, &value, message, sizeof message));
    }
    free(text);
}

/* The same expression as text and as a value; / only where it divides. */
static int64_t make(test_random *random, int depth, char *text, size_t *at)
{
    const int64_t kind = depth == 0 ? 0 : test_random_int(random, 0, 4);
    int64_t left, right;

    if (kind == 0) {
        left = test_random_int(random, 0, 50);
        *at += (size_t)sprintf(text + *at, "%" PRId64, left);
        return left;
    }
    *at += (size_t)sprintf(text + *at, "(");
    left = make(random, depth - 1, text, at);
    *at += (size_t)sprintf(text + *at, " %c ", "+-*%"[kind - 1]);
    if (kind == 4) {
        right = test_random_int(random, 1, 9);
        *at += (size_t)sprintf(text + *at, "%" PRId64, right);
    } else {
        right = make(random, depth - 1, text, at);
    }
    *at += (size_t)sprintf(text + *at, ")");
    return kind == 1   ? left + right
           : kind == 2 ? left - right
           : kind == 3 ? left * right
                       : left % right;
}

static void random_expressions_agree(void **state)
{
    test_random random = test_random_start(test_seed());
    char text[4096], message[200];

    (void)state;
    for (int i = 0; i < 2000; i++) {
        size_t at = 0;
        const int64_t expected = make(&random, 3, text, &at);
        int64_t value = 0;

        assert_true(evaluate(text, &value, message, sizeof message));
        if (value != expected)
            fail_msg("%s gave %" PRId64 ", expected %" PRId64, text, value, expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expressions_have_values),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(deep_expressions_are_refused),
        cmocka_unit_test(random_expressions_agree),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
