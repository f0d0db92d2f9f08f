/* A CUPTI that does as it is told, loaded through GEXEC_CUPTI in place of the real one.
 *
 * The environment variable FAKE_CUPTI holds words, read at every call: "CALL=CODE" makes
 * a call fail (subscribe, register, enable, overhead for enabling its records, flush,
 * callback), "version=N" changes the version, "holder=NAME" names who holds CUPTI,
 * "dropped=N" are records lost, "deaf" records nothing, "careless" finds records that do
 * not fit into their buffer. */
#ifndef FAKE_CUPTI_H
#define FAKE_CUPTI_H

#include <stddef.h>

/* What the library exports beside CUPTI's functions; to be found with dlsym. */

/* Puts a record into the buffer, if its kind is enabled; `size` its bytes, of which a
 * record cut short has fewer than its kind. */
typedef void fake_cupti_emit_fn(const void *record, size_t size);
/* A graph node was made, or cloned where `original` is not NULL. Its number is its
 * address. */
typedef void fake_cupti_node_fn(const void *node, const void *original);
/* From any thread: a buffer of its own with n copies of a record, asked for and handed
 * over. */
typedef void fake_cupti_fill_fn(const void *record, size_t size, size_t n);

/* Numbers of the calls that it has names for, in both interfaces. */
enum {
    FAKE_CUPTI_KERNEL = 1,
    FAKE_CUPTI_FILL,
    FAKE_CUPTI_COPY,
    FAKE_CUPTI_GRAPH,
    FAKE_CUPTI_OTHER,
    FAKE_CUPTI_N_CALLS
};

#endif
