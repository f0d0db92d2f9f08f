/* Statuses and their texts; filling an error. */
#include <gexec/status.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name, *text;
    int exit_status;
} statuses[] = {
#define GX_STATUS_ROW(code, words, exits) [code] = { #code, words, exits },
    GX_STATUS_LIST(GX_STATUS_ROW)
#undef GX_STATUS_ROW
};

enum { N_STATUSES = sizeof statuses / sizeof statuses[0] };

static int index_of(gx_status status)
{
    return (int)status >= 0 && (int)status < N_STATUSES ? (int)status : -1;
}

const char *gx_status_text(gx_status status)
{
    return index_of(status) >= 0 ? statuses[status].text : "unknown status";
}

const char *gx_status_name(gx_status status)
{
    return index_of(status) >= 0 ? statuses[status].name : "GX_ERR_UNKNOWN";
}

int gx_status_exit(gx_status status)
{
    enum { EXIT_FAILED = 4 };

    return index_of(status) >= 0 ? statuses[status].exit_status : EXIT_FAILED;
}

gx_status gx_fail(gx_error *err, gx_status status, int native, const char *file, int line,
                  const char *format, ...)
{
    va_list args;

    if (!err || err->status != GX_OK)
        return status;
    err->status = status;
    err->native = native;
    err->file = file;
    err->line = line;
    va_start(args, format);
    if (vsnprintf(err->message, sizeof err->message, format, args) < 0)
        err->message[0] = '\0';
    va_end(args);
    return status;
}

void gx_error_clear(gx_error *err)
{
    if (err)
        *err = (gx_error){ .status = GX_OK, .message = "" };
}

void gx_error_prefix(gx_error *err, const char *prefix)
{
    const size_t room = sizeof err->message;

    if (!err || err->status == GX_OK)
        return;
    size_t shift = strlen(prefix) + 2;
    size_t length = strlen(err->message);

    if (shift > room - 1)
        shift = room - 1;
    if (length > room - 1 - shift)
        length = room - 1 - shift;
    memmove(err->message + shift, err->message, length);
    err->message[shift + length] = '\0';
    for (size_t i = 0; i < shift; i++) {
        const size_t n = strlen(prefix);

        err->message[i] = i < n ? prefix[i] : ": "[i - n];
    }
}
