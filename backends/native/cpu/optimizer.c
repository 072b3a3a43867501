/* The optimizer's kernels of cl/reference/optimizer.cl, eight elements a work-item: not every compiler makes vectors of their loop of work-items. */
#include "backends/native/cpu/cpu.h"
#include "backends/reference/reference.h"

enum { EIGHT = 8 };

static bool supports(const clt_candidate *c) {
    return clt_cpu_fits(c->device) && clt_tensor_elements(c->node) % EIGHT == 0;
}

static void lower(clt_lowering *l, const clt_tensor *node) {
    clt_reference_lower_flat(l, node, EIGHT);
}

#define FLAT_ROW(op_suffix, ...) {CLT_NATIVE(op_suffix), .supports = supports, .lower = lower, __VA_ARGS__}
const clt_backend_row clt_cpu_optimizer_rows[] = {
    FLAT_ROW(accumulate), FLAT_ROW(clear_if_skipped), FLAT_ROW(average), FLAT_ROW(sgd, .types = CLT_ANY_FLOAT), FLAT_ROW(adam, .types = CLT_ANY_FLOAT), {0},
};
