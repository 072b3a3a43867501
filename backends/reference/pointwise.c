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
static void add_decoding(clt_text *text, const clt_code *code) {
    const char *type = clt_code_index_type(code);
    clt_text_add(text, "    %s rest_ = i_;\n", type);
    for (int d = 0; d + 1 < code->rank; d++) {
        int s = CLT_MAX_RANK - 1 - d;
        clt_text_add(text, "    const %s i%d_ = rest_ %% size_.s%d;\n    rest_ /= size_.s%d;\n", type, d, s, s);
    }
    clt_text_add(text, "    const %s i%d_ = rest_;\n", type, code->rank - 1);
}

void clt_reference_element_parameters(clt_text *text, const clt_code *code) {
    const char *type = clt_code_index_type(code);
    if (any_strided(code)) clt_text_add(text, ", %s8 size_", type);
    for (int k = 0; k < code->n_reads; k++) {
        if (!clt_code_is_same(code, k)) clt_text_add(text, ", %s o%d_", type, k);
        if (is_strided(code, k)) clt_text_add(text, ", %s8 t%d_", type, k);
    }
    clt_code_scalar_parameters(text, &code->fused);
}

void clt_reference_element_loads(clt_text *text, const clt_code *code, const clt_tensor *node) {
    if (any_strided(code)) add_decoding(text, code);
    clt_code_loads(text, code, node, place);
}

/* The text after the kernel's name. */
static void add_kernel(clt_text *text, const clt_code *code, const clt_tensor *node) {
    char value[CLT_CODE_VALUE];
    clt_text_add(text, "(");
    clt_code_input_parameters(text, code, node);
    const char *type = clt_code_index_type(code);
    clt_text_add(text, "global %s *y_, %s count_", clt_code_storage_type(node->dtype), type);
    clt_reference_element_parameters(text, code);
    clt_text_add(text, ") {\n    %s i_ = get_global_id(0);\n    if (i_ >= count_) return;\n", type);
    clt_reference_element_loads(text, code, node);
    clt_code_stages(text, code, node, value);
    clt_text_add(text, "    ");
    clt_code_store(text, node->dtype, "y_", "i_", value);
    clt_text_add(text, "\n}\n");
}

void clt_reference_element_arguments(clt_lowering *l, const clt_code *code) {
    if (any_strided(code)) clt_launch_code_vector(l, code, code->size);
    for (int k = 0; k < code->n_reads; k++) {
        if (!clt_code_is_same(code, k)) clt_launch_index(l, code->reads[k].offset);
        if (is_strided(code, k)) clt_launch_code_vector(l, code, code->reads[k].stride);
    }
    clt_launch_code_scalars(l, &code->fused);
}

static bool supports(const clt_candidate *c) {
    clt_code code;
    return clt_code_of(c->node, true, &code);
}

static void lower(clt_lowering *l, const clt_tensor *node) {
    clt_code code;
    clt_text body = {0};
    clt_code_of(node, l->training, &code); /* supports() has seen that it can be done */
    add_kernel(&body, &code, node);
    if (!clt_code_begin(l, &code, "", &body, clt_tensor_elements(node), CLT_REFERENCE_GROUP)) return;
    clt_launch_code_inputs(l, &code, node);
    clt_launch_tensor(l, node);
    clt_launch_index(l, clt_tensor_elements(node));
    clt_reference_element_arguments(l, &code);
}

/* What has a form is generated. */
#define FORM_ROW(op_suffix)                                                                                                \
    {CLT_REFERENCE(op_suffix), .types = CLT_ANY_FLOAT, .large = true, .any_layout = true, .supports = supports, .lower = lower}
const clt_backend_row clt_reference_pointwise_rows[] = {FORM_ROW(pointwise), FORM_ROW(fused), FORM_ROW(relayout), {0}};
