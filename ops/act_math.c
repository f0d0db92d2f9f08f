/* The activations and their derivatives in double. */
#include <math.h>
#include <string.h>

#include "epilogue.h"

/* gelu(x) = x/2 (1 + tanh(u)), u = C0 (x + C1 x^3). (1 + tanh u) / 2 is the logistic
 * function of 2 u, which does not cancel where u is far below zero. */
static const double C0 = 0.79788456080286535588; /* sqrt(2 / pi) */
static const double C1 = 0.044715;

static double logistic(double t)
{
    if (t >= 0)
        return 1.0 / (1.0 + exp(-t));
    const double e = exp(t);

    return e / (1.0 + e);
}

/* The share of a normal distribution below x; 1 + erf would cancel where x is far below
 * zero. */
static double normal_share(double x)
{
    return 0.5 * erfc(-x * 0.70710678118654752440);
}

/* max(x, 0), and NaN stays. By a mask: a branch would be guessed wrong half the time. */
static double rectify(double x)
{
    uint64_t bits;

    memcpy(&bits, &x, sizeof bits);
    bits &= (uint64_t)0 - (uint64_t) !(x <= 0);
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* One loop for each activation. */
void gx_act_apply(gx_act act, double *x, int64_t n)
{
    switch (act) {
    case GX_ACT_RELU:
        for (int64_t i = 0; i < n; i++)
            x[i] = rectify(x[i]);
        break;
    case GX_ACT_GELU_TANH:
        for (int64_t i = 0; i < n; i++)
            x[i] *= logistic(2.0 * C0 * (x[i] + C1 * x[i] * x[i] * x[i]));
        break;
    case GX_ACT_GELU_ERF:
        for (int64_t i = 0; i < n; i++)
            x[i] *= normal_share(x[i]);
        break;
    case GX_ACT_SILU:
        for (int64_t i = 0; i < n; i++)
            x[i] *= logistic(x[i]);
        break;
    case GX_ACT_TANH:
        for (int64_t i = 0; i < n; i++)
            x[i] = tanh(x[i]);
        break;
    case GX_ACT_SIGMOID:
        for (int64_t i = 0; i < n; i++)
            x[i] = logistic(x[i]);
        break;
    default:
        break;
    }
}

/* gelu' = s + x s (1 - s) 2 u', s the logistic function above; 1 - s is again one of it.
 */
static double gelu_slope(double x)
{
    const double t = 2.0 * C0 * (x + C1 * x * x * x);
    const double slope = 2.0 * C0 * (1.0 + 3.0 * C1 * x * x);
    const double s = logistic(t);

    if (isinf(x))
        return x > 0 ? 1.0 : 0.0;
    return s + x * slope * s * logistic(-t);
}

/* gelu_erf = x F(x), F the share of a normal distribution below x: F + x F'. */
static double gelu_erf_slope(double x)
{
    if (isinf(x))
        return x > 0 ? 1.0 : 0.0;
    return normal_share(x) + x * 0.39894228040143267794 * exp(-0.5 * x * x);
}

/* silu = x s(x), s the logistic function, s' = s (1 - s). */
static double silu_slope(double x)
{
    if (isinf(x))
        return x > 0 ? 1.0 : 0.0;
    return logistic(x) * (1.0 + x * logistic(-x));
}

/* relu stops a gradient where it is shut, an infinite one too. */
double gx_act_back(gx_act act, double dy, double saved)
{
    switch (act) {
    case GX_ACT_RELU:
        return saved > 0 ? dy : 0.0;
    case GX_ACT_GELU_TANH:
        return dy * gelu_slope(saved);
    case GX_ACT_GELU_ERF:
        return dy * gelu_erf_slope(saved);
    case GX_ACT_SILU:
        return dy * silu_slope(saved);
    case GX_ACT_TANH:
        return dy * (1.0 - saved * saved);
    case GX_ACT_SIGMOID:
        return dy * saved * (1.0 - saved);
    default:
        return dy;
    }
}
