/* Bump allocation, freed at once. */
#ifndef GX_ARENA_H
#define GX_ARENA_H

#include <stddef.h>

#include <gexec/status.h>

typedef struct gx_arena gx_arena;

gx_arena *gx_arena_create(void); /* NULL: out of memory */
void gx_arena_free(gx_arena *arena);

/* Zeroed, aligned to 16; NULL when memory is out, and then gx_arena_failed says so for
 * good, so that a builder may check once at its end. */
void *gx_arena_alloc(gx_arena *arena, size_t bytes) GX_MUST_CHECK;
char *gx_arena_text(gx_arena *arena, const char *text) GX_MUST_CHECK;
char *gx_arena_format(gx_arena *arena, const char *format, ...)
    GX_PRINTF(2, 3) GX_MUST_CHECK;
int gx_arena_failed(const gx_arena *arena);
/* Marks that memory ran out beside the arena, so that the same check sees it. */
void gx_arena_fail(gx_arena *arena);

#endif
