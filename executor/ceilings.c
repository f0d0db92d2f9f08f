/* A card's ceilings: floors that follow from them, and the file that keeps them.
 *
 *     gexec_ceilings: 1
 *     device: {name: ..., cc: 90, driver: ..., runtime: ..., cublaslt: ..., gexec: ...}
 *     date: "2026-01-31T12:00:00Z"
 *     flops_per_s: {f32: 5.1e13, tf32: ..., bf16: ..., f16: n/a}
 *     copy:
 *       - {bytes: 65536, bytes_per_s: 2.1e12}
 *     node_s: 1.1e-06
 *     ...
 *     whole: true
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <gexec/gexec.h>

#include "cache_place.h"
#include "ceilings_parts.h"
#include "need.h"
#include "plan_doc.h"

enum { FORMAT = 1 };

static const char *const how = "measure with gexec doctor --measure";

static const char *const rate_names[GX_RATES] = {
    [GX_RATE_F32] = "f32",
    [GX_RATE_TF32] = "tf32",
    [GX_RATE_BF16] = "bf16",
    [GX_RATE_F16] = "f16",
};

const char *gx_rate_name(gx_rate rate)
{
    return (unsigned)rate < GX_RATES ? rate_names[rate] : "unknown";
}

const char *gx_bound_name(gx_bound bound)
{
    static const char *const names[] = {
        [GX_BOUND_UNKNOWN] = "n/a",
        [GX_BOUND_COMPUTE] = "compute",
        [GX_BOUND_MEMORY] = "memory",
        [GX_BOUND_LATENCY] = "latency",
    };

    return (unsigned)bound < sizeof names / sizeof names[0] ? names[bound] : names[0];
}

gx_ceilings gx_ceilings_none(void)
{
    gx_ceilings none = {
        .node_s = -1,
        .programmatic_node_s = -1,
        .copy_node_s = -1,
        .copy_engine_s = -1,
        .beside_s = -1,
        .join_s = -1,
        .step_s = -1,
        .launch_s = -1,
        .graph_host_s = -1,
    };

    for (int i = 0; i < GX_RATES; i++)
        none.flops_per_s[i] = -1;
    return none;
}

#if !GX_HAVE_CUDA

gx_status gx_ceilings_measure(int device, gx_ceilings *ceilings, gx_error *err)
{
    gx_error_clear(err);
    (void)device;
    GX_TRY(gx_need_place(ceilings, "ceilings", err));
    *ceilings = gx_ceilings_none();
    return GX_FAIL(err, GX_ERR_NO_DEVICE,
                   "this gexec was built without CUDA; it has the CPU alone");
}

#endif

/* --- floors --- */

double gx_ceilings_copy_rate(const gx_ceilings *ceilings, double bytes)
{
    const gx_copy_rate *copy = ceilings->copy;
    const size_t n = ceilings->n_copy;
    size_t i = 1;

    if (n == 0 || isnan(bytes))
        return -1;
    if (bytes <= (double)copy[0].bytes)
        return copy[0].bytes_per_s;
    if (bytes >= (double)copy[n - 1].bytes)
        return copy[n - 1].bytes_per_s;
    while (bytes > (double)copy[i].bytes)
        i++;
    const gx_copy_rate below = copy[i - 1], above = copy[i];
    const double share =
        log(bytes / (double)below.bytes) / log((double)above.bytes / (double)below.bytes);

    return below.bytes_per_s + share * (above.bytes_per_s - below.bytes_per_s);
}

/* Seconds for an amount at a rate; < 0: not known. Nothing takes no time at any rate. */
static double time_for(double amount, double rate)
{
    if (!(amount >= 0))
        return -1;
    if (amount == 0)
        return 0;
    return rate > 0 ? amount / rate : -1;
}

double gx_ceilings_floor(const gx_ceilings *ceilings, gx_rate rate, double flops,
                         double bytes, gx_bound *bound)
{
    const double compute_s =
        time_for(flops, (unsigned)rate < GX_RATES ? ceilings->flops_per_s[rate] : -1);
    const double memory_s = time_for(bytes, gx_ceilings_copy_rate(ceilings, bytes));
    const bool is_compute = compute_s > memory_s;
    const double floor_s = is_compute ? compute_s : memory_s;
    const bool known = compute_s >= 0 && memory_s >= 0;
    gx_bound found = is_compute ? GX_BOUND_COMPUTE : GX_BOUND_MEMORY;

    if (!known)
        found = GX_BOUND_UNKNOWN;
    else if (floor_s < ceilings->node_s)
        found = GX_BOUND_LATENCY;
    if (bound)
        *bound = found;
    return known ? floor_s : -1;
}

/* --- where they are kept --- */

static gx_status find_path(gx_arena *arena, const gx_device_info *info,
                           const char *folder, const char **place, const char **path,
                           gx_error *err)
{
    *place = folder && !folder[0] ? NULL : gx_cache_folder(arena, folder);
    *path = NULL;
    if (*place) {
        const char *name = gx_arena_format(
            arena, "%s-cc%d%d-driver%d-runtime%d-ceilings.yaml", info->name,
            info->cc_major, info->cc_minor, info->driver_version, info->runtime_version);

        if (name)
            *path = gx_cache_file(arena, *place, name);
    }
    if (gx_arena_failed(arena))
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the ceilings' file");
    if (!*path)
        return GX_FAIL(err, GX_ERR_STATE,
                       "there is no folder to keep a card's ceilings in: neither "
                       "XDG_CACHE_HOME nor HOME is set, or no cache is wanted");
    return GX_OK;
}

/* --- reading --- */

static void expected_figure(gx_diagnostics *list, gx_pos pos, const char *key)
{
    gx_report(list, pos, "%s: expected a number above 0, or n/a", key);
}

/* A figure above 0, or -1 for n/a. */
static bool read_figure(gx_diagnostics *list, const gx_doc *map, const char *key,
                        double *value)
{
    const char *text = gx_plan_doc_text(list, map, key);

    *value = -1;
    if (!text)
        return false;
    if (strcmp(text, "n/a") == 0)
        return true;
    if (gx_read_real(text, value) && *value > 0 && isfinite(*value))
        return true;
    expected_figure(list, gx_plan_doc_get(map, key)->pos, key);
    return false;
}

static bool read_rates(gx_diagnostics *list, const gx_doc *doc, gx_ceilings *ceilings)
{
    const gx_doc *rates = gx_plan_doc_get(doc, "flops_per_s");
    const char *keys[GX_RATES + 1] = { NULL };

    memcpy(keys, rate_names, sizeof rate_names);
    if (!rates) {
        gx_report(list, doc->pos, "\"flops_per_s\" is missing");
        return false;
    }
    if (!gx_plan_doc_is_map(list, rates, "flops_per_s", keys))
        return false;
    for (int i = 0; i < GX_RATES; i++)
        if (!read_figure(list, rates, rate_names[i], &ceilings->flops_per_s[i]))
            return false;
    return true;
}

static bool read_copy_rate(gx_diagnostics *list, const gx_doc *doc, int64_t more_than,
                           gx_copy_rate *rate)
{
    static const char *const keys[] = { "bytes", "bytes_per_s", NULL };

    if (!gx_plan_doc_is_map(list, doc, "copy", keys) ||
        !gx_plan_doc_int(list, doc, "bytes", &rate->bytes) ||
        !read_figure(list, doc, "bytes_per_s", &rate->bytes_per_s))
        return false;
    if (rate->bytes <= more_than) {
        gx_report(list, doc->pos, "copy: expected sizes above 0 that grow");
        return false;
    }
    if (rate->bytes_per_s < 0) {
        expected_figure(list, doc->pos, "bytes_per_s");
        return false;
    }
    return true;
}

static bool read_copy(gx_diagnostics *list, const gx_doc *doc, gx_ceilings *ceilings)
{
    const gx_doc *copy = gx_plan_doc_get(doc, "copy");
    int64_t last = 0;

    if (!copy || copy->kind != GX_DOC_LIST || copy->n > GX_CEILING_SIZES) {
        gx_report(list, copy ? copy->pos : doc->pos,
                  "copy: expected a list of at most %d sizes", GX_CEILING_SIZES);
        return false;
    }
    for (size_t i = 0; i < copy->n; i++) {
        if (!read_copy_rate(list, copy->item[i], last, &ceilings->copy[i]))
            return false;
        last = ceilings->copy[i].bytes;
    }
    ceilings->n_copy = copy->n;
    return true;
}

static bool read_version(gx_diagnostics *list, const gx_doc *doc)
{
    int64_t version;

    /* First of all: another version may have other keys. */
    if (!gx_plan_doc_is_map(list, doc, "ceilings", NULL) ||
        !gx_plan_doc_int(list, doc, "gexec_ceilings", &version))
        return false;
    if (version == FORMAT)
        return true;
    gx_report(list, doc->pos, "format %lld of a card's ceilings; this gexec reads %d",
              (long long)version, FORMAT);
    return false;
}

/* The last line tells that none is cut off. */
static bool read_whole(gx_diagnostics *list, const gx_doc *doc)
{
    bool whole = false;

    if (!gx_plan_doc_bool(list, doc, "whole", &whole))
        return false;
    if (!whole)
        gx_report(list, doc->pos, "the file is not whole");
    return whole;
}

static bool read_document(gx_diagnostics *list, const gx_doc *doc,
                          const gx_device_info *info, gx_ceilings *ceilings)
{
    static const char *const keys[] = { "gexec_ceilings",
                                        "device",
                                        "date",
                                        "flops_per_s",
                                        "copy",
                                        "node_s",
                                        "programmatic_node_s",
                                        "copy_node_s",
                                        "copy_engine_s",
                                        "beside_s",
                                        "join_s",
                                        "step_s",
                                        "launch_s",
                                        "graph_host_s",
                                        "whole",
                                        NULL };
    const gx_doc *device;
    const char *date;

    if (!read_version(list, doc) || !gx_plan_doc_is_map(list, doc, "ceilings", keys))
        return false;
    device = gx_plan_doc_get(doc, "device");
    if (!device) {
        gx_report(list, doc->pos, "\"device\" is missing");
        return false;
    }
    date = gx_plan_doc_text(list, doc, "date");
    if (!date || !gx_plan_doc_same_device(list, device, info) ||
        !read_rates(list, doc, ceilings) || !read_copy(list, doc, ceilings) ||
        !read_figure(list, doc, "node_s", &ceilings->node_s) ||
        !read_figure(list, doc, "programmatic_node_s", &ceilings->programmatic_node_s) ||
        !read_figure(list, doc, "copy_node_s", &ceilings->copy_node_s) ||
        !read_figure(list, doc, "copy_engine_s", &ceilings->copy_engine_s) ||
        !read_figure(list, doc, "beside_s", &ceilings->beside_s) ||
        !read_figure(list, doc, "join_s", &ceilings->join_s) ||
        !read_figure(list, doc, "step_s", &ceilings->step_s) ||
        !read_figure(list, doc, "launch_s", &ceilings->launch_s) ||
        !read_figure(list, doc, "graph_host_s", &ceilings->graph_host_s) ||
        !read_whole(list, doc))
        return false;
    snprintf(ceilings->card, sizeof ceilings->card, "%s", info->name);
    snprintf(ceilings->date, sizeof ceilings->date, "%s", date);
    ceilings->driver_version = info->driver_version;
    ceilings->runtime_version = info->runtime_version;
    return true;
}

static gx_status read_file(const char *path, gx_arena *arena, gx_diagnostics *list,
                           const gx_device_info *info, gx_ceilings *ceilings,
                           gx_error *err)
{
    gx_error why = { 0 };
    const gx_doc *doc;

    gx_status st =
        gx_plan_doc_load(path, "the ceilings of a card", arena, list, &doc, &why);
    if (st == GX_OK && !read_document(list, doc, info, ceilings))
        st = gx_first(gx_diagnostics_status(list, &why), GX_ERR_MEMORY);
    if (st == GX_OK)
        return GX_OK;
    if (st == GX_ERR_MODEL)
        st = GX_ERR_DATA;
    return GX_FAIL_NATIVE(err, st, why.native, "%s; %s",
                          why.message[0] ? why.message : "out of memory", how);
}

gx_status gx_ceilings_load(const gx_device_info *info, const char *folder,
                           gx_ceilings *ceilings, gx_error *err)
{
    gx_ceilings read = gx_ceilings_none();
    const char *place = NULL, *path = NULL;
    gx_status st;

    gx_error_clear(err);
    GX_TRY(gx_need_place(ceilings, "ceilings", err));
    *ceilings = read;
    GX_TRY(gx_need(info, "device", err));
    gx_arena *arena = gx_arena_create();
    gx_diagnostics *list = gx_diagnostics_create();

    if (!arena || !list)
        st = GX_FAIL(err, GX_ERR_MEMORY, "out of memory for a card's ceilings");
    else
        st = find_path(arena, info, folder, &place, &path, err);
    if (st == GX_OK && access(path, F_OK) != 0)
        st = GX_FAIL(err, GX_ERR_STATE, "the ceilings of %s were not measured yet; %s",
                     info->name, how);
    if (st == GX_OK)
        st = read_file(path, arena, list, info, &read, err);
    if (st == GX_OK)
        *ceilings = read;
    gx_diagnostics_free(list);
    gx_arena_free(arena);
    return st;
}

/* --- writing --- */

static void put_figure(gx_text *text, double value)
{
    if (value > 0 && isfinite(value))
        gx_plan_doc_put_real(text, value);
    else
        gx_text_put(text, "n/a");
}

static void put_line(gx_text *text, const char *key, double value)
{
    gx_text_format(text, "%s: ", key);
    put_figure(text, value);
    gx_text_put(text, "\n");
}

static void put_ceilings(gx_text *text, const gx_device_info *info,
                         const gx_ceilings *ceilings)
{
    gx_text_format(text, "gexec_ceilings: %d\n", FORMAT);
    gx_plan_doc_put_device(text, info);
    gx_text_put(text, "date: ");
    gx_plan_doc_quote(text, ceilings->date);
    gx_text_put(text, "\nflops_per_s: {");
    for (int i = 0; i < GX_RATES; i++) {
        gx_text_format(text, "%s%s: ", i ? ", " : "", rate_names[i]);
        put_figure(text, ceilings->flops_per_s[i]);
    }
    gx_text_put(text, "}\ncopy:");
    for (size_t i = 0; i < ceilings->n_copy; i++) {
        gx_text_format(text,
                       "\n  - {bytes: %lld, "
                       "bytes_per_s: ",
                       (long long)ceilings->copy[i].bytes);
        put_figure(text, ceilings->copy[i].bytes_per_s);
        gx_text_put(text, "}");
    }
    gx_text_put(text, ceilings->n_copy ? "\n" : " []\n");
    put_line(text, "node_s", ceilings->node_s);
    put_line(text, "programmatic_node_s", ceilings->programmatic_node_s);
    put_line(text, "copy_node_s", ceilings->copy_node_s);
    put_line(text, "copy_engine_s", ceilings->copy_engine_s);
    put_line(text, "beside_s", ceilings->beside_s);
    put_line(text, "join_s", ceilings->join_s);
    put_line(text, "step_s", ceilings->step_s);
    put_line(text, "launch_s", ceilings->launch_s);
    put_line(text, "graph_host_s", ceilings->graph_host_s);
    gx_text_put(text, "whole: true\n");
}

static gx_status check_card(const gx_device_info *info, const gx_ceilings *ceilings,
                            gx_error *err)
{
    if (strcmp(info->name, ceilings->card) == 0 &&
        info->driver_version == ceilings->driver_version &&
        info->runtime_version == ceilings->runtime_version)
        return GX_OK;
    return GX_FAIL(err, GX_ERR_ARGUMENT,
                   "ceilings of %s (driver %d, toolkit %d) are not kept for %s (driver "
                   "%d, toolkit %d)",
                   ceilings->card, ceilings->driver_version, ceilings->runtime_version,
                   info->name, info->driver_version, info->runtime_version);
}

gx_status gx_ceilings_save(const gx_device_info *info, const char *folder,
                           const gx_ceilings *ceilings, gx_error *err)
{
    gx_arena *arena;
    const char *place = NULL, *path = NULL;
    gx_text text = { 0 };

    gx_error_clear(err);
    GX_TRY(gx_need(info, "device", err));
    GX_TRY(gx_need(ceilings, "ceilings", err));
    GX_TRY(check_card(info, ceilings, err));
    arena = gx_arena_create();
    if (!arena)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for a card's ceilings");
    gx_status st = find_path(arena, info, folder, &place, &path, err);
    if (st == GX_OK && !gx_cache_make_folder(arena, place))
        st = GX_FAIL_NATIVE(err, GX_ERR_WRITE, errno, "%s: %s", place, strerror(errno));
    if (st == GX_OK) {
        put_ceilings(&text, info, ceilings);
        st = gx_plan_doc_save(path, &text, err);
    }
    gx_arena_free(arena);
    return st;
}
