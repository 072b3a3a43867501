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

/* What looks at layouts itself. */
#define LAYOUT_ROW(suffix, supports_function)                                                           \
    {                                                                                                   \
        .op = &clt_op_##suffix, .name = "native", .any_layout = true, .supports = supports_function,    \
        .lower = clt_cpu_##suffix                                                                       \
    }

const clt_backend_row clt_native_rows[] = {
    FORM_ROW(pointwise), FORM_ROW(fused), FORM_ROW(expand), FORM_ROW(relayout), FORM_ROW(batch_norm), FORM_ROW(batch_norm_grad_input),
    FORM_ROW(layer_norm),
    LAYOUT_ROW(batch_norm_stats, clt_cpu_batch_norm_stats_supports),
    LAYOUT_ROW(batch_norm_grad_stats, clt_cpu_batch_norm_grad_stats_supports),
    LAYOUT_ROW(reduce, clt_cpu_reduce_supports),
    LAYOUT_ROW(max_pool2d, clt_cpu_pool2d_supports),
    LAYOUT_ROW(max_pool2d_grad, clt_cpu_pool2d_supports),
    LAYOUT_ROW(avg_pool2d, clt_cpu_pool2d_supports),
    LAYOUT_ROW(avg_pool2d_grad, clt_cpu_pool2d_supports),
    ROW(matmul), ROW(conv2d), ROW(conv2d_grad_input), ROW(conv2d_grad_weight), {0},
};
