#include "backends/reference/reference.h"

static void lower(clt_lowering *l, const clt_tensor *node) {
    const clt_tensor *x = node->inputs[1];
    const int64_t *dims = x->shape.dims;
    int64_t count = clt_tensor_elements(x);
    clt_launch_begin(l, "reference/cache.cl", "ref_cache", count, CLT_REFERENCE_GROUP);
    for (int i = 0; i < node->n_inputs; i++) clt_launch_tensor(l, node->inputs[i]);
    clt_launch_int(l, count);
    clt_launch_ints(l, (int64_t[]){dims[1], dims[2], node->shape.dims[2], dims[3]}, 4, 4);
}

const clt_backend_row clt_reference_cache_rows[] = {{CLT_REFERENCE(cache), .lower = lower}, {0}};
