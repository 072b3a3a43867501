/*
 * Convolutions of the native backend on images in other layouts: against the reference rows or a sum in
 * double precision, and again bit by bit, with scratch memory that held NaN.
 */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/native/cpu/winograd.h"
#include "runtime/base/random.h"
#include "runtime/exec/plan.h"

static clt_device *device;

/* A convolution's sizes; c and o: of each group. */
typedef struct window {
    int64_t n, c, h, w, o;
    int kh, kw, sh, sw, ph, pw, dh, dw, groups;
} window;

typedef enum direction { FORWARD, GRAD_INPUT, GRAD_WEIGHT } direction;
/* How images lie: all channels-last, or the forward pass's input not. */
typedef enum layouts { LAST, FIRST_THEN_LAST, ALL_CONTIGUOUS } layouts;

static int64_t result_size(int64_t size, int kernel, int stride, int padding, int dilation) {
    int64_t span = size + 2 * padding - dilation * (kernel - 1) - 1;
    return span < 0 ? 0 : span / stride + 1;
}

static int64_t result_h(const window *v) {
    return result_size(v->h, v->kh, v->sh, v->ph, v->dh);
}

static int64_t result_w(const window *v) {
    return result_size(v->w, v->kw, v->sw, v->pw, v->dw);
}

/* ---- building and running ---- */

typedef struct built {
    clt_graph *graph;
    clt_tensor *inputs[2], *y;
} built;

static built build(const window *v, direction d, layouts layout) {
    static const clt_op *const ops[] = {&clt_op_conv2d, &clt_op_conv2d_grad_input,
                                        &clt_op_conv2d_grad_weight};
    clt_shape x = CLT_SHAPE(v->n, v->c * v->groups, v->h, v->w);
    clt_shape y = CLT_SHAPE(v->n, v->o * v->groups, result_h(v), result_w(v));
    clt_shape weight = CLT_SHAPE(v->o * v->groups, v->c, v->kh, v->kw);
    clt_conv2d_attributes at = {v->kh, v->kw, v->sh, v->sw, v->ph, v->pw, v->dh, v->dw, v->groups, {0}};
    if (d != FORWARD) at.result = d == GRAD_INPUT ? x : weight;
    built g;
    assert_ok(clt_graph_create(&g.graph));
    g.inputs[0] = clt_input(g.graph, "a", CLT_F32, d == GRAD_INPUT ? weight : x);
    g.inputs[1] = clt_input(g.graph, "b", CLT_F32, d == FORWARD ? weight : y);
    g.y = clt_node(NULL, ops[d], &at, g.inputs, 2);
    assert_ok(clt_graph_status(g.graph));
    clt_tensor *image[] = {d == GRAD_INPUT ? g.y : g.inputs[0], d == FORWARD ? g.y : g.inputs[1]};
    if (layout == LAST) image[0]->layout = CLT_LAYOUT_CHANNELS_LAST;
    if (layout != ALL_CONTIGUOUS) image[1]->layout = CLT_LAYOUT_CHANNELS_LAST;
    return g;
}

/* Values in logical order to those in the tensor's, or back. */
static float *permuted(const clt_tensor *t, const float *values, bool back) {
    const int64_t *d = t->shape.dims, pixels = d[2] * d[3];
    float *to = malloc((size_t)clt_tensor_elements(t) * sizeof *to);
    assert_non_null(to);
    for (int64_t n = 0; n < d[0]; n++)
        for (int64_t c = 0; c < d[1]; c++)
            for (int64_t p = 0; p < pixels; p++) {
                int64_t logical = (n * d[1] + c) * pixels + p;
                int64_t place =
                    t->layout == CLT_LAYOUT_CHANNELS_LAST ? (n * pixels + p) * d[1] + c : logical;
                to[back ? logical : place] = values[back ? place : logical];
            }
    return to;
}

static float *drawn(const clt_tensor *t, clt_random *random) {
    int64_t n = clt_tensor_elements(t);
    float *values = malloc((size_t)n * sizeof *values);
    assert_non_null(values);
    for (int64_t i = 0; i < n; i++) values[i] = (float)(2 * clt_random_uniform(random) - 1);
    return values;
}

static void feed(clt_plan *plan, const clt_tensor *input, clt_random *random) {
    float *values = drawn(input, random), *placed = permuted(input, values, false);
    assert_ok(clt_plan_feed(plan, input, placed));
    free(values);
    free(placed);
}

/* Fills with NaN the memory that the next plan of that size takes from the pool. */
static void spoil_pool(uint64_t bytes) {
    clt_memory *memory;
    void *nans = malloc(bytes);
    assert_non_null(nans);
    memset(nans, 0xff, bytes);
    assert_ok(clt_memory_create(device, bytes, &memory));
    assert_ok(clt_memory_write(memory, 0, nans, bytes));
    clt_memory_destroy(memory);
    free(nans);
}

/* The backend's last row, which Winograd's ops have one of: forced, it serves what it would not serve well too. */
static clt_choice last_row(const clt_tensor *node, const char *backend) {
    clt_choice choice = {0};
    for (const clt_backend_row *row = NULL; (row = clt_backend_next(node->op, row));)
        if (!strcmp(row->name, backend)) choice.row = row;
    assert_non_null(choice.row);
    clt_backend_defaults(choice.row, node, device, choice.parameters);
    return choice;
}

static int tile_rows; /* of the direct rows; 0: their default */

static const clt_backend_row *row_with_tiles(const clt_op *op) {
    for (const clt_backend_row *row = NULL; (row = clt_backend_next(op, row));)
        if (row->tunables && !strcmp(row->tunables->name, "tile_rows")) return row;
    fail_msg("no row has tile_rows");
    return NULL;
}

static clt_choice tiled_row(const clt_tensor *node) {
    return (clt_choice){.row = row_with_tiles(node->op), .parameters = {tile_rows}};
}

static clt_plan *compiled(built *g, clt_state_store *store, const char *backend) {
    clt_plan *plan;
    clt_choice forced = tile_rows ? tiled_row(g->y) : last_row(g->y, "winograd");
    assert_ok(clt_plan_compile(&plan, &(clt_plan_options){.device = device,
                                                          .store = store,
                                                          .graph = g->graph,
                                                          .targets = &g->y,
                                                          .n_targets = 1,
                                                          .training = true,
                                                          .backends = backend,
                                                          .passes = "none", /* layouts are as they were set */
                                                          .forced = tile_rows || !strcmp(backend, "winograd") ? &forced : NULL}));
    return plan;
}

/* What the backend gives, in logical order; *planned (may be NULL) is the plan's memory. */
static float *run(const window *v, direction d, layouts layout, const char *backend, uint64_t *planned) {
    built g = build(v, d, layout);
    clt_state_store *store;
    clt_random random;
    assert_ok(clt_state_store_create(device, &store));
    clt_plan *plan = compiled(&g, store, backend);
    clt_random_init(&random, 7, 0);
    feed(plan, g.inputs[0], &random);
    feed(plan, g.inputs[1], &random);
    assert_ok(clt_plan_run(plan));
    size_t bytes = (size_t)clt_tensor_elements(g.y) * sizeof(float);
    float *y = malloc(bytes);
    assert_non_null(y);
    assert_ok(clt_plan_read(plan, g.y, y, bytes));
    if (planned) *planned = clt_plan_get_facts(plan).planned_bytes;
    float *logical = permuted(g.y, y, true);
    free(y);
    clt_plan_destroy(plan);
    clt_state_store_destroy(store);
    clt_graph_destroy(g.graph);
    return logical;
}

/* ---- in double precision ---- */

typedef struct operands {
    float *x, *weight, *dy;
} operands;

/* One tap of one channel pair, over all pixels: adds to what the direction gives. */
static void add_tap(const window *v, direction d, const operands *from, int64_t o, int64_t c, int tap,
                    double *to) {
    int64_t oh = result_h(v), ow = result_w(v), taps = v->kh * v->kw;
    int64_t channels = v->c * v->groups, results = v->o * v->groups,
            weight = (o * v->c + c) * taps + tap;
    int64_t channel = o / v->o * v->c + c;
    for (int64_t n = 0; n < v->n; n++)
        for (int64_t p = 0; p < oh; p++)
            for (int64_t q = 0; q < ow; q++) {
                int64_t h = p * v->sh - v->ph + tap / v->kw * v->dh,
                        w = q * v->sw - v->pw + tap % v->kw * v->dw;
                if (h < 0 || h >= v->h || w < 0 || w >= v->w) continue;
                int64_t x = ((n * channels + channel) * v->h + h) * v->w + w;
                int64_t y = ((n * results + o) * oh + p) * ow + q;
                if (d == FORWARD) to[y] += (double)from->x[x] * from->weight[weight];
                if (d == GRAD_INPUT) to[x] += (double)from->dy[y] * from->weight[weight];
                if (d == GRAD_WEIGHT) to[weight] += (double)from->x[x] * from->dy[y];
            }
}

static double *in_double(const window *v, direction d) {
    built g = build(v, d, ALL_CONTIGUOUS);
    clt_random random;
    clt_random_init(&random, 7, 0);
    float *a = drawn(g.inputs[0], &random), *b = drawn(g.inputs[1], &random);
    operands from = {.x = a, .weight = d == GRAD_INPUT ? a : b, .dy = b};
    double *to = calloc((size_t)clt_tensor_elements(g.y), sizeof *to);
    assert_non_null(to);
    for (int64_t o = 0; o < v->o * v->groups; o++)
        for (int64_t c = 0; c < v->c; c++)
            for (int tap = 0; tap < v->kh * v->kw; tap++) add_tap(v, d, &from, o, c, tap, to);
    free(a);
    free(b);
    clt_graph_destroy(g.graph);
    return to;
}

/* ---- checking ---- */

static int64_t elements(const window *v, direction d) {
    int64_t o = v->o * v->groups;
    if (d == GRAD_WEIGHT) return o * v->c * v->kh * v->kw;
    return v->n * (d == FORWARD ? o * result_h(v) * result_w(v) : v->c * v->groups * v->h * v->w);
}

static void describe(const window *v, direction d, layouts layout, const char *backend) {
    print_error("  %s, direction %d, layouts %d: n %d, c %d, %d x %d, o %d, kernel %d %d, stride %d %d, "
                "padding %d %d, dilation %d %d, groups %d\n",
                backend, (int)d, (int)layout, (int)v->n, (int)v->c, (int)v->h, (int)v->w, (int)v->o,
                v->kh, v->kw, v->sh, v->sw, v->ph, v->pw, v->dh, v->dw, v->groups);
}

/* Mean square error over mean square. */
static double error_of(const float *got, const double *want, int64_t n) {
    double error = 0, square = 0;
    for (int64_t i = 0; i < n; i++) {
        error += (got[i] - want[i]) * (got[i] - want[i]);
        square += want[i] * want[i];
    }
    return square > 0 ? error / square : error > 0 ? INFINITY : error;
}

/* Close to the sum in double precision, and the same bits again in memory that held NaN. */
static double check(const window *v, direction d, layouts layout, const char *backend, double limit) {
    uint64_t planned;
    int64_t n = elements(v, d);
    float *got = run(v, d, layout, backend, &planned);
    spoil_pool(planned);
    float *again = run(v, d, layout, backend, NULL);
    double *want = in_double(v, d), error = error_of(got, want, n);
    if (!(error <= limit)) {
        describe(v, d, layout, backend);
        fail_msg("error %.3g", error);
    }
    if (memcmp(got, again, (size_t)n * sizeof *got)) {
        describe(v, d, layout, backend);
        fail_msg("not the same bits again");
    }
    free(want);
    free(got);
    free(again);
    return error;
}

/* ---- direct ---- */

static const double DIRECT = 1e-12;

static void check_direct(const window *v) {
    assert_true(result_h(v) > 0 && result_w(v) > 0);
    for (int d = FORWARD; d <= GRAD_WEIGHT; d++) check(v, (direction)d, LAST, "native", DIRECT);
    check(v, FORWARD, FIRST_THEN_LAST, "native", DIRECT);
    check(v, GRAD_WEIGHT, FIRST_THEN_LAST, "native", DIRECT);
}

static void direct_sizes(void **state) {
    (void)state;
    static const window windows[] = {
        {1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1},      /* one of everything */
        {2, 16, 8, 8, 16, 3, 3, 1, 1, 1, 1, 1, 1, 1},    /* whole vectors */
        {3, 17, 9, 7, 33, 3, 3, 1, 1, 1, 1, 1, 1, 1},    /* one more of each */
        {2, 15, 7, 8, 31, 3, 3, 2, 2, 1, 1, 1, 1, 1},    /* one less */
        {2, 3, 32, 32, 64, 3, 3, 1, 1, 1, 1, 1, 1, 1},   /* a first layer */
        {2, 64, 9, 10, 64, 1, 1, 1, 1, 0, 0, 1, 1, 1},   /* one tap */
        {2, 20, 9, 10, 24, 1, 1, 2, 2, 0, 0, 1, 1, 1},   /* one tap, of which most pixels are not read */
        {2, 20, 9, 10, 24, 1, 1, 3, 2, 1, 2, 1, 1, 1},   /* and with padding */
        {1, 3, 21, 23, 64, 7, 7, 2, 2, 3, 3, 1, 1, 1},   /* ResNet's first */
        {1, 130, 4, 5, 40, 3, 3, 1, 1, 1, 1, 1, 1, 1},   /* channels in two blocks */
        {1, 300, 2, 3, 8, 1, 1, 1, 1, 0, 0, 1, 1, 1},    /* in three and more */
        {1, 40, 4, 5, 130, 3, 3, 2, 1, 1, 1, 1, 1, 1},   /* the gradient's in two blocks */
        {1, 4, 13, 14, 6, 3, 3, 1, 1, 2, 2, 2, 2, 1},    /* dilated */
        {1, 4, 13, 14, 6, 3, 3, 2, 2, 2, 2, 2, 2, 1},    /* pixels without taps */
        {1, 4, 15, 14, 6, 3, 2, 4, 3, 2, 2, 2, 2, 1},    /* stride 4, 3 */
        {2, 1, 9, 9, 1, 3, 3, 1, 1, 1, 1, 1, 1, 24},     /* depthwise */
        {2, 18, 6, 6, 37, 3, 3, 1, 1, 1, 1, 1, 1, 2},    /* groups */
        {2, 3, 4, 5, 4, 2, 3, 1, 1, 5, 6, 1, 1, 1},      /* more padding than kernel */
        {1, 2, 30, 1, 3, 3, 1, 1, 1, 1, 0, 1, 1, 1},     /* a column */
        {1, 2, 1, 30, 3, 1, 3, 1, 2, 0, 1, 1, 1, 1},     /* a row */
        {1, 2, 2, 2, 3, 2, 2, 1, 1, 0, 0, 1, 1, 1},      /* one pixel of the result */
        {8, 4, 24, 24, 5, 3, 3, 1, 1, 1, 1, 1, 1, 1},    /* pixels in several splits */
        {70, 100, 17, 16, 4, 3, 3, 1, 1, 1, 1, 1, 1, 1}, /* and each split in several launches */
    };
    for (size_t i = 0; i < CLT_COUNT_OF(windows); i++) check_direct(&windows[i]);
}

static int64_t between(clt_random *random, int64_t low, int64_t high) {
    return low + (int64_t)clt_random_below(random, (uint64_t)(high - low + 1));
}

static void direct_at_random(void **state) {
    (void)state;
    clt_random random;
    clt_random_init(&random, 3, 0);
    for (int done = 0; done < 60;) {
        window v = {
            .n = between(&random, 1, 4),
            .c = between(&random, 1, 40),
            .h = between(&random, 1, 16),
            .w = between(&random, 1, 16),
            .o = between(&random, 1, 40),
            .kh = (int)between(&random, 1, 5),
            .kw = (int)between(&random, 1, 5),
            .sh = (int)between(&random, 1, 3),
            .sw = (int)between(&random, 1, 3),
            .dh = (int)between(&random, 1, 3),
            .dw = (int)between(&random, 1, 3),
            .groups = between(&random, 0, 2) ? 1 : (int)between(&random, 2, 4),
        };
        v.ph = (int)between(&random, 0, v.kh);
        v.pw = (int)between(&random, 0, v.kw);
        if (result_h(&v) < 1 || result_w(&v) < 1) continue;
        check_direct(&v);
        done++;
    }
}

/* Whole tiles and what is left of them; in one program with the other tiles. */
static void direct_tiles(void **state) {
    (void)state;
    static const window windows[] = {
        {2, 16, 8, 8, 32, 3, 3, 1, 1, 1, 1, 1, 1, 1},
        {3, 17, 9, 7, 33, 3, 3, 2, 1, 1, 1, 1, 1, 1},
        {1, 40, 1, 5, 31, 1, 1, 1, 1, 0, 0, 1, 1, 1},
        {2, 9, 6, 7, 5, 3, 2, 2, 2, 2, 1, 1, 2, 2},
    };
    const clt_backend_row *row = row_with_tiles(&clt_op_conv2d);
    const clt_tunable *tunable = row->tunables;
    int tried = 0;
    for (int k = 0; k < tunable->n; k++) {
        if (!row->valid(&(clt_candidate){.device = device}, &tunable->values[k])) continue;
        tile_rows = tunable->values[k];
        for (size_t i = 0; i < CLT_COUNT_OF(windows); i++)
            for (int d = FORWARD; d <= GRAD_INPUT; d++) check(&windows[i], (direction)d, LAST, "native", DIRECT);
        tried++;
    }
    tile_rows = 0;
    assert_true(tried >= 2);
}

/* ---- Winograd ---- */

static const double WINOGRAD = 1e-10;

static void check_winograd(const window *v) {
    assert_true(result_h(v) > 0 && result_w(v) > 0);
    for (int d = FORWARD; d <= GRAD_WEIGHT; d++) check(v, (direction)d, LAST, "winograd", WINOGRAD);
}

static void winograd_sizes(void **state) {
    (void)state;
    static const window windows[] = {
        {1, 1, 1, 1, 1, 3, 3, 1, 1, 1, 1, 1, 1, 1},       /* one of everything */
        {2, 16, 8, 8, 32, 3, 3, 1, 1, 1, 1, 1, 1, 1},     /* whole vectors and tiles */
        {3, 17, 9, 7, 33, 3, 3, 1, 1, 1, 1, 1, 1, 1},     /* one more of each */
        {2, 15, 7, 11, 31, 3, 3, 1, 1, 1, 1, 1, 1, 1},    /* one less */
        {1, 3, 2, 3, 17, 3, 3, 1, 1, 1, 1, 1, 1, 1},      /* less than a tile */
        {2, 33, 6, 5, 3, 3, 3, 1, 1, 0, 0, 1, 1, 1},      /* no padding */
        {2, 5, 3, 3, 40, 3, 3, 1, 1, 0, 2, 1, 1, 1},      /* padding of both kinds */
        {1, 20, 1, 1, 70, 3, 3, 1, 1, 2, 2, 1, 1, 1},     /* more border than image */
        {9, 8, 23, 29, 36, 3, 3, 1, 1, 1, 1, 1, 1, 1},    /* several runs and chunks */
        {3, 100, 20, 21, 129, 3, 3, 1, 1, 1, 1, 1, 1, 1}, /* the same with many channels */
    };
    for (size_t i = 0; i < CLT_COUNT_OF(windows); i++) check_winograd(&windows[i]);
}

static void winograd_at_random(void **state) {
    (void)state;
    clt_random random;
    clt_random_init(&random, 4, 0);
    for (int done = 0; done < 40;) {
        window v = {.n = between(&random, 1, 5),
                    .c = between(&random, 1, 70),
                    .h = between(&random, 1, 18),
                    .w = between(&random, 1, 18),
                    .o = between(&random, 1, 70),
                    .kh = 3,
                    .kw = 3,
                    .sh = 1,
                    .sw = 1,
                    .ph = (int)between(&random, 0, 2),
                    .pw = (int)between(&random, 0, 2),
                    .dh = 1,
                    .dw = 1,
                    .groups = 1};
        if (result_h(&v) < 1 || result_w(&v) < 1) continue;
        check_winograd(&v);
        done++;
    }
}

/* ---- what is served ---- */

static const char *backend_of(const window *v, direction d, layouts layout) {
    built g = build(v, d, layout);
    const clt_backend_row *row = clt_backend_choose(g.y, device).row;
    clt_graph_destroy(g.graph);
    return row ? row->name : "none";
}

/* A weight must be contiguous, and a gradient phase is a launch. */
static void what_is_not_served(void **state) {
    (void)state;
    window v = {1, 8, 13, 13, 8, 3, 3, 5, 5, 0, 0, 1, 1, 1};
    assert_string_equal(backend_of(&v, GRAD_INPUT, LAST), "none");
    assert_string_equal(backend_of(&v, FORWARD, LAST), "native");
    built g = build(&v, FORWARD, LAST);
    g.inputs[1]->layout = CLT_LAYOUT_CHANNELS_LAST;
    assert_null(clt_backend_choose(g.y, device).row);
    clt_graph_destroy(g.graph);
}

/* Many channels and tiles, and none of what the algorithm is not for. */
static void where_winograd_serves(void **state) {
    (void)state;
    const window served = {8, 64, 32, 32, 64, 3, 3, 1, 1, 1, 1, 1, 1, 1};
    for (int d = FORWARD; d <= GRAD_WEIGHT; d++) {
        window v = served;
        assert_string_equal(backend_of(&v, (direction)d, LAST), "winograd");
        v.n = 1, v.h = v.w = 4; /* one tile does not pay for the weights */
        assert_string_equal(backend_of(&v, (direction)d, LAST), "native");
        v = served, *(d == GRAD_INPUT ? &v.o : &v.c) = 3; /* nor few channels for the transforms */
        assert_string_equal(backend_of(&v, (direction)d, LAST), "native");
        v = served, v.sh = 2;
        assert_string_equal(backend_of(&v, (direction)d, LAST), "native");
        v = served, v.dw = 2;
        assert_string_equal(backend_of(&v, (direction)d, LAST), "native");
        v = served, v.kw = 2;
        assert_string_equal(backend_of(&v, (direction)d, LAST), "native");
        v = served, v.ph = 3;
        assert_string_equal(backend_of(&v, (direction)d, LAST), "native");
        v = served, v.groups = 2;
        assert_string_equal(backend_of(&v, (direction)d, LAST), "native");
        assert_string_equal(backend_of(&served, (direction)d, ALL_CONTIGUOUS), "native");
    }
}

/* Sums over 512 channels are as close as the direct ones to what is asked. */
static void winograd_with_many_channels(void **state) {
    (void)state;
    static const window v = {4, 512, 7, 7, 96, 3, 3, 1, 1, 1, 1, 1, 1, 1},
                        t = {4, 96, 7, 7, 512, 3, 3, 1, 1, 1, 1, 1, 1, 1};
    check_winograd(&v);
    check_winograd(&t);
}

static int open_device(void) {
    if (clt_device_open(&device, NULL) == CLT_OK) return 0;
    print_error("no device: %s\n", clt_error_detail());
    return -1;
}

/* On another class of device no other layout is served. */
static void other_devices_are_left_alone(void **state) {
    (void)state;
    window v = {2, 16, 8, 8, 16, 3, 3, 1, 1, 1, 1, 1, 1, 1};
    assert_string_equal(backend_of(&v, FORWARD, ALL_CONTIGUOUS), "reference");
}

int main(void) {
    const struct CMUnitTest others[] = {cmocka_unit_test(other_devices_are_left_alone)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(direct_sizes),
        cmocka_unit_test(direct_at_random),
        cmocka_unit_test(direct_tiles),
        cmocka_unit_test(winograd_sizes),
        cmocka_unit_test(winograd_at_random),
        cmocka_unit_test(winograd_with_many_channels),
        cmocka_unit_test(what_is_not_served),
        cmocka_unit_test(where_winograd_serves),
    };
    if (open_device() < 0) return 1;
    int failed = clt_cpu_fits(device) ? cmocka_run_group_tests_name("conv2d", tests, NULL, NULL)
                                      : cmocka_run_group_tests_name("conv2d", others, NULL, NULL);
    clt_device_close(device);
    return failed;
}
