/* The threads of a cluster, one after another in an order of chance. */
#include "emulate_blocks.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <utility>

#include "emulate_async.h"

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#else
#define ASAN_UNPOISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#define __sanitizer_start_switch_fiber(fake, stack, bytes) \
    ((void)(fake), (void)(stack), (void)(bytes))
#define __sanitizer_finish_switch_fiber(fake, stack, bytes) \
    ((void)(fake), (void)(stack), (void)(bytes))
#endif

namespace emulate
{

const place *here;
launch *now;
block *live;
thread *running;
uint64_t random_state;

static constexpr size_t STACK = 128 * 1024, PAGE = 4096;

/* Where the launch itself goes on. */
static ucontext_t scheduler;
static const void *scheduler_stack;
static void *scheduler_fake;
static size_t scheduler_bytes;

unsigned random_below(size_t n)
{
    uint64_t z = random_state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (unsigned)((z ^ z >> 31) % n);
}

template <typename T> static T take_any(std::vector<T> &from)
{
    std::swap(from[random_below(from.size())], from.back());
    const T taken = from.back();

    from.pop_back();
    return taken;
}
/* --- stacks --- */

static std::vector<unsigned char *> stacks;
static size_t n_stacks_used;

static unsigned char *take_stack()
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
static thread *choose_thread();

static void switch_context(ucontext_t *from, void **fake, thread *to)
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

void make_ready(thread *t)
{
    t->waits = NOTHING;
    t->of->ready.push_back(t);
}

void wait_for(waiting what, const char *name, site at)
{
    running->waits = what;
    running->name = name;
    running->where = at;
    leave_thread(running);
}

/* Puts a block's shared variables in place; they are NaNs at first. */
static void enter_block(block *to)
{
    if (live == to)
        return;
    if (live != nullptr && now->blocks.size() > 1)
        save_variables(live->variables.data());
    live = to;
    if (to->has_begun) {
        load_variables(to->variables.data());
        return;
    }
    to->has_begun = true;
    poison_variables();
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
static void end_thread(thread *t)
{
    t->is_done = true;
    t->of->n_left--;
    now->n_left--;
    if (t->has_arrived && t->phase == now->phase)
        now->n_arrived--;
    release_block_barrier(t->of);
    release_cluster_barrier();
}

static void run_thread(unsigned high, unsigned low)
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

static void make_thread(block *b, unsigned index, uint3 block_index)
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

static std::unique_ptr<block> make_block(unsigned rank, uint3 index)
{
    const unsigned n = now->block_size.x * now->block_size.y * now->block_size.z;
    auto made = std::make_unique<block>();

    made->rank = rank;
    made->threads.resize(n);
    made->n_left = n;
    made->dynamic = std::make_unique<guarded>(now->shared_bytes);
    for (unsigned i = 0; i < n; i++)
        make_thread(made.get(), i, index);
    made->variables.resize(variable_bytes());
    return made;
}

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

static const char *name_of_file(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != nullptr ? slash + 1 : path;
}

static void report_deadlock()
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
static block *choose_block()
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

static thread *choose_thread()
{
    if (now->n_left == 0)
        return nullptr;
    if (now->patience > 0 && random_below(now->patience) == 0)
        advance_engines();
    block *b = choose_block();

    while (b == nullptr && !now->has_failed && advance_engines())
        b = choose_block();
    if (b == nullptr && !now->is_released) {
        release_grid();
        b = choose_block();
    }
    if (b == nullptr || now->has_failed)
        return nullptr;
    enter_block(b);
    return take_any(b->ready);
}

static void run_threads()
{
    thread *first = choose_thread();

    switch_context(&scheduler, &scheduler_fake, first);
    __sanitizer_finish_switch_fiber(scheduler_fake, nullptr, nullptr);
    if (now->n_left > 0 && !now->has_failed)
        report_deadlock();
}

static void check_memory()
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

static constexpr unsigned patiences[] = { 0, 1, 30, 1000 };

/* The blocks of a cluster, along y. */
static void run_cluster(uint3 first, unsigned n)
{
    live = nullptr;
    n_stacks_used = 0;
    now->is_released = false;
    now->n_arrived = now->phase = 0;
    now->n_left = n * now->block_size.x * now->block_size.y * now->block_size.z;
    now->n_before_release = random_below(2) * random_below(now->n_left);
    now->patience = patiences[random_below(sizeof patiences / sizeof *patiences)];
    for (unsigned rank = 0; rank < n; rank++)
        now->blocks.push_back(make_block(rank, { first.x, first.y + rank, first.z }));
    for (auto &each : global_memory) {
        if (!each->is_steady)
            each->hold();
    }
    run_threads();
    close_engines();
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

} // namespace emulate
