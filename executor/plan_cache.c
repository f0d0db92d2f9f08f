/* The plan cache: what was measured on this card before, one file for each set of
 * versions.
 *
 *     gexec_cache: 2
 *     device: {name: ..., cc: 90, driver: ..., runtime: ..., cublaslt: ..., gexec: ...}
 *     sites:
 *       "tf32: gemm f32[64, 784] ... #hash":
 *         "lt": {us: 4.1, launches: 2, workspace: 1024, algo: ...}
 *         "tile": {refused: "error 3e-2 over tolerance 2e-3"}
 *     steps:
 *       "hash": {lanes: 1, programmatic: true, lane_us: [.., .., ..],
 *                programmatic_us: [.., ..], full_edges: [7]}
 *     launches:
 *       "hash": {steps: 32, loop: false, us: [.., ..]}
 *     skips:
 *       "hash": {if: false, us: [.., ..]}
 *     orders:
 *       "hashes": {order: derived, us: [.., ..]}
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <gexec/gexec.h>

#include "cache_place.h"
#include "plan_doc.h"
#include "select.h"

typedef struct entry {
    struct entry *next; /* in its bucket */
    const char *key;
    const char *alternative; /* of a site; else STEP, LAUNCH, SKIP or ORDER */
    bool is_new;             /* measured since the cache was opened */
    const char *refused;
    gx_choice_fields fields;
    gx_step_choice step;
    gx_launch_choice launch;
    gx_skip_choice skip;
    gx_order_choice order;
} entry;

/* What stands in the place of an alternative's name, which none of them is. */
static const char STEP[] = "<step>";
static const char LAUNCH[] = "<launch>";
static const char SKIP[] = "<skip>";
static const char ORDER[] = "<order>";

enum {
    FORMAT = 2, /* 2: three lanes; what 1 knew of kernels is of older ones */
    N_BUCKETS = 1024
};

struct gx_cache {
    gx_arena *arena;
    gx_device_info device;
    const char *folder, *path; /* NULL: there is no folder to use */
    entry *buckets[N_BUCKETS];
    bool changed;
    char note[512];
};

static void set_note(gx_cache *cache, const char *what, const char *why)
{
    if (!cache->note[0])
        snprintf(cache->note, sizeof cache->note, "%.200s: %.300s", what, why);
}

/* --- entries --- */

static bool is_section(const char *alternative)
{
    return alternative == STEP || alternative == LAUNCH || alternative == SKIP ||
           alternative == ORDER;
}

static entry **bucket(gx_cache *cache, const char *key)
{
    size_t hash = 5381;

    for (; *key; key++)
        hash = hash * 33 + (unsigned char)*key;
    return &cache->buckets[hash % N_BUCKETS];
}

static entry *find(const gx_cache *cache, const char *key, const char *alternative)
{
    for (entry *e = *bucket((gx_cache *)cache, key); e; e = e->next) {
        if (strcmp(e->key, key) == 0 && strcmp(e->alternative, alternative) == 0)
            return e;
    }
    return NULL;
}

/* The entry of that name, new where there is none; NULL when memory is out, which is
 * noted. */
static entry *make(gx_cache *cache, const char *key, const char *alternative)
{
    entry *e = find(cache, key, alternative);
    entry **head = bucket(cache, key);

    if (e)
        return e;
    e = gx_arena_alloc(cache->arena, sizeof *e);
    if (e) {
        e->key = gx_arena_text(cache->arena, key);
        e->alternative = is_section(alternative)
                             ? alternative
                             : gx_arena_text(cache->arena, alternative);
    }
    if (gx_arena_failed(cache->arena)) {
        set_note(cache, "plan cache", "out of memory");
        return NULL;
    }
    e->next = *head;
    *head = e;
    return e;
}

bool gx_cache_find(const gx_cache *cache, const char *key, gx_candidate *candidate,
                   gx_arena *arena)
{
    const entry *e = find(cache, key, candidate->alternative->name);

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
    entry *e = make(cache, key, candidate->alternative->name);

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
    const entry *e = find(cache, key, STEP);

    if (e)
        *choice = e->step;
    return e != NULL;
}

void gx_cache_add_step(gx_cache *cache, const char *key, const gx_step_choice *choice)
{
    entry *e = make(cache, key, STEP);

    int32_t *units =
        gx_arena_alloc(cache->arena, (choice->n_full_edges + 1) * sizeof *units);

    if (!e || !units) {
        set_note(cache, "plan cache", "out of memory");
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
    const entry *e = find(cache, key, LAUNCH);

    if (e)
        *choice = e->launch;
    return e != NULL;
}

void gx_cache_add_launch(gx_cache *cache, const char *key, const gx_launch_choice *choice)
{
    entry *e = make(cache, key, LAUNCH);

    if (!e)
        return;
    e->launch = *choice;
    cache->changed = true;
}

bool gx_cache_find_skip(const gx_cache *cache, const char *key, gx_skip_choice *choice)
{
    const entry *e = find(cache, key, SKIP);

    if (e)
        *choice = e->skip;
    return e != NULL;
}

void gx_cache_add_skip(gx_cache *cache, const char *key, const gx_skip_choice *choice)
{
    entry *e = make(cache, key, SKIP);

    if (!e)
        return;
    e->skip = *choice;
    cache->changed = true;
}

bool gx_cache_find_order(const gx_cache *cache, const char *key, gx_order_choice *choice)
{
    const entry *e = find(cache, key, ORDER);

    if (e)
        *choice = e->order;
    return e != NULL;
}

void gx_cache_add_order(gx_cache *cache, const char *key, const gx_order_choice *choice)
{
    entry *e = make(cache, key, ORDER);

    if (!e)
        return;
    e->order = *choice;
    cache->changed = true;
}

/* --- reading --- */

static void read_alternative(gx_cache *cache, gx_diagnostics *list, const char *key,
                             const char *alternative, const gx_doc *doc)
{
    static const char *const keys[] = { "us",   "launches", "workspace",
                                        "algo", "refused",  NULL };
    gx_choice_fields fields = { .us = -1, .n_launches = -1 };
    const char *refused = NULL;
    entry *e;

    if (!gx_plan_doc_is_map(list, doc, alternative, keys))
        return;
    if (gx_plan_doc_get(doc, "refused"))
        refused = gx_plan_doc_text(list, doc, "refused");
    else if (!gx_plan_doc_choice(list, doc, &fields))
        return;
    if (find(cache, key, alternative)) /* what was measured just now stands */
        return;
    e = make(cache, key, alternative);
    if (!e)
        return;
    e->refused = refused ? gx_arena_text(cache->arena, refused) : NULL;
    e->fields = fields;
}

static bool read_reals(gx_diagnostics *list, const gx_doc *map, const char *key,
                       double *values, size_t n)
{
    const gx_doc *doc = gx_plan_doc_get(map, key);
    bool good = doc && doc->kind == GX_DOC_LIST && doc->n == n;

    for (size_t i = 0; good && i < n; i++)
        good = doc->item[i]->kind == GX_DOC_SCALAR &&
               gx_read_real(doc->item[i]->text, &values[i]);
    if (!good)
        gx_report(list, doc ? doc->pos : map->pos, "%s: expected %zu numbers", key, n);
    return good;
}

/* Steps that were written before edges were measured have no list, and are measured
 * again. */
static bool read_full_edges(gx_cache *cache, gx_diagnostics *list, const gx_doc *map,
                            gx_step_choice *step)
{
    const gx_doc *doc = gx_plan_doc_get(map, "full_edges");
    int32_t *units;

    if (!doc)
        return false;
    if (doc->kind != GX_DOC_LIST) {
        gx_report(list, doc->pos, "full_edges: expected a list of units");
        return false;
    }
    units = gx_arena_alloc(cache->arena, (doc->n + 1) * sizeof *units);
    if (!units) {
        set_note(cache, "plan cache", "out of memory");
        return false;
    }
    for (size_t i = 0; i < doc->n; i++) {
        double unit;

        if (doc->item[i]->kind != GX_DOC_SCALAR ||
            !gx_read_real(doc->item[i]->text, &unit) ||
            !(unit >= 0 && unit <= INT32_MAX) || (double)(int32_t)unit != unit) {
            gx_report(list, doc->item[i]->pos,
                      "full_edges: expected the index of a unit");
            return false;
        }
        units[i] = (int32_t)unit;
    }
    step->full_edges = units;
    step->n_full_edges = doc->n;
    return true;
}

static void read_step(gx_cache *cache, gx_diagnostics *list, const char *key,
                      const gx_doc *doc)
{
    static const char *const keys[] = { "lanes",           "programmatic", "lane_us",
                                        "programmatic_us", "full_edges",   NULL };
    gx_step_choice step = { .full_edges = NULL };
    int64_t n_lanes;
    entry *e;

    if (!gx_plan_doc_is_map(list, doc, "step", keys) ||
        !gx_plan_doc_int(list, doc, "lanes", &n_lanes) ||
        !gx_plan_doc_bool(list, doc, "programmatic", &step.programmatic) ||
        !read_reals(list, doc, "lane_us", step.lane_us, GX_MAX_LANES) ||
        !read_reals(list, doc, "programmatic_us", step.programmatic_us, 2) ||
        !read_full_edges(cache, list, doc, &step))
        return;
    if (n_lanes < 1 || n_lanes > GX_MAX_LANES) {
        gx_report(list, doc->pos, "lanes: expected 1 to %d", (int)GX_MAX_LANES);
        return;
    }
    step.n_lanes = (int)n_lanes;
    if (find(cache, key, STEP))
        return;
    e = make(cache, key, STEP);
    if (e)
        e->step = step;
}

static void read_launch(gx_cache *cache, gx_diagnostics *list, const char *key,
                        const gx_doc *doc)
{
    static const char *const keys[] = { "steps", "loop", "us", NULL };
    gx_launch_choice launch;
    int64_t steps;
    entry *e;

    if (!gx_plan_doc_is_map(list, doc, "launch", keys) ||
        !gx_plan_doc_int(list, doc, "steps", &steps) ||
        !gx_plan_doc_bool(list, doc, "loop", &launch.loop) ||
        !read_reals(list, doc, "us", launch.us, GX_N_LAUNCH_TRIALS))
        return;
    if (!gx_launch_is_possible(steps, launch.loop)) {
        gx_report(list, doc->pos, "steps: expected 1 to %d", GX_MAX_STEPS_PER_LAUNCH);
        return;
    }
    launch.steps_per_launch = (int)steps;
    if (find(cache, key, LAUNCH))
        return;
    e = make(cache, key, LAUNCH);
    if (e)
        e->launch = launch;
}

static void read_skip(gx_cache *cache, gx_diagnostics *list, const char *key,
                      const gx_doc *doc)
{
    static const char *const keys[] = { "if", "us", NULL };
    gx_skip_choice skip;
    entry *e;

    if (!gx_plan_doc_is_map(list, doc, "skip", keys) ||
        !gx_plan_doc_bool(list, doc, "if", &skip.skip_if) ||
        !read_reals(list, doc, "us", skip.us, 2) || find(cache, key, SKIP))
        return;
    e = make(cache, key, SKIP);
    if (e)
        e->skip = skip;
}

static void read_order(gx_cache *cache, gx_diagnostics *list, const char *key,
                       const gx_doc *doc)
{
    static const char *const keys[] = { "order", "us", NULL };
    gx_order_choice order = { .order = GX_ORDER_DERIVED };
    const char *name;
    entry *e;

    if (!gx_plan_doc_is_map(list, doc, "order", keys) ||
        !(name = gx_plan_doc_text(list, doc, "order")) ||
        !read_reals(list, doc, "us", order.us, 2))
        return;
    if (!gx_node_order_find(name, &order.order)) {
        gx_report(list, gx_plan_doc_get(doc, "order")->pos, "no order is named \"%s\"",
                  name);
        return;
    }
    if (find(cache, key, ORDER))
        return;
    e = make(cache, key, ORDER);
    if (e)
        e->order = order;
}

static void read_document(gx_cache *cache, gx_diagnostics *list, const gx_doc *doc)
{
    static const char *const keys[] = { "gexec_cache", "device", "sites",  "steps",
                                        "launches",    "skips",  "orders", NULL };
    const gx_doc *device, *sites, *steps, *launches, *skips, *orders;
    int64_t version;

    if (!gx_plan_doc_is_map(list, doc, "plan cache", keys) ||
        !gx_plan_doc_int(list, doc, "gexec_cache", &version))
        return;
    device = gx_plan_doc_get(doc, "device");
    sites = gx_plan_doc_get(doc, "sites");
    steps = gx_plan_doc_get(doc, "steps");
    launches = gx_plan_doc_get(doc, "launches"); /* may be missing, */
    skips = gx_plan_doc_get(doc, "skips");       /* this too, */
    orders = gx_plan_doc_get(doc, "orders");     /* and this */
    if (version != FORMAT || !device || !sites || !steps) {
        gx_report(list, doc->pos, "not a plan cache of format %d", (int)FORMAT);
        return;
    }
    if (!gx_plan_doc_same_device(list, device, &cache->device) ||
        !gx_plan_doc_is_map(list, sites, "sites", NULL) ||
        !gx_plan_doc_is_map(list, steps, "steps", NULL) ||
        (launches && !gx_plan_doc_is_map(list, launches, "launches", NULL)) ||
        (skips && !gx_plan_doc_is_map(list, skips, "skips", NULL)) ||
        (orders && !gx_plan_doc_is_map(list, orders, "orders", NULL)))
        return;
    for (size_t i = 0; i < sites->n; i++) {
        const gx_doc *site = sites->item[i];

        if (!gx_plan_doc_is_map(list, site, "site", NULL))
            return;
        for (size_t k = 0; k < site->n; k++)
            read_alternative(cache, list, sites->key[i], site->key[k], site->item[k]);
    }
    for (size_t i = 0; i < steps->n; i++)
        read_step(cache, list, steps->key[i], steps->item[i]);
    for (size_t i = 0; launches && i < launches->n; i++)
        read_launch(cache, list, launches->key[i], launches->item[i]);
    for (size_t i = 0; skips && i < skips->n; i++)
        read_skip(cache, list, skips->key[i], skips->item[i]);
    for (size_t i = 0; orders && i < orders->n; i++)
        read_order(cache, list, orders->key[i], orders->item[i]);
}

/* Adds what the file has and the cache has not. What is wrong with it is noted, and what
 * was read of it before stays: each entry was checked by itself. */
static void read_file(gx_cache *cache)
{
    gx_arena *arena = gx_arena_create();
    gx_diagnostics *list = gx_diagnostics_create();
    gx_error err = { 0 };
    const gx_doc *doc;

    if (!arena || !list) {
        set_note(cache, "plan cache", "out of memory");
    } else if (access(cache->path, F_OK) == 0) {
        if (gx_plan_doc_load(cache->path, "a plan cache", arena, list, &doc, &err) ==
            GX_OK) {
            read_document(cache, list, doc);
            (void)!gx_diagnostics_status(list, &err);
        }
        if (err.status != GX_OK)
            set_note(cache, "the plan cache was not read", err.message);
    }
    gx_diagnostics_free(list);
    gx_arena_free(arena);
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
        read_file(made);
    else if (!in_memory)
        set_note(made, "no plan cache", "neither XDG_CACHE_HOME nor HOME is set");
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

/* --- writing --- */

static void put_reals(gx_text *text, const double *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        gx_text_put(text, i ? ", " : "[");
        gx_plan_doc_put_real(text, values[i]);
    }
    gx_text_put(text, "]");
}

static bool is_site(const entry *e)
{
    return !is_section(e->alternative);
}

static void put_alternative(gx_text *text, const entry *e)
{
    gx_text_put(text, "    ");
    gx_plan_doc_quote(text, e->alternative);
    gx_text_put(text, ": {");
    if (e->refused) {
        gx_text_put(text, "refused: ");
        gx_plan_doc_quote(text, e->refused);
    } else {
        gx_plan_doc_put_choice(text, &e->fields);
    }
    gx_text_put(text, "}\n");
}

/* All alternatives of a site stand in one bucket, but others may stand between them. */
static void put_site(gx_text *text, const entry *first, const entry *head)
{
    for (const entry *e = head; e != first; e = e->next) {
        if (is_site(e) && strcmp(e->key, first->key) == 0)
            return; /* written when that one was met */
    }
    gx_text_put(text, "  ");
    gx_plan_doc_quote(text, first->key);
    gx_text_put(text, ":\n");
    for (const entry *e = first; e; e = e->next) {
        if (is_site(e) && strcmp(e->key, first->key) == 0)
            put_alternative(text, e);
    }
}

static void put_step(gx_text *text, const entry *e)
{
    gx_text_put(text, "  ");
    gx_plan_doc_quote(text, e->key);
    gx_text_format(text, ": {lanes: %d, programmatic: %s, lane_us: ", e->step.n_lanes,
                   e->step.programmatic ? "true" : "false");
    put_reals(text, e->step.lane_us, GX_MAX_LANES);
    gx_text_put(text, ", programmatic_us: ");
    put_reals(text, e->step.programmatic_us, 2);
    gx_text_put(text, ", full_edges: [");
    for (size_t i = 0; i < e->step.n_full_edges; i++)
        gx_text_format(text, "%s%d", i ? ", " : "", (int)e->step.full_edges[i]);
    gx_text_put(text, "]}\n");
}

static void put_launch(gx_text *text, const entry *e)
{
    gx_text_put(text, "  ");
    gx_plan_doc_quote(text, e->key);
    gx_text_format(text, ": {steps: %d, loop: %s, us: ", e->launch.steps_per_launch,
                   e->launch.loop ? "true" : "false");
    put_reals(text, e->launch.us, GX_N_LAUNCH_TRIALS);
    gx_text_put(text, "}\n");
}

static void put_skip(gx_text *text, const entry *e)
{
    gx_text_put(text, "  ");
    gx_plan_doc_quote(text, e->key);
    gx_text_format(text, ": {if: %s, us: ", e->skip.skip_if ? "true" : "false");
    put_reals(text, e->skip.us, 2);
    gx_text_put(text, "}\n");
}

static void put_order(gx_text *text, const entry *e)
{
    gx_text_put(text, "  ");
    gx_plan_doc_quote(text, e->key);
    gx_text_format(text, ": {order: %s, us: ", gx_node_order_name(e->order.order));
    put_reals(text, e->order.us, 2);
    gx_text_put(text, "}\n");
}

/* `kind`: NULL for the sites, or STEP, LAUNCH, SKIP or ORDER. */
static void put_section(const gx_cache *cache, gx_text *text, const char *name,
                        const char *kind)
{
    bool any = false;

    for (size_t i = 0; i < N_BUCKETS; i++) {
        for (const entry *e = cache->buckets[i]; e; e = e->next) {
            if (kind != (is_site(e) ? NULL : e->alternative))
                continue;
            if (!any)
                gx_text_format(text, "%s:\n", name);
            any = true;
            if (kind == STEP)
                put_step(text, e);
            else if (kind == LAUNCH)
                put_launch(text, e);
            else if (kind == SKIP)
                put_skip(text, e);
            else if (kind == ORDER)
                put_order(text, e);
            else
                put_site(text, e, cache->buckets[i]);
        }
    }
    if (!any)
        gx_text_format(text, "%s: {}\n", name);
}

void gx_cache_save(gx_cache *cache)
{
    gx_text text = { 0 };
    gx_error err = { 0 };

    if (!cache->changed || !cache->path)
        return;
    if (!gx_cache_make_folder(cache->arena, cache->folder)) {
        set_note(cache, cache->folder, strerror(errno));
        return;
    }
    read_file(cache);
    gx_text_format(&text, "gexec_cache: %d\n", (int)FORMAT);
    gx_plan_doc_put_device(&text, &cache->device);
    put_section(cache, &text, "sites", NULL);
    put_section(cache, &text, "steps", STEP);
    put_section(cache, &text, "launches", LAUNCH);
    put_section(cache, &text, "skips", SKIP);
    put_section(cache, &text, "orders", ORDER);
    if (gx_plan_doc_save(cache->path, &text, &err) != GX_OK)
        set_note(cache, "the plan cache was not written", err.message);
    else
        cache->changed = false;
}
