/*
 * Models by their text on the command line: from "gpt2:nano" to a graph, by the library's builders (cltrain/models.h).
 */
#ifndef CLTRAIN_TOOLS_MODELS_H
#define CLTRAIN_TOOLS_MODELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cltrain/models.h>

#define MODEL_MAX_HIDDEN 16

typedef enum model_id {
    MODEL_LINEAR,
    MODEL_LOGISTIC,
    MODEL_MLP,
    MODEL_CONVNET,
    MODEL_RESNET18,
    MODEL_RESNET34,
    MODEL_RESNET50,
    MODEL_RESNET101,
    MODEL_MOBILENET_V2,
    MODEL_VIT,
    MODEL_GPT2,
    MODEL_LLAMA,
    MODEL_LSTM,
    MODEL_ONNX, /* FILE.onnx, which has its own inputs: model_build does not know it */
    MODEL_COUNT
} model_id;

/* What a model reads. */
typedef enum model_input { MODEL_READS_ANY, MODEL_READS_IMAGES, MODEL_READS_TOKENS } model_input;

typedef struct model_spec {
    model_id id;
    int n_hidden; /* mlp */
    int64_t hidden[MODEL_MAX_HIDDEN];
    clt_vit_options vit;
    clt_gpt2_options gpt2;
    clt_llama_options llama;
    clt_lstm_model_options lstm;
} model_spec;

/* For messages. */
#define MODEL_EXPECTED                                                                                               \
    "linear, logistic, mlp[:H1,H2,...], convnet, resnet18, resnet34, resnet50, resnet101, mobilenet_v2, vit[:SIZE], gpt2[:SIZE], llama[:SIZE], lstm[:SIZE] or FILE.onnx"

/* Is it FILE.onnx? */
bool model_is_onnx(const char *path);

/* Reads a model's text. False if it is none; `problem` then says why, and what was expected. */
bool model_parse(model_spec *spec, const char *text, char *problem, size_t problem_bytes);

/* The word alone: "mlp". */
const char *model_name(model_id id);

model_input model_reads(model_id id);

/* Adds the model to the graph of x [N, ...]: the prediction [N, outputs], or, of tokens [N, T], [N, T, outputs]. NULL if the text is no
 * model; what does not fit x sticks in the graph. */
clt_tensor *model_build(const char *text, clt_tensor *x, int64_t outputs);

/* The mean cross-entropy of labels i32 [...] for an output [..., classes], else the mean squared error. */
clt_tensor *model_loss(clt_tensor *output, clt_tensor *truth);

/* A line for each model, for --help. */
void model_print(FILE *file);

#endif
