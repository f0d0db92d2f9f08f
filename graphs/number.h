/* Numbers as text, the same in every locale. */
#ifndef GX_NUMBER_H
#define GX_NUMBER_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

enum { GX_REAL_TEXT = 32 };

/* For printf, which tells the sign that some NaNs have: it says nothing, and another
 * processor gives another. */
static inline double gx_unsigned_nan(double x)
{
    return isnan(x) ? (double)NAN : x;
}

/* The shortest text that gx_read_real reads back as `value`; returns `text`. */
char *gx_real_text(double value, char text[GX_REAL_TEXT]);

/* A word that may stand in an integer expression: letters, digits, _; no digit first. */
bool gx_is_dim_name(const char *text);

/* A name that only gexec gives: "gexec." or "data." in front. */
bool gx_is_reserved_name(const char *text);

#endif
