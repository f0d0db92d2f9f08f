/* Both gradients of a layer in one launch, run on the CPU by tests/emulate. */
#include <stdio.h>
#include <string.h>

#include "direct_pair.h"
#include "emulate_operand.h"
#include "epilogue.h"

/* Rows of a batch, the layer's inputs and outputs. `turned`: its weight is [out, in]. */
typedef struct layer {
    int64_t rows, in, out;
    gx_tile_math math;
    bool turned, has_bias, has_act, steady_w;
    gx_act act;
} layer;

typedef struct operands {
    emulate_operand x, dz, w, saved, dx, dw, db;
} operands;

/* --- the reference --- */

static void find_dx(const layer *l, operands *o)
{
    for (int64_t at = 0; at < l->rows * l->in; at++) {
        const int64_t r = at / l->in, i = at % l->in;

        for (int64_t j = 0; j < l->out; j++) {
            const double w = o->w.value[l->turned ? j * l->in + i : i * l->out + j];

            o->dx.value[at] += o->dz.value[r * l->out + j] * w;
            o->dx.magnitude[at] += 2;
        }
        if (l->has_act)
            o->dx.value[at] = gx_act_back(l->act, o->dx.value[at], o->saved.value[at]);
    }
}

static void find_dw(const layer *l, operands *o)
{
    for (int64_t at = 0; at < l->in * l->out; at++) {
        const int64_t i = l->turned ? at % l->in : at / l->out;
        const int64_t j = l->turned ? at / l->in : at % l->out;

        for (int64_t r = 0; r < l->rows; r++) {
            o->dw.value[at] += o->x.value[r * l->in + i] * o->dz.value[r * l->out + j];
            o->dw.magnitude[at] += 2;
        }
    }
}

/* On the ordinary cores: nothing is rounded to tf32. */
static void find_db(const layer *l, operands *o)
{
    const float *dz = o->dz.memory;

    for (int64_t at = 0; at < l->rows * l->out; at++) {
        o->db.value[at % l->out] +=
            l->math == GX_TILE_TF32 ? (double)dz[at] : o->dz.value[at];
        o->db.magnitude[at % l->out] += 2;
    }
}

/* --- one layer by some of the shapes --- */

static operands make_operands(const layer *l, test_random *random)
{
    const gx_dtype dtype = emulate_dtype(l->math);
    operands o = {
        .x = emulate_input(l->math, l->rows * l->in, random),
        .dz = emulate_input(l->math, l->rows * l->out, random),
        .w = emulate_input(l->math, l->in * l->out, random),
        .saved = emulate_plain_input(dtype, l->rows * l->in, random),
        .dx = emulate_output(dtype, l->rows * l->in),
        .dw = emulate_output(dtype, l->in * l->out),
        .db = emulate_output(dtype, l->out),
    };

    emulate_steady(o.w.memory, l->steady_w);
    find_dx(l, &o);
    find_dw(l, &o);
    find_db(l, &o);
    return o;
}

static void drop_operands(operands *o)
{
    emulate_operand *const all[] = { &o->x,  &o->dz, &o->w, &o->saved,
                                     &o->dx, &o->dw, &o->db };

    for (size_t i = 0; i < ARRAY_SIZE(all); i++)
        emulate_drop(all[i]);
}

static gx_pair pair_of(const layer *l, const operands *o)
{
    const gx_tile_tail sums = l->turned ? GX_TAIL_SUMS_OF_A : GX_TAIL_SUMS_OF_B;
    gx_pair pair = {
        .data = { .m = l->rows, .n = l->in, .k = l->out, .math = l->math },
        .weight = { .k = l->rows, .trans_a = true, .math = l->math },
        .steady_w = l->steady_w,
    };

    pair.data.a = o->dz.memory;
    pair.data.lda = l->out;
    pair.data.b = o->w.memory;
    pair.data.ldb = l->turned ? l->in : l->out;
    pair.data.trans_b = !l->turned;
    pair.data.out = o->dx.memory;
    if (l->has_act) {
        pair.data.tail = GX_TAIL_BACKWARD;
        pair.data.act = (int)l->act;
        pair.data.saved = o->saved.memory;
    }
    pair.weight.m = l->turned ? l->out : l->in;
    pair.weight.n = l->turned ? l->in : l->out;
    pair.weight.a = l->turned ? o->dz.memory : o->x.memory;
    pair.weight.b = l->turned ? o->x.memory : o->dz.memory;
    pair.weight.lda = pair.weight.m;
    pair.weight.ldb = pair.weight.n;
    pair.weight.out = o->dw.memory;
    if (l->has_bias) {
        pair.weight.tail = sums;
        pair.weight.dbias = o->db.memory;
    }
    return pair;
}

/* As gemm_pair_cuda.c asks: what a thread loads at once divides rows and columns. */
static bool fits(const gx_pair *pair)
{
    const gx_pair_shape *of = gx_pair_shape_at(pair->shape);

    return gx_pair_has(pair) && pair->weight.m % (of->weight_rows / 8) == 0 &&
           pair->weight.n % (of->weight_columns / 8) == 0 &&
           (pair->data.trans_b || pair->data.n % (of->columns / 8) == 0);
}

static int check_layer(const layer *l, test_random *random)
{
    operands o = make_operands(l, random);
    gx_pair pair = pair_of(l, &o);
    gx_ctx ctx = { .cc = 90 };
    gx_error err = { 0 };
    char what[200];
    int ran = 0;

    for (pair.shape = 0; pair.shape < GX_N_PAIRS; pair.shape++) {
        if (!fits(&pair) || test_random_int(random, 0, test_is_short() ? 3 : 1) > 0)
            continue;
        snprintf(what, sizeof what,
                 "%lld rows, %lld to %lld%s, math %d, act %d, shape %d",
                 (long long)l->rows, (long long)l->in, (long long)l->out,
                 l->turned ? ", turned" : "", l->math, l->act, pair.shape);
        emulate_forget(&o.dx);
        emulate_forget(&o.dw);
        emulate_forget(&o.db);
        assert_ok(gx_pair_load(&pair, &err), &err);
        if (gx_pair_launch(&pair, &ctx, &err) != GX_OK) {
            print_error("%s: %s\n", what, err.message);
            fail();
        }
        emulate_compare(&o.dx, "dx", what);
        emulate_compare(&o.dw, "dw", what);
        if (l->has_bias)
            emulate_compare(&o.db, "db", what);
        ran++;
    }
    drop_operands(&o);
    return ran;
}

/* --- tests --- */

/* One row, tiles that are not full and some that are, a batch of several turns, k that is
 * no multiple of 4, and lines of which two threads' neighbours are not one vector. */
static void both_gradients_of_a_layer(void **state)
{
    static const int64_t sizes[][3] = {
        { 1, 2, 2 },   { 33, 34, 66 }, { 64, 36, 10 }, { 16, 4, 4 },
        { 70, 24, 6 }, { 20, 40, 64 }, { 64, 64, 32 }, { 20, 64, 32 },
    };
    static const gx_act acts[] = { GX_ACT_RELU, GX_ACT_GELU_TANH, GX_ACT_TANH };
    test_random random = test_random_start(test_seed());
    int ran = 0;

    (void)state;
    for (size_t i = 0; i < 6 * ARRAY_SIZE(sizes); i++) {
        const int64_t *size = sizes[i / 6];
        const layer l = {
            .rows = size[0],
            .in = size[1],
            .out = size[2],
            .math = (gx_tile_math)((int)GX_TILE_TF32 + (int)(i % 3)),
            .turned = i % 2,
            .has_bias = test_random_int(&random, 0, 3) > 0,
            .has_act = test_random_int(&random, 0, 3) > 0,
            .steady_w = test_random_int(&random, 0, 1),
            .act = acts[test_random_int(&random, 0, ARRAY_SIZE(acts) - 1)],
        };

        emulate_seed(test_random_bits(&random));
        ran += check_layer(&l, &random);
    }
    print_message("%d pairs\n", ran);
    assert_true(ran > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(both_gradients_of_a_layer) };

    return cmocka_run_group_tests_name("emulated_pair", tests, NULL, NULL);
}
