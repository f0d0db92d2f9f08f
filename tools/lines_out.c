/* Text that is made whole before its file is touched. */
#include "lines_out.h"

#include <errno.h>
#include <stdlib.h>

#include "part_file.h"

gx_status gx_lines_begin(gx_lines_out *lines, gx_error *err)
{
    *lines = (gx_lines_out){ .bytes = NULL };
    lines->out = open_memstream(&lines->bytes, &lines->length);
    if (!lines->out)
        return GX_FAIL_NATIVE(err, GX_ERR_MEMORY, errno, "out of memory");
    return GX_OK;
}

gx_status gx_lines_end(gx_lines_out *lines, const char *path, gx_error *err)
{
    gx_status st;

    if (fclose(lines->out) != 0)
        st = GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    else
        st = gx_lines_write(path, lines->bytes, lines->length, err);
    free(lines->bytes);
    return st;
}

gx_status gx_lines_write(const char *path, const char *bytes, size_t length,
                         gx_error *err)
{
    gx_part_file file;
    gx_status st = gx_part_open(&file, path, err);

    /* What could not be written is found at the end. */
    if (st == GX_OK && fwrite(bytes, 1, length, file.out) == length)
        fputc('\n', file.out);
    return gx_part_close(&file, st, err);
}

void gx_lines_quote(const char *text, FILE *out)
{
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}
