/* The grammar of numbers, truth values and names. */
#include "number.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph_model.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static size_t digits(const char *text)
{
    size_t n = 0;

    while (is_digit(text[n]))
        n++;
    return n;
}

/* [+-] digits [. digits] [e [+-] digits], or with the digits on one side of the point
 * only; a number of more than one digit does not start with 0. */
static bool is_real(const char *text)
{
    const char *c = text;

    if (*c == '+' || *c == '-')
        c++;
    const size_t whole = digits(c);

    if (whole > 1 && *c == '0')
        return false;
    c += whole;
    if (*c == '.') {
        const size_t fraction = digits(++c);

        if (whole + fraction == 0)
            return false;
        c += fraction;
    } else if (whole == 0) {
        return false;
    }
    if (*c == 'e' || *c == 'E') {
        c++;
        if (*c == '+' || *c == '-')
            c++;
        const size_t exponent = digits(c);

        if (exponent == 0)
            return false;
        c += exponent;
    }
    return *c == '\0';
}

static bool has_nonzero_digit(const char *text)
{
    for (; *text && *text != 'e' && *text != 'E'; text++) {
        if (*text >= '1' && *text <= '9')
            return true;
    }
    return false;
}

/* The C library's conversions follow the locale, of this thread in the first place. */
static locale_t enter_c_locale(locale_t *before)
{
    const locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);

    *before = c ? uselocale(c) : (locale_t)0;
    return c;
}

static void leave_c_locale(locale_t c, locale_t before)
{
    if (!c)
        return;
    uselocale(before);
    freelocale(c);
}

bool gx_read_real(const char *text, double *value)
{
    locale_t before;

    if (!is_real(text))
        return false;
    const locale_t c = enter_c_locale(&before);

    if (!c)
        return false;
    const double x = strtod(text, NULL);

    leave_c_locale(c, before);
    if (!isfinite(x) || (x == 0 && has_nonzero_digit(text)))
        return false;
    *value = x;
    return true;
}

bool gx_fits_f32(double value)
{
    /* half a step above the largest and half of the smallest: what rounding reaches */
    const double above = (double)FLT_MAX + ldexp(1, FLT_MAX_EXP - FLT_MANT_DIG - 1);
    const double below = ldexp(1, FLT_MIN_EXP - FLT_MANT_DIG - 1);

    return value == 0 || (fabs(value) < above && fabs(value) > below);
}

char *gx_real_text(double value, char text[GX_REAL_TEXT])
{
    enum { EXACT_DIGITS = 17 };
    locale_t before;
    const locale_t c = enter_c_locale(&before);

    for (int n = 1; n <= EXACT_DIGITS; n++) {
        snprintf(text, GX_REAL_TEXT, "%.*g", n, value);
        if (strtod(text, NULL) == value)
            break;
    }
    leave_c_locale(c, before);
    return text;
}

bool gx_read_bool(const char *text, bool *value)
{
    *value = strcmp(text, "true") == 0;
    return *value || strcmp(text, "false") == 0;
}

bool gx_is_name(const char *text)
{
    size_t n = 0;

    if (!is_letter(text[0]) && text[0] != '_')
        return false;
    while (is_letter(text[n]) || is_digit(text[n]) ||
           (text[n] != '\0' && strchr("_.-", text[n])))
        n++;
    return text[n] == '\0' && n <= GX_LIMIT_NAME;
}

bool gx_is_dim_name(const char *text)
{
    return gx_is_name(text) && !strpbrk(text, ".-");
}

bool gx_is_reserved_name(const char *text)
{
    return strncmp(text, "gexec.", 6) == 0 || strncmp(text, "data.", 5) == 0;
}
