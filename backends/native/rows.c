#include "backends/native/cpu/cpu.h"
#include "backends/native/gpu/gpu.h"

#define CPU_ROW(suffix)                                                                                 \
    {                                                                                                   \
        .op = &clt_op_##suffix, .name = "native", .supports = clt_cpu_##suffix##_supports,              \
        .lower = clt_cpu_##suffix                                                                       \
    }
#define GPU_ROW(suffix)                                                                                 \
    {                                                                                                   \
        .op = &clt_op_##suffix, .name = "native", .requires = 1u << CLT_CAP_GROUPS,                     \
        .supports = clt_gpu_supports, .lower = clt_gpu_lower, .tunables = clt_gpu_tunables,             \
        .defaults = clt_gpu_defaults, .valid = clt_gpu_valid                                            \
    }

const clt_backend_row clt_native_rows[] = {
    CPU_ROW(matmul), CPU_ROW(conv2d), CPU_ROW(conv2d_grad_input), CPU_ROW(conv2d_grad_weight),
    GPU_ROW(matmul), GPU_ROW(conv2d), GPU_ROW(conv2d_grad_input), GPU_ROW(conv2d_grad_weight),
    {0},
};
