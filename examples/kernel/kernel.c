/* An op with OpenCL C of one's own: mish, x tanh(log(1 + exp(x))), with its gradient, in a network that reads digits. */
#include <stdio.h>
#include <cltrain/cltrain.h>

#define TRY(call)                                            \
    if ((call) < 0) {                                        \
        fprintf(stderr, "kernel: %s\n", clt_error_detail()); \
        goto done;                                           \
    }

enum { BATCH = 64, EPOCHS = 5 };

/* Misra 2019. With e = exp(x): tanh(log(1 + e)) = (e^2 + 2 e) / (e^2 + 2 e + 2); beyond 20 it is 1. */
static const char source[] =
    "float tanh_softplus(float x) { float e = exp(min(x, 20.0f)), n = e * (e + 2); return n / (n + 2); }\n"
    "kernel void mish(global const float *x, global float *y, int count) {\n"
    "    int i = get_global_id(0);\n"
    "    if (i >= count) return;\n"
    "    y[i] = x[i] * tanh_softplus(x[i]);\n"
    "}\n"
    "kernel void mish_grad(global const float *x, global const float *y, global const float *dy, global float *dx, int count) {\n"
    "    int i = get_global_id(0);\n"
    "    if (i >= count) return;\n"
    "    float t = tanh_softplus(x[i]), sigmoid = 1 / (1 + exp(-x[i]));\n"
    "    dx[i] = dy[i] * (t + x[i] * (1 - t * t) * sigmoid);\n"
    "}\n";

static clt_tensor *mish(clt_tensor *x) {
    const clt_user_op op = {.name = "mish", .source = source, .n_inputs = 1, .forward = "mish", .backward = {"mish_grad"}};
    return clt_apply(&op, &x, NULL, 0);
}

int main(void) {
    int result = 1;
    clt_device *device = NULL;
    clt_dataset *digits = NULL;
    clt_loader *loader = NULL;
    clt_graph *graph = NULL;
    clt_trainer *trainer = NULL;
    clt_batch batch;
    clt_metrics metrics;
    TRY(clt_device_open(&device, NULL));
    TRY(clt_dataset_digits(&digits));
    TRY(clt_loader_create(&loader, digits, &(clt_loader_options){.batch = BATCH, .shuffle = true, .drop_last = true}));

    TRY(clt_graph_create(&graph));
    clt_tensor *image = clt_input(graph, "image", CLT_F32, CLT_SHAPE(BATCH, 1, 8, 8)), *label = clt_input(graph, "label", CLT_I32, CLT_SHAPE(BATCH));
    clt_tensor *logits = clt_linear(mish(clt_linear(clt_flatten(image), "fc1", 64)), "fc2", 10);
    TRY(clt_trainer_create(&trainer, device, clt_cross_entropy(logits, label), &(clt_train_options){.optimizer = CLT_ADAMW, .lr = 3e-3f, .output = logits}));

    for (int epoch = 1; epoch <= EPOCHS; epoch++) {
        clt_status status;
        while ((status = clt_loader_next(loader, &batch)) != CLT_END) {
            TRY(status);
            TRY(clt_trainer_step(trainer, &batch));
        }
        TRY(clt_trainer_train_metrics(trainer, &metrics, true));
        printf("epoch %d: loss %.4f, accuracy %.3f\n", epoch, metrics.loss, metrics.accuracy);
    }
    result = 0;
done:
    clt_trainer_destroy(trainer), clt_graph_destroy(graph), clt_loader_destroy(loader), clt_dataset_destroy(digits), clt_device_close(device);
    return result;
}
