/* What nvtx_inject.c wrote, read back: the calls of the domain "gexec". */
#ifndef GX_SUPPORT_NVTX_H
#define GX_SUPPORT_NVTX_H

#include "support.h"

typedef struct nvtx_range {
    char text[200];
    unsigned category;
    unsigned long colour;
    long long payload; /* -1: none */
    int depth;         /* from 0 */
    int parent;        /* index, -1: none */
} nvtx_range;

enum { NVTX_MAX_RANGES = 2000, NVTX_MAX_CATEGORIES = 32 };

typedef struct nvtx_log {
    nvtx_range range[NVTX_MAX_RANGES];
    int n_ranges;
    char category[NVTX_MAX_CATEGORIES][40];
    int n_categories, n_domains, n_strings;
    int n_others;   /* calls of other kinds, in any domain */
    int n_open;     /* pushes without a pop; below 0 where a pop was too many */
    size_t n_lines; /* of the whole file */
} nvtx_log;

/* Skips the program where there is no NVTX or no injection library; to be called first.
 */
void nvtx_start(void);
/* The ranges of the lines from `first_line` on; categories, domains and strings of all.
 */
nvtx_log *nvtx_log_read(size_t first_line); /* the caller frees */

/* The number of a category; fails the test where none has the name. */
unsigned nvtx_category(const nvtx_log *log, const char *name);
/* The i-th range of this depth, from 0; fails the test where there are fewer. */
const nvtx_range *nvtx_at(const nvtx_log *log, int depth, int i);
int nvtx_count(const nvtx_log *log, int depth);

#endif
