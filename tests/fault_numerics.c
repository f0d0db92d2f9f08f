/* The models whose results are known exactly, as they are planned without a GPU: each
 * alternative that multiplies or sums up a bias's gradient is in one of them. */
#include "fake_cuda_paths.h"

#include <stdlib.h>
#include <string.h>

#include "ops.h"
#include "plan.h"
#include "support_numerics.h"
#include "support_walk.h"

enum { MOST = 512, CARD = 90 /* what is simulated */ };

/* By alternative: in a model whose operands are wide, in one with sums of many rows. */
static bool multiplies[MOST], adds[MOST];

static bool has_sums(const numerics_model *model)
{
    bool has = false;

    for (const numerics_tensor *t = model->expected; t->name; t++)
        has |= t->addend != NULL;
    return has;
}

static void mark(const numerics_model *model, const gx_plan *plan, const char *name)
{
    const gx_alternative *at;

    for (size_t i = 0; (at = gx_alternative_at(i)); i++) {
        assert_true(i < MOST);
        for (size_t u = 0; u < plan->n_units; u++) {
            if (plan->units[u].alternative != at || strcmp(at->name, name) != 0)
                continue;
            multiplies[i] |= numerics_is_wide(model);
            adds[i] |= has_sums(model);
        }
    }
}

/* How many units take it. */
static size_t plan_with(const numerics_model *model, const char *precision,
                        const char *name)
{
    const gx_plan_options options = {
        .device = 0, .cache_folder = "", .lanes = 1, .no_measure = true, .force = name
    };
    char *const text = test_walk_text(model->text, precision);
    gx_graph *graph;
    gx_plan *plan;
    gx_error err;

    assert_ok(gx_graph_parse(text, strlen(text), "m.yaml", ".", NULL, &graph, NULL, &err),
              &err);
    assert_ok(gx_plan_create(graph, &options, &plan, &err), &err);
    const size_t n = gx_plan_info_get(plan).n_forced;

    mark(model, plan, name);
    gx_plan_free(plan);
    gx_graph_free(graph);
    free(text);
    return n;
}

/* Names repeat, and a name forces all that have it. */
static bool is_first(size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(gx_alternative_at(k)->name, gx_alternative_at(i)->name) == 0)
            return false;
    return true;
}

static void force_everything(const numerics_model *model, const char *precision)
{
    const gx_alternative *at;

    for (size_t i = 0; (at = gx_alternative_at(i)); i++) {
        if (!is_first(i))
            continue;
        const size_t n = plan_with(model, precision, at->name);

        if (n == 0 && numerics_is_needed(model, precision, at->name) &&
            numerics_is_there(at->name, CARD))
            fail_msg("%s in %s: nothing takes %s", model->name, precision, at->name);
    }
}

static bool has_op(const gx_alternative *at, const char *op)
{
    bool has = false;

    for (int i = 0; at->pattern[i]; i++)
        has |= strcmp(at->pattern[i], op) == 0;
    return has;
}

static void expect(bool taken, const gx_alternative *at, const char *what)
{
    if (taken)
        return;
    for (int k = 0; at->pattern[k]; k++)
        print_error("%s ", at->pattern[k]);
    fail_msg("as %s: in no model with %s", at->name, what);
}

static void every_alternative_with_a_product_or_a_bias_is_forced(void **state)
{
    const gx_alternative *at;
    int n = 0;

    (void)state;
    for (const numerics_model *model = numerics_models; model->name; model++)
        for (const char *const *precision = model->precisions; *precision; precision++)
            force_everything(model, *precision);
    for (size_t i = 0; (at = gx_alternative_at(i)); i++) {
        const bool is_chain = strcmp(at->name, "chain") == 0; /* without a bias's sums */

        if (has_op(at, "gemm") && numerics_has_f32(at->name))
            expect(multiplies[i], at, "wide operands");
        if (has_op(at, "epilogue.bwd") && !is_chain && numerics_is_there(at->name, CARD))
            expect(adds[i], at, "sums of many rows");
        n += has_op(at, "gemm") || has_op(at, "epilogue.bwd");
    }
    assert_true(n >= 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_alternative_with_a_product_or_a_bias_is_forced),
    };

    path_start(false);
    return cmocka_run_group_tests_name("fault_numerics", tests, NULL, NULL);
}
