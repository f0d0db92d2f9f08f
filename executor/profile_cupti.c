/* Profilers: windows in which CUPTI's records are kept, and the trace of them all. */
#include <stdio.h>
#include <stdlib.h>

#include "device_cuda.h"
#include "launch.h"
#include "profile_records.h"

typedef struct attached {
    struct attached *next;
    gx_range_log *log;
} attached;

struct gx_profiler {
    gx_cupti_session *session;
    bool ended; /* the session: the trace was made or could not be */
    gx_trace *trace;
    gx_range_feed feed;
    attached *attached;
    gx_window *window;
    size_t n_windows, windows_room;
    gx_record_reader reader;
};

static int64_t now(const void *session)
{
    return gx_cupti_session_now(session);
}

gx_status gx_profiler_available(char *text, size_t size, gx_error *err)
{
    gx_cupti cupti;

    gx_error_clear(err);
    if (size > 0)
        text[0] = '\0';
    GX_TRY(gx_cupti_load(&cupti, err));
    snprintf(text, size, "%s, API version %u", cupti.path, (unsigned)cupti.version);
    return GX_OK;
}

/* --- open and free --- */

gx_status gx_profiler_open(const gx_profiler_options *options, gx_profiler **profiler,
                           gx_error *err)
{
    gx_error_clear(err);
    if (!profiler)
        return GX_FAIL(err, GX_ERR_ARGUMENT, "there is no place for the profiler: NULL");
    *profiler = NULL;
    if (options && options->n_records < 0)
        return GX_FAIL(err, GX_ERR_ARGUMENT, "%lld records, expected 0 or more",
                       (long long)options->n_records);
    gx_profiler *made = calloc(1, sizeof *made);
    gx_trace *trace = gx_trace_create();
    gx_status st = GX_OK;

    if (!made || !trace)
        st = GX_FAIL(err, GX_ERR_MEMORY, "out of memory for a profiler");
    if (st == GX_OK)
        st = gx_cupti_session_open(options, &made->session, err);
    if (st != GX_OK) {
        gx_trace_free(trace);
        free(made);
        return st;
    }
    made->trace = trace;
    if (made->session->tells_overhead)
        gx_trace_expect_overhead(trace);
    made->feed = (gx_range_feed){ .now = now, .user = made->session };
    gx_record_reader_open(&made->reader, &made->session->cupti, trace);
    *profiler = made;
    return GX_OK;
}

static void free_records(gx_cupti_session *session)
{
    for (gx_buffer *at = gx_cupti_session_take_buffers(session); at;) {
        gx_buffer *next = at->next;

        gx_records_each_overhead(&session->cupti, at, NULL, NULL);
        free(at);
        at = next;
    }
    gx_seen_overheads_free(gx_cupti_session_take_overheads(session));
    for (gx_seen_node *at = gx_cupti_session_take_nodes(session); at;) {
        gx_seen_node *next = at->next;

        free(at);
        at = next;
    }
}

void gx_profiler_free(gx_profiler *profiler)
{
    if (!profiler)
        return;
    /* Whoever frees without a trace wants no records, and no word of them. */
    if (!profiler->ended)
        (void)gx_first(gx_cupti_session_end(profiler->session, NULL), GX_OK);
    free_records(profiler->session);
    while (profiler->attached) {
        attached *first = profiler->attached;

        profiler->attached = first->next;
        gx_range_log_free(first->log);
        free(first);
    }
    gx_record_reader_close(&profiler->reader);
    gx_trace_free(profiler->trace);
    free(profiler->window);
    free(profiler);
}

/* --- attach --- */

static gx_status check_open(const gx_profiler *profiler, gx_error *err)
{
    if (!profiler)
        return GX_FAIL(err, GX_ERR_ARGUMENT, "the profiler is NULL");
    if (profiler->ended)
        return GX_FAIL(err, GX_ERR_STATE, "the profiler's trace was taken: it has ended");
    return GX_OK;
}

gx_status gx_profiler_attach(gx_profiler *profiler, gx_exec *exec, gx_error *err)
{
    gx_error_clear(err);
    GX_TRY(check_open(profiler, err));
    if (!exec)
        return GX_FAIL(err, GX_ERR_ARGUMENT, "the program is NULL");
    if (exec->device->ordinal == GX_CPU)
        return GX_FAIL(err, GX_ERR_ARGUMENT,
                       "the program is on the CPU, of which CUPTI knows nothing");
    if (exec->range_log)
        return GX_FAIL(err, GX_ERR_STATE, "the program is attached already");
    attached *made = calloc(1, sizeof *made);
    if (!made)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for a profiler");
    const gx_status st =
        gx_range_log_create(&profiler->feed, exec, profiler->trace, &made->log, err);
    if (st != GX_OK) {
        free(made);
        return st;
    }
    made->next = profiler->attached;
    profiler->attached = made;
    return GX_OK;
}

/* --- windows --- */

static gx_status wait_for(gx_device *device, gx_error *err)
{
    int previous = 0;

    GX_TRY(gx_device_enter(device, &previous, err));
    const gx_status st =
        gx_device_cuda_note(device, GX_CUDA(cudaDeviceSynchronize(), err), err);
    gx_device_leave(device, previous);
    return st;
}

/* Every device of an attached program; the current one where there is none. */
static gx_status wait_for_devices(const gx_profiler *profiler, gx_error *err)
{
    int waited_for = GX_CPU;
    gx_status st = GX_OK;

    for (const attached *at = profiler->attached; at; at = at->next) {
        gx_exec *exec = gx_range_log_exec(at->log);

        if (!exec || exec->device->ordinal == waited_for)
            continue;
        waited_for = exec->device->ordinal;
        st = gx_first(st, wait_for(exec->device, err));
    }
    return waited_for == GX_CPU ? GX_CUDA(cudaDeviceSynchronize(), err) : st;
}

static gx_status read_buffers(gx_profiler *profiler, gx_error *err)
{
    gx_status st = GX_OK;

    for (gx_buffer *at = gx_cupti_session_take_buffers(profiler->session); at;) {
        gx_buffer *next = at->next;

        if (st == GX_OK)
            st = gx_record_reader_take(&profiler->reader, at, err);
        else
            gx_records_each_overhead(&profiler->session->cupti, at, NULL, NULL);
        free(at);
        at = next;
    }
    return st;
}

/* Overhead that came with no buffer that is kept. */
static gx_status read_overheads(gx_profiler *profiler, gx_error *err)
{
    gx_seen_overhead *all = gx_cupti_session_take_overheads(profiler->session);
    gx_status st = GX_OK;

    for (gx_seen_overhead *at = all; at && st == GX_OK; at = at->next)
        st = gx_record_reader_take_overhead(&profiler->reader, &at->record, err);
    gx_seen_overheads_free(all);
    return st;
}

/* What there is, after a failure too. The trace's functions are public and forget an
 * earlier error, so that they are not given it. */
static gx_status read_rest(gx_profiler *profiler, gx_status st, gx_error *err)
{
    return gx_first(st, read_buffers(profiler, st == GX_OK ? err : NULL));
}

static gx_status add_window(gx_profiler *profiler, gx_error *err)
{
    if (profiler->n_windows == profiler->windows_room) {
        const size_t room = profiler->windows_room ? 2 * profiler->windows_room : 8;
        gx_window *grown = realloc(profiler->window, room * sizeof *grown);

        if (!grown)
            return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for a profiler");
        profiler->window = grown;
        profiler->windows_room = room;
    }
    const int64_t start = gx_cupti_session_now(profiler->session);
    profiler->window[profiler->n_windows++] =
        (gx_window){ .start = start, .end = INT64_MAX, .waited = INT64_MAX };
    return GX_OK;
}

gx_status gx_profiler_start(gx_profiler *profiler, gx_error *err)
{
    int64_t dropped_before;

    gx_error_clear(err);
    GX_TRY(check_open(profiler, err));
    if (profiler->feed.recording)
        return GX_FAIL(err, GX_ERR_STATE, "the profiler is recording already");
    GX_TRY(wait_for_devices(profiler, err));
    GX_TRY(gx_cupti_session_flush(profiler->session, err));
    GX_TRY(read_buffers(profiler, err));
    /* What lies ahead of this window is safe from what comes after it. */
    GX_TRY(read_overheads(profiler, err));
    GX_TRY(gx_cupti_session_dropped(profiler->session, &dropped_before, err));
    GX_TRY(add_window(profiler, err));
    atomic_store(&profiler->session->until, GX_UNTIL_OPEN);
    profiler->feed.recording = true;
    return GX_OK;
}

/* The window closes whatever fails. */
gx_status gx_profiler_stop(gx_profiler *profiler, gx_error *err)
{
    int64_t dropped = 0;

    gx_error_clear(err);
    GX_TRY(check_open(profiler, err));
    if (!profiler->feed.recording)
        return GX_FAIL(err, GX_ERR_STATE, "the profiler is not recording");
    gx_cupti_session *session = profiler->session;
    gx_window *window = &profiler->window[profiler->n_windows - 1];
    profiler->feed.recording = false;
    window->end = gx_cupti_session_now(session);
    gx_status st = wait_for_devices(profiler, err);
    window->waited = gx_cupti_session_now(session);
    st = gx_first(st, gx_cupti_session_flush(session, err));
    st = gx_first(st, gx_cupti_session_dropped(session, &dropped, err));
    profiler->reader.losses.dropped += dropped;
    atomic_store(&session->until, window->waited);
    return read_rest(profiler, st, err);
}

/* --- the trace --- */

static gx_status add_nodes(gx_profiler *profiler, gx_error *err)
{
    gx_status st = GX_OK;

    for (gx_seen_node *at = gx_cupti_session_take_nodes(profiler->session); at;) {
        gx_seen_node *next = at->next;

        if (st == GX_OK)
            st = gx_trace_add_node(profiler->trace, &at->node, err);
        free(at);
        at = next;
    }
    return st;
}

static gx_status fill_trace(gx_profiler *profiler, gx_error *err)
{
    gx_unit_spans units = { .span = NULL };
    gx_status st = add_nodes(profiler, err);

    for (const attached *at = profiler->attached; at && st == GX_OK; at = at->next)
        st = gx_range_log_tell(at->log, profiler->trace, &units, err);
    if (st == GX_OK)
        st = read_overheads(profiler, err);
    if (st == GX_OK)
        st = gx_profile_join(&profiler->reader.recorded, profiler->window,
                             profiler->n_windows, &units, profiler->trace, err);
    free(units.span);
    return st;
}

/* Steps of attached programs; where none is attached, the calls that launch. */
static int64_t launches_made(const gx_profiler *profiler)
{
    int64_t n = 0;

    for (const attached *at = profiler->attached; at; at = at->next)
        n += gx_range_log_launches(at->log);
    return profiler->attached ? n : gx_profile_launches(profiler->trace);
}

static gx_status refuse_empty(const gx_profiler *profiler, gx_error *err)
{
    const int64_t n_launches = launches_made(profiler);
    size_t n;

    (void)gx_trace_activities(profiler->trace, &n);
    if (n > 0 || n_launches == 0)
        return GX_OK;
    return GX_FAIL(err, GX_ERR_UNSUPPORTED,
                   "CUPTI recorded nothing, though %lld steps were launched: the library "
                   "(%s) and the driver may not fit; name another in GEXEC_CUPTI",
                   (long long)n_launches, profiler->session->cupti.path);
}

gx_status gx_profiler_trace(gx_profiler *profiler, gx_trace **trace,
                            gx_profiler_losses *losses, gx_error *err)
{
    gx_profiler_losses lost;

    gx_error_clear(err);
    if (!trace || !losses)
        return GX_FAIL(err, GX_ERR_ARGUMENT, "there is no place for the %s: NULL",
                       trace ? "losses" : "trace");
    *trace = NULL;
    *losses = (gx_profiler_losses){ 0 };
    GX_TRY(check_open(profiler, err));
    if (profiler->feed.recording)
        return GX_FAIL(err, GX_ERR_STATE, "the profiler is recording: stop it first");
    profiler->ended = true;
    gx_status st = gx_cupti_session_end(profiler->session, err);
    st = read_rest(profiler, st, err);
    if (st == GX_OK)
        st = fill_trace(profiler, err);
    if (st == GX_OK)
        st = refuse_empty(profiler, err);
    lost = profiler->reader.losses;
    lost.dropped += atomic_load(&profiler->session->n_lost);
    *losses = lost;
    if (st != GX_OK)
        return st;
    *trace = profiler->trace;
    profiler->trace = NULL;
    return GX_OK;
}
