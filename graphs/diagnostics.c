/* The list of mistakes, sorted by position, with the lines that they stand in. */
#include "diagnostics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

enum { GX_MAX_DIAGNOSTICS = 50, LONGEST_SOURCE = 160 };

typedef struct entry {
    gx_pos pos;
    char *message;
    char *source;
} entry;

struct gx_diagnostics {
    char *file;
    char *text;
    size_t length;
    entry entries[GX_MAX_DIAGNOSTICS];
    size_t n_entries;
    size_t n_more; /* mistakes that found no room */
};

gx_diagnostics *gx_diagnostics_create(void)
{
    return calloc(1, sizeof(gx_diagnostics));
}

void gx_diagnostics_free(gx_diagnostics *list)
{
    if (!list)
        return;
    for (size_t i = 0; i < list->n_entries; i++) {
        free(list->entries[i].message);
        free(list->entries[i].source);
    }
    free(list->file);
    free(list->text);
    free(list);
}

void gx_diagnostics_source(gx_diagnostics *list, const char *file, const char *text,
                           size_t length)
{
    if (!list)
        return;
    free(list->file);
    free(list->text);
    list->file = strdup(file);
    list->text = malloc(length + 1);
    list->length = list->text ? length : 0;
    if (list->text) {
        memcpy(list->text, text, length);
        list->text[length] = '\0';
    }
}

/* Bytes of the UTF-8 character that starts here; 0: there is none. */
static size_t character(const char *c, size_t left)
{
    const unsigned char lead = (unsigned char)*c;
    const size_t n = lead < 0x80   ? 1
                     : lead < 0xc2 ? 0
                     : lead < 0xe0 ? 2
                     : lead < 0xf0 ? 3
                                   : 4;

    if (n == 0 || n > left || lead > 0xf4)
        return 0;
    for (size_t i = 1; i < n; i++) {
        if (((unsigned char)c[i] & 0xc0) != 0x80)
            return 0;
    }
    return n;
}

/* Control characters become spaces, bytes that are no UTF-8 question marks. */
static void copy_line(char *to, const char *from, size_t length)
{
    for (size_t i = 0; i < length;) {
        const size_t n = character(from + i, length - i);

        memcpy(to + i, from + i, n);
        if (n == 0)
            to[i] = '?';
        else if ((unsigned char)from[i] < ' ' && from[i] != '\t')
            to[i] = ' ';
        i += n > 0 ? n : 1;
    }
}

/* The line itself, cut where it is very long. */
static char *source_line(const gx_diagnostics *list, int32_t line)
{
    const char *start = list->text;
    const char *end = start ? start + list->length : NULL;

    if (line <= 0 || !start)
        return strdup("");
    for (int32_t n = 1; n < line; n++) {
        const char *next = memchr(start, '\n', (size_t)(end - start));

        if (!next)
            return strdup("");
        start = next + 1;
    }
    const char *stop = memchr(start, '\n', (size_t)(end - start));
    size_t length = (size_t)((stop ? stop : end) - start);

    if (length > LONGEST_SOURCE) {
        length = LONGEST_SOURCE;
        /* not in the middle of a character */
        while (length > 0 && ((unsigned char)start[length] & 0xc0) == 0x80)
            length--;
    }
    char *copy = malloc(length + 1);

    if (!copy)
        return NULL;
    copy_line(copy, start, length);
    while (length > 0 && copy[length - 1] == ' ')
        length--;
    copy[length] = '\0';
    return copy;
}

static bool before(gx_pos a, gx_pos b)
{
    return a.line != b.line ? a.line < b.line : a.column < b.column;
}

/* One mistake a place: what follows from it is often found at the same place, and the
 * turns of a repeat find the same one again. */
static bool is_repeated(const gx_diagnostics *list, gx_pos pos, const char *message)
{
    for (size_t i = 0; i < list->n_entries; i++) {
        const entry *e = &list->entries[i];

        if (e->pos.line == pos.line && e->pos.column == pos.column &&
            (pos.line > 0 || strcmp(e->message, message) == 0))
            return true;
    }
    return false;
}

static void insert(gx_diagnostics *list, gx_pos pos, char *message)
{
    size_t at = list->n_entries;
    /* Not looked for in vain: a large file may have a mistake a line. */
    char *source = at < GX_MAX_DIAGNOSTICS ? source_line(list, pos.line) : NULL;

    if (!source) {
        free(message);
        list->n_more++;
        return;
    }
    while (at > 0 && before(pos, list->entries[at - 1].pos))
        at--;
    memmove(&list->entries[at + 1], &list->entries[at],
            (list->n_entries - at) * sizeof(entry));
    list->entries[at] = (entry){ pos, message, source };
    list->n_entries++;
}

void gx_report(gx_diagnostics *list, gx_pos pos, const char *format, ...)
{
    gx_text message = { 0 };
    va_list args;
    char start[GX_MESSAGE_SIZE];

    if (!list)
        return;
    va_start(args, format);
    if (vsnprintf(start, sizeof start, format, args) < 0)
        start[0] = '\0';
    va_end(args);
    /* Texts of the file may hold anything; a message is one line. */
    for (char *c = start; *c; c++) {
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            gx_text_format(&message, "\\x%02x", (unsigned)(unsigned char)*c);
        else
            gx_text_add(&message, c, 1);
    }
    char *text = gx_text_take(&message);

    if (!text)
        list->n_more++;
    else if (is_repeated(list, pos, text))
        free(text);
    else
        insert(list, pos, text);
}

size_t gx_diagnostics_count(const gx_diagnostics *list)
{
    return list ? list->n_entries + (list->n_more > 0) : 0;
}

gx_diagnostic gx_diagnostics_at(const gx_diagnostics *list, size_t i)
{
    if (i >= gx_diagnostics_count(list))
        return (gx_diagnostic){ .message = "", .source = "" };
    if (i >= list->n_entries)
        return (gx_diagnostic){ .message = "there are more mistakes than are listed",
                                .source = "" };
    const entry *e = &list->entries[i];

    return (gx_diagnostic){ e->pos.line, e->pos.column, e->message, e->source };
}

static void put_place(gx_text *text, const gx_diagnostics *list, const entry *e)
{
    gx_text_put(text, list->file ? list->file : "model");
    if (e->pos.line > 0)
        gx_text_format(text, ":%d:%d", (int)e->pos.line, (int)e->pos.column);
    gx_text_format(text, ": %s", e->message);
}

/* Spaces up to the column, tabs kept so that the caret stands below its character. */
static void put_caret(gx_text *text, const entry *e)
{
    const char *c = e->source;

    gx_text_put(text, "    ");
    for (int32_t column = 1; column < e->pos.column && *c; column++) {
        gx_text_put(text, *c == '\t' ? "\t" : " ");
        c++;
        while (((unsigned char)*c & 0xc0) == 0x80)
            c++;
    }
    gx_text_put(text, "^\n");
}

char *gx_diagnostics_text(const gx_diagnostics *list)
{
    gx_text text = { 0 };

    for (size_t i = 0; list && i < list->n_entries; i++) {
        const entry *e = &list->entries[i];

        put_place(&text, list, e);
        gx_text_put(&text, "\n");
        if (e->source[0]) {
            gx_text_format(&text, "    %s\n", e->source);
            put_caret(&text, e);
        }
    }
    if (list && list->n_more > 0)
        gx_text_format(&text, "%zu more\n", list->n_more);
    return gx_text_take(&text);
}

gx_status gx_diagnostics_status(const gx_diagnostics *list, gx_error *err)
{
    gx_text text = { 0 };

    if (list->n_entries == 0)
        return list->n_more > 0 ? GX_FAIL(err, GX_ERR_MEMORY, "out of host memory")
                                : GX_OK;
    put_place(&text, list, &list->entries[0]);
    GX_FAIL(err, GX_ERR_MODEL, "%s", text.failed ? list->entries[0].message : text.bytes);
    free(text.bytes);
    return GX_ERR_MODEL;
}
