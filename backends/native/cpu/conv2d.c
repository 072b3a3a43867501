#include "backends/codegen.h"
#include "backends/native/cpu/conv2d.h"

static const char source[] = "native/cpu/conv2d.cl";

/* Channels that lie side by side in a packed image, at most. */
enum { MOST_BLOCK = 16 };

/* A packed image, and what is needed of it. */
typedef struct packed_image {
    int64_t n, groups, channels, width, blocks; /* channels of a group, of a block; blocks of a group */
    int64_t block, group, image;                /* elements */
    int scratch;
} packed_image;

/* ---- geometry ---- */

/* The part of dy that all phases together read; their origins are then within it. */
static void frame_phases(clt_cpu_axis *phases, int stride) {
    int64_t low = INT64_MAX, high = INT64_MIN;
    for (int i = 0; i < stride; i++) {
        if (phases[i].result == 0 || phases[i].taps == 0) continue;
        low = CLT_MIN(low, phases[i].origin + (phases[i].taps - 1) * phases[i].tap_step);
        high = CLT_MAX(high, phases[i].origin + phases[i].result - 1);
    }
    if (low > high) low = high = 0;
    for (int i = 0; i < stride; i++) {
        phases[i].packed = high - low + 1;
        phases[i].before = -low;
        phases[i].origin = phases[i].taps ? phases[i].origin - low : 0;
    }
}

static packed_image image_of(int64_t n, int64_t groups, int64_t channels, const clt_cpu_axis *h,
                             const clt_cpu_axis *w) {
    packed_image image = {.n = n, .groups = groups, .channels = channels};
    image.width = CLT_MIN(channels, MOST_BLOCK);
    image.blocks = clt_cpu_divide_up(channels, image.width);
    image.block = h->packed * w->packed * image.width;
    image.group = image.blocks * image.block;
    image.image = groups * image.group;
    return image;
}

/* ---- what is supported ---- */

static void grad_input_axes(const clt_conv2d_attributes *at, const clt_shape *x,
                            clt_cpu_axis h[CLT_CPU_MOST_STRIDE], clt_cpu_axis w[CLT_CPU_MOST_STRIDE]) {
    for (int i = 0; i < at->stride_h; i++)
        h[i] =
            clt_cpu_phase_axis(x->dims[2], i, at->kernel_h, at->stride_h, at->padding_h, at->dilation_h);
    for (int i = 0; i < at->stride_w; i++)
        w[i] =
            clt_cpu_phase_axis(x->dims[3], i, at->kernel_w, at->stride_w, at->padding_w, at->dilation_w);
    frame_phases(h, at->stride_h);
    frame_phases(w, at->stride_w);
}

/* Elements of the weights when packed for a sum over `channels`, `results` of each group side by
 * side. */
static int64_t weight_elements(int64_t groups, int64_t results, int64_t channels, int64_t taps,
                               clt_cpu_tile tile) {
    return groups * clt_cpu_divide_up(results, tile.columns) * tile.columns * channels * taps;
}

/* A packed image, with all that depends on its size. */
static bool holds_image(const clt_device *device, const packed_image *image, const clt_cpu_axis *h,
                        const clt_cpu_axis *w) {
    double elements = (double)image->n * (double)image->groups * (double)image->blocks *
                      (double)image->width * (double)h->packed * (double)w->packed;
    return clt_cpu_holds(device, elements);
}

/* ---- launches ---- */

static void launch_pack(clt_lowering *l, const clt_tensor *x, packed_image *image, const clt_cpu_axis *h,
                        const clt_cpu_axis *w) {
    image->scratch = clt_cpu_scratch(l, image->n * image->image);
    clt_cpu_begin(l, source, "cpu_conv2d_pack", image->n * image->groups * image->blocks * h->packed);
    clt_launch_tensor(l, x);
    clt_launch_scratch(l, image->scratch);
    clt_launch_ints(l, x->shape.dims, 4, 4);
    clt_launch_ints(l, (int64_t[]){image->groups, image->width, h->packed, w->packed}, 4, 4);
    clt_launch_ints(l, (int64_t[]){h->pack_step, h->before, w->pack_step, w->before}, 4, 4);
}

/* The strides of a weight [group, result, channel, height, width], whatever its order in memory. */
typedef struct weight_strides {
    int64_t group, result, channel;
} weight_strides;

static int launch_pack_weight(clt_lowering *l, const clt_tensor *weight, weight_strides strides,
                              int64_t results, const packed_image *image, const clt_cpu_axis *h,
                              const clt_cpu_axis *w) {
    clt_cpu_tile tile = clt_cpu_tile_of(l->device);
    int64_t panels = clt_cpu_divide_up(results, tile.columns), row = weight->shape.dims[3];
    int packed = clt_cpu_scratch(
        l, weight_elements(image->groups, results, image->channels, h->taps * w->taps, tile));
    clt_cpu_begin(l, source, "cpu_conv2d_pack_weight", image->groups * panels * image->blocks);
    clt_launch_tensor(l, weight);
    clt_launch_scratch(l, packed);
    clt_launch_ints(
        l, (int64_t[]){image->groups, results, image->channels, image->width, h->taps, w->taps}, 6, 8);
    clt_launch_ints(l,
                    (int64_t[]){strides.group, strides.result, strides.channel, h->tap_stride * row,
                                w->tap_stride, h->first_tap * row + w->first_tap},
                    6, 8);
    return packed;
}

/* Elements from place to place of y in memory. */
typedef struct steps {
    int64_t image, channel, row, pixel;
} steps;

static steps steps_of(const clt_tensor *y) {
    const int64_t *d = y->shape.dims;
    if (clt_tensor_contiguous(y)) return (steps){d[1] * d[2] * d[3], d[2] * d[3], d[3], 1};
    return (steps){d[1] * d[2] * d[3], 1, d[3] * d[1], d[1]};
}

/* One convolution of a packed image into pixels of `y`. `weight` is not looked at if there are no
 * taps. Taps that follow one another in the image are like so many more channels. */
static void launch_tiles(clt_lowering *l, const packed_image *image, int weight, const clt_tensor *y,
                         int64_t results, const clt_cpu_axis *h, const clt_cpu_axis *w) {
    clt_cpu_tile tile = clt_cpu_tile_of(l->device);
    int64_t pixels = image->n * h->result * w->result, row = w->packed * image->width;
    int64_t panels = clt_cpu_divide_up(results, tile.columns);
    int64_t merged = image->blocks == 1 && w->tap_step == 1 ? w->taps : 1;
    steps to = steps_of(y);
    clt_cpu_begin_as(l, &(clt_cpu_variant){.last = true}, source, "cpu_conv2d",
                       image->groups * panels * clt_cpu_divide_up(pixels, tile.rows));
    clt_launch_scratch(l, image->scratch);
    clt_launch_scratch(l, weight);
    clt_launch_tensor(l, y);
    clt_launch_ints(l,
                    (int64_t[]){image->image, image->block, merged * image->width,
                                merged * image->channels, h->tap_step * row, w->tap_step * image->width,
                                h->pixel_step * row, w->pixel_step * image->width},
                    8, 8);
    clt_launch_ints(l,
                    (int64_t[]){h->origin * row + w->origin * image->width,
                                h->target * to.row + w->target * to.pixel, h->taps, w->taps / merged},
                    4, 4);
    clt_launch_ints(l, (int64_t[]){image->n, h->result, w->result, image->groups, results}, 5, 8);
    clt_launch_ints(
        l, (int64_t[]){to.image, to.channel, h->target_step * to.row, w->target_step * to.pixel}, 4, 4);
    clt_launch_epilogue(l, y);
}

/* True if the kernels read x and write y, or read both, as they lie. */
static bool layouts_fit(const clt_tensor *x, const clt_tensor *weight, const clt_tensor *y) {
    return clt_tensor_contiguous(x) && clt_tensor_contiguous(weight) &&
           (clt_tensor_contiguous(y) || clt_tensor_channels_last(y));
}

/* ---- rows ---- */

static bool supports_conv2d(const clt_candidate *c) {
    const clt_conv2d_attributes *at = c->node->attributes;
    const clt_shape *x = &c->node->inputs[0]->shape, *weight = &c->node->inputs[1]->shape;
    clt_cpu_axis h, w;
    if (!clt_cpu_fits(c->device) || !layouts_fit(c->node->inputs[0], c->node->inputs[1], c->node)) return false;
    clt_cpu_forward_axes(at, &c->node->shape, &h, &w);
    packed_image image = image_of(x->dims[0], at->groups, weight->dims[1], &h, &w);
    int64_t packed = weight_elements(at->groups, weight->dims[0] / at->groups, weight->dims[1],
                                     h.taps * w.taps, clt_cpu_tile_of(c->device));
    return clt_cpu_holds_tensors(c->device, c->node) && holds_image(c->device, &image, &h, &w) &&
           clt_cpu_holds(c->device, (double)packed);
}

static void lower_conv2d(clt_lowering *l, const clt_tensor *node) {
    const clt_conv2d_attributes *at = node->attributes;
    const clt_tensor *x = node->inputs[0], *weight = node->inputs[1];
    int64_t results = weight->shape.dims[0] / at->groups, channels = weight->shape.dims[1];
    int64_t filter = weight->shape.dims[2] * weight->shape.dims[3];
    clt_cpu_axis h, w;
    clt_cpu_forward_axes(at, &node->shape, &h, &w);
    packed_image image = image_of(x->shape.dims[0], at->groups, channels, &h, &w);
    weight_strides strides = {results * channels * filter, channels * filter, filter};
    launch_pack(l, x, &image, &h, &w);
    int packed = launch_pack_weight(l, weight, strides, results, &image, &h, &w);
    launch_tiles(l, &image, packed, node, results, &h, &w);
}

static bool supports_conv2d_grad_input(const clt_candidate *c) {
    const clt_conv2d_attributes *at = c->node->attributes;
    const clt_shape *weight = &c->node->inputs[0]->shape, *dy = &c->node->inputs[1]->shape;
    clt_cpu_axis h[CLT_CPU_MOST_STRIDE] = {{0}}, w[CLT_CPU_MOST_STRIDE] = {{0}};
    if (!clt_cpu_fits(c->device) || at->stride_h > CLT_CPU_MOST_STRIDE ||
        at->stride_w > CLT_CPU_MOST_STRIDE)
        return false;
    if (!layouts_fit(c->node->inputs[1], c->node->inputs[0], c->node)) return false;
    grad_input_axes(at, &c->node->shape, h, w);
    packed_image image = image_of(dy->dims[0], at->groups, weight->dims[0] / at->groups, &h[0], &w[0]);
    int64_t packed = weight_elements(at->groups, weight->dims[1], image.channels,
                                     weight->dims[2] * weight->dims[3], clt_cpu_tile_of(c->device));
    return clt_cpu_holds_tensors(c->device, c->node) && holds_image(c->device, &image, &h[0], &w[0]) &&
           clt_cpu_holds(c->device, (double)packed);
}

static void lower_conv2d_grad_input(clt_lowering *l, const clt_tensor *node) {
    const clt_conv2d_attributes *at = node->attributes;
    const clt_tensor *weight = node->inputs[0], *dy = node->inputs[1];
    int64_t channels = weight->shape.dims[0] / at->groups, results = weight->shape.dims[1];
    int64_t filter = weight->shape.dims[2] * weight->shape.dims[3];
    clt_cpu_axis h[CLT_CPU_MOST_STRIDE] = {{0}}, w[CLT_CPU_MOST_STRIDE] = {{0}};
    grad_input_axes(at, &node->shape, h, w);
    packed_image image = image_of(dy->shape.dims[0], at->groups, channels, &h[0], &w[0]);
    weight_strides strides = {channels * results * filter, filter, results * filter};
    launch_pack(l, dy, &image, &h[0], &w[0]);
    for (int i = 0; i < at->stride_h; i++)
        for (int j = 0; j < at->stride_w; j++) {
            if (h[i].result == 0 || w[j].result == 0) continue;
            bool any = h[i].taps > 0 && w[j].taps > 0;
            int packed = any ? launch_pack_weight(l, weight, strides, results, &image, &h[i], &w[j])
                             : image.scratch;
            launch_tiles(l, &image, packed, node, results, &h[i], &w[j]);
        }
}

/* ---- the gradient of the weight ---- */

/* The sum over the pixels, and how it is cut. */
typedef struct weight_sum {
    packed_image image;
    clt_cpu_axis h, w;
    int64_t results, pixels, panels, splits, split_pixels;
    int64_t partial; /* elements of what one split sums to */
} weight_sum;

/* As many splits of the pixels as give a device enough to do; by the shapes alone, for the same
 * bits with any number of processors. */
static void cut(weight_sum *s) {
    enum { ENOUGH_ITEMS = 64, LEAST_RUNS = 4, RUN = 256 /* as in cl/native/cpu/conv2d.cl */ };
    int64_t items = s->image.groups * s->panels * s->image.blocks;
    int64_t splits = CLT_MIN(clt_cpu_divide_up(ENOUGH_ITEMS, items), s->pixels / (LEAST_RUNS * RUN));
    s->split_pixels = clt_cpu_divide_up(clt_cpu_divide_up(s->pixels, CLT_MAX(splits, 1)), RUN) * RUN;
    s->splits = clt_cpu_divide_up(s->pixels, s->split_pixels);
}

static weight_sum weight_sum_of(const clt_tensor *node, clt_cpu_tile tile) {
    const clt_conv2d_attributes *at = node->attributes;
    const clt_shape *weight = &node->shape, *dy = &node->inputs[1]->shape;
    weight_sum s = {.results = weight->dims[0] / at->groups,
                    .pixels = dy->dims[0] * dy->dims[2] * dy->dims[3]};
    clt_cpu_forward_axes(at, dy, &s.h, &s.w);
    s.image = image_of(dy->dims[0], at->groups, weight->dims[1], &s.h, &s.w);
    s.panels = clt_cpu_divide_up(s.results, tile.columns);
    cut(&s);
    int64_t rows = clt_cpu_divide_up(s.h.taps * s.w.taps * s.image.width, tile.rows) * tile.rows;
    s.partial = s.image.groups * s.panels * s.image.blocks * rows * tile.columns;
    return s;
}

static double panel_elements(const weight_sum *s, clt_cpu_tile tile) {
    return (double)s->image.groups * (double)s->panels * tile.columns * (double)s->pixels;
}

static bool supports_conv2d_grad_weight(const clt_candidate *c) {
    if (!clt_cpu_fits(c->device) || !layouts_fit(c->node->inputs[0], c->node, c->node->inputs[1])) return false;
    clt_cpu_tile tile = clt_cpu_tile_of(c->device);
    weight_sum s = weight_sum_of(c->node, tile);
    return clt_cpu_holds_tensors(c->device, c->node) && holds_image(c->device, &s.image, &s.h, &s.w) &&
           clt_cpu_holds(c->device, panel_elements(&s, tile)) &&
           clt_cpu_holds(c->device, (double)s.splits * (double)s.partial);
}

static int launch_places(clt_lowering *l, const weight_sum *s) {
    enum { RUN = 256 }; /* as in cpu_conv2d_places */
    int64_t row = s->w.packed * s->image.width;
    int places = clt_cpu_scratch(l, s->pixels);
    clt_cpu_begin(l, source, "cpu_conv2d_places", clt_cpu_divide_up(s->pixels, RUN));
    clt_launch_scratch(l, places);
    clt_launch_ints(l, (int64_t[]){s->image.n, s->h.result, s->w.result}, 3, 4);
    clt_launch_ints(
        l, (int64_t[]){s->image.image, s->h.pixel_step * row, s->w.pixel_step * s->image.width}, 3, 4);
    return places;
}

static int launch_panels(clt_lowering *l, const weight_sum *s, const clt_tensor *dy) {
    int panels = clt_cpu_scratch(l, (int64_t)panel_elements(s, clt_cpu_tile_of(l->device)));
    steps from = steps_of(dy);
    clt_cpu_begin(l, source, "cpu_conv2d_pack_panels", s->image.n * s->image.groups * s->panels);
    clt_launch_tensor(l, dy);
    clt_launch_scratch(l, panels);
    clt_launch_ints(l, (int64_t[]){s->image.n, s->image.groups, s->results, s->h.result * s->w.result},
                    4, 4);
    clt_launch_ints(l, (int64_t[]){from.channel, from.pixel}, 2, 2);
    return panels;
}

/* True if dy has whole vectors of its channels side by side as it lies. */
static bool read_in_place(const weight_sum *s, const clt_tensor *dy, clt_cpu_tile tile) {
    return !clt_tensor_contiguous(dy) && s->results % tile.columns == 0;
}

static void launch_weight_tiles(clt_lowering *l, const weight_sum *s, const clt_tensor *dy, int places,
                                int partial) {
    clt_cpu_tile tile = clt_cpu_tile_of(l->device);
    bool in_place = read_in_place(s, dy, tile);
    int packed = in_place ? -1 : launch_panels(l, s, dy);
    int64_t panel = s->pixels * tile.columns;
    int64_t row = s->w.packed * s->image.width, items = s->image.groups * s->panels * s->image.blocks;
    clt_cpu_begin(l, source, "cpu_conv2d_grad_weight", s->splits * items);
    clt_launch_scratch(l, s->image.scratch);
    if (in_place) clt_launch_tensor(l, dy);
    else clt_launch_scratch(l, packed);
    clt_launch_scratch(l, places);
    clt_launch_scratch(l, partial);
    clt_launch_ints(l,
                    (int64_t[]){s->image.group, s->image.block, s->image.width, s->image.channels,
                                s->h.taps, s->w.taps, s->h.tap_step * row,
                                s->w.tap_step * s->image.width},
                    8, 8);
    clt_launch_ints(l, (int64_t[]){s->image.groups, s->results, s->pixels, s->splits, s->split_pixels},
                    5, 8);
    if (in_place) clt_launch_ints(l, (int64_t[]){dy->shape.dims[1], tile.columns, s->results}, 3, 4);
    else clt_launch_ints(l, (int64_t[]){tile.columns, panel, s->panels * panel}, 3, 4);
}

static void lower_conv2d_grad_weight(clt_lowering *l, const clt_tensor *node) {
    weight_sum s = weight_sum_of(node, clt_cpu_tile_of(l->device));
    launch_pack(l, node->inputs[0], &s.image, &s.h, &s.w);
    int places = launch_places(l, &s);
    int partial = clt_cpu_scratch(l, s.splits * s.partial);
    launch_weight_tiles(l, &s, node->inputs[1], places, partial);
    clt_cpu_begin(l, source, "cpu_conv2d_sum_weight", s.image.groups * s.panels * s.image.blocks);
    clt_launch_scratch(l, partial);
    clt_launch_tensor(l, node);
    clt_launch_ints(l,
                    (int64_t[]){s.image.groups, s.results, s.image.channels, s.image.width,
                                s.h.taps * s.w.taps, s.splits},
                    6, 8);
}

const clt_backend_row clt_cpu_conv2d_rows[] = {
    {CLT_NATIVE(conv2d), .any_layout = true, .epilogue = true, .supports = supports_conv2d, .lower = lower_conv2d},
    {CLT_NATIVE(conv2d_grad_input), .any_layout = true, .epilogue = true, .supports = supports_conv2d_grad_input, .lower = lower_conv2d_grad_input},
    {CLT_NATIVE(conv2d_grad_weight), .any_layout = true, .supports = supports_conv2d_grad_weight, .lower = lower_conv2d_grad_weight},
    {0},
};
