#include <stdio.h>

#include "backends/codegen.h"
#include "backends/native/cpu/cpu.h"

static const char source[] = "native/cpu/matmul.cl", pack_source[] = "native/cpu/matmul_pack.cl",
                  sum_source[] = "native/cpu/matmul_sum.cl";

enum { MOST_BLOCK = 24 /* CPU_MATMUL_BLOCK */ };

enum { TILE_ROWS, DEPTH, PACK_A, PANELS_B, BLOCK, SPLITS };

static const clt_tunable tunables[] = {
    [TILE_ROWS] = {"tile_rows", 4, {12, 8, 6, 4}},
    [DEPTH] = {"depth", 3, {256, 128, 512}},
    [PACK_A] = {"pack_a", 2, {1, 0}},
    [PANELS_B] = {"panels_b", 2, {0, 1}},
    [BLOCK] = {"block", 8, {24, 16, 12, 8, 6, 4, 2, 1}},
    [SPLITS] = {"splits", 8, {1, 2, 3, 4, 6, 8, 16, 32}},
    {0},
};

/* ---- geometry ---- */

/* A tile is `rows` x `vectors` of the device's `width`. */
typedef struct shape {
    int width, rows, vectors, columns;
} shape;

/* A product as the kernels see it, and how it is cut. */
typedef struct product {
    int64_t m, n, k, batch;
    int64_t a_matrices, b_matrices;
    int64_t a_step[2], b_step[3]; /* and: a panel's columns */
    bool transpose_a, transpose_b;
    int64_t size[CLT_MAX_RANK], a_batch[CLT_MAX_RANK], b_batch[CLT_MAX_RANK];
    shape tile;
    int64_t tiles, panels; /* in a column, in a row */
    int64_t depth;           /* steps of a sum for which b is packed at a time */
    bool pack_a, b_panels;   /* a is packed, b put into panels first; not the latter alone */
    int64_t chunk;           /* tiles of a that are packed at a time: all, but where that is much and there is one product */
    int64_t block;           /* tiles that one packing of b serves */
    int64_t splits, split_k; /* parts of a long sum, and steps in each */
} product;

/* 16 registers hold 12 sums, 32 hold 24, with room for a step's vectors and a broadcast. */
static shape shape_of(int width, int rows) {
    int sums = width == 16 ? 24 : 12;
    return (shape){width, rows, sums / rows, width * (sums / rows)};
}

static product geometry_of(const clt_tensor *node) {
    const clt_matmul_attributes *at = node->attributes;
    const clt_tensor *a = node->inputs[0], *b = node->inputs[1];
    int rank = node->shape.rank;
    product p = {.m = node->shape.dims[rank - 2], .n = node->shape.dims[rank - 1]};
    p.k = a->shape.dims[a->shape.rank - (at->transpose_a ? 2 : 1)];
    p.batch = clt_tensor_elements(node) / (p.m * p.n);
    p.a_matrices = clt_tensor_elements(a) / (p.m * p.k);
    p.b_matrices = clt_tensor_elements(b) / (p.k * p.n);
    p.a_step[0] = at->transpose_a ? 1 : p.k;
    p.a_step[1] = at->transpose_a ? p.m : 1;
    p.b_step[0] = at->transpose_b ? 1 : p.n;
    p.b_step[1] = at->transpose_b ? p.k : 1;
    p.transpose_a = at->transpose_a;
    p.transpose_b = at->transpose_b;
    for (int d = 0; d < CLT_MAX_RANK; d++) {
        int i = d - (CLT_MAX_RANK - (rank - 2));
        p.size[d] = i >= 0 ? node->shape.dims[i] : 1;
    }
    clt_broadcast_strides(a, 2, p.a_batch);
    clt_broadcast_strides(b, 2, p.b_batch);
    return p;
}

/* Matrices of `from` elements are read where they were put as `to` elements. */
static void repack(int64_t *batch, int64_t from, int64_t to) {
    for (int d = 0; d < CLT_MAX_RANK; d++) batch[d] = batch[d] / from * to;
}

static int64_t chunk_of(const product *p) {
    enum { MOST_PACKED = 16 << 20 };
    int64_t tiles = MOST_PACKED / (p->tile.rows * p->k) / p->block * p->block;
    return p->batch == 1 && p->splits == 1 ? CLT_MAX(CLT_MIN(tiles, p->tiles), p->block) : p->tiles;
}

static product product_of(const clt_tensor *node, int width, const int *parameters) {
    product p = geometry_of(node);
    p.tile = shape_of(width, parameters[TILE_ROWS]);
    p.tiles = clt_cpu_divide_up(p.m, p.tile.rows);
    p.panels = clt_cpu_divide_up(p.n, p.tile.columns);
    p.depth = parameters[DEPTH];
    p.pack_a = parameters[PACK_A];
    p.b_panels = parameters[PANELS_B];
    /* Blocks of even size: some drivers hand a thread half of all items at once. */
    p.block = clt_cpu_divide_up(p.tiles, clt_cpu_divide_up(p.tiles, parameters[BLOCK]));
    p.split_k = clt_cpu_divide_up(clt_cpu_divide_up(p.k, p.depth), parameters[SPLITS]) * p.depth;
    p.splits = clt_cpu_divide_up(p.k, p.split_k);
    p.b_step[2] = p.tile.columns * p.b_step[1];
    p.chunk = chunk_of(&p);
    if (p.pack_a) repack(p.a_batch, p.m * p.k, p.tiles * p.tile.rows * p.k);
    if (!p.b_panels) return p;
    p.b_step[0] = p.tile.columns;
    p.b_step[1] = 1;
    p.b_step[2] = p.k * p.tile.columns;
    repack(p.b_batch, p.k * p.n, p.panels * p.b_step[2]);
    return p;
}

static int64_t items_of_tiles(const product *p, int64_t tiles) {
    return p->splits * p->batch * p->panels * clt_cpu_divide_up(tiles, p->block);
}

static int64_t items_of(const product *p) {
    return items_of_tiles(p, p->tiles);
}

static int64_t packed_elements(const product *p) {
    return p->pack_a ? p->a_matrices * p->chunk * p->tile.rows * p->k : 0;
}

static int64_t panel_elements(const product *p) {
    return p->b_panels ? p->b_matrices * p->panels * p->tile.columns * p->k : 0;
}

/* Rows of partial sums are whole vectors. */
static int64_t partial_columns(const product *p) {
    return p->splits > 1 ? clt_cpu_divide_up(p->n, p->tile.width) * p->tile.width : p->n;
}

static int64_t partial_elements(const product *p) {
    return p->splits > 1 ? p->splits * p->batch * p->m * partial_columns(p) : 0;
}

/* ---- choices ---- */

static int next_smaller(int tunable, int value) {
    const clt_tunable *t = &tunables[tunable];
    int best = value;
    for (int i = 0; i < t->n; i++)
        if (t->values[i] < value && (best == value || t->values[i] > best)) best = t->values[i];
    return best;
}

/* Large blocks use b's packing often, but a device wants work for all its processors. What is chosen
 * depends on shapes alone, so that results are the same with any number of those. */
static void cut(const clt_tensor *node, int width, int *parameters) {
    enum { ENOUGH_ITEMS = 32, LEAST_ITEMS = 16, LEAST_SPLIT = 512, LEAST_BLOCK = 4 };
    const clt_tunable *splits = &tunables[SPLITS];
    product p = product_of(node, width, parameters);
    for (int i = 1; i < splits->n && items_of(&p) < LEAST_ITEMS; i++) {
        if (p.k < LEAST_SPLIT * splits->values[i]) break;
        parameters[SPLITS] = splits->values[i];
        product split = product_of(node, width, parameters);
        if (split.splits == splits->values[i]) p = split;
    }
    parameters[SPLITS] = (int)p.splits;
    while (parameters[BLOCK] > LEAST_BLOCK && items_of(&p) < ENOUGH_ITEMS && p.tiles > LEAST_BLOCK) {
        parameters[BLOCK] = next_smaller(BLOCK, parameters[BLOCK]);
        p = product_of(node, width, parameters);
    }
}

/* To pack a costs a launch and two passes over it, which pays if many panels read it, or if its rows lie so
 * that each step of a sum is far from the last. */
static bool worth_packing(const product *p) {
    enum { SMALL = 4096, FEW_PANELS = 8, FAR_APART = 256 };
    if (p->m * p->k <= SMALL) return false;
    return p->panels > FEW_PANELS || (p->transpose_a && p->m > FAR_APART);
}

static void defaults(const clt_candidate *c, int *parameters) {
    enum { MANY_BLOCKS = 3, FAR_APART = 256 };
    int width = clt_device_vector_width(c->device);
    parameters[TILE_ROWS] = width == 16 ? 12 : 6;
    parameters[DEPTH] = 256;
    parameters[PACK_A] = 1;
    parameters[PANELS_B] = 0;
    parameters[BLOCK] = MOST_BLOCK;
    parameters[SPLITS] = 1;
    product p = product_of(c->node, width, parameters);
    cut(c->node, width, parameters);
    int64_t blocks = clt_cpu_divide_up(p.tiles, parameters[BLOCK]);
    parameters[PACK_A] = worth_packing(&p);
    parameters[PANELS_B] = parameters[PACK_A] && blocks >= MANY_BLOCKS && p.n >= FAR_APART;
}

static bool valid(const clt_candidate *c, const int *parameters) {
    int width = clt_device_vector_width(c->device), rows = parameters[TILE_ROWS];
    if (width == 16 ? rows < 6 : rows > 6) return false;
    product p = product_of(c->node, width, parameters);
    if (p.b_panels && !p.pack_a) return false; /* there is no such kernel */
    return p.splits == parameters[SPLITS] && clt_cpu_holds(c->device, (double)packed_elements(&p)) &&
           clt_cpu_holds(c->device, (double)panel_elements(&p)) &&
           clt_cpu_holds(c->device, (double)partial_elements(&p));
}

static bool supports(const clt_candidate *c) {
    int parameters[CLT_MAX_TUNABLES];
    if (!clt_cpu_fits(c->device) || !clt_cpu_holds(c->device, (double)clt_tensor_elements(c->node))) return false;
    for (int i = 0; i < c->node->n_inputs; i++)
        if (!clt_cpu_holds(c->device, (double)clt_tensor_elements(c->node->inputs[i]))) return false;
    defaults(c, parameters);
    return valid(c, parameters);
}

/* ---- launches ---- */

/* `rows` of a from row `begin` on. */
static void launch_pack(clt_lowering *l, const product *p, const clt_tensor *a, int64_t begin, int64_t rows, int packed) {
    enum { RUN = 128, ROWS_RUN = 16 }; /* CPU_MATMUL_PACK_RUN, CPU_MATMUL_ROWS_RUN */
    if (p->transpose_a)
        clt_cpu_begin_as(l, &(clt_cpu_variant){.storage = a->dtype}, pack_source, "cpu_matmul_pack_transposed",
                         p->a_matrices * clt_cpu_divide_up(p->k, ROWS_RUN));
    else
        clt_cpu_begin_as(l, &(clt_cpu_variant){.storage = a->dtype}, pack_source, "cpu_matmul_pack",
                         p->a_matrices * clt_cpu_divide_up(rows, p->tile.rows) * clt_cpu_divide_up(p->k, RUN));
    clt_launch_tensor(l, a);
    clt_launch_scratch(l, packed);
    clt_launch_ints(l, (int64_t[]){p->a_matrices, rows, p->k, p->depth}, 4, 4);
    clt_launch_int(l, p->tile.rows);
    clt_launch_int(l, p->transpose_a ? begin : begin * p->k);
    clt_launch_int(l, p->m);
}

static int launch_panels(clt_lowering *l, const product *p, const clt_tensor *b) {
    enum { RUN = 16 }; /* CPU_MATMUL_ROWS_RUN */
    int panels = clt_cpu_scratch(l, panel_elements(p));
    clt_cpu_begin_as(l, &(clt_cpu_variant){.storage = b->dtype}, pack_source, "cpu_matmul_panels", p->b_matrices * clt_cpu_divide_up(p->k, RUN));
    clt_launch_tensor(l, b);
    clt_launch_scratch(l, panels);
    clt_launch_ints(l, (int64_t[]){p->b_matrices, p->k, p->n, p->tile.columns}, 4, 4);
    clt_launch_int(l, p->transpose_b);
    return panels;
}

static const char *kind_of(const product *p) {
    return p->b_panels ? "panels" : p->pack_a ? "packed" : "direct";
}

/* A launch of the text's variant for the product's tile and for how its operands lie. */
static void begin(clt_lowering *l, const product *p, const char *kernel, int64_t count, bool last) {
    static const char *const names[] = {"ROWS", "VECTORS", "DEPTH", "DIRECT", "PANELS"};
    int values[] = {p->tile.rows, p->tile.vectors, (int)p->depth, !p->pack_a, p->b_panels};
    char defines[512];
    int end = snprintf(defines, sizeof defines, "#undef CPU_MATMUL_KIND\n#define CPU_MATMUL_KIND %s\n", kind_of(p));
    for (size_t i = 0; i < CLT_COUNT_OF(names); i++)
        end += snprintf(defines + end, sizeof defines - (size_t)end, "#undef CPU_MATMUL_%s\n#define CPU_MATMUL_%s %d\n",
                        names[i], names[i], values[i]);
    clt_cpu_begin_as(l, &(clt_cpu_variant){.defines = defines, .storage = l->node->inputs[0]->dtype, .last = last}, source, kernel, count);
}

static void launch_sum(clt_lowering *l, const product *p, const clt_tensor *node, int partial) {
    enum { RUN = 16 }; /* CPU_MATMUL_SUM_RUN */
    int64_t rows = p->batch * p->m, columns = partial_columns(p);
    clt_cpu_begin_as(l, &(clt_cpu_variant){.storage = node->dtype, .last = true}, sum_source, "cpu_matmul_sum", clt_cpu_divide_up(rows * (columns / p->tile.width), RUN));
    clt_launch_scratch(l, partial);
    clt_launch_tensor(l, node);
    clt_launch_ints(l, (int64_t[]){rows, p->n, p->splits, columns}, 4, 4);
    clt_launch_epilogue(l, node);
}

static void launch_tensor_or(clt_lowering *l, const clt_tensor *tensor, int scratch) {
    if (scratch < 0) clt_launch_tensor(l, tensor);
    else clt_launch_scratch(l, scratch);
}

/* What is packed and put aside: scratch, or -1. */
typedef struct aside {
    int packed, panels, partial;
} aside;

/* `rows` of the result from row `first` on. */
static void launch_rows(clt_lowering *l, const product *p, const clt_tensor *node, const aside *s, int64_t first, int64_t rows) {
    char kernel[64];
    const int64_t *a_step = p->pack_a ? (const int64_t[]){first, 0} : p->a_step;
    snprintf(kernel, sizeof kernel, "cpu_matmul_%s_%dx%dx%d", kind_of(p), p->tile.rows, p->tile.vectors, (int)p->depth);
    begin(l, p, kernel, items_of_tiles(p, clt_cpu_divide_up(rows, p->tile.rows)), p->splits == 1);
    launch_tensor_or(l, node->inputs[0], s->packed);
    launch_tensor_or(l, node->inputs[1], s->panels);
    launch_tensor_or(l, node, s->partial);
    clt_launch_ints(l, (int64_t[]){rows, p->n, p->k, p->batch}, 4, 4);
    clt_launch_ints(l, a_step, 2, 2);
    clt_launch_ints(l, p->b_step, 3, 4);
    clt_launch_ints(l, p->size, CLT_MAX_RANK, CLT_MAX_RANK);
    clt_launch_ints(l, p->a_batch, CLT_MAX_RANK, CLT_MAX_RANK);
    clt_launch_ints(l, p->b_batch, CLT_MAX_RANK, CLT_MAX_RANK);
    clt_launch_ints(l, (int64_t[]){p->block, p->splits, p->split_k, partial_columns(p)}, 4, 4);
    if (p->splits == 1) clt_launch_epilogue(l, node);
}

/* Of an a that is packed, chunk by chunk in the same memory. */
static void lower(clt_lowering *l, const clt_tensor *node) {
    product p = product_of(node, clt_device_vector_width(l->device), l->parameters);
    int64_t rows = p.pack_a ? p.chunk * p.tile.rows : p.m;
    const aside s = {.packed = p.pack_a ? clt_cpu_scratch(l, packed_elements(&p)) : -1,
                     .panels = p.b_panels ? launch_panels(l, &p, node->inputs[1]) : -1,
                     .partial = p.splits > 1 ? clt_cpu_scratch(l, partial_elements(&p)) : -1};
    for (int64_t first = 0; first < p.m; first += rows) {
        int64_t count = CLT_MIN(rows, p.m - first);
        if (p.pack_a) launch_pack(l, &p, node->inputs[0], first, count, s.packed);
        launch_rows(l, &p, node, &s, first, count);
    }
    if (p.splits > 1) launch_sum(l, &p, node, s.partial);
}

const clt_backend_row clt_cpu_matmul_rows[] = {
    {CLT_NATIVE(matmul), .types = CLT_ANY_FLOAT, .epilogue = true, .any_epilogue = true, .supports = supports, .lower = lower, .tunables = tunables, .defaults = defaults,
     .valid = valid},
    {0},
};
