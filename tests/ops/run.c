#include "tests/ops/harness.h"

#include "runtime/ops/ops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- operands ---- */

/* A number of the case's own, from its name (FNV-1a), so that other cases do not move its values. */
static random_stream stream_of(const op_case *spec) {
    random_stream random = {0xcbf29ce484222325u};
    for (const char *c = spec->name; *c; c++) random.state = (random.state ^ (unsigned char)*c) * 0x100000001b3u;
    return random;
}

static bool near_kink(const op_input *input, double value) {
    for (int i = 0; i < input->n_kinks; i++)
        if (fabs(value - input->kinks[i]) < 0.01) return true;
    return false;
}

static double draw_one(const op_input *input, random_stream *random) {
    double low = input->low, high = input->high;
    if (low == 0 && high == 0) low = -2, high = 2;
    if (input->dtype != CLT_F32) return low + (double)random_below(random, (int64_t)(high - low));
    double value;
    do value = low + (high - low) * random_uniform(random);
    while (near_kink(input, value));
    return (float)value;
}

static void draw_distinct(const op_input *input, random_stream *random, array *values) {
    int64_t n = array_count(values);
    double low = input->low, high = input->high;
    if (low == 0 && high == 0) low = -2, high = 2;
    for (int64_t i = 0; i < n; i++) {
        int64_t j = random_below(random, i + 1);
        values->values[i] = values->values[j];
        values->values[j] = (float)(low + (high - low) * (double)i / (double)n);
    }
}

static void draw(const op_input *input, random_stream *random, array *values) {
    array_resize(values, input->shape);
    int64_t n = array_count(values);
    if (input->distinct) draw_distinct(input, random, values);
    else
        for (int64_t i = 0; i < n; i++)
            values->values[i] = input->values ? input->values[i] : draw_one(input, random);
}

static void *to_device_type(const array *values, clt_dtype dtype) {
    int64_t n = array_count(values);
    void *bytes = malloc((size_t)n * clt_dtype_bytes(dtype));
    assert_non_null(bytes);
    for (int64_t i = 0; i < n; i++) {
        if (dtype == CLT_F32) ((float *)bytes)[i] = (float)values->values[i];
        else if (dtype == CLT_I32) ((int32_t *)bytes)[i] = (int32_t)values->values[i];
        else ((uint8_t *)bytes)[i] = (uint8_t)values->values[i];
    }
    return bytes;
}

static double from_device_type(const void *bytes, clt_dtype dtype, int64_t i) {
    if (dtype == CLT_F32) return ((const float *)bytes)[i];
    if (dtype == CLT_I32) return ((const int32_t *)bytes)[i];
    return ((const uint8_t *)bytes)[i];
}

/* ---- the graph ---- */

bool op_wants_gradient(const op_case *spec, int input) {
    return !spec->no_gradient && !spec->inputs[input].constant && spec->inputs[input].dtype == CLT_F32;
}

static clt_tensor *find_variable(clt_graph *graph, const op_input *input) {
    for (size_t i = 0; i < graph->n_nodes; i++) {
        clt_tensor *node = graph->nodes[i];
        if (node->kind != CLT_NODE_VARIABLE || strcmp(node->name, input->variable)) continue;
        assert_true(clt_shape_equal(&node->shape, &input->shape));
        return node;
    }
    fail_msg("the builder made no variable %s", input->variable);
    return NULL;
}

static void build(op_run *run) {
    static const char *const names[OP_MAX_INPUTS] = {"x0", "x1", "x2", "x3", "x4", "x5"};
    const op_case *spec = run->spec;
    assert_ok(clt_graph_create(&run->graph));
    for (int i = 0; i < spec->n_inputs; i++)
        if (!spec->inputs[i].variable)
            run->inputs[i] = clt_input(run->graph, names[i], spec->inputs[i].dtype, spec->inputs[i].shape);
    run->y = spec->build(run->graph, run->inputs, spec->context);
    assert_ok(clt_graph_status(run->graph));
    assert_non_null(run->y);
    for (int i = 0; i < spec->n_inputs; i++)
        if (spec->inputs[i].variable) run->inputs[i] = find_variable(run->graph, &spec->inputs[i]);
}

static void differentiate(op_run *run) {
    clt_tensor *wrt[OP_MAX_INPUTS], *grads[OP_MAX_INPUTS];
    int n = 0;
    for (int i = 0; i < run->spec->n_inputs; i++)
        if (op_wants_gradient(run->spec, i)) wrt[n++] = run->inputs[i];
    if (!n) return;
    run->seed = clt_input(run->graph, "seed", CLT_F32, run->y->shape);
    assert_ok(clt_gradients(run->y, run->seed, wrt, n, grads));
    assert_ok(clt_graph_status(run->graph));
    n = 0;
    for (int i = 0; i < run->spec->n_inputs; i++)
        if (op_wants_gradient(run->spec, i)) run->grads[i] = grads[n++];
}

static void compile(op_run *run) {
    clt_tensor *targets[OP_MAX_INPUTS + 1] = {run->y};
    int n = 1;
    for (int i = 0; i < run->spec->n_inputs; i++)
        if (run->grads[i]) targets[n++] = run->grads[i];
    assert_ok(clt_store_create(op_device(), &run->store));
    assert_ok(clt_plan_compile(&run->plan, &(clt_plan_options){.device = op_device(),
                                                               .store = run->store,
                                                               .graph = run->graph,
                                                               .targets = targets,
                                                               .n_targets = n,
                                                               .training = !run->spec->evaluation}));
}

/* ---- values ---- */

static void feed(op_run *run, const clt_tensor *tensor, const array *values) {
    void *bytes = to_device_type(values, tensor->dtype);
    if (tensor->kind == CLT_NODE_VARIABLE) op_variable_write(run->store, tensor, bytes);
    else assert_ok(clt_plan_feed(run->plan, tensor, bytes));
    free(bytes);
}

void op_open(op_run *run, const op_case *spec) {
    *run = (op_run){.spec = spec};
    random_stream random = stream_of(spec);
    for (int i = 0; i < spec->n_inputs; i++) draw(&spec->inputs[i], &random, &run->values[i]);
    build(run);
    differentiate(run);
    compile(run);
    for (int i = 0; i < spec->n_inputs; i++) feed(run, run->inputs[i], &run->values[i]);
    if (!run->seed) return;
    op_input seed = {.shape = run->seed->shape, .low = -1, .high = 1, .values = spec->seed};
    draw(&seed, &random, &run->seed_values);
    feed(run, run->seed, &run->seed_values);
}

void op_step(op_run *run) {
    assert_ok(clt_plan_run(run->plan, CLT_PLAN_ALL));
}

void op_read(op_run *run, const clt_tensor *tensor, const clt_tensor *like, array *values) {
    array_resize(values, like->shape);
    int64_t n = array_count(values);
    for (int64_t i = 0; i < n; i++) values->values[i] = 0;
    if (!tensor) return;
    assert_true(clt_shape_equal(&tensor->shape, &like->shape));
    size_t size = (size_t)n * clt_dtype_bytes(tensor->dtype);
    void *bytes = malloc(size);
    assert_non_null(bytes);
    assert_ok(clt_plan_read(run->plan, tensor, bytes, size));
    for (int64_t i = 0; i < n; i++) values->values[i] = from_device_type(bytes, tensor->dtype, i);
    free(bytes);
}

void op_close(op_run *run) {
    clt_plan_destroy(run->plan);
    clt_store_destroy(run->store);
    clt_graph_destroy(run->graph);
    for (int i = 0; i < OP_MAX_INPUTS; i++) array_free(&run->values[i]);
    array_free(&run->seed_values);
}

void op_variable_write(clt_store *store, const clt_tensor *variable, const float *values) {
    clt_memory *memory;
    assert_ok(clt_store_variable(store, variable->variable, &memory));
    assert_ok(clt_memory_write(memory, 0, values, (size_t)clt_tensor_elements(variable) * sizeof *values));
}

void op_variable_read(clt_store *store, const clt_tensor *variable, float *values) {
    clt_memory *memory;
    assert_ok(clt_store_variable(store, variable->variable, &memory));
    assert_ok(clt_memory_read(memory, 0, values, (size_t)clt_tensor_elements(variable) * sizeof *values));
}
