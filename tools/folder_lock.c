/* A folder of results is written by one process at a time, and read by none meanwhile. */
#include "folder_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

int gx_folder_lock(const char *folder, bool alone)
{
    const int lock = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int failed = -1;

    if (lock < 0)
        return -1;
    do
        failed = flock(lock, alone ? LOCK_EX : LOCK_SH);
    while (failed != 0 && errno == EINTR);
    if (failed == 0)
        return lock;
    close(lock);
    return -1;
}

void gx_folder_unlock(int lock)
{
    if (lock >= 0)
        close(lock);
}
