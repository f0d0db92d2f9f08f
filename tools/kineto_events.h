/* One event of a Chrome trace, as it is put together while JSON streams by. */
#ifndef GX_KINETO_EVENTS_H
#define GX_KINETO_EVENTS_H

#include "trace_file.h"

/* Numbers stay texts until the event is whole: only then is it known what they mean. */
typedef struct gx_kineto_number {
    char text[64];
    size_t n; /* 0: not given */
    bool is_string;
} gx_kineto_number;

typedef enum gx_kineto_field {
    GX_KINETO_TS,
    GX_KINETO_DUR,
    GX_KINETO_PID,
    GX_KINETO_TID,
    GX_KINETO_DEVICE, /* this and the following stand in `args` */
    GX_KINETO_STREAM,
    GX_KINETO_CORRELATION,
    GX_KINETO_BYTES,
    GX_KINETO_REGISTERS,
    GX_KINETO_SHARED,
    GX_KINETO_NODE,
    GX_KINETO_GRID,
    GX_KINETO_BLOCK = GX_KINETO_GRID + 3,
    GX_KINETO_FIELDS = GX_KINETO_BLOCK + 3
} gx_kineto_field;

typedef struct gx_kineto_event {
    char phase[4];
    char category[32];
    uint32_t name; /* text */
    gx_kineto_number field[GX_KINETO_FIELDS];
} gx_kineto_event;

/* Adds to the trace what the event says, if it says anything of the kind. `offset` is
 * where it ended in the JSON, for messages. */
gx_status gx_kineto_event_take(const gx_kineto_event *event, gx_trace_file *file,
                               uint64_t offset, gx_error *err) GX_MUST_CHECK;

#endif
