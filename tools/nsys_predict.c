/* What graphs would buy, as text and as JSON. */
#include "nsys_predict.h"

#include <math.h>
#include <string.h>

#include "nsys_report.h"
#include "text_format.h"

static gx_words ns_words(double ns)
{
    return gx_words_seconds(ns < 0.0 ? -1.0 : ns * 1e-9);
}

static const char *by_name(gx_predict_by by)
{
    static const char *const names[] = { NULL, "range", "sequence", "names",
                                         "outermost range" };

    return names[by];
}

static void print_step(const gx_prediction *prediction, const gx_trace *trace, FILE *out)
{
    const char *const range = gx_trace_text_at(trace, prediction->range_name);

    fprintf(out, "  step        %lld kernels", (long long)prediction->n_kernels);
    if (prediction->n_copies)
        fprintf(out, ", %lld copies", (long long)prediction->n_copies);
    if (prediction->n_fills)
        fprintf(out, ", %lld fills", (long long)prediction->n_fills);
    fprintf(out, " on %lld stream%s; found ", (long long)prediction->n_streams,
            prediction->n_streams == 1 ? "" : "s");
    switch (prediction->by) {
    case GX_PREDICT_BY_RANGE:
        fprintf(out, "by ranges named '%s'", range);
        break;
    case GX_PREDICT_BY_SEQUENCE:
        fputs("as the sequence of launches that repeats", out);
        break;
    case GX_PREDICT_BY_NAMES:
        fputs("as the sequence of kernel names that repeats, with grids that differ",
              out);
        break;
    default:
        fprintf(out, "as the outermost range, '%s'", range);
    }
    fprintf(out, ": %lld step%s", (long long)prediction->n_steps,
            prediction->n_steps == 1 ? "" : "s");
    if (prediction->n_same < prediction->n_steps)
        fprintf(out, ", %lld of them with the same work", (long long)prediction->n_same);
    fputc('\n', out);
}

/* How many times as fast the graph is at most: tracing slows the eager step and is no
 * part of the predicted one. < 0: not known. */
static double most_times(const gx_prediction *prediction)
{
    return prediction->eager_ns > 0.0 && prediction->step_ns > 0.0
               ? prediction->eager_ns / prediction->step_ns
               : -1.0;
}

static void print_payback(const gx_prediction *prediction, FILE *out)
{
    fputs("  pays back   ", out);
    if (prediction->payback_steps < 0.0) {
        fputs("never: the step is no faster than even the traced one\n", out);
        return;
    }
    if (prediction->payback_steps < 1.0)
        fputs("within the first step at the earliest: ", out);
    else
        fprintf(out, "after at least %.0f steps: ", ceil(prediction->payback_steps));
    fprintf(out, "about %s to capture and instantiate\n",
            ns_words(prediction->build_ns).text);
}

static void print_figures(const gx_prediction *prediction, FILE *out)
{
    const double times = most_times(prediction);

    fprintf(out,
            "  eager       %s a step, as traced: tracing slows the launches, and by how "
            "much is not in the trace\n",
            ns_words(prediction->eager_ns).text);
    fprintf(out, "  as a graph  %s a step (%s to %s), replays back to back, untraced\n",
            ns_words(prediction->step_ns).text, ns_words(prediction->low_ns).text,
            ns_words(prediction->high_ns).text);
    if (times > 0.0)
        fprintf(out,
                "              at most %.2f times as fast: against the traced step\n",
                times);
    fprintf(out, "              %s from a replay's first node to its last\n",
            ns_words(prediction->replay_ns).text);
    fprintf(out, "  kernel sum  %s a step: traced times added up, for comparison\n",
            ns_words(prediction->naive_ns).text);
    print_payback(prediction, out);
}

static const char *what_to_do(gx_obstacle_kind kind)
{
    static const char *const advice[GX_OBSTACLE_KINDS] = {
        "no capture allows it: wait behind the step",
        "use the Async call on the captured stream",
        "use pinned memory, which the graph can read and write at replay",
        "allocate before the capture",
        "becomes a node of the graph; is fine",
        "cannot be captured: launch on another stream",
        "a graph for each, or one kind of step",
        "the host then launches into an idle device"
    };

    return advice[kind];
}

static void print_obstacles(const gx_prediction *prediction, const gx_trace *trace,
                            FILE *out)
{
    if (prediction->n_obstacles == 0)
        fputs("  in the way  nothing that the trace shows\n", out);
    for (size_t i = 0; i < prediction->n_obstacles; i++) {
        const gx_obstacle *const one = &prediction->obstacle[i];
        const char *const name = gx_trace_text_at(trace, one->name);

        fprintf(out, "  %-10s  %s", i ? "" : "in the way",
                gx_obstacle_kind_name(one->kind));
        if (*name)
            fprintf(out, " %s", name);
        if (one->kind == GX_OBSTACLE_CONTENT)
            fprintf(out, " in %lld of %lld steps", (long long)one->n,
                    (long long)prediction->n_steps);
        else
            fprintf(out, ": %.4g a step", (double)one->n / (double)prediction->n_steps);
        if (one->n_steps && one->n_steps < prediction->n_steps &&
            one->kind != GX_OBSTACLE_CONTENT)
            fprintf(out, ", in %lld of %lld", (long long)one->n_steps,
                    (long long)prediction->n_steps);
        fprintf(out, "; %s\n", what_to_do(one->kind));
    }
    if (prediction->after_removal)
        fputs("              the prediction holds once these are gone\n", out);
}

static void print_costs(const gx_nsys_predicted *predicted, const gx_trace_file *file,
                        FILE *out)
{
    const gx_predict_costs *const costs = &predicted->costs;
    const char *const card = gx_nsys_gpu_name(file, predicted->prediction->device);

    fprintf(out, "  costs       a node at least %s, a step %s, tracing %s a kernel: ",
            ns_words(costs->node_ns).text, ns_words(costs->step_ns).text,
            ns_words(costs->trace_ns).text);
    if (predicted->from == GX_COSTS_FILE)
        fprintf(out, "of %s\n", predicted->costs_path);
    else if (predicted->from == GX_COSTS_KEPT)
        fprintf(out, "measured here on %s, but for the tracing\n", predicted->date);
    else
        fprintf(out, "constants, as measured on %s\n", costs->card);
    if (costs->card[0] == '\0' || strcmp(card, costs->card) == 0)
        return;
    if (strcmp(card, "GPU") == 0)
        fputs("              the trace does not name its card: ", out);
    else
        fprintf(out, "              the trace's card is %s: ", card);
    fputs("give its costs with --costs\n", out);
}

void gx_nsys_print_prediction(const gx_nsys_predicted *predicted,
                              const gx_trace_file *file, FILE *out)
{
    const gx_prediction *const prediction = predicted->prediction;

    fputs("\nwhat graphs would buy\n", out);
    if (prediction->by == GX_PREDICT_BY_NONE) {
        fprintf(out, "  n/a         %s\n", prediction->why_not);
        return;
    }
    print_step(prediction, file->trace, out);
    print_figures(prediction, out);
    print_obstacles(prediction, file->trace, out);
    print_costs(predicted, file, out);
    for (size_t i = 0; i < prediction->n_assumptions; i++)
        fprintf(out, "  %-10s  %s\n", i ? "" : "assumed", prediction->assumption[i]);
}

/* --- JSON --- */

static void put_obstacles(gx_json *json, const gx_prediction *prediction,
                          const gx_trace *trace)
{
    gx_json_array(json, "in_the_way");
    for (size_t i = 0; i < prediction->n_obstacles; i++) {
        const gx_obstacle *const one = &prediction->obstacle[i];
        const char *const name = gx_trace_text_at(trace, one->name);

        gx_json_object(json, NULL);
        gx_json_text(json, "what", gx_obstacle_kind_name(one->kind));
        gx_json_text(json, "name", *name ? name : NULL);
        gx_json_integer(json, "n", one->n);
        gx_json_integer(json, "n_steps", one->n_steps);
        gx_json_real(json, "a_step", (double)one->n / (double)prediction->n_steps);
        gx_json_end(json);
    }
    gx_json_end(json);
    gx_json_bool(json, "after_removal", prediction->after_removal);
}

static void put_costs(gx_json *json, const gx_nsys_predicted *predicted)
{
    const gx_predict_costs *const costs = &predicted->costs;

    gx_json_object(json, "costs");
    gx_json_text(json, "from",
                 predicted->from == GX_COSTS_FILE   ? predicted->costs_path
                 : predicted->from == GX_COSTS_KEPT ? "measured"
                                                    : "constants");
    gx_json_text(json, "card", costs->card[0] ? costs->card : NULL);
    gx_json_real(json, "node_ns", costs->node_ns);
    gx_json_real(json, "programmatic_ns", costs->programmatic_ns);
    gx_json_real(json, "trace_ns", costs->trace_ns);
    gx_json_real(json, "copy_ns", costs->copy_ns);
    gx_json_real(json, "engine_ns", costs->engine_ns);
    gx_json_real(json, "beside_ns", costs->beside_ns);
    gx_json_real(json, "join_ns", costs->join_ns);
    gx_json_real(json, "step_ns", costs->step_ns);
    gx_json_real(json, "host_ns", costs->host_ns);
    gx_json_real(json, "build_node_ns", costs->build_node_ns);
    gx_json_end(json);
}

static void put_step(gx_json *json, const gx_prediction *prediction,
                     const gx_trace *trace)
{
    gx_json_text(json, "found_by", by_name(prediction->by));
    gx_json_text(json, "range",
                 prediction->range_name ? gx_trace_text_at(trace, prediction->range_name)
                                        : NULL);
    gx_json_integer(json, "device", prediction->device);
    gx_json_integer(json, "steps", prediction->n_steps);
    gx_json_integer(json, "same_steps", prediction->n_same);
    gx_json_integer(json, "kernels", prediction->n_kernels);
    gx_json_integer(json, "copies", prediction->n_copies);
    gx_json_integer(json, "fills", prediction->n_fills);
    gx_json_integer(json, "streams", prediction->n_streams);
    gx_json_integer(json, "joins", prediction->n_joins);
}

void gx_nsys_put_prediction(gx_json *json, const gx_nsys_predicted *predicted,
                            const gx_trace_file *file)
{
    const gx_prediction *const prediction = predicted->prediction;

    gx_json_object(json, "as_graph");
    gx_json_text(json, "why_not", prediction->why_not[0] ? prediction->why_not : NULL);
    if (prediction->by != GX_PREDICT_BY_NONE) {
        put_step(json, prediction, file->trace);
        gx_json_figure(json, "traced_eager_ns", prediction->eager_ns);
        gx_json_figure(json, "kernel_sum_ns", prediction->naive_ns);
        gx_json_figure(json, "replay_ns", prediction->replay_ns);
        gx_json_figure(json, "step_ns", prediction->step_ns);
        gx_json_figure(json, "low_ns", prediction->low_ns);
        gx_json_figure(json, "high_ns", prediction->high_ns);
        gx_json_figure(json, "build_ns", prediction->build_ns);
        gx_json_figure(json, "most_times_as_fast", most_times(prediction));
        gx_json_figure(json, "least_payback_steps", prediction->payback_steps);
        put_obstacles(json, prediction, file->trace);
        put_costs(json, predicted);
        gx_json_array(json, "assumed");
        for (size_t i = 0; i < prediction->n_assumptions; i++)
            gx_json_text(json, NULL, prediction->assumption[i]);
        gx_json_end(json);
    }
    gx_json_end(json);
}
