#include "backends/native/cpu/cpu.h"
#include "backends/native/gpu/gpu.h"

/* `function`: what serves the op; FUNCTION_supports is beside it. */
#define ROW(op_suffix, row_name, layouts, function, ...)                                                \
    {                                                                                                   \
        .op = &clt_op_##op_suffix, .name = row_name, .any_layout = layouts,                             \
        .supports = clt_cpu_##function##_supports, .lower = clt_cpu_##function, __VA_ARGS__             \
    }
#define LAYOUT_ROW(op_suffix, function, ...) ROW(op_suffix, "native", true, function, __VA_ARGS__)
#define TILE_ROWS                                                                                         \
    .tunables = clt_cpu_conv2d_last_tunables, .defaults = clt_cpu_conv2d_last_defaults, .valid = clt_cpu_conv2d_last_valid
/* F(4x4, 3x3) multiplies 36 pairs where the direct sum multiplies 16 x 9. */
#define WINOGRAD_ROW(op_suffix, ...)                                                                  \
    ROW(op_suffix, "winograd", true, op_suffix##_winograd, .tunables = winograd_tunables, .arithmetic = 36.0 / (16 * 9), __VA_ARGS__)
#define GPU_ROW(op_suffix, ...)                                                                            \
    {                                                                                                   \
        .op = &clt_op_##op_suffix, .name = "native", .requires = 1u << CLT_CAP_GROUPS,                  \
        .supports = clt_gpu_supports, .lower = clt_gpu_lower, .tunables = clt_gpu_tunables,             \
        .defaults = clt_gpu_defaults, .valid = clt_gpu_valid, __VA_ARGS__                               \
    }

/* How much of a convolution lies between its transforms and its products at a time. */
static const clt_tunable winograd_tunables[] = {{"chunk_kib", 4, {2048, 1024, 4096, 8192}}, {0}};

const clt_backend_row clt_native_rows[] = {
    LAYOUT_ROW(pointwise, pointwise, ),
    LAYOUT_ROW(fused, pointwise, ),
    LAYOUT_ROW(expand, pointwise, ),
    LAYOUT_ROW(relayout, pointwise, ),
    LAYOUT_ROW(batch_norm, pointwise, ),
    LAYOUT_ROW(batch_norm_grad_input, pointwise, ),
    LAYOUT_ROW(layer_norm, pointwise, ),
    LAYOUT_ROW(batch_norm_stats, batch_norm_stats, ),
    LAYOUT_ROW(batch_norm_moments, batch_norm_moments, ),
    LAYOUT_ROW(batch_norm_grad_stats, batch_norm_grad_stats, ),
    LAYOUT_ROW(reduce, reduce, ),
    ROW(layer_norm_stats, "native", false, layer_norm_stats, ),
    ROW(layer_norm_grad_input, "native", false, layer_norm_grad_input, ),
    ROW(layer_norm_grad_weight, "native", false, layer_norm_grad_weight, ),
    ROW(softmax, "native", false, softmax, ),
    ROW(softmax_grad, "native", false, softmax, ),
    ROW(log_softmax, "native", false, softmax, ),
    ROW(log_softmax_grad, "native", false, softmax, ),
    ROW(cross_entropy, "native", false, cross_entropy, ),
    ROW(cross_entropy_grad, "native", false, cross_entropy, ),
    LAYOUT_ROW(max_pool2d, max_pool2d, ),
    LAYOUT_ROW(max_pool2d_grad, max_pool2d_grad, ),
    LAYOUT_ROW(avg_pool2d, avg_pool2d, ),
    LAYOUT_ROW(avg_pool2d_grad, avg_pool2d_grad, ),
    ROW(matmul, "native", false, matmul, .epilogue = true, .tunables = clt_cpu_matmul_tunables, .defaults = clt_cpu_matmul_defaults,
        .valid = clt_cpu_matmul_valid),
    LAYOUT_ROW(conv2d, conv2d, .epilogue = true),
    LAYOUT_ROW(conv2d_grad_input, conv2d_grad_input, .epilogue = true),
    LAYOUT_ROW(conv2d_grad_weight, conv2d_grad_weight, ),
    LAYOUT_ROW(conv2d, conv2d_last, .epilogue = true, TILE_ROWS),
    LAYOUT_ROW(conv2d_grad_input, conv2d_grad_input_last, .epilogue = true, TILE_ROWS),
    LAYOUT_ROW(conv2d_grad_weight, conv2d_grad_weight_last, ),
    WINOGRAD_ROW(conv2d, .epilogue = true),
    WINOGRAD_ROW(conv2d_grad_input, .epilogue = true),
    WINOGRAD_ROW(conv2d_grad_weight, ),
    GPU_ROW(matmul, .epilogue = true),
    GPU_ROW(conv2d, .epilogue = true),
    GPU_ROW(conv2d_grad_input, .epilogue = true),
    GPU_ROW(conv2d_grad_weight, ),
    {0},
};
