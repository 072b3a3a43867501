/* Along an axis, one place after the other. */
#include "backends/reference/reference.h"

/* Rounds that a work-item makes in one launch (see cl/prelude.cl). */
enum { PART = 8192 };

typedef struct rows {
    int64_t count, n, inner; /* rows of n elements, `inner` apart */
} rows;

static rows rows_of(const clt_shape *x, int axis) {
    rows r = {.count = clt_shape_elements(x) / x->dims[axis], .n = x->dims[axis], .inner = 1};
    for (int d = axis + 1; d < x->rank; d++) r.inner *= x->dims[d];
    return r;
}

/* Launches over parts of the rows; `flag`, of the kernel, unless it is negative. */
static void lower_parts(clt_lowering *l, const clt_tensor *node, const char *path, const char *kernel, int axis, int flag) {
    rows r = rows_of(&node->inputs[0]->shape, axis);
    for (int64_t start = 0; start < r.n; start += PART) {
        clt_launch_begin(l, path, kernel, r.count, CLT_REFERENCE_GROUP);
        clt_launch_tensor(l, node->inputs[0]);
        clt_launch_tensor(l, node);
        clt_launch_int(l, r.count);
        clt_launch_int(l, r.n);
        clt_launch_int(l, r.inner);
        clt_launch_int(l, start);
        clt_launch_int(l, CLT_MIN(start + PART, r.n));
        if (flag >= 0) clt_launch_int(l, flag);
    }
}

static void lower_argmax(clt_lowering *l, const clt_tensor *node) {
    lower_parts(l, node, "reference/argmax.cl", node->inputs[0]->dtype == CLT_I32 ? "ref_argmax_int" : "ref_argmax", ((const clt_softmax_attributes *)node->attributes)->axis, -1);
}

static void lower_cumsum(clt_lowering *l, const clt_tensor *node) {
    const clt_cumsum_attributes *at = node->attributes;
    lower_parts(l, node, "reference/cumsum.cl", node->dtype == CLT_I32 ? "ref_cumsum_int" : "ref_cumsum", at->axis, at->reverse);
}

const clt_backend_row clt_reference_along_rows[] = {{CLT_REFERENCE(argmax), .lower = lower_argmax}, {CLT_REFERENCE(cumsum), .lower = lower_cumsum}, {0}};
