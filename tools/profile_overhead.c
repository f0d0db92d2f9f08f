/* What tracing tool and driver took for themselves while a pass was traced. */
#include <stdlib.h>
#include <string.h>

#include "profile_parts.h"

/* The kind of this name, made where there is none; there is room for it. */
static gx_profile_overhead *kind_of(gx_profile_pass *pass, const char *name)
{
    for (size_t i = 0; i < pass->n_overheads; i++)
        if (strcmp(pass->overhead[i].name, name) == 0)
            return &pass->overhead[i];
    pass->overhead[pass->n_overheads] = (gx_profile_overhead){ .name = name };
    return &pass->overhead[pass->n_overheads++];
}

/* Times of a broken clock must not overflow. */
static void add(gx_trace_share *share, int64_t n, int64_t ns)
{
    share->n += n;
    share->ns = share->ns > INT64_MAX - ns ? INT64_MAX : share->ns + ns;
}

static void share_out(gx_profile_overhead *kind, const gx_trace_overhead *overhead)
{
    const int64_t inside = overhead->inside == GX_TRACE_NONE ? 0 : overhead->inside;

    const int64_t before = overhead->end - overhead->start - inside;

    add(&kind->inside, overhead->inside != GX_TRACE_NONE, inside);
    add(&kind->before, overhead->inside == GX_TRACE_NONE || before > 0, before);
    if (inside > kind->longest_ns)
        kind->longest_ns = inside;
}

static int compare_kinds(const void *left, const void *right)
{
    const gx_profile_overhead *const a = left;
    const gx_profile_overhead *const b = right;

    if (a->inside.ns != b->inside.ns)
        return a->inside.ns < b->inside.ns ? 1 : -1;
    if (a->before.ns != b->before.ns)
        return a->before.ns < b->before.ns ? 1 : -1;
    return strcmp(a->name, b->name);
}

gx_status gx_profile_overheads(gx_profile_pass *pass, gx_error *err)
{
    size_t n;
    const gx_trace_overhead *const overheads = gx_trace_overheads(pass->trace, &n);

    free(pass->overhead);
    pass->n_overheads = 0;
    pass->overhead = calloc(n + 1, sizeof *pass->overhead);
    if (!pass->overhead)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for figures of a profile");
    for (size_t i = 0; i < n; i++)
        share_out(kind_of(pass, gx_trace_text_at(pass->trace, overheads[i].name)),
                  &overheads[i]);
    qsort(pass->overhead, pass->n_overheads, sizeof *pass->overhead, compare_kinds);
    return GX_OK;
}

gx_profile_overhead gx_profile_overhead_sum(const gx_profile_pass *pass)
{
    gx_profile_overhead sum = { .name = "" };

    for (size_t i = 0; i < pass->n_overheads; i++) {
        const gx_profile_overhead *const kind = &pass->overhead[i];

        add(&sum.inside, kind->inside.n, kind->inside.ns);
        add(&sum.before, kind->before.n, kind->before.ns);
        if (kind->longest_ns > sum.longest_ns)
            sum.longest_ns = kind->longest_ns;
    }
    return sum;
}
