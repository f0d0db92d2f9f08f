/* NVTX ranges of the domain "gexec". Without NVTX every call is empty, and nothing of it
 * is left in the program. */
#ifndef GX_NVTX_H
#define GX_NVTX_H

#include "exec_model.h"

#if GX_HAVE_NVTX

/* Opens the domain, once in a process; before anything else here. */
void gx_nvtx_open(void);
/* Registers a text, which the tool behind NVTX copies; when an exec is made, never later.
 */
const void *gx_nvtx_register(const char *text);

void gx_nvtx_begin(gx_named_range name);
/* The payload is the unit's first node. */
void gx_nvtx_begin_unit(const gx_bound_unit *unit, int64_t first_node);
void gx_nvtx_end(void);

#else

static inline void gx_nvtx_open(void)
{
}

static inline const void *gx_nvtx_register(const char *text)
{
    (void)text;
    return NULL;
}

static inline void gx_nvtx_begin(gx_named_range name)
{
    (void)name;
}

static inline void gx_nvtx_begin_unit(const gx_bound_unit *unit, int64_t first_node)
{
    (void)unit;
    (void)first_node;
}

static inline void gx_nvtx_end(void)
{
}

#endif
#endif
