/* Tensors from .npy files and back. */
#include "npy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "need.h"
#include "npy_head.h"

gx_status gx_npy_open(const char *path, FILE **file, gx_error *err)
{
    struct stat info;

    *file = NULL;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return GX_FAIL(err, GX_ERR_READ, "%s: not a plain file", path);
    *file = fopen(path, "rb");
    if (!*file)
        return GX_FAIL_NATIVE(err, GX_ERR_READ, errno, "%s: %s", path, strerror(errno));
    return GX_OK;
}

static uint64_t little_endian(const unsigned char *bytes, int n)
{
    uint64_t bits = 0;

    for (int i = n - 1; i >= 0; i--)
        bits = bits << 8 | bytes[i];
    return bits;
}

static void convert_float(const gx_npy *npy, const unsigned char *bytes,
                          gx_tensor *tensor, int64_t to)
{
    const uint64_t bits = little_endian(bytes, npy->bytes);

    if (npy->bytes == 8) {
        memcpy((double *)tensor->data + to, &bits, sizeof bits);
    } else if (npy->bytes == 4) {
        const uint32_t narrow = (uint32_t)bits;

        memcpy((float *)tensor->data + to, &narrow, sizeof narrow);
    } else {
        ((float *)tensor->data)[to] = gx_f16_to_float((uint16_t)bits);
    }
}

static bool convert_integer(const gx_npy *npy, const unsigned char *bytes,
                            gx_tensor *tensor, int64_t to)
{
    const uint64_t bits = little_endian(bytes, npy->bytes);
    int64_t value = (int64_t)bits;

    if (npy->type == 'i' && npy->bytes == 1)
        value = (int8_t)bits;
    else if (npy->type == 'i' && npy->bytes == 4)
        value = (int32_t)bits;
    if (value < INT32_MIN || value > INT32_MAX)
        return false;
    ((int32_t *)tensor->data)[to] = (int32_t)value;
    return true;
}

/* Where the i-th element of a column-major file stands in row-major order: `index` counts
 * up, the first size fastest. */
static int64_t next_place(const gx_npy *npy, int64_t *index)
{
    int64_t place = 0;

    for (int i = 0; i < npy->rank; i++)
        place = place * npy->dim[i] + index[i];
    for (int i = 0; i < npy->rank; i++) {
        if (++index[i] < npy->dim[i])
            break;
        index[i] = 0;
    }
    return place;
}

static gx_status read_elements(FILE *file, const char *name, const gx_npy *npy,
                               gx_tensor *tensor, gx_error *err)
{
    enum { CHUNK = 4096, WIDEST = 8 };
    unsigned char bytes[CHUNK * WIDEST];
    int64_t index[GX_MAX_RANK] = { 0 };
    const size_t width = (size_t)npy->bytes;

    for (int64_t done = 0; done < npy->count;) {
        const int64_t left = npy->count - done;
        const size_t n = left < CHUNK ? (size_t)left : CHUNK;

        if (fread(bytes, width, n, file) != n)
            return GX_FAIL_NATIVE(err, GX_ERR_READ, errno,
                                  "%s: cut short while it was read", name);
        for (size_t i = 0; i < n; i++, done++) {
            const int64_t to = npy->fortran ? next_place(npy, index) : done;

            if (npy->type == 'f')
                convert_float(npy, bytes + i * width, tensor, to);
            else if (!convert_integer(npy, bytes + i * width, tensor, to))
                return GX_FAIL(
                    err, GX_ERR_DATA,
                    "%s: element %lld is %lld, which does not fit into 32 bits", name,
                    (long long)to,
                    (long long)little_endian(bytes + i * width, npy->bytes));
        }
    }
    return GX_OK;
}

gx_status gx_npy_read_stream(FILE *file, const char *name, gx_tensor *tensor,
                             gx_error *err)
{
    gx_npy npy;
    gx_status st;

    *tensor = (gx_tensor){ 0 };
    GX_TRY(gx_npy_head_stream(file, name, &npy, err));
    tensor->dtype = npy.type != 'f' ? GX_I32 : npy.bytes == 8 ? GX_F64 : GX_F32;
    tensor->rank = npy.rank;
    memcpy(tensor->dim, npy.dim, sizeof tensor->dim);
    const size_t width = gx_dtype_bytes(tensor->dtype);

    tensor->data = malloc(npy.count > 0 ? (size_t)npy.count * width : width);
    if (!tensor->data)
        return GX_FAIL(err, GX_ERR_MEMORY, "%s: out of host memory for %lld elements",
                       name, (long long)npy.count);
    st = read_elements(file, name, &npy, tensor, err);
    if (st != GX_OK) {
        free(tensor->data);
        *tensor = (gx_tensor){ 0 };
    }
    return st;
}

gx_status gx_npy_read(const char *path, gx_tensor *tensor, gx_error *err)
{
    FILE *file;
    gx_status st;

    gx_error_clear(err);
    GX_TRY(gx_need_place(tensor, "tensor", err));
    *tensor = (gx_tensor){ 0 };
    GX_TRY(gx_need(path, "path", err));
    GX_TRY(gx_npy_open(path, &file, err));
    st = gx_npy_read_stream(file, path, tensor, err);
    fclose(file);
    return st;
}
