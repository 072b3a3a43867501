#include "tools/common/recipes.h"

/* In the order of model_id. The schedules are constant, so that a run may be prolonged with a larger
 * --epochs; resnet18 is the exception, as its usual recipe for CIFAR lives from the cosine. */
#define IMAGENET(rate)                                                                                                            \
    {CLT_SGD, .lr = rate, .momentum = 0.9, .weight_decay = 1e-4, .nesterov = true, .schedule = CLT_SCHEDULE_COSINE, .batch_least = 64, \
     .batch_most = 64}

static const recipe recipes[MODEL_COUNT] = {
    [MODEL_LINEAR] = {CLT_SGD, .lr = 0.01, .momentum = 0.9, .batch_least = 32, .batch_most = 1024},
    [MODEL_LOGISTIC] = {CLT_ADAM, .lr = 0.01, .batch_least = 16, .batch_most = 1024},
    [MODEL_MLP] = {CLT_ADAMW, .lr = 1e-3, .weight_decay = 0.01, .batch_least = 32, .batch_most = 128},
    [MODEL_CONVNET] = {CLT_ADAMW, .lr = 2e-3, .weight_decay = 0.01, .batch_least = 32,
                       .batch_most = 128},
    [MODEL_RESNET18] = {CLT_SGD, .lr = 0.1, .momentum = 0.9, .weight_decay = 5e-4, .nesterov = true,
                        .schedule = CLT_SCHEDULE_COSINE, .batch_least = 128, .batch_most = 128},
    [MODEL_RESNET34] = IMAGENET(0.1), [MODEL_RESNET50] = IMAGENET(0.1), [MODEL_RESNET101] = IMAGENET(0.1),
    [MODEL_MOBILENET_V2] = IMAGENET(0.05),
    [MODEL_VIT] = {CLT_ADAMW, .lr = 1e-3, .weight_decay = 0.05, .schedule = CLT_SCHEDULE_COSINE, .batch_least = 64, .batch_most = 64},
    [MODEL_GPT2] = {CLT_ADAMW, .lr = 1e-3, .weight_decay = 0.1, .batch_least = 12, .batch_most = 12},
    [MODEL_LLAMA] = {CLT_ADAMW, .lr = 1e-3, .weight_decay = 0.1, .batch_least = 12, .batch_most = 12},
    [MODEL_LSTM] = {CLT_ADAM, .lr = 3e-3, .batch_least = 32, .batch_most = 32},
    [MODEL_ONNX] = {CLT_ADAMW, .lr = 1e-4, .weight_decay = 0.01, .batch_least = 32, .batch_most = 32},
};

const char *const optimizer_names[] = {"sgd", "adam", "adamw", NULL};
const char *const precision_names[] = {"f32", "bf16", "f16", NULL};
const char *const shard_names[] = {"none", "optimizer", "gradients", "parameters", NULL};
const char *const offload_names[] = {"auto", "none", "optimizer", "activations", "parameters", "all", NULL};
const char *const recompute_names[] = {"auto", "none", "blocks", "all", NULL};

const recipe *recipe_of_model(model_id id) {
    return &recipes[id];
}

recipe recipe_of_optimizer(clt_optimizer optimizer) {
    return (recipe){.optimizer = optimizer, .lr = optimizer == CLT_SGD ? 0.01 : 1e-3,
                    .weight_decay = optimizer == CLT_ADAMW ? 0.01 : 0};
}
