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
    int64_t n_elements;          /* that were tried */
    gx_words position;           /* of the worst */
    double gradient, difference; /* there */
    double error, allowed;       /* there */
    bool ok;
} gx_gradient_row;

typedef struct gx_check {
    const gx_args *args;
    gx_session exact, rounded, device; /* device: closed without a GPU */
    gx_exec *reference;
    gx_check_row *rows;
    size_t n_rows;
    gx_gradient_row *gradients;
    size_t n_gradients;
    bool interrupted;
} gx_check;

/* Opens the programs on one state and fills rows. */
gx_status gx_check_programs(gx_check *check, int device, gx_error *err) GX_MUST_CHECK;
/* Fills gradients; after gx_check_programs. */
gx_status gx_check_gradients(gx_check *check, gx_error *err) GX_MUST_CHECK;
bool gx_check_passed(const gx_check *check);
void gx_check_free(gx_check *check);

void gx_check_print(const gx_check *check, FILE *out);
gx_status gx_check_write_json(const gx_check *check, gx_error *err) GX_MUST_CHECK;

#endif
