/* What the infer hooks of rows share: expectations with their diagnostics. */
#include "infer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { SHAPE_TEXT = 128 };

/* The field itself, or an item of its list; the first item may be all of a list. */
static bool is_place_of(const char *written, const char *key)
{
    const size_t length = strlen(key);
    const char *item = strrchr(key, '.');
    const size_t stem = item ? (size_t)(item - key) : 0;

    if (strncmp(written, key, length) == 0)
        return written[length] == '\0' || written[length] == '.';
    return item && strcmp(item, ".0") == 0 && strlen(written) == stem &&
           strncmp(written, key, stem) == 0;
}

void gx_misfit(gx_diagnostics *list, const gx_node *node, const char *key,
               const char *format, ...)
{
    gx_pos pos = node->pos;
    char text[512];
    va_list args;

    for (int f = node->n_fields - 1; key && f >= 0; f--)
        if (is_place_of(node->fields[f].key, key))
            pos = node->fields[f].pos;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    gx_report(list, pos, "%s \"%s\": %s", node->op_name,
              node->origin ? node->origin : node->name, text);
}

bool gx_expect_float(gx_diagnostics *list, const gx_node *node, const char *key,
                     const gx_value *value)
{
    if (gx_is_float(value->dtype))
        return true;
    gx_misfit(list, node, key, "%s is %s, expected f32, bf16 or f16", key,
              gx_dtype_name(value->dtype));
    return false;
}

bool gx_expect_dtype(gx_diagnostics *list, const gx_node *node, const char *key,
                     const gx_value *value, gx_dtype dtype)
{
    if (value->dtype == dtype)
        return true;
    gx_misfit(list, node, key, "%s is %s, expected %s", key, gx_dtype_name(value->dtype),
              gx_dtype_name(dtype));
    return false;
}

bool gx_expect_rank(gx_diagnostics *list, const gx_node *node, const char *key,
                    const gx_value *value, int rank)
{
    char shape[SHAPE_TEXT];

    if (value->rank == rank)
        return true;
    gx_misfit(list, node, key, "%s has shape %s, expected %d %s", key,
              gx_shape_text(value->rank, value->dim, shape, sizeof shape), rank,
              rank == 1 ? "dimension" : "dimensions");
    return false;
}

bool gx_expect_like(gx_diagnostics *list, const gx_node *node, const char *key,
                    const gx_value *value, int rank, const int64_t *dim)
{
    char have[SHAPE_TEXT], want[SHAPE_TEXT];
    bool same = value->rank == rank;

    for (int i = 0; same && i < rank; i++)
        same = value->dim[i] == dim[i];
    if (!same)
        gx_misfit(list, node, key, "%s has shape %s, expected %s", key,
                  gx_shape_text(value->rank, value->dim, have, sizeof have),
                  gx_shape_text(rank, dim, want, sizeof want));
    return same;
}

bool gx_expect_act_operand(gx_diagnostics *list, const gx_node *node, const char *key,
                           gx_act act, const gx_value *y, const gx_value *pre)
{
    const gx_act_reads reads = gx_act_reads_of[act];

    if ((reads != GX_ACT_READS_Y || y) && (reads != GX_ACT_READS_PRE || pre))
        return true;
    gx_misfit(list, node, key, "the derivative of %s needs the field \"%s\"",
              gx_act_names[act], reads == GX_ACT_READS_Y ? "y" : "pre");
    return false;
}

void gx_set_shape(gx_value *value, gx_dtype dtype, int rank, const int64_t *dim)
{
    if (!value)
        return;
    value->dtype = dtype;
    value->rank = rank;
    for (int i = 0; i < rank; i++)
        value->dim[i] = dim[i];
    value->has_shape = true;
}

/* 0 is an index wherever there is any, so it stands for none that is ignored. */
void gx_limit_index_or(gx_value *value, int64_t limit, int64_t ignored, const char *node)
{
    if (ignored >= 0 && ignored < limit)
        ignored = 0;
    if (value->index_limit == 0 || limit < value->index_limit ||
        (ignored == 0 && value->index_ignored != 0))
        value->index_node = node;
    if (value->index_limit == 0)
        value->index_ignored = ignored;
    else if (value->index_ignored != ignored)
        value->index_ignored = 0;
    if (value->index_limit == 0 || limit < value->index_limit)
        value->index_limit = limit;
}

void gx_limit_index(gx_value *value, int64_t limit, const char *node)
{
    gx_limit_index_or(value, limit, 0, node);
}

const char *gx_written(const gx_node *node, const char *key)
{
    for (int f = 0; f < node->n_fields; f++) {
        if (strcmp(node->fields[f].key, key) == 0)
            return node->fields[f].text;
    }
    return NULL;
}

double gx_elements(const gx_graph *graph, const gx_node *node, int arg)
{
    double n = 1;

    if (node->arg[arg] < 0)
        return 0;
    const gx_value *value = &graph->values[node->arg[arg]];

    for (int i = 0; i < value->rank; i++)
        n *= (double)value->dim[i];
    return n;
}
