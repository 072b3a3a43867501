/*
 * Kernels for pointwise values, an element a work-item: one for each chain of expressions and way in which
 * operands are read. Sizes are arguments, so that kernels serve all shapes.
 */
#include "backends/codegen.h"
#include "backends/reference/reference.h"

static bool is_scalar(const clt_code *code, int read) {
    for (int d = 0; d < code->rank; d++)
        if (code->size[d] > 1 && code->reads[read].stride[d]) return false;
    return true;
}

static bool is_strided(const clt_code *code, int read) {
    return !clt_code_is_same(code, read) && !is_scalar(code, read);
}

static bool any_strided(const clt_code *code) {
    for (int k = 0; k < code->n_reads; k++)
        if (is_strided(code, k)) return true;
    return false;
}

static void place(clt_text *text, const clt_code *code, int read) {
    if (clt_code_is_same(code, read)) {
        clt_text_add(text, "i_");
        return;
    }
    clt_text_add(text, "o%d_", read);
    for (int d = 0; is_strided(code, read) && d < code->rank; d++)
        clt_text_add(text, " + i%d_ * t%d_.s%d", d, read, CLT_MAX_RANK - 1 - d);
}

/* i0_ is the innermost; sizes and strides are in the last elements of their vectors. */
static void add_decoding(clt_text *text, int rank) {
    clt_text_add(text, "    int rest_ = i_;\n");
    for (int d = 0; d + 1 < rank; d++) {
        int s = CLT_MAX_RANK - 1 - d;
        clt_text_add(text, "    const int i%d_ = rest_ %% size_.s%d;\n    rest_ /= size_.s%d;\n", d, s, s);
    }
    clt_text_add(text, "    const int i%d_ = rest_;\n", rank - 1);
}

void clt_reference_element_parameters(clt_text *text, const clt_code *code) {
    if (any_strided(code)) clt_text_add(text, ", int8 size_");
    for (int k = 0; k < code->n_reads; k++) {
        if (!clt_code_is_same(code, k)) clt_text_add(text, ", int o%d_", k);
        if (is_strided(code, k)) clt_text_add(text, ", int8 t%d_", k);
    }
    clt_code_scalar_parameters(text, &code->fused);
}

void clt_reference_element_loads(clt_text *text, const clt_code *code, const clt_tensor *node) {
    if (any_strided(code)) add_decoding(text, code->rank);
    clt_code_loads(text, code, node, place);
}

/* The text after the kernel's name. */
static void add_kernel(clt_text *text, const clt_code *code, const clt_tensor *node) {
    char value[16];
    clt_text_add(text, "(");
    clt_code_input_parameters(text, code, node);
    clt_text_add(text, "global %s *y_, int count_", clt_code_type(node->dtype));
    clt_reference_element_parameters(text, code);
    clt_text_add(text, ") {\n    int i_ = get_global_id(0);\n    if (i_ >= count_) return;\n");
    clt_reference_element_loads(text, code, node);
    clt_code_stages(text, code, node, value);
    clt_text_add(text, "    y_[i_] = %s;\n}\n", value);
}

void clt_reference_element_arguments(clt_lowering *l, const clt_code *code) {
    if (any_strided(code)) clt_launch_code_vector(l, code, code->size);
    for (int k = 0; k < code->n_reads; k++) {
        if (!clt_code_is_same(code, k)) clt_launch_int(l, code->reads[k].offset);
        if (is_strided(code, k)) clt_launch_code_vector(l, code, code->reads[k].stride);
    }
    clt_launch_code_scalars(l, &code->fused);
}

bool clt_reference_pointwise_supports(const clt_tensor *node, const clt_device *device) {
    clt_code code;
    (void)device;
    return clt_code_of(node, true, &code);
}

void clt_reference_pointwise(clt_lowering *l, const clt_tensor *node) {
    clt_code code;
    clt_text body = {0};
    clt_code_of(node, l->training, &code); /* supports() has seen that it can be done */
    add_kernel(&body, &code, node);
    if (!clt_code_begin(l, &code, "", &body, clt_tensor_elements(node), CLT_REFERENCE_GROUP)) return;
    clt_launch_code_inputs(l, &code, node);
    clt_launch_tensor(l, node);
    clt_launch_int(l, clt_tensor_elements(node));
    clt_reference_element_arguments(l, &code);
}
