/* The file of the plan cache:
 *
 *     gexec_cache: 7
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
#include <string.h>
#include <unistd.h>

#include "cache_place.h"
#include "plan_cache.h"

/* 2: three lanes; what 1 knew of kernels is of older ones. 3: what was forced, or could
 * not be timed, is not in it. 4: long times are those of a long run. 5: a mean is
 * one launch. 6: a hole is filled by a kernel. 7: more shapes of small products. 8: more
 * of gradients, and the last update on lane 0. 9: large updates in tf32. */
enum { FORMAT = 9 };

/* --- reading --- */

static void read_alternative(gx_cache *cache, gx_diagnostics *list, const char *key,
                             const char *alternative, const gx_doc *doc)
{
    static const char *const keys[] = { "us",   "launches", "workspace",
                                        "algo", "refused",  NULL };
    gx_choice_fields fields = { .us = -1, .n_launches = -1 };
    const char *refused = NULL;
    gx_cache_entry *e;

    if (!gx_plan_doc_is_map(list, doc, alternative, keys))
        return;
    if (gx_plan_doc_get(doc, "refused"))
        refused = gx_plan_doc_text(list, doc, "refused");
    else if (!gx_plan_doc_choice(list, doc, &fields))
        return;
    /* What was measured just now stands. */
    if (gx_cache_entry_find(cache, GX_CACHE_SITE, key, alternative))
        return;
    e = gx_cache_entry_make(cache, GX_CACHE_SITE, key, alternative);
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
        gx_cache_set_note(cache, "plan cache", "out of memory");
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
    gx_cache_entry *e;

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
    if (gx_cache_entry_find(cache, GX_CACHE_STEP, key, ""))
        return;
    e = gx_cache_entry_make(cache, GX_CACHE_STEP, key, "");
    if (e)
        e->step = step;
}

static void read_launch(gx_cache *cache, gx_diagnostics *list, const char *key,
                        const gx_doc *doc)
{
    static const char *const keys[] = { "steps", "loop", "us", NULL };
    gx_launch_choice launch;
    int64_t steps;
    gx_cache_entry *e;

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
    if (gx_cache_entry_find(cache, GX_CACHE_LAUNCH, key, ""))
        return;
    e = gx_cache_entry_make(cache, GX_CACHE_LAUNCH, key, "");
    if (e)
        e->launch = launch;
}

static void read_skip(gx_cache *cache, gx_diagnostics *list, const char *key,
                      const gx_doc *doc)
{
    static const char *const keys[] = { "if", "us", NULL };
    gx_skip_choice skip;
    gx_cache_entry *e;

    if (!gx_plan_doc_is_map(list, doc, "skip", keys) ||
        !gx_plan_doc_bool(list, doc, "if", &skip.skip_if) ||
        !read_reals(list, doc, "us", skip.us, 2) ||
        gx_cache_entry_find(cache, GX_CACHE_SKIP, key, ""))
        return;
    e = gx_cache_entry_make(cache, GX_CACHE_SKIP, key, "");
    if (e)
        e->skip = skip;
}

static void read_order(gx_cache *cache, gx_diagnostics *list, const char *key,
                       const gx_doc *doc)
{
    static const char *const keys[] = { "order", "us", NULL };
    gx_order_choice order = { .order = GX_ORDER_DERIVED };
    const char *name;
    gx_cache_entry *e;

    if (!gx_plan_doc_is_map(list, doc, "order", keys) ||
        !(name = gx_plan_doc_text(list, doc, "order")) ||
        !read_reals(list, doc, "us", order.us, 2))
        return;
    if (!gx_node_order_find(name, &order.order)) {
        gx_report(list, gx_plan_doc_get(doc, "order")->pos, "no order is named \"%s\"",
                  name);
        return;
    }
    if (gx_cache_entry_find(cache, GX_CACHE_ORDER, key, ""))
        return;
    e = gx_cache_entry_make(cache, GX_CACHE_ORDER, key, "");
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

void gx_cache_read(gx_cache *cache)
{
    gx_arena *arena = gx_arena_create();
    gx_diagnostics *list = gx_diagnostics_create();
    gx_error err = { 0 };
    const gx_doc *doc;

    if (!arena || !list) {
        gx_cache_set_note(cache, "plan cache", "out of memory");
    } else if (access(cache->path, F_OK) == 0) {
        if (gx_plan_doc_load(cache->path, "a plan cache", arena, list, &doc, &err) ==
            GX_OK) {
            read_document(cache, list, doc);
            (void)!gx_diagnostics_status(list, &err);
        }
        if (err.status != GX_OK)
            gx_cache_set_note(cache, "the plan cache was not read", err.message);
    }
    gx_diagnostics_free(list);
    gx_arena_free(arena);
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

static void put_alternative(gx_text *text, const gx_cache_entry *e)
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
static void put_site(gx_text *text, const gx_cache_entry *first,
                     const gx_cache_entry *head)
{
    for (const gx_cache_entry *e = head; e != first; e = e->next) {
        if (e->kind == GX_CACHE_SITE && strcmp(e->key, first->key) == 0)
            return; /* written when that one was met */
    }
    gx_text_put(text, "  ");
    gx_plan_doc_quote(text, first->key);
    gx_text_put(text, ":\n");
    for (const gx_cache_entry *e = first; e; e = e->next) {
        if (e->kind == GX_CACHE_SITE && strcmp(e->key, first->key) == 0)
            put_alternative(text, e);
    }
}

static void put_step(gx_text *text, const gx_cache_entry *e)
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

static void put_launch(gx_text *text, const gx_cache_entry *e)
{
    gx_text_put(text, "  ");
    gx_plan_doc_quote(text, e->key);
    gx_text_format(text, ": {steps: %d, loop: %s, us: ", e->launch.steps_per_launch,
                   e->launch.loop ? "true" : "false");
    put_reals(text, e->launch.us, GX_N_LAUNCH_TRIALS);
    gx_text_put(text, "}\n");
}

static void put_skip(gx_text *text, const gx_cache_entry *e)
{
    gx_text_put(text, "  ");
    gx_plan_doc_quote(text, e->key);
    gx_text_format(text, ": {if: %s, us: ", e->skip.skip_if ? "true" : "false");
    put_reals(text, e->skip.us, 2);
    gx_text_put(text, "}\n");
}

static void put_order(gx_text *text, const gx_cache_entry *e)
{
    gx_text_put(text, "  ");
    gx_plan_doc_quote(text, e->key);
    gx_text_format(text, ": {order: %s, us: ", gx_node_order_name(e->order.order));
    put_reals(text, e->order.us, 2);
    gx_text_put(text, "}\n");
}

static void put_entry(gx_text *text, const gx_cache_entry *e, const gx_cache_entry *head)
{
    switch (e->kind) {
    case GX_CACHE_SITE:
        put_site(text, e, head);
        break;
    case GX_CACHE_STEP:
        put_step(text, e);
        break;
    case GX_CACHE_LAUNCH:
        put_launch(text, e);
        break;
    case GX_CACHE_SKIP:
        put_skip(text, e);
        break;
    case GX_CACHE_ORDER:
        put_order(text, e);
        break;
    }
}

static void put_section(const gx_cache *cache, gx_text *text, const char *name,
                        gx_cache_kind kind)
{
    bool any = false;

    for (size_t i = 0; i < GX_CACHE_BUCKETS; i++) {
        for (const gx_cache_entry *e = cache->buckets[i]; e; e = e->next) {
            if (e->kind != kind)
                continue;
            if (!any)
                gx_text_format(text, "%s:\n", name);
            any = true;
            put_entry(text, e, cache->buckets[i]);
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
        gx_cache_set_note(cache, cache->folder, strerror(errno));
        return;
    }
    gx_cache_read(cache);
    gx_text_format(&text, "gexec_cache: %d\n", (int)FORMAT);
    gx_plan_doc_put_device(&text, &cache->device);
    put_section(cache, &text, "sites", GX_CACHE_SITE);
    put_section(cache, &text, "steps", GX_CACHE_STEP);
    put_section(cache, &text, "launches", GX_CACHE_LAUNCH);
    put_section(cache, &text, "skips", GX_CACHE_SKIP);
    put_section(cache, &text, "orders", GX_CACHE_ORDER);
    if (gx_plan_doc_save(cache->path, &text, &err) != GX_OK)
        gx_cache_set_note(cache, "the plan cache was not written", err.message);
    else
        cache->changed = false;
}
