/* Writing .npy files, version 1, C order. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <gexec/tensor.h>

#include "beside.h"
#include "graph_model.h"
#include "need.h"
#include "text.h"

enum { CHUNK = 4096 };

static const char *type_text(gx_dtype dtype)
{
    switch (dtype) {
    case GX_F64:
        return "<f8";
    case GX_I32:
        return "<i4";
    case GX_F16:
        return "<f2";
    default:
        return "<f4"; /* bf16 too: .npy has no type for it */
    }
}

/* Magic word, version, length, dict, blanks up to a multiple of 64, a line end. */
static void put_head(gx_text *head, const gx_tensor *tensor)
{
    enum { PREFIX = 10, BLOCK = 64 };
    gx_text dict = { 0 };

    gx_text_format(&dict, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                   type_text(tensor->dtype));
    for (int i = 0; i < tensor->rank; i++)
        gx_text_format(&dict, "%s%lld%s", i > 0 ? " " : "", (long long)tensor->dim[i],
                       i + 1 < tensor->rank || tensor->rank == 1 ? "," : "");
    gx_text_put(&dict, "), }");
    while ((PREFIX + dict.length + 1) % BLOCK != 0 && !dict.failed)
        gx_text_put(&dict, " ");
    gx_text_put(&dict, "\n");

    const char prefix[PREFIX] = { '\x93',
                                  'N',
                                  'U',
                                  'M',
                                  'P',
                                  'Y',
                                  1,
                                  0,
                                  (char)(dict.length & 0xff),
                                  (char)(dict.length >> 8) };

    gx_text_add(head, prefix, sizeof prefix);
    if (dict.failed)
        head->failed = true;
    else
        gx_text_add(head, dict.bytes, dict.length);
    free(dict.bytes);
}

static void put_little_endian(unsigned char *to, uint64_t bits, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (unsigned char)(bits >> (8 * i));
}

static size_t put_element(unsigned char *to, const gx_tensor *tensor, int64_t i)
{
    uint64_t wide = 0;
    uint32_t narrow = 0;
    float value;

    switch (tensor->dtype) {
    case GX_F64:
        memcpy(&wide, (const double *)tensor->data + i, sizeof wide);
        put_little_endian(to, wide, sizeof wide);
        return sizeof wide;
    case GX_F16:
        put_little_endian(to, ((const uint16_t *)tensor->data)[i], sizeof(uint16_t));
        return sizeof(uint16_t);
    case GX_BF16:
        value = gx_bf16_to_float(((const uint16_t *)tensor->data)[i]);
        memcpy(&narrow, &value, sizeof narrow);
        break;
    default:
        memcpy(&narrow, (const unsigned char *)tensor->data + i * 4, sizeof narrow);
        break;
    }
    put_little_endian(to, narrow, sizeof narrow);
    return sizeof narrow;
}

static bool write_elements(FILE *file, const gx_tensor *tensor)
{
    enum { WIDEST = 8 };
    unsigned char bytes[CHUNK * WIDEST];
    const int64_t count = gx_count(tensor);

    for (int64_t done = 0; done < count;) {
        size_t used = 0;

        for (int i = 0; i < CHUNK && done < count; i++, done++)
            used += put_element(bytes + used, tensor, done);
        if (fwrite(bytes, 1, used, file) != used)
            return false;
    }
    return true;
}

static gx_status write_file(const gx_beside *to, const gx_tensor *tensor, gx_error *err)
{
    gx_text head = { 0 };

    put_head(&head, tensor);
    const bool failed = head.failed;
    const bool written = !failed &&
                         fwrite(head.bytes, 1, head.length, to->file) == head.length &&
                         write_elements(to->file, tensor);

    free(head.bytes);
    if (failed)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of host memory");
    if (!written || fflush(to->file) != 0 || (to->name && fsync(fileno(to->file)) != 0))
        return GX_FAIL_NATIVE(err, GX_ERR_WRITE, errno, "%s: %s", to->path,
                              strerror(errno));
    return GX_OK;
}

static gx_status check_tensor(const gx_tensor *tensor, gx_error *err)
{
    GX_TRY(gx_need(tensor, "tensor", err));
    if (tensor->rank < 0 || tensor->rank > GX_MAX_RANK)
        return GX_FAIL(err, GX_ERR_ARGUMENT, "a tensor has 0 to %d dimensions, not %d",
                       GX_MAX_RANK, tensor->rank);
    if (gx_dtype_bytes(tensor->dtype) == 0)
        return GX_FAIL(err, GX_ERR_ARGUMENT, "there is no type %d of a tensor",
                       (int)tensor->dtype);
    for (int i = 0; i < tensor->rank; i++)
        if (tensor->dim[i] < 0)
            return GX_FAIL(err, GX_ERR_ARGUMENT,
                           "size %lld of a tensor: 0 or more is "
                           "expected",
                           (long long)tensor->dim[i]);
    if (gx_count(tensor) > INT64_MAX / (int64_t)gx_dtype_bytes(tensor->dtype))
        return GX_FAIL(err, GX_ERR_ARGUMENT, "the sizes of a tensor are too large");
    return gx_count(tensor) > 0 ? gx_need(tensor->data, "data of the tensor", err)
                                : GX_OK;
}

gx_status gx_npy_write(const char *path, const gx_tensor *tensor, gx_error *err)
{
    gx_beside to;
    gx_status st;

    gx_error_clear(err);
    GX_TRY(gx_need(path, "path", err));
    GX_TRY(check_tensor(tensor, err));
    st = gx_beside_open(&to, path, err);
    if (st == GX_OK)
        st = write_file(&to, tensor, err);
    return gx_beside_close(&to, st, err);
}
