/* Models whose results are known exactly, and would be other numbers if a gradient were
 * overwritten instead of added, a sum kept in a narrow type, or an operand of f32 rounded
 * to tf32. No CMocka in it. */
#ifndef GX_SUPPORT_NUMERICS_H
#define GX_SUPPORT_NUMERICS_H

#include <stdbool.h>

#include <gexec/gexec.h>

/* An element by row and column. */
typedef double numerics_value(int64_t row, int64_t column);

typedef struct numerics_tensor {
    const char *name; /* NULL ends a list */
    int rank;
    int64_t rows, columns; /* rows alone where the rank is 1 */
    numerics_value *value;
    numerics_value *addend; /* of a sum over rows by column; NULL: it is none */
    int64_t n_addends;
    double rounding; /* relative, of what a sum is made from; 0: it is exact */
} numerics_tensor;

enum { NUMERICS_MAX = 12 };

typedef struct numerics_model {
    const char *name; /* NULL ends the list */
    const char *text; /* "$P": the precision */
    const char *precisions[5];
    const char *needed[8]; /* alternatives that have to apply somewhere on a GPU */
    numerics_tensor inputs[NUMERICS_MAX];   /* what is written before the step */
    numerics_tensor expected[NUMERICS_MAX]; /* what one step gives, to the bit */
} numerics_model;

extern const numerics_model numerics_models[];
const numerics_model *numerics_find(const char *name);
/* Its operands have more digits than the narrower types, so f32 is all it is there for.
 */
bool numerics_is_wide(const numerics_model *model);

/* Whether GX_TEST_WRONG is `what`, by which a run shows that these tests notice. "tf32":
 * that type is asked for where f32 was to be. "bf16": a sum is what it is when kept in
 * bf16. */
bool numerics_is_wrong(const char *what);
/* False for products of tensor cores alone. */
bool numerics_has_f32(const char *alternative);
#if GX_HAVE_CUDA
/* False where the build has no kernel for a card of this compute capability, `cc` 90 say.
 */
bool numerics_is_there(const char *alternative, int cc);
#endif
bool numerics_is_needed(const numerics_model *model, const char *precision,
                        const char *alternative);

/* Runs one step and returns how many of the expected tensors have another number
 * somewhere; the first such element of each is printed unless `quiet`. -1: the step could
 * not be run, which is printed. `info` is the plan's; where an alternative is forced that
 * applies nowhere nothing is run, for it would be the run that forces none. */
int numerics_mistakes(const numerics_model *model, const char *precision,
                      const gx_plan_options *options, gx_mode mode, bool quiet,
                      gx_plan_info *info);

#endif
