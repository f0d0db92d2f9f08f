/* A small data set for tests of programs whose data stream. */
#ifndef GX_SUPPORT_STREAM_H
#define GX_SUPPORT_STREAM_H

#include "support.h"

enum { TEST_ROWS = 41, TEST_WIDTH = 3, TEST_CLASSES = 4 };

/* Writes x.npy (f4, [41, 3]), y.npy (i4, [41], below 4) and split.npy (31 rows train) to
 * the folder of the test, the same each time. */
void test_rows_write(void);

/* A classifier of those rows: batch 8, so that an epoch has 3 whole batches and one of 7
 * rows, and an evaluation one of 8 and one of 2. `more` stands in the section data. */
gx_graph *test_rows_load(gx_kind kind, gx_streaming stream, int64_t batch_rows,
                         const char *precision, const char *more);
/* The same, but that its loss ignores the label 2. */
gx_graph *test_rows_load_ignoring(gx_kind kind, gx_streaming stream, int64_t batch_rows);

#endif
