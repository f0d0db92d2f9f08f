/* CUPTI's session: what is asked of it, and what it calls back. */
#include "profile_session.h"

#include <stdlib.h>
#include <unistd.h>

#include "profile_ranges.h"
#include "profile_records.h"

enum {
    LEAST_BUFFER = 256 << 10,
    MOST_BUFFER = 8 << 20,
    USUAL_BUFFER = 1 << 20,
    /* What CUPTI says of its device buffers: records that one takes, and how many of them
     * a context may have. */
    DEVICE_BUFFER_RECORDS = 100000,
    DEVICE_BUFFERS = 250
};

static const CUpti_ActivityKind kinds[] = {
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, /* KIND_KERNEL would put them one by one */
    CUPTI_ACTIVITY_KIND_MEMCPY,
    CUPTI_ACTIVITY_KIND_MEMSET,
    CUPTI_ACTIVITY_KIND_RUNTIME,
    CUPTI_ACTIVITY_KIND_DRIVER,
};
enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

static const CUpti_CallbackIdResource node_events[] = {
    CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED,
    CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED,
};
enum { N_NODE_EVENTS = sizeof node_events / sizeof node_events[0] };

/* The process's session. The callbacks of buffers are given nothing to know theirs by. */
static _Atomic(gx_cupti_session *) the_session;

int64_t gx_cupti_session_now(const gx_cupti_session *session)
{
    uint64_t now = 0;

    return session->cupti.cuptiGetTimestamp(&now) == CUPTI_SUCCESS ? (int64_t)now : 0;
}

/* --- buffers --- */

static void CUPTIAPI give_buffer(uint8_t **bytes, size_t *size, size_t *most_records)
{
    gx_cupti_session *session = atomic_load(&the_session);
    const size_t wanted = session ? session->buffer_bytes : (size_t)LEAST_BUFFER;
    gx_buffer *buffer = calloc(1, sizeof *buffer + wanted);

    *most_records = 0; /* as many as it holds */
    *bytes = buffer ? buffer->bytes : NULL;
    *size = buffer ? wanted : 0;
    if (!buffer && session)
        atomic_fetch_add(&session->n_lost, 1);
}

/* Between windows the program may run for days: what no window wants is not kept. */
static bool is_wanted(const gx_cupti_session *session, const gx_buffer *buffer)
{
    const int64_t until = atomic_load(&session->until);

    if (until == GX_UNTIL_NEVER || buffer->n_valid == 0)
        return false;
    return until == GX_UNTIL_OPEN || gx_records_begin_by(&session->cupti, buffer, until);
}

void gx_seen_overheads_free(gx_seen_overhead *overheads)
{
    while (overheads) {
        gx_seen_overhead *next = overheads->next;

        free(overheads);
        overheads = next;
    }
}

/* What is new becomes what is older, which is dropped. A list is only ever taken whole,
 * so that threads may do this at once. */
static void drop_older_overheads(gx_cupti_session *session)
{
    gx_seen_overhead *now_older = atomic_exchange(&session->overheads, NULL);

    gx_seen_overheads_free(atomic_exchange(&session->older_overheads, now_older));
}

static void keep_overhead(void *user, const gx_cupti_overhead *record)
{
    gx_cupti_session *session = user;
    gx_seen_overhead *seen = malloc(sizeof *seen);

    if (!seen) {
        atomic_fetch_add(&session->n_lost, 1);
        return;
    }
    seen->record = *record;
    seen->next = atomic_load(&session->overheads);
    while (!atomic_compare_exchange_weak(&session->overheads, &seen->next, seen))
        ;
    if ((atomic_fetch_add(&session->n_overheads, 1) + 1) % GX_NEWEST_OVERHEADS == 0)
        drop_older_overheads(session);
}

static void CUPTIAPI take_buffer(CUcontext context, uint32_t stream, uint8_t *bytes,
                                 size_t size, size_t n_valid)
{
    gx_cupti_session *session = atomic_load(&the_session);

    (void)context;
    (void)stream;
    if (!bytes)
        return;
    gx_buffer *buffer = (gx_buffer *)(void *)(bytes - offsetof(gx_buffer, bytes));
    buffer->n_valid = n_valid < size ? n_valid : size;
    if (!session || !is_wanted(session, buffer)) {
        /* Most overhead comes ahead of a window: code is loaded, graphs are made. */
        if (session)
            gx_records_each_overhead(&session->cupti, buffer, keep_overhead, session);
        free(buffer);
        return;
    }
    buffer->next = atomic_load(&session->buffers);
    while (!atomic_compare_exchange_weak(&session->buffers, &buffer->next, buffer))
        ;
}

gx_buffer *gx_cupti_session_take_buffers(gx_cupti_session *session)
{
    return atomic_exchange(&session->buffers, NULL);
}

gx_seen_overhead *gx_cupti_session_take_overheads(gx_cupti_session *session)
{
    gx_seen_overhead *newest = atomic_exchange(&session->overheads, NULL);
    gx_seen_overhead *older = atomic_exchange(&session->older_overheads, NULL);
    gx_seen_overhead **end = &newest;

    while (*end)
        end = &(*end)->next;
    *end = older;
    return newest;
}

/* --- graph nodes --- */

static int64_t node_id(const gx_cupti_session *session, CUgraphNode node)
{
    uint64_t id = 0;

    return node && session->cupti.cuptiGetGraphNodeId(node, &id) == CUPTI_SUCCESS
               ? (int64_t)id
               : GX_TRACE_NONE;
}

/* On the thread that captures or instantiates, inside of its call. */
static void CUPTIAPI see_node(void *user, CUpti_CallbackDomain domain,
                              CUpti_CallbackId id, const void *data)
{
    gx_cupti_session *session = user;

    if (domain != CUPTI_CB_DOMAIN_RESOURCE ||
        (id != CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED &&
         id != CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED))
        return;
    const CUpti_ResourceData *resource = data;
    const CUpti_GraphData *graph = resource->resourceDescriptor;
    const bool cloned = id == CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED;
    gx_seen_node *seen = malloc(sizeof *seen);

    if (!seen) {
        atomic_fetch_add(&session->n_lost, 1);
        return;
    }
    seen->node = (gx_trace_node){
        .id = node_id(session, graph->node),
        .original = cloned ? node_id(session, graph->originalNode) : GX_TRACE_NONE,
        .time = gx_cupti_session_now(session),
        .process = getpid(),
        .thread = gx_thread_id(),
    };
    seen->next = atomic_load(&session->nodes);
    while (!atomic_compare_exchange_weak(&session->nodes, &seen->next, seen))
        ;
}

gx_seen_node *gx_cupti_session_take_nodes(gx_cupti_session *session)
{
    return atomic_exchange(&session->nodes, NULL);
}

/* --- begin --- */

static gx_status subscribe(gx_cupti_session *session, gx_error *err)
{
    const gx_cupti *cupti = &session->cupti;
    CUptiResult result;
#ifdef CUPTI_SUBSCRIBER_NAME_MAX_LEN
    char holder[CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN] = "";

    if (cupti->cuptiSubscribe_v2) {
        CUpti_SubscriberParams params = { .structSize =
                                              CUpti_SubscriberParams_STRUCT_SIZE,
                                          .subscriberName = "gexec",
                                          .oldSubscriberName = holder,
                                          .oldSubscriberSize = sizeof holder };

        result =
            cupti->cuptiSubscribe_v2(&session->subscriber, see_node, session, &params);
        holder[sizeof holder - 1] = '\0';
        if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED && holder[0])
            return GX_FAIL_NATIVE(err, GX_ERR_UNSUPPORTED, (int)result,
                                  "another tool, %s, holds CUPTI in this process "
                                  "(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED); run "
                                  "without it, or read its own report",
                                  holder);
        return gx_check_cupti(cupti, result, "cuptiSubscribe_v2", __FILE__, __LINE__,
                              err);
    }
#endif
    result = cupti->cuptiSubscribe(&session->subscriber, see_node, session);
    return gx_check_cupti(cupti, result, "cuptiSubscribe", __FILE__, __LINE__, err);
}

/* Sizes are wishes: where CUPTI does not take them it keeps its own. */
static void ask_for_sizes(gx_cupti_session *session, int64_t n_records)
{
    const gx_cupti *cupti = &session->cupti;
    const int64_t bytes = n_records > MOST_BUFFER / (int64_t)sizeof(gx_cupti_kernel)
                              ? MOST_BUFFER
                              : n_records * (int64_t)sizeof(gx_cupti_kernel);
    uint8_t zeroed = 1;
    size_t size = sizeof zeroed;
    size_t limit = (size_t)(n_records / DEVICE_BUFFER_RECORDS) + 1;

    session->buffer_bytes = n_records <= 0         ? (size_t)USUAL_BUFFER
                            : bytes < LEAST_BUFFER ? (size_t)LEAST_BUFFER
                                                   : (size_t)bytes;
    /* calloc clears large blocks for nothing; CUPTI would do it on the path of a launch.
     */
    (void)cupti->cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER,
                                           &size, &zeroed);
    size = sizeof limit;
    if (limit > DEVICE_BUFFERS)
        (void)cupti->cuptiActivitySetAttribute(
            CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT, &size, &limit);
}

static gx_status enable(gx_cupti_session *session, gx_error *err)
{
    const gx_cupti *cupti = &session->cupti;

    GX_TRY(GX_CUPTI(cupti, cuptiSetThreadIdType, (CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM),
                    err));
    GX_TRY(
        GX_CUPTI(cupti, cuptiActivityRegisterCallbacks, (give_buffer, take_buffer), err));
    for (size_t i = 0; i < N_NODE_EVENTS; i++)
        GX_TRY(GX_CUPTI(
            cupti, cuptiEnableCallback,
            (1, session->subscriber, CUPTI_CB_DOMAIN_RESOURCE, node_events[i]), err));
    for (size_t i = 0; i < N_KINDS; i++)
        GX_TRY(GX_CUPTI(cupti, cuptiActivityEnable, (kinds[i]), err));
    if (session->tells_peer_copies)
        GX_TRY(GX_CUPTI(cupti, cuptiActivityEnable, (CUPTI_ACTIVITY_KIND_MEMCPY2), err));
    /* A trace without it is as good; it says so. */
    session->tells_overhead =
        cupti->cuptiActivityEnable(CUPTI_ACTIVITY_KIND_OVERHEAD) == CUPTI_SUCCESS;
    return GX_OK;
}

static gx_status start(gx_cupti_session *session, const gx_profiler_options *options,
                       gx_error *err)
{
    GX_TRY(subscribe(session, err));
    ask_for_sizes(session, options ? options->n_records : 0);
    const gx_status st = enable(session, err);
    if (st != GX_OK)
        (void)gx_first(st, gx_cupti_session_end(session, NULL));
    return st;
}

gx_status gx_cupti_session_open(const gx_profiler_options *options,
                                gx_cupti_session **session, gx_error *err)
{
    gx_cupti_session *none = NULL;
    gx_cupti_session *made = calloc(1, sizeof *made);

    *session = NULL;
    if (!made)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for a profiler");
    atomic_init(&made->until, GX_UNTIL_NEVER);
    made->buffer_bytes = USUAL_BUFFER;
    made->tells_peer_copies = options && options->peer_copies;
    /* Taken before anything else, so that of two threads only one gets on. */
    if (!atomic_compare_exchange_strong(&the_session, &none, made)) {
        free(made);
        return GX_FAIL(err, GX_ERR_STATE,
                       "this process has or had a profiler; a process has one, since "
                       "records of a second session of CUPTI may be wrong");
    }
    gx_status st = gx_cupti_load(&made->cupti, err);
    if (st == GX_OK)
        st = start(made, options, err);
    if (st == GX_OK) {
        *session = made;
        return GX_OK;
    }
    atomic_store(&the_session, NULL);
    free(made);
    return st;
}

/* --- on the way and at the end --- */

gx_status gx_cupti_session_flush(gx_cupti_session *session, gx_error *err)
{
    return GX_CUPTI(&session->cupti, cuptiActivityFlushAll, (0), err);
}

gx_status gx_cupti_session_dropped(gx_cupti_session *session, int64_t *n, gx_error *err)
{
    size_t dropped = 0;

    *n = 0;
    GX_TRY(GX_CUPTI(&session->cupti, cuptiActivityGetNumDroppedRecords,
                    (NULL, 0, &dropped), err));
    *n = (int64_t)dropped;
    return GX_OK;
}

/* No cuptiFinalize: with graphs it has crashed. */
gx_status gx_cupti_session_end(gx_cupti_session *session, gx_error *err)
{
    const gx_cupti *cupti = &session->cupti;
    gx_status st = GX_OK;

    for (size_t i = 0; i < N_KINDS; i++)
        st = gx_first(st, GX_CUPTI(cupti, cuptiActivityDisable, (kinds[i]), err));
    if (session->tells_peer_copies)
        st = gx_first(st, GX_CUPTI(cupti, cuptiActivityDisable,
                                   (CUPTI_ACTIVITY_KIND_MEMCPY2), err));
    if (session->tells_overhead)
        st = gx_first(st, GX_CUPTI(cupti, cuptiActivityDisable,
                                   (CUPTI_ACTIVITY_KIND_OVERHEAD), err));
    for (size_t i = 0; i < N_NODE_EVENTS; i++)
        st = gx_first(st, GX_CUPTI(cupti, cuptiEnableCallback,
                                   (0, session->subscriber, CUPTI_CB_DOMAIN_RESOURCE,
                                    node_events[i]),
                                   err));
    st = gx_first(st, GX_CUPTI(cupti, cuptiActivityFlushAll,
                               (CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), err));
    return gx_first(st, GX_CUPTI(cupti, cuptiUnsubscribe, (session->subscriber), err));
}
