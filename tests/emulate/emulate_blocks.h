/* Blocks of an emulated launch, and their threads as fibers. */
#ifndef EMULATE_BLOCKS_H
#define EMULATE_BLOCKS_H

#include <ucontext.h>

#include <memory>
#include <vector>

#include "emulate_device.h"
#include "emulate_memory.h"

namespace emulate
{

enum waiting {
    NOTHING,
    BLOCK,
    NAMED_BARRIER,
    MEMORY_BARRIER,
    COLLECTIVE,
    CLUSTER,
    GRID,
    PRODUCTS
};

struct block;

/* An asynchronous copy to shared memory, and how many commits followed it. */
struct copy {
    uint32_t to;
    const void *from;
    int bytes, valid;
    size_t n_commits;
};

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
    const void *barrier; /* in shared memory */
    /* of the cluster's barrier */
    bool has_arrived;
    unsigned phase;
    std::vector<copy> copies; /* that are under way */
    std::vector<product> products;
    unsigned n_committed, n_made; /* groups of products */
};

struct block {
    unsigned rank; /* in the cluster */
    std::vector<thread> threads;
    std::vector<thread *> ready;
    unsigned n_left, n_at_barrier = 0, n_at_named = 0, named_threads = 0;
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
    unsigned n_before_release; /* threads that wait before the kernels before are done */
    unsigned patience; /* threads that go on for each thing that engines do; 0: all
                        * that can */
    bool is_released;
    bool has_failed;
    char message[200];
};

extern launch *now;
extern block *live; /* whose shared variables are in place */
extern thread *running;

extern uint64_t random_state; /* splitmix64 */
unsigned random_below(size_t n);

/* Runs the grid of `now`, in clusters of so many blocks along y. */
void run_grid(unsigned cluster);
/* Another thread goes on, until this one is ready and chosen again. */
void leave_thread(thread *from);
void make_ready(thread *t);
/* The running thread goes on when somebody makes it ready. */
void wait_for(waiting what, const char *name, site at);
/* The first error of a launch is kept. */
void keep_message(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Lets those go on for whom all have come. */
void release_block_barrier(block *b);
void release_cluster_barrier();
void release_grid();

} // namespace emulate

#endif
