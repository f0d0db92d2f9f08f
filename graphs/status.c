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

/* The end of a message that found no room, so that what is left is not taken for whole.
 */
static void mark_cut(char message[GX_MESSAGE_SIZE])
{
    static const char mark[] = "...";
    size_t at = GX_MESSAGE_SIZE - sizeof mark;

    /* not in the middle of a character */
    while (at > 0 && ((unsigned char)message[at] & 0xc0) == 0x80)
        at--;
    memcpy(message + at, mark, sizeof mark);
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
    const int length = vsnprintf(err->message, sizeof err->message, format, args);

    va_end(args);
    if (length < 0)
        err->message[0] = '\0';
    else if ((size_t)length >= sizeof err->message)
        mark_cut(err->message);
    return status;
}

void gx_error_clear(gx_error *err)
{
    if (err)
        *err = (gx_error){ .status = GX_OK, .message = "" };
}

/* A path tells most at its end, and the message behind it tells what is wrong: of a
 * prefix that is too long the start goes, and only then the message's end. */
void gx_error_prefix(gx_error *err, const char *prefix)
{
    enum { LEAST = 200 }; /* that a long prefix keeps */
    char whole[GX_MESSAGE_SIZE];
    const char *mark = "";

    if (!err || err->status == GX_OK)
        return;
    const size_t n = strlen(prefix), length = strlen(err->message);
    const size_t left = sizeof whole - sizeof "...: " > length
                            ? sizeof whole - sizeof "...: " - length
                            : 0;
    const size_t room = left > LEAST ? left : LEAST;

    if (n + length > sizeof whole - sizeof ": " && n > room) {
        mark = "...";
        prefix += n - room;
        while (((unsigned char)*prefix & 0xc0) == 0x80)
            prefix++;
    }
    if (snprintf(whole, sizeof whole, "%s%s: %s", mark, prefix, err->message) >=
        (int)sizeof whole)
        mark_cut(whole);
    memcpy(err->message, whole, sizeof whole);
}
