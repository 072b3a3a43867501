/* Trains a small network on hand-written digits, then reads some that it has never seen. */
#include <stdio.h>
#include <cltrain/cltrain.h>

#define TRY(call)                                           \
    if ((call) < 0) {                                       \
        fprintf(stderr, "embed: %s\n", clt_error_detail()); \
        goto done;                                          \
    }

int main(void) {
    enum { BATCH = 32, EPOCHS = 15, SHOWN = 8, CLASSES = 10 };
    int result = 1;
    clt_device *device = NULL;
    clt_dataset *digits = NULL, *parts[2] = {NULL, NULL};
    clt_loader *loader = NULL;
    clt_graph *graph = NULL;
    clt_trainer *trainer = NULL;
    TRY(clt_device_open(&device, NULL)); /* the best one, or what CLTRAIN_DEVICE names */
    TRY(clt_dataset_digits(&digits));
    TRY(clt_dataset_split(digits, (double[]){0.8, 0.2}, 2, 1, parts));
    TRY(clt_loader_create(&loader, parts[0], &(clt_loader_options){.batch = BATCH, .shuffle = true}));

    TRY(clt_graph_create(&graph));
    clt_tensor *image = clt_input(graph, "image", CLT_F32, CLT_SHAPE(BATCH, 1, 8, 8));
    clt_tensor *label = clt_input(graph, "label", CLT_I32, CLT_SHAPE(BATCH));
    clt_tensor *h = clt_relu(clt_conv2d(image, "conv", 16, .kernel = 3, .padding = 1));
    h = clt_flatten(clt_max_pool2d(h, .kernel = 2));
    clt_tensor *scores = clt_linear(clt_relu(clt_linear(h, "fc1", 64)), "fc2", CLASSES);
    clt_tensor *loss = clt_cross_entropy(scores, label);
    clt_train_options options = {.optimizer = CLT_ADAMW, .output = scores};
    TRY(clt_trainer_create(&trainer, device, loss, &options));

    for (int epoch = 1; epoch <= EPOCHS; epoch++) {
        clt_batch batch;
        clt_metrics metrics;
        clt_status status;
        while ((status = clt_loader_next(loader, &batch)) == CLT_OK)
            TRY(clt_trainer_step(trainer, &batch));
        TRY(status);
        TRY(clt_trainer_train_metrics(trainer, &metrics, true));
        printf("epoch %2d: loss %.4f, accuracy %.4f\n", epoch, metrics.loss, metrics.accuracy);
    }
    float read[SHOWN][CLASSES];
    clt_array images = clt_dataset_array(parts[1], 0), labels = clt_dataset_array(parts[1], 1);
    images.shape.dims[0] = SHOWN; /* the first few of those held back */
    clt_batch few = {.samples = SHOWN, .n_fields = 1, .fields = {images}};
    TRY(clt_trainer_predict(trainer, scores, &few, &read[0][0], SHOWN * CLASSES));
    for (int i = 0; i < SHOWN; i++) {
        int best = 0;
        for (int c = 1; c < CLASSES; c++) best = read[i][c] > read[i][best] ? c : best;
        printf("a %d, read as %d\n", ((const int32_t *)labels.data)[i], best);
    }
    result = 0;
done:
    clt_trainer_destroy(trainer), clt_graph_destroy(graph), clt_device_close(device);
    clt_loader_destroy(loader), clt_dataset_destroy(parts[0]), clt_dataset_destroy(parts[1]);
    clt_dataset_destroy(digits);
    return result;
}
