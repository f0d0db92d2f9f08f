/* The plan cache: what was measured on this card before, one file for each set of
 * versions (plan_cache_file.c). */
#include "plan_cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gexec/gexec.h>

#include "cache_place.h"

void gx_cache_set_note(gx_cache *cache, const char *what, const char *why)
{
    if (!cache->note[0])
        snprintf(cache->note, sizeof cache->note, "%.200s: %.300s", what, why);
}

/* --- entries --- */

static gx_cache_entry **bucket(gx_cache *cache, const char *key)
{
    size_t hash = 5381;

    for (; *key; key++)
        hash = hash * 33 + (unsigned char)*key;
    return &cache->buckets[hash % GX_CACHE_BUCKETS];
}

gx_cache_entry *gx_cache_entry_find(const gx_cache *cache, gx_cache_kind kind,
                                    const char *key, const char *alternative)
{
    for (gx_cache_entry *e = *bucket((gx_cache *)cache, key); e; e = e->next) {
        if (e->kind == kind && strcmp(e->key, key) == 0 &&
            strcmp(e->alternative, alternative) == 0)
            return e;
    }
    return NULL;
}

gx_cache_entry *gx_cache_entry_make(gx_cache *cache, gx_cache_kind kind, const char *key,
                                    const char *alternative)
{
    gx_cache_entry *e = gx_cache_entry_find(cache, kind, key, alternative);
    gx_cache_entry **head = bucket(cache, key);

    if (e)
        return e;
    e = gx_arena_alloc(cache->arena, sizeof *e);
    if (e) {
        e->kind = kind;
        e->key = gx_arena_text(cache->arena, key);
        e->alternative = gx_arena_text(cache->arena, alternative);
    }
    if (gx_arena_failed(cache->arena)) {
        gx_cache_set_note(cache, "plan cache", "out of memory");
        return NULL;
    }
    e->next = *head;
    *head = e;
    return e;
}

bool gx_cache_find(const gx_cache *cache, const char *key, gx_candidate *candidate,
                   gx_arena *arena)
{
    const gx_cache_entry *e =
        gx_cache_entry_find(cache, GX_CACHE_SITE, key, candidate->alternative->name);

    if (!e)
        return false;
    if (e->refused) {
        candidate->refused = gx_arena_text(arena, e->refused);
        if (!candidate->refused)
            return false;
    }
    candidate->known = true;
    candidate->cached = !e->is_new;
    candidate->us = e->fields.us;
    candidate->n_launches = (int)e->fields.n_launches;
    candidate->workspace_bytes = (size_t)e->fields.workspace_bytes;
    candidate->has_algo = e->fields.has_algo;
    memcpy(candidate->algo, e->fields.algo, sizeof candidate->algo);
    return true;
}

void gx_cache_add(gx_cache *cache, const char *key, const gx_candidate *candidate)
{
    gx_cache_entry *e =
        gx_cache_entry_make(cache, GX_CACHE_SITE, key, candidate->alternative->name);

    if (!e)
        return;
    e->is_new = true;
    e->refused =
        candidate->refused ? gx_arena_text(cache->arena, candidate->refused) : NULL;
    e->fields = (gx_choice_fields){
        .us = candidate->us,
        .n_launches = candidate->n_launches,
        .workspace_bytes = (int64_t)candidate->workspace_bytes,
        .has_algo = candidate->has_algo,
    };
    memcpy(e->fields.algo, candidate->algo, sizeof e->fields.algo);
    cache->changed = true;
}

bool gx_cache_find_step(const gx_cache *cache, const char *key, gx_step_choice *choice)
{
    const gx_cache_entry *e = gx_cache_entry_find(cache, GX_CACHE_STEP, key, "");

    if (e)
        *choice = e->step;
    return e != NULL;
}

void gx_cache_add_step(gx_cache *cache, const char *key, const gx_step_choice *choice)
{
    gx_cache_entry *e = gx_cache_entry_make(cache, GX_CACHE_STEP, key, "");

    int32_t *units =
        gx_arena_alloc(cache->arena, (choice->n_full_edges + 1) * sizeof *units);

    if (!e || !units) {
        gx_cache_set_note(cache, "plan cache", "out of memory");
        return;
    }
    for (size_t i = 0; i < choice->n_full_edges; i++)
        units[i] = choice->full_edges[i];
    e->step = *choice;
    e->step.full_edges = units;
    cache->changed = true;
}

bool gx_cache_find_launch(const gx_cache *cache, const char *key,
                          gx_launch_choice *choice)
{
    const gx_cache_entry *e = gx_cache_entry_find(cache, GX_CACHE_LAUNCH, key, "");

    if (e)
        *choice = e->launch;
    return e != NULL;
}

void gx_cache_add_launch(gx_cache *cache, const char *key, const gx_launch_choice *choice)
{
    gx_cache_entry *e = gx_cache_entry_make(cache, GX_CACHE_LAUNCH, key, "");

    if (!e)
        return;
    e->launch = *choice;
    cache->changed = true;
}

bool gx_cache_find_skip(const gx_cache *cache, const char *key, gx_skip_choice *choice)
{
    const gx_cache_entry *e = gx_cache_entry_find(cache, GX_CACHE_SKIP, key, "");

    if (e)
        *choice = e->skip;
    return e != NULL;
}

void gx_cache_add_skip(gx_cache *cache, const char *key, const gx_skip_choice *choice)
{
    gx_cache_entry *e = gx_cache_entry_make(cache, GX_CACHE_SKIP, key, "");

    if (!e)
        return;
    e->skip = *choice;
    cache->changed = true;
}

bool gx_cache_find_order(const gx_cache *cache, const char *key, gx_order_choice *choice)
{
    const gx_cache_entry *e = gx_cache_entry_find(cache, GX_CACHE_ORDER, key, "");

    if (e)
        *choice = e->order;
    return e != NULL;
}

void gx_cache_add_order(gx_cache *cache, const char *key, const gx_order_choice *choice)
{
    gx_cache_entry *e = gx_cache_entry_make(cache, GX_CACHE_ORDER, key, "");

    if (!e)
        return;
    e->order = *choice;
    cache->changed = true;
}

/* --- life --- */

static const char *file_path(gx_cache *cache)
{
    const gx_device_info *d = &cache->device;
    const char *name =
        gx_arena_format(cache->arena, "%s-cc%d%d-driver%d-runtime%d-cublaslt%zu-%s.yaml",
                        d->name, d->cc_major, d->cc_minor, d->driver_version,
                        d->runtime_version, d->cublaslt_version, gx_version());

    return name ? gx_cache_file(cache->arena, cache->folder, name) : NULL;
}

gx_status gx_cache_open(const char *folder, const gx_device_info *device,
                        gx_cache **cache, gx_error *err)
{
    gx_cache *made = calloc(1, sizeof *made);

    *cache = NULL;
    if (made)
        made->arena = gx_arena_create();
    if (!made || !made->arena) {
        free(made);
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the plan cache");
    }
    made->device = *device;
    const bool in_memory = folder && !folder[0];

    if (!in_memory)
        made->folder = gx_cache_folder(made->arena, folder);
    if (made->folder)
        made->path = file_path(made);
    if (gx_arena_failed(made->arena)) {
        gx_cache_close(made);
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the plan cache");
    }
    if (made->path)
        gx_cache_read(made);
    else if (!in_memory)
        gx_cache_set_note(made, "no plan cache",
                          "neither XDG_CACHE_HOME nor HOME is set");
    *cache = made;
    return GX_OK;
}

void gx_cache_close(gx_cache *cache)
{
    if (!cache)
        return;
    gx_arena_free(cache->arena);
    free(cache);
}

const char *gx_cache_note(const gx_cache *cache)
{
    return cache->note[0] ? cache->note : NULL;
}
