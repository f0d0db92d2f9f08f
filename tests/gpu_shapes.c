/* The ops that move elements, cast and dropout on a GPU: any address, more than 2^31
 * elements, values at the edge of their type, masks that are those of the CPU. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dropout.h"
#include "launch.h"
#include "support_gpu.h"
#include "support_moves.h"

enum { SHIFTS = 9, DRAWS = 400 };

static gx_ctx context(cudaStream_t stream)
{
    int n_sm = 0;

    assert_int_equal(cudaDeviceGetAttribute(&n_sm, cudaDevAttrMultiProcessorCount, 0),
                     cudaSuccess);
    return (gx_ctx){ .stream = stream, .n_sm = n_sm, .cc = 90 };
}

/* Memory on the device, `shift` bytes behind an aligned address, filled with 0xee. */
static void *take(size_t bytes, size_t shift, void **block)
{
    assert_int_equal(cudaMalloc(block, bytes + shift + 64), cudaSuccess);
    assert_int_equal(cudaMemset(*block, 0xee, bytes + shift + 64), cudaSuccess);
    return (char *)*block + shift;
}

static void to_device(void *to, const void *from, size_t bytes)
{
    assert_int_equal(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), cudaSuccess);
}

static void to_host(void *to, const void *from, size_t bytes)
{
    assert_int_equal(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), cudaSuccess);
}

/* False where the alternative is for another op, or does not apply. */
static bool run(const gx_alternative *alternative, const gx_call *call)
{
    const gx_group group = { .n_calls = 1, .call = call };
    gx_prepared prepared = { 0 };
    gx_error err = { 0 };
    cudaStream_t stream;

    if (alternative->pattern[1] ||
        strcmp(alternative->pattern[0], gx_op_name(call->op)) != 0)
        return false;
    assert_int_equal(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                     cudaSuccess);
    gx_ctx ctx = context(stream);
    const bool applies = !alternative->refuses(&group, &ctx);

    if (applies) {
        assert_int_equal(cudaDeviceSynchronize(), cudaSuccess);
        assert_ok(alternative->prepare(&group, &ctx, &prepared, &err), &err);
        assert_ok(alternative->launch(&group, &prepared, &ctx, &err), &err);
        assert_int_equal(ctx.n_launched, prepared.n_launches);
        assert_int_equal(cudaStreamSynchronize(stream), cudaSuccess);
    }
    assert_int_equal(cudaStreamDestroy(stream), cudaSuccess);
    return applies;
}

/* --- moves --- */

static void put_marks(const gx_tensor *t, int i)
{
    const int64_t n = gx_count(t);
    const size_t element = gx_dtype_bytes(t->dtype);
    char *host = malloc((size_t)n * element + 1);

    assert_non_null(host);
    for (int64_t k = 0; k < n; k++) {
        const uint16_t mark = test_move_mark(i, k);
        const uint32_t wide = mark;

        memcpy(host + (size_t)k * element,
               element == 4 ? (const void *)&wide : (const void *)&mark, element);
    }
    to_device(t->data, host, (size_t)n * element);
    free(host);
}

/* The result, and that nothing is written behind its end. */
static void expect_marks(const gx_call *call, int out, const double *expected)
{
    const gx_tensor *t = &call->arg[out];
    const int64_t n = gx_count(t);
    const size_t element = gx_dtype_bytes(t->dtype);
    unsigned char *host = malloc((size_t)n * element + 1);

    assert_non_null(host);
    to_host(host, t->data, (size_t)n * element + 1);
    for (int64_t k = 0; k < n; k++) {
        uint16_t mark = 0;
        uint32_t wide = 0;

        memcpy(element == 4 ? (void *)&wide : (void *)&mark, host + (size_t)k * element,
               element);
        if (wide + mark != expected[k])
            print_error("%s[%lld]: %u, expected %.0f\n", gx_op_name(call->op),
                        (long long)k, (unsigned)(wide + mark), expected[k]);
        assert_true(wide + mark == expected[k]);
    }
    assert_int_equal(host[(size_t)n * element], 0xee);
    free(host);
}

static void moves_are_exact_at_any_address(void **state)
{
    test_random random = test_random_start(test_seed());
    int n_runs = 0;

    (void)state;
    for (int draw = 0; draw < DRAWS; draw++) {
        void *block[GX_MAX_ARGS] = { NULL };
        const gx_alternative *alternative;
        gx_call call;
        const int64_t most = draw % 7 ? 20 : 70;
        const int out = test_move_draw(&random, test_moves[draw % 5], most, &call);

        if (gx_count(&call.arg[out]) > 1 << 22)
            continue;
        double *expected = test_move_expected(&call, out);

        for (int i = 0; i <= out; i++) {
            gx_tensor *t = &call.arg[i];

            if (t->rank < 0)
                continue;
            const size_t element = gx_dtype_bytes(t->dtype);
            const size_t shift = (size_t)test_random_int(&random, 0, SHIFTS - 1);

            t->data = take((size_t)gx_count(t) * element, shift * element, &block[i]);
            if (i < out)
                put_marks(t, i);
        }
        for (size_t k = 0; (alternative = gx_alternative_at(k)); k++) {
            assert_int_equal(cudaMemset(call.arg[out].data, 0xee,
                                        (size_t)gx_count(&call.arg[out]) *
                                            gx_dtype_bytes(call.arg[out].dtype)),
                             cudaSuccess);
            if (!run(alternative, &call))
                continue;
            expect_marks(&call, out, expected);
            n_runs++;
        }
        for (int i = 0; i <= out; i++)
            assert_int_equal(cudaFree(block[i]), cudaSuccess);
        free(expected);
    }
    assert_true(n_runs >= DRAWS / 2);
}

/* A few marks far apart in 2^31 + 65536 elements, and where each must be found. */
static void moves_pass_two_to_the_31(void **state)
{
    const int64_t rows = 65536, columns = 32769, n = rows * columns;
    const int64_t marks[][2] = {
        { 0, 0 }, { 1, 32768 }, { 40000, 17 }, { 65535, 32767 }, { 65535, 32768 }
    };
    const size_t bytes = (size_t)n * 2;
    size_t free_bytes = 0, total_bytes = 0;
    const gx_alternative *alternative;
    void *from, *to;
    int n_runs = 0;

    (void)state;
    if (test_is_short())
        skip();
    assert_int_equal(cudaMemGetInfo(&free_bytes, &total_bytes), cudaSuccess);
    if (free_bytes < 2 * bytes + (UINT64_C(1) << 28))
        skip();
    gx_call turn = { .op = gx_op_find("transpose") }, cut = { .op = gx_op_find("slice") };

    for (int i = 0; i < GX_MAX_ARGS; i++)
        turn.arg[i].rank = cut.arg[i].rank = -1;
    turn.arg[0] = (gx_tensor){ GX_BF16, 2, { rows, columns }, take(bytes, 0, &from) };
    turn.arg[1] = (gx_tensor){ GX_BF16, 2, { columns, rows }, take(bytes, 0, &to) };
    cut.arg[0] = turn.arg[0];
    cut.arg[1] = (gx_tensor){ GX_BF16, 2, { rows, columns - 1 }, to };
    cut.attr[GX_SLICE_AXIS] = (gx_attr){ .i = 1, .present = true };
    cut.attr[GX_SLICE_START] = (gx_attr){ .i = 1, .present = true };
    cut.attr[GX_SLICE_STEP] = (gx_attr){ .i = 1, .present = true };
    for (uint16_t m = 0; m < 5; m++) {
        const uint16_t mark = (uint16_t)(m + 1);

        to_device((char *)from + 2 * (marks[m][0] * columns + marks[m][1]), &mark, 2);
    }
    for (size_t k = 0; (alternative = gx_alternative_at(k)); k++) {
        for (int op = 0; op < 2; op++) {
            assert_int_equal(cudaMemset(to, 0, bytes), cudaSuccess);
            if (!run(alternative, op ? &cut : &turn))
                continue;
            n_runs++;
            for (int m = 0; m < 5; m++) {
                const int64_t i = marks[m][0], j = marks[m][1];
                uint16_t mark = 0;

                if (op && j == 0)
                    continue;
                to_host(&mark,
                        (char *)to + 2 * (op ? i * (columns - 1) + j - 1 : j * rows + i),
                        2);
                assert_int_equal(mark, m + 1);
            }
        }
    }
    assert_int_equal(n_runs, 3);
    assert_int_equal(cudaFree(from), cudaSuccess);
    assert_int_equal(cudaFree(to), cudaSuccess);
}

/* --- casts --- */

enum { N_CAST = 67 };

static void put_value(gx_dtype dtype, void *to, double value)
{
    const float real = (float)value;
    const uint16_t half =
        dtype == GX_F16 ? gx_f16_from_float(real) : gx_bf16_from_float(real);
    const int32_t whole = dtype == GX_I32 ? (int32_t)value : 0;

    if (gx_dtype_bytes(dtype) == sizeof half)
        memcpy(to, &half, sizeof half);
    else
        memcpy(to, dtype == GX_I32 ? (const void *)&whole : (const void *)&real, 4);
}

static double get_value(gx_dtype dtype, const void *from)
{
    uint16_t half;
    int32_t whole;
    float real;

    if (gx_dtype_bytes(dtype) == sizeof half) {
        memcpy(&half, from, sizeof half);
        return dtype == GX_F16 ? (double)gx_f16_to_float(half)
                               : (double)gx_bf16_to_float(half);
    }
    if (dtype == GX_I32) {
        memcpy(&whole, from, sizeof whole);
        return whole;
    }
    memcpy(&real, from, sizeof real);
    return (double)real;
}

/* What the CPU makes of it: the reference, then the rounding of storing. */
static double cast_of(const gx_call *call, double x)
{
    gx_call reference = *call;
    gx_error err = { 0 };
    double y = 0;

    reference.arg[GX_CAST_X] = (gx_tensor){ GX_F64, 0, { 0 }, &x };
    reference.arg[GX_CAST_OUT] = (gx_tensor){ GX_F64, 0, { 0 }, &y };
    assert_ok(call->op->reference(&reference, &err), &err);
    return gx_round_to(call->arg[GX_CAST_OUT].dtype, y);
}

static void casts_are_those_of_the_cpu(void **state)
{
    static const gx_dtype types[] = { GX_F32, GX_BF16, GX_F16, GX_I32 };
    enum { N_TYPES = ARRAY_SIZE(types), PAIRS = N_TYPES * N_TYPES };
    static const double edges[] = { 0.5,      -0.5,  1.9999,    -1.9999, 1e-40,
                                    3e38,     65519, 65520,     3e-8,    -3e9,
                                    INFINITY, NAN,   -INFINITY, 8388609 };
    static const int32_t wholes[] = { 0,        -1,         INT32_MAX, INT32_MIN,
                                      16777217, 1077936129, 257,       -65409 };
    test_random random = test_random_start(test_seed());
    int n_runs = 0;

    (void)state;
    for (int pair = 0; pair < PAIRS * SHIFTS; pair++) {
        const gx_dtype from = types[pair % N_TYPES], to = types[pair / N_TYPES % N_TYPES];
        const size_t a = gx_dtype_bytes(from), b = gx_dtype_bytes(to);
        const size_t shift = (size_t)pair / PAIRS;
        gx_call call = { .op = gx_op_find("cast") };
        const gx_alternative *alternative;
        double values[N_CAST];
        char bytes[N_CAST * 4];
        void *x, *y;

        for (int i = 0; i < GX_MAX_ARGS; i++)
            call.arg[i].rank = -1;
        for (size_t i = 0; i < N_CAST; i++) {
            double value = test_random_real(&random, -1e5, 1e5);

            if (from != GX_I32 && i < ARRAY_SIZE(edges))
                value = edges[i];
            if (from == GX_I32 && i < ARRAY_SIZE(wholes))
                value = wholes[i];
            put_value(from, bytes + i * a, value);
            values[i] = get_value(from, bytes + i * a);
        }
        call.attr[GX_CAST_DTYPE].i = pair / N_TYPES % N_TYPES;
        call.arg[GX_CAST_X] =
            (gx_tensor){ from, 1, { N_CAST }, take(N_CAST * a, shift * a, &x) };
        call.arg[GX_CAST_OUT] =
            (gx_tensor){ to, 1, { N_CAST }, take(N_CAST * b, shift * b, &y) };
        to_device(call.arg[GX_CAST_X].data, bytes, N_CAST * a);
        for (size_t k = 0; (alternative = gx_alternative_at(k)); k++) {
            if (!run(alternative, &call))
                continue;
            to_host(bytes, call.arg[GX_CAST_OUT].data, N_CAST * b);
            for (size_t i = 0; i < N_CAST; i++) {
                const double got = get_value(to, bytes + i * b);
                const double want = cast_of(&call, values[i]);

                if (!(got == want || (isnan(got) && isnan(want))))
                    print_error("%s %.17g to %s: %.17g, expected %.17g\n",
                                gx_dtype_name(from), values[i], gx_dtype_name(to), got,
                                want);
                assert_true(got == want || (isnan(got) && isnan(want)));
            }
            n_runs++;
        }
        assert_int_equal(cudaFree(x), cudaSuccess);
        assert_int_equal(cudaFree(y), cudaSuccess);
    }
    assert_int_equal(n_runs, PAIRS * SHIFTS);
}

/* --- dropout --- */

/* At every address the elements that the host's words name, and the product of f32. */
static void masks_are_those_of_the_host(void **state)
{
    enum { N = 1031 };
    static const double shares[] = { 0, 0.1, 0.5, 0.999, 1 };
    static const gx_dtype types[] = { GX_F32, GX_BF16, GX_F16 };
    enum { N_TYPES = ARRAY_SIZE(types), N_SHARES = ARRAY_SIZE(shares) };
    enum { PER_SHIFT = N_TYPES * N_SHARES };
    const uint64_t seed = test_seed();
    test_random random = test_random_start(seed);
    int n_runs = 0;

    (void)state;
    for (int round = 0; round < PER_SHIFT * SHIFTS; round++) {
        const gx_dtype dtype = types[round % N_TYPES];
        const double p = shares[round / N_TYPES % N_SHARES];
        const size_t element = gx_dtype_bytes(dtype), shift = (size_t)round / PER_SHIFT;
        const int32_t step = (int32_t)test_random_int(&random, 0, INT32_MAX);
        gx_call call = { .op = gx_op_find("dropout"), .seed = seed };
        const gx_alternative *alternative;
        char x[N * 4], y[N * 4];
        void *block[3];

        for (int i = 0; i < GX_MAX_ARGS; i++)
            call.arg[i].rank = -1;
        for (size_t i = 0; i < N; i++)
            put_value(dtype, x + i * element, test_random_real(&random, 1, 2));
        call.attr[GX_DROPOUT_P].r = p;
        call.attr[GX_DROPOUT_STREAM].i = round;
        call.arg[GX_DROPOUT_X] =
            (gx_tensor){ dtype, 1, { N }, take(sizeof x, shift * element, &block[0]) };
        call.arg[GX_DROPOUT_STEP] =
            (gx_tensor){ GX_I32, 1, { 1 }, take(sizeof step, 0, &block[1]) };
        call.arg[GX_DROPOUT_OUT] =
            (gx_tensor){ dtype, 1, { N }, take(sizeof y, shift * element, &block[2]) };
        to_device(call.arg[GX_DROPOUT_X].data, x, N * element);
        to_device(call.arg[GX_DROPOUT_STEP].data, &step, sizeof step);
        for (size_t k = 0; (alternative = gx_alternative_at(k)); k++) {
            if (!run(alternative, &call))
                continue;
            to_host(y, call.arg[GX_DROPOUT_OUT].data, N * element);
            for (uint64_t i = 0; i < N; i++) {
                const uint64_t key = gx_dropout_key(seed, (uint64_t)round);
                const float scaled =
                    (float)gx_dropout_scale(p) * (float)get_value(dtype, x + i * element);
                uint32_t word[4];

                gx_dropout_words(key, (uint32_t)step, i / 4, word);
                const double want =
                    word[i % 4] < gx_dropout_bar(p) ? 0 : gx_round_to(dtype, scaled);

                assert_true(get_value(dtype, y + i * element) == want);
            }
            n_runs++;
        }
        for (int i = 0; i < 3; i++)
            assert_int_equal(cudaFree(block[i]), cudaSuccess);
    }
    assert_int_equal(n_runs, PER_SHIFT * SHIFTS);
}

enum { N_MASK = 1000, N_STEPS = 4 };

static const char one_dropout[] =
    "gexec: 1\nname: m\ninputs:\n  x: {shape: [1000], init: ones}\n"
    "ops:\n  - {op: dropout, name: d, x: x, p: 0.2}\noutputs: [d]\n";

static void read_mask(gx_exec *exec, double *mask)
{
    gx_tensor host = { .dtype = GX_F64, .rank = 1, .dim = { N_MASK }, .data = mask };
    gx_error err = { 0 };

    assert_ok(gx_exec_read(exec, "d", &host, &err), &err);
    for (int i = 0; i < N_MASK; i++)
        mask[i] = mask[i] != 0;
}

/* The masks of the first steps on the CPU. */
static void cpu_masks(uint64_t seed, double mask[N_STEPS][N_MASK])
{
    const gx_plan_options plan_options = { .device = GX_CPU };
    const gx_state_options state_options = { .device = GX_CPU, .seed = seed };
    gx_graph *graph;
    gx_plan *plan;
    gx_state *state;
    gx_exec *exec;
    gx_error err = { 0 };

    assert_ok(gx_graph_parse(one_dropout, strlen(one_dropout), "m", ".", NULL, &graph,
                             NULL, &err),
              &err);
    const gx_graph *const list[] = { graph };

    assert_ok(gx_plan_create(graph, &plan_options, &plan, &err), &err);
    assert_ok(gx_state_create(list, 1, &state_options, &state, &err), &err);
    assert_ok(gx_exec_create(plan, state, NULL, &exec, &err), &err);
    for (int step = 0; step < N_STEPS; step++) {
        assert_ok(gx_exec_run(exec, GX_MODE_CPU, 1, &err), &err);
        read_mask(exec, mask[step]);
    }
    gx_exec_free(exec);
    gx_state_free(state);
    gx_plan_free(plan);
    gx_graph_free(graph);
}

/* B04: each replay has the mask that the CPU has in that step, and no other has. */
static void every_replay_has_its_own_mask(void **state)
{
    const uint64_t seed = test_seed();
    static double want[N_STEPS][N_MASK];
    double mask[N_MASK];

    (void)state;
    cpu_masks(seed, want);
    for (int step = 1; step < N_STEPS; step++)
        assert_memory_not_equal(want[step], want[step - 1], sizeof mask);
    for (int way = 0; way < 4; way++) {
        const gpu_options options = { .seed = seed,
                                      .steps_per_launch = way == 3 ? 2 : 1,
                                      .programmatic = way == 2 ? GX_ON : GX_OFF };
        const int64_t by = options.steps_per_launch;
        gpu_program program;

        gpu_open_text(&program, one_dropout, &options);
        for (int64_t step = by; step <= N_STEPS; step += by) {
            gpu_run(&program, way == 0 ? GX_MODE_EAGER : GX_MODE_GRAPH, by);
            read_mask(program.exec, mask);
            assert_memory_equal(mask, want[step - 1], sizeof mask);
        }
        gpu_close(&program);
    }
}

/* --- views --- */

/* x at the caller's own address, by way of a view, in both modes. */
static void a_view_follows_its_input(void **state)
{
    const gpu_options options = { .seed = 1 };
    gpu_program program;
    float host[24], got[24];
    gx_tensor out = { .dtype = GX_F32, .rank = 2, .dim = { 4, 6 }, .data = got };
    void *memory[2];
    gx_error err = { 0 };

    (void)state;
    gpu_open_text(&program,
                  "gexec: 1\nname: m\ninputs:\n  x: {shape: [4, 6], init: zeros}\nops:\n"
                  "  - {op: reshape, name: a, x: x, shape: [6, 4]}\n"
                  "  - {op: transpose, name: b, x: a}\n"
                  "  - {op: reshape, name: c, x: b, shape: [24]}\n"
                  "  - {op: relu, name: d, x: c}\n"
                  "  - {op: reshape, name: y, x: d, shape: [4, 6]}\noutputs: [y]\n",
                  &options);
    assert_int_equal(gx_exec_stats_get(program.exec).launches_per_step, 2);
    gpu_run(&program, GX_MODE_GRAPH, 2);
    for (int bind = 0; bind < 2; bind++) {
        assert_int_equal(cudaMalloc(&memory[bind], sizeof host), cudaSuccess);
        for (int i = 0; i < 24; i++)
            host[i] = (float)(i + 1 + 100 * bind);
        to_device(memory[bind], host, sizeof host);
        assert_ok(gx_exec_bind(program.exec, "x", memory[bind], &err), &err);
        gpu_run(&program, bind ? GX_MODE_EAGER : GX_MODE_GRAPH, 2);
        assert_ok(gx_exec_read(program.exec, "y", &out, &err), &err);
        for (int k = 0; k < 24; k++)
            assert_true(got[k] == host[k % 6 * 4 + k / 6]);
    }
    gpu_close(&program);
    for (int bind = 0; bind < 2; bind++)
        assert_int_equal(cudaFree(memory[bind]), cudaSuccess);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moves_are_exact_at_any_address),
        cmocka_unit_test(moves_pass_two_to_the_31),
        cmocka_unit_test(casts_are_those_of_the_cpu),
        cmocka_unit_test(masks_are_those_of_the_host),
        cmocka_unit_test(every_replay_has_its_own_mask),
        cmocka_unit_test(a_view_follows_its_input),
    };

    gpu_start();
    return cmocka_run_group_tests_name("gpu_shapes", tests, NULL, NULL);
}
