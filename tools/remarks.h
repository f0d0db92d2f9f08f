/* What a command says of a model that is right, before its work. */
#ifndef GX_REMARKS_H
#define GX_REMARKS_H

#include "json_out.h"
#include "session.h"

enum { GX_MOST_IDLE_FLAGS = 16 };

/* Flags that were given and change nothing: all of a launch on the CPU; on a GPU
 * "--force NAME" of an alternative that no unit of the plan takes. */
typedef struct gx_idle_flags {
    gx_words flag[GX_MOST_IDLE_FLAGS];
    size_t n;
} gx_idle_flags;

gx_idle_flags gx_idle_flags_of(const gx_session *session);
/* As an array "flags_without_effect". */
void gx_idle_flags_put(gx_json *json, gx_idle_flags flags);

/* How the data and the launches of a loaded session are; `with_place`: first where it
 * runs, if nobody asked for that, and which flags change nothing there. */
void gx_session_say(const gx_session *session, bool with_place);
/* What the plan of training found: the plan cache, and forced alternatives that nothing
 * takes. */
void gx_plan_say(const gx_session *session);

#endif
