/* The graph of a model of cltrain-train, for shapes that are given. */
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "tools/common/message.h"
#include "tools/common/models.h"
#include "tools/common/numbers.h"

shared_options shared_options_unset(void) {
    return (shared_options){.batch = OPTION_UNSET, .classes = OPTION_UNSET, .optimizer = OPTION_UNSET, .ranks = 1};
}

int refuse_word(void *into, const char *text) {
    (void)into;
    return usage_error("unexpected word '%s'", text);
}

int take_model(void *into, const char *text) {
    shared_options *o = into;
    if (o->model) return usage_error("unexpected word '%s': the model is '%s'", text, o->model);
    o->model = text;
    return 0;
}

static int read_shape(const shared_options *options, int64_t batch, clt_shape *shape) {
    int64_t sizes[CLT_MAX_RANK - 1];
    const char *text = options->sample ? options->sample : "3x32x32";
    int n = number_sizes(text, 'x', sizes, CLT_MAX_RANK - 1);
    if (n == 0) return usage_error("--sample '%s': expected sizes of at least 1, such as 3x32x32 or 784", text);
    *shape = (clt_shape){.rank = n + 1, .dims = {batch}};
    for (int i = 0; i < n; i++) shape->dims[i + 1] = sizes[i];
    return 0;
}

static void describe(probe_model *model, const char *name, clt_shape shape) {
    int used = 0;
    for (int i = 1; i < shape.rank && used < (int)sizeof model->sample; i++)
        used += snprintf(model->sample + used, sizeof model->sample - (size_t)used, "%s%lld", i > 1 ? "x" : "", (long long)shape.dims[i]);
    snprintf(model->text, sizeof model->text, "%.60s %lldx%.40s", name, (long long)shape.dims[0], model->sample);
}

static int build_graph(probe_model *model, const char *name, clt_shape shape, int64_t classes) {
    clt_status status = clt_graph_create(&model->graph);
    if (status < 0) return library_error(status, "making the model");
    clt_tensor *x = clt_input(model->graph, "x", model->tokens ? CLT_I32 : CLT_F32, shape);
    clt_tensor *y = clt_input(model->graph, "y", CLT_I32, model->tokens ? shape : CLT_SHAPE(shape.dims[0]));
    model->inputs[model->n_inputs++] = x;
    model->inputs[model->n_inputs++] = y;
    model->output = model_build(name, x, classes);
    model->classes = classes;
    model->loss = model_loss(model->output, y);
    status = clt_graph_status(model->graph);
    if (status >= 0) return 0;
    return usage_error("%s does not fit: %s", model->text, clt_error_detail());
}

/* 0: the file's own. */
static clt_status build_for(probe_model *model, int64_t batch) {
    clt_graph_destroy(model->graph);
    model->graph = NULL;
    clt_status status = clt_graph_create(&model->graph);
    return status < 0 ? status : clt_onnx_build(model->onnx, model->graph, &(clt_onnx_options){.batch = batch});
}

/* Where the file leaves the batch open: `batch`; else its own, if no other was asked for. */
static clt_status build_network(probe_model *model, int64_t batch, bool asked) {
    clt_status status = build_for(model, batch);
    return status == CLT_E_INVALID && !asked ? build_for(model, 0) : status;
}

/* A class for each sample, or for each token where there are several outputs of a sample; of numbers the mean of their squares. */
static clt_tensor *loss_of_file(probe_model *model) {
    clt_shape y = clt_tensor_shape(model->output);
    int64_t numbers = y.rank > 0 ? y.dims[y.rank - 1] : 1;
    model->classes = numbers;
    if (y.rank < 2 || y.rank > 3 || numbers < 2 || y.dims[0] != model->shape.dims[0]) return clt_mse_loss(model->output, clt_mul_scalar(model->output, 0));
    y.rank--;
    clt_tensor *truth = clt_input(model->graph, "cltrain.probe.y", CLT_I32, y);
    model->inputs[model->n_inputs++] = truth;
    return model_loss(model->output, truth);
}

/* Those that are of samples; others are fixed. */
static void find_inputs(probe_model *model) {
    const char *name;
    for (size_t i = 0; (name = clt_onnx_input_name(model->onnx, i)) && model->n_inputs + 1 < CLT_MAX_FIELDS; i++) {
        clt_tensor *input = clt_graph_find(model->graph, name);
        clt_shape shape = clt_tensor_shape(input);
        if (!model->n_inputs) model->shape = shape;
        if (shape.rank > 0 && shape.dims[0] == model->shape.dims[0]) model->inputs[model->n_inputs++] = input;
    }
}

static int build_file(probe_model *model, const shared_options *options, const char *path) {
    enum { USUAL_BATCH = 32 };
    bool asked = options->batch != OPTION_UNSET;
    if (options->sample) return usage_error("--sample: %s has inputs of its own", path);
    if (options->classes != OPTION_UNSET) return usage_error("--classes: %s has outputs of its own", path);
    clt_status status = clt_onnx_open(&model->onnx, path);
    if (status >= 0) status = build_network(model, asked ? options->batch : USUAL_BATCH, asked);
    if (status == CLT_E_IO || status == CLT_E_NO_MEMORY) return library_error(status, "reading the model");
    if (status < 0) return usage_error("%s", clt_error_detail());
    find_inputs(model);
    model->output = clt_onnx_output(model->onnx, NULL);
    if (!model->n_inputs || clt_tensor_dtype(model->output) != CLT_F32) return usage_error("%s: expected an input of samples, and an output that is f32", path);
    model->tokens = clt_tensor_dtype(model->inputs[0]) == CLT_I32;
    model->loss = loss_of_file(model);
    const char *slash = strrchr(path, '/');
    describe(model, slash ? slash + 1 : path, model->shape);
    status = clt_graph_status(model->graph);
    return status < 0 ? usage_error("%s does not fit: %s", path, clt_error_detail()) : 0;
}

static clt_train_options training_of(model_id id, const shared_options *o, clt_tensor *output) {
    recipe r = o->optimizer == OPTION_UNSET ? *recipe_of_model(id) : recipe_of_optimizer((clt_optimizer)o->optimizer);
    return (clt_train_options){.optimizer = r.optimizer, .lr = (float)r.lr, .momentum = (float)r.momentum, .nesterov = r.nesterov,
                               .weight_decay = r.weight_decay > 0 ? (float)r.weight_decay : -1, .output = output,
                               .precision = (clt_precision)o->precision, .recompute = (clt_recompute)o->recompute, .offload = (clt_offload)o->offload,
                               .on_nonfinite = o->precision == CLT_PRECISION_F16 ? CLT_NONFINITE_SKIP : CLT_NONFINITE_IGNORE};
}

int probe_model_build(probe_model *model, const shared_options *options, const char *name) {
    model_spec spec;
    clt_shape shape;
    char problem[512];
    *model = (probe_model){.graph = NULL};
    if (!model_parse(&spec, name, problem, sizeof problem)) return usage_error("--model: %s", problem);
    if (spec.id == MODEL_ONNX) {
        int failed = build_file(model, options, name);
        model->training = training_of(spec.id, options, model->output);
        if (failed) probe_model_free(model);
        return failed;
    }
    int64_t usual = spec.id == MODEL_RESNET18 ? 64 : 128;
    model_input reads = model_reads(spec.id);
    int code = read_shape(options, options->batch == OPTION_UNSET ? usual : options->batch, &shape);
    if (code) return code;
    if (reads == MODEL_READS_IMAGES && shape.rank != 4)
        return usage_error("%s needs images: --sample CxHxW", model_name(spec.id));
    if (reads == MODEL_READS_TOKENS && shape.rank != 2)
        return usage_error("%s needs sequences of tokens: --sample LENGTH", model_name(spec.id));
    model->shape = shape;
    model->tokens = reads == MODEL_READS_TOKENS;
    describe(model, name, shape);
    code = build_graph(model, name, shape, options->classes == OPTION_UNSET ? 10 : options->classes);
    model->training = training_of(spec.id, options, model->output);
    if (code) probe_model_free(model);
    return code;
}

void probe_model_free(probe_model *model) {
    clt_graph_destroy(model->graph);
    clt_onnx_close(model->onnx);
    *model = (probe_model){.graph = NULL};
}
