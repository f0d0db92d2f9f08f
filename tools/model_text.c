/* Reading the text of a model. */
#include "model_text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* One more than the library takes, so that it says that there are too many. */
enum { MOST_BYTES = (256 << 20) + 1 };

/* NULL: out of memory. */
static char *folder_of(const char *name)
{
    const char *const slash = strrchr(name, '/');

    if (!slash || strncmp(name, "/dev/", 5) == 0 || strncmp(name, "/proc/", 6) == 0)
        return strdup(".");
    return strndup(name, slash == name ? 1 : (size_t)(slash - name));
}

static gx_status read_all(FILE *file, gx_model_text *text, gx_error *err)
{
    char part[1 << 16];
    size_t n = 0, total = 0;
    FILE *const bytes = open_memstream(&text->bytes, &text->length);
    bool written;

    if (!bytes)
        return GX_FAIL_NATIVE(err, GX_ERR_MEMORY, errno, "out of memory");
    do {
        n = fread(part, 1, sizeof part, file);
        total += n;
        written = fwrite(part, 1, n, bytes) == n;
    } while (n > 0 && written && total < MOST_BYTES);
    written = fclose(bytes) == 0 && written;
    return written ? GX_OK : GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
}

gx_status gx_model_text_read(gx_model_text *text, const char *path, const char *name,
                             gx_error *err)
{
    gx_status st;
    FILE *file;

    if (text->bytes)
        return GX_OK;
    file = fopen(path, "rb");
    if (!file)
        return GX_FAIL_NATIVE(err, GX_ERR_READ, errno, "%s: %s", path, strerror(errno));
    errno = 0;
    st = read_all(file, text, err);
    if (st == GX_OK && ferror(file))
        st = GX_FAIL_NATIVE(err, GX_ERR_READ, errno, "%s: %s", path, strerror(errno));
    fclose(file);
    text->folder = folder_of(name);
    if (st == GX_OK && !text->folder)
        st = GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    if (st != GX_OK)
        gx_model_text_free(text);
    return st;
}

void gx_model_text_free(gx_model_text *text)
{
    free(text->bytes);
    free(text->folder);
    *text = (gx_model_text){ 0 };
}

bool gx_is_standard_input(const char *path)
{
    struct stat a, b;

    return stat(path, &a) == 0 && fstat(STDIN_FILENO, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}
