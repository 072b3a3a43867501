/*
 * The GPT of examples/gpt for the comparison with PyTorch: the loss and all gradients at several lengths, of one trainer.
 *
 *     lengths WEIGHTS TOKENS FINAL LENGTH ...
 *
 * WEIGHTS: a safetensors file of the first weights; TOKENS: i32, SAMPLES rows of GPT_LONGEST + 1. For each LENGTH a line "LENGTH LOSS", and the
 * gradients of all parameters, as lines "NAME VALUE ...". FINAL: the weights, written at the end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "examples/gpt/gpt.h"

enum { SAMPLES = 3 };

#define TRY(call)                                                                       \
    if ((status = (call)) < 0) {                                                        \
        fprintf(stderr, "%s: %s\n", clt_status_name(status), clt_error_detail());       \
        goto done;                                                                      \
    }

static clt_status print_gradient(clt_trainer *trainer, const gpt *model, const char *name) {
    size_t n = 1;
    clt_shape shape = clt_tensor_shape(clt_graph_find(model->graph, name));
    for (int d = 0; d < shape.rank; d++) n *= (size_t)shape.dims[d];
    float *values = malloc(n * sizeof *values);
    clt_status status = values ? clt_trainer_get_gradient(trainer, name, values, n) : CLT_E_NO_MEMORY;
    if (status == CLT_OK) printf("%s", name);
    for (size_t i = 0; status == CLT_OK && i < n; i++) printf(" %.9g", (double)values[i]);
    if (status == CLT_OK) printf("\n");
    free(values);
    return status;
}

static clt_status print_gradients(clt_trainer *trainer, const gpt *model) {
    static const char *const alone[] = {"words", "places", "norm.weight", "norm.bias"};
    static const char *const parts[] = {"norm1", "qkv", "out", "norm2", "up", "down"};
    clt_status status = CLT_OK;
    for (size_t i = 0; i < sizeof alone / sizeof *alone && status == CLT_OK; i++) status = print_gradient(trainer, model, alone[i]);
    for (int i = 0; i < GPT_LAYERS * 12 && status == CLT_OK; i++) {
        char name[64];
        snprintf(name, sizeof name, "h.%d.%s.%s", i / 12, parts[i % 12 / 2], i % 2 ? "bias" : "weight");
        status = print_gradient(trainer, model, name);
    }
    return status;
}

static clt_status look_at(clt_trainer *trainer, const gpt *model, const int32_t *text, int64_t length) {
    static int32_t tokens[SAMPLES * GPT_LONGEST], next[SAMPLES * GPT_LONGEST];
    clt_metrics metrics;
    for (int64_t i = 0; i < SAMPLES * length; i++) {
        const int32_t *at = text + i / length * (GPT_LONGEST + 1) + i % length;
        tokens[i] = at[0];
        next[i] = at[1];
    }
    clt_batch batch = {.samples = SAMPLES, .n_fields = 2,
                       .fields = {{CLT_I32, CLT_SHAPE(SAMPLES, length), tokens}, {CLT_I32, CLT_SHAPE(SAMPLES, length), next}}};
    clt_status status = clt_trainer_step(trainer, &batch);
    if (status == CLT_OK) status = clt_trainer_train_metrics(trainer, &metrics, true);
    if (status < 0) return status;
    printf("%d %.9g\n", (int)length, metrics.loss);
    return print_gradients(trainer, model);
}

int main(int argc, char **argv) {
    static int32_t text[SAMPLES * (GPT_LONGEST + 1)];
    clt_device *device = NULL;
    clt_trainer *trainer = NULL;
    gpt model = {0};
    clt_status status = CLT_E_INVALID;
    FILE *file = argc > 4 ? fopen(argv[2], "rb") : NULL;
    bool whole = file && fread(text, 1, sizeof text, file) == sizeof text;
    if (file) fclose(file);
    if (!whole) {
        fprintf(stderr, "usage: lengths WEIGHTS TOKENS FINAL LENGTH ...\n");
        return 2;
    }
    TRY(clt_device_open(&device, NULL));
    TRY(gpt_build(&model, SAMPLES));
    TRY(clt_trainer_create(&trainer, device, model.loss, &(clt_train_options){.optimizer = CLT_SGD, .lr = CLT_ZERO, .output = model.logits}));
    TRY(gpt_set_positions(trainer));
    TRY(clt_weights_load(trainer, argv[1]));
    for (int i = 4; i < argc; i++) TRY(look_at(trainer, &model, text, atoi(argv[i])));
    TRY(clt_weights_save(trainer, argv[3]));
done:
    clt_trainer_destroy(trainer), clt_graph_destroy(model.graph), clt_device_close(device);
    return status < 0;
}
