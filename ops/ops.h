/* The op catalogue: what a row is, what an alternative is, and what family files include.
 *
 * A family is a line in families.def and the files NAME.c (meaning), NAME_cuda.c (its
 * CUDA alternatives, host code) and NAME.cu (kernels and their launchers). */
#ifndef GX_OPS_H
#define GX_OPS_H

#include <gexec/op.h>
#include <gexec/tensor.h>

#include "graph_model.h"

/* --- one op, bound to memory --- */

/* Operands by the index of the row's tensor fields in table order; an absent operand has
 * rank -1 and data NULL. On the CPU every operand is GX_F64 data, whatever `dtype` says
 * of its declared type; on a GPU data is a device pointer of the declared type. */
typedef struct gx_call {
    const gx_op *op;
    const char *name;
    gx_tensor arg[GX_MAX_ARGS];
    gx_attr attr[GX_MAX_ATTRS];
    gx_precision
        precision; /* GX_PRECISION_TF32: products may round f32 operands to tf32 */
    /* a bit of each output that may be stored rounded to tf32: products alone read it,
     * which may round it so. Bits that stay 0 cost less power to move and to multiply. */
    uint32_t to_tf32;
    uint64_t seed; /* of the state */
} gx_call;

static inline bool gx_has(const gx_call *call, int arg)
{
    return call->arg[arg].rank >= 0;
}

/* --- building nodes: for expand, grad, and the optimizer --- */

typedef struct gx_builder gx_builder; /* resolve.h */

/* --- a row --- */

/* What an op makes of tensors that have something of the rows of a batch, for the figures
 * of many steps. */
typedef enum gx_row_rule {
    GX_ROWS_OTHER,    /* not known */
    GX_ROWS_EACH,     /* element by element, of all operands, broadcast */
    GX_ROWS_ALONG,    /* ... but along `axis`; without that field along the last size */
    GX_ROWS_INDEX,    /* of operand 0 what each element of operand 1 says */
    GX_ROWS_KEEP,     /* operand 0, times a number or moved */
    GX_ROWS_JOIN,     /* operands 0 and 1 added */
    GX_ROWS_MULTIPLY, /* ... multiplied */
    GX_ROWS_PRODUCT,  /* of matrices: gemm */
    GX_ROWS_SUM,      /* sums of operand 0 along `axis`; without that field to the shape
                       * of the result */
    GX_ROWS_MEAN,     /* means */
    GX_ROWS_MOST,     /* largest elements */
    GX_ROWS_TELL, /* a loss or a metric of each row: the mean of them, or the sum where
                   * the field `reduction` says so, but for those whose label is
                   * `ignore_index` */
    GX_ROWS_EXP   /* the exponential of operand 0 */
} gx_row_rule;

struct gx_op {
    const char *name;
    const char *summary;    /* one line */
    const char *formula;    /* plain text */
    const gx_field *fields; /* ends with name NULL */
    gx_phase phase;         /* where it stands unless the model says otherwise */
    bool internal;          /* only gexec puts it into a graph */
    bool loss;      /* a scalar whose derivative is for the gradient of the loss itself:
                       exactly      1, or with takes_one the scale of the loss too, as dy */
    bool takes_one; /* its derivative takes a gradient of exactly 1 too, as no dy */
    bool sum;       /* its inputs get the gradient of its output as it is, 1 included */
    bool moves; /* its first output holds values of its inputs, and zeros: what must hold
                   of them must hold of those */
    bool view;  /* operand 1 is what it makes: operand 0 under another shape. Layout may
                   give both one place, and nothing is run then */

    /* Sets shape and dtype of the outputs from inputs and attributes; reports what does
     * not fit. `value` gives the graph's values by call->arg order (NULL: absent); for
     * outputs only name is set. Touches no data. */
    void (*infer)(const gx_graph *graph, const gx_node *node, gx_value **value,
                  gx_diagnostics *list);

    /* Optional. Replaces the node by others through the builder, returns true when it
     * did: a gemm with an epilogue, relu, gemm.bwd. Runs after infer. */
    bool (*expand)(gx_builder *builder, int32_t node);

    /* Computes on the host, on doubles. NULL only where expand always replaces the node.
     */
    gx_status (*reference)(const gx_call *call, gx_error *err);

    /* Appends the nodes of the gradient: gx_builder_gradient gives dy of an output,
     * gx_builder_contribute hands in d(input). NULL: not differentiable. */
    void (*grad)(gx_builder *builder, int32_t node);

    gx_row_rule rows;

    /* Optimizers: the rate where the model gives none; 0: it must. */
    double default_rate;

    /* FLOPs of one call. */
    double (*flops)(const gx_graph *graph, const gx_node *node);

    /* Bytes that one call moves; NULL: each operand once, one updated in place twice. */
    double (*bytes)(const gx_graph *graph, const gx_node *node);

    /* Text models worth testing: shapes as YAML of inputs, params and ops; ends with
     * NULL. Among them one element, an odd size, one larger than a block, sizes of zero.
     */
    const char *const *samples;

    /* Largest allowed normwise relative error of an output against the double reference,
     * by gx_precision {f32, tf32, bf16, f16}; each with its reason where the row is
     * written. That of f16 counts what normal numbers are rounded by: 2^-12. */
    double tolerance[GX_N_PRECISIONS];
};

/* --- CUDA --- */

enum { GX_TICKET_BYTES = 256 };

/* What a launch needs; the executor fills it. Never allocates, waits or looks anything
 * up. */
typedef struct gx_ctx {
    void *stream; /* cudaStream_t */
    void *lt;     /* cublasLtHandle_t */
    void *workspace;
    size_t workspace_bytes; /* what prepare asked for, at least */
    /* GX_TICKET_BYTES of zeros, there whenever a workspace is: the blocks of a kernel
     * count themselves in them, and it leaves zeros behind. The workspace's units follow
     * one another, so they share them. */
    unsigned *tickets;
    int n_sm, cc; /* cc: 90 for sm_90 */
    size_t shared_optin_bytes;
    bool programmatic; /* kernels after the first of this unit may be programmatic */
    bool programmatic_first; /* the first may be too */
    /* Nothing of an earlier step is under way: what lasts (parameters, state) and is only
     * read in this step may be loaded ahead of the wait. False where steps that are
     * unrolled in one graph overlap: the step before may still be writing it. */
    bool first_step;
    int n_launched; /* counted by the launch seam */
} gx_ctx;

typedef struct gx_group {
    int n_calls;
    const gx_call *call; /* consecutive nodes, in order */
    /* by [call * GX_MAX_ARGS + arg]: an output that this alternative need not write,
     * since only the group reads it */
    const bool *elided;
    /* by [call * GX_MAX_ARGS + arg]: an operand that no kernel before the group's has
     * written since the last full edge, so that what reads it may load it ahead of the
     * wait; NULL: nothing may */
    const bool *steady;
} gx_group;

enum {
    GX_ALGO_BYTES = 64,
    GX_MAX_REPEATS = 32 /* of a pattern that stands more than once in a group */
};

/* What prepare leaves; release undoes it. */
typedef struct gx_prepared {
    void *state;
    size_t workspace_bytes;
    int n_launches; /* graph nodes that launch adds; -1: a library decides, count them */
    bool has_algo;  /* in: obey `algo`; out: `algo` is what was chosen */
    unsigned char algo[GX_ALGO_BYTES];
    int algo_choice; /* in: which of the library's candidates to take, from 0 */
    int n_algos; /* out: how many candidates there are worth measuring; 1 when fixed */
} gx_prepared;

/* Whether a group may go on behind the ops of a pattern. */
typedef enum gx_repeat {
    GX_ONCE,
    GX_REPEAT_LAST, /* the last op may stand any number of times: the whole run */
    GX_REPEAT_ALL,  /* the pattern may stand at least twice: what `takes` says */
    /* What stands before the last op may stand up to GX_MAX_REPEATS times, and the last
     * op any number of times behind it: the whole of both runs. */
    GX_REPEAT_BOTH
} gx_repeat;

/* One CUDA way to run a group of ops. */
typedef struct gx_alternative {
    const char *name; /* "lt", "lt_fused", "fused", "tile", "kernel", "multi", ... */
    const char *const *pattern; /* op names in order, ends with NULL */
    gx_repeat repeat;
    bool library; /* its products are the library's kernels */
    bool elides;  /* values that only the group reads are not written */
    bool strict;  /* may serve as the baseline that others are compared with */
    bool trial;   /* taken only where it is forced: not yet seen to be faster */

    /* Of GX_REPEAT_ALL: how many patterns from the first call on one group may cover, as
     * far as the calls hang together; below 2: none. `run` is bound as for `refuses` and
     * has at most GX_MAX_REPEATS patterns. */
    int (*takes)(const gx_group *run);

    /* NULL when it applies, else why not, as a static text. Looks at shapes, types,
     * attributes and how the calls are connected (operands with equal data pointers, or
     * before binding: equal value ids kept in gx_tensor.data as small integers). */
    const char *(*refuses)(const gx_group *group, const gx_ctx *ctx);
    /* May ask the device and the library. Loads each kernel that launch will use. */
    gx_status (*prepare)(const gx_group *group, const gx_ctx *ctx, gx_prepared *prepared,
                         gx_error *err);
    /* Enqueues on ctx->stream. Legal in a capture. */
    gx_status (*launch)(const gx_group *group, const gx_prepared *prepared, gx_ctx *ctx,
                        gx_error *err);
    void (*release)(gx_prepared *prepared); /* NULL: nothing to release */
} gx_alternative;

/* Every alternative of every family, in table order; NULL past the end and without CUDA.
 * The unfused way of every op is an alternative whose pattern is that op alone. */
const gx_alternative *gx_alternative_at(size_t i);

#if GX_HAVE_CUDA
#define GX_CUDA_ONLY(x) (x)
#else
#define GX_CUDA_ONLY(x) NULL
#endif

/* --- operand indexes; the order of the tensor fields in each row's table --- */

/* The activations: name in YAML; what the derivative reads of the forward pass, the
 * output y or `pre`, to which the activation was applied; operations that one counts as.
 */
#define GX_ACT_LIST(X)                 \
    X(NONE, "none", NOTHING, 0)        \
    X(RELU, "relu", Y, 1)              \
    X(GELU_TANH, "gelu_tanh", PRE, 16) \
    X(GELU_ERF, "gelu_erf", PRE, 20)   \
    X(SILU, "silu", PRE, 11)           \
    X(TANH, "tanh", Y, 10)             \
    X(SIGMOID, "sigmoid", Y, 10)
typedef enum gx_act {
#define GX_ACT_ENUM(act, name, reads, flops) GX_ACT_##act,
    GX_ACT_LIST(GX_ACT_ENUM)
#undef GX_ACT_ENUM
        GX_N_ACTS
} gx_act;
typedef enum gx_act_reads {
    GX_ACT_READS_NOTHING,
    GX_ACT_READS_Y,
    GX_ACT_READS_PRE
} gx_act_reads;
extern const char *const gx_act_names[]; /* by gx_act, ends with NULL */
extern const gx_act_reads gx_act_reads_of[GX_N_ACTS];

/* What follows a product, in the order that holds unless a model gives another. */
typedef enum gx_epilogue_step {
    GX_EPILOGUE_STEP_SCALE,
    GX_EPILOGUE_STEP_BIAS,
    GX_EPILOGUE_STEP_RESIDUAL,
    GX_EPILOGUE_STEP_ACT,
    GX_N_EPILOGUE_STEPS
} gx_epilogue_step;

/* gemm: out[..,m,n] = alpha op(a)[..,m,k] op(b)[..,k,n] + beta c; epilogue.* expands to
 * gemm + epilogue; LD_*: elements from row to row, where that is more than the columns */
enum { GX_GEMM_A, GX_GEMM_B, GX_GEMM_C, GX_GEMM_BIAS, GX_GEMM_RESIDUAL, GX_GEMM_OUT };
enum {
    GX_GEMM_TRANS_A,
    GX_GEMM_TRANS_B,
    GX_GEMM_ALPHA,
    GX_GEMM_BETA,
    GX_GEMM_SUM_BATCH,
    GX_GEMM_ACT,
    GX_GEMM_SCALE,
    GX_GEMM_ORDER,
    GX_GEMM_M,
    GX_GEMM_N,
    GX_GEMM_K,
    GX_GEMM_LD_A,
    GX_GEMM_LD_B,
    GX_GEMM_LD_C,
    GX_GEMM_LD_OUT
};
/* gemm.bwd: d = dy * act'(pre or y); da, db, dc, dbias from it. Always expands. */
enum {
    GX_GEMM_BWD_A,
    GX_GEMM_BWD_B,
    GX_GEMM_BWD_DY,
    GX_GEMM_BWD_Y,
    GX_GEMM_BWD_PRE,
    GX_GEMM_BWD_DA,
    GX_GEMM_BWD_DB,
    GX_GEMM_BWD_DC,
    GX_GEMM_BWD_DBIAS,
    GX_GEMM_BWD_DRESIDUAL
};
enum {
    GX_GEMM_BWD_TRANS_A,
    GX_GEMM_BWD_TRANS_B,
    GX_GEMM_BWD_ALPHA,
    GX_GEMM_BWD_BETA,
    GX_GEMM_BWD_ACT,
    GX_GEMM_BWD_SCALE,
    GX_GEMM_BWD_M,
    GX_GEMM_BWD_N,
    GX_GEMM_BWD_K,
    GX_GEMM_BWD_LD_A,
    GX_GEMM_BWD_LD_B,
    GX_GEMM_BWD_LD_C,
    GX_GEMM_BWD_LD_OUT
};
/* epilogue: pre = scale x + bias + residual; out = act(pre). pre is an optional second
 * output. With another order it expands to a chain of such. */
enum {
    GX_EPILOGUE_X,
    GX_EPILOGUE_BIAS,
    GX_EPILOGUE_RESIDUAL,
    GX_EPILOGUE_OUT,
    GX_EPILOGUE_PRE
};
enum { GX_EPILOGUE_ACT, GX_EPILOGUE_SCALE, GX_EPILOGUE_ORDER };
/* epilogue.bwd: d = dy * act'(pre or y), dbias = column sums of d, dx = d; dx or dbias
 * may be absent. GX_ACT_LIST says which of y and pre it reads. With scale or dresidual it
 * expands. */
enum {
    GX_EPILOGUE_BWD_DY,
    GX_EPILOGUE_BWD_Y,
    GX_EPILOGUE_BWD_PRE,
    GX_EPILOGUE_BWD_DX,
    GX_EPILOGUE_BWD_DBIAS,
    GX_EPILOGUE_BWD_DRESIDUAL
};
enum { GX_EPILOGUE_BWD_ACT, GX_EPILOGUE_BWD_SCALE };
/* add, sub, mul: out = a op b, broadcast as in PyTorch */
enum { GX_BINARY_A, GX_BINARY_B, GX_BINARY_OUT };
/* scale: out = factor x */
enum { GX_SCALE_X, GX_SCALE_OUT };
enum { GX_SCALE_FACTOR };
/* sum, mean, max over `axis`: no axis is all of them; DTYPE is not there in max */
enum { GX_REDUCE_X, GX_REDUCE_OUT };
enum { GX_REDUCE_AXIS, GX_REDUCE_KEEPDIM, GX_REDUCE_DTYPE };
/* sum.bwd, mean.bwd: dx = dy along `axis`; dy may be absent: exactly 1 */
enum { GX_REDUCE_BWD_DY, GX_REDUCE_BWD_DX };
enum {
    GX_REDUCE_BWD_SHAPE,
    GX_REDUCE_BWD_AXIS,
    GX_REDUCE_BWD_KEEPDIM,
    GX_REDUCE_BWD_DTYPE
};
/* max.bwd: what equals the maximum shares dy evenly */
enum { GX_MAX_BWD_DY, GX_MAX_BWD_X, GX_MAX_BWD_Y, GX_MAX_BWD_DX };
enum { GX_MAX_BWD_AXIS, GX_MAX_BWD_KEEPDIM };
/* sum_to, broadcast_to: x in another shape, one the derivative of the other */
enum { GX_SHAPED_X, GX_SHAPED_OUT };
enum { GX_SHAPED_SHAPE };
/* softmax over `axis`, and softmax.bwd */
enum { GX_SOFTMAX_X, GX_SOFTMAX_OUT };
enum { GX_SOFTMAX_AXIS };
enum { GX_SOFTMAX_BWD_DY, GX_SOFTMAX_BWD_Y, GX_SOFTMAX_BWD_DX };
/* transpose: axis i of out is axis perm[i] of x */
enum { GX_TRANSPOSE_X, GX_TRANSPOSE_OUT };
enum { GX_TRANSPOSE_PERM };
/* reshape: the elements of x in their order */
enum { GX_RESHAPE_X, GX_RESHAPE_OUT };
enum { GX_RESHAPE_SHAPE };
/* slice: out[.., i, ..] = x[.., start + i step, ..] */
enum { GX_SLICE_X, GX_SLICE_OUT };
enum { GX_SLICE_AXIS, GX_SLICE_START, GX_SLICE_STOP, GX_SLICE_STEP };
/* slice.bwd: dy where the slice was taken, zeros elsewhere */
enum { GX_SLICE_BWD_DY, GX_SLICE_BWD_DX };
enum { GX_SLICE_BWD_SIZE = GX_SLICE_STEP + 1 };
/* concat: x.0, x.1, ... one after the other along an axis */
enum { GX_CONCAT_X, GX_CONCAT_MOST = 8, GX_CONCAT_OUT = GX_CONCAT_MOST };
enum { GX_CONCAT_AXIS };
/* cast */
enum { GX_CAST_X, GX_CAST_OUT };
enum { GX_CAST_DTYPE };
/* dropout: out = x / (1 - p) where the mask of (seed, stream, step) keeps it, else 0 */
enum { GX_DROPOUT_X, GX_DROPOUT_STEP, GX_DROPOUT_OUT };
enum { GX_DROPOUT_P, GX_DROPOUT_STREAM };
/* What a loss does with its terms; attribute of every loss and of its derivative. */
typedef enum gx_reduction { GX_REDUCTION_MEAN, GX_REDUCTION_SUM } gx_reduction;
extern const char *const gx_reduction_names[]; /* "mean", "sum", NULL */

/* layer_norm: out = (x - mean) / sqrt(variance + eps) * weight + bias over the last size;
 * weight and bias may be absent, each */
enum { GX_LAYER_NORM_X, GX_LAYER_NORM_WEIGHT, GX_LAYER_NORM_BIAS, GX_LAYER_NORM_OUT };
/* each output may be absent, not all */
enum {
    GX_LAYER_NORM_BWD_X,
    GX_LAYER_NORM_BWD_WEIGHT,
    GX_LAYER_NORM_BWD_DY,
    GX_LAYER_NORM_BWD_DX,
    GX_LAYER_NORM_BWD_DWEIGHT,
    GX_LAYER_NORM_BWD_DBIAS
};
/* rms_norm: out = x / sqrt(mean of x^2 + eps) * weight; weight may be absent */
enum { GX_RMS_NORM_X, GX_RMS_NORM_WEIGHT, GX_RMS_NORM_OUT };
enum {
    GX_RMS_NORM_BWD_X,
    GX_RMS_NORM_BWD_WEIGHT,
    GX_RMS_NORM_BWD_DY,
    GX_RMS_NORM_BWD_DX,
    GX_RMS_NORM_BWD_DWEIGHT
};
enum { GX_NORM_EPS }; /* of all four; of rms_norm it may be absent */
/* embedding: out[..., dim] = table[index[...], dim] */
enum { GX_EMBEDDING_TABLE, GX_EMBEDDING_INDEX, GX_EMBEDDING_OUT };
/* embedding.bwd: dtable row v = sum of the rows of dy whose index is v */
enum { GX_EMBEDDING_BWD_DY, GX_EMBEDDING_BWD_INDEX, GX_EMBEDDING_BWD_DTABLE };
enum { GX_EMBEDDING_BWD_ROWS };
/* softmax_cross_entropy: logits [rows, classes], labels i32 [rows] -> f32 [] */
enum { GX_SCE_LOGITS, GX_SCE_LABELS, GX_SCE_OUT };
/* softmax_cross_entropy.bwd -> dlogits = dy (softmax - onehot) / rows; dy may be absent:
 * 1 */
enum { GX_SCE_BWD_LOGITS, GX_SCE_BWD_LABELS, GX_SCE_BWD_DLOGITS, GX_SCE_BWD_DY };
/* of both; ignore_index may be absent */
enum { GX_SCE_REDUCTION, GX_SCE_IGNORE_INDEX, GX_SCE_LABEL_SMOOTHING };
/* mse: mean over all elements of (x - target)^2 -> out f32 []; l1 and bce_with_logits
 * have the same operands, and so have their derivatives */
enum { GX_MSE_X, GX_MSE_TARGET, GX_MSE_OUT };
enum { GX_MSE_BWD_X, GX_MSE_BWD_TARGET, GX_MSE_BWD_DX, GX_MSE_BWD_DY };
enum { GX_MSE_REDUCTION }; /* of both */
/* accuracy: share of rows whose largest logit (first of equals) is the label -> f32 [] */
enum { GX_ACCURACY_LOGITS, GX_ACCURACY_LABELS, GX_ACCURACY_OUT };
/* topk: share of rows whose label is among the k largest logits -> f32 [] */
enum { GX_TOPK_LOGITS, GX_TOPK_LABELS, GX_TOPK_OUT };
enum { GX_TOPK_K };
/* perplexity: exp of a mean loss -> f32 [] */
enum { GX_PERPLEXITY_LOSS, GX_PERPLEXITY_OUT };
/* Optimizers: grad is the gradient, of the parameter's type or f32, times scale where
 * that is given. With accumulate: n they run at each n-th step alone, and step / n
 * counts; where step is below 0 they do nothing. State is of the parameter's type or f32.
 * With master, in f32, the update is of that, and the parameter is its rounded copy. */
/* sgd: param -= lr * (grad + weight_decay * param) */
enum { GX_SGD_PARAM, GX_SGD_GRAD, GX_SGD_LR, GX_SGD_STEP, GX_SGD_SCALE, GX_SGD_MASTER };
enum { GX_SGD_WEIGHT_DECAY, GX_SGD_ACCUMULATE };
/* momentum and nesterov, as torch.optim.SGD; nesterov has no dampening */
enum {
    GX_MOMENTUM_PARAM,
    GX_MOMENTUM_GRAD,
    GX_MOMENTUM_BUF,
    GX_MOMENTUM_STEP,
    GX_MOMENTUM_LR,
    GX_MOMENTUM_SCALE,
    GX_MOMENTUM_MASTER
};
enum {
    GX_MOMENTUM_MOMENTUM,
    GX_MOMENTUM_WEIGHT_DECAY,
    GX_MOMENTUM_ACCUMULATE,
    GX_MOMENTUM_DAMPENING
};
/* adam and adamw, as torch.optim.Adam and AdamW; step holds the steps done before this
 * one */
enum {
    GX_ADAMW_PARAM,
    GX_ADAMW_GRAD,
    GX_ADAMW_M,
    GX_ADAMW_V,
    GX_ADAMW_STEP,
    GX_ADAMW_LR,
    GX_ADAMW_SCALE,
    GX_ADAMW_MASTER
};
enum {
    GX_ADAMW_BETA1,
    GX_ADAMW_BETA2,
    GX_ADAMW_EPS,
    GX_ADAMW_WEIGHT_DECAY,
    GX_ADAMW_ACCUMULATE
};
/* accumulate (internal): sum = (step % n == 0 ? 0 : sum) + grad / n, in f32 */
enum { GX_ACCUMULATE_GRAD, GX_ACCUMULATE_SUM, GX_ACCUMULATE_STEP };
enum { GX_ACCUMULATE_N };
/* grad_norm (internal): out = sqrt(before^2 + sum of grad^2), a chain over all gradients;
 * factor = min(1, max_norm / (out + 1e-6)) */
enum { GX_GRAD_NORM_GRAD, GX_GRAD_NORM_BEFORE, GX_GRAD_NORM_OUT, GX_GRAD_NORM_FACTOR };
enum { GX_GRAD_NORM_MAX };
/* loss_scale (internal): what the scale of the loss asks for between the norm of the
 * gradients and the updates; loss_scale.c says how */
enum {
    GX_LOSS_SCALE_NORM,
    GX_LOSS_SCALE_STEP,
    GX_LOSS_SCALE_SCALE,
    GX_LOSS_SCALE_SKIPPED,
    GX_LOSS_SCALE_TRACKER,
    GX_LOSS_SCALE_FACTOR,
    GX_LOSS_SCALE_UPDATE,
    GX_LOSS_SCALE_OUT,
    GX_LOSS_SCALE_USED,
    GX_LOSS_SCALE_COUNT
};
enum {
    GX_LOSS_SCALE_MAX_NORM,
    GX_LOSS_SCALE_INTERVAL,
    GX_LOSS_SCALE_GROWTH,
    GX_LOSS_SCALE_BACKOFF,
    GX_LOSS_SCALE_ACCUMULATE
};
/* schedule (internal): out = lr * factor of the updates done, less those skipped */
enum { GX_SCHEDULE_LR, GX_SCHEDULE_STEP, GX_SCHEDULE_OUT, GX_SCHEDULE_SKIPPED };
enum {
    GX_SCHEDULE_KIND,
    GX_SCHEDULE_WARMUP,
    GX_SCHEDULE_STEPS,
    GX_SCHEDULE_END,
    GX_SCHEDULE_EVERY,
    GX_SCHEDULE_FACTOR,
    GX_SCHEDULE_ACCUMULATE
};
/* gather (internal): out row j = data row index[shuffle(epoch, sample + j)], j < batch;
 * rows past the end of index repeat its last one. shuffle.h has the permutation. */
enum {
    GX_GATHER_DATA,
    GX_GATHER_INDEX,
    GX_GATHER_SAMPLE,
    GX_GATHER_EPOCH,
    GX_GATHER_OUT
};
enum { GX_GATHER_SHUFFLE };
/* step.end (internal): log[step % rows][i] = v_i; step += 1; sample += batch; when fewer
 * than `need` samples of `total` are left: sample = 0, epoch += 1 (total 0: no data) */
enum { GX_STEP_STEP, GX_STEP_SAMPLE, GX_STEP_EPOCH, GX_STEP_LOG, GX_STEP_V0 };
enum { GX_STEP_BATCH, GX_STEP_TOTAL, GX_STEP_NEED };

#endif
