/* The catalogue: rows are whole, in the order of their operand numbers, and load. */
#include "support.h"

#include <string.h>

#include "support_walk.h"

static void rows_are_found_by_name_and_number(void **state)
{
    const size_t n = gx_op_count();

    (void)state;
    assert_true(n >= 18);
    for (size_t i = 0; i < n; i++) {
        const gx_op *op = gx_op_at(i);

        assert_non_null(op);
        assert_ptr_equal(gx_op_find(gx_op_name(op)), op);
    }
    assert_null(gx_op_at(n));
    assert_null(gx_op_find("gem"));
    assert_null(gx_op_find(""));
    assert_null(gx_op_find("gemm.bw"));
}

static bool is_tensor(const gx_field *field)
{
    return field->kind == GX_FIELD_IN || field->kind == GX_FIELD_INOUT ||
           field->kind == GX_FIELD_OUT;
}

static void every_row_is_whole(void **state)
{
    (void)state;
    for (size_t i = 0; i < gx_op_count(); i++) {
        const gx_op *op = gx_op_at(i);
        int n_args = 0, n_attrs = 0;

        assert_true(strlen(gx_op_summary(op)) > 5);
        assert_true(strlen(gx_op_formula(op)) > 5);
        assert_non_null(op->infer);
        assert_true(op->reference || op->expand);
        assert_non_null(op->samples);
        for (const gx_field *field = gx_op_fields(op); field->name; field++) {
            n_args += is_tensor(field);
            n_attrs += !is_tensor(field);
            assert_non_null(field->doc);
            assert_true((field->kind == GX_FIELD_ENUM || field->kind == GX_FIELD_WORDS) ==
                        (field->choices != NULL));
            if (is_tensor(field))
                assert_null(field->fallback);
        }
        assert_true(n_args <= GX_MAX_ARGS && n_attrs <= GX_MAX_ATTRS);
        if (!op->internal) {
            for (int p = 0; p < GX_N_PRECISIONS; p++)
                assert_true(op->tolerance[p] > 0 && op->tolerance[p] < 0.05);
        }
    }
}

/* Kernels and references find their operands by number. */
static void operand_numbers_are_the_order_of_the_fields(void **state)
{
    static const struct {
        const char *op, *field;
        int number;
    } rows[] = {
        { "gemm", "a", GX_GEMM_A },
        { "gemm", "b", GX_GEMM_B },
        { "gemm", "epilogue.bias", GX_GEMM_BIAS },
        { "gemm", "out", GX_GEMM_OUT },
        { "gemm", "trans_a", GX_GEMM_TRANS_A },
        { "gemm", "trans_b", GX_GEMM_TRANS_B },
        { "gemm", "epilogue.act", GX_GEMM_ACT },
        { "gemm.bwd", "a", GX_GEMM_BWD_A },
        { "gemm.bwd", "b", GX_GEMM_BWD_B },
        { "gemm.bwd", "dy", GX_GEMM_BWD_DY },
        { "gemm.bwd", "y", GX_GEMM_BWD_Y },
        { "gemm.bwd", "pre", GX_GEMM_BWD_PRE },
        { "gemm.bwd", "da", GX_GEMM_BWD_DA },
        { "gemm.bwd", "db", GX_GEMM_BWD_DB },
        { "gemm.bwd", "dbias", GX_GEMM_BWD_DBIAS },
        { "gemm.bwd", "trans_a", GX_GEMM_BWD_TRANS_A },
        { "gemm.bwd", "trans_b", GX_GEMM_BWD_TRANS_B },
        { "gemm.bwd", "epilogue.act", GX_GEMM_BWD_ACT },
        { "epilogue", "x", GX_EPILOGUE_X },
        { "epilogue", "bias", GX_EPILOGUE_BIAS },
        { "epilogue", "out", GX_EPILOGUE_OUT },
        { "epilogue", "pre", GX_EPILOGUE_PRE },
        { "epilogue", "act", GX_EPILOGUE_ACT },
        { "epilogue.bwd", "dy", GX_EPILOGUE_BWD_DY },
        { "epilogue.bwd", "y", GX_EPILOGUE_BWD_Y },
        { "epilogue.bwd", "pre", GX_EPILOGUE_BWD_PRE },
        { "epilogue.bwd", "dx", GX_EPILOGUE_BWD_DX },
        { "epilogue.bwd", "dbias", GX_EPILOGUE_BWD_DBIAS },
        { "epilogue.bwd", "act", GX_EPILOGUE_BWD_ACT },
        { "gemm", "c", GX_GEMM_C },
        { "gemm", "epilogue.residual", GX_GEMM_RESIDUAL },
        { "gemm", "alpha", GX_GEMM_ALPHA },
        { "gemm", "beta", GX_GEMM_BETA },
        { "gemm", "sum_batch", GX_GEMM_SUM_BATCH },
        { "gemm", "epilogue.scale", GX_GEMM_SCALE },
        { "gemm", "epilogue.order", GX_GEMM_ORDER },
        { "gemm", "m", GX_GEMM_M },
        { "gemm", "n", GX_GEMM_N },
        { "gemm", "k", GX_GEMM_K },
        { "gemm", "ld.a", GX_GEMM_LD_A },
        { "gemm", "ld.b", GX_GEMM_LD_B },
        { "gemm", "ld.c", GX_GEMM_LD_C },
        { "gemm", "ld.out", GX_GEMM_LD_OUT },
        { "gemm.bwd", "m", GX_GEMM_BWD_M },
        { "gemm.bwd", "n", GX_GEMM_BWD_N },
        { "gemm.bwd", "k", GX_GEMM_BWD_K },
        { "gemm.bwd", "ld.a", GX_GEMM_BWD_LD_A },
        { "gemm.bwd", "ld.b", GX_GEMM_BWD_LD_B },
        { "gemm.bwd", "ld.c", GX_GEMM_BWD_LD_C },
        { "gemm.bwd", "ld.out", GX_GEMM_BWD_LD_OUT },
        { "gemm.bwd", "dc", GX_GEMM_BWD_DC },
        { "gemm.bwd", "dresidual", GX_GEMM_BWD_DRESIDUAL },
        { "gemm.bwd", "alpha", GX_GEMM_BWD_ALPHA },
        { "gemm.bwd", "beta", GX_GEMM_BWD_BETA },
        { "gemm.bwd", "epilogue.scale", GX_GEMM_BWD_SCALE },
        { "epilogue", "residual", GX_EPILOGUE_RESIDUAL },
        { "epilogue", "scale", GX_EPILOGUE_SCALE },
        { "epilogue", "order", GX_EPILOGUE_ORDER },
        { "epilogue.bwd", "dresidual", GX_EPILOGUE_BWD_DRESIDUAL },
        { "epilogue.bwd", "scale", GX_EPILOGUE_BWD_SCALE },
        { "add", "a", GX_BINARY_A },
        { "add", "b", GX_BINARY_B },
        { "add", "out", GX_BINARY_OUT },
        { "scale", "x", GX_SCALE_X },
        { "scale", "out", GX_SCALE_OUT },
        { "scale", "factor", GX_SCALE_FACTOR },
        { "sum", "x", GX_REDUCE_X },
        { "sum", "out", GX_REDUCE_OUT },
        { "sum", "axis", GX_REDUCE_AXIS },
        { "sum", "keepdim", GX_REDUCE_KEEPDIM },
        { "sum", "dtype", GX_REDUCE_DTYPE },
        { "mean", "axis", GX_REDUCE_AXIS },
        { "max", "axis", GX_REDUCE_AXIS },
        { "max", "keepdim", GX_REDUCE_KEEPDIM },
        { "sum.bwd", "dy", GX_REDUCE_BWD_DY },
        { "sum.bwd", "dx", GX_REDUCE_BWD_DX },
        { "sum.bwd", "shape", GX_REDUCE_BWD_SHAPE },
        { "sum.bwd", "axis", GX_REDUCE_BWD_AXIS },
        { "sum.bwd", "keepdim", GX_REDUCE_BWD_KEEPDIM },
        { "mean.bwd", "dtype", GX_REDUCE_BWD_DTYPE },
        { "max.bwd", "dy", GX_MAX_BWD_DY },
        { "max.bwd", "x", GX_MAX_BWD_X },
        { "max.bwd", "y", GX_MAX_BWD_Y },
        { "max.bwd", "dx", GX_MAX_BWD_DX },
        { "max.bwd", "axis", GX_MAX_BWD_AXIS },
        { "max.bwd", "keepdim", GX_MAX_BWD_KEEPDIM },
        { "sum_to", "x", GX_SHAPED_X },
        { "sum_to", "out", GX_SHAPED_OUT },
        { "broadcast_to", "shape", GX_SHAPED_SHAPE },
        { "softmax", "x", GX_SOFTMAX_X },
        { "softmax", "out", GX_SOFTMAX_OUT },
        { "softmax", "axis", GX_SOFTMAX_AXIS },
        { "softmax.bwd", "dy", GX_SOFTMAX_BWD_DY },
        { "softmax.bwd", "y", GX_SOFTMAX_BWD_Y },
        { "softmax.bwd", "dx", GX_SOFTMAX_BWD_DX },
        { "transpose", "x", GX_TRANSPOSE_X },
        { "transpose", "out", GX_TRANSPOSE_OUT },
        { "transpose", "perm", GX_TRANSPOSE_PERM },
        { "reshape", "x", GX_RESHAPE_X },
        { "reshape", "out", GX_RESHAPE_OUT },
        { "reshape", "shape", GX_RESHAPE_SHAPE },
        { "slice", "x", GX_SLICE_X },
        { "slice", "out", GX_SLICE_OUT },
        { "slice", "axis", GX_SLICE_AXIS },
        { "slice", "start", GX_SLICE_START },
        { "slice", "stop", GX_SLICE_STOP },
        { "slice", "step", GX_SLICE_STEP },
        { "slice.bwd", "dy", GX_SLICE_BWD_DY },
        { "slice.bwd", "dx", GX_SLICE_BWD_DX },
        { "slice.bwd", "axis", GX_SLICE_AXIS },
        { "slice.bwd", "start", GX_SLICE_START },
        { "slice.bwd", "stop", GX_SLICE_STOP },
        { "slice.bwd", "step", GX_SLICE_STEP },
        { "slice.bwd", "size", GX_SLICE_BWD_SIZE },
        { "concat", "x.0", GX_CONCAT_X },
        { "concat", "x.7", GX_CONCAT_X + GX_CONCAT_MOST - 1 },
        { "concat", "out", GX_CONCAT_OUT },
        { "concat", "axis", GX_CONCAT_AXIS },
        { "cast", "x", GX_CAST_X },
        { "cast", "out", GX_CAST_OUT },
        { "cast", "dtype", GX_CAST_DTYPE },
        { "dropout", "x", GX_DROPOUT_X },
        { "dropout", "step", GX_DROPOUT_STEP },
        { "dropout", "out", GX_DROPOUT_OUT },
        { "dropout", "p", GX_DROPOUT_P },
        { "dropout", "stream", GX_DROPOUT_STREAM },
        { "softmax_cross_entropy", "logits", GX_SCE_LOGITS },
        { "softmax_cross_entropy", "labels", GX_SCE_LABELS },
        { "softmax_cross_entropy", "out", GX_SCE_OUT },
        { "softmax_cross_entropy.bwd", "logits", GX_SCE_BWD_LOGITS },
        { "softmax_cross_entropy.bwd", "labels", GX_SCE_BWD_LABELS },
        { "softmax_cross_entropy.bwd", "dlogits", GX_SCE_BWD_DLOGITS },
        { "mse", "x", GX_MSE_X },
        { "mse", "target", GX_MSE_TARGET },
        { "mse", "out", GX_MSE_OUT },
        { "mse.bwd", "x", GX_MSE_BWD_X },
        { "mse.bwd", "target", GX_MSE_BWD_TARGET },
        { "mse.bwd", "dx", GX_MSE_BWD_DX },
        { "softmax_cross_entropy", "reduction", GX_SCE_REDUCTION },
        { "softmax_cross_entropy", "ignore_index", GX_SCE_IGNORE_INDEX },
        { "softmax_cross_entropy", "label_smoothing", GX_SCE_LABEL_SMOOTHING },
        { "softmax_cross_entropy.bwd", "reduction", GX_SCE_REDUCTION },
        { "softmax_cross_entropy.bwd", "ignore_index", GX_SCE_IGNORE_INDEX },
        { "softmax_cross_entropy.bwd", "label_smoothing", GX_SCE_LABEL_SMOOTHING },
        { "mse", "reduction", GX_MSE_REDUCTION },
        { "mse.bwd", "reduction", GX_MSE_REDUCTION },
        { "l1", "x", GX_MSE_X },
        { "l1", "target", GX_MSE_TARGET },
        { "l1", "out", GX_MSE_OUT },
        { "l1.bwd", "x", GX_MSE_BWD_X },
        { "l1.bwd", "target", GX_MSE_BWD_TARGET },
        { "l1.bwd", "dx", GX_MSE_BWD_DX },
        { "l1", "reduction", GX_MSE_REDUCTION },
        { "l1.bwd", "reduction", GX_MSE_REDUCTION },
        { "bce_with_logits", "x", GX_MSE_X },
        { "bce_with_logits", "target", GX_MSE_TARGET },
        { "bce_with_logits", "out", GX_MSE_OUT },
        { "bce_with_logits.bwd", "x", GX_MSE_BWD_X },
        { "bce_with_logits.bwd", "target", GX_MSE_BWD_TARGET },
        { "bce_with_logits.bwd", "dx", GX_MSE_BWD_DX },
        { "bce_with_logits", "reduction", GX_MSE_REDUCTION },
        { "bce_with_logits.bwd", "reduction", GX_MSE_REDUCTION },
        { "layer_norm", "x", GX_LAYER_NORM_X },
        { "layer_norm", "weight", GX_LAYER_NORM_WEIGHT },
        { "layer_norm", "bias", GX_LAYER_NORM_BIAS },
        { "layer_norm", "out", GX_LAYER_NORM_OUT },
        { "layer_norm", "eps", GX_NORM_EPS },
        { "layer_norm.bwd", "x", GX_LAYER_NORM_BWD_X },
        { "layer_norm.bwd", "weight", GX_LAYER_NORM_BWD_WEIGHT },
        { "layer_norm.bwd", "dy", GX_LAYER_NORM_BWD_DY },
        { "layer_norm.bwd", "dx", GX_LAYER_NORM_BWD_DX },
        { "layer_norm.bwd", "dweight", GX_LAYER_NORM_BWD_DWEIGHT },
        { "layer_norm.bwd", "dbias", GX_LAYER_NORM_BWD_DBIAS },
        { "layer_norm.bwd", "eps", GX_NORM_EPS },
        { "rms_norm", "x", GX_RMS_NORM_X },
        { "rms_norm", "weight", GX_RMS_NORM_WEIGHT },
        { "rms_norm", "out", GX_RMS_NORM_OUT },
        { "rms_norm", "eps", GX_NORM_EPS },
        { "rms_norm.bwd", "x", GX_RMS_NORM_BWD_X },
        { "rms_norm.bwd", "weight", GX_RMS_NORM_BWD_WEIGHT },
        { "rms_norm.bwd", "dy", GX_RMS_NORM_BWD_DY },
        { "rms_norm.bwd", "dx", GX_RMS_NORM_BWD_DX },
        { "rms_norm.bwd", "dweight", GX_RMS_NORM_BWD_DWEIGHT },
        { "rms_norm.bwd", "eps", GX_NORM_EPS },
        { "embedding", "table", GX_EMBEDDING_TABLE },
        { "embedding", "index", GX_EMBEDDING_INDEX },
        { "embedding", "out", GX_EMBEDDING_OUT },
        { "embedding.bwd", "dy", GX_EMBEDDING_BWD_DY },
        { "embedding.bwd", "index", GX_EMBEDDING_BWD_INDEX },
        { "embedding.bwd", "dtable", GX_EMBEDDING_BWD_DTABLE },
        { "embedding.bwd", "rows", GX_EMBEDDING_BWD_ROWS },
        { "accuracy", "logits", GX_ACCURACY_LOGITS },
        { "accuracy", "labels", GX_ACCURACY_LABELS },
        { "accuracy", "out", GX_ACCURACY_OUT },
        { "sgd", "param", GX_SGD_PARAM },
        { "sgd", "grad", GX_SGD_GRAD },
        { "sgd", "lr", GX_SGD_LR },
        { "sgd", "weight_decay", GX_SGD_WEIGHT_DECAY },
        { "adamw", "param", GX_ADAMW_PARAM },
        { "adamw", "grad", GX_ADAMW_GRAD },
        { "adamw", "m", GX_ADAMW_M },
        { "adamw", "v", GX_ADAMW_V },
        { "adamw", "step", GX_ADAMW_STEP },
        { "adamw", "lr", GX_ADAMW_LR },
        { "adamw", "beta1", GX_ADAMW_BETA1 },
        { "adamw", "beta2", GX_ADAMW_BETA2 },
        { "adamw", "eps", GX_ADAMW_EPS },
        { "adamw", "weight_decay", GX_ADAMW_WEIGHT_DECAY },
        { "sgd", "step", GX_SGD_STEP },
        { "sgd", "scale", GX_SGD_SCALE },
        { "sgd", "accumulate", GX_SGD_ACCUMULATE },
        { "momentum", "param", GX_MOMENTUM_PARAM },
        { "momentum", "grad", GX_MOMENTUM_GRAD },
        { "momentum", "buf", GX_MOMENTUM_BUF },
        { "momentum", "step", GX_MOMENTUM_STEP },
        { "momentum", "lr", GX_MOMENTUM_LR },
        { "momentum", "scale", GX_MOMENTUM_SCALE },
        { "momentum", "momentum", GX_MOMENTUM_MOMENTUM },
        { "momentum", "weight_decay", GX_MOMENTUM_WEIGHT_DECAY },
        { "momentum", "accumulate", GX_MOMENTUM_ACCUMULATE },
        { "momentum", "dampening", GX_MOMENTUM_DAMPENING },
        { "nesterov", "param", GX_MOMENTUM_PARAM },
        { "nesterov", "grad", GX_MOMENTUM_GRAD },
        { "nesterov", "buf", GX_MOMENTUM_BUF },
        { "nesterov", "step", GX_MOMENTUM_STEP },
        { "nesterov", "lr", GX_MOMENTUM_LR },
        { "nesterov", "scale", GX_MOMENTUM_SCALE },
        { "nesterov", "momentum", GX_MOMENTUM_MOMENTUM },
        { "nesterov", "weight_decay", GX_MOMENTUM_WEIGHT_DECAY },
        { "nesterov", "accumulate", GX_MOMENTUM_ACCUMULATE },
        { "adam", "param", GX_ADAMW_PARAM },
        { "adam", "grad", GX_ADAMW_GRAD },
        { "adam", "m", GX_ADAMW_M },
        { "adam", "v", GX_ADAMW_V },
        { "adam", "step", GX_ADAMW_STEP },
        { "adam", "lr", GX_ADAMW_LR },
        { "adam", "scale", GX_ADAMW_SCALE },
        { "adam", "beta1", GX_ADAMW_BETA1 },
        { "adam", "beta2", GX_ADAMW_BETA2 },
        { "adam", "eps", GX_ADAMW_EPS },
        { "adam", "weight_decay", GX_ADAMW_WEIGHT_DECAY },
        { "adam", "accumulate", GX_ADAMW_ACCUMULATE },
        { "adamw", "scale", GX_ADAMW_SCALE },
        { "adamw", "accumulate", GX_ADAMW_ACCUMULATE },
        { "accumulate", "grad", GX_ACCUMULATE_GRAD },
        { "accumulate", "sum", GX_ACCUMULATE_SUM },
        { "accumulate", "step", GX_ACCUMULATE_STEP },
        { "accumulate", "n", GX_ACCUMULATE_N },
        { "grad_norm", "grad", GX_GRAD_NORM_GRAD },
        { "grad_norm", "before", GX_GRAD_NORM_BEFORE },
        { "grad_norm", "out", GX_GRAD_NORM_OUT },
        { "grad_norm", "factor", GX_GRAD_NORM_FACTOR },
        { "grad_norm", "max_norm", GX_GRAD_NORM_MAX },
        { "schedule", "lr", GX_SCHEDULE_LR },
        { "schedule", "step", GX_SCHEDULE_STEP },
        { "schedule", "out", GX_SCHEDULE_OUT },
        { "schedule", "kind", GX_SCHEDULE_KIND },
        { "schedule", "warmup", GX_SCHEDULE_WARMUP },
        { "schedule", "steps", GX_SCHEDULE_STEPS },
        { "schedule", "end", GX_SCHEDULE_END },
        { "schedule", "every", GX_SCHEDULE_EVERY },
        { "schedule", "factor", GX_SCHEDULE_FACTOR },
        { "schedule", "accumulate", GX_SCHEDULE_ACCUMULATE },
        { "schedule", "skipped", GX_SCHEDULE_SKIPPED },
        { "sgd", "master", GX_SGD_MASTER },
        { "momentum", "master", GX_MOMENTUM_MASTER },
        { "nesterov", "master", GX_MOMENTUM_MASTER },
        { "adam", "master", GX_ADAMW_MASTER },
        { "adamw", "master", GX_ADAMW_MASTER },
        { "softmax_cross_entropy.bwd", "dy", GX_SCE_BWD_DY },
        { "mse.bwd", "dy", GX_MSE_BWD_DY },
        { "loss_scale", "norm", GX_LOSS_SCALE_NORM },
        { "loss_scale", "step", GX_LOSS_SCALE_STEP },
        { "loss_scale", "scale", GX_LOSS_SCALE_SCALE },
        { "loss_scale", "skipped", GX_LOSS_SCALE_SKIPPED },
        { "loss_scale", "tracker", GX_LOSS_SCALE_TRACKER },
        { "loss_scale", "factor", GX_LOSS_SCALE_FACTOR },
        { "loss_scale", "update", GX_LOSS_SCALE_UPDATE },
        { "loss_scale", "out", GX_LOSS_SCALE_OUT },
        { "loss_scale", "used", GX_LOSS_SCALE_USED },
        { "loss_scale", "count", GX_LOSS_SCALE_COUNT },
        { "loss_scale", "max_norm", GX_LOSS_SCALE_MAX_NORM },
        { "loss_scale", "growth_interval", GX_LOSS_SCALE_INTERVAL },
        { "loss_scale", "growth", GX_LOSS_SCALE_GROWTH },
        { "loss_scale", "backoff", GX_LOSS_SCALE_BACKOFF },
        { "loss_scale", "accumulate", GX_LOSS_SCALE_ACCUMULATE },
        { "gather", "data", GX_GATHER_DATA },
        { "gather", "index", GX_GATHER_INDEX },
        { "gather", "sample", GX_GATHER_SAMPLE },
        { "gather", "epoch", GX_GATHER_EPOCH },
        { "gather", "out", GX_GATHER_OUT },
        { "gather", "shuffle", GX_GATHER_SHUFFLE },
        { "step.end", "step", GX_STEP_STEP },
        { "step.end", "sample", GX_STEP_SAMPLE },
        { "step.end", "epoch", GX_STEP_EPOCH },
        { "step.end", "log", GX_STEP_LOG },
        { "step.end", "v0", GX_STEP_V0 },
        { "step.end", "v5", GX_STEP_V0 + GX_MAX_LOGGED - 1 },
        { "step.end", "batch", GX_STEP_BATCH },
        { "step.end", "total", GX_STEP_TOTAL },
        { "step.end", "need", GX_STEP_NEED },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const gx_op *op = gx_op_find(rows[i].op);
        int n[2] = { 0, 0 }, found = -1;

        assert_non_null(op);
        for (const gx_field *field = gx_op_fields(op); field->name; field++) {
            const int at = n[is_tensor(field)]++;

            if (strcmp(field->name, rows[i].field) == 0)
                found = at;
        }
        if (found != rows[i].number)
            print_error("%s.%s\n", rows[i].op, rows[i].field);
        assert_int_equal(found, rows[i].number);
    }
}

/* Each sample loads in each precision, for training and evaluation, and runs: whatever it
 * shows is a number. */
static void every_sample_runs(void **state)
{
    static const char *const precisions[] = { "f32", "tf32", "bf16", "f16" };
    const uint64_t seed = test_seed();
    int n_samples = 0;

    (void)state;
    for (size_t i = 0; i < gx_op_count(); i++) {
        for (const char *const *text = gx_op_at(i)->samples; *text; text++) {
            for (int p = 0; p < GX_N_PRECISIONS; p++) {
                test_walk model = test_walk_parse(*text, precisions[p],
                                                  p == 1 ? GX_EVAL : GX_TRAIN, seed);

                test_walk_step(&model);
                for (size_t v = 0; v < model.graph->n_values; v++) {
                    const gx_value *value = &model.graph->values[v];
                    const int64_t n = test_walk_count(&model, value->name);

                    for (int64_t k = 0; value->is_output && k < n; k++)
                        assert_true(model.data[v][k] - model.data[v][k] == 0);
                }
                test_walk_free(&model);
            }
            n_samples++;
        }
    }
    assert_true(n_samples > 80);
}

/* A row that no sample reaches would be a row that no test walks. */
static void every_row_stands_in_a_sample(void **state)
{
    (void)state;
    for (size_t i = 0; i < gx_op_count(); i++) {
        const gx_op *op = gx_op_at(i);

        if (!op->internal)
            assert_non_null(op->samples[0]);
        if (op->grad && op->samples[0]) {
            bool trained = false;

            for (const char *const *text = op->samples; *text; text++)
                trained = trained || strstr(*text, "backward:");
            assert_true(trained);
        }
    }
}

static void alternatives_name_rows_that_exist(void **state)
{
    const gx_alternative *alternative;
    char pattern[64];

    (void)state;
    for (size_t i = 0; (alternative = gx_alternative_at(i)); i++) {
        for (const char *const *name = alternative->pattern; *name; name++) {
            const gx_op *op = gx_op_find(*name);

            assert_non_null(op);
            assert_non_null(op->reference);
            assert_non_null(gx_op_alternative(op, 0, pattern, sizeof pattern));
            assert_true(strlen(pattern) > 0);
        }
    }
    assert_int_equal(GX_HAVE_CUDA, gx_alternative_at(0) != NULL);
    assert_null(gx_op_alternative(gx_op_find("gemm"), 10000, pattern, sizeof pattern));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_found_by_name_and_number),
        cmocka_unit_test(every_row_is_whole),
        cmocka_unit_test(operand_numbers_are_the_order_of_the_fields),
        cmocka_unit_test(every_sample_runs),
        cmocka_unit_test(every_row_stands_in_a_sample),
        cmocka_unit_test(alternatives_name_rows_that_exist),
    };

    return cmocka_run_group_tests_name("ops_table", tests, NULL, NULL);
}
