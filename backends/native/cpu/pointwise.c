/*
 * Kernels for pointwise values on CPU-class devices: a work-item goes over rows of the innermost dimension in
 * a plain loop, which compilers make vectors of; indices are decoded once a row. Bound: memory.
 */
#include "backends/codegen.h"
#include "backends/native/cpu/cpu.h"

/* Elements of one work-item, more or less: many enough to be worth its start, few enough to share out. */
enum { RUN = 8192 };

/* How rows of `length` elements are shared out: several to an item, or several items to a row. */
typedef struct cut {
    int64_t rows, length, item_rows, segments;
} cut;

static cut cut_of(const clt_code *code) {
    cut c = {.rows = 1, .length = code->size[code->rank - 1]};
    for (int d = 0; d + 1 < code->rank; d++) c.rows *= code->size[d];
    c.segments = clt_cpu_divide_up(c.length, RUN);
    c.item_rows = c.segments > 1 ? 1 : CLT_MAX(1, RUN / c.length);
    return c;
}

/* Reads go by 0, 1 or another number of elements from one to the next: which, the text says. */
static int64_t inner_stride(const clt_code *code, int read) {
    return clt_code_stride(code, read, 0);
}

static void place(clt_text *text, const clt_code *code, int read) {
    int64_t stride = inner_stride(code, read);
    clt_text_add(text, "o%d_%s", read, stride == 0 ? "" : stride == 1 ? " + j_" : " + j_ * t");
    if (stride > 1) clt_text_add(text, "%d_.s7", read);
}

/* The offset of each read in row `row_`. */
static void add_row(clt_text *text, const clt_code *code) {
    const char *type = clt_code_index_type(code);
    if (code->rank > 1) clt_text_add(text, "        %s rest_ = row_;\n", type);
    for (int d = 1; d + 1 < code->rank; d++)
        clt_text_add(text, "        const %s i%d_ = rest_ %% size_.s%d;\n        rest_ /= size_.s%d;\n", type, d, 7 - d, 7 - d);
    if (code->rank > 1) clt_text_add(text, "        const %s i%d_ = rest_;\n", type, code->rank - 1);
    for (int k = 0; k < code->n_reads; k++) {
        clt_text_add(text, "        const %s o%d_ = f%d_", type, k, k);
        for (int d = 1; d < code->rank; d++)
            if (clt_code_stride(code, k, d)) clt_text_add(text, " + i%d_ * t%d_.s%d", d, k, 7 - d);
        clt_text_add(text, ";\n");
    }
}

static void add_kernel(clt_text *text, const clt_code *code, const clt_tensor *node) {
    const char *type = clt_code_index_type(code);
    char value[CLT_CODE_VALUE];
    clt_text_add(text, "(");
    clt_code_input_parameters(text, code, node);
    clt_text_add(text, "global %s *y_, %s4 cut_, %s8 size_", clt_code_storage_type(node->dtype), type, type);
    for (int k = 0; k < code->n_reads; k++) clt_text_add(text, ", %s f%d_, %s8 t%d_", type, k, type, k);
    clt_code_scalar_parameters(text, &code->fused);
    clt_text_add(text, ") {\n"
                       "    %s item_ = get_global_id(0), segment_ = item_ %% cut_.s3;\n"
                       "    %s first_ = item_ / cut_.s3 * cut_.s2, last_ = min(first_ + cut_.s2, cut_.s0);\n"
                       "    %s start_ = segment_ * %d, end_ = min(start_ + %d, cut_.s1);\n"
                       "    for (%s row_ = first_; row_ < last_; row_++) {\n", type, type, type, RUN, RUN, type);
    add_row(text, code);
    /* Each element is read before it is written, and by nobody else: so it may be in place. */
    clt_text_add(text, "        global %s *q_ = y_ + row_ * cut_.s1;\n"
                       "        _Pragma(\"clang loop vectorize(assume_safety)\")\n"
                       "        for (%s j_ = start_; j_ < end_; j_++) {\n", clt_code_storage_type(node->dtype), type);
    clt_code_loads(text, code, node, place);
    clt_code_stages(text, code, node, value);
    clt_text_add(text, "        ");
    clt_code_store(text, node->dtype, "q_", "j_", value);
    clt_text_add(text, "\n        }\n    }\n}\n");
}

static bool supports_pointwise(const clt_candidate *c) {
    clt_code code;
    return clt_cpu_fits(c->device) && clt_code_of(c->node, true, &code);
}

static void lower_pointwise(clt_lowering *l, const clt_tensor *node) {
    clt_code code;
    clt_text body = {0};
    clt_code_of(node, l->training, &code); /* supports() has seen that it can be done */
    cut c = cut_of(&code);
    add_kernel(&body, &code, node);
    if (!clt_code_begin(l, &code, clt_cpu_no_warnings, &body, clt_cpu_divide_up(c.rows, c.item_rows) * c.segments, 1)) return;
    clt_launch_code_inputs(l, &code, node);
    clt_launch_tensor(l, node);
    clt_launch_indices(l, (int64_t[]){c.rows, c.length, c.item_rows, c.segments}, 4, 4);
    clt_launch_code_vector(l, &code, code.size);
    for (int k = 0; k < code.n_reads; k++) {
        clt_launch_index(l, code.reads[k].offset);
        clt_launch_code_vector(l, &code, code.reads[k].stride);
    }
    clt_launch_code_scalars(l, &code.fused);
}

#define FORM_ROW(op_suffix) \
    {CLT_NATIVE(op_suffix), .types = CLT_ANY_FLOAT, .large = true, .any_layout = true, .supports = supports_pointwise,   \
     .lower = lower_pointwise}
const clt_backend_row clt_cpu_pointwise_rows[] = {
    FORM_ROW(pointwise),
    FORM_ROW(fused),
    FORM_ROW(expand),
    FORM_ROW(relayout),
    {0},
};
