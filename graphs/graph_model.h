/* The graph as the layers above see it: values, nodes, and the model's other sections.
 *
 * The reader (model.c) makes it flat: every repeat is unrolled, every name is qualified,
 * every default output name is written in. The ops layer binds nodes to rows of the
 * catalogue, checks shapes, and appends the derived nodes (resolve.h). */
#ifndef GX_GRAPH_MODEL_H
#define GX_GRAPH_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <gexec/graph.h>

#include "arena.h"
#include "diagnostics.h"

/* Limits; each is named in the diagnostic that refuses a model. */
enum {
    GX_LIMIT_DEPTH = 64,               /* nesting of the YAML document */
    GX_LIMIT_DOCUMENT_NODES = 4000000, /* after alias expansion */
    GX_LIMIT_FILE_BYTES = 256 << 20,
    GX_LIMIT_OPS = 1000000, /* after repeat */
    GX_LIMIT_NAME = 200,    /* bytes of a name, qualified, that gexec makes */
    GX_LIMIT_WRITTEN_NAME =
        160,          /* of one that a model gives: what is derived adds to it */
    GX_MAX_ARGS = 12, /* tensor fields of a row */
    GX_MAX_ATTRS = 16 /* other fields of a row */
};
#define GX_LIMIT_ELEMENTS (INT64_C(1) << 40) /* elements of one tensor */

typedef enum gx_precision {
    GX_PRECISION_F32,
    GX_PRECISION_TF32,
    GX_PRECISION_BF16,
    GX_PRECISION_F16,
    GX_N_PRECISIONS
} gx_precision;

typedef enum gx_init_kind {
    GX_INIT_ZEROS,
    GX_INIT_ONES,
    GX_INIT_CONSTANT,       /* a */
    GX_INIT_NORMAL,         /* mean a, standard deviation b */
    GX_INIT_UNIFORM,        /* a to b */
    GX_INIT_HE_NORMAL,      /* std sqrt(2 / fan_in): torch.nn.init.kaiming_normal_ */
    GX_INIT_HE_UNIFORM,     /* bound sqrt(6 / fan_in) */
    GX_INIT_XAVIER_NORMAL,  /* std sqrt(2 / (fan_in + fan_out)) */
    GX_INIT_XAVIER_UNIFORM, /* bound sqrt(6 / (fan_in + fan_out)) */
    GX_INIT_TORCH_LINEAR,   /* bound 1 / sqrt(fan_in): what torch.nn.Linear starts from */
    GX_INIT_INTEGERS,       /* a to b - 1 */
    GX_INIT_FILE,           /* path */
    GX_INIT_PARAM           /* as parameter `path` starts, not rounded to its type */
} gx_init_kind;

typedef struct gx_init {
    gx_init_kind kind;
    double a, b;
    const char *path; /* resolved and confined to the model's folder; or a parameter */
    gx_pos pos;
} gx_init;

typedef struct gx_value {
    const char *name;
    gx_value_kind kind;
    gx_dtype dtype;
    int rank;
    int64_t dim[GX_MAX_RANK];
    bool has_shape; /* a TEMP gets its shape from infer */
    bool is_output; /* must be readable after the step: never elided, never reused */
    bool fed;       /* an INPUT that the data section feeds */
    bool frozen;    /* a PARAM that is not trained: no gradient, no optimizer */
    bool updated;   /* an optimizer op writes it; set by the resolver */
    bool has_init;
    gx_init init;
    int64_t fan_in, fan_out; /* set by the resolver from the first gemm that reads it; 0:
                                by shape, [in, out] */
    int64_t index_limit;     /* I32: values must be in [0, index_limit); 0: any */
    int64_t index_ignored;   /* I32: one value outside that is allowed too; 0: none */
    const char *index_node;  /* I32: the node that asks for both; NULL: none */
    int32_t producer;        /* node that writes it first, or -1 */
    int32_t n_readers;       /* nodes that read it, counted by the resolver */
    int32_t n_products;      /* of these gemms that have it for a or b and nothing else */
    gx_pos pos;
} gx_value;

/* A field as written: dotted key, text, and where. */
typedef struct gx_field_value {
    const char *key;
    const char *text;
    gx_pos key_pos, pos;
} gx_field_value;

/* A non-tensor field after checking; BOOL and ENUM use i (ENUM: index into choices), INTS
 * and WORDS (indexes into choices) have i integers in `list`, which lives in the graph's
 * arena. */
typedef struct gx_attr {
    int64_t i;
    double r;
    bool present;
    const int64_t *list;
} gx_attr;

typedef struct gx_node {
    const char *op_name;
    const char *name;
    gx_phase phase;
    bool phase_given;
    gx_pos phase_pos; /* where it is given */
    gx_field_value *fields;
    int n_fields;
    gx_pos pos;
    /* set by the resolver */
    const gx_op *op;
    int32_t *arg;       /* value id by tensor-field index of the row, -1: absent */
    gx_attr *attr;      /* by other-field index of the row */
    const char *origin; /* name of the op as the user wrote it, for messages and ranges */
} gx_node;

typedef struct gx_data_column {
    int32_t input; /* value id of the INPUT that it feeds */
    const char *path;
    double scale, shift; /* value * scale + shift, in double, then rounded */
    gx_pos pos;
} gx_data_column;

typedef struct gx_data_spec {
    gx_data_column *columns;
    size_t n_columns;
    const char *split_path; /* NULL: every row is training */
    gx_pos split_pos;
    bool shuffle, drop_last;
    bool streams;     /* no gather in the program: the executor writes the fed inputs */
    bool stream_auto; /* the model says `auto`, or nothing */
    int epochs;
    int64_t n_rows, n_train, n_held;
    const char *batch_dim; /* the dim symbol that is the first size of every fed input */
    int64_t batch;
} gx_data_spec;

typedef struct gx_section { /* optimizer, or a metric */
    const char *name;       /* metric: its name */
    const char *op_name;
    gx_field_value *fields;
    int n_fields;
    gx_pos pos;
} gx_section;

typedef struct gx_dim {
    const char *name;
    int64_t value;
    gx_pos pos;
} gx_dim;

/* What a mean over the rows leaves out: those whose label is `ignored`. */
typedef struct gx_counted {
    int32_t labels; /* value id of the INPUT that has them; -1: it leaves out none */
    int64_t ignored;
} gx_counted;

struct gx_graph {
    gx_arena *arena;
    const char *name;
    const char *file;   /* for messages */
    const char *folder; /* where relative paths start */
    gx_precision precision;
    gx_kind kind;
    gx_dim *dims;
    size_t n_dims;
    gx_data_spec data;
    gx_value *values;
    size_t n_values, values_capacity;
    gx_node *nodes;
    size_t n_nodes, nodes_capacity;
    struct gx_name_map *value_names; /* name -> value id */
    struct gx_name_map *node_names;  /* name -> node id */
    const char *backward;            /* the loss to differentiate, or NULL */
    gx_pos backward_pos;
    gx_section optimizer; /* op_name NULL: none */
    gx_section *metrics;
    size_t n_metrics;
    const char **outputs;
    gx_pos *output_pos;
    size_t n_outputs;
    const char *const *keep;
    size_t n_keep;
    bool keep_gradients;
    /* An expanded file (gx_graph_yaml): everything is written out, also what the resolver
     * would derive, so that the resolver binds, infers and derives nothing. The reader
     * has then set kind, rate, n_logged, logged_name and logged_tensor; the values of the
     * data set and of gexec's own state are declared, and `backward`, `optimizer` and
     * `metrics` are empty. Left to the resolver: logged[i], the value named
     * logged_tensor[i]. */
    bool expanded;
    const char *logged_tensor[GX_MAX_LOGGED];
    /* set by the resolver */
    int32_t logged[GX_MAX_LOGGED];
    const char *logged_name[GX_MAX_LOGGED];
    gx_average average[GX_MAX_LOGGED];
    gx_counted counted[GX_MAX_LOGGED];
    size_t n_logged;
    double rate;
    bool finished;
    /* In an evaluation: something that is to be kept is not there, and has a name that
     * training may give. */
    bool asks_of_training;
    double parse_s, check_s;
};

/* What the reader must know of the catalogue to qualify names, without seeing the ops
 * layer: given by ops/load.c. */
typedef struct gx_catalogue {
    /* Kind of field `key` of op `op`; false when either is unknown (left to the
     * resolver). */
    bool (*field_kind)(const char *op, const char *key, gx_field_kind *kind);
    /* The key of the output that takes the op's own name where it is not written; NULL:
     * none. */
    const char *(*default_output)(const char *op);
} gx_catalogue;

/* Reads a document into a flat graph (nodes unresolved). Reports into `list`, which has
 * the source set. GX_OK where there is a graph, mistakes in `list` or not: the resolver
 * may find more of them. Else *graph is NULL: memory is out, or the document cannot be
 * read at all. */
gx_status gx_model_read(const char *text, size_t length, const char *name,
                        const char *folder, const gx_load_options *options,
                        const gx_catalogue *catalogue, gx_graph **graph,
                        gx_diagnostics *list, gx_error *err) GX_MUST_CHECK;

/* Reads a whole file, within GX_LIMIT_FILE_BYTES; the caller frees *text. */
gx_status gx_read_file(const char *path, char **text, size_t *length,
                       gx_error *err) GX_MUST_CHECK;

/* An empty graph; values and nodes are added by these. -1 and a report when the name is
 * taken or is not a name; -1 when memory is out. */
gx_graph *gx_graph_new(void);
/* rank -1: the shape comes later. */
int32_t gx_graph_add_value(gx_graph *graph, const char *name, gx_value_kind kind,
                           gx_dtype dtype, int rank, const int64_t *dim, gx_pos pos,
                           gx_diagnostics *list);
/* Copies the fields. */
int32_t gx_graph_append(gx_graph *graph, const char *op, const char *name, gx_phase phase,
                        const gx_field_value *fields, int n_fields, gx_pos pos,
                        gx_diagnostics *list);
/* Nodes become nodes[order[0]], nodes[order[1]], ...; those not named are dropped, and so
 * is every TEMP that has no producer then. Ids change: producers, names and args are
 * renumbered. false: memory is out. */
bool gx_graph_reorder(gx_graph *graph, const int32_t *order, size_t n);
/* permute.c: a graph whose nodes are nodes[order[0]], nodes[order[1]], ..., all of them;
 * value ids stay. All but its nodes, values and the numbers of its names is shared with
 * `graph`, which must outlive it and stay as it is; the rest lies in `arena`, but for
 * what gx_graph_permuted_free frees. Nothing is added to it. NULL: memory is out. */
gx_graph *gx_graph_permuted(const gx_graph *graph, const int32_t *order, gx_arena *arena);
void gx_graph_permuted_free(gx_graph *graph);
int32_t gx_graph_value_id(const gx_graph *graph, const char *name); /* -1: none */
int32_t gx_graph_node_id(const gx_graph *graph, const char *name);
/* Lives on from step to step: a parameter, a state or a tensor of the data set. */
bool gx_is_persistent(const gx_value *value);

/* "forward", "backward", "optimizer", "step". */
const char *gx_phase_name(gx_phase phase);
const char *gx_precision_name(gx_precision precision);

/* One number grammar for the whole format (graphs/README.md). On failure reports what was
 * expected and returns false. The expression may use dims of the graph. */
bool gx_read_real(const char *text, double *value);
/* False for what f32 would hold as infinity, or as 0 though it is not 0. */
bool gx_fits_f32(double value);
bool gx_eval_int(const gx_graph *graph, const char *text, gx_pos pos,
                 gx_diagnostics *list, int64_t *value);
bool gx_read_bool(const char *text, bool *value);
bool gx_is_name(const char *text);

/* Parses an initialiser's one-line text form ("he_normal", "normal: {std: 0.02}"). */
bool gx_read_init_text(gx_graph *graph, const char *text, gx_init *init,
                       gx_diagnostics *list, gx_pos pos);

/* The value whose initialiser it is: the parameter that GX_INIT_PARAM names, or `value`.
 */
const gx_value *gx_init_source(const gx_graph *graph, const gx_value *value);

/* Fills n doubles from an initialiser: host only, counter-based (Philox-4x32-10), so that
 * the same seed, tensor name and index give the same value everywhere. */
gx_status gx_init_fill(const gx_value *value, uint64_t seed, double *out, int64_t n,
                       gx_error *err) GX_MUST_CHECK;

/* Joins a path of the model to its folder and refuses what leaves it (.., absolute, links
 * that lead out). The result lives in the graph's arena; NULL after a report. */
const char *gx_confine_path(gx_graph *graph, const char *path, gx_pos pos,
                            gx_diagnostics *list);

#endif
