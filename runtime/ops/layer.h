/*
 * What layers (builders that make their own parameters) share.
 */
#ifndef CLT_OPS_LAYER_H
#define CLT_OPS_LAYER_H

#include "runtime/graph/graph.h"

/* The parameter or buffer "LAYER.NAME". */
clt_tensor *clt_layer_parameter(clt_graph *graph, const char *layer, const char *name, clt_shape shape,
                                clt_init init);
clt_tensor *clt_layer_buffer(clt_graph *graph, const char *layer, const char *name, clt_shape shape,
                             clt_init init);
/* A buffer that is in no file, zeros at first. */
clt_tensor *clt_layer_unsaved(clt_graph *graph, const char *layer, const char *name, clt_shape shape);

/* Row `index` of a matrix, in the shape of the parameter whose gradient it is. */
clt_tensor *clt_layer_row(clt_tensor *matrix, int64_t index, clt_shape shape);

/* PyTorch's default for linear and convolution layers: uniform in +-1/sqrt(fan_in). */
clt_init clt_layer_init(int64_t fan_in);

#endif
