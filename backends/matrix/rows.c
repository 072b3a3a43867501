#include "backends/matrix/matrix.h"

/* The functions of a row, for each unit: rows have no data of their own. */
#define UNIT_FUNCTIONS(index)                                                                           \
    static bool supports_##index(const clt_tensor *node, const clt_device *device) {                    \
        return clt_matrix_supports(node, device, &clt_matrix_units[index]);                             \
    }                                                                                                   \
    static void lower_##index(clt_lowering *l, const clt_tensor *node) {                                \
        clt_matrix_lower(l, node, &clt_matrix_units[index], false);                                     \
    }                                                                                                   \
    static void defaults_##index(const clt_tensor *node, const clt_device *device, int *parameters) {   \
        clt_gpu_contraction x[CLT_GPU_MOST_PHASES];                                                     \
        clt_gpu_describe(node, x);                                                                      \
        clt_matrix_guess(&x[0], &clt_matrix_units[index], device, parameters);                          \
    }                                                                                                   \
    static bool valid_##index(const clt_tensor *node, const clt_device *device, const int *parameters) { \
        return clt_matrix_valid(node, device, &clt_matrix_units[index], parameters);                    \
    }

UNIT_FUNCTIONS(0)
UNIT_FUNCTIONS(1)
UNIT_FUNCTIONS(2)
UNIT_FUNCTIONS(3)
UNIT_FUNCTIONS(4)
UNIT_FUNCTIONS(5)
UNIT_FUNCTIONS(6)
UNIT_FUNCTIONS(7)
UNIT_FUNCTIONS(8)
UNIT_FUNCTIONS(9)
UNIT_FUNCTIONS(10)
UNIT_FUNCTIONS(11)

#define ROW(suffix, index, capability, ...)                                                             \
    {                                                                                                   \
        .op = &clt_op_##suffix, .name = "matrix", .requires = 1u << capability,                         \
        .supports = supports_##index, .lower = lower_##index, .tunables = clt_matrix_tunables,          \
        .defaults = defaults_##index, .valid = valid_##index, __VA_ARGS__                               \
    }
#define ROWS(index, capability)                                                                         \
    ROW(matmul, index, capability, .epilogue = true), ROW(conv2d, index, capability, .epilogue = true), \
        ROW(conv2d_grad_input, index, capability, .epilogue = true),                                    \
        ROW(conv2d_grad_weight, index, capability, )

/* In the order of clt_matrix_units. */
const clt_backend_row clt_matrix_rows[] = {
    ROWS(0, CLT_CAP_MMA_TF32),
    ROWS(1, CLT_CAP_MMA_F16),
    ROWS(2, CLT_CAP_MMA_BF16),
    ROWS(3, CLT_CAP_DPAS8_F16),
    ROWS(4, CLT_CAP_DPAS8_BF16),
    ROWS(5, CLT_CAP_DPAS16_TF32),
    ROWS(6, CLT_CAP_DPAS16_F16),
    ROWS(7, CLT_CAP_DPAS16_BF16),
    ROWS(8, CLT_CAP_WMMA_F16),
    ROWS(9, CLT_CAP_WMMA_BF16),
    ROWS(10, CLT_CAP_MFMA_F16),
    ROWS(11, CLT_CAP_MFMA_BF16),
    {0},
};
