/* How many steps a launch of the graph holds: what the flags ask for, what is measured,
 * and what is said of it; of updates that are skipped and of the order as well. */
#ifndef GX_LAUNCHES_H
#define GX_LAUNCHES_H

#include <stdio.h>

#include "json_out.h"
#include "session.h"

/* What the flags say, before there is a plan. */
void gx_launches_start(gx_session *session);
/* Once it is known whether the data stream. */
gx_status gx_launches_check(const gx_session *session, gx_error *err) GX_MUST_CHECK;
/* What streaming makes of the flags. */
void gx_launches_say(const gx_session *session);
/* Into the options of the plan, where it is left to measuring; and what the plan says. */
void gx_launches_ask(const gx_session *session, gx_plan_options *options);
void gx_launches_take(gx_session *session, const gx_plan *plan);

/* "50 steps a launch, unrolled", "... in a loop"; "one step a launch". */
gx_words gx_launches_words(const gx_session *session);
/* The trials, a line each; nothing where there were none. Likewise an IF node,
 * and both orders of the backward pass. */
void gx_launches_print(const gx_plan *plan, FILE *out);
/* The same, as an array that is empty then; skip_if and the order, with their trials. */
void gx_launches_put(gx_json *json, const gx_plan *plan);

#endif
