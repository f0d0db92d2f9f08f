/* What is shared by the files that examine candidates on the device. */
#ifndef GX_SELECT_BENCH_H
#define GX_SELECT_BENCH_H

#include "device.h"
#include "select.h"

typedef struct gx_operand gx_operand;

struct gx_bench {
    gx_device *device;
    void *memory, *workspace;
    size_t memory_bytes, workspace_bytes;
    uint64_t random;
    /* the site at hand */
    const gx_site *site;
    gx_call *calls;
    bool *elidable, *stored; /* by [call * GX_MAX_ARGS + arg]; `stored` is all false */
    gx_operand *operands;
    int32_t n_operands;
    double tolerance;
    double *sample;
};

/* Makes this the site at hand: operands with values, and with selector->measure what the
 * strict alternatives make of them. */
gx_status gx_bench_enter(gx_bench *bench, const gx_selector *selector,
                         const gx_site *site, gx_error *err) GX_MUST_CHECK;
/* The site's calls as this alternative has them. */
gx_group gx_bench_group(const gx_bench *bench, const gx_alternative *alternative);
/* Before a candidate runs: room for its workspace, outputs of NaN, and what is updated in
 * place as it was. */
gx_status gx_bench_ready(gx_bench *bench, const gx_prepared *prepared,
                         gx_error *err) GX_MUST_CHECK;
/* Runs it once; *error is how far it is off the strict alternatives. */
gx_status gx_bench_compare(gx_bench *bench, const gx_alternative *alternative,
                           const gx_prepared *prepared, double *error,
                           gx_error *err) GX_MUST_CHECK;

#endif
