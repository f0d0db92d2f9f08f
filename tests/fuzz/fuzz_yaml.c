/* Any bytes as a model: a graph, whose YAML loads again, or a diagnostic. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gexec/graph.h>

#include "fuzz_target.h"

static void stop(const char *why, const char *text)
{
    fprintf(stderr, "%s\n%s\n", why, text);
    abort();
}

static void check_graph(const gx_graph *graph)
{
    char *yaml = gx_graph_yaml(graph);
    char *dot = gx_graph_dot(graph);
    char *yaml_again = NULL;
    gx_graph *again = NULL;
    gx_error err;

    if (!yaml || !dot)
        stop("no YAML or DOT", "");
    if (gx_graph_parse(yaml, strlen(yaml), "again", NULL, NULL, &again, NULL, &err) !=
        GX_OK)
        stop(err.message, yaml);
    yaml_again = gx_graph_yaml(again);
    if (!yaml_again || strcmp(yaml, yaml_again) != 0)
        stop("another graph came back", yaml);
    gx_graph_free(again);
    free(yaml);
    free(yaml_again);
    free(dot);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gx_diagnostics *list = gx_diagnostics_create();
    const gx_load_options options = { .kind = size % 2 == 0 ? GX_TRAIN : GX_EVAL };
    gx_graph *graph = NULL;
    gx_error err;
    const gx_status st = gx_graph_parse((const char *)data, size, "fuzz.yaml",
                                        "tests/data", &options, &graph, list, &err);
    char *text = gx_diagnostics_text(list);

    if ((st == GX_OK) != (graph != NULL) ||
        (st == GX_OK) != (gx_diagnostics_count(list) == 0))
        stop("status and result do not agree", text);
    if (graph)
        check_graph(graph);
    gx_graph_free(graph);
    gx_diagnostics_free(list);
    free(text);
    return 0;
}
