/* Events of a Chrome trace, one by one, and rows of them. */
#include "chrome_events.h"

#include <stdlib.h>
#include <string.h>

bool gx_bit(const uint8_t *bits, size_t i)
{
    return bits[i / 8] >> i % 8 & 1;
}

void gx_bit_set(uint8_t *bits, size_t i)
{
    bits[i / 8] = (uint8_t)(bits[i / 8] | 1U << i % 8);
}

const char *gx_chrome_text(const gx_chrome *to, uint32_t text)
{
    return gx_trace_text_at(to->trace, text);
}

/* --- single events --- */

static void put_name(gx_chrome *to, const char *what, int64_t process, int64_t thread,
                     const char *name)
{
    gx_json_object(to->json, NULL);
    gx_json_text(to->json, "ph", "M");
    gx_json_text(to->json, "name", what);
    gx_json_integer(to->json, "pid", process);
    gx_json_integer(to->json, "tid", thread);
    gx_json_object(to->json, "args");
    gx_json_text(to->json, "name", name);
    gx_json_end(to->json);
    gx_json_end(to->json);
}

static void put_place(gx_chrome *to, const char *what, int64_t process, int64_t thread,
                      int64_t place)
{
    gx_json_object(to->json, NULL);
    gx_json_text(to->json, "ph", "M");
    gx_json_text(to->json, "name", what);
    gx_json_integer(to->json, "pid", process);
    gx_json_integer(to->json, "tid", thread);
    gx_json_object(to->json, "args");
    gx_json_integer(to->json, "sort_index", place);
    gx_json_end(to->json);
    gx_json_end(to->json);
}

void gx_chrome_open(gx_chrome *to, const char *phase, const char *category,
                    const char *name, int64_t process, int64_t thread, int64_t time)
{
    gx_json_object(to->json, NULL);
    gx_json_text(to->json, "ph", phase);
    gx_json_text(to->json, "cat", category);
    gx_json_text(to->json, "name", name);
    gx_json_integer(to->json, "pid", process);
    gx_json_integer(to->json, "tid", thread);
    gx_json_us(to->json, "ts", time);
}

void gx_chrome_open_slice(gx_chrome *to, const char *category, const char *name,
                          int64_t process, int64_t thread, const gx_slice *slice)
{
    gx_chrome_open(to, "X", category, name, process, thread,
                   gx_report_time(&to->window, to->side, slice->start));
    gx_json_us(to->json, "dur", slice->end - slice->start);
}

void gx_chrome_flow(gx_chrome *to, bool is_end, size_t call, int64_t process,
                    int64_t thread, int64_t time)
{
    gx_chrome_open(to, is_end ? "f" : "s", "launch", "launch", process, thread,
                   gx_report_time(&to->window, to->side, time));
    gx_json_integer(to->json, "id", 2 * (int64_t)call + (int64_t)to->side + 1);
    if (is_end)
        gx_json_text(to->json, "bp", "e");
    gx_json_end(to->json);
}

int64_t gx_chrome_process(gx_chrome *to, const char *what, int64_t number, int64_t nth,
                          int64_t place)
{
    const char *const title = to->report->side[to->side].title;
    const int64_t id = ++to->n_ids;
    char name[320];

    if (number >= 0)
        snprintf(name, sizeof name, "%s %lld %.200s", what, (long long)number, title);
    else
        snprintf(name, sizeof name, "%s %.200s", what, title);
    if (nth > 0) {
        const size_t n = strlen(name);

        snprintf(name + n, sizeof name - n, ", process %lld", (long long)nth + 1);
    }
    put_name(to, "process_name", id, id, name);
    put_place(to, "process_sort_index", id, id, place);
    return id;
}

/* --- rows --- */

void gx_chrome_row_start(gx_chrome_row *row, int64_t process, const char *title,
                         int64_t place, bool nest)
{
    row->process = process;
    row->title = title;
    row->place = place;
    gx_lanes_start(&row->lanes, nest);
}

gx_status gx_chrome_place(gx_chrome *to, gx_chrome_row *row, const gx_slice *slice,
                          int64_t *thread, gx_error *err)
{
    const size_t n_before = row->lanes.n;
    const size_t lane = gx_lanes_place(&row->lanes, slice->start, slice->end);

    if (lane == n_before) {
        char name[120];

        if (lane == row->capacity) {
            const size_t capacity = 2 * row->capacity + 8;
            int64_t *const grown = realloc(row->thread, capacity * sizeof *grown);

            if (!grown)
                return GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
            row->thread = grown;
            row->capacity = capacity;
        }
        row->thread[lane] = ++to->n_ids;
        if (lane)
            snprintf(name, sizeof name, "%.80s, lane %zu", row->title, lane + 1);
        else
            snprintf(name, sizeof name, "%.80s", row->title);
        put_name(to, "thread_name", row->process, row->thread[lane], name);
        put_place(to, "thread_sort_index", row->process, row->thread[lane],
                  row->place + (int64_t)lane);
    }
    *thread = row->thread[lane];
    return GX_OK;
}
