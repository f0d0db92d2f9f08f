/* Bump allocation, freed at once. */
#include "arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 16, FIRST_BLOCK = 4096, LARGEST_BLOCK = 1 << 20 };

typedef struct block {
    struct block *next;
    size_t used, size;
    _Alignas(ALIGNMENT) unsigned char bytes[];
} block;

struct gx_arena {
    block *blocks;
    size_t next_size;
    int failed;
};

gx_arena *gx_arena_create(void)
{
    gx_arena *arena = calloc(1, sizeof *arena);

    if (arena)
        arena->next_size = FIRST_BLOCK;
    return arena;
}

void gx_arena_free(gx_arena *arena)
{
    if (!arena)
        return;
    for (block *b = arena->blocks; b;) {
        block *next = b->next;

        free(b);
        b = next;
    }
    free(arena);
}

static block *add_block(gx_arena *arena, size_t bytes)
{
    const size_t size = bytes > arena->next_size ? bytes : arena->next_size;
    block *b;

    if (size > SIZE_MAX - sizeof *b || !(b = calloc(1, sizeof *b + size))) {
        arena->failed = 1;
        return NULL;
    }
    b->size = size;
    /* A block of one large thing goes behind the one that still has room. */
    if (arena->blocks && bytes > arena->next_size) {
        b->next = arena->blocks->next;
        arena->blocks->next = b;
    } else {
        b->next = arena->blocks;
        arena->blocks = b;
    }
    if (arena->next_size < LARGEST_BLOCK)
        arena->next_size *= 2;
    return b;
}

void *gx_arena_alloc(gx_arena *arena, size_t bytes)
{
    block *b = arena->blocks;

    if (bytes > SIZE_MAX - ALIGNMENT) {
        arena->failed = 1;
        return NULL;
    }
    bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (!b || b->size - b->used < bytes) {
        b = add_block(arena, bytes);
        if (!b)
            return NULL;
    }
    void *result = b->bytes + b->used;

    b->used += bytes;
    return result;
}

char *gx_arena_text(gx_arena *arena, const char *text)
{
    const size_t size = strlen(text) + 1;
    char *copy = gx_arena_alloc(arena, size);

    if (copy)
        memcpy(copy, text, size);
    return copy;
}

char *gx_arena_format(gx_arena *arena, const char *format, ...)
{
    va_list args;
    char *text = NULL;

    va_start(args, format);
    const int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0)
        arena->failed = 1;
    else
        text = gx_arena_alloc(arena, (size_t)length + 1);
    if (text) {
        va_start(args, format);
        vsnprintf(text, (size_t)length + 1, format, args);
        va_end(args);
    }
    return text;
}

int gx_arena_failed(const gx_arena *arena)
{
    return arena->failed;
}

void gx_arena_fail(gx_arena *arena)
{
    arena->failed = 1;
}
