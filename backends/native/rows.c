#include "backends/native/cpu/cpu.h"

#define ROW(suffix)                                                                                     \
    {                                                                                                   \
        .op = &clt_op_##suffix, .name = "native", .supports = clt_cpu_##suffix##_supports,              \
        .lower = clt_cpu_##suffix                                                                       \
    }

const clt_backend_row clt_native_rows[] = {
    {.op = &clt_op_matmul,
     .name = "native",
     .supports = clt_cpu_matmul_supports,
     .lower = clt_cpu_matmul,
     .tunables = clt_cpu_matmul_tunables,
     .defaults = clt_cpu_matmul_defaults,
     .valid = clt_cpu_matmul_valid},
    ROW(conv2d), ROW(conv2d_grad_input), ROW(conv2d_grad_weight), {0},
};
