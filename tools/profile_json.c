/* A profile as JSON: every figure, and every step as it was traced. Times end in _ns or
 * _s; what is not known is null. */
#include "ceilings_report.h"
#include "plan_report.h"
#include "profile_report.h"

static const char schema[] = "gexec-profile/1";

static void put_known(gx_json *json, const char *key, int64_t value)
{
    if (value < 0)
        gx_json_text(json, key, NULL);
    else
        gx_json_integer(json, key, value);
}

/* By class: how many gaps, and how long together. */
static void put_gaps(gx_json *json, const char *key, const gx_trace_share *gaps)
{
    gx_json_object(json, key);
    for (int c = 0; c < GX_GAP_CLASSES; c++) {
        gx_json_object(json, gx_gap_class_name((gx_gap_class)c));
        gx_json_integer(json, "n", gaps[c].n);
        gx_json_integer(json, "ns", gaps[c].ns);
        gx_json_end(json);
    }
    gx_json_end(json);
}

static void put_size(gx_json *json, const char *key, const int32_t *size)
{
    const int64_t dim[3] = { size[0], size[1], size[2] };

    if (size[0] == 0)
        gx_json_text(json, key, NULL);
    else
        gx_json_shape(json, key, 3, dim);
}

/* --- steps --- */

static void put_step(gx_json *json, const gx_profile_step *step)
{
    gx_json_object(json, NULL);
    gx_json_integer(json, "start_ns", step->start);
    gx_json_integer(json, "span_ns", step->end - step->start);
    gx_json_integer(json, "busy_ns", step->busy);
    gx_json_integer(json, "idle_ns", step->idle);
    put_known(json, "step_gap_ns", step->step_gap);
    gx_json_integer(json, "kernels", step->n_kernels);
    put_gaps(json, "gaps", step->gaps);
    gx_json_end(json);
}

static gx_status put_figures(gx_json *json, const gx_profile_pass *pass, gx_error *err)
{
    gx_json_object(json, "a_step_ns");
    for (int f = 0; f < GX_FIGURES; f++) {
        gx_summary summary;

        GX_TRY(gx_profile_figure_of(pass, (gx_profile_figure)f, &summary, err));
        gx_json_object(json, gx_profile_figure_name((gx_profile_figure)f));
        gx_json_figure(json, "median", summary.median);
        gx_json_figure(json, "p5", summary.p5);
        gx_json_figure(json, "p95", summary.p95);
        gx_json_integer(json, "count", (int64_t)summary.n);
        gx_json_end(json);
    }
    gx_json_end(json);
    return GX_OK;
}

/* --- ops --- */

static void put_kernel(gx_json *json, const gx_profile_kernel *kernel)
{
    gx_json_object(json, NULL);
    gx_json_text(json, "name", kernel->name);
    gx_json_text(json, "kind", gx_profile_kind_name(kernel->kind));
    gx_json_integer(json, "calls", kernel->calls);
    gx_json_integer(json, "total_ns", kernel->total_ns);
    gx_json_integer(json, "median_ns", kernel->median_ns);
    gx_json_integer(json, "p95_ns", kernel->p95_ns);
    put_size(json, "grid", kernel->grid);
    put_size(json, "block", kernel->block);
    put_known(json, "registers", kernel->registers);
    put_known(json, "shared_bytes", kernel->shared_bytes);
    gx_json_end(json);
}

static void put_op(gx_json *json, const gx_profile_op *op)
{
    const bool claimed = op->unit != SIZE_MAX;

    gx_json_object(json, NULL);
    gx_json_text(json, "name", claimed ? op->name : NULL);
    gx_json_text(json, "alternative", claimed ? op->alternative : NULL);
    gx_json_text(json, "phase", claimed ? gx_phase_text(op->phase) : NULL);
    put_known(json, "lane", op->lane);
    put_known(json, "unit", claimed ? (int64_t)op->unit : -1);
    gx_json_integer(json, "calls", op->calls);
    gx_json_real(json, "share", op->share);
    gx_json_integer(json, "total_ns", op->total_ns);
    put_known(json, "median_ns", op->calls ? op->median_ns : -1);
    put_known(json, "p95_ns", op->calls ? op->p95_ns : -1);
    gx_json_figure(json, "flops", op->flops);
    gx_json_figure(json, "bytes", op->bytes);
    gx_json_figure(json, "flops_per_s", op->flop_rate);
    gx_json_figure(json, "bytes_per_s", op->byte_rate);
    gx_json_figure(json, "floor_s", op->floor_s);
    gx_json_figure(json, "of_floor", op->of_floor);
    gx_json_text(json, "bound", op->floor_s < 0 ? NULL : gx_bound_name(op->bound));
    gx_json_array(json, "kernels");
    for (size_t i = 0; i < op->n_kernels; i++)
        put_kernel(json, &op->kernel[i]);
    gx_json_end(json);
    gx_json_end(json);
}

static void put_pair(gx_json *json, const gx_profile_pass *pass,
                     const gx_profile_pair *pair)
{
    gx_json_object(json, NULL);
    gx_json_text(json, "before", gx_profile_op_label(&pass->op[pair->before]));
    gx_json_text(json, "after", gx_profile_op_label(&pass->op[pair->after]));
    gx_json_text(json, "class", gx_gap_class_name(gx_profile_main_class(pair->gaps)));
    gx_json_integer(json, "total_ns", pair->total_ns);
    gx_json_integer(json, "median_ns", pair->median_ns);
    gx_json_integer(json, "p95_ns", pair->p95_ns);
    put_gaps(json, "gaps", pair->gaps);
    gx_json_end(json);
}

/* --- a pass --- */

static void put_records(gx_json *json, const gx_profile_pass *pass)
{
    const gx_trace_dropped dropped = gx_trace_dropped_get(pass->trace);

    gx_json_object(json, "records");
    put_known(json, "expected", pass->expected);
    gx_json_integer(json, "found", pass->found);
    gx_json_integer(json, "in_no_step", pass->outside);
    gx_json_integer(json, "expected_steps", pass->expected_steps);
    gx_json_integer(json, "steps", (int64_t)pass->n_steps);
    gx_json_integer(json, "dropped", pass->losses.dropped);
    gx_json_integer(json, "unknown", pass->losses.unknown);
    gx_json_integer(json, "corrupt_buffers", pass->losses.corrupt);
    gx_json_integer(json, "without_time", dropped.no_time);
    gx_json_integer(json, "backwards", dropped.backwards);
    gx_json_integer(json, "before_their_call", dropped.before_call);
    gx_json_end(json);
}

static void put_overhead_of(gx_json *json, const gx_profile_overhead *overhead)
{
    gx_json_object(json, "inside");
    gx_json_integer(json, "n", overhead->inside.n);
    gx_json_integer(json, "ns", overhead->inside.ns);
    gx_json_integer(json, "longest_ns", overhead->longest_ns);
    gx_json_end(json);
    gx_json_object(json, "before");
    gx_json_integer(json, "n", overhead->before.n);
    gx_json_integer(json, "ns", overhead->before.ns);
    gx_json_end(json);
}

static void put_overhead(gx_json *json, const gx_profile_pass *pass)
{
    const gx_profile_overhead all = gx_profile_overhead_sum(pass);

    if (!gx_trace_tells_overhead(pass->trace)) {
        gx_json_text(json, "overhead", NULL);
        return;
    }
    gx_json_object(json, "overhead");
    put_overhead_of(json, &all);
    gx_json_array(json, "kinds");
    for (size_t i = 0; i < pass->n_overheads; i++) {
        gx_json_object(json, NULL);
        gx_json_text(json, "name", pass->overhead[i].name);
        put_overhead_of(json, &pass->overhead[i]);
        gx_json_end(json);
    }
    gx_json_end(json);
    gx_json_end(json);
}

static gx_status put_pass(gx_json *json, const gx_profile_pass *pass, gx_error *err)
{
    gx_status st = GX_OK;

    gx_json_object(json, gx_mode_name(pass->mode));
    gx_json_text(json, "missing", pass->missing[0] ? pass->missing : NULL);
    if (pass->trace) {
        put_records(json, pass);
        put_overhead(json, pass);
        st = put_figures(json, pass, err);
        put_gaps(json, "step_gaps", pass->step_gaps);
        gx_json_integer(json, "waiting_calls", pass->n_waiting_calls);
        gx_json_figure(json, "lane_overlap_ns", pass->lane_overlap_ns);
        put_known(json, "free_bytes_before", pass->free_before);
        put_known(json, "free_bytes_after", pass->free_after);
        gx_json_array(json, "steps");
        for (size_t i = 0; i < pass->n_steps; i++)
            put_step(json, &pass->step[i]);
        gx_json_end(json);
        gx_json_array(json, "ops");
        for (size_t i = 0; i < pass->n_ops; i++)
            put_op(json, &pass->op[i]);
        gx_json_end(json);
        gx_json_array(json, "idle_between");
        for (size_t i = 0; i < pass->n_pairs; i++)
            put_pair(json, pass, &pass->pair[i]);
        gx_json_end(json);
    }
    gx_json_end(json);
    return st;
}

/* --- the rest --- */

static void put_floor(gx_json *json, const gx_profile_floor *floor)
{
    gx_json_object(json, "floor");
    gx_json_figure(json, "path_s", floor->path_s);
    put_known(json, "path_ops", floor->path_s < 0 ? -1 : (int64_t)floor->n_units);
    put_known(json, "path_nodes", floor->n_nodes);
    gx_json_figure(json, "path_latency_s", floor->latency_s);
    gx_json_end(json);
}

static void put_memory(gx_json *json, const gx_profile *profile)
{
    const gx_session *const session = &profile->timing.session;
    const gx_plan_info plan = gx_plan_info_get(session->plan[GX_PROGRAM_TRAIN]);
    const int64_t persistent = (int64_t)plan.persistent_bytes;
    const int64_t exec = (int64_t)profile->timing.stats.device_bytes;

    gx_json_object(json, "memory_bytes");
    gx_json_integer(json, "peak", persistent + exec);
    gx_json_integer(json, "persistent", persistent);
    gx_json_integer(json, "exec", exec);
    gx_json_integer(json, "arena", (int64_t)plan.arena_bytes);
    gx_json_integer(json, "arena_without_reuse", (int64_t)plan.naive_bytes);
    gx_json_integer(json, "workspaces", (int64_t)plan.workspace_bytes);
    gx_json_integer(json, "card", session->device_info.memory_bytes);
    gx_json_integer(json, "card_free_at_first", session->device_info.free_bytes);
    gx_json_end(json);
}

static void put_schedule(gx_json *json, const gx_profile *profile)
{
    const gx_profile_schedule *const schedule = &profile->schedule;

    gx_json_object(json, "schedule");
    gx_json_integer(json, "wait", schedule->wait);
    gx_json_integer(json, "warmup", schedule->warmup);
    gx_json_integer(json, "active", schedule->active);
    gx_json_integer(json, "repeat", schedule->repeat);
    gx_json_integer(json, "traced_steps_per_launch", 1);
    gx_json_integer(json, "timed_steps_per_launch",
                    profile->timing.session.steps_per_launch);
    gx_json_end(json);
}

void gx_profile_put_patterns(gx_json *json, const gx_profile *profile)
{
    gx_json_array(json, "patterns");
    for (size_t i = 0; i < profile->n_patterns; i++) {
        gx_json_object(json, NULL);
        gx_json_text(json, "name", profile->pattern[i].name);
        gx_json_text(json, "found", profile->pattern[i].found);
        gx_json_text(json, "advice", profile->pattern[i].advice);
        gx_json_end(json);
    }
    gx_json_end(json);
}

gx_status gx_profile_write_json(const gx_profile *profile, const char *path,
                                gx_error *err)
{
    gx_json *json = gx_json_create();
    gx_status st = GX_OK;

    gx_json_object(json, NULL);
    gx_json_text(json, "schema", schema);
    gx_json_text(json, "command", "profile");
    gx_compare_put(json, &profile->timing);
    put_schedule(json, profile);
    gx_json_object(json, "passes");
    for (int i = 0; i < 2 && st == GX_OK; i++)
        st = put_pass(json, &profile->pass[i], err);
    gx_json_end(json);
    if (profile->has_ceilings)
        gx_ceilings_json(json, "ceilings", &profile->ceilings);
    else
        gx_json_text(json, "ceilings", NULL);
    put_floor(json, &profile->floor);
    put_memory(json, profile);
    gx_profile_put_patterns(json, profile);
    gx_json_end(json);
    if (st == GX_OK)
        st = gx_json_write(json, path, err);
    gx_json_free(json);
    return st;
}
