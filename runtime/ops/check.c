#include <stdio.h>

#include "runtime/ops/ops.h"

clt_status clt_check_dtype(const clt_tensor *node, int input, clt_dtype dtype) {
    const clt_tensor *x = node->inputs[input];
    char label[64];
    if (x->dtype == dtype) return CLT_OK;
    return clt_fail(CLT_E_DTYPE, "operand %d, %s, is %s; it must be %s", input, clt_tensor_label(x, label),
                    clt_dtype_name(x->dtype), clt_dtype_name(dtype));
}

clt_status clt_check_float(const clt_tensor *node, int input) {
    const clt_tensor *x = node->inputs[input];
    char label[64];
    if (clt_dtype_is_float(x->dtype)) return CLT_OK;
    return clt_fail(CLT_E_DTYPE, "operand %d, %s, is %s; it must be f32, f16 or bf16", input, clt_tensor_label(x, label),
                    clt_dtype_name(x->dtype));
}

clt_status clt_check_f32_or_i32(const clt_tensor *node, int input) {
    const clt_tensor *x = node->inputs[input];
    char label[64];
    if (x->dtype == CLT_F32 || x->dtype == CLT_I32) return CLT_OK;
    return clt_fail(CLT_E_DTYPE, "operand %d, %s, is %s; it must be f32 or i32", input, clt_tensor_label(x, label), clt_dtype_name(x->dtype));
}

clt_status clt_check_floats(const clt_tensor *node, int n) {
    CLT_TRY(clt_check_float(node, 0));
    for (int i = 1; i < n; i++) CLT_TRY(clt_check_dtype(node, i, node->inputs[0]->dtype));
    return CLT_OK;
}

clt_status clt_check_rank(const clt_tensor *node, int input, int least, int most) {
    const clt_tensor *x = node->inputs[input];
    char label[64], text[CLT_SHAPE_TEXT];
    if (x->shape.rank >= least && x->shape.rank <= most) return CLT_OK;
    if (least == most)
        return clt_fail(CLT_E_SHAPE, "operand %d, %s %s, must have %d dimensions", input,
                        clt_tensor_label(x, label), clt_shape_text(&x->shape, text), least);
    return clt_fail(CLT_E_SHAPE, "operand %d, %s %s, must have %d to %d dimensions", input,
                    clt_tensor_label(x, label), clt_shape_text(&x->shape, text), least, most);
}

/* Kernels compute places in the padded image with 32 bits, tiles of some of them beyond its end. */
clt_status clt_check_sides(const clt_tensor *node) {
    const int64_t most = (int64_t)1 << 30;
    const clt_tensor *x = node->inputs[0];
    char label[64], text[CLT_SHAPE_TEXT];
    if (x->shape.dims[2] <= most && x->shape.dims[3] <= most) return CLT_OK;
    return clt_fail(CLT_E_SHAPE, "operand 0, %s %s, is more than 2^30 pixels high or wide", clt_tensor_label(x, label),
                    clt_shape_text(&x->shape, text));
}

const char *clt_pair_text(const clt_tensor *a, const clt_tensor *b, char text[CLT_PAIR_TEXT]) {
    char label_a[64], label_b[64], shape_a[CLT_SHAPE_TEXT], shape_b[CLT_SHAPE_TEXT];
    snprintf(text, CLT_PAIR_TEXT, "%s %s and %s %s", clt_tensor_label(a, label_a),
             clt_shape_text(&a->shape, shape_a), clt_tensor_label(b, label_b),
             clt_shape_text(&b->shape, shape_b));
    return text;
}
