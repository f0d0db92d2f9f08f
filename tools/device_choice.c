/* Which device a command runs on, and what to do where there is none. */
#include "session.h"

#include <stdio.h>

#include "flags.h"

/* Of the flags that ask for a GPU those that are given: "--graph and --gpu". */
static void name_gpu_flags(const gx_args *args, char *names, size_t size)
{
    const struct {
        const char *name;
        bool is_given;
    } flags[] = {
        { "--graph", args->graph },
        { "--eager", args->eager },
        { "--gpu", args->gpu >= 0 },
        { "--nsys-window", args->nsys_window },
        { "--device gpu", args->target == GX_TARGET_GPU },
    };
    size_t length = 0;

    names[0] = '\0';
    for (size_t i = 0; i < sizeof flags / sizeof flags[0] && length < size; i++)
        if (flags[i].is_given)
            length += (size_t)snprintf(names + length, size - length, "%s%s",
                                       length ? " and " : "", flags[i].name);
}

bool gx_asks_for_gpu(const gx_args *args)
{
    char names[96];

    name_gpu_flags(args, names, sizeof names);
    return names[0] != '\0';
}

void gx_say_lack(const gx_args *args)
{
    const unsigned on_cpu_too = GX_CMD_RUN | GX_CMD_CHECK | GX_CMD_PLAN;
    const unsigned command = args->command ? args->command->bit : 0;
    char names[96];

    name_gpu_flags(args, names, sizeof names);
    if (command & GX_CMD_DOCTOR)
        fputs("  to do: see what this machine has and lacks without --measure\n", stderr);
    else if ((command & on_cpu_too) && names[0])
        fprintf(stderr,
                "  to do: leave out %s (a model runs on the CPU too), or see what is "
                "missing with `gexec doctor`\n",
                names);
    else if (command & on_cpu_too)
        fputs("  to do: use --device cpu, or see what is missing with `gexec doctor`\n",
              stderr);
    else if (args->target == GX_TARGET_CPU)
        fputs("  to do: leave out --device cpu\n", stderr);
    else
        fputs("  to do: see what this machine has and lacks with `gexec doctor`\n",
              stderr);
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
                           "--device cpu: this command measures launches and needs a "
                           "GPU");
        return GX_OK;
    }
    st = gx_device_count(&n, &reason);
    if (st == GX_OK && n == 0)
        st = GX_FAIL(&reason, GX_ERR_NO_DEVICE, "no CUDA device");
    if (st != GX_OK && (needs_gpu || gx_asks_for_gpu(args))) {
        *err = reason;
        if (needs_gpu)
            gx_error_prefix(err, "this command measures launches and needs a GPU");
        return st;
    }
    if (st != GX_OK)
        return GX_OK;
    if (args->gpu >= n)
        return GX_FAIL(err, GX_ERR_NO_DEVICE, "--gpu %lld: this machine has %d, from 0",
                       (long long)args->gpu, n);
    *device = args->gpu >= 0 ? (int)args->gpu : 0;
    *mode = args->eager ? GX_MODE_EAGER : GX_MODE_GRAPH;
    return gx_device_info_get(*device, &info, err);
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
