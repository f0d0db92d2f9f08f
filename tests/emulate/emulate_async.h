/* What goes on beside the threads of a cluster: boxes that the copy engine brings,
 * products that the tensor cores make from shared memory, and the barriers there by which
 * threads hear of both. Each is done at any time between its being asked for and its
 * being waited for, and copies in any order. */
#ifndef EMULATE_ASYNC_H
#define EMULATE_ASYNC_H

#include "emulate_blocks.h"

namespace emulate
{

/* Does one of the things that can be done; false: there is none. */
bool advance_engines();
/* Behind a cluster's threads: nothing may be left, or it is an error. */
void close_engines();

} // namespace emulate

#endif
