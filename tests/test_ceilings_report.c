/* A card's ceilings as text and as JSON: each figure under its name, n/a where there is
 * none. */
#include <stdio.h>
#include <stdlib.h>

#include "ceilings_report.h"
#include "support.h"

static const gx_ceilings known = {
    .card = "Card",
    .driver_version = 13000,
    .runtime_version = 12040,
    .date = "2026-01-31T12:34:56Z",
    .flops_per_s = { 5.125e13, 4e14, 7.5e14, -1 },
    .copy = { { 64 << 10, 5.5e12 }, { 1 << 30, 2.75e12 } },
    .n_copy = 2,
    .node_s = 1.25e-6,
    .programmatic_node_s = -1,
    .step_s = 2.5e-6,
    .launch_s = 1.75e-6,
    .graph_host_s = 3.25e-6,
};

static char *printed(const gx_ceilings *ceilings)
{
    char *path = test_path("ceilings.txt");
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    gx_ceilings_print(ceilings, file);
    assert_int_equal(fclose(file), 0);
    char *text = test_read(path, NULL);
    free(path);
    return text;
}

static char *written(const gx_ceilings *ceilings)
{
    char *path = test_path("ceilings.json");
    gx_json *json = gx_json_create();
    gx_error err = { 0 };

    gx_json_object(json, NULL);
    gx_ceilings_json(json, "ceilings", ceilings);
    gx_json_end(json);
    assert_ok(gx_json_write(json, path, &err), &err);
    gx_json_free(json);
    char *text = test_read(path, NULL);
    free(path);
    return text;
}

static void the_text_has_each_figure(void **state)
{
    char *text = printed(&known);

    (void)state;
    assert_has(text, "ceilings of Card, measured 2026-01-31T12:34:56Z (driver 13.0, "
                     "toolkit 12.4)\n");
    assert_has(text, "f32           51.25 TFLOP/s\n");
    assert_has(text, "bf16         750.00 TFLOP/s\n");
    assert_has(text, "f16                     n/a\n");
    assert_has(text, "64.00 KiB");
    assert_has(text, "5.50 TB/s\n");
    assert_has(text, "1.00 GiB");
    assert_has(text, "2.75 TB/s\n");
    assert_has(text, "programmatic edge          n/a\n");
    assert_has(text, "back to back  2.50 us\n");
    free(text);
}

static void the_json_has_each_figure(void **state)
{
    char *text = written(&known);

    (void)state;
    assert_has(text, "\"card\": \"Card\"");
    assert_has(text, "\"driver_cuda\": \"13.0\"");
    assert_has(text, "\"date\": \"2026-01-31T12:34:56Z\"");
    assert_has(text, "\"tf32\": 4e+14");
    assert_has(text, "\"f16\": null");
    assert_has(text, "\"bytes\": 1073741824");
    assert_has(text, "\"bytes_per_s\": 2.75e+12");
    assert_has(text, "\"node_s\": 1.25e-06");
    assert_has(text, "\"programmatic_node_s\": null");
    assert_has(text, "\"graph_host_s\": 3.25e-06");
    free(text);
}

static void without_sizes_the_table_says_so(void **state)
{
    gx_ceilings none = known;

    (void)state;
    none.n_copy = 0;
    char *text = printed(&none);
    assert_has(text, "n/a               n/a\n");
    free(text);
    text = written(&none);
    assert_has(text, "\"copy\": []");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_text_has_each_figure),
        cmocka_unit_test(the_json_has_each_figure),
        cmocka_unit_test(without_sizes_the_table_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
