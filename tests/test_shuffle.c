/* The order of samples is a permutation, another one in each epoch. */
#include "support.h"

#include <stdlib.h>
#include <string.h>

#include "shuffle.h"

static void assert_permutation(uint32_t n, uint64_t seed, uint32_t epoch)
{
    unsigned char *seen = calloc(n, 1);

    assert_non_null(seen);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t at = gx_shuffle_index(i, n, seed, epoch);

        assert_true(at < n);
        assert_int_equal(seen[at], 0);
        seen[at] = 1;
    }
    free(seen);
}

static void every_small_size_is_permuted(void **state)
{
    test_random random = test_random_start(test_seed());

    (void)state;
    for (uint32_t n = 1; n <= 1000; n++)
        assert_permutation(n, test_random_bits(&random),
                           (uint32_t)test_random_bits(&random));
}

static void larger_sizes_are_permuted(void **state)
{
    static const uint32_t sizes[] = {
        1437, 4095, 4096, 4097, 60000, 65536, 65537, 1048577
    };
    test_random random = test_random_start(test_seed());

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
        assert_permutation(sizes[i], test_random_bits(&random), (uint32_t)i);
}

/* The largest sizes have 16 bits in each half: no shift may pass the width of the type.
 */
static void the_largest_size_stays_inside(void **state)
{
    const uint32_t n = UINT32_C(0x7fffffff);
    test_random random = test_random_start(test_seed());

    (void)state;
    for (int i = 0; i < 10000; i++) {
        const uint32_t at = (uint32_t)test_random_int(&random, 0, (int64_t)n - 1);

        assert_true(gx_shuffle_index(at, n, 7, 3) < n);
    }
}

static void epochs_and_seeds_have_orders_of_their_own(void **state)
{
    enum { N = 1000 };
    int same_epoch = 0, same_seed = 0, fixed = 0;

    (void)state;
    for (uint32_t i = 0; i < N; i++) {
        const uint32_t at = gx_shuffle_index(i, N, 1, 0);

        same_epoch += at == gx_shuffle_index(i, N, 1, 1);
        same_seed += at == gx_shuffle_index(i, N, UINT64_C(1) << 32 | 1, 0);
        fixed += at == i;
    }
    /* About one position in a thousand is the same by chance. */
    assert_in_range(same_epoch, 0, 12);
    assert_in_range(same_seed, 0, 12);
    assert_in_range(fixed, 0, 12);
}

/* Where a row lands is even over many epochs: chi-square over 16 bins of 64 rows. */
static void rows_land_everywhere(void **state)
{
    enum { N = 64, BINS = 16, EPOCHS = 4000 };
    int bin[BINS] = { 0 };
    double chi = 0;
    const double expected = (double)EPOCHS / BINS;
    const uint64_t seed = test_seed();

    (void)state;
    for (uint32_t epoch = 0; epoch < EPOCHS; epoch++)
        bin[gx_shuffle_index(5, N, seed, epoch) * BINS / N]++;
    for (int i = 0; i < BINS; i++)
        chi += (bin[i] - expected) * (bin[i] - expected) / expected;
    /* 15 degrees of freedom: above 60 once in several million. */
    assert_true(chi < 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_small_size_is_permuted),
        cmocka_unit_test(larger_sizes_are_permuted),
        cmocka_unit_test(the_largest_size_stays_inside),
        cmocka_unit_test(epochs_and_seeds_have_orders_of_their_own),
        cmocka_unit_test(rows_land_everywhere),
    };

    return cmocka_run_group_tests_name("shuffle", tests, NULL, NULL);
}
