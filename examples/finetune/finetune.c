/*
 * Fine-tunes a ResNet-18 on images of one's own: finetune X.npy Y.npy [resnet18.safetensors [MOVED.safetensors]]
 *
 * X.npy has images [n, 3, height, width], Y.npy their classes from 0. The weights are torchvision's: in Python
 *
 *     safetensors.torch.save_file(torchvision.models.resnet18(weights="DEFAULT").state_dict(), "resnet18.safetensors")
 *
 * Their head has 1000 classes, ours fewer: it keeps its first values. Only the head and the last stage are trained; without weights, all of it.
 */
#include <stdio.h>
#include <cltrain/cltrain.h>

#define TRY(call)                                              \
    if ((call) < 0) {                                          \
        fprintf(stderr, "finetune: %s\n", clt_error_detail()); \
        goto done;                                             \
    }

enum { BATCH = 16, EPOCHS = 5 };

static void tell(clt_left_out what, const char *name, const char *words, void *user) {
    (void)what, (void)user;
    printf("%s keeps its first values: %s\n", name, words);
}

int main(int argc, char **argv) {
    int result = 1;
    clt_device *device = NULL;
    clt_dataset *data = NULL, *parts[2] = {NULL, NULL};
    clt_loader *train = NULL, *test = NULL;
    clt_graph *graph = NULL;
    clt_trainer *trainer = NULL;
    clt_batch batch;
    clt_metrics metrics;
    clt_status status;
    if (argc < 3) return fprintf(stderr, "expected: finetune X.npy Y.npy [WEIGHTS.safetensors [RESULT.safetensors]]\n"), 2;
    TRY(clt_device_open(&device, NULL));
    TRY(clt_dataset_npy(&data, argv[1], argv[2]));
    TRY(clt_dataset_split(data, (double[]){0.8, 0.2}, 2, 0, parts));
    TRY(clt_dataset_standardize(parts[1], parts[0]));
    TRY(clt_dataset_standardize(parts[0], parts[0]));
    TRY(clt_loader_create(&train, parts[0], &(clt_loader_options){.batch = BATCH, .shuffle = true, .drop_last = true}));
    TRY(clt_loader_create(&test, parts[1], &(clt_loader_options){.batch = BATCH}));

    TRY(clt_graph_create(&graph));
    clt_shape image = clt_dataset_shape(data, 0);
    clt_tensor *x = clt_input(graph, "images", CLT_F32, CLT_SHAPE(BATCH, image.dims[0], image.dims[1], image.dims[2]));
    clt_tensor *y = clt_input(graph, "labels", CLT_I32, CLT_SHAPE(BATCH));
    clt_tensor *logits = clt_model_resnet(x, .depth = 18, .outputs = clt_dataset_classes(data));
    TRY(clt_graph_status(graph));
    TRY(clt_graph_set_trained(graph, "*", argc < 4));
    TRY(clt_graph_set_trained(graph, "layer4.*", true));
    TRY(clt_graph_set_trained(graph, "fc.*", true));
    const clt_parameter_rule rules[] = {{.pattern = "layer4.*", .lr_factor = 0.1f}}; /* what was learned before moves slowly */
    TRY(clt_trainer_create(&trainer, device, clt_cross_entropy(logits, y),
                           &(clt_train_options){.optimizer = CLT_ADAMW, .lr = 3e-3f, .rules = rules, .n_rules = 1, .output = logits}));
    if (argc > 3) TRY(clt_weights_load_matching(trainer, argv[3], tell, NULL));

    for (int epoch = 1; epoch <= EPOCHS; epoch++) {
        while ((status = clt_loader_next(train, &batch)) != CLT_END) {
            TRY(status);
            TRY(clt_trainer_step(trainer, &batch));
        }
        while ((status = clt_loader_next(test, &batch)) != CLT_END) {
            TRY(status);
            TRY(clt_trainer_evaluate(trainer, &batch));
        }
        TRY(clt_trainer_eval_metrics(trainer, &metrics, true));
        printf("epoch %d: test loss %.4f, accuracy %.3f\n", epoch, metrics.loss, metrics.accuracy);
    }
    if (argc > 4) TRY(clt_weights_save(trainer, argv[4]));
    result = 0;
done:
    clt_trainer_destroy(trainer), clt_graph_destroy(graph), clt_loader_destroy(test), clt_loader_destroy(train);
    clt_dataset_destroy(parts[1]), clt_dataset_destroy(parts[0]), clt_dataset_destroy(data), clt_device_close(device);
    return result;
}
