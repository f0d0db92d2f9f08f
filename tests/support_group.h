/* Groups of a model's nodes, as an alternative of theirs sees them. */
#ifndef GX_SUPPORT_GROUP_H
#define GX_SUPPORT_GROUP_H

#include "plan.h"
#include "support_rows.h"
#include "support_walk.h"

enum { TEST_GROUP_CALLS = 8 };

typedef struct test_group {
    const char *text; /* the caller's */
    test_walk model;
    const gx_alternative *at;
    int32_t first; /* node */
    gx_call calls[TEST_GROUP_CALLS];
    bool elided[TEST_GROUP_CALLS * GX_MAX_ARGS];
    gx_group group;
} test_group;

/* A card that has what every alternative asks for. */
extern const gx_ctx test_card;

/* The first n nodes of the model that an alternative of this name covers whole; fails the
 * test where there are none. Text and precision as in test_walk_parse; what is opened
 * must stay where it is. */
void test_group_open(test_group *g, const char *text, const char *precision,
                     const char *name, int32_t n);
void test_group_close(test_group *g);

/* Fails the test unless the alternative refuses the group on test_card with a reason that
 * holds `why`; NULL: unless it takes it. */
void test_group_refuses(const test_group *g, const char *why);
/* Puts each operand at an address of its own that every load can start from. Nothing is
 * there. */
void test_group_align(test_group *g);

#if GX_HAVE_CUDA
/* test_nodes_check of every group of up to `most` nodes that an alternative which `wants`
 * accepts covers whole, `shift` elements behind an aligned address. Returns how many
 * candidates ran. */
typedef bool test_wants(const gx_graph *graph, const gx_alternative *at, int32_t first);
int test_groups_check(test_device *device, const test_walk *walk, test_wants *wants,
                      int32_t most, int shift);
#endif

/* The unit that has the node. */
const gx_unit *test_unit_of(const gx_plan *plan, const char *node);

#endif
