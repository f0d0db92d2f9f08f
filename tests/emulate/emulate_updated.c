#include "emulate_updated.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double lr = 0.25, beta1 = 0.75, beta2 = 0.9375, eps = 0.0625, shrink = 0.5;
static const int32_t done = 2; /* updates before this one */

/* A square is not below zero. */
static void make_positive(emulate_operand *o)
{
    const size_t size = gx_dtype_bytes(o->dtype);

    for (int64_t i = 0; i < o->n; i++) {
        ((unsigned char *)o->memory)[(size_t)i * size + size - 1] &= 0x7f;
        o->value[i] = fabs(o->value[i]);
    }
}

static void expect_update(emulate_updated *u, const emulate_operand *gradient)
{
    const double c1 = 1 - pow(beta1, done + 1), c2 = 1 - pow(beta2, done + 1);

    for (int64_t i = 0; i < gradient->n; i++) {
        const double g = gradient->value[i], size = gradient->magnitude[i];
        double *p = &u->of[EMULATE_PARAM].value[i], *m = &u->of[EMULATE_M].value[i];
        double *v = &u->of[EMULATE_V].value[i];

        u->of[EMULATE_M].magnitude[i] = fabs(*m) + size;
        u->of[EMULATE_V].magnitude[i] = *v + size * size;
        *m += (1 - beta1) * (g - *m);
        *v = beta2 * *v + (1 - beta2) * g * g;
        u->of[EMULATE_PARAM].magnitude[i] =
            fabs(*p) + lr / c1 * u->of[EMULATE_M].magnitude[i] / eps;
        *p = (1 - lr * shrink) * *p - lr / c1 * *m / (sqrt(*v / c2) + eps);
    }
}

emulate_updated emulate_make_updated(const emulate_operand *gradient, test_random *random)
{
    emulate_updated u;

    for (int i = 0; i < EMULATE_N_UPDATED; i++) {
        u.of[i] = emulate_plain_input(gradient->dtype, gradient->n, random);
        if (i == EMULATE_V)
            make_positive(&u.of[i]);
        const size_t bytes = (size_t)gradient->n * gx_dtype_bytes(gradient->dtype);

        u.before[i] = malloc(bytes);
        assert_non_null(u.before[i]);
        memcpy(u.before[i], u.of[i].memory, bytes);
    }
    expect_update(&u, gradient);
    return u;
}

gx_updated emulate_bring_back(const emulate_updated *u)
{
    for (int i = 0; i < EMULATE_N_UPDATED; i++)
        memcpy(u->of[i].memory, u->before[i],
               (size_t)u->of[i].n * gx_dtype_bytes(u->of[i].dtype));
    return (gx_updated){ u->of[EMULATE_PARAM].memory, u->of[EMULATE_M].memory,
                         u->of[EMULATE_V].memory };
}

void emulate_compare_updated(const emulate_updated *u, const char *of, const char *what)
{
    static const char *const names[EMULATE_N_UPDATED] = { "param", "m", "v" };
    char name[40];

    for (int i = 0; i < EMULATE_N_UPDATED; i++) {
        snprintf(name, sizeof name, "%s of %s", names[i], of);
        emulate_compare(&u->of[i], name, what);
    }
}

void emulate_drop_updated(emulate_updated *u)
{
    for (int i = 0; i < EMULATE_N_UPDATED; i++) {
        emulate_drop(&u->of[i]);
        free(u->before[i]);
    }
}

static void *make_cell(const void *value)
{
    return memcpy(emulate_alloc(4), value, 4);
}

gx_update_settings emulate_update_settings(void **rate, void **step)
{
    const float of_step = (float)lr;

    *rate = make_cell(&of_step);
    *step = make_cell(&done);
    return (gx_update_settings){ .lr = *rate,
                                 .log_beta1 = log(beta1),
                                 .log_beta2 = log(beta2),
                                 .shrink = shrink,
                                 .take1 = (float)(1 - beta1),
                                 .keep2 = (float)beta2,
                                 .take2 = (float)(1 - beta2),
                                 .eps = (float)eps };
}
