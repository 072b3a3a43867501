#include "tests/backends/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/halves.h"
#include "runtime/exec/passes/passes.h"
#include "runtime/exec/storage.h"

/* ---- a node ---- */

enum { A, B, CHANNELS, PLACES, INPUTS };

typedef struct built {
    clt_graph *graph;
    clt_tensor *inputs[INPUTS], *y; /* the last two: of the epilogue, if there is one */
    int n;
} built;

/* Made by the pass that users' graphs go through, on a device whose rows have epilogues. */
static void add_epilogue(built *g, const compare_test *test, clt_device *device) {
    const clt_shape *shape = &g->y->shape;
    bool matmul = test->op == &clt_op_matmul;
    int64_t channels = shape->dims[matmul ? shape->rank - 1 : 1];
    g->inputs[CHANNELS] = clt_input(g->graph, "channels", CLT_F32, matmul ? CLT_SHAPE(channels) : CLT_SHAPE(channels, 1, 1));
    g->inputs[PLACES] = clt_input(g->graph, "places", CLT_F32, *shape);
    g->y = clt_sub(clt_add(g->y, g->inputs[CHANNELS]), g->inputs[PLACES]);
    g->y->kept = true;
    g->n = INPUTS;
    assert_ok(clt_graph_status(g->graph));
    assert_ok(clt_passes_run(g->graph, device, true));
    assert_ptr_equal(g->y->op, test->op);
    assert_non_null(g->y->epilogue);
}

static built build(const compare_test *test) {
    built g = {.n = CHANNELS};
    const void *attributes = test->op == &clt_op_matmul ? (const void *)&test->matmul : &test->conv2d;
    assert_ok(clt_graph_create(&g.graph));
    g.inputs[A] = clt_input(g.graph, "a", test->dtype, test->a);
    g.inputs[B] = clt_input(g.graph, "b", test->dtype, test->b);
    g.y = clt_node(NULL, test->op, attributes, g.inputs, 2);
    assert_ok(clt_graph_status(g.graph));
    return g;
}

int64_t compare_elements(const compare_test *test) {
    built g = build(test);
    int64_t n = clt_tensor_elements(g.y);
    clt_graph_destroy(g.graph);
    return n;
}

const char *compare_chosen(clt_device *device, const compare_test *test) {
    built g = build(test);
    const char *name = clt_backend_choose(g.y, device).row->name;
    clt_graph_destroy(g.graph);
    return name;
}

bool compare_valid(clt_device *device, const compare_test *test, const clt_backend_row *row, const int *parameters) {
    built g = build(test);
    clt_choice choice = {.row = row};
    memcpy(choice.parameters, parameters, sizeof choice.parameters);
    bool valid = clt_backend_valid(&choice, g.y, device);
    clt_graph_destroy(g.graph);
    return valid;
}

static void describe(const compare_test *test, const clt_backend_row *row, const int *parameters) {
    char a[CLT_SHAPE_TEXT], b[CLT_SHAPE_TEXT];
    const clt_conv2d_attributes *at = &test->conv2d;
    print_error("  %s of %s and %s", test->op->name, clt_shape_text(&test->a, a), clt_shape_text(&test->b, b));
    if (test->op == &clt_op_matmul)
        print_error(", transposed %d %d", test->matmul.transpose_a, test->matmul.transpose_b);
    else
        print_error(", stride %d %d, padding %d %d, dilation %d %d, groups %d", at->stride_h, at->stride_w,
                    at->padding_h, at->padding_w, at->dilation_h, at->dilation_w, at->groups);
    print_error(", by %s", row->name);
    for (int i = 0; parameters && row->tunables && row->tunables[i].name; i++)
        print_error(" %s=%d", row->tunables[i].name, parameters[i]);
    print_error("\n");
}

clt_device *compare_open_gpu(bool *simulated) {
    clt_device *device;
    assert_ok(clt_device_open_with(&device, &(clt_settings){.device_class = "gpu"}));
    *simulated = strstr(clt_device_get_info(device)->platform, "Oclgrind") != NULL;
    return device;
}

const clt_backend_row *compare_row(clt_device *device, const compare_test *test, const char *name) {
    built g = build(test);
    const clt_backend_row *found = NULL;
    for (const clt_backend_row *row = NULL; (row = clt_backend_next(test->op, row));)
        if (!strcmp(row->name, name) && clt_backend_fits(row, g.y, device)) found = row;
    clt_graph_destroy(g.graph);
    if (!found) {
        describe(test, &(clt_backend_row){.name = name}, NULL);
        fail_msg("no such row serves this");
    }
    return found;
}

/* ---- running the launches of a row ---- */

enum { CANARY = 256 /* bytes */ };

static clt_memory *spoiled(clt_device *device, size_t bytes) {
    clt_memory *memory;
    void *nans = malloc(bytes + CANARY);
    assert_non_null(nans);
    memset(nans, 0xff, bytes + CANARY);
    assert_ok(clt_memory_create(device, bytes + CANARY, &memory));
    assert_ok(clt_memory_write(memory, 0, nans, bytes + CANARY));
    free(nans);
    return memory;
}

static void check_canary(clt_memory *memory, size_t bytes) {
    unsigned char canary[CANARY];
    assert_ok(clt_memory_read(memory, bytes, canary, CANARY));
    for (int i = 0; i < CANARY; i++)
        if (canary[i] != 0xff) fail_msg("written %d bytes past the end of %zu", i, bytes);
}

/* splitmix64 (Steele, Lea, Flood 2014): millions of values are drawn. */
static uint64_t next_bits(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static float *draw(const clt_tensor *tensor, bool integers, uint64_t *state) {
    size_t n = (size_t)clt_tensor_elements(tensor);
    float *drawn = malloc(n * sizeof *drawn);
    assert_non_null(drawn);
    for (size_t i = 0; i < n; i++) {
        uint64_t bits = next_bits(state);
        drawn[i] = integers ? (float)(bits % 9) - 4 : (float)(bits >> 40) * 0x1p-23f - 1;
    }
    return drawn;
}

static clt_memory *operand(clt_device *device, const clt_tensor *tensor, const float *values, bool integers,
                           uint64_t *state) {
    size_t bytes = clt_tensor_bytes(tensor), n = (size_t)clt_tensor_elements(tensor);
    float *drawn = draw(tensor, integers, state);
    void *stored = malloc(n * sizeof(float));
    clt_memory *memory = spoiled(device, bytes);
    assert_non_null(stored);
    clt_float_narrow(stored, values ? values : drawn, tensor->dtype, n);
    assert_ok(clt_memory_write(memory, 0, stored, bytes));
    free(drawn);
    free(stored);
    return memory;
}

/* What a row's arguments are bound to. */
typedef struct bound {
    const built *graph;
    clt_memory *inputs[INPUTS], *y, **scratch;
} bound;

static clt_memory *memory_of(const bound *b, const clt_argument *argument) {
    if (argument->kind == CLT_ARGUMENT_SCRATCH) return b->scratch[argument->scratch];
    if (argument->tensor == b->graph->y) return b->y;
    int i = 0;
    while (i < b->graph->n && argument->tensor != b->graph->inputs[i]) i++;
    assert_true(i < b->graph->n);
    return b->inputs[i];
}

static void launch_kernel(clt_lowering *l, clt_launch *launch, const bound *b) {
    clt_kernel *kernel;
    assert_ok(clt_launch_kernel(l, launch, &kernel));
    for (int i = 0; i < launch->n_arguments; i++) {
        const clt_argument *argument = &launch->arguments[i];
        if (argument->kind == CLT_ARGUMENT_VALUE)
            assert_ok(clt_kernel_set_value(kernel, i, argument->value, argument->value_bytes));
        else
            assert_ok(clt_kernel_set_memory(kernel, i, memory_of(b, argument)));
    }
    size_t limit, local = launch->local[0];
    assert_ok(clt_kernel_work_group_limit(kernel, &limit));
    while (!launch->fixed_group && local > limit) local = (local + 1) / 2;
    size_t global = (launch->global[0] + local - 1) / local * local;
    assert_ok(clt_kernel_enqueue(kernel, 1, &global, &local));
    assert_ok(clt_device_finish(l->device));
    clt_kernel_destroy(kernel);
}

static float *run_lowered(clt_device *device, const compare_test *test, clt_lowering *l, bound *b) {
    uint64_t state = 7;
    size_t bytes = clt_tensor_bytes(b->graph->y), n = (size_t)clt_tensor_elements(b->graph->y);
    const float *given[INPUTS] = {test->a_values, test->b_values};
    for (int i = 0; i < b->graph->n; i++)
        b->inputs[i] = operand(device, b->graph->inputs[i], given[i], test->integers, &state);
    b->y = spoiled(device, bytes);
    b->scratch = calloc(l->n_scratch + 1, sizeof *b->scratch);
    for (size_t i = 0; i < l->n_scratch; i++) b->scratch[i] = spoiled(device, l->scratch[i].bytes);
    assert_ok(clt_device_build(device, l->modules, (int)l->n_modules));
    for (size_t i = 0; i < l->n_launches; i++) launch_kernel(l, &l->launches[i], b);
    assert_ok(clt_device_finish(device));
    float *y = malloc(n * sizeof *y);
    void *stored = malloc(bytes);
    assert_true(y && stored);
    assert_ok(clt_memory_read(b->y, 0, stored, bytes));
    clt_float_widen(y, stored, b->graph->y->dtype, n);
    free(stored);
    check_canary(b->y, bytes);
    for (size_t i = 0; i < l->n_scratch; i++) {
        check_canary(b->scratch[i], l->scratch[i].bytes);
        clt_memory_destroy(b->scratch[i]);
    }
    free(b->scratch);
    clt_memory_destroy(b->y);
    for (int i = 0; i < b->graph->n; i++) clt_memory_destroy(b->inputs[i]);
    return y;
}

float *compare_run(clt_device *device, const compare_test *test, const clt_backend_row *row, const int *parameters) {
    built g = build(test);
    if (test->finished) add_epilogue(&g, test, device);
    clt_lowering l = {.device = device, .training = true};
    clt_choice choice = {.row = row};
    clt_backend_defaults(row, g.y, device, choice.parameters);
    if (parameters) memcpy(choice.parameters, parameters, sizeof choice.parameters);
    if (!clt_backend_valid(&choice, g.y, device)) {
        describe(test, row, choice.parameters);
        fail_msg("parameters that do not go together");
    }
    assert_ok(clt_backend_lower_with(&l, g.y, &choice));
    bound b = {.graph = &g};
    float *y = run_lowered(device, test, &l, &b);
    clt_lowering_free(&l);
    clt_graph_destroy(g.graph);
    return y;
}

/* What the epilogue does, of the reference's result. */
static void finish(float *y, const compare_test *test, clt_device *device) {
    uint64_t state = 7;
    float *values[INPUTS];
    built g = build(test);
    add_epilogue(&g, test, device);
    for (int i = 0; i < INPUTS; i++) values[i] = draw(g.inputs[i], test->integers, &state);
    int64_t n = clt_tensor_elements(g.y), channels = clt_tensor_elements(g.inputs[CHANNELS]);
    int64_t run = test->op == &clt_op_matmul ? 1 : g.y->shape.dims[2] * g.y->shape.dims[3];
    for (int64_t i = 0; i < n; i++) y[i] = y[i] + values[CHANNELS][i / run % channels] - values[PLACES][i];
    for (int i = 0; i < INPUTS; i++) free(values[i]);
    clt_graph_destroy(g.graph);
}

/* What the reference gives, kept until another test is asked for: one has many parameters. */
static const float *wanted(clt_device *device, const compare_test *test) {
    static compare_test last;
    static float *want;
    if (want && !memcmp(&last, test, sizeof last)) return want;
    compare_test plain = *test;
    plain.finished = false;
    free(want);
    want = compare_run(device, &plain, compare_row(device, test, "reference"), NULL);
    if (test->finished) finish(want, test, device);
    memcpy(&last, test, sizeof last);
    return want;
}

void compare_check(clt_device *device, const compare_test *test, const clt_backend_row *row,
                   const int *parameters, double bound_of_error) {
    int64_t n = compare_elements(test);
    const float *want = wanted(device, test);
    float *got = compare_run(device, test, row, parameters), *again = compare_run(device, test, row, parameters);
    double error = 0, square = 0;
    for (int64_t i = 0; i < n; i++) {
        error += ((double)got[i] - want[i]) * ((double)got[i] - want[i]);
        square += (double)want[i] * want[i];
    }
    if (!(error <= bound_of_error * square)) {
        describe(test, row, parameters);
        fail_msg("relative squared error %.3g", error / square);
    }
    if (memcmp(got, again, (size_t)n * sizeof *got)) {
        describe(test, row, parameters);
        fail_msg("not the same bits again");
    }
    free(got);
    free(again);
}

/* ---- tests ---- */

int64_t compare_between(clt_random *random, int64_t low, int64_t high) {
    return low + (int64_t)clt_random_below(random, (uint64_t)(high - low + 1));
}

compare_test compare_matmul(int64_t m, int64_t n, int64_t k, bool transpose_a, bool transpose_b) {
    return (compare_test){.op = &clt_op_matmul,
                          .a = transpose_a ? CLT_SHAPE(k, m) : CLT_SHAPE(m, k),
                          .b = transpose_b ? CLT_SHAPE(n, k) : CLT_SHAPE(k, n),
                          .matmul = {transpose_a, transpose_b}};
}

static clt_shape batched(clt_random *random, const int64_t *batch, int rank, int64_t rows, int64_t columns) {
    clt_shape shape = {0};
    for (int d = (int)compare_between(random, 0, 1) ? (int)compare_between(random, 0, rank) : 0; d < rank; d++)
        shape.dims[shape.rank++] = compare_between(random, 0, 3) ? batch[d] : 1;
    shape.dims[shape.rank++] = rows;
    shape.dims[shape.rank++] = columns;
    return shape;
}

compare_test compare_batched(clt_random *random, int64_t m, int64_t n, int64_t k) {
    int64_t batch[3];
    int rank = (int)compare_between(random, 1, 3);
    for (int d = 0; d < rank; d++) batch[d] = compare_between(random, 1, 3);
    bool ta = compare_between(random, 0, 1), tb = compare_between(random, 0, 1);
    compare_test test = {.op = &clt_op_matmul, .matmul = {ta, tb}};
    test.a = ta ? batched(random, batch, rank, k, m) : batched(random, batch, rank, m, k);
    test.b = tb ? batched(random, batch, rank, n, k) : batched(random, batch, rank, k, n);
    return test;
}

static int64_t result_size(int64_t size, int kernel, int stride, int padding, int dilation) {
    int64_t span = size + 2 * padding - dilation * (kernel - 1) - 1;
    return span < 0 ? 0 : span / stride + 1;
}

compare_test compare_convolution(const compare_window *v, int direction) {
    int64_t oh = result_size(v->h, v->kh, v->sh, v->ph, v->dh), ow = result_size(v->w, v->kw, v->sw, v->pw, v->dw);
    clt_shape x = CLT_SHAPE(v->n, v->c * v->groups, v->h, v->w), y = CLT_SHAPE(v->n, v->o * v->groups, oh, ow);
    clt_shape weight = CLT_SHAPE(v->o * v->groups, v->c, v->kh, v->kw);
    clt_conv2d_attributes at = {v->kh, v->kw, v->sh, v->sw, v->ph, v->pw, v->dh, v->dw, v->groups, {0}};
    assert_true(oh > 0 && ow > 0);
    if (direction == 0) return (compare_test){.op = &clt_op_conv2d, .a = x, .b = weight, .conv2d = at};
    at.result = direction == 1 ? x : weight;
    if (direction == 1) return (compare_test){.op = &clt_op_conv2d_grad_input, .a = weight, .b = y, .conv2d = at};
    return (compare_test){.op = &clt_op_conv2d_grad_weight, .a = x, .b = y, .conv2d = at};
}

compare_window compare_random_window(clt_random *random) {
    for (;;) {
        compare_window v = {
            .n = compare_between(random, 1, 4),
            .c = compare_between(random, 1, 24),
            .h = compare_between(random, 1, 16),
            .w = compare_between(random, 1, 16),
            .o = compare_between(random, 1, 24),
            .kh = (int)compare_between(random, 1, 4),
            .kw = (int)compare_between(random, 1, 4),
            .sh = (int)compare_between(random, 1, 3),
            .sw = (int)compare_between(random, 1, 3),
            .dh = (int)compare_between(random, 1, 3),
            .dw = (int)compare_between(random, 1, 3),
            .groups = compare_between(random, 0, 2) ? 1 : (int)compare_between(random, 2, 4),
        };
        v.ph = (int)compare_between(random, 0, v.kh);
        v.pw = (int)compare_between(random, 0, v.kw);
        if (result_size(v.h, v.kh, v.sh, v.ph, v.dh) > 0 && result_size(v.w, v.kw, v.sw, v.pw, v.dw) > 0) return v;
    }
}
