#include "backends/native/columns.h"

static bool as_matrices(const clt_tensor *x, unsigned axes, clt_columns *m) {
    int order[CLT_MAX_RANK];
    clt_tensor_order(x, order);
    *m = (clt_columns){1, 1, 1};
    for (int i = 0; i < x->shape.rank; i++) {
        int d = order[i];
        int64_t size = x->shape.dims[d];
        if (size == 1) continue;
        if (axes >> d & 1) {
            if (m->columns > 1) return false;
            m->rows *= size;
        } else if (m->rows > 1) {
            m->columns *= size;
        } else {
            m->count *= size;
        }
    }
    return m->columns > 1;
}

/* What is kept of a channels-last image would be in that order. */
static bool keeps_order(const clt_tensor *x, unsigned axes) {
    const int64_t *dims = x->shape.dims;
    bool pixels = (!(axes >> 2 & 1) && dims[2] > 1) || (!(axes >> 3 & 1) && dims[3] > 1);
    return clt_tensor_contiguous(x) || axes >> 1 & 1 || !pixels;
}

bool clt_columns_of(const clt_tensor *node, clt_columns *columns) {
    const clt_reduce_attributes *at = node->attributes;
    const clt_tensor *x = node->inputs[0];
    return clt_tensor_contiguous(node) && keeps_order(x, at->axes) && as_matrices(x, at->axes, columns);
}
