/* Types, sizes, and the text of a shape. */
#include <gexec/tensor.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    size_t bytes;
} dtypes[GX_N_DTYPES] = {
#define GX_DTYPE_ROW(type, text, size) [type] = { text, size },
    GX_DTYPE_LIST(GX_DTYPE_ROW)
#undef GX_DTYPE_ROW
};

static bool is_dtype(gx_dtype dtype)
{
    return (int)dtype >= 0 && (int)dtype < GX_N_DTYPES;
}

const char *gx_dtype_name(gx_dtype dtype)
{
    return is_dtype(dtype) ? dtypes[dtype].name : "unknown";
}

size_t gx_dtype_bytes(gx_dtype dtype)
{
    return is_dtype(dtype) ? dtypes[dtype].bytes : 0;
}

static bool is_rank(int rank)
{
    return rank >= 0 && rank <= GX_MAX_RANK;
}

bool gx_is_float(gx_dtype dtype)
{
    return dtype == GX_F32 || dtype == GX_BF16 || dtype == GX_F16;
}

int64_t gx_count(const gx_tensor *tensor)
{
    int64_t count = 1;

    for (int i = 0; i < tensor->rank; i++)
        if (tensor->dim[i] == 0)
            return 0;
    for (int i = 0; i < tensor->rank; i++)
        if (__builtin_mul_overflow(count, tensor->dim[i], &count))
            return INT64_MAX;
    return count;
}

char *gx_shape_text(int rank, const int64_t *dim, char *text, size_t size)
{
    size_t used = 0;

    if (size == 0)
        return text;
    text[0] = '\0';
    if (!is_rank(rank)) {
        snprintf(text, size, "[of rank %d]", rank);
        return text;
    }
    for (int i = 0; i <= rank; i++) {
        char part[32];

        if (i == rank)
            snprintf(part, sizeof part, rank == 0 ? "[]" : "]");
        else
            snprintf(part, sizeof part, "%s%lld", i == 0 ? "[" : ", ", (long long)dim[i]);
        const size_t n = strlen(part);

        if (used + n >= size)
            break;
        memcpy(text + used, part, n + 1);
        used += n;
    }
    return text;
}

bool gx_same_shape(const gx_tensor *a, const gx_tensor *b)
{
    if (a->rank != b->rank || !is_rank(a->rank))
        return false;
    for (int i = 0; i < a->rank; i++) {
        if (a->dim[i] != b->dim[i])
            return false;
    }
    return true;
}

uint16_t gx_bf16_from_float(float value)
{
    enum { QUIET = 0x40 };
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    if (isnan(value))
        return (uint16_t)((bits >> 16) | QUIET);
    /* Half a step below the kept bits, and one more where the kept ones are odd. */
    bits += 0x7fff + ((bits >> 16) & 1);
    return (uint16_t)(bits >> 16);
}

float gx_bf16_to_float(uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float value;

    memcpy(&value, &wide, sizeof value);
    return value;
}

/* The double to bf16 in one rounding: through float it would be rounded twice. Rounding
 * to odd on the way keeps what the second step must know. */
static double round_to_bf16(double value)
{
    float narrow = (float)value;

    if (isfinite(narrow) && (double)narrow != value) {
        uint32_t bits;

        memcpy(&bits, &narrow, sizeof bits);
        if (fabs((double)narrow) > fabs(value))
            bits--; /* now truncated towards zero */
        bits |= 1;
        memcpy(&narrow, &bits, sizeof narrow);
    }
    return (double)gx_bf16_to_float(gx_bf16_from_float(narrow));
}

enum {
    F16_DIGITS = 11,          /* of a normal number, with the one that is not stored */
    F16_LEAST_EXPONENT = -14, /* of a normal number */
    F16_STORED = 10,
    F16_INFINITY = 0x7c00,
    F16_QUIET = 0x200
};
static const double F16_BEYOND = 65520; /* half a step above the largest */

/* In one rounding, from a double too: to a multiple of the step between the numbers
 * around it, which below the normal ones is always the same. */
static double round_to_f16(double value)
{
    int exponent;

    if (!isfinite(value) || value == 0)
        return value;
    if (fabs(value) >= F16_BEYOND)
        return copysign(INFINITY, value);
    frexp(value, &exponent); /* |value| is in [1/2, 1) 2^exponent */
    if (exponent - 1 < F16_LEAST_EXPONENT)
        exponent = F16_LEAST_EXPONENT + 1;
    return ldexp(nearbyint(ldexp(value, F16_DIGITS - exponent)), exponent - F16_DIGITS);
}

uint16_t gx_f16_from_float(float value)
{
    const uint16_t sign = signbit(value) ? 0x8000 : 0;
    const double size = fabs(round_to_f16((double)value));
    int exponent;

    if (isnan(value)) {
        uint32_t bits;

        memcpy(&bits, &value, sizeof bits);
        return (uint16_t)(sign | F16_INFINITY | F16_QUIET | (bits >> 13 & 0x3ff));
    }
    if (isinf(size))
        return (uint16_t)(sign | F16_INFINITY);
    frexp(size, &exponent);
    exponent--;
    if (size == 0 || exponent < F16_LEAST_EXPONENT)
        exponent = F16_LEAST_EXPONENT;
    /* The leading 1 that a normal number has adds 1 to the field of its exponent. */
    const int field = (exponent - F16_LEAST_EXPONENT) << F16_STORED;

    return (uint16_t)(sign | (field + (int)ldexp(size, F16_STORED - exponent)));
}

/* Exact: every half is a float. */
float gx_f16_to_float(uint16_t bits)
{
    const int exponent = (bits >> F16_STORED) & 0x1f;
    const int digits = bits & 0x3ff;
    float value;

    if (exponent == 0x1f)
        value = digits ? NAN : INFINITY;
    else if (exponent == 0)
        value = ldexpf((float)digits, F16_LEAST_EXPONENT - F16_STORED);
    else
        value = ldexpf((float)(digits + 0x400),
                       exponent - 1 + F16_LEAST_EXPONENT - F16_STORED);
    return bits & 0x8000 ? -value : value;
}

double gx_round_to(gx_dtype dtype, double value)
{
    switch (dtype) {
    case GX_F32:
        return (double)(float)value;
    case GX_BF16:
        return round_to_bf16(value);
    case GX_F16:
        return round_to_f16(value);
    case GX_I32:
        return nearbyint(value);
    default:
        return value;
    }
}
