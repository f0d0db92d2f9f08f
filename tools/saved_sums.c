/* Sums of gradients in a saved state: of how many steps they are, and whether a model
 * that goes on from them can use them. */
#include "saved_sums.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "host_tensor.h"
#include "saved_state.h"

gx_status gx_saved_write_accumulate(const gx_graph *graph, const char *path,
                                    gx_error *err)
{
    int32_t n = (int32_t)gx_graph_accumulate(graph);

    return gx_npy_write(
        path, &(gx_tensor){ .dtype = GX_I32, .rank = 1, .dim = { 1 }, .data = &n }, err);
}

/* The number in a file of the folder; -1 where there is none. */
static int64_t read_count(const char *folder, const char *name)
{
    char *const path = gx_saved_path(folder, name, ".npy");
    gx_tensor tensor = { 0 };
    int64_t n = -1;

    if (path && gx_npy_read(path, &tensor, NULL) == GX_OK && tensor.dtype == GX_I32 &&
        gx_count(&tensor) == 1)
        n = ((const int32_t *)tensor.data)[0];
    free(tensor.data);
    free(path);
    return n;
}

static bool has_sum(const char *folder, const char *param)
{
    char *const path = gx_saved_path(folder, param, ".sum.npy");
    struct stat found;
    const bool has = path && stat(path, &found) == 0;

    free(path);
    return has;
}

/* "w1.sum.npy and 3 more", of the sums that are there; "": there are none. */
static gx_words name_sums(const gx_graph *graph, const char *folder)
{
    gx_words words = { "" };
    const char *first = NULL;
    int n = 0;

    for (size_t i = 0; i < gx_graph_value_count(graph); i++) {
        const gx_value_info value = gx_graph_value(graph, i);

        if (value.kind != GX_VALUE_PARAM || !has_sum(folder, value.name))
            continue;
        if (n++ == 0)
            first = value.name;
    }
    if (n == 1)
        snprintf(words.text, sizeof words.text, "%.24s.sum.npy", first);
    else if (n > 1)
        snprintf(words.text, sizeof words.text, "%.24s.sum.npy and %d more", first,
                 n - 1);
    return words;
}

gx_status gx_saved_check_sums(const gx_session *session, gx_error *err)
{
    const gx_graph *const graph = session->graph[GX_PROGRAM_TRAIN];
    const char *const folder = session->args->resume;
    const gx_words sums = name_sums(graph, folder);
    const int64_t now = gx_graph_accumulate(graph);
    const int64_t before = read_count(folder, GX_SAVED_ACCUMULATE);
    const int64_t step = read_count(folder, "gexec.step");

    if (!sums.text[0] || before == now || !gx_graph_trains(graph))
        return GX_OK;
    /* A step that begins an update clears the sums, any other adds to them. */
    if (before > 0 && step > 0 && step % now != 0)
        return GX_FAIL(
            err, GX_ERR_DATA,
            "%s: of accumulate: %lld, and behind step %lld the model's "
            "accumulate: %lld would add to it: expected a step that it divides",
            sums.text, (long long)before, (long long)step, (long long)now);
    if (now == 1 ? before <= 0 || step % before != 0 : before > 0 && step % before != 0)
        gx_say(session->args, "--resume %s: %s: gathered gradients are dropped, since %s",
               folder, sums.text,
               now == 1 ? "the model has no accumulate" : "its accumulate is another");
    return GX_OK;
}
