/* What a tensor may be off by: a share of the reference, and what rounding is measured to
 * make of it where the exact result is near 0 because its terms cancel. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "figures.h"
#include "host_tensor.h"
#include "interrupt.h"

/* How far a whole step may be from the exact one, as a share of the reference's norm. A
 * chain of tens of ops adds roundings of 2^-24 (f32), 2^-11 (products of tf32 operands),
 * 2^-12 (every stored f16) and 2^-9 (every stored bf16); squares in the optimizer's state
 * double them. */
static const double tolerance[] = {
    [GX_COARSE_F32] = 2e-5,
    [GX_COARSE_TF32] = 2e-2,
    [GX_COARSE_F16] = 2e-2,
    [GX_COARSE_BF16] = 8e-2,
};
/* Some units in the last place of a stored value: every rounding is drawn anew, and the
 * step is nearly the same. On the CPU tf32 is stored, and multiplied, as f32. */
static const double nudge[] = {
    [GX_COARSE_F32] = 0x1p-20,
    [GX_COARSE_TF32] = 0x1p-20,
    [GX_COARSE_F16] = 0x1p-8,
    [GX_COARSE_BF16] = 0x1p-5,
};
/* What a GPU rounds operands of products to, over what the CPU does. */
static const double tf32_over_f32 = 0x1p13;

/* An error of rounding is a draw: as many more are made, and one that is this much larger
 * than the largest of them has another cause. */
enum { N_DRAWS = 6, DRAWS_MARGIN = 8 };

/* One element may be off by more than the norm allows for, but not by any amount. */
static double element_share(double share)
{
    return fmin(50 * share, 0.5);
}

gx_coarseness gx_check_coarsest(const gx_graph *graph)
{
    const char *const precision = gx_graph_precision(graph);
    gx_coarseness coarsest = strcmp(precision, "bf16") == 0   ? GX_COARSE_BF16
                             : strcmp(precision, "f16") == 0  ? GX_COARSE_F16
                             : strcmp(precision, "tf32") == 0 ? GX_COARSE_TF32
                                                              : GX_COARSE_F32;

    /* A cast, or a tensor of its own type, may be coarser than the model's precision. */
    for (size_t i = 0; i < gx_graph_value_count(graph); i++) {
        const gx_dtype dtype = gx_graph_value(graph, i).dtype;

        if (dtype == GX_BF16)
            coarsest = GX_COARSE_BF16;
        else if (dtype == GX_F16 && coarsest < GX_COARSE_F16)
            coarsest = GX_COARSE_F16;
    }
    return coarsest;
}

bool gx_check_compares(const gx_value_info *value)
{
    return value->kind == GX_VALUE_PARAM || value->kind == GX_VALUE_STATE ||
           (value->kind == GX_VALUE_TEMP && value->is_output);
}

/* A parameter moves by the rate however little its gradient is, under Adam. */
static double rate_of(const gx_check *check, const gx_value_info *value)
{
    return value->kind == GX_VALUE_PARAM ? check->rate : 0;
}

static bool is_within(const gx_check_row *row, double of_element)
{
    return row->error <= row->allowed && row->worst <= of_element;
}

void gx_check_judge(const gx_check *check, gx_check_row *row)
{
    const double share = tolerance[check->coarsest];
    const double rate = rate_of(check, &row->value);
    gx_tensor shape = { .rank = row->value.rank };
    double of_element;

    memcpy(shape.dim, row->value.dim, sizeof shape.dim);
    row->allowed = 0;
    row->by_rounding = false;
    if (row->value.dtype == GX_I32) {
        row->ok = row->error == 0;
        return;
    }
    /* A first step of Adam moves an element by the rate, whatever its gradient: where the
     * gradient is near zero rounding decides the direction. As large a share of the
     * elements may go the other way as the tolerance says. */
    row->allowed =
        share * row->norm + 1e-12 + 2 * rate * sqrt(share * (double)gx_count(&shape));
    of_element = element_share(share) * row->largest + 2 * rate + 1e-12;
    row->ok = is_within(row, of_element);
    if (row->ok || !check->rounding)
        return;
    const bool on_gpu = strcmp(row->program, "cpu") != 0;
    const gx_rounding *const rounding = &check->rounding[2 * row->index + on_gpu];

    row->allowed += rounding->norm;
    row->ok = is_within(row, of_element + rounding->largest);
    row->by_rounding = row->ok;
}

/* --- measuring --- */

/* The errors of one tensor, element by element. */
typedef struct draws {
    size_t index;
    gx_value_info value;
    double *first;  /* at the start itself */
    double *spread; /* how far from that they were at nudged starts, at most */
} draws;

/* What failed by a finite amount; a NaN is no rounding. False: out of memory. */
static bool list_failed(const gx_check *check, draws **list, size_t *n)
{
    *list = calloc(check->n_rows + 1, sizeof **list);
    *n = 0;
    for (size_t i = 0; i < check->n_rows && *list; i++) {
        const gx_check_row *const row = &check->rows[i];
        bool is_listed = row->ok || row->value.dtype == GX_I32 || !isfinite(row->error);

        for (size_t k = 0; k < *n && !is_listed; k++)
            is_listed = (*list)[k].index == row->index;
        if (!is_listed)
            (*list)[(*n)++] = (draws){ .index = row->index, .value = row->value };
    }
    return *list;
}

static void free_draws(draws *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(list[i].first);
        free(list[i].spread);
    }
    free(list);
}

/* Moves every parameter of the rounded state by a random part of the nudge. */
static gx_status nudge_state(gx_check *check, uint64_t *random, gx_error *err)
{
    const gx_graph *const graph = check->exact.graph[GX_PROGRAM_TRAIN];
    const double most = nudge[check->coarsest];

    for (size_t i = 0; i < gx_graph_value_count(graph); i++) {
        const gx_value_info value = gx_graph_value(graph, i);
        gx_tensor tensor = { .dtype = GX_F64, .rank = value.rank };
        gx_status st;

        if (value.kind != GX_VALUE_PARAM || value.dtype == GX_I32)
            continue;
        memcpy(tensor.dim, value.dim, sizeof tensor.dim);
        GX_TRY(gx_host_tensor_alloc(&tensor, err));
        st = gx_state_read(check->rounded.state, value.name, &tensor, err);
        for (int64_t k = 0; k < gx_count(&tensor) && st == GX_OK; k++)
            ((double *)tensor.data)[k] *=
                1 + most * (0x1p-63 * (double)gx_random_next(random) - 1);
        if (st == GX_OK)
            st = gx_state_write(check->rounded.state, value.name, &tensor, err);
        free(tensor.data);
        GX_TRY(st);
    }
    return GX_OK;
}

static gx_status read_draw(gx_check *check, gx_exec *rounded, draws *d, gx_error *err)
{
    gx_tensor found = { 0 };
    gx_tensor expected = { 0 };
    gx_status st = gx_host_tensor_read(rounded, &d->value, GX_F64, &found, err);
    const bool is_first = !d->first;

    if (st == GX_OK)
        st = gx_host_tensor_read(check->reference, &d->value, GX_F64, &expected, err);
    if (st == GX_OK && is_first) {
        d->first = calloc((size_t)gx_count(&found) + 1, sizeof *d->first);
        d->spread = calloc((size_t)gx_count(&found) + 1, sizeof *d->spread);
        if (!d->first || !d->spread)
            st = GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    }
    for (int64_t i = 0; i < gx_count(&found) && st == GX_OK; i++) {
        const double off = gx_host_tensor_at(&found, i) - gx_host_tensor_at(&expected, i);

        if (is_first)
            d->first[i] = off;
        else
            d->spread[i] = fmax(d->spread[i], fabs(off - d->first[i]));
    }
    free(found.data);
    free(expected.data);
    return st;
}

static gx_status draw_once(gx_check *check, gx_exec *rounded, const gx_snapshot *start,
                           uint64_t *random, draws *list, size_t n, gx_error *err)
{
    GX_TRY(gx_state_restore(check->rounded.state, start, err));
    if (random)
        GX_TRY(nudge_state(check, random, err));
    GX_TRY(gx_check_copy_state(check, err));
    GX_TRY(gx_check_step(rounded, GX_MODE_CPU, err));
    GX_TRY(gx_check_step(check->reference, GX_MODE_CPU, err));
    for (size_t i = 0; i < n; i++)
        GX_TRY(read_draw(check, rounded, &list[i], err));
    return GX_OK;
}

/* An overflow, which is no rounding, allows nothing. */
static gx_rounding sum_up(const gx_check *check, const draws *d, bool on_gpu)
{
    const double scale = on_gpu && check->coarsest == GX_COARSE_TF32 ? tf32_over_f32 : 1;
    const double rate = rate_of(check, &d->value);
    const double most = rate > 0 ? 2 * rate : INFINITY;
    gx_tensor shape = { .rank = d->value.rank };
    gx_rounding sum = { 0, 0 };

    memcpy(shape.dim, d->value.dim, sizeof shape.dim);
    for (int64_t i = 0; i < gx_count(&shape); i++) {
        const double element = fmin(DRAWS_MARGIN * scale * d->spread[i], most);

        sum.norm += element * element;
        sum.largest = fmax(sum.largest, element);
    }
    sum.norm = sqrt(sum.norm);
    return isfinite(sum.norm) ? sum : (gx_rounding){ 0, 0 };
}

gx_status gx_check_rounding(gx_check *check, gx_exec *rounded,
                            const gx_snapshot *rounded_start, gx_error *err)
{
    const size_t n_values = gx_graph_value_count(check->exact.graph[GX_PROGRAM_TRAIN]);
    uint64_t random = check->args->seed;
    draws *list;
    size_t n;
    gx_status st = GX_OK;

    if (!list_failed(check, &list, &n))
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    if (n > 0) {
        check->rounding = calloc(2 * n_values + 1, sizeof *check->rounding);
        if (!check->rounding)
            st = GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
        for (int k = 0; k <= N_DRAWS && st == GX_OK && !gx_interrupted(); k++)
            st = draw_once(check, rounded, rounded_start, k ? &random : NULL, list, n,
                           err);
        for (size_t i = 0; i < n && st == GX_OK && !gx_interrupted(); i++)
            for (int on_gpu = 0; on_gpu < 2; on_gpu++)
                check->rounding[2 * list[i].index + (size_t)on_gpu] =
                    sum_up(check, &list[i], on_gpu);
        for (size_t i = 0; i < check->n_rows && st == GX_OK; i++)
            gx_check_judge(check, &check->rows[i]);
    }
    free_draws(list, n);
    return st;
}
