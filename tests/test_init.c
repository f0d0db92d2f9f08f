/* Initialisers: reading them and the values that they give. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "emit.h"
#include "philox.h"
#include "support_model.h"

static void philox_gives_the_published_words(void **state)
{
    static const struct {
        uint64_t key, low, high;
        uint32_t out[4];
    } known[] = {
        { 0, 0, 0, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
        { UINT64_MAX,
          UINT64_MAX,
          UINT64_MAX,
          { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
        { UINT64_C(0x299f31d0a4093822),
          UINT64_C(0x85a308d3243f6a88),
          UINT64_C(0x0370734413198a2e),
          { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
    };
    uint32_t out[4];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
        gx_philox(known[i].key, known[i].low, known[i].high, out);
        assert_memory_equal(out, known[i].out, sizeof out);
    }
}

static bool read_init(const char *text, gx_init *init, char *message, size_t size)
{
    gx_graph *graph = gx_graph_new();
    gx_diagnostics *list = gx_diagnostics_create();
    const bool good = gx_read_init_text(graph, text, init, list, (gx_pos){ 0 });

    message[0] = '\0';
    if (!good)
        strncat(message, gx_diagnostics_at(list, 0).message, size - 1);
    assert_int_equal(gx_diagnostics_count(list), good ? 0 : 1);
    if (good) { /* its text reads back to the same */
        gx_init back;
        gx_text written = { 0 };

        gx_put_init(&written, graph, init);
        assert_false(written.failed);
        assert_true(gx_read_init_text(graph, written.bytes, &back, list, (gx_pos){ 0 }));
        free(written.bytes);
        assert_int_equal(back.kind, init->kind);
        assert_true(back.a == init->a && back.b == init->b);
        if (init->path)
            assert_string_equal(back.path, init->path);
    }
    gx_diagnostics_free(list);
    gx_graph_free(graph);
    return good;
}

static void every_form_is_read(void **state)
{
    static const struct {
        const char *text;
        gx_init_kind kind;
        double a, b;
    } good[] = {
        { "zeros", GX_INIT_ZEROS, 0, 0 },
        { "ones", GX_INIT_ONES, 0, 0 },
        { "{constant: -0.25}", GX_INIT_CONSTANT, -0.25, 0 },
        { "constant: 1e-3", GX_INIT_CONSTANT, 1e-3, 0 },
        { "normal", GX_INIT_NORMAL, 0, 1 },
        { "normal: {std: 0.02}", GX_INIT_NORMAL, 0, 0.02 },
        { "{normal: {mean: -1, std: 0.5}}", GX_INIT_NORMAL, -1, 0.5 },
        { "{uniform: [-1, 0.5]}", GX_INIT_UNIFORM, -1, 0.5 },
        { "he_normal", GX_INIT_HE_NORMAL, 0, 0 },
        { "he_uniform", GX_INIT_HE_UNIFORM, 0, 0 },
        { "xavier_normal", GX_INIT_XAVIER_NORMAL, 0, 0 },
        { "xavier_uniform", GX_INIT_XAVIER_UNIFORM, 0, 0 },
        { "torch_linear", GX_INIT_TORCH_LINEAR, 0, 0 },
        { "torch_linear: {fan_in: 8 * 8}", GX_INIT_TORCH_LINEAR, 64, 0 },
        { "{integers: [0, 10]}", GX_INIT_INTEGERS, 0, 10 },
        { "{integers: [-2147483648, 2147483648]}", GX_INIT_INTEGERS, INT32_MIN, 0x1p31 },
        { "{file: 'tests/data/my w.npy'}", GX_INIT_FILE, 0, 0 },
    };
    char message[300];
    gx_init init;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        if (!read_init(good[i].text, &init, message, sizeof message))
            fail_msg("%s: %s", good[i].text, message);
        assert_int_equal(init.kind, good[i].kind);
        assert_true(init.a == good[i].a && init.b == good[i].b);
    }
}

static void bad_forms_are_named(void **state)
{
    static const struct {
        const char *text, *message;
    } bad[] = {
        { "he_norml", "did you mean \"he_normal\"" },
        { "kaiming", "there is no initialiser \"kaiming\"" },
        { "constant", "needs a value" },
        { "file", "needs a value" },
        { "zeros: 1", "takes no value" },
        { "constant: x", "decimal number" },
        { "constant: .nan", "decimal number" },
        { "normal: {stdev: 1}", "did you mean \"std\"" },
        { "normal: {std: -1}", "0 or more" },
        { "normal: [0, 1]", "expected a map" },
        { "uniform: [1, 0]", "below the second" },
        { "uniform: [1]", "two numbers, found 1" },
        { "uniform: 1", "expected a list" },
        { "integers: [3, 3]", "below the second" },
        { "integers: [0, 0.5]", "whole decimal" },
        { "integers: [0, 4294967296]", "32 bits" },
        { "torch_linear: {fan_in: 0}", "1 or more" },
        { "{zeros: , ones: }", "one initialiser, found 2" },
        { "[1]", "expected an initialiser" },
        { "file: /etc/passwd", "is absolute" },
        { "file: ../w.npy", "\"..\"" },
        { "a: b: c", "not YAML" },
        { "", "empty" },
    };
    char message[300];
    gx_init init;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        if (read_init(bad[i].text, &init, message, sizeof message))
            fail_msg("\"%s\" was read", bad[i].text);
        assert_has(message, bad[i].message);
    }
}

/* --- values --- */

static gx_value make_value(const char *name, gx_init_kind kind, int64_t rows,
                           int64_t columns)
{
    return (gx_value){ .name = name,
                       .kind = GX_VALUE_PARAM,
                       .dtype = GX_F32,
                       .rank = 2,
                       .dim = { rows, columns },
                       .has_shape = true,
                       .has_init = true,
                       .init = { .kind = kind, .b = 1 } };
}

static void moments(const double *x, int64_t n, double *mean, double *deviation,
                    double *most)
{
    double sum = 0, squares = 0;

    *most = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += x[i];
        squares += x[i] * x[i];
        *most = fmax(*most, fabs(x[i]));
    }
    *mean = sum / (double)n;
    *deviation = sqrt(squares / (double)n - *mean * *mean);
}

/* Six standard errors: a fair generator fails this once in some 10^8 runs. */
static void spreads_are_as_written_down(void **state)
{
    enum { IN = 100, OUT = 300, N = IN * OUT };
    const double root3 = sqrt(3.0);
    const struct {
        gx_init_kind kind;
        double deviation;
        bool is_uniform;
    } cases[] = {
        { GX_INIT_HE_NORMAL, sqrt(2.0 / IN), false },
        { GX_INIT_HE_UNIFORM, sqrt(6.0 / IN) / root3, true },
        { GX_INIT_XAVIER_NORMAL, sqrt(2.0 / (IN + OUT)), false },
        { GX_INIT_XAVIER_UNIFORM, sqrt(6.0 / (IN + OUT)) / root3, true },
        { GX_INIT_TORCH_LINEAR, 1 / sqrt(IN) / root3, true },
    };
    double *x = malloc(N * sizeof *x);
    const uint64_t seed = test_seed();
    double mean, deviation, most;
    gx_error err;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const gx_value value = make_value("w", cases[i].kind, IN, OUT);
        const double expected = cases[i].deviation;

        gx_error_clear(&err);
        assert_ok(gx_init_fill(&value, seed, x, N, &err), &err);
        moments(x, N, &mean, &deviation, &most);
        assert_true(fabs(mean) < 6 * expected / sqrt(N));
        assert_true(fabs(deviation / expected - 1) < 6 / sqrt(2.0 * N));
        if (cases[i].is_uniform)
            assert_true(most <= expected * root3 && most > 0.99 * expected * root3);
        else
            assert_true(most > 3 * expected && most < 8 * expected);
    }
    free(x);
}

static void fans_of_the_layer_go_first(void **state)
{
    gx_value value = make_value("w", GX_INIT_TORCH_LINEAR, 1000, 4);
    double x[4000], most, mean, deviation;
    gx_error err;

    (void)state;
    value.fan_in = 4; /* the weight is stored [out, in] */
    value.fan_out = 1000;
    gx_error_clear(&err);
    assert_ok(gx_init_fill(&value, 1, x, 4000, &err), &err);
    moments(x, 4000, &mean, &deviation, &most);
    assert_true(most > 0.49 && most <= 0.5);
    value.rank = 1;
    value.fan_in = 0;
    assert_fails(gx_init_fill(&value, 1, x, 1000, &err), GX_ERR_MODEL, &err,
                 "tensor \"w\": its initialiser needs the size of the layer's input");
    value.init.a = 16;
    gx_error_clear(&err);
    assert_ok(gx_init_fill(&value, 1, x, 1000, &err), &err);
    moments(x, 1000, &mean, &deviation, &most);
    assert_true(most > 0.24 && most <= 0.25);
}

static void values_depend_on_seed_name_and_index_alone(void **state)
{
    const gx_value a = make_value("a", GX_INIT_NORMAL, 10, 10);
    gx_value b = make_value("b", GX_INIT_NORMAL, 10, 10);
    double x[100], y[100];
    gx_error err;

    (void)state;
    gx_error_clear(&err);
    assert_ok(gx_init_fill(&a, 5, x, 100, &err), &err);
    assert_ok(gx_init_fill(&a, 5, y, 50, &err), &err);
    assert_memory_equal(x, y, 50 * sizeof *x);
    assert_ok(gx_init_fill(&a, 6, y, 100, &err), &err);
    assert_memory_not_equal(x, y, sizeof x);
    assert_ok(gx_init_fill(&b, 5, y, 100, &err), &err);
    assert_memory_not_equal(x, y, sizeof x);
    b.name = "a";
    b.rank = 1;
    b.dim[0] = 100;
    assert_ok(gx_init_fill(&b, 5, y, 100, &err), &err);
    assert_memory_equal(x, y, sizeof x);
}

static void integers_cover_their_range(void **state)
{
    gx_value value = make_value("labels", GX_INIT_INTEGERS, 1, 10000);
    int64_t counts[10] = { 0 };
    double x[10000];
    gx_error err;

    (void)state;
    value.dtype = GX_I32;
    value.init.a = -3;
    value.init.b = 7;
    gx_error_clear(&err);
    assert_ok(gx_init_fill(&value, test_seed(), x, 10000, &err), &err);
    for (int i = 0; i < 10000; i++) {
        assert_true(x[i] == floor(x[i]) && x[i] >= -3 && x[i] < 7);
        counts[(int)x[i] + 3]++;
    }
    for (int i = 0; i < 10; i++)
        assert_true(counts[i] > 800 && counts[i] < 1200);
    value.init.a = INT32_MIN;
    value.init.b = 0x1p31;
    assert_ok(gx_init_fill(&value, 1, x, 10000, &err), &err);
    for (int i = 0; i < 10000; i++)
        assert_true(x[i] >= INT32_MIN && x[i] <= INT32_MAX);
}

static void constants_and_files_fill(void **state)
{
    float stored[] = { 1.5f, -2, 3 };
    const gx_tensor t = { .dtype = GX_F32, .rank = 1, .dim = { 3 }, .data = stored };
    char *path = test_path("w.npy");
    gx_value value = { .name = "w", .rank = 1, .dim = { 3 }, .has_init = true };
    double x[3] = { 9, 9, 9 };
    gx_error err;

    (void)state;
    assert_ok(gx_npy_write(path, &t, &err), &err);
    assert_ok(gx_init_fill(&value, 1, x, 3, &err), &err);
    assert_true(x[0] == 0 && x[1] == 0 && x[2] == 0);
    value.init.kind = GX_INIT_ONES;
    assert_ok(gx_init_fill(&value, 1, x, 3, &err), &err);
    assert_true(x[0] == 1 && x[2] == 1);
    value.init = (gx_init){ .kind = GX_INIT_CONSTANT, .a = -4 };
    assert_ok(gx_init_fill(&value, 1, x, 3, &err), &err);
    assert_true(x[0] == -4 && x[2] == -4);
    value.init = (gx_init){ .kind = GX_INIT_FILE, .path = path };
    assert_ok(gx_init_fill(&value, 1, x, 3, &err), &err);
    assert_true(x[0] == 1.5 && x[1] == -2 && x[2] == 3);
    value.dim[0] = 2;
    assert_fails(gx_init_fill(&value, 1, x, 2, &err), GX_ERR_SHAPE, &err, "shape [3]");
    value.init.path = "tests/data/none.npy";
    assert_fails(gx_init_fill(&value, 1, x, 2, &err), GX_ERR_READ, &err, "No such file");
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox_gives_the_published_words),
        cmocka_unit_test(every_form_is_read),
        cmocka_unit_test(bad_forms_are_named),
        cmocka_unit_test(spreads_are_as_written_down),
        cmocka_unit_test(fans_of_the_layer_go_first),
        cmocka_unit_test(values_depend_on_seed_name_and_index_alone),
        cmocka_unit_test(integers_cover_their_range),
        cmocka_unit_test(constants_and_files_fill),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
