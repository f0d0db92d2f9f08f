/* The destinations that the flags name, and what their paths come to. */
#ifndef GX_DESTINATIONS_LIST_H
#define GX_DESTINATIONS_LIST_H

#include "args.h"

typedef struct gx_destination {
    char flag[256]; /* as it was given, for messages: "--out w1=" */
    const char *path;
    char *real; /* what it comes to, by gx_real_path; NULL: not known, or a device, which
                 * takes any number of results */
    bool is_folder;
    bool is_source; /* read where it is there, and written only where it is not */
    bool is_stem;   /* the beginning of such names: "FILE.batch=8" */
} gx_destination;

/* All of them, to be freed; the folders of --out are to be there. NULL: out of memory. */
gx_destination *gx_destinations_list(const gx_args *args, size_t *n);
void gx_destinations_free(gx_destination *list, size_t n);
/* That of --out NAME=FILE. */
bool gx_destination_is_tensor(const gx_destination *to);

/* The folder that holds `path`; the caller frees. NULL: out of memory. */
char *gx_folder_of(const char *path);
const char *gx_base_of(const char *path);
/* One text for one place, however it is written and whatever links lead to it; the caller
 * frees. NULL where it cannot be found. */
char *gx_real_path(const char *path);

#endif
