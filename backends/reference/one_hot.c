#include "backends/reference/reference.h"

static void lower(clt_lowering *l, const clt_tensor *node) {
    int64_t count = clt_tensor_elements(node);
    clt_launch_begin(l, "reference/one_hot.cl", "ref_one_hot", count, CLT_REFERENCE_GROUP);
    clt_launch_tensor(l, node->inputs[0]);
    clt_launch_tensor(l, node);
    clt_launch_int(l, count);
    clt_launch_int(l, ((const clt_one_hot_attributes *)node->attributes)->count);
}

const clt_backend_row clt_reference_one_hot_rows[] = {{CLT_REFERENCE(one_hot), .lower = lower}, {0}};
