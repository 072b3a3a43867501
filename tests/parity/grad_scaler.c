/*
 * The scale of the loss, step by step, for the comparison with PyTorch's GradScaler.
 *
 *     grad_scaler WORD
 *
 * WORD has a letter a step: "x" is one whose gradients are not finite, any other one whose gradients are. A line with the scale after each step.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <cltrain/cltrain.h>

enum { SAMPLES = 2, WIDTH = 4 };

#define TRY(call)                                                                       \
    if ((status = (call)) < 0) {                                                        \
        fprintf(stderr, "%s: %s\n", clt_status_name(status), clt_error_detail());       \
        goto done;                                                                      \
    }

int main(int argc, char **argv) {
    float x[SAMPLES][WIDTH] = {{0.5f, -1, 0.25f, 1}, {1, 0.5f, -0.5f, 0.125f}}, target[SAMPLES] = {0.5f, -0.25f}, scale;
    clt_device *device = NULL;
    clt_graph *graph = NULL;
    clt_trainer *trainer = NULL;
    clt_status status;
    if (argc != 2) return fprintf(stderr, "usage: grad_scaler WORD\n"), 2;
    TRY(clt_device_open(&device, NULL));
    TRY(clt_graph_create(&graph));
    clt_tensor *in = clt_input(graph, "x", CLT_F32, CLT_SHAPE(SAMPLES, WIDTH)), *truth = clt_input(graph, "t", CLT_F32, CLT_SHAPE(SAMPLES, 1));
    clt_tensor *loss = clt_mul_scalar(clt_mse_loss(clt_linear(in, "fc", 1), truth), 1e-3f); /* finite in f16 at all scales that are come to */
    TRY(clt_trainer_create(&trainer, device, loss, &(clt_train_options){.lr = 1e-5f, .precision = CLT_PRECISION_F16, .on_nonfinite = CLT_NONFINITE_SKIP, .seed = 1}));
    clt_batch batch = {.samples = SAMPLES, .n_fields = 2, .fields = {{CLT_F32, CLT_SHAPE(SAMPLES, WIDTH), x}, {CLT_F32, CLT_SHAPE(SAMPLES, 1), target}}};
    for (const char *letter = argv[1]; *letter; letter++) {
        x[0][0] = *letter == 'x' ? INFINITY : 0.5f;
        TRY(clt_trainer_step(trainer, &batch));
        TRY(clt_trainer_loss_scale(trainer, &scale));
        printf("%.17g\n", (double)scale);
    }
done:
    clt_trainer_destroy(trainer);
    clt_graph_destroy(graph);
    clt_device_close(device);
    return status < 0;
}
