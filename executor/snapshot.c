/* What stands beside the values of a state: where its programs are in the data, and
 * copies of it. */
#include <stdlib.h>
#include <string.h>

#include "need.h"
#include "resolve.h"
#include "state.h"

/* --- places in the data --- */

static const char *const counters[GX_N_PARTS][2] = {
    [GX_PART_TRAIN] = { GX_STATE_SAMPLE, GX_STATE_EPOCH },
    [GX_PART_HELD] = { GX_EVAL_SAMPLE, GX_EVAL_EPOCH },
};

void gx_state_forget(gx_state *state, const char *written)
{
    for (int part = 0; part < GX_N_PARTS; part++)
        for (int i = 0; i < 2; i++)
            if (strcmp(counters[part][i], written) == 0)
                state->at[part].known = false;
    if (strncmp(written, "data.", strlen("data.")) == 0)
        gx_label_counts_free(state);
}

gx_status gx_state_locate(gx_state *state, gx_part part, gx_error *err)
{
    gx_position *at = &state->at[part];
    int32_t *const to[2] = { &at->sample, &at->epoch };

    if (at->known)
        return GX_OK;
    for (int i = 0; i < 2; i++) {
        const gx_entry *entry = gx_state_find(state, counters[part][i]);

        if (!entry)
            return GX_FAIL(err, GX_ERR_STATE, "the state has no '%s'", counters[part][i]);
        GX_TRY(gx_device_get(state->device, to[i], GX_I32, entry->data, entry->dtype, 1,
                             err));
        if (*to[i] < 0)
            return GX_FAIL(err, GX_ERR_DATA, "%s is %d: expected 0 or more",
                           counters[part][i], (int)*to[i]);
    }
    at->known = true;
    return GX_OK;
}

/* --- steps --- */

static const char *const step_names[GX_N_PARTS] = { GX_STATE_STEP, GX_EVAL_STEP };
static const char *const log_names[GX_N_PARTS] = { GX_STATE_LOG, GX_EVAL_LOG };

static gx_status read_steps(const gx_state *state, const gx_entry *entry, int64_t *steps,
                            gx_error *err)
{
    int32_t n = 0;

    GX_TRY(gx_device_get(state->device, &n, GX_I32, entry->data, entry->dtype, 1, err));
    *steps = n;
    return GX_OK;
}

gx_status gx_state_follow(gx_state *state, const char *written, gx_error *err)
{
    for (int part = 0; part < GX_N_PARTS; part++) {
        gx_progress *const progress = &state->progress[part];

        if (strcmp(step_names[part], written) == 0) {
            GX_TRY(
                read_steps(state, gx_state_find(state, written), &progress->steps, err));
            progress->log_from = progress->steps;
        } else if (strcmp(log_names[part], written) == 0) {
            progress->log_from = 0;
        }
    }
    return GX_OK;
}

gx_status gx_state_count(gx_state *state, gx_part part, int64_t n_steps, gx_error *err)
{
    gx_progress *const progress = &state->progress[part];

    if (n_steps <= INT32_MAX - progress->steps)
        return GX_OK;
    const gx_entry *const entry = gx_state_find(state, step_names[part]);

    if (!entry)
        return GX_OK;
    /* Fewer may have run than were submitted. */
    GX_TRY(read_steps(state, entry, &progress->steps, err));
    if (n_steps <= INT32_MAX - progress->steps)
        return GX_OK;
    return GX_FAIL(err, GX_ERR_LIMIT,
                   "%s is %lld, and %lld step%s more would take it past %d, the largest "
                   "number that it holds",
                   entry->name, (long long)progress->steps, (long long)n_steps,
                   n_steps == 1 ? "" : "s", INT32_MAX);
}

/* --- snapshots --- */

/* So that what is restored is known, and nobody waits then. */
static gx_status locate_all(gx_state *state, gx_error *err)
{
    for (int part = 0; state->rows && part < GX_N_PARTS; part++)
        if (gx_state_find(state, counters[part][0]))
            GX_TRY(gx_state_locate(state, (gx_part)part, err));
    return GX_OK;
}

gx_status gx_state_save(gx_state *state, gx_snapshot **snapshot, gx_error *err)
{
    gx_snapshot *made;
    int previous;
    gx_status st;

    gx_error_clear(err);
    GX_TRY(gx_need_place(snapshot, "snapshot", err));
    *snapshot = NULL;
    GX_TRY(gx_need(state, "state", err));
    GX_TRY(gx_device_enter(state->device, &previous, err));
    made = calloc(1, sizeof *made);
    st = locate_all(state, err);
    if (st == GX_OK && !made) {
        st = GX_FAIL(err, GX_ERR_MEMORY, "out of memory for a snapshot");
    } else if (st == GX_OK) {
        *made = (gx_snapshot){ .device = state->device,
                               .state = state,
                               .bytes = state->block_bytes };
        memcpy(made->at, state->at, sizeof made->at);
        memcpy(made->progress, state->progress, sizeof made->progress);
        st = gx_device_alloc(state->device, made->bytes, &made->copy, err);
    }
    if (st == GX_OK)
        st = gx_device_copy(state->device, made->copy, state->block, made->bytes, err);
    gx_device_leave(state->device, previous);
    if (st != GX_OK)
        gx_snapshot_free(made);
    else
        *snapshot = made;
    return st;
}

gx_status gx_state_restore(gx_state *state, const gx_snapshot *snapshot, gx_error *err)
{
    int previous;
    gx_status st;

    gx_error_clear(err);
    GX_TRY(gx_need(state, "state", err));
    GX_TRY(gx_need(snapshot, "snapshot", err));
    if (snapshot->state != state)
        return GX_FAIL(err, GX_ERR_ARGUMENT, "the snapshot is of another state");
    GX_TRY(gx_device_enter(state->device, &previous, err));
    st =
        gx_device_copy(state->device, state->block, snapshot->copy, snapshot->bytes, err);
    gx_device_leave(state->device, previous);
    memcpy(state->at, snapshot->at, sizeof state->at);
    memcpy(state->progress, snapshot->progress, sizeof state->progress);
    for (int part = 0; part < GX_N_PARTS; part++)
        state->at[part].known &= st == GX_OK;
    return st;
}

void gx_snapshot_free(gx_snapshot *snapshot)
{
    int previous;

    if (!snapshot)
        return;
    if (snapshot->copy) {
        const gx_status entered = gx_device_enter(snapshot->device, &previous, NULL);

        gx_device_release(snapshot->device, snapshot->copy);
        if (entered == GX_OK)
            gx_device_leave(snapshot->device, previous);
    }
    free(snapshot);
}
