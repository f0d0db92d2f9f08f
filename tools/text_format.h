/* How numbers, times and sizes are written for people. */
#ifndef GX_TEXT_FORMAT_H
#define GX_TEXT_FORMAT_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include <gexec/tensor.h>

enum { GX_FORMAT_SIZE = 64 };

/* A short text by value, so that several can stand in one printf. */
typedef struct gx_words {
    char text[GX_FORMAT_SIZE];
} gx_words;

/* For printf, which tells the sign that some NaNs have. */
static inline double gx_plain_nan(double x)
{
    return isnan(x) ? (double)NAN : x;
}

gx_words gx_words_seconds(double seconds); /* "93.1 us"; "n/a" below 0 and for NaN */
gx_words gx_words_bytes(double bytes);     /* "1.50 MiB" */
gx_words gx_words_scaled(double value, const char *unit); /* "1.5 GFLOP" */
gx_words gx_words_count(int64_t count);                   /* "12"; "n/a" below 0 */
gx_words gx_words_real(double value);                     /* six digits */
gx_words gx_words_seed(uint64_t seed);
gx_words gx_words_clock(double seconds); /* "1:02:03", "02:03" */
/* "[3, 17]" of element `i` of a tensor; "[]" of a scalar. */
gx_words gx_words_position(const gx_tensor *tensor, int64_t i);
gx_words gx_words_shape(int rank, const int64_t *dim);
/* "13.0" of 13000. */
gx_words gx_words_cuda_version(int version);

#endif
