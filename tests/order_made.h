/* A model whose backward pass two orders are possible for, and alternatives which take
 * many layers at once in one of them. Its tests are linked with
 * --wrap=gx_alternative_at. */
#ifndef ORDER_MADE_H
#define ORDER_MADE_H

#include "fake_cuda_paths.h"

/* The alternatives are offered, and none is on trial. */
void order_begin(void);
void order_offer(bool offered);
void order_set_trial(bool trial);

gx_graph *order_load(void);
/* On a simulated card that begins anew. */
gx_plan *order_plan(const gx_graph *graph, const gx_plan_options *options);
/* The nodes that the alternatives cover in a plan. */
size_t order_count(const gx_plan *plan);

/* Three data gradients and the ways back through the activations behind them; the bias
 * and weight gradients of four layers. */
enum { ORDER_TOGETHER = 2 * 3 + 2 * 4 };

/* Frees both; nothing is left on the card, and nothing was wrong there. */
void order_close(gx_plan *plan, gx_graph *graph);

#endif
