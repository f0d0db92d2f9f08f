/* What kernels ask for, and their launches: see emulate.h. */
#include "emulate.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "emulate_blocks.h"

namespace emulate
{

namespace
{

constexpr unsigned MOST_THREADS = 1024, MOST_IN_CLUSTER = 16;
constexpr size_t SHARED_LIMIT = 232448, SHARED_DEFAULT = 49152;

/* --- kernels --- */

struct known_kernel {
    kernel_call *call;
    size_t most_shared = SHARED_DEFAULT;
    unsigned most_blocks = GX_MAX_CLUSTER; /* of a cluster */
    bool is_loaded = false;
};
std::unordered_map<const void *, known_kernel> kernels;

} // namespace

/* --- what emulate_device.h calls --- */

void remember(const void *kernel, kernel_call *call)
{
    kernels[kernel].call = call;
}

void *dynamic_shared()
{
    return running->of->dynamic->data;
}

void fail(const char *format, ...)
{
    char text[160];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    keep_message("block (%u, %u), thread %u: %s", running->at.block.x,
                 running->at.block.y, running->index, text);
    leave_thread(running);
    abort(); /* nothing enters it again */
}

void block_barrier(site at)
{
    running->waits = BLOCK;
    running->name = "__syncthreads";
    running->where = at;
    running->of->n_at_barrier++;
    release_block_barrier(running->of);
    leave_thread(running);
}

void cluster_arrive(site at)
{
    if (running->has_arrived)
        fail("arrives twice at the cluster's barrier, %s:%d", at.file, at.line);
    running->has_arrived = true;
    running->phase = now->phase;
    now->n_arrived++;
    release_cluster_barrier();
}

void cluster_wait(site at)
{
    if (!running->has_arrived)
        fail("waits for the cluster without having arrived, %s:%d", at.file, at.line);
    running->has_arrived = false;
    if (running->phase == now->phase)
        wait_for(CLUSTER, "barrier.cluster.wait", at);
}

void grid_wait(site at)
{
    if (now->is_released)
        return;
    if (now->n_before_release == 0) {
        release_grid();
    } else {
        now->n_before_release--;
        wait_for(GRID, "cudaGridDependencySynchronize", at);
    }
}

void collect(const char *name, unsigned mask, void *lane, combine_lanes *combine, site at)
{
    std::vector<thread> &threads = running->of->threads;
    const unsigned first = running->index / 32 * 32;
    const unsigned n = std::min((unsigned)threads.size() - first, 32u);
    void *lanes[32] = { nullptr };

    if ((mask >> running->index % 32 & 1) == 0)
        fail("%s: the mask lacks the lane itself, %s:%d", name, at.file, at.line);
    running->waits = COLLECTIVE;
    running->name = name;
    running->where = at;
    running->mask = mask;
    running->lane = lane;
    for (unsigned i = 0; i < n; i++) {
        const thread &t = threads[first + i];
        const bool is_here = t.waits == COLLECTIVE && t.mask == mask &&
                             t.where.line == at.line &&
                             strcmp(t.where.file, at.file) == 0;

        if ((mask >> i & 1) == 0)
            continue;
        if (!is_here) {
            leave_thread(running);
            return;
        }
        lanes[i] = t.lane;
    }
    combine(lanes);
    for (unsigned i = 0; i < n; i++) {
        if (lanes[i] != nullptr)
            make_ready(&threads[first + i]);
    }
    leave_thread(running);
}

/* --- addresses of shared memory --- */

namespace
{

/* [rank + 1, 8 bits][offset], variables behind 1 MiB. */
constexpr uint32_t VARIABLES = 1u << 20, OFFSETS = 1u << 24;

} // namespace

uint32_t shared_address(const void *at)
{
    const auto *byte = static_cast<const unsigned char *>(at);
    const guarded &dynamic = *running->of->dynamic;
    uint32_t offset;

    if (byte >= dynamic.data && byte <= dynamic.data + dynamic.bytes)
        return (uint32_t)(byte - dynamic.data);
    if (!find_variable(at, &offset))
        fail("an address that is not of this block's shared memory");
    return VARIABLES + offset;
}

uint32_t address_of_rank(uint32_t address, unsigned rank)
{
    if (rank >= now->blocks.size())
        fail("block %u of a cluster of %zu", rank, now->blocks.size());
    return address % OFFSETS + (rank + 1) * OFFSETS;
}

void *shared_memory(uint32_t address, size_t bytes)
{
    const uint32_t offset = address % OFFSETS, rank = address / OFFSETS;
    block *b = rank == 0 ? running->of : now->blocks[rank - 1].get();

    if (!b->has_begun || b->n_left == 0)
        fail("uses shared memory of block %u of the cluster, which has %s", b->rank,
             b->has_begun ? "ended" : "not begun");
    if (address % bytes != 0)
        fail("shared memory at %u is not aligned to %zu bytes", offset, bytes);
    if (offset >= VARIABLES) {
        size_t at;

        if (!find_in_copy(offset - VARIABLES, bytes, &at))
            fail("an address of no shared variable");
        return b == live ? variable_at(offset - VARIABLES) : b->variables.data() + at;
    }
    if (offset + bytes > b->dynamic->bytes)
        fail("%zu bytes at %u of %zu of shared memory", bytes, offset, b->dynamic->bytes);
    return b->dynamic->data + offset;
}

/* --- asynchronous copies --- */

void copy_later(size_t to, const void *from, int bytes, int valid)
{
    if (valid < 0 || valid > bytes || (uintptr_t)from % (size_t)bytes != 0)
        fail("cp.async of %d bytes of %d from an address that is %zu beyond a multiple",
             valid, bytes, (uintptr_t)from % (size_t)bytes);
    running->copies.push_back({ (uint32_t)to, from, bytes, valid, 0 });
}

void commit_copies()
{
    for (copy &each : running->copies)
        each.n_commits++;
}

/* Groups that have been committed; those that have not are not waited for. */
void wait_copies(size_t most_left)
{
    std::vector<copy> left;

    for (const copy &each : running->copies) {
        if (each.n_commits <= most_left) {
            left.push_back(each);
            continue;
        }
        auto *to = static_cast<char *>(shared_memory(each.to, (size_t)each.bytes));

        memcpy(to, each.from, (size_t)each.valid);
        memset(to + each.valid, 0, (size_t)(each.bytes - each.valid));
    }
    running->copies = std::move(left);
}

} // namespace emulate

/* --- what tests and launchers call --- */

extern "C" void emulate_seed(uint64_t seed)
{
    emulate::random_state = seed;
}

extern "C" gx_status gx_load_kernel(const void *kernel, size_t shared_bytes,
                                    const char *name, gx_error *err)
{
    const auto found = emulate::kernels.find(kernel);

    if (found == emulate::kernels.end())
        return GX_FAIL(err, GX_ERR_UNSUPPORTED, "%s: not named by gx_kernel", name);
    if (shared_bytes > emulate::SHARED_LIMIT)
        return GX_FAIL(err, GX_ERR_CUDA, "%s: %zu bytes of shared memory", name,
                       shared_bytes);
    found->second.is_loaded = true;
    found->second.most_shared = std::max(found->second.most_shared, shared_bytes);
    return GX_OK;
}

extern "C" gx_status gx_load_cluster_kernel(const void *kernel, dim3, unsigned cluster,
                                            size_t shared_bytes, const char *name,
                                            gx_error *err)
{
    const gx_status st = gx_load_kernel(kernel, shared_bytes, name, err);

    if (st == GX_OK) {
        unsigned &most = emulate::kernels.find(kernel)->second.most_blocks;

        most = std::max(most, cluster);
    }
    return st;
}

extern "C" gx_status gx_launch_cluster(gx_ctx *ctx, const char *name, const void *kernel,
                                       dim3 grid, dim3 block, unsigned cluster,
                                       size_t shared_bytes, void **args, gx_error *err)
{
    const auto found = emulate::kernels.find(kernel);
    const unsigned n = block.x * block.y * block.z;

    if (found == emulate::kernels.end() || !found->second.is_loaded)
        return GX_FAIL(err, GX_ERR_UNSUPPORTED, "%s: not loaded by gx_load_kernel", name);
    if (grid.x * grid.y * grid.z == 0 || n == 0 || n > emulate::MOST_THREADS ||
        cluster == 0 || grid.y % cluster != 0 || cluster > found->second.most_blocks ||
        cluster > emulate::MOST_IN_CLUSTER || shared_bytes > found->second.most_shared)
        return GX_FAIL(err, GX_ERR_CUDA,
                       "%s: refused: grid %u x %u x %u, block %u, cluster %u, shared %zu",
                       name, grid.x, grid.y, grid.z, n, cluster, shared_bytes);
    emulate::find_variables();
    emulate::launch launch = {};

    launch.name = name;
    launch.kernel = kernel;
    launch.call = found->second.call;
    launch.args = args;
    launch.grid = grid;
    launch.block_size = block;
    launch.shared_bytes = shared_bytes;
    emulate::now = &launch;
    emulate::run_grid(cluster);
    emulate::now = nullptr;
    if (launch.has_failed)
        return GX_FAIL(err, GX_ERR_CUDA, "%s: %s", name, launch.message);
    ctx->n_launched++;
    return GX_OK;
}

extern "C" gx_status gx_launch(gx_ctx *ctx, const char *name, const void *kernel,
                               dim3 grid, dim3 block, size_t shared_bytes, void **args,
                               gx_error *err)
{
    return gx_launch_cluster(ctx, name, kernel, grid, block, 1, shared_bytes, args, err);
}
