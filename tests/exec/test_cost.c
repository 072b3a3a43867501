/* Operations and least bytes of nodes, counted by hand. */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backends/tune/tune.h"
#include "runtime/ops/ops.h"

static clt_graph *graph;

static int set_up(void **state) {
    (void)state;
    return clt_graph_create(&graph) < 0;
}

static int tear_down(void **state) {
    (void)state;
    clt_graph_destroy(graph);
    return 0;
}

static clt_tensor *input(clt_shape shape) {
    static int made;
    char name[32];
    snprintf(name, sizeof name, "x%d", made++);
    return clt_input(graph, name, CLT_F32, shape);
}

enum { MOST_OPS = 256 };
static bool pinned[MOST_OPS], told_of[MOST_OPS]; /* by the places of clt_ops: some test above the last says what the op costs; its text is told */

static int place_of(const clt_op *op) {
    int i = 0;
    while (clt_ops[i] != op) i++;
    assert_true(i < MOST_OPS);
    return i;
}

static void expect(const clt_tensor *node, double flops, double bytes) {
    assert_ok(clt_graph_status(graph));
    assert_non_null(node);
    if (node->op) pinned[place_of(node->op)] = true;
    clt_cost cost = clt_node_cost(node);
    if (cost.flops == flops && cost.bytes == bytes) return;
    fail_msg("%s: %g operations, %g bytes instead of %g, %g", clt_node_name(node), cost.flops, cost.bytes, flops, bytes);
}

static void products(void **state) {
    (void)state;
    clt_matmul_options transposed = {.transpose_a = true};
    expect(clt_matmul(input(CLT_SHAPE(3, 5)), input(CLT_SHAPE(5, 7))), 2 * 3 * 5 * 7, 4 * (15 + 35 + 21));
    expect(clt_matmul_with(input(CLT_SHAPE(5, 3)), input(CLT_SHAPE(5, 7)), transposed), 2 * 3 * 5 * 7, 4 * (15 + 35 + 21));
    expect(clt_matmul(input(CLT_SHAPE(2, 3, 5)), input(CLT_SHAPE(2, 5, 7))), 2 * 2 * 3 * 5 * 7, 8 * (15 + 35 + 21));
}

/* All directions of a convolution do the same products. */
static void convolutions(void **state) {
    (void)state;
    enum { B = 2, C = 6, O = 4, G = 2, OUT = 5 };
    clt_shape x_shape = CLT_SHAPE(B, C, 10, 10), w_shape = CLT_SHAPE(O, C / G, 3, 3), y_shape = CLT_SHAPE(B, O, OUT, OUT);
    clt_conv2d_attributes at = {3, 3, 2, 2, 1, 1, 1, 1, G, .result = x_shape};
    clt_tensor *x = input(x_shape), *w = input(w_shape), *dy = input(y_shape);
    double flops = 2.0 * B * O * OUT * OUT * (C / G) * 9;
    double bytes = 4.0 * (B * C * 100 + O * (C / G) * 9 + B * O * OUT * OUT);
    expect(clt_node(NULL, &clt_op_conv2d, &at, (clt_tensor *[]){x, w}, 2), flops, bytes);
    expect(clt_node(NULL, &clt_op_conv2d_grad_input, &at, (clt_tensor *[]){w, dy}, 2), flops, bytes);
    at.result = w_shape;
    expect(clt_node(NULL, &clt_op_conv2d_grad_weight, &at, (clt_tensor *[]){x, dy}, 2), flops, bytes);
}

static void others(void **state) {
    (void)state;
    clt_tensor *x = input(CLT_SHAPE(4, 8)), *row = input(CLT_SHAPE(8));
    expect(clt_add(x, row), 32, 4 * (32 + 8 + 32));
    expect(clt_mul(x, x), 32, 4 * (32 + 32)); /* read once */
    /* A pointwise op: its operators and calls, for each element. */
    expect(clt_sub(x, row), 32, 4 * (32 + 8 + 32));
    expect(clt_div(x, row), 32, 4 * (32 + 8 + 32));
    expect(clt_exp(x), 32, 4 * (32 + 32));
    expect(clt_clip(x, -1, 1), 4 * 32, 4 * (32 + 32));
    expect(clt_sigmoid(x), 4 * 32, 4 * (32 + 32));
    expect(clt_gelu(x), 32, 4 * (32 + 32)); /* a call of clt_gelu */
    expect(clt_slice(x, 1, 0, 2, 1), 0, 4 * 2 * 8);
    expect(clt_reshape(x, CLT_SHAPE(32)), 0, 4 * 32); /* makes no launch */
    expect(clt_max_pool2d(input(CLT_SHAPE(1, 2, 8, 8)), .kernel = 2), 2 * 16 * 4, 4 * (128 + 32));
    clt_tensor *p = input(CLT_SHAPE(1000)), *g = input(CLT_SHAPE(1000)), *hyper = input(CLT_SHAPE(8));
    clt_tensor *states[2] = {input(CLT_SHAPE(1000)), input(CLT_SHAPE(1000))}, *factor = input((clt_shape){0});
    clt_update_attributes at = {.beta1 = 0.9f};
    /* Parameters and both moments read and written, gradients read, and nine numbers. */
    expect(clt_update(&clt_op_adam, at, p, g, hyper, factor, states, 2, NULL), 14000, 4 * (7 * 1000 + 8 + 1));
    expect(x, 0, 0);
}

/* Ops on flat tensors: what comes before the optimizer, and what it is told. */
static void flat(void **state) {
    (void)state;
    enum { N = 1000, ALL = 4 * N };
    clt_tensor *x = input(CLT_SHAPE(N)), *hyper = input(CLT_SHAPE(CLT_HYPER_COUNT)), *samples = input(CLT_SHAPE(1)), *acc = input(CLT_SHAPE(N));
    expect(clt_accumulate(acc, x, hyper), 2 * N, 3 * ALL + 4 * CLT_HYPER_COUNT);
    expect(clt_narrow(x, samples, CLT_F16), N, ALL + ALL / 2 + 4);
    clt_compress_attributes at = {.k = 10, .ranks = 2};
    static const struct {
        const clt_op *encode, *decode;
        double encoding, decoding; /* operations for each value, and for each word of all ranks */
    } codes[] = {{&clt_op_int8_encode, &clt_op_int8_decode, 6, 2 * N}, {&clt_op_onebit_encode, &clt_op_onebit_decode, 8, 2 * N}};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        clt_tensor *residual = input(CLT_SHAPE(N)), *flat = input(CLT_SHAPE(N));
        clt_tensor *wire = clt_encode(codes[i].encode, at, x, residual, samples);
        double bytes = 4.0 * (double)wire->shape.dims[0];
        expect(wire, codes[i].encoding * N, 3 * ALL + 4 + bytes);
        clt_tensor *wires = clt_input(graph, codes[i].decode->name, CLT_I32, CLT_SHAPE(2 * wire->shape.dims[0]));
        expect(clt_decode(codes[i].decode, at, flat, wires), codes[i].decoding, ALL + 2 * bytes);
    }
}

static clt_tensor *scalar(void) {
    return input(CLT_SHAPE(1));
}

/* Ops that move what they read. */
static void moved(void **state) {
    (void)state;
    enum { X = 4 * 32 };
    clt_tensor *x = input(CLT_SHAPE(4, 8)), *y = input(CLT_SHAPE(4, 3));
    clt_tensor *image = input(CLT_SHAPE(1, 2, 3, 4));
    expect(clt_concat((clt_tensor *[]){x, y}, 2, 1), 0, 2 * (X + 4 * 12));
    expect(clt_pad(x, (int64_t[]){1, 0}, (int64_t[]){0, 2}, 0), 0, X + 4 * 5 * 10);
    expect(clt_expand(input(CLT_SHAPE(1, 8)), CLT_SHAPE(4, 8)), 0, 4 * 8 + X);
    expect(clt_permute(x, (int[]){1, 0}), 0, 2 * X);
    expect(clt_relayout(image, CLT_LAYOUT_CHANNELS_LAST), 0, 2 * 4 * 24);
    clt_slice_attributes slice = {.axis = 1, .start = 0, .stop = 3, .step = 1, .result = x->shape};
    expect(clt_node(NULL, &clt_op_slice_grad, &slice, &y, 1), 0, 4 * 12 + X);
    expect(clt_cache(input(CLT_SHAPE(2, 3, 5, 4)), "cache", 9, clt_input(graph, "places", CLT_I32, CLT_SHAPE(2, 5))), 0, 2 * 4 * 120 + 4 * 10);
    clt_tensor *dropped = clt_dropout(x, 0.5f); /* and the state of the random numbers is read */
    expect(dropped, 32, 2 * X + (double)clt_tensor_elements(dropped->inputs[1]) * 4);
}

/* What the compiler makes of several nodes, and ops of the caller's: whose arithmetic nobody has counted. */
static void made_up(void **state) {
    (void)state;
    clt_tensor *x = input(CLT_SHAPE(4, 8));
    clt_fused fused = {.n_stages = 1, .n_inputs = 1, .shape = x->shape, .dtype = CLT_F32};
    fused.stages[0] = (clt_fused_stage){.form = {.name = "neg", .expression = "-a"}, .dtype = CLT_F32};
    clt_form_read(&fused.stages[0].form, 'a', 0, CLT_READ_BROADCAST, 0);
    expect(clt_node(NULL, &clt_op_fused, &fused, &x, 1), 0, 2 * 4 * 32);
    clt_fused_reduce reduce = {.chain = fused, .reduction = CLT_AXES_SUM, .length = 8, .shape = CLT_SHAPE(4)};
    expect(clt_node(NULL, &clt_op_fused_reduce, &reduce, &x, 1), 0, 4 * (32 + 4));
    clt_user_op op = {.name = "own", .source = "", .n_inputs = 1, .forward = "forward", .backward = {"backward"}};
    clt_tensor *user = clt_apply(&op, &x, NULL, 0);
    expect(user, 0, 2 * 4 * 32);
    expect(clt_node(NULL, &clt_op_user_grad, user->attributes, (clt_tensor *[]){x, user, input(CLT_SHAPE(4, 8))}, 3), 0, 4 * 4 * 32);
}

/* Both halves of a batch norm whose statistics are those of all ranks. */
static void synchronized(void **state) {
    (void)state;
    clt_batch_norm_attributes at = {.eps = 1e-5f, .momentum = 0.1f};
    clt_tensor *x = input(CLT_SHAPE(2, 3, 4, 5)), *mean = input(CLT_SHAPE(3)), *variance = input(CLT_SHAPE(3));
    expect(clt_node(NULL, &clt_op_batch_norm_moments, NULL, &x, 1), 0, 4 * (120 + 2 * 3));
    /* Two ranks' moments and counts, the own share, running values that are read and written, and the statistics. */
    expect(clt_node(NULL, &clt_op_batch_norm_combine, &at,
                    (clt_tensor *[]){input(CLT_SHAPE(12)), input(CLT_SHAPE(2)), input((clt_shape){0}), mean, variance}, 5),
           0, 4 * (12 + 2 + 1 + 2 * 6 + 6));
}

/* The optimizer around its updates. */
static void around_updates(void **state) {
    (void)state;
    enum { N = 512, ALL = 4 * N, HYPER = 4 * CLT_HYPER_COUNT };
    clt_tensor *flat = input(CLT_SHAPE(N)), *part = input(CLT_SHAPE(100)), *other = input(CLT_SHAPE(N)), *hyper = input(CLT_SHAPE(CLT_HYPER_COUNT));
    clt_clip_attributes clip = {.grad_scale = 1, .clip_norm = 1};
    clt_guard_attributes guard = {.clip_norm = 1};
    expect(clt_pack(flat, &part, (int64_t[]){256}, 1), 0, 2 * 4 * 100);
    clt_tensor *parts[] = {part, input(CLT_SHAPE(200))};
    clt_tensor *packed = clt_pack(flat, parts, (int64_t[]){256, 0}, 2);
    expect(packed, 0, 2 * 4 * 300);
    packed->inputs[2]->storage = flat; /* written to its place: nothing is copied */
    expect(packed, 0, 2 * 4 * 100);
    packed->inputs[2]->storage = NULL;
    expect(clt_hyper_scale(hyper, scalar()), 0, 2 * HYPER + 4);
    expect(clt_hyper_unscale(hyper, input(CLT_SHAPE(CLT_LOSS_SCALE_COUNT))), 0, 2 * HYPER + 4 * CLT_LOSS_SCALE_COUNT);
    expect(clt_loss_scale(input(CLT_SHAPE(CLT_LOSS_SCALE_COUNT)), scalar()), 0, 2 * 4 * CLT_LOSS_SCALE_COUNT + 4);
    clt_tensor *squared = clt_node(NULL, &clt_op_norm_squared, &clip, (clt_tensor *[]){flat, hyper}, 2);
    expect(squared, 3 * N, ALL + HYPER + 4);
    expect(clt_node(NULL, &clt_op_clip_scale, &clip, &squared, 1), 0, 4 + 4);
    clt_tensor *record = clt_input(graph, "record", CLT_I32, CLT_SHAPE(CLT_RECORD_COUNT));
    expect(clt_node(NULL, &clt_op_guard, &guard, (clt_tensor *[]){squared, record, hyper}, 3), 0, 4 + 2 * 4 * CLT_RECORD_COUNT + 2 * HYPER + 4);
    expect(clt_clear_if_skipped(flat, squared), 0, 2 * ALL + 4);
    expect(clt_average(flat, other, squared, 0.9f), 3 * N, 3 * ALL + 4);
    expect(clt_metric_add(input(CLT_SHAPE(2)), scalar(), 1), 0, 2 * 4 * 2 + 4);
    clt_tensor *target = clt_input(graph, "target", CLT_I32, CLT_SHAPE(6)), *correct = clt_input(graph, "correct", CLT_I32, CLT_SHAPE(1));
    expect(clt_metric_correct(correct, input(CLT_SHAPE(6, 10)), target), 60, 2 * 4 + 4 * 60 + 4 * 6);
    expect(clt_all_reduce(flat, CLT_REDUCE_SUM), 0, 2 * ALL);
    expect(clt_reduce_scatter(flat, 0, 2), 0, 2 * ALL);
    expect(clt_all_gather(flat, 0, 2), 0, 3 * ALL);
    expect(clt_all_gather_in_place(flat, other, 0, 2), 0, 3 * ALL);
    expect(clt_shard_of(flat, 0, 2), 0, ALL);
}

/* Compression of gradients whose wire is no code of blocks. */
static void factors(void **state) {
    (void)state;
    enum { N = 512, ALL = 4 * N, RANK = 4 };
    clt_tensor *flat = input(CLT_SHAPE(N)), *residual = input(CLT_SHAPE(N)), *factor = input(CLT_SHAPE(N / RANK, RANK));
    clt_compress_attributes topk = {.k = 10, .ranks = 2};
    expect(clt_widen(flat, clt_input(graph, "halves", CLT_F16, CLT_SHAPE(N))), N, ALL + ALL / 2);
    clt_tensor *wire = clt_encode(&clt_op_topk_encode, topk, flat, residual, scalar());
    expect(wire, 5 * N, 3 * ALL + 4 + 4 * (double)wire->shape.dims[0]);
    clt_tensor *wires = clt_input(graph, "wires", CLT_I32, CLT_SHAPE(2 * wire->shape.dims[0]));
    expect(clt_decode(&clt_op_topk_decode, topk, flat, wires), 2 * N, ALL + 8 * (double)wire->shape.dims[0]);
    expect(clt_flat_part(flat, 256, CLT_SHAPE(10, 10)), 0, ALL);
    expect(clt_feedback_add(residual, flat, scalar()), N, 3 * ALL + 4);
    expect(clt_feedback_subtract(flat, residual, 1), 2 * N, 3 * ALL);
    expect(clt_seed_factor(factor, 0), 0, 2 * ALL);
    expect(clt_orthogonalize(factor), 2 * N * (RANK + 1), 2 * ALL);
}

/* What the bench, tuning results, stored times and checkpoints know an op by, and what a roofline is held against. */
static void ops_of_a_text(void **state) {
    (void)state;
    static const struct {
        const char *problem;
        double flops, bytes;
    } told[] = {
        {"matmul 3x5 5x7 -> 3x7", 210, 284},
        {"matmul 5x3^T 7x5^T -> 3x7", 210, 284},
        {"matmul 2x3x5 2x5x7 -> 2x3x7", 420, 568},
        {"matmul 4x2x3x5 1x2x5x7 -> 4x2x3x7", 1680, 1432},
        {"matmul 3x5:bf16 5x7:bf16 -> 3x7:bf16", 210, 142},
        {"conv2d k3 s2 p1 d1 g2 2x6x10x10 4x3x3x3 -> 2x4x5x5", 10800, 6032},
        {"conv2d k3,5 s1,2 p1 d1 g1 64x3x32x30 8x3x3x5 -> 64x8x32x14", 20643840, 1656224},
        {"conv2d k3 s1 p2 d2 g1 2x6x10x10:nhwc 4x6x3x3 -> 2x4x10x10:nhwc", 86400, 8864},
        {"conv2d_grad_input k3 s2 p1 d1 g2 4x3x3x3 2x4x5x5 -> 2x6x10x10", 10800, 6032},
        {"conv2d_grad_weight k3 s2 p1 d1 g2 2x6x10x10 2x4x5x5 -> 4x3x3x3", 10800, 6032},
        {"max_pool2d k2 s2 p0 4x16x12x12 -> 4x16x6x6", 9216, 46080},
        {"max_pool2d k3,2 s2,1 p1,0 4x16x12x12 -> 4x16x6x11", 25344, 53760},
        {"max_pool2d_grad k2 s2 p0 4x16x12x12 4x16x6x6 -> 4x16x12x12", 9216, 82944},
        {"avg_pool2d k3 s2 p1 4x16x12x12 -> 4x16x6x6", 20736, 46080},
        {"avg_pool2d k3 s2 p1 inside 4x16x12x12 -> 4x16x6x6", 20736, 46080},
        {"avg_pool2d_grad k2 s2 p0 4x16x6x6 -> 4x16x12x12", 9216, 46080},
        {"batch_norm 4x16x12x12 16 16 16 16 -> - 2x16", 36864, 37376},
        {"batch_norm_grad 4x16x12x12 2x16 16 4x16x12x12 -> - 2x16", 36864, 74048},
        {"layer_norm n1 40x96 96 96 -> - 2x40", 15360, 16448},
        {"layer_norm n2 40x6x16 6x16 6x16 -> - 2x40", 15360, 16448},
        {"layer_norm_grad_input n1 40x96 2x40 96 40x96 -> 40x96", 34560, 46784},
        {"layer_norm_grad_weight n1 40x96 2x40 40x96 -> 2x96", 15360, 31808},
        {"attention 2x4x17x8 2x2x19x8 2x2x19x8 -> 2x4x17x8 2x4x17x2", 82688, 14656},
        {"attention c 2x4x17x8 2x4x17x8 2x4x17x8 -> 2x4x17x8 2x4x17x2", 36992, 18496},
        {"attention 2x4x1x8 2x2x19x8 2x2x19x8 2x1:i32 -> 2x4x1x8 2x4x1x2", 4864, 5448},
        {"attention_grad_query 2x4x17x8 2x2x19x8 2x2x19x8 2x4x17x2 2x4x17 2x4x17x8 -> 2x4x17x8", 124032, 19552},
        {"attention_grad_key_value 2x4x17x8 2x2x19x8 2x2x19x8 2x4x17x2 2x4x17 2x4x17x8 -> 2x2x19x8 2x2x19x8", 165376, 20064},
        {"reduce r0 a1 64x10 -> 1x10", 640, 2600},
        {"reduce r0 ad 4x16x12x12 -> 16", 9216, 36928},
        {"reduce r1 a2 64x10 -> 64", 640, 2816},
        {"reduce r2 a2 64x10 -> 64", 640, 2816},
        {"permute o0231 4x16x12x10 -> 4x12x10x16", 0, 61440},
        {"embedding 100x16 7:i32 -> 7x16", 0, 924},
        {"embedding_grad 7:i32 7x16 -> 100x16", 0, 6876},
        {"softmax a1 64x10 -> 64x10", 3200, 5120},
        {"softmax_grad a1 64x10 64x10 -> 64x10", 2560, 7680},
        {"log_softmax a1 64x10 -> 64x10", 3200, 5120},
        {"log_softmax_grad a1 64x10 64x10 -> 64x10", 2560, 7680},
        {"cross_entropy 64x10 64:i32 -> 64", 2560, 3072},
        {"cross_entropy_grad 64x10 64:i32 64 -> 64x10", 3840, 5632},
        {"sgd 1000 1000 8 scalar -> 1000", 6000, 12036},
        {"sgd 1000 1000 8 scalar 1000 -> 1000", 6000, 20036},
        {"adam 1000 1000 8 scalar 1000 1000 -> 1000", 14000, 28036},
    };
    for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
        clt_tensor *node = NULL;
        clt_graph *own;
        char key[CLT_TUNE_KEY];
        bool marked;
        assert_ok(clt_graph_create(&own));
        assert_ok(clt_problem_parse(told[i].problem, own, &node, &marked));
        clt_tune_words(node, key);
        assert_string_equal(key, told[i].problem);
        expect(node, told[i].flops, told[i].bytes);
        told_of[place_of(node->op)] = true;
        clt_graph_destroy(own);
    }
}

/* Where a text does not tell an attribute it is what is usual. */
static void words_that_are_left_out(void **state) {
    (void)state;
    static const struct {
        const char *problem, *whole;
    } told[] = {
        {"conv2d 2x6x10x10 4x6x1x1 -> 2x4x10x10", "conv2d k1 s1 p0 d1 g1 2x6x10x10 4x6x1x1 -> 2x4x10x10"},
        {"conv2d k3 2x6x10x10 4x6x3x3 -> 2x4x8x8", "conv2d k3 s1 p0 d1 g1 2x6x10x10 4x6x3x3 -> 2x4x8x8"},
        {"conv2d k3 s2 p1 2x6x10x10 4x6x3x3 -> 2x4x5x5", "conv2d k3 s2 p1 d1 g1 2x6x10x10 4x6x3x3 -> 2x4x5x5"},
        {"max_pool2d k3 4x16x12x12 -> 4x16x10x10", "max_pool2d k3 s1 p0 4x16x12x12 -> 4x16x10x10"},
        {"avg_pool2d 4x16x12x12 -> 4x16x12x12", "avg_pool2d k1 s1 p0 4x16x12x12 -> 4x16x12x12"},
        {"layer_norm 40x96 96 96 -> - 2x40", "layer_norm n1 40x96 96 96 -> - 2x40"},
        {"attention 2x4x17x8 2x4x17x8 2x4x17x8 -> 2x4x17x8 2x4x17x2", "attention 2x4x17x8 2x4x17x8 2x4x17x8 -> 2x4x17x8 2x4x17x2"},
        {"softmax a1 64x10 -> 64x10", "softmax a1 64x10 -> 64x10"},
    };
    for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
        clt_tensor *node = NULL;
        clt_graph *own;
        char key[CLT_TUNE_KEY];
        bool marked;
        assert_ok(clt_graph_create(&own));
        assert_ok(clt_problem_parse(told[i].problem, own, &node, &marked));
        clt_tune_words(node, key);
        assert_string_equal(key, told[i].whole);
        clt_graph_destroy(own);
    }
}

/* Attributes that no text of a problem tells are still those that most people train with. */
static void what_is_usual(void **state) {
    (void)state;
    static const struct {
        const clt_op *op;
        const char *name;
        double usual;
    } told[] = {
        {&clt_op_batch_norm, "eps", 1e-5}, {&clt_op_batch_norm, "momentum", 0.1}, {&clt_op_layer_norm, "eps", 1e-5}, {&clt_op_dropout, "p", 0.5},
        {&clt_op_sgd, "momentum", 0.9},    {&clt_op_adam, "beta1", 0.9},          {&clt_op_adam, "beta2", 0.999},    {&clt_op_adam, "eps", 1e-8},
        {&clt_op_adam, "lr_factor", 1},    {&clt_op_adam, "weight_decay", 0},     {&clt_op_all_reduce, "size", 1},   {&clt_op_clip_scale, "clip_norm", INFINITY},
        {&clt_op_clip_scale, "grad_scale", 1},
    };
    for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
        const clt_attribute *a = told[i].op->schema;
        while (a->name && strcmp(a->name, told[i].name) != 0) a++;
        assert_non_null(a->name);
        if (a->usual != told[i].usual) fail_msg("%s.%s: usual is %g, not %g", told[i].op->name, a->name, a->usual, told[i].usual);
    }
}

static bool has_key(const clt_op *op) {
    for (const clt_attribute *a = op->schema; a && a->name; a++)
        if (a->key) return true;
    return false;
}

/* What an op says in its own way; the rest comes from what it declares, in ways that other ops show. */
static void no_op_is_left_out(void **state) {
    (void)state;
    for (int i = 0; clt_ops[i]; i++) {
        const clt_op *op = clt_ops[i];
        if (op->cost && !pinned[i]) fail_msg("%s counts its cost itself, and no test above says what it is", op->name);
        if (op->tuned && has_key(op) && !told_of[i]) fail_msg("%s is tuned and has words for attributes, and no text of it is told above", op->name);
    }
}

/* An op that is not measured any more would only be slower. */
static void ops_that_are_tuned_stay_so(void **state) {
    (void)state;
    static const clt_op *const tuned[] = {
        &clt_op_matmul, &clt_op_conv2d, &clt_op_conv2d_grad_input, &clt_op_conv2d_grad_weight, &clt_op_max_pool2d, &clt_op_max_pool2d_grad,
        &clt_op_avg_pool2d, &clt_op_avg_pool2d_grad, &clt_op_batch_norm_grad, &clt_op_layer_norm, &clt_op_layer_norm_grad_input,
        &clt_op_layer_norm_grad_weight, &clt_op_attention, &clt_op_attention_grad_query, &clt_op_attention_grad_key_value, &clt_op_reduce,
        &clt_op_permute, &clt_op_embedding, &clt_op_embedding_grad, &clt_op_softmax, &clt_op_softmax_grad, &clt_op_log_softmax,
        &clt_op_log_softmax_grad, &clt_op_cross_entropy, &clt_op_cross_entropy_grad,
    };
    for (size_t i = 0; i < sizeof tuned / sizeof *tuned; i++)
        if (!tuned[i]->tuned) fail_msg("%s is not tuned", tuned[i]->name);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(products, set_up, tear_down),
        cmocka_unit_test_setup_teardown(convolutions, set_up, tear_down),
        cmocka_unit_test_setup_teardown(others, set_up, tear_down),
        cmocka_unit_test_setup_teardown(flat, set_up, tear_down),
        cmocka_unit_test_setup_teardown(moved, set_up, tear_down),
        cmocka_unit_test_setup_teardown(made_up, set_up, tear_down),
        cmocka_unit_test_setup_teardown(synchronized, set_up, tear_down),
        cmocka_unit_test_setup_teardown(around_updates, set_up, tear_down),
        cmocka_unit_test_setup_teardown(factors, set_up, tear_down),
        cmocka_unit_test_setup_teardown(ops_of_a_text, set_up, tear_down),
        cmocka_unit_test(words_that_are_left_out),
        cmocka_unit_test(what_is_usual),
        cmocka_unit_test(no_op_is_left_out),
        cmocka_unit_test(ops_that_are_tuned_stay_so),
    };
    return cmocka_run_group_tests_name("cost", tests, NULL, NULL);
}
