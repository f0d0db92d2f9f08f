/* The head of a .npy file: a magic word, a version, and a dict written as Python would.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "graph_model.h"
#include "npy.h"
#include "npy_head.h"

enum { LONGEST_HEAD = 1 << 16 };

/* A place in the text of the dict. */
typedef struct cursor {
    const char *at, *end;
    const char *name; /* of the file */
    gx_error *err;
} cursor;

static gx_status bad_head(cursor *c, const char *why)
{
    return GX_FAIL(c->err, GX_ERR_DATA, "%s: not a .npy file that can be read: %s",
                   c->name, why);
}

static void skip_blanks(cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t'))
        c->at++;
}

static bool take(cursor *c, const char *word)
{
    const size_t n = strlen(word);

    skip_blanks(c);
    if ((size_t)(c->end - c->at) < n || memcmp(c->at, word, n) != 0)
        return false;
    c->at += n;
    return true;
}

/* A string in single or double quotes, without escapes. */
static bool take_string(cursor *c, char *text, size_t size)
{
    size_t n = 0;

    skip_blanks(c);
    if (c->at == c->end || (*c->at != '\'' && *c->at != '"'))
        return false;
    const char quote = *c->at++;

    while (c->at < c->end && *c->at != quote) {
        if (*c->at == '\\' || *c->at == '\0' || n + 1 >= size)
            return false;
        text[n++] = *c->at++;
    }
    text[n] = '\0';
    return c->at++ < c->end;
}

static bool take_size(cursor *c, int64_t *size)
{
    const char *start;

    skip_blanks(c);
    start = c->at;
    *size = 0;
    while (c->at < c->end && *c->at >= '0' && *c->at <= '9') {
        if (__builtin_mul_overflow(*size, 10, size) ||
            __builtin_add_overflow(*size, *c->at - '0', size))
            return false;
        c->at++;
    }
    if (c->at < c->end && *c->at == 'L')
        c->at++; /* Python 2 wrote 3L */
    return c->at > start;
}

static gx_status read_shape(cursor *c, gx_npy *npy)
{
    if (!take(c, "("))
        return bad_head(c, "its shape is not a tuple");
    npy->rank = 0;
    while (!take(c, ")")) {
        if (npy->rank == GX_MAX_RANK)
            return bad_head(c, "it has more than 8 dimensions");
        if (!take_size(c, &npy->dim[npy->rank]))
            return bad_head(c, "its shape is not a tuple of sizes");
        npy->rank++;
        if (!take(c, ",")) {
            if (npy->rank == 1 || !take(c, ")"))
                return bad_head(c, "its shape is not a tuple of sizes");
            break;
        }
    }
    npy->count = 1;
    for (int i = 0; i < npy->rank; i++) {
        /* a size of 0 does not make the others free */
        if (npy->dim[i] > GX_LIMIT_ELEMENTS ||
            __builtin_mul_overflow(npy->count, npy->dim[i], &npy->count) ||
            npy->count > GX_LIMIT_ELEMENTS)
            return bad_head(c, "its shape has too many elements (limit on elements)");
    }
    return GX_OK;
}

static gx_status read_type(cursor *c, gx_npy *npy)
{
    static const char *const accepted[] = { "<f2", "<f4", "<f8", "|i1", "<i1",
                                            "<i4", "<i8", "|u1", "<u1" };
    char text[16];

    if (!take_string(c, text, sizeof text))
        return bad_head(c, "its type is not a plain one");
    for (size_t i = 0; i < sizeof accepted / sizeof accepted[0]; i++) {
        if (strcmp(text, accepted[i]) == 0) {
            npy->type = text[1];
            npy->bytes = text[2] - '0';
            return GX_OK;
        }
    }
    if (text[0] == '>')
        return GX_FAIL(c->err, GX_ERR_DATA,
                       "%s: type \"%s\" is big-endian: save it as little-endian", c->name,
                       text);
    return GX_FAIL(c->err, GX_ERR_DATA,
                   "%s: type \"%s\" is not read: expected f2, f4, f8, i1, i4, i8 or u1, "
                   "little-endian",
                   c->name, text);
}

static gx_status read_entry(cursor *c, gx_npy *npy, unsigned *seen)
{
    static const char *const keys[] = { "descr", "fortran_order", "shape" };
    char key[16];
    unsigned i = 0;

    if (!take_string(c, key, sizeof key) || !take(c, ":"))
        return bad_head(c, "its head is not a dict");
    while (i < 3 && strcmp(key, keys[i]) != 0)
        i++;
    if (i == 3)
        return bad_head(c,
                        "its head has a key other than descr, fortran_order and shape");
    if (*seen & (1u << i))
        return bad_head(c, "its head has a key twice");
    *seen |= 1u << i;
    if (i == 0)
        return read_type(c, npy);
    if (i == 2)
        return read_shape(c, npy);
    npy->fortran = take(c, "True");
    if (!npy->fortran && !take(c, "False"))
        return bad_head(c, "fortran_order is neither True nor False");
    return GX_OK;
}

static gx_status read_dict(cursor *c, gx_npy *npy)
{
    enum { ALL = 7 };
    unsigned seen = 0;

    if (!take(c, "{"))
        return bad_head(c, "its head is not a dict");
    while (!take(c, "}")) {
        GX_TRY(read_entry(c, npy, &seen));
        if (!take(c, ",")) {
            if (!take(c, "}"))
                return bad_head(c, "its head is not a dict");
            break;
        }
    }
    skip_blanks(c);
    if (c->at != c->end)
        return bad_head(c, "its head goes on after the dict");
    if (seen != ALL)
        return bad_head(c, "its head lacks descr, fortran_order or shape");
    return GX_OK;
}

/* The length of the file is checked before anything of its size is allocated. */
static gx_status check_length(FILE *file, cursor *c, const gx_npy *npy)
{
    const off_t start = ftello(file);

    if (start < 0 || fseeko(file, 0, SEEK_END) != 0)
        return GX_FAIL_NATIVE(c->err, GX_ERR_READ, errno, "%s: %s", c->name,
                              strerror(errno));
    const off_t end = ftello(file);
    const int64_t expected = npy->count * npy->bytes;

    if (fseeko(file, start, SEEK_SET) != 0)
        return GX_FAIL_NATIVE(c->err, GX_ERR_READ, errno, "%s: %s", c->name,
                              strerror(errno));
    if (end - start < expected)
        return GX_FAIL(c->err, GX_ERR_DATA,
                       "%s: cut short: its head says %lld bytes of data, it has %lld",
                       c->name, (long long)expected, (long long)(end - start));
    if (end - start > expected)
        return GX_FAIL(c->err, GX_ERR_DATA,
                       "%s: %lld bytes follow the data that its head describes", c->name,
                       (long long)(end - start - expected));
    return GX_OK;
}

/* The magic word, the version, and how long the dict is. */
static gx_status read_prefix(FILE *file, cursor *c, size_t *length)
{
    unsigned char bytes[12];

    if (fread(bytes, 1, 10, file) != 10 || memcmp(bytes, "\x93NUMPY", 6) != 0)
        return bad_head(c, "it does not start as one");
    if (bytes[6] < 1 || bytes[6] > 3 || bytes[7] != 0)
        return bad_head(c, "its version is not 1.0, 2.0 or 3.0");
    *length = bytes[8] + ((size_t)bytes[9] << 8);
    if (bytes[6] == 1)
        return GX_OK;
    if (fread(bytes + 10, 1, 2, file) != 2)
        return bad_head(c, "it is cut short in its head");
    *length += ((size_t)bytes[10] << 16) + ((size_t)bytes[11] << 24);
    return GX_OK;
}

gx_status gx_npy_head_stream(FILE *file, const char *name, gx_npy *npy, gx_error *err)
{
    cursor c = { .name = name, .err = err };
    size_t length = 0;
    gx_status st;

    *npy = (gx_npy){ 0 };
    GX_TRY(read_prefix(file, &c, &length));
    if (length > LONGEST_HEAD)
        return bad_head(&c, "its head is longer than 64 KiB");
    char *text = malloc(length + 1);

    if (!text)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of host memory");
    c.at = text;
    c.end = text + length;
    if (fread(text, 1, length, file) != length)
        st = bad_head(&c, "it is cut short in its head");
    else
        st = read_dict(&c, npy);
    free(text);
    return st != GX_OK ? st : check_length(file, &c, npy);
}

gx_status gx_npy_head(const char *path, gx_npy *npy, gx_error *err)
{
    FILE *file;
    gx_status st;

    GX_TRY(gx_npy_open(path, &file, err));
    st = gx_npy_head_stream(file, path, npy, err);
    fclose(file);
    return st;
}
