/* One op by itself: matrix products and the three directions of a convolution. */
#include <math.h>
#include <string.h>

#include "backends/backend.h"
#include "runtime/exec/plan.h"
#include "tests/bench/bench.h"

typedef struct op_case {
    bench_case base;
    clt_device *device;
    clt_graph *graph;
    clt_state_store *store;
    clt_plan *plan;
    clt_tensor *inputs[2], *y;
    const char *layout, *row;
} op_case;

static void close_case(bench_case *self) {
    op_case *c = (op_case *)self;
    clt_plan_destroy(c->plan);
    clt_state_store_destroy(c->store);
    clt_graph_destroy(c->graph);
    clt_free(c);
}

static clt_status run_case(bench_case *self, int repetitions) {
    op_case *c = (op_case *)self;
    for (int i = 0; i < repetitions; i++) CLT_TRY(clt_plan_run(c->plan));
    return CLT_OK;
}

/* Where in memory element i of the logical order is. */
static size_t place_of(const clt_tensor *t, size_t i) {
    if (t->layout == CLT_LAYOUT_CONTIGUOUS) return i;
    size_t channels = (size_t)t->shape.dims[1], pixels = (size_t)(t->shape.dims[2] * t->shape.dims[3]);
    size_t n = i / pixels / channels, c = i / pixels % channels;
    return (n * pixels + i % pixels) * channels + c;
}

clt_status bench_sums(clt_plan *plan, const clt_tensor *result, json_t *answer) {
    size_t n = (size_t)clt_tensor_elements(result);
    float *y = clt_alloc(n * sizeof *y), *weights = clt_alloc(n * sizeof *weights);
    clt_status status = y && weights ? clt_plan_read(plan, result, y, n * sizeof *y) : clt_fail_memory(n * sizeof *y);
    double sizes = 0, weighted = 0;
    if (status == CLT_OK) bench_values(weights, n, 9);
    for (size_t i = 0; status == CLT_OK && i < n; i++) {
        double value = (double)y[place_of(result, i)];
        sizes += fabs(value);
        weighted += value * (double)weights[i];
    }
    clt_free(y);
    clt_free(weights);
    json_object_set_new(answer, "check", json_pack("[f, f]", sizes, weighted));
    return status;
}

static clt_status facts(bench_case *self, json_t *answer) {
    op_case *c = (op_case *)self;
    json_object_set_new(answer, "layout", json_string(c->layout));
    json_object_set_new(answer, "row", json_string(c->row));
    return bench_sums(c->plan, c->y, answer);
}

static clt_status feed(op_case *c, int input) {
    size_t n = (size_t)clt_tensor_elements(c->inputs[input]);
    float *values = clt_alloc(n * sizeof *values), *placed = clt_alloc(n * sizeof *placed);
    clt_status status = values && placed ? CLT_OK : clt_fail_memory(n * sizeof *values);
    if (status == CLT_OK) {
        bench_values(values, n, (uint32_t)input + 1);
        for (size_t i = 0; i < n; i++) placed[place_of(c->inputs[input], i)] = values[i];
        status = clt_plan_feed(c->plan, c->inputs[input], placed);
    }
    clt_free(values);
    clt_free(placed);
    return status;
}

/* Images lie as they do in networks there: channels-last where a row wants it, but for the pictures that
 * users hand over. */
static void choose_layouts(op_case *c) {
    clt_tensor *all[3] = {c->inputs[0], c->inputs[1], c->y};
    bool input = c->y->op == &clt_op_conv2d_grad_input, weight = c->y->op == &clt_op_conv2d_grad_weight;
    if (!input && !weight && c->y->op != &clt_op_conv2d) return;
    clt_tensor *weights = input ? all[0] : weight ? all[2] : all[1];
    for (int i = 0; i < 3; i++)
        if (all[i] != weights && all[i]->shape.dims[1] > 3) all[i]->layout = CLT_LAYOUT_CHANNELS_LAST;
    c->layout = "channels-last";
    if (clt_backend_choose(c->y, c->device).row) return;
    for (int i = 0; i < 3; i++) all[i]->layout = CLT_LAYOUT_CONTIGUOUS;
    c->layout = "contiguous";
}

static clt_status compile(op_case *c) {
    CLT_TRY(clt_graph_status(c->graph));
    choose_layouts(c);
    clt_choice choice = clt_backend_choose(c->y, c->device);
    if (!choice.row) return clt_fail(CLT_E_UNSUPPORTED, "no backend computes %s there", clt_node_name(c->y));
    clt_plan_options options = {.device = c->device, .store = c->store, .graph = c->graph, .targets = &c->y,
                                .n_targets = 1, .training = true, .forced = &choice};
    CLT_TRY(clt_plan_compile(&c->plan, &options));
    c->row = choice.row->name;
    for (int i = 0; i < 2; i++) CLT_TRY(feed(c, i));
    CLT_TRY(clt_plan_run(c->plan));
    return clt_device_finish(c->device);
}

/* Takes the node's two operands by shape. */
static clt_status make(clt_device *device, const clt_op *op, const void *attributes, clt_shape a, clt_shape b,
                       bench_case **made) {
    op_case *c = clt_calloc(1, sizeof *c);
    if (!c) return clt_fail_memory(sizeof *c);
    c->base = (bench_case){run_case, facts, close_case};
    c->device = device;
    c->layout = "contiguous";
    clt_status status;
    CLT_TRY_GOTO(clt_graph_create(&c->graph));
    CLT_TRY_GOTO(clt_state_store_create(device, &c->store));
    c->inputs[0] = clt_input(c->graph, "a", CLT_F32, a);
    c->inputs[1] = clt_input(c->graph, "b", CLT_F32, b);
    c->y = clt_node(NULL, op, attributes, c->inputs, 2);
    CLT_TRY_GOTO(compile(c));
    *made = &c->base;
    return CLT_OK;
fail:
    close_case(&c->base);
    return status;
}

/* m, n, k; with transpose_a the first operand is [k, m], with transpose_b the second [n, k]. */
clt_status bench_gemm(clt_device *device, const json_t *asked, bench_case **made) {
    int64_t m = bench_whole(asked, "m", 0), n = bench_whole(asked, "n", 0), k = bench_whole(asked, "k", 0);
    clt_matmul_attributes at = {.transpose_a = bench_whole(asked, "transpose_a", 0) != 0,
                                .transpose_b = bench_whole(asked, "transpose_b", 0) != 0};
    clt_shape a = at.transpose_a ? CLT_SHAPE(k, m) : CLT_SHAPE(m, k);
    clt_shape b = at.transpose_b ? CLT_SHAPE(n, k) : CLT_SHAPE(k, n);
    return make(device, &clt_op_matmul, &at, a, b, made);
}

/* batch, channels, size (height and width), outputs, kernel, stride, padding, and a direction. */
clt_status bench_conv(clt_device *device, const json_t *asked, bench_case **made) {
    int64_t batch = bench_whole(asked, "batch", 0), channels = bench_whole(asked, "channels", 0);
    int64_t size = bench_whole(asked, "size", 0), outputs = bench_whole(asked, "outputs", 0);
    int kernel = (int)bench_whole(asked, "kernel", 1), stride = (int)bench_whole(asked, "stride", 1);
    int padding = (int)bench_whole(asked, "padding", 0);
    int64_t out = (size + 2 * padding - kernel) / CLT_MAX(stride, 1) + 1;
    const char *direction = bench_text(asked, "direction", "forward");
    clt_shape x = CLT_SHAPE(batch, channels, size, size), w = CLT_SHAPE(outputs, channels, kernel, kernel);
    clt_shape dy = CLT_SHAPE(batch, outputs, out, out);
    clt_conv2d_attributes at = {.kernel_h = kernel, .kernel_w = kernel, .stride_h = stride, .stride_w = stride,
                                .padding_h = padding, .padding_w = padding, .dilation_h = 1, .dilation_w = 1,
                                .groups = 1};
    if (!strcmp(direction, "forward")) return make(device, &clt_op_conv2d, &at, x, w, made);
    bool input = !strcmp(direction, "input");
    at.result = input ? x : w;
    return input ? make(device, &clt_op_conv2d_grad_input, &at, w, dy, made)
                 : make(device, &clt_op_conv2d_grad_weight, &at, x, dy, made);
}
