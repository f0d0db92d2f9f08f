/* Models of tests/data: the good ones load, the bad ones give what stands beside them.
 *
 * NAME.txt holds every mistake that NAME.yaml has, as "line:column: message", in order.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

static gx_status load(const char *path, gx_diagnostics *list, gx_error *err)
{
    gx_graph *graph;
    const gx_status st = gx_graph_load(path, NULL, &graph, list, err);

    if (st != GX_OK)
        assert_null(graph);
    gx_graph_free(graph);
    return st;
}

/* "line:column: message" of each, a line each; the caller frees. */
static char *found(const gx_diagnostics *list)
{
    const size_t n = gx_diagnostics_count(list);
    char *text = calloc(n + 1, GX_MESSAGE_SIZE + 64);

    for (size_t i = 0; i < n; i++) {
        const gx_diagnostic d = gx_diagnostics_at(list, i);

        sprintf(text + strlen(text), "%d:%d: %s\n", d.line, d.column, d.message);
    }
    return text;
}

static bool check_bad(const char *path)
{
    char beside[4096];
    gx_diagnostics *list = gx_diagnostics_create();
    gx_error err;
    const gx_status st = load(path, list, &err);
    char *is = found(list);
    char *should;
    bool good;

    snprintf(beside, sizeof beside, "%.*s.txt", (int)(strlen(path) - strlen(".yaml")),
             path);
    should = test_read(beside, NULL);
    good = st == GX_ERR_MODEL && strcmp(is, should) == 0 &&
           strncmp(err.message, path, strlen(path)) == 0;
    if (!good)
        print_error("%s gave %s and\n%sexpected\n%s", path, gx_status_name(st), is,
                    should);
    free(is);
    free(should);
    gx_diagnostics_free(list);
    return good;
}

static bool check_good(const char *path)
{
    gx_diagnostics *list = gx_diagnostics_create();
    gx_error err;
    const bool good = load(path, list, &err) == GX_OK && gx_diagnostics_count(list) == 0;

    if (!good)
        print_error("%s\n", err.message);
    gx_diagnostics_free(list);
    return good;
}

/* Runs `check` over every model of a folder; fails where there is none. */
static void check_folder(const char *folder, bool (*check)(const char *path))
{
    int n = 0, n_wrong = 0;
    DIR *entries = opendir(folder);

    assert_non_null(entries);
    for (const struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        const char *end = strrchr(entry->d_name, '.');
        char path[4096];

        if (end == NULL || strcmp(end, ".yaml") != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        n++;
        n_wrong += !check(path);
    }
    closedir(entries);
    print_message("%d models in %s\n", n, folder);
    assert_true(n > 0);
    assert_int_equal(n_wrong, 0);
}

static void bad_models_give_the_mistakes_beside_them(void **state)
{
    (void)state;
    check_folder("tests/data/bad", check_bad);
}

static void good_models_load(void **state)
{
    (void)state;
    check_folder("tests/data/good", check_good);
}

static void a_missing_file_is_named(void **state)
{
    gx_error err;

    (void)state;
    assert_fails(load("tests/data/none.yaml", NULL, &err), GX_ERR_READ, &err,
                 "tests/data/none.yaml: No such file");
    assert_fails(load("tests/data", NULL, &err), GX_ERR_READ, &err, "Is a directory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_models_give_the_mistakes_beside_them),
        cmocka_unit_test(good_models_load),
        cmocka_unit_test(a_missing_file_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
