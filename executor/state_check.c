/* What a caller may put into the state that is gexec's own. */
#include <math.h>
#include <string.h>

#include "number.h"
#include "resolve.h"
#include "state.h"

static bool is_rate(const char *name)
{
    const size_t n = strlen(GX_STATE_LR);

    return strncmp(name, GX_STATE_LR, n) == 0 && (name[n] == 0 || name[n] == '.');
}

/* What is expected, where the value is something else; NULL: it is good. */
static const char *misfit(const gx_entry *entry, double value)
{
    if (entry->kind != GX_VALUE_STATE)
        return NULL;
    if (is_rate(entry->name))
        return gx_rate_misfit(value);
    if (strcmp(entry->name, GX_STATE_SCALE) == 0 && !(value > 0 && gx_fits_f32(value)))
        return "is not a number above 0 that f32 holds";
    /* What no i32 holds is refused where it is converted. */
    if (strncmp(entry->name, "gexec.", 6) == 0 && entry->dtype == GX_I32 &&
        isfinite(value) && value != rint(value))
        return "is not an integer";
    return NULL;
}

const char *gx_rate_misfit(double rate)
{
    if (!(rate >= 0))
        return "is not a number from 0 up";
    return rate > 1 && !gx_fits_f32(rate) ? "is out of f32's range" : NULL;
}

gx_status gx_check_own(const gx_entry *entry, const gx_tensor *host, gx_error *err)
{
    const int64_t n = gx_entry_count(entry);
    const size_t bytes = gx_dtype_bytes(host->dtype);

    if (strncmp(entry->name, "gexec.", 6) != 0)
        return GX_OK;
    for (int64_t i = 0; i < n; i++) {
        double value;

        GX_TRY(gx_device_convert(&value, GX_F64,
                                 (const char *)host->data + (size_t)i * bytes,
                                 host->dtype, 1, err));
        const char *const wrong = misfit(entry, value);

        if (wrong)
            return GX_FAIL(err, GX_ERR_DATA, "%s: element %lld, %.10g, %s", entry->name,
                           (long long)i, gx_unsigned_nan(value), wrong);
    }
    return GX_OK;
}
