/* What a conformance run covered: cases and checks by row of the catalogue, precision,
 * mode and alternative. */
#ifndef GX_SUPPORT_COUNTS_H
#define GX_SUPPORT_COUNTS_H

#include <stdio.h>

typedef struct test_counts test_counts;

/* NULL when memory is out. */
test_counts *test_counts_create(void);
void test_counts_free(test_counts *counts);
/* Adds one case with its checks. The names have to live as long as the counts. */
void test_counts_add(test_counts *counts, const char *row, const char *precision,
                     const char *mode, const char *alternative, int n_checks);
/* A line for each combination in the order of their first case, then the sums by
 * precision, mode and alternative. */
void test_counts_print(const test_counts *counts, FILE *out);

#endif
