/* The order of an epilogue's steps: checked, and made a chain of ops that each have the
 * fixed order. */
#include "epilogue_order.h"

#include <stdio.h>

#include "infer.h"
#include "number.h"

const char *const gx_epilogue_step_names[] = { "scale", "bias", "residual", "act", NULL };

static int count_named(const gx_attr *order, int step)
{
    int n = 0;

    for (int64_t i = 0; i < order->i; i++)
        n += order->list[i] == step;
    return n;
}

bool gx_expect_order(gx_diagnostics *list, const gx_node *node, const char *prefix,
                     const gx_epilogue_steps *steps)
{
    char key[32];

    if (!steps->order->present)
        return true;
    snprintf(key, sizeof key, "%sorder", prefix);
    for (int step = 0; step < GX_N_EPILOGUE_STEPS; step++) {
        const char *name = gx_epilogue_step_names[step];
        const int n = count_named(steps->order, step);

        if (n > 1)
            gx_misfit(list, node, key, "%s names %s twice", key, name);
        else if (n == 1 && !steps->has[step] && step != GX_EPILOGUE_STEP_ACT)
            gx_misfit(list, node, key, "%s names %s, and there is no field \"%s%s\"", key,
                      name, prefix, name);
        else if (n == 0 && steps->has[step])
            gx_misfit(list, node, key,
                      "%s leaves out %s, expected each step that is given", key, name);
        else
            continue;
        return false;
    }
    return true;
}

/* True where the op that has `steps` may do this one after them. */
static bool may_follow(unsigned steps, int step)
{
    return step == GX_EPILOGUE_STEP_SCALE ? steps == 0
                                          : !(steps & 1u << GX_EPILOGUE_STEP_ACT);
}

gx_epilogue_chain gx_epilogue_split(const gx_epilogue_steps *steps)
{
    gx_epilogue_chain chain = { .n = 0 };
    const bool given = steps->order->present;
    const int64_t n = given ? steps->order->i : GX_N_EPILOGUE_STEPS;

    for (int64_t i = 0; i < n; i++) {
        const int step = given ? (int)steps->order->list[i] : (int)i;

        if (!steps->has[step])
            continue;
        if (chain.n == 0 || !may_follow(chain.steps[chain.n - 1], step))
            chain.n++;
        chain.steps[chain.n - 1] |= 1u << step;
    }
    return chain;
}

/* The op that applies the activation keeps `pre`, or the last one where there is none. */
static int keeper_of(const gx_epilogue_chain *chain)
{
    for (int i = 0; i < chain->n; i++) {
        if (chain->steps[i] & 1u << GX_EPILOGUE_STEP_ACT)
            return i;
    }
    return chain->n - 1;
}

void gx_epilogue_build(gx_builder *builder, int32_t id, const gx_epilogue_chain *chain,
                       const gx_epilogue_operands *operands)
{
    const char *name = gx_builder_graph(builder)->nodes[id].name;
    const int keeper = keeper_of(chain);
    const char *x = operands->x;

    for (int i = 0; i < chain->n; i++) {
        const bool last = i + 1 == chain->n;
        const unsigned steps = chain->steps[i];
        const char *out =
            last ? operands->out : gx_builder_name(builder, name, "epilogue");
        const gx_field_text fields[] = {
            { "x", x },
            { "bias", steps & 1u << GX_EPILOGUE_STEP_BIAS ? operands->bias : NULL },
            { "residual",
              steps & 1u << GX_EPILOGUE_STEP_RESIDUAL ? operands->residual : NULL },
            { "act", steps & 1u << GX_EPILOGUE_STEP_ACT ? operands->act : NULL },
            { "scale", steps & 1u << GX_EPILOGUE_STEP_SCALE ? operands->scale : NULL },
            { "out", out },
            { "pre", i == keeper ? operands->pre : NULL },
        };
        const size_t n_fields = sizeof fields / sizeof fields[0];

        if (last)
            gx_builder_rewrite(builder, id, "epilogue", fields, n_fields);
        else
            gx_builder_node(builder, "epilogue", out, id, fields, n_fields);
        x = out;
    }
}

const char *gx_factor_text(gx_builder *builder, double value)
{
    char text[GX_REAL_TEXT];

    if (value == 1.0)
        return NULL;
    return gx_arena_text(gx_builder_graph(builder)->arena, gx_real_text(value, text));
}
