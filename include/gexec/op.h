/* The op catalogue, for reading: what ops there are and which fields they take. */
#ifndef GEXEC_OP_H
#define GEXEC_OP_H

#include <stdbool.h>
#include <stddef.h>

#include <gexec/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gx_field_kind {
    GX_FIELD_IN,    /* a tensor that is read */
    GX_FIELD_INOUT, /* a tensor that is read and written in place */
    GX_FIELD_OUT,   /* a tensor that this op makes */
    GX_FIELD_BOOL,  /* true or false */
    GX_FIELD_INT,   /* an integer expression over dims */
    GX_FIELD_REAL,  /* a number */
    GX_FIELD_ENUM,  /* one of `choices` */
    GX_FIELD_INTS,  /* an integer expression over dims, or a list of up to GX_MAX_RANK;
                       as fields of text a list is "axis.0", "axis.1", ... */
    GX_FIELD_WORDS  /* one of `choices`, or a list of them, written as that of INTS */
} gx_field_kind;

/* One field of an op. A dotted name such as "epilogue.bias" is written nested in YAML. */
typedef struct gx_field {
    const char *name;
    gx_field_kind kind;
    bool required;
    const char *fallback;       /* the default as text; NULL: absent means absent */
    const char *const *choices; /* GX_FIELD_ENUM and _WORDS: ends with NULL */
    const char *doc;
} gx_field;

typedef struct gx_op gx_op;

/* Rows in catalogue order; i beyond the end gives NULL. */
GX_API size_t gx_op_count(void);
GX_API const gx_op *gx_op_at(size_t i);
GX_API const gx_op *gx_op_find(const char *name);

GX_API const char *gx_op_name(const gx_op *op);
GX_API const char *gx_op_summary(const gx_op *op);
GX_API const char *gx_op_formula(const gx_op *op);
/* Rows that only gexec itself puts into a graph, such as the gather of a batch. */
GX_API bool gx_op_is_internal(const gx_op *op);
GX_API bool gx_op_is_differentiable(const gx_op *op);
/* Ends with a row whose name is NULL. */
GX_API const gx_field *gx_op_fields(const gx_op *op);
/* The names of the CUDA alternatives that cover this op, alone or in a group; i beyond
 * the end gives NULL. `pattern` gets a text such as "gemm + epilogue". Empty without
 * CUDA. */
GX_API const char *gx_op_alternative(const gx_op *op, size_t i, char *pattern,
                                     size_t pattern_size);

#ifdef __cplusplus
}
#endif
#endif
