/* The picture of a sweep: that it is XML, and that it shows what is there. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "support_sweep.h"

static gx_args args;
static gx_sweep sweep;

static int drop(void **state)
{
    (void)state;
    sweep_drop(&sweep, &args);
    return 0;
}

/* --- a strict reader of the XML that is written here: elements, attributes, text --- */

enum { DEEPEST = 8 };

typedef struct xml {
    const char *at;
    char open[DEEPEST][16];
    int depth;
} xml;

static void refuse(const xml *x, const char *why)
{
    fail_msg("no XML: %s at \"%.40s\"", why, x->at);
}

static void read_name(xml *x, char *name, size_t size)
{
    size_t n = 0;

    while (isalpha((unsigned char)*x->at) || (n && isdigit((unsigned char)*x->at)) ||
           (n && *x->at == '-')) {
        if (n + 1 >= size)
            refuse(x, "a long name");
        name[n++] = *x->at++;
    }
    name[n] = '\0';
    if (n == 0)
        refuse(x, "a name expected");
}

/* One character of text or of a value. */
static void read_character(xml *x)
{
    static const char *const entities[] = { "&amp;", "&lt;", "&gt;", "&quot;" };
    const size_t n = gx_utf8_sequence(x->at);

    if (n == 0 || ((unsigned char)*x->at < ' ' && *x->at != '\n'))
        refuse(x, "a byte that may not stand there");
    if (*x->at != '&') {
        x->at += n;
        return;
    }
    for (size_t i = 0; i < ARRAY_SIZE(entities); i++)
        if (strncmp(x->at, entities[i], strlen(entities[i])) == 0) {
            x->at += strlen(entities[i]);
            return;
        }
    refuse(x, "a bare &");
}

static void read_attributes(xml *x)
{
    char names[12][16];
    size_t n = 0;

    while (*x->at == ' ') {
        x->at++;
        assert_true(n < ARRAY_SIZE(names));
        read_name(x, names[n], sizeof names[n]);
        for (size_t i = 0; i < n; i++)
            if (strcmp(names[i], names[n]) == 0)
                refuse(x, "an attribute twice");
        n++;
        if (strncmp(x->at, "=\"", 2) != 0)
            refuse(x, "a value expected");
        x->at += 2;
        while (*x->at != '"') {
            if (*x->at == '<' || !*x->at)
                refuse(x, "a value without end");
            read_character(x);
        }
        x->at++;
    }
}

static void read_tag(xml *x)
{
    char name[16];

    x->at++;
    if (*x->at == '/') {
        x->at++;
        read_name(x, name, sizeof name);
        if (x->depth == 0 || strcmp(name, x->open[--x->depth]) != 0)
            refuse(x, "an end tag of another element");
    } else {
        read_name(x, name, sizeof name);
        read_attributes(x);
        if (*x->at == '/') {
            x->at++;
        } else {
            assert_true(x->depth < DEEPEST);
            strcpy(x->open[x->depth++], name);
        }
    }
    if (*x->at++ != '>')
        refuse(x, "> expected");
}

static void assert_xml(const char *text)
{
    xml x = { .at = text };

    if (strncmp(text, "<svg ", 5) != 0)
        refuse(&x, "no root element");
    do {
        if (*x.at == '<')
            read_tag(&x);
        else if (*x.at == '\0' || *x.at == '>')
            refuse(&x, "an element without end");
        else
            read_character(&x);
    } while (x.depth > 0);
    if (*x.at)
        refuse(&x, "something behind the root element");
    assert_null(strstr(text, "nan"));
    assert_null(strstr(text, "inf"));
    assert_null(strstr(text, "<script"));
}

/* The picture, checked; the caller frees. */
static char *draw(void)
{
    char *const text = sweep_text(&sweep, gx_sweep_put_svg);

    assert_xml(text);
    return text;
}

static size_t count(const char *text, const char *part)
{
    size_t n = 0;

    for (; (text = strstr(text, part)); text += strlen(part))
        n++;
    return n;
}

static void make(const char *first, const char *second)
{
    const char *const sets[] = { first, second };

    sweep_make(&sweep, &args, sets, second ? 2 : 1);
}

/* --- what is shown --- */

static void each_way_has_its_line_marks_and_name(void **state)
{
    static const char *const ways[] = { "unfused", "eager", "graph" };
    char part[64];

    (void)state;
    make("batch=1,8,64", NULL);
    for (size_t i = 0; i < 3; i++)
        sweep_measure(&sweep, i, (const int64_t[]){ 1 << (3 * i) }, 120, 80, 40);
    char *const text = draw();
    for (size_t w = 0; w < 3; w++) {
        snprintf(part, sizeof part, "<polyline class=\"line %s\"", ways[w]);
        assert_int_equal(count(text, part), 1);
        snprintf(part, sizeof part, "<path class=\"mark %s\"", ways[w]);
        assert_int_equal(count(text, part), 3);
        snprintf(part, sizeof part, "text-anchor=\"start\">%s</text>", ways[w]);
        assert_int_equal(count(text, part), 1);
    }
    assert_has(text, "made &lt;up&gt; &amp; \"quoted\": steady time of a step by batch");
    assert_has(text, "Both scales are logarithmic.");
    assert_has(text, "prefers-color-scheme:dark");
    assert_has(text, ">us a step</text>");
    /* The sizes themselves are marked. */
    assert_has(text, ">1</text>");
    assert_has(text, ">8</text>");
    assert_has(text, ">64</text>");
    free(text);
}

static void sizes_of_one_decade_are_linear(void **state)
{
    (void)state;
    make("batch=30,10,20", NULL);
    sweep_measure(&sweep, 0, (const int64_t[]){ 30 }, 120e3, 80e3, 40e3);
    sweep_measure(&sweep, 1, (const int64_t[]){ 10 }, 120e3, 80e3, 40e3);
    sweep_measure(&sweep, 2, (const int64_t[]){ 20 }, 120e3, 80e3, 40e3);
    char *const text = draw();
    assert_null(strstr(text, "logarithmic"));
    assert_has(text, ">ms a step</text>");
    /* By size, whatever the order given: the graph's line runs to the right and level. */
    const char *const line = strstr(text, "<polyline class=\"line graph\" points=\"");
    double x[3], y[3];
    assert_int_equal(sscanf(line,
                            "<polyline class=\"line graph\" points=\"%lf,%lf "
                            "%lf,%lf %lf,%lf\"",
                            &x[0], &y[0], &x[1], &y[1], &x[2], &y[2]),
                     6);
    assert_true(x[0] < x[1] && x[1] < x[2] && y[0] == y[1] && y[1] == y[2]);
    free(text);
}

static void a_point_without_figures_is_left_out_and_told(void **state)
{
    (void)state;
    make("batch=1,8,64", NULL);
    sweep_measure(&sweep, 0, (const int64_t[]){ 1 }, 120, 80, 40);
    sweep_fail(&sweep, 1, GX_ERR_DEVICE_MEMORY, "no room");
    char *const text = draw();
    assert_int_equal(count(text, "<path class=\"mark graph\""), 1);
    assert_has(text, "Left out, not measured: batch=8 (failed); batch=64;");
    free(text);
}

static void every_combination_of_further_sizes_has_a_panel(void **state)
{
    (void)state;
    make("batch=1,8", "hidden=16,32,64");
    for (size_t i = 0; i < 6; i++)
        if (i != 2 && i != 5)
            sweep_measure(&sweep, i, (const int64_t[]){ i < 3 ? 1 : 8, 16 << (i % 3) },
                          120, 80, 40);
    sweep_fail(&sweep, 2, GX_ERR_MODEL, "no");
    sweep_fail(&sweep, 5, GX_ERR_MODEL, "no");
    char *const text = draw();
    assert_int_equal(count(text, "<g transform="), 3);
    assert_has(text, ">hidden=16</text>");
    assert_has(text, ">hidden=32</text>");
    assert_has(text, ">hidden=64</text>");
    assert_int_equal(count(text, ">nothing measured</text>"), 1);
    assert_has(text, "; a panel for each hidden, on the same scales");
    assert_int_equal(count(text, "<path class=\"mark eager\""), 4);
    free(text);
}

static void nothing_measured_is_a_picture_that_says_so(void **state)
{
    (void)state;
    make("batch=1,8", NULL);
    sweep_fail(&sweep, 0, GX_ERR_MODEL, "a < b & \xFF\x01");
    char *const text = draw();
    assert_has(text, "No size was measured.");
    assert_has(text, "model.yaml");
    free(text);
}

static void names_at_the_ends_do_not_lie_on_each_other(void **state)
{
    double y[3];
    size_t n = 0;

    (void)state;
    make("batch=1,2", NULL);
    sweep_measure(&sweep, 0, (const int64_t[]){ 1 }, 80, 80, 80);
    sweep_measure(&sweep, 1, (const int64_t[]){ 2 }, 80, 80, 80);
    char *const text = draw();
    for (const char *at = text; (at = strstr(at, "class=\"name\"")) && n < 3; at++) {
        const char *place = at;

        while (strncmp(place, "y=\"", 3) != 0)
            place--;
        assert_int_equal(sscanf(place, "y=\"%lf", &y[n++]), 1);
    }
    assert_int_equal(n, 3);
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < i; j++)
            assert_true(y[i] - y[j] >= 13.9 || y[j] - y[i] >= 13.9);
    free(text);
}

static void bytes_that_are_no_text_do_not_break_the_picture(void **state)
{
    (void)state;
    make("batch=1\xFF,2<3,\x02&", NULL);
    sweep_fail(&sweep, 0, GX_ERR_MODEL, "no");
    char *const text = draw();
    assert_has(text, "batch=1\xEF\xBF\xBD");
    assert_has(text, "2&lt;3");
    free(text);
}

#define SVG_TEST(name) cmocka_unit_test_teardown(name, drop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SVG_TEST(each_way_has_its_line_marks_and_name),
        SVG_TEST(sizes_of_one_decade_are_linear),
        SVG_TEST(a_point_without_figures_is_left_out_and_told),
        SVG_TEST(every_combination_of_further_sizes_has_a_panel),
        SVG_TEST(nothing_measured_is_a_picture_that_says_so),
        SVG_TEST(names_at_the_ends_do_not_lie_on_each_other),
        SVG_TEST(bytes_that_are_no_text_do_not_break_the_picture),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
