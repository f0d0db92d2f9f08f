/* Products of a batch on a GPU by themselves: exact at any address, by every alternative
 * and candidate, and past 2^31 elements. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include "ops.h"
#include "support.h"
#include "support_gpu.h"

enum { WORKSPACE = 64 << 20, MODES = 4 };

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

/* A tensor `shift` elements behind an aligned address; `batch` 0: it has none. */
typedef struct tensor {
    gx_tensor view;
    void *block;
    int64_t n;
} tensor;

static tensor make(gx_dtype dtype, int64_t batch, int64_t rows, int64_t columns,
                   int shift)
{
    const size_t element = gx_dtype_bytes(dtype);
    tensor t = { .view = { .dtype = dtype, .rank = 2, .dim = { rows, columns } } };

    if (batch > 0)
        t.view =
            (gx_tensor){ .dtype = dtype, .rank = 3, .dim = { batch, rows, columns } };
    t.n = gx_count(&t.view);
    assert_int_equal(cudaMalloc(&t.block, ((size_t)t.n + (size_t)shift + 1) * element),
                     cudaSuccess);
    t.view.data = (char *)t.block + (size_t)shift * element;
    assert_int_equal(cudaMemset(t.view.data, 0xff, (size_t)t.n * element), cudaSuccess);
    return t;
}

static void drop(tensor *t)
{
    assert_int_equal(cudaFree(t->block), cudaSuccess);
}

/* `count` elements from `first` on, to or from the device. */
static void put(const tensor *t, int64_t first, int64_t count, const float *values)
{
    const size_t element = gx_dtype_bytes(t->view.dtype);
    uint16_t *halves = malloc(((size_t)count + 1) * sizeof *halves);

    assert_non_null(halves);
    for (int64_t i = 0; i < count; i++)
        halves[i] = t->view.dtype == GX_F16 ? gx_f16_from_float(values[i])
                                            : gx_bf16_from_float(values[i]);
    assert_int_equal(cudaMemcpy((char *)t->view.data + (size_t)first * element,
                                element == 2 ? (const void *)halves : values,
                                (size_t)count * element, cudaMemcpyHostToDevice),
                     cudaSuccess);
    free(halves);
}

/* The caller frees. */
static float *get(const tensor *t, int64_t first, int64_t count)
{
    const size_t element = gx_dtype_bytes(t->view.dtype);
    float *values = malloc(((size_t)count + 1) * sizeof *values);
    uint16_t *halves = malloc(((size_t)count + 1) * sizeof *halves);

    assert_non_null(values);
    assert_non_null(halves);
    assert_int_equal(cudaMemcpy(element == 2 ? (void *)halves : values,
                                (const char *)t->view.data + (size_t)first * element,
                                (size_t)count * element, cudaMemcpyDeviceToHost),
                     cudaSuccess);
    for (int64_t i = 0; element == 2 && i < count; i++)
        values[i] = t->view.dtype == GX_F16 ? gx_f16_to_float(halves[i])
                                            : gx_bf16_to_float(halves[i]);
    free(halves);
    return values;
}

static void assert_at(const tensor *t, int64_t at, float expected)
{
    float *value = get(t, at, 1);

    assert_true(value[0] == expected);
    free(value);
}

/* Whole numbers in the first `used` columns, and NaN behind them. */
static float *fill_used(test_random *random, const tensor *t, int64_t used)
{
    const int64_t row = t->view.dim[t->view.rank - 1];
    float *values = malloc(((size_t)t->n + 1) * sizeof *values);

    assert_non_null(values);
    for (int64_t i = 0; i < t->n; i++)
        values[i] = i % row < used ? (float)test_random_int(random, -1, 1) : NAN;
    put(t, 0, t->n, values);
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
    return call;
}

/* Candidate `choice`; returns how many there are, 0 where the alternative refuses. */
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
    /* The stream does not wait for fills and copies on the default one. */
    assert_int_equal(cudaDeviceSynchronize(), cudaSuccess);
    assert_ok(alternative->launch(group, &prepared, &s->ctx, &s->err), &s->err);
    const cudaError_t fault = cudaStreamSynchronize(s->stream);

    if (fault != cudaSuccess)
        fail_msg("%s, candidate %d: %s", alternative->name, choice,
                 cudaGetErrorString(fault));
    if (alternative->release != NULL)
        alternative->release(&prepared);
    return prepared.n_algos;
}

static bool is_plain_gemm(const gx_alternative *alternative)
{
    return strcmp(alternative->pattern[0], "gemm") == 0 &&
           alternative->pattern[1] == NULL;
}

/* --- any address --- */

typedef struct product {
    int64_t m, n, k, batch;
    bool trans_a, trans_b, shares_a, shares_b, sum;
    gx_dtype dtype;
    /* elements by which rows are wider than what is used of them */
    int64_t wide_a, wide_b, wide_c, wide_out;
    bool is_plain; /* no factors, and no c: out = op(a) op(b), in tf32 where it is f32 */
} product;

static int64_t row_of_a(const product *p)
{
    return (p->trans_a ? p->m : p->k) + p->wide_a;
}

static int64_t row_of_b(const product *p)
{
    return (p->trans_b ? p->k : p->n) + p->wide_b;
}

static float expected(const product *p, const float *a, const float *b, const float *c,
                      int64_t at)
{
    const int64_t row = p->n + p->wide_out, line = at / row, j = at % row;
    const int64_t i = line % p->m, own = line / p->m;
    const int64_t lda = row_of_a(p), ldb = row_of_b(p);
    float sum = 0;

    if (j >= p->n)
        return 0;
    for (int64_t batch = p->sum ? 0 : own; batch < (p->sum ? p->batch : own + 1);
         batch++) {
        const float *left =
            a + (p->shares_a ? 0 : batch * (p->trans_a ? p->k : p->m) * lda);
        const float *right =
            b + (p->shares_b ? 0 : batch * (p->trans_b ? p->n : p->k) * ldb);

        for (int64_t k = 0; k < p->k; k++)
            sum += left[p->trans_a ? k * lda + i : i * lda + k] *
                   right[p->trans_b ? j * ldb + k : k * ldb + j];
    }
    return p->is_plain ? sum : 2 * sum - c[line * (p->n + p->wide_c) + j];
}

static void set_size(gx_call *call, int attr, int64_t size)
{
    call->attr[attr] = (gx_attr){ .i = size, .present = true };
}

/* As an expanded gemm has them: the sizes beside rows that are wider. */
static void set_sizes(gx_call *call, const product *p)
{
    if (p->wide_a + p->wide_b + p->wide_c + p->wide_out == 0)
        return;
    set_size(call, GX_GEMM_M, p->m);
    set_size(call, GX_GEMM_N, p->n);
    set_size(call, GX_GEMM_K, p->k);
    if (p->wide_a > 0)
        set_size(call, GX_GEMM_LD_A, row_of_a(p));
    if (p->wide_b > 0)
        set_size(call, GX_GEMM_LD_B, row_of_b(p));
    if (p->wide_c > 0)
        set_size(call, GX_GEMM_LD_C, p->n + p->wide_c);
    if (p->wide_out > 0)
        set_size(call, GX_GEMM_LD_OUT, p->n + p->wide_out);
}

static void set_sum(gx_call *call, const product *p, const tensor *c)
{
    if (p->is_plain) {
        call->precision = GX_PRECISION_TF32; /* exact, of small whole numbers */
        return;
    }
    call->arg[GX_GEMM_C] = c->view;
    call->attr[GX_GEMM_ALPHA] = (gx_attr){ .r = 2, .present = true };
    call->attr[GX_GEMM_BETA] = (gx_attr){ .r = -1, .present = true };
}

/* out = 2 op(a) op(b) - c by every candidate, or the plain product; returns how many ran.
 */
static int check_product(setting *s, const product *p, int shift, test_random *random)
{
    const int64_t out_batch = p->sum ? 0 : p->batch;
    tensor a = make(p->dtype, p->shares_a ? 0 : p->batch, p->trans_a ? p->k : p->m,
                    row_of_a(p), shift);
    tensor b = make(p->dtype, p->shares_b ? 0 : p->batch, p->trans_b ? p->n : p->k,
                    row_of_b(p), shift);
    tensor c = make(p->dtype, out_batch, p->m, p->n + p->wide_c, shift);
    float *va = fill_used(random, &a, row_of_a(p) - p->wide_a);
    float *vb = fill_used(random, &b, row_of_b(p) - p->wide_b);
    float *vc = fill_used(random, &c, p->n);
    gx_call call = call_of("gemm");
    const gx_group group = { .n_calls = 1, .call = &call };
    const gx_alternative *alternative;
    int ran = 0;

    call.arg[GX_GEMM_A] = a.view;
    call.arg[GX_GEMM_B] = b.view;
    set_sum(&call, p, &c);
    call.attr[GX_GEMM_TRANS_A].i = p->trans_a;
    call.attr[GX_GEMM_TRANS_B].i = p->trans_b;
    call.attr[GX_GEMM_SUM_BATCH].i = p->sum;
    set_sizes(&call, p);
    for (size_t at = 0; (alternative = gx_alternative_at(at)); at++) {
        for (int choice = 0, n = 1; is_plain_gemm(alternative) && choice < n; choice++) {
            tensor out = make(p->dtype, out_batch, p->m, p->n + p->wide_out, shift);

            call.arg[GX_GEMM_OUT] = out.view;
            n = run(s, alternative, &group, choice);
            float *got = get(&out, 0, out.n);

            for (int64_t i = 0; n > 0 && i < out.n; i++) {
                const float wanted = expected(p, va, vb, vc, i);

                if (!(got[i] == wanted))
                    fail_msg("%s, candidate %d, %s, %lld x %lld x %lld, a%s b%s, wider "
                             "by %lld %lld %lld %lld, shift %d: element %lld is %g, "
                             "expected %g",
                             alternative->name, choice, gx_dtype_name(p->dtype),
                             (long long)p->m, (long long)p->n, (long long)p->k,
                             p->trans_a ? "'" : "", p->trans_b ? "'" : "",
                             (long long)p->wide_a, (long long)p->wide_b,
                             (long long)p->wide_c, (long long)p->wide_out, shift,
                             (long long)i, (double)got[i], (double)wanted);
            }
            free(got);
            ran += n > 0;
            drop(&out);
        }
    }
    free(va);
    free(vb);
    free(vc);
    drop(&a);
    drop(&b);
    drop(&c);
    return ran;
}

static void batches_are_exact_at_any_address(void **state)
{
    static const int shifts[] = { 0, 1, 8 };
    static const int64_t sizes[][3] = { { 3, 5, 7 }, { 16, 24, 40 } };
    static const gx_dtype types[] = { GX_F32, GX_BF16, GX_F16 };
    test_random random = test_random_start(test_seed());

    for (size_t shift = 0; shift < ARRAY_SIZE(shifts); shift++) {
        for (size_t size = 0; size < ARRAY_SIZE(sizes); size++) {
            for (int form = 0; form < 12 * MODES; form++) {
                const int mode = form / 12;
                const product p = { .m = sizes[size][0],
                                    .n = sizes[size][1],
                                    .k = sizes[size][2],
                                    .batch = 3,
                                    .trans_a = form & 1,
                                    .trans_b = form & 2,
                                    .dtype = types[form / 4 % 3],
                                    .shares_a = mode == 1,
                                    .shares_b = mode == 2,
                                    .sum = mode == 3 };

                assert_true(check_product(*state, &p, shifts[shift], &random) >= 5);
            }
        }
    }
}

/* Rows that are wider by what vectors allow and by what they do not; memory is filled
 * with NaN before, so that what is read or left beside shows itself. */
static void wide_rows_are_exact_at_any_address(void **state)
{
    static const int shifts[] = { 0, 1 };
    static const int64_t sizes[][3] = { { 3, 5, 7 }, { 16, 24, 40 }, { 70, 65, 33 } };
    static const int64_t wide[][4] = { { 1, 3, 2, 5 }, { 8, 16, 8, 24 }, { 4, 0, 0, 0 },
                                       { 0, 2, 0, 0 }, { 0, 0, 3, 0 },   { 0, 0, 0, 1 } };
    static const gx_dtype types[] = { GX_F32, GX_BF16, GX_F16 };
    test_random random = test_random_start(test_seed());

    for (size_t at = 0; at < ARRAY_SIZE(sizes) * ARRAY_SIZE(wide); at++) {
        const int64_t *size = sizes[at % ARRAY_SIZE(sizes)];
        const int64_t *by = wide[at / ARRAY_SIZE(sizes)];

        for (int form = 0; form < 12 * MODES; form++) {
            const int mode = form / 12;
            const product p = { .m = size[0],
                                .n = size[1],
                                .k = size[2],
                                .batch = 3,
                                .trans_a = form & 1,
                                .trans_b = form & 2,
                                .dtype = types[form / 4 % 3],
                                .shares_a = mode == 1,
                                .shares_b = mode == 2,
                                .sum = mode == 3,
                                .wide_a = by[0],
                                .wide_b = by[1],
                                .wide_c = by[2],
                                .wide_out = by[3] };

            assert_true(check_product(*state, &p, shifts[form % 2], &random) >= 5);
        }
    }
}

/* One product alone, which the kernel for small ones takes too. */
static void wide_rows_of_one_product_are_exact(void **state)
{
    static const int64_t sizes[][3] = { { 16, 24, 40 }, { 33, 32, 36 }, { 64, 16, 10 } };
    static const int64_t wide[][2] = { { 8, 8 }, { 4, 2 }, { 1, 3 }, { 2, 0 }, { 0, 1 } };
    static const gx_dtype types[] = { GX_F32, GX_BF16, GX_F16 };
    test_random random = test_random_start(test_seed());
    int ran = 0;

    for (size_t at = 0; at < ARRAY_SIZE(sizes) * ARRAY_SIZE(wide); at++) {
        const int64_t *size = sizes[at % ARRAY_SIZE(sizes)];

        for (int form = 0; form < 12; form++) {
            const product p = { .m = size[0],
                                .n = size[1],
                                .k = size[2],
                                .batch = 1,
                                .trans_a = form & 1,
                                .trans_b = form & 2,
                                .dtype = types[form / 4],
                                .wide_a = wide[at / ARRAY_SIZE(sizes)][0],
                                .wide_b = wide[at / ARRAY_SIZE(sizes)][1],
                                .is_plain = true };

            ran += check_product(*state, &p, 0, &random);
        }
    }
    print_message("%d candidates\n", ran);
    assert_true(ran > 12 * 15 * 6);
}

/* Enough for an operand to be transposed ahead: by pairs and one by one, one matrix and
 * several. */
static void large_products_are_exact_at_any_address(void **state)
{
    static const struct {
        int64_t m, n, k, batch, wide;
        int shift;
        bool shares_a;
    } cases[] = {
        { 1024, 17, 1028, 1, 0, 0, false }, { 1024, 17, 1028, 1, 2, 1, false },
        { 1023, 17, 1027, 1, 1, 0, false }, { 520, 17, 1030, 2, 0, 0, false },
        { 1024, 9, 1028, 2, 0, 0, true },
    };
    test_random random = test_random_start(test_seed());

    if (test_is_short()) /* what is expected takes seconds */
        skip();
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const product p = { .m = cases[i].m,
                            .n = cases[i].n,
                            .k = cases[i].k,
                            .batch = cases[i].batch,
                            .trans_a = true,
                            .dtype = GX_F32,
                            .shares_a = cases[i].shares_a,
                            .wide_a = cases[i].wide,
                            .wide_b = cases[i].wide,
                            .is_plain = true };

        assert_true(check_product(*state, &p, cases[i].shift, &random) >= 4);
    }
}

/* --- past 2^31 --- */

static void fill_ones(const tensor *t)
{
    enum { PART = 1 << 20 };
    float *ones = malloc(PART * sizeof *ones);

    assert_non_null(ones);
    for (int i = 0; i < PART; i++)
        ones[i] = 1;
    for (int64_t at = 0; at < t->n; at += PART)
        put(t, at, t->n - at < PART ? t->n - at : PART, ones);
    free(ones);
}

static void a_batch_passes_two_to_the_31(void **state)
{
    enum { BATCH = 70000, M = 200, N = 160, K = 8 };
    tensor a = make(GX_BF16, BATCH, M, K, 0), b = make(GX_BF16, BATCH, K, N, 0);
    tensor out = make(GX_BF16, BATCH, M, N, 0);
    gx_call call = call_of("gemm");
    const gx_group group = { .n_calls = 1, .call = &call };
    const gx_alternative *alternative;
    int ran = 0;

    if (test_is_short()) { /* a tool would take minutes */
        drop(&a);
        drop(&b);
        drop(&out);
        skip();
    }
    assert_true(out.n > INT32_MAX + INT64_C(1));
    fill_ones(&a);
    fill_ones(&b);
    call.arg[GX_GEMM_A] = a.view;
    call.arg[GX_GEMM_B] = b.view;
    call.arg[GX_GEMM_OUT] = out.view;
    for (size_t at = 0; (alternative = gx_alternative_at(at)); at++) {
        if (!is_plain_gemm(alternative))
            continue;
        assert_int_equal(cudaMemset(out.view.data, 0xff, (size_t)out.n * 2), cudaSuccess);
        if (run(*state, alternative, &group, 0) == 0)
            continue;
        assert_at(&out, 0, K);
        assert_at(&out, out.n / 2, K);
        assert_at(&out, INT64_C(1) << 31, K);
        assert_at(&out, out.n - 1, K);
        ran++;
    }
    assert_true(ran >= 1);
    drop(&a);
    drop(&b);
    drop(&out);
}

int main(void)
{
    gpu_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(batches_are_exact_at_any_address, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(wide_rows_are_exact_at_any_address, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(wide_rows_of_one_product_are_exact, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(large_products_are_exact_at_any_address, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_batch_passes_two_to_the_31, set_up, tear_down),
    };

    return cmocka_run_group_tests_name("gpu_gemm", tests, NULL, NULL);
}
