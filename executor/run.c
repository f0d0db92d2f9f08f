/* The walk on the CPU: one step, op by op, in double. */
#include "builder.h"
#include "exec_model.h"
#include "ranges.h"

/* Each stored tensor takes the precision of its declared type. */
static void round_operand(const gx_tensor *tensor)
{
    const int64_t n = gx_count(tensor);
    double *x = tensor->data;

    if (tensor->dtype == GX_F64)
        return;
    for (int64_t i = 0; i < n; i++)
        x[i] = gx_round_to(tensor->dtype, x[i]);
}

static void round_outputs(const gx_call *call)
{
    int arg = 0;

    for (const gx_field *field = call->op->fields; field->name; field++) {
        if (!gx_is_tensor_field(field))
            continue;
        if (field->kind != GX_FIELD_IN && gx_has(call, arg))
            round_operand(&call->arg[arg]);
        arg++;
    }
}

/* What is updated in place is held in double as well: a parameter becomes a copy of its
 * master, not of what f32 would keep of that. */
static gx_status refer_exact(const gx_call *call, gx_error *err)
{
    gx_call held = *call;

    for (int arg = 0; arg < gx_n_args(call->op); arg++)
        if (gx_arg_kind(call->op, arg) == GX_FIELD_INOUT &&
            gx_is_float(call->arg[arg].dtype))
            held.arg[arg].dtype = GX_F64;
    return call->op->reference(&held, err);
}

static gx_status compute(const gx_call *call, bool exact, gx_error *err)
{
    const gx_status st = exact ? refer_exact(call, err) : call->op->reference(call, err);

    if (st != GX_OK)
        gx_error_prefix(err, call->name);
    else if (!exact)
        round_outputs(call);
    return st;
}

/* A unit of the CPU is one op. */
gx_status gx_walk_cpu(gx_exec *exec, gx_error *err)
{
    const gx_plan *plan = exec->plan;
    gx_step_ranges ranges;
    gx_status st = GX_OK;

    gx_ranges_step_begin(&ranges, exec);
    for (size_t i = 0; i < plan->n_units && st == GX_OK; i++) {
        gx_ranges_unit_begin(&ranges, i);
        st = compute(exec->units[i].group.call, exec->state->exact, err);
        gx_ranges_unit_end(&ranges);
    }
    gx_ranges_step_end(&ranges);
    return st;
}
