/* Files that take the place of others: what stands there already, links, modes. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "beside.h"
#include "support.h"

static const char words[] = "new words";

static gx_status try_words(const char *path, gx_error *err)
{
    gx_beside to;
    const gx_status st = gx_beside_open(&to, path, err);

    if (st == GX_OK)
        fputs(words, to.file);
    return gx_beside_close(&to, st, err);
}

static void write_words(const char *path)
{
    gx_error err = { 0 };

    assert_ok(try_words(path, &err), &err);
}

static void assert_holds_words(const char *path)
{
    size_t length;
    char *text = test_read(path, &length);

    assert_string_equal(text, words);
    free(text);
}

static void assert_is_link(const char *path)
{
    struct stat there;

    assert_int_equal(lstat(path, &there), 0);
    assert_true(S_ISLNK(there.st_mode));
}

static void a_link_is_written_through(void **state)
{
    char *end = test_write_text("end", "older words, which are longer");
    char *first = test_path("first"), *second = test_path("second");

    (void)state;
    assert_int_equal(symlink("second", first), 0); /* from where the link lies */
    assert_int_equal(symlink(end, second), 0);
    write_words(first);
    assert_is_link(first);
    assert_is_link(second);
    assert_holds_words(end);
    /* One that leads to nothing too. */
    unlink(end);
    write_words(first);
    assert_is_link(first);
    assert_holds_words(end);
    unlink(first);
    unlink(second);
    unlink(end);
    free(second);
    free(first);
    free(end);
}

static void a_ring_of_links_is_an_error(void **state)
{
    char *path = test_path("ring");
    gx_error err = { 0 };

    (void)state;
    assert_int_equal(symlink("ring", path), 0);
    assert_fails(try_words(path, &err), GX_ERR_WRITE, &err, strerror(ELOOP));
    unlink(path);
    free(path);
}

static void the_mode_of_a_file_stays(void **state)
{
    static const mode_t modes[] = { 0600, 0640, 0666, 0755 };
    struct stat there;

    (void)state;
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        char *path = test_write_text("mode", "older");

        assert_int_equal(chmod(path, modes[i]), 0);
        write_words(path);
        assert_int_equal(stat(path, &there), 0);
        assert_int_equal(there.st_mode & 07777, modes[i]);
        assert_holds_words(path);
        unlink(path);
        free(path);
    }
}

static void a_new_file_has_the_usual_mode(void **state)
{
    char *path = test_path("new");
    const mode_t mask = umask(027);
    struct stat there;

    (void)state;
    write_words(path);
    umask(mask);
    assert_int_equal(stat(path, &there), 0);
    assert_int_equal(there.st_mode & 07777, 0640);
    unlink(path);
    free(path);
}

static void a_pipe_is_written_to(void **state)
{
    char *path = test_path("pipe"), bytes[sizeof words] = "";
    struct stat there;

    (void)state;
    assert_int_equal(mkfifo(path, 0600), 0);
    const int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    write_words(path);
    assert_int_equal(lstat(path, &there), 0);
    assert_true(S_ISFIFO(there.st_mode));
    assert_int_equal(read(fd, bytes, sizeof bytes - 1), sizeof bytes - 1);
    assert_string_equal(bytes, words);
    close(fd);
    unlink(path);
    free(path);
}

/* Standard output goes to the file: what was printed, and what still will be, stays. */
static void what_the_own_output_holds_stays(void **state)
{
    char *path = test_path("out");
    const int kept = dup(STDOUT_FILENO);
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    size_t length;

    (void)state;
    assert_true(kept >= 0 && fd >= 0);
    fflush(stdout);
    dup2(fd, STDOUT_FILENO);
    const bool before = write(STDOUT_FILENO, "a ", 2) == 2;
    gx_error err = { 0 };
    const gx_status st = try_words(path, &err);
    const bool after = write(STDOUT_FILENO, " z", 2) == 2;
    dup2(kept, STDOUT_FILENO);
    close(kept);
    close(fd);
    assert_ok(st, &err);
    assert_true(before && after);
    char *text = test_read(path, &length);
    assert_string_equal(text, "a new words z");
    free(text);
    unlink(path);
    free(path);
}

static void of_a_failure_nothing_is_left(void **state)
{
    char *path = test_write_text("kept", "older");
    gx_beside to;
    gx_error err = { 0 };
    struct stat there;
    size_t length;

    (void)state;
    assert_ok(gx_beside_open(&to, path, &err), &err);
    char *name = strdup(to.name);
    assert_non_null(name);
    fputs(words, to.file);
    assert_int_equal(gx_beside_close(&to, GX_ERR_DATA, &err), GX_ERR_DATA);
    assert_int_not_equal(stat(name, &there), 0);
    char *text = test_read(path, &length);
    assert_string_equal(text, "older");
    free(text);
    free(name);
    unlink(path);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_link_is_written_through),
        cmocka_unit_test(a_ring_of_links_is_an_error),
        cmocka_unit_test(the_mode_of_a_file_stays),
        cmocka_unit_test(a_new_file_has_the_usual_mode),
        cmocka_unit_test(a_pipe_is_written_to),
        cmocka_unit_test(what_the_own_output_holds_stays),
        cmocka_unit_test(of_a_failure_nothing_is_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
