/* Gradients against central differences of the loss, in exact doubles. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "figures.h"
#include "host_tensor.h"
#include "interrupt.h"

/* (L(w + h) - L(w - h)) / 2h is off by about h^2 L''' / 6 and by the rounding of L over
 * h: with h = 1e-5 both are near 1e-10 of a loss of order one. Where a relu bends within
 * h the quotient is wrong and the gradient is not; then a step 16 times smaller decides.
 */
static const double step_h = 1e-5;
static const double smaller_h = 1e-5 / 16;
/* Of the largest gradient of the tensor, and of the loss over the step. */
static const double relative = 1e-4;
static const double of_rounding = 4e-15;

enum { LEFT_OUT_SAMPLES = 32 };

typedef struct probe {
    gx_check *check;
    const gx_snapshot *start;
    const char *name;
    gx_tensor *values; /* of the parameter, as they are at the start */
} probe;

static gx_status loss_at(const probe *p, int64_t i, double shift, double *loss,
                         gx_error *err)
{
    gx_session *const session = &p->check->exact;
    double *const element = (double *)p->values->data + i;
    const double kept = *element;
    double row[GX_MAX_LOGGED];
    gx_status st;

    GX_TRY(gx_state_restore(session->state, p->start, err));
    *element = kept + shift;
    st = gx_state_write(session->state, p->name, p->values, err);
    *element = kept;
    GX_TRY(st);
    GX_TRY(gx_exec_run(p->check->reference, GX_MODE_CPU, 1, err));
    GX_TRY(gx_exec_log(p->check->reference, 1, row, err));
    *loss = row[0];
    return GX_OK;
}

static gx_status difference(const probe *p, int64_t i, double h, double *quotient,
                            double *loss, gx_error *err)
{
    double above, below;

    GX_TRY(loss_at(p, i, h, &above, err));
    GX_TRY(loss_at(p, i, -h, &below, err));
    *quotient = (above - below) / (2 * h);
    *loss = fabs(above);
    return GX_OK;
}

/* A relu at exactly 0, or a max of equal values, bends the loss at the element itself:
 * its slopes to both sides differ, each is the same for a smaller step, and neither they
 * nor their mean is what a gradient has to be. Of a smooth loss the two sides' slopes
 * come together as the step shrinks, faster than each settles. */
static gx_status bends_at(const probe *p, int64_t i, bool *bends, gx_error *err)
{
    const double h[] = { step_h, smaller_h };
    double at, above, below, right[2], left[2];

    GX_TRY(loss_at(p, i, 0, &at, err));
    for (int k = 0; k < 2; k++) {
        GX_TRY(loss_at(p, i, h[k], &above, err));
        GX_TRY(loss_at(p, i, -h[k], &below, err));
        right[k] = (above - at) / h[k];
        left[k] = (at - below) / h[k];
    }
    const double jump = fabs(right[1] - left[1]);
    const double unsettled = fmax(fabs(right[0] - right[1]), fabs(left[0] - left[1]));

    *bends = jump > 4 * of_rounding * fabs(at) / smaller_h && unsettled <= jump / 4;
    return GX_OK;
}

/* Tries element i and keeps it in `row` when it is the worst so far. */
static gx_status try_element(const probe *p, int64_t i, double gradient, double largest,
                             gx_gradient_row *row, gx_error *err)
{
    double quotient, loss, error, allowed;
    bool bends = false;

    GX_TRY(difference(p, i, step_h, &quotient, &loss, err));
    error = fabs(quotient - gradient);
    allowed = relative * largest + of_rounding * loss / step_h;
    if (!(error <= allowed)) {
        GX_TRY(difference(p, i, smaller_h, &quotient, &loss, err));
        error = fabs(quotient - gradient);
        allowed = relative * largest + of_rounding * loss / smaller_h;
        if (!(error <= allowed))
            GX_TRY(bends_at(p, i, &bends, err));
    }
    if (bends) {
        row->n_bends++;
        return GX_OK;
    }
    row->n_elements++;
    if (row->n_elements > 1 && row->ok && error / allowed <= row->error / row->allowed)
        return GX_OK;
    if (!row->ok && error <= allowed)
        return GX_OK;
    row->position = gx_words_position(p->values, i);
    row->gradient = gradient;
    row->difference = quotient;
    row->error = error;
    row->allowed = allowed;
    row->ok = error <= allowed;
    return GX_OK;
}

static gx_tensor tensor_of(const gx_value_info *value)
{
    gx_tensor tensor = { .dtype = GX_F64, .rank = value->rank };

    memcpy(tensor.dim, value->dim, sizeof tensor.dim);
    return tensor;
}

static double largest_of(const gx_tensor *tensor)
{
    double largest = 0;

    for (int64_t i = 0; i < gx_count(tensor); i++)
        largest = fmax(largest, fabs(gx_host_tensor_at(tensor, i)));
    return largest;
}

gx_gradient_kind gx_check_gradient_kind(const gx_check *check, size_t value)
{
    const gx_graph *const graph = check->exact.graph[GX_PROGRAM_TRAIN];
    const gx_value_info info = gx_graph_value(graph, value);
    const gx_tensor shape = tensor_of(&info);
    char name[256];
    ptrdiff_t at;

    if (!info.trainable || gx_count(&shape) == 0 || !gx_graph_logged(graph, 0))
        return GX_GRADIENT_NONE;
    if (gx_is_left_out(graph, value))
        return GX_GRADIENT_ZERO;
    snprintf(name, sizeof name, "%s.grad", info.name);
    at = gx_graph_find(graph, name);
    if (at >= 0 && gx_graph_value(graph, (size_t)at).is_output)
        return GX_GRADIENT_NAMED;
    return gx_graph_updates(graph, value) ? GX_GRADIENT_UNNAMED : GX_GRADIENT_NONE;
}

size_t gx_check_count_gradients(const gx_check *check)
{
    const gx_graph *const graph = check->exact.graph[GX_PROGRAM_TRAIN];
    size_t n = 0;

    for (size_t i = 0; i < gx_graph_value_count(graph); i++) {
        const gx_gradient_kind kind = gx_check_gradient_kind(check, i);

        n += kind == GX_GRADIENT_NAMED || kind == GX_GRADIENT_ZERO;
    }
    return n;
}

static gx_status try_parameter(gx_check *check, const gx_snapshot *start,
                               const gx_value_info *parameter, const gx_tensor *gradient,
                               bool left_out, uint64_t *random, gx_error *err)
{
    gx_gradient_row *grown =
        realloc(check->gradients, (check->n_gradients + 1) * sizeof *grown);
    const int64_t n = gx_count(gradient);
    /* That nothing depends on a parameter is told by no few elements: a relu hides some.
     */
    const int64_t wanted = left_out && check->args->samples < LEFT_OUT_SAMPLES
                               ? LEFT_OUT_SAMPLES
                               : check->args->samples;
    const int64_t samples = wanted < n ? wanted : n;
    const double largest = largest_of(gradient);
    gx_tensor values;
    gx_status st = GX_OK;

    if (!grown)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    check->gradients = grown;
    gx_gradient_row *const row = &check->gradients[check->n_gradients++];
    *row = (gx_gradient_row){ .parameter = *parameter, .left_out = left_out, .ok = true };
    values = *gradient;
    GX_TRY(gx_host_tensor_alloc(&values, err));
    st = gx_state_restore(check->exact.state, start, err);
    if (st == GX_OK)
        st = gx_state_read(check->exact.state, parameter->name, &values, err);
    const probe p = { check, start, parameter->name, &values };
    for (int64_t s = 0; s < samples && st == GX_OK && !gx_interrupted(); s++) {
        /* All of them where there are few, else a random place in each stretch. */
        const int64_t first = s * n / samples;
        const int64_t behind = (s + 1) * n / samples;
        const int64_t i =
            first + (int64_t)(gx_random_next(random) % (uint64_t)(behind - first));

        st = try_element(&p, i, gx_host_tensor_at(gradient, i), largest, row, err);
    }
    free(values.data);
    row->complete = row->n_elements + row->n_bends == samples;
    if (row->n_elements + row->n_bends ==
        0) /* interrupted before the first: nothing can be said */
        check->n_gradients--;
    return st;
}

/* What the loss is multiplied by where its gradient is taken: 1 in most models. */
static gx_status loss_scale(const gx_check *check, double *scale, gx_error *err)
{
    gx_tensor cell = { .dtype = GX_F64, .data = scale };

    *scale = 1;
    if (gx_graph_find(check->exact.graph[GX_PROGRAM_TRAIN], "gexec.scale") < 0)
        return GX_OK;
    return gx_state_read(check->exact.state, "gexec.scale", &cell, err);
}

/* Reads "NAME.grad" of a parameter as the step at the start leaves it, by the loss as it
 * is. */
static gx_status read_gradient(gx_check *check, const gx_snapshot *start,
                               const gx_value_info *parameter, gx_tensor *gradient,
                               gx_error *err)
{
    const gx_graph *const graph = check->exact.graph[GX_PROGRAM_TRAIN];
    double scale;
    char name[256];
    gx_value_info value;

    snprintf(name, sizeof name, "%s.grad", parameter->name);
    value = gx_graph_value(graph, (size_t)gx_graph_find(graph, name));
    GX_TRY(gx_state_restore(check->exact.state, start, err));
    GX_TRY(loss_scale(check, &scale, err));
    GX_TRY(gx_exec_run(check->reference, GX_MODE_CPU, 1, err));
    GX_TRY(gx_host_tensor_read(check->reference, &value, GX_F64, gradient, err));
    for (int64_t i = 0; i < gx_count(gradient); i++)
        ((double *)gradient->data)[i] /= scale;
    return GX_OK;
}

static gx_status zero_gradient(const gx_value_info *parameter, gx_tensor *gradient,
                               gx_error *err)
{
    *gradient = tensor_of(parameter);
    GX_TRY(gx_host_tensor_alloc(gradient, err));
    memset(gradient->data, 0, (size_t)gx_count(gradient) * sizeof(double));
    return GX_OK;
}

gx_status gx_check_gradients(gx_check *check, gx_error *err)
{
    const gx_graph *const graph = check->exact.graph[GX_PROGRAM_TRAIN];
    uint64_t random = check->args->seed;
    gx_snapshot *start = NULL;
    gx_status st;

    if (check->args->samples == 0 || gx_interrupted() ||
        gx_check_count_gradients(check) == 0)
        return GX_OK;
    GX_TRY(gx_state_save(check->exact.state, &start, err));
    st = GX_OK;
    for (size_t i = 0; i < gx_graph_value_count(graph) && st == GX_OK; i++) {
        const gx_value_info value = gx_graph_value(graph, i);
        const gx_gradient_kind kind = gx_check_gradient_kind(check, i);
        gx_tensor gradient = { 0 };

        if ((kind != GX_GRADIENT_NAMED && kind != GX_GRADIENT_ZERO) || gx_interrupted())
            continue;
        st = kind == GX_GRADIENT_ZERO
                 ? zero_gradient(&value, &gradient, err)
                 : read_gradient(check, start, &value, &gradient, err);
        if (st == GX_OK)
            st = try_parameter(check, start, &value, &gradient, kind == GX_GRADIENT_ZERO,
                               &random, err);
        free(gradient.data);
    }
    gx_snapshot_free(start);
    return st;
}
