/* The activations have no CUDA alternatives of their own: each becomes an epilogue. */
#include "ops.h"

const gx_alternative gx_act_alternatives[] = { { 0 } };
