/* Gradients that are added, sums that are wide and operands of f32 that stay f32, on the
 * CPU, to the bit. */
#include "support.h"
#include "support_numerics.h"

static void check(const char *name, gx_plan_options options)
{
    const numerics_model *const model = numerics_find(name);

    assert_non_null(model);
    options.device = GX_CPU;
    for (const char *const *precision = model->precisions; *precision; precision++) {
        gx_plan_info info;

        assert_int_equal(
            numerics_mistakes(model, *precision, &options, GX_MODE_CPU, false, &info), 0);
    }
}

static void gradients_of_what_is_read_again_are_added(void **state)
{
    (void)state;
    check("shared", (gx_plan_options){ .unfused = false });
    check("shared", (gx_plan_options){ .unfused = true });
}

static void sums_of_many_rows_of_bf16_are_wide(void **state)
{
    (void)state;
    check("small_sums", (gx_plan_options){ .unfused = false });
    check("few_sums", (gx_plan_options){ .unfused = false });
    check("small_gradients", (gx_plan_options){ .unfused = false });
    check("mse_sums", (gx_plan_options){ .unfused = false });
    check("l1_sums", (gx_plan_options){ .unfused = false });
    check("bce_sums", (gx_plan_options){ .unfused = false });
    check("sce_sums", (gx_plan_options){ .unfused = false });
}

static void operands_of_f32_are_not_rounded(void **state)
{
    (void)state;
    check("wide", (gx_plan_options){ .unfused = false });
    check("wide_gradients", (gx_plan_options){ .unfused = false });
    check("wide_third", (gx_plan_options){ .unfused = false });
    check("mse_wide", (gx_plan_options){ .unfused = false });
    check("sce_bare", (gx_plan_options){ .unfused = false });
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_of_what_is_read_again_are_added),
        cmocka_unit_test(sums_of_many_rows_of_bf16_are_wide),
        cmocka_unit_test(operands_of_f32_are_not_rounded),
    };

    return cmocka_run_group_tests_name("numerics", tests, NULL, NULL);
}
