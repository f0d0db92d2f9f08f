/* What an update does with one element: shared by the kernels that update, and the same
 * to the bit in each. */
#ifndef GX_UPDATE_CUH
#define GX_UPDATE_CUH

#include "kernel.cuh"
#include "optimizer_kernels.h"

/* What the elements of a group share: the factor that shrinks a parameter, the rate
 * (adam: corrected), and one over the root of the second correction. */
struct gx_update_factors {
    float keep, rate, root;
};

/* What does not change from element to element. */
struct gx_update_moment {
    float scale;
    bool first; /* no update stands behind */
};

/* 1 - beta^t in double: in float it would lose most of its digits at the first steps. */
static __device__ __forceinline__ double gx_bias_correction(double log_beta, int64_t done)
{
    return -expm1(((double)done + 1.0) * log_beta);
}

static __device__ __forceinline__ gx_update_factors
gx_adam_factors(const gx_update_settings &s, double correction1, double correction2)
{
    const double lr = (double)*s.lr;

    return { (float)(1.0 - lr * s.shrink), (float)(lr / correction1),
             (float)sqrt(correction2) };
}

static __device__ __forceinline__ void gx_sgd_rule(float &p, float g,
                                                   const gx_update_settings &s,
                                                   const gx_update_factors &f,
                                                   const gx_update_moment &now)
{
    /* rounded by itself, so that a scale of 1 changes nothing */
    g = __fmul_rn(g, now.scale);
    p -= f.rate * (g + s.decay * p);
}

static __device__ __forceinline__ void gx_momentum_rule(float &p, float g, float &b,
                                                        const gx_update_settings &s,
                                                        const gx_update_factors &f,
                                                        const gx_update_moment &now)
{
    g = __fmul_rn(g, now.scale);
    g += s.decay * p;
    b = now.first ? g : s.keep2 * b + s.take1 * g;
    p -= f.rate * (s.nesterov ? g + s.keep2 * b : b);
}

static __device__ __forceinline__ void gx_adam_rule(float &p, float g, float &m, float &v,
                                                    const gx_update_settings &s,
                                                    const gx_update_factors &f,
                                                    const gx_update_moment &now)
{
    g = __fmul_rn(g, now.scale);
    if (s.decay > 0.0f)
        g = __fmaf_rn(s.decay, p, g);
    m += s.take1 * (g - m);
    v = s.keep2 * v + s.take2 * g * g;
    /* fused by name: behind a division the assembler does it in some lanes alone */
    p = __fmaf_rn(f.keep, p, -(f.rate * m / (sqrtf(v) / f.root + s.eps)));
}

#endif
