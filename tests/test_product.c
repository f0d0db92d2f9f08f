/* The product of the CPU against three plain loops. */
#include "support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "product.h"

static void fill(double *x, int64_t n, test_random *random)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = test_random_real(random, -1, 1);
}

/* The same sums in the same order: equal to the bit. */
static void check(int64_t m, int64_t n, int64_t k, bool trans_a, bool trans_b,
                  test_random *random)
{
    double *a = calloc((size_t)(m * k + 1), sizeof *a);
    double *b = calloc((size_t)(k * n + 1), sizeof *b);
    double *out = calloc((size_t)(m * n + 1), sizeof *out);
    const gx_matrix left = { a, trans_a ? 1 : k, trans_a ? m : 1 };
    const gx_matrix right = { b, trans_b ? 1 : n, trans_b ? k : 1 };

    assert_true(a && b && out);
    fill(a, m * k, random);
    fill(b, k * n, random);
    for (int64_t i = 0; i < m * n; i++)
        out[i] = NAN;
    out[m * n] = 12345;
    gx_product(m, n, k, left, right, out, n);
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;

            for (int64_t p = 0; p < k; p++)
                sum += a[i * left.row + p * left.column] *
                       b[p * right.row + j * right.column];
            assert_true(sum == out[i * n + j]);
        }
    }
    assert_true(out[m * n] == 12345);
    free(a);
    free(b);
    free(out);
}

static void every_size_and_transpose_is_right(void **state)
{
    static const int64_t sizes[] = { 0, 1, 3, 4, 5, 8, 9, 17, 33 };
    test_random random = test_random_start(test_seed());

    (void)state;
    for (size_t m = 0; m < ARRAY_SIZE(sizes); m++)
        for (size_t n = 0; n < ARRAY_SIZE(sizes); n++)
            for (size_t k = 0; k < ARRAY_SIZE(sizes); k++)
                for (int flags = 0; flags < 4; flags++)
                    check(sizes[m], sizes[n], sizes[k], flags & 1, flags & 2, &random);
}

/* More than one panel of k. */
static void long_sums_are_right(void **state)
{
    static const int64_t sizes[] = { 255, 256, 257, 513, 784 };
    test_random random = test_random_start(test_seed());

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
        for (int flags = 0; flags < 4; flags++)
            check(7, 19, sizes[i], flags & 1, flags & 2, &random);
}

static void nan_of_an_operand_reaches_its_row_alone(void **state)
{
    enum { M = 6, N = 10, K = 3 };
    double a[M * K], b[K * N], out[M * N];
    test_random random = test_random_start(test_seed());

    (void)state;
    fill(a, M * K, &random);
    fill(b, K * N, &random);
    a[2 * K + 1] = NAN;
    gx_product(M, N, K, (gx_matrix){ a, K, 1 }, (gx_matrix){ b, N, 1 }, out, N);
    for (int i = 0; i < M * N; i++)
        assert_true(isnan(out[i]) == (i / N == 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_size_and_transpose_is_right),
        cmocka_unit_test(long_sums_are_right),
        cmocka_unit_test(nan_of_an_operand_reaches_its_row_alone),
    };

    return cmocka_run_group_tests_name("product", tests, NULL, NULL);
}
