/* Scaled dot-product attention in tiles of local memory (cl/native/gpu/attention.cl). */
#include "backends/attention.h"
#include "backends/native/gpu/gpu.h"
#include "runtime/device/kernel_source.h"

enum { MOST_D = 128 }; /* registers: a work-item holds four rows of a piece, or of two results */

static const clt_tunable tunables[] = {{"tile", 3, {32, 64, 16}}, {0}};

static int items_of(int tile) {
    return tile / 4 * (tile / 4);
}

/* What work-groups share out: rows of queries, or of keys, of so many heads. */
typedef struct side {
    int64_t heads, rows;
} side;

static side side_of(const clt_tensor *node) {
    clt_attention_size z = clt_attention_sizes(node);
    if (node->op == &clt_op_attention_grad_key_value) return (side){z.n * z.key_heads, z.s};
    return (side){z.n * z.heads, z.t};
}

static int64_t groups_of(const clt_tensor *node, int tile) {
    side own = side_of(node);
    return own.heads * ((own.rows + tile - 1) / tile);
}

static void lower(clt_lowering *l, const clt_tensor *node) {
    static const char path[] = "native/gpu/attention.cl";
    int tile = l->parameters[0], items = items_of(tile), d = (int)clt_attention_sizes(node).d;
    clt_text text = {0};
    if (node->dtype != CLT_F32) clt_text_add(&text, "#define CLT_STORAGE %s\n", clt_dtype_name(node->dtype));
    clt_text_add(&text, "%s", clt_kernel_source_find(l->device, CLT_PRELUDE));
    clt_gpu_group_text(&text, l->device, items);
    clt_text_add(&text, "#define GPU_T %d\n#define ATTENTION_D %d\n#define GPU_VECTOR %d\n%s", tile, d, d % 4 == 0 ? 4 : 1,
                 clt_kernel_source_find(l->device, "native/gpu/fours.cl"));
    clt_attention_add_text(&text, l->device, path);
    const clt_module module = {.text = text.data, .isolated = true, .label = path, .separable = true};
    if (text.status < 0) clt_lower_fail(l, text.status);
    else clt_launch_begin_module(l, &module, l->row->data, groups_of(node, tile) * items, items);
    clt_text_free(&text);
    clt_launch_fix_group(l, items);
    clt_attention_launch_all(l, node);
}

/* A row is at most four pieces: of more, compilers keep no array in registers. */
static int least_tile(const clt_candidate *c) {
    return clt_attention_sizes(c->node).d > 64 ? 32 : 16;
}

static bool valid(const clt_candidate *c, const int *parameters) {
    const clt_device_info *info = clt_device_get_info(c->device);
    int tile = parameters[0];
    uint64_t floats = (uint64_t)(2 * tile * (tile + 4) + tile * (tile / 4) + tile);
    return tile >= least_tile(c) && (uint64_t)items_of(tile) <= info->max_work_group_size && floats * sizeof(float) <= info->local_memory_bytes;
}

/* Rounds of a work-item's loops for a row of the other side: products, their loads, weights. */
static bool supports_rounds(const clt_candidate *c, int64_t rows, int products) {
    enum { SHORT = 60000, MOST = 1 << 24 };
    clt_attention_size z = clt_attention_sizes(c->node);
    int tile = least_tile(c);
    int64_t pieces = (z.d + tile - 1) / tile, rounds = rows * (3 * products * pieces + 4);
    double largest = (double)z.n * (double)z.heads * (double)CLT_MAX(z.t, z.s) * (double)z.d;
    if (!clt_gpu_fits(c->device) || !clt_attention_is_of_one_type(c->node) || z.d > MOST_D || largest >= INT32_MAX / 64 || !valid(c, &tile)) return false;
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

/* Rows of two pieces at most; of one where that leaves enough work-groups: it takes fewer registers, and half the reads. */
static void defaults(const clt_candidate *c, int *parameters) {
    int64_t d = clt_attention_sizes(c->node).d;
    parameters[0] = d > 64 || (d > 32 && groups_of(c->node, 64) >= CLT_GPU_ENOUGH_GROUPS) ? 64 : 32;
    if (!valid(c, parameters)) parameters[0] = least_tile(c);
}

/* The data is the kernel's name. */
#define ATTENTION_ROW(op_suffix)                                                                                                                     \
    CLT_NATIVE(op_suffix), .types = CLT_ANY_FLOAT, .data = "gpu_" #op_suffix, .requires = 1u << CLT_CAP_GROUPS, .tunables = tunables, .defaults = defaults, \
        .valid = valid, .lower = lower
const clt_backend_row clt_gpu_attention_rows[] = {
    {ATTENTION_ROW(attention), .supports = supports_forward},
    {ATTENTION_ROW(attention_grad_query), .supports = supports_grad_query},
    {ATTENTION_ROW(attention_grad_key_value), .supports = supports_grad_key_value},
    {0},
};
