/* Models whose results are known exactly. */
#include "support_numerics.h"

#include <stddef.h>
#include <string.h>

#include "support_numerics_texts.h"

#if GX_HAVE_CUDA
#include "wgmma.h"
#endif

#define PRODUCTS "lt", "tile", "lt_fused", "fused"
#define NO_TF32                    \
    {                              \
        "f32", "bf16", "f16", NULL \
    }
#define EYE                                 \
    {                                       \
        "eye", 2, 64, 64, .value = identity \
    }
#define SMALL_EYE                         \
    {                                     \
        "eye", 2, 8, 8, .value = identity \
    }
#define SMALL(rows)                                              \
    {                                                            \
        { "dy", 2, rows, 8, .value = one_and_small }, SMALL_EYE, \
        {                                                        \
            0                                                    \
        }                                                        \
    }
#define UPDATE(name, in, out, optimizer, ...)                                           \
    {                                                                                   \
        name, UPDATES(in, out, optimizer), __VA_ARGS__,                                 \
            { { "dy", 2, 192, out, .value = one_and_small }, { 0 } },                   \
        {                                                                               \
            { "w.grad", 2, in, out, .value = sum_of_layer }, { "b.grad",                \
                                                               1,                       \
                                                               out,                     \
                                                               1,                       \
                                                               .value = sum_of_layer,   \
                                                               .addend = one_and_small, \
                                                               .n_addends = 192 },      \
            {                                                                           \
                0                                                                       \
            }                                                                           \
        }                                                                               \
    }
#define SMALL_SUM(name, sum, n)                                              \
    {                                                                        \
        name, 1, 8, 1, .value = sum, .addend = one_and_small, .n_addends = n \
    }

#define TURNED_SUM(name, rank, rows, columns)                                       \
    {                                                                               \
        name, rank, rows, columns, .value = sum_of_halves, .addend = one_and_small, \
                                   .n_addends = 1536                                \
    }

/* A loss whose derivative is summed up; and that loss behind a product of wide numbers.
 */
#define SUMS(name, text, x, addend_of, sum, rounding)             \
    {                                                             \
        name, text, NO_TF32, { "head", "fused", NULL },           \
            { { "x", 2, 1536, 8, .value = x }, SMALL_EYE },       \
        {                                                         \
            {                                                     \
                "b.grad", 1, 8, 1, sum, addend_of, 1536, rounding \
            }                                                     \
        }                                                         \
    }
#define WIDE_TAIL(name, text)                                     \
    {                                                             \
        name, text, { "f32" }, { "head" },                        \
            { { "x", 2, 1536, 8, .value = far_out }, SMALL_EYE }, \
        {                                                         \
            {                                                     \
                "y", 2, 1536, 8, .value = far_out                 \
            }                                                     \
        }                                                         \
    }
#define TRAINED ", epilogue: {bias: b}"
#define FIXED ", epilogue: {bias: c}"
#define TAILS(loss, t, op, fields, x, addend, sum, rounding)                            \
    SUMS(loss "_sums", TAIL(TRAINED, ", b.grad", t, op, fields), x, addend, sum,        \
         rounding),                                                                     \
        SUMS(loss "_hand_sums",                                                         \
             TAIL_BY_HAND(TRAINED, BIAS_BY_HAND, ", b.grad", t, op, fields), x, addend, \
             sum, rounding),                                                            \
        WIDE_TAIL(loss "_wide", TAIL(TRAINED, "", t, op, fields)),                      \
        WIDE_TAIL(loss "_fixed", TAIL(FIXED, "", t, op, fields)),                       \
        WIDE_TAIL(loss "_bare", TAIL("", "", t, op, fields)),                           \
        WIDE_TAIL(loss "_hand_wide",                                                    \
                  TAIL_BY_HAND(TRAINED, BIAS_BY_HAND, ", b.grad", t, op, fields)),      \
        WIDE_TAIL(loss "_hand_fixed", TAIL_BY_HAND(FIXED, "", ", dz", t, op, fields)),  \
        WIDE_TAIL(loss "_hand_bare", TAIL_BY_HAND("", "", ", dz", t, op, fields))

const numerics_model numerics_models[] = {
    { "shared",
      SHARED,
      { "f32", "tf32", "bf16", "f16", NULL },
      { PRODUCTS, NULL },
      { { 0 } },
      { { "p.grad", 2, 6, 5, .value = thirteen },
        { "w.grad", 2, 4, 4, .value = twenty_four },
        { "v.grad", 2, 4, 4, .value = twenty_four },
        { "b.grad", 1, 4, 1, .value = fifteen },
        { 0 } } },
    { "small_sums",
      SMALL_SUMS("6144"),
      NO_TF32,
      { PRODUCTS, "wide", NULL },
      SMALL(6144),
      { SMALL_SUM("alone", sum_of_small, 6144),
        SMALL_SUM("behind", sum_of_small, 6144),
        { "dx", 2, 6144, 8, .value = one_and_small },
        { "weight", 2, 8, 8, .value = sum_of_small },
        { "sum", 1, 8, 1, .value = sum_of_small },
        { "sum_to", 1, 8, 1, .value = sum_of_small },
        { 0 } } },
    { "few_sums",
      SMALL_SUMS("384"),
      NO_TF32,
      { PRODUCTS, "direct", "direct_fused", NULL },
      SMALL(384),
      { SMALL_SUM("alone", sum_of_few, 384),
        SMALL_SUM("behind", sum_of_few, 384),
        { "dx", 2, 384, 8, .value = one_and_small },
        { "weight", 2, 8, 8, .value = sum_of_few },
        { "sum", 1, 8, 1, .value = sum_of_few },
        { "sum_to", 1, 8, 1, .value = sum_of_few },
        { 0 } } },
    { "small_layers",
      SMALL_LAYERS,
      NO_TF32,
      { PRODUCTS, "direct_fused", "direct_pair", NULL },
      SMALL(192),
      { SMALL_SUM("bias", sum_of_layer, 192),
        { "weight", 2, 8, 8, .value = sum_of_layer },
        { "dx", 2, 192, 8, .value = one_and_small },
        SMALL_SUM("behind", sum_of_layer, 192),
        { "weight2", 2, 8, 8, .value = sum_of_layer },
        { "dx2", 2, 192, 8, .value = one_and_small },
        SMALL_SUM("bias3", sum_of_layer, 192),
        { "weight3", 2, 8, 8, .value = sum_of_layer },
        { "dx3", 2, 192, 8, .value = one_and_small },
        { "dx4", 2, 192, 8, .value = one_and_small },
        SMALL_SUM("bias4", sum_of_layer, 192),
        { 0 } } },
    { "small_runs",
      SMALL_RUNS,
      NO_TF32,
      { "chain", "weights", NULL },
      { { "dy", 2, 192, 8, .value = one_and_small }, SMALL_EYE, { 0 } },
      { SMALL_SUM("bias", sum_of_layer, 192),
        { "weight", 2, 8, 8, .value = sum_of_layer },
        SMALL_SUM("bias2", sum_of_layer, 192),
        { "weight2", 2, 8, 8, .value = sum_of_layer },
        { "dx", 2, 192, 8, .value = one_and_small },
        { "dx2", 2, 192, 8, .value = one_and_small },
        { 0 } } },
    { "turned_sums",
      TURNED_SUMS,
      { "f32", "tf32", NULL },
      { "lt_turned_dx", "wide_fused", NULL },
      { { "dy", 2, 1536, 128, .value = one_and_small }, { 0 } },
      { { "dx", 2, 1536, 128, .value = one_and_small },
        TURNED_SUM("bias", 1, 128, 1),
        TURNED_SUM("weight", 2, 128, 128),
        TURNED_SUM("bias2", 1, 128, 1),
        TURNED_SUM("weight2", 2, 128, 128),
        { 0 } } },
    UPDATE("small_adam", 8, 8, "adam: {}", { "bf16", NULL }, { "weights_update", NULL }),
    UPDATE("small_adamw", 8, 8, "adamw: {}", { "bf16", NULL },
           { "weights_update", NULL }),
    UPDATE("large_adam", 264, 8200, "adam: {}, moments: param",
           { "tf32", "bf16", "f16", NULL }, { "wgmma_update", NULL }),
    UPDATE("large_adamw", 264, 8200, "adamw: {}, moments: param",
           { "tf32", "bf16", "f16", NULL }, { "wgmma_update", NULL }),
    { "small_gradients",
      SMALL_GRADIENTS,
      NO_TF32,
      { PRODUCTS, NULL },
      SMALL(6144),
      { { "w.grad", 2, 8, 8, .value = sum_of_small },
        SMALL_SUM("b.grad", sum_of_small, 6144),
        SMALL_SUM("c.grad", sum_of_small, 6144),
        { 0 } } },
    { "large",
      LARGE,
      { "bf16", "f16", NULL },
      { "wgmma", "wgmma_fused", NULL },
      { { "dy", 2, 192, 88, .value = one_and_small },
        { "far", 2, 192, 88, .value = far_away },
        { "spread", 2, 88, 8200, .value = spread },
        { "turned", 2, 8200, 88, .value = spread_turned },
        { "kept", 2, 192, 8200, .value = far_kept },
        { 0 } },
      { { "alone", 2, 192, 8200, .value = one_and_small },
        { "gelu", 2, 192, 8200, .value = far_spread },
        { "relu", 2, 192, 8200, .value = far_spread },
        { "dx", 2, 192, 8200, .value = small_where_kept },
        LARGE_SUM("behind"),
        LARGE_SUM("behind2"),
        { 0 } } },
    { "wide",
      WIDE,
      { "f32", NULL },
      { PRODUCTS, NULL },
      { { "a", 2, 64, 64, .value = wide }, EYE, { 0 } },
      { { "left", 2, 64, 64, .value = wide },
        { "right", 2, 64, 64, .value = wide_transposed },
        { "bias", 2, 64, 64, .value = wide },
        { "relu", 2, 64, 64, .value = wide },
        { "dx", 2, 64, 64, .value = wide },
        { "db", 1, 64, 1, .value = wide_sum },
        { 0 } } },
    { "wide_gradients",
      WIDE_GRADIENTS,
      { "f32", NULL },
      { PRODUCTS, NULL },
      { { "a", 2, 64, 64, .value = wide }, EYE, { 0 } },
      { { "p.grad", 2, 64, 64, .value = wide_transposed },
        { "w.grad", 2, 64, 64, .value = wide_transposed },
        { "u.grad", 2, 64, 64, .value = wide_transposed },
        { "b.grad", 1, 64, 1, .value = wide_row_sum },
        { 0 } } },
    { "wide_kept",
      WIDE_KEPT,
      { "f32", NULL },
      { "lt", "tile", "lt_bias", "fused", NULL },
      { { "a", 2, 64, 64, .value = wide }, EYE, { 0 } },
      { { "g", 2, 64, 64, .value = wide },
        { "g_pre", 2, 64, 64, .value = wide },
        { "i", 2, 64, 64, .value = wide },
        { "i_pre", 2, 64, 64, .value = wide },
        { 0 } } },
    { "wide_third",
      WIDE_THIRD,
      { "f32", NULL },
      { "fused", NULL },
      { { "a", 2, 64, 64, .value = wide }, EYE, { 0 } },
      { { "g", 2, 64, 64, .value = wide }, { 0 } } },
    TAILS("mse", POINTS, "mse", "x: y, target: t", half_of_small, one_and_small,
          sum_of_halves, 0),
    TAILS("l1", POINTS, "l1", "x: y, target: t", far_out, one, sum_of_ones, 0),
    TAILS("bce", POINTS, "bce_with_logits", "x: y, target: t", far_out, one, sum_of_ones,
          0x1p-8),
    TAILS("sce", LABELS, "softmax_cross_entropy", "logits: y, labels: t", even, share,
          sum_of_shares, 0x1p-8),
    { 0 },
};

const numerics_model *numerics_find(const char *name)
{
    for (const numerics_model *model = numerics_models; model->name; model++)
        if (strcmp(model->name, name) == 0)
            return model;
    return NULL;
}

bool numerics_is_wide(const numerics_model *model)
{
    return model->precisions[1] == NULL;
}

bool numerics_has_f32(const char *alternative)
{
    return strncmp(alternative, "direct", 6) != 0 &&
           strncmp(alternative, "lt_turned", 9) != 0 &&
           strncmp(alternative, "wgmma", 5) != 0 && strcmp(alternative, "chain") != 0 &&
           strncmp(alternative, "weights", 7) != 0;
}

#if GX_HAVE_CUDA
bool numerics_is_there(const char *alternative, int cc)
{
    return strncmp(alternative, "wgmma", 5) != 0 ||
           (gx_wgmma_is_built() && cc == GX_WGMMA_CC);
}
#endif

bool numerics_is_needed(const numerics_model *model, const char *precision,
                        const char *alternative)
{
    if (strcmp(precision, "f32") == 0 && !numerics_has_f32(alternative))
        return false;
    for (const char *const *need = model->needed; *need; need++)
        if (strcmp(*need, alternative) == 0)
            return true;
    return false;
}
