/*
 * A small transformer encoder (Vaswani et al. 2017, with the norm first as Xiong et
 * al. 2020), with the parameter names of the class of the same name in compare.py.
 */
#ifndef CLT_TESTS_PARITY_TRANSFORMER_H
#define CLT_TESTS_PARITY_TRANSFORMER_H

#include <cltrain/graph.h>

enum { TRANSFORMER_TOKENS = 40, TRANSFORMER_WIDTH = 32, TRANSFORMER_HEADS = 4, TRANSFORMER_HIDDEN = 96 };

/* x f32 [N, length] of whole numbers below TRANSFORMER_TOKENS -> logits [N, classes]. */
clt_tensor *transformer_build(clt_graph *graph, clt_tensor *x, int64_t classes);

#endif
