/* What the two halves of layout share: order between units, and memory. */
#ifndef GX_LAYOUT_H
#define GX_LAYOUT_H

#include "plan.h"

/* What a unit does to a value. */
typedef void gx_access_fn(void *user, int32_t unit, int32_t value, bool reads,
                          bool writes);

/* Calls `access` for every operand of a unit that lies in memory, in node order. A value
 * that the unit elides is left out, where the unit reads it too. */
void gx_layout_accesses(const gx_plan *plan, int32_t unit, gx_access_fn *access,
                        void *user);

/* layout.c -> layout_memory.c: by unit and lane, the last unit of that lane that is known
 * to have ended when it starts; -1: none. Of the unit's own lane it says nothing. */
typedef struct gx_order {
    const gx_plan *plan;
    int32_t (*seen)[GX_MAX_LANES];
} gx_order;

/* True when unit `before` has ended before unit `after` starts, whatever the lanes do. */
static inline bool gx_order_holds(const gx_order *order, int32_t before, int32_t after)
{
    const gx_unit *units = order->plan->units;

    if (units[before].lane == units[after].lane)
        return before < after;
    return before <= order->seen[after][units[before].lane];
}

/* layout_memory.c: lifetimes and offsets. */
gx_status gx_layout_memory(gx_plan *plan, const gx_order *order, bool reuse,
                           size_t element_bytes, gx_error *err) GX_MUST_CHECK;

#endif
