/* From a name to a number. Names are not copied: they must outlive the map. */
#ifndef GX_NAME_MAP_H
#define GX_NAME_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gx_name_map gx_name_map;

gx_name_map *gx_name_map_create(void); /* NULL: out of memory */
void gx_name_map_free(gx_name_map *map);

/* -1: the name is not there. */
int32_t gx_name_map_get(const gx_name_map *map, const char *name);
/* Adds or replaces; `number` is 0 or more. False: out of memory. */
bool gx_name_map_set(gx_name_map *map, const char *name, int32_t number);

/* 64-bit FNV-1a of a text. */
uint64_t gx_hash_text(const char *text);

#endif
