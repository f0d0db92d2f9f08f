/* Profilers of a build that has no CUPTI: they say so. */
#include <gexec/profile.h>

#if !GX_HAVE_CUPTI

static gx_status no_cupti(gx_error *err)
{
    gx_error_clear(err);
    return GX_FAIL(
        err, GX_ERR_UNSUPPORTED,
        "this gexec was built without CUPTI: build with a CUDA toolkit that has "
        "cupti.h, and with -DGEXEC_CUPTI=ON");
}

gx_status gx_profiler_available(char *text, size_t size, gx_error *err)
{
    if (size > 0)
        text[0] = '\0';
    return no_cupti(err);
}

gx_status gx_profiler_open(const gx_profiler_options *options, gx_profiler **profiler,
                           gx_error *err)
{
    (void)options;
    if (profiler)
        *profiler = NULL;
    return no_cupti(err);
}

void gx_profiler_free(gx_profiler *profiler)
{
    (void)profiler;
}

gx_status gx_profiler_attach(gx_profiler *profiler, gx_exec *exec, gx_error *err)
{
    (void)profiler;
    (void)exec;
    return no_cupti(err);
}

gx_status gx_profiler_start(gx_profiler *profiler, gx_error *err)
{
    (void)profiler;
    return no_cupti(err);
}

gx_status gx_profiler_stop(gx_profiler *profiler, gx_error *err)
{
    (void)profiler;
    return no_cupti(err);
}

gx_status gx_profiler_trace(gx_profiler *profiler, gx_trace **trace,
                            gx_profiler_losses *losses, gx_error *err)
{
    (void)profiler;
    if (trace)
        *trace = NULL;
    if (losses)
        *losses = (gx_profiler_losses){ 0 };
    return no_cupti(err);
}

#endif
