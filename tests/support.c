/* What tests share. */
#include "support.h"

#include <errno.h>
#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* --- statuses --- */

void test_ok(gx_status status, const gx_error *err, const char *call, const char *file,
             int line)
{
    if (status == GX_OK)
        return;
    print_error("%s:%d: %s\n    gave %s\n", file, line, call, gx_status_name(status));
    if (err != NULL && err->status != GX_OK)
        print_error("    %s (%s:%d, native %d)\n", err->message, err->file, err->line,
                    err->native);
    _fail(file, line);
}

void test_fails(gx_status status, gx_status expected, const gx_error *err,
                const char *text, const char *call, const char *file, int line)
{
    if (status != expected) {
        print_error("%s:%d: %s\n    gave %s, expected %s\n    %s\n", file, line, call,
                    gx_status_name(status), gx_status_name(expected),
                    err != NULL ? err->message : "");
        _fail(file, line);
    }
    if (err != NULL && text != NULL)
        test_has(err->message, text, file, line);
}

void test_has(const char *text, const char *part, const char *file, int line)
{
    if (text != NULL && strstr(text, part) != NULL)
        return;
    print_error("%s:%d: expected \"%s\" in:\n%s\n", file, line, part,
                text != NULL ? text : "(no text)");
    _fail(file, line);
}

bool test_is_short(void)
{
    return getenv("GX_TEST_SHORT") != NULL;
}

bool test_has_conditions(void)
{
    return !test_is_short();
}

/* --- fresh random numbers --- */

uint64_t test_seed(void)
{
    const char *given = getenv("GX_TEST_SEED");
    struct timespec now;
    test_random mixer;
    uint64_t seed;

    if (given != NULL) {
        seed = strtoull(given, NULL, 10);
    } else {
        clock_gettime(CLOCK_REALTIME, &now);
        mixer.state = (uint64_t)now.tv_sec * UINT64_C(1000000007) +
                      (uint64_t)now.tv_nsec + ((uint64_t)getpid() << 40);
        seed = test_random_bits(&mixer);
    }
    print_message("GX_TEST_SEED=%llu\n", (unsigned long long)seed);
    return seed;
}

test_random test_random_start(uint64_t seed)
{
    return (test_random){ .state = seed };
}

/* SplitMix64. */
uint64_t test_random_bits(test_random *random)
{
    uint64_t z = random->state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

double test_random_real(test_random *random, double low, double high)
{
    const double unit = (double)(test_random_bits(random) >> 11) * 0x1p-53;

    return low + (high - low) * unit;
}

int64_t test_random_int(test_random *random, int64_t low, int64_t high)
{
    const uint64_t range = (uint64_t)high - (uint64_t)low + 1;
    const uint64_t bits = test_random_bits(random);

    return (int64_t)((uint64_t)low + (range == 0 ? bits : bits % range));
}

/* --- numbers --- */

double test_error(const double *x, const double *reference, int64_t n)
{
    double difference = 0;
    double norm = 0;

    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(x[i]) || !isfinite(reference[i]))
            return INFINITY;
        difference += (x[i] - reference[i]) * (x[i] - reference[i]);
        norm += reference[i] * reference[i];
    }
    return norm > 0 ? sqrt(difference / norm) : sqrt(difference);
}

/* --- files --- */

static char folder[4096];

static int remove_entry(const char *path, const struct stat *info, int kind,
                        struct FTW *at)
{
    (void)info;
    (void)kind;
    (void)at;
    return remove(path);
}

static void remove_folder(void)
{
    enum { OPEN_FOLDERS = 16 };

    nftw(folder, remove_entry, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS);
}

const char *test_folder(void)
{
    const char *base = getenv("TMPDIR");

    if (folder[0] == '\0') {
        snprintf(folder, sizeof(folder), "%s/gexec-test-XXXXXX",
                 base != NULL && base[0] != '\0' ? base : "/tmp");
        if (mkdtemp(folder) == NULL)
            fail_msg("cannot make %s: %s", folder, strerror(errno));
        atexit(remove_folder);
    }
    return folder;
}

char *test_path(const char *name)
{
    const size_t size = strlen(test_folder()) + strlen(name) + 2;
    char *path = malloc(size);

    if (path == NULL)
        fail_msg("out of memory");
    snprintf(path, size, "%s/%s", test_folder(), name);
    return path;
}

char *test_write(const char *name, const void *bytes, size_t length)
{
    char *path = test_path(name);
    FILE *file = fopen(path, "wb");

    if (file == NULL)
        fail_msg("cannot write %s: %s", path, strerror(errno));
    if (length > 0)
        assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
    return path;
}

char *test_write_text(const char *name, const char *text)
{
    return test_write(name, text, strlen(text));
}

char *test_read(const char *path, size_t *length)
{
    FILE *file = fopen(path, "rb");
    char *bytes;
    long size;

    if (file == NULL)
        fail_msg("cannot read %s: %s", path, strerror(errno));
    fseek(file, 0, SEEK_END);
    size = ftell(file);
    rewind(file);
    assert_true(size >= 0);
    bytes = malloc((size_t)size + 1);
    if (bytes == NULL)
        fail_msg("out of memory");
    assert_int_equal(fread(bytes, 1, (size_t)size, file), (size_t)size);
    fclose(file);
    bytes[size] = '\0';
    if (length != NULL)
        *length = (size_t)size;
    return bytes;
}
