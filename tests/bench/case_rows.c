/* What goes along rows: softmax, layer normalization, cross-entropy; forward, or their gradients. */
#include <string.h>

#include "runtime/exec/plan.h"
#include "runtime/ops/ops.h"
#include "tests/bench/bench.h"

enum { MOST_INPUTS = 4, MOST_TARGETS = 2 };

typedef struct rows_case {
    bench_case base;
    clt_device *device;
    clt_graph *graph;
    clt_state_store *store;
    clt_plan *plan;
    clt_tensor *inputs[MOST_INPUTS], *targets[MOST_TARGETS];
    int n_inputs, n_targets;
    int64_t rows, columns;
} rows_case;

static void close_case(bench_case *self) {
    rows_case *c = (rows_case *)self;
    clt_plan_destroy(c->plan);
    clt_state_store_destroy(c->store);
    clt_graph_destroy(c->graph);
    clt_free(c);
}

static clt_status run_case(bench_case *self, int repetitions) {
    rows_case *c = (rows_case *)self;
    for (int i = 0; i < repetitions; i++) CLT_TRY(clt_plan_run(c->plan));
    return CLT_OK;
}

static clt_status facts(bench_case *self, json_t *answer) {
    rows_case *c = (rows_case *)self;
    return bench_sums(c->plan, c->targets[0], answer);
}

/* ---- graphs ---- */

static clt_tensor *input(rows_case *c, const char *name, clt_shape shape) {
    return c->inputs[c->n_inputs++] = clt_input(c->graph, name, CLT_F32, shape);
}

static void softmax(rows_case *c, bool gradient) {
    clt_shape shape = CLT_SHAPE(c->rows, c->columns);
    clt_softmax_attributes at = {.axis = 1};
    clt_tensor *x = input(c, "x", shape);
    c->targets[c->n_targets++] =
        gradient ? clt_node(NULL, &clt_op_softmax_grad, &at, (clt_tensor *[]){x, input(c, "dy", shape)}, 2)
                 : clt_softmax(x, 1);
}

/* The gradient is of all three: input, weight and bias, from statistics that are given. */
static void layer_norm(rows_case *c, bool gradient) {
    clt_shape shape = CLT_SHAPE(c->rows, c->columns), row = CLT_SHAPE(c->columns);
    clt_layer_norm_attributes at = {.eps = 1e-5f, .dims = 1};
    clt_tensor *x = input(c, "x", shape), *weight = input(c, "weight", row);
    if (!gradient) {
        c->targets[c->n_targets++] = clt_layer_norm_op(x, weight, input(c, "bias", row), (clt_norm_options){0});
        return;
    }
    clt_tensor *dy = input(c, "dy", shape), *stats = input(c, "stats", CLT_SHAPE(2, c->rows));
    c->targets[c->n_targets++] =
        clt_node(NULL, &clt_op_layer_norm_grad_input, &at, (clt_tensor *[]){x, stats, weight, dy}, 4);
    c->targets[c->n_targets++] =
        clt_node(NULL, &clt_op_layer_norm_grad_weight, &at, (clt_tensor *[]){x, stats, dy}, 3);
}

static void cross_entropy(rows_case *c, bool gradient) {
    clt_tensor *x = input(c, "x", CLT_SHAPE(c->rows, c->columns));
    clt_tensor *labels = c->inputs[c->n_inputs++] = clt_input(c->graph, "labels", CLT_I32, CLT_SHAPE(c->rows));
    c->targets[c->n_targets++] =
        gradient ? clt_node(NULL, &clt_op_cross_entropy_grad, NULL,
                            (clt_tensor *[]){x, labels, input(c, "dlosses", CLT_SHAPE(c->rows))}, 3)
                 : clt_node(NULL, &clt_op_cross_entropy, NULL, (clt_tensor *[]){x, labels}, 2);
}

/* ---- making one ---- */

/* Values are of the input's number; labels go through the classes. */
static clt_status feed(rows_case *c, int number) {
    const clt_tensor *t = c->inputs[number];
    size_t n = (size_t)clt_tensor_elements(t);
    float *values = clt_alloc(n * sizeof *values);
    if (!values) return clt_fail_memory(n * sizeof *values);
    int32_t *labels = (int32_t *)values;
    if (t->dtype == CLT_I32)
        for (size_t i = 0; i < n; i++) labels[i] = (int32_t)(i * 7 % (size_t)c->columns);
    else bench_values(values, n, (uint32_t)number + 1);
    clt_status status = clt_plan_feed(c->plan, t, values);
    clt_free(values);
    return status;
}

static clt_status compile(rows_case *c) {
    CLT_TRY(clt_graph_status(c->graph));
    clt_plan_options options = {.device = c->device, .store = c->store, .graph = c->graph, .targets = c->targets,
                                .n_targets = c->n_targets, .training = true};
    CLT_TRY(clt_plan_compile(&c->plan, &options));
    for (int i = 0; i < c->n_inputs; i++) CLT_TRY(feed(c, i));
    CLT_TRY(clt_plan_run(c->plan));
    return clt_device_finish(c->device);
}

/* op, gradient, rows, columns. */
clt_status bench_rows(clt_device *device, const json_t *asked, bench_case **made) {
    static const struct {
        const char *name;
        void (*build)(rows_case *c, bool gradient);
    } ops[] = {{"softmax", softmax}, {"layer_norm", layer_norm}, {"cross_entropy", cross_entropy}};
    const char *op = bench_text(asked, "op", "");
    rows_case *c = clt_calloc(1, sizeof *c);
    if (!c) return clt_fail_memory(sizeof *c);
    *c = (rows_case){.base = {run_case, facts, close_case}, .device = device, .rows = bench_whole(asked, "rows", 1),
                     .columns = bench_whole(asked, "columns", 1)};
    clt_status status;
    CLT_TRY_GOTO(clt_graph_create(&c->graph));
    CLT_TRY_GOTO(clt_state_store_create(device, &c->store));
    for (size_t i = 0; i < CLT_COUNT_OF(ops); i++)
        if (!strcmp(ops[i].name, op)) ops[i].build(c, bench_whole(asked, "gradient", 0) != 0);
    if (!c->n_targets) CLT_TRY_GOTO(clt_fail(CLT_E_INVALID, "no such op of rows: \"%s\"", op));
    CLT_TRY_GOTO(compile(c));
    *made = &c->base;
    return CLT_OK;
fail:
    close_case(&c->base);
    return status;
}
