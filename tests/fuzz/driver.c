/* Runs a fuzzer over the files of its corpus, where the engine of clang is not there.
 * usage: FUZZER FILE-OR-FOLDER... */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz_target.h"

static int run_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    struct stat info;
    uint8_t *bytes;
    size_t n;

    if (!file || fstat(fileno(file), &info) != 0) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        exit(1);
    }
    /* Exactly as many bytes as there are, so that reading past them is seen. */
    bytes = malloc(info.st_size > 0 ? (size_t)info.st_size : 1);
    if (!bytes) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    n = fread(bytes, 1, (size_t)info.st_size, file);
    fclose(file);
    LLVMFuzzerTestOneInput(bytes, n);
    free(bytes);
    return 1;
}

static int run_folder(const char *folder)
{
    DIR *entries = opendir(folder);
    int n = 0;

    if (!entries) {
        fprintf(stderr, "%s: %s\n", folder, strerror(errno));
        exit(1);
    }
    for (const struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        char path[4096];

        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.')
            n += run_file(path);
    }
    closedir(entries);
    return n;
}

int main(int n_args, char **args)
{
    int n = 0;

    for (int i = 1; i < n_args; i++) {
        struct stat info;

        n += stat(args[i], &info) == 0 && S_ISDIR(info.st_mode) ? run_folder(args[i])
                                                                : run_file(args[i]);
    }
    printf("%d inputs\n", n);
    return n > 0 ? 0 : 1;
}
