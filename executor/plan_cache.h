/* The plan cache inside: its entries, and the file that holds them. Selection sees it by
 * select.h alone. */
#ifndef GX_PLAN_CACHE_H
#define GX_PLAN_CACHE_H

#include "plan_doc.h"
#include "select.h"

typedef enum gx_cache_kind {
    GX_CACHE_SITE,
    GX_CACHE_STEP,
    GX_CACHE_LAUNCH,
    GX_CACHE_SKIP,
    GX_CACHE_ORDER
} gx_cache_kind;

typedef struct gx_cache_entry {
    struct gx_cache_entry *next; /* in its bucket */
    gx_cache_kind kind;
    const char *key;
    bool is_new; /* measured since the cache was opened */
    /* of a site */
    const char *alternative; /* "": of another kind */
    const char *refused;
    gx_choice_fields fields;
    /* of the kinds of these names */
    gx_step_choice step;
    gx_launch_choice launch;
    gx_skip_choice skip;
    gx_order_choice order;
} gx_cache_entry;

enum { GX_CACHE_BUCKETS = 1024 };

struct gx_cache {
    gx_arena *arena;
    gx_device_info device;
    const char *folder, *path; /* NULL: there is no folder to use */
    gx_cache_entry *buckets[GX_CACHE_BUCKETS];
    bool changed;
    char note[512];
};

/* Why the cache does not do what it should; the first reason is kept. */
void gx_cache_set_note(gx_cache *cache, const char *what, const char *why);

gx_cache_entry *gx_cache_entry_find(const gx_cache *cache, gx_cache_kind kind,
                                    const char *key, const char *alternative);
/* The entry of that name, new where there is none; NULL when memory is out, which is
 * noted. */
gx_cache_entry *gx_cache_entry_make(gx_cache *cache, gx_cache_kind kind, const char *key,
                                    const char *alternative);

/* --- plan_cache_file.c --- */

/* Adds what the file has and the cache has not. What is wrong with it is noted, and what
 * was read of it before stays: each entry was checked by itself. */
void gx_cache_read(gx_cache *cache);

#endif
