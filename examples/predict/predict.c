/* Reads hand-written digits with the weights that `cltrain-train convnet --data digits --export digits.safetensors` has written. */
#include <stdio.h>
#include <cltrain/cltrain.h>

#define TRY(call)                                             \
    if ((call) < 0) {                                         \
        fprintf(stderr, "predict: %s\n", clt_error_detail()); \
        goto done;                                            \
    }

int main(int argc, char **argv) {
    enum { SHOWN = 8, CLASSES = 10 };
    int result = 1;
    clt_device *device = NULL;
    clt_dataset *digits = NULL;
    clt_graph *graph = NULL;
    clt_predictor *predictor = NULL;
    if (argc != 2) return fprintf(stderr, "expected: predict WEIGHTS.safetensors\n"), 2;
    TRY(clt_device_open(&device, NULL));
    TRY(clt_dataset_digits(&digits));

    TRY(clt_graph_create(&graph));
    clt_tensor *image = clt_input(graph, "image", CLT_F32, CLT_SHAPE(SHOWN, 1, 8, 8));
    clt_tensor *chances = clt_softmax(clt_model_convnet(image, CLASSES), 1);
    TRY(clt_predictor_create(&predictor, device, chances, &(clt_predictor_options){.weights = argv[1]}));

    float read[SHOWN][CLASSES];
    clt_array images = clt_dataset_array(digits, 0), labels = clt_dataset_array(digits, 1);
    images.shape.dims[0] = SHOWN; /* any number; each has a plan of its own from its first use on */
    TRY(clt_predictor_run(predictor, &(clt_batch){.samples = SHOWN, .n_fields = 1, .fields = {images}}, &read[0][0], SHOWN * CLASSES));
    for (int i = 0; i < SHOWN; i++) {
        int best = 0;
        for (int c = 1; c < CLASSES; c++) best = read[i][c] > read[i][best] ? c : best;
        printf("a %d, read as %d (%.3f)\n", ((const int32_t *)labels.data)[i], best, read[i][best]);
    }
    result = 0;
done:
    clt_predictor_destroy(predictor), clt_graph_destroy(graph), clt_dataset_destroy(digits), clt_device_close(device);
    return result;
}
