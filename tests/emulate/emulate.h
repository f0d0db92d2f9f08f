/* Kernels run on the CPU, so that machines without a GPU test their index arithmetic,
 * shared memory, barriers and clusters too.
 *
 * The .cu files are compiled by the C++ compiler of the host over emulate_device.h, which
 * is included ahead of them, and launched through gx_launch of emulate.cc. Each thread of
 * a block is a fiber. They run in an order drawn from a seed, each until it meets a
 * barrier, a collective of its warp or the end. What this shows as a wrong value or an
 * error that names block, thread and line:
 *
 * - a wrong index: memory has guard zones, and sanitizers see the rest;
 * - a missing barrier: a thread that goes on finds NaNs, in which shared memory begins,
 * or what was there before;
 * - a barrier or a collective that not all threads reach, or reach in different lines;
 * - another block's shared memory that is used before it has begun or when it has ended;
 * - memory that is read or written before cudaGridDependencySynchronize, unless it is
 *   steady: until then it holds NaNs, and then what it held before;
 * - fragments of mma.sync in wrong places, and operands that are not rounded to tf32;
 * - what the copy engine brings, or tensor cores make from shared memory, used before it
 * is there, or a place that is taken while they still need it: both go on at times of
 *   chance, copies in any order; and barriers in shared memory that count wrong;
 * - a launch that the card would refuse.
 *
 * What it cannot show: anything about time; what PTX and the assembler make of a kernel,
 * registers among it; whether a warp is whole where an instruction is for whole warps, as
 * the barriers of a cluster are; the memory model, since every store is seen at once and
 * in order (a fence or a .release that is missing, a race inside a stretch between two
 * barriers that goes well in any order of the threads); and blocks that run at the same
 * time but in no cluster, since here one is done before the next begins. The tests on a
 * GPU show those.
 *
 * How a kernel is tested: its .cu file is added to the list of tests/CMakeLists.txt. It
 * declares dynamic shared memory by GX_DYNAMIC_SHARED and names kernels by gx_kernel, and
 * its PTX stands in ops/target.cuh or ops/wgmma.cuh, of which emulate_device.h and
 * emulate_wgmma.h have their own versions. The
 * test, emulated_NAME.c, puts operands into memory of emulate_alloc, calls the launcher,
 * and compares. */
#ifndef EMULATE_H
#define EMULATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Memory for kernels, aligned like a device's, all NaNs, with guard zones around it.
 * Every launch checks the zones. NULL: there is none, and the test program ends then. */
void *emulate_alloc(size_t bytes);
void emulate_free(void *memory);
/* A kernel may read this memory ahead of its wait for the kernels before. */
void emulate_steady(void *memory, bool is_steady);

/* The bits of a float rounded to tf32: 10 behind the point, ties away from zero. Neither
 * NaN nor infinite. */
static inline uint32_t emulate_tf32(uint32_t bits)
{
    return (bits + 0x1000) & ~UINT32_C(0x1fff);
}

/* What the order of blocks and threads is drawn from in the launches that follow. */
void emulate_seed(uint64_t seed);

#ifdef __cplusplus
}
#endif
#endif
