/*
 * Trains a model with the library for the comparison with PyTorch: weights from a
 * file, batches in the order of the data, the loss of every step on stdout.
 *
 *     driver KEY=VALUE ...
 *
 *     model     FILE.onnx, which has its own first weights; linear, mlp:..., convnet, resnet18, gpt2:..., llama:... or lstm:... (x holds a token more than it reads), transformer, or one of networks.h
 *     x, y      .npy files of all samples; classes: of y
 *     batch     samples a step; steps: how many
 *     initial   safetensors file of the first weights; final: of the last, written here
 *     optimizer sgd, adam or adamw, with lr, momentum, nesterov, weight_decay, clip_norm,
 *               clip_value, cosine (of so many steps), accumulate; groups: with 1, biases and norms have no weight decay and twice the rate
 *
 * A last line "eval LOSS ACCURACY" is of the whole data after training, in evaluation mode.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cltrain/cltrain.h>

#include "tests/parity/networks.h"
#include "tests/parity/transformer.h"
#include "tools/common/models.h"

typedef struct arguments {
    const char *model, *x, *y, *initial, *final, *optimizer;
    double classes, batch, steps, lr, momentum, nesterov, weight_decay, clip_norm, clip_value, cosine, accumulate, groups;
} arguments;

/* ---- arguments ---- */

static double *find_number(arguments *a, const char *key) {
    const struct {
        const char *key;
        double *value;
    } numbers[] = {
        {"classes", &a->classes},     {"batch", &a->batch},           {"steps", &a->steps},
        {"lr", &a->lr},               {"momentum", &a->momentum},     {"nesterov", &a->nesterov},
        {"clip_norm", &a->clip_norm}, {"clip_value", &a->clip_value}, {"weight_decay", &a->weight_decay},
        {"cosine", &a->cosine},       {"accumulate", &a->accumulate}, {"groups", &a->groups},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (!strcmp(numbers[i].key, key)) return numbers[i].value;
    return NULL;
}

static const char **find_text(arguments *a, const char *key) {
    const struct {
        const char *key, **value;
    } texts[] = {
        {"model", &a->model},     {"x", &a->x},         {"y", &a->y},
        {"initial", &a->initial}, {"final", &a->final}, {"optimizer", &a->optimizer},
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (!strcmp(texts[i].key, key)) return texts[i].value;
    return NULL;
}

static int read_arguments(arguments *a, int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        char *value = strchr(argv[i], '=');
        if (value) *value++ = 0;
        const char **text = find_text(a, argv[i]);
        double *number = find_number(a, argv[i]);
        if (!value || (!text && !number)) {
            fprintf(stderr, "'%s' is no KEY=VALUE of this program\n", argv[i]);
            return 2;
        }
        if (text) *text = value;
        else *number = strtod(value, NULL);
    }
    if (a->model && a->x && a->y && a->initial && a->final && a->optimizer && a->batch > 0) return 0;
    fprintf(stderr, "model, x, y, initial, final, optimizer and batch are needed\n");
    return 2;
}

static clt_train_options train_options(const arguments *a, clt_tensor *output) {
    clt_train_options o = {
        .optimizer = !strcmp(a->optimizer, "sgd") ? CLT_SGD : !strcmp(a->optimizer, "adam") ? CLT_ADAM : CLT_ADAMW,
        .lr = (float)a->lr,
        .momentum = (float)a->momentum,
        .nesterov = a->nesterov != 0,
        .weight_decay = a->weight_decay > 0 ? (float)a->weight_decay : -1.0f,
        .clip_norm = (float)a->clip_norm,
        .clip_value = (float)a->clip_value,
        .accumulate = (int)a->accumulate,
        .output = output,
    };
    static const clt_parameter_rule rules[] = {{"*.bias", 2, -1}, {"norm?.*", 2, -1}};
    if (a->groups > 0) {
        o.rules = rules;
        o.n_rules = 2;
    }
    if (a->cosine > 0) {
        o.schedule = CLT_SCHEDULE_COSINE;
        o.total_steps = (int64_t)a->cosine;
    }
    return o;
}

/* ---- the run ---- */

typedef struct session {
    clt_device *device;
    clt_graph *graph;
    clt_onnx *onnx;
    clt_dataset *dataset;
    clt_loader *loader;
    clt_trainer *trainer;
} session;

static clt_shape batched(clt_shape sample, int64_t batch) {
    clt_shape shape = {.rank = sample.rank + 1, .dims = {batch}};
    memcpy(shape.dims + 1, sample.dims, sizeof shape.dims - sizeof shape.dims[0]);
    return shape;
}

static bool reads_tokens(const char *model) {
    model_spec spec;
    char problem[256];
    return model_parse(&spec, model, problem, sizeof problem) && model_reads(spec.id) == MODEL_READS_TOKENS;
}

static clt_status build_onnx(session *s, const arguments *a, clt_tensor **y, clt_tensor **output) {
    clt_status status = clt_onnx_open(&s->onnx, a->model);
    if (status == CLT_OK) status = clt_onnx_build(s->onnx, s->graph, &(clt_onnx_options){.batch = (int64_t)a->batch});
    *output = clt_onnx_output(s->onnx, NULL);
    *y = clt_input(s->graph, "y", CLT_I32, CLT_SHAPE((int64_t)a->batch));
    return status;
}

static void build(session *s, const arguments *a, clt_tensor **y, clt_tensor **output) {
    int64_t batch = (int64_t)a->batch, classes = (int64_t)a->classes;
    clt_tensor *x = clt_input(s->graph, "x", CLT_F32, batched(clt_dataset_shape(s->dataset, 0), batch));
    *y = clt_input(s->graph, "y", CLT_I32, CLT_SHAPE(batch));
    if (reads_tokens(a->model)) { /* predicts the next token of x */
        clt_tensor *tokens = clt_cast(x, CLT_I32);
        int64_t length = clt_tensor_shape(x).dims[1] - 1;
        x = clt_slice(tokens, 1, 0, length, 1);
        *y = clt_slice(tokens, 1, 1, length + 1, 1);
    }
    *output = !strcmp(a->model, "transformer") ? transformer_build(s->graph, x, classes) : network_build(a->model, x, classes);
    if (!*output) *output = model_build(a->model, x, classes);
}

static clt_status open_session(session *s, const arguments *a) {
    clt_tensor *y = NULL, *output = NULL;
    clt_status status = clt_device_open(&s->device, NULL);
    if (status == CLT_OK) status = clt_dataset_npy(&s->dataset, a->x, a->y);
    if (status == CLT_OK) status = clt_loader_create(&s->loader, s->dataset, &(clt_loader_options){.batch = (int64_t)a->batch});
    if (status == CLT_OK) status = clt_graph_create(&s->graph);
    if (status == CLT_OK && model_is_onnx(a->model)) status = build_onnx(s, a, &y, &output);
    else if (status == CLT_OK) build(s, a, &y, &output);
    if (status < 0) return status;
    clt_train_options options = train_options(a, output);
    status = clt_trainer_create(&s->trainer, s->device, model_loss(output, y), &options);
    return status < 0 || s->onnx ? status : clt_checkpoint_load(s->trainer, NULL, a->initial);
}

static clt_status train(session *s, int64_t steps) {
    for (int64_t i = 0; i < steps; i++) {
        clt_batch batch;
        clt_metrics metrics;
        clt_status status = clt_loader_next(s->loader, &batch);
        if (status == CLT_END) status = clt_loader_next(s->loader, &batch);
        if (status == CLT_OK) status = clt_trainer_step(s->trainer, &batch);
        if (status == CLT_OK) status = clt_trainer_train_metrics(s->trainer, &metrics, true);
        if (status < 0) return status;
        printf("%.9g\n", metrics.loss);
    }
    return CLT_OK;
}

static clt_status evaluate(session *s) {
    clt_batch batch;
    clt_metrics metrics;
    clt_status status = clt_loader_set_position(s->loader, (clt_loader_position){0});
    while (status == CLT_OK && (status = clt_loader_next(s->loader, &batch)) == CLT_OK)
        status = clt_trainer_evaluate(s->trainer, &batch);
    if (status == CLT_END) status = clt_trainer_eval_metrics(s->trainer, &metrics, true);
    if (status == CLT_OK) printf("eval %.9g %.9g\n", metrics.loss, metrics.accuracy);
    return status;
}

int main(int argc, char **argv) {
    arguments a = {0};
    session s = {0};
    int code = read_arguments(&a, argc, argv);
    if (code) return code;
    clt_status status = open_session(&s, &a);
    if (status == CLT_OK) status = train(&s, (int64_t)a.steps);
    if (status == CLT_OK) status = evaluate(&s);
    if (status == CLT_OK) status = clt_weights_save(s.trainer, a.final);
    if (status < 0) fprintf(stderr, "%s: %s\n", clt_status_name(status), clt_error_detail());
    clt_trainer_destroy(s.trainer);
    clt_loader_destroy(s.loader);
    clt_dataset_destroy(s.dataset);
    clt_graph_destroy(s.graph);
    clt_onnx_close(s.onnx);
    clt_device_close(s.device);
    return status < 0;
}
