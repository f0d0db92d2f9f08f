/* The CUDA alternatives of the optimizers: each op by itself, or all tensors at once. */
#include <math.h>
#include <string.h>

#include "optimizer_kernels.h"

/* Chunks for each multiprocessor from which on the rate of memory decides. */
enum { MANY_CHUNKS = 32 };

/* How a row's call becomes entries of a table. */
typedef struct rule {
    const char *op;
    gx_update_rule rule;
    int n_pointers;
    int pointer[GX_UPDATE_MAX_POINTERS]; /* the parameter, the gradient, state */
    int lr, step, scale, master;
    int accumulate; /* an attribute */
    void (*set)(const gx_call *call, gx_update_settings *settings);
} rule;

static void set_sgd(const gx_call *call, gx_update_settings *settings)
{
    settings->decay = (float)call->attr[GX_SGD_WEIGHT_DECAY].r;
}

static void set_nesterov(const gx_call *call, gx_update_settings *settings)
{
    settings->decay = (float)call->attr[GX_MOMENTUM_WEIGHT_DECAY].r;
    settings->keep2 = (float)call->attr[GX_MOMENTUM_MOMENTUM].r;
    settings->take1 = 1.0F;
    settings->nesterov = true;
}

static void set_momentum(const gx_call *call, gx_update_settings *settings)
{
    set_nesterov(call, settings);
    settings->take1 = (float)(1.0 - call->attr[GX_MOMENTUM_DAMPENING].r);
    settings->nesterov = false;
}

static void set_adam(const gx_call *call, gx_update_settings *settings)
{
    const double beta1 = call->attr[GX_ADAMW_BETA1].r;
    const double beta2 = call->attr[GX_ADAMW_BETA2].r;

    settings->log_beta1 = log(beta1);
    settings->log_beta2 = log(beta2);
    settings->decay = (float)call->attr[GX_ADAMW_WEIGHT_DECAY].r;
    settings->take1 = (float)(1.0 - beta1);
    settings->keep2 = (float)beta2;
    settings->take2 = (float)(1.0 - beta2);
    settings->eps = (float)call->attr[GX_ADAMW_EPS].r;
}

static void set_adamw(const gx_call *call, gx_update_settings *settings)
{
    set_adam(call, settings);
    settings->shrink = call->attr[GX_ADAMW_WEIGHT_DECAY].r;
    settings->decay = 0;
}

#define MOMENTUM                                                                     \
    GX_UPDATE_MOMENTUM, 3, { GX_MOMENTUM_PARAM, GX_MOMENTUM_GRAD, GX_MOMENTUM_BUF }, \
        GX_MOMENTUM_LR, GX_MOMENTUM_STEP, GX_MOMENTUM_SCALE, GX_MOMENTUM_MASTER,     \
        GX_MOMENTUM_ACCUMULATE
#define ADAM                                                                      \
    GX_UPDATE_ADAM, 4, { GX_ADAMW_PARAM, GX_ADAMW_GRAD, GX_ADAMW_M, GX_ADAMW_V }, \
        GX_ADAMW_LR, GX_ADAMW_STEP, GX_ADAMW_SCALE, GX_ADAMW_MASTER, GX_ADAMW_ACCUMULATE

static const rule rules[] = {
    { "sgd",
      GX_UPDATE_SGD,
      2,
      { GX_SGD_PARAM, GX_SGD_GRAD },
      GX_SGD_LR,
      GX_SGD_STEP,
      GX_SGD_SCALE,
      GX_SGD_MASTER,
      GX_SGD_ACCUMULATE,
      set_sgd },
    { "momentum", MOMENTUM, set_momentum },
    { "nesterov", MOMENTUM, set_nesterov },
    { "adam", ADAM, set_adam },
    { "adamw", ADAM, set_adamw },
};

enum { N_RULES = sizeof rules / sizeof rules[0] };

static const rule *rule_of_op(const gx_op *op)
{
    int i = N_RULES - 1; /* the patterns name no other op */

    while (i > 0 && strcmp(rules[i].op, op->name) != 0)
        i--;
    return &rules[i];
}

static const rule *rule_of(const gx_group *group)
{
    return rule_of_op(group->call[0].op);
}

void gx_update_settings_of(const gx_call *call, gx_update_settings *settings)
{
    const rule *r = rule_of_op(call->op);

    memset(settings, 0, sizeof *settings);
    settings->lr = call->arg[r->lr].data;
    r->set(call, settings);
}

/* The tensors of an entry, the master last. */
static int n_pointers(const gx_call *call, const rule *r)
{
    return r->n_pointers + gx_has(call, r->master);
}

static const gx_tensor *pointer(const gx_call *call, const rule *r, int p)
{
    return &call->arg[p < r->n_pointers ? r->pointer[p] : r->master];
}

/* Calls that share a kernel differ in their tensors, and in settings that an entry of the
 * table can have of its own. */
static const char *refuses(const gx_group *group, const gx_ctx *ctx)
{
    const gx_call *first = &group->call[0];
    const rule *r = rule_of(group);

    (void)ctx;
    if (!gx_is_float(first->arg[r->pointer[0]].dtype))
        return "only f32, bf16 and f16";
    for (int i = 1; i < group->n_calls; i++) {
        const gx_call *call = &group->call[i];

        if (gx_has(call, r->master) != gx_has(first, r->master))
            return "some tensors have a master, others none";
        for (int p = 0; p < r->n_pointers; p++) {
            if (pointer(call, r, p)->dtype != pointer(first, r, p)->dtype)
                return "the tensors differ in type";
        }
        if (gx_data(call, r->step) != gx_data(first, r->step) ||
            gx_data(call, r->scale) != gx_data(first, r->scale) ||
            call->attr[r->accumulate].i != first->attr[r->accumulate].i)
            return "the tensors have counters or factors of their own";
    }
    return NULL;
}

static bool is_wide(const gx_call *call, const rule *r, const gx_update_table *table)
{
    const uintptr_t at_once = gx_update_is_narrow(table) ? 8 : 4;

    for (int p = 0; p < n_pointers(call, r); p++) {
        const gx_tensor *tensor = pointer(call, r, p);

        if ((uintptr_t)tensor->data % (at_once * gx_dtype_bytes(tensor->dtype)) != 0)
            return false;
    }
    return true;
}

/* The settings of a call, as a number in the table; -1: it has no room for them. */
static int find_settings(const gx_call *call, gx_update_table *table)
{
    gx_update_settings settings;

    gx_update_settings_of(call, &settings);
    for (int i = 0; i < table->n_settings; i++) {
        if (memcmp(&table->settings[i], &settings, sizeof settings) == 0)
            return i;
    }
    if (table->n_settings == GX_UPDATE_SETTINGS)
        return -1;
    memcpy(&table->settings[table->n_settings], &settings, sizeof settings);
    return table->n_settings++;
}

/* False: the table is full. */
static bool add_entry(const gx_call *call, const rule *r, gx_update_table *table)
{
    const int n_of_call = table->n_pointers, size = n_of_call + 2;
    const int64_t n = gx_count(&call->arg[r->pointer[0]]);
    const int64_t n_chunks = gx_divide_up(n, GX_OPTIMIZER_CHUNK);
    uint64_t *words = table->words + (size_t)(table->n_entries * size);

    if ((table->n_entries + 1) * size > (int)GX_UPDATE_WORDS ||
        (table->n_entries > 0 && table->n_chunks + n_chunks > UINT32_MAX))
        return false;
    const int group = find_settings(call, table);

    if (group < 0)
        return false;
    for (int p = 0; p < n_of_call; p++)
        words[p] = (uintptr_t)pointer(call, r, p)->data;
    words[n_of_call] = (uint64_t)n;
    words[n_of_call + 1] =
        (uint64_t)group << GX_UPDATE_GROUP_SHIFT | (uint64_t)table->n_chunks;
    table->wide = table->wide && is_wide(call, r, table);
    table->n_chunks += n_chunks;
    table->n_entries++;
    return true;
}

/* Fills the table that follows after `*at` calls; false: there is none. */
static bool next_table(const gx_group *group, const gx_ctx *ctx, int *at,
                       gx_update_table *table)
{
    const gx_call *first = &group->call[0];
    const rule *r = rule_of(group);

    table->rule = r->rule;
    table->n_pointers = n_pointers(first, r);
    table->n_entries = 0;
    table->n_settings = 0;
    table->n_chunks = 0;
    table->wide = true;
    table->dtype = first->arg[r->pointer[0]].dtype;
    table->grad_dtype = first->arg[r->pointer[1]].dtype;
    table->state_dtype = first->arg[r->pointer[r->n_pointers > 2 ? 2 : 0]].dtype;
    table->has_master = gx_has(first, r->master);
    table->accumulate = (int32_t)first->attr[r->accumulate].i;
    table->step = gx_data(first, r->step);
    table->scale = gx_data(first, r->scale);
    for (; *at < group->n_calls; (*at)++) {
        const gx_call *call = &group->call[*at];

        if (gx_count(&call->arg[r->pointer[0]]) > 0 && !add_entry(call, r, table))
            break;
    }
    table->many = table->wide && gx_update_is_narrow(table) &&
                  table->n_chunks >= (int64_t)ctx->n_sm * MANY_CHUNKS;
    return table->n_entries > 0;
}

static gx_status prepare(const gx_group *group, const gx_ctx *ctx, gx_prepared *prepared,
                         gx_error *err)
{
    gx_update_table table;
    int at = 0;

    prepared->workspace_bytes = 0;
    prepared->n_algos = 1;
    for (prepared->n_launches = 0; next_table(group, ctx, &at, &table);
         prepared->n_launches++)
        GX_TRY(gx_update_load(&table, err));
    return GX_OK;
}

static gx_status launch(const gx_group *group, const gx_prepared *prepared, gx_ctx *ctx,
                        gx_error *err)
{
    gx_update_table table;
    int at = 0;

    (void)prepared;
    while (next_table(group, ctx, &at, &table))
        GX_TRY(gx_update_launch(&table, ctx, err));
    return GX_OK;
}

/* --- the table --- */

static const char *const sgd[] = { "sgd", NULL };
static const char *const momentum[] = { "momentum", NULL };
static const char *const nesterov[] = { "nesterov", NULL };
static const char *const adam[] = { "adam", NULL };
static const char *const adamw[] = { "adamw", NULL };

#define ALTERNATIVE(alternative, ops)                                            \
    .name = alternative, .pattern = ops, .refuses = refuses, .prepare = prepare, \
    .launch = launch
#define BOTH(ops)                                           \
    { ALTERNATIVE("kernel", ops), .strict = true },         \
    {                                                       \
        ALTERNATIVE("multi", ops), .repeat = GX_REPEAT_LAST \
    }

const gx_alternative gx_optimizer_alternatives[] = {
    BOTH(sgd), BOTH(momentum), BOTH(nesterov), BOTH(adam), BOTH(adamw), { 0 },
};
