/* The function that each fuzzer defines. */
#ifndef GX_FUZZ_TARGET_H
#define GX_FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
