/* A profile from its two traces, part by part, and its end. */
#include <stdlib.h>

#include "profile_parts.h"

static gx_status fill_pass(gx_profile *profile, gx_profile_pass *pass, gx_error *err)
{
    pass->lane_overlap_ns = -1;
    if (!pass->trace)
        return GX_OK;
    if (!pass->figures)
        GX_TRY(gx_trace_figures_create(pass->trace, NULL, &pass->figures, err));
    GX_TRY(gx_profile_steps(pass, &profile->schedule, err));
    if (pass->n_steps == 0 && pass->status == GX_OK) {
        pass->status = GX_ERR_BROKEN;
        snprintf(pass->missing, sizeof pass->missing,
                 "the trace holds %lld kernels, copies and fills, but none of a step",
                 (long long)pass->found);
    }
    GX_TRY(gx_profile_ops(pass, profile->unit, profile->n_units, err));
    if (pass->n_ops)
        GX_TRY(gx_profile_pairs(pass, err));
    GX_TRY(gx_profile_overheads(pass, err));
    return gx_profile_overlap(pass, err);
}

gx_status gx_profile_figures(gx_profile *profile, gx_error *err)
{
    const gx_session *const session = &profile->timing.session;
    const gx_ceilings *const ceilings = profile->has_ceilings ? &profile->ceilings : NULL;
    const gx_profile_pass *counted;

    if (!profile->unit)
        GX_TRY(gx_profile_units(session->plan[GX_PROGRAM_TRAIN], &profile->unit,
                                &profile->n_units, err));
    gx_profile_unit_floors(profile->unit, profile->n_units, ceilings);
    for (int i = 0; i < 2; i++)
        GX_TRY(fill_pass(profile, &profile->pass[i], err));
    counted = profile->pass[1].trace ? &profile->pass[1] : &profile->pass[0];
    GX_TRY(gx_profile_path(profile->unit, profile->n_units,
                           counted->trace ? counted : NULL, ceilings, &profile->floor,
                           err));
    return gx_profile_patterns(profile, err);
}

static void free_pass(gx_profile_pass *pass)
{
    for (size_t i = 0; i < pass->n_ops; i++)
        free(pass->op[i].kernel);
    free(pass->op);
    free(pass->pair);
    free(pass->step);
    free(pass->step_of);
    free(pass->overhead);
    gx_trace_figures_free(pass->figures);
    gx_trace_free(pass->trace);
    *pass = (gx_profile_pass){ 0 };
}

void gx_profile_free(gx_profile *profile)
{
    for (int i = 0; i < 2; i++)
        free_pass(&profile->pass[i]);
    free(profile->unit);
    profile->unit = NULL;
    gx_compare_free(&profile->timing);
}
