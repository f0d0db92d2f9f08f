/* The alternatives for large products, without a GPU: what they take and what they
 * refuse, what they launch, and calls of theirs that fail. */
#include "fake_cuda_planned.h"

#include <stdio.h>
#include <string.h>

#include "gemm_cuda.h"
#include "plan.h"
#include "support_group.h"
#include "wgmma.h"

#define FIELDS                                                                \
    "gexec: 1\nname: m\nprecision: $P\ninputs:\n"                             \
    "  x: {shape: [8, 16]}\n  w: {shape: [16, 24]}\n  xt: {shape: [16, 8]}\n" \
    "  wt: {shape: [24, 16]}\n  c: {shape: [8, 24]}\n  s: {shape: [24]}\n"    \
    "  xb: {shape: [3, 8, 16]}\n  wb: {shape: [3, 16, 24]}\n"                 \
    "  kept: {shape: [8, 24]}\n  one: {shape: [], dtype: f32}\n"              \
    "ops:\n  - {op: gemm, name: y, "

enum { ALONE = 1, WITH_TAIL = 2, N_SM = 132 /* of the simulated card */ };

/* A card as it is; and one that the product is not for. */
static void expect(const char *fields, const char *precision, const char *name, int n,
                   const int64_t *size, const gx_ctx *card, const char *why)
{
    char text[2000];
    test_group g;

    snprintf(text, sizeof text, "%s%s}\noutputs: [y]\n", FIELDS, fields);
    test_group_open(&g, text, precision, name, n);
    if (size != NULL) {
        const bool turned_a = g.calls[0].attr[GX_GEMM_TRANS_A].i != 0;
        const bool turned_b = g.calls[0].attr[GX_GEMM_TRANS_B].i != 0;
        gx_tensor *a = &g.calls[0].arg[GX_GEMM_A], *b = &g.calls[0].arg[GX_GEMM_B];

        for (int i = 0; i < g.group.n_calls; i++) {
            for (int arg = 0; arg < GX_MAX_ARGS; arg++) {
                gx_tensor *t = &g.calls[i].arg[arg];

                if (t->rank == 2 && t != a && t != b)
                    t->dim[0] = size[0], t->dim[1] = size[1];
                else if (t->rank == 1)
                    t->dim[0] = size[1];
            }
        }
        a->dim[turned_a ? 1 : 0] = size[0];
        a->dim[turned_a ? 0 : 1] = size[2];
        b->dim[turned_b ? 1 : 0] = size[2];
        b->dim[turned_b ? 0 : 1] = size[1];
    }
    const char *reason = g.at->refuses(&g.group, card);

    if (why ? !reason || !strstr(reason, why) : reason != NULL)
        fail_msg("%s, %s: %s; expected: %s", fields, name, reason ? reason : "takes it",
                 why ? why : "takes it");
    test_group_close(&g);
}

static gx_ctx card_of(int cc, int n_sm)
{
    gx_ctx card = test_card;

    card.cc = cc;
    card.n_sm = n_sm;
    return card;
}

static void large_products_alone_are_taken(void **state)
{
    static const int64_t large[] = { 2048, 4096, 1024 };
    static const int64_t ragged[] = { 1999, 4088, 1000 };
    static const struct {
        const char *fields, *precision, *name;
        int n;
        const int64_t *size;
        const char *why; /* NULL: it takes it */
    } cases[] = {
        { "a: x, b: w", "bf16", "wgmma", ALONE, large, NULL },
        { "a: x, b: w", "f16", "wgmma", ALONE, ragged, NULL },
        { "a: x, b: w", "tf32", "wgmma", ALONE, large, "only bf16 and f16" },
        { "a: x, b: w", "f32", "wgmma", ALONE, large, "only bf16 and f16" },
        { "a: xt, b: w, trans_a: true", "bf16", "wgmma", ALONE, large, NULL },
        { "a: x, b: wt, trans_b: true", "bf16", "wgmma", ALONE, ragged, NULL },
        { "a: xt, b: wt, trans_a: true, trans_b: true", "bf16", "wgmma", ALONE, large,
          "both operands" },
        { "a: x, b: w", "bf16", "wgmma", ALONE, NULL, "small" },
        { "a: xb, b: wb", "bf16", "wgmma", ALONE, NULL, "more than one plain product" },
        { "a: x, b: w, alpha: 2", "bf16", "wgmma", ALONE, large, "more than one plain" },
        { "a: x, b: w, c: c", "bf16", "wgmma", ALONE, large, "more than one plain" },
        { "a: x, b: w, epilogue: {bias: s, act: gelu_tanh}", "bf16", "wgmma_fused",
          WITH_TAIL, ragged, NULL },
        { "a: x, b: w, epilogue: {bias: s, act: silu}", "f16", "wgmma_fused", WITH_TAIL,
          large, NULL },
        { "a: x, b: w, epilogue: {bias: s, act: tanh}", "bf16", "wgmma_fused", WITH_TAIL,
          large, "an activation other than" },
        { "a: x, b: w, epilogue: {residual: c, act: relu}", "bf16", "wgmma_fused",
          WITH_TAIL, large, "more than one plain" },
        { "a: xt, b: w, trans_a: true, epilogue: {bias: s}", "bf16", "wgmma_fused",
          WITH_TAIL, large, "something follows" },
        { "a: x, b: wt, trans_b: true}\n  - {op: epilogue.bwd, name: back, dy: y, y: "
          "kept, act: relu, dx: dx",
          "bf16", "wgmma_fused", WITH_TAIL, ragged, "read elsewhere" },
        { "a: x, b: w}\n  - {op: mse.bwd, name: back, x: y, target: kept, dx: dx", "f16",
          "wgmma_head_bwd", WITH_TAIL, ragged, NULL },
        { "a: x, b: w}\n  - {op: mse.bwd, name: back, x: y, target: kept, dx: dx", "tf32",
          "wgmma_head_bwd", WITH_TAIL, large, "only bf16 and f16" },
        { "a: xt, b: w, trans_a: true}\n  - {op: mse.bwd, name: back, x: y, target: "
          "kept, "
          "dx: dx",
          "bf16", "wgmma_head_bwd", WITH_TAIL, large, "something follows" },
        { "a: x, b: w, alpha: 2}\n  - {op: mse.bwd, name: back, x: y, target: kept, dx: "
          "dx",
          "bf16", "wgmma_head_bwd", WITH_TAIL, large, "more than one plain" },
        { "a: x, b: w}\n  - {op: mse.bwd, name: back, x: y, target: kept, dx: dx, dy: "
          "one",
          "bf16", "wgmma_head_bwd", WITH_TAIL, large, "is not 1" },
    };
    const gx_ctx card = card_of(90, 132);

    (void)state;
    if (!gx_wgmma_is_built()) {
        expect("a: x, b: w", "bf16", "wgmma", ALONE, large, &card, "without sm_90a");
        return;
    }
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        expect(cases[i].fields, cases[i].precision, cases[i].name, cases[i].n,
               cases[i].size, &card, cases[i].why);
}

static void sizes_and_cards_that_do_not_fit_are_refused(void **state)
{
    static const struct {
        int64_t size[3];
        int cc, n_sm;
        const char *why;
    } cases[] = {
        { { 2048, 4096, 1024 }, 100, 132, "only sm_90" },
        { { 2048, 4096, 1024 }, 80, 108, "only sm_90" },
        { { 2048, 4092, 1024 }, 90, 132, "multiple of 16 bytes" },
        { { 2048, 4096, 1020 }, 90, 132, "multiple of 16 bytes" },
        { { 1024, 1024, 128 }, 90, 32, NULL },
        { { 1024, 1024, 120 }, 90, 32, "small" },
        { { 1024, 1024, 1024 }, 90, 64, NULL },
        { { 1024, 1024, 1024 }, 90, 66, "small" },
        { { (int64_t)1 << 31, 8, 8 }, 90, 132, "2^31" },
    };

    (void)state;
    if (!gx_wgmma_is_built())
        skip();
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const gx_ctx card = card_of(cases[i].cc, cases[i].n_sm);

        expect("a: x, b: w", "bf16", "wgmma", ALONE, cases[i].size, &card, cases[i].why);
    }
    gx_ctx card = card_of(90, 132);

    card.shared_optin_bytes = 164 << 10;
    expect("a: x, b: w", "bf16", "wgmma", ALONE, cases[0].size, &card, "shared memory");
}

/* --- gradients with updates: what is refused --- */

/* A layer whose gradients are the last of a step, and their updates. */
#define LAYER_UPDATED(rows, in, out, more, optimizer)                                 \
    "gexec: 1\nname: m\nprecision: $P\ninputs:\n  x: {shape: [" #rows ", " #in        \
    "], init: normal}\n  t: {shape: [" #rows ", " #out "], init: normal}\nparams:\n"  \
    "  w: {shape: [" #in ", " #out "], init: he_normal}\n  b: {shape: [" #out         \
    "]}\nops:\n"                                                                      \
    "  - {op: gemm, name: y, a: x, b: w, epilogue: {bias: b}}\n"                      \
    "  - {op: mse, name: loss, x: y, target: t}\nbackward: loss\noutputs: [loss" more \
    "]\noptimizer: {" optimizer "}\n"
#define ADAMW "adamw: {}"

static void large_gradients_with_updates_are_taken(void **state)
{
    static const struct {
        const char *text, *precision;
        int cc, n_sm;
        const char *why; /* NULL: it takes it */
    } cases[] = {
        { LAYER_UPDATED(264, 1000, 2056, "", ADAMW), "bf16", 90, 132, NULL },
        { LAYER_UPDATED(264, 1000, 2056, "", "adam: {}, moments: param"), "f16", 90, 132,
          NULL },
        { LAYER_UPDATED(264, 1000, 2056, "", ADAMW), "tf32", 90, 132, NULL },
        { LAYER_UPDATED(264, 1000, 2056, "", ADAMW), "f32", 90, 132,
          "only tf32, bf16 and f16" },
        { LAYER_UPDATED(264, 1000, 2056, "", ADAMW), "bf16", 100, 132, "only sm_90" },
        { LAYER_UPDATED(264, 1000, 2056, "", ADAMW), "bf16", 90, 146, "small" },
        { LAYER_UPDATED(56, 1000, 2056, "", ADAMW), "bf16", 90, 132, "small" },
        { LAYER_UPDATED(264, 1000, 2052, "", ADAMW), "bf16", 90, 132, "8 does not" },
        { LAYER_UPDATED(264, 1004, 2056, "", ADAMW), "tf32", 90, 132, "8 does not" },
        { LAYER_UPDATED(264, 1000, 2056, "", ADAMW ", moments: f32"), "bf16", 90, 132,
          "differ in type" },
        { LAYER_UPDATED(264, 1000, 2056, "", ADAMW ", master: f32"), "bf16", 90, 132,
          "have a master" },
    };

    (void)state;
    if (!gx_wgmma_is_built())
        skip();
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const gx_ctx card = card_of(cases[i].cc, cases[i].n_sm);
        test_group g;

        test_group_open(&g, cases[i].text, cases[i].precision, "wgmma_update", 4);
        const char *reason = g.at->refuses(&g.group, &card);

        if (cases[i].why ? !reason || !strstr(reason, cases[i].why) : reason != NULL)
            fail_msg("%zu: %s; expected: %s", i, reason ? reason : "takes it",
                     cases[i].why ? cases[i].why : "takes it");
        test_group_close(&g);
    }
}

/* --- what is launched --- */

#define LAYERS                                      \
    "gexec: 1\nname: m\nprecision: bf16\ninputs:\n" \
    "  x: {shape: [520, 256], init: normal}\n"      \
    "  kept: {shape: [520, 3400], init: normal}\n"  \
    "  w: {shape: [256, 3400], init: normal}\n"     \
    "  s: {shape: [3400], init: normal}\nops:\n"
#define ONE LAYERS "  - {op: gemm, name: y, a: x, b: w}\noutputs: [y]\n"
#define FORWARD                                                                    \
    LAYERS "  - {op: gemm, name: y, a: x, b: w, epilogue: {bias: s, act: relu}}\n" \
           "outputs: [y]\n"
#define BACKWARD                                                                    \
    LAYERS "  - {op: gemm, name: y, a: x, b: w}\n"                                  \
           "  - {op: epilogue.bwd, name: back, dy: y, y: kept, act: relu, dx: dx, " \
           "dbias: db}\noutputs: [dx, db]\n"

#define LOSS                                                             \
    LAYERS "  - {op: gemm, name: y, a: x, b: w, epilogue: {bias: s}}\n"  \
           "  - {op: mse.bwd, name: back, x: y, target: kept, dx: dx}\n" \
           "  - {op: mse, name: loss, x: y, target: kept}\noutputs: [dx, loss]\n"
#define SLOPE                                                           \
    LAYERS "  - {op: gemm, name: y, a: x, b: w}\n"                      \
           "  - {op: l1.bwd, name: back, x: y, target: kept, dx: dx}\n" \
           "outputs: [dx]\n"

static void each_is_planned_with_its_workspace(void **state)
{
    static const struct {
        const char *text, *name, *node;
        bool hands;       /* tiles from warps to warps */
        size_t workspace; /* besides */
        long maps;
        int launches;
    } cases[] = {
        { ONE, "wgmma", "y", false, 0, 2, 1 },
        { FORWARD, "wgmma_fused", "y", true, 0, 2, 1 },
        /* A loss of each of two blocks of 42 clusters: pairs of tiles, 3 x 14. */
        { LOSS, "wgmma_head", "y", true, 84 * 8, 2, 1 },
        { SLOPE, "wgmma_head_bwd", "y", true, 0, 2, 1 },
        /* Sums of 5 tiles of up to 128 rows. */
        { BACKWARD, "wgmma_fused", "back", true, 5 * 3400 * 4, 2, 2 },
        { LAYER_UPDATED(264, 1000, 2056, "", ADAMW), "wgmma_update", "y.bwd.weight", true,
          0, 3, 1 },
        { LAYER_UPDATED(264, 1000, 2056, ", b.grad, w.grad", ADAMW), "wgmma_update",
          "y.bwd.weight", true, 0, 3, 1 },
    };

    (void)state;
    if (!gx_wgmma_is_built())
        skip();
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        test_walk model = test_walk_parse(cases[i].text, "bf16", GX_TRAIN, 1);
        planned of = planned_open(model.graph, cases[i].name, 1);
        const gx_unit *unit = test_unit_of(of.plan, cases[i].node);
        gx_error err;

        assert_string_equal(unit->alternative->name, cases[i].name);
        assert_int_equal(
            unit->workspace_bytes,
            cases[i].workspace +
                (cases[i].hands ? gx_wgmma_handed_bytes(GX_TILE_BF16, N_SM) : 0));
        fake_begin();
        assert_ok(planned_run(&of, &err), &err);
        assert_true(fake_calls("cuTensorMapEncodeTiled") >= cases[i].maps);
        assert_int_equal(unit->n_launches, cases[i].launches);
        if (of.plan->n_units == 1)
            assert_int_equal(fake_calls("cudaLaunchKernelExC") * cases[i].maps,
                             fake_calls("cuTensorMapEncodeTiled") * cases[i].launches);
        planned_close(&of);
        test_walk_free(&model);
    }
    assert_int_equal(fake_live(), 0);
}

/* Of more layers than one launch has room for. */
#define DEEP                                                                           \
    "gexec: 1\nname: m\nprecision: $P\ndims: {width: 520}\ninputs:\n"                  \
    "  x: {shape: [264, width], init: normal}\n  t: {shape: [264, width], init: "      \
    "normal}\n"                                                                        \
    "ops:\n  - repeat:\n      name: layer\n      count: 9\n      carry: {h: x}\n"      \
    "      params:\n        w: {shape: [width, width], init: he_normal}\n"             \
    "        b: {shape: [width]}\n      ops:\n"                                        \
    "        - {op: gemm, name: fc, a: h, b: w, epilogue: {bias: b, act: relu}, out: " \
    "h}\n"                                                                             \
    "  - {op: mse, name: loss, x: h, target: t}\nbackward: loss\noutputs: [loss]\n"    \
    "optimizer: {" ADAMW "}\n"

static void many_layers_take_several_launches(void **state)
{
    /* Seven layers are the most of a launch. Of tf32 each has its second operand, 264 x
     * 520, transposed by a launch of its own. */
    static const struct {
        const char *precision;
        gx_tile_math math;
        int launches;
        size_t copies;
    } cases[] = { { "bf16", GX_TILE_BF16, 2, 0 },
                  { "tf32", GX_TILE_TF32, 2 + 9, sizeof(float[7][520][264]) } };

    (void)state;
    if (!gx_wgmma_is_built())
        skip();
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        test_walk model = test_walk_parse(DEEP, cases[i].precision, GX_TRAIN, 1);
        planned of = planned_open(model.graph, "wgmma_update", 1);
        const gx_unit *unit = test_unit_of(of.plan, "layer.0.fc.bwd.weight");
        gx_error err;

        assert_int_equal(gx_plan_info_get(of.plan).order, GX_ORDER_DATA_FIRST);
        assert_string_equal(unit->alternative->name, "wgmma_update");
        assert_int_equal(unit->n_nodes, 4 * 9);
        assert_int_equal(unit->n_launches, cases[i].launches);
        assert_int_equal(unit->workspace_bytes,
                         gx_wgmma_handed_bytes(cases[i].math, N_SM) + cases[i].copies);
        fake_begin();
        assert_ok(planned_run(&of, &err), &err);
        assert_int_equal(fake_calls("cuTensorMapEncodeTiled") % (3 * 9), 0);
        planned_close(&of);
        test_walk_free(&model);
    }
    assert_int_equal(fake_live(), 0);
}

/* The second operand's copy goes ahead of the kernel. */
static CUtensorMapDataType map_types[3];
static int n_launches;

static void note_types(void **args)
{
    const gx_wgmma_update *update = args[0];

    if (++n_launches != 2)
        return;
    memcpy(&map_types[0], &update->layer[0].maps.a, sizeof map_types[0]);
    memcpy(&map_types[1], &update->layer[0].maps.b, sizeof map_types[1]);
    memcpy(&map_types[2], &update->layer[0].sums, sizeof map_types[2]);
}

/* The gradient of a bias is a sum of what is there. */
static void operands_are_rounded_to_tf32_and_sums_are_not(void **state)
{
    gx_prepared prepared = { .n_algos = 1 };
    gx_ctx ctx = test_card;
    gx_error err = { 0 };
    test_group g;

    (void)state;
    if (!gx_wgmma_is_built())
        skip();
    fake_begin();
    test_group_open(&g, LAYER_UPDATED(264, 1000, 2056, "", ADAMW), "tf32", "wgmma_update",
                    4);
    test_group_align(&g);
    ctx.workspace = gx_planned_workspace();
    assert_ok(g.at->prepare(&g.group, &ctx, &prepared, &err), &err);
    n_launches = 0;
    fake_on_launch(note_types);
    assert_ok(g.at->launch(&g.group, &prepared, &ctx, &err), &err);
    fake_on_launch(NULL);
    g.at->release(&prepared);
    assert_int_equal(n_launches, 2);
    assert_int_equal(map_types[0], CU_TENSOR_MAP_DATA_TYPE_TFLOAT32);
    assert_int_equal(map_types[1], CU_TENSOR_MAP_DATA_TYPE_TFLOAT32);
    assert_int_equal(map_types[2], CU_TENSOR_MAP_DATA_TYPE_FLOAT32);
    test_group_close(&g);
}

/* --- calls that fail --- */

static void a_map_that_is_refused_is_told_of(void **state)
{
    gx_error err;

    (void)state;
    if (!gx_wgmma_is_built())
        skip();
    test_walk model = test_walk_parse(ONE, "bf16", GX_TRAIN, 1);
    planned of = planned_open(model.graph, "wgmma", 1);

    fake_begin();
    fake_fail("cuTensorMapEncodeTiled", 2, 1);
    assert_int_equal(planned_run(&of, &err), GX_ERR_CUDA);
    assert_non_null(strstr(err.message, "cuTensorMapEncodeTiled(256 x 3400"));
    assert_int_equal(err.native, 1);
    fake_begin();
    planned_close(&of);
    test_walk_free(&model);
    assert_int_equal(fake_live(), 0);
}

static void a_driver_without_maps_is_told_of(void **state)
{
    PFN_cuTensorMapEncodeTiled_v12000 encode;
    gx_error err = { 0 };

    (void)state;
    fake_begin();
    assert_ok(gx_tensor_map_find(&encode, &err), &err);
    assert_true(encode != NULL);
    fake_set_driver(11080);
    assert_int_equal(gx_tensor_map_find(&encode, &err), GX_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "the driver has no cuTensorMapEncodeTiled"));
    assert_true(encode == NULL);
    fake_set_driver(13000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_products_alone_are_taken),
        cmocka_unit_test(sizes_and_cards_that_do_not_fit_are_refused),
        cmocka_unit_test(large_gradients_with_updates_are_taken),
        cmocka_unit_test(each_is_planned_with_its_workspace),
        cmocka_unit_test(many_layers_take_several_launches),
        cmocka_unit_test(operands_are_rounded_to_tf32_and_sums_are_not),
        cmocka_unit_test(a_map_that_is_refused_is_told_of),
        cmocka_unit_test(a_driver_without_maps_is_told_of),
    };

    return cmocka_run_group_tests_name("fault_wgmma", tests, NULL, NULL);
}
