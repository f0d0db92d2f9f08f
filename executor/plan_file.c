/* The plan file: a whole plan, to be obeyed later to the letter.
 *
 *     gexec_plan: 2
 *     model: digits-mlp
 *     kind: train
 *     device: {name: ..., cc: 90, driver: ..., runtime: ..., cublaslt: ..., gexec: ...}
 *     order: derived                        or data-first; without: derived
 *     lanes: 1
 *     programmatic: true
 *     unfused: false
 *     skip_if: false                        only where updates may be skipped
 *     launch: {steps: 32, loop: false}      only where it was measured
 *     units:
 *       - nodes: [fc1, fc1.epilogue]
 *         key: "tf32: gemm f32[64, 784] ... #hash"
 *         run: {alternative: lt_fused, us: 4.1, launches: 1, workspace: 0, algo: ...}
 *         full_edge: true
 *
 * full_edge stands where a programmatic edge to the unit was measured to cost more.
 * On the CPU every unit is one node, and its alternative is called reference. */
#include <inttypes.h>
#include <string.h>

#include "need.h"
#include "plan_doc.h"
#include "select.h"

#define REFERENCE "reference"

/* Of another format an alternative may launch other kernels, or number its shapes
 * otherwise. */
enum { FORMAT = 2 };

/* --- writing --- */

static void put_unit(gx_text *text, const gx_plan *plan, const gx_unit *unit)
{
    gx_choice_fields fields = {
        .us = unit->us,
        .n_launches = unit->n_launches,
        .workspace_bytes = (int64_t)unit->workspace_bytes,
        .has_algo = unit->has_algo,
    };
    char key[GX_KEY_SIZE];
    uint64_t hash[2];

    memcpy(fields.algo, unit->algo, sizeof fields.algo);
    gx_text_put(text, "  - nodes: [");
    for (int32_t i = 0; i < unit->n_nodes; i++) {
        gx_text_put(text, i ? ", " : "");
        gx_plan_doc_quote(text, plan->graph->nodes[unit->first_node + i].name);
    }
    gx_text_put(text, "]\n    key: ");
    gx_site_key(plan->graph, unit->first_node, unit->n_nodes, key, hash);
    gx_plan_doc_quote(text, key);
    gx_text_put(text, "\n    run: {alternative: ");
    gx_plan_doc_quote(text, unit->alternative ? unit->alternative->name : REFERENCE);
    gx_text_put(text, ", ");
    gx_plan_doc_put_choice(text, &fields);
    gx_text_format(text, "}\n%s", unit->full_edge ? "    full_edge: true\n" : "");
}

static const char *kind_name(const gx_graph *graph)
{
    return graph->kind == GX_TRAIN ? "train" : "eval";
}

static const char *bool_name(bool value)
{
    return value ? "true" : "false";
}

gx_status gx_plan_write(const gx_plan *plan, const char *path, gx_error *err)
{
    gx_text text = { 0 };
    gx_device_info device;

    gx_error_clear(err);
    GX_TRY(gx_need(plan, "plan", err));
    GX_TRY(gx_need(path, "path", err));
    GX_TRY(gx_device_info_get(plan->device, &device, err));
    gx_text_format(&text, "gexec_plan: %d\nmodel: ", FORMAT);
    gx_plan_doc_quote(&text, plan->graph->name ? plan->graph->name : "");
    gx_text_format(&text, "\nkind: %s\n", kind_name(plan->graph));
    gx_plan_doc_put_device(&text, &device);
    gx_text_format(&text, "order: %s\nlanes: %d\nprogrammatic: %s\nunfused: %s\n",
                   gx_node_order_name(plan->order), plan->n_lanes,
                   bool_name(plan->programmatic), bool_name(plan->unfused));
    if (gx_plan_may_skip(plan))
        gx_text_format(&text, "skip_if: %s\n", bool_name(plan->skip_if));
    if (plan->info.steps_per_launch > 0)
        gx_text_format(&text, "launch: {steps: %d, loop: %s}\n",
                       plan->info.steps_per_launch, bool_name(plan->info.step_loop));
    gx_text_format(&text, "units:%s\n", plan->n_units ? "" : " []");
    for (size_t i = 0; i < plan->n_units; i++)
        put_unit(&text, plan, &plan->units[i]);
    return gx_plan_doc_save(path, &text, err);
}

/* --- reading --- */

typedef struct reader {
    gx_plan *plan;
    gx_diagnostics *list;
    int32_t next_node;
} reader;

/* The nodes that a unit names must be those that come next in the graph. */
static bool read_nodes(const reader *r, const gx_doc *map, int32_t *n)
{
    const gx_graph *graph = r->plan->graph;
    const gx_doc *doc = gx_plan_doc_get(map, "nodes");

    if (!doc || doc->kind != GX_DOC_LIST || doc->n == 0) {
        gx_report(r->list, doc ? doc->pos : map->pos,
                  "nodes: expected a list of op names");
        return false;
    }
    for (size_t i = 0; i < doc->n; i++) {
        const gx_doc *item = doc->item[i];
        const size_t node = (size_t)r->next_node + i;
        const char *name = item->kind == GX_DOC_SCALAR ? item->text : gx_doc_what(item);

        if (node < graph->n_nodes && strcmp(graph->nodes[node].name, name) == 0)
            continue;
        if (gx_graph_node_id(graph, name) < 0)
            gx_report(r->list, item->pos, "the graph has no op \"%s\"", name);
        else
            gx_report(r->list, item->pos,
                      "op \"%s\" does not come next in the graph; %s%s", name,
                      node < graph->n_nodes ? "expected " : "nothing does",
                      node < graph->n_nodes ? graph->nodes[node].name : "");
        return false;
    }
    *n = (int32_t)doc->n;
    return true;
}

static bool check_key(const reader *r, const gx_doc *map, int32_t n)
{
    const char *found = gx_plan_doc_text(r->list, map, "key");
    char key[GX_KEY_SIZE];
    uint64_t hash[2];

    if (!found)
        return false;
    gx_site_key(r->plan->graph, r->next_node, n, key, hash);
    if (strcmp(found, key) == 0)
        return true;
    gx_report(r->list, gx_plan_doc_get(map, "key")->pos,
              "unit of op \"%s\": planned for %s; the graph has %s",
              r->plan->graph->nodes[r->next_node].name, found, key);
    return false;
}

/* Pieces of a run of updates stand in plans too; whole patterns one behind the other are
 * only as many as the alternative takes. */
static bool may_cover(const reader *r, const gx_alternative *at, int32_t n)
{
    return at->repeat == GX_REPEAT_ALL
               ? gx_match_covers(r->plan->graph, at, r->next_node, n)
               : gx_match_pattern(r->plan->graph, at, r->next_node, n);
}

static bool find_alternative(const reader *r, const gx_doc *run, int32_t n,
                             const gx_alternative **alternative)
{
    const char *name = gx_plan_doc_text(r->list, run, "alternative");

    *alternative = NULL;
    if (!name)
        return false;
    if (r->plan->device == GX_CPU && n == 1 && strcmp(name, REFERENCE) == 0)
        return true;
    for (size_t i = 0; r->plan->device != GX_CPU && gx_alternative_at(i); i++) {
        const gx_alternative *at = gx_alternative_at(i);

        if (strcmp(at->name, name) == 0 && may_cover(r, at, n)) {
            *alternative = at;
            return true;
        }
    }
    gx_report(r->list, gx_plan_doc_get(run, "alternative")->pos,
              "no alternative \"%s\" covers the unit of op \"%s\"", name,
              r->plan->graph->nodes[r->next_node].name);
    return false;
}

static gx_status read_unit(reader *r, const gx_doc *map, gx_unit *unit, gx_error *err)
{
    static const char *const keys[] = { "nodes", "key", "run", "full_edge", NULL };
    static const char *const run_keys[] = { "alternative", "us",   "launches",
                                            "workspace",   "algo", NULL };
    const gx_alternative *alternative = NULL;
    const gx_doc *run;
    gx_choice_fields fields = { .us = -1 };
    bool full_edge = false;
    int32_t n;

    if (!gx_plan_doc_is_map(r->list, map, "unit", keys) || !read_nodes(r, map, &n) ||
        !check_key(r, map, n))
        return gx_diagnostics_status(r->list, err);
    run = gx_plan_doc_get(map, "run");
    if (!run)
        gx_report(r->list, map->pos, "\"run\" is missing");
    else if (gx_plan_doc_is_map(r->list, run, "run", run_keys) &&
             find_alternative(r, run, n, &alternative))
        (void)gx_plan_doc_choice(r->list, run, &fields);
    if (gx_plan_doc_get(map, "full_edge"))
        (void)gx_plan_doc_bool(r->list, map, "full_edge", &full_edge);
    GX_TRY(gx_diagnostics_status(r->list, err));

    GX_TRY(gx_unit_start(r->plan, unit, r->next_node, n, alternative, err));
    unit->us = fields.us;
    unit->n_launches = (int)fields.n_launches;
    unit->workspace_bytes = (size_t)fields.workspace_bytes;
    unit->has_algo = fields.has_algo;
    memcpy(unit->algo, fields.algo, sizeof unit->algo);
    unit->full_edge = full_edge;
    unit->cached = true;
    unit->key = gx_arena_text(r->plan->arena, gx_plan_doc_text(r->list, map, "key"));
    r->next_node += n;
    return GX_OK;
}

static gx_status read_units(reader *r, const gx_doc *units, gx_error *err)
{
    gx_plan *plan = r->plan;

    plan->units = gx_arena_alloc(plan->arena, (units->n + 1) * sizeof *plan->units);
    if (!plan->units)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the plan");
    for (size_t i = 0; i < units->n; i++)
        GX_TRY(read_unit(r, units->item[i], &plan->units[i], err));
    plan->n_units = units->n;
    plan->info.n_cached = units->n;
    if ((size_t)r->next_node < plan->graph->n_nodes)
        gx_report(r->list, units->pos, "no unit has op \"%s\"",
                  plan->graph->nodes[r->next_node].name);
    return gx_diagnostics_status(r->list, err);
}

static void read_launch(reader *r, const gx_doc *doc)
{
    static const char *const keys[] = { "steps", "loop", NULL };
    int64_t steps;
    bool loop;

    if (!gx_plan_doc_is_map(r->list, doc, "launch", keys) ||
        !gx_plan_doc_int(r->list, doc, "steps", &steps) ||
        !gx_plan_doc_bool(r->list, doc, "loop", &loop))
        return;
    if (!gx_launch_is_possible(steps, loop)) {
        gx_report(r->list, doc->pos,
                  "launch: expected 1 to %d steps, and more than one in a loop",
                  (int)GX_MAX_STEPS_PER_LAUNCH);
        return;
    }
    r->plan->info.steps_per_launch = (int)steps;
    r->plan->info.step_loop = loop;
}

/* The units name the nodes in that order. */
static gx_status read_order(reader *r, const gx_doc *doc, gx_error *err)
{
    const bool on_cpu = r->plan->device == GX_CPU;
    gx_node_order order = GX_ORDER_DERIVED;
    const char *name;

    if (!gx_plan_doc_get(doc, "order"))
        return GX_OK;
    name = gx_plan_doc_text(r->list, doc, "order");
    if (name &&
        (!gx_node_order_find(name, &order) || (on_cpu && order != GX_ORDER_DERIVED)))
        gx_report(r->list, gx_plan_doc_get(doc, "order")->pos,
                  "order: expected %s, found \"%s\"",
                  on_cpu ? "\"derived\", as it is on the CPU"
                         : "\"derived\" or \"data-first\"",
                  name);
    GX_TRY(gx_diagnostics_status(r->list, err));
    return gx_plan_use_order(r->plan, order, err);
}

static void read_head(reader *r, const gx_doc *doc, const gx_device_info *device)
{
    static const char *const keys[] = { "gexec_plan", "model",        "kind",    "device",
                                        "lanes",      "programmatic", "unfused", "launch",
                                        "skip_if",    "order",        "units",   NULL };
    gx_plan *plan = r->plan;
    const gx_doc *map, *units;
    const char *kind;
    int64_t version, lanes;

    if (!gx_plan_doc_is_map(r->list, doc, "plan", keys) ||
        !gx_plan_doc_int(r->list, doc, "gexec_plan", &version))
        return;
    map = gx_plan_doc_get(doc, "device");
    units = gx_plan_doc_get(doc, "units");
    if (version != FORMAT) {
        gx_report(r->list, gx_plan_doc_get(doc, "gexec_plan")->pos,
                  "a plan of format %" PRId64 ", expected %d: another gexec wrote it; "
                  "where the file is not there a plan is made anew",
                  version, FORMAT);
        return;
    }
    if (!map || !units || units->kind != GX_DOC_LIST) {
        gx_report(r->list, doc->pos, "not a plan file of format %d", FORMAT);
        return;
    }
    kind = gx_plan_doc_text(r->list, doc, "kind");
    if (kind && strcmp(kind, kind_name(plan->graph)) != 0)
        gx_report(r->list, gx_plan_doc_get(doc, "kind")->pos,
                  "a plan of kind \"%s\"; this program is of kind \"%s\"", kind,
                  kind_name(plan->graph));
    if (!kind || !gx_plan_doc_same_device(r->list, map, device) ||
        !gx_plan_doc_int(r->list, doc, "lanes", &lanes) ||
        !gx_plan_doc_bool(r->list, doc, "programmatic", &plan->programmatic) ||
        !gx_plan_doc_bool(r->list, doc, "unfused", &plan->unfused))
        return;
    if (lanes < 1 || lanes > GX_MAX_LANES)
        gx_report(r->list, gx_plan_doc_get(doc, "lanes")->pos, "lanes: expected 1 to %d",
                  (int)GX_MAX_LANES);
    else
        plan->n_lanes = (int)lanes;
    if (gx_plan_doc_get(doc, "skip_if"))
        (void)gx_plan_doc_bool(r->list, doc, "skip_if", &plan->skip_if);
    if (gx_plan_doc_get(doc, "launch"))
        read_launch(r, gx_plan_doc_get(doc, "launch"));
}

gx_status gx_plan_file_read(gx_plan *plan, const char *path, const gx_device_info *device,
                            gx_error *err)
{
    gx_arena *arena = gx_arena_create();
    gx_diagnostics *list = gx_diagnostics_create();
    reader r = { .plan = plan, .list = list };
    const gx_doc *doc = NULL;
    gx_status st = GX_OK;

    if (!arena || !list)
        st = GX_FAIL(err, GX_ERR_MEMORY, "out of memory for %s", path);
    if (st == GX_OK)
        st = gx_plan_doc_load(path, "a plan, which starts with \"gexec_plan: 2\"", arena,
                              list, &doc, err);
    if (st == GX_OK) {
        read_head(&r, doc, device);
        st = gx_diagnostics_status(list, err);
    }
    if (st == GX_OK)
        st = read_order(&r, doc, err);
    if (st == GX_OK)
        st = read_units(&r, gx_plan_doc_get(doc, "units"), err);
    if (st == GX_OK && plan->skip_if && !gx_plan_may_skip(plan)) {
        gx_report(list, gx_plan_doc_get(doc, "skip_if")->pos,
                  "skip_if: no unit of this plan can be skipped");
        st = gx_diagnostics_status(list, err);
    }
    gx_diagnostics_free(list);
    gx_arena_free(arena);
    return st;
}
