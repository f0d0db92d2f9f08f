/* CUPTI's records read. */
#include "profile_records.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- the records of a buffer, one by one --- */

/* Bytes that are read of a record of this kind; 0: it is not read. */
static size_t size_of(CUpti_ActivityKind kind)
{
    switch (kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        return sizeof(gx_cupti_kernel);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
        return sizeof(gx_cupti_copy);
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
        return sizeof(gx_cupti_peer_copy);
    case CUPTI_ACTIVITY_KIND_MEMSET:
        return sizeof(gx_cupti_fill);
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
        return sizeof(gx_cupti_call);
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
        return sizeof(gx_cupti_overhead);
    default:
        return 0;
    }
}

/* Goes on to the next record; false at the end. *whole is false where the buffer ended
 * inside a record. */
static bool next_record(const gx_cupti *cupti, const gx_buffer *buffer,
                        CUpti_Activity **record, bool *whole)
{
    /* CUPTI takes the buffer as one that it might write, and does not. */
    const CUptiResult result = cupti->cuptiActivityGetNextRecord(
        (uint8_t *)(uintptr_t)buffer->bytes, buffer->n_valid, record);

    *whole = result == CUPTI_ERROR_MAX_LIMIT_REACHED;
    if (result != CUPTI_SUCCESS)
        return false;
    const size_t at = (size_t)((const uint8_t *)*record - buffer->bytes);
    *whole = at <= buffer->n_valid &&
             buffer->n_valid - at >= sizeof(CUpti_ActivityKind) &&
             buffer->n_valid - at >= size_of((*record)->kind);
    return *whole;
}

static uint64_t start_of(const CUpti_Activity *record)
{
    switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        return ((const gx_cupti_kernel *)(const void *)record)->start;
    case CUPTI_ACTIVITY_KIND_MEMCPY:
        return ((const gx_cupti_copy *)(const void *)record)->start;
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
        return ((const gx_cupti_peer_copy *)(const void *)record)->start;
    case CUPTI_ACTIVITY_KIND_MEMSET:
        return ((const gx_cupti_fill *)(const void *)record)->start;
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
        return ((const gx_cupti_call *)(const void *)record)->start;
    default: /* overhead is kept whether a window wants its buffer or not */
        return UINT64_MAX;
    }
}

bool gx_records_begin_by(const gx_cupti *cupti, const gx_buffer *buffer, int64_t until)
{
    CUpti_Activity *record = NULL;
    bool whole;

    while (next_record(cupti, buffer, &record, &whole))
        if (start_of(record) <= (uint64_t)until)
            return true;
    return false;
}

/* What CUPTI leaves to be freed by whoever read the record. */
static void free_data(const CUpti_Activity *record)
{
#if CUPTI_API_VERSION >= 130000
    const gx_cupti_overhead *overhead = (const void *)record;

    if (record->kind == CUPTI_ACTIVITY_KIND_OVERHEAD &&
        overhead->overheadKind == CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL)
        free(overhead->overheadData);
#else
    (void)record;
#endif
}

void gx_records_each_overhead(const gx_cupti *cupti, const gx_buffer *buffer,
                              gx_overhead_fn *take, void *user)
{
    CUpti_Activity *record = NULL;
    bool whole;

    while (next_record(cupti, buffer, &record, &whole)) {
        if (take && record->kind == CUPTI_ACTIVITY_KIND_OVERHEAD)
            take(user, (const void *)record);
        free_data(record);
    }
}

/* --- room --- */

static gx_status make_room(void *array_at, size_t n, size_t *room, size_t size,
                           gx_error *err)
{
    void **const array = array_at;

    if (n < *room)
        return GX_OK;
    const size_t wanted = *room ? 2 * *room : 1024;
    void *grown = realloc(*array, wanted * size);
    if (!grown)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the records of a trace");
    *array = grown;
    *room = wanted;
    return GX_OK;
}

/* False for a time that no clock shows, which is counted. */
static bool has_true_times(gx_record_reader *reader, uint64_t start, uint64_t end)
{
    const bool is_true = start <= GX_TRACE_MOST_TIME && end <= GX_TRACE_MOST_TIME;

    reader->losses.corrupt += !is_true;
    return is_true;
}

static gx_status add_activity(gx_record_reader *reader, gx_trace_kind kind,
                              uint64_t start, uint64_t end, gx_trace_activity **activity,
                              gx_error *err)
{
    gx_recorded *recorded = &reader->recorded;

    *activity = NULL;
    if (!has_true_times(reader, start, end))
        return GX_OK;
    GX_TRY(make_room(&recorded->activity, recorded->n_activities,
                     &recorded->activities_room, sizeof *recorded->activity, err));
    *activity = &recorded->activity[recorded->n_activities++];
    **activity = gx_trace_activity_none();
    (*activity)->kind = kind;
    (*activity)->start = (int64_t)start;
    (*activity)->end = (int64_t)end;
    (*activity)->process = getpid();
    return GX_OK;
}

static int64_t or_none(uint64_t id)
{
    return id != 0 ? (int64_t)id : GX_TRACE_NONE;
}

/* --- names --- */

static gx_status add_text(gx_record_reader *reader, const char *text, uint32_t *number,
                          gx_error *err)
{
    return gx_trace_text(reader->trace, text, strlen(text), number, err);
}

static gx_status name_kernel(gx_record_reader *reader, const char *symbol, uint32_t *text,
                             gx_error *err)
{
    size_t hash = 5381;

    for (const char *at = symbol; *at; at++)
        hash = hash * 33 + (unsigned char)*at;
    gx_kernel_name *known = &reader->kernel_name[hash % GX_KERNEL_NAMES];
    if (known->symbol && strcmp(known->symbol, symbol) == 0) {
        *text = known->text;
        return GX_OK;
    }
    int status = -1;
    char *readable =
        reader->demangle ? reader->demangle(symbol, NULL, NULL, &status) : NULL;
    const gx_status st =
        add_text(reader, readable && status == 0 ? readable : symbol, text, err);
    free(readable);
    if (st == GX_OK) {
        free(known->symbol);
        known->symbol = strdup(symbol);
        known->text = *text;
    }
    return st;
}

static gx_status name_call(gx_record_reader *reader, bool driver, CUpti_CallbackId id,
                           uint32_t *text, gx_error *err)
{
    uint32_t *known = id < GX_CALL_NAMES ? &reader->call_name[driver ? 1 : 0][id] : NULL;
    const char *name = NULL;
    char number[48];

    if (known && *known) {
        *text = *known - 1;
        return GX_OK;
    }
    if (reader->cupti->cuptiGetCallbackName(driver ? CUPTI_CB_DOMAIN_DRIVER_API
                                                   : CUPTI_CB_DOMAIN_RUNTIME_API,
                                            id, &name) != CUPTI_SUCCESS ||
        !name) {
        snprintf(number, sizeof number, "%s call %u", driver ? "driver" : "runtime", id);
        name = number;
    }
    GX_TRY(add_text(reader, name, text, err));
    if (known)
        *known = *text + 1;
    return GX_OK;
}

/* --- one record --- */

/* Where an activity ran, and what brought it there. */
static void place(gx_trace_activity *to, uint32_t device, uint32_t stream,
                  uint32_t correlation, uint64_t node)
{
    to->device = device;
    to->stream = stream;
    to->correlation = or_none(correlation);
    to->node = or_none(node);
}

static gx_status take_kernel(gx_record_reader *reader, const gx_cupti_kernel *from,
                             gx_error *err)
{
    gx_trace_activity *to;

    GX_TRY(add_activity(reader, GX_TRACE_KERNEL, from->start, from->end, &to, err));
    if (!to)
        return GX_OK;
    place(to, from->deviceId, from->streamId, from->correlationId, from->graphNodeId);
    to->grid[0] = from->gridX;
    to->grid[1] = from->gridY;
    to->grid[2] = from->gridZ;
    to->block[0] = from->blockX;
    to->block[1] = from->blockY;
    to->block[2] = from->blockZ;
    to->registers = from->registersPerThread;
    to->shared_bytes = (int64_t)from->staticSharedMemory + from->dynamicSharedMemory;
    return name_kernel(reader, from->name ? from->name : "kernel", &to->name, err);
}

static gx_status take_copy(gx_record_reader *reader, const gx_cupti_copy *from,
                           gx_error *err)
{
    gx_trace_activity *to;

    GX_TRY(add_activity(reader, GX_TRACE_COPY, from->start, from->end, &to, err));
    if (!to)
        return GX_OK;
    place(to, from->deviceId, from->streamId, from->correlationId, from->graphNodeId);
    to->bytes = (int64_t)from->bytes;
    return add_text(reader, gx_trace_copy_name(from->copyKind), &to->name, err);
}

/* A device as it is numbered; of none of this machine, GX_TRACE_NONE. */
static int32_t device_or_none(uint32_t id)
{
    return id <= INT32_MAX ? (int32_t)id : GX_TRACE_NONE;
}

static gx_status take_peer_copy(gx_record_reader *reader, const gx_cupti_peer_copy *from,
                                gx_error *err)
{
    gx_trace_activity *to;
    const char *copy = gx_trace_copy_name(CUPTI_ACTIVITY_MEMCPY_KIND_PTOP);
    char name[96];

    GX_TRY(add_activity(reader, GX_TRACE_COPY, from->start, from->end, &to, err));
    if (!to)
        return GX_OK;
    place(to, from->deviceId, from->streamId, from->correlationId, from->graphNodeId);
    to->bytes = (int64_t)from->bytes;
    to->source_device = device_or_none(from->srcDeviceId);
    to->target_device = device_or_none(from->dstDeviceId);
    if (to->source_device == GX_TRACE_NONE || to->target_device == GX_TRACE_NONE)
        return add_text(reader, copy, &to->name, err);
    snprintf(name, sizeof name, "%s, GPU %d to GPU %d", copy, (int)to->source_device,
             (int)to->target_device);
    return add_text(reader, name, &to->name, err);
}

static gx_status take_fill(gx_record_reader *reader, const gx_cupti_fill *from,
                           gx_error *err)
{
    gx_trace_activity *to;

    GX_TRY(add_activity(reader, GX_TRACE_FILL, from->start, from->end, &to, err));
    if (!to)
        return GX_OK;
    place(to, from->deviceId, from->streamId, from->correlationId, from->graphNodeId);
    to->bytes = (int64_t)from->bytes;
    return add_text(reader, "fill", &to->name, err);
}

static gx_status take_call(gx_record_reader *reader, const gx_cupti_call *from,
                           gx_error *err)
{
    gx_recorded *recorded = &reader->recorded;
    const bool driver = from->kind == CUPTI_ACTIVITY_KIND_DRIVER;

    if (!has_true_times(reader, from->start, from->end))
        return GX_OK;
    GX_TRY(make_room(&recorded->call, recorded->n_calls, &recorded->calls_room,
                     sizeof *recorded->call, err));
    gx_recorded_call *to = &recorded->call[recorded->n_calls++];
    *to = (gx_recorded_call){ .call = { .start = (int64_t)from->start,
                                        .end = (int64_t)from->end,
                                        .process = from->processId,
                                        .thread = from->threadId,
                                        .correlation = or_none(from->correlationId) },
                              .driver = driver };
    return name_call(reader, driver, from->cbid, &to->call.name, err);
}

/* Whom the overhead is of, as far as the record says. */
static void name_object(const gx_cupti_overhead *from, gx_trace_overhead *to)
{
    switch (from->objectKind) {
    case CUPTI_ACTIVITY_OBJECT_THREAD:
        to->thread = or_none(from->objectId.pt.threadId);
        to->process = from->objectId.pt.processId;
        break;
    case CUPTI_ACTIVITY_OBJECT_PROCESS:
        to->process = from->objectId.pt.processId;
        break;
    case CUPTI_ACTIVITY_OBJECT_DEVICE:
    case CUPTI_ACTIVITY_OBJECT_CONTEXT:
    case CUPTI_ACTIVITY_OBJECT_STREAM:
        to->device = from->objectId.dcs.deviceId;
        break;
    default:
        break;
    }
}

gx_status gx_record_reader_take_overhead(gx_record_reader *reader,
                                         const gx_cupti_overhead *from, gx_error *err)
{
    gx_recorded *recorded = &reader->recorded;
    const char *name = gx_trace_overhead_name((int64_t)from->overheadKind);
    char number[48];

    if (!has_true_times(reader, from->start, from->end))
        return GX_OK;
    GX_TRY(make_room(&recorded->overhead, recorded->n_overheads,
                     &recorded->overheads_room, sizeof *recorded->overhead, err));
    gx_trace_overhead *to = &recorded->overhead[recorded->n_overheads++];
    *to = (gx_trace_overhead){ .start = (int64_t)from->start,
                               .end = (int64_t)from->end,
                               .inside = GX_TRACE_NONE,
                               .process = getpid(),
                               .thread = GX_TRACE_NONE,
                               .device = GX_TRACE_NONE,
                               .correlation = GX_TRACE_NONE };
#if CUPTI_API_VERSION >= 130000
    to->correlation = or_none(from->correlationId);
#endif
    name_object(from, to);
    snprintf(number, sizeof number, "overhead of kind %lld",
             (long long)from->overheadKind);
    return add_text(reader, name ? name : number, &to->name, err);
}

static gx_status take(gx_record_reader *reader, const CUpti_Activity *record,
                      gx_error *err)
{
    switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        return take_kernel(reader, (const void *)record, err);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
        return take_copy(reader, (const void *)record, err);
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
        return take_peer_copy(reader, (const void *)record, err);
    case CUPTI_ACTIVITY_KIND_MEMSET:
        return take_fill(reader, (const void *)record, err);
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
        return take_call(reader, (const void *)record, err);
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
        return gx_record_reader_take_overhead(reader, (const void *)record, err);
    default:
        reader->losses.unknown++;
        return GX_OK;
    }
}

gx_status gx_record_reader_take(gx_record_reader *reader, const gx_buffer *buffer,
                                gx_error *err)
{
    CUpti_Activity *record = NULL;
    gx_status st = GX_OK;
    bool whole;

    /* After a failure only for what is to be freed. */
    while (next_record(reader->cupti, buffer, &record, &whole)) {
        if (st == GX_OK)
            st = take(reader, record, err);
        free_data(record);
    }
    reader->losses.corrupt += !whole;
    return st;
}

/* --- the reader --- */

/* Kernels are named by C++ symbols. Nothing here is linked with the C++ run time, but
 * most machines have it. */
static gx_demangle_fn *find_demangle(void)
{
    void *const library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);
    void *const symbol = library ? dlsym(library, "__cxa_demangle") : NULL;
    gx_demangle_fn *demangle = NULL;

    if (symbol)
        memcpy(&demangle, &symbol, sizeof symbol);
    return demangle;
}

void gx_record_reader_open(gx_record_reader *reader, const gx_cupti *cupti,
                           gx_trace *trace)
{
    *reader = (gx_record_reader){ .cupti = cupti, .trace = trace };
    reader->demangle = find_demangle();
}

void gx_record_reader_close(gx_record_reader *reader)
{
    for (size_t i = 0; i < GX_KERNEL_NAMES; i++)
        free(reader->kernel_name[i].symbol);
    free(reader->recorded.activity);
    free(reader->recorded.call);
    free(reader->recorded.overhead);
}
