/* The picture of `gexec sweep`: steady time of a step by size, for the three ways. The
 * first list runs along the axis; each combination of the others has a panel, and all
 * panels have the same scales. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "axis.h"
#include "sweep.h"

enum {
    COLUMNS = 2,
    PANEL_W = 460,
    PANEL_H = 330,
    ALONE_W = 720, /* a panel that has the picture to itself */
    ALONE_H = 430,
    LEFT = 62, /* around the field of a panel */
    RIGHT = 78,
    TOP = 30,
    BOTTOM = 48,
    HEAD = 62, /* of the picture */
    LINE = 16,
    LINE_CHARS = 96,
    LABEL_GAP = 14, /* between labels at the end of lines */
    TICK_GAP = 34   /* between sizes on the axis */
};

static const char *const way_names[] = { "unfused", "eager", "graph" };

/* Colours are never alone: the ways differ by dashes and markers too. */
static const char style[] =
    "<style>\n"
    "text{font:12px system-ui,sans-serif;fill:#1f2328}\n"
    ".head{font-size:16px;font-weight:600}.small{font-size:11px}\n"
    ".paper{fill:#ffffff}.grid{stroke:#d8dee4;stroke-width:1}\n"
    ".axis{stroke:#57606a;stroke-width:1;fill:none}\n"
    ".line{fill:none;stroke-width:2}.spread{stroke-width:1}\n"
    ".unfused{stroke:#57606a;stroke-dasharray:2 4}\n"
    ".eager{stroke:#b3400a;stroke-dasharray:8 4}.graph{stroke:#0550ae}\n"
    ".mark{stroke-dasharray:none;stroke-width:1.5}\n"
    ".mark.unfused,.mark.eager{fill:#ffffff}.mark.graph{fill:#0550ae}\n"
    ".spread.unfused,.spread.eager{stroke-dasharray:none}\n"
    "@media (prefers-color-scheme:dark){\n"
    "text{fill:#e6edf3}.paper{fill:#0d1117}.grid{stroke:#30363d}\n"
    ".axis{stroke:#9198a1}.unfused{stroke:#9ea7b3}.eager{stroke:#ffa657}\n"
    ".graph{stroke:#79c0ff}.mark.unfused,.mark.eager{fill:#0d1117}\n"
    ".mark.graph{fill:#79c0ff}\n"
    "}\n"
    "</style>\n";

/* A size, and the points of it: one combination of the further dims. */
typedef struct panel {
    const gx_sweep_point **point; /* that are drawn, by size */
    size_t n;
} panel;

typedef struct picture {
    const gx_sweep *sweep;
    panel *panels;
    size_t n_panels, n_drawn;
    double least_x, most_x, least_y, most_y;
    bool log;
    double unit; /* values of an axis of time are divided by this */
    const char *unit_name;
    int w, h; /* of a panel */
    FILE *out;
} picture;

/* --- text --- */

/* Escaped; control characters, for which XML has no place, become blanks, and what is no
 * UTF-8 becomes U+FFFD. */
static void put_text(const char *text, FILE *out)
{
    while (*text) {
        const size_t n = gx_utf8_sequence(text);

        if (n == 0)
            fputs("\xEF\xBF\xBD", out);
        else if (n > 1)
            fwrite(text, 1, n, out);
        else if (*text == '&')
            fputs("&amp;", out);
        else if (*text == '<')
            fputs("&lt;", out);
        else if (*text == '>')
            fputs("&gt;", out);
        else
            fputc((unsigned char)*text < ' ' ? ' ' : *text, out);
        text += n ? n : 1;
    }
}

static void put_line(const picture *p, double x, double y, const char *class_name,
                     const char *anchor, const char *text)
{
    fprintf(p->out, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\" text-anchor=\"%s\">", x, y,
            class_name, anchor);
    put_text(text, p->out);
    fputs("</text>\n", p->out);
}

/* --- what is drawn --- */

static bool is_drawn(const gx_sweep_point *point)
{
    return gx_sweep_has_figures(point) && point->size[0] >= 0;
}

static int by_size(const void *a, const void *b)
{
    const gx_sweep_point *const x = *(const gx_sweep_point *const *)a;
    const gx_sweep_point *const y = *(const gx_sweep_point *const *)b;

    return (x->size[0] > y->size[0]) - (x->size[0] < y->size[0]);
}

static void widen(picture *p, const gx_sweep_point *point)
{
    const double x = (double)point->size[0];

    p->least_x = p->n_drawn ? fmin(p->least_x, x) : x;
    p->most_x = p->n_drawn ? fmax(p->most_x, x) : x;
    for (int w = 0; w < GX_N_WAYS; w++) {
        const gx_summary steady = gx_series_summary(&point->way[w].steady);

        p->least_y = p->n_drawn || w ? fmin(p->least_y, steady.p5) : steady.p5;
        p->most_y = p->n_drawn || w ? fmax(p->most_y, steady.p95) : steady.p95;
    }
    p->n_drawn++;
}

/* The first list runs slowest, so the points of a panel lie n_panels apart. */
static bool collect(picture *p)
{
    const gx_sweep *const sweep = p->sweep;
    const size_t n_sizes = sweep->dim[0].n;

    p->n_panels = sweep->n_points / n_sizes;
    p->panels = calloc(p->n_panels, sizeof *p->panels);
    if (!p->panels)
        return false;
    for (size_t i = 0; i < p->n_panels; i++) {
        panel *const one = &p->panels[i];

        one->point = calloc(n_sizes, sizeof *one->point);
        if (!one->point)
            return false;
        for (size_t s = 0; s < n_sizes; s++) {
            const gx_sweep_point *const point = &sweep->point[s * p->n_panels + i];

            if (!is_drawn(point))
                continue;
            widen(p, point);
            one->point[one->n++] = point;
        }
        qsort(one->point, one->n, sizeof *one->point, by_size);
    }
    return true;
}

static void choose_unit(picture *p)
{
    static const struct {
        double unit;
        const char *name;
    } units[] = { { 1, "s" }, { 1e-3, "ms" }, { 1e-6, "us" } };
    size_t i = 0;

    while (i + 1 < sizeof units / sizeof units[0] && p->most_y < units[i].unit)
        i++;
    p->unit = units[i].unit;
    p->unit_name = units[i].name;
}

/* --- a panel --- */

static gx_axis x_axis(const picture *p)
{
    return gx_axis_around(p->least_x, p->most_x, p->log, LEFT, p->w - RIGHT);
}

static gx_axis y_axis(const picture *p)
{
    return gx_axis_fit(p->least_y / p->unit, p->most_y / p->unit,
                       p->log && p->least_y > 0, p->h - BOTTOM, TOP);
}

static void draw_grid(const picture *p, const gx_axis *y)
{
    double ticks[GX_AXIS_TICKS];
    const size_t n = gx_axis_ticks(y, ticks);
    char text[32];

    for (size_t i = 0; i < n; i++) {
        const double at = gx_axis_place(y, ticks[i]);

        fprintf(p->out,
                "<line class=\"grid\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>\n",
                LEFT, at, p->w - RIGHT, at);
        snprintf(text, sizeof text, "%.6g", ticks[i]);
        put_line(p, LEFT - 6, at + 4, "tick", "end", text);
    }
}

static void draw_size(const picture *p, double at, double value)
{
    char text[32];

    fprintf(p->out,
            "<line class=\"axis\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\"/>\n", at,
            p->h - BOTTOM, at, p->h - BOTTOM + 4);
    snprintf(text, sizeof text, "%.9g", value);
    put_line(p, at, p->h - BOTTOM + 18, "tick", "middle", text);
}

/* The sizes themselves where there is room for their labels, else round values. */
static void draw_sizes(const picture *p, const panel *one, const gx_axis *x)
{
    double ticks[GX_AXIS_TICKS];
    bool fits = one->n > 0;

    for (size_t i = 1; i < one->n; i++)
        if (one->point[i]->size[0] != one->point[i - 1]->size[0] &&
            gx_axis_place(x, (double)one->point[i]->size[0]) -
                    gx_axis_place(x, (double)one->point[i - 1]->size[0]) <
                TICK_GAP)
            fits = false;
    const size_t n = fits ? one->n : gx_axis_ticks(x, ticks);
    for (size_t i = 0; i < n; i++) {
        const double value = fits ? (double)one->point[i]->size[0] : ticks[i];

        if (!fits || i == 0 || one->point[i]->size[0] != one->point[i - 1]->size[0])
            draw_size(p, gx_axis_place(x, value), value);
    }
}

static double y_of(const picture *p, const gx_axis *y, double seconds)
{
    return gx_axis_place(y, seconds / p->unit);
}

/* A square, a circle, a triangle: told apart without colour. */
static void draw_mark(const picture *p, int way, double x, double y)
{
    fputs("<path class=\"mark ", p->out);
    fputs(way_names[way], p->out);
    if (way == GX_WAY_UNFUSED)
        fprintf(p->out, "\" d=\"M%.1f %.1fh7v7h-7z\"/>\n", x - 3.5, y - 3.5);
    else if (way == GX_WAY_EAGER)
        fprintf(p->out, "\" d=\"M%.1f %.1fa4 4 0 1 0 8 0a4 4 0 1 0 -8 0z\"/>\n", x - 4,
                y);
    else
        fprintf(p->out, "\" d=\"M%.1f %.1fl4.5 8h-9z\"/>\n", x, y - 5);
}

static void draw_way(const picture *p, const panel *one, int way, const gx_axis *x,
                     const gx_axis *y)
{
    fprintf(p->out, "<polyline class=\"line %s\" points=\"", way_names[way]);
    for (size_t i = 0; i < one->n; i++)
        fprintf(p->out, "%s%.1f,%.1f", i ? " " : "",
                gx_axis_place(x, (double)one->point[i]->size[0]),
                y_of(p, y, gx_series_summary(&one->point[i]->way[way].steady).median));
    fputs("\"/>\n", p->out);
    for (size_t i = 0; i < one->n; i++) {
        const gx_summary steady = gx_series_summary(&one->point[i]->way[way].steady);
        const double at = gx_axis_place(x, (double)one->point[i]->size[0]);

        fprintf(p->out,
                "<line class=\"spread %s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" "
                "y2=\"%.1f\"/>\n",
                way_names[way], at, y_of(p, y, steady.p5), at, y_of(p, y, steady.p95));
        draw_mark(p, way, at, y_of(p, y, steady.median));
    }
}

/* Names at the right ends of the lines, pushed apart where these are close. */
static void draw_names(const picture *p, const panel *one, const gx_axis *x,
                       const gx_axis *y)
{
    const gx_sweep_point *const end = one->point[one->n - 1];
    const double at = gx_axis_place(x, (double)end->size[0]);
    double place[GX_N_WAYS];
    int order[GX_N_WAYS];

    for (int w = 0; w < GX_N_WAYS; w++) {
        int i = w;

        place[w] = y_of(p, y, gx_series_summary(&end->way[w].steady).median) + 4;
        for (; i > 0 && place[order[i - 1]] > place[w]; i--)
            order[i] = order[i - 1];
        order[i] = w;
    }
    for (int i = 1; i < GX_N_WAYS; i++)
        if (place[order[i]] < place[order[i - 1]] + LABEL_GAP)
            place[order[i]] = place[order[i - 1]] + LABEL_GAP;
    /* All of them up again if the lowest went past the axis. */
    const double over = place[order[GX_N_WAYS - 1]] - (p->h - BOTTOM + 4);
    for (int w = 0; w < GX_N_WAYS; w++)
        put_line(p, at + 10, place[w] - (over > 0 ? over : 0), "name", "start",
                 way_names[w]);
}

static void draw_panel(const picture *p, size_t i)
{
    const panel *const one = &p->panels[i];
    const gx_axis x = x_axis(p);
    const gx_axis y = y_axis(p);
    char text[256];

    fprintf(p->out, "<g transform=\"translate(%d %d)\">\n", (int)(i % COLUMNS) * p->w,
            HEAD + (int)(i / COLUMNS) * p->h);
    draw_grid(p, &y);
    fprintf(p->out, "<path class=\"axis\" d=\"M%d %dV%dH%d\"/>\n", LEFT, TOP,
            p->h - BOTTOM, p->w - RIGHT);
    draw_sizes(p, one, &x);
    put_line(p, (LEFT + p->w - RIGHT) / 2.0, p->h - 10, "small", "middle",
             p->sweep->dim[0].name);
    snprintf(text, sizeof text, "%s a step", p->unit_name);
    put_line(p, LEFT, TOP - 12, "small", "end", text);
    /* Any point of the panel names the other dims, drawn or not. */
    gx_sweep_point_text(p->sweep, &p->sweep->point[i], 1, text, sizeof text);
    if (p->n_panels > 1)
        put_line(p, LEFT + 12, TOP - 12, "name", "start", text);
    for (int w = 0; w < GX_N_WAYS && one->n; w++)
        draw_way(p, one, w, &x, &y);
    if (one->n)
        draw_names(p, one, &x, &y);
    else
        put_line(p, LEFT + 12, TOP + 20, "small", "start", "nothing measured");
    fputs("</g>\n", p->out);
}

/* --- around the panels --- */

/* Lines of text under the panels, wrapped; without `p->out` they are only counted. */
typedef struct foot {
    const picture *p;
    char line[LINE_CHARS + 1];
    double y;
    int n_lines;
} foot;

static void end_line(foot *f)
{
    if (!f->line[0])
        return;
    if (f->p->out)
        put_line(f->p, 16, f->y + LINE * f->n_lines, "small", "start", f->line);
    f->n_lines++;
    f->line[0] = '\0';
}

static void add_words(foot *f, const char *words)
{
    const size_t length = strlen(f->line);

    if (length && length + 1 + strlen(words) > LINE_CHARS)
        end_line(f);
    snprintf(f->line + strlen(f->line), sizeof f->line - strlen(f->line), "%s%s",
             f->line[0] ? " " : "", words);
}

static int put_foot(const picture *p, double y)
{
    foot f = { .p = p, .y = y };
    size_t n_left = 0;
    char text[200];

    if (p->n_drawn)
        add_words(&f,
                  "Marks: median over pairs of blocks; strokes through them: p5 to p95.");
    if (p->n_drawn && p->log)
        add_words(&f, "Both scales are logarithmic.");
    end_line(&f);
    for (size_t i = 0; i < p->sweep->n_points; i++) {
        const gx_sweep_point *const point = &p->sweep->point[i];

        if (is_drawn(point))
            continue;
        if (!n_left++)
            add_words(&f, "Left out, not measured:");
        gx_sweep_point_text(p->sweep, point, 0, text, sizeof text - 16);
        strcat(text, point->status != GX_OK ? " (failed);" : ";");
        add_words(&f, text);
    }
    end_line(&f);
    return f.n_lines;
}

static void put_head(const picture *p)
{
    const gx_sweep *const sweep = p->sweep;
    char text[512];
    size_t length;

    snprintf(text, sizeof text, "%.120s: steady time of a step by %s",
             sweep->model ? sweep->model : sweep->args->names[0], sweep->dim[0].name);
    put_line(p, 16, 26, "head", "start", text);
    length = (size_t)snprintf(text, sizeof text, "%.60s%s%.100s",
                              sweep->precision ? sweep->precision : "",
                              sweep->precision ? ", " : "", sweep->device_info.name);
    if (p->n_panels > 1) {
        length +=
            (size_t)snprintf(text + length, sizeof text - length, "; a panel for each");
        for (size_t d = 1; d < sweep->n_dims; d++)
            length += (size_t)snprintf(text + length, sizeof text - length, "%s %s",
                                       d > 1 ? "," : "", sweep->dim[d].name);
        snprintf(text + length, sizeof text - length, ", on the same scales");
    }
    put_line(p, 16, 46, "small", "start", text);
}

static void put_described(const picture *p)
{
    char *verdict = NULL;
    size_t length;
    FILE *const out = open_memstream(&verdict, &length);

    fputs("<title>", p->out);
    put_text(p->sweep->model ? p->sweep->model : p->sweep->args->names[0], p->out);
    fputs(": steady time of a step by size</title>\n", p->out);
    if (!out)
        return;
    gx_sweep_verdict(p->sweep, out);
    if (fclose(out) == 0) {
        if (length && verdict[length - 1] == '\n')
            verdict[length - 1] = '\0';
        fputs("<desc>", p->out);
        put_text(verdict, p->out);
        fputs("</desc>\n", p->out);
    }
    free(verdict);
}

static void draw(picture *p, FILE *out)
{
    const size_t n_panels = p->n_drawn ? p->n_panels : 0;
    const int columns = n_panels > 1 ? COLUMNS : 1;
    int width, height;

    p->log = gx_axis_wants_log(p->least_x, p->most_x);
    p->w = n_panels > 1 ? PANEL_W : ALONE_W;
    p->h = n_panels > 1 ? PANEL_H : ALONE_H;
    choose_unit(p);
    const int below = HEAD + (int)((n_panels + COLUMNS - 1) / COLUMNS) * p->h + LINE;
    width = columns * p->w;
    height = below + LINE * put_foot(p, below);
    p->out = out;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\" role=\"img\">\n",
            width, height, width, height);
    put_described(p);
    fputs(style, out);
    fprintf(out, "<rect class=\"paper\" width=\"%d\" height=\"%d\"/>\n", width, height);
    put_head(p);
    if (!n_panels)
        put_line(p, 16, HEAD + 10, "name", "start", "No size was measured.");
    for (size_t i = 0; i < n_panels; i++)
        draw_panel(p, i);
    put_foot(p, below);
    fputs("</svg>", out);
}

void gx_sweep_put_svg(const gx_sweep *sweep, FILE *out)
{
    picture p = { .sweep = sweep };

    if (collect(&p))
        draw(&p, out);
    else
        fputs(
            "<svg xmlns=\"http://www.w3.org/2000/svg\"><text>out of memory</text></svg>",
            out);
    for (size_t i = 0; p.panels && i < p.n_panels; i++)
        free(p.panels[i].point);
    free(p.panels);
}
