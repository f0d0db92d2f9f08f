/* Reading and writing the YAML of plan files and of the plan cache. */
#include "plan_doc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <gexec/gexec.h>

#include "beside.h"
#include "number.h"

/* --- reading --- */

gx_status gx_plan_doc_load(const char *path, const char *expected, gx_arena *arena,
                           gx_diagnostics *list, const gx_doc **doc, gx_error *err)
{
    struct stat there;
    char *text;
    size_t length;
    gx_status st;

    *doc = NULL;
    /* Who opens a pipe waits for its writer. A folder is told of when it is read. */
    if (stat(path, &there) == 0 && !S_ISREG(there.st_mode) && !S_ISDIR(there.st_mode))
        return GX_FAIL(err, GX_ERR_READ, "%s: not a file", path);
    GX_TRY(gx_read_file(path, &text, &length, err));
    gx_diagnostics_source(list, path, text, length);
    *doc = gx_document_read_as(arena, text, length, expected, list);
    free(text);
    st = gx_diagnostics_status(list, err);
    if (st == GX_OK && !*doc)
        st = GX_FAIL(err, GX_ERR_MEMORY, "out of memory for %s", path);
    return st;
}

bool gx_plan_doc_is_map(gx_diagnostics *list, const gx_doc *doc, const char *what,
                        const char *const *keys)
{
    size_t n_keys = 0;

    if (doc->kind != GX_DOC_MAP) {
        gx_report(list, doc->pos, "%s: expected a map, found %s", what, gx_doc_what(doc));
        return false;
    }
    while (keys && keys[n_keys])
        n_keys++;
    for (size_t i = 0; keys && i < doc->n; i++) {
        bool known = false;

        for (size_t k = 0; k < n_keys; k++)
            known |= strcmp(doc->key[i], keys[k]) == 0;
        if (!known) {
            const char *nearest = gx_nearest(doc->key[i], keys, n_keys);

            gx_report(list, doc->key_pos[i], "%s: unknown key \"%s\"%s%s%s", what,
                      doc->key[i], nearest ? "; did you mean \"" : "",
                      nearest ? nearest : "", nearest ? "\"?" : "");
            return false;
        }
    }
    return true;
}

const gx_doc *gx_plan_doc_get(const gx_doc *map, const char *key)
{
    for (size_t i = 0; i < map->n; i++) {
        if (strcmp(map->key[i], key) == 0)
            return map->item[i];
    }
    return NULL;
}

const char *gx_plan_doc_text(gx_diagnostics *list, const gx_doc *map, const char *key)
{
    const gx_doc *doc = gx_plan_doc_get(map, key);

    if (doc && doc->kind == GX_DOC_SCALAR)
        return doc->text;
    if (doc)
        gx_report(list, doc->pos, "%s: expected text, found %s", key, gx_doc_what(doc));
    else
        gx_report(list, map->pos, "\"%s\" is missing", key);
    return NULL;
}

static void report_value(gx_diagnostics *list, const gx_doc *map, const char *key,
                         const char *expected)
{
    const gx_doc *doc = gx_plan_doc_get(map, key);

    gx_report(list, doc->pos, "%s: expected %s, found \"%s\"", key, expected, doc->text);
}

bool gx_plan_doc_int(gx_diagnostics *list, const gx_doc *map, const char *key,
                     int64_t *value)
{
    const char *text = gx_plan_doc_text(list, map, key);
    char *end;

    if (!text)
        return false;
    errno = 0;
    *value = strtoll(text, &end, 10);
    if (errno == 0 && end != text && !*end)
        return true;
    report_value(list, map, key, "an integer");
    return false;
}

static bool get_real(gx_diagnostics *list, const gx_doc *map, const char *key,
                     double *value)
{
    const char *text = gx_plan_doc_text(list, map, key);

    if (!text)
        return false;
    if (gx_read_real(text, value))
        return true;
    report_value(list, map, key, "a number");
    return false;
}

bool gx_plan_doc_bool(gx_diagnostics *list, const gx_doc *map, const char *key,
                      bool *value)
{
    const char *text = gx_plan_doc_text(list, map, key);

    if (!text)
        return false;
    if (gx_read_bool(text, value))
        return true;
    report_value(list, map, key, "true or false");
    return false;
}

static int hex_digit(char c)
{
    const char *digits = "0123456789abcdef";
    const char *at = c ? strchr(digits, c) : NULL;

    return at ? (int)(at - digits) : -1;
}

static bool read_algo(gx_diagnostics *list, const gx_doc *map, unsigned char *algo)
{
    const char *text = gx_plan_doc_text(list, map, "algo");

    if (!text)
        return false;
    for (int i = 0; i < GX_ALGO_BYTES && strlen(text) == 2 * GX_ALGO_BYTES; i++) {
        const int high = hex_digit(text[2 * i]);
        const int low = hex_digit(text[2 * i + 1]);

        if (high < 0 || low < 0)
            break;
        algo[i] = (unsigned char)(high * 16 + low);
        if (i == GX_ALGO_BYTES - 1)
            return true;
    }
    report_value(list, map, "algo", "128 hexadecimal digits");
    return false;
}

bool gx_plan_doc_choice(gx_diagnostics *list, const gx_doc *map, gx_choice_fields *fields)
{
    *fields = (gx_choice_fields){ .us = -1 };
    if (!get_real(list, map, "us", &fields->us) ||
        !gx_plan_doc_int(list, map, "launches", &fields->n_launches) ||
        !gx_plan_doc_int(list, map, "workspace", &fields->workspace_bytes))
        return false;
    if (fields->n_launches < -1 || fields->n_launches > INT32_MAX) {
        report_value(list, map, "launches", "a count");
        return false;
    }
    if (fields->workspace_bytes < 0) {
        report_value(list, map, "workspace", "a number of bytes");
        return false;
    }
    fields->has_algo = gx_plan_doc_get(map, "algo") != NULL;
    return !fields->has_algo || read_algo(list, map, fields->algo);
}

bool gx_plan_doc_same_device(gx_diagnostics *list, const gx_doc *map,
                             const gx_device_info *device)
{
    static const char *const keys[] = { "name",     "cc",    "driver", "runtime",
                                        "cublaslt", "gexec", NULL };
    const int64_t expected[] = { device->cc_major * 10 + device->cc_minor,
                                 device->driver_version, device->runtime_version,
                                 (int64_t)device->cublaslt_version };
    const char *text;

    if (!gx_plan_doc_is_map(list, map, "device", keys))
        return false;
    text = gx_plan_doc_text(list, map, "name");
    if (!text)
        return false;
    if (strcmp(text, device->name) != 0) {
        gx_report(list, map->pos, "made for the card \"%s\"; this one is \"%s\"", text,
                  device->name);
        return false;
    }
    for (int i = 0; i < 4; i++) {
        int64_t found;

        if (!gx_plan_doc_int(list, map, keys[i + 1], &found))
            return false;
        if (found != expected[i]) {
            gx_report(list, map->pos, "made for %s %lld; this machine has %lld",
                      keys[i + 1], (long long)found, (long long)expected[i]);
            return false;
        }
    }
    text = gx_plan_doc_text(list, map, "gexec");
    if (text && strcmp(text, gx_version()) != 0)
        gx_report(list, map->pos, "made by gexec %s; this is %s", text, gx_version());
    return text && strcmp(text, gx_version()) == 0;
}

/* --- writing --- */

void gx_plan_doc_quote(gx_text *text, const char *words)
{
    gx_text_put(text, "\"");
    for (; *words; words++) {
        if (*words == '"' || *words == '\\')
            gx_text_put(text, "\\");
        gx_text_add(text, (unsigned char)*words < ' ' ? " " : words, 1);
    }
    gx_text_put(text, "\"");
}

void gx_plan_doc_put_real(gx_text *text, double value)
{
    char digits[GX_REAL_TEXT];

    gx_text_put(text, gx_real_text(value, digits));
}

void gx_plan_doc_put_device(gx_text *text, const gx_device_info *device)
{
    gx_text_put(text, "device:\n  name: ");
    gx_plan_doc_quote(text, device->name);
    gx_text_format(text, "\n  cc: %d\n  driver: %d\n  runtime: %d\n  cublaslt: %zu\n",
                   device->cc_major * 10 + device->cc_minor, device->driver_version,
                   device->runtime_version, device->cublaslt_version);
    gx_text_format(text, "  gexec: \"%s\"\n", gx_version());
}

void gx_plan_doc_put_choice(gx_text *text, const gx_choice_fields *fields)
{
    gx_text_put(text, "us: ");
    gx_plan_doc_put_real(text, fields->us);
    gx_text_format(text, ", launches: %lld, workspace: %lld",
                   (long long)fields->n_launches, (long long)fields->workspace_bytes);
    if (!fields->has_algo)
        return;
    gx_text_put(text, ", algo: ");
    for (int i = 0; i < GX_ALGO_BYTES; i++)
        gx_text_format(text, "%02x", fields->algo[i]);
}

gx_status gx_plan_doc_save(const char *path, gx_text *text, gx_error *err)
{
    gx_status st;

    if (text->failed || !text->bytes) {
        st = GX_FAIL(err, GX_ERR_MEMORY, "out of memory for %s", path);
    } else {
        gx_beside to;

        st = gx_beside_open(&to, path, err);
        /* What could not be written is found at the end. */
        if (st == GX_OK)
            (void)!fwrite(text->bytes, 1, text->length, to.file);
        st = gx_beside_close(&to, st, err);
    }
    free(text->bytes);
    *text = (gx_text){ 0 };
    return st;
}
