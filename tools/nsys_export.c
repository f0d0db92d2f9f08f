/* Runs `nsys export` on a report. */
#include "nsys_export.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* The exit status of the program, or -1 with errno where it could not be run. What it
 * prints is thrown away, so that standard output stays ours. */
static int run(char *const *words)
{
    posix_spawn_file_actions_t actions;
    pid_t child;
    int status;
    int native;

    native = posix_spawn_file_actions_init(&actions);
    if (native == 0) {
        native = posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null",
                                                  O_WRONLY, 0);
        if (native == 0)
            native = posix_spawnp(&child, words[0], &actions, NULL, words, environ);
        posix_spawn_file_actions_destroy(&actions);
    }
    if (native != 0) {
        errno = native;
        return -1;
    }
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* "report.sqlite" of "folder/report.nsys-rep", in the current folder. */
static void export_name(const char *path, char *name, size_t size)
{
    const char *const slash = strrchr(path, '/');
    const char *const base = slash ? slash + 1 : path;
    const char *const dot = strrchr(base, '.');

    snprintf(name, size, "%.*s.sqlite", (int)(dot ? dot - base : (long)strlen(base)),
             base);
}

static gx_status export_to(const char *path, const char *to, gx_error *err)
{
    char words[5][4096] = { "nsys", "export", "--type=sqlite", "", "" };
    char *const list[] = { words[0], words[1], words[2], words[3], words[4], NULL };
    char name[512];
    int status;

    snprintf(words[3], sizeof words[3], "--output=%s", to);
    /* A name that begins with a dash is no flag. */
    snprintf(words[4], sizeof words[4], "%s%s", path[0] == '-' ? "./" : "", path);
    status = run(list);
    if (status == 0)
        return GX_OK;
    if (status > 0 && status != 127)
        return GX_FAIL(err, GX_ERR_DATA, "%s: nsys export exits with %d", path, status);
    export_name(path, name, sizeof name);
    return GX_FAIL_NATIVE(err, GX_ERR_UNSUPPORTED, errno,
                          "%s is a report, which only Nsight Systems itself reads, and "
                          "there is no nsys here. Where there is, run: "
                          "nsys export --type=sqlite --output=%s %s",
                          path, name, path);
}

/* The figures are those of the report, whatever file they passed through. */
static gx_status take_name(gx_trace_file *file, const char *path, gx_error *err)
{
    char *copy = malloc(strlen(path) + 1);

    if (!copy)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    strcpy(copy, path);
    free(file->path);
    file->path = copy;
    return GX_OK;
}

gx_status gx_nsys_export_and_read(const char *path, gx_trace_file *file, gx_error *err)
{
    const char *base = getenv("TMPDIR");
    char folder[2048];
    char to[2080];
    gx_status st;

    if (strlen(path) > 4000)
        return GX_FAIL(err, GX_ERR_READ, "%.80s...: the path is too long", path);
    snprintf(folder, sizeof folder, "%s/gexec-nsys-XXXXXX",
             base && base[0] && strlen(base) < 2000 ? base : "/tmp");
    if (!mkdtemp(folder))
        return GX_FAIL_NATIVE(err, GX_ERR_WRITE, errno, "%s: %s", folder,
                              strerror(errno));
    snprintf(to, sizeof to, "%s/export.sqlite", folder);
    st = export_to(path, to, err);
    if (st == GX_OK)
        st = gx_nsys_read(to, file, err);
    if (st == GX_OK)
        st = take_name(file, path, err);
    unlink(to);
    rmdir(folder);
    return st;
}
