/* Graphs made by hand, of ops that mean nothing, for tests of selection and layout. */
#ifndef GX_SUPPORT_PLAN_H
#define GX_SUPPORT_PLAN_H

#include "plan.h"
#include "support.h"

/* Operands of the ops below: three that are read and two that are made, or one that is
 * updated in place and one that is read. */
enum { TEST_A, TEST_B, TEST_C, TEST_P, TEST_Q };
enum { TEST_W, TEST_G };
extern const gx_op test_make;   /* "make" */
extern const gx_op test_bend;   /* "bend": operands as make */
extern const gx_op test_update; /* "update" */

/* Of whatever nodes a test puts into its units. */
extern const gx_alternative test_storing, test_eliding;

typedef struct test_graph {
    gx_graph graph;
    gx_plan plan;
} test_graph;

test_graph *test_graph_new(void);
void test_graph_free(test_graph *t);

/* A vector of n f32. */
int32_t test_value(test_graph *t, gx_value_kind kind, int64_t n);
/* `args`: value ids, -1 for absent, as many as the op has. */
int32_t test_node(test_graph *t, const gx_op *op, gx_phase phase, const int32_t *args);
/* Sets producers and numbers of readers, and starts the plan with no units. */
void test_graph_finish(test_graph *t);
/* Adds a unit of the next n nodes. */
gx_unit *test_unit(test_graph *t, int32_t n, const gx_alternative *alternative);
/* A storing unit of each node. */
void test_units(test_graph *t);

/* forward: h = x w; backward: dh, then dw (lane 1) and dx; optimizer: w. Units of one. */
test_graph *test_small_training(void);

#endif
