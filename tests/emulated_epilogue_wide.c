/* The way back through an epilogue of a large matrix, run on the CPU by tests/emulate. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "emulate_operand.h"
#include "epilogue.h"
#include "epilogue_kernels.h"

/* As in table.c, which brings the launches of a card along. */
static const struct {
    const char *name;
    gx_act_reads reads;
} acts[GX_N_ACTS] = {
#define ACT_OF(act, name, reads, flops) [GX_ACT_##act] = { name, GX_ACT_READS_##reads },
    GX_ACT_LIST(ACT_OF)
#undef ACT_OF
};

typedef struct matrix {
    int rows, columns;
    gx_dtype dtype;
    gx_act act;
    bool has_dx, has_dbias, in_place;
} matrix;

typedef struct operands {
    emulate_operand dy, saved, dx, dbias;
} operands;

/* What an activation has left behind, and, where its input is kept, values at which its
 * slope is at its end. */
static emulate_operand make_saved(const matrix *m, test_random *random)
{
    static const float far[] = { 19.5f, 25.0f, 200.0f, 1e30f };
    const int64_t n = (int64_t)m->rows * m->columns;
    emulate_operand o = emulate_plain_input(m->dtype, n, random);

    if (m->dtype != GX_F32 || acts[m->act].reads != GX_ACT_READS_PRE)
        return o;
    for (int64_t i = 0; i < n; i += 7) {
        const float x = far[i / 14 % (int)ARRAY_SIZE(far)] * (i / 7 % 2 ? -1.0f : 1.0f);

        memcpy((float *)o.memory + i, &x, sizeof x);
        o.value[i] = (double)x;
    }
    return o;
}

static operands make_operands(const matrix *m, test_random *random)
{
    const int64_t n = (int64_t)m->rows * m->columns;
    operands o = {
        .dy = emulate_plain_input(m->dtype, n, random),
        .saved = make_saved(m, random),
        .dx = emulate_output(m->dtype, n),
        .dbias = emulate_output(m->dtype, m->columns),
    };

    for (int64_t i = 0; i < n; i++) {
        o.dx.value[i] = gx_act_back(m->act, o.dy.value[i], o.saved.value[i]);
        o.dx.magnitude[i] = fabs(o.dy.value[i]);
        o.dbias.value[i % m->columns] += o.dx.value[i];
        o.dbias.magnitude[i % m->columns] += fabs(o.dy.value[i]);
    }
    if (m->in_place)
        memcpy(o.dx.memory, o.dy.memory, (size_t)n * gx_dtype_bytes(m->dtype));
    return o;
}

static void check_matrix(const matrix *m, test_random *random)
{
    operands o = make_operands(m, random);
    const gx_epilogue_bwd backward = {
        .rows = m->rows,
        .columns = m->columns,
        .dtype = m->dtype,
        .act = (int)m->act,
        .dy = m->in_place ? o.dx.memory : o.dy.memory,
        .saved = m->act == GX_ACT_NONE ? NULL : o.saved.memory,
        .dx = m->has_dx ? o.dx.memory : NULL,
        .dbias = m->has_dbias ? o.dbias.memory : NULL,
    };
    gx_ctx ctx = { .cc = 90, .n_sm = 132 };
    gx_error err = { 0 };
    char what[120];

    snprintf(what, sizeof what, "%s, %s, %d x %d%s%s%s", gx_dtype_name(m->dtype),
             acts[m->act].name, m->rows, m->columns, m->has_dx ? ", dx" : "",
             m->has_dbias ? ", dbias" : "", m->in_place ? ", in place" : "");
    assert_ok(gx_epilogue_bwd_wide_load(&backward, &err), &err);
    if (gx_epilogue_bwd_wide_launch(&backward, &ctx, &err) != GX_OK) {
        print_error("%s: %s\n", what, err.message);
        fail();
    }
    if (m->has_dx)
        emulate_compare(&o.dx, "dx", what);
    if (m->has_dbias)
        emulate_compare(&o.dbias, "dbias", what);
    emulate_drop(&o.dy);
    emulate_drop(&o.saved);
    emulate_drop(&o.dx);
    emulate_drop(&o.dbias);
}

/* Fewer rows than a block has, rows that come out even for some blocks and not for
 * others, turns of one row and of several; columns that end within a block. */
static const int row_counts[] = { 1, 31, 130, 300, 1100 };
static const int column_counts[] = { 8, 72, 136 };

static void gradients(void **state)
{
    const uint64_t *seed = *state;
    test_random random = test_random_start(*seed);
    static const gx_dtype dtypes[] = { GX_F32, GX_BF16, GX_F16 };

    for (int i = 0; i < (int)(ARRAY_SIZE(dtypes) * GX_N_ACTS); i++) {
        matrix m = { .dtype = dtypes[i / GX_N_ACTS], .act = (gx_act)(i % GX_N_ACTS) };

        for (size_t r = 0; r < ARRAY_SIZE(row_counts); r++) {
            m.rows = row_counts[r];
            m.columns = column_counts[(r + (size_t)i) % ARRAY_SIZE(column_counts)];
            m.has_dx = (i + (int)r) % 3 != 0;
            m.has_dbias = !m.has_dx || (i + (int)r) % 3 == 1;
            m.in_place = m.has_dx && test_random_int(&random, 0, 1) != 0;
            emulate_seed(test_random_bits(&random));
            check_matrix(&m, &random);
        }
    }
}

/* Of as many rows as a thread has here eight are on their way at once, then two, then
 * one. */
static void sums_alone(void **state)
{
    const uint64_t *seed = *state;
    test_random random = test_random_start(*seed);
    static const gx_dtype dtypes[] = { GX_F32, GX_BF16, GX_F16 };

    for (size_t i = 0; i < ARRAY_SIZE(dtypes); i++) {
        const matrix m = { .dtype = dtypes[i],
                           .act = GX_ACT_NONE,
                           .rows = 2900,
                           .columns = 72,
                           .has_dbias = true };

        emulate_seed(test_random_bits(&random));
        check_matrix(&m, &random);
    }
}

int main(void)
{
    static uint64_t seed;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(gradients, &seed),
        cmocka_unit_test_prestate(sums_alone, &seed),
    };

    seed = test_seed();
    return cmocka_run_group_tests_name("emulated_epilogue_wide", tests, NULL, NULL);
}
