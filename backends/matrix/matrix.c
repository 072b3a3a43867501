#include "backends/matrix/matrix.h"

#include <stdlib.h>
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

clt_status clt_matrix_check_precision(void) {
    static const char *const precisions[] = {"f32", "tf32", "bf16", "f16"};
    return clt_choice_check("CLTRAIN_MATMUL_PRECISION", getenv("CLTRAIN_MATMUL_PRECISION"), precisions, CLT_COUNT_OF(precisions));
}

static bool is_wanted(const char *precision) {
    const char *wanted = getenv("CLTRAIN_MATMUL_PRECISION");
    return wanted && !strcmp(wanted, precision);
}

bool clt_matrix_valid(const clt_tensor *node, const clt_device *device, const clt_matrix_unit *unit,
                      const int *parameters) {
    clt_gpu_contraction x[CLT_GPU_MOST_PHASES];
    matrix_tile t = tile_of(parameters);
    bool all = clt_matrix_can(device, unit, parameters);
    int n = all ? clt_gpu_describe(node, x) : 0;
    for (int i = 0; i < n; i++) {
        clt_gpu_cut cut = clt_gpu_cut_of(&x[i], t.m, t.n, steps_of(unit), t.splits);
        all &= clt_gpu_holds(device, &x[i], &cut);
    }
    return all;
}

bool clt_matrix_supports(const clt_tensor *node, const clt_device *device, const clt_matrix_unit *unit) {
    int parameters[CLT_MAX_TUNABLES];
    clt_gpu_contraction x[CLT_GPU_MOST_PHASES];
    if (!is_wanted(unit->precision) || !clt_gpu_supports(node, device)) return false;
    clt_gpu_describe(node, x);
    clt_matrix_guess(&x[0], unit, device, parameters);
    return clt_matrix_valid(node, device, unit, parameters);
}

static void kernel_text(clt_text *text, const clt_device *device, const clt_gpu_contraction *x, const matrix_tile *t,
                        const clt_matrix_unit *unit, bool emulated) {
    static const char *const parts[] = {"matrix/unit.cl", "native/gpu/shared.cl", "matrix/layout.cl"};
    clt_text_add(text, "#define UNIT %s\n#define UNIT_FORMAT %s\n#define UNIT_EMULATED %d\n", unit->name, unit->format,
                 emulated);
    clt_gpu_group_text(text, device, t->warps_m * t->warps_n * unit->lanes);
    clt_text_add(text, "#define GPU_M %d\n#define GPU_N %d\n#define GPU_K %d\n", t->m, t->n, steps_of(unit));
    clt_text_add(text, "#define WARPS_M %d\n#define WARPS_N %d\n", t->warps_m, t->warps_n);
    if (emulated) clt_text_add(text, "#define GPU_UNROLL\n"); /* barriers in each copy: slow to compile */
    for (size_t i = 0; i < CLT_COUNT_OF(parts); i++) clt_text_add(text, "%s", clt_kernel_source_find(parts[i]));
    clt_gpu_side_text(text, "a", &x->a, t->m, t->vector, false);
    clt_gpu_side_text(text, "b", &x->b, t->n, t->vector, false);
    clt_text_add(text, "%s", clt_kernel_source_find("matrix/contract.cl"));
}

static void contract(clt_lowering *l, const clt_gpu_contraction *x, const clt_tensor *y, const clt_matrix_unit *unit,
                     bool emulated) {
    matrix_tile t = tile_of(l->parameters);
    int items = t.warps_m * t.warps_n * unit->lanes;
    clt_gpu_cut cut = clt_gpu_cut_of(x, t.m, t.n, steps_of(unit), t.splits);
    int parts = clt_gpu_parts(l, x, &cut);
    clt_text text = {0};
    clt_gpu_result_text(&text, y, cut.splits == 1);
    kernel_text(&text, l->device, x, &t, unit, emulated);
    if (text.status < 0) clt_lower_fail(l, text.status);
    else clt_launch_begin_text(l, "matrix/contract.cl", text.data, true, "matrix_contract", cut.groups * items,
                               items);
    clt_text_free(&text);
    clt_launch_fix_group(l, items);
    clt_gpu_arguments(l, x, y, &cut, parts);
}

void clt_matrix_lower(clt_lowering *l, const clt_tensor *node, const clt_matrix_unit *unit, bool emulated) {
    clt_gpu_contraction x[CLT_GPU_MOST_PHASES];
    int n = clt_gpu_describe(node, x);
    for (int i = 0; i < n; i++)
        if (x[i].n > 0) contract(l, &x[i], node, unit, emulated);
}
