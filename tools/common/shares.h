/*
 * A batch, cut into shares.
 */
#ifndef CLTRAIN_TOOLS_SHARES_H
#define CLTRAIN_TOOLS_SHARES_H

#include <stdint.h>

/* Cuts `whole` samples into n shares in proportion to the weights: at least 1 each, their sum `whole`, which is n at
 * least. The same weights give the same shares on every rank. */
void share_out(int64_t whole, const double *weights, int n, int64_t *shares);

#endif
