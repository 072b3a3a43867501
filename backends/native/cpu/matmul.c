#include "backends/native/cpu/cpu.h"

static const char source[] = "native/cpu/matmul.cl";

/* A product as the kernels see it, and how it is cut. */
typedef struct product {
    int64_t m, n, k, batch;
    int64_t a_matrices, b_matrices;
    int64_t a_step[2], b_step[3]; /* of the last: a panel's columns */
    bool b_panels;                /* b is put into panels first */
    int64_t size[CLT_MAX_RANK], a_batch[CLT_MAX_RANK], b_batch[CLT_MAX_RANK];
    int64_t block;           /* panels of a that one packing of b serves */
    int64_t splits, split_k; /* parts of a long sum, and steps in each */
} product;

static int64_t items_of(const product *p, clt_cpu_tile tile) {
    int64_t panels = clt_cpu_divide_up(p->n, tile.columns),
            tiles = clt_cpu_divide_up(p->m, tile.rows);
    return p->batch * panels * clt_cpu_divide_up(tiles, p->block);
}

/* Large blocks use b's packing often, but a device wants work for all its processors. What is chosen
 * depends on shapes alone, so that results are the same with any number of those. */
static void cut(product *p, clt_cpu_tile tile) {
    enum { LARGE_BLOCK = 24, SMALL_BLOCK = 6, ENOUGH_ITEMS = 64, LEAST_ITEMS = 16 };
    p->block = LARGE_BLOCK;
    while (p->block > SMALL_BLOCK && items_of(p, tile) < ENOUGH_ITEMS) p->block /= 2;
    int64_t items = items_of(p, tile), chunks = clt_cpu_divide_up(p->k, tile.depth);
    int64_t splits =
        items < LEAST_ITEMS ? CLT_MIN(clt_cpu_divide_up(LEAST_ITEMS, items), chunks / 2) : 1;
    p->split_k = clt_cpu_divide_up(chunks, CLT_MAX(splits, 1)) * tile.depth;
    p->splits = clt_cpu_divide_up(p->k, p->split_k);
}

/* Rows of b that lie far apart are gone over by each block of a: if those are many, rather once
 * before. */
static void choose_panels(product *p, clt_cpu_tile tile) {
    enum { MANY_BLOCKS = 3, FAR_APART = 256 };
    int64_t panels = clt_cpu_divide_up(p->n, tile.columns);
    int64_t blocks = clt_cpu_divide_up(clt_cpu_divide_up(p->m, tile.rows), p->block);
    p->b_step[2] = tile.columns * p->b_step[1];
    p->b_panels = p->b_step[1] == 1 && p->n >= FAR_APART && blocks >= MANY_BLOCKS;
    if (!p->b_panels) return;
    p->b_step[0] = tile.columns;
    p->b_step[2] = p->k * tile.columns;
    for (int d = 0; d < CLT_MAX_RANK; d++)
        p->b_batch[d] = p->b_batch[d] / (p->k * p->n) * panels * p->b_step[2];
}

static product product_of(const clt_tensor *node, clt_cpu_tile tile) {
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
    for (int d = 0; d < CLT_MAX_RANK; d++) {
        int i = d - (CLT_MAX_RANK - (rank - 2));
        p.size[d] = i >= 0 ? node->shape.dims[i] : 1;
    }
    clt_broadcast_strides(a, 2, p.a_batch);
    clt_broadcast_strides(b, 2, p.b_batch);
    for (int d = 0; d < CLT_MAX_RANK; d++) p.a_batch[d] /= p.m * p.k; /* in matrices: a is packed */
    cut(&p, tile);
    choose_panels(&p, tile);
    return p;
}

static int64_t packed_elements(const product *p, clt_cpu_tile tile) {
    return p->a_matrices * clt_cpu_divide_up(p->m, tile.rows) * tile.rows * p->k;
}

static int64_t panel_elements(const product *p, clt_cpu_tile tile) {
    return p->b_matrices * clt_cpu_divide_up(p->n, tile.columns) * tile.columns * p->k;
}

bool clt_cpu_matmul_supports(const clt_tensor *node, const clt_device *device) {
    /* Below this, two launches cost more than they save. */
    enum { LEAST_PRODUCTS = 8192 };
    if (!clt_cpu_fits(device)) return false;
    clt_cpu_tile tile = clt_cpu_tile_of(device);
    product p = product_of(node, tile);
    if ((double)p.batch * (double)p.m * (double)p.n * (double)p.k < LEAST_PRODUCTS) return false;
    return clt_cpu_holds(device, (double)packed_elements(&p, tile)) &&
           clt_cpu_holds(device, (double)p.splits * (double)clt_tensor_elements(node)) &&
           clt_cpu_holds(device, (double)panel_elements(&p, tile));
}

static void launch_pack(clt_lowering *l, const product *p, clt_cpu_tile tile, const clt_tensor *a,
                        int packed) {
    int64_t panels = clt_cpu_divide_up(p->m, tile.rows),
            chunks = clt_cpu_divide_up(p->k, tile.depth);
    clt_cpu_begin(l, source, "cpu_matmul_pack", p->a_matrices * panels * chunks);
    clt_launch_tensor(l, a);
    clt_launch_scratch(l, packed);
    clt_launch_ints(l, (int64_t[]){p->a_matrices, p->m, p->k}, 3, 4);
    clt_launch_ints(l, p->a_step, 2, 2);
}

static int launch_panels(clt_lowering *l, const product *p, clt_cpu_tile tile, const clt_tensor *b) {
    enum { RUN = 16 }; /* CPU_MATMUL_RUN */
    int panels = clt_cpu_scratch(l, panel_elements(p, tile));
    clt_cpu_begin(l, source, "cpu_matmul_panels", p->b_matrices * clt_cpu_divide_up(p->k, RUN));
    clt_launch_tensor(l, b);
    clt_launch_scratch(l, panels);
    clt_launch_ints(l, (int64_t[]){p->b_matrices, p->k, p->n}, 3, 4);
    return panels;
}

static void launch_sum(clt_lowering *l, const product *p, const clt_tensor *node, int partial) {
    enum { SUM_RUN = 256 }; /* as in cpu_matmul_sum */
    int64_t count = clt_tensor_elements(node);
    clt_cpu_begin(l, source, "cpu_matmul_sum", clt_cpu_divide_up(count, SUM_RUN));
    clt_launch_scratch(l, partial);
    clt_launch_tensor(l, node);
    clt_launch_int(l, count);
    clt_launch_int(l, p->splits);
}

void clt_cpu_matmul(clt_lowering *l, const clt_tensor *node) {
    clt_cpu_tile tile = clt_cpu_tile_of(l->device);
    product p = product_of(node, tile);
    int packed = clt_cpu_scratch(l, packed_elements(&p, tile));
    int partial = p.splits > 1 ? clt_cpu_scratch(l, p.splits * clt_tensor_elements(node)) : -1;
    int panels = p.b_panels ? launch_panels(l, &p, tile, node->inputs[1]) : -1;
    launch_pack(l, &p, tile, node->inputs[0], packed);
    clt_cpu_begin(l, source, "cpu_matmul", items_of(&p, tile) * p.splits);
    clt_launch_scratch(l, packed);
    if (p.b_panels) clt_launch_scratch(l, panels);
    else clt_launch_tensor(l, node->inputs[1]);
    if (p.splits > 1) clt_launch_scratch(l, partial);
    else clt_launch_tensor(l, node);
    clt_launch_ints(l, (int64_t[]){p.m, p.n, p.k, p.batch}, 4, 4);
    clt_launch_ints(l, p.b_step, 3, 4);
    clt_launch_ints(l, p.size, CLT_MAX_RANK, CLT_MAX_RANK);
    clt_launch_ints(l, p.a_batch, CLT_MAX_RANK, CLT_MAX_RANK);
    clt_launch_ints(l, p.b_batch, CLT_MAX_RANK, CLT_MAX_RANK);
    clt_launch_ints(l, (int64_t[]){p.block, p.splits, p.split_k}, 3, 4);
    if (p.splits > 1) launch_sum(l, &p, node, partial);
}
