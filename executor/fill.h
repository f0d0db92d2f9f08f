/* The kernel that fills memory as a memset node does. */
#ifndef GX_FILL_H
#define GX_FILL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Rows of bytes, `pitch` bytes from one to the next. A byte is that of `word` which its
 * address, modulo 4, says: right for elements of 1, 2 and 4 bytes, since rows of wider
 * ones begin at a multiple of their size. */
typedef struct gx_fill {
    unsigned char *to;
    size_t row_bytes, n_rows, pitch;
    uint32_t word;
} gx_fill;

/* Threads of a block, and how many bytes of a row each stores at once. */
enum { GX_FILL_BLOCK = 256, GX_FILL_UNIT = 16 };

/* (gx_fill fill): blocks share a row along x and the rows along y; any grid will do. */
const void *gx_fill_kernel(void);

#ifdef __cplusplus
}
#endif
#endif
