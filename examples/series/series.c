/* Forecasts a time series by an LSTM: the next value from the last 32. The series is one number a line of a file, or, without a file, made up. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <cltrain/cltrain.h>

#define TRY(call)                                            \
    if ((call) < 0) {                                        \
        fprintf(stderr, "series: %s\n", clt_error_detail()); \
        goto done;                                           \
    }

enum { WINDOW = 32, BATCH = 32, EPOCHS = 30, MADE_UP = 800, MOST = 1 << 20 };

/* Two waves and a trend. */
static int64_t make_up(float *values) {
    for (int t = 0; t < MADE_UP; t++) values[t] = (float)(sin(0.2 * t) + 0.5 * sin(0.031 * t) + 0.0005 * t);
    return MADE_UP;
}

static int64_t read_series(const char *path, float *values) {
    FILE *file = fopen(path, "r");
    int64_t n = 0;
    while (file && n < MOST && fscanf(file, "%f", &values[n]) == 1) n++;
    if (file) fclose(file);
    return n;
}

/* Windows [n, WINDOW, 1] and what follows each, [n, 1]; the last fifth is not trained on. */
static clt_status make_data(const float *values, int64_t n, clt_dataset **data) {
    float *x = malloc((size_t)n * WINDOW * sizeof *x);
    if (!x) return CLT_E_NO_MEMORY;
    for (int64_t i = 0; i < n; i++)
        for (int t = 0; t < WINDOW; t++) x[i * WINDOW + t] = values[i + t];
    const clt_array fields[] = {{CLT_F32, CLT_SHAPE(n, WINDOW, 1), x}, {CLT_F32, CLT_SHAPE(n, 1), (void *)(values + WINDOW)}};
    clt_status status = clt_dataset_from_arrays(data, fields, 2);
    free(x);
    return status;
}

int main(int argc, char **argv) {
    int result = 1;
    static float values[MOST];
    clt_device *device = NULL;
    clt_dataset *train = NULL, *test = NULL;
    clt_loader *loader = NULL, *later = NULL;
    clt_graph *graph = NULL;
    clt_trainer *trainer = NULL;
    clt_batch batch;
    clt_metrics metrics;
    int64_t n = (argc > 1 ? read_series(argv[1], values) : make_up(values)) - WINDOW, trained = n - n / 5;
    if (n < 5 * BATCH) return fprintf(stderr, "expected: series [FILE], with %d numbers or more\n", WINDOW + 5 * BATCH), 2;

    TRY(clt_device_open(&device, NULL));
    TRY(make_data(values, trained, &train));
    TRY(make_data(values + trained, n - trained, &test));
    TRY(clt_loader_create(&loader, train, &(clt_loader_options){.batch = BATCH, .shuffle = true, .drop_last = true}));
    TRY(clt_loader_create(&later, test, &(clt_loader_options){.batch = BATCH}));

    TRY(clt_graph_create(&graph));
    clt_tensor *x = clt_input(graph, "window", CLT_F32, CLT_SHAPE(BATCH, WINDOW, 1)), *y = clt_input(graph, "next", CLT_F32, CLT_SHAPE(BATCH, 1));
    clt_tensor *states = clt_lstm(x, "lstm", 32);
    clt_tensor *last = clt_reshape(clt_slice(states, 1, -1, WINDOW, 1), CLT_SHAPE(CLT_BATCH, 32));
    clt_tensor *forecast = clt_add(clt_linear(last, "head", 1), clt_reshape(clt_slice(x, 1, -1, WINDOW, 1), CLT_SHAPE(CLT_BATCH, 1))); /* the change */
    TRY(clt_trainer_create(&trainer, device, clt_mse_loss(forecast, y), &(clt_train_options){.optimizer = CLT_ADAMW, .lr = 3e-3f, .clip_norm = 1, .output = forecast}));

    for (int epoch = 1; epoch <= EPOCHS; epoch++) {
        clt_status status;
        while ((status = clt_loader_next(loader, &batch)) != CLT_END) {
            TRY(status);
            TRY(clt_trainer_step(trainer, &batch));
        }
        if (epoch % 10) continue;
        while ((status = clt_loader_next(later, &batch)) != CLT_END) {
            TRY(status);
            TRY(clt_trainer_evaluate(trainer, &batch));
        }
        TRY(clt_trainer_eval_metrics(trainer, &metrics, true));
        printf("epoch %d: root of the mean squared error of the last fifth, which is not trained on: %.4f\n", epoch, sqrt(metrics.mse));
    }
    result = 0;
done:
    clt_trainer_destroy(trainer), clt_graph_destroy(graph), clt_loader_destroy(later), clt_loader_destroy(loader);
    clt_dataset_destroy(test), clt_dataset_destroy(train), clt_device_close(device);
    return result;
}
