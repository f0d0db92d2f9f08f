/* The alternatives that --force names: there have to be some of these names. */
#include "alternatives.h"

#include <stdlib.h>
#include <string.h>

#include <gexec/op.h>

/* Writes the name of every alternative, once for each op that it covers, where `names` is
 * given; how many that are. */
static size_t list_names(const char **names)
{
    size_t n = 0;

    for (size_t i = 0; gx_op_at(i); i++)
        for (size_t k = 0;; k++) {
            const char *const name = gx_op_alternative(gx_op_at(i), k, NULL, 0);

            if (!name)
                break;
            if (names)
                names[n] = name;
            n++;
        }
    return n;
}

static bool is_known(const gx_args *args, const char *name, const char *const *names)
{
    const char *near;

    for (size_t i = 0; names[i]; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    near = gx_near_name(name, names);
    gx_say_usage(args, "--force %s: no alternative is named '%s'%s%s%s", args->force,
                 name, near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
    return false;
}

bool gx_alternatives_check(const gx_args *args)
{
    const size_t n = args->force ? list_names(NULL) : 0;
    const char **names;
    char *force, *at;
    bool all = true;

    if (n == 0)
        return true;
    names = calloc(n + 1, sizeof *names);
    force = strdup(args->force);
    if (names && force)
        list_names(names);
    else
        gx_say_usage(args, "out of memory");
    all = names && force;
    for (at = force; all && at;) {
        char *const comma = strchr(at, ',');

        if (comma)
            *comma = '\0';
        all = is_known(args, at, names);
        at = comma ? comma + 1 : NULL;
    }
    free(force);
    free(names);
    return all;
}
