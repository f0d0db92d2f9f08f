/* Finds the block of symbols that a sequence repeats.
 *
 * Where a block of length p repeats, every stretch of p symbols or more has its last
 * occurrence p before. So for stretches of 1, 2, 4, ... symbols the commonest distances
 * to the occurrence before are candidates, and each is tried on the whole sequence. */
#include <stdlib.h>

#include "predict_model.h"

enum { CANDIDATES = 4 }; /* of each length of stretch */

typedef struct finder {
    const uint64_t *symbols;
    size_t n;
    uint64_t *hash;  /* of the stretch that begins here */
    size_t *slot;    /* hash table: position + 1, 0 is free */
    size_t n_slots;  /* a power of two */
    uint32_t *count; /* of a distance */
    bool *tried;     /* a distance */
    size_t best, best_covered, first, end;
} finder;

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t x = a ^ (b + UINT64_C(0x9E3779B97F4A7C15) + (a << 6) + (a >> 2));

    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

/* Counts the distances between stretches of the same hash, of which `n` begin. */
static void count_distances(finder *f, size_t n)
{
    for (size_t i = 0; i < f->n_slots; i++)
        f->slot[i] = 0;
    for (size_t i = 0; i <= f->n; i++)
        f->count[i] = 0;
    for (size_t i = 0; i < n; i++) {
        size_t at = (size_t)f->hash[i] & (f->n_slots - 1);

        while (f->slot[at] && f->hash[f->slot[at] - 1] != f->hash[i])
            at = (at + 1) & (f->n_slots - 1);
        if (f->slot[at])
            f->count[i - (f->slot[at] - 1)]++;
        f->slot[at] = i + 1;
    }
}

/* Takes the length if whole blocks of it cover more than those of the best so far, or as
 * much with a shorter block. */
static void try_length(finder *f, size_t length)
{
    size_t covered = 0, longest = 0, first = 0, end = 0;
    size_t begin = 0; /* from here on each symbol equals the one `length` behind it */

    if (f->tried[length])
        return;
    f->tried[length] = true;
    for (size_t i = 0; i + length <= f->n; i++) {
        if (i + length < f->n && f->symbols[i] == f->symbols[i + length])
            continue;
        if (i >= begin && i - begin >= length) {
            const size_t blocks = (i - begin) / length + 1;

            if (blocks * length > longest) {
                longest = blocks * length;
                first = begin;
                end = i + length;
            }
            covered += blocks * length;
            begin += blocks * length;
        }
        if (begin < i + 1)
            begin = i + 1;
    }
    if (covered > f->best_covered || (covered == f->best_covered && length < f->best)) {
        f->best = length;
        f->best_covered = covered;
        f->first = first;
        f->end = end;
    }
}

static void try_commonest(finder *f)
{
    size_t top[CANDIDATES] = { 0 };

    for (size_t d = 1; 2 * d <= f->n; d++) {
        size_t at = CANDIDATES;

        while (at > 0 && f->count[d] > f->count[top[at - 1]])
            at--;
        if (at == CANDIDATES)
            continue;
        for (size_t j = CANDIDATES - 1; j > at; j--)
            top[j] = top[j - 1];
        top[at] = d;
    }
    for (size_t i = 0; i < CANDIDATES; i++)
        if (top[i])
            try_length(f, top[i]);
}

static void find(finder *f)
{
    for (size_t i = 0; i < f->n; i++)
        f->hash[i] = mix(f->symbols[i], 0);
    for (size_t stretch = 1; 2 * stretch <= f->n; stretch *= 2) {
        const size_t n = f->n - stretch + 1;

        count_distances(f, n);
        try_commonest(f);
        for (size_t i = 0; i + stretch < n; i++)
            f->hash[i] = mix(f->hash[i], f->hash[i + stretch]);
    }
}

gx_status gx_predict_period(const uint64_t *symbols, size_t n, size_t *length,
                            size_t *covered, size_t *first, size_t *end, gx_error *err)
{
    finder f = { .symbols = symbols, .n = n, .n_slots = 16 };
    gx_status st = GX_OK;

    *length = *covered = *first = *end = 0;
    while (f.n_slots < 2 * n)
        f.n_slots *= 2;
    f.hash = calloc(n + 1, sizeof *f.hash);
    f.slot = calloc(f.n_slots, sizeof *f.slot);
    f.count = calloc(n + 1, sizeof *f.count);
    f.tried = calloc(n + 1, sizeof *f.tried);
    if (f.hash && f.slot && f.count && f.tried) {
        find(&f);
        *length = f.best_covered ? f.best : 0;
        *covered = f.best_covered;
        *first = f.first;
        *end = f.end;
    } else {
        st = GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the steps of a trace");
    }
    free(f.hash);
    free(f.slot);
    free(f.count);
    free(f.tried);
    return st;
}
