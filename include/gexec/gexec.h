/* gexec: runs an op graph on the CPU, by eager CUDA launches, or as a replayed CUDA
 * graph. */
#ifndef GEXEC_GEXEC_H
#define GEXEC_GEXEC_H

#include <gexec/ceilings.h>
#include <gexec/exec.h>
#include <gexec/graph.h>
#include <gexec/op.h>
#include <gexec/predict.h>
#include <gexec/profile.h>
#include <gexec/status.h>
#include <gexec/tensor.h>
#include <gexec/trace.h>

#define GX_VERSION_MAJOR 0
#define GX_VERSION_MINOR 1
#define GX_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library that runs, as "0.1.0"; compare with the macros. */
GX_API const char *gx_version(void);

#ifdef __cplusplus
}
#endif
#endif
