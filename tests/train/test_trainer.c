#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cltrain/cltrain.h>

#include "runtime/base/random.h"
#include "runtime/train/trainer.h"

/* A linear model y = X w of D features, whose gradient is known: dw = 2/N sum (x.w - t) x. */
enum { SAMPLES = 11, D = 3 };

static clt_device *device;
static float features[SAMPLES][D], targets[SAMPLES];
static const float first_weights[D] = {0.5f, -1.0f, 2.0f};

static int open_device(void **state) {
    (void)state;
    clt_random random;
    clt_random_init(&random, 5, 0);
    for (int i = 0; i < SAMPLES; i++) {
        for (int k = 0; k < D; k++) features[i][k] = (float)clt_random_normal(&random);
        targets[i] = (float)clt_random_normal(&random);
    }
    assert_ok(clt_device_open(&device, NULL));
    return 0;
}

static int close_device(void **state) {
    (void)state;
    clt_device_close(device);
    return 0;
}

typedef struct model {
    clt_graph *graph;
    clt_tensor *prediction, *loss;
    clt_trainer *trainer;
} model;

static model make(int batch, clt_train_options options) {
    model m;
    assert_ok(clt_graph_create(&m.graph));
    clt_tensor *x = clt_input(m.graph, "x", CLT_F32, CLT_SHAPE(batch, D));
    clt_tensor *t = clt_input(m.graph, "t", CLT_F32, CLT_SHAPE(batch, 1));
    m.prediction = clt_linear(x, "fc", 1, .no_bias = true);
    m.loss = clt_mse_loss(m.prediction, t);
    options.output = m.prediction;
    assert_ok(clt_trainer_create(&m.trainer, device, m.loss, &options));
    assert_ok(clt_trainer_set(m.trainer, "fc.weight", first_weights, D));
    return m;
}

static void destroy(model *m) {
    clt_trainer_destroy(m->trainer);
    clt_graph_destroy(m->graph);
}

static clt_batch batch_of(int from, int count) {
    return (clt_batch){.samples = count,
                       .n_fields = 2,
                       .fields = {{CLT_F32, CLT_SHAPE(count, D), features[from]},
                                  {CLT_F32, CLT_SHAPE(count, 1), &targets[from]}}};
}

/* ---- the same in double ---- */

static double residual(const double *w, int i) {
    double y = -(double)targets[i];
    for (int k = 0; k < D; k++) y += w[k] * (double)features[i][k];
    return y;
}

static void gradient(const double *w, int from, int count, double *g) {
    for (int k = 0; k < D; k++) g[k] = 0;
    for (int i = from; i < from + count; i++)
        for (int k = 0; k < D; k++) g[k] += 2.0 / count * residual(w, i) * (double)features[i][k];
}

static double mean_square(const double *w, int from, int count) {
    double sum = 0;
    for (int i = from; i < from + count; i++) sum += residual(w, i) * residual(w, i);
    return sum / count;
}

typedef struct state_in_double {
    double w[D], m[D], v[D];
} state_in_double;

/* One update as PyTorch's documentation of SGD, Adam, AdamW and clip_grad_* writes it. */
static void update(state_in_double *s, const clt_train_options *o, int step, double *g) {
    double norm = 0, wd = o->weight_decay, lr = o->lr;
    for (int k = 0; k < D; k++) {
        if (o->clip_value > 0) g[k] = fmin(fmax(g[k], -(double)o->clip_value), (double)o->clip_value);
        norm += g[k] * g[k];
    }
    if (o->clip_norm > 0)
        for (int k = 0; k < D; k++) g[k] *= fmin(1, (double)o->clip_norm / (sqrt(norm) + 1e-6));
    for (int k = 0; k < D; k++) {
        if (o->optimizer == CLT_SGD) {
            g[k] += wd * s->w[k];
            s->m[k] = step == 1 ? g[k] : (double)o->momentum * s->m[k] + g[k];
            s->w[k] -= lr * (o->momentum == 0 ? g[k] : o->nesterov ? g[k] + (double)o->momentum * s->m[k] : s->m[k]);
            continue;
        }
        if (o->optimizer == CLT_ADAMW) s->w[k] *= 1 - lr * wd;
        else g[k] += wd * s->w[k];
        s->m[k] = (double)o->beta1 * s->m[k] + (1 - (double)o->beta1) * g[k];
        s->v[k] = (double)o->beta2 * s->v[k] + (1 - (double)o->beta2) * g[k] * g[k];
        double m = s->m[k] / (1 - pow((double)o->beta1, step)), v = s->v[k] / (1 - pow((double)o->beta2, step));
        s->w[k] -= lr * m / (sqrt(v) + (double)o->eps);
    }
}

static void assert_weights(clt_trainer *trainer, const double *wanted, const char *what, int step) {
    float w[D];
    assert_ok(clt_trainer_get(trainer, "fc.weight", w, D));
    for (int k = 0; k < D; k++)
        if (!(fabs((double)w[k] - wanted[k]) <= 2e-5 * fmax(1, fabs(wanted[k]))))
            fail_msg("%s, step %d: w[%d] is %.8g, not %.8g", what, step, k, (double)w[k], wanted[k]);
}

static void optimizers(void **state) {
    (void)state;
    const struct {
        const char *name;
        clt_train_options options;
    } cases[] = {
        {"sgd", {.optimizer = CLT_SGD, .lr = 0.05f}},
        {"sgd weight decay", {.optimizer = CLT_SGD, .lr = 0.05f, .weight_decay = 0.1f}},
        {"momentum", {.optimizer = CLT_SGD, .lr = 0.05f, .momentum = 0.9f}},
        {"nesterov", {.optimizer = CLT_SGD, .lr = 0.05f, .momentum = 0.8f, .nesterov = true, .weight_decay = 0.01f}},
        {"clip value", {.optimizer = CLT_SGD, .lr = 0.05f, .clip_value = 0.3f}},
        {"clip norm", {.optimizer = CLT_SGD, .lr = 0.05f, .clip_norm = 0.5f}},
        {"clip both", {.optimizer = CLT_SGD, .lr = 0.05f, .momentum = 0.5f, .clip_value = 0.6f, .clip_norm = 0.7f}},
        {"norm not reached", {.optimizer = CLT_SGD, .lr = 0.05f, .clip_norm = 1e6f}},
        {"adam", {.optimizer = CLT_ADAM, .lr = 0.02f, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f}},
        {"adam weight decay", {.optimizer = CLT_ADAM, .lr = 0.02f, .beta1 = 0.8f, .beta2 = 0.95f, .eps = 1e-3f, .weight_decay = 0.1f}},
        {"adam beta1 0", {.optimizer = CLT_ADAM, .lr = 0.02f, .beta1 = CLT_ZERO, .beta2 = 0.99f, .eps = 1e-8f}},
        {"adam betas 0", {.optimizer = CLT_ADAM, .lr = 0.02f, .beta1 = CLT_ZERO, .beta2 = CLT_ZERO, .eps = 1e-3f, .on_nonfinite = CLT_NONFINITE_SKIP}},
        {"adamw decay 0", {.optimizer = CLT_ADAMW, .lr = 0.02f, .beta1 = 0.9f, .beta2 = 0.99f, .eps = 1e-8f, .weight_decay = CLT_ZERO}},
        {"adam lr 0", {.optimizer = CLT_ADAM, .lr = CLT_ZERO, .beta1 = 0.9f, .beta2 = 0.99f, .eps = 1e-8f}},
        {"sgd lr 0", {.optimizer = CLT_SGD, .lr = CLT_ZERO, .momentum = 0.9f}},
        {"adamw", {.optimizer = CLT_ADAMW, .lr = 0.02f, .beta1 = 0.9f, .beta2 = 0.99f, .eps = 1e-8f, .weight_decay = 0.3f, .clip_norm = 1}},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        model m = make(4, cases[c].options);
        state_in_double s = {0};
        for (int k = 0; k < D; k++) s.w[k] = (double)first_weights[k];
        for (int step = 1; step <= 15; step++) {
            int from = step % 2 ? 0 : 4;
            clt_batch batch = batch_of(from, 4);
            double g[D];
            gradient(s.w, from, 4, g);
            update(&s, &cases[c].options, step, g);
            assert_ok(clt_trainer_step(m.trainer, &batch));
            assert_weights(m.trainer, s.w, cases[c].name, step);
        }
        assert_int_equal(clt_trainer_steps(m.trainer), 15);
        destroy(&m);
    }
}

/* Of the loss, whatever the update makes of it. */
static void gradients(void **state) {
    (void)state;
    const clt_train_options cases[] = {
        {.optimizer = CLT_SGD, .lr = 0.05f, .clip_norm = 0.01f, .clip_value = 0.02f, .weight_decay = 0.3f},
        {.optimizer = CLT_ADAMW, .lr = 0.02f, .on_nonfinite = CLT_NONFINITE_SKIP},
        {.optimizer = CLT_SGD, .lr = 0.05f, .accumulate = 2},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        model m = make(4, cases[c]);
        float found[D], weights[D];
        assert_status(clt_trainer_get_gradient(m.trainer, "fc.weight", found, D), CLT_E_STATE);
        assert_detail("no gradient before an update");
        for (int step = 0; step < 3; step++) {
            double w[D], wanted[D] = {0};
            assert_ok(clt_trainer_get(m.trainer, "fc.weight", weights, D));
            for (int k = 0; k < D; k++) w[k] = (double)weights[k];
            int parts = cases[c].accumulate ? cases[c].accumulate : 1;
            for (int i = 0; i < parts; i++) {
                clt_batch batch = batch_of(step + 4 * i, 4);
                double g[D];
                if (i > 0) {
                    assert_status(clt_trainer_get_gradient(m.trainer, "fc.weight", found, D), CLT_E_STATE);
                    assert_detail("between micro-batches");
                }
                assert_ok(clt_trainer_step(m.trainer, &batch));
                gradient(w, step + 4 * i, 4, g);
                for (int k = 0; k < D; k++) wanted[k] += g[k] / parts;
            }
            assert_ok(clt_trainer_get_gradient(m.trainer, "fc.weight", found, D));
            for (int k = 0; k < D; k++) assert_true(fabs((double)found[k] - wanted[k]) <= 1e-5 * fmax(1, fabs(wanted[k])));
        }
        assert_status(clt_trainer_get_gradient(m.trainer, "fc.weight", found, D - 1), CLT_E_SHAPE);
        assert_detail("\"fc.weight\" is [1, 3], not 2 values");
        assert_status(clt_trainer_get_gradient(m.trainer, "fc.bias", found, D), CLT_E_NOT_FOUND);
        assert_status(clt_trainer_get_gradient(NULL, "fc.weight", found, D), CLT_E_INVALID);
        destroy(&m);
    }
}

/* Two micro-batches of 4 are a batch of 8, also with momentum and clipping. */
static void accumulation(void **state) {
    (void)state;
    clt_train_options options = {.optimizer = CLT_SGD, .lr = 0.05f, .momentum = 0.9f, .clip_norm = 1.5f};
    model whole = make(8, options);
    options.accumulate = 2;
    model halves = make(4, options);
    for (int step = 0; step < 6; step++) {
        float a[D], b[D], before[D];
        clt_batch both = batch_of(0, 8), first = batch_of(0, 4), second = batch_of(4, 4);
        assert_ok(clt_trainer_get(halves.trainer, "fc.weight", before, D));
        assert_ok(clt_trainer_step(whole.trainer, &both));
        assert_ok(clt_trainer_step(halves.trainer, &first));
        assert_int_equal(clt_trainer_steps(halves.trainer), step);
        assert_ok(clt_trainer_get(halves.trainer, "fc.weight", b, D));
        assert_memory_equal(b, before, sizeof b); /* nothing changes between updates */
        assert_ok(clt_trainer_step(halves.trainer, &second));
        assert_ok(clt_trainer_get(whole.trainer, "fc.weight", a, D));
        assert_ok(clt_trainer_get(halves.trainer, "fc.weight", b, D));
        for (int k = 0; k < D; k++) assert_float_equal(a[k], b[k], 2e-6);
    }
    destroy(&whole);
    destroy(&halves);
}

static void assert_lr(clt_train_options options, const float *wanted, int n) {
    model m = make(4, options);
    clt_batch batch = batch_of(0, 4);
    for (int i = 0; i < n; i++) {
        assert_float_equal(clt_trainer_lr(m.trainer), wanted[i], 1e-7);
        assert_ok(clt_trainer_step(m.trainer, &batch));
    }
    destroy(&m);
}

static void schedules(void **state) {
    (void)state;
    float half = 0.05f, up = 0.1f * 0.853553391f, down = 0.1f * 0.146446609f;
    assert_lr((clt_train_options){.lr = 0.1f}, (float[]){0.1f, 0.1f, 0.1f}, 3);
    assert_lr((clt_train_options){.lr = 0.1f, .warmup_steps = 4}, (float[]){0.025f, 0.05f, 0.075f, 0.1f, 0.1f}, 5);
    assert_lr((clt_train_options){.lr = 0.1f, .schedule = CLT_SCHEDULE_STEP, .decay_steps = 2, .decay_factor = 0.5f},
              (float[]){0.1f, 0.1f, 0.05f, 0.05f, 0.025f}, 5);
    assert_lr((clt_train_options){.lr = 0.1f, .schedule = CLT_SCHEDULE_COSINE, .total_steps = 4},
              (float[]){0.1f, up, half, down, 0, 0}, 6);
    assert_lr((clt_train_options){.lr = 0.1f, .min_lr = 0.02f, .schedule = CLT_SCHEDULE_COSINE, .total_steps = 6, .warmup_steps = 2},
              (float[]){0.05f, 0.1f, 0.1f, 0.02f + 0.8f * up, 0.06f}, 5);
}

/* 11 samples in batches of 4, 4 and 3: means over samples, not over batches. */
static float halved(int64_t step, void *user) {
    ++*(int *)user;
    return step < 3 ? 1 / (float)(1 << step) : NAN;
}

static void a_schedule_of_the_callers(void **state) {
    (void)state;
    int calls = 0;
    clt_train_options options = {.lr = 0.1f, .schedule = CLT_SCHEDULE_FUNCTION, .lr_factor = halved, .lr_factor_user = &calls};
    assert_lr(options, (float[]){0.1f, 0.05f, 0.025f}, 3);
    assert_int_equal(calls, 6);
    model m = make(4, options);
    clt_batch batch = batch_of(0, 4);
    double w[D];
    for (int k = 0; k < D; k++) w[k] = (double)first_weights[k];
    for (int step = 0; step < 3; step++) {
        double g[D];
        gradient(w, 0, 4, g);
        for (int k = 0; k < D; k++) w[k] -= 0.1 / (1 << step) * g[k];
        assert_ok(clt_trainer_step(m.trainer, &batch));
        assert_weights(m.trainer, w, "function", step);
    }
    assert_status(clt_trainer_step(m.trainer, &batch), CLT_E_INVALID);
    assert_detail("the learning rate of update 4 is nan");
    assert_weights(m.trainer, w, "function", 3);
    destroy(&m);
}

/* Without a copy: they are read when the trainer is made. */
static void first_values_of_the_callers(void **state) {
    (void)state;
    model m;
    float values[D] = {1, 2, 3}, found[D];
    assert_ok(clt_graph_create(&m.graph));
    clt_tensor *w = clt_parameter(m.graph, "w", CLT_SHAPE(D), (clt_init){.kind = CLT_INIT_VALUES, .values = values});
    m.loss = clt_mean(clt_mul(clt_input(m.graph, "x", CLT_F32, CLT_SHAPE(4, D)), w), CLT_ALL_AXES);
    values[1] = 7;
    assert_ok(clt_trainer_create(&m.trainer, device, m.loss, NULL));
    values[1] = 9;
    assert_ok(clt_trainer_get(m.trainer, "w", found, D));
    assert_true(found[0] == 1 && found[1] == 7 && found[2] == 3);
    clt_parameter(m.graph, "none", CLT_SHAPE(D), (clt_init){.kind = CLT_INIT_VALUES});
    assert_status(clt_graph_status(m.graph), CLT_E_INVALID);
    assert_detail("\"none\": CLT_INIT_VALUES without values");
    destroy(&m);
}

static void metrics(void **state) {
    (void)state;
    model m = make(4, (clt_train_options){0});
    double w[D];
    clt_metrics got;
    for (int k = 0; k < D; k++) w[k] = (double)first_weights[k];
    for (int from = 0; from < SAMPLES; from += 4) {
        clt_batch batch = batch_of(from, from + 4 <= SAMPLES ? 4 : SAMPLES - from);
        assert_ok(clt_trainer_evaluate(m.trainer, &batch));
    }
    assert_ok(clt_trainer_eval_metrics(m.trainer, &got, true));
    assert_int_equal(got.samples, SAMPLES);
    assert_float_equal(got.loss, mean_square(w, 0, SAMPLES), 1e-5);
    assert_float_equal(got.mse, got.loss, 1e-12);
    assert_true(isnan(got.accuracy));
    float same[D];
    assert_ok(clt_trainer_get(m.trainer, "fc.weight", same, D));
    assert_memory_equal(same, first_weights, sizeof same); /* evaluation changes nothing */
    assert_ok(clt_trainer_eval_metrics(m.trainer, &got, false));
    assert_int_equal(got.samples, 0);
    assert_true(isnan(got.loss));
    destroy(&m);
}

static void an_uneven_last_batch_trains(void **state) {
    (void)state;
    clt_train_options options = {.optimizer = CLT_SGD, .lr = 0.05f};
    model m = make(4, options);
    state_in_double s = {0};
    for (int k = 0; k < D; k++) s.w[k] = (double)first_weights[k];
    for (int step = 1; step <= 6; step++) {
        int from = (step - 1) % 3 * 4, count = from + 4 <= SAMPLES ? 4 : SAMPLES - from;
        clt_batch batch = batch_of(from, count);
        double g[D];
        gradient(s.w, from, count, g);
        update(&s, &options, step, g);
        assert_ok(clt_trainer_step(m.trainer, &batch));
    }
    assert_weights(m.trainer, s.w, "uneven", 6);
    destroy(&m);
}

/* More than keep their plans: those that were not used for longest go, and come back. */
static void batches_of_many_sizes(void **state) {
    (void)state;
    clt_train_options options = {.optimizer = CLT_SGD, .lr = 0.01f, .momentum = 0.9f};
    model m = make(4, options);
    state_in_double s = {0};
    for (int k = 0; k < D; k++) s.w[k] = (double)first_weights[k];
    for (int step = 1; step <= 2 * SAMPLES; step++) {
        int count = 1 + (step * 3 - 1) % SAMPLES;
        clt_batch batch = batch_of(0, count);
        clt_metrics got;
        float y[SAMPLES];
        double g[D];
        assert_ok(clt_trainer_evaluate(m.trainer, &batch));
        assert_ok(clt_trainer_eval_metrics(m.trainer, &got, true));
        assert_float_equal(got.loss, mean_square(s.w, 0, count), 1e-4);
        assert_ok(clt_trainer_predict(m.trainer, m.prediction, &batch, y, (size_t)count));
        assert_float_equal(y[0], residual(s.w, 0) + (double)targets[0], 1e-4);
        gradient(s.w, 0, count, g);
        update(&s, &options, step, g);
        assert_ok(clt_trainer_step(m.trainer, &batch));
        assert_true(m.trainer->n_plans <= CLT_MOST_PLANS);
        assert_weights(m.trainer, s.w, "sizes", step);
    }
    assert_int_equal(m.trainer->n_plans, CLT_MOST_PLANS);
    clt_step *kept, *again;
    assert_ok(clt_trainer_plan(m.trainer, CLT_PURPOSE_TRAIN, (clt_sizes){.batch = 2}, NULL, &kept));
    for (int count = 1; count < CLT_MOST_PLANS; count++)
        if (count != 2) assert_ok(clt_trainer_plan(m.trainer, CLT_PURPOSE_TRAIN, (clt_sizes){.batch = count}, NULL, &again));
    assert_ok(clt_trainer_plan(m.trainer, CLT_PURPOSE_TRAIN, (clt_sizes){.batch = 2}, NULL, &again));
    assert_ptr_equal(again, kept);
    destroy(&m);
}

static void prediction(void **state) {
    (void)state;
    model m = make(4, (clt_train_options){0});
    float y[SAMPLES];
    double w[D];
    for (int k = 0; k < D; k++) w[k] = (double)first_weights[k];
    clt_batch batch = batch_of(0, SAMPLES);
    batch.n_fields = 1; /* the truth is not needed */
    assert_ok(clt_trainer_predict(m.trainer, m.prediction, &batch, y, SAMPLES));
    for (int i = 0; i < SAMPLES; i++) assert_float_equal(y[i], residual(w, i) + (double)targets[i], 1e-5);
    assert_status(clt_trainer_predict(m.trainer, m.prediction, &batch, y, 4), CLT_E_SHAPE);
    assert_status(clt_trainer_predict(m.trainer, m.loss, &batch, y, 1), CLT_E_SHAPE);
    assert_detail("\"t\"");
    destroy(&m);
}

/* Each micro-batch of each update has a mask of its own: of the mean of two masks about half the elements are
 * kept in one of them alone. */
static void dropout_draws_anew(void **state) {
    (void)state;
    enum { N = 2, WIDTH = 300 };
    static float x[N * WIDTH];
    float w[WIDTH], old[WIDTH] = {0}, first[WIDTH];
    clt_graph *graph;
    clt_trainer *trainer;
    for (int i = 0; i < N * WIDTH; i++) x[i] = 1;
    assert_ok(clt_graph_create(&graph));
    clt_tensor *weights = clt_parameter(graph, "w", CLT_SHAPE(1, WIDTH), (clt_init){0});
    clt_tensor *rows = clt_mean(clt_input(graph, "x", CLT_F32, CLT_SHAPE(N, WIDTH)), CLT_AXES(0));
    clt_tensor *loss = clt_sum(clt_mul(clt_dropout(rows, 0.5f), weights), CLT_ALL_AXES);
    assert_ok(clt_trainer_create(&trainer, device, loss, &(clt_train_options){.lr = 1, .accumulate = 2, .seed = 3}));
    clt_batch batch = {N, 1, {{CLT_F32, CLT_SHAPE(N, WIDTH), x}}};
    for (int update = 0; update < 2; update++) {
        int once = 0, same = 0;
        assert_ok(clt_trainer_step(trainer, &batch));
        assert_ok(clt_trainer_step(trainer, &batch));
        assert_ok(clt_trainer_get(trainer, "w", w, WIDTH));
        for (int i = 0; i < WIDTH; i++) {
            float moved = old[i] - w[i]; /* the mean of two masks of zeros and twos */
            assert_true(moved == 0 || moved == 1 || moved == 2);
            once += moved == 1;
            same += update == 1 && moved == first[i];
            if (update == 0) first[i] = moved;
            old[i] = w[i];
        }
        assert_in_range(once, WIDTH / 3, 2 * WIDTH / 3);
        assert_in_range(same, 0, 2 * WIDTH / 3); /* 3/8 of them by chance */
    }
    clt_trainer_destroy(trainer);
    clt_graph_destroy(graph);
}

/* ---- a classifier ---- */

static void classification(void **state) {
    (void)state;
    enum { N = 5, C = 3 };
    float logits[N][C] = {{1, 2, 3}, {3, 2, 1}, {0, 5, 0}, {1, 1, 0}, {0, 0, 9}};
    int32_t labels[N] = {2, 1, 1, 0, 2}; /* right: samples 0, 2, 3 (the first of equals), 4 */
    clt_graph *graph;
    clt_trainer *trainer;
    clt_metrics got;
    assert_ok(clt_graph_create(&graph));
    clt_tensor *x = clt_input(graph, "x", CLT_F32, CLT_SHAPE(N, C)), *label = clt_input(graph, "label", CLT_I32, CLT_SHAPE(N));
    clt_tensor *scale = clt_parameter(graph, "scale", CLT_SHAPE(1), (clt_init){CLT_INIT_CONSTANT, 1, 0});
    clt_tensor *scores = clt_mul(x, scale);
    assert_ok(clt_trainer_create(&trainer, device, clt_cross_entropy(scores, label), &(clt_train_options){.output = scores}));
    clt_batch batch = {N, 2, {{CLT_F32, CLT_SHAPE(N, C), logits}, {CLT_I32, CLT_SHAPE(N), labels}}};
    assert_ok(clt_trainer_evaluate(trainer, &batch));
    assert_ok(clt_trainer_eval_metrics(trainer, &got, true));
    double loss = 0;
    for (int i = 0; i < N; i++) {
        double sum = 0;
        for (int c = 0; c < C; c++) sum += exp((double)logits[i][c]);
        loss += (log(sum) - (double)logits[i][labels[i]]) / N;
    }
    assert_float_equal(got.loss, loss, 1e-6);
    assert_float_equal(got.accuracy, 0.8, 1e-12);
    labels[3] = 3;
    assert_status(clt_trainer_step(trainer, &batch), CLT_E_RANGE);
    assert_detail("sample 3");
    assert_detail("[0, 3)");
    labels[3] = -1;
    assert_status(clt_trainer_evaluate(trainer, &batch), CLT_E_RANGE);
    clt_trainer_destroy(trainer);
    clt_graph_destroy(graph);
}

/* Labels that reach the loss through a view are checked all the same. */
static void labels_through_views(void **state) {
    (void)state;
    enum { N = 4, C = 3 };
    float values[N][C] = {{0}};
    int32_t labels[N] = {0, 1, 7, 2};
    clt_graph *graph;
    clt_trainer *trainer;
    assert_ok(clt_graph_create(&graph));
    clt_tensor *x = clt_input(graph, "x", CLT_F32, CLT_SHAPE(N, C)), *label = clt_input(graph, "label", CLT_I32, CLT_SHAPE(N, 1));
    clt_tensor *flat = clt_slice(clt_reshape(label, CLT_SHAPE(N)), 0, 0, N, 1);
    assert_ok(clt_trainer_create(&trainer, device, clt_cross_entropy(clt_linear(x, "fc", C), flat), NULL));
    clt_batch batch = {N, 2, {{CLT_F32, CLT_SHAPE(N, C), values}, {CLT_I32, CLT_SHAPE(N, 1), labels}}};
    assert_status(clt_trainer_step(trainer, &batch), CLT_E_RANGE);
    assert_detail("sample 2");
    clt_trainer_destroy(trainer);
    clt_graph_destroy(graph);
}

/* ---- what is refused ---- */

/* ---- parameters that several ops use, and such as are not trained ---- */

/* y = tanh(x W) W with one W [D, D] for both. */
static double tied_loss(const double *w) {
    double sum = 0;
    for (int i = 0; i < SAMPLES; i++) {
        double h[D] = {0};
        for (int k = 0; k < D; k++)
            for (int j = 0; j < D; j++) h[k] += (double)features[i][j] * w[k * D + j];
        for (int k = 0; k < D; k++) {
            double y = -(double)features[i][k];
            for (int j = 0; j < D; j++) y += tanh(h[j]) * w[k * D + j];
            sum += y * y;
        }
    }
    return sum / (SAMPLES * D);
}

static void tied_weights(void **state) {
    (void)state;
    clt_graph *graph;
    clt_trainer *trainer;
    float w[D * D], after[D * D];
    double exact[D * D];
    assert_ok(clt_graph_create(&graph));
    clt_tensor *x = clt_input(graph, "x", CLT_F32, CLT_SHAPE(SAMPLES, D));
    clt_tensor *t = clt_input(graph, "t", CLT_F32, CLT_SHAPE(SAMPLES, D));
    clt_tensor *weight = clt_parameter(graph, "tied", CLT_SHAPE(D, D), (clt_init){.kind = CLT_INIT_NORMAL, .value = 1});
    clt_tensor *y = clt_linear_op(clt_tanh(clt_linear_op(x, weight, NULL)), weight, NULL);
    assert_ok(clt_trainer_create(&trainer, device, clt_mse_loss(y, t), &(clt_train_options){.optimizer = CLT_SGD, .lr = 1}));
    assert_int_equal(clt_graph_parameter_count(graph), D * D);
    assert_ok(clt_trainer_get(trainer, "tied", w, D * D));
    clt_array all = {CLT_F32, CLT_SHAPE(SAMPLES, D), features};
    assert_ok(clt_trainer_step(trainer, &(clt_batch){.samples = SAMPLES, .n_fields = 2, .fields = {all, all}}));
    assert_ok(clt_trainer_get(trainer, "tied", after, D * D));
    for (int k = 0; k < D * D; k++) exact[k] = (double)w[k];
    for (int k = 0; k < D * D; k++) {
        enum { PARTS = 1 << 20 };
        exact[k] += 1.0 / PARTS;
        double more = tied_loss(exact);
        exact[k] -= 2.0 / PARTS;
        double gradient = (more - tied_loss(exact)) * PARTS / 2;
        exact[k] += 1.0 / PARTS;
        if (!(fabs((double)w[k] - (double)after[k] - gradient) <= 1e-5))
            fail_msg("w[%d]: the gradient is %g, not %g", k, (double)w[k] - (double)after[k], gradient);
    }
    clt_trainer_destroy(trainer);
    clt_graph_destroy(graph);
}

static void parameters_that_are_not_trained(void **state) {
    (void)state;
    clt_graph *graph;
    clt_trainer *trainer;
    float before[2 * D], after[2 * D], bias[2];
    assert_ok(clt_graph_create(&graph));
    clt_tensor *x = clt_input(graph, "x", CLT_F32, CLT_SHAPE(4, D)), *t = clt_input(graph, "t", CLT_F32, CLT_SHAPE(4, 1));
    clt_tensor *loss = clt_mse_loss(clt_linear(clt_batch_norm(clt_linear(x, "body", 2), "bn"), "head", 1), t);
    assert_status(clt_parameter_set_trained(NULL, false), CLT_E_INVALID);
    assert_status(clt_parameter_set_trained(x, false), CLT_E_INVALID);
    assert_detail("\"x\" is not a parameter");
    assert_status(clt_parameter_set_trained(clt_graph_find(graph, "bn.running_mean"), false), CLT_E_INVALID);
    assert_null(clt_graph_find(graph, "nothing"));
    assert_ptr_equal(clt_graph_find(graph, "t"), t);
    assert_ok(clt_parameter_set_trained(clt_graph_find(graph, "body.weight"), false));
    assert_int_equal(clt_graph_parameter_count(graph), 2 + 4 + 2 + 1);
    assert_ok(clt_trainer_create(&trainer, device, loss, &(clt_train_options){.optimizer = CLT_ADAMW, .lr = 0.1f, .weight_decay = 0.1f}));
    assert_ok(clt_trainer_get(trainer, "body.weight", before, 2 * D));
    clt_batch batch = batch_of(0, 4);
    for (int i = 0; i < 3; i++) assert_ok(clt_trainer_step(trainer, &batch));
    assert_ok(clt_trainer_get(trainer, "body.weight", after, 2 * D));
    assert_ok(clt_trainer_get(trainer, "body.bias", bias, 2));
    assert_memory_equal(before, after, sizeof before);
    assert_ok(clt_trainer_get(trainer, "head.weight", after, 2));
    clt_trainer_destroy(trainer);
    /* By pattern. A trainer keeps to what it began with, in plans that it makes later, too. */
    assert_status(clt_graph_set_trained(graph, "tail.*", false), CLT_E_NOT_FOUND);
    assert_detail("no parameter's name matches \"tail.*\"");
    assert_status(clt_graph_set_trained(graph, "bn.running_*", false), CLT_E_NOT_FOUND);
    assert_status(clt_graph_set_trained(graph, NULL, false), CLT_E_INVALID);
    assert_ok(clt_graph_set_trained(graph, "*", true));
    assert_int_equal(clt_graph_parameter_count(graph), 2 * D + 2 + 4 + 2 + 1);
    assert_ok(clt_graph_set_trained(graph, "body.*", false));
    assert_int_equal(clt_graph_parameter_count(graph), 4 + 2 + 1);
    assert_ok(clt_trainer_create(&trainer, device, loss, &(clt_train_options){.lr = 0.1f}));
    assert_ok(clt_graph_set_trained(graph, "b*.w?ight", true));
    assert_ok(clt_trainer_get(trainer, "body.weight", before, 2 * D));
    batch = batch_of(0, 3);
    assert_ok(clt_trainer_step(trainer, &batch));
    assert_ok(clt_trainer_get(trainer, "body.weight", after, 2 * D));
    assert_memory_equal(before, after, sizeof before);
    clt_trainer_destroy(trainer);
    /* None is left. */
    assert_ok(clt_graph_set_trained(graph, "*", false));
    assert_int_equal(clt_graph_parameter_count(graph), 0);
    assert_status(clt_trainer_create(&trainer, device, loss, NULL), CLT_E_INVALID);
    assert_detail("parameter");
    clt_graph_destroy(graph);
}

/* Labels of i64 train as those of i32, and are refused where they do not fit. */
static void wide_labels(void **state) {
    (void)state;
    int32_t narrow[SAMPLES];
    int64_t wide[SAMPLES];
    float w[2][2 * D];
    for (int i = 0; i < SAMPLES; i++) wide[i] = narrow[i] = i % 2;
    for (int k = 0; k < 2; k++) {
        clt_graph *graph;
        clt_trainer *trainer;
        assert_ok(clt_graph_create(&graph));
        clt_tensor *x = clt_input(graph, "x", CLT_F32, CLT_SHAPE(SAMPLES, D)), *t = clt_input(graph, "t", CLT_I32, CLT_SHAPE(SAMPLES));
        clt_tensor *loss = clt_cross_entropy(clt_linear(x, "fc", 2, .no_bias = true), t);
        assert_ok(clt_trainer_create(&trainer, device, loss, NULL));
        clt_array fields[] = {{CLT_F32, CLT_SHAPE(SAMPLES, D), features},
                              {k ? CLT_I64 : CLT_I32, CLT_SHAPE(SAMPLES), k ? (const void *)wide : narrow}};
        clt_batch batch = {.samples = SAMPLES, .n_fields = 2, .fields = {fields[0], fields[1]}};
        for (int i = 0; i < 3; i++) assert_ok(clt_trainer_step(trainer, &batch));
        assert_ok(clt_trainer_get(trainer, "fc.weight", w[k], 2 * D));
        if (k) {
            wide[3] = (int64_t)1 << 32;
            assert_status(clt_trainer_step(trainer, &batch), CLT_E_RANGE);
            assert_detail("sample 3 of the batch: 4294967296 is outside [0, 2)");
            wide[3] = 1;
        }
        clt_trainer_destroy(trainer);
        clt_graph_destroy(graph);
    }
    assert_memory_equal(w[0], w[1], sizeof w[0]);
    clt_dataset *data;
    clt_array fields[] = {{CLT_F32, CLT_SHAPE(SAMPLES, D), features}, {CLT_I64, CLT_SHAPE(SAMPLES), wide}};
    assert_ok(clt_dataset_from_arrays(&data, fields, 2));
    assert_int_equal(clt_dataset_dtype(data, 1), CLT_I32);
    assert_int_equal(clt_dataset_classes(data), 2);
    clt_dataset_destroy(data);
    wide[5] = -((int64_t)1 << 40);
    assert_status(clt_dataset_from_arrays(&data, fields, 2), CLT_E_RANGE);
    assert_detail("field 1: value -1099511627776 (element 5) does not fit in i32");
}

static void bad_batches(void **state) {
    (void)state;
    model m = make(4, (clt_train_options){0});
    clt_batch batch = batch_of(0, 4);
    batch.fields[0].shape = CLT_SHAPE(4, 2);
    assert_status(clt_trainer_step(m.trainer, &batch), CLT_E_SHAPE);
    assert_detail("[4, 2]");
    assert_detail("\"x\"");
    batch = batch_of(0, 4);
    batch.fields[1].dtype = CLT_I32;
    assert_status(clt_trainer_step(m.trainer, &batch), CLT_E_DTYPE);
    batch = batch_of(0, 4);
    batch.fields[1].data = NULL;
    assert_status(clt_trainer_step(m.trainer, &batch), CLT_E_INVALID);
    batch = batch_of(0, 4);
    batch.samples = 0;
    assert_status(clt_trainer_step(m.trainer, &batch), CLT_E_INVALID);
    batch = batch_of(0, 4);
    batch.n_fields = 1;
    assert_status(clt_trainer_step(m.trainer, &batch), CLT_E_SHAPE);
    assert_int_equal(clt_trainer_steps(m.trainer), 0);
    float w[D];
    assert_status(clt_trainer_get(m.trainer, "fc.weight", w, 2), CLT_E_SHAPE);
    assert_status(clt_trainer_get(m.trainer, "nothing", w, 2), CLT_E_NOT_FOUND);
    assert_status(clt_trainer_get(m.trainer, "fc.weight", NULL, D), CLT_E_INVALID);
    assert_detail("clt_trainer_get: trainer, name or values is NULL");
    assert_status(clt_trainer_set(m.trainer, "fc.weight", NULL, D), CLT_E_INVALID);
    assert_detail("clt_trainer_set: trainer, name or values is NULL");
    assert_status(clt_trainer_get(m.trainer, NULL, w, D), CLT_E_INVALID);
    assert_status(clt_trainer_set(NULL, "fc.weight", w, D), CLT_E_INVALID);
    destroy(&m);
}

static void bad_options(void **state) {
    (void)state;
    const clt_train_options bad[] = {
        {.lr = -1}, {.lr = NAN}, {.momentum = 1}, {.nesterov = true}, {.beta1 = 1.5f}, {.clip_norm = -1}, {.accumulate = -2},
        {.schedule = CLT_SCHEDULE_FUNCTION}, {.lr_factor = halved}, {.schedule = CLT_SCHEDULE_FUNCTION, .lr_factor = halved, .warmup_steps = 2},
        {.beta1 = CLT_ZERO}, {.optimizer = CLT_ADAM, .momentum = CLT_ZERO}, {.beta1 = 0.9f}, {.beta2 = 0.9f}, {.eps = 1e-8f}, {.optimizer = CLT_ADAM, .momentum = 0.9f}, {.optimizer = CLT_ADAMW, .nesterov = true},
        {.optimizer = (clt_optimizer)9}, {.schedule = CLT_SCHEDULE_COSINE}, {.schedule = CLT_SCHEDULE_STEP}, {.warmup_steps = -1},
    };
    clt_graph *graph;
    clt_trainer *trainer;
    assert_ok(clt_graph_create(&graph));
    clt_tensor *x = clt_input(graph, "x", CLT_F32, CLT_SHAPE(4, D));
    clt_tensor *loss = clt_mean(clt_linear(x, "fc", 1), CLT_ALL_AXES);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_status(clt_trainer_create(&trainer, device, loss, &bad[i]), CLT_E_INVALID);
    assert_status(clt_trainer_create(&trainer, device, loss, &(clt_train_options){.beta1 = 0.9f}), CLT_E_INVALID);
    assert_detail("option beta1: SGD does not have it; Adam and AdamW do");
    assert_status(clt_trainer_create(NULL, device, loss, NULL), CLT_E_INVALID);
    assert_detail("trainer is NULL");
    assert_status(clt_trainer_create(&trainer, NULL, loss, NULL), CLT_E_INVALID);
    assert_detail("device is NULL");
    assert_status(clt_trainer_create(&trainer, device, x, NULL), CLT_E_SHAPE);
    assert_status(clt_trainer_create(&trainer, device, clt_mean(x, CLT_ALL_AXES), NULL), CLT_E_INVALID);
    assert_detail("does not depend on any parameter");
    assert_status(clt_trainer_create(&trainer, device, clt_matmul(x, x), NULL), CLT_E_SHAPE); /* the graph's own error */
    assert_detail("matmul");
    clt_graph_destroy(graph);
}

/* ---- rules for parameters: y = X w + b, of which b has no decay and half the rate ---- */

typedef struct ruled {
    double p[D + 1], m[D + 1], v[D + 1];
} ruled;

static void update_by_rules(ruled *s, const clt_train_options *o, int step, int from, int count) {
    double g[D + 1] = {0};
    for (int i = from; i < from + count; i++) {
        double r = s->p[D] - (double)targets[i];
        for (int k = 0; k < D; k++) r += s->p[k] * (double)features[i][k];
        for (int k = 0; k <= D; k++) g[k] += 2.0 / count * r * (k < D ? (double)features[i][k] : 1);
    }
    for (int k = 0; k <= D; k++) {
        double lr = (double)o->lr * (k < D ? 1 : 0.5), wd = k < D ? 0.25 : 0;
        if (o->optimizer == CLT_SGD) {
            s->p[k] -= lr * (g[k] + wd * s->p[k]);
            continue;
        }
        s->p[k] *= 1 - lr * wd;
        s->m[k] = 0.9 * s->m[k] + 0.1 * g[k];
        s->v[k] = 0.999 * s->v[k] + 0.001 * g[k] * g[k];
        s->p[k] -= lr * s->m[k] / (1 - pow(0.9, step)) / (sqrt(s->v[k] / (1 - pow(0.999, step))) + 1e-8);
    }
}

static void rules_for_parameters(void **state) {
    (void)state;
    const clt_parameter_rule rules[] = {{"*.bias", 0.5f, -1}, {"fc.w?ight", 0, 0.25f}};
    for (int adam = 0; adam < 2; adam++) {
        clt_graph *graph;
        clt_trainer *trainer, *other;
        clt_train_options o = {.optimizer = adam ? CLT_ADAMW : CLT_SGD, .lr = 0.05f, .weight_decay = 0.5f, .rules = rules, .n_rules = 2};
        ruled s = {.p = {0.5, -1, 2, 0}};
        float w[D], b;
        assert_ok(clt_graph_create(&graph));
        clt_tensor *x = clt_input(graph, "x", CLT_F32, CLT_SHAPE(4, D)), *t = clt_input(graph, "t", CLT_F32, CLT_SHAPE(4, 1));
        clt_tensor *loss = clt_mse_loss(clt_linear(x, "fc", 1), t);
        assert_ok(clt_trainer_create(&trainer, device, loss, &o));
        assert_ok(clt_trainer_set(trainer, "fc.weight", first_weights, D));
        assert_ok(clt_trainer_set(trainer, "fc.bias", (const float[]){0}, 1));
        for (int step = 1; step <= 6; step++) {
            clt_batch batch = batch_of(step % 3, 4);
            assert_ok(clt_trainer_step(trainer, &batch));
            update_by_rules(&s, &o, step, step % 3, 4);
        }
        assert_ok(clt_trainer_get(trainer, "fc.weight", w, D));
        assert_ok(clt_trainer_get(trainer, "fc.bias", &b, 1));
        for (int k = 0; k < D; k++) assert_float_equal(w[k], s.p[k], 2e-5);
        assert_float_equal(b, s.p[D], 2e-5);
        /* What a checkpoint holds does not depend on rules. */
        assert_ok(clt_checkpoint_save(trainer, NULL, support_path("rules.safetensors")));
        o.n_rules = 0;
        assert_ok(clt_trainer_create(&other, device, loss, &o));
        assert_ok(clt_checkpoint_load(other, NULL, support_path("rules.safetensors")));
        float copy[D];
        assert_ok(clt_trainer_get(other, "fc.weight", copy, D));
        assert_memory_equal(copy, w, sizeof w);
        clt_trainer_destroy(other);
        clt_trainer_destroy(trainer);
        clt_graph_destroy(graph);
    }
}

static void rules_that_make_no_sense(void **state) {
    (void)state;
    static const struct {
        clt_parameter_rule rule;
        clt_status status;
        const char *words;
    } cases[] = {
        {{"head.*", 0, 0}, CLT_E_NOT_FOUND, "option rules[0]: no trained parameter's name matches \"head.*\""},
        {{NULL, 0, 0}, CLT_E_INVALID, "rules[0].pattern"},
        {{"*", -1, 0}, CLT_E_INVALID, "rules[0].lr_factor = -1"},
        {{"*", 0, NAN}, CLT_E_INVALID, "rules[0].weight_decay = nan"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        clt_graph *graph;
        clt_trainer *trainer;
        assert_ok(clt_graph_create(&graph));
        clt_tensor *x = clt_input(graph, "x", CLT_F32, CLT_SHAPE(4, D)), *t = clt_input(graph, "t", CLT_F32, CLT_SHAPE(4, 1));
        clt_train_options o = {.rules = &cases[i].rule, .n_rules = 1};
        assert_status(clt_trainer_create(&trainer, device, clt_mse_loss(clt_linear(x, "fc", 1), t), &o), cases[i].status);
        assert_detail(cases[i].words);
        o.n_rules = 17;
        assert_status(clt_trainer_create(&trainer, device, clt_mse_loss(clt_linear(x, "fc2", 1), t), &o), CLT_E_INVALID);
        assert_detail("n_rules = 17");
        clt_graph_destroy(graph);
    }
}

/* The mask, and then the places, of the batch's third and fourth field. */
static void set_fixed(clt_trainer *trainer, const clt_batch *batch) {
    static const int32_t far[] = {0, 1, 2, 4};
    clt_array wrong = batch->fields[2];
    assert_status(clt_trainer_step(trainer, batch), CLT_E_STATE);
    assert_detail("fixed input \"mask\" has no values yet");
    assert_ok(clt_trainer_set_input(trainer, "mask", &batch->fields[2]));
    assert_status(clt_trainer_evaluate(trainer, batch), CLT_E_STATE);
    assert_detail("\"places\"");
    assert_status(clt_trainer_set_input(trainer, "places", &(clt_array){CLT_I32, CLT_SHAPE(4), (void *)(uintptr_t)far}), CLT_E_RANGE);
    assert_detail("\"places\", element 3: 4 is outside [0, 4)");
    assert_ok(clt_trainer_set_input(trainer, "places", &batch->fields[3]));
    assert_status(clt_trainer_set_input(trainer, "places", &wrong), CLT_E_DTYPE);
    wrong.shape = CLT_SHAPE(2, 8);
    assert_status(clt_trainer_set_input(trainer, "mask", &wrong), CLT_E_SHAPE);
    assert_detail("fixed input \"mask\" is [4, 4], and its values are [2, 8]");
    assert_status(clt_trainer_set_input(trainer, "fc.weight", &wrong), CLT_E_INVALID);
    assert_status(clt_trainer_set_input(trainer, "x", &wrong), CLT_E_NOT_FOUND);
    assert_status(clt_trainer_set_input(trainer, "mask", NULL), CLT_E_INVALID);
}

/* Positions by a table and a mask, whose values the program has: y = X w + table[places] . mask. */
static void constants(void **state) {
    (void)state;
    enum { B = 4, LONGEST = 6 };
    static const float mask_values[B * LONGEST] = {1, 0, 1, 0, 0, 1, 1, 1, 0, 1};
    static const int32_t place_values[LONGEST] = {3, 1, 0, 2, 3, 3};
    clt_array mask = {CLT_F32, CLT_SHAPE(LONGEST, B), (void *)(uintptr_t)mask_values},
              places = {CLT_I32, CLT_SHAPE(LONGEST), (void *)(uintptr_t)place_values};
    float trained[3][D], tables[3][4 * B], values[1];
    for (int how = 0; how < 3; how++) { /* as constants; as what a batch brings; as fixed inputs */
        clt_graph *graph;
        clt_trainer *trainer;
        assert_ok(clt_graph_create(&graph));
        clt_tensor *x = clt_input(graph, "x", CLT_F32, CLT_SHAPE(B, D)), *t = clt_input(graph, "t", CLT_F32, CLT_SHAPE(B, 1));
        clt_tensor *m = how == 2 ? clt_fixed_input(graph, "mask", CLT_F32, CLT_SHAPE(B, B)) : how ? clt_input(graph, "mask", CLT_F32, CLT_SHAPE(B, B)) : clt_slice(clt_constant(graph, "mask", &mask), 0, 0, B, 1);
        clt_tensor *p = how == 2 ? clt_fixed_input(graph, "places", CLT_I32, CLT_SHAPE(B)) : how ? clt_input(graph, "places", CLT_I32, CLT_SHAPE(B)) : clt_slice(clt_constant(graph, "places", &places), 0, 0, B, 1);
        clt_tensor *shift = clt_sum(clt_mul(clt_embedding(p, "table", 4, B), m), (clt_reduce_options){.axes = {1}, .n_axes = 1, .keep_dims = true});
        clt_tensor *y = clt_add(clt_linear(x, "fc", 1, .no_bias = true), shift);
        assert_ok(clt_trainer_create(&trainer, device, clt_mse_loss(y, t), &(clt_train_options){.optimizer = CLT_ADAM, .lr = 0.1f, .output = y}));
        clt_batch batch = batch_of(0, B);
        batch.n_fields = how == 1 ? 4 : 2;
        batch.fields[2] = (clt_array){CLT_F32, CLT_SHAPE(B, B), mask.data};
        batch.fields[3] = (clt_array){CLT_I32, CLT_SHAPE(B), places.data};
        if (how == 2) set_fixed(trainer, &batch);
        for (int i = 0; i < 5; i++) assert_ok(clt_trainer_step(trainer, &batch));
        assert_ok(clt_trainer_get(trainer, "fc.weight", trained[how], D));
        assert_ok(clt_trainer_get(trainer, "table.weight", tables[how], 4 * B));
        if (how != 1) {
            assert_int_equal(clt_graph_parameter_count(graph), D + 4 * B);
            assert_status(clt_parameter_set_trained(clt_graph_find(graph, "mask"), true), CLT_E_INVALID);
            assert_status(clt_trainer_set(trainer, "mask", values, 1), CLT_E_INVALID);
            assert_detail(how ? "\"mask\" is a fixed input" : "\"mask\" is a constant");
            const char *paths[] = {support_path("constants.safetensors"), support_path("weights.safetensors")};
            assert_ok(clt_checkpoint_save(trainer, NULL, paths[0]));
            assert_ok(clt_weights_save(trainer, paths[1]));
            for (int k = 0; k < 2; k++) {
                char bytes[4096] = "";
                FILE *file = fopen(paths[k], "rb");
                assert_non_null(file);
                size_t read = fread(bytes, 1, sizeof bytes - 1, file);
                fclose(file);
                for (size_t i = 0; i < read; i++) bytes[i] = bytes[i] ? bytes[i] : ' ';
                assert_non_null(strstr(bytes, "table.weight"));
                assert_null(strstr(bytes, "mask"));
            }
            assert_ok(clt_checkpoint_load(trainer, NULL, paths[0]));
        }
        clt_trainer_destroy(trainer);
        clt_graph_destroy(graph);
    }
    for (int how = 0; how < 3; how += 2) {
        assert_memory_equal(trained[how], trained[1], sizeof trained[0]);
        for (int i = 0; i < 4 * B; i++) assert_float_equal(tables[how][i], tables[1][i], 1e-6);
    }
}

/* The trainer has no values of them; what was made later of what it has can be predicted. */
static void what_is_made_later(void **state) {
    (void)state;
    model m = make(4, (clt_train_options){.lr = 0.1f});
    clt_batch batch = batch_of(0, 4);
    float found[4], twice[4], value = 7;
    clt_tensor *doubled = clt_add(m.prediction, m.prediction), *x = clt_input(m.graph, "late", CLT_F32, CLT_SHAPE(4, 1));
    clt_tensor *w = clt_parameter(m.graph, "late.w", CLT_SHAPE(1), (clt_init){CLT_INIT_CONSTANT, 7, 0});
    assert_ok(clt_trainer_predict(m.trainer, m.prediction, &batch, found, 4));
    assert_ok(clt_trainer_predict(m.trainer, doubled, &batch, twice, 4));
    for (int i = 0; i < 4; i++) assert_true(twice[i] == 2 * found[i]);
    assert_status(clt_trainer_predict(m.trainer, clt_add(m.prediction, x), &batch, found, 4), CLT_E_STATE);
    assert_detail("\"late\", which was made after the trainer");
    assert_status(clt_trainer_predict(m.trainer, clt_mul(m.prediction, w), &batch, found, 4), CLT_E_STATE);
    assert_status(clt_trainer_set(m.trainer, "late.w", &value, 1), CLT_E_NOT_FOUND);
    assert_ok(clt_weights_save(m.trainer, support_path("early")));
    assert_ok(clt_weights_load(m.trainer, support_path("early")));
    assert_ok(clt_trainer_step(m.trainer, &batch));
    destroy(&m);
}

/* As many as there may be: each brings a share of the sum. */
static void many_inputs(void **state) {
    (void)state;
    enum { N = CLT_MAX_FIELDS };
    model m;
    float values[N][2], found[2];
    double wanted[2] = {0, 0};
    clt_batch batch = {.samples = 2, .n_fields = N};
    assert_ok(clt_graph_create(&m.graph));
    clt_tensor *sum = NULL;
    for (int i = 0; i < N; i++) {
        clt_tensor *part = clt_mul_scalar(clt_input(m.graph, (char[]){'x', (char)('a' + i), 0}, CLT_F32, CLT_SHAPE(2)), (float)(1 << i));
        sum = sum ? clt_add(sum, part) : part;
        batch.fields[i] = (clt_array){CLT_F32, CLT_SHAPE(2), values[i]};
        for (int s = 0; s < 2; s++) wanted[s] += (double)(1 << i) * (double)(values[i][s] = (float)(i + s));
    }
    m.prediction = clt_mul(sum, clt_parameter(m.graph, "w", CLT_SHAPE(1), (clt_init){CLT_INIT_CONSTANT, 1, 0}));
    m.loss = clt_mean(m.prediction, CLT_ALL_AXES);
    assert_ok(clt_trainer_create(&m.trainer, device, m.loss, NULL));
    assert_ok(clt_trainer_predict(m.trainer, m.prediction, &batch, found, 2));
    assert_true((double)found[0] == wanted[0] && (double)found[1] == wanted[1]);
    assert_ok(clt_trainer_step(m.trainer, &batch));
    batch.n_fields--;
    assert_status(clt_trainer_step(m.trainer, &batch), CLT_E_SHAPE);
    destroy(&m);
}

static void constants_that_are_no_rows(void **state) {
    (void)state;
    static const int32_t values[] = {0, 4};
    clt_array places = {CLT_I32, CLT_SHAPE(2), (void *)(uintptr_t)values};
    clt_graph *graph;
    clt_trainer *trainer;
    assert_ok(clt_graph_create(&graph));
    clt_tensor *x = clt_input(graph, "x", CLT_F32, CLT_SHAPE(2, D));
    clt_tensor *rows = clt_embedding(clt_reshape(clt_constant(graph, "places", &places), CLT_SHAPE(2)), "table", 4, D);
    assert_status(clt_trainer_create(&trainer, device, clt_mse_loss(x, rows), NULL), CLT_E_RANGE);
    assert_detail("\"places\", element 1: 4 is outside [0, 4)");
    clt_graph_destroy(graph);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(optimizers), cmocka_unit_test(gradients), cmocka_unit_test(a_schedule_of_the_callers),
        cmocka_unit_test(first_values_of_the_callers), cmocka_unit_test(accumulation),
        cmocka_unit_test(schedules),      cmocka_unit_test(metrics),
        cmocka_unit_test(an_uneven_last_batch_trains), cmocka_unit_test(batches_of_many_sizes),
        cmocka_unit_test(prediction),
        cmocka_unit_test(dropout_draws_anew),
        cmocka_unit_test(tied_weights), cmocka_unit_test(wide_labels),
        cmocka_unit_test(parameters_that_are_not_trained),
        cmocka_unit_test(rules_for_parameters), cmocka_unit_test(rules_that_make_no_sense),
        cmocka_unit_test(constants), cmocka_unit_test(constants_that_are_no_rows), cmocka_unit_test(many_inputs), cmocka_unit_test(what_is_made_later),
        cmocka_unit_test(classification), cmocka_unit_test(labels_through_views), cmocka_unit_test(bad_batches),
        cmocka_unit_test(bad_options),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
