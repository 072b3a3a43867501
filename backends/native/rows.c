#include "backends/native/cpu/cpu.h"

#define ROW(suffix, layouts)                                                                            \
    {                                                                                                   \
        .op = &clt_op_##suffix, .name = "native", .any_layout = layouts,                                \
        .supports = clt_cpu_##suffix##_supports, .lower = clt_cpu_##suffix                              \
    }

/* Of an op, one more row, that looks at layouts. */
#define LAYOUT_ROW(suffix, way, backend, ...)                                                           \
    {                                                                                                   \
        .op = &clt_op_##suffix, .name = backend, .any_layout = true,                                    \
        .supports = clt_cpu_##suffix##_##way##_supports, .lower = clt_cpu_##suffix##_##way, __VA_ARGS__ \
    }

/* How much of a convolution lies between its transforms and its products at a time. */
static const clt_tunable winograd_tunables[] = {{"chunk_kib", 4, {2048, 1024, 4096, 8192}}, {0}};

const clt_backend_row clt_native_rows[] = {
    ROW(matmul, false),
    ROW(conv2d, true),
    ROW(conv2d_grad_input, true),
    ROW(conv2d_grad_weight, true),
    LAYOUT_ROW(conv2d, last, "native", .tunables = NULL),
    LAYOUT_ROW(conv2d_grad_input, last, "native", .tunables = NULL),
    LAYOUT_ROW(conv2d_grad_weight, last, "native", .tunables = NULL),
    LAYOUT_ROW(conv2d, winograd, "winograd", .tunables = winograd_tunables),
    LAYOUT_ROW(conv2d_grad_input, winograd, "winograd", .tunables = winograd_tunables),
    LAYOUT_ROW(conv2d_grad_weight, winograd, "winograd", .tunables = winograd_tunables),
    {0},
};
