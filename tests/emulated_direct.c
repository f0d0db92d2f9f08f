/* Products and what follows them, run on the CPU by tests/emulate: small ones by the
 * kernels of direct.cu and direct_sums.cu, and the same by those of gemm.cu. */
#include <stdio.h>
#include <string.h>

#include "direct.h"
#include "emulate_operand.h"
#include "epilogue.h"

typedef enum layout { PLAIN, B_TURNED, A_TURNED, N_LAYOUTS } layout;

typedef enum family { DIRECT, TILE } family;

/* A product, what follows it, and what all of it must give. */
typedef struct product {
    int64_t m, n, k;
    gx_tile_math math;
    layout layout;
    gx_tile_tail tail;
    gx_act act;
    bool has_columns; /* backward: dbias is wanted */
    bool steady_b;
    family family;
    int wide; /* elements that rows are longer than what is used of them */
} product;

typedef struct operands {
    emulate_operand a, b, bias, saved, out, pre, dbias;
    int64_t lda, ldb;
} operands;

static void describe(const product *p, int shape, char *text, size_t size)
{
    static const char *const maths[] = { "f32", "tf32", "bf16", "f16" };
    static const char *const layouts[] = { "plain", "b turned", "a turned" };
    static const char *const tails[] = { "nothing", "forward", "backward", "sums of a",
                                         "sums of b" };
#define ACT_NAME(act, name, reads, flops) name,
    static const char *const acts[] = { GX_ACT_LIST(ACT_NAME) };
#undef ACT_NAME

    snprintf(text, size, "%lld x %lld x %lld %s, %s, %s%s, %s, shape %d", (long long)p->m,
             (long long)p->n, (long long)p->k, maths[p->math], layouts[p->layout],
             tails[p->tail], p->has_columns ? " with columns" : "", acts[p->act], shape);
}

/* --- the reference --- */

static void multiply(const product *p, operands *o)
{
    for (int64_t i = 0; i < p->m; i++) {
        for (int64_t j = 0; j < p->n; j++) {
            const int64_t at = i * p->n + j;

            for (int64_t l = 0; l < p->k; l++) {
                const double x =
                    o->a.value[p->layout == A_TURNED ? l * o->lda + i : i * o->lda + l];
                const double y =
                    o->b.value[p->layout == B_TURNED ? j * o->ldb + l : l * o->ldb + j];

                o->out.value[at] += x * y;
                o->out.magnitude[at] += x < 0 ? -x : x;
            }
        }
    }
}

static void follow_forward(const product *p, operands *o)
{
    for (int64_t at = 0; at < p->m * p->n; at++) {
        o->out.value[at] += o->bias.value[at % p->n];
        o->out.magnitude[at] += 2;
        o->pre.value[at] = o->out.value[at];
        o->pre.magnitude[at] = o->out.magnitude[at];
    }
    gx_act_apply(p->act, o->out.value, p->m * p->n);
}

static void follow_backward(const product *p, operands *o)
{
    for (int64_t at = 0; at < p->m * p->n; at++) {
        o->out.value[at] = gx_act_back(p->act, o->out.value[at], o->saved.value[at]);
        o->dbias.value[at % p->n] += o->out.value[at];
        o->dbias.magnitude[at % p->n] += o->out.magnitude[at];
    }
}

/* Of what the ordinary cores add up: nothing is rounded to tf32. */
static void sum_lines(const product *p, operands *o, const float *a, const float *b)
{
    const bool of_a = p->tail == GX_TAIL_SUMS_OF_A;

    for (int64_t i = 0; i < (of_a ? p->m : p->n); i++) {
        for (int64_t l = 0; l < p->k; l++) {
            const int64_t at = of_a ? l * o->lda + i : l * o->ldb + i;
            const double exact = p->math != GX_TILE_TF32
                                     ? of_a ? o->a.value[at] : o->b.value[at]
                                 : of_a ? (double)a[at]
                                        : (double)b[at];

            o->dbias.value[i] += exact;
            o->dbias.magnitude[i] += 2;
        }
    }
}

/* --- one product by some of the shapes --- */

/* What runs in all needs time; the seed chooses. */
static bool is_chosen(test_random *random)
{
    return test_random_int(random, 0, test_is_short() ? 7 : 1) == 0;
}

static operands make_operands(const product *p, test_random *random)
{
    const gx_dtype dtype = emulate_dtype(p->math);
    const bool turned_a = p->layout == A_TURNED, turned_b = p->layout == B_TURNED;
    operands o = { .lda = (turned_a ? p->m : p->k) + p->wide,
                   .ldb = (turned_b ? p->k : p->n) + p->wide };

    o.a = emulate_input(p->math, o.lda * (turned_a ? p->k : p->m), random);
    o.b = emulate_input(p->math, o.ldb * (turned_b ? p->n : p->k), random);
    o.bias = emulate_plain_input(dtype, p->n, random);
    o.saved = emulate_plain_input(dtype, p->m * p->n, random);
    o.out = emulate_output(dtype, p->m * p->n);
    o.pre = emulate_output(dtype, p->m * p->n);
    o.dbias = emulate_output(dtype, p->tail == GX_TAIL_SUMS_OF_A ? p->m : p->n);
    emulate_steady(o.b.memory, p->steady_b);
    multiply(p, &o);
    if (p->tail == GX_TAIL_FORWARD)
        follow_forward(p, &o);
    else if (p->tail == GX_TAIL_BACKWARD)
        follow_backward(p, &o);
    else if (gx_tail_sums(p->tail))
        sum_lines(p, &o, o.a.memory, o.b.memory);
    return o;
}

static void drop_operands(operands *o)
{
    emulate_operand *const all[] = { &o->a,   &o->b,   &o->bias, &o->saved,
                                     &o->out, &o->pre, &o->dbias };

    for (size_t i = 0; i < ARRAY_SIZE(all); i++)
        emulate_drop(all[i]);
}

static gx_tile tile_of(const product *p, const operands *o)
{
    const bool backward = p->tail == GX_TAIL_BACKWARD,
               forward = p->tail == GX_TAIL_FORWARD;

    return (gx_tile){
        .m = p->m,
        .n = p->n,
        .k = p->k,
        .a = o->a.memory,
        .b = o->b.memory,
        .out = o->out.memory,
        .lda = o->lda,
        .ldb = o->ldb,
        .trans_a = p->layout == A_TURNED,
        .trans_b = p->layout == B_TURNED,
        .math = p->math,
        .tail = p->tail,
        .act = (int)p->act,
        .bias = forward ? o->bias.memory : NULL,
        .pre = forward ? o->pre.memory : NULL,
        .saved = backward ? o->saved.memory : NULL,
        .dbias = p->has_columns || gx_tail_sums(p->tail) ? o->dbias.memory : NULL,
    };
}

/* As gemm_direct_cuda.c asks: what a thread loads at once divides rows and columns. */
static bool fits(const gx_tile *tile)
{
    const int rows = gx_direct_rows(tile->shape) / 8;
    const int columns = gx_direct_columns(tile->shape) / 8;

    if (!gx_direct_has(tile) ||
        (tile->trans_a && (tile->m % rows != 0 || tile->lda % rows != 0)) ||
        (!tile->trans_b && (tile->n % columns != 0 || tile->ldb % columns != 0)))
        return false;
    return tile->tail != GX_TAIL_BACKWARD || tile->dbias == NULL ||
           (tile->m + 8 * rows - 1) / (8 * rows) <= GX_MAX_CLUSTER;
}

/* Bytes of a row of `ld` elements that may be copied at once. */
static int chunk_of(gx_tile_math math, int64_t ld)
{
    const int element = (int)gx_dtype_bytes(emulate_dtype(math));

    return ld * element % 16 == 0 ? 16 : ld * element % 4 == 0 ? 4 : element;
}

static gx_status run_direct(const gx_tile *tile, bool steady_b, gx_ctx *ctx,
                            gx_error *err)
{
    GX_TRY(gx_direct_load(tile, err));
    return gx_direct_launch(tile, steady_b, ctx, err);
}

static gx_status run_tile(gx_tile *tile, gx_ctx *ctx, gx_error *err)
{
    const int64_t rows = gx_tile_rows(tile->shape);
    const int64_t row_tiles = (tile->m + rows - 1) / rows;
    float *partial = emulate_alloc((size_t)(row_tiles * tile->n) * sizeof *partial);

    tile->partial = tile->dbias != NULL && row_tiles > 1 ? partial : NULL;
    tile->chunk_a = chunk_of(tile->math, tile->lda);
    tile->chunk_b = chunk_of(tile->math, tile->ldb);
    gx_status st = gx_tile_load(tile, NULL, err);

    if (st == GX_OK)
        st = gx_tile_launch(tile, NULL, ctx, err);
    emulate_free(partial);
    return st;
}

static void compare(const gx_tile *tile, const operands *o, const char *what)
{
    emulate_compare(&o->out, "out", what);
    if (tile->pre != NULL)
        emulate_compare(&o->pre, "pre", what);
    if (tile->dbias != NULL)
        emulate_compare(&o->dbias, "dbias", what);
}

static int check_product(const product *p, test_random *random)
{
    const int n_shapes = p->family == DIRECT ? (int)GX_N_DIRECT : (int)GX_N_TILES;
    gx_ctx ctx = { .cc = 90 };
    operands o = make_operands(p, random);
    gx_tile tile = tile_of(p, &o);
    gx_error err = { 0 };
    char what[200];
    int ran = 0;

    for (tile.shape = 0; tile.shape < n_shapes; tile.shape++) {
        if ((p->family == DIRECT && !fits(&tile)) || !is_chosen(random))
            continue;
        describe(p, tile.shape, what, sizeof what);
        emulate_forget(&o.out);
        emulate_forget(&o.pre);
        emulate_forget(&o.dbias);
        const gx_status st = p->family == DIRECT
                                 ? run_direct(&tile, p->steady_b, &ctx, &err)
                                 : run_tile(&tile, &ctx, &err);

        if (st != GX_OK) {
            print_error("%s: %s\n", what, err.message);
            fail();
        }
        compare(&tile, &o, what);
        ran++;
    }
    drop_operands(&o);
    return ran;
}

/* --- tests --- */

/* One row, tiles that are full and not, several in a cluster, k that is no multiple of 4,
 * one of 4 and of 8, less than a chunk, and more than one turn of all warps. */
static const int64_t sizes[][3] = {
    { 1, 2, 4 },    { 16, 34, 10 },  { 17, 36, 100 }, { 33, 10, 64 }, { 64, 40, 36 },
    { 100, 8, 20 }, { 6, 24, 1100 }, { 40, 64, 616 }, { 17, 44, 8 },
};
static const gx_tile_math maths[] = { GX_TILE_TF32, GX_TILE_BF16, GX_TILE_F16 };
static const gx_act acts[] = { GX_ACT_RELU, GX_ACT_GELU_TANH, GX_ACT_NONE, GX_ACT_SILU,
                               GX_ACT_TANH };

/* Every size and type, with what else varies drawn from the seed; returns how many ran.
 */
static int check_all(product p, uint64_t seed)
{
    test_random random = test_random_start(seed);
    int ran = 0;

    for (size_t i = 0; i < ARRAY_SIZE(sizes) * ARRAY_SIZE(maths); i++) {
        const int64_t *size = sizes[i / ARRAY_SIZE(maths)];

        p.m = size[0];
        p.n = size[1];
        p.k = size[2];
        p.math = maths[i % ARRAY_SIZE(maths)];
        if (p.family == TILE && p.math == GX_TILE_TF32 && test_random_int(&random, 0, 1))
            p.math = GX_TILE_F32;
        p.act = acts[test_random_int(&random, 0, ARRAY_SIZE(acts) - 1)];
        p.steady_b = p.family == DIRECT && test_random_int(&random, 0, 1) == 1;
        p.wide = (int)test_random_int(&random, 0, 2) * (p.family == TILE ? 1 : 4);
        emulate_seed(test_random_bits(&random));
        ran += check_product(&p, &random);
    }
    return ran;
}

static void products_alone(void **state)
{
    const uint64_t *seed = *state;
    int ran = 0;

    for (layout at = PLAIN; at < N_LAYOUTS; at++)
        ran += check_all((product){ .layout = at }, *seed + at);
    print_message("%d products\n", ran);
    assert_true(ran > 10);
}

static void products_with_an_activation_behind(void **state)
{
    const uint64_t *seed = *state;

    for (layout at = PLAIN; at < A_TURNED; at++)
        assert_true(check_all((product){ .layout = at, .tail = GX_TAIL_FORWARD },
                              *seed + at) > 0);
}

static void products_with_the_way_back_behind(void **state)
{
    const uint64_t *seed = *state;

    for (layout at = PLAIN; at < A_TURNED; at++) {
        product p = { .layout = at, .tail = GX_TAIL_BACKWARD };

        assert_true(check_all(p, *seed + at) > 0);
        p.has_columns = true;
        assert_true(check_all(p, *seed + 9 + at) > 0);
    }
}

static void products_with_sums_beside(void **state)
{
    const uint64_t *seed = *state;

    for (gx_tile_tail tail = GX_TAIL_SUMS_OF_A; tail <= GX_TAIL_SUMS_OF_B; tail++)
        assert_true(
            check_all((product){ .layout = A_TURNED, .tail = tail }, *seed + tail) > 0);
}

/* Without tensor cores too, and of rows that begin anywhere. */
static void products_by_the_kernels_of_gemm(void **state)
{
    const uint64_t *seed = *state;
    int ran = 0;

    for (layout at = PLAIN; at < N_LAYOUTS; at++) {
        product p = { .layout = at, .family = TILE };

        ran += check_all(p, *seed + at);
        p.tail = GX_TAIL_FORWARD;
        ran += check_all(p, *seed + 9 + at);
        p.tail = GX_TAIL_BACKWARD;
        p.has_columns = true;
        ran += check_all(p, *seed + 18 + at);
    }
    print_message("%d products\n", ran);
    assert_true(ran > 10);
}

int main(void)
{
    static uint64_t seed;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(products_alone, &seed),
        cmocka_unit_test_prestate(products_with_an_activation_behind, &seed),
        cmocka_unit_test_prestate(products_with_the_way_back_behind, &seed),
        cmocka_unit_test_prestate(products_with_sums_beside, &seed),
        cmocka_unit_test_prestate(products_by_the_kernels_of_gemm, &seed),
    };

    seed = test_seed();
    return cmocka_run_group_tests_name("emulated_direct", tests, NULL, NULL);
}
