/* Remarks, on standard error. */
#include "remarks.h"

#include <stdio.h>
#include <string.h>

#include "launches.h"

/* --- what has no effect --- */

static void add(gx_idle_flags *flags, const char *name, const char *value, size_t length)
{
    if (flags->n < GX_MOST_IDLE_FLAGS)
        snprintf(flags->flag[flags->n++].text, sizeof flags->flag[0].text, "%s%s%.*s",
                 name, length ? " " : "", (int)length, value);
}

/* On the CPU there is one way to run an op, and nothing is launched. */
static void find_on_cpu(const gx_args *args, gx_idle_flags *flags)
{
    const struct {
        const char *name;
        bool is_given;
    } all[] = {
        { "--force", args->force != NULL },
        { "--lanes", args->lanes > 0 },
        { "--pdl", args->programmatic != GX_AUTO },
        { "--order", args->order == GX_ORDER_DATA_FIRST },
        { "--unfused", args->unfused },
        { "--skip", args->skip != GX_AUTO },
        { "--steps-per-launch", args->steps_per_launch != 1 },
        { "--step-loop", args->step_loop != GX_AUTO },
    };

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i].is_given)
            add(flags, all[i].name, "", 0);
}

static bool takes(const gx_plan *plan, const char *name, size_t length)
{
    for (size_t u = 0; u < gx_plan_unit_count(plan); u++) {
        const char *taken = gx_plan_unit(plan, u).alternative;

        if (taken && strlen(taken) == length && memcmp(taken, name, length) == 0)
            return true;
    }
    return false;
}

static void find_forced(const gx_plan *plan, const char *force, gx_idle_flags *flags)
{
    for (const char *at = force; at && *at; at += *at == ',') {
        const size_t length = strcspn(at, ",");

        if (!takes(plan, at, length))
            add(flags, "--force", at, length);
        at += length;
    }
}

gx_idle_flags gx_idle_flags_of(const gx_session *session)
{
    const gx_plan *const plan = session->plan[GX_PROGRAM_TRAIN];
    gx_idle_flags flags = { .n = 0 };

    if (session->device == GX_CPU)
        find_on_cpu(session->args, &flags);
    else if (plan)
        find_forced(plan, session->args->force, &flags);
    return flags;
}

void gx_idle_flags_put(gx_json *json, gx_idle_flags flags)
{
    gx_json_array(json, "flags_without_effect");
    for (size_t i = 0; i < flags.n; i++)
        gx_json_text(json, NULL, flags.flag[i].text);
    gx_json_end(json);
}

void gx_plan_say(const gx_session *session)
{
    const gx_plan_info info = gx_plan_info_get(session->plan[GX_PROGRAM_TRAIN]);
    const gx_idle_flags flags = gx_idle_flags_of(session);

    if (info.cache_note)
        gx_say(session->args, "%s", info.cache_note);
    for (size_t i = 0; i < flags.n && session->device != GX_CPU; i++)
        gx_say(session->args, "%s: nothing takes it; `gexec plan` says why not",
               flags.flag[i].text);
}

static void say_idle_on_cpu(const gx_session *session)
{
    const gx_idle_flags flags = gx_idle_flags_of(session);
    char names[GX_MOST_IDLE_FLAGS * sizeof(gx_words)] = "";

    for (size_t i = 0; i < flags.n; i++) {
        const size_t used = strlen(names);

        snprintf(names + used, sizeof names - used, "%s%s",
                 i == 0             ? ""
                 : i + 1 == flags.n ? " and "
                                    : ", ",
                 flags.flag[i].text);
    }
    if (flags.n > 0)
        gx_say(session->args, "%s %s nothing on the CPU", names,
               flags.n == 1 ? "changes" : "change");
}

/* --- where it runs --- */

/* Why there is no GPU, in one line. */
static void say_why_cpu(const gx_args *args)
{
    gx_error reason = { 0 };
    int n = 0;

    if (gx_device_count(&n, &reason) == GX_OK)
        (void)GX_FAIL(&reason, GX_ERR_NO_DEVICE, "no CUDA device");
    for (char *at = reason.message; *at; at++)
        if (*at == '\n')
            *at = ' ';
    gx_say(args, "on the CPU: %s", reason.message);
}

static void say_place(const gx_session *session)
{
    const gx_args *const args = session->args;

    if (session->device != GX_CPU) {
        if (!gx_asks_for_gpu(args))
            gx_say(args, "on GPU %d, %s", session->device, session->device_info.name);
        return;
    }
    if (args->target != GX_TARGET_CPU)
        say_why_cpu(args);
    say_idle_on_cpu(session);
}

/* --- how it runs --- */

static void say_expanded(const gx_session *session)
{
    const gx_data_info *const data = &session->data;

    if (data->n_train % data->batch && !data->drop_last)
        gx_say(session->args,
               "an expanded model has one batch size: the last batch of an epoch is "
               "filled up with its last row");
    if (data->n_held > 0)
        gx_say(session->args,
               "an expanded model has one program: held-out rows are not evaluated");
}

void gx_session_say(const gx_session *session, bool with_place)
{
    if (with_place)
        say_place(session);
    if (session->no_room)
        gx_say(session->args,
               "the data set does not fit on %s beside the model: it streams from host "
               "memory",
               session->device == GX_CPU ? "the host" : "the device");
    gx_launches_say(session);
    if (session->is_expanded)
        say_expanded(session);
}
