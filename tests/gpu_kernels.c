/* The CUDA alternatives by themselves: odd addresses, exact sums, old memory, large
 * sizes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "launch.h"
#include "support.h"
#include "support_gpu.h"

enum { N_SHIFTS = 5, WORKSPACE = 64 << 20 };

typedef struct setting {
    gx_ctx ctx;
    cudaStream_t stream;
    cublasLtHandle_t lt;
    gx_error err;
} setting;

static int attribute(enum cudaDeviceAttr which)
{
    int value = 0;

    assert_int_equal(cudaDeviceGetAttribute(&value, which, 0), cudaSuccess);
    return value;
}

static int set_up(void **state)
{
    setting *s = calloc(1, sizeof *s);

    assert_non_null(s);
    assert_int_equal(cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking),
                     cudaSuccess);
    assert_int_equal(cublasLtCreate(&s->lt), CUBLAS_STATUS_SUCCESS);
    s->ctx = (gx_ctx){
        .stream = s->stream,
        .lt = s->lt,
        .n_sm = attribute(cudaDevAttrMultiProcessorCount),
        .cc = 10 * attribute(cudaDevAttrComputeCapabilityMajor) +
              attribute(cudaDevAttrComputeCapabilityMinor),
        .shared_optin_bytes = (size_t)attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin),
    };
    assert_int_equal(cudaMalloc(&s->ctx.workspace, WORKSPACE), cudaSuccess);
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    setting *s = *state;

    assert_int_equal(cudaFree(s->ctx.workspace), cudaSuccess);
    assert_int_equal(cublasLtDestroy(s->lt), CUBLAS_STATUS_SUCCESS);
    assert_int_equal(cudaStreamDestroy(s->stream), cudaSuccess);
    free(s);
    return 0;
}

/* --- tensors --- */

/* A tensor `shift` elements behind an aligned address. */
typedef struct tensor {
    gx_tensor view;
    void *block;
    size_t bytes;
} tensor;

static tensor make(gx_dtype dtype, int64_t rows, int64_t columns, int shift)
{
    const size_t element = gx_dtype_bytes(dtype);
    tensor t = { .view = { .dtype = dtype, .rank = 2, .dim = { rows, columns } } };

    t.bytes = (size_t)gx_count(&t.view) * element;
    assert_int_equal(cudaMalloc(&t.block, t.bytes + (size_t)shift * element + 1),
                     cudaSuccess);
    t.view.data = (char *)t.block + (size_t)shift * element;
    assert_int_equal(cudaMemset(t.view.data, 0xff, t.bytes), cudaSuccess); /* NaN */
    return t;
}

static void drop(tensor *t)
{
    assert_int_equal(cudaFree(t->block), cudaSuccess);
}

static void put(const tensor *t, const double *values)
{
    const int64_t n = gx_count(&t->view);
    char *bytes = malloc(t->bytes + 1);

    assert_non_null(bytes);
    for (int64_t i = 0; i < n; i++) {
        const float value = (float)values[i];
        const uint16_t half = t->view.dtype == GX_F16 ? gx_f16_from_float(value)
                                                      : gx_bf16_from_float(value);

        if (t->view.dtype != GX_F32)
            memcpy(bytes + 2 * i, &half, sizeof half);
        else
            memcpy(bytes + 4 * i, &value, sizeof value);
    }
    assert_int_equal(cudaMemcpy(t->view.data, bytes, t->bytes, cudaMemcpyHostToDevice),
                     cudaSuccess);
    free(bytes);
}

static double *get(const tensor *t)
{
    const int64_t n = gx_count(&t->view);
    char *bytes = malloc(t->bytes + 1);
    double *values = malloc(((size_t)n + 1) * sizeof *values);

    assert_non_null(bytes);
    assert_non_null(values);
    assert_int_equal(cudaMemcpy(bytes, t->view.data, t->bytes, cudaMemcpyDeviceToHost),
                     cudaSuccess);
    for (int64_t i = 0; i < n; i++) {
        float value = 0;
        uint16_t half = 0;

        if (t->view.dtype != GX_F32) {
            memcpy(&half, bytes + 2 * i, sizeof half);
            value =
                t->view.dtype == GX_F16 ? gx_f16_to_float(half) : gx_bf16_to_float(half);
        } else {
            memcpy(&value, bytes + 4 * i, sizeof value);
        }
        values[i] = (double)value;
    }
    free(bytes);
    return values;
}

/* --- running --- */

static gx_call call_of(const char *op)
{
    gx_call call;

    memset(&call, 0, sizeof call);
    call.op = gx_op_find(op);
    call.name = op;
    for (int i = 0; i < GX_MAX_ARGS; i++)
        call.arg[i].rank = -1;
    assert_non_null(call.op);
    return call;
}

static bool covers(const gx_alternative *alternative, const gx_call *call, int n_calls)
{
    int n = 0;

    for (; alternative->pattern[n]; n++) {
        if (n >= n_calls || strcmp(alternative->pattern[n], gx_op_name(call[n].op)) != 0)
            return false;
    }
    return n == n_calls;
}

/* Runs candidate `choice` of an alternative and waits. Returns the number of candidates;
 * 0 where it does not apply, or the library has no algorithm. */
static int run(setting *s, const gx_alternative *alternative, const gx_group *group,
               int choice)
{
    gx_prepared prepared = { .algo_choice = choice };

    gx_error_clear(&s->err);
    if (alternative->refuses(group, &s->ctx) != NULL)
        return 0;
    const gx_status st = alternative->prepare(group, &s->ctx, &prepared, &s->err);

    if (st == GX_ERR_UNSUPPORTED)
        return 0;
    assert_ok(st, &s->err);
    assert_true(prepared.workspace_bytes <= WORKSPACE);
    assert_int_equal(cudaMemset(s->ctx.workspace, 0xff, prepared.workspace_bytes),
                     cudaSuccess);
    assert_int_equal(cudaDeviceSynchronize(), cudaSuccess);
    s->ctx.n_launched = 0;
    assert_ok(alternative->launch(group, &prepared, &s->ctx, &s->err), &s->err);
    if (prepared.n_launches >= 0)
        assert_int_equal(s->ctx.n_launched, prepared.n_launches);
    assert_int_equal(cudaStreamSynchronize(s->stream), cudaSuccess);
    if (alternative->release != NULL)
        alternative->release(&prepared);
    return prepared.n_algos;
}

/* --- products --- */

typedef struct product {
    int64_t m, n, k;
    bool trans_a, trans_b;
    gx_dtype dtype;
} product;

/* Small whole numbers: every sum is exact in each type, whatever its order. */
static void fill_whole(test_random *random, double *values, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        values[i] = (double)test_random_int(random, -1, 1);
}

static double expected(const product *p, const double *a, const double *b, int64_t i,
                       int64_t j)
{
    double sum = 0;

    for (int64_t k = 0; k < p->k; k++)
        sum += a[p->trans_a ? k * p->m + i : i * p->k + k] *
               b[p->trans_b ? j * p->k + k : k * p->n + j];
    return sum;
}

/* Every candidate of every alternative of a plain product, exactly; returns how many ran.
 */
static int check_product(setting *s, const product *p, int shift, test_random *random)
{
    tensor a = make(p->dtype, p->trans_a ? p->k : p->m, p->trans_a ? p->m : p->k, shift);
    tensor b = make(p->dtype, p->trans_b ? p->n : p->k, p->trans_b ? p->k : p->n, shift);
    double *va = calloc((size_t)(p->m * p->k) + 1, sizeof *va);
    double *vb = calloc((size_t)(p->k * p->n) + 1, sizeof *vb);
    const gx_alternative *alternative;
    int ran = 0;

    assert_non_null(va);
    assert_non_null(vb);
    fill_whole(random, va, p->m * p->k);
    fill_whole(random, vb, p->k * p->n);
    put(&a, va);
    put(&b, vb);
    for (size_t at = 0; (alternative = gx_alternative_at(at)); at++) {
        gx_call call = call_of("gemm");
        const gx_group group = { .n_calls = 1, .call = &call };

        if (!covers(alternative, &call, 1))
            continue;
        for (int choice = 0, math = 0, n = 1; math < 2; choice++) {
            tensor out = make(p->dtype, p->m, p->n, shift);

            call.arg[GX_GEMM_A] = a.view;
            call.arg[GX_GEMM_B] = b.view;
            call.arg[GX_GEMM_OUT] = out.view;
            call.attr[GX_GEMM_TRANS_A].i = p->trans_a;
            call.attr[GX_GEMM_TRANS_B].i = p->trans_b;
            call.precision = math == 0 ? GX_PRECISION_F32 : GX_PRECISION_TF32;
            n = run(s, alternative, &group, choice);
            if (n > 0) {
                double *got = get(&out);

                for (int64_t i = 0; i < p->m * p->n; i++)
                    assert_true(got[i] == expected(p, va, vb, i / p->n, i % p->n));
                free(got);
                ran++;
            }
            drop(&out);
            if (choice + 1 >= n) { /* the other math has candidates of its own */
                choice = -1;
                math++;
            }
        }
    }
    free(va);
    free(vb);
    drop(&a);
    drop(&b);
    return ran;
}

static const gx_dtype types[] = { GX_F32, GX_BF16, GX_F16 };
enum { N_TYPES = ARRAY_SIZE(types) };

static void products_are_exact_at_any_address(void **state)
{
    static const int shifts[N_SHIFTS] = { 0, 1, 2, 4, 8 };
    static const int64_t sizes[][3] = { { 3, 5, 7 }, { 33, 7, 20 }, { 64, 40, 72 } };
    test_random random = test_random_start(test_seed());

    for (int shift = 0; shift < N_SHIFTS; shift++) {
        for (size_t size = 0; size < ARRAY_SIZE(sizes); size++) {
            for (int form = 0; form < 4 * N_TYPES; form++) {
                const product p = { sizes[size][0], sizes[size][1], sizes[size][2],
                                    form & 1,       form & 2,       types[form / 4] };

                /* Our own kernel takes everything. */
                assert_true(check_product(*state, &p, shifts[shift], &random) >= 5);
            }
        }
    }
}

/* Zero sizes: k = 0 writes zeros over what was there, m = 0 and n = 0 launch nothing. */
static void products_of_nothing_are_zero(void **state)
{
    test_random random = test_random_start(test_seed());

    for (int form = 0; form < 4 * N_TYPES; form++) {
        const gx_dtype dtype = types[form / 4];
        const product empty[] = { { 5, 6, 0, form & 1, form & 2, dtype },
                                  { 0, 6, 4, form & 1, form & 2, dtype },
                                  { 5, 0, 4, form & 1, form & 2, dtype } };

        for (size_t i = 0; i < ARRAY_SIZE(empty); i++)
            assert_true(check_product(*state, &empty[i], 0, &random) >= 1);
    }
}

/* 1024.5 needs more bits than tf32 has. */
static void f32_is_not_tf32(void **state)
{
    setting *s = *state;
    tensor a = make(GX_F32, 1, 1, 0), b = make(GX_F32, 1, 1, 0),
           out = make(GX_F32, 1, 1, 0);
    const gx_alternative *alternative;
    gx_call call = call_of("gemm");
    const gx_group group = { .n_calls = 1, .call = &call };

    put(&a, (const double[]){ 1024.5 });
    put(&b, (const double[]){ 1.0 });
    call.arg[GX_GEMM_A] = a.view;
    call.arg[GX_GEMM_B] = b.view;
    call.arg[GX_GEMM_OUT] = out.view;
    for (size_t at = 0; (alternative = gx_alternative_at(at)); at++) {
        if (!covers(alternative, &call, 1) || run(s, alternative, &group, 0) == 0)
            continue;
        double *got = get(&out);

        assert_true(got[0] == 1024.5);
        free(got);
    }
    drop(&a);
    drop(&b);
    drop(&out);
}

/* --- sums --- */

/* A sum of ones that bf16 could not count: kept in f32, rounded once. */
static void bias_gradients_count_past_256(void **state)
{
    setting *s = *state;
    enum { ROWS = 4096, COLUMNS = 3 };
    tensor dy = make(GX_BF16, ROWS, COLUMNS, 0), dbias = make(GX_BF16, 1, COLUMNS, 0);
    double *ones = malloc(ROWS * COLUMNS * sizeof *ones);
    gx_call call = call_of("epilogue.bwd");
    const gx_group group = { .n_calls = 1, .call = &call };
    const gx_alternative *alternative;
    int ran = 0;

    assert_non_null(ones);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        ones[i] = 1.0;
    put(&dy, ones);
    call.arg[GX_EPILOGUE_BWD_DY] = dy.view;
    call.arg[GX_EPILOGUE_BWD_DBIAS] = dbias.view;
    for (size_t at = 0; (alternative = gx_alternative_at(at)); at++) {
        if (!covers(alternative, &call, 1) || run(s, alternative, &group, 0) == 0)
            continue;
        double *got = get(&dbias);

        for (int i = 0; i < COLUMNS; i++)
            assert_true(got[i] == (double)ROWS);
        free(got);
        ran++;
    }
    assert_true(ran > 0);
    free(ones);
    drop(&dy);
    drop(&dbias);
}

/* The largest index of an element does not fit 32 bits. */
static void tensors_pass_two_to_the_31(void **state)
{
    setting *s = *state;
    const int64_t rows = 65536, columns = 32769, n = rows * columns;
    size_t free_bytes = 0, total_bytes = 0;
    uint16_t last[2] = { 0, 0 };

    if (test_is_short()) /* racecheck would take too long */
        skip();
    assert_int_equal(cudaMemGetInfo(&free_bytes, &total_bytes), cudaSuccess);
    if (free_bytes < (size_t)n * 5)
        skip();
    tensor x = make(GX_BF16, rows, columns, 0), out = make(GX_BF16, rows, columns, 0);
    gx_call call = call_of("epilogue");
    const gx_group group = { .n_calls = 1, .call = &call };
    const gx_alternative *alternative;
    int ran = 0;

    assert_int_equal(cudaMemset(x.view.data, 0x3f, x.bytes), cudaSuccess); /* 0.746 */
    call.arg[GX_EPILOGUE_X] = x.view;
    call.arg[GX_EPILOGUE_OUT] = out.view;
    call.attr[GX_EPILOGUE_ACT].i = GX_ACT_RELU;
    for (size_t at = 0; (alternative = gx_alternative_at(at)); at++) {
        if (!covers(alternative, &call, 1) || run(s, alternative, &group, 0) == 0)
            continue;
        assert_int_equal(cudaMemcpy(last, (char *)out.view.data + out.bytes - sizeof last,
                                    sizeof last, cudaMemcpyDeviceToHost),
                         cudaSuccess);
        assert_int_equal(last[0], 0x3f3f);
        assert_int_equal(last[1], 0x3f3f);
        ran++;
    }
    assert_true(ran > 0);
    drop(&x);
    drop(&out);
}

/* --- the same bits --- */

/* A product and its way back through relu, with column sums over several rows of tiles.
 */
static void sums_have_the_same_bits_each_time(void **state)
{
    setting *s = *state;
    enum { M = 300, N = 200, K = 500, TIMES = 4 };
    test_random random = test_random_start(test_seed());
    tensor a = make(GX_F32, M, K, 0), b = make(GX_F32, K, N, 0),
           y = make(GX_F32, M, N, 0);
    tensor dx = make(GX_F32, M, N, 0), dbias = make(GX_F32, 1, N, 0);
    tensor *const filled[] = { &a, &b, &y };
    gx_call call[2] = { call_of("gemm"), call_of("epilogue.bwd") };
    bool elided[2 * GX_MAX_ARGS] = { false };
    const gx_group group = { .n_calls = 2, .call = call, .elided = elided };
    const gx_alternative *alternative;
    int ran = 0;

    for (size_t t = 0; t < ARRAY_SIZE(filled); t++) {
        const int64_t n = gx_count(&filled[t]->view);
        double *values = malloc((size_t)n * sizeof *values);

        assert_non_null(values);
        for (int64_t i = 0; i < n; i++)
            values[i] = test_random_real(&random, -1, 1);
        put(filled[t], values);
        free(values);
    }
    elided[GX_GEMM_OUT] = true;
    call[0].arg[GX_GEMM_A] = a.view;
    call[0].arg[GX_GEMM_B] = b.view;
    call[0].arg[GX_GEMM_OUT] = dx.view;
    call[0].arg[GX_GEMM_OUT].data = NULL;
    call[1].arg[GX_EPILOGUE_BWD_DY] = call[0].arg[GX_GEMM_OUT];
    call[1].arg[GX_EPILOGUE_BWD_Y] = y.view;
    call[1].arg[GX_EPILOGUE_BWD_DX] = dx.view;
    call[1].arg[GX_EPILOGUE_BWD_DBIAS] = dbias.view;
    call[1].attr[GX_EPILOGUE_BWD_ACT].i = GX_ACT_RELU;
    for (size_t at = 0; (alternative = gx_alternative_at(at)); at++) {
        if (!covers(alternative, call, 2))
            continue;
        for (int choice = 0, n = 1; choice < n; choice++) {
            double *first = NULL;

            for (int time = 0; time < TIMES; time++) {
                n = run(s, alternative, &group, choice);
                if (n == 0)
                    break;
                double *got = get(&dbias);

                if (first != NULL)
                    assert_memory_equal(got, first, N * sizeof *got);
                free(first);
                first = got;
                ran++;
            }
            free(first);
        }
    }
    assert_true(ran >= TIMES);
    drop(&a);
    drop(&b);
    drop(&y);
    drop(&dx);
    drop(&dbias);
}

int main(void)
{
    gpu_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(products_are_exact_at_any_address, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(products_of_nothing_are_zero, set_up, tear_down),
        cmocka_unit_test_setup_teardown(f32_is_not_tf32, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bias_gradients_count_past_256, set_up, tear_down),
        cmocka_unit_test_setup_teardown(tensors_pass_two_to_the_31, set_up, tear_down),
        cmocka_unit_test_setup_teardown(sums_have_the_same_bits_each_time, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
