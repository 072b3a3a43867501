/* Convolution where all images are channels-last: nothing but weights is packed. */
#include "backends/codegen.h"
#include "backends/native/cpu/conv2d.h"

static const char source[] = "native/cpu/conv2d_last.cl";

/* As in the kernels. */
enum {
    BLOCK = 128,
    PACK = 16,
    TILES = 16,
    RUN = 128,
    UNPACK = 8,
    PIXELS = 96,
    WIDE = 512,
    TOGETHER = 4
};

/* Fewer channels than these are better packed together with their neighbours, where that can be. */
enum { LEAST_CHANNELS = 8 };

/* ---- the tile ---- */

static const clt_tunable tunables[] = {{"tile_rows", 4, {12, 8, 6, 3}}, {0}};

static void defaults(const clt_candidate *c, int *parameters) {
    parameters[0] = clt_cpu_tile_of(c->device).rows;
}

/* More rows than the default are more sums than there are registers. */
static bool valid(const clt_candidate *c, const int *parameters) {
    return parameters[0] <= clt_cpu_tile_of(c->device).rows;
}

/* ---- what is supported ---- */

/* Elements of the packed weights for a sum over `channels`; see the kernels. */
static int64_t weight_elements(int64_t groups, int64_t results, int64_t channels, int64_t taps,
                               clt_cpu_tile tile) {
    return groups * clt_cpu_divide_up(results, tile.columns) * tile.columns * channels * taps + BLOCK;
}

/* `x` is the image on the input's side, read or, in its gradient, written. */
static bool fits(const clt_tensor *node, const clt_device *device, const clt_tensor *x,
                 const clt_tensor *y, const clt_tensor *weight) {
    const clt_conv2d_attributes *at = node->attributes;
    int64_t o = weight->shape.dims[0] / at->groups, c = weight->shape.dims[1];
    int64_t taps = weight->shape.dims[2] * weight->shape.dims[3];
    clt_cpu_tile tile = clt_cpu_tile_of(device);
    bool last =
        clt_tensor_channels_last(x) && clt_tensor_channels_last(y) && clt_tensor_contiguous(weight);
    bool rather_packed = c < LEAST_CHANNELS && clt_tensor_contiguous(x) && node != x;
    return last && !rather_packed && clt_cpu_holds_tensors(device, node) &&
           clt_cpu_holds(device, (double)weight_elements(at->groups, o, c, taps, tile)) &&
           clt_cpu_holds(device, (double)weight_elements(at->groups, c, o, taps, tile));
}

/* ---- forward and the gradient of the input ---- */

/* The strides of a weight [group, result, channel, height, width], whatever its order in memory. */
typedef struct weight_strides {
    int64_t group, result, channel;
} weight_strides;

/* One convolution of x into pixels of y. */
typedef struct pass {
    const clt_tensor *x, *weight, *y;
    weight_strides strides;
    int64_t groups, channels, results; /* of a group */
    clt_cpu_axis h, w;
} pass;

static int launch_weight(clt_lowering *l, const pass *p) {
    clt_cpu_tile tile = clt_cpu_tile_of(l->device);
    int64_t row = p->weight->shape.dims[3], panels = clt_cpu_divide_up(p->results, tile.columns);
    int packed = clt_cpu_scratch(
        l, weight_elements(p->groups, p->results, p->channels, p->h.taps * p->w.taps, tile));
    clt_cpu_begin(l, source, "cpu_conv2d_last_weight",
                  p->groups * panels * clt_cpu_divide_up(p->channels, PACK) + 1);
    clt_launch_tensor(l, p->weight);
    clt_launch_scratch(l, packed);
    clt_launch_ints(l, (int64_t[]){p->groups, p->results, p->channels, p->h.taps, p->w.taps}, 5, 8);
    clt_launch_ints(l,
                    (int64_t[]){p->strides.group, p->strides.result, p->strides.channel,
                                p->h.tap_stride * row, p->w.tap_stride,
                                p->h.first_tap * row + p->w.first_tap},
                    6, 8);
    return packed;
}

/* Where an axis reads the image as it lies: the first place, and steps of a pixel and of a tap. */
static int64_t first_place(const clt_cpu_axis *a) {
    return a->origin * a->pack_step - a->before;
}

static void launch_window(clt_lowering *l, const clt_cpu_axis *h, const clt_cpu_axis *w) {
    clt_launch_ints(l,
                    (int64_t[]){first_place(h), first_place(w), h->pixel_step * h->pack_step,
                                w->pixel_step * w->pack_step, h->tap_step * h->pack_step,
                                w->tap_step * w->pack_step, h->taps, w->taps},
                    8, 8);
}

static void launch_pass(clt_lowering *l, const pass *p) {
    int64_t columns = clt_cpu_tile_of(l->device).columns;
    int weight = launch_weight(l, p), rows = l->parameters[0];
    const int64_t *x = p->x->shape.dims, *y = p->y->shape.dims;
    int64_t pixels = x[0] * p->h.result * p->w.result,
            panels = clt_cpu_divide_up(p->results, columns);
    int64_t runs = clt_cpu_divide_up(clt_cpu_divide_up(pixels, rows), TILES), row = y[3] * y[1];
    clt_cpu_begin_as(l, &(clt_cpu_variant){.rows = rows, .last = true}, source, "cpu_conv2d_last", p->groups * panels * runs * TILES);
    clt_launch_tensor(l, p->x);
    clt_launch_scratch(l, weight);
    clt_launch_tensor(l, p->y);
    clt_launch_ints(l, (int64_t[]){x[2], x[3], x[1], p->channels}, 4, 4);
    launch_window(l, &p->h, &p->w);
    clt_launch_ints(l, (int64_t[]){x[0], p->h.result, p->w.result, p->groups, p->results}, 5, 8);
    clt_launch_ints(l,
                    (int64_t[]){y[2] * row, p->h.target * row + p->w.target * y[1],
                                p->h.target_step * row, p->w.target_step * y[1]},
                    4, 4);
    clt_launch_epilogue(l, p->y);
}

static bool supports_conv2d(const clt_candidate *c) {
    return clt_cpu_fits(c->device) && fits(c->node, c->device, c->node->inputs[0], c->node, c->node->inputs[1]);
}

static void lower_conv2d(clt_lowering *l, const clt_tensor *node) {
    const clt_conv2d_attributes *at = node->attributes;
    const clt_tensor *x = node->inputs[0], *weight = node->inputs[1];
    int64_t o = weight->shape.dims[0] / at->groups, c = weight->shape.dims[1];
    int64_t filter = weight->shape.dims[2] * weight->shape.dims[3];
    pass p = {x, weight, node, {o * c * filter, c * filter, filter}, at->groups, c, o, {0}, {0}};
    clt_cpu_forward_axes(at, &node->shape, &p.h, &p.w);
    launch_pass(l, &p);
}

static bool supports_conv2d_grad_input(const clt_candidate *c) {
    const clt_conv2d_attributes *at = c->node->attributes;
    return clt_cpu_fits(c->device) && at->stride_h <= CLT_CPU_MOST_STRIDE &&
           at->stride_w <= CLT_CPU_MOST_STRIDE &&
           fits(c->node, c->device, c->node, c->node->inputs[1], c->node->inputs[0]);
}

static void lower_conv2d_grad_input(clt_lowering *l, const clt_tensor *node) {
    const clt_conv2d_attributes *at = node->attributes;
    const clt_tensor *weight = node->inputs[0], *dy = node->inputs[1];
    const int64_t *dx = node->shape.dims;
    int64_t o = weight->shape.dims[0] / at->groups, c = weight->shape.dims[1];
    int64_t filter = weight->shape.dims[2] * weight->shape.dims[3];
    for (int i = 0; i < at->stride_h; i++)
        for (int j = 0; j < at->stride_w; j++) {
            pass p = {dy, weight, node, {o * c * filter, filter, c * filter}, at->groups, o,
                      c,  {0},    {0}};
            p.h =
                clt_cpu_phase_axis(dx[2], i, at->kernel_h, at->stride_h, at->padding_h, at->dilation_h);
            p.w =
                clt_cpu_phase_axis(dx[3], j, at->kernel_w, at->stride_w, at->padding_w, at->dilation_w);
            if (p.h.result > 0 && p.w.result > 0) launch_pass(l, &p);
        }
}

/* ---- the gradient of the weight ---- */

/* The sum over the pixels, and how it is cut. */
typedef struct weight_sum {
    int64_t groups, results, channels, width; /* channels of a group, of a block */
    int64_t panels, blocks, together, items;  /* panels in all and of a work-item; items of a split */
    bool whole;                               /* pixels are put side by side first */
    int64_t taps, pixels, splits, split_pixels, pass_pixels;
    int64_t partial; /* elements of what one split sums to */
} weight_sum;

/* As many splits of the pixels as give a device enough to do, and as many launches as keep the loops of a
 * work-item short; by the shapes alone, for the same bits with any number of processors. */
static void cut(weight_sum *s, clt_cpu_tile tile) {
    enum { ENOUGH_ITEMS = 64, LEAST_PIXELS = 500, MOST_ROUNDS = 40000 };
    int64_t run = s->whole ? PIXELS : RUN;
    int64_t splits = CLT_MIN(clt_cpu_divide_up(ENOUGH_ITEMS, s->items), s->pixels / LEAST_PIXELS);
    s->split_pixels = clt_cpu_divide_up(clt_cpu_divide_up(s->pixels, CLT_MAX(splits, 1)), run) * run;
    s->splits = clt_cpu_divide_up(s->pixels, s->split_pixels);
    /* of a pixel, at most */
    int64_t rounds = 1 + s->together * s->taps * (4 + s->width / tile.rows + s->width / tile.width);
    s->pass_pixels = CLT_MIN(s->split_pixels, CLT_MAX(MOST_ROUNDS / rounds / run, 1) * run);
}

static weight_sum weight_sum_of(const clt_tensor *node, clt_cpu_tile tile) {
    /* Sums of so many rows stay in the second cache; pixels with less than FEW channels are near each other. */
    enum { MOST_SUMS = 1152, FEW = 128 };
    const clt_conv2d_attributes *at = node->attributes;
    const clt_shape *weight = &node->shape, *dy = &node->inputs[1]->shape;
    weight_sum s = {.groups = at->groups,
                    .results = weight->dims[0] / at->groups,
                    .channels = weight->dims[1],
                    .taps = weight->dims[2] * weight->dims[3],
                    .pixels = dy->dims[0] * dy->dims[2] * dy->dims[3]};
    s.whole = s.taps == 1 && (s.channels >= FEW || s.results <= 2 * s.channels);
    int64_t most = s.whole ? WIDE : CLT_MAX(MOST_SUMS / s.taps, 1);
    s.blocks = clt_cpu_divide_up(s.channels, most);
    s.width = CLT_MIN(clt_cpu_divide_up(clt_cpu_divide_up(s.channels, s.blocks), 16) * 16, s.channels);
    s.blocks = clt_cpu_divide_up(s.channels, s.width);
    s.panels = clt_cpu_divide_up(s.results, tile.columns);
    s.together = s.whole ? CLT_MIN(s.panels, TOGETHER) : 1;
    s.items = s.groups * clt_cpu_divide_up(s.panels, s.together) * s.blocks;
    cut(&s, tile);
    s.partial = s.groups * s.panels * s.blocks * s.taps * s.width * tile.columns;
    return s;
}

static bool supports_conv2d_grad_weight(const clt_candidate *c) {
    if (!clt_cpu_fits(c->device) || !fits(c->node, c->device, c->node->inputs[0], c->node->inputs[1], c->node))
        return false;
    weight_sum s = weight_sum_of(c->node, clt_cpu_tile_of(c->device));
    return clt_cpu_holds(c->device, (double)s.splits * (double)s.partial);
}

static void launch_sums(clt_lowering *l, const clt_tensor *node, const weight_sum *s, int partial) {
    const int64_t *x = node->inputs[0]->shape.dims, *dy = node->inputs[1]->shape.dims;
    clt_cpu_axis h, w;
    clt_cpu_forward_axes(node->attributes, &node->inputs[1]->shape, &h, &w);
    for (int64_t first = 0; first < s->split_pixels; first += s->pass_pixels) {
        clt_cpu_begin(l, source,
                      s->whole ? "cpu_conv2d_last_grad_weight_1x1" : "cpu_conv2d_last_grad_weight",
                      s->splits * s->items);
        clt_launch_tensor(l, node->inputs[0]);
        clt_launch_tensor(l, node->inputs[1]);
        clt_launch_scratch(l, partial);
        clt_launch_ints(
            l, (int64_t[]){x[2], x[3], x[1], s->channels, s->width, dy[1], s->groups, s->results}, 8, 8);
        launch_window(l, &h, &w);
        clt_launch_ints(
            l, (int64_t[]){dy[0], dy[2], dy[3], s->splits, s->split_pixels, first, s->pass_pixels}, 7,
            8);
    }
}

static void lower_conv2d_grad_weight(clt_lowering *l, const clt_tensor *node) {
    weight_sum s = weight_sum_of(node, clt_cpu_tile_of(l->device));
    int partial = clt_cpu_scratch(l, s.splits * s.partial);
    launch_sums(l, node, &s, partial);
    clt_cpu_begin(l, source, "cpu_conv2d_last_unpack",
                  s.groups * s.panels * s.blocks * clt_cpu_divide_up(s.width, UNPACK));
    clt_launch_scratch(l, partial);
    clt_launch_tensor(l, node);
    clt_launch_ints(l, (int64_t[]){s.groups, s.results, s.channels, s.width, s.taps, s.splits}, 6, 8);
}

#define TILE_ROWS .tunables = tunables, .defaults = defaults, .valid = valid
const clt_backend_row clt_cpu_conv2d_last_rows[] = {
    {CLT_NATIVE(conv2d), .any_layout = true, .epilogue = true, TILE_ROWS, .supports = supports_conv2d, .lower = lower_conv2d},
    {CLT_NATIVE(conv2d_grad_input), .any_layout = true, .epilogue = true, TILE_ROWS, .supports = supports_conv2d_grad_input, .lower = lower_conv2d_grad_input},
    {CLT_NATIVE(conv2d_grad_weight), .any_layout = true, .supports = supports_conv2d_grad_weight, .lower = lower_conv2d_grad_weight},
    {0},
};
