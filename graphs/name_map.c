/* From a name to a number: open addressing, doubled when half full. */
#include "name_map.h"

#include <stdlib.h>
#include <string.h>

typedef struct slot {
    const char *name; /* NULL: empty */
    uint64_t hash;
    int32_t number;
} slot;

struct gx_name_map {
    slot *slots;
    size_t n_slots; /* a power of two */
    size_t n_used;
};

uint64_t gx_hash_text(const char *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        hash = (hash ^ *c) * UINT64_C(0x100000001b3);
    return hash;
}

gx_name_map *gx_name_map_create(void)
{
    enum { FIRST_SLOTS = 64 };
    gx_name_map *map = calloc(1, sizeof *map);

    if (!map)
        return NULL;
    map->n_slots = FIRST_SLOTS;
    map->slots = calloc(FIRST_SLOTS, sizeof *map->slots);
    if (!map->slots) {
        free(map);
        return NULL;
    }
    return map;
}

void gx_name_map_free(gx_name_map *map)
{
    if (!map)
        return;
    free(map->slots);
    free(map);
}

/* The slot of the name, or the empty one where it belongs. */
static slot *find(slot *slots, size_t n_slots, const char *name, uint64_t hash)
{
    size_t i = (size_t)(hash ^ (hash >> 32)) & (n_slots - 1);

    while (slots[i].name && (slots[i].hash != hash || strcmp(slots[i].name, name) != 0))
        i = (i + 1) & (n_slots - 1);
    return &slots[i];
}

int32_t gx_name_map_get(const gx_name_map *map, const char *name)
{
    const slot *s = find(map->slots, map->n_slots, name, gx_hash_text(name));

    return s->name ? s->number : -1;
}

static bool grow(gx_name_map *map)
{
    const size_t n_slots = map->n_slots * 2;
    slot *slots = calloc(n_slots, sizeof *slots);

    if (!slots)
        return false;
    for (size_t i = 0; i < map->n_slots; i++) {
        const slot *s = &map->slots[i];

        if (s->name)
            *find(slots, n_slots, s->name, s->hash) = *s;
    }
    free(map->slots);
    map->slots = slots;
    map->n_slots = n_slots;
    return true;
}

bool gx_name_map_set(gx_name_map *map, const char *name, int32_t number)
{
    const uint64_t hash = gx_hash_text(name);

    if (map->n_used >= map->n_slots / 2 && !grow(map))
        return false;
    slot *s = find(map->slots, map->n_slots, name, hash);

    if (!s->name) {
        s->name = name;
        s->hash = hash;
        map->n_used++;
    }
    s->number = number;
    return true;
}
