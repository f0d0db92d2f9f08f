/* What a name means where it stands. */
#include "scope.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "number.h"

/* Room for any qualified name and for one that is too long by far. */
enum { ROOM = 2 * GX_LIMIT_NAME + 64 };

void gx_scope_free(gx_scope *scope)
{
    free(scope->bindings);
    scope->bindings = NULL;
    scope->n_bindings = 0;
}

/* Or NULL. */
static gx_binding *find_binding(const gx_scope *scope, const char *name)
{
    for (size_t i = 0; i < scope->n_bindings; i++) {
        if (strcmp(scope->bindings[i].name, name) == 0)
            return &scope->bindings[i];
    }
    return NULL;
}

bool gx_scope_bind(gx_scope *scope, const char *name, const char *meaning)
{
    gx_binding *binding = find_binding(scope, name);

    if (!binding && scope->n_bindings == scope->capacity) {
        const size_t capacity = scope->capacity ? scope->capacity * 2 : 4;
        gx_binding *more = realloc(scope->bindings, capacity * sizeof *more);

        if (!more)
            return false;
        scope->bindings = more;
        scope->capacity = capacity;
    }
    if (!binding)
        binding = &scope->bindings[scope->n_bindings++];
    *binding = (gx_binding){ name, meaning, true };
    return true;
}

void gx_scope_made(gx_scope *scope, const char *name, const char *qualified)
{
    gx_binding *binding = find_binding(scope, name);

    if (binding) {
        binding->meaning = qualified;
        binding->moved = true;
    }
}

/* The claimed name of that spelling, from the graph's arena, or NULL. */
static const char *claimed(const gx_reader *r, const char *prefix, const char *name)
{
    char full[ROOM];

    if (prefix[0] == '\0')
        return gx_name_map_get(r->claims, name) >= 0 ? name : NULL;
    if (snprintf(full, sizeof full, "%s%s", prefix, name) >= (int)sizeof full ||
        gx_name_map_get(r->claims, full) < 0)
        return NULL;
    return gx_arena_text(r->graph->arena, full);
}

static const char *find(const gx_reader *r, const gx_scope *scope, const char *name)
{
    for (; scope; scope = scope->outer) {
        const gx_binding *binding = find_binding(scope, name);
        const char *full = binding ? binding->meaning : claimed(r, scope->prefix, name);

        if (full)
            return full;
    }
    return NULL;
}

const char *gx_scope_find(gx_reader *r, const gx_scope *scope, const char *name)
{
    const char *full = find(r, scope, name);

    return full ? full : name;
}

bool gx_scope_has(gx_reader *r, const gx_scope *scope, const char *name)
{
    return find(r, scope, name) != NULL;
}

bool gx_check_name_length(gx_reader *r, const char *what, const char *name, gx_pos pos)
{
    /* What gexec made stands in an expanded model as it is. */
    const int limit = r->graph->expanded ? GX_LIMIT_NAME : GX_LIMIT_WRITTEN_NAME;

    if (strlen(name) <= (size_t)limit)
        return true;
    gx_report(r->list, pos, "%s \"%.40s...\" is longer than %d bytes (limit on names)",
              what, name, limit);
    return false;
}

static bool check_name(gx_reader *r, const char *full, const char *name, gx_pos pos)
{
    if (!gx_check_name_length(r, "name", full, pos))
        return false;
    if (!gx_is_name(name)) {
        gx_report(
            r->list, pos,
            "\"%s\" is not a name: expected letters, digits, _ . or -, a letter or _ "
            "first",
            name);
        return false;
    }
    if (gx_is_reserved_name(full) && !r->graph->expanded) {
        gx_report(r->list, pos,
                  "\"%s\": names that start with \"gexec.\" or \"data.\" are "
                  "gexec's own",
                  full);
        return false;
    }
    return true;
}

static bool enter(gx_reader *r, const char *full, gx_pos pos)
{
    if (r->n_claims == r->claims_capacity) {
        const size_t capacity = r->claims_capacity ? r->claims_capacity * 2 : 256;
        gx_pos *more = realloc(r->claim_pos, capacity * sizeof *more);

        if (!more)
            return false;
        r->claim_pos = more;
        r->claims_capacity = capacity;
    }
    r->claim_pos[r->n_claims] = pos;
    return gx_name_map_set(r->claims, full, (int32_t)r->n_claims++);
}

const char *gx_scope_claim(gx_reader *r, gx_scope *scope, const char *name, gx_pos pos)
{
    const char *full = gx_arena_format(r->graph->arena, "%s%s", scope->prefix, name);

    if (!full || !check_name(r, full, name, pos))
        return NULL;
    const int32_t first = gx_name_map_get(r->claims, full);

    if (first >= 0) {
        gx_report(r->list, pos, "name \"%s\" is taken: it stands on line %d already",
                  full, (int)r->claim_pos[first].line);
        return NULL;
    }
    if (!enter(r, full, pos)) {
        gx_arena_fail(r->graph->arena);
        return NULL;
    }
    return full;
}
