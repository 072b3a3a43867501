#include "tools/common/models.h"

#include <stdio.h>
#include <string.h>

#include <cltrain/ops.h>

#include "tools/common/numbers.h"

static const char *const names[] = {"linear", "logistic", "mlp", "convnet", "resnet18"};

const char *model_name(model_id id) {
    return names[id];
}

bool model_needs_images(model_id id) {
    return id == MODEL_CONVNET || id == MODEL_RESNET18;
}

bool model_parse(model_spec *spec, const char *text, char *problem, size_t problem_bytes) {
    size_t length = strcspn(text, ":");
    const char *sizes = text[length] ? text + length + 1 : NULL;
    for (int i = 0; i < (int)(sizeof names / sizeof names[0]); i++) {
        if (strlen(names[i]) != length || memcmp(names[i], text, length) != 0) continue;
        *spec = (model_spec){.id = (model_id)i, .n_hidden = 1, .hidden = {128}};
        if (!sizes) return true;
        if (i != MODEL_MLP) {
            snprintf(problem, problem_bytes, "model '%s': %s takes nothing after it", text, names[i]);
            return false;
        }
        spec->n_hidden = number_sizes(sizes, ',', spec->hidden, MODEL_MAX_HIDDEN);
        if (spec->n_hidden) return true;
        snprintf(problem, problem_bytes,
                 "model '%s': expected 1 to %d layer sizes of at least 1, such as mlp:256,128", text,
                 MODEL_MAX_HIDDEN);
        return false;
    }
    snprintf(problem, problem_bytes, "unknown model '%s': expected " MODEL_EXPECTED, text);
    return false;
}

/* [N, …] -> [N, features] */
static clt_tensor *flat(clt_tensor *x) {
    clt_shape shape = clt_tensor_shape(x);
    if (shape.rank == 1) return clt_reshape(x, CLT_SHAPE(shape.dims[0], 1));
    return shape.rank == 2 ? x : clt_flatten(x);
}

static clt_tensor *build_mlp(const model_spec *spec, clt_tensor *x, int64_t outputs) {
    char name[16];
    x = flat(x);
    for (int i = 0; i < spec->n_hidden; i++) {
        snprintf(name, sizeof name, "fc%d", i + 1);
        x = clt_relu(clt_linear(x, name, spec->hidden[i]));
    }
    snprintf(name, sizeof name, "fc%d", spec->n_hidden + 1);
    return clt_linear(x, name, outputs);
}

static clt_tensor *build_convnet(clt_tensor *x, int64_t outputs) {
    x = clt_relu(clt_conv2d(x, "conv1", 32, .kernel = 3, .padding = 1));
    x = clt_max_pool2d(x, .kernel = 2);
    x = clt_relu(clt_conv2d(x, "conv2", 64, .kernel = 3, .padding = 1));
    x = clt_max_pool2d(x, .kernel = 2);
    x = clt_relu(clt_linear(clt_flatten(x), "fc1", 128));
    return clt_linear(x, "fc2", outputs);
}

/* Convolution without bias, as the batch norm that follows has one. */
static clt_tensor *conv_norm(clt_tensor *x, const char *prefix, const char *conv, const char *norm,
                             clt_conv2d_options options) {
    char name[64];
    options.no_bias = true;
    snprintf(name, sizeof name, "%s%s", prefix, conv);
    x = clt_conv2d_with(x, name, options);
    snprintf(name, sizeof name, "%s%s", prefix, norm);
    return clt_batch_norm(x, name);
}

/* Two 3x3 convolutions beside a shortcut, which is a 1x1 convolution where the shape changes. */
static clt_tensor *basic_block(clt_tensor *x, const char *prefix, int64_t channels, int stride) {
    clt_conv2d_options first = {channels, .kernel = 3, .padding = 1, .stride = stride};
    clt_conv2d_options second = {channels, .kernel = 3, .padding = 1};
    clt_conv2d_options shortcut = {channels, .kernel = 1, .stride = stride};
    clt_tensor *y = clt_relu(conv_norm(x, prefix, "conv1", "bn1", first));
    y = conv_norm(y, prefix, "conv2", "bn2", second);
    if (stride != 1 || clt_tensor_shape(x).dims[1] != channels)
        x = conv_norm(x, prefix, "downsample.0", "downsample.1", shortcut);
    return clt_relu(clt_add(y, x));
}

static clt_tensor *build_resnet18(clt_tensor *x, int64_t outputs) {
    x = clt_relu(
        conv_norm(x, "", "conv1", "bn1", (clt_conv2d_options){64, .kernel = 3, .padding = 1}));
    for (int layer = 0; layer < 4; layer++) {
        for (int block = 0; block < 2; block++) {
            char prefix[32];
            snprintf(prefix, sizeof prefix, "layer%d.%d.", layer + 1, block);
            x = basic_block(x, prefix, (int64_t)64 << layer, layer > 0 && block == 0 ? 2 : 1);
        }
    }
    return clt_linear(clt_flatten(clt_global_avg_pool2d(x)), "fc", outputs);
}

clt_tensor *model_build(const char *text, clt_tensor *x, int64_t outputs) {
    char problem[256];
    model_spec spec;
    if (!model_parse(&spec, text, problem, sizeof problem)) return NULL;
    switch (spec.id) {
    case MODEL_LINEAR:
    case MODEL_LOGISTIC: return clt_linear(flat(x), "fc", outputs);
    case MODEL_MLP: return build_mlp(&spec, x, outputs);
    case MODEL_CONVNET: return build_convnet(x, outputs);
    case MODEL_RESNET18: return build_resnet18(x, outputs);
    }
    return NULL;
}
