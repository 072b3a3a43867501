/* Reductions of what a chain of pointwise forms gives, which is computed on the way: one work-group a result. */
#include "backends/codegen.h"
#include "backends/reference/reference.h"

static bool supports(const clt_candidate *c) {
    const clt_fused_reduce *at = c->node->attributes;
    clt_code code;
    return clt_code_of_chain(&at->chain, c->node->inputs, &code);
}

/* The text after the kernel's name. */
static void add_kernel(clt_text *text, const clt_code *code, const clt_tensor *node) {
    const clt_fused_reduce *at = node->attributes;
    bool max = at->reduction == CLT_AXES_MAX;
    char value[CLT_CODE_VALUE];
    clt_text_add(text, "(");
    clt_code_input_parameters(text, code, node);
    const char *type = clt_code_index_type(code);
    clt_text_add(text, "global %s *y_, int outputs_, int length_, float scale_", clt_code_storage_type(node->dtype));
    clt_reference_element_parameters(text, code);
    clt_text_add(text, ") {\n    local float scratch_[CLT_GROUP];\n    %s output_ = get_group_id(0);\n"
                       "    if (output_ >= outputs_) return;\n    float all_ = %s;\n"
                       "    for (int step_ = get_local_id(0); step_ < length_; step_ += get_local_size(0)) {\n"
                       "    const %s i_ = output_ * length_ + step_;\n", type, max ? "-INFINITY" : "0", type);
    clt_reference_element_loads(text, code, node);
    clt_code_stages(text, code, node, value);
    clt_code_round(at->chain.dtype, value);
    clt_text_add(text, max ? "    all_ = clt_max(all_, %s);\n    }\n" : "    all_ += %s;\n    }\n", value);
    clt_text_add(text, "    all_ = clt_group_%s(all_, scratch_);\n"
                       "    if (get_local_id(0) == 0) ", max ? "max" : "sum");
    clt_code_store(text, node->dtype, "y_", "output_", "all_ * scale_");
    clt_text_add(text, "\n}\n");
}

static void lower(clt_lowering *l, const clt_tensor *node) {
    const clt_fused_reduce *at = node->attributes;
    int64_t outputs = clt_tensor_elements(node);
    clt_code code;
    clt_text body = {0};
    clt_code_of_chain(&at->chain, node->inputs, &code); /* supports() has seen that it can be done */
    add_kernel(&body, &code, node);
    if (!clt_code_begin(l, &code, "", &body, outputs * CLT_REFERENCE_GROUP, CLT_REFERENCE_GROUP)) return;
    clt_launch_code_inputs(l, &code, node);
    clt_launch_tensor(l, node);
    clt_launch_int(l, outputs);
    clt_launch_int(l, at->length);
    clt_launch_float(l, at->reduction == CLT_AXES_MEAN ? (float)(1.0 / (double)at->length) : 1.0f);
    clt_reference_element_arguments(l, &code);
}

const clt_backend_row clt_reference_fused_reduce_rows[] = {
    {CLT_REFERENCE(fused_reduce), .types = CLT_ANY_FLOAT, .large = true, .any_layout = true, .supports = supports, .lower = lower},
    {0},
};
