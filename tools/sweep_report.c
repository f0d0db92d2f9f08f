/* What `gexec sweep` says as text and as CSV. */
#include <string.h>

#include "lines_out.h"
#include "sweep.h"
#include "text_table.h"

enum { POINT_TEXT = 256 };

/* --- the sentence --- */

/* As `gexec compare` judges: the pairs agree, or nothing is claimed. */
typedef struct tally {
    size_t faster, slower, unclear, failed, none;
    const gx_sweep_point *differs, *least, *most; /* of the faster ones */
    size_t n_equal;
} tally;

static void count_point(tally *t, const gx_sweep_point *point)
{
    const gx_summary ratio = gx_series_summary(&point->ratio);

    if (point->difference.found && !t->differs)
        t->differs = point;
    if (point->status != GX_OK)
        t->failed++;
    else if (!ratio.n)
        t->none++;
    else if (ratio.p5 > 1)
        t->slower++;
    else if (!(ratio.p95 < 1))
        t->unclear++;
    else {
        t->faster++;
        if (!t->least || ratio.median > gx_series_summary(&t->least->ratio).median)
            t->least = point;
        if (!t->most || ratio.median < gx_series_summary(&t->most->ratio).median)
            t->most = point;
    }
    if (point->n_compared > 0 && !point->difference.found)
        t->n_equal++;
}

static tally count_points(const gx_sweep *sweep)
{
    tally t = { 0 };

    for (size_t i = 0; i < sweep->n_points; i++)
        count_point(&t, &sweep->point[i]);
    return t;
}

static void put_factor(const gx_sweep *sweep, const gx_sweep_point *point, FILE *out)
{
    char text[POINT_TEXT];

    gx_sweep_point_text(sweep, point, 0, text, sizeof text);
    fprintf(out, "%.2f times as fast (%s)", 1 / gx_series_summary(&point->ratio).median,
            text);
}

static void put_speed(const gx_sweep *sweep, const tally *t, size_t n, FILE *out)
{
    const char *const sizes = n == 1 ? "size" : "sizes";

    fputs("The graph is faster than eager launches at ", out);
    if (t->faster == n && n > 1)
        fprintf(out, "all %zu %s, ", n, sizes);
    else if (t->faster)
        fprintf(out, "%zu of %zu %s, ", t->faster, n, sizes);
    else
        fprintf(out, "none of %zu %s", n, sizes);
    if (t->faster)
        put_factor(sweep, t->most, out);
    if (t->least != t->most) {
        fputs(" down to ", out);
        put_factor(sweep, t->least, out);
    }
    if (t->slower)
        fprintf(out, "; slower at %zu", t->slower);
    if (t->unclear)
        fprintf(out, "; no clear difference at %zu", t->unclear);
}

void gx_sweep_verdict(const gx_sweep *sweep, FILE *out)
{
    const tally t = count_points(sweep);
    const size_t n = t.faster + t.slower + t.unclear;
    char text[POINT_TEXT];

    if (t.differs) {
        gx_sweep_point_text(sweep, t.differs, 0, text, sizeof text);
        fprintf(out, "THE BITS DIFFER at %s in '%s'. ", text,
                t.differs->difference.tensor);
    }
    if (n)
        put_speed(sweep, &t, n, out);
    else
        fputs("No size was measured", out);
    if (t.failed)
        fprintf(out, "; %zu failed", t.failed);
    if (sweep->interrupted)
        fprintf(out, "; interrupted with %zu of %zu sizes measured", n, sweep->n_points);
    if (!t.differs && t.n_equal)
        fprintf(out, "; bits are equal at %s%zu",
                t.n_equal == sweep->n_points ? "all " : "", t.n_equal);
    fputs(".\n", out);
}

/* --- tables --- */

static const char *remark(const gx_sweep_point *point)
{
    if (point->status != GX_OK)
        return point->reason;
    return point->interrupted ? "interrupted" : "";
}

static gx_text_table *begin_table(const gx_sweep *sweep, const char *alignments,
                                  const char *const *titles)
{
    char all[GX_SWEEP_DIMS + 16] = "";
    gx_text_table *table;

    for (size_t d = 0; d < sweep->n_dims; d++)
        strcat(all, "r");
    strcat(all, alignments);
    table = gx_text_table_create(all);
    for (size_t d = 0; d < sweep->n_dims; d++)
        gx_text_table_cell(table, "%s", sweep->dim[d].name);
    for (; *titles; titles++)
        gx_text_table_cell(table, "%s", *titles);
    gx_text_table_rule(table);
    return table;
}

static void put_sizes(const gx_sweep *sweep, const gx_sweep_point *point,
                      gx_text_table *table)
{
    for (size_t d = 0; d < sweep->n_dims; d++)
        gx_text_table_cell(table, "%s", gx_sweep_size(sweep, point, d).text);
}

static void put_median(const gx_series *series, gx_text_table *table)
{
    gx_text_table_cell(table, "%s",
                       gx_words_seconds(gx_series_summary(series).median).text);
}

static void put_bits(const gx_sweep_point *point, gx_text_table *table)
{
    if (point->difference.found)
        gx_text_table_cell(table, "DIFFER in '%s'", point->difference.tensor);
    else
        gx_text_table_cell(table, "%s", point->n_compared > 0 ? "equal" : "n/a");
}

static void put_ratio(const gx_sweep_point *point, gx_text_table *table)
{
    const gx_summary ratio = gx_series_summary(&point->ratio);

    if (!ratio.n) {
        for (int i = 0; i < 3; i++)
            gx_text_table_cell(table, "n/a");
        return;
    }
    gx_text_table_cell(table, "%.3f", ratio.median);
    gx_text_table_cell(table, "%.3f to %.3f", ratio.p5, ratio.p95);
    if (point->pays_after < 0)
        gx_text_table_cell(table, "never");
    else
        gx_text_table_cell(table, "%.0f", point->pays_after);
}

static void print_steady(const gx_sweep *sweep, FILE *out)
{
    static const char *const titles[] = { "unfused",     "eager",     "graph",
                                          "graph/eager", "p5 to p95", "pays back",
                                          "bits",        "",          NULL };
    gx_text_table *table = begin_table(sweep, "rrrrrrll", titles);

    for (size_t i = 0; i < sweep->n_points; i++) {
        const gx_sweep_point *const point = &sweep->point[i];

        if (!point->begun)
            continue;
        put_sizes(sweep, point, table);
        for (int w = 0; w < GX_N_WAYS; w++)
            put_median(&point->way[w].steady, table);
        put_ratio(point, table);
        put_bits(point, table);
        gx_text_table_cell(table, "%s", remark(point));
    }
    gx_text_table_print(table, "  ", out);
    gx_text_table_free(table);
    fputs("  steady: device time of a step, steps back to back; pays back: after so many "
          "steps\n\n",
          out);
}

/* "1/8" of a graph of 8 steps. */
static void put_launches(const gx_sweep_point *point, gx_text_table *table)
{
    const int64_t k = point->steps_per_launch;

    if (!gx_sweep_has_figures(point)) {
        gx_text_table_cell(table, "n/a");
        return;
    }
    gx_text_table_cell(table, "%s / %s / %s%s",
                       gx_words_count(point->way[GX_WAY_UNFUSED].launches).text,
                       gx_words_count(point->way[GX_WAY_EAGER].launches).text,
                       k > 1 ? "1/" : "", gx_words_count(k).text);
}

static void print_host(const gx_sweep *sweep, FILE *out)
{
    static const char *const titles[] = { "launches",     "unfused host",
                                          "eager host",   "graph host",
                                          "unfused wall", "eager wall",
                                          "graph wall",   NULL };
    gx_text_table *table = begin_table(sweep, "rrrrrrr", titles);

    for (size_t i = 0; i < sweep->n_points; i++) {
        const gx_sweep_point *const point = &sweep->point[i];

        if (!point->begun)
            continue;
        put_sizes(sweep, point, table);
        put_launches(point, table);
        for (int w = 0; w < GX_N_WAYS; w++)
            put_median(&point->way[w].host, table);
        for (int w = 0; w < GX_N_WAYS; w++)
            put_median(&point->way[w].wall, table);
    }
    gx_text_table_print(table, "  ", out);
    gx_text_table_free(table);
    fputs("  launches of a step: unfused / eager / graph; host: submitting a step to an "
          "idle\n"
          "  device; wall: idle to synchronized\n\n",
          out);
}

static void print_differences(const gx_sweep *sweep, FILE *out)
{
    char text[POINT_TEXT];

    for (size_t i = 0; i < sweep->n_points; i++) {
        const gx_sweep_point *const point = &sweep->point[i];
        const gx_difference *const difference = &point->difference;

        if (!difference->found)
            continue;
        gx_sweep_point_text(sweep, point, 0, text, sizeof text);
        fprintf(out,
                "  bits at %s: '%s' differs first at %s after %lld steps: eager %.17g, "
                "graph %.17g (%lld of its %lld elements differ)\n",
                text, difference->tensor, difference->position.text,
                (long long)point->bits_steps, gx_plain_nan(difference->eager),
                gx_plain_nan(difference->graph), (long long)difference->n_differ,
                (long long)difference->n_elements);
    }
}

static void print_environment(const gx_sweep *sweep, FILE *out)
{
    const gx_device_info *const info = &sweep->device_info;
    double least = -1, most = -1;
    uint64_t throttle = 0;
    char text[128];

    for (size_t i = 0; i < sweep->n_points; i++) {
        const gx_summary mhz = gx_series_summary(&sweep->point[i].sm_mhz);

        throttle |= sweep->point[i].throttle;
        if (mhz.n && (least < 0 || mhz.p5 < least))
            least = mhz.p5;
        if (mhz.n && mhz.p95 > most)
            most = mhz.p95;
    }
    if (least >= 0)
        fprintf(out, "  clocks: SM %.0f to %.0f MHz over all sizes; throttling: %s\n",
                least, most, gx_throttle_text(throttle, text, sizeof text));
    else
        fprintf(out, "  clocks: n/a (%s)\n",
                sweep->clocks_lack[0] ? sweep->clocks_lack
                                      : "NVML gives none for this card");
    fprintf(out, "  %s; driver %s (CUDA %s), toolkit %s, cuBLASLt %zu; gexec %s\n",
            info->name, sweep->driver[0] ? sweep->driver : "n/a",
            gx_words_cuda_version(info->driver_version).text,
            gx_words_cuda_version(info->runtime_version).text, info->cublaslt_version,
            gx_version());
}

void gx_sweep_print(const gx_sweep *sweep, FILE *out)
{
    gx_sweep_verdict(sweep, out);
    if (sweep->model)
        fprintf(out, "\n%s, %s, on GPU %d, %s\n", sweep->model, sweep->precision,
                sweep->device, sweep->device_info.name);
    fputc('\n', out);
    print_steady(sweep, out);
    print_host(sweep, out);
    print_differences(sweep, out);
    if (sweep->model)
        print_environment(sweep, out);
}

/* --- CSV --- */

/* Quoted where it must be (RFC 4180). */
static void put_field(const char *text, FILE *out)
{
    if (strpbrk(text, ",\"\r\n"))
        gx_lines_quote(text, out);
    else
        fputs(text, out);
}

static void put_number(double value, FILE *out)
{
    if (value >= 0)
        fprintf(out, ",%.9g", value);
    else
        fputs(",n/a", out);
}

static void put_summary(const gx_series *series, FILE *out)
{
    const gx_summary summary = gx_series_summary(series);

    put_number(summary.median, out);
    put_number(summary.p5, out);
    put_number(summary.p95, out);
}

static void put_row(const gx_sweep *sweep, const gx_sweep_point *point, FILE *out)
{
    const bool measured = gx_sweep_has_figures(point);

    fputc('\n', out);
    for (size_t d = 0; d < sweep->n_dims; d++) {
        put_field(gx_sweep_size(sweep, point, d).text, out);
        fputc(',', out);
    }
    fputs(point->status != GX_OK ? "failed"
          : point->interrupted   ? "interrupted"
                                 : "done",
          out);
    fputc(',', out);
    put_field(point->reason, out);
    for (int w = 0; w < GX_N_WAYS; w++)
        put_number(!measured           ? -1
                   : w == GX_WAY_GRAPH ? 1.0 / (double)point->steps_per_launch
                                       : (double)point->way[w].launches,
                   out);
    for (int w = 0; w < GX_N_WAYS; w++)
        put_summary(&point->way[w].steady, out);
    put_summary(&point->ratio, out);
    put_summary(&point->ratio_unfused, out);
    put_number((double)point->ratio.n, out);
    for (int w = 0; w < GX_N_WAYS; w++)
        put_summary(&point->way[w].host, out);
    for (int w = 0; w < GX_N_WAYS; w++)
        put_summary(&point->way[w].wall, out);
    if (measured && point->pays_after < 0)
        fputs(",never", out);
    else
        put_number(measured ? point->pays_after : -1, out);
    fprintf(out, ",%s",
            point->difference.found ? "differ"
            : point->n_compared > 0 ? "equal"
                                    : "n/a");
    fputc(',', out);
    put_field(point->plan.text, out);
}

void gx_sweep_put_csv(const gx_sweep *sweep, FILE *out)
{
    static const char *const ways[] = { "unfused", "eager", "graph" };
    static const char *const spread[] = { "", "_p5", "_p95" };

    for (size_t d = 0; d < sweep->n_dims; d++)
        fprintf(out, "%s,", sweep->dim[d].name);
    fputs("result,reason", out);
    for (int w = 0; w < GX_N_WAYS; w++)
        fprintf(out, ",%s_launches", ways[w]);
    for (int w = 0; w < GX_N_WAYS; w++)
        for (int s = 0; s < 3; s++)
            fprintf(out, ",%s_steady_s%s", ways[w], spread[s]);
    for (int s = 0; s < 3; s++)
        fprintf(out, ",graph_over_eager%s", spread[s]);
    for (int s = 0; s < 3; s++)
        fprintf(out, ",graph_over_unfused%s", spread[s]);
    fputs(",pairs", out);
    for (int f = 0; f < 2; f++)
        for (int w = 0; w < GX_N_WAYS; w++)
            for (int s = 0; s < 3; s++)
                fprintf(out, ",%s_%s_s%s", ways[w], f ? "wall" : "host", spread[s]);
    fputs(",pays_back_after,bits,plan", out);
    for (size_t i = 0; i < sweep->n_points; i++)
        if (sweep->point[i].begun)
            put_row(sweep, &sweep->point[i], out);
}
