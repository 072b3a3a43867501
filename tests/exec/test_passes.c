/*
 * The passes: what they leave out, and that what is left computes the same as the plan without them on the
 * reference rows.
 */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/random.h"
#include "runtime/exec/plan.h"
#include "runtime/ops/ops.h"

static clt_device *device;

/* ---- running a graph ---- */

/* Targets of a graph that is run with all inputs and variables random, the same in each run. */
typedef struct outcome {
    float *values;
    size_t n;
    clt_plan_facts facts;
} outcome;

static void fill(float *values, int64_t n, clt_random *random) {
    for (int64_t i = 0; i < n; i++) values[i] = (float)(2 * clt_random_uniform(random) - 1);
}

static void feed_all(clt_plan *plan, const clt_graph *graph, clt_random *random) {
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const clt_tensor *node = graph->nodes[i];
        if (node->kind != CLT_NODE_INPUT) continue;
        float *values = malloc((size_t)clt_tensor_elements(node) * sizeof *values);
        assert_non_null(values);
        fill(values, clt_tensor_elements(node), random);
        assert_ok(clt_plan_feed(plan, node, values));
        free(values);
    }
}

static void fill_variables(clt_state_store *store, const clt_graph *graph, clt_random *random) {
    for (size_t i = 0; i < graph->n_variables; i++) {
        int64_t n = clt_shape_elements(&graph->variables[i]->shape);
        if (graph->variables[i]->values) continue;
        float *values = malloc((size_t)n * sizeof *values);
        clt_memory *memory;
        assert_non_null(values);
        fill(values, n, random);
        if (strstr(graph->variables[i]->name, "var")) /* variances are above zero */
            for (int64_t k = 0; k < n; k++) values[k] = 1 + 0.5f * values[k];
        assert_ok(clt_state_store_variable(store, graph->variables[i], &memory));
        assert_ok(clt_memory_write(memory, 0, values, (size_t)n * sizeof *values));
        free(values);
    }
}

static outcome run(const clt_graph *graph, clt_tensor *const *targets, int n, const char *passes, const char *backends) {
    clt_state_store *store;
    clt_plan *plan;
    clt_random random;
    outcome o = {0};
    assert_ok(clt_state_store_create(device, &store));
    assert_ok(clt_plan_compile(&plan, &(clt_plan_options){.device = device, .store = store, .graph = graph, .targets = targets,
                                                          .n_targets = n, .training = true, .backends = backends, .passes = passes}));
    clt_random_init(&random, 7, 0);
    fill_variables(store, graph, &random);
    feed_all(plan, graph, &random);
    assert_ok(clt_plan_run(plan));
    o.facts = clt_plan_get_facts(plan);
    for (int t = 0; t < n; t++) {
        size_t count = (size_t)clt_tensor_elements(targets[t]);
        o.values = realloc(o.values, (o.n + count) * sizeof *o.values);
        assert_non_null(o.values);
        assert_ok(clt_plan_read(plan, targets[t], o.values + o.n, count * sizeof *o.values));
        o.n += count;
    }
    clt_plan_destroy(plan);
    clt_state_store_destroy(store);
    return o;
}

static void assert_near(const outcome *got, const outcome *want, double tolerance) {
    double scale = 1e-3;
    assert_int_equal(got->n, want->n);
    for (size_t i = 0; i < want->n; i++) scale = fmax(scale, fabs((double)want->values[i]));
    for (size_t i = 0; i < want->n; i++) {
        double error = fabs((double)got->values[i] - (double)want->values[i]);
        if (!(error <= tolerance * scale))
            fail_msg("value %zu is %.9g, wanted %.9g", i, (double)got->values[i], (double)want->values[i]);
    }
}

/* All passes against none; and twice, for the same bits. */
static outcome check(const clt_graph *graph, clt_tensor *const *targets, int n, double tolerance) {
    outcome want = run(graph, targets, n, "none", "reference"), got = run(graph, targets, n, "", NULL);
    outcome again = run(graph, targets, n, "", NULL);
    assert_near(&got, &want, tolerance);
    assert_memory_equal(got.values, again.values, got.n * sizeof *got.values);
    free(want.values);
    free(again.values);
    return got;
}

static clt_graph *new_graph(void) {
    clt_graph *graph;
    assert_ok(clt_graph_create(&graph));
    return graph;
}

/* ---- fusion ---- */

static void a_chain_is_one_launch(void **state) {
    (void)state;
    clt_graph *g = new_graph();
    clt_tensor *a = clt_input(g, "a", CLT_F32, CLT_SHAPE(6, 7)), *b = clt_input(g, "b", CLT_F32, CLT_SHAPE(7));
    clt_tensor *c = clt_input(g, "c", CLT_F32, CLT_SHAPE(6, 1));
    clt_tensor *y = clt_relu(clt_mul(clt_add(clt_mul_scalar(a, 2), b), c));
    y = clt_sub(clt_tanh(y), clt_mul(y, clt_fill(g, CLT_SHAPE(6, 7), 0.25f)));
    outcome o = check(g, &y, 1, 1e-6);
    assert_int_equal(o.facts.launches, 1); /* relu too, whose readers both end up in the last */
    free(o.values);
    clt_graph_destroy(g);
}

/* What a chain does not store is rounded as if it had been: fusing changes no bits. */
static void a_chain_of_halves_is_rounded(void **state) {
    static const clt_dtype types[] = {CLT_F16, CLT_BF16};
    (void)state;
    for (int t = 0; t < 2; t++) {
        clt_graph *g = new_graph();
        clt_tensor *a = clt_input(g, "a", CLT_F32, CLT_SHAPE(67, 131)), *b = clt_input(g, "b", CLT_F32, CLT_SHAPE(131));
        clt_tensor *x = clt_cast(a, types[t]), *z = clt_cast(b, types[t]);
        clt_tensor *y = clt_relu(clt_mul(clt_add(clt_mul(x, x), z), x));
        clt_tensor *targets[] = {clt_cast(y, CLT_F32), clt_cast(clt_sum(clt_add(y, z), CLT_AXES(1)), CLT_F32)};
        outcome plain = run(g, targets, 2, "none", "reference"), fused = run(g, targets, 2, "fuse", "reference");
        assert_memory_equal(fused.values, plain.values, plain.n * sizeof *plain.values);
        assert_true(fused.facts.launches < plain.facts.launches);
        free(plain.values);
        free(fused.values);
        clt_graph_destroy(g);
    }
}

/* ---- 16 bits ---- */

/* What no row serves so is the value of f32, rounded: bit by bit that of a graph which says so. */
static void halves_are_computed_in_f32_and_rounded(void **state) {
    static const clt_dtype types[] = {CLT_F16, CLT_BF16};
    (void)state;
    enum { USUAL, REFERENCE, GPU, WAYS, N = 7 };
    for (int t = 0; t < 2; t++)
        for (int way = 0; way < WAYS; way++) {
            clt_device_override(device, &(clt_settings){.device_class = way == GPU ? "gpu" : ""});
            clt_graph *g = new_graph();
            clt_tensor *image = clt_input(g, "image", CLT_F32, CLT_SHAPE(3, 4, 9, 10)), *filter = clt_input(g, "filter", CLT_F32, CLT_SHAPE(5, 4, 3, 3));
            clt_tensor *q = clt_input(g, "q", CLT_F32, CLT_SHAPE(2, 3, 7, 8)), *rows = clt_input(g, "rows", CLT_F32, CLT_SHAPE(21, 33));
            clt_tensor *columns = clt_input(g, "columns", CLT_F32, CLT_SHAPE(33, 19)), *lines = clt_input(g, "lines", CLT_F32, CLT_SHAPE(5, 3001));
            clt_tensor *half[6] = {image, filter, q, rows, columns, lines}, *wide[6], *targets[2 * N];
            for (int i = 0; i < 6; i++) half[i] = clt_cast(half[i], types[t]), wide[i] = clt_cast(half[i], CLT_F32);
            clt_tensor **sets[] = {half, wide};
            for (int s = 0; s < 2; s++) {
                clt_tensor **x = sets[s], **y = &targets[N * s];
                y[0] = clt_conv2d_op(x[0], x[1], NULL, (clt_conv2d_options){.padding = 1});
                y[1] = clt_max_pool2d(x[0], .kernel = 2);
                y[2] = clt_avg_pool2d(x[0], .kernel = 3, .stride = 2);
                y[3] = clt_attention(x[2], x[2], x[2], .causal = true);
                y[4] = clt_matmul(x[3], x[4]);
                y[5] = clt_softmax(x[3], 1);
                y[6] = clt_matmul_with(x[5], x[5], (clt_matmul_options){.transpose_b = true}); /* a long sum, in parts */
                for (int i = 0; i < N; i++) {
                    if (!s) assert_int_equal(y[i]->dtype, types[t]);
                    y[i] = clt_cast(clt_cast(y[i], types[t]), CLT_F32);
                }
            }
            outcome o = run(g, targets, 2 * N, way == REFERENCE ? "none" : "", way == REFERENCE ? "reference" : NULL);
            size_t at[2 * N + 1] = {0};
            for (int i = 0; i < 2 * N; i++) at[i + 1] = at[i] + (size_t)clt_tensor_elements(targets[i]);
            for (int i = 0; i < N; i++)
                if (memcmp(o.values + at[i], o.values + at[i + N], (at[i + 1] - at[i]) * sizeof *o.values)) fail_msg("%s: target %d has other bits", clt_dtype_name(types[t]), i);
            free(o.values);
            clt_graph_destroy(g);
        }
    clt_device_override(device, &(clt_settings){.device_class = ""});
}

/* Contractions for GPUs take and give 16 bits: nothing is widened for them. */
static void gpus_contract_halves(void **state) {
    static const clt_dtype types[] = {CLT_F16, CLT_BF16};
    (void)state;
    for (int t = 0; t < 2; t++) {
        clt_graph *g = new_graph();
        clt_tensor *a = clt_cast(clt_input(g, "a", CLT_F32, CLT_SHAPE(32, 64)), types[t]), *b = clt_cast(clt_input(g, "b", CLT_F32, CLT_SHAPE(64, 32)), types[t]);
        clt_tensor *y = clt_cast(clt_matmul(clt_matmul(a, b), a), CLT_F32);
        clt_device_override(device, &(clt_settings){.device_class = "gpu"});
        outcome o = run(g, &y, 1, "", NULL);
        clt_device_override(device, &(clt_settings){.device_class = ""});
        assert_int_equal(o.facts.launches, 4); /* two products, the last of which casts its result, and the casts of their operands */
        free(o.values);
        clt_graph_destroy(g);
    }
}

static void what_is_read_stays(void **state) {
    (void)state;
    clt_graph *g = new_graph();
    clt_tensor *a = clt_input(g, "a", CLT_F32, CLT_SHAPE(5, 9));
    clt_tensor *targets[3] = {clt_exp(a)};
    targets[1] = clt_add_scalar(targets[0], 1);
    targets[2] = clt_neg(targets[1]);
    outcome o = check(g, targets, 3, 1e-6);
    assert_int_equal(o.facts.launches, 3);
    free(o.values);
    clt_graph_destroy(g);
}

/* A value that is stretched, or read in another order, is no stage of what reads it. */
static void stretched_values_are_not_fused(void **state) {
    (void)state;
    clt_graph *g = new_graph();
    clt_tensor *a = clt_input(g, "a", CLT_F32, CLT_SHAPE(5, 9)), *r = clt_input(g, "r", CLT_F32, CLT_SHAPE(9));
    clt_tensor *y = clt_mul(clt_neg(a), clt_exp(r));
    outcome o = check(g, &y, 1, 1e-6);
    assert_int_equal(o.facts.launches, 2);
    free(o.values);
    clt_graph_destroy(g);
}

/* More stages and operands than one kernel takes. */
static void long_chains_are_cut(void **state) {
    (void)state;
    clt_graph *g = new_graph();
    clt_tensor *y = clt_input(g, "x", CLT_F32, CLT_SHAPE(3, 11)), *inputs[12];
    for (int i = 0; i < 12; i++) inputs[i] = clt_input(g, (char[]){(char)('a' + i), 0}, CLT_F32, CLT_SHAPE(3, 11));
    for (int i = 0; i < 40; i++) y = clt_mul_scalar(clt_add(y, inputs[i % 12]), 0.5f);
    outcome o = check(g, &y, 1, 1e-6);
    assert_in_range(o.facts.launches, 2, 20);
    free(o.values);
    clt_graph_destroy(g);
}

/* Random graphs of pointwise ops with broadcasting, each node read by several. */
static void random_graphs(void **state) {
    (void)state;
    for (uint64_t round = 0; round < 8; round++) {
        clt_graph *g = new_graph();
        clt_random random;
        clt_random_init(&random, 5, round);
        clt_tensor *all[40] = {clt_input(g, "a", CLT_F32, CLT_SHAPE(4, 6, 5)), clt_input(g, "b", CLT_F32, CLT_SHAPE(6, 1)),
                               clt_input(g, "c", CLT_F32, CLT_SHAPE(4, 1, 5)), clt_input(g, "d", CLT_F32, CLT_SHAPE(1))};
        int n = 4;
        for (; n < 24; n++) {
            clt_tensor *x = all[clt_random_below(&random, (uint64_t)n)], *y = all[clt_random_below(&random, (uint64_t)n)];
            switch (clt_random_below(&random, 6)) {
            case 0: all[n] = clt_add(x, y); break;
            case 1: all[n] = clt_mul(x, y); break;
            case 2: all[n] = clt_tanh(x); break;
            case 3: all[n] = clt_sub(clt_relu(x), y); break;
            case 4: all[n] = clt_sigmoid(clt_add_scalar(x, 0.5f)); break;
            default: all[n] = clt_mean(x, (clt_reduce_options){.axes = {-1}, .n_axes = 1, .keep_dims = true});
            }
        }
        clt_tensor *targets[2] = {all[n - 1], all[n - 5]};
        outcome o = check(g, targets, 2, 1e-5);
        free(o.values);
        clt_graph_destroy(g);
    }
}

/* What is reduced is computed on the way: over all, over the last dimensions, sums, means, maxima; with stretched
 * operands. Over others it is not. */
static void reductions_compute_what_they_reduce(void **state) {
    (void)state;
    clt_graph *g = new_graph();
    clt_tensor *a = clt_input(g, "a", CLT_F32, CLT_SHAPE(6, 5, 9)), *b = clt_input(g, "b", CLT_F32, CLT_SHAPE(5, 1));
    clt_tensor *targets[5] = {
        clt_mse_loss(a, clt_input(g, "t", CLT_F32, CLT_SHAPE(6, 5, 9))),
        clt_sum(clt_mul(a, b), (clt_reduce_options){.axes = {1, 2}, .n_axes = 2}),
        clt_max(clt_sub(clt_exp(a), b), (clt_reduce_options){.axes = {2}, .n_axes = 1, .keep_dims = true}),
        clt_mean(clt_tanh(a), (clt_reduce_options){.axes = {-1}, .n_axes = 1}),
        clt_sum(clt_neg(a), (clt_reduce_options){.axes = {0}, .n_axes = 1}),
    };
    outcome o = check(g, targets, 5, 1e-6);
    assert_int_equal(o.facts.launches, 6);
    free(o.values);
    clt_graph_destroy(g);
}

/* ---- epilogues ---- */

/* A channel's bias, a scalar, an operand of the result's own shape: all that a contraction can do to its results. */
static clt_tensor *finished(clt_tensor *y, int channel_dims) {
    clt_graph *g = y->graph;
    clt_shape bias = {.rank = channel_dims, .dims = {1, 1, 1, 1}};
    bias.dims[0] = y->shape.dims[y->op == &clt_op_matmul ? y->shape.rank - 1 : 1];
    y = clt_relu(clt_add(y, clt_input(g, "bias", CLT_F32, bias)));
    y = clt_mul(y, clt_input(g, "same", CLT_F32, y->shape));
    return clt_sub(clt_mul_scalar(y, 0.75f), clt_input(g, "scalar", CLT_F32, CLT_SHAPE(1)));
}

/* m, n, k, batch; products whose sum is split are added up by a launch more, which finishes them. */
static void products_finish_their_results(void **state) {
    (void)state;
    static const struct { int64_t m, n, k, batch; size_t launches; } cases[] = {
        {48, 36, 40, 1, 1}, {47, 35, 41, 1, 1}, {20, 24, 2600, 1, 2}, {19, 23, 40, 3, 1}, {11, 9, 1200, 2, 2},
    };
    clt_device_override(device, &(clt_settings){.device_class = "gpu"});
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        clt_graph *g = new_graph();
        clt_tensor *a = clt_input(g, "a", CLT_F32, CLT_SHAPE(cases[i].batch, cases[i].m, cases[i].k));
        clt_tensor *b = clt_input(g, "b", CLT_F32, CLT_SHAPE(cases[i].batch, cases[i].k, cases[i].n));
        clt_tensor *y = finished(clt_matmul(a, b), 1);
        outcome o = check(g, &y, 1, 1e-5);
        assert_int_equal(o.facts.launches, cases[i].launches);
        free(o.values);
        clt_graph_destroy(g);
    }
    clt_device_override(device, &(clt_settings){.device_class = ""});
}

/* Bit by bit as in launches of their own, of which there are more. */
static void assert_finished(clt_graph *g, clt_tensor **targets, int n) {
    for (int k = 0; k < n; k++) targets[k] = clt_cast(targets[k], CLT_F32);
    outcome plain = run(g, targets, n, "none", NULL), fused = run(g, targets, n, "fuse", NULL);
    assert_memory_equal(fused.values, plain.values, plain.n * sizeof *plain.values);
    assert_true(fused.facts.launches < plain.facts.launches);
    free(plain.values);
    free(fused.values);
    clt_graph_destroy(g);
}

static clt_tensor *half_input(clt_graph *g, const char *name, clt_dtype type, clt_shape shape) {
    return clt_cast(clt_input(g, name, CLT_F32, shape), type);
}

/* Of products in 16 bits, whose epilogues read and give any type. */
static void finish_products(clt_dtype type, int64_t m, int64_t k) {
    const clt_matmul_options turned = {.transpose_b = true}, both = {.transpose_a = true, .transpose_b = true};
    enum { N = 4 };
    clt_graph *g = new_graph();
    clt_tensor *a = half_input(g, "a", type, CLT_SHAPE(m, k)), *b = half_input(g, "b", type, CLT_SHAPE(k, 67));
    clt_tensor *c = half_input(g, "c", type, CLT_SHAPE(67, k)), *bias = half_input(g, "bias", type, CLT_SHAPE(67));
    clt_tensor *like = clt_input(g, "like", CLT_F32, CLT_SHAPE(m, 67)), *half = clt_cast(clt_fill(g, CLT_SHAPE(67, m), 0.5f), type);
    clt_tensor *targets[N] = {clt_matmul(a, b), clt_gelu(clt_add(clt_matmul_with(a, c, turned), bias)), clt_add(clt_cast(clt_matmul(a, b), CLT_F32), like),
                              clt_relu(clt_mul(clt_matmul_with(b, a, both), half))};
    assert_finished(g, targets, N);
}

static void finish_convolution(clt_dtype type, int64_t channels, int stride) {
    clt_graph *g = new_graph();
    clt_tensor *x = half_input(g, "x", type, CLT_SHAPE(2, channels, 9, 7)), *w = half_input(g, "w", type, CLT_SHAPE(12, channels, 3, 3));
    clt_tensor *bias = half_input(g, "bias", type, CLT_SHAPE(12, 1, 1)), *y = clt_conv2d_op(x, w, NULL, (clt_conv2d_options){.kernel = 3, .padding = 1, .stride = stride});
    clt_tensor *targets[] = {clt_relu(clt_add(y, bias))};
    assert_finished(g, targets, 1);
}

static void results_in_16_bits_are_finished(void **state) {
    static const clt_dtype types[] = {CLT_F16, CLT_BF16};
    static const int64_t rows[] = {1, 3, 37, 300};
    (void)state;
    for (int t = 0; t < 2; t++) {
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) finish_products(types[t], rows[i], 129);
        clt_device_override(device, &(clt_settings){.device_class = "gpu"});
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) finish_products(types[t], rows[i], 129);
        finish_products(types[t], 20, 2600); /* whose sum is split */
        finish_convolution(types[t], 8, 1);
        finish_convolution(types[t], 96, 2);
        clt_device_override(device, &(clt_settings){.device_class = ""});
    }
}

static void convolutions_finish_their_results(void **state) {
    (void)state;
    static const struct { int64_t images, channels, height, width; int results, stride, groups; size_t launches; } cases[] = {
        {2, 8, 9, 7, 12, 1, 1, 1}, {2, 8, 8, 8, 12, 2, 1, 1}, {3, 6, 10, 9, 10, 2, 2, 1}, {1, 96, 6, 6, 8, 1, 1, 2},
    };
    clt_device_override(device, &(clt_settings){.device_class = "gpu"});
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        clt_graph *g = new_graph();
        clt_tensor *x = clt_input(g, "x", CLT_F32, CLT_SHAPE(cases[i].images, cases[i].channels, cases[i].height, cases[i].width));
        clt_tensor *y = finished(clt_conv2d(x, "conv", cases[i].results, .kernel = 3, .padding = 1, .stride = cases[i].stride,
                                            .groups = cases[i].groups, .no_bias = true), 3);
        outcome o = check(g, &y, 1, 1e-5);
        assert_int_equal(o.facts.launches, cases[i].launches);
        free(o.values);
        clt_graph_destroy(g);
    }
    clt_device_override(device, &(clt_settings){.device_class = ""});
}

/* ---- common subexpressions ---- */

static void the_same_is_computed_once(void **state) {
    (void)state;
    clt_graph *g = new_graph();
    clt_tensor *a = clt_input(g, "a", CLT_F32, CLT_SHAPE(8, 8));
    clt_tensor *y = clt_add(clt_softmax(clt_exp(a), 1), clt_softmax(clt_exp(a), 1));
    clt_tensor *z = clt_add(clt_softmax(clt_exp(a), 1), clt_softmax(clt_exp(a), 0));
    outcome once = check(g, &y, 1, 1e-6), twice = check(g, &z, 1, 1e-6);
    assert_int_equal(once.facts.launches, 3); /* exp, softmax, the sum */
    assert_true(twice.facts.launches > once.facts.launches);
    free(once.values);
    free(twice.values);
    clt_graph_destroy(g);
}

/* ---- constants ---- */

static void constants_are_computed_once(void **state) {
    (void)state;
    clt_graph *g = new_graph();
    clt_tensor *a = clt_input(g, "a", CLT_F32, CLT_SHAPE(4, 3));
    clt_tensor *c = clt_softmax(clt_expand(clt_mul_scalar(clt_fill(g, CLT_SHAPE(1), 2), 3), CLT_SHAPE(4, 3)), 1);
    clt_tensor *targets[2] = {clt_softmax(clt_mul(a, c), 1), c};
    outcome o = check(g, targets, 2, 1e-6);
    assert_int_equal(o.facts.launches, 2); /* the product and its softmax */
    free(o.values);
    clt_graph_destroy(g);
}

/* What is made of the user's constants; but nothing that is larger than they are. */
static void constants_of_the_user_are_computed_once(void **state) {
    (void)state;
    clt_graph *g = new_graph();
    float values[12];
    for (int i = 0; i < 12; i++) values[i] = 0.25f * (float)i - 1;
    clt_array array = {CLT_F32, CLT_SHAPE(4, 3), values};
    clt_tensor *a = clt_input(g, "a", CLT_F32, CLT_SHAPE(4, 3)), *c = clt_constant(g, "c", &array);
    clt_tensor *s = clt_softmax(c, 1), *row = clt_slice(c, 0, 1, 2, 1);
    clt_tensor *targets[2] = {clt_softmax(clt_mul(a, s), 1), s};
    outcome o = check(g, targets, 2, 1e-6);
    assert_int_equal(o.facts.launches, 2); /* the product and its softmax */
    for (int r = 0; r < 4; r++) {
        double sum = exp(0) + exp(-0.25) + exp(-0.5);
        for (int k = 0; k < 3; k++) assert_float_equal(o.values[12 + 3 * r + k], exp(0.25 * k - 0.5) / sum, 1e-6);
    }
    free(o.values);
    clt_tensor *doubled = c; /* each is in the next twice */
    for (int i = 0; i < 60; i++) doubled = clt_mul_scalar(clt_add(doubled, doubled), 0.5f);
    o = check(g, &doubled, 1, 1e-6);
    assert_int_equal(o.facts.launches, 0);
    assert_float_equal(o.values[11], values[11], 1e-6);
    free(o.values);
    clt_tensor *large = clt_softmax(clt_expand(row, CLT_SHAPE(64, 3)), 0);
    clt_tensor *sum = clt_add(clt_sum(a, CLT_ALL_AXES), clt_sum(large, CLT_ALL_AXES));
    o = check(g, &sum, 1, 1e-5);
    assert_true(o.facts.launches >= 3); /* the expansion is made each time */
    free(o.values);
    clt_graph_destroy(g);
}

/* A constant that several read, stretched, is a part of each. */
static void constants_go_into_what_reads_them(void **state) {
    (void)state;
    clt_graph *g = new_graph();
    clt_tensor *a = clt_input(g, "a", CLT_F32, CLT_SHAPE(4, 3)), *c = clt_fill(g, CLT_SHAPE(1, 1, 1), 0.5f);
    clt_tensor *targets[2] = {clt_mul(a, clt_reshape(c, CLT_SHAPE(1))), clt_sub(clt_reshape(c, CLT_SHAPE(1, 1)), a)};
    outcome o = check(g, targets, 2, 1e-6);
    assert_int_equal(o.facts.launches, 2);
    free(o.values);
    clt_graph_destroy(g);
}

/* ---- in place ---- */

static void results_take_their_operands_place(void **state) {
    (void)state;
    enum { BYTES = 32 * 64 * sizeof(float) };
    clt_graph *g = new_graph();
    clt_tensor *a = clt_input(g, "a", CLT_F32, CLT_SHAPE(32, 64));
    clt_tensor *once = clt_softmax(clt_tanh(clt_softmax(a, 1)), 1), *b = clt_softmax(a, 1);
    clt_tensor *both = clt_add(clt_softmax(clt_tanh(b), 1), b);
    outcome o = run(g, &once, 1, "", NULL), p = run(g, &both, 1, "", NULL);
    assert_int_equal(o.facts.sum_bytes, 2 * BYTES); /* tanh is where the first softmax was */
    assert_true(p.facts.sum_bytes >= 3 * BYTES);    /* which is needed once more here */
    free(o.values);
    free(p.values);
    clt_graph_destroy(g);
}

/* ---- networks, with their gradients ---- */

static outcome check_gradients(clt_graph *g, clt_tensor *loss, double tolerance) {
    clt_tensor *wrt[32], *targets[33] = {loss}, *grads[32];
    int n = 0, n_targets = 1;
    for (size_t i = 0; i < g->n_nodes; i++)
        if (g->nodes[i]->kind == CLT_NODE_VARIABLE && g->nodes[i]->variable->trained) wrt[n++] = g->nodes[i];
    assert_ok(clt_gradients(loss, clt_fill(g, loss->shape, 1), wrt, n, grads));
    for (int i = 0; i < n; i++)
        if (grads[i]) targets[n_targets++] = grads[i];
    return check(g, targets, n_targets, tolerance);
}

static clt_tensor *weighted_sum(clt_tensor *y) {
    return clt_mean(clt_mul(y, clt_input(y->graph, "weights", CLT_F32, y->shape)), CLT_ALL_AXES);
}

static void convolutions(void **state) {
    (void)state;
    static const int sizes[][4] = {{2, 3, 8, 8}, {3, 16, 7, 5}, {1, 33, 12, 9}, {2, 20, 4, 4}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        clt_graph *g = new_graph();
        clt_tensor *x = clt_input(g, "x", CLT_F32, CLT_SHAPE(sizes[i][0], sizes[i][1], sizes[i][2], sizes[i][3]));
        clt_tensor *h = clt_relu(clt_conv2d(x, "conv1", 24, .kernel = 3, .padding = 1));
        h = clt_max_pool2d(h, .kernel = 3, .stride = 2, .padding = 1);
        h = clt_tanh(clt_conv2d(h, "conv2", 17, .kernel = 3, .padding = 1));
        h = clt_avg_pool2d(h, .kernel = 2, .stride = 1, .padding = 1);
        h = clt_linear(clt_flatten(h), "fc", 5);
        outcome o = check_gradients(g, weighted_sum(h), 1e-4);
        free(o.values);
        clt_graph_destroy(g);
    }
}

/* Batch norms, a shortcut that two read, strides, and a layer that only the contiguous order serves. */
static void residual_networks(void **state) {
    (void)state;
    static const int sizes[][4] = {{4, 8, 8, 8}, {3, 19, 6, 10}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        int channels = 2 * sizes[i][1];
        clt_graph *g = new_graph();
        clt_tensor *x = clt_input(g, "x", CLT_F32, CLT_SHAPE(sizes[i][0], sizes[i][1], sizes[i][2], sizes[i][3]));
        clt_tensor *a = clt_relu(clt_batch_norm(clt_conv2d(x, "conv1", channels, .kernel = 3, .padding = 1, .no_bias = true), "bn1"));
        clt_tensor *b = clt_relu(clt_batch_norm(clt_conv2d(a, "conv2", channels, .kernel = 3, .padding = 1, .stride = 2), "bn2"));
        clt_tensor *c = clt_batch_norm(clt_conv2d(b, "conv3", channels, .kernel = 3, .padding = 1), "bn3");
        clt_tensor *d = clt_batch_norm(clt_conv2d(a, "short", channels, .kernel = 1, .stride = 2), "bn4");
        clt_tensor *y = clt_relu(clt_add(c, d));
        clt_tensor *e = clt_concat((clt_tensor *[]){y, b}, 2, 1);
        y = clt_mul(clt_conv2d(e, "conv4", 6, .kernel = 1), clt_softmax(clt_conv2d(y, "conv5", 6, .kernel = 1), 1));
        outcome o = check_gradients(g, weighted_sum(clt_global_avg_pool2d(y)), 5e-4);
        free(o.values);
        clt_graph_destroy(g);
    }
}

static void perceptrons(void **state) {
    (void)state;
    clt_graph *g = new_graph();
    clt_tensor *x = clt_input(g, "x", CLT_F32, CLT_SHAPE(20, 33));
    clt_tensor *h = clt_gelu(clt_layer_norm(clt_linear(x, "fc1", 40), "ln", 1));
    h = clt_add(h, clt_relu(clt_linear(h, "fc2", 40)));
    h = clt_batch_norm(clt_linear(h, "fc3", 12), "bn");
    outcome o = check_gradients(g, clt_mse_loss(h, clt_input(g, "target", CLT_F32, h->shape)), 1e-4);
    free(o.values);
    clt_graph_destroy(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chain_is_one_launch),
        cmocka_unit_test(a_chain_of_halves_is_rounded),
        cmocka_unit_test(halves_are_computed_in_f32_and_rounded),
        cmocka_unit_test(gpus_contract_halves),
        cmocka_unit_test(what_is_read_stays),
        cmocka_unit_test(stretched_values_are_not_fused),
        cmocka_unit_test(long_chains_are_cut),
        cmocka_unit_test(random_graphs),
        cmocka_unit_test(reductions_compute_what_they_reduce),
        cmocka_unit_test(products_finish_their_results),
        cmocka_unit_test(results_in_16_bits_are_finished),
        cmocka_unit_test(convolutions_finish_their_results),
        cmocka_unit_test(the_same_is_computed_once),
        cmocka_unit_test(constants_are_computed_once),
        cmocka_unit_test(constants_of_the_user_are_computed_once),
        cmocka_unit_test(constants_go_into_what_reads_them),
        cmocka_unit_test(results_take_their_operands_place),
        cmocka_unit_test(convolutions),
        cmocka_unit_test(residual_networks),
        cmocka_unit_test(perceptrons),
    };
    if (clt_device_open(&device, NULL) < 0) return 1;
    int failed = cmocka_run_group_tests_name("passes", tests, NULL, NULL);
    clt_device_close(device);
    return failed;
}
