/* The optimizer's kernels of cl/reference/optimizer.cl, four elements a work-item. */
#include "backends/native/gpu/gpu.h"
#include "backends/reference/reference.h"

enum { FOUR = 4 };

static bool supports(const clt_candidate *c) {
    return clt_gpu_fits(c->device) && clt_tensor_elements(c->node) % FOUR == 0;
}

static void lower(clt_lowering *l, const clt_tensor *node) {
    clt_reference_lower_flat(l, node, FOUR);
}

#define FLAT_ROW(op_suffix, ...) {CLT_NATIVE(op_suffix), .supports = supports, .lower = lower, __VA_ARGS__}
const clt_backend_row clt_gpu_optimizer_rows[] = {
    FLAT_ROW(accumulate), FLAT_ROW(clear_if_skipped), FLAT_ROW(average), FLAT_ROW(sgd, .types = CLT_ANY_FLOAT), FLAT_ROW(adam, .types = CLT_ANY_FLOAT), {0},
};
