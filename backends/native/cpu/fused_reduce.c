/*
 * Sums, means and maxima along rows of what a chain of pointwise forms gives, on CPU-class devices: a work-item takes several rows, each in as many
 * partial results as a vector has lanes, which are joined in order. Bound: memory.
 */
#include "backends/native/along.h"
#include "backends/native/cpu/cpu.h"

static bool supports(const clt_candidate *c) {
    enum { LONGEST = 16384 };
    const clt_fused_reduce *at = c->node->attributes;
    int64_t rows = clt_tensor_elements(c->node);
    clt_code code;
    if (!clt_cpu_fits(c->device) || at->length < clt_device_vector_width(c->device) || at->length > LONGEST) return false;
    return clt_cpu_holds(c->device, (double)rows * (double)at->length) && clt_code_along(c->node, &code);
}

static void place(clt_text *text, const clt_code *code, int read) {
    clt_text_add(text, clt_code_is_same(code, read) ? "i_" : "o%d_", read);
}

/* What is added to lane k_ for element step_ + k_ of row_. */
static void add_term(clt_text *text, const clt_code *code, const clt_tensor *node) {
    const clt_fused_reduce *at = node->attributes;
    char value[CLT_CODE_VALUE];
    clt_text_add(text, "            const int i_ = row_ * size_.s1 + step_ + k_;\n");
    clt_code_loads(text, code, node, place);
    clt_code_stages(text, code, node, value);
    clt_code_round(at->chain.dtype, value);
    clt_text_add(text, at->reduction == CLT_AXES_MAX ? "            lanes_[k_] = clt_max(lanes_[k_], %s);\n" : "            lanes_[k_] += %s;\n", value);
}

static void add_kernel(clt_text *text, const clt_code *code, const clt_tensor *node, int width) {
    bool max = ((const clt_fused_reduce *)node->attributes)->reduction == CLT_AXES_MAX;
    clt_text_add(text, "(");
    clt_code_input_parameters(text, code, node);
    clt_text_add(text, "global %s *y_, int2 size_, int each_, float scale_", clt_code_storage_type(node->dtype));
    for (int k = 0; k < code->n_reads; k++)
        if (!clt_code_is_same(code, k)) clt_text_add(text, ", int o%d_", k);
    clt_code_scalar_parameters(text, &code->fused);
    clt_text_add(text, ") {\n    int first_ = get_global_id(0) * each_;\n"
                       "    for (int row_ = first_; row_ < min(first_ + each_, size_.s0); row_++) {\n"
                       "        float lanes_[%d], all_ = %s;\n        int step_ = 0;\n"
                       "        for (int k_ = 0; k_ < %d; k_++) lanes_[k_] = all_;\n"
                       "        for (; step_ + %d <= size_.s1; step_ += %d) {\n"
                       "            _Pragma(\"clang loop vectorize(assume_safety)\")\n"
                       "            for (int k_ = 0; k_ < %d; k_++) {\n", width, max ? "-INFINITY" : "0", width, width, width, width);
    add_term(text, code, node);
    clt_text_add(text, "            }\n        }\n        for (int k_ = 0; step_ + k_ < size_.s1; k_++) {\n");
    add_term(text, code, node);
    clt_text_add(text, max ? "        }\n        for (int k_ = 0; k_ < %d; k_++) all_ = clt_max(all_, lanes_[k_]);\n        "
                           : "        }\n        for (int k_ = 0; k_ < %d; k_++) all_ += lanes_[k_];\n        ", width);
    clt_code_store(text, node->dtype, "y_", "row_", "all_ * scale_");
    clt_text_add(text, "\n    }\n}\n");
}

static void lower(clt_lowering *l, const clt_tensor *node) {
    enum { ELEMENTS = 4096 }; /* of an item: enough to be worth its start */
    const clt_fused_reduce *at = node->attributes;
    int64_t rows = clt_tensor_elements(node), each = clt_cpu_divide_up(ELEMENTS, at->length);
    clt_code code;
    clt_text body = {0};
    clt_code_along(node, &code); /* supports() has seen that it can be done */
    add_kernel(&body, &code, node, clt_device_vector_width(l->device));
    if (!clt_code_begin(l, &code, clt_cpu_no_warnings, &body, clt_cpu_divide_up(rows, each), 1)) return;
    clt_launch_code_inputs(l, &code, node);
    clt_launch_tensor(l, node);
    clt_launch_ints(l, (int64_t[]){rows, at->length}, 2, 2);
    clt_launch_int(l, each);
    clt_launch_float(l, at->reduction == CLT_AXES_MEAN ? (float)(1.0 / (double)at->length) : 1.0f);
    for (int k = 0; k < code.n_reads; k++)
        if (!clt_code_is_same(&code, k)) clt_launch_int(l, code.reads[k].offset);
    clt_launch_code_scalars(l, &code.fused);
}

const clt_backend_row clt_cpu_fused_reduce_rows[] = {{CLT_NATIVE(fused_reduce), .types = CLT_ANY_FLOAT, .any_layout = true, .supports = supports, .lower = lower}, {0}};
