/* From YAML to a document tree. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "document.h"
#include "graph_model.h"
#include "support.h"

typedef struct reading {
    gx_arena *arena;
    gx_diagnostics *list;
    const gx_doc *doc;
} reading;

static reading read_bytes(const char *text, size_t length)
{
    reading r = { gx_arena_create(), gx_diagnostics_create(), NULL };

    gx_diagnostics_source(r.list, "m.yaml", text, length);
    r.doc = gx_document_read(r.arena, text, length, r.list);
    return r;
}

static reading read_text(const char *text)
{
    return read_bytes(text, strlen(text));
}

static void finish(reading *r)
{
    gx_arena_free(r->arena);
    gx_diagnostics_free(r->list);
}

#define assert_refused(text, length, message) \
    check_refused((text), (length), (message), __FILE__, __LINE__)

static void check_refused(const char *text, size_t length, const char *message,
                          const char *file, int line)
{
    reading r = read_bytes(text, length);
    char *all = gx_diagnostics_text(r.list);

    test_has(all, message, file, line);
    if (r.doc)
        print_error("%s:%d: a document came of it\n", file, line);
    assert_null(r.doc);
    free(all);
    finish(&r);
}

static void everything_knows_where_it_stands(void **state)
{
    reading r = read_text("# comment\na: 1\nlist: [x, 'y']\nmap:\n  k: \"v\"\n");
    const gx_doc *doc = r.doc;

    (void)state;
    assert_non_null(doc);
    assert_int_equal(doc->kind, GX_DOC_MAP);
    assert_int_equal(doc->n, 3);
    assert_string_equal(doc->key[0], "a");
    assert_int_equal(doc->key_pos[0].line, 2);
    assert_int_equal(doc->key_pos[0].column, 1);
    assert_int_equal(doc->item[0]->pos.column, 4);
    assert_false(doc->item[0]->quoted);
    assert_int_equal(doc->item[1]->kind, GX_DOC_LIST);
    assert_string_equal(doc->item[1]->item[1]->text, "y");
    assert_true(doc->item[1]->item[1]->quoted);
    assert_int_equal(doc->item[2]->key_pos[0].line, 5);
    assert_int_equal(doc->item[2]->item[0]->pos.column, 6);
    assert_int_equal(doc->height, 2);
    assert_int_equal(doc->expanded, 7);
    finish(&r);
}

static void words_stay_words(void **state)
{
    static const char *const words[] = { "y",     "n",    "no",  "yes", "on",
                                         "off",   "null", "~",   "010", "1:30",
                                         "1_000", ".inf", "0x10" };
    char text[300] = "";
    reading r;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        sprintf(text + strlen(text), "%s: %s\n", words[i], words[i]);
    r = read_text(text);
    assert_non_null(r.doc);
    assert_int_equal(r.doc->n, ARRAY_SIZE(words));
    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        assert_string_equal(r.doc->key[i], words[i]);
        assert_string_equal(r.doc->item[i]->text, words[i]);
    }
    finish(&r);
}

static void equal_keys_are_reported_with_both_lines(void **state)
{
    char many[2000] = "";
    reading r = read_text("lr: 1e-3\nb: 2\n\"lr\": 1e-2\n");

    (void)state;
    assert_int_equal(gx_diagnostics_count(r.list), 1);
    assert_has(gx_diagnostics_at(r.list, 0).message,
               "key \"lr\" stands twice, on line 1 and on line 3");
    finish(&r);
    for (int i = 0; i < 40; i++)
        sprintf(many + strlen(many), "k%d: 1\n", i % 39);
    r = read_text(many);
    assert_int_equal(gx_diagnostics_count(r.list), 1);
    assert_has(gx_diagnostics_at(r.list, 0).message,
               "key \"k0\" stands twice, on line 1 and on line 40");
    finish(&r);
}

static void a_tab_is_named(void **state)
{
    static const char *const texts[] = { "a:\n\tb: 1\n", "a:\n  b: 1\n\tc: 2\n",
                                         "ops:\n- {op: x}\n\t- {op: y}\n" };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        assert_refused(texts[i], strlen(texts[i]), "tab used as indentation");
    assert_refused(texts[0], strlen(texts[0]), "m.yaml:2:1: ");
}

static void what_is_no_model_is_refused(void **state)
{
    static const struct {
        const char *text, *message;
    } bad[] = {
        { "", "the file is empty" },
        { "# only a comment\n", "the file is empty" },
        { "a: 1\n---\nb: 2\n", "m.yaml:2:1: a second document starts here" },
        { "a: [1, 2\n", "not YAML" },
        { "a: 'x\n", "not YAML" },
        { "a: b: c\n", "not YAML" },
        { "a: !!int 3\n", "tags (!) are not part" },
        { "a: ! 3\n", "tags (!) are not part" },
        { "a: &x {b: 1}\nc: {<<: *x}\n", "m.yaml:2:5: merge keys (<<) are not part" },
        { "? [a, b]\n: 1\n", "a key must be a word" },
        { "{[a]: 1}\n", "a key must be a word" },
        { "'': 1\n", "a key is missing" },
        { "a: *nowhere\n", "no anchor &nowhere" },
        { "a: &x [1, *x]\n", "no anchor &x stands, complete" },
        { "a: \"\\0\"\n", "NUL" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_refused(bad[i].text, strlen(bad[i].text), bad[i].message);
}

static void aliases_stand_for_their_node(void **state)
{
    reading r = read_text("a: &x {k: v}\nb: [*x, *x]\n&y c: *y\n");

    (void)state;
    assert_non_null(r.doc);
    assert_ptr_equal(r.doc->item[1]->item[0], r.doc->item[0]);
    assert_ptr_equal(r.doc->item[1]->item[1], r.doc->item[0]);
    assert_string_equal(r.doc->item[2]->text, "c");
    assert_int_equal(r.doc->expanded, 1 + 2 + 5 + 1);
    finish(&r);
}

static void alias_bombs_are_refused(void **state)
{
    char text[1000] = "l0: &l0 [op, op, op, op, op, op, op, op, op]\n";

    (void)state;
    for (int i = 1; i < 9; i++) {
        sprintf(text + strlen(text), "l%d: &l%d [", i, i);
        for (int k = 0; k < 9; k++)
            sprintf(text + strlen(text), "%s*l%d", k > 0 ? ", " : "", i - 1);
        strcat(text, "]\n");
    }
    assert_refused(text, strlen(text), "too many nodes after alias expansion");
}

static void depth_is_limited(void **state)
{
    enum { DEEP = 10000 };
    char *flow = malloc(2 * DEEP + 1);
    char *block = malloc((size_t)2 * DEEP + 2);
    char text[400] = "";

    (void)state;
    memset(flow, '[', DEEP);
    memset(flow + DEEP, ']', DEEP);
    flow[2 * DEEP] = '\0';
    assert_refused(flow, 2 * DEEP, "limit on depth");
    assert_refused(flow, DEEP, "limit on depth");
    for (size_t i = 0; i < DEEP; i++)
        memcpy(block + 2 * i, "- ", 2);
    memcpy(block + 2 * DEEP, "x", 2);
    assert_refused(block, 2 * DEEP + 1, "limit on depth");
    memset(flow, '{', DEEP);
    assert_refused(flow, DEEP, "");
    free(flow);
    free(block);
    /* through aliases: 40 levels that hold 40 levels */
    memset(text, '[', 40);
    sprintf(text, "- &a ");
    memset(text + strlen(text), '[', 40);
    memset(text + 45, ']', 40);
    strcat(text, "\n- ");
    memset(text + 88, '[', 40);
    strcat(text + 88, "*a");
    memset(text + 130, ']', 40);
    assert_refused(text, strlen(text), "limit on depth");
}

static void the_deepest_allowed_is_read(void **state)
{
    char text[2 * GX_LIMIT_DEPTH + 1];
    reading r;

    (void)state;
    memset(text, '[', GX_LIMIT_DEPTH);
    memset(text + GX_LIMIT_DEPTH, ']', GX_LIMIT_DEPTH);
    text[2 * GX_LIMIT_DEPTH] = '\0';
    r = read_text(text);
    assert_non_null(r.doc);
    assert_int_equal(r.doc->height, GX_LIMIT_DEPTH);
    finish(&r);
}

static void bad_bytes_are_placed_and_leak_nothing(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++) {
        assert_refused("a: 1\nb: \xc3\x28\n", 11, "m.yaml:2:5: not YAML");
        assert_refused("a: 1\nb: \xc3\x28\n", 11, "(byte 9 of the file)\n    b: ?(\n");
        assert_refused("a: \xe2\x82", 5, "m.yaml:1:4: not YAML");
    }
    assert_refused("a: \x01\n", 5, "control characters are not allowed");
    assert_refused("a: \0b\n", 7, "not YAML");
    assert_refused("\xff\xfe"
                   "a",
                   3, "not YAML");
}

static void a_byte_order_mark_is_passed_over(void **state)
{
    reading r = read_text("\xef\xbb\xbfgexec: 1\n");

    (void)state;
    assert_non_null(r.doc);
    assert_string_equal(r.doc->key[0], "gexec");
    assert_int_equal(r.doc->key_pos[0].column, 1);
    finish(&r);
}

/* Random changes of a good text: a document or a report, never both, never neither. */
static void anything_gives_a_document_or_a_report(void **state)
{
    static const char good[] =
        "gexec: 1\ndims: {b: 4}\nops:\n  - {op: gemm, a: x, b: [1, 2]}\n"
        "  - &k {op: relu}\n  - *k\ntext: |\n  a\n  b\n";
    static const char bytes[] = "[]{}:,-&*!|>'\"%@`#? \n\t\\ax1\xc3\x00";
    test_random random = test_random_start(test_seed());

    (void)state;
    for (int i = 0; i < 3000; i++) {
        char text[sizeof good];
        reading r;

        memcpy(text, good, sizeof good);
        for (int k = 0; k < 3; k++)
            text[test_random_int(&random, 0, sizeof good - 2)] =
                bytes[test_random_int(&random, 0, sizeof bytes - 1)];
        r = read_bytes(text, sizeof good - 1);
        assert_true(r.doc || gx_diagnostics_count(r.list) > 0);
        finish(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_knows_where_it_stands),
        cmocka_unit_test(words_stay_words),
        cmocka_unit_test(equal_keys_are_reported_with_both_lines),
        cmocka_unit_test(a_tab_is_named),
        cmocka_unit_test(what_is_no_model_is_refused),
        cmocka_unit_test(aliases_stand_for_their_node),
        cmocka_unit_test(alias_bombs_are_refused),
        cmocka_unit_test(depth_is_limited),
        cmocka_unit_test(the_deepest_allowed_is_read),
        cmocka_unit_test(bad_bytes_are_placed_and_leak_nothing),
        cmocka_unit_test(a_byte_order_mark_is_passed_over),
        cmocka_unit_test(anything_gives_a_document_or_a_report),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
