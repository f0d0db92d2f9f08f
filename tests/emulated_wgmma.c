/* Large products with what follows them, run on the CPU by tests/emulate. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "emulate_product.h"
#include "epilogue.h"

/* What follows, and how many clusters a card has room for: with one of them a block makes
 * many tiles. */
typedef struct way {
    gx_tile_tail tail;
    gx_act act;
    bool has_bias, has_pre, has_saved, has_sums, has_out;
    int n_sm;
} way;

typedef struct operands {
    emulate_operand bias, saved, pre, out, dbias;
    void *partial, *handed;
} operands;

/* --- operands and what must come out --- */

static void expect_forward(const emulate_product *p, const way *w, operands *o)
{
    for (int64_t i = 0; i < p->m * p->n; i++) {
        const double bias = w->has_bias ? o->bias.value[i % p->n] : 0;
        double y = p->value[i] + bias;

        o->pre.value[i] = y;
        gx_act_apply(w->act, &y, 1);
        o->out.value[i] = y;
        o->out.magnitude[i] = o->pre.magnitude[i] = fabs(p->value[i]) + fabs(bias);
    }
}

static void expect_backward(const emulate_product *p, const way *w, operands *o)
{
    for (int64_t i = 0; i < p->m * p->n; i++) {
        double dx = p->value[i];

        if (w->has_saved)
            dx = gx_act_back(w->act, dx, o->saved.value[i]);
        o->out.value[i] = dx;
        o->out.magnitude[i] = fabs(p->value[i]);
        o->dbias.value[i % p->n] += dx;
        o->dbias.magnitude[i % p->n] += fabs(p->value[i]);
    }
}

static operands make_operands(const emulate_product *p, const way *w, test_random *random)
{
    const gx_dtype dtype = emulate_dtype(p->math);
    operands o = {
        .bias = emulate_plain_input(dtype, p->n, random),
        .saved = emulate_plain_input(dtype, p->m * p->n, random),
        .pre = emulate_output(dtype, p->m * p->n),
        .out = emulate_output(dtype, p->m * p->n),
        .dbias = emulate_output(dtype, p->n),
        .partial = emulate_alloc((size_t)(gx_divide_up(p->m, GX_WGMMA_ROWS) * p->n) *
                                 sizeof(float)),
        .handed = emulate_handed(p->math, w->n_sm),
    };

    if (w->tail == GX_TAIL_BACKWARD)
        expect_backward(p, w, &o);
    else
        expect_forward(p, w, &o);
    return o;
}

static void drop_operands(operands *o)
{
    emulate_drop(&o->bias);
    emulate_drop(&o->saved);
    emulate_drop(&o->pre);
    emulate_drop(&o->out);
    emulate_drop(&o->dbias);
    emulate_free(o->partial);
    emulate_free(o->handed);
}

static gx_tile tile_of(const emulate_product *p, const way *w, const operands *o)
{
    gx_tile tile = {
        .m = p->m,
        .n = p->n,
        .k = p->k,
        .a = p->a.memory,
        .b = p->b.memory,
        .lda = p->lda,
        .ldb = p->ldb,
        .trans_a = p->a_turned,
        .trans_b = p->b_turned,
        .math = p->math,
        .tail = w->tail,
        .act = (int)w->act,
        .out = w->has_out ? o->out.memory : NULL,
        .bias = w->has_bias ? o->bias.memory : NULL,
        .pre = w->has_pre ? o->pre.memory : NULL,
        .saved = w->has_saved ? o->saved.memory : NULL,
        .dbias = w->has_sums ? o->dbias.memory : NULL,
        .partial = w->has_sums ? o->partial : NULL,
    };

    return tile;
}

static void check(emulate_product *p, const way *w, test_random *random)
{
    gx_ctx ctx = { .cc = 90, .n_sm = w->n_sm };
    gx_error err = { 0 };
    char what[200];

    snprintf(what, sizeof what,
             "%lld x %lld x %lld, math %d, turned: %d %d, tail %d, act %d, %d SMs",
             (long long)p->m, (long long)p->n, (long long)p->k, p->math, p->a_turned,
             p->b_turned, w->tail, w->act, w->n_sm);
    emulate_seed(test_random_bits(random));
    emulate_make_product(p, random);
    operands o = make_operands(p, w, random);
    const gx_tile tile = tile_of(p, w, &o);

    assert_ok(gx_wgmma_load(&tile, &err), &err);
    if (gx_wgmma_launch(&tile, &p->maps, o.handed, &ctx, &err) != GX_OK) {
        print_error("%s: %s\n", what, err.message);
        fail();
    }
    if (w->has_out)
        emulate_compare(&o.out, "out", what);
    if (w->has_pre)
        emulate_compare(&o.pre, "pre", what);
    if (w->has_sums)
        emulate_compare(&o.dbias, "dbias", what);
    drop_operands(&o);
    emulate_drop_product(p);
}

/* --- tests --- */

/* One tile that is hardly there, rows in the first block of a cluster alone, tiles that
 * are full, several down and across, and k of less than a stage and of more stages than
 * there are. */
static const int64_t sizes[][3] = {
    { 1, 8, 8 }, { 100, 264, 72 }, { 256, 256, 64 }, { 300, 520, 24 }, { 40, 16, 328 },
};

static int64_t n_sizes(void)
{
    return test_is_short() ? 2 : (int64_t)ARRAY_SIZE(sizes);
}

static emulate_product product_of(int64_t i, test_random *random)
{
    return (emulate_product){ .m = sizes[i][0],
                              .n = sizes[i][1],
                              .k = sizes[i][2],
                              .wide = 8 * test_random_int(random, 0, 1),
                              .math = test_random_int(random, 0, 1) ? GX_TILE_BF16
                                                                    : GX_TILE_F16 };
}

static int some_sms(test_random *random)
{
    return test_random_int(random, 0, 1) ? 2 : 132;
}

static void products_alone(void **state)
{
    const uint64_t *seed = *state;
    test_random random = test_random_start(*seed);

    for (int64_t i = 0; i < n_sizes() * 3; i++) {
        emulate_product p = product_of(i / 3, &random);
        const way w = { .tail = GX_TAIL_NONE,
                        .has_out = true,
                        .n_sm = some_sms(&random) };

        p.a_turned = i % 3 == 1;
        p.b_turned = i % 3 == 2;
        /* Rows of a that is turned lie along m. */
        p.m = p.a_turned ? gx_divide_up(p.m, 8) * 8 : p.m;
        check(&p, &w, &random);
    }
}

static void forward_tails(void **state)
{
    static const gx_act acts[] = { GX_ACT_NONE, GX_ACT_RELU, GX_ACT_GELU_TANH,
                                   GX_ACT_SILU };
    const uint64_t *seed = *state;
    test_random random = test_random_start(*seed + 1);

    for (int64_t i = 0; i < n_sizes() * 2; i++) {
        emulate_product p = product_of(i / 2, &random);
        const way w = { .tail = GX_TAIL_FORWARD,
                        .act = acts[i % (int64_t)ARRAY_SIZE(acts)],
                        .has_bias = test_random_int(&random, 0, 3) > 0,
                        .has_pre = test_random_int(&random, 0, 1),
                        .has_out = true,
                        .n_sm = some_sms(&random) };

        p.b_turned = i % 2;
        check(&p, &w, &random);
    }
}

static void backward_tails(void **state)
{
    static const gx_act acts[] = { GX_ACT_RELU, GX_ACT_GELU_TANH, GX_ACT_SILU };
    const uint64_t *seed = *state;
    test_random random = test_random_start(*seed + 2);

    for (int64_t i = 0; i < n_sizes() * 2; i++) {
        emulate_product p = product_of(i / 2, &random);
        way w = { .tail = GX_TAIL_BACKWARD,
                  .act = acts[i % (int64_t)ARRAY_SIZE(acts)],
                  .has_saved = test_random_int(&random, 0, 3) > 0,
                  .has_sums = test_random_int(&random, 0, 3) > 0,
                  .n_sm = some_sms(&random) };

        w.has_out = !w.has_sums || test_random_int(&random, 0, 3) > 0;
        p.b_turned = i % 2;
        check(&p, &w, &random);
    }
}

int main(void)
{
    static uint64_t seed;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(products_alone, &seed),
        cmocka_unit_test_prestate(forward_tails, &seed),
        cmocka_unit_test_prestate(backward_tails, &seed),
    };

    seed = test_seed();
    return cmocka_run_group_tests_name("emulated_wgmma", tests, NULL, NULL);
}
