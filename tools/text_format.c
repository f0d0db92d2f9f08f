/* How numbers, times and sizes are written for people; and the name that was meant. */
#include "text_format.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "args.h"

gx_words gx_words_seconds(double seconds)
{
    static const struct {
        double least, scale;
        const char *unit;
    } steps[] = { { 1.0, 1.0, "s" }, { 1e-3, 1e3, "ms" }, { 0.0, 1e6, "us" } };
    gx_words words = { "n/a" };
    size_t i = 0;

    if (!(seconds >= 0) || !isfinite(seconds))
        return words;
    while (seconds < steps[i].least)
        i++;
    const double value = seconds * steps[i].scale;
    snprintf(words.text, sizeof words.text, "%.*f %s",
             value < 10    ? 2
             : value < 100 ? 1
                           : 0,
             value, steps[i].unit);
    return words;
}

gx_words gx_words_bytes(double bytes)
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
    gx_words words;
    size_t i = 0;

    while (bytes >= 1024 && i + 1 < sizeof units / sizeof units[0]) {
        bytes /= 1024;
        i++;
    }
    snprintf(words.text, sizeof words.text, i ? "%.2f %s" : "%.0f %s", bytes, units[i]);
    return words;
}

gx_words gx_words_scaled(double value, const char *unit)
{
    static const char *const prefixes[] = { "", "k", "M", "G", "T", "P" };
    gx_words words;
    size_t i = 0;

    while (value >= 1000 && i + 1 < sizeof prefixes / sizeof prefixes[0]) {
        value /= 1000;
        i++;
    }
    snprintf(words.text, sizeof words.text, i ? "%.2f %s%s" : "%.0f %s%s", value,
             prefixes[i], unit);
    return words;
}

gx_words gx_words_count(int64_t count)
{
    gx_words words = { "n/a" };

    if (count >= 0)
        snprintf(words.text, sizeof words.text, "%lld", (long long)count);
    return words;
}

gx_words gx_words_real(double value)
{
    gx_words words;

    /* The sign of a NaN says nothing, and another processor gives another. */
    snprintf(words.text, sizeof words.text, "%.6g", isnan(value) ? fabs(value) : value);
    return words;
}

gx_words gx_words_seed(uint64_t seed)
{
    gx_words words;

    snprintf(words.text, sizeof words.text, "%llu", (unsigned long long)seed);
    return words;
}

gx_words gx_words_clock(double seconds)
{
    gx_words words = { "--:--" };

    if (!(seconds >= 0) || seconds > 1e7)
        return words;
    const int whole = (int)(seconds + 0.5);
    if (whole >= 3600)
        snprintf(words.text, sizeof words.text, "%d:%02d:%02d", whole / 3600,
                 whole / 60 % 60, whole % 60);
    else
        snprintf(words.text, sizeof words.text, "%02d:%02d", whole / 60, whole % 60);
    return words;
}

gx_words gx_words_position(const gx_tensor *tensor, int64_t i)
{
    int64_t index[GX_MAX_RANK];

    for (int d = tensor->rank - 1; d >= 0; d--) {
        index[d] = tensor->dim[d] ? i % tensor->dim[d] : 0;
        i = tensor->dim[d] ? i / tensor->dim[d] : 0;
    }
    return gx_words_shape(tensor->rank, index);
}

gx_words gx_words_shape(int rank, const int64_t *dim)
{
    gx_words words;

    gx_shape_text(rank, dim, words.text, sizeof words.text);
    return words;
}

gx_words gx_words_cuda_version(int version)
{
    gx_words words = { "n/a" };

    if (version > 0)
        snprintf(words.text, sizeof words.text, "%d.%d", version / 1000,
                 version % 1000 / 10);
    return words;
}

/* --- the name that was meant --- */

enum { LONGEST = 64 };

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Edits (a letter more, less, another, or two swapped) that make b of a. */
static int edits(const char *a, const char *b)
{
    const size_t n_a = strlen(a);
    const size_t n_b = strlen(b);
    int table[LONGEST + 1][LONGEST + 1];

    if (n_a > LONGEST || n_b > LONGEST)
        return LONGEST;
    for (size_t i = 0; i <= n_a; i++)
        for (size_t j = 0; j <= n_b; j++) {
            if (i == 0 || j == 0) {
                table[i][j] = (int)(i + j);
                continue;
            }
            const int change = table[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            table[i][j] = least(least(table[i - 1][j], table[i][j - 1]) + 1, change);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                table[i][j] = least(table[i][j], table[i - 2][j - 2] + 1);
        }
    return table[n_a][n_b];
}

/* Near: a third of the longer name's letters at most, or the start of the name. */
const char *gx_near_name(const char *name, const char *const *names)
{
    const char *nearest = NULL;
    int fewest = LONGEST;

    for (; *names; names++) {
        const size_t n = strlen(name);
        const size_t longer = n > strlen(*names) ? n : strlen(*names);
        int n_edits = edits(name, *names);

        if (n >= 3 && strncmp(name, *names, n) == 0)
            n_edits = least(n_edits, 2);
        if (n_edits < fewest && n_edits <= (int)(longer + 2) / 3) {
            fewest = n_edits;
            nearest = *names;
        }
    }
    return nearest;
}
