/* The simulated CUDA traced: each call of it, each piece of work and each graph node
 * becomes a record of the CUPTI that does as it is told. */
#ifndef FAKE_CUDA_TRACE_H
#define FAKE_CUDA_TRACE_H

#include "support.h"

#if GX_HAVE_CUPTI

#include "fake_cupti.h"
#include "profile_library.h"

enum { TRACE_STREAM = 7, TRACE_SOURCE = 2, TRACE_TARGET = 5 };

/* All work is told of as copies from peer to peer, between these two devices. */
extern bool trace_peers;

extern fake_cupti_emit_fn *trace_emit;
extern fake_cupti_fill_fn *trace_fill;

/* Loads the library that GX_FAKE_CUPTI names, gives it this script, and lets GEXEC_CUPTI
 * name it. */
void trace_use(const char *script);
uint64_t trace_now(void);
gx_cupti_kernel trace_kernel(uint64_t start, uint64_t end, uint32_t number,
                             uint64_t node);
gx_cupti_peer_copy trace_peer_copy(uint64_t start, uint64_t end, uint32_t number,
                                   uint64_t node);
gx_cupti_overhead trace_overhead(uint32_t kind, uint64_t start, uint64_t end);
/* Emits the record of a call. */
void trace_call(CUpti_ActivityKind kind, uint32_t id, uint64_t start, uint64_t end,
                uint32_t number);

#endif
#endif
