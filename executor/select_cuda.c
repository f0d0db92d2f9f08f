/* A site on the device: its operands, and candidates compared with a strict baseline. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "builder.h"
#include "measure.h"
#include "select_bench.h"

enum {
    TILE_ELEMENTS =
        1 << 18, /* random values made for one operand; larger ones repeat them */
    SAMPLE_ELEMENTS = 1 << 14,
    MAX_SAMPLES = 64 /* pieces of a large output that are compared */
};

/* Baseline and candidate may each be off by the row's tolerance, in opposite directions.
 */
static const double TOLERANCE_FACTOR = 2;

/* Where prepare alone is asked for, operands lie at addresses that nothing reads. */
static const uintptr_t NO_MEMORY = UINT64_C(1) << 40;

struct gx_operand {
    int32_t id;
    gx_tensor tensor; /* data: on the device */
    bool is_output, is_inout, compared;
    size_t offset, saved_offset; /* saved: the first value of an INOUT */
    double *baseline;            /* what was sampled of the baseline's result */
};

gx_status gx_bench_open(gx_device *device, gx_bench **bench, gx_error *err)
{
    gx_bench *made = calloc(1, sizeof *made);

    *bench = NULL;
    if (made)
        made->sample =
            malloc((size_t)MAX_SAMPLES * SAMPLE_ELEMENTS * sizeof *made->sample);
    if (!made || !made->sample) {
        free(made);
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the selection");
    }
    made->device = device;
    made->random = UINT64_C(0x9e3779b97f4a7c15);
    *bench = made;
    return GX_OK;
}

static void leave_site(gx_bench *bench)
{
    for (int32_t i = 0; i < bench->n_operands; i++)
        free(bench->operands[i].baseline);
    free(bench->operands);
    free(bench->calls);
    free(bench->elidable);
    free(bench->stored);
    bench->operands = NULL;
    bench->calls = NULL;
    bench->elidable = NULL;
    bench->stored = NULL;
    bench->n_operands = 0;
    bench->site = NULL;
}

void gx_bench_close(gx_bench *bench)
{
    if (!bench)
        return;
    leave_site(bench);
    gx_workspace_release(bench->device, bench->workspace);
    gx_device_release(bench->device, bench->memory);
    free(bench->sample);
    free(bench);
}

/* Memory of at least `bytes`; what was in it is lost. */
static gx_status reserve_memory(gx_bench *bench, size_t bytes, gx_error *err)
{
    if (bytes <= bench->memory_bytes)
        return GX_OK;
    gx_device_release(bench->device, bench->memory);
    bench->memory = NULL;
    bench->memory_bytes = 0;
    GX_TRY(gx_device_alloc(bench->device, bytes, &bench->memory, err));
    bench->memory_bytes = bytes;
    return GX_OK;
}

static gx_status reserve_workspace(gx_bench *bench, size_t bytes, gx_error *err)
{
    if (bytes <= bench->workspace_bytes)
        return GX_OK;
    gx_workspace_release(bench->device, bench->workspace);
    bench->workspace = NULL;
    bench->workspace_bytes = 0;
    GX_TRY(gx_workspace_alloc(bench->device, bytes, &bench->workspace, err));
    bench->workspace_bytes = bytes;
    return GX_OK;
}

/* --- operands --- */

static gx_operand *find_operand(gx_bench *bench, int32_t id)
{
    /* The latest are the likeliest, and of a long run's values only a few are shared. */
    for (int32_t i = bench->n_operands - 1; i >= 0; i--) {
        if (bench->operands[i].id == id)
            return &bench->operands[i];
    }
    return NULL;
}

static void add_operand(gx_bench *bench, int32_t call, int arg)
{
    const gx_field_kind kind = gx_arg_kind(bench->calls[call].op, arg);
    const gx_tensor *tensor = &bench->calls[call].arg[arg];
    const int32_t id = (int32_t)((uintptr_t)tensor->data - 1);
    gx_operand *at = find_operand(bench, id);

    if (!at) {
        at = &bench->operands[bench->n_operands++];
        *at = (gx_operand){ .id = id, .tensor = *tensor };
        at->is_output = kind == GX_FIELD_OUT;
    }
    if (kind == GX_FIELD_INOUT && !at->is_output)
        at->is_inout = true;
    if (kind != GX_FIELD_IN)
        at->compared = !bench->elidable[call * GX_MAX_ARGS + arg];
}

static size_t tensor_bytes(const gx_tensor *tensor)
{
    return (size_t)gx_count(tensor) * gx_dtype_bytes(tensor->dtype);
}

static size_t place(size_t *total, size_t bytes)
{
    const size_t at = *total;

    *total += (bytes + GX_ALIGNMENT) / GX_ALIGNMENT * GX_ALIGNMENT;
    return at;
}

/* Gives operands their addresses, and the calls theirs. */
static gx_status bind(gx_bench *bench, bool with_memory, gx_error *err)
{
    size_t total = 0;
    char *base = (char *)NO_MEMORY;

    for (int32_t i = 0; i < bench->n_operands; i++) {
        gx_operand *at = &bench->operands[i];

        at->offset = place(&total, tensor_bytes(&at->tensor));
        if (at->is_inout)
            at->saved_offset = place(&total, tensor_bytes(&at->tensor));
    }
    if (with_memory) {
        GX_TRY(reserve_memory(bench, total, err));
        base = bench->memory;
    }
    for (int32_t i = 0; i < bench->n_operands; i++)
        bench->operands[i].tensor.data = base + bench->operands[i].offset;
    for (int32_t c = 0; c < bench->site->n; c++) {
        for (int arg = 0; arg < GX_MAX_ARGS; arg++) {
            gx_tensor *tensor = &bench->calls[c].arg[arg];

            if (tensor->rank >= 0)
                tensor->data = find_operand(bench, (int32_t)((uintptr_t)tensor->data - 1))
                                   ->tensor.data;
        }
    }
    return GX_OK;
}

/* --- values --- */

static double next_random(gx_bench *bench)
{
    uint64_t x = bench->random += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (double)((x ^ (x >> 31)) >> 11) * 0x1p-53;
}

/* Inputs get values in [-size, size), what is updated in place [0, 1), since a second
 * moment is not negative, and integers 0, which is in range wherever they count or point.
 */
static gx_status fill(gx_bench *bench, const gx_operand *at, double size, gx_error *err)
{
    const int64_t n = gx_count(&at->tensor);
    const int64_t n_tile = n < TILE_ELEMENTS ? n : TILE_ELEMENTS;
    const size_t width = gx_dtype_bytes(at->tensor.dtype);
    char *to = at->tensor.data;
    double *tile;
    gx_status st;

    if (at->tensor.dtype == GX_I32)
        return gx_device_fill(bench->device, to, 0, (size_t)n * width, err);
    tile = malloc((size_t)(n_tile + 1) * sizeof *tile);
    if (!tile)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the selection");
    for (int64_t i = 0; i < n_tile; i++)
        tile[i] = at->is_inout ? next_random(bench) : size * (2 * next_random(bench) - 1);
    st = gx_device_put(bench->device, to, at->tensor.dtype, tile, GX_F64, n_tile, false,
                       err);
    free(tile);
    return st != GX_OK ? st
                       : gx_device_repeat(bench->device, to, (size_t)n_tile * width,
                                          (size_t)n * width, err);
}

static bool is_chain(const gx_site *site)
{
    for (size_t i = 0; i < site->n_candidates; i++) {
        if (site->candidates[i].alternative->repeat == GX_REPEAT_ALL)
            return true;
    }
    return false;
}

/* In a chain of products weights of this size keep what goes through them as large as it
 * was, and without that f16 would overflow: a variance of 1 / k, or of 1 / n where they
 * are stored turned, which comes to the same over layers that follow one another. */
static double size_of(const gx_bench *bench, const gx_selector *selector,
                      const gx_operand *at)
{
    const gx_value *value = &selector->graph->values[at->id];
    const int64_t k = at->tensor.rank == 2 ? at->tensor.dim[0] : 0;

    return value->kind == GX_VALUE_PARAM && k > 0 && is_chain(bench->site)
               ? sqrt(3.0 / (double)k)
               : 1.0;
}

static gx_status fill_inputs(gx_bench *bench, const gx_selector *selector, gx_error *err)
{
    for (int32_t i = 0; i < bench->n_operands; i++) {
        const gx_operand *at = &bench->operands[i];

        if (at->is_output)
            continue;
        GX_TRY(fill(bench, at, size_of(bench, selector, at), err));
        if (at->is_inout)
            GX_TRY(gx_device_copy(bench->device, (char *)bench->memory + at->saved_offset,
                                  at->tensor.data, tensor_bytes(&at->tensor), err));
    }
    return GX_OK;
}

/* Outputs become NaN, so that one that is not written shows; INOUTs what they were. */
static gx_status reset(gx_bench *bench, gx_error *err)
{
    for (int32_t i = 0; i < bench->n_operands; i++) {
        const gx_operand *at = &bench->operands[i];
        const size_t bytes = tensor_bytes(&at->tensor);

        if (at->is_output)
            GX_TRY(gx_device_fill(bench->device, at->tensor.data, 0xff, bytes, err));
        else if (at->is_inout)
            GX_TRY(gx_device_copy(bench->device, at->tensor.data,
                                  (char *)bench->memory + at->saved_offset, bytes, err));
    }
    return GX_OK;
}

/* Elements of a result that are looked at: all, or pieces from first to last. */
static int64_t sample_count(int64_t n)
{
    const int64_t most = (int64_t)MAX_SAMPLES * SAMPLE_ELEMENTS;

    return n < most ? n : most;
}

static gx_status take_sample(gx_bench *bench, const gx_operand *at, double *to,
                             gx_error *err)
{
    const int64_t n = gx_count(&at->tensor);
    const size_t width = gx_dtype_bytes(at->tensor.dtype);

    if (n == sample_count(n))
        return gx_device_get(bench->device, to, GX_F64, at->tensor.data, at->tensor.dtype,
                             n, err);
    for (int64_t i = 0; i < MAX_SAMPLES; i++) {
        const int64_t first = (n - SAMPLE_ELEMENTS) / (MAX_SAMPLES - 1) * i;

        GX_TRY(gx_device_get(bench->device, to + i * SAMPLE_ELEMENTS, GX_F64,
                             (char *)at->tensor.data + (size_t)first * width,
                             at->tensor.dtype, SAMPLE_ELEMENTS, err));
    }
    return GX_OK;
}

/* ||x - reference|| / ||reference|| over what is finite in both: random operands may have
 * no finite result, as the derivative of a maximum that is none. Infinite where only one
 * of the two is finite. */
static double relative_error(const double *x, const double *reference, int64_t n)
{
    double difference = 0, norm = 0;

    for (int64_t i = 0; i < n; i++) {
        const double d = x[i] - reference[i];

        if (!isfinite(x[i]) && !isfinite(reference[i]))
            continue;
        difference += d * d;
        norm += reference[i] * reference[i];
    }
    if (!isfinite(difference))
        return INFINITY;
    return norm > 0 ? sqrt(difference / norm) : sqrt(difference);
}

static gx_status worst_error(gx_bench *bench, double *worst, gx_error *err)
{
    *worst = 0;
    for (int32_t i = 0; i < bench->n_operands; i++) {
        const gx_operand *at = &bench->operands[i];
        double e;

        if (!at->compared)
            continue;
        GX_TRY(take_sample(bench, at, bench->sample, err));
        e = relative_error(bench->sample, at->baseline,
                           sample_count(gx_count(&at->tensor)));
        if (!(e <= *worst))
            *worst = e;
    }
    return GX_OK;
}

/* --- the baseline --- */

/* The first strict way to run a node by itself that does not refuse. */
static const gx_alternative *strict_alternative(const gx_selector *selector, int32_t node,
                                                const gx_group *group)
{
    const gx_alternative *at;

    for (size_t k = 0; (at = selector->alternative_at(k)); k++) {
        if (at->strict && gx_match_pattern(selector->graph, at, node, 1) &&
            (!at->refuses || !at->refuses(group, &selector->ctx)))
            return at;
    }
    return NULL;
}

static gx_status run_baseline(gx_bench *bench, const gx_selector *selector, gx_error *err)
{
    for (int32_t i = 0; i < bench->site->n; i++) {
        const int32_t node = bench->site->first + i;
        const gx_group group = { .n_calls = 1,
                                 .call = &bench->calls[i],
                                 .elided = bench->stored };
        const gx_alternative *at = strict_alternative(selector, node, &group);
        gx_prepared prepared = { 0 };
        gx_status st;

        if (!at)
            return GX_FAIL(err, GX_ERR_UNSUPPORTED,
                           "%s: no strict alternative to compare the others with",
                           selector->graph->nodes[node].op->name);
        GX_TRY(at->prepare(&group, &selector->ctx, &prepared, err));
        st = reserve_workspace(bench, prepared.workspace_bytes, err);
        if (st == GX_OK)
            st =
                gx_run_group(bench->device, &group, at, &prepared, bench->workspace, err);
        if (at->release)
            at->release(&prepared);
        GX_TRY(st);
    }
    return GX_OK;
}

static gx_status make_baseline(gx_bench *bench, const gx_selector *selector,
                               gx_error *err)
{
    GX_TRY(fill_inputs(bench, selector, err));
    GX_TRY(reset(bench, err));
    GX_TRY(run_baseline(bench, selector, err));
    for (int32_t i = 0; i < bench->n_operands; i++) {
        gx_operand *at = &bench->operands[i];
        const int64_t n = sample_count(gx_count(&at->tensor));

        if (!at->compared)
            continue;
        at->baseline = malloc((size_t)(n + 1) * sizeof *at->baseline);
        if (!at->baseline)
            return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the selection");
        GX_TRY(take_sample(bench, at, at->baseline, err));
    }
    return GX_OK;
}

/* Each op of the group that is another one adds its tolerance; a run of one op is not a
 * chain. */
static double site_tolerance(const gx_graph *graph, const gx_site *site)
{
    double sum = 0;

    for (int32_t i = 0; i < site->n; i++) {
        const gx_op *op = graph->nodes[site->first + i].op;

        if (i == 0 || op != graph->nodes[site->first + i - 1].op)
            sum += op->tolerance[graph->precision];
    }
    return TOLERANCE_FACTOR * sum;
}

gx_status gx_bench_enter(gx_bench *bench, const gx_selector *selector,
                         const gx_site *site, gx_error *err)
{
    const size_t n_args = (size_t)site->n * GX_MAX_ARGS;

    leave_site(bench);
    bench->site = site;
    bench->calls = malloc((size_t)site->n * sizeof *bench->calls);
    bench->elidable = calloc(n_args, sizeof *bench->elidable);
    bench->stored = calloc(n_args, sizeof *bench->stored);
    bench->operands = calloc(n_args, sizeof *bench->operands);
    if (!bench->calls || !bench->elidable || !bench->stored || !bench->operands)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the selection");
    gx_match_calls(selector->graph, site->first, site->n, bench->calls);
    gx_match_elided(selector->graph, site->first, site->n, bench->elidable);
    for (int32_t c = 0; c < site->n; c++) {
        for (int arg = 0; arg < GX_MAX_ARGS; arg++) {
            if (bench->calls[c].arg[arg].rank >= 0)
                add_operand(bench, c, arg);
        }
    }
    bench->tolerance = site_tolerance(selector->graph, site);
    GX_TRY(bind(bench, selector->measure, err));
    return selector->measure ? make_baseline(bench, selector, err) : GX_OK;
}

/* --- candidates --- */

gx_group gx_bench_group(const gx_bench *bench, const gx_alternative *alternative)
{
    return (gx_group){
        .n_calls = bench->site->n,
        .call = bench->calls,
        .elided = alternative->elides ? bench->elidable : bench->stored,
    };
}

gx_status gx_bench_ready(gx_bench *bench, const gx_prepared *prepared, gx_error *err)
{
    GX_TRY(reserve_workspace(bench, prepared->workspace_bytes, err));
    return reset(bench, err);
}

gx_status gx_bench_compare(gx_bench *bench, const gx_alternative *alternative,
                           const gx_prepared *prepared, double *error, gx_error *err)
{
    const gx_group group = gx_bench_group(bench, alternative);

    GX_TRY(gx_bench_ready(bench, prepared, err));
    GX_TRY(gx_run_group(bench->device, &group, alternative, prepared, bench->workspace,
                        err));
    return worst_error(bench, error, err);
}
