/* gexec compare: the same model by eager launches and by one graph replay. */
#include "compare.h"
#include "interrupt.h"

static gx_status compare_model(gx_compare *compare, const gx_args *args, gx_error *err)
{
    gx_mode mode;
    int device;

    GX_TRY(gx_device_choose(args, true, &device, &mode, err));
    GX_TRY(gx_compare_open(compare, args, &(gx_session_needs){ 0 }, device, err));
    gx_interrupt_watch();
    return gx_compare_run(compare, err);
}

int gx_cmd_compare(const gx_args *args)
{
    gx_compare compare = { 0 };
    gx_error err = { 0 };
    int exit_status;
    gx_status st = compare_model(&compare, args, &err);

    if (st == GX_OK && !gx_stdout_is_taken(args))
        gx_compare_print(&compare, stdout);
    if (st == GX_OK && args->json)
        st = gx_compare_write_json(&compare, &err);
    if (st != GX_OK)
        exit_status = gx_say_error(args, &err);
    else if (compare.interrupted)
        exit_status = GX_EXIT_INTERRUPTED;
    else
        exit_status = compare.difference.found ? GX_EXIT_NO : GX_EXIT_OK;
    gx_compare_free(&compare);
    return exit_status;
}
