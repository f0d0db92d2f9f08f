/* The references of the reductions. */
#ifndef GX_REDUCE_H
#define GX_REDUCE_H

#include "ops.h"

gx_status gx_sum_reference(const gx_call *call, gx_error *err) GX_MUST_CHECK;
gx_status gx_sum_bwd_reference(const gx_call *call, gx_error *err) GX_MUST_CHECK;
gx_status gx_mean_reference(const gx_call *call, gx_error *err) GX_MUST_CHECK;
gx_status gx_mean_bwd_reference(const gx_call *call, gx_error *err) GX_MUST_CHECK;
gx_status gx_max_reference(const gx_call *call, gx_error *err) GX_MUST_CHECK;
gx_status gx_max_bwd_reference(const gx_call *call, gx_error *err) GX_MUST_CHECK;
gx_status gx_sum_to_reference(const gx_call *call, gx_error *err) GX_MUST_CHECK;
gx_status gx_broadcast_to_reference(const gx_call *call, gx_error *err) GX_MUST_CHECK;

#endif
