/* Rows of a table, four elements a work-item (cl/reference/embedding.cl), and the table's gradient by rows (cl/native/gpu/embedding.cl). */
#include "backends/native/gpu/gpu.h"
#include "backends/reference/reference.h"
#include "runtime/device/kernel_source.h"

enum {
    ITEMS = 64,
    PART = 16384,  /* positions of a launch: see cl/prelude.cl about long loops */
    ENOUGH = 512   /* groups: with fewer, each owns fewer rows */
};

static const clt_tunable tunables[] = {{"rows", 5, {16, 8, 4, 2, 1}}, {0}}; /* of a group */

/* How the table is cut. */
typedef struct cut {
    int rows, vector;
    int64_t blocks, groups;
} cut;

static int64_t divide_up(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

static cut cut_of(const clt_tensor *node, int rows) {
    int64_t width = node->shape.dims[1];
    cut c = {.rows = rows, .vector = width % 4 == 0 ? 4 : 1};
    c.blocks = divide_up(width, ITEMS * c.vector);
    c.groups = divide_up(node->shape.dims[0], rows) * c.blocks;
    return c;
}

static void defaults(const clt_candidate *c, int *parameters) {
    parameters[0] = 16;
    while (parameters[0] > 1 && cut_of(c->node, parameters[0]).groups < ENOUGH) parameters[0] /= 2;
}

static void begin(clt_lowering *l, const cut *c) {
    static const char path[] = "native/gpu/embedding.cl";
    clt_text text = {0};
    clt_text_add(&text, "%s", clt_kernel_source_find(l->device, CLT_PRELUDE));
    clt_gpu_group_text(&text, l->device, ITEMS);
    clt_text_add(&text, "#define EMBEDDING_ROWS %d\n#define EMBEDDING_VECTOR %d\n%s", c->rows, c->vector, clt_kernel_source_find(l->device, path));
    if (text.status < 0) clt_lower_fail(l, text.status);
    else clt_launch_begin_text(l, path, text.data, true, "gpu_embedding_grad", c->groups * ITEMS, ITEMS);
    clt_text_free(&text);
    clt_launch_fix_group(l, ITEMS);
}

static void lower_grad(clt_lowering *l, const clt_tensor *node) {
    const clt_tensor *indices = node->inputs[0], *dy = node->inputs[1];
    int64_t positions = clt_tensor_elements(indices);
    cut c = cut_of(node, l->parameters[0]);
    for (int64_t start = 0; start < positions; start += PART) {
        begin(l, &c);
        clt_launch_tensor(l, indices);
        clt_launch_tensor(l, dy);
        clt_launch_tensor(l, node);
        clt_launch_int(l, node->shape.dims[1]);
        clt_launch_int(l, node->shape.dims[0]);
        clt_launch_int(l, c.blocks);
        clt_launch_int(l, start);
        clt_launch_int(l, CLT_MIN(start + PART, positions));
    }
}

/* Sums, and a list and counts of positions. */
static bool valid(const clt_candidate *c, const int *parameters) {
    const clt_device_info *info = clt_device_get_info(c->device);
    cut x = cut_of(c->node, parameters[0]);
    uint64_t bytes = sizeof(float) * (uint64_t)(x.rows * x.vector * ITEMS) + sizeof(int32_t) * 9 * ITEMS;
    return info->max_work_group_size >= ITEMS && bytes <= info->local_memory_bytes && x.groups * ITEMS <= INT32_MAX;
}

static bool supports(const clt_candidate *c) {
    int parameters[1];
    if (!clt_gpu_fits(c->device)) return false;
    defaults(c, parameters);
    return valid(c, parameters);
}

static bool supports_fours(const clt_candidate *c) {
    return clt_gpu_fits(c->device) && c->node->inputs[0]->shape.dims[1] % 4 == 0;
}

static void lower_fours(clt_lowering *l, const clt_tensor *node) {
    clt_reference_lower_embedding(l, node, 4);
}

const clt_backend_row clt_gpu_embedding_rows[] = {
    {CLT_NATIVE(embedding), .supports = supports_fours, .lower = lower_fours},
    {CLT_NATIVE(embedding_grad), .requires = 1u << CLT_CAP_GROUPS, .tunables = tunables, .defaults = defaults, .supports = supports, .valid = valid, .lower = lower_grad},
    {0},
};
