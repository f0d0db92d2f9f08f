/* The catalogue: every family's rows and alternatives, found by name or by number. */
#include <stdio.h>
#include <string.h>

#include "ops.h"

#define GX_FAMILY(family) extern const gx_op gx_##family##_ops[];
#include "families.def"
#undef GX_FAMILY

static const gx_op *const families[] = {
#define GX_FAMILY(family) gx_##family##_ops,
#include "families.def"
#undef GX_FAMILY
};

enum { N_FAMILIES = sizeof families / sizeof families[0] };

const char *const gx_act_names[] = {
#define GX_ACT_NAME(act, name, reads, flops) name,
    GX_ACT_LIST(GX_ACT_NAME) NULL
#undef GX_ACT_NAME
};

const gx_act_reads gx_act_reads_of[GX_N_ACTS] = {
#define GX_ACT_READS(act, name, reads, flops) GX_ACT_READS_##reads,
    GX_ACT_LIST(GX_ACT_READS)
#undef GX_ACT_READS
};

const char *const gx_reduction_names[] = { "mean", "sum", NULL };

size_t gx_op_count(void)
{
    size_t n = 0;

    while (gx_op_at(n))
        n++;
    return n;
}

const gx_op *gx_op_at(size_t i)
{
    for (size_t f = 0; f < N_FAMILIES; f++) {
        for (const gx_op *op = families[f]; op->name; op++) {
            if (i-- == 0)
                return op;
        }
    }
    return NULL;
}

/* A few dozen rows, most of which differ in the first letters: a search in order costs
 * less than hashing the name. */
const gx_op *gx_op_find(const char *name)
{
    if (!name)
        return NULL;
    for (size_t f = 0; f < N_FAMILIES; f++) {
        for (const gx_op *op = families[f]; op->name; op++) {
            if (op->name[0] == name[0] && strcmp(op->name, name) == 0)
                return op;
        }
    }
    return NULL;
}

const char *gx_op_name(const gx_op *op)
{
    return op->name;
}

const char *gx_op_summary(const gx_op *op)
{
    return op->summary;
}

const char *gx_op_formula(const gx_op *op)
{
    return op->formula;
}

bool gx_op_is_internal(const gx_op *op)
{
    return op->internal;
}

bool gx_op_is_differentiable(const gx_op *op)
{
    return op->grad != NULL;
}

const gx_field *gx_op_fields(const gx_op *op)
{
    return op->fields;
}

#if GX_HAVE_CUDA

#define GX_FAMILY(family) extern const gx_alternative gx_##family##_alternatives[];
#include "families.def"
#undef GX_FAMILY

const gx_alternative *gx_alternative_at(size_t i)
{
    static const gx_alternative *const tables[] = {
#define GX_FAMILY(family) gx_##family##_alternatives,
#include "families.def"
#undef GX_FAMILY
    };

    for (size_t f = 0; f < N_FAMILIES; f++) {
        for (const gx_alternative *at = tables[f]; at->name; at++) {
            if (i-- == 0)
                return at;
        }
    }
    return NULL;
}

#else

const gx_alternative *gx_alternative_at(size_t i)
{
    (void)i;
    return NULL;
}

#endif

static bool covers(const gx_alternative *alternative, const gx_op *op)
{
    for (const char *const *name = alternative->pattern; *name; name++) {
        if (strcmp(*name, op->name) == 0)
            return true;
    }
    return false;
}

static void write_pattern(const gx_alternative *alternative, char *text, size_t size)
{
    size_t used = 0;

    if (size == 0)
        return;
    text[0] = 0;
    for (const char *const *name = alternative->pattern; *name && used < size; name++) {
        const int n =
            snprintf(text + used, size - used, "%s%s", used ? " + " : "", *name);

        if (n < 0)
            return;
        used += (size_t)n;
    }
    if (used < size)
        snprintf(text + used, size - used, "%s%s",
                 alternative->repeat == GX_REPEAT_LAST   ? " ..."
                 : alternative->repeat == GX_REPEAT_ALL  ? ", again and again"
                 : alternative->repeat == GX_REPEAT_BOTH ? " ..., each again and again"
                                                         : "",
                 alternative->trial ? " (on trial)" : "");
}

const char *gx_op_alternative(const gx_op *op, size_t i, char *pattern,
                              size_t pattern_size)
{
    const gx_alternative *alternative;

    for (size_t k = 0; (alternative = gx_alternative_at(k)); k++) {
        if (!covers(alternative, op) || i-- > 0)
            continue;
        if (pattern)
            write_pattern(alternative, pattern, pattern_size);
        return alternative->name;
    }
    return NULL;
}
