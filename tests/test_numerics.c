/* Gradients that are added, sums that are wide and operands of f32 that stay f32, on the
 * CPU, to the bit. */
#include <string.h>

#include "support.h"
#include "support_numerics.h"

static const char SHARED[] = "shared";

static void check(const numerics_model *model, gx_plan_options options)
{
    options.device = GX_CPU;
    for (const char *const *precision = model->precisions; *precision; precision++) {
        gx_plan_info info;
        const int wrong =
            numerics_mistakes(model, *precision, &options, GX_MODE_CPU, false, &info);

        if (wrong != 0)
            fail_msg("%s in %s: %d mistakes", model->name, *precision, wrong);
    }
}

/* All but `shared`. */
static void check_all(bool wide)
{
    for (const numerics_model *model = numerics_models; model->name; model++) {
        if (numerics_is_wide(model) == wide && strcmp(model->name, SHARED) != 0)
            check(model, (gx_plan_options){ .unfused = false });
    }
}

static void gradients_of_what_is_read_again_are_added(void **state)
{
    (void)state;
    check(numerics_find(SHARED), (gx_plan_options){ .unfused = false });
    check(numerics_find(SHARED), (gx_plan_options){ .unfused = true });
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_of_what_is_read_again_are_added),
        cmocka_unit_test(sums_of_many_rows_of_bf16_are_wide),
        cmocka_unit_test(operands_of_f32_are_not_rounded),
    };

    return cmocka_run_group_tests_name("numerics", tests, NULL, NULL);
}
