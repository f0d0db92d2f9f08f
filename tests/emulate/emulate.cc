/* Blocks of fibers, their shared memory and their launches: see emulate.h. */
#include <elf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <vector>

#include "emulate.h"
#include "emulate_device.h"

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#else
#define __sanitizer_start_switch_fiber(fake, stack, bytes) \
    ((void)(fake), (void)(stack), (void)(bytes))
#define __sanitizer_finish_switch_fiber(fake, stack, bytes) \
    ((void)(fake), (void)(stack), (void)(bytes))
#define ASAN_POISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#endif

/* What thread-local variables are found from. */
thread_local char emulate_anchor;

namespace emulate
{

const place *here;

namespace
{

constexpr unsigned char POISON = 0xff; /* a NaN of every type */
constexpr size_t GUARD = 256, STACK = 128 * 1024, PAGE = 4096;
constexpr unsigned MOST_THREADS = 1024, MOST_IN_CLUSTER = 16;
constexpr size_t SHARED_LIMIT = 232448, SHARED_DEFAULT = 49152;

/* --- random numbers: splitmix64 --- */

uint64_t random_state;

unsigned random_below(size_t n)
{
    uint64_t z = random_state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (unsigned)((z ^ z >> 31) % n);
}

template <typename T> T take_any(std::vector<T> &from)
{
    std::swap(from[random_below(from.size())], from.back());
    const T taken = from.back();

    from.pop_back();
    return taken;
}

/* --- memory --- */

/* [guard][bytes][guard], of which sanitizers let nobody touch the guards. */
struct guarded {
    unsigned char *block, *data;
    size_t bytes;
    bool is_steady = false;
    std::vector<unsigned char> held; /* while a kernel may not see it */

    explicit guarded(size_t n) : bytes(n)
    {
        const size_t all = (GUARD + n + GUARD + GUARD - 1) / GUARD * GUARD;

        block = static_cast<unsigned char *>(aligned_alloc(GUARD, all));
        if (block == nullptr)
            abort();
        data = block + GUARD;
        memset(block, POISON, GUARD + n + GUARD);
        ASAN_POISON_MEMORY_REGION(block, GUARD);
        ASAN_POISON_MEMORY_REGION(data + bytes, GUARD);
    }
    guarded(const guarded &) = delete;
    guarded &operator=(const guarded &) = delete;
    ~guarded()
    {
        open();
        free(block);
    }

    void open()
    {
        ASAN_UNPOISON_MEMORY_REGION(block, GUARD);
        ASAN_UNPOISON_MEMORY_REGION(data + bytes, GUARD);
    }

    /* Where a guard zone was written, from the beginning of the memory; 0: nowhere. */
    ptrdiff_t find_damage()
    {
        ptrdiff_t at = 0;

        open();
        for (ptrdiff_t i = 0; i < (ptrdiff_t)GUARD && at == 0; i++) {
            if (data[bytes + (size_t)i] != POISON)
                at = (ptrdiff_t)bytes + i;
            else if (data[-1 - i] != POISON)
                at = -1 - i;
        }
        ASAN_POISON_MEMORY_REGION(block, GUARD);
        ASAN_POISON_MEMORY_REGION(data + bytes, GUARD);
        return at;
    }

    void hold()
    {
        held.assign(data, data + bytes);
        memset(data, POISON, bytes);
    }

    void release()
    {
        if (!held.empty())
            memcpy(data, held.data(), bytes);
        held.clear();
    }
};

std::vector<std::unique_ptr<guarded>> global_memory;

guarded *find_memory(const void *memory)
{
    for (auto &each : global_memory) {
        if (each->data == memory)
            return each.get();
    }
    fprintf(stderr, "emulate: %p is no memory of emulate_alloc\n", memory);
    abort();
}

/* --- __shared__ variables, of which the program has one copy --- */

struct piece {
    unsigned char *at;
    size_t bytes;
};
std::vector<piece> shared_variables;

std::vector<char> read_program()
{
    std::vector<char> bytes;
    FILE *file = fopen("/proc/self/exe", "rb");
    char part[65536];

    if (file == nullptr)
        abort();
    for (size_t n; (n = fread(part, 1, sizeof part, file)) > 0;)
        bytes.insert(bytes.end(), part, part + n);
    fclose(file);
    return bytes;
}

/* Thread-local variables of functions, as the symbol table has them: sanitizers may have
 * some of their own. */
bool is_shared(const char *name)
{
    return strncmp(name, "_ZZ", 3) == 0 && strstr(name, "__sanitizer") == nullptr &&
           strstr(name, "__asan") == nullptr && strstr(name, "__ubsan") == nullptr;
}

void find_shared_variables()
{
    const std::vector<char> program = read_program();
    Elf64_Ehdr header;
    std::vector<std::pair<uint64_t, size_t>> found;
    const unsigned char *anchor = reinterpret_cast<unsigned char *>(&emulate_anchor);
    bool has_anchor = false;

    memcpy(&header, program.data(), sizeof header);
    const auto *sections =
        reinterpret_cast<const Elf64_Shdr *>(program.data() + header.e_shoff);

    for (unsigned s = 0; s < header.e_shnum; s++) {
        if (sections[s].sh_type != SHT_SYMTAB)
            continue;
        const char *names = program.data() + sections[sections[s].sh_link].sh_offset;
        const auto *symbols =
            reinterpret_cast<const Elf64_Sym *>(program.data() + sections[s].sh_offset);

        for (size_t i = 0; i < sections[s].sh_size / sizeof *symbols; i++) {
            const char *name = names + symbols[i].st_name;

            if (ELF64_ST_TYPE(symbols[i].st_info) != STT_TLS)
                continue;
            if (strcmp(name, "emulate_anchor") == 0) {
                anchor -= symbols[i].st_value;
                has_anchor = true;
            } else if (is_shared(name)) {
                found.emplace_back(symbols[i].st_value, symbols[i].st_size);
            }
        }
    }
    if (!has_anchor) {
        fprintf(stderr, "emulate: this program has no symbol table\n");
        abort();
    }
    std::sort(found.begin(), found.end());
    for (const auto &[offset, bytes] : found)
        shared_variables.push_back(
            { const_cast<unsigned char *>(anchor) + offset, bytes });
}

/* --- blocks, and threads as fibers --- */

enum waiting { NOTHING, BLOCK, COLLECTIVE, CLUSTER, GRID };

struct block;

struct thread {
    place at;
    block *of;
    ucontext_t context;
    void *fake_stack; /* of AddressSanitizer */
    unsigned index;
    bool is_done;
    /* what it waits for */
    waiting waits;
    const char *name;
    site where;
    unsigned mask;
    void *lane;
    /* of the cluster's barrier */
    bool has_arrived;
    unsigned phase;
};

struct block {
    unsigned rank; /* in the cluster */
    std::vector<thread> threads;
    std::vector<thread *> ready;
    unsigned n_left, n_at_barrier = 0;
    bool has_begun = false;
    std::vector<unsigned char> variables; /* while another block runs */
    std::unique_ptr<guarded> dynamic;
};

struct launch {
    const char *name;
    const void *kernel;
    kernel_call *call;
    void **args;
    dim3 grid, block_size;
    size_t shared_bytes;
    /* the cluster that runs */
    std::vector<std::unique_ptr<block>> blocks;
    unsigned n_left, n_arrived, phase;
    bool is_released; /* from the wait for the kernels before */
    bool has_failed;
    char message[200];
};

launch *now;
block *live; /* whose shared variables are in place */
thread *running;
ucontext_t scheduler;
const void *scheduler_stack;
void *scheduler_fake;
size_t scheduler_bytes;

/* --- stacks --- */

std::vector<unsigned char *> stacks;
size_t n_stacks_used;

unsigned char *take_stack()
{
    if (n_stacks_used == stacks.size()) {
        void *stack = mmap(nullptr, STACK, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        if (stack == MAP_FAILED || mprotect(stack, PAGE, PROT_NONE) != 0)
            abort();
        stacks.push_back(static_cast<unsigned char *>(stack));
    }
    return stacks[n_stacks_used++];
}

/* --- switching --- */

/* Who goes on; NULL: nobody, for whatever reason. */
thread *choose_thread();

void switch_context(ucontext_t *from, void **fake, thread *to)
{
    running = to;
    if (to != nullptr)
        here = &to->at;
    __sanitizer_start_switch_fiber(
        fake, to != nullptr ? to->context.uc_stack.ss_sp : scheduler_stack,
        to != nullptr ? STACK : scheduler_bytes);
    swapcontext(from, to != nullptr ? &to->context : &scheduler);
}

/* Comes back when the thread is chosen again, and never where it has ended. */
void leave_thread(thread *from)
{
    thread *to = now->has_failed ? nullptr : choose_thread();

    if (to == from)
        return;
    switch_context(&from->context, from->is_done ? nullptr : &from->fake_stack, to);
    __sanitizer_finish_switch_fiber(from->fake_stack, nullptr, nullptr);
}

/* Until somebody makes the thread ready. */
void wait(waiting what, const char *name, site at)
{
    running->waits = what;
    running->name = name;
    running->where = at;
    leave_thread(running);
}

void make_ready(thread *t)
{
    t->waits = NOTHING;
    t->of->ready.push_back(t);
}

void copy_variables(block *b, bool out)
{
    size_t at = 0;

    for (const piece &each : shared_variables) {
        unsigned char *saved = b->variables.data() + at;

        memcpy(out ? saved : each.at, out ? each.at : saved, each.bytes);
        at += each.bytes;
    }
}

/* Puts a block's shared variables in place; they are NaNs at first. */
void enter_block(block *to)
{
    if (live == to)
        return;
    if (live != nullptr && now->blocks.size() > 1)
        copy_variables(live, true);
    live = to;
    if (to->has_begun) {
        copy_variables(to, false);
        return;
    }
    to->has_begun = true;
    for (const piece &each : shared_variables)
        memset(each.at, POISON, each.bytes);
}

/* --- barriers --- */

void release_block_barrier(block *b)
{
    const site *first = nullptr;

    if (b->n_at_barrier == 0 || b->n_at_barrier < b->n_left)
        return;
    b->n_at_barrier = 0;
    for (thread &t : b->threads) {
        if (t.waits != BLOCK)
            continue;
        if (first == nullptr)
            first = &t.where;
        else if (first->line != t.where.line || strcmp(first->file, t.where.file) != 0)
            fail("threads of a block meet in different barriers, of %s:%d and %s:%d",
                 first->file, first->line, t.where.file, t.where.line);
        make_ready(&t);
    }
}

void release_cluster_barrier()
{
    if (now->n_arrived == 0 || now->n_arrived < now->n_left)
        return;
    now->n_arrived = 0;
    now->phase++;
    for (auto &b : now->blocks) {
        for (thread &t : b->threads) {
            if (t.waits == CLUSTER)
                make_ready(&t);
        }
    }
}

void release_grid()
{
    now->is_released = true;
    for (auto &each : global_memory)
        each->release();
    for (auto &b : now->blocks) {
        for (thread &t : b->threads) {
            if (t.waits == GRID)
                make_ready(&t);
        }
    }
}

/* Those that have ended are waited for no more. */
void end_thread(thread *t)
{
    t->is_done = true;
    t->of->n_left--;
    now->n_left--;
    if (t->has_arrived && t->phase == now->phase)
        now->n_arrived--;
    release_block_barrier(t->of);
    release_cluster_barrier();
}

void run_thread(unsigned high, unsigned low)
{
    auto *t = reinterpret_cast<thread *>((uintptr_t)high << 32 | low);

    const void *stack = nullptr;
    size_t bytes = 0;

    __sanitizer_finish_switch_fiber(nullptr, &stack, &bytes);
    if (scheduler_stack == nullptr) { /* the first of all comes from there */
        scheduler_stack = stack;
        scheduler_bytes = bytes;
    }
    now->call(now->kernel, now->args);
    end_thread(t);
    leave_thread(t);
}

/* --- a cluster, and what comes of it --- */

void make_thread(block *b, unsigned index, uint3 block_index)
{
    const dim3 size = now->block_size;
    thread &t = b->threads[index];

    t = thread();
    t.at = { { index % size.x, index / size.x % size.y, index / size.x / size.y },
             block_index,
             size,
             now->grid };
    t.of = b;
    t.index = index;
    getcontext(&t.context);
    t.context.uc_stack.ss_sp = take_stack();
    t.context.uc_stack.ss_size = STACK;
    ASAN_UNPOISON_MEMORY_REGION(static_cast<char *>(t.context.uc_stack.ss_sp) + PAGE,
                                STACK - PAGE);
    makecontext(&t.context, reinterpret_cast<void (*)()>(run_thread), 2,
                (unsigned)((uintptr_t)&t >> 32), (unsigned)(uintptr_t)&t);
    b->ready.push_back(&t);
}

std::unique_ptr<block> make_block(unsigned rank, uint3 index)
{
    const unsigned n = now->block_size.x * now->block_size.y * now->block_size.z;
    auto made = std::make_unique<block>();

    made->rank = rank;
    made->threads.resize(n);
    made->n_left = n;
    made->dynamic = std::make_unique<guarded>(now->shared_bytes);
    for (unsigned i = 0; i < n; i++)
        make_thread(made.get(), i, index);
    size_t bytes = 0;

    for (const piece &each : shared_variables)
        bytes += each.bytes;
    made->variables.resize(bytes);
    return made;
}

void keep_message(const char *format, ...) __attribute__((format(printf, 1, 2)));
void keep_message(const char *format, ...)
{
    va_list args;

    if (now->has_failed)
        return;
    now->has_failed = true;
    va_start(args, format);
    vsnprintf(now->message, sizeof now->message, format, args);
    va_end(args);
}

const char *name_of_file(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != nullptr ? slash + 1 : path;
}

void report_deadlock()
{
    for (auto &b : now->blocks) {
        for (const thread &t : b->threads) {
            if (t.is_done)
                continue;
            keep_message("%u threads wait for ever: thread %u of block (%u, %u) in %s, "
                         "%s:%d",
                         now->n_left, t.index, t.at.block.x, t.at.block.y, t.name,
                         name_of_file(t.where.file), t.where.line);
            return;
        }
    }
}

/* A block goes on for a while, since to change it takes time. NULL: all wait. */
block *choose_block()
{
    std::vector<block *> able;

    if (live != nullptr && !live->ready.empty() && random_below(64) != 0)
        return live;
    for (auto &b : now->blocks) {
        if (!b->ready.empty())
            able.push_back(b.get());
    }
    return able.empty() ? nullptr : take_any(able);
}

thread *choose_thread()
{
    block *b = choose_block();

    if (b == nullptr && now->n_left > 0 && !now->is_released) {
        release_grid();
        b = choose_block();
    }
    if (b == nullptr)
        return nullptr;
    enter_block(b);
    return take_any(b->ready);
}

void run_threads()
{
    thread *first = choose_thread();

    switch_context(&scheduler, &scheduler_fake, first);
    __sanitizer_finish_switch_fiber(scheduler_fake, nullptr, nullptr);
    if (now->n_left > 0)
        report_deadlock();
}

void check_memory()
{
    for (auto &b : now->blocks) {
        if (b->dynamic->find_damage() != 0)
            keep_message("block (%u, %u) wrote at %td of %zu bytes of shared memory",
                         b->threads[0].at.block.x, b->threads[0].at.block.y,
                         b->dynamic->find_damage(), b->dynamic->bytes);
    }
    for (auto &each : global_memory) {
        if (each->find_damage() != 0)
            keep_message("block (%u, %u) or its cluster wrote at %td of %zu bytes",
                         now->blocks[0]->threads[0].at.block.x,
                         now->blocks[0]->threads[0].at.block.y, each->find_damage(),
                         each->bytes);
    }
}

/* The blocks of a cluster, along y. */
void run_cluster(uint3 first, unsigned n)
{
    live = nullptr;
    n_stacks_used = 0;
    now->is_released = false;
    now->n_arrived = now->phase = 0;
    now->n_left = n * now->block_size.x * now->block_size.y * now->block_size.z;
    for (unsigned rank = 0; rank < n; rank++)
        now->blocks.push_back(make_block(rank, { first.x, first.y + rank, first.z }));
    for (auto &each : global_memory) {
        if (!each->is_steady)
            each->hold();
    }
    run_threads();
    for (auto &each : global_memory)
        each->release();
    check_memory();
    now->blocks.clear();
}

void run_grid(unsigned cluster)
{
    const dim3 grid = now->grid;
    const unsigned n = grid.x * (grid.y / cluster) * grid.z;
    std::vector<unsigned> left;

    for (unsigned i = 0; i < n; i++)
        left.push_back(i);
    while (!left.empty() && !now->has_failed) {
        const unsigned i = take_any(left);

        run_cluster({ i % grid.x, i / grid.x % (grid.y / cluster) * cluster,
                      i / grid.x / (grid.y / cluster) },
                    cluster);
    }
}

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
        wait(CLUSTER, "barrier.cluster.wait", at);
}

void grid_wait(site at)
{
    if (!now->is_released)
        wait(GRID, "cudaGridDependencySynchronize", at);
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

/* --- addresses of shared memory: [rank + 1, 8 bits][offset], variables behind 1 MiB ---
 */

namespace
{

constexpr uint32_t VARIABLES = 1u << 20, OFFSETS = 1u << 24;

/* Where the shared variable at `offset` lies, or is kept while another block runs. */
void *variable_memory(block *b, uint32_t offset, size_t bytes)
{
    size_t at = 0;

    for (const piece &each : shared_variables) {
        const size_t from = (size_t)(each.at - shared_variables[0].at);

        if (offset >= from && offset + bytes <= from + each.bytes)
            return (b == live ? each.at : b->variables.data() + at) + (offset - from);
        at += each.bytes;
    }
    fail("an address of no shared variable");
}

} // namespace

uint32_t shared_address(const void *at)
{
    const auto *byte = static_cast<const unsigned char *>(at);
    const guarded &dynamic = *running->of->dynamic;

    if (byte >= dynamic.data && byte <= dynamic.data + dynamic.bytes)
        return (uint32_t)(byte - dynamic.data);
    for (const piece &each : shared_variables) {
        if (byte >= each.at && byte <= each.at + each.bytes)
            return VARIABLES + (uint32_t)(byte - shared_variables[0].at);
    }
    fail("an address that is not of this block's shared memory");
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
    if (offset >= VARIABLES)
        return variable_memory(b, offset - VARIABLES, bytes);
    if (offset + bytes > b->dynamic->bytes)
        fail("%zu bytes at %u of %zu of shared memory", bytes, offset, b->dynamic->bytes);
    return b->dynamic->data + offset;
}

} // namespace emulate

/* --- what tests and launchers call --- */

using emulate::global_memory;

extern "C" void *emulate_alloc(size_t bytes)
{
    global_memory.push_back(std::make_unique<emulate::guarded>(bytes));
    return global_memory.back()->data;
}

extern "C" void emulate_free(void *memory)
{
    const emulate::guarded *found = emulate::find_memory(memory);

    global_memory.erase(
        std::find_if(global_memory.begin(), global_memory.end(),
                     [&](const auto &each) { return each.get() == found; }));
}

extern "C" void emulate_steady(void *memory, bool is_steady)
{
    emulate::find_memory(memory)->is_steady = is_steady;
}

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
    if (emulate::shared_variables.empty())
        emulate::find_shared_variables();
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
