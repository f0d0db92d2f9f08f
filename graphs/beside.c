/* A file that is made beside the one whose place it takes when it is whole. */
#include "beside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int gx_open_beside(const char *path, char *name)
{
    enum { TRIES = 100 }; /* of an earlier process some may be left */
    const size_t size = strlen(path) + GX_BESIDE_ROOM;
    int fd = -1;

    for (int i = 0; fd < 0 && i < TRIES; i++) {
        snprintf(name, size, "%s.%ld-%d.tmp", path, (long)getpid(), i);
        fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    return fd;
}
