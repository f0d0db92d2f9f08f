/* The folders that --out names: made when there is something to put in them. */
#ifndef GX_OUT_FOLDERS_H
#define GX_OUT_FOLDERS_H

#include "args.h"

/* Makes those that are not there, also one inside another, in whatever order they were
 * named. One that cannot be made keeps none of the others back. */
gx_status gx_out_folders_make(const gx_args *args, gx_error *err) GX_MUST_CHECK;
/* Removes those that were made and that nothing was put in. */
void gx_out_folders_drop(const gx_args *args);

#endif
