/* A step held against the same step in exact doubles, and gradients against differences.
 */
#ifndef GX_CHECK_H
#define GX_CHECK_H

#include "session.h"

/* What values are rounded to, from the finest; tf32: operands of products alone. */
typedef enum gx_coarseness {
    GX_COARSE_F32,
    GX_COARSE_TF32,
    GX_COARSE_F16,
    GX_COARSE_BF16
} gx_coarseness;

/* One tensor of one program against the reference. */
typedef struct gx_check_row {
    const char *program; /* "cpu", "eager", "graph" */
    size_t index;        /* of the value in the graph of training */
    gx_value_info value;
    double error, allowed;  /* normwise: root of the sum of squares */
    double norm;            /* of the reference */
    double largest;         /* magnitude of an element of the reference */
    double worst;           /* how far an element is off, at most */
    gx_words position;      /* of the worst element */
    double found, expected; /* its values */
    bool by_rounding;       /* ok for what rounding was measured to make of it */
    bool ok;
} gx_check_row;

/* What rounding may make of one tensor, as measured; zeros where it was not. */
typedef struct gx_rounding {
    double norm, largest; /* of the elements' errors: root of the sum of squares, most */
} gx_rounding;

/* The gradient of one parameter against central differences of the loss. */
typedef struct gx_gradient_row {
    gx_value_info parameter;
    bool left_out;               /* nothing updates it: its gradient is held to be 0 */
    int64_t n_elements;          /* that were held against a difference */
    int64_t n_bends;             /* left out: the loss bends there, has no derivative */
    bool complete;               /* all that were to be tried: no interrupt */
    gx_words position;           /* of the worst */
    double gradient, difference; /* there */
    double error, allowed;       /* there */
    bool ok;
} gx_gradient_row;

typedef struct gx_check {
    const gx_args *args;
    gx_session exact, rounded, device; /* device: closed without a GPU */
    gx_exec *reference;
    gx_coarseness coarsest; /* that the programs round to */
    double rate;            /* the largest of an update */
    gx_rounding *rounding;  /* by value, on the CPU and on a GPU; NULL: none measured */
    gx_check_row *rows;
    size_t n_rows;
    gx_gradient_row *gradients;
    size_t n_gradients;
    size_t n_planned; /* comparisons, rows and gradients, when nothing interrupts */
    bool interrupted;
} gx_check;

/* What becomes of a value's gradient. */
typedef enum gx_gradient_kind {
    GX_GRADIENT_NONE,   /* no trainable parameter, or nothing is derived for it */
    GX_GRADIENT_NAMED,  /* "NAME.grad" is held against differences */
    GX_GRADIENT_ZERO,   /* no op updates the parameter: differences must be 0 */
    GX_GRADIENT_UNNAMED /* updated, but by a gradient of another name: not found */
} gx_gradient_kind;

gx_gradient_kind gx_check_gradient_kind(const gx_check *check, size_t value);
/* Gradients that can be held against differences. */
size_t gx_check_count_gradients(const gx_check *check);

/* The coarsest of a model's precision and the types of its tensors. */
gx_coarseness gx_check_coarsest(const gx_graph *graph);
/* The exact state takes the values that the rounded one holds. */
gx_status gx_check_copy_state(gx_check *check, gx_error *err) GX_MUST_CHECK;
/* Steps an exec once and waits. */
gx_status gx_check_step(gx_exec *exec, gx_mode mode, gx_error *err) GX_MUST_CHECK;
/* True for what is held against the reference. */
bool gx_check_compares(const gx_value_info *value);
/* Decides `allowed`, `by_rounding` and `ok` of a row. */
void gx_check_judge(const gx_check *check, gx_check_row *row);
/* Measures what rounding makes of the tensors that failed; judges again. `rounded_start`
 * is the state from which `rounded` made its step. */
gx_status gx_check_rounding(gx_check *check, gx_exec *rounded,
                            const gx_snapshot *rounded_start,
                            gx_error *err) GX_MUST_CHECK;

/* Opens the programs on one state and fills rows. */
gx_status gx_check_programs(gx_check *check, int device, gx_error *err) GX_MUST_CHECK;
/* Fills gradients; after gx_check_programs. */
gx_status gx_check_gradients(gx_check *check, gx_error *err) GX_MUST_CHECK;
#endif
