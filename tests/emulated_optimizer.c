/* The updates of optimizers over a table of tensors, run on the CPU by tests/emulate. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "emulate_operand.h"
#include "optimizer_kernels.h"

/* Whole chunks and ends of tensors, more of them than there are blocks, which go from one
 * chunk of a tensor to the next one, to its end and to other tensors. */
static const int64_t sizes[] = { 13 * GX_OPTIMIZER_CHUNK + 900, GX_OPTIMIZER_CHUNK, 3 };

enum { N_TENSORS = sizeof sizes / sizeof sizes[0], MASTER = 4, N_OPERANDS };

/* The rate and weights of a tensor's group; its number is that of the tensor. */
static const double rates[N_TENSORS] = { 0.25, 0.5, 0.125 };
static const double decays[N_TENSORS] = { 0.0, 0.25, 0.5 };
static const double beta1 = 0.75, beta2 = 0.9375, eps = 0.0625, shrink = 0.5;

typedef struct update {
    gx_update_rule rule;
    gx_dtype dtype, grad_dtype, state_dtype;
    bool has_master, wide, many, nesterov;
    int32_t step, accumulate;
} update;

/* By number of the pointer, the master last. */
typedef struct tensor {
    emulate_operand operand[N_OPERANDS];
} tensor;

static bool is_there(const update *u, int p)
{
    return p == MASTER ? u->has_master : p < 2 + (int)u->rule;
}

static void make_positive(emulate_operand *o)
{
    const size_t size = gx_dtype_bytes(o->dtype);

    for (int64_t i = 0; i < o->n; i++) {
        ((unsigned char *)o->memory)[(size_t)i * size + size - 1] &= 0x7f;
        o->value[i] = fabs(o->value[i]);
    }
}

static tensor make_tensor(const update *u, int64_t n, test_random *random)
{
    tensor t;

    memset(&t, 0, sizeof t);
    for (int p = 0; p < N_OPERANDS; p++) {
        const gx_dtype dtype = p == 0        ? u->dtype
                               : p == 1      ? u->grad_dtype
                               : p == MASTER ? GX_F32
                                             : u->state_dtype;

        if (is_there(u, p))
            t.operand[p] = emulate_plain_input(dtype, n, random);
    }
    if (u->rule == GX_UPDATE_ADAM)
        make_positive(&t.operand[3]);
    return t;
}

/* What the element becomes; returns what it moves by. */
static double expect_element(const update *u, int group, double t, double *p, double g,
                             double *m, double *v)
{
    const double lr = rates[group], before = *p;

    g = 0.5 * g + decays[group] * *p;
    switch (u->rule) {
    case GX_UPDATE_SGD:
        *p -= lr * g;
        break;
    case GX_UPDATE_MOMENTUM:
        *m = t == 1 ? g : beta1 * *m + 0.5 * g;
        *p -= lr * (u->nesterov ? g + beta1 * *m : *m);
        break;
    default:
        *m += (1 - beta1) * (g - *m);
        *v = beta2 * *v + (1 - beta2) * g * g;
        *p = (1 - lr * shrink) * *p -
             lr / (1 - pow(beta1, t)) * *m / (sqrt(*v / (1 - pow(beta2, t))) + eps);
    }
    return fabs(*p - before);
}

static void expect_tensor(const update *u, int group, tensor *t)
{
    emulate_operand *o = t->operand, *weight = &o[u->has_master ? MASTER : 0];
    const int32_t done = u->step / u->accumulate;
    const bool skips = u->step < 0 || u->step % u->accumulate != u->accumulate - 1;
    double none = 0;

    for (int64_t i = 0; i < o[0].n && !skips; i++) {
        double *m = is_there(u, 2) ? &o[2].value[i] : &none;
        double *v = is_there(u, 3) ? &o[3].value[i] : &none;
        const double moved =
            expect_element(u, group, done + 1, &weight->value[i], o[1].value[i], m, v);

        weight->magnitude[i] = 4.0 + moved; /* of what is added up, at most */
        o[0].value[i] = weight->value[i];
        o[0].magnitude[i] = weight->magnitude[i];
        for (int p = 2; p < MASTER && is_there(u, p); p++)
            o[p].magnitude[i] = 4.0;
    }
}

static gx_update_table make_table(const update *u, const tensor *tensors)
{
    gx_update_table table = {
        .rule = u->rule,
        .n_pointers = 2 + (int)u->rule + u->has_master,
        .n_settings = N_TENSORS,
        .n_entries = N_TENSORS,
        .dtype = u->dtype,
        .grad_dtype = u->grad_dtype,
        .state_dtype = u->state_dtype,
        .has_master = u->has_master,
        .wide = u->wide,
        .many = u->many,
        .accumulate = u->accumulate,
    };
    uint64_t *word = table.words;

    for (int i = 0; i < N_TENSORS; i++) {
        table.settings[i] = (gx_update_settings){
            .log_beta1 = log(beta1),
            .log_beta2 = log(beta2),
            .shrink = shrink,
            .decay = (float)decays[i],
            .take1 = u->rule == GX_UPDATE_ADAM ? (float)(1 - beta1) : 0.5F,
            .keep2 = u->rule == GX_UPDATE_ADAM ? (float)beta2 : (float)beta1,
            .take2 = (float)(1 - beta2),
            .eps = (float)eps,
            .nesterov = u->nesterov,
        };
        for (int p = 0; p < N_OPERANDS; p++) {
            if (is_there(u, p))
                *word++ = (uint64_t)(uintptr_t)tensors[i].operand[p].memory;
        }
        *word++ = (uint64_t)sizes[i];
        *word++ = (uint64_t)i << GX_UPDATE_GROUP_SHIFT | (uint64_t)table.n_chunks;
        table.n_chunks += (sizes[i] + GX_OPTIMIZER_CHUNK - 1) / GX_OPTIMIZER_CHUNK;
    }
    return table;
}

static void *make_cell(const void *value)
{
    return memcpy(emulate_alloc(4), value, 4);
}

static void launch(gx_update_table *table, int32_t step, const char *what)
{
    const float scale = 0.5F;
    void *cells[2 + N_TENSORS] = { make_cell(&step), make_cell(&scale) };
    gx_ctx ctx = { .cc = 90, .n_sm = 1 };
    gx_error err = { 0 };

    table->step = cells[0];
    table->scale = cells[1];
    for (int i = 0; i < N_TENSORS; i++) {
        const float lr = (float)rates[i];

        cells[2 + i] = make_cell(&lr);
        table->settings[i].lr = cells[2 + i];
    }
    assert_ok(gx_update_load(table, &err), &err);
    if (gx_update_launch(table, &ctx, &err) != GX_OK) {
        print_error("%s: %s\n", what, err.message);
        fail();
    }
    for (int i = 0; i < 2 + N_TENSORS; i++)
        emulate_free(cells[i]);
}

static void check_update(const update *u, test_random *random)
{
    static const char *const names[N_OPERANDS] = { "param", "grad", "m", "v", "master" };
    tensor tensors[N_TENSORS];
    char what[120];

    snprintf(what, sizeof what, "rule %d, %s, %s, %s%s%s%s, step %d", (int)u->rule,
             gx_dtype_name(u->dtype), gx_dtype_name(u->grad_dtype),
             gx_dtype_name(u->state_dtype), u->has_master ? ", master" : "",
             u->wide ? ", wide" : "", u->many ? ", many" : "", (int)u->step);
    for (int i = 0; i < N_TENSORS; i++)
        tensors[i] = make_tensor(u, sizes[i], random);
    gx_update_table table = make_table(u, tensors);

    launch(&table, u->step, what);
    for (int i = 0; i < N_TENSORS; i++) {
        expect_tensor(u, i, &tensors[i]);
        for (int p = 0; p < N_OPERANDS; p++) {
            if (is_there(u, p))
                emulate_compare(&tensors[i].operand[p], names[p], what);
            emulate_drop(&tensors[i].operand[p]);
        }
    }
}

static void updates(void **state)
{
    const uint64_t *seed = *state;
    test_random random = test_random_start(*seed);
    static const struct {
        gx_dtype dtype, grad, state;
        bool has_master;
    } kinds[] = {
        { GX_F32, GX_F32, GX_F32, false }, { GX_BF16, GX_BF16, GX_BF16, false },
        { GX_F16, GX_F16, GX_F16, false }, { GX_BF16, GX_F32, GX_BF16, false },
        { GX_F16, GX_F16, GX_F32, false }, { GX_BF16, GX_BF16, GX_BF16, true },
        { GX_F16, GX_F32, GX_F32, true },
    };
    /* An update, the second of three each, no update yet, and one that is skipped. */
    static const int32_t steps[][2] = { { 0, 1 }, { 5, 3 }, { 4, 3 }, { -1, 1 } };

    for (int i = 0; i < (int)ARRAY_SIZE(kinds) * 6; i++) {
        const int kind = i / 6;
        update u = { .rule = (gx_update_rule)(i % 3),
                     .dtype = kinds[kind].dtype,
                     .grad_dtype = kinds[kind].grad,
                     .state_dtype = i % 3 == 0 ? kinds[kind].dtype : kinds[kind].state,
                     .has_master = kinds[kind].has_master,
                     .wide = i % 6 < 3 };

        for (size_t s = 0; s < ARRAY_SIZE(steps); s++) {
            u.step = steps[s][0];
            u.accumulate = steps[s][1];
            u.nesterov = s == 1;
            u.many = u.wide && s != 1 && kinds[kind].grad != GX_F32 &&
                     u.state_dtype != GX_F32 && !u.has_master;
            emulate_seed(test_random_bits(&random));
            check_update(&u, &random);
        }
    }
}

/* What is updated element by element, by wide loads, and by those of many chunks. */
static void ways_agree_to_the_bit(void **state)
{
    const uint64_t *seed = *state;
    static const gx_dtype dtypes[] = { GX_BF16, GX_F16 };

    for (int i = 0; i < (int)ARRAY_SIZE(dtypes) * 3; i++) {
        update u = { .rule = (gx_update_rule)(i % 3),
                     .dtype = dtypes[i / 3],
                     .grad_dtype = dtypes[i / 3],
                     .state_dtype = dtypes[i / 3],
                     .step = 4,
                     .accumulate = 1 };
        tensor first[N_TENSORS], next[N_TENSORS];

        for (int way = 0; way < 3; way++) {
            test_random random = test_random_start(*seed);
            tensor *tensors = way == 0 ? first : next;

            for (int t = 0; t < N_TENSORS; t++)
                tensors[t] = make_tensor(&u, sizes[t], &random);
            u.wide = way > 0;
            u.many = way > 1;
            gx_update_table table = make_table(&u, tensors);

            launch(&table, u.step, "ways");
            for (int t = 0; t < N_TENSORS && way > 0; t++) {
                for (int p = 0; p < MASTER && is_there(&u, p); p++) {
                    assert_memory_equal(next[t].operand[p].memory,
                                        first[t].operand[p].memory,
                                        (size_t)sizes[t] * gx_dtype_bytes(u.dtype));
                    emulate_drop(&next[t].operand[p]);
                }
            }
        }
        for (int t = 0; t < N_TENSORS; t++) {
            for (int p = 0; p < MASTER && is_there(&u, p); p++)
                emulate_drop(&first[t].operand[p]);
        }
    }
}

int main(void)
{
    static uint64_t seed;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(updates, &seed),
        cmocka_unit_test_prestate(ways_agree_to_the_bit, &seed),
    };

    seed = test_seed();
    return cmocka_run_group_tests_name("emulated_optimizer", tests, NULL, NULL);
}
