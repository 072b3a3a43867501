/* Training steps of a model on one batch in the host's memory. */
#include <math.h>
#include <string.h>

#include <cltrain/ops.h>
#include <cltrain/train.h>

#include "tests/bench/bench.h"
#include "tools/common/models.h"

typedef struct train_case {
    bench_case base;
    clt_graph *graph;
    clt_trainer *trainer;
    clt_batch batch;
    float *x;
    int32_t *y;
} train_case;

static void close_case(bench_case *self) {
    train_case *c = (train_case *)self;
    clt_trainer_destroy(c->trainer);
    clt_graph_destroy(c->graph);
    clt_free(c->x);
    clt_free(c->y);
    clt_free(c);
}

static clt_status run_case(bench_case *self, int repetitions) {
    train_case *c = (train_case *)self;
    for (int i = 0; i < repetitions; i++) CLT_TRY(clt_trainer_step(c->trainer, &c->batch));
    return CLT_OK;
}

static clt_status facts(bench_case *self, json_t *answer) {
    train_case *c = (train_case *)self;
    clt_metrics metrics;
    CLT_TRY(clt_trainer_train_metrics(c->trainer, &metrics, true));
    if (!isfinite(metrics.loss)) return clt_fail(CLT_E_STATE, "the loss is not a number");
    json_object_set_new(answer, "loss", json_real(metrics.loss));
    json_object_set_new(answer, "parameters", json_integer(clt_graph_parameter_count(c->graph)));
    return CLT_OK;
}

static clt_status make_batch(train_case *c, clt_shape x, int64_t classes) {
    size_t n = (size_t)clt_shape_elements(&x), batch = (size_t)x.dims[0];
    c->x = clt_alloc(n * sizeof *c->x);
    c->y = clt_alloc(batch * sizeof *c->y);
    if (!c->x || !c->y) return clt_fail_memory(n * sizeof *c->x);
    bench_values(c->x, n, 1);
    for (size_t i = 0; i < batch; i++) c->y[i] = (int32_t)(i % (size_t)classes);
    c->batch = (clt_batch){.samples = x.dims[0], .n_fields = 2};
    c->batch.fields[0] = (clt_array){CLT_F32, x, c->x};
    c->batch.fields[1] = (clt_array){CLT_I32, CLT_SHAPE(x.dims[0]), c->y};
    return CLT_OK;
}

static clt_train_options train_options(const json_t *asked) {
    const char *name = bench_text(asked, "optimizer", "sgd");
    double decay = bench_real(asked, "weight_decay", 0);
    return (clt_train_options){
        .optimizer = !strcmp(name, "sgd") ? CLT_SGD : !strcmp(name, "adam") ? CLT_ADAM : CLT_ADAMW,
        .lr = (float)bench_real(asked, "lr", 1e-3),
        .momentum = (float)bench_real(asked, "momentum", 0),
        .nesterov = bench_whole(asked, "nesterov", 0) != 0,
        .weight_decay = decay > 0 ? (float)decay : -1.0f,
    };
}

/* "shape" of a sample, as in [3, 32, 32], behind the batch. */
static clt_shape input_shape(const json_t *asked) {
    const json_t *sample = json_object_get(asked, "shape");
    clt_shape shape = {.rank = 1, .dims = {bench_whole(asked, "batch", 1)}};
    for (size_t i = 0; i < json_array_size(sample) && shape.rank < CLT_MAX_RANK; i++)
        shape.dims[shape.rank++] = json_integer_value(json_array_get(sample, i));
    return shape;
}

static clt_status open_case(train_case *c, clt_device *device, const json_t *asked) {
    int64_t classes = bench_whole(asked, "classes", 10);
    clt_shape shape = input_shape(asked);
    clt_train_options options = train_options(asked);
    CLT_TRY(make_batch(c, shape, classes));
    CLT_TRY(clt_graph_create(&c->graph));
    clt_tensor *x = clt_input(c->graph, "x", CLT_F32, shape);
    clt_tensor *y = clt_input(c->graph, "y", CLT_I32, CLT_SHAPE(shape.dims[0]));
    clt_tensor *output = model_build(bench_text(asked, "model", ""), x, classes);
    if (!output) return clt_fail(CLT_E_INVALID, "no such model");
    CLT_TRY(clt_trainer_create(&c->trainer, device, clt_cross_entropy(output, y), &options));
    CLT_TRY(clt_trainer_step(c->trainer, &c->batch));
    return clt_trainer_wait(c->trainer);
}

clt_status bench_train(clt_device *device, const json_t *asked, bench_case **made) {
    train_case *c = clt_calloc(1, sizeof *c);
    if (!c) return clt_fail_memory(sizeof *c);
    c->base = (bench_case){run_case, facts, close_case};
    clt_status status = open_case(c, device, asked);
    if (status < 0) close_case(&c->base);
    else *made = &c->base;
    return status;
}
