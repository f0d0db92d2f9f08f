/* Any bytes as an export of Nsight Systems: figures, or an error. */
#include "fuzz_trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_trace(gx_nsys_read_bytes, data, size, "fuzz.sqlite");
}
