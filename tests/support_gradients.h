/* Gradients against central differences, all in double. */
#ifndef GX_SUPPORT_GRADIENTS_H
#define GX_SUPPORT_GRADIENTS_H

#include "support.h"

/* One seed for the whole run. */
uint64_t test_run_seed(void);

/* Fails the test unless every tensor "NAME.grad" of a parameter or an input of the model
 * is the gradient of "loss". `n_expected`: how many there must be; -1: one at least. */
void test_gradients(const char *text, int n_expected);

#endif
