/* 3 x 3 convolution and its gradient of the input by Winograd's minimal filtering. */
#include "backends/codegen.h"
#include "backends/native/cpu/winograd.h"
#include "runtime/device/kernel_source.h"

static const char source[] = "native/cpu/winograd.cl";

const clt_tunable clt_winograd_tunables[] = {{"chunk_kib", 4, {2048, 1024, 4096, 8192}}, {0}};

/* As in the kernels. */
enum { BLOCK = 16, RUN = 96 };

static const char *shared_text(const clt_device *device) {
    return clt_kernel_source_find(device, "native/cpu/winograd_shared.cl");
}

void clt_winograd_begin(clt_lowering *l, const char *path, const char *kernel, int64_t count) {
    clt_cpu_begin_as(l, &(clt_cpu_variant){.defines = shared_text(l->device)}, path, kernel, count);
}

/* ---- tiles and matrices ---- */

static int64_t round_up(int64_t a, int64_t b) {
    return clt_cpu_divide_up(a, b) * b;
}

clt_winograd_tiles clt_winograd_tiles_of(const clt_shape *y, int64_t columns, int kib) {
    enum { TOGETHER = 12, LEAST = 96 }; /* with fewer, weights are read too often */
    clt_winograd_tiles t = {.down = clt_cpu_divide_up(y->dims[2], 4),
                            .across = clt_cpu_divide_up(y->dims[3], 4)};
    int64_t bytes = CLT_WINOGRAD_POINTS * columns * (int64_t)sizeof(float);
    t.all = y->dims[0] * t.down * t.across;
    int64_t most = CLT_MAX((int64_t)kib * 1024 / bytes, LEAST);
    int64_t chunks = clt_cpu_divide_up(t.all, most);
    t.chunk = CLT_MIN(round_up(clt_cpu_divide_up(t.all, chunks), TOGETHER), t.all);
    return t;
}

int64_t clt_winograd_count(const clt_winograd_tiles *tiles, int64_t first) {
    return CLT_MIN(tiles->chunk, tiles->all - first);
}

/* A vector more, so that points are not a power of two apart: they would share few lines of the caches. */
static int64_t point_step(const clt_winograd_tiles *tiles, int64_t columns, clt_cpu_tile tile) {
    return tiles->chunk * columns + tile.width;
}

clt_winograd_matrices clt_winograd_reserve(clt_lowering *l, const clt_winograd_tiles *tiles,
                                           int64_t columns) {
    clt_winograd_matrices m = {.columns = columns};
    m.point = point_step(tiles, columns, clt_cpu_tile_of(l->device));
    m.scratch = clt_cpu_scratch(l, CLT_WINOGRAD_POINTS * m.point);
    return m;
}

void clt_winograd_launch_input(clt_lowering *l, const clt_tensor *x, const clt_winograd_matrices *v,
                               const clt_winograd_tiles *tiles, int64_t first, int padding_h,
                               int padding_w) {
    const int64_t *d = x->shape.dims, count = clt_winograd_count(tiles, first);
    clt_winograd_begin(l, source, "cpu_winograd_input", count);
    clt_launch_tensor(l, x);
    clt_launch_scratch(l, v->scratch);
    clt_launch_ints(l, (int64_t[]){d[2], d[3], d[1], v->columns}, 4, 4);
    clt_launch_ints(l, (int64_t[]){tiles->down, tiles->across, first, count}, 4, 4);
    clt_launch_ints(l, (int64_t[]){padding_h, padding_w, v->point}, 3, 4);
}

/* ---- what is supported ---- */

bool clt_winograd_applies(const clt_tensor *node, const clt_device *device, const clt_tensor *x,
                          const clt_tensor *weight, const clt_tensor *y) {
    const clt_conv2d_attributes *at = node->attributes;
    return clt_cpu_fits(device) && at->kernel_h == 3 && at->kernel_w == 3 && at->stride_h == 1 &&
           at->stride_w == 1 && at->dilation_h == 1 && at->dilation_w == 1 && at->groups == 1 &&
           at->padding_h <= 2 && at->padding_w <= 2 && clt_tensor_channels_last(x) &&
           clt_tensor_channels_last(y) && clt_tensor_contiguous(weight) &&
           clt_cpu_holds_tensors(device, node);
}

/* What the steps take, in multiply-adds of the register tile that would take as long; measured. */
enum {
    OF_PATCH = 900,  /* a channel of a patch, or of a tile's gradient */
    OF_TILE = 600,   /* a channel of a tile made from its points */
    OF_WEIGHT = 750, /* a filter, to or from its points */
    OF_LAUNCH = 250000
};

/* Multiply-adds below which nothing is gained that would be worth Winograd's rounding errors. */
static const double least_work = 5e7;

bool clt_winograd_wins(const clt_device *device, const clt_shape *y, const clt_winograd_tiles *t, int64_t channels,
                       int64_t results) {
    if (clt_backend_is_named(device, "winograd")) return true;
    double pixels = (double)y->dims[0] * (double)y->dims[2] * (double)y->dims[3], tiles = (double)t->all;
    double pairs = (double)channels * (double)results,
           launches = 3 * (double)clt_cpu_divide_up(t->all, t->chunk);
    double direct = 9 * pixels * pairs;
    double winograd =
        tiles * (CLT_WINOGRAD_POINTS * pairs + OF_PATCH * (double)channels + OF_TILE * (double)results) +
        OF_WEIGHT * pairs + OF_LAUNCH * launches;
    return direct >= least_work && winograd < 0.85 * direct;
}

/* A convolution of x into y; for the gradient of the input these are dy and dx. */
typedef struct pass {
    const clt_tensor *x, *weight, *y;
    int64_t channels, results, channel_step, result_step; /* and their steps in the weight */
    bool flipped;
    int padding_h, padding_w;
} pass;

static pass forward(const clt_tensor *node) {
    const clt_conv2d_attributes *at = node->attributes;
    const int64_t *weight = node->inputs[1]->shape.dims;
    return (pass){.x = node->inputs[0],
                  .weight = node->inputs[1],
                  .y = node,
                  .channels = weight[1],
                  .results = weight[0],
                  .channel_step = 9,
                  .result_step = weight[1] * 9,
                  .padding_h = at->padding_h,
                  .padding_w = at->padding_w};
}

/* The gradient is a convolution of dy with the filter turned, and what is missing of the padding to 2. */
static pass backward(const clt_tensor *node) {
    const clt_conv2d_attributes *at = node->attributes;
    const int64_t *weight = node->inputs[0]->shape.dims;
    return (pass){.x = node->inputs[1],
                  .weight = node->inputs[0],
                  .y = node,
                  .channels = weight[0],
                  .results = weight[1],
                  .channel_step = weight[1] * 9,
                  .result_step = 9,
                  .flipped = true,
                  .padding_h = 2 - at->padding_h,
                  .padding_w = 2 - at->padding_w};
}

static int64_t weight_elements(const pass *p, clt_cpu_tile tile) {
    return round_up(p->results, tile.columns) * p->channels * CLT_WINOGRAD_POINTS;
}

static int64_t v_columns(const pass *p, clt_cpu_tile tile) {
    return round_up(p->channels, tile.width);
}

static int64_t m_columns(const pass *p, clt_cpu_tile tile) {
    return round_up(p->results, tile.columns);
}

static clt_winograd_tiles tiles_of(const pass *p, clt_cpu_tile tile, int kib) {
    return clt_winograd_tiles_of(&p->y->shape, v_columns(p, tile) + m_columns(p, tile), kib);
}

static bool serves(const pass *p, const clt_device *device) {
    enum { MOST_ROUNDS = 40000 }; /* of a product's loops */
    clt_cpu_tile tile = clt_cpu_tile_of(device);
    clt_winograd_tiles t = tiles_of(p, tile, CLT_WINOGRAD_MOST_KIB);
    double columns = (double)v_columns(p, tile) + (double)m_columns(p, tile);
    return p->channels * (RUN / tile.rows) <= MOST_ROUNDS &&
           clt_cpu_holds(device, CLT_WINOGRAD_POINTS * ((double)t.chunk * columns + tile.width)) &&
           clt_cpu_holds(device, (double)weight_elements(p, tile)) &&
           clt_winograd_wins(device, &p->y->shape, &t, p->channels, m_columns(p, tile));
}

static bool supports_conv2d(const clt_candidate *c) {
    if (!clt_winograd_applies(c->node, c->device, c->node->inputs[0], c->node->inputs[1], c->node)) return false;
    pass p = forward(c->node);
    return serves(&p, c->device);
}

static bool supports_conv2d_grad_input(const clt_candidate *c) {
    if (!clt_winograd_applies(c->node, c->device, c->node->inputs[1], c->node->inputs[0], c->node)) return false;
    pass p = backward(c->node);
    return serves(&p, c->device);
}

/* ---- launches ---- */

static int launch_weight(clt_lowering *l, const pass *p) {
    clt_cpu_tile tile = clt_cpu_tile_of(l->device);
    int u = clt_cpu_scratch(l, weight_elements(p, tile));
    clt_winograd_begin(l, source, "cpu_winograd_weight",
                  clt_cpu_divide_up(p->results, tile.columns) * clt_cpu_divide_up(p->channels, BLOCK));
    clt_launch_tensor(l, p->weight);
    clt_launch_scratch(l, u);
    clt_launch_ints(l, (int64_t[]){p->results, p->channels, p->result_step, p->channel_step, p->flipped},
                    5, 8);
    return u;
}

static void launch_product(clt_lowering *l, const pass *p, const clt_winograd_matrices *v, int u,
                           const clt_winograd_matrices *m, int64_t count) {
    int64_t panels = m->columns / clt_cpu_tile_of(l->device).columns;
    clt_winograd_begin(l, source, "cpu_winograd_product",
                  CLT_WINOGRAD_POINTS * panels * clt_cpu_divide_up(count, RUN));
    clt_launch_scratch(l, v->scratch);
    clt_launch_scratch(l, u);
    clt_launch_scratch(l, m->scratch);
    clt_launch_ints(l, (int64_t[]){count, p->channels, v->columns, panels, v->point, m->point}, 6, 8);
}

static void launch_output(clt_lowering *l, const pass *p, const clt_winograd_matrices *m,
                          const clt_winograd_tiles *tiles, int64_t first, int64_t count) {
    const int64_t *d = p->y->shape.dims;
    clt_cpu_begin_as(l, &(clt_cpu_variant){.defines = shared_text(l->device), .last = true}, source, "cpu_winograd_output", count);
    clt_launch_scratch(l, m->scratch);
    clt_launch_tensor(l, p->y);
    clt_launch_ints(l, (int64_t[]){d[2], d[3], d[1], m->columns}, 4, 4);
    clt_launch_ints(l, (int64_t[]){tiles->down, tiles->across, first, count}, 4, 4);
    clt_launch_int(l, m->point);
    clt_launch_epilogue(l, p->y);
}

static void launch_pass(clt_lowering *l, const pass *p) {
    clt_cpu_tile tile = clt_cpu_tile_of(l->device);
    clt_winograd_tiles tiles = tiles_of(p, tile, l->parameters[0]);
    clt_winograd_matrices v = clt_winograd_reserve(l, &tiles, v_columns(p, tile));
    clt_winograd_matrices m = clt_winograd_reserve(l, &tiles, m_columns(p, tile));
    int u = launch_weight(l, p);
    for (int64_t first = 0; first < tiles.all; first += tiles.chunk) {
        int64_t count = clt_winograd_count(&tiles, first);
        clt_winograd_launch_input(l, p->x, &v, &tiles, first, p->padding_h, p->padding_w);
        launch_product(l, p, &v, u, &m, count);
        launch_output(l, p, &m, &tiles, first, count);
    }
}

static void lower_conv2d(clt_lowering *l, const clt_tensor *node) {
    pass p = forward(node);
    launch_pass(l, &p);
}

static void lower_conv2d_grad_input(clt_lowering *l, const clt_tensor *node) {
    pass p = backward(node);
    launch_pass(l, &p);
}

const clt_backend_row clt_cpu_winograd_rows[] = {
    {CLT_WINOGRAD(conv2d), .epilogue = true, .supports = supports_conv2d, .lower = lower_conv2d},
    {CLT_WINOGRAD(conv2d_grad_input), .epilogue = true, .supports = supports_conv2d_grad_input, .lower = lower_conv2d_grad_input},
    {0},
};
