/* The list of mistakes, its text, and nearest names. */
#include <stdlib.h>
#include <string.h>

#include "diagnostics.h"
#include "support.h"

static gx_diagnostics *make_list(const char *text)
{
    gx_diagnostics *list = gx_diagnostics_create();

    assert_non_null(list);
    gx_diagnostics_source(list, "m.yaml", text, strlen(text));
    return list;
}

static void mistakes_are_sorted_by_position(void **state)
{
    gx_diagnostics *list = make_list("a: 1\nb: 2\nc: 3\n");
    gx_diagnostic first;

    (void)state;
    gx_report(list, (gx_pos){ 3, 1 }, "third");
    gx_report(list, (gx_pos){ 1, 4 }, "second");
    gx_report(list, (gx_pos){ 1, 1 }, "first of %d", 4);
    gx_report(list, (gx_pos){ 3, 1 }, "a consequence at the same place");
    gx_report(list, (gx_pos){ 0, 0 }, "before all");
    assert_int_equal(gx_diagnostics_count(list), 4);
    assert_string_equal(gx_diagnostics_at(list, 0).message, "before all");
    assert_string_equal(gx_diagnostics_at(list, 0).source, "");
    first = gx_diagnostics_at(list, 1);
    assert_string_equal(first.message, "first of 4");
    assert_string_equal(first.source, "a: 1");
    assert_int_equal(first.line, 1);
    assert_int_equal(first.column, 1);
    assert_string_equal(gx_diagnostics_at(list, 3).message, "third");
    gx_diagnostics_free(list);
    gx_diagnostics_free(NULL);
}

static void the_text_has_place_line_and_caret(void **state)
{
    gx_diagnostics *list = make_list("a: 1\n\tcaf\xc3\xa9: x\n");
    char *text;

    (void)state;
    gx_report(list, (gx_pos){ 2, 8 }, "wrong");
    gx_report(list, (gx_pos){ 0, 0 }, "no place");
    gx_report(list, (gx_pos){ 9, 9 }, "beyond the end");
    text = gx_diagnostics_text(list);
    assert_string_equal(text, "m.yaml: no place\n"
                              "m.yaml:2:8: wrong\n"
                              "    \tcaf\xc3\xa9: x\n"
                              "    \t      ^\n"
                              "m.yaml:9:9: beyond the end\n");
    free(text);
    gx_diagnostics_free(list);
}

static void the_first_mistake_is_the_error(void **state)
{
    gx_diagnostics *list = make_list("a: 1\n");
    gx_error err;

    (void)state;
    gx_error_clear(&err);
    assert_ok(gx_diagnostics_status(list, &err), &err);
    gx_report(list, (gx_pos){ 1, 4 }, "later");
    gx_report(list, (gx_pos){ 1, 1 }, "wrong");
    assert_fails(gx_diagnostics_status(list, &err), GX_ERR_MODEL, &err,
                 "m.yaml:1:1: wrong");
    gx_diagnostics_free(list);
}

static void a_flood_is_counted_not_kept(void **state)
{
    gx_diagnostics *list = make_list("");
    char *text;

    (void)state;
    for (int i = 1; i <= 80; i++)
        gx_report(list, (gx_pos){ i, 1 }, "mistake");
    assert_int_equal(gx_diagnostics_count(list), 51);
    assert_non_null(gx_diagnostics_at(list, 50).message);
    assert_non_null(gx_diagnostics_at(list, 1000).message);
    text = gx_diagnostics_text(list);
    assert_has(text, "m.yaml:50:1: mistake\n30 more\n");
    free(text);
    gx_diagnostics_free(list);
}

static void control_characters_are_spelt_out(void **state)
{
    gx_diagnostics *list = make_list("");
    char long_text[3 * GX_MESSAGE_SIZE];

    (void)state;
    gx_report(list, (gx_pos){ 1, 1 }, "\"%s\"", "a\nb\x1b[31m");
    assert_string_equal(gx_diagnostics_at(list, 0).message, "\"a\\x0ab\\x1b[31m\"");
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    gx_report(list, (gx_pos){ 2, 1 }, "%s", long_text);
    assert_int_equal(strlen(gx_diagnostics_at(list, 1).message), GX_MESSAGE_SIZE - 1);
    gx_diagnostics_free(list);
    gx_report(NULL, (gx_pos){ 1, 1 }, "nobody listens");
}

static void long_source_lines_are_cut(void **state)
{
    char line[1000];
    gx_diagnostics *list;

    (void)state;
    memset(line, 'y', sizeof line - 1);
    line[sizeof line - 1] = '\0';
    list = make_list(line);
    gx_report(list, (gx_pos){ 1, 900 }, "far right");
    assert_int_equal(strlen(gx_diagnostics_at(list, 0).source), 160);
    free(gx_diagnostics_text(list));
    gx_diagnostics_free(list);
}

static void the_nearest_name_is_found(void **state)
{
    static const char *const names[] = {
        "learning_rate", "optimizer", "outputs", "inputs", "x",
        "accumulate",    "lr",        "epilogue"
    };
    static const struct {
        const char *name, *near;
    } cases[] = {
        { "learning_rat", "learning_rate" },
        { "optimiser", "optimizer" },
        { "acumulate", "accumulate" },
        { "inptus", "inputs" },
        { "output", "outputs" },
        { "l_r", "lr" },
        { "epiloge", "epilogue" },
        { "q", NULL },
        { "zzzzzzzz", NULL },
        { "", NULL },
    };
    char longest[300];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const char *near = gx_nearest(cases[i].name, names, ARRAY_SIZE(names));

        if (!cases[i].near)
            assert_null(near);
        else
            assert_string_equal(near ? near : "(none)", cases[i].near);
    }
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_null(gx_nearest(longest, names, ARRAY_SIZE(names)));
    assert_null(gx_nearest("x", names, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mistakes_are_sorted_by_position),
        cmocka_unit_test(the_text_has_place_line_and_caret),
        cmocka_unit_test(the_first_mistake_is_the_error),
        cmocka_unit_test(a_flood_is_counted_not_kept),
        cmocka_unit_test(control_characters_are_spelt_out),
        cmocka_unit_test(long_source_lines_are_cut),
        cmocka_unit_test(the_nearest_name_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
