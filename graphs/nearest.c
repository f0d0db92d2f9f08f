/* The name that was meant, by edit distance. */
#include <string.h>

#include "diagnostics.h"

enum { LONGEST = 64 };

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Insertions, deletions, replacements and swaps of neighbours that make b of a; anything
 * above `limit` once it is known to be above. Both at most LONGEST long. */
static size_t distance(const char *a, size_t n_a, const char *b, size_t n_b, size_t limit)
{
    size_t rows[3][LONGEST + 1];
    size_t *last2 = rows[0], *last = rows[1], *row = rows[2];

    for (size_t j = 0; j <= n_b; j++)
        last[j] = j;
    memset(last2, 0, sizeof rows[0]);
    for (size_t i = 1; i <= n_a; i++) {
        size_t least = row[0] = i;

        for (size_t j = 1; j <= n_b; j++) {
            row[j] = smaller(smaller(last[j], row[j - 1]) + 1,
                             last[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = smaller(row[j], last2[j - 2] + 1);
            least = smaller(least, row[j]);
        }
        if (least > limit)
            return least;
        size_t *oldest = last2;

        last2 = last;
        last = row;
        row = oldest;
    }
    return last[n_b];
}

const char *gx_nearest(const char *name, const char *const *names, size_t n)
{
    const size_t length = strlen(name);
    const char *nearest = NULL;
    /* worth naming: about a third of the characters may differ */
    size_t best = smaller(length / 3 + 1, 4);

    if (length == 0 || length > LONGEST)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        const size_t other = strlen(names[i]);
        const size_t apart = other > length ? other - length : length - other;

        /* a name of which nothing stays is no likeness */
        if (other > LONGEST || apart > best || strcmp(name, names[i]) == 0)
            continue;
        const size_t d = distance(name, length, names[i], other, best);

        if (d <= best && d < length && d < other) {
            nearest = names[i];
            if (d == 0)
                break;
            best = d - 1;
        }
    }
    return nearest;
}
