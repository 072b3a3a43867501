/* Sums down columns (cl/native/gpu/columns.cl). */
#include <stdio.h>

#include "backends/native/columns.h"
#include "backends/native/gpu/gpu.h"

enum {
    ITEMS = 64,
    LANES = 16,
    LEAST_ROWS = 64,   /* of a chunk */
    MOST_CHUNKS = 1024 /* that are added up at once */
};

static int64_t divide_up(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

/* Chunks by the shape alone, for the same bits on all devices. */
static int64_t chunk_rows(const clt_columns *m) {
    return CLT_MAX(divide_up(m->rows, MOST_CHUNKS), LEAST_ROWS);
}

static int64_t groups_of(const clt_columns *m, int64_t chunks, int vector) {
    return m->count * chunks * divide_up(m->columns, LANES * vector);
}

static int vector_of(const clt_columns *m) {
    return m->columns % 4 == 0 ? 4 : 1;
}

/* from: of elements of this type. `parts` of the sums are f32. */
static void begin(clt_lowering *l, const clt_columns *m, int64_t chunks, clt_dtype from, clt_dtype to) {
    int vector = vector_of(m);
    char definitions[96];
    snprintf(definitions, sizeof definitions, "#define GPU_RESULT %s\n#define GPU_LANES %d\n#define GPU_VECTOR %d\n", clt_dtype_name(to), LANES, vector);
    clt_gpu_begin(l, "native/gpu/columns.cl", from, definitions, "gpu_columns_sum", groups_of(m, chunks, vector) * ITEMS, ITEMS);
    clt_launch_fix_group(l, ITEMS);
}

static void end(clt_lowering *l, const clt_columns *m, int64_t chunks, int64_t length, float scale) {
    clt_launch_ints(l, (int64_t[]){m->count, m->rows, m->columns, chunks}, 4, 4);
    clt_launch_int(l, length);
    clt_launch_float(l, scale);
}

static void lower(clt_lowering *l, const clt_tensor *node) {
    const clt_reduce_attributes *at = node->attributes;
    clt_columns m = {0};
    clt_columns_of(node, &m);
    int64_t length = chunk_rows(&m), chunks = divide_up(m.rows, length);
    float scale = at->reduction == CLT_AXES_MEAN ? (float)(1.0 / (double)m.rows) : 1.0f;
    const clt_tensor *x = node->inputs[0];
    if (chunks == 1) {
        begin(l, &m, 1, x->dtype, node->dtype);
        clt_launch_tensor(l, x);
        clt_launch_tensor(l, node);
        end(l, &m, 1, m.rows, scale);
        return;
    }
    clt_columns parts = {m.count, chunks, m.columns};
    int partial = clt_lower_scratch(l, (size_t)(m.count * chunks * m.columns) * sizeof(float));
    begin(l, &m, chunks, x->dtype, CLT_F32);
    clt_launch_tensor(l, x);
    clt_launch_scratch(l, partial);
    end(l, &m, chunks, length, 1);
    begin(l, &parts, 1, CLT_F32, node->dtype);
    clt_launch_scratch(l, partial);
    clt_launch_tensor(l, node);
    end(l, &parts, 1, chunks, scale);
}

/* Rounds of a work-item stay short: see cl/prelude.cl. */
static bool supports(const clt_candidate *c) {
    enum { MOST_ROUNDS = 60000 };
    const clt_reduce_attributes *at = c->node->attributes;
    const clt_device_info *info = clt_device_get_info(c->device);
    clt_columns m;
    if (!clt_gpu_fits(c->device) || at->reduction == CLT_AXES_MAX || !clt_columns_of(c->node, &m)) return false;
    int64_t length = chunk_rows(&m), chunks = divide_up(m.rows, length);
    return length <= MOST_ROUNDS && groups_of(&m, chunks, vector_of(&m)) * ITEMS <= INT32_MAX && info->max_work_group_size >= ITEMS &&
           info->local_memory_bytes >= ITEMS * 4 * sizeof(float);
}

const clt_backend_row clt_gpu_columns_rows[] = {
    {CLT_NATIVE(reduce), .types = CLT_ANY_FLOAT, .any_layout = true, .requires = 1u << CLT_CAP_GROUPS, .supports = supports, .lower = lower},
    {0},
};
