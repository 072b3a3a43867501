/*
 * Kernels for pointwise values on GPU-class devices: a work-item has four elements that lie side by side, which are one access where an operand has them
 * so, too; indices are decoded once for the four. Bound: memory.
 */
#include "backends/native/gpu/gpu.h"
#include "backends/reference/reference.h"
#include "runtime/device/kernel_source.h"

enum { FOUR = 4, ITEMS = 64 };

/* How a read gets its four. */
typedef enum fetch { FETCH_ONE, FETCH_FOUR, FETCH_EACH, FETCH_APART } fetch;

/* Of a read that is neither one nor that of the result. */
static bool is_strided(const clt_code *code, int read) {
    bool any = false;
    for (int d = 0; d < code->rank; d++) any |= clt_code_stride(code, read, d) != 0;
    return any && !clt_code_is_same(code, read);
}

/* The four may lie in two rows, each in a place of its own. */
static bool is_ragged(const clt_code *code) {
    return code->size[code->rank - 1] % FOUR != 0;
}

static fetch fetch_of(const clt_code *code, int read) {
    int64_t inner = clt_code_stride(code, read, 0);
    if (is_ragged(code)) return clt_code_is_same(code, read) ? FETCH_FOUR : is_strided(code, read) ? FETCH_APART : FETCH_ONE;
    bool aligned = code->reads[read].offset % FOUR == 0;
    for (int d = 1; d < code->rank; d++) aligned &= clt_code_stride(code, read, d) % FOUR == 0;
    return inner == 0 ? FETCH_ONE : inner == 1 && aligned ? FETCH_FOUR : FETCH_EACH;
}

static bool any_is_strided(const clt_code *code) {
    bool any = false;
    for (int k = 0; k < code->n_reads; k++) any |= is_strided(code, k);
    return any;
}

/* i0_ is the place of the first of the four, or of that which is `more` behind it, in the innermost dimension. */
static void add_decoding(clt_text *text, const clt_code *code, int more) {
    const char *type = clt_code_index_type(code);
    clt_text_add(text, "    %s rest_ = %d * i_ + %d;\n", type, FOUR, more);
    for (int d = 0; d + 1 < code->rank; d++) {
        int s = CLT_MAX_RANK - 1 - d;
        clt_text_add(text, "    const %s i%d_ = rest_ %% size_.s%d;\n    rest_ /= size_.s%d;\n", type, d, s, s);
    }
    clt_text_add(text, "    const %s i%d_ = rest_;\n", type, code->rank - 1);
}

static void add_place(clt_text *text, const clt_code *code, int read) {
    if (clt_code_is_same(code, read)) {
        clt_text_add(text, "%d * i_", FOUR);
        return;
    }
    clt_text_add(text, "o%d_", read);
    for (int d = 0; d < code->rank; d++)
        if (clt_code_stride(code, read, d)) clt_text_add(text, " + i%d_ * t%d_.s%d", d, read, CLT_MAX_RANK - 1 - d);
}

static void add_element(clt_text *text, const clt_code *code, const clt_tensor *node, int read, int more) {
    int input = code->reads[read].input;
    clt_dtype dtype = node->inputs[input]->dtype;
    bool half = dtype == CLT_F16 || dtype == CLT_BF16;
    if (half) clt_text_add(text, "clt_load_%s(x%d, p%d_", clt_dtype_name(dtype), input, read);
    else clt_text_add(text, "x%d[p%d_", input, read);
    if (more) clt_text_add(text, " + %d * t%d_.s%d", more, read, CLT_MAX_RANK - 1);
    clt_text_add(text, half ? ")" : "]");
}

/* "const float4 q0_ = …": of one, all the same. */
static void add_loads(clt_text *text, const clt_code *code, const clt_tensor *node) {
    for (int k = 0; k < code->n_reads; k++) {
        int input = code->reads[k].input;
        clt_dtype dtype = node->inputs[input]->dtype;
        const char *type = clt_code_type(dtype);
        fetch how = fetch_of(code, k);
        if (how == FETCH_APART) continue;
        clt_text_add(text, "    const %s p%d_ = ", clt_code_index_type(code), k);
        add_place(text, code, k);
        clt_text_add(text, ";\n    const %s4 q%d_ = ", type, k);
        switch (how) {
        case FETCH_FOUR: clt_text_add(text, "gpu_load_four_%s(x%d, p%d_);\n", clt_dtype_name(dtype), input, k); break;
        case FETCH_ONE:
            clt_text_add(text, "(%s4)(", type);
            add_element(text, code, node, k, 0);
            clt_text_add(text, ");\n");
            break;
        default:
            clt_text_add(text, "(%s4)(", type);
            for (int e = 0; e < FOUR; e++) {
                add_element(text, code, node, k, e);
                clt_text_add(text, e + 1 < FOUR ? ", " : ");\n");
            }
        }
    }
}

static void add_values(clt_text *text, const clt_code *code, const clt_tensor *node) {
    char value[CLT_CODE_VALUE];
    clt_text_add(text, "    %s4 z_;\n", clt_code_type(node->dtype));
    for (int e = 0; e < FOUR; e++) {
        clt_text_add(text, "    {\n");
        for (int k = 0; k < code->n_reads; k++)
            clt_text_add(text, "    const %s r%d_ = q%d_.s%d;\n", clt_code_type(node->inputs[code->reads[k].input]->dtype), k, k, e);
        clt_code_stages(text, code, node, value);
        clt_text_add(text, "    z_.s%d = %s;\n    }\n", e, value);
    }
}

/* Of a row that ends among the four: each element's place is decoded for itself. */
static void add_loads_apart(clt_text *text, const clt_code *code, const clt_tensor *node) {
    for (int k = 0; k < code->n_reads; k++)
        if (is_strided(code, k)) clt_text_add(text, "    %s4 q%d_;\n", clt_code_type(node->inputs[code->reads[k].input]->dtype), k);
    for (int e = 0; e < FOUR; e++) {
        clt_text_add(text, "    {\n");
        add_decoding(text, code, e);
        for (int k = 0; k < code->n_reads; k++) {
            if (!is_strided(code, k)) continue;
            clt_text_add(text, "    const %s p%d_ = ", clt_code_index_type(code), k);
            add_place(text, code, k);
            clt_text_add(text, ";\n    q%d_.s%d = ", k, e);
            add_element(text, code, node, k, 0);
            clt_text_add(text, ";\n");
        }
        clt_text_add(text, "    }\n");
    }
}

void clt_gpu_code_four(clt_text *text, const clt_code *code, const clt_tensor *node) {
    if (any_is_strided(code)) {
        if (is_ragged(code)) add_loads_apart(text, code, node);
        else add_decoding(text, code, 0);
    }
    add_loads(text, code, node);
    add_values(text, code, node);
}

static void add_kernel(clt_text *text, const clt_code *code, const clt_tensor *node) {
    const char *type = clt_code_index_type(code);
    clt_text_add(text, "(");
    clt_code_input_parameters(text, code, node);
    clt_text_add(text, "global %s *y_, %s count_", clt_code_storage_type(node->dtype), type);
    clt_reference_element_parameters(text, code);
    clt_text_add(text, ") {\n    %s i_ = get_global_id(0);\n    if (i_ >= count_) return;\n", type);
    clt_gpu_code_four(text, code, node);
    clt_text_add(text, "    gpu_store_four_%s(y_, %d * i_, z_);\n}\n", clt_dtype_name(node->dtype), FOUR);
}

static bool supports(const clt_candidate *c) {
    clt_code code;
    return clt_gpu_fits(c->device) && clt_code_of(c->node, true, &code) && clt_tensor_elements(c->node) % FOUR == 0;
}

static void lower(clt_lowering *l, const clt_tensor *node) {
    clt_code code;
    clt_text body = {0};
    clt_code_of(node, l->training, &code); /* supports() has seen that it can be done */
    int64_t count = clt_tensor_elements(node) / FOUR;
    add_kernel(&body, &code, node);
    if (!clt_code_begin(l, &code, clt_kernel_source_find(l->device, "native/gpu/fours.cl"), &body, count, ITEMS)) return;
    clt_launch_code_inputs(l, &code, node);
    clt_launch_tensor(l, node);
    clt_launch_index(l, count);
    clt_reference_element_arguments(l, &code);
}

#define FORM_ROW(op_suffix) \
    {CLT_NATIVE(op_suffix), .types = CLT_ANY_FLOAT, .large = true, .any_layout = true, .supports = supports, .lower = lower}
const clt_backend_row clt_gpu_pointwise_rows[] = {FORM_ROW(pointwise), FORM_ROW(fused), FORM_ROW(expand), FORM_ROW(relayout), {0}};
