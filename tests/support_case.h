/* A sample of a row of the catalogue in one precision, the truth about it, and programs
 * that run it. Shared by tests that walk the catalogue; no CMocka in it. */
#ifndef GX_SUPPORT_CASE_H
#define GX_SUPPORT_CASE_H

#include "exec_model.h"
#include "support.h"

enum { TEST_PRECISIONS = GX_N_PRECISIONS, TEST_MARKS = 2 };
extern const char *const test_precisions[TEST_PRECISIONS];
/* Steps after which values are compared. */
extern const int64_t test_marks[TEST_MARKS];

typedef struct test_case {
    char name[96]; /* "gemm[3] tf32" */
    const char *row;
    gx_precision precision;
    gx_graph *graph;
    uint64_t seed;
    double tolerance; /* of the whole model, after one step */
    int32_t *values;  /* ids of what is compared: outputs, parameters, state */
    size_t n_values, n_numbers;
    double *truth[TEST_MARKS];     /* all values, one behind the other */
    double *condition[TEST_MARKS]; /* by value: how far roundings move the truth */
    bool is_closer;                /* found with more roundings than at first */
} test_case;

/* The samples of a row, ending with NULL; NULL where it has none. */
const char *const *test_case_samples(const gx_op *op);

/* Loads the sample and finds the truth: the CPU in exact doubles, from the numbers that
 * the declared types hold. */
gx_status test_case_open(test_case *c, const gx_op *op, size_t index, const char *sample,
                         gx_precision precision, uint64_t seed,
                         gx_error *err) GX_MUST_CHECK;
void test_case_close(test_case *c);

/* Elements of compared value i. */
int64_t test_case_count(const test_case *c, size_t i);
/* How far value i may be off at a mark, relatively. */
double test_case_allowed(const test_case *c, size_t i, int mark);
/* Moves the truth by many more roundings: few may miss the one that decides the sign of
 * something small. False where that was done before. */
bool test_case_look_closer(test_case *c);

/* Room for all values at each mark. */
gx_status test_case_alloc(const test_case *c, double *numbers[TEST_MARKS],
                          gx_error *err) GX_MUST_CHECK;
void test_case_free(double *numbers[TEST_MARKS]);

typedef struct test_program {
    gx_state *state;
    gx_plan *plan;
    gx_exec *exec;
} test_program;

/* The plan alone, from which the rest is made; or all of it. On an error nothing is left.
 */
gx_status test_program_plan(const test_case *c, const gx_plan_options *options,
                            test_program *p, gx_error *err) GX_MUST_CHECK;
gx_status test_program_make(const test_case *c, bool exact, test_program *p,
                            gx_error *err) GX_MUST_CHECK;
gx_status test_program_open(const test_case *c, const gx_plan_options *options,
                            bool exact, test_program *p, gx_error *err) GX_MUST_CHECK;
void test_program_close(test_program *p);
/* Runs up to each mark and reads every compared value there. */
gx_status test_program_run(const test_case *c, test_program *p, gx_mode mode,
                           double *const numbers[TEST_MARKS],
                           gx_error *err) GX_MUST_CHECK;

#endif
