/* Losses of each element and their derivatives, run on the CPU by tests/emulate. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "emulate_operand.h"
#include "emulate_point.h"

typedef struct pointwise {
    int64_t n;
    gx_pointwise_kind kind;
    gx_dtype dtype, target_dtype;
    bool wide, large, has_loss, has_dx;
    int blocks;
} pointwise;

typedef struct operands {
    emulate_operand x, target, loss, dx;
} operands;

static const double dy = 0.75;

static operands make_operands(const pointwise *p, test_random *random)
{
    operands o = {
        .x = emulate_plain_input(p->dtype, p->n, random),
        .target = emulate_plain_input(p->target_dtype, p->n, random),
        .loss = emulate_output(GX_F32, 1),
        .dx = emulate_output(p->dtype, p->n),
    };
    const double share = 1.0 / (double)p->n;

    for (int64_t i = 0; i < p->n; i++) {
        const double x = o.x.value[i], target = o.target.value[i];
        double slope;

        o.loss.value[0] += share * emulate_point(p->kind, x, target, &slope);
        o.loss.magnitude[0] += share * (1 + x * x + target * target);
        o.dx.value[i] = slope * share * dy;
        o.dx.magnitude[i] = (1 + fabs(x) + fabs(target)) * share;
    }
    return o;
}

static gx_status run(const pointwise *p, const operands *o, gx_ctx *ctx, gx_error *err)
{
    const float scale = (float)dy;
    float *const given = memcpy(emulate_alloc(sizeof scale), &scale, sizeof scale);
    const gx_pointwise_loss loss = {
        .n = p->n,
        .kind = p->kind,
        .dtype = p->dtype,
        .target_dtype = p->target_dtype,
        .wide = p->wide,
        .large = p->large,
        .x = o->x.memory,
        .target = o->target.memory,
        .out = p->has_loss ? o->loss.memory : NULL,
        .dx = p->has_dx ? o->dx.memory : NULL,
        .dy = given,
        .divisor = p->n,
        .share = 1.0 / (double)p->n,
        .partial = ctx->workspace,
        .ticket = p->has_loss && p->blocks > 1 ? ctx->tickets : NULL,
        .blocks = p->blocks,
    };
    gx_status st = gx_pointwise_loss_load(&loss, err);

    if (st == GX_OK)
        st = gx_pointwise_loss_launch(&loss, ctx, err);
    emulate_free(given);
    return st;
}

static void check(const pointwise *p, test_random *random)
{
    operands o = make_operands(p, random);
    unsigned *ticket = emulate_alloc(sizeof *ticket);
    gx_ctx ctx = { .cc = 90, .n_sm = 132, .tickets = ticket };
    gx_error err = { 0 };
    char what[160];

    *ticket = 0;
    ctx.workspace = emulate_alloc((size_t)p->blocks * sizeof(double));
    snprintf(what, sizeof what, "kind %d, %s, target %s, %lld, %d blocks%s%s%s%s",
             (int)p->kind, gx_dtype_name(p->dtype), gx_dtype_name(p->target_dtype),
             (long long)p->n, p->blocks, p->has_loss ? ", loss" : "",
             p->has_dx ? ", dx" : "", p->wide ? ", wide" : "", p->large ? ", large" : "");
    if (run(p, &o, &ctx, &err) != GX_OK) {
        print_error("%s: %s\n", what, err.message);
        fail();
    }
    if (p->has_loss)
        emulate_compare(&o.loss, "loss", what);
    if (p->has_dx)
        emulate_compare(&o.dx, "dx", what);
    assert_int_equal(*ticket, 0);
    emulate_drop(&o.x);
    emulate_drop(&o.target);
    emulate_drop(&o.loss);
    emulate_drop(&o.dx);
    emulate_free(ticket);
    emulate_free(ctx.workspace);
}

/* The loss, the derivative, both; each kind and each pair of types. */
static void check_all(pointwise p, test_random *random)
{
    static const gx_dtype types[][2] = {
        { GX_F32, GX_F32 },   { GX_BF16, GX_F32 }, { GX_F16, GX_F32 },
        { GX_BF16, GX_BF16 }, { GX_F16, GX_F16 },
    };

    for (int i = 0; i < (int)ARRAY_SIZE(types) * 9; i++) {
        p.dtype = types[i / 9][0];
        p.target_dtype = types[i / 9][1];
        p.kind = (gx_pointwise_kind)(i % 3);
        p.has_loss = i / 3 % 3 != 1;
        p.has_dx = i / 3 % 3 != 0;
        emulate_seed(test_random_bits(random));
        check(&p, random);
    }
}

static void few(void **state)
{
    const uint64_t *seed = *state;
    test_random random = test_random_start(*seed);
    static const int64_t counts[] = { 1, 1027, 4100 };

    for (int i = 0; i < (int)ARRAY_SIZE(counts) * 2; i++)
        check_all((pointwise){ .n = counts[i / 2],
                               .wide = i % 2 != 0,
                               .blocks = i / 2 == 2 ? 3 : 1 },
                  &random);
}

/* Turns of several vectors, of one, and what is behind the last vector; fewer elements
 * than the blocks have threads. */
static void large(void **state)
{
    const uint64_t *seed = *state;
    test_random random = test_random_start(*seed);
    static const int64_t counts[] = { 2 * GX_POINTWISE_THREADS * 8 * 5 + 1003, 301 };

    for (int i = 0; i < (int)ARRAY_SIZE(counts); i++)
        check_all((pointwise){ .n = counts[i], .wide = true, .large = true, .blocks = 2 },
                  &random);
}

/* More than a block has threads, of which in the last some add up what two have left. */
static void many_blocks(void **state)
{
    const uint64_t *seed = *state;
    test_random random = test_random_start(*seed);

    for (int i = 0; i < 6; i++) {
        const int blocks = GX_POINTWISE_THREADS + 3;
        const pointwise p = { .n = (int64_t)blocks * GX_POINTWISE_THREADS * 4 - 5,
                              .kind = (gx_pointwise_kind)(i % 3),
                              .dtype = GX_F32,
                              .target_dtype = GX_F32,
                              .wide = true,
                              .large = i >= 4,
                              .has_loss = true,
                              .has_dx = i % 2 != 0,
                              .blocks = blocks };

        emulate_seed(test_random_bits(&random));
        check(&p, &random);
    }
}

int main(void)
{
    static uint64_t seed;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(few, &seed),
        cmocka_unit_test_prestate(large, &seed),
        cmocka_unit_test_prestate(many_blocks, &seed),
    };

    seed = test_seed();
    return cmocka_run_group_tests_name("emulated_pointwise", tests, NULL, NULL);
}
