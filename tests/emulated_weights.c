/* Gradients of several layers' parameters in one launch, alone and with adam's updates,
 * run on the CPU by tests/emulate. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "emulate_operand.h"
#include "emulate_updated.h"
#include "weights.h"

enum { MOST_LAYERS = 5 };

typedef struct net {
    int n_layers;
    int size[MOST_LAYERS][3]; /* m, n, k */
    gx_tile_math math;
    bool sums_of_a;
    int wide; /* elements that rows are longer than what is used of them */
} net;

typedef struct operands {
    emulate_operand a[MOST_LAYERS], b[MOST_LAYERS], out[MOST_LAYERS], dbias[MOST_LAYERS];
} operands;

static void describe(const net *n, int shape, char *text, size_t size)
{
    static const char *const maths[] = { "f32", "tf32", "bf16", "f16" };
    int used = snprintf(text, size, "%s, sums of %s, shape %d:", maths[n->math],
                        n->sums_of_a ? "a" : "b", shape);

    for (int l = 0; l < n->n_layers; l++)
        used += snprintf(text + used, size - (size_t)used, " %d x %d x %d", n->size[l][0],
                         n->size[l][1], n->size[l][2]);
}

/* --- operands and what must come out --- */

static void multiply(const net *n, operands *o, int l)
{
    const int m = n->size[l][0], width = n->size[l][1], k = n->size[l][2];

    for (int i = 0; i < m * width; i++) {
        for (int at = 0; at < k; at++) {
            const double term = o->a[l].value[at * (m + n->wide) + i / width] *
                                o->b[l].value[at * (width + n->wide) + i % width];

            o->out[l].value[i] += term;
            o->out[l].magnitude[i] += fabs(term);
        }
    }
}

/* The ordinary cores add up what is not rounded to tf32. */
static void add_lines(const net *n, operands *o, int l)
{
    const emulate_operand *from = n->sums_of_a ? &o->a[l] : &o->b[l];
    const int lines = n->size[l][n->sums_of_a ? 0 : 1];

    for (int i = 0; i < lines; i++) {
        for (int at = 0; at < n->size[l][2]; at++) {
            const int e = at * (lines + n->wide) + i;
            const double x = n->math == GX_TILE_TF32
                                 ? (double)((const float *)from->memory)[e]
                                 : from->value[e];

            o->dbias[l].value[i] += x;
            o->dbias[l].magnitude[i] += fabs(x);
        }
    }
}

static operands make_operands(const net *n, test_random *random)
{
    const gx_dtype dtype = emulate_dtype(n->math);
    operands o = { 0 };

    for (int l = 0; l < n->n_layers; l++) {
        const int m = n->size[l][0], width = n->size[l][1], k = n->size[l][2];

        o.a[l] = emulate_input(n->math, (int64_t)k * (m + n->wide), random);
        o.b[l] = emulate_input(n->math, (int64_t)k * (width + n->wide), random);
        o.out[l] = emulate_output(dtype, (int64_t)m * width);
        o.dbias[l] = emulate_output(dtype, n->sums_of_a ? m : width);
        multiply(n, &o, l);
        add_lines(n, &o, l);
    }
    return o;
}

static void drop_operands(operands *o)
{
    for (int l = 0; l < MOST_LAYERS; l++) {
        emulate_drop(&o->a[l]);
        emulate_drop(&o->b[l]);
        emulate_drop(&o->out[l]);
        emulate_drop(&o->dbias[l]);
    }
}

static gx_weights weights_of(const net *n, const operands *o)
{
    gx_weights weights = { .n_layers = n->n_layers,
                           .sums_of_a = n->sums_of_a,
                           .math = n->math };

    for (int l = 0; l < n->n_layers; l++)
        weights.layer[l] = (gx_weights_layer){
            .a = o->a[l].memory,
            .b = o->b[l].memory,
            .out = o->out[l].memory,
            .dbias = o->dbias[l].memory,
            .m = n->size[l][0],
            .n = n->size[l][1],
            .k = n->size[l][2],
            .lda = n->size[l][0] + n->wide,
            .ldb = n->size[l][1] + n->wide,
        };
    return weights;
}

/* --- one net by every shape --- */

/* Of so many multiprocessors that their share of the blocks differs. */
static gx_ctx some_device(test_random *random)
{
    return (gx_ctx){ .cc = 90,
                     .n_sm = (int)test_random_int(random, 1, 40),
                     .shared_optin_bytes = 232448 };
}

static int check_net(const net *n, test_random *random)
{
    gx_ctx ctx = some_device(random);
    operands o = make_operands(n, random);
    gx_weights weights = weights_of(n, &o);
    gx_error err = { 0 };
    char what[200];
    int ran = 0;

    for (weights.shape = 0; weights.shape < GX_N_WEIGHTS; weights.shape++) {
        if (!gx_weights_has(&weights))
            continue;
        describe(n, weights.shape, what, sizeof what);
        for (int l = 0; l < n->n_layers; l++) {
            emulate_forget(&o.out[l]);
            emulate_forget(&o.dbias[l]);
        }
        assert_ok(gx_weights_load(&weights, &ctx, &err), &err);
        if (gx_weights_launch(&weights, &ctx, &err) != GX_OK) {
            print_error("%s: %s\n", what, err.message);
            fail();
        }
        for (int l = 0; l < n->n_layers; l++) {
            emulate_compare(&o.out[l], "out", what);
            emulate_compare(&o.dbias[l], "dbias", what);
        }
        ran++;
    }
    drop_operands(&o);
    return ran;
}

/* --- with the updates --- */

static void set_steady(const gx_weights_update *update)
{
    for (int l = 0; l < update->weights.n_layers; l++) {
        const gx_updated of[] = { update->weight[l], update->bias[l] };

        for (int i = 0; i < 2; i++) {
            emulate_steady(of[i].param, update->is_ahead);
            emulate_steady(of[i].m, update->is_ahead);
            emulate_steady(of[i].v, update->is_ahead);
        }
    }
}

static void launch_update(gx_weights_update *update, test_random *random,
                          const char *what)
{
    gx_ctx ctx = some_device(random);
    gx_error err = { 0 };
    void *lr, *step;

    update->settings = emulate_update_settings(&lr, &step);
    update->step = step;
    update->is_ahead = test_random_int(random, 0, 1) == 1;
    set_steady(update);
    emulate_steady(lr, update->is_ahead);
    emulate_steady(step, update->is_ahead);
    assert_ok(gx_weights_update_load(update, &ctx, &err), &err);
    if (gx_weights_update_launch(update, &ctx, &err) != GX_OK) {
        print_error("%s: %s\n", what, err.message);
        fail();
    }
    emulate_free(lr);
    emulate_free(step);
}

/* In every other shape somebody else reads the gradients too. */
static int check_updates(const net *n, test_random *random)
{
    operands o = make_operands(n, random);
    gx_weights_update update = { .weights = weights_of(n, &o) };
    emulate_updated weight[MOST_LAYERS], bias[MOST_LAYERS];
    char what[200];
    int ran = 0;

    for (int l = 0; l < n->n_layers; l++) {
        weight[l] = emulate_make_updated(&o.out[l], random);
        bias[l] = emulate_make_updated(&o.dbias[l], random);
    }
    for (int shape = 0; shape < GX_N_WEIGHTS; shape++) {
        update.weights = weights_of(n, &o);
        update.weights.shape = shape;
        if (!gx_weights_has(&update.weights))
            continue;
        const bool is_read = ran++ % 2 != 0;

        describe(n, shape, what, sizeof what);
        for (int l = 0; l < n->n_layers; l++) {
            emulate_forget(&o.out[l]);
            emulate_forget(&o.dbias[l]);
            update.weight[l] = emulate_bring_back(&weight[l]);
            update.bias[l] = emulate_bring_back(&bias[l]);
            if (!is_read)
                update.weights.layer[l].out = update.weights.layer[l].dbias = NULL;
        }
        launch_update(&update, random, what);
        for (int l = 0; l < n->n_layers; l++) {
            emulate_compare_updated(&weight[l], "a weight", what);
            emulate_compare_updated(&bias[l], "a bias", what);
            if (is_read) {
                emulate_compare(&o.out[l], "out", what);
                emulate_compare(&o.dbias[l], "dbias", what);
            }
        }
    }
    for (int l = 0; l < n->n_layers; l++) {
        emulate_drop_updated(&weight[l]);
        emulate_drop_updated(&bias[l]);
    }
    drop_operands(&o);
    return ran;
}

/* --- tests --- */

/* Layers of one tile and of many, tiles that are full and not, warps to spare in the last
 * block, k that is no multiple of 4 and more than a turn. */
static const net nets[] = {
    { .n_layers = 2, .size = { { 4, 2, 1 }, { 16, 16, 16 } } },
    { .n_layers = 5,
      .size = { { 40, 20, 33 },
                { 4, 66, 33 },
                { 32, 32, 33 },
                { 8, 10, 33 },
                { 100, 18, 33 } } },
    { .n_layers = 3, .size = { { 34, 64, 256 }, { 16, 6, 256 }, { 50, 16, 70 } } },
    /* Rows of whole vectors, few and as many as a batch has. */
    { .n_layers = 3, .size = { { 40, 72, 200 }, { 8, 16, 256 }, { 96, 120, 130 } } },
    { .n_layers = 2, .size = { { 136, 64, 70 }, { 64, 104, 1 } } },
    /* Whole tiles, more than the blocks of a device have warps. */
    { .n_layers = 3, .size = { { 64, 64, 32 }, { 32, 96, 32 }, { 96, 32, 64 } } },
    { .n_layers = 4,
      .size = { { 40, 64, 33 }, { 6, 36, 32 }, { 18, 4, 70 }, { 34, 40, 5 } } },
};
static const gx_tile_math maths[] = { GX_TILE_TF32, GX_TILE_BF16, GX_TILE_F16 };

static void check_all(bool sums_of_a, uint64_t seed,
                      int (*check)(const net *n, test_random *random))
{
    test_random random = test_random_start(seed);
    int ran = 0;

    for (size_t i = 0; i < ARRAY_SIZE(nets) * ARRAY_SIZE(maths); i++) {
        net n = nets[i / ARRAY_SIZE(maths)];

        n.math = maths[i % ARRAY_SIZE(maths)];
        n.sums_of_a = sums_of_a;
        n.wide = (int)test_random_int(&random, 0, 1) * 4;
        emulate_seed(test_random_bits(&random));
        ran += check(&n, &random);
    }
    assert_true(ran > 20);
}

static void gradients_with_sums_of_the_second_operand(void **state)
{
    const uint64_t *seed = *state;

    check_all(false, *seed, check_net);
}

static void gradients_with_sums_of_the_first_operand(void **state)
{
    const uint64_t *seed = *state;

    check_all(true, *seed + 1, check_net);
}

static void updates_with_sums_of_the_second_operand(void **state)
{
    const uint64_t *seed = *state;

    check_all(false, *seed + 2, check_updates);
}

static void updates_with_sums_of_the_first_operand(void **state)
{
    const uint64_t *seed = *state;

    check_all(true, *seed + 3, check_updates);
}

int main(void)
{
    static uint64_t seed;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(gradients_with_sums_of_the_second_operand, &seed),
        cmocka_unit_test_prestate(gradients_with_sums_of_the_first_operand, &seed),
        cmocka_unit_test_prestate(updates_with_sums_of_the_second_operand, &seed),
        cmocka_unit_test_prestate(updates_with_sums_of_the_first_operand, &seed),
    };

    seed = test_seed();
    return cmocka_run_group_tests_name("emulated_weights", tests, NULL, NULL);
}
