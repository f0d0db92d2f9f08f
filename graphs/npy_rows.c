/* The rows of a .npy file, read where they lie. */
#include "npy_rows.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "npy_head.h"

/* Elements are taken from the file as they lie there. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, ".npy files are little-endian");

/* False where the file cannot be mapped. */
static bool map(FILE *file, gx_npy_rows *rows)
{
    const off_t start = ftello(file);
    const size_t bytes = (size_t)rows->head.count * (size_t)rows->head.bytes;
    void *mapping;

    if (bytes == 0)
        return true;
    if (start < 0)
        return false;
    mapping = mmap(NULL, (size_t)start + bytes, PROT_READ, MAP_PRIVATE, fileno(file), 0);
    if (mapping == MAP_FAILED)
        return false;
    rows->mapping = mapping;
    rows->mapped_bytes = (size_t)start + bytes;
    rows->data = (const unsigned char *)mapping + start;
    return true;
}

static gx_status read_whole(FILE *file, const char *path, gx_npy_rows *rows,
                            gx_error *err)
{
    gx_tensor tensor = { 0 };

    rewind(file);
    GX_TRY(gx_npy_read_stream(file, path, &tensor, err));
    rows->head.type = tensor.dtype == GX_I32 ? 'i' : 'f';
    rows->head.bytes = (int)gx_dtype_bytes(tensor.dtype);
    rows->head.fortran = false;
    rows->copy = tensor.data;
    rows->data = tensor.data;
    return GX_OK;
}

gx_status gx_npy_rows_open(const char *path, gx_npy_rows *rows, gx_error *err)
{
    FILE *file;
    gx_status st;

    *rows = (gx_npy_rows){ .data = NULL };
    GX_TRY(gx_npy_open(path, &file, err));
    st = gx_npy_head_stream(file, path, &rows->head, err);
    if (st == GX_OK && rows->head.rank < 2)
        rows->head.fortran = false; /* the two orders are one */
    if (st == GX_OK && (rows->head.fortran || !map(file, rows)))
        st = read_whole(file, path, rows, err);
    fclose(file);
    return st;
}

void gx_npy_rows_close(gx_npy_rows *rows)
{
    if (rows->mapping)
        (void)munmap(rows->mapping, rows->mapped_bytes);
    free(rows->copy);
    *rows = (gx_npy_rows){ .data = NULL };
}

gx_dtype gx_npy_rows_dtype(const gx_npy_rows *rows)
{
    const gx_npy *head = &rows->head;

    if (head->type == 'f' && head->bytes == 2)
        return GX_F16;
    if (head->type == 'f' && head->bytes == 4)
        return GX_F32;
    if (head->type == 'f' && head->bytes == 8)
        return GX_F64;
    return head->type == 'i' && head->bytes == 4 ? GX_I32 : GX_N_DTYPES;
}

/* By memcpy, since nothing says that a file's data are aligned. */
#define READER(name, type, convert)                                         \
    static void name(const unsigned char *from, int64_t n, double *out)     \
    {                                                                       \
        for (int64_t i = 0; i < n; i++) {                                   \
            type value;                                                     \
                                                                            \
            memcpy(&value, from + i * (int64_t)sizeof value, sizeof value); \
            out[i] = (double)convert(value);                                \
        }                                                                   \
    }

READER(read_f2, uint16_t, gx_f16_to_float)
READER(read_f4, float, +)
READER(read_f8, double, +)
READER(read_i1, int8_t, +)
READER(read_i4, int32_t, +)
READER(read_i8, int64_t, +)
READER(read_u1, uint8_t, +)

void gx_npy_rows_get(const gx_npy_rows *rows, int64_t first, int64_t n, double *out)
{
    const gx_npy *head = &rows->head;
    const unsigned char *from = rows->data + first * head->bytes;

    if (head->type == 'f')
        (head->bytes == 2 ? read_f2 : head->bytes == 4 ? read_f4 : read_f8)(from, n, out);
    else if (head->bytes == 1)
        (head->type == 'u' ? read_u1 : read_i1)(from, n, out);
    else
        (head->bytes == 4 ? read_i4 : read_i8)(from, n, out);
}
