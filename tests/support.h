/* What every test includes: CMocka, the library, and a few things that tests share. */
#ifndef GX_SUPPORT_H
#define GX_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <gexec/gexec.h>

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

enum { TEST_SKIPPED = 77 }; /* the exit status of a test program that could not run */

/* True where GX_TEST_SHORT is set: under a tool that slows everything down, each kind of
 * case runs once, without long repeats, and nothing that the tool disturbs is judged. */
bool test_is_short(void);
/* False under a tool: compute-sanitizer 2025.3 takes accesses of a kernel in the body of
 * a loop or a branch of a graph for wrong at times, also in a program of thirty lines. */
bool test_has_conditions(void);

/* --- statuses --- */

/* Fails the test with the error's message unless `call` gives GX_OK. */
#define assert_ok(call, err) test_ok((call), (err), #call, __FILE__, __LINE__)

/* Fails the test unless `call` gives `expected` and the message holds `text`. Clears
 * `err` before the call. */
#define assert_fails(call, expected, err, text)                                   \
    do {                                                                          \
        gx_error_clear(err);                                                      \
        test_fails((call), (expected), (err), (text), #call, __FILE__, __LINE__); \
    } while (0)

/* Fails the test unless `text` holds `part`; prints both. */
#define assert_has(text, part) test_has((text), (part), __FILE__, __LINE__)

void test_ok(gx_status status, const gx_error *err, const char *call, const char *file,
             int line);
void test_fails(gx_status status, gx_status expected, const gx_error *err,
                const char *text, const char *call, const char *file, int line);
void test_has(const char *text, const char *part, const char *file, int line);

/* --- fresh random numbers --- */

typedef struct test_random {
    uint64_t state;
} test_random;

/* A fresh seed, printed so that a failure can be repeated with GX_TEST_SEED=N. */
uint64_t test_seed(void);
test_random test_random_start(uint64_t seed);
uint64_t test_random_bits(test_random *random);
double test_random_real(test_random *random, double low, double high);
/* In [low, high]. */
int64_t test_random_int(test_random *random, int64_t low, int64_t high);

/* --- numbers --- */

/* |x - reference| / |reference| in the Euclidean norm (|x - reference| where the
 * reference is zero); infinite as soon as one element of `x` is not finite. */
double test_error(const double *x, const double *reference, int64_t n);

/* --- files --- */

/* A folder of this process, made at the first call and removed at its end. */
const char *test_folder(void);
/* "FOLDER/name"; the caller frees. */
char *test_path(const char *name);
/* Writes FOLDER/name and gives its path; the caller frees. */
char *test_write(const char *name, const void *bytes, size_t length);
char *test_write_text(const char *name, const char *text);
/* A whole file with a NUL after its end; the caller frees. Fails the test if unreadable.
 */
char *test_read(const char *path, size_t *length);

#endif
