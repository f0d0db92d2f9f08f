/* Operands of emulated kernels. */
#include "emulate_operand.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

gx_dtype emulate_dtype(gx_tile_math math)
{
    return math == GX_TILE_BF16 ? GX_BF16 : math == GX_TILE_F16 ? GX_F16 : GX_F32;
}

static emulate_operand make(gx_dtype dtype, int64_t n)
{
    emulate_operand o = { .dtype = dtype, .n = n };

    o.memory = emulate_alloc((size_t)n * gx_dtype_bytes(dtype));
    o.value = calloc((size_t)n + 1, sizeof *o.value);
    o.magnitude = calloc((size_t)n + 1, sizeof *o.magnitude);
    assert_true(o.value && o.magnitude);
    return o;
}

static void put(const emulate_operand *o, int64_t i, float x)
{
    const uint16_t half =
        o->dtype == GX_F16 ? gx_f16_from_float(x) : gx_bf16_from_float(x);

    if (o->dtype == GX_F32)
        memcpy((char *)o->memory + 4 * i, &x, sizeof x);
    else
        memcpy((char *)o->memory + 2 * i, &half, sizeof half);
}

static double get(const emulate_operand *o, int64_t i)
{
    uint16_t half;
    float x;

    if (o->dtype == GX_F32) {
        memcpy(&x, (const char *)o->memory + 4 * i, sizeof x);
        return (double)x;
    }
    memcpy(&half, (const char *)o->memory + 2 * i, sizeof half);
    return (double)(o->dtype == GX_F16 ? gx_f16_to_float(half) : gx_bf16_to_float(half));
}

/* 10 bits behind the point, ties away from zero. */
static double to_tf32(double x)
{
    int exponent;
    const double part = frexp(x, &exponent);

    return ldexp(round(ldexp(part, 11)), exponent - 11);
}

emulate_operand emulate_plain_input(gx_dtype dtype, int64_t n, test_random *random)
{
    emulate_operand o = make(dtype, n);

    for (int64_t i = 0; i < n; i++) {
        put(&o, i, (float)test_random_real(random, -2, 2));
        o.value[i] = get(&o, i);
    }
    return o;
}

emulate_operand emulate_whole_input(gx_dtype dtype, int64_t n, test_random *random)
{
    emulate_operand o = make(dtype, n);

    for (int64_t i = 0; i < n; i++) {
        o.value[i] = (double)test_random_int(random, -2, 2);
        put(&o, i, (float)o.value[i]);
    }
    return o;
}

emulate_operand emulate_input(gx_tile_math math, int64_t n, test_random *random)
{
    emulate_operand o = emulate_plain_input(emulate_dtype(math), n, random);

    for (int64_t i = 0; i < n && math == GX_TILE_TF32; i++)
        o.value[i] = to_tf32(o.value[i]);
    return o;
}

emulate_operand emulate_output(gx_dtype dtype, int64_t n)
{
    return make(dtype, n);
}

void emulate_drop(emulate_operand *o)
{
    if (o->memory != NULL)
        emulate_free(o->memory);
    free(o->value);
    free(o->magnitude);
    memset(o, 0, sizeof *o);
}

double *emulate_seen(const emulate_operand *o, gx_tile_math math)
{
    double *seen = malloc((size_t)(o->n + 1) * sizeof *seen);

    assert_non_null(seen);
    for (int64_t i = 0; i < o->n; i++)
        seen[i] = math == GX_TILE_TF32 ? to_tf32(get(o, i)) : get(o, i);
    return seen;
}

void emulate_forget(emulate_operand *o)
{
    memset(o->memory, 0xff, (size_t)o->n * gx_dtype_bytes(o->dtype));
}

/* Half a step of the type, and what f32 sums lose, in whatever order. */
static double allowed(const emulate_operand *o, int64_t i)
{
    const double of_sums = 4e-6 * o->magnitude[i];

    switch (o->dtype) {
    case GX_BF16:
        return ldexp(fabs(o->value[i]), -8) + of_sums;
    case GX_F16:
        return ldexp(fabs(o->value[i]), -11) + ldexp(1, -25) + of_sums;
    default:
        return ldexp(fabs(o->value[i]), -21) + of_sums;
    }
}

void emulate_compare(const emulate_operand *o, const char *name, const char *what)
{
    for (int64_t i = 0; i < o->n; i++) {
        const double x = get(o, i);

        if (fabs(x - o->value[i]) <= allowed(o, i))
            continue;
        print_error("%s: element %lld of %s is %g and not %g\n", what, (long long)i, name,
                    x, o->value[i]);
        fail();
    }
}
