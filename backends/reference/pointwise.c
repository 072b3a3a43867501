/*
 * Pointwise kernels are generated: one for each expression and way in which its
 * operands are read. Sizes are arguments, so that kernels serve all shapes.
 */
#include <stdio.h>
#include <string.h>

#include "backends/reference/reference.h"

/* How an operand is read. */
typedef enum access {
    ACCESS_SAME,   /* its shape is the result's: x[i] */
    ACCESS_SCALAR, /* one element: x[0] */
    ACCESS_MIDDLE, /* stretched before and behind: x[i / inner % middle] (a bias on channels, a row, a column) */
    ACCESS_STRIDED /* any broadcasting: strides over the dimensions */
} access;

static const char *type_name(clt_dtype dtype) {
    return dtype == CLT_I32 ? "int" : dtype == CLT_U8 ? "uchar" : "float";
}

/* If `x` stretches to `y` with one run of its own dimensions, gives that run's elements and those inside it. */
static bool one_run(const clt_tensor *x, const clt_tensor *y, int64_t *middle, int64_t *inner) {
    int lead = y->shape.rank - x->shape.rank, state = 0;
    *middle = *inner = 1;
    for (int i = y->shape.rank - 1; i >= 0; i--) {
        int64_t dy = y->shape.dims[i], dx = i < lead ? 1 : x->shape.dims[i - lead];
        if (dy == 1) continue;
        if (dx == 1) {
            if (state == 0) *inner *= dy;
            else state = 2;
        } else {
            if (state == 2) return false;
            state = 1;
            *middle *= dx;
        }
    }
    return true;
}

static access access_of(const clt_tensor *x, const clt_tensor *y) {
    int64_t middle, inner;
    if (clt_tensor_elements(x) == clt_tensor_elements(y)) return ACCESS_SAME;
    if (clt_tensor_elements(x) == 1) return ACCESS_SCALAR;
    return one_run(x, y, &middle, &inner) ? ACCESS_MIDDLE : ACCESS_STRIDED;
}

/* Element i of a result of 8 dimensions, size.s0 outermost. */
static const char decode_index[] =
    "    int r = i;\n"
    "    int i7 = r % size.s7; r /= size.s7;\n    int i6 = r % size.s6; r /= size.s6;\n"
    "    int i5 = r % size.s5; r /= size.s5;\n    int i4 = r % size.s4; r /= size.s4;\n"
    "    int i3 = r % size.s3; r /= size.s3;\n    int i2 = r % size.s2; r /= size.s2;\n"
    "    int i1 = r % size.s1; int i0 = r / size.s1;\n";

static void generate(clt_text *text, const clt_tensor *node, const access *accesses, const char *kernel) {
    const clt_pointwise_attributes *at = node->attributes;
    bool strided = false;
    clt_text_add(text, "kernel void %s(", kernel);
    for (int k = 0; k < node->n_inputs; k++) {
        clt_text_add(text, "global const %s *x%d, ", type_name(node->inputs[k]->dtype), k);
        if (accesses[k] == ACCESS_MIDDLE) clt_text_add(text, "int middle%d, int inner%d, ", k, k);
        if (accesses[k] == ACCESS_STRIDED) clt_text_add(text, "int8 stride%d, ", k);
        strided |= accesses[k] == ACCESS_STRIDED;
    }
    clt_text_add(text, "global %s *y_, %sint count, float s0, float s1) {\n", type_name(node->dtype),
                 strided ? "int8 size, " : "");
    clt_text_add(text, "    int i = get_global_id(0);\n    if (i >= count) return;\n");
    if (strided) clt_text_add(text, "%s", decode_index);
    for (int k = 0; k < node->n_inputs; k++) {
        clt_text_add(text, "    %s %c = x%d[", type_name(node->inputs[k]->dtype), at->operands[k], k);
        if (accesses[k] == ACCESS_SAME) clt_text_add(text, "i];\n");
        if (accesses[k] == ACCESS_SCALAR) clt_text_add(text, "0];\n");
        if (accesses[k] == ACCESS_MIDDLE) clt_text_add(text, "i / inner%d %% middle%d];\n", k, k);
        if (accesses[k] == ACCESS_STRIDED) {
            for (int d = 0; d < CLT_MAX_RANK; d++)
                clt_text_add(text, "%si%d * stride%d.s%d", d ? " + " : "", d, k, d);
            clt_text_add(text, "];\n");
        }
    }
    clt_text_add(text, "    y_[i] = %s;\n}\n", at->expression);
}

/* "pw_add_" and a hash of what decides the text. */
static void name_kernel(char name[64], const clt_tensor *node, const access *accesses) {
    const clt_pointwise_attributes *at = node->attributes;
    clt_text text = {0};
    char hash[CLT_HASH_TEXT];
    clt_text_add(&text, "%s|%s|%s|", at->expression, at->operands, type_name(node->dtype));
    for (int k = 0; k < node->n_inputs; k++)
        clt_text_add(&text, "%d%s", (int)accesses[k], type_name(node->inputs[k]->dtype));
    clt_hash_text(clt_text_data(&text), text.length, hash);
    snprintf(name, 64, "pw_%.40s_%.12s", at->name, hash);
    clt_text_free(&text);
}

void clt_reference_pointwise(clt_lowering *l, const clt_tensor *node) {
    const clt_pointwise_attributes *at = node->attributes;
    access accesses[8];
    char kernel[64];
    bool strided = false;
    for (int k = 0; k < node->n_inputs; k++) {
        accesses[k] = access_of(node->inputs[k], node);
        strided |= accesses[k] == ACCESS_STRIDED;
    }
    name_kernel(kernel, node, accesses);
    clt_text text = {0};
    generate(&text, node, accesses, kernel);
    if (text.status < 0) {
        clt_lower_fail(l, text.status);
        return;
    }
    int64_t count = clt_tensor_elements(node);
    clt_launch_begin_text(l, "a pointwise kernel", text.data, false, kernel, count, CLT_REFERENCE_GROUP);
    clt_text_free(&text);
    for (int k = 0; k < node->n_inputs; k++) {
        const clt_tensor *x = node->inputs[k];
        int64_t middle, inner, strides[CLT_MAX_RANK];
        clt_launch_tensor(l, x);
        if (accesses[k] == ACCESS_MIDDLE) {
            one_run(x, node, &middle, &inner);
            clt_launch_int(l, middle);
            clt_launch_int(l, inner);
        }
        if (accesses[k] == ACCESS_STRIDED) {
            clt_broadcast_strides(x, 0, strides);
            clt_launch_ints(l, strides, CLT_MAX_RANK, CLT_MAX_RANK);
        }
    }
    clt_launch_tensor(l, node);
    if (strided) {
        int64_t size[CLT_MAX_RANK];
        for (int d = 0; d < CLT_MAX_RANK; d++) {
            int i = d - (CLT_MAX_RANK - node->shape.rank);
            size[d] = i >= 0 ? node->shape.dims[i] : 1;
        }
        clt_launch_ints(l, size, CLT_MAX_RANK, CLT_MAX_RANK);
    }
    clt_launch_int(l, count);
    clt_launch_float(l, at->s[0]);
    clt_launch_float(l, at->s[1]);
}
