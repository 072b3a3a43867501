#define _POSIX_C_SOURCE 200809L /* setenv */
/*
 * The native backend against the reference rows, over random shapes, and its own results again bit
 * by bit, with scratch memory that held NaN.
 */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/native/cpu/cpu.h"
#include "runtime/base/random.h"
#include "runtime/exec/plan.h"

static clt_device *device;

/* One op on two operands. */
typedef struct op_test {
    const clt_op *op;
    clt_shape a, b;
    clt_conv2d_attributes conv2d;
    clt_matmul_attributes matmul;
    const float *a_values, *b_values; /* NULL: random */
} op_test;

typedef struct built {
    clt_graph *graph;
    clt_tensor *inputs[2], *y;
} built;

static built build(const op_test *test) {
    built g;
    const void *attributes = test->op == &clt_op_matmul ? (const void *)&test->matmul : &test->conv2d;
    assert_ok(clt_graph_create(&g.graph));
    g.inputs[0] = clt_input(g.graph, "a", CLT_F32, test->a);
    g.inputs[1] = clt_input(g.graph, "b", CLT_F32, test->b);
    g.y = clt_node(NULL, test->op, attributes, g.inputs, 2);
    assert_ok(clt_graph_status(g.graph));
    return g;
}

/* ---- running ---- */

static void feed(clt_plan *plan, const clt_tensor *input, const float *values, clt_random *random) {
    int64_t n = clt_tensor_elements(input);
    float *drawn = malloc((size_t)n * sizeof *drawn);
    assert_non_null(drawn);
    for (int64_t i = 0; i < n; i++) drawn[i] = (float)(2 * clt_random_uniform(random) - 1);
    assert_ok(clt_plan_feed(plan, input, values ? values : drawn));
    free(drawn);
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

static clt_status compile(built *g, clt_store *store, clt_plan **plan) {
    return clt_plan_compile(plan, &(clt_plan_options){.device = device,
                                                      .store = store,
                                                      .graph = g->graph,
                                                      .targets = &g->y,
                                                      .n_targets = 1,
                                                      .training = true});
}

/* What the backend gives; *planned (may be NULL) is the plan's memory. */
static float *run(const op_test *test, const char *backend, uint64_t *planned) {
    built g = build(test);
    clt_store *store;
    clt_plan *plan;
    clt_random random;
    setenv("CLTRAIN_BACKENDS", backend, 1);
    assert_ok(clt_store_create(device, &store));
    assert_ok(compile(&g, store, &plan));
    unsetenv("CLTRAIN_BACKENDS");
    clt_random_init(&random, 7, 0);
    feed(plan, g.inputs[0], test->a_values, &random);
    feed(plan, g.inputs[1], test->b_values, &random);
    assert_ok(clt_plan_run(plan, CLT_PLAN_ALL));
    size_t bytes = (size_t)clt_tensor_elements(g.y) * sizeof(float);
    float *y = malloc(bytes);
    assert_non_null(y);
    assert_ok(clt_plan_read(plan, g.y, y, bytes));
    if (planned) *planned = clt_plan_get_facts(plan).planned_bytes;
    clt_plan_destroy(plan);
    clt_store_destroy(store);
    clt_graph_destroy(g.graph);
    return y;
}

static int64_t result_elements(const op_test *test) {
    built g = build(test);
    int64_t n = clt_tensor_elements(g.y);
    clt_graph_destroy(g.graph);
    return n;
}

static void describe(const op_test *test) {
    char a[CLT_SHAPE_TEXT], b[CLT_SHAPE_TEXT];
    const clt_conv2d_attributes *at = &test->conv2d;
    print_error("  %s of %s and %s", test->op->name, clt_shape_text(&test->a, a),
                clt_shape_text(&test->b, b));
    if (test->op == &clt_op_matmul)
        print_error(", transposed %d %d\n", test->matmul.transpose_a, test->matmul.transpose_b);
    else
        print_error(", stride %d %d, padding %d %d, dilation %d %d, groups %d\n", at->stride_h,
                    at->stride_w, at->padding_h, at->padding_w, at->dilation_h, at->dilation_w,
                    at->groups);
}

/* Relative error in L2 against the reference, and the same bits again in memory that held NaN. */
static void check(const op_test *test) {
    uint64_t planned;
    int64_t n = result_elements(test);
    float *want = run(test, "reference", NULL), *got = run(test, "native", &planned);
    spoil_pool(planned);
    float *again = run(test, "native", NULL);
    double error = 0, square = 0;
    for (int64_t i = 0; i < n; i++) {
        error += ((double)got[i] - want[i]) * ((double)got[i] - want[i]);
        square += (double)want[i] * want[i];
    }
    if (!(error <= 1e-10 * square)) {
        describe(test);
        fail_msg("relative error %.3g", sqrt(error / square));
    }
    if (memcmp(got, again, (size_t)n * sizeof *got)) {
        describe(test);
        fail_msg("not the same bits again");
    }
    free(want);
    free(got);
    free(again);
}

/* ---- matrix product ---- */

static op_test matmul(int64_t m, int64_t n, int64_t k, bool transpose_a, bool transpose_b) {
    return (op_test){.op = &clt_op_matmul,
                     .a = transpose_a ? CLT_SHAPE(k, m) : CLT_SHAPE(m, k),
                     .b = transpose_b ? CLT_SHAPE(n, k) : CLT_SHAPE(k, n),
                     .matmul = {transpose_a, transpose_b}};
}

static void matmul_sizes(void **state) {
    (void)state;
    static const int64_t sizes[][3] = {
        {1, 1, 9000},    {1, 10000, 1},  {10000, 1, 1}, {6, 16, 256},   {7, 17, 257},   {5, 15, 255},
        {12, 32, 512},   {100, 10, 784}, {33, 129, 70}, {128, 128, 7},  {150, 40, 520}, {64, 3, 3000},
        {300, 300, 300}, {3, 500, 1030}, {2, 2, 8000},  {500, 270, 33},
    };
    for (size_t i = 0; i < CLT_COUNT_OF(sizes); i++)
        for (int t = 0; t < 4; t++) {
            op_test test = matmul(sizes[i][0], sizes[i][1], sizes[i][2], t & 1, t & 2);
            check(&test);
        }
}

static int64_t between(clt_random *random, int64_t low, int64_t high) {
    return low + (int64_t)clt_random_below(random, (uint64_t)(high - low + 1));
}

/* Stretches some of the dimensions of a batch, and leaves out leading ones. */
static clt_shape batched(clt_random *random, const int64_t *batch, int rank, int64_t rows,
                         int64_t columns) {
    clt_shape shape = {0};
    for (int d = (int)between(random, 0, 1) ? (int)between(random, 0, rank) : 0; d < rank; d++)
        shape.dims[shape.rank++] = between(random, 0, 3) ? batch[d] : 1;
    shape.dims[shape.rank++] = rows;
    shape.dims[shape.rank++] = columns;
    return shape;
}

static void matmul_batches(void **state) {
    (void)state;
    clt_random random;
    clt_random_init(&random, 1, 0);
    for (int i = 0; i < 60; i++) {
        int64_t batch[3], m = between(&random, 1, 40), n = between(&random, 1, 40), k = 1;
        int rank = (int)between(&random, 1, 3);
        for (int d = 0; d < rank; d++) batch[d] = between(&random, 1, 4);
        while (m * n * k < 8192) k += between(&random, 1, 300);
        bool ta = between(&random, 0, 1), tb = between(&random, 0, 1);
        op_test test = {.op = &clt_op_matmul, .matmul = {ta, tb}};
        test.a = ta ? batched(&random, batch, rank, k, m) : batched(&random, batch, rank, m, k);
        test.b = tb ? batched(&random, batch, rank, n, k) : batched(&random, batch, rank, k, n);
        check(&test);
    }
}

/* Batches of which one operand or both are stretched, large enough that b is put into panels. */
static void matmul_batches_in_panels(void **state) {
    (void)state;
    for (int t = 0; t < 4; t++) {
        op_test test = {.op = &clt_op_matmul, .matmul = {t & 1, false}};
        test.a = t & 1 ? CLT_SHAPE(t & 2 ? 3 : 1, 2, 30, 440) : CLT_SHAPE(t & 2 ? 3 : 1, 2, 440, 30);
        test.b = CLT_SHAPE(3, t & 2 ? 2 : 1, 30, 259);
        check(&test);
    }
}

/* ---- convolution ---- */

/* What `convolution` makes a test of. */
typedef struct window {
    int64_t n, c, h, w, o; /* c and o: of each group */
    int kh, kw, sh, sw, ph, pw, dh, dw, groups;
} window;

static int64_t result_size(int64_t size, int kernel, int stride, int padding, int dilation) {
    int64_t span = size + 2 * padding - dilation * (kernel - 1) - 1;
    return span < 0 ? 0 : span / stride + 1;
}

static void check_convolution(const window *v) {
    int64_t oh = result_size(v->h, v->kh, v->sh, v->ph, v->dh),
            ow = result_size(v->w, v->kw, v->sw, v->pw, v->dw);
    clt_shape x = CLT_SHAPE(v->n, v->c * v->groups, v->h, v->w),
              y = CLT_SHAPE(v->n, v->o * v->groups, oh, ow);
    clt_shape weight = CLT_SHAPE(v->o * v->groups, v->c, v->kh, v->kw);
    clt_conv2d_attributes at = {v->kh, v->kw, v->sh, v->sw, v->ph, v->pw, v->dh, v->dw, v->groups, {0}};
    assert_true(oh > 0 && ow > 0);
    check(&(op_test){.op = &clt_op_conv2d, .a = x, .b = weight, .conv2d = at});
    at.result = x;
    check(&(op_test){.op = &clt_op_conv2d_grad_input, .a = weight, .b = y, .conv2d = at});
    at.result = weight;
    check(&(op_test){.op = &clt_op_conv2d_grad_weight, .a = x, .b = y, .conv2d = at});
}

static void convolution_sizes(void **state) {
    (void)state;
    static const window windows[] = {
        {1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1},    /* one of everything */
        {2, 16, 8, 8, 16, 3, 3, 1, 1, 1, 1, 1, 1, 1},  /* whole tiles, blocks and lines */
        {3, 17, 9, 7, 33, 3, 3, 1, 1, 1, 1, 1, 1, 1},  /* one more of each */
        {2, 15, 7, 8, 15, 3, 3, 2, 2, 1, 1, 1, 1, 1},  /* one less */
        {2, 3, 32, 32, 64, 3, 3, 1, 1, 1, 1, 1, 1, 1}, /* a first layer */
        {2, 20, 9, 10, 24, 1, 1, 1, 1, 0, 0, 1, 1, 1}, /* one tap */
        {2, 20, 9, 10, 24, 1, 1, 2, 2, 0, 0, 1, 1, 1}, /* one tap, of which most pixels are not read */
        {2, 20, 9, 10, 24, 1, 1, 3, 2, 1, 2, 1, 1, 1}, /* and with padding */
        {1, 6, 21, 23, 10, 7, 7, 2, 2, 3, 3, 1, 1, 1}, /* ResNet's first */
        {2, 5, 12, 11, 7, 5, 5, 1, 1, 2, 2, 1, 1, 1},  /* 5 x 5 */
        {1, 4, 13, 14, 6, 3, 3, 1, 1, 2, 2, 2, 2, 1},  /* dilated */
        {1, 4, 13, 14, 6, 3, 3, 2, 2, 2, 2, 2, 2,
         1}, /* stride and dilation not coprime: pixels without taps */
        {1, 4, 15, 14, 6, 3, 2, 4, 3, 2, 2, 2, 2, 1}, /* stride 4, 3 */
        {2, 1, 9, 9, 1, 3, 3, 1, 1, 1, 1, 1, 1, 24},  /* depthwise */
        {2, 18, 6, 6, 5, 3, 3, 1, 1, 1, 1, 1, 1, 2},  /* groups */
        {2, 3, 4, 5, 4, 2, 3, 1, 1, 5, 6, 1, 1, 1},   /* more padding than kernel */
        {1, 2, 30, 1, 3, 3, 1, 1, 1, 1, 0, 1, 1, 1},  /* a column */
        {1, 2, 1, 30, 3, 1, 3, 1, 2, 0, 1, 1, 1, 1},  /* a row */
        {1, 2, 2, 2, 3, 2, 2, 1, 1, 0, 0, 1, 1, 1},   /* one pixel of the result */
        {1, 2, 3, 9, 3, 2, 2, 4, 4, 0, 0, 1, 1, 1},   /* image rows that no tap reads */
        {8, 4, 24, 24, 5, 3, 3, 1, 1, 1, 1, 1, 1, 1}, /* pixels in several splits */
    };
    for (size_t i = 0; i < CLT_COUNT_OF(windows); i++) check_convolution(&windows[i]);
}

static void convolution_at_random(void **state) {
    (void)state;
    clt_random random;
    clt_random_init(&random, 2, 0);
    for (int done = 0; done < 80;) {
        bool grouped = !between(&random, 0, 2);
        window v = {
            .n = between(&random, 1, 4),
            .c = between(&random, 1, 36),
            .h = between(&random, 1, 20),
            .w = between(&random, 1, 20),
            .o = between(&random, 1, 36),
            .kh = (int)between(&random, 1, 5),
            .kw = (int)between(&random, 1, 5),
            .sh = (int)between(&random, 1, 3),
            .sw = (int)between(&random, 1, 3),
            .dh = (int)between(&random, 1, 3),
            .dw = (int)between(&random, 1, 3),
            .groups = grouped ? (int)between(&random, 2, 4) : 1,
        };
        v.ph = (int)between(&random, 0, v.kh);
        v.pw = (int)between(&random, 0, v.kw);
        if (result_size(v.h, v.kh, v.sh, v.ph, v.dh) < 1 || result_size(v.w, v.kw, v.sw, v.pw, v.dw) < 1)
            continue;
        check_convolution(&v);
        done++;
    }
}

/* ---- what is not finite ---- */

/* In a product, NaN and infinity reach their row or column and nothing else, edges of tiles included. */
static void not_finite_values_stay_in_their_row(void **state) {
    (void)state;
    enum { M = 31, N = 37, K = 19 };
    op_test test = matmul(M, N, K, false, false);
    float a[M * K], b[K * N];
    for (int i = 0; i < M * K; i++) a[i] = (float)(i % 7) - 3.5f;
    for (int i = 0; i < K * N; i++) b[i] = (float)(i % 5) - 2.5f;
    a[(M - 1) * K + 4] = NAN;
    b[3 * N + N - 1] = INFINITY;
    test.a_values = a;
    test.b_values = b;
    float *y = run(&test, "native", NULL);
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++) {
            if (m == M - 1) assert_true(isnan(y[m * N + n]));
            else if (n == N - 1) assert_true(isinf(y[m * N + n]));
            else assert_true(isfinite(y[m * N + n]));
        }
    free(y);
}

/* ---- what is served ---- */

static const char *backend_of(const op_test *test) {
    built g = build(test);
    const char *name = clt_backend_choose(g.y, device).row->name;
    clt_graph_destroy(g.graph);
    return name;
}

static void rows_give_way(void **state) {
    (void)state;
    op_test large = matmul(64, 64, 64, false, false);
    assert_string_equal(backend_of(&large), "native");
    op_test wide = {.op = &clt_op_conv2d_grad_input,
                    .a = CLT_SHAPE(4, 4, 3, 3),
                    .b = CLT_SHAPE(1, 4, 3, 3),
                    .conv2d = {3, 3, 5, 5, 0, 0, 1, 1, 1, CLT_SHAPE(1, 4, 13, 13)}};
    assert_string_equal(backend_of(&wide), "reference");
    wide.conv2d.stride_h = wide.conv2d.stride_w = 4;
    wide.conv2d.result = CLT_SHAPE(1, 4, 11, 11);
    assert_string_equal(backend_of(&wide), "native");
}

/* Pixels past 32-bit indices once packed, though no tensor is so large. */
static void sizes_past_the_index_are_not_served(void **state) {
    (void)state;
    op_test padded = {.op = &clt_op_conv2d,
                      .a = CLT_SHAPE(1, 16, 2, 2),
                      .b = CLT_SHAPE(1, 16, 20001, 1),
                      .conv2d = {20001, 1, 1, 1, 10000, 10000, 1, 1, 1, {0}}};
    assert_string_equal(backend_of(&padded), "reference");
}

static int open_device(void) {
    if (clt_device_open(&device, NULL) == CLT_OK) return 0;
    print_error("no device: %s\n", clt_error_detail());
    return -1;
}

/* On another class of device the reference serves all, and only that is tested. */
static void other_devices_are_left_alone(void **state) {
    (void)state;
    op_test large = matmul(64, 64, 64, false, false);
    assert_string_equal(backend_of(&large), "reference");
}

int main(void) {
    const struct CMUnitTest others[] = {cmocka_unit_test(other_devices_are_left_alone)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matmul_sizes),
        cmocka_unit_test(matmul_batches),
        cmocka_unit_test(matmul_batches_in_panels),
        cmocka_unit_test(convolution_sizes),
        cmocka_unit_test(convolution_at_random),
        cmocka_unit_test(not_finite_values_stay_in_their_row),
        cmocka_unit_test(rows_give_way),
        cmocka_unit_test(sizes_past_the_index_are_not_served),
    };
    setenv("CLTRAIN_CLASS", "cpu", 1);
    if (open_device() < 0) return 1;
    int failed = clt_cpu_fits(device) ? cmocka_run_group_tests_name("native", tests, NULL, NULL)
                                         : cmocka_run_group_tests_name("native", others, NULL, NULL);
    clt_device_close(device);
    return failed;
}
