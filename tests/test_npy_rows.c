/* Rows of .npy files read where they lie: every type, both orders, from any element on.
 */
#include "npy_rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

/* A file with this head and these bytes; `pad` blanks move the data to another address.
 * The caller frees the path. */
static char *write_file(const char *name, const char *descr, bool fortran,
                        const char *shape, int pad, const void *bytes, size_t length)
{
    char dict[256];
    char *all = malloc(sizeof dict + 10 + length);
    char *path;

    const int n = snprintf(dict, sizeof dict,
                           "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }%*s\n",
                           descr, fortran ? "True" : "False", shape, pad, "");

    assert_non_null(all);
    memcpy(all, "\x93NUMPY\x01\x00", 8);
    all[8] = (char)(n & 0xff);
    all[9] = (char)(n >> 8);
    memcpy(all + 10, dict, (size_t)n);
    if (length > 0)
        memcpy(all + 10 + n, bytes, length);
    path = test_write(name, all, 10 + (size_t)n + length);
    free(all);
    return path;
}

static double as_double(const gx_tensor *tensor, int64_t i)
{
    switch (tensor->dtype) {
    case GX_F32:
        return ((const float *)tensor->data)[i];
    case GX_F64:
        return ((const double *)tensor->data)[i];
    default:
        return ((const int32_t *)tensor->data)[i];
    }
}

/* What gx_npy_read makes of the whole file is what is read of it in pieces. */
static void check_file(const char *path)
{
    test_random random = test_random_start(test_seed());
    gx_error err = { 0 };
    gx_npy_rows rows;
    gx_tensor whole;
    double piece[64];

    assert_ok(gx_npy_read(path, &whole, &err), &err);
    assert_ok(gx_npy_rows_open(path, &rows, &err), &err);
    assert_int_equal(rows.head.rank, whole.rank);
    assert_memory_equal(rows.head.dim, whole.dim, (size_t)whole.rank * sizeof(int64_t));
    assert_false(rows.head.fortran);
    for (int round = 0; round < 20 && rows.head.count > 0; round++) {
        const int64_t first = test_random_int(&random, 0, rows.head.count - 1);
        const int64_t most = rows.head.count - first < 64 ? rows.head.count - first : 64;
        const int64_t n = test_random_int(&random, 0, most);

        gx_npy_rows_get(&rows, first, n, piece);
        for (int64_t i = 0; i < n; i++) {
            const double expected = as_double(&whole, first + i);

            assert_memory_equal(&piece[i], &expected, sizeof expected);
        }
    }
    gx_npy_rows_close(&rows);
    free(whole.data);
}

static void every_type_is_read_as_it_is_read_whole(void **state)
{
    static const struct {
        const char *descr;
        size_t width;
    } types[] = { { "<f2", 2 }, { "<f4", 4 }, { "<f8", 8 }, { "|i1", 1 },
                  { "<i4", 4 }, { "<i8", 8 }, { "|u1", 1 } };
    test_random random = test_random_start(test_seed());
    unsigned char bytes[13 * 7 * 8];

    (void)state;
    for (size_t t = 0; t < ARRAY_SIZE(types); t++) {
        for (int fortran = 0; fortran < 2; fortran++) {
            for (int pad = 0; pad < 4; pad++) {
                for (size_t i = 0; i < sizeof bytes; i++)
                    bytes[i] = (unsigned char)test_random_bits(&random);
                for (size_t i = 0;
                     types[t].width == 8 && types[t].descr[1] == 'i' && i < sizeof bytes;
                     i += 8) {
                    const int64_t small = (int32_t)test_random_bits(&random);

                    memcpy(bytes + i, &small, sizeof small);
                }
                for (size_t i = types[t].width - 1;
                     types[t].descr[1] == 'f' && i < sizeof bytes; i += types[t].width)
                    bytes[i] &= 0xbf; /* no infinity, and so no NaN */
                char *path = write_file("rows.npy", types[t].descr, fortran, "(13, 7)",
                                        pad, bytes, 13 * 7 * types[t].width);

                check_file(path);
                free(path);
            }
        }
    }
}

static void the_type_is_named_where_elements_need_no_conversion(void **state)
{
    static const struct {
        const char *descr;
        gx_dtype dtype;
    } types[] = { { "<f2", GX_F16 },      { "<f4", GX_F32 }, { "<f8", GX_F64 },
                  { "|i1", GX_N_DTYPES }, { "<i4", GX_I32 }, { "<i8", GX_N_DTYPES },
                  { "|u1", GX_N_DTYPES } };
    static const unsigned char zeros[4 * 8];
    gx_error err = { 0 };

    (void)state;
    for (size_t t = 0; t < ARRAY_SIZE(types); t++) {
        gx_npy_rows rows;
        char *path = write_file("type.npy", types[t].descr, false, "(4,)", 0, zeros,
                                4 * (size_t)(types[t].descr[2] - '0'));

        assert_ok(gx_npy_rows_open(path, &rows, &err), &err);
        assert_int_equal(gx_npy_rows_dtype(&rows), types[t].dtype);
        assert_non_null(rows.mapping);
        gx_npy_rows_close(&rows);
        assert_null(rows.mapping);
        gx_npy_rows_close(&rows);
        free(path);
    }
}

static void a_column_major_file_is_read_into_memory(void **state)
{
    const float values[] = { 1, 2, 3, 4, 5, 6 }; /* columns of 2 */
    const double expected[] = { 1, 3, 5, 2, 4, 6 };
    double found[6];
    gx_error err = { 0 };
    gx_npy_rows rows;
    char *path =
        write_file("fortran.npy", "<f4", true, "(2, 3)", 0, values, sizeof values);

    (void)state;
    assert_ok(gx_npy_rows_open(path, &rows, &err), &err);
    assert_null(rows.mapping);
    assert_int_equal(gx_npy_rows_dtype(&rows), GX_F32);
    gx_npy_rows_get(&rows, 0, 6, found);
    assert_memory_equal(found, expected, sizeof expected);
    gx_npy_rows_close(&rows);
    free(path);
}

static void files_without_rows_and_bad_ones(void **state)
{
    gx_error err = { 0 };
    gx_npy_rows rows;
    char *empty = write_file("empty.npy", "<f4", false, "(0, 3)", 0, NULL, 0);
    char *cut = write_file("cut.npy", "<f4", false, "(2, 3)", 0, "12345678", 8);

    (void)state;
    assert_ok(gx_npy_rows_open(empty, &rows, &err), &err);
    assert_int_equal(rows.head.count, 0);
    gx_npy_rows_close(&rows);
    assert_fails(gx_npy_rows_open(cut, &rows, &err), GX_ERR_DATA, &err, "cut short");
    gx_npy_rows_close(&rows);
    assert_fails(gx_npy_rows_open("/nowhere.npy", &rows, &err), GX_ERR_READ, &err,
                 "/nowhere.npy");
    gx_npy_rows_close(&rows);
    free(empty);
    free(cut);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_is_read_as_it_is_read_whole),
        cmocka_unit_test(the_type_is_named_where_elements_need_no_conversion),
        cmocka_unit_test(a_column_major_file_is_read_into_memory),
        cmocka_unit_test(files_without_rows_and_bad_ones),
    };

    return cmocka_run_group_tests_name("npy_rows", tests, NULL, NULL);
}
