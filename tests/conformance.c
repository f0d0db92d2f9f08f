/* Conformance: every row of the catalogue, every sample, every precision. The truth is
 * the CPU in exact doubles; the CPU with rounding, and each CUDA alternative in eager and
 * graph mode, must come within the rows' tolerance of it after one step and after three,
 * and graph mode must give the bits of eager mode.
 *
 *     conformance [cpu | gpu [N [I]]] [counts]
 *
 * Without a word: both; N: every Nth case, from the Ith on (from 0) or, without I, a
 * random one: for tools that slow the device down, and for several processes that share
 * the work; counts: also how many cases and checks there were by row, precision, mode and
 * alternative.
 *
 * With GX_TEST_SHORT set, for tools that look at what kernels do: the launches with
 * programmatic edges alone, and no plan is measured.
 *
 * One that is stopped (SIGTERM) says where it was.
 *
 * Exits with 77 where the GPU part had no device, unless GX_REQUIRE_GPU is set. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plan.h"
#include "support_case.h"
#include "support_counts.h"

enum { MAX_ALTERNATIVES = 64, MAX_PRINTED = 200 };

static struct {
    int n_checks, n_failures, n_cases, n_forced, n_measured;
    uint64_t seed;
    long every, turn;
    bool is_short;
    test_counts *counts; /* NULL: not asked for */
} totals;

/* Counts a case whose checks began after the first `before`. */
static void count(const test_case *c, const char *mode, const char *alternative,
                  int before)
{
    if (totals.counts)
        test_counts_add(totals.counts, c->row, test_precisions[c->precision], mode,
                        alternative, totals.n_checks - before);
}

static void complain(const test_case *c, const char *where, const char *format, ...)
    GX_PRINTF(3, 4);

static void complain(const test_case *c, const char *where, const char *format, ...)
{
    va_list args;

    totals.n_failures++;
    if (totals.n_failures > MAX_PRINTED)
        return;
    fprintf(stderr, "FAILED %s, %s: ", c->name, where);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\n");
}

/* --- where it is --- */

static char place[256] = "the beginning\n";

static void set_place(const test_case *c, const char *where)
{
    snprintf(place, sizeof place, "case %d, %s, %s; %d checks, %d failures\n",
             totals.n_cases, c->name, where, totals.n_checks, totals.n_failures);
}

static void tell_place(int signal)
{
    static const char text[] = "stopped in ";

    (void)signal;
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    (void)!write(STDERR_FILENO, place, strlen(place));
    _exit(1);
}

/* --- comparing --- */

static void compare_with_truth(test_case *c, const char *where,
                               double *const numbers[TEST_MARKS])
{
    for (int m = 0; m < TEST_MARKS; m++) {
        int64_t at = 0;

        for (size_t i = 0; i < c->n_values; i++) {
            const int64_t n = test_case_count(c, i);
            const double error = test_error(numbers[m] + at, c->truth[m] + at, n);
            double allowed = test_case_allowed(c, i, m);

            totals.n_checks++;
            if (!(error <= allowed) && test_case_look_closer(c))
                allowed = test_case_allowed(c, i, m);
            if (!(error <= allowed))
                complain(c, where, "%s after %lld steps: error %.3g, tolerance %.3g",
                         c->graph->values[c->values[i]].name, (long long)test_marks[m],
                         error, allowed);
            at += n;
        }
    }
}

/* Also of what is not a number: the same NaN is the same. */
static void compare_bits(const test_case *c, const char *where,
                         double *const eager[TEST_MARKS], double *const graph[TEST_MARKS])
{
    for (int m = 0; m < TEST_MARKS; m++) {
        int64_t at = 0;

        for (size_t i = 0; i < c->n_values; i++) {
            const int64_t n = test_case_count(c, i);

            totals.n_checks++;
            for (int64_t k = at; k < at + n; k++) {
                if (memcmp(&eager[m][k], &graph[m][k], sizeof(double)) == 0)
                    continue;
                complain(c, where, "%s[%lld] after %lld steps: eager %.17g, graph %.17g",
                         c->graph->values[c->values[i]].name, (long long)(k - at),
                         (long long)test_marks[m], eager[m][k], graph[m][k]);
                break;
            }
            at += n;
        }
    }
}

/* --- the CPU --- */

static gx_status run_cpu(const test_case *c, double *const numbers[TEST_MARKS],
                         gx_error *err)
{
    const gx_plan_options options = { .device = GX_CPU };
    test_program p;
    gx_status st = test_program_open(c, &options, false, &p, err);

    if (st == GX_OK)
        st = test_program_run(c, &p, GX_MODE_CPU, numbers, err);
    test_program_close(&p);
    return st;
}

static void check_cpu(test_case *c)
{
    const int before = totals.n_checks;
    double *numbers[TEST_MARKS];
    gx_error err = { 0 };

    set_place(c, "cpu");
    if (test_case_alloc(c, numbers, &err) != GX_OK) {
        complain(c, "cpu", "%s", err.message);
        return;
    }
    if (run_cpu(c, numbers, &err) == GX_OK)
        compare_with_truth(c, "cpu", numbers);
    else
        complain(c, "cpu", "%s", err.message);
    count(c, "cpu", "reference", before);
    test_case_free(numbers);
}

/* --- the GPU --- */

/* Eager and graph mode from one state. */
static gx_status run_both(const test_case *c, test_program *p,
                          double *const eager[TEST_MARKS],
                          double *const graph[TEST_MARKS], gx_error *err)
{
    gx_snapshot *start;
    gx_status st;

    GX_TRY(gx_state_save(p->state, &start, err));
    st = test_program_run(c, p, GX_MODE_EAGER, eager, err);
    if (st == GX_OK)
        st = gx_state_restore(p->state, start, err);
    if (st == GX_OK)
        st = test_program_run(c, p, GX_MODE_GRAPH, graph, err);
    gx_snapshot_free(start);
    return st;
}

static void check_program(test_case *c, const char *where, const char *alternative,
                          test_program *p)
{
    double *eager[TEST_MARKS] = { NULL, NULL };
    double *graph[TEST_MARKS] = { NULL, NULL };
    gx_error err = { 0 };
    gx_status st = test_case_alloc(c, eager, &err);

    if (st == GX_OK) {
        st = test_case_alloc(c, graph, &err);
        if (st == GX_OK)
            st = run_both(c, p, eager, graph, &err);
        if (st == GX_OK) {
            const int at_eager = totals.n_checks;
            compare_with_truth(c, where, eager);
            count(c, "eager", alternative, at_eager);
            const int at_graph = totals.n_checks;
            compare_bits(c, where, eager, graph);
            count(c, "graph", alternative, at_graph);
        }
        if (graph[0])
            test_case_free(graph);
        test_case_free(eager);
    }
    if (st != GX_OK)
        complain(c, where, "%s", err.message);
}

/* --- which plans are worth running --- */

enum { MAX_PLANS = 512 };

static struct {
    uint64_t mark[MAX_PLANS]; /* of the case's plans that were run */
    size_t n;
} ran;

static void add_byte(uint64_t *mark, unsigned byte)
{
    *mark = (*mark ^ byte) * UINT64_C(0x100000001b3);
}

/* What runs each part of a plan, and how. */
static uint64_t mark_of(const gx_plan *plan)
{
    uint64_t mark = UINT64_C(0xcbf29ce484222325);

    for (size_t u = 0; u < gx_plan_unit_count(plan); u++) {
        const gx_unit_info unit = gx_plan_unit(plan, u);

        for (const char *at = unit.alternative; *at; at++)
            add_byte(&mark, (unsigned char)*at);
        add_byte(&mark, (unsigned)unit.n_nodes);
        add_byte(&mark, (unsigned)unit.lane);
    }
    add_byte(&mark, gx_plan_info_get(plan).programmatic);
    return mark;
}

/* True once for each plan of a case. */
static bool is_new(const gx_plan *plan)
{
    const uint64_t mark = mark_of(plan);

    for (size_t i = 0; i < ran.n; i++) {
        if (ran.mark[i] == mark)
            return false;
    }
    if (ran.n < MAX_PLANS)
        ran.mark[ran.n++] = mark;
    return true;
}

/* Runs the plan unless the same one was run before. Returns false where no other way can
 * run it either: nothing takes the forced alternative, or there is no plan. */
static bool check_options(test_case *c, const gx_plan_options *options)
{
    const char *const alternative = options->force        ? options->force
                                    : options->no_measure ? "first"
                                                          : "measured";
    char where[96];
    gx_error err = { 0 };
    test_program p;

    snprintf(where, sizeof where, "%s, lanes %d, programmatic %s", alternative,
             options->lanes, options->programmatic == GX_ON ? "on" : "off");
    set_place(c, where);
    if (test_program_plan(c, options, &p, &err) != GX_OK) {
        complain(c, where, "%s", err.message);
        return false;
    }
    const gx_plan_info info = gx_plan_info_get(p.plan);
    const bool applies = !options->force || info.n_forced > 0;

    if (applies && options->lanes <= info.n_lanes &&
        (is_new(p.plan) || !options->no_measure)) {
        totals.n_forced += options->force != NULL;
        totals.n_measured += !options->no_measure;
        if (test_program_make(c, false, &p, &err) == GX_OK)
            check_program(c, where, alternative, &p);
        else
            complain(c, where, "%s", err.message);
    }
    test_program_close(&p);
    return applies;
}

static bool matches(const gx_graph *graph, const gx_alternative *alternative)
{
    for (size_t i = 0; i < graph->n_nodes; i++) {
        if (gx_match_length(graph, alternative, (int32_t)i) > 0)
            return true;
    }
    return false;
}

/* The names of alternatives that may run something of the graph, each once. */
static size_t list_names(const gx_graph *graph, const char *names[MAX_ALTERNATIVES])
{
    const gx_alternative *at;
    size_t n = 0;

    for (size_t i = 0; (at = gx_alternative_at(i)) && n < MAX_ALTERNATIVES; i++) {
        bool known = !matches(graph, at);

        for (size_t k = 0; k < n; k++)
            known |= strcmp(names[k], at->name) == 0;
        if (!known)
            names[n++] = at->name;
    }
    return n;
}

/* How a plan is launched; from SHORT_WAY on those that a tool sees too. */
static const struct {
    int lanes;
    gx_choice programmatic;
} ways[] = { { 1, GX_OFF }, { 3, GX_OFF }, { 2, GX_ON }, { 3, GX_ON }, { 1, GX_ON } };
enum { SHORT_WAY = 4 };

static void check_gpu(test_case *c, bool measured)
{
    const char *names[MAX_ALTERNATIVES];
    const size_t n_names = list_names(c->graph, names);
    gx_plan_options options = { .device = 0, .cache_folder = "", .no_measure = true };

    ran.n = 0;
    for (size_t i = 0; i <= n_names; i++) {
        bool applies = true;

        options.force = i < n_names ? names[i] : NULL;
        for (size_t way = totals.is_short ? SHORT_WAY : 0;
             applies && way < ARRAY_SIZE(ways); way++) {
            options.lanes = ways[way].lanes;
            options.programmatic = ways[way].programmatic;
            applies = check_options(c, &options);
        }
    }
    if (measured && !totals.is_short) {
        options = (gx_plan_options){
            .device = 0, .cache_folder = "", .lanes = 1, .programmatic = GX_OFF
        };
        (void)check_options(c, &options);
    }
}

/* --- the walk over the catalogue --- */

static void check_sample(const gx_op *op, const char *const *samples, size_t index,
                         gx_precision precision, bool on_cpu, bool on_gpu)
{
    test_case c;
    gx_error err = { 0 };

    if (totals.turn++ % totals.every != 0)
        return;
    const gx_status st = test_case_open(&c, op, index, samples[index], precision,
                                        totals.seed + 100 * index, &err);

    totals.n_cases++;
    if (st != GX_OK) {
        complain(&c, "set-up", "%s", err.message);
    } else {
        if (on_cpu)
            check_cpu(&c);
        if (on_gpu)
            check_gpu(&c, samples[index + 1] == NULL);
    }
    test_case_close(&c);
}

static void check_row(const gx_op *op, bool on_cpu, bool on_gpu)
{
    const char *const *samples = test_case_samples(op);

    if (!samples) {
        fprintf(stderr, "FAILED %s: it has no samples\n", op->name);
        totals.n_failures++;
        return;
    }
    for (size_t i = 0; samples[i]; i++) {
        for (int precision = 0; precision < TEST_PRECISIONS; precision++)
            check_sample(op, samples, i, (gx_precision)precision, on_cpu, on_gpu);
    }
}

/* What there is to say about a GPU part that was asked for. */
static int gpu_status(bool has_gpu, const gx_error *err)
{
    if (has_gpu) {
        if (totals.n_forced > 0)
            return 0;
        fprintf(stderr, "FAILED: no alternative was forced\n");
        return 1;
    }
    printf("skipped: no CUDA device (%s)\n", err->message);
    return getenv("GX_REQUIRE_GPU") ? 1 : TEST_SKIPPED;
}

int main(int argc, char **argv)
{
    const bool counted = argc > 1 && strcmp(argv[argc - 1], "counts") == 0;

    argc -= counted;
    const bool cpu = argc < 2 || strcmp(argv[1], "cpu") == 0;
    const bool gpu = argc < 2 || strcmp(argv[1], "gpu") == 0;
    int n_devices = 0;
    gx_error err = { 0 };

    totals.every = argc >= 3 && gpu ? atol(argv[2]) : 1;
    const long first = argc == 4 ? atol(argv[3]) : -1;
    if ((!cpu && !gpu) || argc > 4 || (argc >= 3 && cpu) || totals.every < 1 ||
        first >= totals.every) {
        fprintf(stderr, "usage: conformance [cpu | gpu [N [I]]] [counts]\n");
        return 2;
    }
    const bool has_gpu =
        gpu && gx_device_count(&n_devices, &err) == GX_OK && n_devices > 0;

    if (counted && !(totals.counts = test_counts_create())) {
        fprintf(stderr, "out of memory\n");
        return 1;
    }
    sigaction(SIGTERM, &(struct sigaction){ .sa_handler = tell_place }, NULL);
    totals.is_short = test_is_short();
    totals.seed = test_seed();
    totals.turn = first >= 0 ? (totals.every - first) % totals.every
                             : (long)(totals.seed % (uint64_t)totals.every);
    for (size_t i = 0; (cpu || has_gpu) && i < gx_op_count(); i++)
        check_row(gx_op_at(i), cpu, has_gpu);
    if (counted)
        test_counts_print(totals.counts, stdout);
    test_counts_free(totals.counts);
    printf("conformance: %d checks, %d alternatives forced, %d plans measured, %d cases, "
           "%d failures\n",
           totals.n_checks, totals.n_forced, totals.n_measured, totals.n_cases,
           totals.n_failures);
    if (totals.n_failures > 0 || (totals.n_checks == 0 && (cpu || has_gpu)))
        return 1;
    return gpu ? gpu_status(has_gpu, &err) : 0;
}
