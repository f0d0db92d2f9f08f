/* What a name means where it stands: inside repeats names are local. */
#ifndef GX_SCOPE_H
#define GX_SCOPE_H

#include "reader.h"

/* A name that means another: a carried tensor, which is a different one turn by turn. */
typedef struct gx_binding {
    const char *name;
    const char *meaning; /* qualified */
    bool moved;          /* made anew in this turn */
} gx_binding;

struct gx_scope {
    gx_scope *outer;
    const char *prefix; /* "blk.3."; "" at the top */
    gx_binding *bindings;
    size_t n_bindings, capacity;
};

void gx_scope_free(gx_scope *scope); /* what it holds, not itself */

/* What `name` means here: a binding, a local name, or one further out; the name itself
 * where none stands. Lives as long as the graph or `name`. */
const char *gx_scope_find(gx_reader *reader, const gx_scope *scope, const char *name);
/* True when that name stands. */
bool gx_scope_has(gx_reader *reader, const gx_scope *scope, const char *name);

/* False after a report of a name, qualified, that is too long; `what` is "name". */
bool gx_check_name_length(gx_reader *reader, const char *what, const char *name,
                          gx_pos pos);
/* Takes a name here. The qualified name, or NULL after a report: not a name, reserved,
 * taken. */
const char *gx_scope_claim(gx_reader *reader, gx_scope *scope, const char *name,
                           gx_pos pos);
/* A tensor was made under a claimed name: a carried name means it from here on. */
void gx_scope_made(gx_scope *scope, const char *name, const char *qualified);
/* Adds a binding, or changes the one that is there. False: out of memory. */
bool gx_scope_bind(gx_scope *scope, const char *name, const char *meaning);

#endif
