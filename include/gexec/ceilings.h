/* What a card can do at best, as measured on it, and the floor of an op that follows. */
#ifndef GEXEC_CEILINGS_H
#define GEXEC_CEILINGS_H

#include <stddef.h>
#include <stdint.h>

#include <gexec/exec.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Arithmetic whose rates differ. */
typedef enum gx_rate {
    GX_RATE_F32,
    GX_RATE_TF32,
    GX_RATE_BF16,
    GX_RATE_F16,
    GX_RATES
} gx_rate;

enum { GX_CEILING_SIZES = 16 };

/* The rate of reading and writing within a working set of so many bytes: small ones live
 * in L2. */
typedef struct gx_copy_rate {
    int64_t bytes; /* read and written together */
    double bytes_per_s;
} gx_copy_rate;

typedef struct gx_ceilings {
    char card[128];
    int driver_version, runtime_version;
    char date[32];                       /* ISO 8601, UTC */
    double flops_per_s[GX_RATES];        /* of the best large product; < 0: n/a */
    gx_copy_rate copy[GX_CEILING_SIZES]; /* by growing size */
    size_t n_copy;
    double node_s;              /* a dependent node of an empty kernel in a graph */
    double programmatic_node_s; /* the same behind a programmatic edge; < 0: n/a */
    double copy_node_s; /* what a copy of four bytes from pinned memory adds to a chain */
    double copy_engine_s; /* the same of 64 KiB and more, beside its bytes */
    double
        beside_s;  /* what a node takes longer while another chain runs beside its own */
    double join_s; /* parting from a chain, or joining it, beside the nodes */
    double step_s; /* what a replay costs beside its nodes, back to back */
    double launch_s;     /* an eager launch, of the host */
    double graph_host_s; /* a replay of one node, of the host */
} gx_ceilings;

typedef enum gx_bound {
    GX_BOUND_UNKNOWN,
    GX_BOUND_COMPUTE,
    GX_BOUND_MEMORY,
    GX_BOUND_LATENCY
} gx_bound;

/* Measures, in some seconds, on an idle card. */
GX_API gx_status gx_ceilings_measure(int device, gx_ceilings *ceilings,
                                     gx_error *err) GX_MUST_CHECK;
/* What was measured and kept for this card, driver and toolkit; `folder` NULL: the user's
 * cache folder. GX_ERR_STATE where nothing was kept, GX_ERR_DATA where what lies there is
 * not whole, of another format or of another card, driver, toolkit or version of gexec:
 * the message says how to measure. */
GX_API gx_status gx_ceilings_load(const gx_device_info *info, const char *folder,
                                  gx_ceilings *ceilings, gx_error *err) GX_MUST_CHECK;
/* Replaces what was kept. GX_ERR_ARGUMENT for ceilings of another card. */
GX_API gx_status gx_ceilings_save(const gx_device_info *info, const char *folder,
                                  const gx_ceilings *ceilings,
                                  gx_error *err) GX_MUST_CHECK;

/* Bytes a second at this working set, between the sizes that were measured in proportion
 * to the logarithm; beyond them the nearest. */
GX_API double gx_ceilings_copy_rate(const gx_ceilings *ceilings, double bytes);
/* The larger of FLOPs over rate and bytes over copy rate, in seconds, and which it was.
 * GX_BOUND_LATENCY: both lie under the latency of a dependent node, which is not added.
 * < 0 and GX_BOUND_UNKNOWN where the rate is not known. */
GX_API double gx_ceilings_floor(const gx_ceilings *ceilings, gx_rate rate, double flops,
                                double bytes, gx_bound *bound);
GX_API const char *gx_bound_name(gx_bound bound); /* "compute", ... */
GX_API const char *gx_rate_name(gx_rate rate);    /* "f32", "tf32", "bf16", "f16" */

#ifdef __cplusplus
}
#endif
#endif
