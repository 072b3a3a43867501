/* AdamW's update of one flat tensor. */
#include "runtime/exec/plan.h"
#include "runtime/ops/ops.h"
#include "tests/bench/bench.h"

enum { PIECE = 1 << 20 };

typedef struct update_case {
    bench_case base;
    clt_device *device;
    clt_graph *graph;
    clt_state_store *store;
    clt_plan *plan;
    clt_tensor *hyper;
    int64_t elements;
} update_case;

static void close_case(bench_case *self) {
    update_case *c = (update_case *)self;
    clt_plan_destroy(c->plan);
    clt_state_store_destroy(c->store);
    clt_graph_destroy(c->graph);
    clt_device_trim(c->device);
    clt_free(c);
}

static clt_status run_case(bench_case *self, int repetitions) {
    update_case *c = (update_case *)self;
    for (int i = 0; i < repetitions; i++) CLT_TRY(clt_plan_run(c->plan));
    return CLT_OK;
}

/* The first value moved by the learning rate in the first update, as Adam's do. */
static clt_status facts(bench_case *self, json_t *answer) {
    update_case *c = (update_case *)self;
    float first;
    size_t bytes;
    clt_memory *memory = clt_state_store_find(c->store, "parameters", &bytes);
    CLT_TRY(clt_memory_read(memory, 0, &first, sizeof first));
    json_object_set_new(answer, "check", json_pack("[f]", (double)first));
    return CLT_OK;
}

static clt_status fill(update_case *c, const char *name, uint32_t stream) {
    size_t bytes;
    clt_memory *memory = clt_state_store_find(c->store, name, &bytes);
    float *values = clt_alloc(PIECE * sizeof *values);
    if (!values) return clt_fail_memory(PIECE * sizeof *values);
    bench_values(values, PIECE, stream);
    clt_status status = CLT_OK;
    for (size_t at = 0; at < bytes && status == CLT_OK; at += PIECE * sizeof *values)
        status = clt_memory_write(memory, at, values, CLT_MIN(bytes - at, PIECE * sizeof *values));
    clt_free(values);
    return status;
}

static clt_status compile(update_case *c) {
    clt_shape shape = CLT_SHAPE(c->elements);
    clt_update_attributes at = {.clip = {.grad_scale = 1, .clip_value = 1e30f, .clip_norm = 1e30f},
                                .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f, .weight_decay = 0.01f,
                                .decoupled = true, .lr_factor = 1};
    float hyper[CLT_HYPER_COUNT] = {[CLT_HYPER_LR] = 1e-3f, [CLT_HYPER_BIAS1] = 0.1f, [CLT_HYPER_BIAS2] = 0.0316227766f,
                                    [CLT_HYPER_FIRST] = 1, [CLT_HYPER_SCALE] = 1};
    clt_tensor *params = clt_state(c->graph, "parameters", CLT_F32, shape);
    clt_tensor *grads = clt_state(c->graph, "gradients", CLT_F32, shape);
    clt_tensor *states[2] = {clt_state(c->graph, "m", CLT_F32, shape), clt_state(c->graph, "v", CLT_F32, shape)};
    c->hyper = clt_state(c->graph, "hyper", CLT_F32, CLT_SHAPE(CLT_HYPER_COUNT));
    clt_tensor *factor = clt_fill(c->graph, (clt_shape){0}, 1);
    clt_tensor *update = clt_update(&clt_op_adam, at, params, grads, c->hyper, factor, states, 2, NULL);
    CLT_TRY(clt_graph_status(c->graph));
    clt_plan_options options = {.device = c->device, .store = c->store, .graph = c->graph, .targets = &update,
                                .n_targets = 1, .training = true};
    CLT_TRY(clt_plan_compile(&c->plan, &options));
    CLT_TRY(fill(c, "gradients", 1));
    CLT_TRY(clt_plan_set(c->plan, c->hyper, hyper, sizeof hyper));
    CLT_TRY(clt_plan_run(c->plan));
    return clt_device_finish(c->device);
}

clt_status bench_adamw(clt_device *device, const json_t *asked, bench_case **made) {
    update_case *c = clt_calloc(1, sizeof *c);
    if (!c) return clt_fail_memory(sizeof *c);
    c->base = (bench_case){run_case, facts, close_case};
    c->device = device;
    c->elements = bench_whole(asked, "elements", 1000000);
    clt_status status;
    CLT_TRY_GOTO(clt_graph_create(&c->graph));
    CLT_TRY_GOTO(clt_state_store_create(device, &c->store));
    CLT_TRY_GOTO(compile(c));
    *made = &c->base;
    return CLT_OK;
fail:
    close_case(&c->base);
    return status;
}
