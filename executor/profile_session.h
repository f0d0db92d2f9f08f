/* The session of CUPTI that a process has: its subscription, the buffers that it filled,
 * and the graph nodes that it told of. It is never freed, since CUPTI's threads may call
 * into it as long as the process lives. */
#ifndef GX_PROFILE_SESSION_H
#define GX_PROFILE_SESSION_H

#include <stdatomic.h>

#include <gexec/profile.h>

#include "profile_library.h"

/* Records as CUPTI hands them over; they stand behind the head, 8-byte aligned. */
typedef struct gx_buffer {
    struct gx_buffer *next;
    size_t n_valid;
    _Alignas(16) uint8_t bytes[];
} gx_buffer;

typedef struct gx_seen_node {
    struct gx_seen_node *next;
    gx_trace_node node;
} gx_seen_node;

/* Overhead of a buffer that no window wants. */
typedef struct gx_seen_overhead {
    struct gx_seen_overhead *next;
    gx_cupti_overhead record;
} gx_seen_overhead;

/* At least so many of these are kept ahead of a window, the newest, and at most twice as
 * many: a program may run for days before it. */
enum { GX_NEWEST_OVERHEADS = 50000 };

/* Times that `until` may hold besides that of the last window's end. */
#define GX_UNTIL_NEVER INT64_MIN /* no window was opened yet */
#define GX_UNTIL_OPEN INT64_MAX  /* a window is open */

typedef struct gx_cupti_session {
    gx_cupti cupti;
    CUpti_SubscriberHandle subscriber;
    size_t buffer_bytes;
    /* Pushed by any thread, taken whole by the profiler. */
    _Atomic(gx_buffer *) buffers;
    _Atomic(gx_seen_node *) nodes;
    _Atomic(gx_seen_overhead *) overheads;
    _Atomic(gx_seen_overhead *) older_overheads; /* dropped when there is enough new */
    _Atomic int64_t n_overheads;                 /* that were seen so */
    bool tells_overhead;                         /* else CUPTI would not record it */
    bool tells_peer_copies;                      /* as it was asked to */
    _Atomic int64_t until;  /* records that began later are not wanted */
    _Atomic int64_t n_lost; /* buffers, nodes and overhead that there was no room for */
} gx_cupti_session;

/* Loads CUPTI, subscribes, and enables the records. Once in a process; a failure leaves
 * nothing, so that it may be tried again. */
gx_status gx_cupti_session_open(const gx_profiler_options *options,
                                gx_cupti_session **session, gx_error *err) GX_MUST_CHECK;
/* No record comes after it. Every step is tried, whichever fails. */
gx_status gx_cupti_session_end(gx_cupti_session *session, gx_error *err) GX_MUST_CHECK;

/* Lets CUPTI hand over what is complete. */
gx_status gx_cupti_session_flush(gx_cupti_session *session, gx_error *err) GX_MUST_CHECK;
/* Records dropped since it was asked last. */
gx_status gx_cupti_session_dropped(gx_cupti_session *session, int64_t *n,
                                   gx_error *err) GX_MUST_CHECK;
/* Nanoseconds of the clock of the records. */
int64_t gx_cupti_session_now(const gx_cupti_session *session);

/* The caller frees what it takes: each with free(), or all that follow too. */
gx_buffer *gx_cupti_session_take_buffers(gx_cupti_session *session);
gx_seen_node *gx_cupti_session_take_nodes(gx_cupti_session *session);
gx_seen_overhead *gx_cupti_session_take_overheads(gx_cupti_session *session);
void gx_seen_overheads_free(gx_seen_overhead *overheads);

#endif
