/* JSON, written: escaping, commas and nesting in one place. */
#include "json_out.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lines_out.h"

enum { MAX_DEPTH = 16 };

enum { STREAM_LINES = 2 }; /* containers that a stream breaks into lines */

struct gx_json {
    FILE *out; /* NULL: into bytes */
    bool in_html;
    char *bytes;
    size_t length, capacity;
    bool failed;
    int depth;
    bool is_array[MAX_DEPTH];
    bool is_empty[MAX_DEPTH + 1];
};

gx_json *gx_json_create(void)
{
    gx_json *json = calloc(1, sizeof *json);

    if (json)
        json->is_empty[0] = true;
    return json;
}

gx_json *gx_json_stream(FILE *out, bool in_html)
{
    gx_json *json = gx_json_create();

    if (json) {
        json->out = out;
        json->in_html = in_html;
    }
    return json;
}

void gx_json_free(gx_json *json)
{
    if (!json)
        return;
    free(json->bytes);
    free(json);
}

static void put(gx_json *json, const char *bytes, size_t length)
{
    if (json->failed)
        return;
    if (json->out) {
        json->failed = fwrite(bytes, 1, length, json->out) != length;
        return;
    }
    if (json->length + length + 1 > json->capacity) {
        const size_t capacity = 2 * json->capacity + length + 256;
        char *grown = realloc(json->bytes, capacity);

        if (!grown) {
            json->failed = true;
            return;
        }
        json->bytes = grown;
        json->capacity = capacity;
    }
    memcpy(json->bytes + json->length, bytes, length);
    json->length += length;
    json->bytes[json->length] = '\0';
}

static void put_text(gx_json *json, const char *text)
{
    put(json, text, strlen(text));
}

size_t gx_utf8_sequence(const char *bytes)
{
    const unsigned char *const text = (const unsigned char *)bytes;
    const unsigned char first = text[0];
    size_t n;
    unsigned char low = 0x80, high = 0xBF; /* of the second byte */

    if (first < 0x80)
        return 1;
    if (first >= 0xC2 && first <= 0xDF)
        n = 2;
    else if (first >= 0xE0 && first <= 0xEF)
        n = 3;
    else if (first >= 0xF0 && first <= 0xF4)
        n = 4;
    else
        return 0;
    if (first == 0xE0)
        low = 0xA0; /* shorter forms exist */
    else if (first == 0xED)
        high = 0x9F; /* surrogates */
    else if (first == 0xF0)
        low = 0x90;
    else if (first == 0xF4)
        high = 0x8F; /* beyond U+10FFFF */
    if (text[1] < low || text[1] > high)
        return 0;
    for (size_t i = 2; i < n; i++)
        if (text[i] < 0x80 || text[i] > 0xBF)
            return 0;
    return n;
}

static bool is_plain(const gx_json *json, unsigned char c)
{
    return c >= 0x20 && c < 0x7F && c != '"' && c != '\\' && (c != '<' || !json->in_html);
}

static void put_string(gx_json *json, const char *text)
{
    const unsigned char *at = (const unsigned char *)text;

    put_text(json, "\"");
    while (*at) {
        const unsigned char *const plain = at;
        char escape[8];

        while (is_plain(json, *at))
            at++;
        put(json, (const char *)plain, (size_t)(at - plain));
        if (!*at)
            break;
        const size_t n = gx_utf8_sequence((const char *)at);
        if (n == 0) {
            put_text(json, "\xEF\xBF\xBD");
            at++;
            continue;
        }
        if (*at == '"' || *at == '\\') {
            put_text(json, "\\");
            put(json, (const char *)at, 1);
        } else if (*at < 0x20 || *at == 0x7F || *at == '<') {
            snprintf(escape, sizeof escape, "\\u%04x", (unsigned)*at);
            put_text(json, escape);
        } else {
            put(json, (const char *)at, n);
        }
        at += n;
    }
    put_text(json, "\"");
}

static void break_line(gx_json *json)
{
    if (json->depth == 0 || (json->out && json->depth > STREAM_LINES))
        return;
    put_text(json, "\n");
    for (int i = 0; i < json->depth && !json->out; i++)
        put_text(json, "  ");
}

/* What stands before a value: the comma, the line break and the key. */
static void begin(gx_json *json, const char *key)
{
    if (!json->is_empty[json->depth])
        put_text(json, ",");
    break_line(json);
    json->is_empty[json->depth] = false;
    if (key) {
        assert(json->depth > 0 && !json->is_array[json->depth - 1]);
        put_string(json, key);
        put_text(json, json->out ? ":" : ": ");
    }
}

static void open_container(gx_json *json, const char *key, bool is_array)
{
    if (!json)
        return;
    begin(json, key);
    assert(json->depth < MAX_DEPTH);
    put_text(json, is_array ? "[" : "{");
    json->is_array[json->depth] = is_array;
    json->is_empty[++json->depth] = true;
}

void gx_json_object(gx_json *json, const char *key)
{
    open_container(json, key, false);
}

void gx_json_array(gx_json *json, const char *key)
{
    open_container(json, key, true);
}

void gx_json_end(gx_json *json)
{
    if (!json)
        return;
    assert(json->depth > 0);
    const bool was_empty = json->is_empty[json->depth];
    json->depth--;
    if (!was_empty && !json->out) {
        put_text(json, "\n");
        for (int i = 0; i < json->depth; i++)
            put_text(json, "  ");
    }
    put_text(json, json->is_array[json->depth] ? "]" : "}");
}

void gx_json_text(gx_json *json, const char *key, const char *text)
{
    if (!json)
        return;
    begin(json, key);
    if (text)
        put_string(json, text);
    else
        put_text(json, "null");
}

static void put_real(gx_json *json, double value)
{
    char text[40] = "null";

    if (isfinite(value)) {
        /* The shortest of these forms that reads back as the same number. */
        snprintf(text, sizeof text, "%.9g", value);
        if (strtod(text, NULL) != value)
            snprintf(text, sizeof text, "%.17g", value);
    }
    put_text(json, text);
}

void gx_json_real(gx_json *json, const char *key, double value)
{
    if (!json)
        return;
    begin(json, key);
    put_real(json, value);
}

void gx_json_figure(gx_json *json, const char *key, double value)
{
    gx_json_real(json, key, value < 0 ? (double)NAN : value);
}

void gx_json_integer(gx_json *json, const char *key, int64_t value)
{
    char text[32];

    if (!json)
        return;
    begin(json, key);
    snprintf(text, sizeof text, "%lld", (long long)value);
    put_text(json, text);
}

void gx_json_us(gx_json *json, const char *key, int64_t ns)
{
    const uint64_t size = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
    char text[32];

    if (!json)
        return;
    begin(json, key);
    snprintf(text, sizeof text, "%s%llu.%03llu", ns < 0 ? "-" : "",
             (unsigned long long)(size / 1000), (unsigned long long)(size % 1000));
    put_text(json, text);
}

void gx_json_bool(gx_json *json, const char *key, bool value)
{
    if (!json)
        return;
    begin(json, key);
    put_text(json, value ? "true" : "false");
}

void gx_json_reals(gx_json *json, const char *key, const double *values, size_t n)
{
    if (!json)
        return;
    begin(json, key);
    put_text(json, "[");
    for (size_t i = 0; i < n; i++) {
        if (i)
            put_text(json, ", ");
        put_real(json, values[i]);
    }
    put_text(json, "]");
}

void gx_json_shape(gx_json *json, const char *key, int rank, const int64_t *dim)
{
    gx_json_array(json, key);
    for (int i = 0; i < rank; i++)
        gx_json_integer(json, NULL, dim[i]);
    gx_json_end(json);
}

static gx_status complete(const gx_json *json, gx_error *err)
{
    if (!json || json->failed || !json->bytes)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory while writing JSON");
    assert(json->depth == 0);
    return GX_OK;
}

gx_status gx_json_write(gx_json *json, const char *path, gx_error *err)
{
    GX_TRY(complete(json, err));
    return gx_lines_write(path, json->bytes, json->length, err);
}

gx_status gx_json_line(gx_json *json, gx_error *err)
{
    char *to;

    GX_TRY(complete(json, err));
    /* Line breaks and what indents stand between tokens alone: inside strings a break is
     * escaped. */
    to = json->bytes;
    for (const char *from = json->bytes; *from; from++) {
        const bool is_break = *from == '\n';

        *to++ = is_break ? ' ' : *from;
        while (is_break && from[1] == ' ')
            from++;
    }
    *to = '\0';
    json->length = (size_t)(to - json->bytes);
    return gx_json_write(json, "-", err);
}
