#include "tools/common/models.h"

#include <limits.h>
#include <string.h>

#include <cltrain/ops.h>

#include "tools/common/help.h"
#include "tools/common/numbers.h"

/* One model. `sizes` is what follows the colon; NULL: nothing may. */
typedef struct model_row {
    const char *name, *form, *help;
    model_input reads;
    bool (*sizes)(model_spec *spec, const char *text);
    const char *expected; /* of the sizes */
    int depth;            /* resnet */
} model_row;

static bool mlp_sizes(model_spec *spec, const char *text) {
    spec->n_hidden = number_sizes(text, ',', spec->hidden, MODEL_MAX_HIDDEN);
    return spec->n_hidden > 0;
}

/* A transformer's layers, heads and width. */
typedef struct shape_name {
    const char *name;
    int64_t layers, heads, width;
} shape_name;

static const shape_name gpt2_shapes[] = {
    {"nano", 6, 6, 384}, {"small", 12, 12, 768}, {"medium", 24, 16, 1024}, {"large", 36, 20, 1280}, {"xl", 48, 25, 1600}, {0}};
static const shape_name llama_shapes[] = {{"nano", 6, 6, 384}, {"tiny", 22, 32, 2048}, {0}};
static const shape_name vit_shapes[] = {{"tiny", 12, 3, 192}, {"small", 12, 6, 384}, {"base", 12, 12, 768}, {"large", 24, 16, 1024}, {0}};

/* A name of the list, or LAYERS/HEADS/WIDTH. */
static bool read_shape(const shape_name *names, const char *text, size_t length, shape_name *shape) {
    char word[64];
    int64_t sizes[3];
    if (length >= sizeof word) return false;
    memcpy(word, text, length);
    word[length] = '\0';
    for (; names->name; names++) {
        if (strcmp(word, names->name) != 0) continue;
        *shape = *names;
        return true;
    }
    if (number_sizes(word, '/', sizes, 3) != 3 || sizes[0] > 1024 || sizes[1] > sizes[2] || sizes[2] > INT_MAX || sizes[2] % sizes[1]) return false;
    *shape = (shape_name){NULL, sizes[0], sizes[1], sizes[2]};
    return true;
}

static bool gpt2_sizes(model_spec *spec, const char *text) {
    shape_name shape;
    if (!read_shape(gpt2_shapes, text, strlen(text), &shape)) return false;
    spec->gpt2 = (clt_gpt2_options){.layers = (int)shape.layers, .heads = (int)shape.heads, .width = shape.width};
    return true;
}

/* The MLP is as wide as Touvron et al. make it: 8 / 3 of the width, up to a multiple of 256. */
static bool llama_sizes(model_spec *spec, const char *text) {
    shape_name shape;
    if (!read_shape(llama_shapes, text, strlen(text), &shape) || shape.width / shape.heads % 2) return false;
    spec->llama = (clt_llama_options){
        .layers = (int)shape.layers, .heads = (int)shape.heads, .width = shape.width, .hidden = (8 * shape.width / 3 + 255) / 256 * 256};
    return true;
}

static bool vit_sizes(model_spec *spec, const char *text) {
    shape_name shape;
    size_t length = strcspn(text, ",");
    spec->vit.patch = 0;
    if (!read_shape(vit_shapes, text, length, &shape)) return false;
    if (text[length] && (strncmp(text + length, ",patch=", 7) != 0 || !number_whole(text + length + 7, 1, 1024, &spec->vit.patch))) return false;
    spec->vit = (clt_vit_options){.patch = spec->vit.patch, .layers = (int)shape.layers, .heads = (int)shape.heads, .width = shape.width};
    return true;
}

static bool lstm_sizes(model_spec *spec, const char *text) {
    int64_t sizes[2];
    if (number_sizes(text, '/', sizes, 2) != 2 || sizes[0] > 64) return false;
    spec->lstm = (clt_lstm_model_options){.layers = (int)sizes[0], .hidden = sizes[1]};
    return true;
}

static const model_row rows[] = {
    [MODEL_LINEAR] = {"linear", "linear", "regression: one linear layer"},
    [MODEL_LOGISTIC] = {"logistic", "logistic", "classification: one linear layer"},
    [MODEL_MLP] = {"mlp", "mlp[:H1,...]", "linear layers with ReLU between; default 128 hidden", .sizes = mlp_sizes,
                   .expected = "1 to 16 layer sizes of at least 1, such as mlp:256,128"},
    [MODEL_CONVNET] = {"convnet", "convnet", "two 3x3 convolutions, each with ReLU and pooling; 128 hidden", MODEL_READS_IMAGES},
    [MODEL_RESNET18] = {"resnet18", "resnet18", "He et al. 2015; up to 64x64 pixels with the stem for small images", MODEL_READS_IMAGES, .depth = 18},
    [MODEL_RESNET34] = {"resnet34", "resnet34", "", MODEL_READS_IMAGES, .depth = 34},
    [MODEL_RESNET50] = {"resnet50", "resnet50", "with bottlenecks", MODEL_READS_IMAGES, .depth = 50},
    [MODEL_RESNET101] = {"resnet101", "resnet101", "", MODEL_READS_IMAGES, .depth = 101},
    [MODEL_MOBILENET_V2] = {"mobilenet_v2", "mobilenet_v2", "Sandler et al. 2018", MODEL_READS_IMAGES},
    [MODEL_VIT] = {"vit", "vit[:SIZE]", "vision transformer: tiny, small, base or LAYERS/HEADS/WIDTH, [,patch=P]", MODEL_READS_IMAGES, vit_sizes,
                   "tiny, small, base, large or LAYERS/HEADS/WIDTH, then ,patch=P, such as vit:tiny,patch=4"},
    [MODEL_GPT2] = {"gpt2", "gpt2[:SIZE]", "Radford et al. 2019: nano, small, medium, large, xl or LAYERS/HEADS/WIDTH", MODEL_READS_TOKENS, gpt2_sizes,
                    "nano, small, medium, large, xl or LAYERS/HEADS/WIDTH, such as gpt2:6/6/384"},
    [MODEL_LLAMA] = {"llama", "llama[:SIZE]", "Touvron et al. 2023: nano, tiny (1.1B) or LAYERS/HEADS/WIDTH", MODEL_READS_TOKENS, llama_sizes,
                     "nano, tiny or LAYERS/HEADS/WIDTH with an even WIDTH/HEADS, such as llama:6/6/384"},
    [MODEL_LSTM] = {"lstm", "lstm[:SIZE]", "recurrent language model: LAYERS/WIDTH, default 2/200", MODEL_READS_TOKENS, lstm_sizes,
                    "LAYERS/WIDTH with up to 64 layers, such as lstm:2/200"},
    [MODEL_ONNX] = {"onnx", "FILE.onnx", "a network that PyTorch, for one, exported (docs/onnx.md)"},
};

const char *model_name(model_id id) {
    return rows[id].name;
}

model_input model_reads(model_id id) {
    return rows[id].reads;
}

bool model_is_onnx(const char *path) {
    size_t length = strlen(path);
    return length > 5 && strcmp(path + length - 5, ".onnx") == 0;
}

bool model_parse(model_spec *spec, const char *text, char *problem, size_t problem_bytes) {
    size_t length = strcspn(text, ":");
    if (model_is_onnx(text)) {
        *spec = (model_spec){.id = MODEL_ONNX};
        return true;
    }
    for (int i = 0; i < MODEL_ONNX; i++) {
        const model_row *row = &rows[i];
        if (strlen(row->name) != length || memcmp(row->name, text, length) != 0) continue;
        *spec = (model_spec){.id = (model_id)i, .n_hidden = 1, .hidden = {128}};
        if (!text[length]) return true;
        if (!row->sizes) snprintf(problem, problem_bytes, "model '%s': %s takes nothing after it", text, row->name);
        else if (row->sizes(spec, text + length + 1)) return true;
        else snprintf(problem, problem_bytes, "model '%s': expected %s", text, row->expected);
        return false;
    }
    snprintf(problem, problem_bytes, "unknown model '%s': expected " MODEL_EXPECTED, text);
    return false;
}

void model_print(FILE *file) {
    for (int i = 0; i < MODEL_COUNT; i++) help_print(file, "  %-13s %s\n", rows[i].form, rows[i].help);
}

/* [N, ...] -> [N, features] */
static clt_tensor *flat(clt_tensor *x) {
    clt_shape shape = clt_tensor_shape(x);
    if (shape.rank == 1) return clt_reshape(x, CLT_SHAPE(shape.dims[0], 1));
    return shape.rank == 2 ? x : clt_flatten(x);
}

clt_tensor *model_loss(clt_tensor *output, clt_tensor *truth) {
    clt_shape shape = clt_tensor_shape(output);
    if (clt_tensor_dtype(truth) != CLT_I32) return clt_mse_loss(output, truth);
    if (shape.rank <= 2) return clt_cross_entropy(output, truth);
    return clt_cross_entropy(clt_reshape(output, CLT_SHAPE(-1, shape.dims[shape.rank - 1])), clt_reshape(truth, CLT_SHAPE(-1)));
}

clt_tensor *model_build(const char *text, clt_tensor *x, int64_t outputs) {
    char problem[256];
    model_spec spec;
    clt_shape shape = clt_tensor_shape(x);
    if (!model_parse(&spec, text, problem, sizeof problem)) return NULL;
    if (clt_tensor_dtype(x) == CLT_U8) x = clt_model_normalize(x); /* pixels of files */
    switch (spec.id) {
    case MODEL_LINEAR:
    case MODEL_LOGISTIC: return clt_linear(flat(x), "fc", outputs);
    case MODEL_MLP: return clt_model_mlp(x, spec.hidden, spec.n_hidden, outputs);
    case MODEL_CONVNET: return clt_model_convnet(x, outputs);
    case MODEL_MOBILENET_V2: return clt_model_mobilenet_v2(x, .outputs = outputs);
    case MODEL_VIT: spec.vit.outputs = outputs; return clt_model_vit_with(x, spec.vit);
    case MODEL_GPT2:
        spec.gpt2.vocabulary = outputs;
        spec.gpt2.positions = shape.rank == 2 ? shape.dims[1] : 0;
        return clt_model_gpt2_with(x, spec.gpt2);
    case MODEL_LLAMA: spec.llama.vocabulary = outputs; return clt_model_llama_with(x, spec.llama);
    case MODEL_LSTM: spec.lstm.vocabulary = outputs; return clt_model_lstm_with(x, spec.lstm);
    case MODEL_ONNX: return NULL;
    default: return clt_model_resnet(x, .depth = rows[spec.id].depth, .small_images = shape.rank == 4 && shape.dims[2] <= 64, .outputs = outputs);
    }
}
