/* The optimizer's kernels of cl/reference/optimizer.cl, several elements a work-item: four on devices of GPU-class, eight on CPUs, whose compilers do not all
 * make vectors of a loop of work-items. */
#include "backends/native/cpu/cpu.h"
#include "backends/native/gpu/gpu.h"
#include "backends/reference/reference.h"

/* 0: no row for it. */
static int width_of(const clt_device *device) {
    return clt_cpu_fits(device) ? 8 : clt_gpu_fits(device) ? 4 : 0;
}

static bool supports(const clt_candidate *c) {
    int width = width_of(c->device);
    return width && clt_tensor_elements(c->node) % width == 0;
}

static void lower(clt_lowering *l, const clt_tensor *node) {
    clt_reference_lower_flat(l, node, width_of(l->device));
}

#define FLAT_ROW(op_suffix, ...) {CLT_NATIVE(op_suffix), .supports = supports, .lower = lower, __VA_ARGS__}
const clt_backend_row clt_native_optimizer_rows[] = {
    FLAT_ROW(accumulate), FLAT_ROW(clear_if_skipped), FLAT_ROW(average), FLAT_ROW(sgd, .types = CLT_ANY_FLOAT), FLAT_ROW(adam, .types = CLT_ANY_FLOAT), {0},
};
