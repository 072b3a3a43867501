/*
 * The models that the program knows: from a word to a graph. Depends on the
 * library's public headers alone.
 *
 *   linear          x W^T + b                                  fc
 *   logistic        the same, for classes                      fc
 *   mlp[:H1,H2,…]   linear - ReLU … linear; default 128        fc1, fc2, …
 *   convnet         conv 3x3 32 - ReLU - max pool 2 -
 *                   conv 3x3 64 - ReLU - max pool 2 -
 *                   linear 128 - ReLU - linear                 conv1, conv2, fc1, fc2
 *   resnet18        He et al. 2015 in the form for CIFAR: stem 3x3, stride 1, no first
 *                   pool; torchvision's parameter names        conv1, bn1, layer1.0.conv1, …, fc
 */
#ifndef CLTRAIN_TOOLS_MODELS_H
#define CLTRAIN_TOOLS_MODELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cltrain/graph.h>

#define MODEL_MAX_HIDDEN 16

typedef enum model_id {
    MODEL_LINEAR,
    MODEL_LOGISTIC,
    MODEL_MLP,
    MODEL_CONVNET,
    MODEL_RESNET18
} model_id;

typedef struct model_spec {
    model_id id;
    int n_hidden; /* mlp */
    int64_t hidden[MODEL_MAX_HIDDEN];
} model_spec;

/* "linear", "logistic", "mlp", "mlp:H1,H2,…", "convnet", "resnet18", for messages. */
#define MODEL_EXPECTED "linear, logistic, mlp[:H1,H2,...], convnet or resnet18"

/* Reads a model's text. False if it is none; `problem` then says why, and what was expected. */
bool model_parse(model_spec *spec, const char *text, char *problem, size_t problem_bytes);

/* The word alone: "mlp". */
const char *model_name(model_id id);

/* Needs samples [C, H, W]? */
bool model_needs_images(model_id id);

/* Adds the model to the graph of x [N, …]: the prediction [N, outputs]. NULL if the text is no
 * model; what does not fit x sticks in the graph. */
clt_tensor *model_build(const char *text, clt_tensor *x, int64_t outputs);

#endif
