/* Decimal numbers as text, read exactly. */
#include "decimal.h"

enum { MOST_EXPONENT = 1000000, MOST_DIGITS = 19 };

/* The exponent behind 'e'; false where there is none or it is absurd. */
static bool read_exponent(const char *text, size_t n, int64_t *exponent)
{
    const bool negative = n > 0 && text[0] == '-';
    size_t i = n > 0 && (text[0] == '-' || text[0] == '+') ? 1 : 0;

    *exponent = 0;
    if (i == n)
        return false;
    for (; i < n; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        if (*exponent < MOST_EXPONENT)
            *exponent = *exponent * 10 + (text[i] - '0');
    }
    if (negative)
        *exponent = -*exponent;
    return true;
}

/* The number 0.d1d2d3... of the n digits, times 10^places. */
static bool compose(const char *digits, size_t n, int64_t places, uint64_t *value)
{
    *value = 0;
    while (n > 0 && *digits == '0') {
        digits++;
        n--;
        places--;
    }
    if (n == 0 || places < 0)
        return true;
    if (places > MOST_DIGITS)
        return false;
    for (int64_t i = 0; i < places; i++) {
        const unsigned digit = (size_t)i < n ? (unsigned)(digits[i] - '0') : 0;

        if (*value > (UINT64_MAX - digit) / 10)
            return false;
        *value = *value * 10 + digit;
    }
    if ((size_t)places < n && digits[places] >= '5') {
        if (*value == UINT64_MAX)
            return false;
        ++*value;
    }
    return true;
}

bool gx_decimal_read(const char *text, size_t n, int shift, int64_t *value)
{
    char digits[320];
    const bool negative = n > 0 && text[0] == '-';
    int64_t exponent = 0;
    int64_t places = 0;
    uint64_t magnitude;
    size_t n_digits = 0;
    size_t i = negative ? 1 : 0;
    bool behind_point = false;
    bool any = false;

    *value = 0;
    for (; i < n && text[i] != 'e' && text[i] != 'E'; i++) {
        if (text[i] == '.' && !behind_point) {
            behind_point = true;
            continue;
        }
        if (text[i] < '0' || text[i] > '9')
            return false;
        any = true;
        places += !behind_point;
        /* Digits that no result can show are left out, but keep their place. */
        if (n_digits < sizeof digits)
            digits[n_digits++] = text[i];
    }
    if (!any || (i < n && !read_exponent(text + i + 1, n - i - 1, &exponent)) ||
        !compose(digits, n_digits, places + exponent + shift, &magnitude) ||
        magnitude > INT64_MAX)
        return false;
    *value = negative ? -(int64_t)magnitude : (int64_t)magnitude;
    return true;
}
