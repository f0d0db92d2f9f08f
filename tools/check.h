/* A step held against the same step in exact doubles, and gradients against differences.
 */
#ifndef GX_CHECK_H
#define GX_CHECK_H

#include "session.h"

/* One tensor of one program against the reference. */
typedef struct gx_check_row {
    const char *program; /* "cpu", "eager", "graph" */
    gx_value_info value;
    double error, allowed;  /* normwise: root of the sum of squares */
    double norm;            /* of the reference */
    gx_words position;      /* of the worst element */
    double found, expected; /* its values */
    bool ok;
} gx_check_row;

/* The gradient of one parameter against central differences of the loss. */
typedef struct gx_gradient_row {
    gx_value_info parameter;
    bool left_out;               /* nothing updates it: its gradient is held to be 0 */
    int64_t n_elements;          /* that were tried */
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
    double rate; /* the largest of an update */
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

/* Opens the programs on one state and fills rows. */
gx_status gx_check_programs(gx_check *check, int device, gx_error *err) GX_MUST_CHECK;
/* Fills gradients; after gx_check_programs. */
gx_status gx_check_gradients(gx_check *check, gx_error *err) GX_MUST_CHECK;
#endif
