/* The graph of a model of cltrain-train, for shapes that are given. */
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "tools/common/message.h"
#include "tools/common/models.h"
#include "tools/common/numbers.h"

shared_options shared_options_unset(void) {
    return (shared_options){.batch = OPTION_UNSET, .classes = OPTION_UNSET, .optimizer = OPTION_UNSET};
}

int refuse_word(void *into, const char *text) {
    (void)into;
    return usage_error("unexpected word '%s'", text);
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
    int used = snprintf(model->text, sizeof model->text, "%s ", name);
    for (int i = 0; i < shape.rank && used < (int)sizeof model->text; i++)
        used += snprintf(model->text + used, sizeof model->text - (size_t)used, "%s%lld", i ? "x" : "",
                         (long long)shape.dims[i]);
}

static int build_graph(probe_model *model, const char *name, clt_shape shape, int64_t classes) {
    clt_status status = clt_graph_create(&model->graph);
    if (status < 0) return library_error(status, "making the model");
    clt_tensor *x = clt_input(model->graph, "x", model->tokens ? CLT_I32 : CLT_F32, shape);
    clt_tensor *y = clt_input(model->graph, "y", CLT_I32, model->tokens ? shape : CLT_SHAPE(shape.dims[0]));
    model->output = model_build(name, x, classes);
    model->loss = model_loss(model->output, y);
    status = clt_graph_status(model->graph);
    if (status >= 0) return 0;
    return usage_error("%s does not fit: %s", model->text, clt_error_detail());
}

static clt_train_options training_of(model_id id, int optimizer, clt_tensor *output) {
    recipe r = optimizer == OPTION_UNSET ? *recipe_of_model(id) : recipe_of_optimizer((clt_optimizer)optimizer);
    return (clt_train_options){.optimizer = r.optimizer, .lr = (float)r.lr, .momentum = (float)r.momentum, .nesterov = r.nesterov,
                               .weight_decay = r.weight_decay > 0 ? (float)r.weight_decay : -1, .output = output};
}

int probe_model_build(probe_model *model, const shared_options *options, const char *name) {
    model_spec spec;
    clt_shape shape;
    char problem[512];
    *model = (probe_model){.graph = NULL};
    if (!model_parse(&spec, name, problem, sizeof problem)) return usage_error("--model: %s", problem);
    if (spec.id == MODEL_ONNX) return usage_error("--model: %s: files are not known here, but to cltrain-train; expected a model by its name", name);
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
    model->training = training_of(spec.id, options->optimizer, model->output);
    if (code) probe_model_free(model);
    return code;
}

void probe_model_free(probe_model *model) {
    clt_graph_destroy(model->graph);
    *model = (probe_model){.graph = NULL};
}
