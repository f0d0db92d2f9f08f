/* Decimal numbers as text, read exactly. */
#ifndef GX_DECIMAL_H
#define GX_DECIMAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A JSON number times 10^shift, as a whole number; what is left behind the point is
 * rounded, halves away from zero. False where it is no number or too large. Doubles would
 * not do: microseconds since 1970, in nanoseconds, need 61 bits. */
bool gx_decimal_read(const char *text, size_t n, int shift, int64_t *value);

#endif
