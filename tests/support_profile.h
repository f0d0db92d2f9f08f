/* A profile with values that are made up, for the tests of reports. */
#ifndef GX_SUPPORT_PROFILE_H
#define GX_SUPPORT_PROFILE_H

#include "report.h"
#include "support.h"

/* Times and traces of digits_mlp as a card could have them: eager waits for the host
 * between kernels, the graph does not. The graph and the plan are real ones, of the CPU.
 */
typedef struct made_profile {
    gx_profile profile;
    gx_report report;
    gx_args args;
} made_profile;

void profile_make(made_profile *made, int n_steps, bool with_ceilings);
void profile_drop(made_profile *made);

#endif
