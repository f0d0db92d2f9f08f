/* What the library says of itself, and the GPU calls of the public headers that have no
 * program; without CUDA they say so. */
#include <gexec/gexec.h>

#include "device.h"

#define TEXT_OF(x) #x
#define VERSION_TEXT(major, minor, patch) \
    TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

const char *gx_version(void)
{
    return VERSION_TEXT(GX_VERSION_MAJOR, GX_VERSION_MINOR, GX_VERSION_PATCH);
}

#if !GX_HAVE_CUDA

gx_status gx_empty_graph_host(int device, int64_t n_nodes, int repeats, double busy_s,
                              double *median_s, gx_error *err)
{
    gx_error_clear(err);
    (void)device;
    (void)n_nodes;
    (void)repeats;
    (void)busy_s;
    if (median_s)
        *median_s = -1;
    return GX_FAIL(err, GX_ERR_NO_DEVICE,
                   "this gexec was built without CUDA; it has the CPU alone");
}

gx_status gx_profiler_window(bool open, gx_error *err)
{
    gx_error_clear(err);
    (void)open;
    return GX_FAIL(
        err, GX_ERR_UNSUPPORTED,
        "this gexec was built without CUDA, which the profiler's window needs");
}

#endif
