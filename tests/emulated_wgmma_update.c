/* Gradients of large products with adam's updates, run on the CPU by tests/emulate. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "emulate_product.h"
#include "emulate_updated.h"

enum { MOST_LAYERS = 3 };

typedef struct net {
    int n_layers;
    int size[MOST_LAYERS][3]; /* m, n, k */
    gx_tile_math math;
    bool sums_of_a, is_read; /* somebody reads the gradients */
    int n_sm;
} net;

typedef struct layer {
    emulate_product product;
    emulate_operand summed; /* tf32: the second operand as it is before it is turned */
    CUtensorMap sums;
    emulate_operand gradient, dbias;
    emulate_updated weight, bias;
} layer;

/* b as it was stored [k, n]. */
static emulate_operand turn_back(const emulate_product *p, test_random *random)
{
    emulate_operand o = emulate_whole_input(GX_F32, p->k * p->n, random);

    for (int64_t i = 0; i < o.n; i++) {
        const int64_t at = i % p->n * p->ldb + i / p->n;

        o.value[i] = p->b.value[at];
        memcpy((float *)o.memory + i, (const float *)p->b.memory + at, sizeof(float));
    }
    return o;
}

static double stored(const emulate_operand *o, int64_t i)
{
    return o->dtype == GX_F32 ? (double)((const float *)o->memory)[i] : o->value[i];
}

/* Of what is stored, which of tf32 is not rounded here. */
static void add_lines(layer *l, bool sums_of_a)
{
    const emulate_product *p = &l->product;
    const emulate_operand *from = sums_of_a ? &p->a : p->b_turned ? &l->summed : &p->b;
    const int64_t n = l->dbias.n, ld = sums_of_a ? p->lda : p->b_turned ? n : p->ldb;
    const emulate_map map = { p->k, n, ld, emulate_line(p->math), true };

    for (int64_t i = 0; i < p->k * n; i++) {
        const double x = stored(from, i / n * ld + i % n);

        l->dbias.value[i % n] += x;
        l->dbias.magnitude[i % n] += fabs(x);
    }
    emulate_map_matrix(from, &map, &l->sums);
}

static void make_layer(layer *l, const net *n, int i, test_random *random)
{
    const gx_dtype dtype = emulate_dtype(n->math);

    l->product = (emulate_product){ .m = n->size[i][0],
                                    .n = n->size[i][1],
                                    .k = n->size[i][2],
                                    .a_turned = true,
                                    .b_turned = n->math == GX_TILE_TF32,
                                    .math = n->math };
    emulate_make_product(&l->product, random);
    l->summed = (emulate_operand){ 0 };
    if (l->product.b_turned)
        l->summed = turn_back(&l->product, random);
    const size_t bytes = (size_t)(l->product.m * l->product.n) * sizeof(double);

    l->gradient = emulate_output(dtype, l->product.m * l->product.n);
    memcpy(l->gradient.value, l->product.value, bytes);
    memcpy(l->gradient.magnitude, l->product.magnitude, bytes);
    l->dbias = emulate_output(dtype, n->sums_of_a ? l->product.m : l->product.n);
    add_lines(l, n->sums_of_a);
    l->weight = emulate_make_updated(&l->gradient, random);
    l->bias = emulate_make_updated(&l->dbias, random);
}

static void drop_layer(layer *l)
{
    emulate_drop_updated(&l->weight);
    emulate_drop_updated(&l->bias);
    emulate_drop(&l->summed);
    emulate_drop(&l->gradient);
    emulate_drop(&l->dbias);
    emulate_drop_product(&l->product);
}

static void launch(const net *n, const layer *layers, const char *what)
{
    void *const handed = emulate_handed(n->math, n->n_sm);
    gx_wgmma_update update = { .n_layers = n->n_layers,
                               .math = n->math,
                               .gradients = handed };
    gx_ctx ctx = { .cc = 90, .n_sm = n->n_sm };
    gx_error err = { 0 };
    void *lr, *step;

    for (int i = 0; i < n->n_layers; i++) {
        const layer *l = &layers[i];

        update.layer[i] = (gx_wgmma_layer){
            .maps = l->product.maps,
            .sums = l->sums,
            .m = (int)l->product.m,
            .n = (int)l->product.n,
            .k = (int)l->product.k,
            .n_bias = (int)l->dbias.n,
            .out = n->is_read ? l->gradient.memory : NULL,
            .dbias = n->is_read ? l->dbias.memory : NULL,
            .weight = emulate_bring_back(&l->weight),
            .bias = emulate_bring_back(&l->bias),
        };
    }
    update.settings = emulate_update_settings(&lr, &step);
    update.step = step;
    assert_ok(gx_wgmma_update_load(n->math, &err), &err);
    if (gx_wgmma_update_launch(&update, &ctx, &err) != GX_OK) {
        print_error("%s: %s\n", what, err.message);
        fail();
    }
    emulate_free(lr);
    emulate_free(step);
    emulate_free(handed);
}

static void check(const net *n, test_random *random)
{
    layer layers[MOST_LAYERS];
    char what[200];
    int used = snprintf(what, sizeof what, "math %d, sums of %s, %d SMs:", n->math,
                        n->sums_of_a ? "a" : "b", n->n_sm);

    emulate_seed(test_random_bits(random));
    for (int i = 0; i < n->n_layers; i++) {
        used += snprintf(what + used, sizeof what - (size_t)used, " %d x %d x %d",
                         n->size[i][0], n->size[i][1], n->size[i][2]);
        make_layer(&layers[i], n, i, random);
    }
    launch(n, layers, what);
    for (int i = 0; i < n->n_layers; i++) {
        emulate_compare_updated(&layers[i].weight, "a weight", what);
        emulate_compare_updated(&layers[i].bias, "a bias", what);
        if (n->is_read) {
            emulate_compare(&layers[i].gradient, "out", what);
            emulate_compare(&layers[i].dbias, "dbias", what);
        }
        drop_layer(&layers[i]);
    }
}

/* --- tests --- */

/* A tile that is hardly there; layers of one and of several tiles, and of more stages
 * than there are; biases of more than a cluster's two strips. */
static const net nets[] = {
    { .n_layers = 1, .size = { { 8, 8, 1 } } },
    { .n_layers = 3, .size = { { 264, 16, 70 }, { 8, 520, 70 }, { 136, 264, 5 } } },
    { .n_layers = 2, .size = { { 128, 256, 300 }, { 520, 8, 64 } } },
};

static void check_all(bool sums_of_a, uint64_t seed)
{
    static const gx_tile_math maths[] = { GX_TILE_TF32, GX_TILE_BF16, GX_TILE_F16 };
    test_random random = test_random_start(seed);
    const size_t times = test_is_short() ? 1 : 2, n_maths = ARRAY_SIZE(maths);

    for (size_t i = 0; i < times * n_maths * ARRAY_SIZE(nets); i++) {
        net n = nets[i / n_maths / times];

        n.math = maths[i % n_maths];
        n.sums_of_a = sums_of_a;
        n.is_read = test_random_int(&random, 0, 1);
        n.n_sm = test_random_int(&random, 0, 1) ? 2 : 132;
        check(&n, &random);
    }
}

static void updates_with_sums_of_the_second_operand(void **state)
{
    const uint64_t *seed = *state;

    check_all(false, *seed);
}

static void updates_with_sums_of_the_first_operand(void **state)
{
    const uint64_t *seed = *state;

    check_all(true, *seed + 1);
}

int main(void)
{
    static uint64_t seed;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(updates_with_sums_of_the_second_operand, &seed),
        cmocka_unit_test_prestate(updates_with_sums_of_the_first_operand, &seed),
    };

    seed = test_seed();
    return cmocka_run_group_tests_name("emulated_wgmma_update", tests, NULL, NULL);
}
