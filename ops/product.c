/* The matrix product of the CPU: a tile of the result stays in registers while k runs,
 * and a panel of b lies packed in the first cache. */
#include "product.h"

#include <stdbool.h>
#include <string.h>

/* A tile of 4 x 8 doubles fills 8 of the 16 registers of AVX2; 256 rows of a panel are
 * 16 KiB, half of a first cache. */
enum { TILE_ROWS = 4, TILE_COLUMNS = 8, PANEL_ROWS = 256 };

/* Wide vectors where the processor has them; the sums are the same, in the same order:
 * the product and the sum stay two roundings, since no fused multiply-add is enabled. */
#if defined(__x86_64__) && defined(__GNUC__)
#define GX_WIDE 1
#else
#define GX_WIDE 0
#endif

typedef struct panel {
    _Alignas(64) double row[PANEL_ROWS][TILE_COLUMNS];
} panel;

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Columns past the end are zero: they are computed and not stored. */
static void pack(panel *to, gx_matrix b, int64_t n_rows, int64_t n_columns)
{
    for (int64_t k = 0; k < n_rows; k++) {
        const double *from = b.data + k * b.row;

        for (int64_t j = 0; j < n_columns; j++)
            to->row[k][j] = from[j * b.column];
        for (int64_t j = n_columns; j < TILE_COLUMNS; j++)
            to->row[k][j] = 0.0;
    }
}

/* tile += a[4, n_rows] panel; rows of a past the end repeat the last one. */
static inline __attribute__((always_inline)) void
accumulate(double tile[TILE_ROWS][TILE_COLUMNS], const double *const row[TILE_ROWS],
           int64_t step, const panel *b, int64_t n_rows)
{
#if defined(__GNUC__)
    typedef double vector __attribute__((vector_size(32)));
    vector s0, s1, s2, s3, t0, t1, t2, t3; /* named, so that they stay in registers */

    memcpy(&s0, &tile[0][0], sizeof s0), memcpy(&t0, &tile[0][4], sizeof t0);
    memcpy(&s1, &tile[1][0], sizeof s1), memcpy(&t1, &tile[1][4], sizeof t1);
    memcpy(&s2, &tile[2][0], sizeof s2), memcpy(&t2, &tile[2][4], sizeof t2);
    memcpy(&s3, &tile[3][0], sizeof s3), memcpy(&t3, &tile[3][4], sizeof t3);
    for (int64_t k = 0; k < n_rows; k++) {
        const double *at = b->row[k];
        const vector low = { at[0], at[1], at[2], at[3] };
        const vector high = { at[4], at[5], at[6], at[7] };
        const double x0 = row[0][k * step], x1 = row[1][k * step];
        const double x2 = row[2][k * step], x3 = row[3][k * step];

        s0 += x0 * low, t0 += x0 * high;
        s1 += x1 * low, t1 += x1 * high;
        s2 += x2 * low, t2 += x2 * high;
        s3 += x3 * low, t3 += x3 * high;
    }
    memcpy(&tile[0][0], &s0, sizeof s0), memcpy(&tile[0][4], &t0, sizeof t0);
    memcpy(&tile[1][0], &s1, sizeof s1), memcpy(&tile[1][4], &t1, sizeof t1);
    memcpy(&tile[2][0], &s2, sizeof s2), memcpy(&tile[2][4], &t2, sizeof t2);
    memcpy(&tile[3][0], &s3, sizeof s3), memcpy(&tile[3][4], &t3, sizeof t3);
#else
    for (int64_t k = 0; k < n_rows; k++) {
        for (int i = 0; i < TILE_ROWS; i++) {
            for (int j = 0; j < TILE_COLUMNS; j++)
                tile[i][j] += row[i][k * step] * b->row[k][j];
        }
    }
#endif
}

static void accumulate_plain(double tile[TILE_ROWS][TILE_COLUMNS],
                             const double *const row[TILE_ROWS], int64_t step,
                             const panel *b, int64_t n_rows)
{
    accumulate(tile, row, step, b, n_rows);
}

#if GX_WIDE
__attribute__((target("avx2"))) static void
accumulate_wide(double tile[TILE_ROWS][TILE_COLUMNS], const double *const row[TILE_ROWS],
                int64_t step, const panel *b, int64_t n_rows)
{
    accumulate(tile, row, step, b, n_rows);
}
#endif

static bool has_wide(void)
{
#if GX_WIDE
    return __builtin_cpu_supports("avx2");
#else
    return false;
#endif
}

/* One panel of b against every row of a. `fresh`: out holds nothing yet. */
static void sweep(int64_t m, int64_t n_columns, int64_t n_rows, gx_matrix a,
                  const panel *b, double *out, int64_t out_row, bool fresh, bool wide)
{
    for (int64_t i = 0; i < m; i += TILE_ROWS) {
        const int64_t height = smaller(TILE_ROWS, m - i);
        _Alignas(32) double tile[TILE_ROWS][TILE_COLUMNS] = { { 0.0 } };
        const double *row[TILE_ROWS];

        for (int64_t r = 0; r < TILE_ROWS; r++)
            row[r] = a.data + (i + smaller(r, height - 1)) * a.row;
        for (int64_t r = 0; !fresh && r < height; r++)
            memcpy(tile[r], out + (i + r) * out_row, (size_t)n_columns * sizeof **tile);
#if GX_WIDE
        if (wide)
            accumulate_wide(tile, row, a.column, b, n_rows);
        else
#endif
            accumulate_plain(tile, row, a.column, b, n_rows);
        for (int64_t r = 0; r < height; r++)
            memcpy(out + (i + r) * out_row, tile[r], (size_t)n_columns * sizeof **tile);
    }
    (void)wide;
}

static void multiply(int64_t m, int64_t n, int64_t k, gx_matrix a, gx_matrix b,
                     double *out, int64_t out_row, bool fresh)
{
    const bool wide = has_wide();
    panel packed;

    if (m <= 0 || n <= 0)
        return;
    for (int64_t i = 0; k == 0 && fresh && i < m; i++)
        memset(out + i * out_row, 0, (size_t)n * sizeof *out);
    for (int64_t j = 0; j < n; j += TILE_COLUMNS) {
        const int64_t n_columns = smaller(TILE_COLUMNS, n - j);

        for (int64_t p = 0; p < k; p += PANEL_ROWS) {
            const int64_t n_rows = smaller(PANEL_ROWS, k - p);
            const gx_matrix a_part = { a.data + p * a.column, a.row, a.column };
            const gx_matrix b_part = { b.data + p * b.row + j * b.column, b.row,
                                       b.column };

            pack(&packed, b_part, n_rows, n_columns);
            sweep(m, n_columns, n_rows, a_part, &packed, out + j, out_row,
                  fresh && p == 0, wide);
        }
    }
}

void gx_product(int64_t m, int64_t n, int64_t k, gx_matrix a, gx_matrix b, double *out,
                int64_t out_row)
{
    multiply(m, n, k, a, b, out, out_row, true);
}

void gx_product_add(int64_t m, int64_t n, int64_t k, gx_matrix a, gx_matrix b,
                    double *out, int64_t out_row)
{
    multiply(m, n, k, a, b, out, out_row, false);
}
