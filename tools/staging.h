/* The files of a folder, made in a folder inside it and then moved to their places: where
 * one finds no room, the older files are still those of one run. */
#ifndef GX_STAGING_H
#define GX_STAGING_H

#include <stdbool.h>

#include <gexec/status.h>

typedef struct gx_staging {
    const char *folder; /* the caller's */
    char *inside;       /* where its files are made */
    int lock;           /* of the folder, from opening to closing */
} gx_staging;

/* Makes the folder inside `folder`, which stays the caller's and outlives the staging.
 * Until it is closed no other process writes to `folder` through one of its own, for
 * which this waits: whether an older file stands in a place would else be of no worth.
 * Whatever comes of it, gx_staging_close frees what it holds. */
gx_status gx_staging_open(gx_staging *staging, const char *folder,
                          gx_error *err) GX_MUST_CHECK;
/* Moves what was made to its place, or with `take` false drops it. */
gx_status gx_staging_close(gx_staging *staging, bool take, gx_error *err) GX_MUST_CHECK;

#endif
