#include "backends/native/cpu/cpu.h"

#define ROW(suffix, layouts)                                                                            \
    {                                                                                                   \
        .op = &clt_op_##suffix, .name = "native", .any_layout = layouts,                                \
        .supports = clt_cpu_##suffix##_supports, .lower = clt_cpu_##suffix                              \
    }

/* Of an op, one more row, that looks at layouts. */
#define LAYOUT_ROW(suffix, way, backend)                                                                \
    {                                                                                                   \
        .op = &clt_op_##suffix, .name = backend, .any_layout = true,                                    \
        .supports = clt_cpu_##suffix##_##way##_supports, .lower = clt_cpu_##suffix##_##way              \
    }

const clt_backend_row clt_native_rows[] = {
    ROW(matmul, false),
    ROW(conv2d, true),
    ROW(conv2d_grad_input, true),
    ROW(conv2d_grad_weight, true),
    LAYOUT_ROW(conv2d, last, "native"),
    LAYOUT_ROW(conv2d_grad_input, last, "native"),
    LAYOUT_ROW(conv2d_grad_weight, last, "native"),
    {0},
};
