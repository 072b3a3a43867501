#include "backends/reference/reference.h"

static void lower(clt_lowering *l, const clt_tensor *node) {
    const clt_ignore_index_attributes *at = node->attributes;
    int64_t count = clt_tensor_elements(node);
    clt_launch_begin(l, "reference/ignore_index.cl", "ref_ignore_index", count, CLT_REFERENCE_GROUP);
    clt_launch_tensor(l, node->inputs[0]);
    clt_launch_tensor(l, node);
    clt_launch_tensor(l, node->outputs[0]);
    clt_launch_int(l, count);
    clt_launch_int(l, at->ignored);
    clt_launch_int(l, at->instead);
}

const clt_backend_row clt_reference_ignore_index_rows[] = {{CLT_REFERENCE(ignore_index), .lower = lower}, {0}};
