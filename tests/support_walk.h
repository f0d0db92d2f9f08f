/* A small interpreter for tests of the ops layer: a graph walked node by node with the
 * rows' references, every tensor in double. The real walk is the executor's. */
#ifndef GX_SUPPORT_WALK_H
#define GX_SUPPORT_WALK_H

#include "ops.h"

typedef struct test_walk {
    gx_graph *graph;
    double **data; /* by value id */
    bool exact;    /* do not round what is stored to the declared types */
    uint64_t seed;
} test_walk;

/* Loads a text in which each "$P" is replaced by `precision`; fails the test where it
 * does not load. Parameters, state and inputs are filled from their initialisers. */
test_walk test_walk_parse(const char *text, const char *precision, gx_kind kind,
                          uint64_t seed);
/* Takes a finished graph over. */
test_walk test_walk_of(gx_graph *graph, uint64_t seed);
void test_walk_free(test_walk *walk);

/* One step. Temporaries hold NaN before it, so that what is read unwritten shows. */
void test_walk_step(test_walk *walk);
/* Fails the test where there is no such tensor. */
double *test_walk_tensor(const test_walk *walk, const char *name);
int64_t test_walk_count(const test_walk *walk, const char *name);

/* The diagnostics of a text that must not load, as gx_diagnostics_text gives them; the
 * caller frees. */
char *test_walk_mistakes(const char *text, gx_kind kind);

/* The text with each "$P" replaced; the caller frees. */
char *test_walk_text(const char *text, const char *precision);

#endif
