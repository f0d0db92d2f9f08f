/* Reports of Nsight Systems, by way of its own program. */
#ifndef GX_NSYS_EXPORT_H
#define GX_NSYS_EXPORT_H

#include "trace_file.h"

/* Runs `nsys export` into a temporary folder, reads what it wrote, and removes it. Where
 * there is no nsys, GX_ERR_UNSUPPORTED with the command to run where there is one. */
gx_status gx_nsys_export_and_read(const char *path, gx_trace_file *file,
                                  gx_error *err) GX_MUST_CHECK;

#endif
