#include "backends/native/cpu/cpu.h"

#define ROW(suffix)                                                                                     \
    {                                                                                                   \
        .op = &clt_op_##suffix, .name = "native", .supports = clt_cpu_##suffix##_supports,              \
        .lower = clt_cpu_##suffix                                                                       \
    }

/* What has a form is generated. */
#define FORM_ROW(suffix)                                                                                \
    {                                                                                                   \
        .op = &clt_op_##suffix, .name = "native", .any_layout = true,                                   \
        .supports = clt_cpu_pointwise_supports, .lower = clt_cpu_pointwise                              \
    }

const clt_backend_row clt_native_rows[] = {
    FORM_ROW(pointwise), FORM_ROW(fused), FORM_ROW(expand), FORM_ROW(relayout), FORM_ROW(batch_norm), FORM_ROW(batch_norm_grad_input),
    FORM_ROW(layer_norm),
    ROW(matmul), ROW(conv2d), ROW(conv2d_grad_input), ROW(conv2d_grad_weight), {0},
};
