/*
 * Networks as builders: each adds a model to the graph of its input and returns the prediction.
 *
 * Parameter names and layouts are those of the model's usual implementation in Python, so that its safetensors
 * files load as they are: torchvision for ResNet, MobileNetV2 and ViT, Hugging Face transformers for GPT-2 and Llama.
 * Initial values follow the same sources.
 *
 * The builders follow the rules of cltrain/ops.h: an error sticks in the graph. From C++ call the functions that end in
 * _with and pass the struct.
 */
#ifndef CLTRAIN_MODELS_H
#define CLTRAIN_MODELS_H

#include <stdbool.h>
#include <stdint.h>

#include <cltrain/export.h>
#include <cltrain/graph.h>
#include <cltrain/status.h>

CLT_BEGIN_DECLS

/* ---- small models ------------------------------------------------------------ */

/* Linear layers with ReLU between them: x [N, ...] flattened -> hidden[0] -> ... -> [N, outputs]. With n_hidden = 0: one linear layer.
 * Parameters fc1, fc2, ... */
CLT_API clt_tensor *clt_model_mlp(clt_tensor *x, const int64_t *hidden, int n_hidden, int64_t outputs);

/* Two 3x3 convolutions of 32 and 64 channels, each with ReLU and max pooling by 2, and linear layers of 128 and `outputs`.
 * x [N, C, H, W] -> [N, outputs]. Parameters conv1, conv2, fc1, fc2. */
CLT_API clt_tensor *clt_model_convnet(clt_tensor *x, int64_t outputs);

/* ---- images: torchvision's names ----------------------------------------------- */

/* RGB images u8 [N, 3, H, W] from 0 to 255, as clt_dataset_image_folder has them, to f32 as the models of torchvision expect them: (x / 255 - mean) / deviation
 * of each channel, with the means 0.485, 0.456, 0.406 and the deviations 0.229, 0.224, 0.225 of ImageNet. CLT_E_SHAPE, CLT_E_DTYPE for others. */
CLT_API clt_tensor *clt_model_normalize(clt_tensor *x);

typedef struct clt_resnet_options {
    int depth;          /* 18, 34 (basic blocks), 50, 101 or 152 (bottlenecks); default 18 */
    bool small_images;  /* the stem for images of 32x32: a 3x3 convolution of stride 1 and no pooling (He et al. 2015,
                           section 4.2). Default: 7x7 of stride 2 and max pooling, for ImageNet */
    int64_t outputs;    /* default 1000 */
} clt_resnet_options;

/* ResNet; He et al. 2015, with the stride in the 3x3 convolution of a bottleneck, as torchvision. x [N, C, H, W] ->
 * [N, outputs]. CLT_E_INVALID for another depth. */
CLT_API clt_tensor *clt_model_resnet_with(clt_tensor *x, clt_resnet_options options);
#define clt_model_resnet(x, ...) clt_model_resnet_with((x), (clt_resnet_options){__VA_ARGS__})

typedef struct clt_mobilenet_v2_options {
    float width;     /* multiplies the channels; default 1 */
    float dropout;   /* before the classifier; default 0.2, negative: none */
    int64_t outputs; /* default 1000 */
} clt_mobilenet_v2_options;

/* MobileNetV2; Sandler et al. 2018. x [N, C, H, W] -> [N, outputs]. */
CLT_API clt_tensor *clt_model_mobilenet_v2_with(clt_tensor *x, clt_mobilenet_v2_options options);
#define clt_model_mobilenet_v2(x, ...) clt_model_mobilenet_v2_with((x), (clt_mobilenet_v2_options){__VA_ARGS__})

typedef struct clt_vit_options {
    int64_t patch;        /* side of a patch in pixels; default 16. Divides the image's height and width */
    int64_t width;        /* default 768 */
    int64_t hidden;       /* of the MLP; default 4 width */
    int layers, heads;    /* defaults 12, 12 */
    float dropout;        /* default 0 */
    int64_t outputs;      /* default 1000 */
} clt_vit_options;

/* Vision transformer; Dosovitskiy et al. 2020. x [N, C, H, W] -> [N, outputs]. */
CLT_API clt_tensor *clt_model_vit_with(clt_tensor *x, clt_vit_options options);
#define clt_model_vit(x, ...) clt_model_vit_with((x), (clt_vit_options){__VA_ARGS__})

typedef struct clt_unet_options {
    int64_t outputs; /* classes of a pixel; default 2 */
    int64_t width;   /* channels of the first level, doubled at each of the four below; default 64 */
    bool bilinear;   /* made larger by interpolation; default: by a transposed convolution */
} clt_unet_options;

/* U-Net for the classes of pixels; Ronneberger, Fischer, Brox 2015, with batch norm and padding. x [N, C, H, W], 16 pixels or more high and wide ->
 * [N, outputs, H, W], which clt_cross_entropy takes with targets [N, H, W]. Names are those of milesial's Pytorch-UNet: inc, down1 ... down4, up1 ... up4, outc. */
CLT_API clt_tensor *clt_model_unet_with(clt_tensor *x, clt_unet_options options);
#define clt_model_unet(x, ...) clt_model_unet_with((x), (clt_unet_options){__VA_ARGS__})

/* ---- text: Hugging Face's names -------------------------------------------------- */

typedef struct clt_gpt2_options {
    int64_t vocabulary; /* default 50257 */
    int64_t positions;  /* the longest sequence; default 1024 */
    int64_t width;      /* default 768 */
    int64_t hidden;     /* of the MLP; default 4 width */
    int layers, heads;  /* defaults 12, 12: GPT-2 124M. heads divides width */
    float dropout;      /* after embeddings, attention and MLP, and of attention's weights; default 0 */
    float eps;          /* of the norms; default 1e-5 */
    clt_tensor *rows;   /* i32 [R]: those of the N T positions whose logits are wanted, n T + t; default: all */
    clt_tensor *position_ids; /* i32 [N, T]: the places of the tokens, whose keys and values are remembered (clt_cache) for T places, or the longest
                                 of sequences: so the next tokens go on behind them. Default: 0 ... T - 1, and nothing is remembered */
} clt_gpt2_options;

/* GPT-2; Radford et al. 2019. tokens i32 [N, T], T <= positions -> logits [N, T, vocabulary], or [R, vocabulary] with `rows`. Names are those of
 * GPT2LMHeadModel ("transformer.wte.weight", "transformer.h.0.attn.c_attn.weight", ...); the head shares the embedding's weight. */
CLT_API clt_tensor *clt_model_gpt2_with(clt_tensor *tokens, clt_gpt2_options options);
#define clt_model_gpt2(tokens, ...) clt_model_gpt2_with((tokens), (clt_gpt2_options){__VA_ARGS__})

typedef struct clt_llama_options {
    int64_t vocabulary; /* default 32000 */
    int64_t width;      /* default 2048 */
    int64_t hidden;     /* of the MLP; default 5632 */
    int layers, heads;  /* defaults 22, 32: TinyLlama 1.1B. Twice the heads divide width */
    int key_heads;      /* that key and value have; divides heads. Default: an eighth of them, or as many */
    float base;         /* of rotary positions; default 10000 */
    float eps;          /* of the norms; default 1e-5 */
    bool tied;          /* the head shares the embedding's weight */
    clt_tensor *rows, *position_ids; /* as of GPT-2 */
} clt_llama_options;

/* Llama; Touvron et al. 2023. tokens i32 [N, T] -> logits [N, T, vocabulary], or [R, vocabulary] with `rows`. Names are those of LlamaForCausalLM
 * ("model.embed_tokens.weight", "model.layers.0.self_attn.q_proj.weight", ...). Positions are plain: no scaling of Llama 3.1 and later. */
CLT_API clt_tensor *clt_model_llama_with(clt_tensor *tokens, clt_llama_options options);
#define clt_model_llama(tokens, ...) clt_model_llama_with((tokens), (clt_llama_options){__VA_ARGS__})

typedef struct clt_lstm_model_options {
    int64_t vocabulary;    /* default 10000 */
    int64_t width, hidden; /* of the embedding, and of each layer; defaults hidden, 200 */
    int layers;            /* default 2 */
    float dropout;         /* of the embedding, between layers and before the head; default 0 */
    bool tied;             /* the head shares the embedding's weight; width is hidden then */
    clt_tensor *rows;      /* as of GPT-2 */
    clt_tensor *position_ids; /* i32 [N, T]: the places of the tokens, of which the first goes on behind the last of the run before (clt_recurrent_options) */
} clt_lstm_model_options;

/* A recurrent language model; Zaremba et al. 2014. tokens i32 [N, T] -> logits [N, T, vocabulary], or [R, vocabulary] with `rows`. Names are those of RNNModel in
 * PyTorch's example word_language_model ("encoder.weight", "rnn.weight_ih_l0", "decoder.weight", ...). Unrolled, see clt_lstm. */
CLT_API clt_tensor *clt_model_lstm_with(clt_tensor *tokens, clt_lstm_model_options options);
#define clt_model_lstm(tokens, ...) clt_model_lstm_with((tokens), (clt_lstm_model_options){__VA_ARGS__})

/* ---- language models by their configuration -------------------------------------- */

typedef enum clt_language_family { CLT_LANGUAGE_GPT2, CLT_LANGUAGE_LLAMA, CLT_LANGUAGE_LSTM } clt_language_family;

typedef struct clt_language_model {
    clt_language_family family;
    int64_t vocabulary, positions; /* tokens; the longest sequence */
    int32_t end;                   /* the token that ends a text; -1: there is none */
    clt_gpt2_options gpt2;         /* of the family */
    clt_llama_options llama;
    clt_lstm_model_options lstm;
} clt_language_model;

/* Reads the config.json of a folder that transformers' save_pretrained wrote, of model_type gpt2 or llama. CLT_E_IO, CLT_E_FORMAT: the file is no such;
 * CLT_E_UNSUPPORTED: it asks for what the builders do not have, which is named; CLT_E_RANGE: an invalid size. */
CLT_API clt_status clt_language_model_read(clt_language_model *model, const char *path);

/* tokens i32 [N, T], rows and position_ids as of clt_gpt2_options, each may be NULL -> logits. */
CLT_API clt_tensor *clt_language_model_build(const clt_language_model *model, clt_tensor *tokens, clt_tensor *rows, clt_tensor *position_ids);

CLT_END_DECLS

#endif
