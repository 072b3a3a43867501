#include "backends/matrix/matrix.h"

#include <string.h>

#include "runtime/device/kernel_source.h"

const clt_matrix_unit clt_matrix_units[] = {
    {"UNIT_MMA", "UNIT_TF32", "tf32", CLT_CAP_MMA_TF32, 32, 16, 8, 4},
    {"UNIT_MMA", "UNIT_F16", "f16", CLT_CAP_MMA_F16, 32, 16, 8, 2},
    {"UNIT_MMA", "UNIT_BF16", "bf16", CLT_CAP_MMA_BF16, 32, 16, 8, 2},
    {"UNIT_DPAS8", "UNIT_F16", "f16", CLT_CAP_DPAS8_F16, 8, 8, 8, 2},
    {"UNIT_DPAS8", "UNIT_BF16", "bf16", CLT_CAP_DPAS8_BF16, 8, 8, 8, 2},
    {"UNIT_DPAS16", "UNIT_TF32", "tf32", CLT_CAP_DPAS16_TF32, 16, 8, 16, 4},
    {"UNIT_DPAS16", "UNIT_F16", "f16", CLT_CAP_DPAS16_F16, 16, 8, 16, 2},
    {"UNIT_DPAS16", "UNIT_BF16", "bf16", CLT_CAP_DPAS16_BF16, 16, 8, 16, 2},
    {"UNIT_WMMA", "UNIT_F16", "f16", CLT_CAP_WMMA_F16, 32, 16, 16, 2},
    {"UNIT_WMMA", "UNIT_BF16", "bf16", CLT_CAP_WMMA_BF16, 32, 16, 16, 2},
    {"UNIT_MFMA", "UNIT_F16", "f16", CLT_CAP_MFMA_F16, 64, 16, 16, 2},
    {"UNIT_MFMA", "UNIT_BF16", "bf16", CLT_CAP_MFMA_BF16, 64, 16, 16, 2},
};
const int clt_matrix_n_units = (int)CLT_COUNT_OF(clt_matrix_units);

/* ---- tiles ---- */

const clt_tunable clt_matrix_tunables[] = {
    {"tile_m", 3, {128, 64, 32}}, {"tile_n", 3, {128, 64, 32}}, {"warps_m", 3, {2, 1, 4}},
    {"warps_n", 3, {2, 1, 4}},    {"vector", 2, {4, 1}},        {"splits", 8, {0, 1, 2, 4, 8, 16, 32, 64}},
    {0},
};

typedef struct matrix_tile {
    int m, n, warps_m, warps_n, vector, splits;
} matrix_tile;

enum { WORDS = 16, PITCH = 20 }; /* as in cl/matrix/layout.cl */

static matrix_tile tile_of(const int *p) {
    return (matrix_tile){p[0], p[1], p[2], p[3], p[4], p[5]};
}

static int steps_of(const clt_matrix_unit *unit) {
    return WORDS * 4 / unit->words_bytes;
}

bool clt_matrix_can(const clt_device *device, const clt_matrix_unit *unit, const int *parameters) {
    /* Sums of a lane, in registers; fewer where fragments of both operands take 8 each. */
    const int most_sums = unit->lanes == 32 && unit->m == unit->n ? 32 : 64;
    const clt_device_info *info = clt_device_get_info(device);
    matrix_tile t = tile_of(parameters);
    int items = t.warps_m * t.warps_n * unit->lanes, k = steps_of(unit);
    bool whole = t.m % (t.warps_m * unit->m) == 0 && t.n % (t.warps_n * unit->n) == 0 &&
                 t.m * k % (4 * items) == 0 && t.n * k % (4 * items) == 0;
    uint64_t local = 2u * (unsigned)(t.m + t.n) * PITCH * 4u + 4u * (unsigned)k * 16u;
    return whole && t.m * t.n / items <= most_sums && (uint64_t)items <= info->max_work_group_size &&
           local <= info->local_memory_bytes;
}

void clt_matrix_guess(const clt_gpu_contraction *x, const clt_matrix_unit *unit, const clt_device *device,
                      int *parameters) {
    static const int tiles[][CLT_MAX_TUNABLES] = {
        {128, 128, 2, 4, 4, 0}, {128, 128, 2, 2, 4, 0}, {128, 128, 4, 4, 4, 0}, {128, 64, 4, 4, 4, 0},
        {64, 64, 2, 2, 4, 0},   {64, 64, 4, 2, 4, 0},   {32, 32, 2, 2, 4, 0},   {32, 32, 2, 1, 4, 0},
    };
    enum { ENOUGH_GROUPS = 128 };
    memcpy(parameters, tiles[CLT_COUNT_OF(tiles) - 1], sizeof tiles[0]);
    for (size_t i = 0; i < CLT_COUNT_OF(tiles); i++) {
        const int *t = tiles[i];
        if (!clt_matrix_can(device, unit, t)) continue;
        memcpy(parameters, t, sizeof tiles[0]);
        int64_t groups = x->batch * ((x->m + t[0] - 1) / t[0]) * ((x->n + t[1] - 1) / t[1]);
        bool fits = x->m > t[0] / 2 && x->n > t[1] / 2;
        if (fits && groups * clt_gpu_splits(x, t[0], t[1], 0, 0) >= ENOUGH_GROUPS) return;
    }
}

/* ---- rows ---- */

bool clt_matrix_valid(const clt_candidate *c, const int *parameters) {
    const clt_matrix_unit *unit = c->row->data;
    clt_gpu_contraction x[CLT_GPU_MOST_PHASES];
    matrix_tile t = tile_of(parameters);
    bool all = clt_matrix_can(c->device, unit, parameters);
    int n = all ? clt_gpu_describe(c->node, x) : 0;
    for (int i = 0; i < n; i++) {
        clt_gpu_cut cut = clt_gpu_cut_of(&x[i], t.m, t.n, steps_of(unit), t.splits);
        all &= clt_gpu_holds(c->device, &x[i], &cut);
    }
    return all;
}

void clt_matrix_defaults(const clt_candidate *c, int *parameters) {
    clt_gpu_contraction x[CLT_GPU_MOST_PHASES];
    clt_gpu_describe(c->node, x);
    clt_matrix_guess(&x[0], c->row->data, c->device, parameters);
}

/* Operands that the unit's format has lose nothing; those of f32 are rounded where the user allows it. tf32 has the digits of f16, and the range of bf16. */
static bool may_round(const clt_matrix_unit *unit, const clt_tensor *node, const clt_device *device) {
    clt_dtype storage = node->inputs[0]->dtype;
    if (storage == CLT_F32) return strcmp(clt_device_settings(device)->matmul_precision, unit->precision) == 0;
    return strcmp(unit->precision, clt_dtype_name(storage)) == 0 || strcmp(unit->precision, "tf32") == 0;
}

bool clt_matrix_supports(const clt_candidate *c) {
    const clt_matrix_unit *unit = c->row->data;
    int parameters[CLT_MAX_TUNABLES];
    if (!may_round(unit, c->node, c->device) || !clt_gpu_supports(c)) return false;
    clt_matrix_defaults(c, parameters);
    return clt_matrix_valid(c, parameters);
}

static void kernel_text(clt_text *text, const clt_device *device, const clt_gpu_contraction *x, const matrix_tile *t,
                        const clt_matrix_unit *unit) {
    static const char *const parts[] = {"matrix/unit.cl", "native/gpu/fours.cl", "native/gpu/shared.cl", "matrix/layout.cl"};
    clt_text_add(text, "#define UNIT %s\n#define UNIT_FORMAT %s\n#define UNIT_EMULATED %d\n", unit->name, unit->format,
                 unit->emulated);
    clt_gpu_group_text(text, device, t->warps_m * t->warps_n * unit->lanes);
    clt_text_add(text, "#define GPU_M %d\n#define GPU_N %d\n#define GPU_K %d\n", t->m, t->n, steps_of(unit));
    clt_text_add(text, "#define WARPS_M %d\n#define WARPS_N %d\n", t->warps_m, t->warps_n);
    if (unit->emulated) clt_text_add(text, "#define GPU_UNROLL\n"); /* barriers in each copy: slow to compile */
    for (size_t i = 0; i < CLT_COUNT_OF(parts); i++) clt_text_add(text, "%s", clt_kernel_source_find(device, parts[i]));
    clt_gpu_side_text(text, device, "a", &x->a, t->m, t->vector, false);
    clt_gpu_side_text(text, device, "b", &x->b, t->n, t->vector, false);
    clt_text_add(text, "%s", clt_kernel_source_find(device, "matrix/contract.cl"));
}

static void contract(clt_lowering *l, const clt_gpu_contraction *x, const clt_tensor *y) {
    const clt_matrix_unit *unit = l->row->data;
    matrix_tile t = tile_of(l->parameters);
    int items = t.warps_m * t.warps_n * unit->lanes;
    clt_gpu_cut cut = clt_gpu_cut_of(x, t.m, t.n, steps_of(unit), t.splits);
    int parts = clt_gpu_parts(l, x, &cut);
    clt_text text = {0};
    clt_gpu_result_text(&text, l->device, y, cut.splits == 1);
    kernel_text(&text, l->device, x, &t, unit);
    if (text.status < 0) clt_lower_fail(l, text.status);
    else clt_launch_begin_text(l, "matrix/contract.cl", text.data, true, "matrix_contract", cut.groups * items,
                               items);
    clt_text_free(&text);
    clt_launch_fix_group(l, items);
    clt_gpu_arguments(l, x, y, &cut, parts);
}

void clt_matrix_lower(clt_lowering *l, const clt_tensor *node) {
    clt_gpu_contraction x[CLT_GPU_MOST_PHASES];
    int n = clt_gpu_describe(node, x);
    for (int i = 0; i < n; i++)
        if (x[i].n > 0) contract(l, &x[i], node);
}

#define ROW(suffix, index, capability, ...)                                                              \
    {                                                                                                    \
        .op = &clt_op_##suffix, .name = "matrix", .types = CLT_ANY_FLOAT, .data = &clt_matrix_units[index], \
        .requires = 1u << capability, .supports = clt_matrix_supports, .lower = clt_matrix_lower,        \
        .tunables = clt_matrix_tunables, .defaults = clt_matrix_defaults, .valid = clt_matrix_valid,     \
        __VA_ARGS__                                                                                      \
    }
#define FINISHES .epilogue = true, .any_epilogue = true
#define ROWS(index, capability)                                                                         \
    ROW(matmul, index, capability, FINISHES), ROW(conv2d, index, capability, FINISHES), \
        ROW(conv2d_grad_input, index, capability, FINISHES), ROW(conv2d_grad_weight, index, capability, )

/* In the order of clt_matrix_units. */
const clt_backend_row clt_matrix_rows[] = {
    ROWS(0, CLT_CAP_MMA_TF32),
    ROWS(1, CLT_CAP_MMA_F16),
    ROWS(2, CLT_CAP_MMA_BF16),
    ROWS(3, CLT_CAP_DPAS8_F16),
    ROWS(4, CLT_CAP_DPAS8_BF16),
    ROWS(5, CLT_CAP_DPAS16_TF32),
    ROWS(6, CLT_CAP_DPAS16_F16),
    ROWS(7, CLT_CAP_DPAS16_BF16),
    ROWS(8, CLT_CAP_WMMA_F16),
    ROWS(9, CLT_CAP_WMMA_BF16),
    ROWS(10, CLT_CAP_MFMA_F16),
    ROWS(11, CLT_CAP_MFMA_BF16),
    {0},
};
