/* Calls of rows by themselves on a device. */
#include "support_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "builder.h"
#include "support.h"

#if GX_HAVE_CUDA

enum { GUARD = 64 }; /* bytes behind a tensor that nothing may write */

static int attribute(enum cudaDeviceAttr which)
{
    int value = 0;

    assert_int_equal(cudaDeviceGetAttribute(&value, which, 0), cudaSuccess);
    return value;
}

int test_device_cc(void)
{
    return 10 * attribute(cudaDevAttrComputeCapabilityMajor) +
           attribute(cudaDevAttrComputeCapabilityMinor);
}

int test_device_open(void **state)
{
    test_device *s = calloc(1, sizeof *s);

    assert_non_null(s);
    assert_int_equal(cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking),
                     cudaSuccess);
    s->ctx = (gx_ctx){
        .stream = s->stream,
        .n_sm = attribute(cudaDevAttrMultiProcessorCount),
        .cc = test_device_cc(),
        .shared_optin_bytes = (size_t)attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin),
    };
    assert_int_equal(cudaMalloc((void **)&s->ctx.tickets, GX_TICKET_BYTES), cudaSuccess);
    assert_int_equal(cudaMemset(s->ctx.tickets, 0, GX_TICKET_BYTES), cudaSuccess);
    s->seed = test_seed();
    *state = s;
    return 0;
}

int test_device_close(void **state)
{
    test_device *s = *state;

    assert_int_equal(cudaFree(s->ctx.tickets), cudaSuccess);
    assert_int_equal(cudaStreamDestroy(s->stream), cudaSuccess);
    free(s);
    return 0;
}

/* --- operands --- */

static double number_at(const test_operand *o, const char *bytes, int64_t i)
{
    uint16_t half;
    int32_t whole;
    float single;

    switch (o->device.dtype) {
    case GX_BF16:
        memcpy(&half, bytes + 2 * i, sizeof half);
        return (double)gx_bf16_to_float(half);
    case GX_F16:
        memcpy(&half, bytes + 2 * i, sizeof half);
        return (double)gx_f16_to_float(half);
    case GX_I32:
        memcpy(&whole, bytes + 4 * i, sizeof whole);
        return whole;
    default:
        memcpy(&single, bytes + 4 * i, sizeof single);
        return (double)single;
    }
}

static void put_number(const test_operand *o, char *bytes, int64_t i, double x)
{
    const float single = (float)x;
    const uint16_t half = o->device.dtype == GX_F16 ? gx_f16_from_float(single)
                                                    : gx_bf16_from_float(single);

    if (gx_dtype_bytes(o->device.dtype) == sizeof half) {
        memcpy(bytes + 2 * i, &half, sizeof half);
    } else if (o->device.dtype == GX_I32) {
        const int32_t whole = (int32_t)x;

        memcpy(bytes + 4 * i, &whole, sizeof whole);
    } else {
        memcpy(bytes + 4 * i, &single, sizeof single);
    }
}

/* `values` are rounded to the type; NULL: an output, over NaNs. `shift` elements behind
 * an aligned address. */
test_operand test_operand_make(gx_dtype dtype, int rank, const int64_t *dim, int shift,
                               const double *values)
{
    const size_t element = gx_dtype_bytes(dtype);
    test_operand o = { .device = { .dtype = dtype, .rank = rank }, .is_output = !values };
    char *bytes;

    for (int i = 0; i < rank; i++)
        o.device.dim[i] = dim[i];
    const int64_t n = gx_count(&o.device);

    o.bytes = (size_t)n * element;
    o.host = calloc((size_t)n + 1, sizeof *o.host);
    o.want = calloc((size_t)n + 1, sizeof *o.want);
    bytes = malloc(o.bytes + 1);
    assert_true(o.host && o.want && bytes);
    assert_int_equal(cudaMalloc(&o.block, o.bytes + GUARD + (size_t)shift * element),
                     cudaSuccess);
    o.device.data = (char *)o.block + (size_t)shift * element;
    assert_int_equal(cudaMemset(o.block, 0xff, o.bytes + GUARD + (size_t)shift * element),
                     cudaSuccess);
    for (int64_t i = 0; values && i < n; i++) {
        put_number(&o, bytes, i, values[i]);
        o.host[i] = number_at(&o, bytes, i);
    }
    if (values)
        assert_int_equal(
            cudaMemcpy(o.device.data, bytes, o.bytes, cudaMemcpyHostToDevice),
            cudaSuccess);
    free(bytes);
    return o;
}

/* Reads an output back, and looks at the bytes behind it. */
void test_operand_fetch(test_operand *o)
{
    const int64_t n = gx_count(&o->device);
    char *bytes = malloc(o->bytes + GUARD);

    assert_non_null(bytes);
    assert_int_equal(
        cudaMemcpy(bytes, o->device.data, o->bytes + GUARD, cudaMemcpyDeviceToHost),
        cudaSuccess);
    for (int64_t i = 0; i < n; i++)
        o->host[i] = number_at(o, bytes, i);
    for (int i = 0; i < GUARD; i++)
        assert_int_equal((unsigned char)bytes[o->bytes + (size_t)i], 0xff);
    free(bytes);
}

void test_operand_drop(test_operand *o)
{
    assert_int_equal(cudaFree(o->block), cudaSuccess);
    free(o->host);
    free(o->want);
}

/* --- calls --- */

gx_call test_call_of(const char *op)
{
    gx_call call;

    memset(&call, 0, sizeof call);
    call.op = gx_op_find(op);
    call.name = op;
    assert_non_null(call.op);
    for (int i = 0; i < GX_MAX_ARGS; i++)
        call.arg[i].rank = -1;
    return call;
}

void test_call_bind(test_call *b, int arg, test_operand *o)
{
    b->of[arg] = o;
    b->call.arg[arg] = o->device;
}

/* The reference on what the device has; its results are not rounded. */
static void find_truth(const test_call *b)
{
    gx_call call = b->call;
    gx_error err = { 0 };

    for (int i = 0; i < GX_MAX_ARGS; i++) {
        if (b->of[i])
            call.arg[i].data = b->of[i]->is_output ? b->of[i]->want : b->of[i]->host;
    }
    assert_ok(call.op->reference(&call, &err), &err);
}

bool test_call_covers(const gx_alternative *alternative, const test_call *calls, int n)
{
    const bool repeats = alternative->repeat == GX_REPEAT_ALL;
    int length = 0;

    while (alternative->pattern[length])
        length++;
    if (repeats ? n < length || n % length != 0 : n != length)
        return false;
    for (int i = 0; i < n; i++) {
        if (strcmp(alternative->pattern[i % length], gx_op_name(calls[i].call.op)) != 0)
            return false;
    }
    return true;
}

/* What the launches of a group must leave as they were. */
static void check_tickets(const test_device *s)
{
    unsigned tickets[GX_TICKET_BYTES / sizeof(unsigned)];

    assert_int_equal(
        cudaMemcpy(tickets, s->ctx.tickets, sizeof tickets, cudaMemcpyDeviceToHost),
        cudaSuccess);
    for (size_t i = 0; i < ARRAY_SIZE(tickets); i++)
        assert_int_equal(tickets[i], 0);
}

/* Runs one candidate and waits; returns how many there are, 0 where it does not apply. */
int test_call_run(test_device *s, const gx_alternative *alternative,
                  const gx_group *group, int choice)
{
    gx_prepared prepared = { .algo_choice = choice, .n_algos = 1 };
    gx_error err = { 0 };

    /* There is no handle for those of the library: conformance has them. */
    if (alternative->refuses(group, &s->ctx) != NULL ||
        strncmp(alternative->name, "lt", 2) == 0)
        return 0;
    assert_ok(alternative->prepare(group, &s->ctx, &prepared, &err), &err);
    const size_t size = prepared.workspace_bytes + GUARD;
    unsigned char *after = malloc(GUARD);

    assert_non_null(after);
    assert_int_equal(cudaMalloc(&s->ctx.workspace, size), cudaSuccess);
    assert_int_equal(cudaMemset(s->ctx.workspace, 0xff, size), cudaSuccess);
    assert_int_equal(cudaDeviceSynchronize(), cudaSuccess);
    s->ctx.n_launched = 0;
    assert_ok(alternative->launch(group, &prepared, &s->ctx, &err), &err);
    assert_int_equal(s->ctx.n_launched, prepared.n_launches);
    assert_int_equal(cudaStreamSynchronize(s->stream), cudaSuccess);
    check_tickets(s);
    assert_int_equal(cudaMemcpy(after,
                                (char *)s->ctx.workspace + prepared.workspace_bytes,
                                GUARD, cudaMemcpyDeviceToHost),
                     cudaSuccess);
    for (int i = 0; i < GUARD; i++)
        assert_int_equal(after[i], 0xff);
    free(after);
    assert_int_equal(cudaFree(s->ctx.workspace), cudaSuccess);
    if (alternative->release != NULL)
        alternative->release(&prepared);
    return prepared.n_algos;
}

static gx_precision precision_of(const gx_call *call)
{
    switch (call->arg[0].dtype) {
    case GX_BF16:
        return GX_PRECISION_BF16;
    case GX_F16:
        return GX_PRECISION_F16;
    default:
        return call->precision == GX_PRECISION_TF32 ? GX_PRECISION_TF32
                                                    : GX_PRECISION_F32;
    }
}

/* What rounding to f16 adds below its normal numbers, where steps are 2^-24 apart, over
 * the norm of the result. */
static double error_of_subnormals(const test_operand *o)
{
    const int64_t n = gx_count(&o->device);
    double norm = 0;

    if (o->device.dtype != GX_F16)
        return 0;
    for (int64_t i = 0; i < n; i++)
        norm += o->want[i] * o->want[i];
    return norm > 0 ? ldexp(sqrt((double)n / norm), -25) : 0;
}

/* Of few elements all may nearly cancel: their norm is then small beside what was added
 * up, and so is what an error may be of it. */
static double grace_of_few(const test_operand *o)
{
    const double few = 8, n = (double)gx_count(&o->device);

    return n > 0 && n < few ? (few / n) * (few / n) : 1;
}

/* The outputs of a call that are not elided. */
static void compare(const test_call *b, const bool *elided, double allowed)
{
    for (int i = 0; i < GX_MAX_ARGS; i++) {
        if (!b->of[i] || gx_arg_kind(b->call.op, i) != GX_FIELD_OUT ||
            (elided && elided[i]))
            continue;
        test_operand_fetch(b->of[i]);
        const double error =
            test_error(b->of[i]->host, b->of[i]->want, gx_count(&b->of[i]->device));

        const double most =
            allowed * grace_of_few(b->of[i]) + error_of_subnormals(b->of[i]);

        if (!(error <= most)) {
            print_error("%s, operand %d: error %g, allowed %g\n", b->call.name, i, error,
                        most);
            fail();
        }
    }
}

static void forget_outputs(const test_call *calls, int n)
{
    for (int k = 0; k < n; k++) {
        for (int i = 0; i < GX_MAX_ARGS; i++) {
            const test_operand *o = calls[k].of[i];

            if (o && o->is_output)
                assert_int_equal(cudaMemset(o->device.data, 0xff, o->bytes), cudaSuccess);
        }
    }
}

/* Errors of one op of a group go through the others, and what is summed up may cancel. */
static double allowed_for(const test_call *calls, int n, int k, const bool *elided)
{
    const double factor = 4;
    double sum = 0;

    if (!elided)
        return calls[k].call.op->tolerance[precision_of(&calls[k].call)];
    for (int i = 0; i < n; i++)
        sum += calls[i].call.op->tolerance[precision_of(&calls[i].call)];
    return factor * sum;
}

int test_call_check(test_device *s, const test_call *calls, int n, const bool *elided)
{
    const gx_alternative *alternative;
    gx_call call[TEST_CALLS];
    int ran = 0;

    assert_true(n <= TEST_CALLS);
    for (int i = 0; i < n; i++) {
        call[i] = calls[i].call;
        find_truth(&calls[i]);
    }
    for (size_t at = 0; (alternative = gx_alternative_at(at)); at++) {
        const gx_group group = { .n_calls = n,
                                 .call = call,
                                 .elided = alternative->elides ? elided : NULL };

        if (!test_call_covers(alternative, calls, n))
            continue;
        for (int choice = 0, candidates = 1; choice < candidates; choice++) {
            forget_outputs(calls, n);
            candidates = test_call_run(s, alternative, &group, choice);
            for (int k = 0; k < n && candidates > 0; k++)
                compare(&calls[k], group.elided ? &group.elided[k * GX_MAX_ARGS] : NULL,
                        allowed_for(calls, n, k, elided));
            ran += candidates > 0;
        }
    }
    return ran;
}

/* --- nodes of a model --- */

static test_call bind_node(const test_walk *walk, const gx_node *node, test_operand **of)
{
    test_call b = { .call = test_call_of(gx_op_name(node->op)) };
    int n_attrs = 0;

    b.call.precision = walk->graph->precision;
    for (const gx_field *field = gx_op_fields(node->op); field->name; field++) {
        if (!gx_is_tensor_field(field)) {
            b.call.attr[n_attrs] = node->attr[n_attrs];
            n_attrs++;
        }
    }
    for (int i = 0; i < gx_n_args(node->op); i++) {
        const int32_t id = node->arg[i];

        if (id >= 0 && (size_t)id < walk->graph->n_values)
            test_call_bind(&b, i, of[id]);
    }
    return b;
}

int test_nodes_check(test_device *s, const test_walk *walk, size_t first, int n,
                     int shift, const bool *elided)
{
    const gx_graph *graph = walk->graph;
    test_operand *all = calloc(graph->n_values + 1, sizeof *all);
    test_operand **of = calloc(graph->n_values + 1, sizeof *of);
    test_call calls[TEST_CALLS];
    int ran;

    assert_true(all && of && n <= TEST_CALLS);
    for (int k = 0; k < n; k++) {
        const gx_node *node = &graph->nodes[first + (size_t)k];

        for (int i = 0; i < gx_n_args(node->op); i++) {
            const int32_t id = node->arg[i];

            if (id < 0 || of[id])
                continue;
            const gx_value *value = &graph->values[id];

            all[id] = test_operand_make(
                value->dtype, value->rank, value->dim, shift,
                gx_arg_kind(node->op, i) == GX_FIELD_OUT ? NULL : walk->data[id]);
            of[id] = &all[id];
        }
        calls[k] = bind_node(walk, node, of);
    }
    ran = test_call_check(s, calls, n, elided);
    for (size_t i = 0; i < graph->n_values; i++) {
        if (of[i])
            test_operand_drop(of[i]);
    }
    free(of);
    free(all);
    return ran;
}

#endif
