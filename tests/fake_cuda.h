/* CUDA and cuBLASLt with every call that gexec makes replaced (--wrap, see wrap.txt).
 *
 * Without a GPU the calls simulate: host memory is device memory, streams run at once,
 * captures build lists of nodes, events tell a clock that counts launches, kernels do
 * nothing. With GX_FAKE_REAL=1 (or fake_use_real) the real call stands behind each of
 * them. In both, each call is counted, one chosen call fails, and what is made is kept
 * account of. */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Forgets counts, the planned failure and mistakes. What is alive stays. */
void fake_begin(void);
/* The n-th call (from 1) of `function` after fake_begin gives `status` and does nothing;
 * one that frees, ends or waits does that first. */
void fake_fail(const char *function, long nth, int status);
/* Behind that failure each call of this function fails as well. */
void fake_fail_too(const char *function, int status);
/* Whether the planned failure has come, and whether it came while fake_quiet was on: in a
 * function that returns nothing, so that nobody could be told. */
bool fake_has_failed(void);
bool fake_has_failed_quietly(void);
void fake_quiet(bool quiet);

/* Calls since fake_begin; NULL: of all functions. */
long fake_calls(const char *function);
/* Functions in order of their first call; NULL past the end. */
const char *fake_function(size_t i);

/* Objects that were made and not freed; with their kinds as text. */
long fake_live(void);
const char *fake_live_text(void);
/* Use of what is not there, captures left open, and the like: the first as text, or NULL.
 */
const char *fake_mistake(void);

/* Turns of loops in graphs that were launched since the start. */
long fake_turns(void);

/* What the next cudaGetDeviceCount gives without a GPU; 1 at first. */
void fake_set_device_count(int n_devices);
/* The compute capability of the simulated card, as 90. */
void fake_set_cc(int cc);
/* Blocks of the largest cluster that it has room for; 16. */
void fake_set_most_cluster(unsigned blocks);
/* Called by the next cudaFuncGetAttributes once it has its answer, without a GPU. */
void fake_on_attributes(void (*hook)(void));
/* Called with the arguments of each kernel that is launched, without a GPU; NULL: none.
 */
void fake_on_launch(void (*hook)(void **args));
/* The dynamic shared memory that a kernel was allowed last. */
int fake_shared_limit(void);
/* The CUDA version of the simulated driver, as 13000. */
void fake_set_driver(int version);
/* Free bytes of the simulated card. */
void fake_set_free_bytes(size_t bytes);

/* Milliseconds that each programmatic edge adds to a launch of a simulated graph, and
 * what the one that leads to node `node` adds instead; 0 at first. */
void fake_set_edge_ms(double ms, size_t node, double node_ms);

/* Milliseconds that each branch adds to a launch of a simulated graph; 0 at first. */
void fake_set_branch_ms(double ms);

/* Milliseconds that anything takes which runs at once, and a launch of a graph; 1 at
 * first. */
void fake_set_tick_ms(double ms);

/* The library's algorithms for any product on a simulated card, in the order of its
 * heuristic; n 0: two without a time, as at first. */
typedef struct fake_algorithm {
    double ms;     /* besides the ticks */
    double hot_ms; /* likewise, once the card has worked for 30 ms while nobody waited */
    bool is_wrong; /* the first bytes of what it makes are */
} fake_algorithm;
void fake_set_algorithms(const fake_algorithm *algorithms, int n);
/* The most that the heuristic was asked for since then. */
int fake_algorithms_wanted(void);

/* From here on copies and fills of a simulated card run some time after they were
 * submitted, at the latest when the host waits for them, in an order that streams and
 * events allow and the seed picks: what is not ordered shows itself as a wrong value for
 * some seed. Only outside of captures, and begun while nothing is under way. */
void fake_order_begin(uint64_t seed);
void fake_order_end(void);
/* Runs what the stream (a cudaStream_t) has and nothing of other streams; false where it
 * waits for one of those. */
bool fake_order_runs_alone(const void *stream);

bool fake_is_real(void);
void fake_use_real(void);

#endif
