/* The simulated CUDA: accounts of calls, failures, objects and errors. */
#include "fake_cuda_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- accounts --- */

enum { MAX_FUNCTIONS = 160 };

static struct {
    const char *name[MAX_FUNCTIONS];
    long calls[MAX_FUNCTIONS];
    size_t n;
    const char *fail_function;
    long fail_nth;
    int fail_status;
    const char *fail_too;
    int fail_too_status;
    bool has_failed, quiet, failed_quietly;
    char mistake[200];
    cudaError_t last_error;
    int is_real; /* -1: not known yet */
} fake = { .is_real = -1 };

void fake_begin(void)
{
    fake.n = 0;
    fake.fail_function = NULL;
    fake.fail_too = NULL;
    fake.has_failed = false;
    fake.failed_quietly = false;
    fake.mistake[0] = '\0';
    fake.last_error = cudaSuccess;
}

void fake_fail(const char *function, long nth, int status)
{
    fake.fail_function = function;
    fake.fail_nth = nth;
    fake.fail_status = status;
    fake.has_failed = false;
}

void fake_fail_too(const char *function, int status)
{
    fake.fail_too = function;
    fake.fail_too_status = status;
}

bool fake_has_failed(void)
{
    return fake.has_failed;
}

bool fake_has_failed_quietly(void)
{
    return fake.failed_quietly;
}

void fake_quiet(bool quiet)
{
    fake.quiet = quiet;
}

int fake_enter(const char *function)
{
    size_t i = 0;

    while (i < fake.n && strcmp(fake.name[i], function) != 0)
        i++;
    if (i == fake.n) {
        if (i == MAX_FUNCTIONS)
            abort();
        fake.name[i] = function;
        fake.calls[i] = 0;
        fake.n++;
    }
    fake.calls[i]++;
    if (fake.has_failed && fake.fail_too && strcmp(fake.fail_too, function) == 0)
        return fake.fail_too_status;
    if (!fake.fail_function || strcmp(fake.fail_function, function) != 0 ||
        fake.calls[i] != fake.fail_nth)
        return 0;
    fake.has_failed = true;
    fake.failed_quietly = fake.quiet;
    return fake.fail_status;
}

long fake_calls(const char *function)
{
    long sum = 0;

    for (size_t i = 0; i < fake.n; i++)
        if (!function || strcmp(fake.name[i], function) == 0)
            sum += fake.calls[i];
    return sum;
}

const char *fake_function(size_t i)
{
    return i < fake.n ? fake.name[i] : NULL;
}

void fake_note_mistake(const char *what)
{
    if (fake.mistake[0] == '\0')
        snprintf(fake.mistake, sizeof fake.mistake, "%s", what);
}

const char *fake_mistake(void)
{
    return fake.mistake[0] != '\0' ? fake.mistake : NULL;
}

void fake_use_real(void)
{
    fake.is_real = 1;
}

bool fake_is_real(void)
{
    const char *wish = getenv("GX_FAKE_REAL");

    if (fake.is_real < 0)
        fake.is_real = wish && strcmp(wish, "1") == 0;
    return fake.is_real == 1;
}

cudaError_t fake_error(int error)
{
    if (error != 0)
        fake.last_error = (cudaError_t)error;
    return (cudaError_t)error;
}

/* --- objects --- */

static const char *const kind_names[FAKE_N_KINDS] = {
    "memory",     "pinned memory", "stream",     "event",  "graph",
    "graph exec", "handle",        "descriptor", "layout", "preference"
};

static struct {
    const void **object;
    fake_kind *kind;
    size_t n, capacity;
} live;

static size_t find(fake_kind kind, const void *object)
{
    for (size_t i = live.n; i-- > 0;)
        if (live.object[i] == object && live.kind[i] == kind)
            return i;
    return live.n;
}

void fake_born(fake_kind kind, const void *object, int status)
{
    if (status != 0 || !object)
        return;
    if (live.n == live.capacity) {
        live.capacity = live.capacity ? 2 * live.capacity : 64;
        live.object = realloc(live.object, live.capacity * sizeof *live.object);
        live.kind = realloc(live.kind, live.capacity * sizeof *live.kind);
        if (!live.object || !live.kind)
            abort();
    }
    live.object[live.n] = object;
    live.kind[live.n++] = kind;
}

void fake_died(fake_kind kind, const void *object)
{
    const size_t i = find(kind, object);
    char what[80];

    if (i == live.n) {
        snprintf(what, sizeof what, "a %s was freed that is not alive", kind_names[kind]);
        fake_note_mistake(what);
        return;
    }
    live.n--;
    live.object[i] = live.object[live.n];
    live.kind[i] = live.kind[live.n];
}

bool fake_is_alive(fake_kind kind, const void *object)
{
    return find(kind, object) < live.n;
}

long fake_live(void)
{
    return (long)live.n;
}

const char *fake_live_text(void)
{
    static char text[400];
    size_t length = 0;

    text[0] = '\0';
    for (int kind = 0; kind < FAKE_N_KINDS; kind++) {
        int n = 0;

        for (size_t i = 0; i < live.n; i++)
            n += live.kind[i] == (fake_kind)kind;
        if (n > 0 && length < sizeof text)
            length += (size_t)snprintf(text + length, sizeof text - length, "%d %s ", n,
                                       kind_names[kind]);
    }
    return text;
}

/* --- errors --- */

WRAPS(cudaGetLastError);
WRAPS(cudaGetErrorName);
WRAPS(cudaGetErrorString);

cudaError_t __wrap_cudaGetLastError(void)
{
    const cudaError_t last = fake.last_error;

    (void)fake_enter("cudaGetLastError");
    fake.last_error = cudaSuccess;
    if (!fake_is_real())
        return last;
    const cudaError_t real = __real_cudaGetLastError();
    return real != cudaSuccess ? real : last;
}

const char *__wrap_cudaGetErrorName(cudaError_t error)
{
    (void)fake_enter("cudaGetErrorName");
    return __real_cudaGetErrorName(error);
}

const char *__wrap_cudaGetErrorString(cudaError_t error)
{
    (void)fake_enter("cudaGetErrorString");
    return __real_cudaGetErrorString(error);
}
