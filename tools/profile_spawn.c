/* Starting the program again, and what passes between the two processes. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "interrupt.h"
#include "profile_pass.h"

static const char mark[16] = "gexec-pass-1";

char *gx_pass_path(const char *folder, const char *name)
{
    const size_t size = strlen(folder) + strlen(name) + 2;
    char *path = malloc(size);

    if (path)
        snprintf(path, size, "%s/%s", folder, name);
    return path;
}

gx_status gx_pass_write(const char *folder, const gx_pass_result *result, gx_error *err)
{
    char *path = gx_pass_path(folder, "result");
    gx_pass_result marked = *result;
    FILE *file;
    bool whole;

    if (!path)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    memcpy(marked.mark, mark, sizeof mark);
    file = fopen(path, "wb");
    free(path);
    if (!file)
        return GX_FAIL_NATIVE(err, GX_ERR_WRITE, errno, "%s: %s", folder,
                              strerror(errno));
    whole = fwrite(&marked, sizeof marked, 1, file) == 1;
    whole = fclose(file) == 0 && whole;
    return whole ? GX_OK
                 : GX_FAIL_NATIVE(err, GX_ERR_WRITE, errno, "%s: %s", folder,
                                  strerror(errno));
}

gx_status gx_pass_read(const char *folder, gx_pass_result *result, gx_error *err)
{
    char *path = gx_pass_path(folder, "result");
    FILE *file = path ? fopen(path, "rb") : NULL;
    bool whole = false;

    *result = (gx_pass_result){ .status = GX_ERR_READ };
    free(path);
    if (file) {
        whole = fread(result, sizeof *result, 1, file) == 1 &&
                memcmp(result->mark, mark, sizeof mark) == 0;
        fclose(file);
    }
    if (!whole)
        return GX_FAIL(err, GX_ERR_READ, "the traced process left no result");
    result->message[sizeof result->message - 1] = '\0';
    return GX_OK;
}

/* --- the process --- */

/* Between fork and exec: what it prints is no result of ours, and it ends with us. */
static void become(char *const *words, pid_t parent)
{
    const int nowhere = open("/dev/null", O_WRONLY);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || nowhere < 0 || dup2(nowhere, STDOUT_FILENO) < 0)
        _exit(127);
    close(nowhere);
    execv("/proc/self/exe", words);
    _exit(127);
}

/* Short beside what a pass takes; while it waits this process leaves the device alone. */
static void nap(void)
{
    const struct timespec time = { .tv_nsec = 10 * 1000 * 1000 };

    nanosleep(&time, NULL);
}

static gx_status wait_for(pid_t process, int *status, gx_error *err)
{
    bool killed = false;
    pid_t got;

    while ((got = waitpid(process, status, WNOHANG)) != process) {
        if (got < 0 && errno != EINTR)
            return GX_FAIL_NATIVE(err, GX_ERR_STATE, errno,
                                  "the traced process cannot be waited for: %s",
                                  strerror(errno));
        if (gx_interrupted() && !killed) {
            kill(process, SIGKILL);
            killed = true;
        }
        nap();
    }
    return GX_OK;
}

gx_status gx_pass_spawn(char *const *words, gx_error *err)
{
    const pid_t self = getpid();
    const pid_t process = fork();
    int status = 0;

    if (process < 0)
        return GX_FAIL_NATIVE(err, GX_ERR_MEMORY, errno,
                              "no process can be started for the trace: %s",
                              strerror(errno));
    if (process == 0)
        become(words, self);
    GX_TRY(wait_for(process, &status, err));
    if (gx_interrupted())
        return GX_FAIL(err, GX_ERR_STATE, "interrupted");
    if (WIFSIGNALED(status))
        return GX_FAIL(err, GX_ERR_BROKEN, "the traced process died of signal %d (%s)",
                       WTERMSIG(status), strsignal(WTERMSIG(status)));
    if (WEXITSTATUS(status) == 127)
        return GX_FAIL(err, GX_ERR_STATE,
                       "the program could not be started again for "
                       "the trace (/proc/self/exe)");
    if (WEXITSTATUS(status) != 0)
        return GX_FAIL(err, GX_ERR_BROKEN, "the traced process exits with %d",
                       WEXITSTATUS(status));
    return GX_OK;
}
