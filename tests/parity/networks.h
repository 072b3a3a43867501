/*
 * Networks of layers that no model of the tools has, with the parameter names of the classes of models.py.
 */
#ifndef CLT_TESTS_PARITY_NETWORKS_H
#define CLT_TESTS_PARITY_NETWORKS_H

#include <cltrain/graph.h>

/* "recurrent": x [N, T, D]; "unet" and "unet-bilinear": images. Logits [N, classes]; NULL: it has none of that name. */
clt_tensor *network_build(const char *name, clt_tensor *x, int64_t classes);

#endif
