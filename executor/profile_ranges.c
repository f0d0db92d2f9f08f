/* The ranges of a program as a profiler keeps them. */
#define _GNU_SOURCE /* syscall */
#include "profile_ranges.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ranges.h"

enum {
    BLOCK_RECORDS = 4096,
    MOST_OPEN = 8 /* capture > step > phase > unit, and room */
};

typedef struct record {
    int64_t start, end; /* end: GX_TRACE_OPEN until it came */
    int64_t thread;
    int32_t unit; /* GX_TRACE_NONE: named */
    gx_named_range name;
} record;

typedef struct block {
    struct block *next;
    size_t n;
    record record[BLOCK_RECORDS];
} block;

struct gx_range_log {
    const gx_range_feed *feed;
    gx_exec *exec;
    uint32_t domain;
    uint32_t named[GX_N_NAMED_RANGES]; /* texts */
    uint32_t *unit_name;
    int *unit_lane;
    block *first, *last;
    record *open[MOST_OPEN]; /* NULL: one that is not kept */
    int n_open;
    bool in_capture;
    int64_t thread;
    int64_t n_launches, n_lost;
};

int64_t gx_thread_id(void)
{
    return (int64_t)syscall(SYS_gettid);
}

static gx_status add_text(gx_trace *trace, const char *text, uint32_t *number,
                          gx_error *err)
{
    return gx_trace_text(trace, text, strlen(text), number, err);
}

static gx_status add_names(gx_range_log *log, gx_trace *trace, gx_error *err)
{
    const gx_plan *plan = log->exec->plan;

    GX_TRY(add_text(trace, "gexec", &log->domain, err));
    for (int i = 0; i < GX_N_NAMED_RANGES; i++)
        GX_TRY(add_text(trace, gx_range_names[i], &log->named[i], err));
    log->unit_name = calloc(plan->n_units + 1, sizeof *log->unit_name);
    log->unit_lane = calloc(plan->n_units + 1, sizeof *log->unit_lane);
    if (!log->unit_name || !log->unit_lane)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the ranges of a program");
    for (size_t i = 0; i < plan->n_units; i++) {
        GX_TRY(add_text(trace, log->exec->units[i].name, &log->unit_name[i], err));
        log->unit_lane[i] = plan->units[i].lane;
    }
    return GX_OK;
}

gx_status gx_range_log_create(const gx_range_feed *feed, gx_exec *exec, gx_trace *trace,
                              gx_range_log **log, gx_error *err)
{
    gx_range_log *made = calloc(1, sizeof *made);

    *log = NULL;
    if (!made)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the ranges of a program");
    made->feed = feed;
    made->exec = exec;
    const gx_status st = add_names(made, trace, err);
    if (st != GX_OK) {
        gx_range_log_free(made);
        return st;
    }
    exec->range_log = made;
    *log = made;
    return GX_OK;
}

void gx_range_log_free(gx_range_log *log)
{
    if (!log)
        return;
    if (log->exec)
        log->exec->range_log = NULL;
    for (block *at = log->first; at;) {
        block *next = at->next;

        free(at);
        at = next;
    }
    free(log->unit_name);
    free(log->unit_lane);
    free(log);
}

void gx_range_log_orphan(gx_range_log *log)
{
    if (log)
        log->exec = NULL;
}

gx_exec *gx_range_log_exec(const gx_range_log *log)
{
    return log->exec;
}

int64_t gx_range_log_launches(const gx_range_log *log)
{
    return log->n_launches;
}

/* --- writing --- */

static record *new_record(gx_range_log *log)
{
    if (!log->last || log->last->n == BLOCK_RECORDS) {
        block *more = malloc(sizeof *more);

        if (!more) {
            log->n_lost++;
            return NULL;
        }
        more->next = NULL;
        more->n = 0;
        *(log->last ? &log->last->next : &log->first) = more;
        log->last = more;
    }
    return &log->last->record[log->last->n++];
}

static void begin(gx_range_log *log, gx_named_range name, int32_t unit)
{
    record *made = NULL;

    if (log->n_open == 0)
        log->thread = gx_thread_id(); /* the same until the outermost range ends */
    if (log->feed->recording || log->in_capture)
        made = new_record(log);
    if (made)
        *made = (record){ .start = log->feed->now(log->feed->user),
                          .end = GX_TRACE_OPEN,
                          .thread = log->thread,
                          .unit = unit,
                          .name = name };
    if (log->n_open < MOST_OPEN)
        log->open[log->n_open] = made;
    log->n_open++;
}

void gx_range_log_begin(gx_range_log *log, gx_named_range name)
{
    if (name == GX_NAMED_CAPTURE)
        log->in_capture = true;
    log->n_launches += log->feed->recording && !log->in_capture &&
                       (name == GX_NAMED_STEP || name == GX_NAMED_REPLAY);
    begin(log, name, GX_TRACE_NONE);
}

void gx_range_log_begin_unit(gx_range_log *log, size_t unit)
{
    begin(log, GX_N_NAMED_RANGES, (int32_t)unit);
}

void gx_range_log_end(gx_range_log *log)
{
    if (log->n_open == 0)
        return; /* it was attached inside */
    log->n_open--;
    if (log->n_open == 0)
        log->in_capture = false; /* a capture is the outermost range */
    record *const ended = log->n_open < MOST_OPEN ? log->open[log->n_open] : NULL;
    if (ended)
        ended->end = log->feed->now(log->feed->user);
}

/* --- reading --- */

static gx_status add_span(gx_unit_spans *spans, gx_unit_span span, gx_error *err)
{
    if (spans->n == spans->room) {
        const size_t room = spans->room ? 2 * spans->room : 256;
        gx_unit_span *grown = realloc(spans->span, room * sizeof *grown);

        if (!grown)
            return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the units of a trace");
        spans->span = grown;
        spans->room = room;
    }
    spans->span[spans->n++] = span;
    return GX_OK;
}

static gx_status tell(const gx_range_log *log, const record *told, gx_trace *trace,
                      gx_unit_spans *spans, gx_error *err)
{
    const bool is_unit = told->unit != GX_TRACE_NONE;
    const gx_trace_range range = {
        .kind = GX_TRACE_PUSH_POP,
        .name = is_unit ? log->unit_name[told->unit] : log->named[told->name],
        .domain = log->domain,
        .start = told->start,
        .end = told->end,
        .process = getpid(),
        .thread = told->thread,
    };

    GX_TRY(gx_trace_add_range(trace, &range, err));
    if (!is_unit)
        return GX_OK;
    return add_span(spans,
                    (gx_unit_span){ .thread = told->thread,
                                    .start = told->start,
                                    .end = told->end,
                                    .group = told->unit,
                                    .lane = log->unit_lane[told->unit] },
                    err);
}

gx_status gx_range_log_tell(const gx_range_log *log, gx_trace *trace,
                            gx_unit_spans *spans, gx_error *err)
{
    if (log->n_lost > 0)
        return GX_FAIL(err, GX_ERR_MEMORY,
                       "there was no memory for %lld ranges: trace fewer steps",
                       (long long)log->n_lost);
    for (const block *at = log->first; at; at = at->next)
        for (size_t i = 0; i < at->n; i++)
            GX_TRY(tell(log, &at->record[i], trace, spans, err));
    return GX_OK;
}
