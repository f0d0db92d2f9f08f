/* Device memory stays flat; cold processes; a device that fails. Each case of the second
 * kind is a process of its own: this program again, with the case as its argument. */
#include "support_gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cuda_runtime_api.h>

static const char *self;

/* --- memory --- */

enum { FLAT_BYTES = 2 << 20 };

static int64_t free_bytes(void)
{
    gx_device_info info;
    gx_error err;

    assert_ok(gx_device_info_get(0, &info, &err), &err);
    return info.free_bytes;
}

static void assert_flat(int64_t before, const char *when)
{
    const int64_t now = free_bytes();

    if (before - now > FLAT_BYTES && !test_is_short())
        fail_msg("%s: %lld bytes of device memory are gone", when,
                 (long long)(before - now));
}

static uint64_t graph_memory(void)
{
    uint64_t bytes = 0;

    assert_int_equal(
        cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrReservedMemCurrent, &bytes), 0);
    return bytes;
}

static void building_and_freeing_leaves_memory_flat(void **state)
{
    const int n_rounds = test_is_short() ? 4 : 100;
    int64_t before = 0;

    (void)state;
    for (int round = 0; round < n_rounds; round++) {
        gpu_program program;

        gpu_open(&program, NULL);
        gpu_run(&program, GX_MODE_GRAPH, 3);
        (void)gpu_bits(&program);
        gpu_close(&program);
        assert_int_equal(graph_memory(), 0);
        if (round == 1)
            before = free_bytes();
        else if (round > 1)
            assert_flat(before, "after a round");
    }
}

static void replaying_leaves_memory_flat(void **state)
{
    gpu_program program;

    (void)state;
    gpu_open(&program, NULL);
    gpu_run(&program, GX_MODE_GRAPH, 10);
    (void)gpu_bits(&program);
    const int64_t before = free_bytes();
    for (int i = 0; i < 10; i++) {
        gpu_run(&program, GX_MODE_GRAPH, test_is_short() ? 10 : 1000);
        (void)gpu_bits(&program);
        assert_flat(before, "after replays");
        assert_int_equal(graph_memory(), 0);
    }
    gpu_close(&program);
}

static void a_graph_for_each_batch_size_grows_by_its_own_memory_alone(void **state)
{
    enum { MOST = 50 };
    static gpu_program programs[MOST];
    const int n = test_is_short() ? 6 : MOST;
    size_t planned = 0;

    (void)state;
    for (int i = 0; i < n; i++) {
        const gpu_options options = { .batch = i + 1 };

        gpu_open(&programs[i], &options);
        gpu_run(&programs[i], GX_MODE_GRAPH, 1);
        (void)gpu_bits(&programs[i]);
        planned += gx_exec_stats_get(programs[i].exec).device_bytes;
    }
    print_message("planned %zu bytes for %d programs\n", planned, n);
    const int64_t with_all = free_bytes();
    for (int i = 0; i < n; i++)
        gpu_close(&programs[i]);
    /* What a program took beyond its plan is its graph's: no steps of a library's
     * workspace, which are 4 MiB and more. */
    const int64_t taken = free_bytes() - with_all;
    if (taken > (int64_t)planned + (int64_t)n * (2 << 20) && !test_is_short())
        fail_msg("%d programs took %lld bytes, planned were %zu", n, (long long)taken,
                 planned);
}

/* --- processes --- */

/* Runs this program with an argument and gives its output's first line. */
static int run_self(const char *argument, const char *variable, const char *value,
                    char *line, size_t size)
{
    int ends[2];
    int status = -1;

    line[0] = '\0';
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (variable)
            setenv(variable, value, 1);
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        execl(self, self, argument, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    FILE *out = fdopen(ends[0], "r");
    assert_non_null(out);
    if (!fgets(line, (int)size, out))
        line[0] = '\0';
    while (fgetc(out) != EOF) {
    }
    fclose(out);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void lazy_and_eager_loading_give_the_same_bits(void **state)
{
    char lazy[64];
    char eager[64];

    (void)state;
    assert_int_equal(
        run_self("--graph=0", "CUDA_MODULE_LOADING", "LAZY", lazy, sizeof lazy), 0);
    assert_int_equal(
        run_self("--graph=0", "CUDA_MODULE_LOADING", "EAGER", eager, sizeof eager), 0);
    assert_true(strlen(lazy) > 10);
    assert_string_equal(lazy, eager);
}

static void any_size_is_captured_in_a_cold_process(void **state)
{
    const int sizes[] = { 1, 255, 256, 257, 4096 };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        char argument[2][32];
        char line[2][64];

        snprintf(argument[0], sizeof argument[0], "--graph=%d", sizes[i]);
        snprintf(argument[1], sizeof argument[1], "--eager=%d", sizes[i]);
        for (int k = 0; k < 2; k++)
            assert_int_equal(run_self(argument[k], NULL, NULL, line[k], sizeof line[k]),
                             0);
        assert_true(strlen(line[0]) > 10);
        assert_string_equal(line[0], line[1]);
    }
}

static void hidden_devices_are_told_apart_from_none(void **state)
{
    const char *const values[] = { "", "-1", "99" };

    (void)state;
    if (test_is_short())
        skip();
    for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
        char line[600];

        assert_int_equal(
            run_self("--count", "CUDA_VISIBLE_DEVICES", values[i], line, sizeof line), 3);
        assert_has(line, "no usable GPU");
    }
}

static void after_a_real_fault_the_device_is_broken(void **state)
{
    char line[600];

    (void)state;
    if (getenv("GX_SANITIZER"))
        skip();
    if (test_is_short())
        skip();
    assert_int_equal(run_self("--fault", NULL, NULL, line, sizeof line), 0);
    assert_has(line, "broken");
}

/* --- what the processes do --- */

/* `batch` 0: the usual one. */
static int print_bits(int64_t batch, gx_mode mode)
{
    const gpu_options options = { .batch = batch,
                                  .outer = batch > 0 && batch < 300 ? batch : 0 };
    gpu_program program;

    gpu_open(&program, &options);
    gpu_run(&program, mode, 10);
    printf("%016llx ok\n", (unsigned long long)gpu_bits(&program));
    gpu_close(&program);
    return 0;
}

static int print_count(void)
{
    int n = 7;
    gx_error err;
    const gx_status st = gx_device_count(&n, &err);

    printf("%d %s\n", n, st == GX_OK ? "" : err.message);
    return n == 0 || st == GX_OK ? gx_status_exit(st) : 1;
}

/* An input at an address where there is nothing. */
static int provoke_fault(void)
{
    gpu_program program;
    gx_error err;
    double loss = 0;
    gx_tensor host = { .dtype = GX_F64, .rank = 0, .data = &loss };

    gpu_open(&program, NULL);
    assert_ok(gx_exec_bind(program.exec, "x", (void *)(uintptr_t)0x10000, &err), &err);
    gx_status st = gx_exec_run(program.exec, GX_MODE_GRAPH, 1, &err);
    if (st == GX_OK)
        st = gx_exec_sync(program.exec, &err);
    const bool seen = st == GX_ERR_CUDA;
    const bool broken =
        gx_exec_run(program.exec, GX_MODE_EAGER, 1, &err) == GX_ERR_BROKEN &&
        gx_exec_read(program.exec, "loss", &host, &err) == GX_ERR_BROKEN &&
        gx_state_set_rate(program.state, 0.5, &err) == GX_ERR_BROKEN;
    printf("%s\n", seen && broken ? "broken" : "not noticed");
    gpu_close(&program);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(building_and_freeing_leaves_memory_flat),
        cmocka_unit_test(replaying_leaves_memory_flat),
        cmocka_unit_test(a_graph_for_each_batch_size_grows_by_its_own_memory_alone),
        cmocka_unit_test(lazy_and_eager_loading_give_the_same_bits),
        cmocka_unit_test(any_size_is_captured_in_a_cold_process),
        cmocka_unit_test(hidden_devices_are_told_apart_from_none),
        cmocka_unit_test(after_a_real_fault_the_device_is_broken),
    };

    self = argv[0];
    if (argc > 1 && strncmp(argv[1], "--graph=", 8) == 0)
        return print_bits(atoll(argv[1] + 8), GX_MODE_GRAPH);
    if (argc > 1 && strncmp(argv[1], "--eager=", 8) == 0)
        return print_bits(atoll(argv[1] + 8), GX_MODE_EAGER);
    if (argc > 1 && strcmp(argv[1], "--count") == 0)
        return print_count();
    if (argc > 1 && strcmp(argv[1], "--fault") == 0)
        return provoke_fault();
    gpu_start();
    return cmocka_run_group_tests_name("gpu_memory", tests, NULL, NULL);
}
