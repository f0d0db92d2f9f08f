/* Large products with a loss of each element and its derivative, run on the CPU by
 * tests/emulate. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "emulate_point.h"
#include "emulate_product.h"

typedef struct way {
    gx_pointwise_kind kind;
    gx_dtype target_dtype;
    bool has_bias, has_out, has_loss, has_dx;
    int n_sm;
} way;

typedef struct operands {
    emulate_operand bias, target, out, dx, loss;
    void *partial, *handed;
    unsigned *ticket;
} operands;

static void expect(const emulate_product *p, const way *w, operands *o)
{
    const double share = 1.0 / (double)(p->m * p->n);

    for (int64_t i = 0; i < p->m * p->n; i++) {
        const double bias = w->has_bias ? o->bias.value[i % p->n] : 0;
        const double x = p->value[i] + bias, target = o->target.value[i];
        const double size = fabs(p->value[i]) + fabs(bias) + fabs(target) + 1;
        double slope;

        o->loss.value[0] += share * emulate_point(w->kind, x, target, &slope);
        o->loss.magnitude[0] += share * size * size;
        o->out.value[i] = x;
        o->out.magnitude[i] = size;
        o->dx.value[i] = share * slope;
        o->dx.magnitude[i] = share * size;
    }
}

static operands make_operands(const emulate_product *p, const way *w,
                              const gx_wgmma_head *head, test_random *random)
{
    const gx_dtype dtype = emulate_dtype(p->math);
    operands o = {
        .bias = emulate_plain_input(dtype, p->n, random),
        .target = emulate_plain_input(w->target_dtype, p->m * p->n, random),
        .out = emulate_output(dtype, p->m * p->n),
        .dx = emulate_output(dtype, p->m * p->n),
        .loss = emulate_output(GX_F32, 1),
        .partial =
            emulate_alloc((size_t)gx_wgmma_head_blocks(head, w->n_sm) * sizeof(double)),
        .handed = emulate_handed(p->math, w->n_sm),
        .ticket = emulate_alloc(sizeof *o.ticket),
    };

    *o.ticket = 0;
    expect(p, w, &o);
    return o;
}

static void drop_operands(operands *o)
{
    emulate_drop(&o->bias);
    emulate_drop(&o->target);
    emulate_drop(&o->out);
    emulate_drop(&o->dx);
    emulate_drop(&o->loss);
    emulate_free(o->partial);
    emulate_free(o->handed);
    emulate_free(o->ticket);
}

static void check(emulate_product *p, const way *w, test_random *random)
{
    gx_ctx ctx = { .cc = 90, .n_sm = w->n_sm };
    gx_error err = { 0 };
    char what[200];

    snprintf(what, sizeof what,
             "%lld x %lld x %lld, math %d, turned: %d, kind %d, target %s, %d SMs",
             (long long)p->m, (long long)p->n, (long long)p->k, p->math, p->b_turned,
             w->kind, gx_dtype_name(w->target_dtype), w->n_sm);
    emulate_seed(test_random_bits(random));
    emulate_make_product(p, random);
    gx_wgmma_head head = {
        .maps = p->maps,
        .m = (int)p->m,
        .n = (int)p->n,
        .k = (int)p->k,
        .b_turned = p->b_turned,
        .math = p->math,
        .kind = w->kind,
        .target_dtype = w->target_dtype,
        .share = 1.0 / (double)(p->m * p->n),
    };
    operands o = make_operands(p, w, &head, random);

    head.bias = w->has_bias ? o.bias.memory : NULL;
    head.target = o.target.memory;
    head.out = w->has_out ? o.out.memory : NULL;
    head.dx = w->has_dx ? o.dx.memory : NULL;
    head.loss = w->has_loss ? o.loss.memory : NULL;
    head.handed = o.handed;
    head.partial = o.partial;
    head.ticket = o.ticket;
    assert_ok(gx_wgmma_head_load(&head, &err), &err);
    if (gx_wgmma_head_launch(&head, &ctx, &err) != GX_OK) {
        print_error("%s: %s\n", what, err.message);
        fail();
    }
    if (w->has_out)
        emulate_compare(&o.out, "out", what);
    if (w->has_dx)
        emulate_compare(&o.dx, "dx", what);
    if (w->has_loss)
        emulate_compare(&o.loss, "loss", what);
    assert_int_equal(*o.ticket, 0);
    drop_operands(&o);
    emulate_drop_product(p);
}

/* One tile that is hardly there, a second block of a cluster without rows, and more tiles
 * than blocks. */
static void losses_and_derivatives(void **state)
{
    static const int64_t sizes[][3] = {
        { 1, 8, 8 }, { 100, 264, 72 }, { 300, 520, 24 }, { 256, 256, 328 }
    };
    const uint64_t *seed = *state;
    test_random random = test_random_start(*seed);
    const int n = test_is_short() ? 6 : 3 * (int)ARRAY_SIZE(sizes);

    for (int i = 0; i < n; i++) {
        const int64_t *size = sizes[i / 3];
        emulate_product p = {
            .m = size[0],
            .n = size[1],
            .k = size[2],
            .wide = 8 * test_random_int(&random, 0, 1),
            .b_turned = test_random_int(&random, 0, 1),
            .math = test_random_int(&random, 0, 1) ? GX_TILE_BF16 : GX_TILE_F16,
        };
        const int wanted = (int)test_random_int(&random, 0, 2);
        const way w = {
            .kind = (gx_pointwise_kind)(i % 3),
            .target_dtype =
                test_random_int(&random, 0, 1) ? GX_F32 : emulate_dtype(p.math),
            .has_bias = test_random_int(&random, 0, 3) > 0,
            .has_out = test_random_int(&random, 0, 1),
            .has_loss = wanted != 0,
            .has_dx = wanted != 1,
            .n_sm = test_random_int(&random, 0, 1) ? 2 : 132,
        };

        check(&p, &w, &random);
    }
}

int main(void)
{
    static uint64_t seed;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(losses_and_derivatives, &seed),
    };

    seed = test_seed();
    return cmocka_run_group_tests_name("emulated_wgmma_head", tests, NULL, NULL);
}
