/* Scaled dot-product attention in tiles of local memory (cl/native/gpu/attention.cl). */
#include "backends/attention.h"
#include "backends/native/gpu/gpu.h"
#include "runtime/device/kernel_source.h"

enum { MOST_D = 128 }; /* registers: a work-item holds four rows of a piece, or of two results */

static const clt_tunable tunables[] = {{"tile", 3, {32, 64, 16}}, {0}};

static int items_of(int tile) {
    return tile / 4 * (tile / 4);
}

static int64_t groups_of(int64_t heads, int64_t rows, int tile) {
    return heads * ((rows + tile - 1) / tile);
}

static void lower(clt_lowering *l, const clt_tensor *node, const char *kernel, int64_t heads, int64_t rows) {
    static const char path[] = "native/gpu/attention.cl";
    int tile = l->parameters[0], items = items_of(tile);
    clt_text text = {0};
    if (node->dtype != CLT_F32) clt_text_add(&text, "#define CLT_STORAGE %s\n", clt_dtype_name(node->dtype));
    clt_text_add(&text, "%s", clt_kernel_source_find(l->device, CLT_PRELUDE));
    clt_gpu_group_text(&text, l->device, items);
    clt_text_add(&text, "#define GPU_T %d\n#define ATTENTION_D %d\n", tile, (int)clt_attention_sizes(node).d);
    clt_attention_add_text(&text, l->device, path);
    if (text.status < 0) clt_lower_fail(l, text.status);
    else clt_launch_begin_text(l, path, text.data, true, kernel, groups_of(heads, rows, tile) * items, items);
    clt_text_free(&text);
    clt_launch_fix_group(l, items);
    clt_attention_launch_all(l, node);
}

static void lower_forward(clt_lowering *l, const clt_tensor *node) {
    clt_attention_size z = clt_attention_sizes(node);
    lower(l, node, "gpu_attention", z.n * z.heads, z.t);
}

static void lower_grad_query(clt_lowering *l, const clt_tensor *node) {
    clt_attention_size z = clt_attention_sizes(node);
    lower(l, node, "gpu_attention_grad_query", z.n * z.heads, z.t);
}

static void lower_grad_key_value(clt_lowering *l, const clt_tensor *node) {
    clt_attention_size z = clt_attention_sizes(node);
    lower(l, node, "gpu_attention_grad_key_value", z.n * z.key_heads, z.s);
}

/* A row is at most four pieces: of more, compilers keep no array in registers. */
static int least_tile(const clt_candidate *c) {
    return clt_attention_sizes(c->node).d > 64 ? 32 : 16;
}

static bool valid(const clt_candidate *c, const int *parameters) {
    const clt_device_info *info = clt_device_get_info(c->device);
    int tile = parameters[0];
    uint64_t floats = (uint64_t)(2 * tile * (tile + 4) + 4 * tile);
    return tile >= least_tile(c) && (uint64_t)items_of(tile) <= info->max_work_group_size && floats * sizeof(float) <= info->local_memory_bytes;
}

/* Queries, keys, values and gradients of one storage type; statistics, and a mask, as they are in f32. */
static bool has_types(const clt_tensor *node) {
    bool all = true;
    for (int i = 0; i < node->n_inputs; i++) {
        const clt_tensor *x = node->inputs[i];
        bool stored = i < 3 || (i == 5 && node->op != &clt_op_attention);
        all &= stored ? x->dtype == node->dtype : x->dtype == CLT_F32 || !clt_dtype_is_float(x->dtype);
    }
    return all;
}

/* Rounds of a work-item's loops for a row of the other side: products, their loads, weights. */
static bool supports_rounds(const clt_candidate *c, int64_t rows, int products) {
    enum { SHORT = 60000, MOST = 1 << 24 };
    clt_attention_size z = clt_attention_sizes(c->node);
    int tile = least_tile(c);
    int64_t pieces = (z.d + tile - 1) / tile, rounds = rows * (3 * products * pieces + 4);
    double largest = (double)z.n * (double)z.heads * (double)CLT_MAX(z.t, z.s) * (double)z.d;
    if (!clt_gpu_fits(c->device) || !has_types(c->node) || z.d > MOST_D || largest >= INT32_MAX / 64 || !valid(c, &tile)) return false;
    return rounds <= SHORT || (rounds <= MOST && clt_device_has(c->device, CLT_CAP_LONG_LOOPS));
}

static bool supports_forward(const clt_candidate *c) {
    return supports_rounds(c, clt_attention_sizes(c->node).s, 2);
}

static bool supports_grad_query(const clt_candidate *c) {
    return supports_rounds(c, clt_attention_sizes(c->node).s, 3);
}

static bool supports_grad_key_value(const clt_candidate *c) {
    clt_attention_size z = clt_attention_sizes(c->node);
    return supports_rounds(c, z.heads / z.key_heads * z.t, 4);
}

/* Rows of two pieces at most, where there is the memory. */
static void defaults(const clt_candidate *c, int *parameters) {
    parameters[0] = clt_attention_sizes(c->node).d > 64 ? 64 : 32;
    if (!valid(c, parameters)) parameters[0] = least_tile(c);
}

#define ATTENTION_ROW(op_suffix) \
    CLT_NATIVE(op_suffix), .types = CLT_ANY_FLOAT, .requires = 1u << CLT_CAP_GROUPS, .tunables = tunables, .defaults = defaults, .valid = valid
const clt_backend_row clt_gpu_attention_rows[] = {
    {ATTENTION_ROW(attention), .supports = supports_forward, .lower = lower_forward},
    {ATTENTION_ROW(attention_grad_query), .supports = supports_grad_query, .lower = lower_grad_query},
    {ATTENTION_ROW(attention_grad_key_value), .supports = supports_grad_key_value, .lower = lower_grad_key_value},
    {0},
};
