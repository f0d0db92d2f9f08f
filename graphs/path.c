/* Paths of a model, confined to its folder; reading a whole file. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "graph_model.h"

/* True when ".." is one of the parts between slashes. */
static bool climbs(const char *path)
{
    while (*path) {
        const size_t n = strcspn(path, "/");

        if (n == 2 && path[0] == '.' && path[1] == '.')
            return true;
        path += n;
        while (*path == '/')
            path++;
    }
    return false;
}

static bool lies_in(const char *path, const char *folder)
{
    const size_t n = strlen(folder);

    if (strcmp(folder, "/") == 0)
        return true;
    return strncmp(path, folder, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

/* Follows every link. A file that is not there yet is reported by who opens it. */
static bool stays_in(const char *path, const char *folder)
{
    char *real_path = realpath(path, NULL);
    char *real_folder = realpath(folder, NULL);
    const bool stays = !real_path || (real_folder && lies_in(real_path, real_folder));

    free(real_path);
    free(real_folder);
    return stays;
}

const char *gx_confine_path(gx_graph *graph, const char *path, gx_pos pos,
                            gx_diagnostics *list)
{
    const char *joined;

    if (path[0] == '\0') {
        gx_report(list, pos, "expected the path of a file, found nothing");
        return NULL;
    }
    if (path[0] == '/') {
        gx_report(list, pos,
                  "path \"%s\" is absolute: paths start in the folder of the model",
                  path);
        return NULL;
    }
    if (climbs(path)) {
        gx_report(list, pos, "path \"%s\" leaves the folder of the model with \"..\"",
                  path);
        return NULL;
    }
    joined = gx_arena_format(graph->arena, "%s/%s", graph->folder, path);
    if (joined && !stays_in(joined, graph->folder)) {
        gx_report(list, pos,
                  "path \"%s\" is a link that leads out of the folder of the model",
                  path);
        return NULL;
    }
    return joined;
}

static gx_status read_stream(FILE *file, const char *path, char **text, size_t *length,
                             gx_error *err)
{
    size_t capacity = 1 << 16;
    char *bytes = malloc(capacity + 1);
    size_t n = 0;

    while (bytes) {
        n += fread(bytes + n, 1, capacity - n, file);
        if (n < capacity || n > GX_LIMIT_FILE_BYTES)
            break;
        char *more = realloc(bytes, capacity * 2 + 1);

        if (!more) {
            free(bytes);
            bytes = NULL;
            break;
        }
        bytes = more;
        capacity *= 2;
    }
    if (!bytes)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of host memory");
    if (ferror(file) || n > GX_LIMIT_FILE_BYTES) {
        free(bytes);
        if (n > GX_LIMIT_FILE_BYTES)
            return GX_FAIL(err, GX_ERR_LIMIT,
                           "%s: longer than %d MiB (limit on file size)", path,
                           GX_LIMIT_FILE_BYTES >> 20);
        return GX_FAIL_NATIVE(err, GX_ERR_READ, errno, "%s: %s", path, strerror(errno));
    }
    bytes[n] = '\0';
    *text = bytes;
    *length = n;
    return GX_OK;
}

gx_status gx_read_file(const char *path, char **text, size_t *length, gx_error *err)
{
    struct stat info;
    FILE *file;
    gx_status st;

    *text = NULL;
    *length = 0;
    file = fopen(path, "rb");
    if (!file)
        return GX_FAIL_NATIVE(err, GX_ERR_READ, errno, "%s: %s", path, strerror(errno));
    if (fstat(fileno(file), &info) == 0 && S_ISDIR(info.st_mode))
        st = GX_FAIL_NATIVE(err, GX_ERR_READ, EISDIR, "%s: %s", path, strerror(EISDIR));
    else
        st = read_stream(file, path, text, length, err);
    fclose(file);
    return st;
}
