/* What `gexec profile` says as text. */
#include "profile_report.h"
#include "text_table.h"

enum { EAGER, GRAPH };

static bool has_steps(const gx_profile_pass *pass)
{
    return pass->trace && pass->n_steps > 0;
}

/* Sums over the traced steps of a pass. */
typedef struct totals {
    double span, idle;
    gx_trace_share gaps[GX_GAP_CLASSES];
} totals;

static totals totals_of(const gx_profile_pass *pass)
{
    totals all = { 0 };

    for (size_t i = 0; i < pass->n_steps; i++) {
        all.span += (double)(pass->step[i].end - pass->step[i].start);
        all.idle += (double)pass->step[i].idle;
        for (int c = 0; c < GX_GAP_CLASSES; c++)
            all.gaps[c].ns += pass->step[i].gaps[c].ns;
    }
    return all;
}

/* --- the verdict --- */

static void say_times(const gx_compare *timing, FILE *out)
{
    const gx_summary eager = gx_series_summary(&timing->way[GX_WAY_EAGER].steady);
    const gx_summary graph = gx_series_summary(&timing->way[GX_WAY_GRAPH].steady);
    const gx_summary ratio = gx_series_summary(&timing->ratio);

    if (!ratio.n)
        fputs("Interrupted before a pair of blocks was measured", out);
    else if (ratio.p95 < 1)
        fprintf(out,
                "The graph is %.2f times as fast as eager launches, %s against %s a step",
                1 / ratio.median, gx_words_seconds(graph.median).text,
                gx_words_seconds(eager.median).text);
    else if (ratio.p5 > 1)
        fprintf(out,
                "Eager launches are faster here: the graph takes %.2f times as long, %s "
                "against %s a step",
                ratio.median, gx_words_seconds(graph.median).text,
                gx_words_seconds(eager.median).text);
    else
        fprintf(out, "No clear difference: the graph takes %s, eager launches %s a step",
                gx_words_seconds(graph.median).text, gx_words_seconds(eager.median).text);
}

static void say_idle(const gx_profile_pass *pass, const char *step, FILE *out)
{
    static const char *const why[GX_GAP_CLASSES] = {
        "waiting for the host to get to the launch", "during the launch call itself",
        "between work that was launched already", "before work without a launch call"
    };
    const totals all = totals_of(pass);
    const gx_gap_class most = gx_profile_main_class(all.gaps);

    if (!has_steps(pass)) {
        fprintf(out, "; %s was not traced", step);
        return;
    }
    fprintf(out, "; %s is idle for %.1f%% of its span", step,
            all.span > 0 ? 100 * all.idle / all.span : 0.0);
    if (all.idle > 0)
        fprintf(out, ", %.1f%% of that %s", 100 * (double)all.gaps[most].ns / all.idle,
                why[most]);
}

static void print_verdict(const gx_profile *profile, FILE *out)
{
    if (profile->timing.difference.found)
        fprintf(out, "THE BITS DIFFER in '%s'. ", profile->timing.difference.tensor);
    say_times(&profile->timing, out);
    if (!has_steps(&profile->pass[EAGER]) && !has_steps(&profile->pass[GRAPH])) {
        fputs("; there is no trace.\n", out);
    } else {
        say_idle(&profile->pass[EAGER], "an eager step", out);
        say_idle(&profile->pass[GRAPH], "a replay", out);
        fputs(".\n", out);
    }
    for (int i = 0; i < 2; i++)
        if (profile->pass[i].missing[0])
            fprintf(out, "No trace of %s: %s\n",
                    profile->pass[i].mode == GX_MODE_EAGER ? "eager launches"
                                                           : "the graph",
                    profile->pass[i].missing);
    fputc('\n', out);
}

/* --- the table of steps --- */

static void summary_cell(gx_text_table *table, const gx_summary *summary)
{
    gx_text_table_cell(table, "%s", gx_profile_ns_words(summary->median).text);
}

static void spread_cell(gx_text_table *table, const gx_summary *summary)
{
    gx_text_table_cell(table, "%s to %s", gx_profile_ns_words(summary->p5).text,
                       gx_profile_ns_words(summary->p95).text);
}

static void add_row(gx_text_table *table, const char *name, const gx_summary *summaries)
{
    gx_text_table_cell(table, "%s", name);
    for (int i = 0; i < 2; i++) {
        summary_cell(table, &summaries[i]);
        spread_cell(table, &summaries[i]);
        gx_text_table_cell(table, "%zu", summaries[i].n);
    }
}

static void add_figure(gx_text_table *table, const gx_profile *profile, const char *name,
                       gx_profile_figure figure)
{
    gx_summary summaries[2] = { { -1, -1, -1, 0 }, { -1, -1, -1, 0 } };

    /* Out of memory: the row stays n/a. */
    for (int i = 0; i < 2; i++)
        if (gx_profile_figure_of(&profile->pass[i], figure, &summaries[i], NULL) != GX_OK)
            summaries[i] = (gx_summary){ -1, -1, -1, 0 };
    add_row(table, name, summaries);
}

static void add_steady(gx_text_table *table, const gx_compare *timing)
{
    static const gx_way ways[2] = { GX_WAY_EAGER, GX_WAY_GRAPH };
    gx_summary summaries[2];

    for (int i = 0; i < 2; i++) {
        summaries[i] = gx_series_summary(&timing->way[ways[i]].steady);
        if (!summaries[i].n)
            continue;
        summaries[i].median *= 1e9;
        summaries[i].p5 *= 1e9;
        summaries[i].p95 *= 1e9;
    }
    add_row(table, "untraced, steady", summaries);
}

static void print_steps(const gx_profile *profile, FILE *out)
{
    static const char *const heads[] = { "a step", "eager",     "p5 to p95", "count",
                                         "graph",  "p5 to p95", "count",     NULL };
    static const struct {
        const char *name;
        gx_profile_figure figure;
    } rows[] = {
        { "span", GX_FIGURE_SPAN },
        { "busy", GX_FIGURE_BUSY },
        { "idle", GX_FIGURE_IDLE },
        { "  host", GX_FIGURE_HOST },
        { "  launch", GX_FIGURE_LAUNCH },
        { "  device", GX_FIGURE_DEVICE },
        { "  unknown", GX_FIGURE_UNKNOWN },
        { "step gap", GX_FIGURE_STEP_GAP },
        { "traced, start to start", GX_FIGURE_STEP },
    };
    gx_text_table *const table = gx_text_table_create("lrrrrrr");

    for (size_t i = 0; heads[i]; i++)
        gx_text_table_cell(table, "%s", heads[i]);
    gx_text_table_rule(table);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        add_figure(table, profile, rows[i].name, rows[i].figure);
    add_steady(table, &profile->timing);
    gx_text_table_print(table, "  ", out);
    gx_text_table_free(table);
    fputs(
        "  idle by class of the gap: host, its launch call began after the work before "
        "had ended;\n"
        "  launch, was under way then; device, had returned, or one graph launch; "
        "unknown, no call.\n"
        "  Step gaps stand apart. Tracing costs: compare only what was traced with what "
        "was traced.\n",
        out);
}

/* --- what the trace holds --- */

static void print_records(const gx_profile *profile, const gx_profile_pass *pass,
                          FILE *out)
{
    const gx_trace_dropped dropped = gx_trace_dropped_get(pass->trace);
    const gx_profiler_losses *const losses = &pass->losses;

    fprintf(out, "  %s: %zu steps traced", gx_mode_name(pass->mode), pass->n_steps);
    if ((int64_t)pass->n_steps != pass->expected_steps)
        fprintf(out, " (EXPECTED %lld)", (long long)pass->expected_steps);
    fprintf(out, ", %lld kernels, copies and fills", (long long)pass->found);
    if (pass->expected < 0)
        fputs(" (how many a step launches is not known)", out);
    else if (pass->found != pass->expected)
        fprintf(out, " (EXPECTED %lld: %s x steps)", (long long)pass->expected,
                pass->mode == GX_MODE_GRAPH ? "nodes" : "launches");
    else
        fputs(", as many as expected", out);
    if (pass->outside)
        fprintf(out, "; %lld of them in no step", (long long)pass->outside);
    if (losses->dropped || losses->unknown || losses->corrupt)
        fprintf(out, "; LOST: %lld records dropped, %lld unknown, %lld buffers corrupt",
                (long long)losses->dropped, (long long)losses->unknown,
                (long long)losses->corrupt);
    if (dropped.no_time || dropped.backwards || dropped.before_call)
        fprintf(out,
                "; left out as invalid: %lld without a time, %lld that end before they "
                "start, %lld before their call",
                (long long)dropped.no_time, (long long)dropped.backwards,
                (long long)dropped.before_call);
    if (pass->lane_overlap_ns >= 0)
        fprintf(out, "; more than one lane ran for %s a step",
                gx_profile_ns_words(pass->lane_overlap_ns).text);
    fputc('\n', out);
    if (pass->n_steps && profile->timing.session.steps_per_launch > 1 &&
        pass->mode == GX_MODE_GRAPH)
        fprintf(out, "  traced with one step a launch; timed with %lld steps a launch\n",
                (long long)profile->timing.session.steps_per_launch);
    if (pass->n_steps && pass->mode == GX_MODE_GRAPH &&
        gx_plan_info_get(profile->timing.session.plan[GX_PROGRAM_TRAIN]).skip_if)
        fprintf(out, "  updates in an IF node: a step that skips them has no records of "
                     "them, and how many\n  there should be is not known\n");
    if (pass->n_steps && pass->stats.programmatic_edges > 0)
        fprintf(
            out,
            "  with %lld programmatic edges: such a kernel starts before the one that it "
            "waits for\n  has ended, and its time holds the wait\n",
            (long long)pass->stats.programmatic_edges);
}

static void print_patterns(const gx_profile *profile, FILE *out)
{
    for (size_t i = 0; i < profile->n_patterns; i++)
        fprintf(out, "  %s: %s\n    to do: %s\n", profile->pattern[i].name,
                profile->pattern[i].found, profile->pattern[i].advice);
    if (profile->n_patterns == 0)
        fputs("  no pattern stands out\n", out);
}

static void print_header(const gx_profile *profile, FILE *out)
{
    const gx_session *const session = &profile->timing.session;
    const gx_graph *const graph = session->graph[GX_PROGRAM_TRAIN];
    const gx_profile_schedule *const schedule = &profile->schedule;

    fprintf(out, "%s, %s, on %s: ", gx_graph_name(graph), gx_graph_precision(graph),
            gx_session_place(session).text);
    fprintf(out,
            "%lld x (%lld steps waited, %lld to warm up, %lld traced) in a process of "
            "each mode's own\n\n",
            (long long)schedule->repeat, (long long)schedule->wait,
            (long long)schedule->warmup, (long long)schedule->active);
}

void gx_profile_print(const gx_profile *profile, FILE *out)
{
    const gx_profile_pass *shown = NULL;

    print_verdict(profile, out);
    print_header(profile, out);
    print_steps(profile, out);
    fputc('\n', out);
    print_patterns(profile, out);
    for (int i = 0; i < 2; i++) {
        const gx_profile_pass *const pass = &profile->pass[i];

        if (!pass->trace)
            continue;
        fputc('\n', out);
        print_records(profile, pass, out);
        gx_profile_print_overhead(pass, out);
        if (!has_steps(pass))
            continue;
        shown = pass;
        gx_profile_print_pairs(profile, pass, out);
        fputc('\n', out);
        gx_profile_print_ops(profile, pass, out);
    }
    if (shown) {
        fputc('\n', out);
        gx_profile_print_kernels(profile, shown, out);
    }
    fputc('\n', out);
    gx_profile_print_floor(profile, out);
    gx_profile_print_memory(profile, out);
    gx_compare_print_bits(&profile->timing, out);
    gx_compare_print_costs(&profile->timing, out);
    fputc('\n', out);
    gx_compare_print_environment(&profile->timing, out);
}
