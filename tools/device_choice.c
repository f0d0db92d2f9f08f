/* Which device a command runs on, and what is said first where there is none. */
#include "session.h"

#include <stdio.h>
#include <string.h>

static void flatten(char *text)
{
    for (; *text; text++)
        if (*text == '\n')
            *text = ' ';
}

static bool asks_for_gpu(const gx_args *args)
{
    return args->graph || args->eager || args->gpu >= 0 || args->nsys_window ||
           args->target == GX_TARGET_GPU;
}

/* On the CPU there is one way to run an op, and nothing is launched. */
static gx_status choose_cpu(const gx_args *args)
{
    const struct {
        const char *name;
        bool is_given;
    } flags[] = {
        { "--force", args->force != NULL },
        { "--lanes", args->lanes > 0 },
        { "--pdl", args->programmatic != GX_AUTO },
        { "--order", args->order == GX_ORDER_DATA_FIRST },
        { "--unfused", args->unfused },
        { "--skip", args->skip != GX_AUTO },
        { "--steps-per-launch", args->steps_per_launch != 1 },
        { "--step-loop", args->step_loop != GX_AUTO },
    };
    char names[128] = "";
    int n_given = 0, n_named = 0;

    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        n_given += flags[i].is_given;
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        const size_t used = strlen(names);

        if (!flags[i].is_given)
            continue;
        n_named++;
        snprintf(names + used, sizeof names - used, "%s%s",
                 n_named == 1         ? ""
                 : n_named == n_given ? " and "
                                      : ", ",
                 flags[i].name);
    }
    if (n_given > 0)
        gx_say(args, "%s %s nothing on the CPU", names,
               n_given == 1 ? "changes" : "change");
    return GX_OK;
}

gx_status gx_device_choose_bare(const gx_args *args, bool needs_gpu, int *device,
                                gx_mode *mode, gx_error *err)
{
    gx_error reason = { 0 };
    gx_device_info info;
    gx_status st;
    int n = 0;

    *device = GX_CPU;
    *mode = GX_MODE_CPU;
    if (args->target == GX_TARGET_CPU) {
        if (needs_gpu)
            return GX_FAIL(err, GX_ERR_NO_DEVICE,
                           "this command measures launches and needs a GPU");
        return choose_cpu(args);
    }
    st = gx_device_count(&n, &reason);
    if (st == GX_OK && n == 0)
        st = GX_FAIL(&reason, GX_ERR_NO_DEVICE, "no CUDA device");
    if (st != GX_OK && (needs_gpu || asks_for_gpu(args))) {
        *err = reason;
        if (needs_gpu)
            gx_error_prefix(err, "this command measures launches and needs a GPU");
        return st;
    }
    if (st != GX_OK) {
        flatten(reason.message);
        gx_say(args, "on the CPU: %s", reason.message);
        return choose_cpu(args);
    }
    if (args->gpu >= n)
        return GX_FAIL(err, GX_ERR_NO_DEVICE, "--gpu %lld: this machine has %d, from 0",
                       (long long)args->gpu, n);
    *device = args->gpu >= 0 ? (int)args->gpu : 0;
    *mode = args->eager ? GX_MODE_EAGER : GX_MODE_GRAPH;
    GX_TRY(gx_device_info_get(*device, &info, err));
    if (!asks_for_gpu(args) && !needs_gpu)
        gx_say(args, "on GPU %d, %s", *device, info.name);
    return GX_OK;
}

gx_status gx_device_choose(const gx_args *args, bool needs_gpu, int *device,
                           gx_mode *mode, gx_error *err)
{
    gx_error of_model = { 0 };
    const gx_status st = gx_device_choose_bare(args, needs_gpu, device, mode, err);

    /* A model that is wrong is wrong on every machine. */
    if (st == GX_OK || gx_session_try(args, false, &of_model) == GX_OK)
        return st;
    *err = of_model;
    return err->status;
}
