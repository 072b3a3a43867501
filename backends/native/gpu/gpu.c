#include "backends/native/gpu/gpu.h"

#include "backends/codegen.h"
#include "runtime/device/kernel_source.h"

static int64_t divide_up(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

bool clt_gpu_fits(const clt_device *device) {
    return clt_device_get_class(device) == CLT_CLASS_GPU;
}

/* ---- tiles ---- */

const clt_tunable clt_gpu_tunables[] = {
    {"tile_m", 4, {128, 64, 32, 16}}, {"tile_n", 4, {128, 64, 32, 16}},
    {"tile_k", 3, {8, 16, 32}},       {"item_m", 2, {8, 4}},
    {"item_n", 2, {8, 4}},            {"vector", 2, {4, 1}},
    {"splits", 8, {0, 1, 2, 4, 8, 16, 32, 64}},
    {0},
};

clt_gpu_tile clt_gpu_tile_of(const int *p) {
    return (clt_gpu_tile){p[0], p[1], p[2], p[3], p[4], p[5], p[6]};
}

int clt_gpu_items(const clt_gpu_tile *t) {
    return t->m / t->item_m * (t->n / t->item_n);
}

/* Bytes of local memory: two tiles of each operand, two tables of places. */
static uint64_t local_bytes(const clt_gpu_tile *t) {
    return 2u * (unsigned)t->k * ((unsigned)(t->m + 4 + t->n + 4) * 4u + 2u * 16u);
}

bool clt_gpu_can(const clt_device *device, const clt_gpu_tile *t) {
    const clt_device_info *info = clt_device_get_info(device);
    int items = clt_gpu_items(t);
    bool whole = t->m % t->item_m == 0 && t->n % t->item_n == 0 && t->m * t->k % (4 * items) == 0 &&
                 t->n * t->k % (4 * items) == 0;
    return whole && (uint64_t)items <= info->max_work_group_size && local_bytes(t) <= info->local_memory_bytes;
}

int64_t clt_gpu_splits(const clt_gpu_contraction *x, int tile_m, int tile_n, int tile_k, int wanted) {
    enum {
        LEAST_STEPS = 256,  /* of a split: fewer, and adding up the parts costs as much */
        MOST_STEPS = 32768, /* see cl/prelude.cl about long loops */
        MOST_SPLITS = 64
    };
    int64_t groups = x->batch * divide_up(x->m, tile_m) * divide_up(x->n, tile_n), splits = 1;
    if (groups > 0 && groups < CLT_GPU_ENOUGH_GROUPS)
        splits = CLT_MIN(CLT_MIN(divide_up(2 * CLT_GPU_ENOUGH_GROUPS, groups), x->k / LEAST_STEPS), MOST_SPLITS);
    if (wanted > 0) splits = CLT_MIN(wanted, divide_up(x->k, CLT_MAX(tile_k, 1)));
    return CLT_MAX(CLT_MAX(splits, divide_up(x->k, MOST_STEPS)), 1);
}

/* What a tile takes, about: the products of whole tiles, dearer in small ones, which read more for
 * each; and what stands idle if there are too few. */
static double cost(const clt_gpu_contraction *x, const clt_gpu_tile *t) {
    int64_t tiles = x->batch * divide_up(x->m, t->m) * divide_up(x->n, t->n);
    double groups = (double)(tiles * clt_gpu_splits(x, t->m, t->n, t->k, 0));
    double reads = 1.0 / t->m + 1.0 / t->n + 0.25 / t->item_m + 0.25 / t->item_n;
    double idle = groups < CLT_GPU_ENOUGH_GROUPS ? CLT_GPU_ENOUGH_GROUPS / groups : 1;
    return (double)tiles * t->m * t->n * (0.5 + 6 * reads) * idle;
}

/* Where sums, and what is on its way to the next tile, do not fit into registers, Intel's compiler keeps all of them in memory. What comes one by one has
 * places of its own. docs/gpu-kernels.md shows that this is about the limit. */
static bool has_registers(const clt_device *device, const clt_gpu_contraction *x, const clt_gpu_tile *t) {
    enum { FEW = 48 };
    int moved = (t->m + t->n) * t->k / clt_gpu_items(t);
    return !clt_device_has_few_registers(device) || t->item_m * t->item_n + moved * (x->a.by_four && x->b.by_four ? 1 : 2) <= FEW;
}

void clt_gpu_guess(const clt_gpu_contraction *x, const clt_device *device, int *parameters) {
    static const clt_gpu_tile tiles[] = {
        {128, 128, 8, 8, 8, 4, 0}, {128, 64, 8, 8, 8, 4, 0}, {64, 128, 8, 8, 8, 4, 0},
        {64, 64, 8, 8, 8, 4, 0},   {128, 64, 16, 8, 4, 4, 0}, {64, 64, 8, 8, 4, 4, 0},
        {64, 64, 16, 4, 4, 4, 0},  {64, 32, 8, 8, 4, 4, 0},   {32, 64, 8, 4, 8, 4, 0},
        {32, 32, 16, 4, 4, 4, 0},  {64, 16, 16, 4, 4, 4, 0},  {16, 64, 16, 4, 4, 4, 0},
        {16, 16, 16, 4, 4, 4, 0},  {16, 16, 8, 4, 4, 4, 0},
    };
    const clt_gpu_tile *best = NULL;
    for (size_t i = 0; i < CLT_COUNT_OF(tiles); i++)
        if (clt_gpu_can(device, &tiles[i]) && has_registers(device, x, &tiles[i]) && (!best || cost(x, &tiles[i]) < cost(x, best))) best = &tiles[i];
    if (!best) best = &tiles[CLT_COUNT_OF(tiles) - 1];
    const int chosen[] = {best->m, best->n, best->k, best->item_m, best->item_n, best->vector, best->splits};
    for (size_t i = 0; i < CLT_COUNT_OF(chosen); i++) parameters[i] = chosen[i];
}

/* ---- what is served ---- */

static bool holds(const clt_device *device, double elements) {
    return elements < INT32_MAX / 2 &&
           elements * sizeof(float) <= (double)clt_device_get_info(device)->max_buffer_bytes;
}

bool clt_gpu_holds(const clt_device *device, const clt_gpu_contraction *x, const clt_gpu_cut *cut) {
    double parts = cut->splits > 1 ? (double)cut->splits : 1;
    return x->k < INT32_MAX / 2 && cut->groups < INT32_MAX / 1024 &&
           holds(device, (double)x->batch * (double)x->m * (double)x->n * parts);
}

static bool holds_tensors(const clt_device *device, const clt_tensor *node) {
    bool fits = holds(device, (double)clt_tensor_elements(node));
    for (int i = 0; i < node->n_inputs; i++) fits &= holds(device, (double)clt_tensor_elements(node->inputs[i]));
    return fits;
}

/* ---- the kernel's text ---- */

/* Slots that read neighbours for each source, by fours and one by one: see operand.cl. */
static const char *order_of(const clt_gpu_operand *o, bool vector, bool fours) {
    switch (o->source) {
    case CLT_GPU_STEPS_ADJACENT:
    case CLT_GPU_GATHER_STEPS:
        return vector || !fours ? "GPU_PAIRS" : "GPU_STEPS";
    default:
        return vector ? "GPU_FOURS" : "GPU_ROWS";
    }
}

void clt_gpu_side_text(clt_text *text, const clt_device *device, const char *side, const clt_gpu_operand *o, int tile, int vector,
                       bool fours) {
    bool along_k = o->source == CLT_GPU_STEPS_ADJACENT || o->source == CLT_GPU_GATHER_STEPS;
    bool loads_four = o->by_four && vector == 4 && (fours || along_k);
    bool linear = o->source == CLT_GPU_STEPS_ADJACENT || o->source == CLT_GPU_ROWS_ADJACENT;
    const char *order = order_of(o, loads_four, fours);
    clt_text_add(text, "#define SIDE %s\n#define SIDE_TILE %d\n#define SIDE_SOURCE %s\n", side, tile,
                 linear ? "GPU_LINEAR" : "GPU_GATHER");
    clt_text_add(text, "#define SIDE_ORDER %s\n#define SIDE_VECTOR %d\n", order, loads_four);
    clt_text_add(text, "%s", clt_kernel_source_find(device, "native/gpu/operand.cl"));
}

/* The attribute tells a GPU's compiler how many registers a work-item may have. CPUs do without: PoCL
 * 3.1 fails an assertion (pocl_release_dlhandle_cache) if the binary of a program with such kernels is
 * asked for while one of them runs. */
void clt_gpu_group_text(clt_text *text, const clt_device *device, int items) {
    bool tells = clt_device_get_info(device)->type != CLT_DEVICE_CPU;
    clt_text_add(text, "#define GPU_ITEMS %d\n#define GPU_FIXED_GROUP %s\n", items,
                 tells ? "__attribute__((reqd_work_group_size(GPU_ITEMS, 1, 1)))" : "");
}

void clt_gpu_begin(clt_lowering *l, const char *path, clt_dtype storage, const char *definitions, const char *kernel, int64_t count, int items) {
    clt_text text = {0};
    clt_text_add(&text, "#define CLT_STORAGE %s\n%s", clt_dtype_name(storage), clt_kernel_source_find(l->device, CLT_PRELUDE));
    clt_gpu_group_text(&text, l->device, items);
    clt_text_add(&text, "%s%s%s", definitions, clt_kernel_source_find(l->device, "native/gpu/fours.cl"), clt_kernel_source_find(l->device, path));
    const clt_module module = {.text = text.data, .isolated = true, .label = path, .separable = true};
    if (text.status < 0) clt_lower_fail(l, text.status);
    else clt_launch_begin_module(l, &module, kernel, count, items);
    clt_text_free(&text);
}

void clt_gpu_result_text(clt_text *text, const clt_device *device, const clt_tensor *y, bool finishes) {
    clt_dtype storage = y->inputs[0]->dtype;
    if (storage != CLT_F32) clt_text_add(text, "#define CLT_STORAGE %s\n", clt_dtype_name(storage));
    if (!finishes) clt_text_add(text, "#define GPU_RESULT f32\n");
    else if (y->dtype != storage) clt_text_add(text, "#define CLT_RESULT %s\n", clt_dtype_name(y->dtype));
    clt_text_add(text, "%s", clt_kernel_source_find(device, CLT_PRELUDE));
    clt_text_add(text, "#define GPU_CHANNEL(row, column) (%s)\n", y->op->epilogue == CLT_EPILOGUE_COLUMNS ? "column" : "row");
    if (y->epilogue && finishes) clt_epilogue_define(text, y);
}

static void kernel_text(clt_text *text, const clt_device *device, const clt_gpu_contraction *x, const clt_gpu_tile *t,
                        bool by_four) {
    static const char *const parts[] = {"native/gpu/fours.cl", "native/gpu/shared.cl", "native/gpu/layout.cl"};
    clt_gpu_group_text(text, device, clt_gpu_items(t));
    clt_text_add(text, "#define GPU_M %d\n#define GPU_N %d\n#define GPU_K %d\n", t->m, t->n, t->k);
    clt_text_add(text, "#define GPU_ITEM_M %d\n#define GPU_ITEM_N %d\n#define GPU_RESULT_VECTOR %d\n", t->item_m,
                 t->item_n, by_four && t->vector == 4);
    for (size_t i = 0; i < CLT_COUNT_OF(parts); i++) clt_text_add(text, "%s", clt_kernel_source_find(device, parts[i]));
    clt_gpu_side_text(text, device, "a", &x->a, t->m, t->vector, true);
    clt_gpu_side_text(text, device, "b", &x->b, t->n, t->vector, true);
    clt_text_add(text, "%s", clt_kernel_source_find(device, "native/gpu/contract.cl"));
}

/* ---- launches ---- */

static void launch_place(clt_lowering *l, const clt_gpu_place *p) {
    clt_launch_ints(
        l, (int64_t[]){p->height, p->width, p->image_step, p->step_h, p->step_w, p->origin_h, p->origin_w}, 7, 8);
}

static void launch_operand(clt_lowering *l, const clt_gpu_operand *o) {
    launch_place(l, &o->rows);
    launch_place(l, &o->steps);
    clt_launch_ints(l, (int64_t[]){o->height, o->width}, 2, 2);
}

clt_gpu_cut clt_gpu_cut_of(const clt_gpu_contraction *x, int tile_m, int tile_n, int tile_k, int splits) {
    clt_gpu_cut cut = {.splits = clt_gpu_splits(x, tile_m, tile_n, tile_k, splits)};
    cut.split_k = divide_up(divide_up(x->k, cut.splits), tile_k) * tile_k;
    cut.splits = x->k ? divide_up(x->k, cut.split_k) : 1;
    cut.groups = x->batch * divide_up(x->m, tile_m) * divide_up(x->n, tile_n) * cut.splits;
    return cut;
}

int clt_gpu_parts(clt_lowering *l, const clt_gpu_contraction *x, const clt_gpu_cut *cut) {
    if (cut->splits == 1) return -1;
    return clt_lower_scratch(l, (size_t)(cut->splits * x->batch * x->m * x->n) * sizeof(float));
}

static void begin_sum(clt_lowering *l, const clt_tensor *y, int64_t count) {
    static const char path[] = "native/gpu/sum.cl", kernel[] = "gpu_contract_sum";
    clt_text text = {0};
    if (!y->epilogue) {
        clt_launch_begin_typed(l, path, y->dtype, kernel, count, 64);
        return;
    }
    clt_gpu_result_text(&text, l->device, y, true);
    clt_text_add(&text, "%s", clt_kernel_source_find(l->device, path));
    if (text.status < 0) clt_lower_fail(l, text.status);
    else clt_launch_begin_text(l, path, text.data, true, kernel, count, 64);
    clt_text_free(&text);
}

static void launch_sum(clt_lowering *l, const clt_gpu_contraction *x, const clt_tensor *y, int parts,
                       int64_t splits) {
    begin_sum(l, y, x->m * x->n * x->batch);
    clt_launch_scratch(l, parts);
    clt_launch_tensor(l, y);
    clt_launch_ints(l, (int64_t[]){x->m, x->n, x->batch, splits}, 4, 4);
    clt_launch_ints(l, (int64_t[]){x->row_step, x->batch_step, x->pitch}, 3, 4);
    launch_place(l, &x->columns);
    clt_launch_epilogue(l, y);
}

void clt_gpu_arguments(clt_lowering *l, const clt_gpu_contraction *x, const clt_tensor *y, const clt_gpu_cut *cut,
                       int parts) {
    const clt_gpu_place line = {.height = 1, .width = x->n, .step_w = 1};
    int64_t part = x->m * x->n * x->batch;
    bool parted = cut->splits > 1;
    clt_launch_tensor(l, x->a_tensor);
    clt_launch_tensor(l, x->b_tensor);
    if (parted) clt_launch_scratch(l, parts);
    else clt_launch_tensor(l, y);
    clt_launch_ints(l, (int64_t[]){x->m, x->n, x->k, x->batch}, 4, 4);
    clt_launch_ints(l, (int64_t[]){cut->splits, cut->split_k}, 2, 2);
    clt_launch_ints(l, x->size, CLT_MAX_RANK, CLT_MAX_RANK);
    clt_launch_ints(l, x->a_batch, CLT_MAX_RANK, CLT_MAX_RANK);
    clt_launch_ints(l, x->b_batch, CLT_MAX_RANK, CLT_MAX_RANK);
    if (parted) clt_launch_ints(l, (int64_t[]){x->n, x->m * x->n, part, x->n}, 4, 4);
    else clt_launch_ints(l, (int64_t[]){x->row_step, x->batch_step, 0, x->pitch}, 4, 4);
    launch_place(l, parted ? &line : &x->columns);
    launch_operand(l, &x->a);
    launch_operand(l, &x->b);
    if (parted) launch_sum(l, x, y, parts, cut->splits);
    else clt_launch_epilogue(l, y);
}

void clt_gpu_contract(clt_lowering *l, const clt_gpu_contraction *x, const clt_tensor *y) {
    clt_gpu_tile t = clt_gpu_tile_of(l->parameters);
    clt_gpu_cut cut = clt_gpu_cut_of(x, t.m, t.n, t.k, t.splits);
    int items = clt_gpu_items(&t), parts = clt_gpu_parts(l, x, &cut);
    clt_text text = {0};
    clt_gpu_result_text(&text, l->device, y, cut.splits == 1);
    kernel_text(&text, l->device, x, &t, cut.splits > 1 ? x->n % 4 == 0 : x->result_by_four);
    if (text.status < 0) clt_lower_fail(l, text.status);
    else clt_launch_begin_text(l, "native/gpu/contract.cl", text.data, true, "gpu_contract", cut.groups * items,
                               items);
    clt_text_free(&text);
    clt_launch_fix_group(l, items);
    clt_gpu_arguments(l, x, y, &cut, parts);
}

/* ---- rows ---- */

int clt_gpu_describe(const clt_tensor *node, clt_gpu_contraction *x) {
    if (node->op == &clt_op_conv2d_grad_input) return clt_gpu_describe_grad_input(node, x);
    if (node->op == &clt_op_matmul) clt_gpu_describe_matmul(node, x);
    else if (node->op == &clt_op_conv2d) clt_gpu_describe_conv2d(node, x);
    else clt_gpu_describe_grad_weight(node, x);
    return 1;
}

bool clt_gpu_supports(const clt_candidate *c) {
    /* Below this the reference, whose kernel is smaller, is as good. */
    enum { LEAST_PRODUCTS = 4096 };
    clt_gpu_contraction x[CLT_GPU_MOST_PHASES];
    if (!clt_gpu_fits(c->device) || !holds_tensors(c->device, c->node) || !clt_node_has_one_type(c->node)) return false;
    int n = clt_gpu_describe(c->node, x);
    double products = 0;
    for (int i = 0; i < n; i++) {
        int parameters[CLT_MAX_TUNABLES];
        clt_gpu_guess(&x[i], c->device, parameters);
        clt_gpu_tile t = clt_gpu_tile_of(parameters);
        clt_gpu_cut cut = clt_gpu_cut_of(&x[i], t.m, t.n, t.k, t.splits);
        if (!clt_gpu_can(c->device, &t) || !clt_gpu_holds(c->device, &x[i], &cut)) return false;
        products += (double)x[i].batch * (double)x[i].m * (double)x[i].n * (double)x[i].k;
    }
    return n > 0 && products >= LEAST_PRODUCTS;
}

void clt_gpu_defaults(const clt_candidate *c, int *parameters) {
    clt_gpu_contraction x[CLT_GPU_MOST_PHASES];
    clt_gpu_describe(c->node, x);
    clt_gpu_guess(&x[0], c->device, parameters);
}

bool clt_gpu_valid(const clt_candidate *c, const int *parameters) {
    clt_gpu_contraction x[CLT_GPU_MOST_PHASES];
    clt_gpu_tile t = clt_gpu_tile_of(parameters);
    bool all = clt_gpu_can(c->device, &t);
    int n = all ? clt_gpu_describe(c->node, x) : 0;
    for (int i = 0; i < n; i++) {
        clt_gpu_cut cut = clt_gpu_cut_of(&x[i], t.m, t.n, t.k, t.splits);
        all &= clt_gpu_holds(c->device, &x[i], &cut);
    }
    return all;
}

void clt_gpu_lower(clt_lowering *l, const clt_tensor *node) {
    clt_gpu_contraction x[CLT_GPU_MOST_PHASES];
    int n = clt_gpu_describe(node, x);
    for (int i = 0; i < n; i++)
        if (x[i].n > 0) clt_gpu_contract(l, &x[i], node);
}

#define GPU_ROW(op_suffix)                                                                                  \
    CLT_NATIVE(op_suffix), .types = CLT_ANY_FLOAT, .requires = 1u << CLT_CAP_GROUPS, .supports = clt_gpu_supports, .lower = clt_gpu_lower, \
    .tunables = clt_gpu_tunables, .defaults = clt_gpu_defaults, .valid = clt_gpu_valid
const clt_backend_row clt_gpu_rows[] = {
    {GPU_ROW(matmul), .epilogue = true, .any_epilogue = true},
    {GPU_ROW(conv2d), .epilogue = true, .any_epilogue = true},
    {GPU_ROW(conv2d_grad_input), .epilogue = true, .any_epilogue = true},
    {GPU_ROW(conv2d_grad_weight)},
    {0},
};
