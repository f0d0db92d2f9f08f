/* The op table of a profile, its kernels, its gaps, its floor and its memory, as text. */
#include <stdlib.h>
#include <string.h>

#include "profile_report.h"
#include "text_table.h"

enum { NAME_WIDTH = 40 };

const char *gx_profile_kind_name(gx_trace_kind kind)
{
    static const char *const names[GX_TRACE_KINDS] = { "kernel", "copy", "fill",
                                                       "graph" };

    return names[kind];
}

const char *gx_profile_op_label(const gx_profile_op *op)
{
    return op->unit == SIZE_MAX ? "(no unit)" : op->name;
}

gx_words gx_profile_ns_words(double ns)
{
    return gx_words_seconds(ns < 0 ? -1.0 : ns * 1e-9);
}

gx_gap_class gx_profile_main_class(const gx_trace_share *gaps)
{
    gx_gap_class main_class = GX_GAP_HOST;

    for (int c = 1; c < GX_GAP_CLASSES; c++)
        if (gaps[c].ns > gaps[main_class].ns)
            main_class = (gx_gap_class)c;
    return main_class;
}

/* At most `width` bytes of a name, cut between characters; `text` has width + 4. */
static char *shorten(const char *name, size_t width, char *text)
{
    size_t n = strlen(name);
    const bool cut = n > width;

    if (cut)
        for (n = width - 3; n > 0 && ((unsigned char)name[n] & 0xC0) == 0x80;)
            n--;
    memcpy(text, name, n);
    strcpy(text + n, cut ? "..." : "");
    return text;
}

static void titles(gx_text_table *table, const char *const *texts)
{
    for (; *texts; texts++)
        gx_text_table_cell(table, "%s", *texts);
    gx_text_table_rule(table);
}

static void name_cell(gx_text_table *table, const char *name)
{
    char text[NAME_WIDTH + 4];

    gx_text_table_cell(table, "%s", shorten(name, NAME_WIDTH, text));
}

static void scaled_cell(gx_text_table *table, double value, const char *unit)
{
    gx_text_table_cell(table, "%s",
                       value < 0 ? "n/a" : gx_words_scaled(value, unit).text);
}

static void bytes_cell(gx_text_table *table, double bytes, const char *per)
{
    if (bytes < 0)
        gx_text_table_cell(table, "n/a");
    else
        gx_text_table_cell(table, "%s%s", gx_words_bytes(bytes).text, per);
}

/* --- ops --- */

/* Indexes of the ops that did something, the longest first; the caller frees. */
static size_t *rank(const gx_profile_pass *pass, size_t *n)
{
    size_t *order = calloc(pass->n_ops + 1, sizeof *order);

    *n = 0;
    for (size_t i = 0; order && i < pass->n_ops; i++) {
        size_t at;

        if (pass->op[i].calls == 0)
            continue;
        for (at = (*n)++; at > 0; at--) {
            if (pass->op[order[at - 1]].total_ns >= pass->op[i].total_ns)
                break;
            order[at] = order[at - 1];
        }
        order[at] = i;
    }
    return order;
}

static void add_op(gx_text_table *table, const gx_profile_pass *pass,
                   const gx_profile_op *op)
{
    name_cell(table, gx_profile_op_label(op));
    gx_text_table_cell(table, "%s", op->alternative);
    gx_text_table_cell(table, "%.4g", (double)op->calls / (double)pass->n_steps);
    gx_text_table_cell(table, "%.1f%%", 100 * op->share);
    gx_text_table_cell(table, "%s", gx_profile_ns_words((double)op->median_ns).text);
    gx_text_table_cell(table, "%s", gx_profile_ns_words((double)op->p95_ns).text);
    scaled_cell(table, op->flops, "FLOP");
    bytes_cell(table, op->bytes, "");
    scaled_cell(table, op->flop_rate, "FLOP/s");
    bytes_cell(table, op->byte_rate, "/s");
    gx_text_table_cell(table, "%s", gx_words_seconds(op->floor_s).text);
    if (op->of_floor < 0)
        gx_text_table_cell(table, "n/a");
    else
        gx_text_table_cell(table, "%.0f%%", 100 * op->of_floor);
    gx_text_table_cell(table, "%s", op->floor_s < 0 ? "n/a" : gx_bound_name(op->bound));
}

void gx_profile_print_ops(const gx_profile *profile, const gx_profile_pass *pass,
                          FILE *out)
{
    static const char *const heads[] = { "op",     "alternative", "calls", "share",
                                         "median", "p95",         "FLOPs", "bytes",
                                         "FLOP/s", "bytes/s",     "floor", "of floor",
                                         "bound",  NULL };
    const size_t top = (size_t)profile->timing.session.args->top;
    gx_text_table *const table = gx_text_table_create("llrrrrrrrrrrl");
    size_t n;
    size_t *const order = rank(pass, &n);

    fprintf(out, "  ops, %s, a step: %zu of %zu, the longest first\n",
            gx_mode_name(pass->mode), n < top ? n : top, n);
    titles(table, heads);
    for (size_t i = 0; i < n && i < top; i++)
        add_op(table, pass, &pass->op[order[i]]);
    gx_text_table_print(table, "  ", out);
    gx_text_table_free(table);
    free(order);
}

/* --- kernels --- */

static void size_cell(gx_text_table *table, const int32_t *size)
{
    if (size[0] == 0)
        gx_text_table_cell(table, "n/a");
    else
        gx_text_table_cell(table, "%d x %d x %d", size[0], size[1], size[2]);
}

static void add_kernel(gx_text_table *table, const gx_profile_pass *pass,
                       const gx_profile_op *op, const gx_profile_kernel *kernel)
{
    name_cell(table, gx_profile_op_label(op));
    gx_text_table_cell(table, "%s", gx_profile_kind_name(kernel->kind));
    gx_text_table_cell(table, "%.4g", (double)kernel->calls / (double)pass->n_steps);
    gx_text_table_cell(table, "%s", gx_profile_ns_words((double)kernel->median_ns).text);
    gx_text_table_cell(table, "%s", gx_profile_ns_words((double)kernel->p95_ns).text);
    size_cell(table, kernel->grid);
    size_cell(table, kernel->block);
    gx_text_table_cell(table, "%s", gx_words_count(kernel->registers).text);
    bytes_cell(table, (double)kernel->shared_bytes, "");
    name_cell(table, kernel->name);
}

void gx_profile_print_kernels(const gx_profile *profile, const gx_profile_pass *pass,
                              FILE *out)
{
    static const char *const heads[] = { "op",     "kind",   "calls", "median",
                                         "p95",    "grid",   "block", "registers",
                                         "shared", "kernel", NULL };
    const size_t top = (size_t)profile->timing.session.args->top;
    gx_text_table *const table = gx_text_table_create("llrrrrrrrl");
    size_t n;
    size_t *const order = rank(pass, &n);

    fprintf(out, "  kernels of these ops, %s\n", gx_mode_name(pass->mode));
    titles(table, heads);
    for (size_t i = 0; i < n && i < top; i++)
        for (size_t k = 0; k < pass->op[order[i]].n_kernels; k++)
            add_kernel(table, pass, &pass->op[order[i]], &pass->op[order[i]].kernel[k]);
    gx_text_table_print(table, "  ", out);
    gx_text_table_free(table);
    free(order);
}

/* --- gaps --- */

void gx_profile_print_pairs(const gx_profile *profile, const gx_profile_pass *pass,
                            FILE *out)
{
    const size_t top = (size_t)profile->timing.session.args->top;

    if (pass->n_pairs == 0)
        return;
    fprintf(
        out,
        "  idle between ops, %s, a step: %zu of %zu pairs, the longest in total first\n",
        gx_mode_name(pass->mode), pass->n_pairs < top ? pass->n_pairs : top,
        pass->n_pairs);
    for (size_t i = 0; i < pass->n_pairs && i < top; i++) {
        const gx_profile_pair *const pair = &pass->pair[i];
        char before[NAME_WIDTH + 4];
        char after[NAME_WIDTH + 4];

        fprintf(out, "    %s -> %s: %s %s  (p95 %s)\n",
                shorten(gx_profile_op_label(&pass->op[pair->before]), NAME_WIDTH, before),
                shorten(gx_profile_op_label(&pass->op[pair->after]), NAME_WIDTH, after),
                gx_profile_ns_words((double)pair->median_ns).text,
                gx_gap_class_name(gx_profile_main_class(pair->gaps)),
                gx_profile_ns_words((double)pair->p95_ns).text);
    }
}

/* --- overhead --- */

static void print_share(const gx_trace_share *share, FILE *out)
{
    if (share->n == 0)
        fputs("none", out);
    else
        fprintf(out, "%lld record%s, %s", (long long)share->n, share->n == 1 ? "" : "s",
                gx_profile_ns_words((double)share->ns).text);
}

void gx_profile_print_overhead(const gx_profile_pass *pass, FILE *out)
{
    const gx_profile_overhead all = gx_profile_overhead_sum(pass);
    const char *before = ": ";

    if (!gx_trace_tells_overhead(pass->trace)) {
        fputs(
            "  overhead of tracing and driver: n/a; the tracing tool does not tell it\n",
            out);
        return;
    }
    fputs("  overhead of tracing and driver inside the window: ", out);
    print_share(&all.inside, out);
    if (all.inside.n)
        fprintf(out, ", longest %s", gx_profile_ns_words((double)all.longest_ns).text);
    for (size_t i = 0; i < pass->n_overheads; i++) {
        const gx_profile_overhead *const kind = &pass->overhead[i];

        if (kind->inside.n == 0)
            continue;
        fprintf(out, "%s%s %lld, %s", before, kind->name, (long long)kind->inside.n,
                gx_profile_ns_words((double)kind->inside.ns).text);
        before = "; ";
    }
    fputs("; before it: ", out);
    print_share(&all.before, out);
    fputc('\n', out);
}

/* --- floor --- */

void gx_profile_print_floor(const gx_profile *profile, FILE *out)
{
    const gx_profile_floor *const floor = &profile->floor;
    const gx_summary steady =
        gx_series_summary(&profile->timing.way[GX_WAY_GRAPH].steady);

    if (!profile->has_ceilings) {
        fputs("  floors: n/a; this card's ceilings are not measured: gexec doctor "
              "--measure\n",
              out);
        return;
    }
    fprintf(out, "  floor of a step: %s along its longest path of %zu ops",
            gx_words_seconds(floor->path_s).text, floor->n_units);
    if (floor->latency_s >= 0)
        fprintf(out, "; apart from that the latency of its %lld nodes, %s",
                (long long)floor->n_nodes, gx_words_seconds(floor->latency_s).text);
    fprintf(out, "; steady graph, untraced: %s\n", gx_words_seconds(steady.median).text);
    fprintf(out, "  ceilings of %s, measured %s\n", profile->ceilings.card,
            profile->ceilings.date);
}

/* --- memory --- */

static void print_taken(const gx_profile_pass *pass, FILE *out)
{
    if (!pass->trace || pass->free_before < 0 || pass->free_after < 0)
        return;
    fprintf(out,
            "    as the card counts it, %s: %s taken, %s free with everything there\n",
            gx_mode_name(pass->mode),
            gx_words_bytes((double)(pass->free_before - pass->free_after)).text,
            gx_words_bytes((double)pass->free_after).text);
}

void gx_profile_print_memory(const gx_profile *profile, FILE *out)
{
    const gx_session *const session = &profile->timing.session;
    const gx_plan_info plan = gx_plan_info_get(session->plan[GX_PROGRAM_TRAIN]);
    const size_t device_bytes = profile->timing.stats.device_bytes;

    fprintf(out, "  memory: peak %s\n",
            gx_words_bytes((double)(plan.persistent_bytes + device_bytes)).text);
    fprintf(out,
            "    persistent %s; exec %s: arena %s (%s without reuse), workspaces %s\n",
            gx_words_bytes((double)plan.persistent_bytes).text,
            gx_words_bytes((double)device_bytes).text,
            gx_words_bytes((double)plan.arena_bytes).text,
            gx_words_bytes((double)plan.naive_bytes).text,
            gx_words_bytes((double)plan.workspace_bytes).text);
    for (int i = 0; i < 2; i++)
        print_taken(&profile->pass[i], out);
    fprintf(out, "    the card has %s, of which %s were free at first\n",
            gx_words_bytes((double)session->device_info.memory_bytes).text,
            gx_words_bytes((double)session->device_info.free_bytes).text);
}
