#include "runtime/ops/layer.h"

#include <math.h>

#include <cltrain/ops.h>

typedef clt_tensor *make_variable(clt_graph *, const char *, clt_shape, clt_init);

static clt_tensor *make_named(make_variable *make, clt_graph *graph, const char *layer, const char *name,
                              clt_shape shape, clt_init init) {
    if (!layer || !layer[0])
        return clt_graph_fail(graph, clt_fail(CLT_E_INVALID, "a layer that makes \"%s\" has no name", name));
    clt_text text = {0};
    clt_text_add(&text, "%s.%s", layer, name);
    clt_tensor *tensor = text.status < 0 ? clt_graph_fail(graph, text.status)
                                         : make(graph, text.data, shape, init);
    clt_text_free(&text);
    return tensor;
}

clt_tensor *clt_layer_parameter(clt_graph *graph, const char *layer, const char *name, clt_shape shape,
                                clt_init init) {
    return make_named(clt_parameter, graph, layer, name, shape, init);
}

clt_tensor *clt_layer_buffer(clt_graph *graph, const char *layer, const char *name, clt_shape shape,
                             clt_init init) {
    return make_named(clt_buffer, graph, layer, name, shape, init);
}

static clt_tensor *make_unsaved(clt_graph *graph, const char *name, clt_shape shape, clt_init init) {
    return clt_buffer_with(graph, name, shape, init, (clt_buffer_options){.unsaved = true});
}

clt_tensor *clt_layer_unsaved(clt_graph *graph, const char *layer, const char *name, clt_shape shape) {
    return make_named(make_unsaved, graph, layer, name, shape, (clt_init){CLT_INIT_ZEROS});
}

clt_tensor *clt_layer_row(clt_tensor *matrix, int64_t index, clt_shape shape) {
    return clt_reshape(clt_slice(matrix, 0, index, index + 1, 1), shape);
}

clt_init clt_layer_init(int64_t fan_in) {
    return (clt_init){.kind = CLT_INIT_UNIFORM, .value = (float)(1.0 / sqrt((double)CLT_MAX(fan_in, 1)))};
}
