/* Samples of the catalogue's rows, and the truth about them. */
#include "support_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "builder.h"

enum { N_DISTURBED = 4, MORE_DISTURBED = 32 };

const char *const test_precisions[TEST_PRECISIONS] = { "f32", "tf32", "bf16", "f16" };
const int64_t test_marks[TEST_MARKS] = { 1, 3 };

/* Half a unit in the last place of what products read. */
static const double roundoff[TEST_PRECISIONS] = { 0x1p-24, 0x1p-11, 0x1p-9, 0x1p-12 };

/* Where a result nearly cancels, or hangs on the sign of something small, no fixed
 * tolerance fits. So the truth is run again with every number that is stored moved by up
 * to two roundings, and what comes of it counts a few times. */
static const double DISTURBED_ROUNDINGS = 2;
static const double CONDITION_FACTOR = 4;

/* --- samples --- */

/* A gather reads a data set, which is a file, so its samples are here. */
#define GATHER(batch, more)                                                  \
    "gexec: 1\nname: sample\nprecision: $P\ndims: {batch: " batch "}\n"      \
    "data: {x: rows.npy, y: labels.npy, split: split.npy" more "}\n"         \
    "inputs:\n  x: {shape: [batch, 3]}\n  y: {shape: [batch], dtype: i32}\n" \
    "ops:\n  - {op: relu, name: r, x: x}\noutputs: [x, y, r]\n"

static const char *const gather_samples[] = {
    GATHER("1", ""),
    GATHER("4", ", shuffle: true"),
    GATHER("4", ", shuffle: true, drop_last: true"),
    GATHER("300", ", shuffle: true"),
    NULL,
};

/* 700 rows, a seventh of them held out. */
static bool write_gather_data(void)
{
    enum { ROWS = 700 };
    static float rows[ROWS * 3];
    static int32_t labels[ROWS], split[ROWS];
    static const char *const names[] = { "rows.npy", "labels.npy", "split.npy" };
    const gx_tensor files[] = {
        { .dtype = GX_F32, .rank = 2, .dim = { ROWS, 3 }, .data = rows },
        { .dtype = GX_I32, .rank = 1, .dim = { ROWS }, .data = labels },
        { .dtype = GX_I32, .rank = 1, .dim = { ROWS }, .data = split },
    };
    bool written = true;

    for (int i = 0; i < ROWS; i++) {
        for (int k = 0; k < 3; k++)
            rows[3 * i + k] = (float)(i * 3 + k) - 1000;
        labels[i] = i % 10;
        split[i] = i % 7 == 3;
    }
    for (int i = 0; i < 3; i++) {
        char *path = test_path(names[i]);

        written = gx_npy_write(path, &files[i], NULL) == GX_OK && written;
        free(path);
    }
    return written;
}

const char *const *test_case_samples(const gx_op *op)
{
    if (strcmp(op->name, "gather") == 0)
        return write_gather_data() ? gather_samples : NULL;
    return op->samples && op->samples[0] ? op->samples : NULL;
}

static char *with_precision(const char *sample, const char *precision)
{
    const char *mark = strstr(sample, "$P");
    const size_t size = strlen(sample) + strlen(precision) + 1;
    char *text = malloc(size);

    if (text)
        snprintf(text, size, "%.*s%s%s",
                 mark ? (int)(mark - sample) : (int)strlen(sample), sample,
                 mark ? precision : "", mark ? mark + 2 : "");
    return text;
}

/* --- values --- */

/* Errors of one op go through the others, so each kind of op that stands in the model
 * adds its tolerance to that of the row. */
static double model_tolerance(const gx_graph *graph, const gx_op *row,
                              gx_precision precision)
{
    double sum = row->tolerance[precision];

    for (size_t k = 0; k < gx_op_count(); k++) {
        const gx_op *op = gx_op_at(k);
        bool stands = false;

        for (size_t i = 0; i < graph->n_nodes; i++)
            stands |= graph->nodes[i].op == op;
        if (stands && op != row)
            sum += op->tolerance[precision];
    }
    return sum;
}

static const gx_value *value_at(const test_case *c, size_t i)
{
    return &c->graph->values[c->values[i]];
}

int64_t test_case_count(const test_case *c, size_t i)
{
    const gx_value *value = value_at(c, i);
    int64_t n = 1;

    for (int k = 0; k < value->rank; k++)
        n *= value->dim[k];
    return n;
}

double test_case_allowed(const test_case *c, size_t i, int mark)
{
    if (value_at(c, i)->dtype == GX_I32)
        return 0; /* counters are exact */
    return c->tolerance * (double)test_marks[mark] +
           CONDITION_FACTOR * c->condition[mark][i];
}

gx_status test_case_alloc(const test_case *c, double *numbers[TEST_MARKS], gx_error *err)
{
    for (int m = 0; m < TEST_MARKS; m++)
        numbers[m] = malloc((c->n_numbers + 1) * sizeof(double));
    if (numbers[0] && numbers[1])
        return GX_OK;
    test_case_free(numbers);
    return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for %zu numbers", c->n_numbers);
}

void test_case_free(double *numbers[TEST_MARKS])
{
    for (int m = 0; m < TEST_MARKS; m++)
        free(numbers[m]);
}

static gx_status list_values(test_case *c, gx_error *err)
{
    c->values = malloc((c->graph->n_values + 1) * sizeof *c->values);
    if (!c->values)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    for (size_t i = 0; i < c->graph->n_values; i++) {
        const gx_value *value = &c->graph->values[i];

        if (!value->is_output && value->kind != GX_VALUE_PARAM &&
            value->kind != GX_VALUE_STATE)
            continue;
        c->values[c->n_values++] = (int32_t)i;
        c->n_numbers += (size_t)test_case_count(c, c->n_values - 1);
    }
    for (int m = 0; m < TEST_MARKS; m++) {
        c->condition[m] = calloc(c->n_values + 1, sizeof(double));
        if (!c->condition[m])
            return GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    }
    return test_case_alloc(c, c->truth, err);
}

/* --- programs --- */

void test_program_close(test_program *p)
{
    gx_exec_free(p->exec);
    gx_plan_free(p->plan);
    gx_state_free(p->state);
    *p = (test_program){ NULL, NULL, NULL };
}

gx_status test_program_plan(const test_case *c, const gx_plan_options *options,
                            test_program *p, gx_error *err)
{
    *p = (test_program){ NULL, NULL, NULL };
    return gx_plan_create(c->graph, options, &p->plan, err);
}

gx_status test_program_make(const test_case *c, bool exact, test_program *p,
                            gx_error *err)
{
    const gx_state_options options = { .device = gx_plan_info_get(p->plan).device,
                                       .seed = c->seed,
                                       .exact = exact };
    const gx_graph *list[] = { c->graph };
    gx_status st = gx_state_create(list, 1, &options, &p->state, err);

    if (st == GX_OK)
        st = gx_exec_create(p->plan, p->state, NULL, &p->exec, err);
    if (st != GX_OK)
        test_program_close(p);
    return st;
}

gx_status test_program_open(const test_case *c, const gx_plan_options *options,
                            bool exact, test_program *p, gx_error *err)
{
    GX_TRY(test_program_plan(c, options, p, err));
    return test_program_make(c, exact, p, err);
}

static gx_tensor host_of(const gx_value *value, double *data)
{
    gx_tensor host = { .dtype = GX_F64, .rank = value->rank, .data = data };

    memcpy(host.dim, value->dim, sizeof host.dim);
    return host;
}

static gx_status read_all(const test_case *c, test_program *p, double *numbers,
                          gx_error *err)
{
    GX_TRY(gx_exec_sync(p->exec, err));
    for (size_t i = 0; i < c->n_values; i++) {
        gx_tensor host = host_of(value_at(c, i), numbers);

        GX_TRY(gx_exec_read(p->exec, value_at(c, i)->name, &host, err));
        numbers += test_case_count(c, i);
    }
    return GX_OK;
}

gx_status test_program_run(const test_case *c, test_program *p, gx_mode mode,
                           double *const numbers[TEST_MARKS], gx_error *err)
{
    int64_t done = 0;

    for (int m = 0; m < TEST_MARKS; m++) {
        GX_TRY(gx_exec_run(p->exec, mode, test_marks[m] - done, err));
        GX_TRY(read_all(c, p, numbers[m], err));
        done = test_marks[m];
    }
    return GX_OK;
}

/* --- the truth --- */

/* Half a step between the subnormals of f16, as a share of what `disturb` counts in. */
static const double F16_LEAST = 0x1p-25 / 0x1p-12;

/* Moved by up to `disturb`, relatively; where the type has no digits left, by as much of
 * its least step. */
static double moved(double value, gx_dtype dtype, double disturb, test_random *random)
{
    value *= 1 + test_random_real(random, -disturb, disturb);
    if (dtype == GX_F16)
        value += F16_LEAST * test_random_real(random, -disturb, disturb);
    return value;
}

/* Gives a tensor the numbers that its type holds, moved by up to `disturb`, relatively.
 */
static gx_status round_tensor(test_program *p, const gx_value *value, double disturb,
                              test_random *random, gx_error *err)
{
    const gx_tensor shape = host_of(value, NULL);
    const int64_t n = gx_count(&shape);
    double *x = malloc((size_t)(n + 1) * sizeof *x);
    gx_tensor host = host_of(value, x);
    gx_status st;

    if (!x)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    st = gx_exec_read(p->exec, value->name, &host, err);
    for (int64_t i = 0; i < n && st == GX_OK; i++)
        x[i] = moved(gx_round_to(value->dtype, x[i]), value->dtype, disturb, random);
    if (st == GX_OK)
        st = value->kind == GX_VALUE_INPUT
                 ? gx_exec_write(p->exec, value->name, &host, err)
                 : gx_state_write(p->state, value->name, &host, err);
    free(x);
    return st;
}

static gx_status round_start(const test_case *c, test_program *p, double disturb,
                             uint64_t seed, gx_error *err)
{
    test_random random = test_random_start(seed);

    for (size_t i = 0; i < c->graph->n_values; i++) {
        const gx_value *value = &c->graph->values[i];
        const bool is_state = value->kind == GX_VALUE_STATE;

        if (value->kind == GX_VALUE_TEMP || value->dtype == GX_I32 ||
            (value->kind == GX_VALUE_INPUT && value->fed))
            continue;
        GX_TRY(round_tensor(p, value, is_state ? 0 : disturb, &random, err));
    }
    return GX_OK;
}

static void disturb_outputs(const gx_call *call, double disturb, test_random *random)
{
    for (int arg = 0; arg < gx_n_args(call->op); arg++) {
        const gx_tensor *tensor = &call->arg[arg];
        double *x = tensor->data;

        if (gx_arg_kind(call->op, arg) == GX_FIELD_IN || !gx_has(call, arg) ||
            tensor->dtype == GX_I32)
            continue;
        for (int64_t i = 0; i < gx_count(tensor); i++)
            x[i] = moved(x[i], tensor->dtype, disturb, random);
    }
}

/* The walk on the CPU, with what each op stores moved a little. */
static gx_status run_disturbed(const test_case *c, test_program *p, double disturb,
                               uint64_t seed, double *const numbers[TEST_MARKS],
                               gx_error *err)
{
    test_random random = test_random_start(seed);
    int64_t step = 0;

    for (int m = 0; m < TEST_MARKS; m++) {
        for (; step < test_marks[m]; step++) {
            for (size_t i = 0; i < c->graph->n_nodes; i++) {
                const gx_call *call = &p->exec->calls[i];

                GX_TRY(call->op->reference(call, err));
                disturb_outputs(call, disturb, &random);
            }
        }
        p->exec->has_run = true;
        GX_TRY(read_all(c, p, numbers[m], err));
    }
    return GX_OK;
}

static gx_status run_exact(const test_case *c, double disturb, uint64_t seed,
                           double *const numbers[TEST_MARKS], gx_error *err)
{
    const gx_plan_options options = { .device = GX_CPU };
    test_program p;
    gx_status st = test_program_open(c, &options, true, &p, err);

    if (st == GX_OK)
        st = round_start(c, &p, disturb, seed, err);
    if (st == GX_OK)
        st = disturb > 0 ? run_disturbed(c, &p, disturb, seed, numbers, err)
                         : test_program_run(c, &p, GX_MODE_CPU, numbers, err);
    test_program_close(&p);
    return st;
}

static void note_movement(const test_case *c, double *const numbers[TEST_MARKS])
{
    for (int m = 0; m < TEST_MARKS; m++) {
        int64_t at = 0;

        for (size_t i = 0; i < c->n_values; i++) {
            const int64_t n = test_case_count(c, i);
            const double moved = test_error(numbers[m] + at, c->truth[m] + at, n);

            if (moved > c->condition[m][i])
                c->condition[m][i] = moved;
            at += n;
        }
    }
}

/* Rounds first .. last of disturbances. */
static gx_status disturb(const test_case *c, uint64_t first, uint64_t last, gx_error *err)
{
    double *numbers[TEST_MARKS];
    gx_status st = GX_OK;

    GX_TRY(test_case_alloc(c, numbers, err));
    for (uint64_t round = first; round <= last && st == GX_OK; round++) {
        st = run_exact(c, DISTURBED_ROUNDINGS * roundoff[c->precision], c->seed + round,
                       numbers, err);
        if (st == GX_OK)
            note_movement(c, numbers);
    }
    test_case_free(numbers);
    return st;
}

static gx_status find_truth(test_case *c, gx_error *err)
{
    GX_TRY(run_exact(c, 0, c->seed, c->truth, err));
    return disturb(c, 1, N_DISTURBED, err);
}

bool test_case_look_closer(test_case *c)
{
    gx_error err;

    if (c->is_closer)
        return false;
    c->is_closer = true;
    return disturb(c, N_DISTURBED + 1, N_DISTURBED + MORE_DISTURBED, &err) == GX_OK;
}

gx_status test_case_open(test_case *c, const gx_op *op, size_t index, const char *sample,
                         gx_precision precision, uint64_t seed, gx_error *err)
{
    char *text = with_precision(sample, test_precisions[precision]);
    gx_status st;

    *c = (test_case){ .row = op->name, .precision = precision, .seed = seed };
    snprintf(c->name, sizeof c->name, "%s[%zu] %s", op->name, index,
             test_precisions[precision]);
    if (!text)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    st = gx_graph_parse(text, strlen(text), "sample.yaml", test_folder(), NULL, &c->graph,
                        NULL, err);
    free(text);
    if (st == GX_OK) {
        c->tolerance = model_tolerance(c->graph, op, precision);
        st = list_values(c, err);
    }
    if (st == GX_OK)
        st = find_truth(c, err);
    return st;
}

void test_case_close(test_case *c)
{
    for (int m = 0; m < TEST_MARKS; m++) {
        free(c->condition[m]);
        free(c->truth[m]);
    }
    free(c->values);
    gx_graph_free(c->graph);
}
