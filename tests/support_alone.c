/* Each test in a process of its own. */
#include "support_alone.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

static int run_one(const struct CMUnitTest *test)
{
    const struct CMUnitTest tests[] = { *test };

    return cmocka_run_group_tests_name(test->name, tests, NULL, NULL);
}

int test_each_alone(int argc, char **argv, const struct CMUnitTest *tests, size_t n_tests)
{
    size_t n_skipped = 0;
    int n_failed = 0;

    if (argc == 2 && strtoul(argv[1], NULL, 10) < n_tests)
        return run_one(&tests[strtoul(argv[1], NULL, 10)]);
    for (size_t i = 0; i < n_tests; i++) {
        char command[1200];

        snprintf(command, sizeof command, "'%s' %zu", argv[0], i);
        const int status = system(command);
        if (WIFEXITED(status) && WEXITSTATUS(status) == TEST_SKIPPED) {
            n_skipped++;
        } else if (status != 0) {
            n_failed++;
            fprintf(stderr, "%s failed (%d)\n", tests[i].name, status);
        }
    }
    return n_failed != 0 ? n_failed : n_skipped == n_tests ? TEST_SKIPPED : 0;
}
