/* Optimizers: parameters after some steps of a trainer, against the same steps in double precision. The loss is sum(x p), so that the
 * gradient is x. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cltrain-conform/updates.h"

/* eps is large, or Adam's steps would be as long whatever gradients are scaled by. */
#define ALL_OPTIONS(which, of_momentum, in_front)                                                                          \
    {                                                                                                                      \
        .optimizer = which, .lr = 0.1f, .momentum = of_momentum, .nesterov = in_front, .weight_decay = 0.05f,              \
        .clip_value = 0.9f, .clip_norm = 10, .accumulate = 2, .eps = (which) == CLT_SGD ? 0 : 0.25f                        \
    }

/* Of all parameters. */
static const clt_parameter_rule half[] = {{"*", 0.5f, 0.2f}};

static const recipe recipes[] = {
    {"sgd", {.lr = 0.1f}, false},
    {"sgd-momentum", {.lr = 0.1f, .momentum = 0.9f}, false},
    {"sgd-nesterov-decay",
     {.lr = 0.1f, .momentum = 0.8f, .nesterov = true, .weight_decay = 0.05f},
     false},
    {"adam", {.optimizer = CLT_ADAM, .lr = 0.05f}, false},
    {"adam-decay",
     {.optimizer = CLT_ADAM, .lr = 0.05f, .weight_decay = 0.1f, .beta1 = 0.7f, .beta2 = 0.9f},
     true},
    {"adamw", {.optimizer = CLT_ADAMW, .lr = 0.05f, .weight_decay = 0.1f}, false},
    {"clip-value", {.lr = 0.1f, .clip_value = 0.7f}, true},
    {"clip-norm", {.lr = 0.1f, .clip_norm = 1.5f}, false},
    {"clip-norm-chunks", {.lr = 0.1f, .clip_norm = 300}, true, .size = 65 * 4096 + 1 /* more chunks than a work-group has items */},
    {"clip-norm-adam", {.optimizer = CLT_ADAM, .lr = 0.05f, .clip_norm = 0.5f}, true},
    {"accumulate", {.lr = 0.1f, .accumulate = 3}, false, .classes = true},
    {"average", {.lr = 0.1f, .average = 0.75f}, false, .classes = true},
    {"average-skip-nonfinite", {.optimizer = CLT_ADAM, .lr = 0.05f, .average = 0.75f, .on_nonfinite = CLT_NONFINITE_SKIP}, false, .broken = NAN, .size = 1031},
    {"rule-sgd", {.lr = 0.2f, .weight_decay = 0.05f, .rules = half, .n_rules = 1}, false},
    {"rule-momentum", {.lr = 0.2f, .momentum = 0.9f, .rules = half, .n_rules = 1}, false},
    {"rule-adamw", {.optimizer = CLT_ADAMW, .lr = 0.1f, .rules = half, .n_rules = 1}, false},
    /* All that is done to gradients, each of which changes something in all of these. */
    {"all-sgd", ALL_OPTIONS(CLT_SGD, 0, false), false, .classes = true},
    {"all-momentum", ALL_OPTIONS(CLT_SGD, 0.9f, false), false, .classes = true},
    {"all-nesterov", ALL_OPTIONS(CLT_SGD, 0.8f, true), true},
    {"all-adam", ALL_OPTIONS(CLT_ADAM, 0, false), false, .classes = true},
    {"all-adamw", ALL_OPTIONS(CLT_ADAMW, 0, false), true},
    {"skip-nonfinite", {.lr = 0.1f, .momentum = 0.9f, .on_nonfinite = CLT_NONFINITE_SKIP}, false, .broken = INFINITY},
    {"skip-nonfinite-last",
     {.lr = 0.1f, .on_nonfinite = CLT_NONFINITE_SKIP},
     false,
     .broken = NAN,
     .size = 4 * 256 /* no filling */},
    {"skip-nonfinite-adam", {.optimizer = CLT_ADAM, .lr = 0.05f, .on_nonfinite = CLT_NONFINITE_SKIP}, true, .broken = NAN},
    {"skip-nonfinite-clip",
     {.lr = 0.1f, .clip_value = 0.7f, .clip_norm = 1.5f, .on_nonfinite = CLT_NONFINITE_SKIP},
     true,
     .broken = INFINITY},
    {"skip-nonfinite-accumulate",
     {.lr = 0.1f, .accumulate = 3, .on_nonfinite = CLT_NONFINITE_SKIP},
     false,
     .broken = NAN},
    /* A loss that is scaled by a power of two, with a copy of the parameters in 16 bits: the same parameters, to the last bit. */
    {"scaled", {.lr = 0.1f, .precision = CLT_PRECISION_F16, .on_nonfinite = CLT_NONFINITE_SKIP}, false, .broken = INFINITY},
    {"scaled-momentum", {.lr = 0.1f, .momentum = 0.9f, .precision = CLT_PRECISION_F16, .on_nonfinite = CLT_NONFINITE_SKIP}, true},
    {"scaled-all",
     {.optimizer = CLT_ADAM, .lr = 0.1f, .weight_decay = 0.05f, .clip_value = 0.9f, .clip_norm = 10, .accumulate = 2, .eps = 0.25f, .precision = CLT_PRECISION_F16,
      .on_nonfinite = CLT_NONFINITE_SKIP},
     false,
     .broken = NAN},
    /* With a copy alone. */
    {"copy-bf16", {.lr = 0.1f, .precision = CLT_PRECISION_BF16}, false, .classes = true},
    {"copy-bf16-momentum", {.lr = 0.1f, .momentum = 0.9f, .precision = CLT_PRECISION_BF16, .on_nonfinite = CLT_NONFINITE_SKIP}, false, .broken = INFINITY},
    {"copy-bf16-adamw",
     {.optimizer = CLT_ADAMW, .lr = 0.05f, .weight_decay = 0.1f, .precision = CLT_PRECISION_BF16, .on_nonfinite = CLT_NONFINITE_SKIP},
     false,
     .broken = NAN,
     .classes = true},
    /* The squares overflow, and nobody asked for them. */
    {"skip-nonfinite-large",
     {.lr = 0.1f, .on_nonfinite = CLT_NONFINITE_SKIP},
     true,
     .broken = INFINITY,
     .size = 1031,
     .large = 0x1p80f,
     .classes = true},
    {"skip-nonfinite-f16",
     {.lr = 0.1f, .compress = {.method = CLT_COMPRESS_F16}, .on_nonfinite = CLT_NONFINITE_SKIP},
     true,
     .broken = INFINITY,
     .size = 1031},
    {"skip-nonfinite-bf16",
     {.lr = 0.1f, .compress = {.method = CLT_COMPRESS_BF16}, .on_nonfinite = CLT_NONFINITE_SKIP},
     true,
     .broken = NAN,
     .size = 1031},
    {"skip-nonfinite-int8",
     {.lr = 0.05f, .compress = {.method = CLT_COMPRESS_INT8}, .on_nonfinite = CLT_NONFINITE_SKIP},
     true,
     .broken = NAN,
     .size = 1031},
    {"skip-nonfinite-onebit",
     {.lr = 0.1f, .compress = {.method = CLT_COMPRESS_ONEBIT}, .on_nonfinite = CLT_NONFINITE_SKIP},
     true,
     .broken = NAN,
     .size = 1031},
    {"skip-nonfinite-topk",
     {.lr = 0.1f, .compress = {.method = CLT_COMPRESS_TOPK, .ratio = 0.1f}, .on_nonfinite = CLT_NONFINITE_SKIP},
     true,
     .broken = NAN,
     .size = 4 * 256},
    {"skip-nonfinite-powersgd",
     {.lr = 0.1f, .compress = {.method = CLT_COMPRESS_POWERSGD, .rank = 2}, .on_nonfinite = CLT_NONFINITE_SKIP},
     true,
     .broken = NAN,
     .size = 33 * 32,
     .columns = 32},
    {"stop-nonfinite-locate",
     {.lr = 0.1f, .on_nonfinite = CLT_NONFINITE_STOP, .locate_nonfinite = true},
     true,
     .broken = INFINITY,
     .size = 1031},
    {"stop-nonfinite", {.lr = 0.1f, .on_nonfinite = CLT_NONFINITE_STOP}, false, .broken = INFINITY},
    {"clip-value-nonfinite", {.lr = 0.1f, .clip_value = 0.7f}, true, .broken = NAN},
    {"clip-norm-nonfinite", {.lr = 0.1f, .clip_norm = 1.5f}, true, .broken = INFINITY},
    {"dropout", {.lr = 0.1f, .accumulate = 2, .seed = 0x123456789abc}, false, .dropout = 0.5f},
    {"compress-f16", {.lr = 0.1f, .compress = {.method = CLT_COMPRESS_F16}}, false, .samples = 4, .parts = 4096},
    {"compress-bf16", {.lr = 0.1f, .compress = {.method = CLT_COMPRESS_BF16}}, true, .samples = 4, .parts = 4096},
    {"compress-int8", {.lr = 0.05f, .compress = {.method = CLT_COMPRESS_INT8}}, false, .samples = 4},
    {"compress-onebit", {.lr = 0.1f, .compress = {.method = CLT_COMPRESS_ONEBIT}}, false, .size = 1031, .samples = 4},
    /* Wires that end with what the last block says: there is nothing to fill up. */
    {"compress-int8-even", {.lr = 0.05f, .compress = {.method = CLT_COMPRESS_INT8}}, true, .size = 4 * 256},
    {"compress-onebit-even", {.lr = 0.1f, .compress = {.method = CLT_COMPRESS_ONEBIT}}, true, .size = 4 * 256},
    {"compress-topk",
     {.lr = 0.1f, .compress = {.method = CLT_COMPRESS_TOPK, .ratio = 0.1f, .f32_values = true}},
     true,
     .size = 130 * 256 /* whole blocks, so that the ratio is of these and no filling */},
    {"compress-topk-bf16",
     {.lr = 0.1f, .compress = {.method = CLT_COMPRESS_TOPK, .ratio = 0.1f}},
     true,
     .size = 4 * 256,
     .samples = 4,
     .parts = 4096},
    {"compress-powersgd-rest", /* of a matrix that two factors do not give whole */
     {.lr = 0.1f, .compress = {.method = CLT_COMPRESS_POWERSGD, .rank = 2}},
     true,
     .size = 33 * 32,
     .columns = 32,
     .samples = 4,
     .parts = 4096},
    {"compress-powersgd-long", /* rows and columns that are more than a work-group has lanes */
     {.lr = 0.1f, .compress = {.method = CLT_COMPRESS_POWERSGD, .rank = 2}},
     true,
     .size = 201 * 131,
     .columns = 131},
    {"compress-powersgd",
     {.lr = 0.1f, .compress = {.method = CLT_COMPRESS_POWERSGD, .rank = 2}, .on_nonfinite = CLT_NONFINITE_SKIP},
     true,
     .size = 33 * 32,
     .columns = 32},
    {"step-schedule",
     {.lr = 0.2f, .schedule = CLT_SCHEDULE_STEP, .decay_steps = 2, .decay_factor = 0.5f},
     true},
    {"warmup-cosine",
     {.lr = 0.2f, .schedule = CLT_SCHEDULE_COSINE, .warmup_steps = 2, .total_steps = 6, .min_lr = 0.01f},
     true},
};

/* The gradient's last value is broken in one step, and one in the middle in another; where there is a copy of the parameters, also in the last, behind
 * which that is read. */
enum { UPDATES = 6, BROKEN_LAST = 1, BROKEN_MIDDLE = 3, BROKEN_AGAIN = UPDATES - 1 };

/* ---- the same in double precision ---- */

static double or_else(float value, double standard) {
    return value > 0 ? (double)value : standard;
}

/* <cltrain/train.h>: warm-up from lr / warmup_steps, then the schedule. */
static double rate(const clt_train_options *o, int step) {
    double lr = (double)o->lr, least = (double)o->min_lr;
    if (step < o->warmup_steps) return lr * (step + 1) / (double)o->warmup_steps;
    if (o->schedule == CLT_SCHEDULE_STEP)
        return lr * pow(or_else(o->decay_factor, 0.1), (double)(step / o->decay_steps));
    if (o->schedule != CLT_SCHEDULE_COSINE) return lr;
    double part = (double)(step - o->warmup_steps) / (double)(o->total_steps - o->warmup_steps);
    return least + (lr - least) * 0.5 * (1 + cos(acos(-1) * part));
}

static void clip(host *h) {
    double norm = 0, most = (double)h->o->clip_value;
    for (int i = 0; i < h->n && most > 0; i++)
        h->g[i] = h->g[i] > most ? most : h->g[i] < -most ? -most : h->g[i]; /* NaN stays */
    for (int i = 0; i < h->n; i++) norm += h->g[i] * h->g[i];
    norm = sqrt(norm);
    double factor = !isfinite(norm) ? NAN : fmin(1, (double)h->o->clip_norm / norm);
    for (int i = 0; i < h->n && h->o->clip_norm > 0; i++) h->g[i] *= factor;
}

static double decay_of(const clt_train_options *o) {
    return (double)(o->n_rules ? o->rules[0].weight_decay : o->weight_decay);
}

static void sgd(host *h, int i, int made, double lr) {
    double momentum = (double)h->o->momentum, g = h->g[i] + decay_of(h->o) * h->p[i];
    if (momentum > 0) {
        h->m[i] = made ? momentum * h->m[i] + g : g;
        g = h->o->nesterov ? g + momentum * h->m[i] : h->m[i];
    }
    h->p[i] -= lr * g;
}

static void adam(host *h, int i, int made, double lr) {
    double b1 = or_else(h->o->beta1, (double)0.9f), b2 = or_else(h->o->beta2, (double)0.999f),
           decay = decay_of(h->o);
    double g = h->g[i], eps = or_else(h->o->eps, (double)1e-8f);
    if (h->o->optimizer == CLT_ADAMW) h->p[i] *= 1 - lr * decay;
    else g += decay * h->p[i];
    h->m[i] = b1 * h->m[i] + (1 - b1) * g;
    h->v[i] = b2 * h->v[i] + (1 - b2) * g * g;
    double m = h->m[i] / (1 - pow(b1, made + 1)), v = h->v[i] / (1 - pow(b2, made + 1));
    h->p[i] -= lr * m / (sqrt(v) + eps);
}

void update_on_host(host *h, int step) {
    double lr = rate(h->o, step) * (h->o->n_rules ? (double)h->o->rules[0].lr_factor : 1);
    clip(h);
    for (int i = 0; i < h->n; i++) {
        if (h->o->optimizer == CLT_SGD) sgd(h, i, h->made, lr);
        else adam(h, i, h->made, lr);
        if (h->mean) h->mean[i] += (1 - (double)h->o->average) * (h->p[i] - h->mean[i]);
    }
    h->made++;
}

/* ---- on the device ---- */

int samples_of(const recipe *of) {
    return of->samples ? of->samples : 1;
}

clt_shape shape_of_parameter(const recipe *of, int n) {
    if (of->columns) return CLT_SHAPE(n / of->columns, of->columns);
    return CLT_SHAPE(n);
}

clt_shape shape_of_batch(const recipe *of, int n, int samples) {
    clt_shape shape = shape_of_parameter(of, n);
    return shape.rank == 2 ? CLT_SHAPE(samples, shape.dims[0], shape.dims[1]) : CLT_SHAPE(samples, n);
}

static clt_dtype low_of(const host *h) {
    return h->o->precision == CLT_PRECISION_F16 ? CLT_F16 : CLT_BF16;
}

static clt_status make_trainer(bench *b, host *h, clt_comm *comm, clt_graph **graph, clt_trainer **trainer,
                               case_result *r) {
    clt_train_options o = *h->o;
    clt_status status = clt_graph_create(graph);
    if (status < 0) return status;
    o.comm = comm;
    clt_tensor *x = clt_input(*graph, "x", CLT_F32, shape_of_batch(h->of, h->n, samples_of(h->of)));
    clt_tensor *p =
        clt_parameter(*graph, "p", shape_of_parameter(h->of, h->n), (clt_init){.kind = CLT_INIT_ZEROS});
    if (h->of->dropout > 0) x = clt_dropout(x, h->of->dropout);
    clt_tensor *loss = clt_sum(clt_mul(x, p), CLT_ALL_AXES);
    h->rounded = clt_cast(clt_cast(p, low_of(h)), CLT_F32);
    note_step(b, loss, &o, r);
    return clt_trainer_create(trainer, b->device, loss, &o);
}

/* A sample's, in [-2, 2): multiples of 1/64, which half precision has, or of what is finer; or a matrix of rank 2, which two
 * factors give whole. */
static void draw_gradient(const host *h, random_stream *random, float *x) {
    double u[2] = {0, 0}, turn = 2 * acos(-1) / (h->of->columns ? h->of->columns : 1);
    int parts = h->of->parts ? h->of->parts : 64;
    for (int i = 0; i < h->n; i++) x[i] = (float)(floor(4 * parts * random_uniform(random)) / parts - 2);
    for (int i = 0; i < h->n && h->of->columns && !h->of->parts; i++) {
        int j = i % h->of->columns;
        for (int k = 0; k < 2 && j == 0; k++) u[k] = 2 * random_uniform(random) - 1;
        x[i] = (float)(u[0] * cos(turn * j) + u[1] * sin(turn * j));
    }
}

/* A NaN of ones alone: who rounds its bits up makes zero of it. Once with each sign. */
static float broken_value(const host *h, int step) {
    const uint32_t ones = 0x7fffffff;
    float value = h->of->broken;
    if (isnan(value)) memcpy(&value, &ones, sizeof value);
    return step == BROKEN_LAST ? value : -value;
}

/* What becomes of the gradient behind dropout. */
static double dropped(const host *h, double g, int i, int batch) {
    double p = (double)h->of->dropout;
    if (p == 0) return g;
    return reference_dropout_keeps(i, 0, (uint64_t)batch, h->o->seed, p) ? g / (1 - p) : 0;
}

static bool is_scaled(const host *h) {
    return h->o->precision == CLT_PRECISION_F16;
}

static void step_both(host *h, clt_trainer *trainer, random_stream *random, float *x, int step,
                      clt_status *status) {
    int micro = h->o->accumulate > 1 ? h->o->accumulate : 1, samples = samples_of(h->of);
    bool broken = h->of->broken != 0 && (step == BROKEN_LAST || step == BROKEN_MIDDLE || (step == BROKEN_AGAIN && h->of->options.precision != CLT_PRECISION_F32));
    bool stopped = h->o->on_nonfinite == CLT_NONFINITE_STOP && step >= BROKEN_LAST;
    for (int i = 0; i < h->n; i++) h->g[i] = 0;
    for (int k = 0; k < micro && *status == CLT_OK; k++) {
        for (int s = 0; s < samples; s++) draw_gradient(h, random, x + (size_t)s * (size_t)h->n);
        for (int i = 0; i < h->n && h->of->large > 0; i++) x[i] *= h->of->large;
        if (broken && k == 0) x[step == BROKEN_LAST ? h->n - 1 : h->n / 2] = broken_value(h, step);
        for (int i = 0; i < samples * h->n; i++) h->g[i % h->n] += dropped(h, (double)x[i], i, step * micro + k) / micro;
        clt_batch batch = {.samples = samples, .n_fields = 1, .fields = {{CLT_F32, shape_of_batch(h->of, h->n, samples), x}}};
        *status = clt_trainer_step(trainer, &batch);
        if (*status == CLT_E_NONFINITE && strstr(clt_error_detail(), "The first such value")) h->located = true;
        if (stopped && *status == CLT_E_NONFINITE) *status = CLT_OK; /* it may have been noticed already */
    }
    bool skipped = broken && h->o->on_nonfinite == CLT_NONFINITE_SKIP;
    if (!stopped && !skipped) compress_on_host(h), update_on_host(h, step);
    for (int i = 0; i < h->n && skipped; i++) h->residual[i] = 0;
}

/* Whether it was told at which update it stopped, if it should have. */
static void judge_stop(const host *h, clt_trainer *trainer, case_result *r) {
    if (h->o->on_nonfinite != CLT_NONFINITE_STOP) return;
    clt_status status = clt_trainer_wait(trainer);
    if (status != CLT_E_NONFINITE || !strstr(clt_error_detail(), "update 2:"))
        result_say(r, &r->value, FAILED, "training should have stopped at update 2: %s",
                   status < 0 ? clt_error_detail() : "it did not");
    if (h->o->locate_nonfinite && !h->located)
        result_say(r, &r->value, FAILED, "the step did not tell what made the first value that is not finite");
}

/* Halved at each update that was left out; for more than these few it does not grow. */
static void judge_scale(const host *h, clt_trainer *trainer, case_result *r) {
    float scale, wanted = h->of->broken != 0 ? 65536 / 8 : 65536;
    if (!is_scaled(h)) return;
    clt_status status = clt_trainer_loss_scale(trainer, &scale);
    if (status < 0) result_error(r, &r->value, status, "reading the scale of the loss");
    else if (scale != wanted) result_say(r, &r->value, FAILED, "the loss is scaled by %g, not by %g", (double)scale, (double)wanted);
}

/* The parameters rounded to 16 bits, as forward would read them. */
static clt_status read_rounded(const host *h, clt_trainer *trainer) {
    if (h->o->precision == CLT_PRECISION_F32) return CLT_OK;
    return clt_trainer_predict(trainer, h->rounded, &(clt_batch){.samples = 1}, h->copy, (size_t)h->n);
}

static void judge_rounded(const host *h, const float *values, case_result *r) {
    for (int i = 0; i < h->n && h->o->precision != CLT_PRECISION_F32; i++) {
        double want = float_round((double)values[i], low_of(h));
        if ((double)h->copy[i] == want) continue;
        result_say(r, &r->value, FAILED, "the copy in %s: element %d is %.9g, not %.9g", clt_dtype_name(low_of(h)), i, (double)h->copy[i], want);
        return;
    }
}

static clt_status train(const test_case *c, host *h, clt_trainer *trainer, float *values) {
    random_stream random = random_of(c->id);
    for (int i = 0; i < h->n; i++)
        values[i] = (float)(2 * random_uniform(&random) - 1), h->p[i] = h->mean[i] = (double)values[i];
    clt_status status = clt_trainer_set(trainer, "p", values, (size_t)h->n);
    if (status == CLT_OK) status = read_rounded(h, trainer); /* which makes it: later ones are the updates' */
    for (int step = 0; step < UPDATES && status == CLT_OK; step++)
        step_both(h, trainer, &random, values, step, &status);
    if (status == CLT_OK) status = read_rounded(h, trainer);
    if (status == CLT_OK && h->o->average > 0) status = clt_trainer_use_average(trainer, true);
    return status == CLT_OK ? clt_trainer_get(trainer, "p", values, (size_t)h->n) : status;
}

static void judge_update(case_result *r, host *h, const float *values) {
    array got = {.values = NULL}, want = {.values = NULL};
    clt_shape shape = {1, {h->n}};
    array_resize(&got, shape), array_resize(&want, shape);
    for (int i = 0; i < h->n; i++) got.values[i] = (double)values[i], want.values[i] = h->mean[i]; /* without an average it is p */
    bounds exact = {.nmse = 1e-10}, rough = {.tolerance = compress_slack(h), .floor = 1, .nmse = 1e-6};
    judge(r, &r->value, "the parameters", &got, &want, NULL, h->n, rough.tolerance > 0 ? &rough : &exact);
    array_free(&got), array_free(&want);
}

static void run_once(const test_case *c, bench *b, host *h, float *values, case_result *r) {
    clt_graph *graph = NULL;
    clt_trainer *trainer = NULL;
    clt_comm *comm = NULL;
    clt_status status = h->o->compress.method ? clt_comm_create_self(&comm) : CLT_OK;
    if (status == CLT_OK) status = make_trainer(b, h, comm, &graph, &trainer, r);
    if (status == CLT_OK) r->supported = PASSED;
    else result_error(r, &r->supported, status, "compiling");
    if (status == CLT_OK) {
        status = train(c, h, trainer, values);
        if (status < 0) result_error(r, &r->value, status, "training");
        else judge_stop(h, trainer, r), judge_scale(h, trainer, r), judge_rounded(h, values, r);
    }
    judge_redzones(b, r);
    clt_trainer_destroy(trainer);
    clt_graph_destroy(graph);
    clt_comm_destroy(comm);
}

static void run_update(const test_case *c, bench *b, case_result *r) {
    const recipe *of = c->context;
    size_t n = (size_t)c->number;
    enum { ARRAYS = 7 };
    double *memory = malloc(ARRAYS * n * sizeof *memory);
    float *first = calloc(n, sizeof *first), *copy = calloc(n, sizeof *copy), *values = calloc(n * (size_t)samples_of(of), sizeof *values);
    if (!memory || !first || !copy || !values) exit(3);
    clt_train_options plain = of->options;
    plain.precision = CLT_PRECISION_F32;
    int runs = of->options.precision == CLT_PRECISION_F32 ? 2 : 3; /* the last without what changes nothing: a scaled loss, and a copy */
    for (int run = 0; run < runs && r->reason[0] == 0; run++) {
        host h = {.of = of, .o = run < 2 ? &of->options : &plain, .n = c->number, .p = memory, .m = memory + n, .v = memory + 2 * n,
                  .g = memory + 3 * n, .residual = memory + 4 * n, .factor = memory + 5 * n, .mean = memory + 6 * n, .copy = copy};
        memset(memory, 0, ARRAYS * n * sizeof *memory);
        run_once(c, b, &h, values, r);
        if (r->reason[0]) break;
        if (run == 0) judge_update(r, &h, values), memcpy(first, values, n * sizeof *first);
        else if (memcmp(first, values, n * sizeof *first))
            result_say(r, run == 1 ? &r->repeat : &r->value, FAILED, run == 1 ? "the second run gave other bits" : "with precision f32 the parameters have other bits");
        else if (run == 1) r->repeat = PASSED;
    }
    free(memory), free(first), free(copy), free(values);
}

static void add_update(case_list *list, const recipe *of, int number, bool full) {
    char variant[64];
    snprintf(variant, sizeof variant, "%s/%d", of->name, number);
    test_case *c = case_add_run(list, "update", variant, run_update);
    c->context = of;
    c->number = number;
    c->full = full;
    c->large = number > 32768;
    c->classes = of->classes;
}

void cases_update(case_list *list) {
    static const int sizes[] = {1031, 1, 65539};
    for (size_t i = 0; i < sizeof recipes / sizeof recipes[0]; i++) {
        const recipe *of = &recipes[i];
        if (of->size) add_update(list, of, of->size, of->full);
        for (int k = 0; k < 3 && !of->size; k++) add_update(list, of, sizes[k], of->full || k > 0);
    }
}
