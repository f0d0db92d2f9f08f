/* Layers in one launch, run on the CPU by tests/emulate: each is compared with what the
 * kernel itself left of the layer before, so that errors do not add up. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain.h"
#include "emulate_operand.h"
#include "epilogue.h"

enum { MOST_LAYERS = 4 };

typedef struct net {
    int m, n_layers;
    int width[MOST_LAYERS + 1]; /* of the input, and of each layer */
    gx_tile_math math;
    bool backward, trans_b, steady_b, bare; /* bare: nothing beside the products */
    int wide; /* elements that rows of weights are longer than what is used of them */
} net;

typedef struct operands {
    emulate_operand a, b[MOST_LAYERS], other[MOST_LAYERS], out[MOST_LAYERS],
        pre[MOST_LAYERS];
    gx_act act[MOST_LAYERS];
} operands;

static int stride(const net *n, int layer)
{
    return n->width[n->trans_b ? layer : layer + 1] + n->wide;
}

static void describe(const net *n, int shape, char *text, size_t size)
{
    static const char *const maths[] = { "f32", "tf32", "bf16", "f16" };
    int used = snprintf(text, size, "%d rows of", n->m);

    for (int l = 0; l <= n->n_layers; l++)
        used += snprintf(text + used, size - (size_t)used, " %d", n->width[l]);
    snprintf(text + used, size - (size_t)used, " in %s, %s, b %s, shape %d",
             maths[n->math], n->backward ? "back" : "forward",
             n->trans_b ? "turned" : "plain", shape);
}

/* --- operands --- */

static operands make_operands(const net *n, test_random *random)
{
    static const gx_act acts[] = { GX_ACT_RELU, GX_ACT_GELU_TANH, GX_ACT_NONE,
                                   GX_ACT_TANH, GX_ACT_SILU };
    const gx_dtype dtype = emulate_dtype(n->math);
    operands o = { .a = emulate_input(n->math, (int64_t)n->m * n->width[0], random) };

    for (int l = 0; l < n->n_layers; l++) {
        const int64_t n_out = (int64_t)n->m * n->width[l + 1];
        const int lines = n->width[n->trans_b ? l + 1 : l];

        o.b[l] = emulate_input(n->math, (int64_t)lines * stride(n, l), random);
        o.other[l] =
            emulate_plain_input(dtype, n->backward ? n_out : n->width[l + 1], random);
        o.out[l] = emulate_output(dtype, n_out);
        o.pre[l] = emulate_output(dtype, n_out);
        o.act[l] = acts[test_random_int(random, 0, ARRAY_SIZE(acts) - 1)];
    }
    emulate_steady(o.b[0].memory, n->steady_b);
    return o;
}

static void drop_operands(operands *o)
{
    emulate_drop(&o->a);
    for (int l = 0; l < MOST_LAYERS; l++) {
        emulate_drop(&o->b[l]);
        emulate_drop(&o->other[l]);
        emulate_drop(&o->out[l]);
        emulate_drop(&o->pre[l]);
    }
}

static gx_chain chain_of(const net *n, const operands *o)
{
    gx_chain chain = {
        .a = o->a.memory,
        .m = n->m,
        .n_layers = n->n_layers,
        .backward = n->backward,
        .trans_b = n->trans_b,
        .ragged = n->trans_b && (n->width[0] % 4 != 0 || stride(n, 0) % 4 != 0),
        .steady_b = n->steady_b,
        .math = n->math,
    };

    for (int l = 0; l < n->n_layers; l++)
        chain.layer[l] = (gx_chain_layer){
            .b = o->b[l].memory,
            .other = n->bare ? NULL : o->other[l].memory,
            .out = o->out[l].memory,
            .pre = n->backward || n->bare ? NULL : o->pre[l].memory,
            .n = n->width[l + 1],
            .k = n->width[l],
            .ldb = stride(n, l),
            .act = (int)(n->bare ? GX_ACT_NONE : o->act[l]),
        };
    return chain;
}

/* As gemm_chain_cuda.c asks. */
static bool fits(const gx_chain *chain)
{
    const int at_once = gx_chain_shape_at(chain->shape)->at_once;

    for (int l = 0; l < chain->n_layers && !chain->trans_b; l++) {
        if (chain->layer[l].n % at_once != 0 || chain->layer[l].ldb % at_once != 0)
            return false;
    }
    return gx_chain_cluster(chain) <= GX_MAX_LARGE_CLUSTER &&
           (!chain->ragged || chain->layer[0].k <= gx_chain_ragged_k(chain));
}

/* --- the reference --- */

static void multiply(const net *n, const operands *o, int l, const double *x)
{
    const int k = n->width[l], width = n->width[l + 1], ld = stride(n, l);

    for (int i = 0; i < n->m; i++) {
        for (int j = 0; j < width; j++) {
            double sum = 0, magnitude = 0;

            for (int at = 0; at < k; at++) {
                const double term =
                    x[i * k + at] * o->b[l].value[n->trans_b ? j * ld + at : at * ld + j];

                sum += term;
                magnitude += fabs(term);
            }
            o->out[l].value[i * width + j] = sum;
            o->out[l].magnitude[i * width + j] = magnitude;
        }
    }
}

static void follow(const net *n, operands *o, int l)
{
    const int width = n->width[l + 1];
    double *out = o->out[l].value;

    if (n->bare)
        return;
    for (int at = 0; at < n->m * width; at++) {
        if (n->backward) {
            out[at] = gx_act_back(o->act[l], out[at], o->other[l].value[at]);
            continue;
        }
        out[at] += o->other[l].value[at % width];
        o->out[l].magnitude[at] += 2;
        o->pre[l].value[at] = out[at];
        o->pre[l].magnitude[at] = o->out[l].magnitude[at];
    }
    if (!n->backward)
        gx_act_apply(o->act[l], out, (int64_t)n->m * width);
}

static void compare(const net *n, operands *o, const char *what)
{
    char name[32];

    for (int l = 0; l < n->n_layers; l++) {
        double *x = l > 0 ? emulate_seen(&o->out[l - 1], n->math) : NULL;

        multiply(n, o, l, x ? x : o->a.value);
        follow(n, o, l);
        snprintf(name, sizeof name, "out of layer %d", l);
        emulate_compare(&o->out[l], name, what);
        if (!n->backward && !n->bare) {
            snprintf(name, sizeof name, "pre of layer %d", l);
            emulate_compare(&o->pre[l], name, what);
        }
        free(x);
    }
}

/* --- one net by every shape --- */

static void launch(const gx_chain *chain, const char *what)
{
    gx_ctx ctx = { .cc = 90 };
    gx_error err = { 0 };

    assert_ok(gx_chain_load(chain, &err), &err);
    if (gx_chain_launch(chain, &ctx, &err) != GX_OK) {
        print_error("%s: %s\n", what, err.message);
        fail();
    }
}

static void forget(const net *n, operands *o)
{
    for (int l = 0; l < n->n_layers; l++) {
        emulate_forget(&o->out[l]);
        emulate_forget(&o->pre[l]);
    }
}

/* What no later op reads is not kept, and changes nothing else. */
static void launch_without_the_middle(const net *n, operands *o, gx_chain chain,
                                      const char *what)
{
    emulate_operand *last = &o->out[n->n_layers - 1];
    const size_t bytes = (size_t)last->n * gx_dtype_bytes(last->dtype);
    void *before = malloc(bytes);

    assert_non_null(before);
    memcpy(before, last->memory, bytes);
    forget(n, o);
    for (int l = 0; l < n->n_layers - 1; l++)
        chain.layer[l].out = chain.layer[l].pre = NULL;
    launch(&chain, what);
    assert_memory_equal(before, last->memory, bytes);
    free(before);
}

static int check_net(const net *n, test_random *random)
{
    operands o = make_operands(n, random);
    gx_chain chain = chain_of(n, &o);
    char what[200];
    int ran = 0;

    for (chain.shape = 0; chain.shape < GX_N_CHAINS; chain.shape++) {
        if (!fits(&chain))
            continue;
        describe(n, chain.shape, what, sizeof what);
        forget(n, &o);
        launch(&chain, what);
        compare(n, &o, what);
        if (ran == 0)
            launch_without_the_middle(n, &o, chain, what);
        ran++;
    }
    drop_operands(&o);
    return ran;
}

/* --- tests --- */

/* A single row, clusters that are full and not, rows past the last, widths that are no
 * multiple of 16, and more k than a turn has. Where b is turned the first may be odd. */
static const net nets[] = {
    { .m = 1, .n_layers = 2, .width = { 4, 4, 8 } },
    { .m = 8, .n_layers = 3, .width = { 16, 128, 48, 16 } },
    { .m = 20, .n_layers = 4, .width = { 100, 64, 120, 128, 12 } },
    { .m = 9, .n_layers = 2, .width = { 1100, 36, 56 } },
    { .m = 17, .n_layers = 2, .width = { 64, 256, 512 } },
    { .m = 5, .n_layers = 2, .width = { 40, 272, 80 } },
};
static const net ragged_nets[] = {
    { .m = 8, .n_layers = 2, .width = { 10, 64, 32 } },
    { .m = 19, .n_layers = 3, .width = { 7, 100, 20, 256 } },
};
static const gx_tile_math maths[] = { GX_TILE_TF32, GX_TILE_BF16, GX_TILE_F16 };

static int check_all(const net *list, size_t count, net as, uint64_t seed)
{
    test_random random = test_random_start(seed);
    int ran = 0;

    for (size_t i = 0; i < count * ARRAY_SIZE(maths); i++) {
        net n = list[i / ARRAY_SIZE(maths)];

        n.math = maths[i % ARRAY_SIZE(maths)];
        /* Each layer makes its values larger, and f16 has an end. */
        if (n.math == GX_TILE_F16 && n.n_layers > 3)
            n.n_layers = 3;
        n.backward = as.backward;
        n.trans_b = as.trans_b;
        n.bare = as.bare;
        n.steady_b = test_random_int(&random, 0, 1);
        n.wide = (int)test_random_int(&random, 0, 1) * 8;
        emulate_seed(test_random_bits(&random));
        ran += check_net(&n, &random);
    }
    return ran;
}

static void layers_with_bias_and_activation(void **state)
{
    const uint64_t *seed = *state;

    assert_true(check_all(nets, ARRAY_SIZE(nets), (net){ 0 }, *seed) > 15);
    assert_true(check_all(nets, ARRAY_SIZE(nets), (net){ .trans_b = true }, *seed + 1) >
                15);
}

static void data_gradients_and_the_ways_back(void **state)
{
    const uint64_t *seed = *state;
    const net back = { .backward = true }, turned = { .backward = true, .trans_b = true };

    assert_true(check_all(nets, ARRAY_SIZE(nets), turned, *seed + 2) > 15);
    assert_true(check_all(nets, ARRAY_SIZE(nets), back, *seed + 3) > 15);
    assert_true(check_all(ragged_nets, ARRAY_SIZE(ragged_nets), turned, *seed + 4) > 5);
}

static void products_alone(void **state)
{
    const uint64_t *seed = *state;

    assert_true(check_all(nets, 2, (net){ .bare = true }, *seed + 5) > 5);
}

int main(void)
{
    static uint64_t seed;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(layers_with_bias_and_activation, &seed),
        cmocka_unit_test_prestate(data_gradients_and_the_ways_back, &seed),
        cmocka_unit_test_prestate(products_alone, &seed),
    };

    seed = test_seed();
    return cmocka_run_group_tests_name("emulated_chain", tests, NULL, NULL);
}
