/* The gradient of a 3 x 3 weight by Winograd's minimal filtering. */
#include "backends/native/cpu/winograd.h"

static const char source[] = "native/cpu/winograd_weight.cl";

/* As in the kernels. */
enum { BLOCK = 48, PART = 8 };

/* Sizes as the kernels see them. */
typedef struct sums {
    int64_t channels, results, panels, blocks;
    int64_t v_columns, w_columns; /* channels and results rounded up */
    clt_winograd_tiles tiles;
} sums;

static sums sums_of(const clt_tensor *node, clt_cpu_tile tile, int kib) {
    const int64_t *weight = node->shape.dims;
    sums s = {.channels = weight[1], .results = weight[0]};
    s.panels = clt_cpu_divide_up(s.results, tile.columns);
    s.v_columns = clt_cpu_divide_up(s.channels, tile.width) * tile.width;
    s.w_columns = s.panels * tile.columns;
    s.blocks = clt_cpu_divide_up(s.v_columns, BLOCK);
    s.tiles = clt_winograd_tiles_of(&node->inputs[1]->shape, s.v_columns + s.w_columns, kib);
    return s;
}

static int64_t sum_elements(const sums *s, clt_cpu_tile tile) {
    return s->panels * s->blocks * CLT_WINOGRAD_POINTS * BLOCK * tile.columns;
}

static bool supports(const clt_candidate *c) {
    if (!clt_winograd_applies(c->node, c->device, c->node->inputs[0], c->node, c->node->inputs[1])) return false;
    clt_cpu_tile tile = clt_cpu_tile_of(c->device);
    sums s = sums_of(c->node, tile, CLT_WINOGRAD_MOST_KIB);
    double columns = (double)s.v_columns + (double)s.w_columns;
    return clt_cpu_holds(c->device, CLT_WINOGRAD_POINTS * ((double)s.tiles.chunk * columns + tile.width)) &&
           clt_cpu_holds(c->device, (double)sum_elements(&s, tile)) &&
           clt_winograd_wins(c->device, &c->node->inputs[1]->shape, &s.tiles, s.channels, s.w_columns);
}

static void launch_gradient(clt_lowering *l, const clt_tensor *dy, const clt_winograd_matrices *w,
                            const clt_winograd_tiles *tiles, int64_t first) {
    const int64_t *d = dy->shape.dims, count = clt_winograd_count(tiles, first);
    clt_winograd_begin(l, source, "cpu_winograd_grad_input", count);
    clt_launch_tensor(l, dy);
    clt_launch_scratch(l, w->scratch);
    clt_launch_ints(l, (int64_t[]){d[2], d[3], d[1]}, 3, 4);
    clt_launch_ints(l, (int64_t[]){tiles->down, tiles->across, first, count}, 4, 4);
    clt_launch_int(l, w->point);
}

static void launch_product(clt_lowering *l, const sums *s, const clt_winograd_matrices *v,
                           const clt_winograd_matrices *w, int p, int64_t first) {
    int64_t count = clt_winograd_count(&s->tiles, first);
    clt_winograd_begin(l, source, "cpu_winograd_grad_product", CLT_WINOGRAD_POINTS * s->panels * s->blocks);
    clt_launch_scratch(l, v->scratch);
    clt_launch_scratch(l, w->scratch);
    clt_launch_scratch(l, p);
    clt_launch_ints(l, (int64_t[]){count, s->v_columns, s->panels, v->point, w->point, first > 0}, 6, 8);
}

static void lower(clt_lowering *l, const clt_tensor *node) {
    const clt_conv2d_attributes *at = node->attributes;
    clt_cpu_tile tile = clt_cpu_tile_of(l->device);
    sums s = sums_of(node, tile, l->parameters[0]);
    clt_winograd_matrices v = clt_winograd_reserve(l, &s.tiles, s.v_columns);
    clt_winograd_matrices w = clt_winograd_reserve(l, &s.tiles, s.w_columns);
    int p = clt_cpu_scratch(l, sum_elements(&s, tile));
    for (int64_t first = 0; first < s.tiles.all; first += s.tiles.chunk) {
        clt_winograd_launch_input(l, node->inputs[0], &v, &s.tiles, first, at->padding_h, at->padding_w);
        launch_gradient(l, node->inputs[1], &w, &s.tiles, first);
        launch_product(l, &s, &v, &w, p, first);
    }
    clt_winograd_begin(l, source, "cpu_winograd_grad_output", s.panels * clt_cpu_divide_up(s.channels, PART));
    clt_launch_scratch(l, p);
    clt_launch_tensor(l, node);
    clt_launch_ints(l, (int64_t[]){s.results, s.channels}, 2, 2);
}

const clt_backend_row clt_cpu_winograd_weight_rows[] = {
    {CLT_WINOGRAD(conv2d_grad_weight), .supports = supports, .lower = lower},
    {0},
};
