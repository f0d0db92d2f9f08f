/* Which device a command runs on. */
#include "session.h"

bool gx_asks_for_gpu(const gx_args *args)
{
    return args->graph || args->eager || args->gpu >= 0 || args->nsys_window ||
           args->target == GX_TARGET_GPU;
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
