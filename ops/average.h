/* How the scalars of the log, told for each step, become one figure for many rows. */
#ifndef GX_AVERAGE_H
#define GX_AVERAGE_H

#include "graph_model.h"

/* Sets graph->logged_average of every column, from what the checked nodes do with the
 * rows of a batch. */
void gx_set_averages(gx_graph *graph);

#endif
