/*
 * Sums, means and maxima along rows of what a chain of pointwise forms gives, on GPU-class devices: some lanes have a row, each four elements that lie side by
 * side at a time; what they have is joined in local memory, in an order that the shape alone tells. Bound: memory.
 */
#include "backends/native/along.h"
#include "backends/native/gpu/gpu.h"
#include "backends/reference/reference.h"
#include "runtime/device/kernel_source.h"

enum { FOUR = 4, GROUP = 64, LEAST_LANES = 16, MOST_LANES = 256, EASY = 4 /* loads of a lane, before a row gets more of them */ };

static int lanes_of(const clt_tensor *node) {
    int64_t length = ((const clt_fused_reduce *)node->attributes)->length;
    int lanes = LEAST_LANES;
    while (lanes < MOST_LANES && lanes * FOUR * EASY < length) lanes *= 2;
    return lanes;
}

static int items_of(const clt_tensor *node) {
    return CLT_MAX(GROUP, lanes_of(node));
}

static bool supports(const clt_candidate *c) {
    enum { LONGEST = 1 << 20 };
    const clt_device_info *info = clt_device_get_info(c->device);
    const clt_fused_reduce *at = c->node->attributes;
    clt_code code;
    if (!clt_gpu_fits(c->device) || at->length % FOUR || at->length < LEAST_LANES || at->length > LONGEST) return false;
    uint64_t items = (uint64_t)items_of(c->node);
    return clt_code_along(c->node, &code) && info->max_work_group_size >= items && info->local_memory_bytes >= items * sizeof(float) &&
           clt_tensor_elements(c->node) * lanes_of(c->node) <= INT32_MAX - GROUP;
}

static void add_joined(clt_text *text, bool max, const char *a, const char *b) {
    clt_text_add(text, max ? "%s = clt_max(%s, %s);\n" : "%s = %s + %s;\n", a, a, b);
}

/* The text after the kernel's name. */
static void add_kernel(clt_text *text, const clt_code *code, const clt_tensor *node) {
    const clt_fused_reduce *at = node->attributes;
    bool max = at->reduction == CLT_AXES_MAX;
    int lanes = lanes_of(node), items = items_of(node);
    clt_text_add(text, "(");
    clt_code_input_parameters(text, code, node);
    clt_text_add(text, "global %s *y_, int2 rows_, float scale_", clt_code_storage_type(node->dtype));
    clt_reference_element_parameters(text, code);
    clt_text_add(text, ") {\n    local float scratch_[%d];\n    int id_ = get_local_id(0), lane_ = id_ %% %d, row_ = get_group_id(0) * %d + id_ / %d;\n"
                       "    float all_ = %s;\n    for (int part_ = row_ < rows_.s0 ? lane_ : rows_.s1; part_ < rows_.s1; part_ += %d) {\n"
                       "    const int i_ = row_ * rows_.s1 + part_;\n", items, lanes, items / lanes, lanes, max ? "-INFINITY" : "0", lanes);
    clt_gpu_code_four(text, code, node);
    for (int e = 0; e < FOUR; e++) {
        char value[CLT_CODE_VALUE] = "z_.s0";
        value[4] = (char)('0' + e);
        clt_code_round(at->chain.dtype, value);
        clt_text_add(text, "    ");
        add_joined(text, max, "all_", value);
    }
    clt_text_add(text, "    }\n    scratch_[id_] = all_;\n    for (int step_ = %d; step_ > 0; step_ /= 2) {\n        barrier(CLK_LOCAL_MEM_FENCE);\n        if (lane_ < step_) ",
                 lanes / 2);
    add_joined(text, max, "scratch_[id_]", "scratch_[id_ + step_]");
    clt_text_add(text, "    }\n    if (lane_ == 0 && row_ < rows_.s0) ");
    clt_code_store(text, node->dtype, "y_", "row_", "scratch_[id_] * scale_");
    clt_text_add(text, "\n}\n");
}

static void lower(clt_lowering *l, const clt_tensor *node) {
    const clt_fused_reduce *at = node->attributes;
    int64_t rows = clt_tensor_elements(node);
    int items = items_of(node), each = items / lanes_of(node);
    clt_code code;
    clt_text body = {0};
    clt_code_along(node, &code); /* supports() has seen that it can be done */
    add_kernel(&body, &code, node);
    if (!clt_code_begin(l, &code, clt_kernel_source_find(l->device, "native/gpu/fours.cl"), &body, (rows + each - 1) / each * items, items)) return;
    clt_launch_fix_group(l, items);
    clt_launch_code_inputs(l, &code, node);
    clt_launch_tensor(l, node);
    clt_launch_ints(l, (int64_t[]){rows, at->length / FOUR}, 2, 2);
    clt_launch_float(l, at->reduction == CLT_AXES_MEAN ? (float)(1.0 / (double)at->length) : 1.0f);
    clt_reference_element_arguments(l, &code);
}

const clt_backend_row clt_gpu_fused_reduce_rows[] = {
    {CLT_NATIVE(fused_reduce), .types = CLT_ANY_FLOAT, .any_layout = true, .requires = 1u << CLT_CAP_GROUPS, .supports = supports, .lower = lower}, {0}};
