/* Any bytes as a Kineto trace: figures, or an error. */
#include "fuzz_trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_trace(gx_kineto_read_bytes, data, size, "fuzz.json");
}
