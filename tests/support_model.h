/* Reading a model without the ops layer: a small catalogue of its own. */
#ifndef GX_SUPPORT_MODEL_H
#define GX_SUPPORT_MODEL_H

#include "graph_model.h"
#include "support.h"

/* What gx_model_read makes of a text: the graph, or NULL, and all mistakes as one text.
 * Ops known here: gemm (a, b, epilogue.bias, out), relu (x, out), add (a, b, out),
 * loss (x, out), sgd (param, grad) and gather (data, out). */
typedef struct test_model {
    gx_graph *graph;
    char *mistakes; /* "" where there are none */
    size_t n_mistakes;
    gx_status status;
} test_model;

test_model test_model_read(const char *text, const char *folder,
                           const gx_load_options *options);
/* The same, and fails the test where there is a mistake. */
gx_graph *test_model_good(const char *text);
void test_model_free(test_model *model);

/* Fails the test unless reading `text` reports `message`. */
#define assert_mistake(text, message) \
    test_model_mistake((text), (message), __FILE__, __LINE__)
void test_model_mistake(const char *text, const char *message, const char *file,
                        int line);

/* The text of a field of a node, or NULL. */
const char *test_field(const gx_graph *graph, const char *node, const char *key);

#endif
