/* Gradients that are added, sums that are wide and operands of f32 that stay f32, to the
 * bit, by every alternative on a GPU. */
#include <string.h>

#include "ops.h"
#include "support.h"
#include "support_gpu.h"
#include "support_numerics.h"
#include "support_rows.h"

enum { MAX_NAMES = 64 };

static const char SHARED[] = "shared";

/* The names that alternatives go by, each once; ends with NULL. */
static void list_names(const char *names[MAX_NAMES + 1])
{
    const gx_alternative *at;
    size_t n = 0;

    for (size_t i = 0; (at = gx_alternative_at(i)); i++) {
        bool known = false;

        for (size_t k = 0; k < n; k++)
            known |= strcmp(names[k], at->name) == 0;
        if (!known) {
            assert_true(n < MAX_NAMES);
            names[n++] = at->name;
        }
    }
    names[n] = NULL;
}

/* The step that is captured is run eagerly first, so under a tool the graph is enough. */
static int mistakes_in_both(const numerics_model *model, const char *precision,
                            const gx_plan_options *options, gx_plan_info *info)
{
    int wrong = 0;

    if (!test_is_short())
        wrong +=
            numerics_mistakes(model, precision, options, GX_MODE_EAGER, false, info) != 0;
    wrong +=
        numerics_mistakes(model, precision, options, GX_MODE_GRAPH, false, info) != 0;
    return wrong;
}

/* As planned, measured or not, with every op by itself, and with each alternative that
 * the model is there for and the card has: fault_numerics holds that none is left out. */
static void check(const numerics_model *model)
{
    const char *names[MAX_NAMES + 1];
    int wrong = 0;

    list_names(names);
    for (const char *const *precision = model->precisions; *precision; precision++) {
        gx_plan_options options = { .cache_folder = "",
                                    .lanes = 1,
                                    .programmatic = GX_OFF };
        gx_plan_info info;

        if (!test_is_short())
            wrong += mistakes_in_both(model, *precision, &options, &info);
        options.no_measure = true;
        wrong += mistakes_in_both(model, *precision, &options, &info);
        options.unfused = true;
        wrong += mistakes_in_both(model, *precision, &options, &info);
        options.unfused = false;
        for (size_t i = 0; names[i]; i++) {
            if (!numerics_is_needed(model, *precision, names[i]) ||
                !numerics_is_there(names[i], test_device_cc()))
                continue;
            options.force = names[i];
            wrong += mistakes_in_both(model, *precision, &options, &info);
            if (info.n_forced == 0) {
                print_error("%s in %s: nothing took %s\n", model->name, *precision,
                            names[i]);
                wrong++;
            }
        }
    }
    assert_int_equal(wrong, 0);
}

/* All but `shared`. */
static void check_all(bool wide)
{
    for (const numerics_model *model = numerics_models; model->name; model++) {
        if (numerics_is_wide(model) == wide && strcmp(model->name, SHARED) != 0)
            check(model);
    }
}

static void gradients_of_what_is_read_again_are_added(void **state)
{
    (void)state;
    check(numerics_find(SHARED));
}

static void sums_of_many_rows_of_bf16_are_wide(void **state)
{
    (void)state;
    check_all(false);
}

static void operands_of_f32_are_not_rounded(void **state)
{
    (void)state;
    check_all(true);
}

/* Asked for tf32, our own kernels round: so the test above would see it. The library may
 * keep f32 in a product as small. */
static void tf32_would_show(void **state)
{
    static const char *const ours[] = { "tile", "fused" };
    const numerics_model *const model = numerics_find("wide");

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(ours); i++) {
        const gx_plan_options options = { .cache_folder = "",
                                          .lanes = 1,
                                          .programmatic = GX_OFF,
                                          .no_measure = true,
                                          .force = ours[i] };
        gx_plan_info info;

        assert_true(
            numerics_mistakes(model, "tf32", &options, GX_MODE_GRAPH, true, &info) > 0);
    }
}

int main(void)
{
    gpu_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_of_what_is_read_again_are_added),
        cmocka_unit_test(sums_of_many_rows_of_bf16_are_wide),
        cmocka_unit_test(operands_of_f32_are_not_rounded),
        cmocka_unit_test(tf32_would_show),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
