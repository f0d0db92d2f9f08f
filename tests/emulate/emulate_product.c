#include "emulate_product.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* In emulate_async.cc: a PFN_cuTensorMapEncodeTiled_v12000. */
CUresult emulate_encode(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank,
                        void *data, const cuuint64_t *sizes, const cuuint64_t *strides,
                        const cuuint32_t *box, const cuuint32_t *steps,
                        CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                        CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill);

int emulate_line(gx_tile_math math)
{
    return math == GX_TILE_TF32 ? GX_WGMMA_K_TF32 : GX_WGMMA_K;
}

void emulate_map_matrix(const emulate_operand *of, const emulate_map *as,
                        CUtensorMap *map)
{
    const gx_mapped matrix = { .data = of->memory,
                               .dtype = of->dtype,
                               .rows = as->rows,
                               .columns = as->columns,
                               .ld = as->ld,
                               .box_rows = as->box_rows,
                               .box_columns = 128 / (int)gx_dtype_bytes(of->dtype),
                               .to_tf32 = !as->is_summed };
    gx_error err = { 0 };

    assert_ok(gx_tensor_map_encode(emulate_encode, &matrix, map, &err), &err);
}

/* Numbers that only rounding to tf32 makes whole, where that is the math. */
static void unround(const emulate_operand *o)
{
    for (int64_t i = 0; i < o->n; i++) {
        const float x = (float)(o->value[i] * (1 + 0x1p-13));

        if (o->dtype == GX_F32)
            memcpy((float *)o->memory + i, &x, sizeof x);
    }
}

static void multiply(emulate_product *p)
{
    const int64_t a_row = p->a_turned ? 1 : p->lda, a_k = p->a_turned ? p->lda : 1;
    const int64_t b_k = p->b_turned ? 1 : p->ldb, b_column = p->b_turned ? p->ldb : 1;

    for (int64_t i = 0; i < p->m; i++) {
        for (int64_t at = 0; at < p->k; at++) {
            const double a = p->a.value[i * a_row + at * a_k];

            for (int64_t j = 0; j < p->n; j++) {
                const double term = a * p->b.value[at * b_k + j * b_column];

                p->value[i * p->n + j] += term;
                p->magnitude[i * p->n + j] += fabs(term);
            }
        }
    }
}

void emulate_make_product(emulate_product *p, test_random *random)
{
    const int64_t a_rows = p->a_turned ? p->k : p->m, b_rows = p->b_turned ? p->n : p->k;
    const int64_t a_columns = p->a_turned ? p->m : p->k;
    const int64_t b_columns = p->b_turned ? p->k : p->n;
    const gx_dtype dtype = emulate_dtype(p->math);

    const int64_t vector = 16 / (int64_t)gx_dtype_bytes(dtype); /* rows begin at such */

    p->lda = gx_divide_up(a_columns, vector) * vector + p->wide;
    p->ldb = gx_divide_up(b_columns, vector) * vector + p->wide;
    p->a = emulate_whole_input(dtype, a_rows * p->lda, random);
    p->b = emulate_whole_input(dtype, b_rows * p->ldb, random);
    unround(&p->a);
    unround(&p->b);
    const int line = emulate_line(p->math);
    const emulate_map a = { a_rows, a_columns, p->lda, p->a_turned ? line : GX_WGMMA_ROWS,
                            false };
    const emulate_map b = { b_rows, b_columns, p->ldb, p->b_turned ? GX_WGMMA_BOX : line,
                            false };

    emulate_map_matrix(&p->a, &a, &p->maps.a);
    emulate_map_matrix(&p->b, &b, &p->maps.b);
    p->value = calloc((size_t)(p->m * p->n), sizeof *p->value);
    p->magnitude = calloc((size_t)(p->m * p->n), sizeof *p->magnitude);
    assert_true(p->value && p->magnitude);
    multiply(p);
}

void emulate_drop_product(emulate_product *p)
{
    emulate_drop(&p->a);
    emulate_drop(&p->b);
    free(p->value);
    free(p->magnitude);
}

void *emulate_handed(gx_tile_math math, int n_sm)
{
    return emulate_alloc(gx_wgmma_handed_bytes(math, n_sm));
}
