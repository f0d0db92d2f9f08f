/* Cases and checks of a conformance run. */
#include "support_counts.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_COUNTS = 16384 };

typedef struct count {
    const char *row, *precision, *mode, *alternative;
    int n_cases, n_checks;
} count;

struct test_counts {
    int n, n_lost; /* lost: cases that found no room */
    count at[MAX_COUNTS];
};

test_counts *test_counts_create(void)
{
    return calloc(1, sizeof(test_counts));
}

void test_counts_free(test_counts *counts)
{
    free(counts);
}

/* NULL stands for anything. */
static bool fits(const count *c, const count *key)
{
    return (!key->row || strcmp(c->row, key->row) == 0) &&
           strcmp(c->precision, key->precision) == 0 && strcmp(c->mode, key->mode) == 0 &&
           strcmp(c->alternative, key->alternative) == 0;
}

static void add(count *c, const count *more)
{
    c->n_cases += more->n_cases;
    c->n_checks += more->n_checks;
}

/* The first that fits among n, or NULL. */
static const count *find(const test_counts *counts, int n, const count *key)
{
    for (int i = 0; i < n; i++)
        if (fits(&counts->at[i], key))
            return &counts->at[i];
    return NULL;
}

void test_counts_add(test_counts *counts, const char *row, const char *precision,
                     const char *mode, const char *alternative, int n_checks)
{
    const count one = { row, precision, mode, alternative, 1, n_checks };

    for (int i = 0; i < counts->n; i++) {
        if (fits(&counts->at[i], &one)) {
            add(&counts->at[i], &one);
            return;
        }
    }
    if (counts->n == MAX_COUNTS)
        counts->n_lost++;
    else
        counts->at[counts->n++] = one;
}

static void print_one(const count *c, FILE *out)
{
    fprintf(out, "count %-28s %-5s %-6s %-10s %6d cases %8d checks\n", c->row,
            c->precision, c->mode, c->alternative, c->n_cases, c->n_checks);
}

void test_counts_print(const test_counts *counts, FILE *out)
{
    for (int i = 0; i < counts->n; i++)
        print_one(&counts->at[i], out);
    for (int i = 0; i < counts->n; i++) {
        count sum = counts->at[i];

        sum.row = NULL;
        if (find(counts, i, &sum)) /* was summed up before */
            continue;
        sum.n_cases = sum.n_checks = 0;
        for (int k = i; k < counts->n; k++)
            if (fits(&counts->at[k], &sum))
                add(&sum, &counts->at[k]);
        sum.row = "all";
        print_one(&sum, out);
    }
    if (counts->n_lost)
        fprintf(out, "count: no room for %d cases\n", counts->n_lost);
}
