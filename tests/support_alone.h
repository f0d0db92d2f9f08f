/* Tests of what a process may do only once: each runs in a process of its own. */
#ifndef GX_SUPPORT_ALONE_H
#define GX_SUPPORT_ALONE_H

#include "support.h"

/* What main returns: runs the program again for each test, with the test's number as its
 * argument, and given one, that test. TEST_SKIPPED where each of them said so. */
int test_each_alone(int argc, char **argv, const struct CMUnitTest *tests,
                    size_t n_tests);

#endif
