/* What a public function asks of the pointers that it is given. */
#ifndef GX_NEED_H
#define GX_NEED_H

#include <gexec/status.h>

static inline gx_status gx_need(const void *argument, const char *what, gx_error *err)
{
    return argument ? GX_OK : GX_FAIL(err, GX_ERR_ARGUMENT, "the %s is NULL", what);
}

/* Of an out parameter. */
static inline gx_status gx_need_place(const void *place, const char *what, gx_error *err)
{
    return place ? GX_OK
                 : GX_FAIL(err, GX_ERR_ARGUMENT, "there is no place for the %s: NULL",
                           what);
}

#endif
