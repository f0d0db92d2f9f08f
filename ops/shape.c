/* What the ops that move elements share: lists of integers, axes, their diagnostics. */
#include "shape.h"

#include <string.h>

#include "infer.h"
#include "resolve.h"

void gx_item_key(char key[16], const char *name, int i)
{
    const size_t n = strlen(name);

    memcpy(key, name, n);
    key[n] = '.';
    key[n + 1] = (char)('0' + i);
    key[n + 2] = 0;
}

bool gx_expect_axis(gx_diagnostics *list, const gx_node *node, const char *key,
                    int64_t axis, const char *of, const gx_value *value)
{
    char shape[128];

    if (value->rank == 0)
        gx_misfit(list, node, of, "%s is a scalar, expected one dimension or more", of);
    else if (gx_axis_of(axis, value->rank) < 0)
        gx_misfit(list, node, key,
                  "%s is %lld, expected one from %d to %d: %s has shape %s", key,
                  (long long)axis, -value->rank, value->rank - 1, of,
                  gx_shape_text(value->rank, value->dim, shape, sizeof shape));
    else
        return true;
    return false;
}

const char *gx_int_text(gx_builder *builder, int64_t value)
{
    return gx_arena_format(gx_builder_graph(builder)->arena, "%lld", (long long)value);
}
