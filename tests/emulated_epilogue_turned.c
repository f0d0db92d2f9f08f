/* The way back through an epilogue that leaves its result transposed too, run on the CPU
 * by tests/emulate. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cuda_call.h"
#include "emulate_operand.h"
#include "epilogue.h"
#include "epilogue_kernels.h"

typedef struct matrix {
    int rows, columns;
    gx_act act;
    bool has_dx, has_dbias, in_place;
    int wider; /* of a row of the transposed: elements behind its end */
} matrix;

typedef struct operands {
    emulate_operand dy, saved, dx, turned, dbias;
} operands;

static int64_t pitch_of(const matrix *m)
{
    return gx_divide_up(m->rows, 4) * 4 + m->wider;
}

/* Up to the next multiple of 4 there are zeros behind a row's end. */
static operands make_operands(const matrix *m, test_random *random)
{
    const int64_t n = (int64_t)m->rows * m->columns, pitch = pitch_of(m);
    operands o = {
        .dy = emulate_plain_input(GX_F32, n, random),
        .saved = emulate_plain_input(GX_F32, n, random),
        .dx = emulate_output(GX_F32, n),
        .turned = emulate_output(GX_F32, m->columns * pitch),
        .dbias = emulate_output(GX_F32, m->columns),
    };

    for (int64_t i = 0; i < n; i++) {
        const int64_t row = i / m->columns, column = i % m->columns;
        const double magnitude = fabs(o.dy.value[i]);

        o.dx.value[i] = gx_act_back(m->act, o.dy.value[i], o.saved.value[i]);
        o.dx.magnitude[i] = magnitude;
        o.turned.value[column * pitch + row] = o.dx.value[i];
        o.turned.magnitude[column * pitch + row] = magnitude;
        o.dbias.value[column] += o.dx.value[i];
        o.dbias.magnitude[column] += magnitude;
    }
    if (m->in_place)
        memcpy(o.dx.memory, o.dy.memory, (size_t)n * sizeof(float));
    return o;
}

/* What lies between the rows is as it was: NaNs. */
static void check_between(const matrix *m, operands *o, const char *what)
{
    const int64_t pitch = pitch_of(m);
    float *turned = o->turned.memory;

    for (int64_t i = 0; i < m->columns * pitch; i++) {
        if (i % pitch < pitch - m->wider)
            continue;
        if (!isnan(turned[i]))
            fail_msg("%s: element %lld, between two rows, is %g", what, (long long)i,
                     (double)turned[i]);
        turned[i] = 0;
    }
}

/* The bits are those of dx, where that is stored too. */
static void check_bits(const matrix *m, const operands *o, const char *what)
{
    const float *dx = o->dx.memory, *turned = o->turned.memory;

    for (int64_t i = 0; m->has_dx && i < (int64_t)m->rows * m->columns; i++) {
        const int64_t at = i % m->columns * pitch_of(m) + i / m->columns;

        if (memcmp(&dx[i], &turned[at], sizeof *dx) != 0)
            fail_msg("%s: element %lld is %a, and %a in the transposed", what,
                     (long long)i, (double)dx[i], (double)turned[at]);
    }
}

static void check_matrix(const matrix *m, test_random *random)
{
    operands o = make_operands(m, random);
    const gx_epilogue_turned turned = {
        .back = { .rows = m->rows,
                  .columns = m->columns,
                  .dtype = GX_F32,
                  .act = (int)m->act,
                  .dy = m->in_place ? o.dx.memory : o.dy.memory,
                  .saved = m->act == GX_ACT_NONE ? NULL : o.saved.memory,
                  .dx = m->has_dx ? o.dx.memory : NULL,
                  .dbias = m->has_dbias ? o.dbias.memory : NULL },
        .turned = o.turned.memory,
        .pitch = pitch_of(m),
    };
    gx_ctx ctx = { .cc = 90, .n_sm = 132 };
    gx_error err = { 0 };
    char what[120];

    snprintf(what, sizeof what, "activation %d, %d x %d%s%s%s", (int)m->act, m->rows,
             m->columns, m->has_dx ? ", dx" : "", m->has_dbias ? ", dbias" : "",
             m->in_place ? ", in place" : "");
    assert_ok(gx_epilogue_turned_load(&turned, &err), &err);
    if (gx_epilogue_turned_launch(&turned, &ctx, &err) != GX_OK)
        fail_msg("%s: %s", what, err.message);
    assert_int_equal(ctx.n_launched, 1);
    check_between(m, &o, what);
    check_bits(m, &o, what);
    emulate_compare(&o.turned, "the transposed", what);
    if (m->has_dx)
        emulate_compare(&o.dx, "dx", what);
    if (m->has_dbias)
        emulate_compare(&o.dbias, "dbias", what);
    emulate_drop(&o.dy);
    emulate_drop(&o.saved);
    emulate_drop(&o.dx);
    emulate_drop(&o.turned);
    emulate_drop(&o.dbias);
}

/* Less than a tile, tiles that end within a quad of rows, a tile for each block of a
 * cluster and one more, several turns; columns that end within a block. */
static const int row_counts[] = { 1, 31, 64, 130, 515, 1100 };
static const int column_counts[] = { 4, 64, 72, 136 };

static void gradients(void **state)
{
    const uint64_t *seed = *state;
    test_random random = test_random_start(*seed);

    for (int act = 0; act < GX_N_ACTS; act++) {
        for (int r = 0; r < (int)ARRAY_SIZE(row_counts); r++) {
            const int i = act + r;
            matrix m = { .rows = row_counts[r],
                         .columns = column_counts[i % (int)ARRAY_SIZE(column_counts)],
                         .act = (gx_act)act,
                         .has_dx = i % 3 != 0,
                         .has_dbias = i % 2 != 0,
                         .wider = i % 5 == 0 ? 4 : 0 };

            m.in_place = m.has_dx && test_random_int(&random, 0, 1) != 0;
            emulate_seed(test_random_bits(&random));
            check_matrix(&m, &random);
        }
    }
}

int main(void)
{
    static uint64_t seed;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(gradients, &seed),
    };

    seed = test_seed();
    return cmocka_run_group_tests_name("emulated_epilogue_turned", tests, NULL, NULL);
}
