/* A data set that a function makes: waves of three kinds, new ones in each epoch, made by four threads while the device computes. A small network of convolutions
 * tells sines, squares and sawteeth of any phase apart, each of a few periods and with noise. */
#include <math.h>
#include <stdio.h>
#include <cltrain/cltrain.h>

#define TRY(call)                                             \
    if ((call) < 0) {                                         \
        fprintf(stderr, "dataset: %s\n", clt_error_detail()); \
        goto done;                                            \
    }

enum { POINTS = 64, KINDS = 3, SAMPLES = 3000, TESTED = 600, BATCH = 50, EPOCHS = 20 };

/* Random numbers of a sample alone, so that it is the same one whichever thread or rank makes it: splitmix64 (Steele, Lea, Flood 2014). */
static double draw(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

/* fields[0]: f32 [1, POINTS]; fields[1]: i32 []. It runs in several threads at once, and so writes nothing else. `user` says whether each epoch has waves of its own. */
static clt_status make_wave(void *user, const clt_sample *sample, void *const *fields) {
    const int *renewed = user;
    uint64_t state = sample->seed * 1000003 + (uint64_t)(*renewed ? sample->epoch + 1 : 0);
    state = state * 1000003 + (uint64_t)sample->index;
    float *wave = fields[0];
    int32_t *kind = fields[1];
    *kind = (int32_t)(sample->index % KINDS);
    double phase = draw(&state), periods = 2 + 3 * draw(&state), noise = 0.5 * draw(&state);
    for (int t = 0; t < POINTS; t++) {
        double at = phase + periods * t / POINTS, part = at - floor(at), sine = sin(6.283185307179586 * part);
        double value = *kind == 0 ? sine : *kind == 1 ? (part < 0.5 ? 0.8 : -0.8) : 1.5 * part - 0.75;
        wave[t] = (float)(value + noise * (draw(&state) + draw(&state) - 1));
    }
    return CLT_OK;
}

static clt_status open_waves(clt_dataset **dataset, int64_t samples, int *renewed) {
    return clt_dataset_create(dataset, &(clt_dataset_source){.samples = samples, .n_fields = 2, .dtypes = {CLT_F32, CLT_I32}, .classes = KINDS,
                                                             .shapes = {CLT_SHAPE(1, POINTS), {.rank = 0}}, .fetch = make_wave, .user = renewed});
}

int main(void) {
    int result = 1, renewed = 1, kept = 0;
    clt_device *device = NULL;
    clt_dataset *train = NULL, *test = NULL;
    clt_loader *loader = NULL, *later = NULL;
    clt_graph *graph = NULL;
    clt_trainer *trainer = NULL;
    clt_batch batch;
    clt_metrics metrics = {.accuracy = 0};

    TRY(clt_device_open(&device, NULL));
    TRY(open_waves(&train, SAMPLES, &renewed));
    TRY(open_waves(&test, TESTED, &kept));
    TRY(clt_loader_create(&loader, train, &(clt_loader_options){.batch = BATCH, .shuffle = true, .threads = 4, .seed = 1}));
    TRY(clt_loader_create(&later, test, &(clt_loader_options){.batch = BATCH, .seed = 2}));

    TRY(clt_graph_create(&graph));
    clt_tensor *wave = clt_input(graph, "wave", CLT_F32, CLT_SHAPE(BATCH, 1, POINTS)), *kind = clt_input(graph, "kind", CLT_I32, CLT_SHAPE(BATCH));
    clt_tensor *h = clt_relu(clt_conv1d(wave, "conv1", 16, .kernel = 7, .padding = 3));
    h = clt_relu(clt_conv1d(h, "conv2", 32, .kernel = 5, .stride = 2, .padding = 2));
    h = clt_linear(clt_mean(h, (clt_reduce_options){.axes = {2}, .n_axes = 1}), "head", KINDS);
    TRY(clt_trainer_create(&trainer, device, clt_cross_entropy(h, kind), &(clt_train_options){.optimizer = CLT_ADAMW, .lr = 5e-3f, .output = h}));

    for (int epoch = 1; epoch <= EPOCHS; epoch++) {
        clt_status status;
        while ((status = clt_loader_next(loader, &batch)) != CLT_END) {
            TRY(status);
            TRY(clt_trainer_step(trainer, &batch));
        }
        if (epoch % 5) continue;
        while ((status = clt_loader_next(later, &batch)) != CLT_END) {
            TRY(status);
            TRY(clt_trainer_evaluate(trainer, &batch));
        }
        TRY(clt_trainer_eval_metrics(trainer, &metrics, true));
        printf("epoch %d: accuracy %.4f on waves that are not trained on\n", epoch, metrics.accuracy);
    }
    result = metrics.accuracy < 0.9;
done:
    clt_trainer_destroy(trainer), clt_graph_destroy(graph), clt_loader_destroy(later), clt_loader_destroy(loader);
    clt_dataset_destroy(test), clt_dataset_destroy(train), clt_device_close(device);
    return result;
}
