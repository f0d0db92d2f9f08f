/* Sample models of each row, for the tests that walk the catalogue: one element, odd
 * sizes, sizes beyond a block, sizes of zero where they are legal; forward, and where a
 * row has a derivative with `backward` and an optimizer. "$P" stands for the precision.
 */
#ifndef GX_SAMPLES_H
#define GX_SAMPLES_H

#define GX_SAMPLE(inputs, rest) \
    "gexec: 1\nname: sample\nprecision: $P\ninputs:\n" inputs rest
#define GX_SAMPLE_TENSOR(name, shape, init) \
    "  " name ": {shape: " shape ", init: " init "}\n"
#define GX_SAMPLE_LABELS(name, shape, classes) \
    "  " name ": {shape: " shape ", dtype: i32, init: {integers: [0, " classes "]}}\n"
#define GX_SAMPLE_PARAMS "params:\n"
#define GX_SAMPLE_OPS "ops:\n"

extern const char *const gx_gemm_samples[];
extern const char *const gx_gemm_bwd_samples[];
extern const char *const gx_epilogue_samples[];
extern const char *const gx_epilogue_bwd_samples[];
extern const char *const gx_relu_samples[];
extern const char *const gx_relu_bwd_samples[];
extern const char *const gx_gelu_tanh_samples[];
extern const char *const gx_gelu_tanh_bwd_samples[];
extern const char *const gx_gelu_erf_samples[];
extern const char *const gx_gelu_erf_bwd_samples[];
extern const char *const gx_silu_samples[];
extern const char *const gx_silu_bwd_samples[];
extern const char *const gx_tanh_samples[];
extern const char *const gx_tanh_bwd_samples[];
extern const char *const gx_sigmoid_samples[];
extern const char *const gx_sigmoid_bwd_samples[];
extern const char *const gx_add_samples[];
extern const char *const gx_sub_samples[];
extern const char *const gx_mul_samples[];
extern const char *const gx_scale_samples[];
extern const char *const gx_sum_samples[];
extern const char *const gx_sum_bwd_samples[];
extern const char *const gx_mean_samples[];
extern const char *const gx_mean_bwd_samples[];
extern const char *const gx_max_samples[];
extern const char *const gx_max_bwd_samples[];
extern const char *const gx_sum_to_samples[];
extern const char *const gx_broadcast_to_samples[];
extern const char *const gx_softmax_samples[];
extern const char *const gx_softmax_bwd_samples[];
extern const char *const gx_transpose_samples[];
extern const char *const gx_reshape_samples[];
extern const char *const gx_slice_samples[];
extern const char *const gx_slice_bwd_samples[];
extern const char *const gx_concat_samples[];
extern const char *const gx_cast_samples[];
extern const char *const gx_dropout_samples[];
extern const char *const gx_sce_samples[];
extern const char *const gx_sce_bwd_samples[];
extern const char *const gx_mse_samples[];
extern const char *const gx_mse_bwd_samples[];
extern const char *const gx_l1_samples[];
extern const char *const gx_l1_bwd_samples[];
extern const char *const gx_bce_samples[];
extern const char *const gx_bce_bwd_samples[];
extern const char *const gx_layer_norm_samples[];
extern const char *const gx_layer_norm_bwd_samples[];
extern const char *const gx_rms_norm_samples[];
extern const char *const gx_rms_norm_bwd_samples[];
extern const char *const gx_embedding_samples[];
extern const char *const gx_embedding_bwd_samples[];
extern const char *const gx_accuracy_samples[];
extern const char *const gx_topk_samples[];
extern const char *const gx_perplexity_samples[];
extern const char *const gx_sgd_samples[];
extern const char *const gx_momentum_samples[];
extern const char *const gx_nesterov_samples[];
extern const char *const gx_adam_samples[];
extern const char *const gx_adamw_samples[];
extern const char *const gx_accumulate_samples[];
extern const char *const gx_grad_norm_samples[];
extern const char *const gx_loss_scale_samples[];
extern const char *const gx_schedule_samples[];
extern const char *const gx_gather_samples[];
extern const char *const gx_step_samples[];

#endif
