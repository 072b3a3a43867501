/* The gradient of a table by rows (cl/native/cpu/embedding.cl). */
#include "backends/native/cpu/cpu.h"

enum { ITEMS = 32 }; /* each reads all indices */

static void lower_grad(clt_lowering *l, const clt_tensor *node) {
    const clt_tensor *indices = node->inputs[0], *dy = node->inputs[1];
    int64_t rows = node->shape.dims[0], share = clt_cpu_divide_up(rows, ITEMS);
    clt_cpu_begin(l, "native/cpu/embedding.cl", "cpu_embedding_grad", clt_cpu_divide_up(rows, share));
    clt_launch_tensor(l, indices);
    clt_launch_tensor(l, dy);
    clt_launch_tensor(l, node);
    clt_launch_int(l, clt_tensor_elements(indices));
    clt_launch_int(l, node->shape.dims[1]);
    clt_launch_int(l, rows);
    clt_launch_int(l, share);
}

static bool supports(const clt_candidate *c) {
    return clt_cpu_fits(c->device);
}

const clt_backend_row clt_cpu_embedding_rows[] = {{CLT_NATIVE(embedding_grad), .supports = supports, .lower = lower_grad}, {0}};
