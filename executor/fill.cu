/* A kernel that fills memory: in a graph it is launched sooner than a memset node. */
#include "fill.h"

#include "kernel.cuh"

namespace
{

/* The bytes of a row that lie in an aligned unit, which may reach over its ends. */
__device__ void fill_unit(unsigned char *unit, const unsigned char *begin,
                          const unsigned char *end, uint32_t word)
{
    if (unit >= begin && unit + GX_FILL_UNIT <= end) {
        *reinterpret_cast<uint4 *>(unit) = make_uint4(word, word, word, word);
        return;
    }
    for (int i = 0; i < GX_FILL_UNIT; i++)
        if (unit + i >= begin && unit + i < end)
            unit[i] = (unsigned char)(word >> 8 * (i % 4));
}

static __global__ void fill_kernel(const gx_fill fill)
{
    const size_t stride = (size_t)gridDim.x * blockDim.x * GX_FILL_UNIT;
    const size_t first = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) * GX_FILL_UNIT;

    gx_begin_kernel();
    for (size_t row = blockIdx.y; row < fill.n_rows; row += gridDim.y) {
        unsigned char *const begin = fill.to + row * fill.pitch;
        unsigned char *const end = begin + fill.row_bytes;
        unsigned char *unit = begin - (uintptr_t)begin % GX_FILL_UNIT + first;

        for (; unit < end; unit += stride)
            fill_unit(unit, begin, end, fill.word);
    }
}

} // namespace

const void *gx_fill_kernel(void)
{
    return gx_kernel(fill_kernel);
}
