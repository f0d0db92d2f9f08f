/* Progress on standard error: a bar on a terminal, plain lines otherwise. */
#include "progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "figures.h"
#include "text_format.h"

static const double redraw_s = 0.1;
static const double line_s = 2.0;

enum { LINE_SIZE = 512, NARROWEST = 20, BAR_LEAST = 8, BAR_MOST = 30 };

void gx_progress_begin(gx_progress *progress, bool quiet)
{
    const char *const terminal = getenv("TERM");

    *progress = (gx_progress){ .quiet = quiet, .start_s = gx_clock() };
    progress->last_s = progress->start_s;
    progress->terminal =
        isatty(STDERR_FILENO) && terminal && strcmp(terminal, "dumb") != 0;
}

static size_t terminal_width(void)
{
    struct winsize size;

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= NARROWEST)
        return size.ws_col;
    return 80;
}

static void append(char *line, const char *format, ...) GX_PRINTF(2, 3);

static void append(char *line, const char *format, ...)
{
    const size_t length = strlen(line);
    va_list list;

    va_start(list, format);
    vsnprintf(line + length, LINE_SIZE - length, format, list);
    va_end(list);
}

/* "epoch 3/40 step 69/920" */
static void put_place(char *line, const gx_progress_point *point, bool with_epoch)
{
    if (point->n_epochs > 0 && with_epoch)
        append(line, "epoch %lld/%lld ", (long long)point->epoch,
               (long long)point->n_epochs);
    append(line, "step %lld/%lld", (long long)point->step, (long long)point->n_steps);
}

/* " loss 0.2134 accuracy 0.938 412 steps/s 00:02 left" */
static void put_figures(const gx_progress *progress, char *line,
                        const gx_progress_point *point)
{
    const double elapsed = gx_clock() - progress->start_s - progress->paused_s;
    const double rate = elapsed > 0 ? (double)point->step / elapsed : 0;

    for (size_t i = 0; i < point->n_columns; i++)
        append(line, " %s %.4g", point->names[i], gx_plain_nan(point->values[i]));
    if (rate > 0) {
        append(line, rate < 10 ? " %.2f steps/s" : " %.0f steps/s", rate);
        append(line, " %s left",
               gx_words_clock((double)(point->n_steps - point->step) / rate).text);
    }
}

static void put_bar(char *line, const gx_progress_point *point, size_t length)
{
    const double share =
        point->n_steps > 0 ? (double)point->step / (double)point->n_steps : 0;
    const size_t full = (size_t)((double)length * share);

    append(line, " [");
    for (size_t i = 0; i < length; i++)
        append(line, "%c", i < full ? '=' : i == full ? '>' : ' ');
    append(line, "]");
}

/* What has no room goes: first the epoch, then the bar, then the end of the line. */
static void draw(gx_progress *progress, const gx_progress_point *point)
{
    const size_t width = terminal_width() - 1; /* the last column would wrap */
    char figures[LINE_SIZE] = "";
    char line[LINE_SIZE] = "";
    size_t used;

    put_figures(progress, figures, point);
    put_place(line, point, true);
    used = strlen(line) + strlen(figures) + 3;
    if (used + BAR_LEAST > width) {
        line[0] = '\0';
        put_place(line, point, false);
        used = strlen(line) + strlen(figures) + 3;
    }
    if (used + BAR_LEAST <= width)
        put_bar(line, point, width - used < BAR_MOST ? width - used : BAR_MOST);
    append(line, "%s", figures);
    if (strlen(line) > width)
        line[width] = '\0';
    fprintf(stderr, "\r%s\033[K", line);
    fflush(stderr);
    progress->drawn = true;
}

void gx_progress_update(gx_progress *progress, const gx_progress_point *point)
{
    const double now = gx_clock();
    const bool done = point->step == point->n_steps;

    if (progress->quiet)
        return;
    if (!done && now - progress->last_s < (progress->terminal ? redraw_s : line_s))
        return;
    progress->last_s = now;
    if (progress->terminal) {
        draw(progress, point);
    } else {
        char line[LINE_SIZE] = "";

        put_place(line, point, true);
        put_figures(progress, line, point);
        fprintf(stderr, "%s\n", line);
    }
}

void gx_progress_note(gx_progress *progress, const char *text)
{
    if (progress->quiet)
        return;
    fprintf(stderr, "%s%s\n", progress->drawn ? "\r\033[K" : "", text);
    progress->drawn = false;
}

void gx_progress_end(gx_progress *progress)
{
    if (progress->drawn)
        fputs("\r\033[K", stderr);
    progress->drawn = false;
}
