/* Optimizers: parameters after some steps of a trainer, against the same steps in double precision. The loss is sum(x p), so that the
 * gradient is x. And what a trainer counts: loss, accuracy, squared error. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cltrain-conform/cases.h"

typedef struct recipe {
    const char *name;
    clt_train_options options;
    bool full;
} recipe;

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
    {"clip-norm-adam", {.optimizer = CLT_ADAM, .lr = 0.05f, .clip_norm = 0.5f}, true},
    {"accumulate", {.lr = 0.1f, .accumulate = 3}, false},
    {"skip-nonfinite", {.lr = 0.1f, .momentum = 0.9f, .on_nonfinite = CLT_NONFINITE_SKIP}, false},
    {"skip-nonfinite-adam", {.optimizer = CLT_ADAM, .lr = 0.05f, .on_nonfinite = CLT_NONFINITE_SKIP}, true},
    {"step-schedule",
     {.lr = 0.2f, .schedule = CLT_SCHEDULE_STEP, .decay_steps = 2, .decay_factor = 0.5f},
     true},
    {"warmup-cosine",
     {.lr = 0.2f, .schedule = CLT_SCHEDULE_COSINE, .warmup_steps = 2, .total_steps = 6, .min_lr = 0.01f},
     true},
};

enum { UPDATES = 6, STEP_SKIPPED = 3 /* of those that skip: its gradient holds an infinity */ };

/* ---- the same in double precision ---- */

typedef struct host {
    const clt_train_options *o;
    int n, made; /* updates so far */
    double *p, *m, *v, *g;
} host;

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
    for (int i = 0; i < h->n && most > 0; i++) h->g[i] = fmin(fmax(h->g[i], -most), most);
    for (int i = 0; i < h->n; i++) norm += h->g[i] * h->g[i];
    norm = sqrt(norm);
    if (h->o->clip_norm > 0 && norm > (double)h->o->clip_norm)
        for (int i = 0; i < h->n; i++) h->g[i] *= (double)h->o->clip_norm / norm;
}

static void sgd(host *h, int i, int made, double lr) {
    double momentum = (double)h->o->momentum, g = h->g[i] + (double)h->o->weight_decay * h->p[i];
    if (momentum > 0) {
        h->m[i] = made ? momentum * h->m[i] + g : g;
        g = h->o->nesterov ? g + momentum * h->m[i] : h->m[i];
    }
    h->p[i] -= lr * g;
}

static void adam(host *h, int i, int made, double lr) {
    double b1 = or_else(h->o->beta1, (double)0.9f), b2 = or_else(h->o->beta2, (double)0.999f),
           decay = (double)h->o->weight_decay;
    double g = h->g[i], eps = or_else(h->o->eps, (double)1e-8f);
    if (h->o->optimizer == CLT_ADAMW) h->p[i] *= 1 - lr * decay;
    else g += decay * h->p[i];
    h->m[i] = b1 * h->m[i] + (1 - b1) * g;
    h->v[i] = b2 * h->v[i] + (1 - b2) * g * g;
    double m = h->m[i] / (1 - pow(b1, made + 1)), v = h->v[i] / (1 - pow(b2, made + 1));
    h->p[i] -= lr * m / (sqrt(v) + eps);
}

static void update(host *h, int step) {
    double lr = rate(h->o, step);
    clip(h);
    for (int i = 0; i < h->n; i++) {
        if (h->o->optimizer == CLT_SGD) sgd(h, i, h->made, lr);
        else adam(h, i, h->made, lr);
    }
    h->made++;
}

/* ---- on the device ---- */

static clt_status make_trainer(bench *b, int n, const clt_train_options *o, clt_graph **graph,
                               clt_trainer **trainer, case_result *r) {
    clt_status status = clt_graph_create(graph);
    if (status < 0) return status;
    clt_tensor *x = clt_input(*graph, "x", CLT_F32, CLT_SHAPE(1, n));
    clt_tensor *p = clt_parameter(*graph, "p", CLT_SHAPE(n), (clt_init){.kind = CLT_INIT_ZEROS});
    clt_tensor *loss = clt_sum(clt_mul(x, p), CLT_ALL_AXES);
    note_step(b, loss, o, r);
    return clt_trainer_create(trainer, b->device, loss, o);
}

static void step_both(host *h, clt_trainer *trainer, random_stream *random, float *x, int step,
                      clt_status *status) {
    int micro = h->o->accumulate > 1 ? h->o->accumulate : 1;
    bool skipped = h->o->on_nonfinite == CLT_NONFINITE_SKIP && step == STEP_SKIPPED;
    for (int i = 0; i < h->n; i++) h->g[i] = 0;
    for (int k = 0; k < micro && *status == CLT_OK; k++) {
        for (int i = 0; i < h->n; i++) {
            x[i] = (float)(4 * random_uniform(random) - 2);
            h->g[i] += (double)x[i] / micro;
        }
        if (skipped) x[h->n / 2] = INFINITY;
        clt_batch batch = {.samples = 1, .n_fields = 1, .fields = {{CLT_F32, CLT_SHAPE(1, h->n), x}}};
        *status = clt_trainer_step(trainer, &batch);
    }
    if (!skipped) update(h, step);
}

static clt_status train(const test_case *c, bench *b, host *h, clt_trainer *trainer, float *values) {
    random_stream random = random_of(c->id);
    for (int i = 0; i < h->n; i++)
        values[i] = (float)(2 * random_uniform(&random) - 1), h->p[i] = (double)values[i];
    clt_status status = clt_trainer_set(trainer, "p", values, (size_t)h->n);
    (void)b;
    for (int step = 0; step < UPDATES && status == CLT_OK; step++)
        step_both(h, trainer, &random, values, step, &status);
    return status == CLT_OK ? clt_trainer_get(trainer, "p", values, (size_t)h->n) : status;
}

static void judge_update(case_result *r, host *h, const float *values) {
    array got = {.values = NULL}, want = {.values = NULL};
    clt_shape shape = {1, {h->n}};
    array_resize(&got, shape), array_resize(&want, shape);
    for (int i = 0; i < h->n; i++) got.values[i] = (double)values[i], want.values[i] = h->p[i];
    judge(r, &r->value, "the parameters", &got, &want, NULL, h->n, &(bounds){.nmse = 1e-10});
    array_free(&got), array_free(&want);
}

static void run_update(const test_case *c, bench *b, case_result *r) {
    const recipe *of = c->context;
    int n = c->number;
    host h = {.o = &of->options, .n = n};
    double *memory = calloc(4 * (size_t)n, sizeof *memory);
    float *first = calloc((size_t)n, sizeof *first), *values = calloc((size_t)n, sizeof *values);
    if (!memory || !first || !values) exit(3);
    for (int run = 0; run < 2 && r->reason[0] == 0; run++) {
        clt_graph *graph = NULL;
        clt_trainer *trainer = NULL;
        memset(memory, 0, 4 * (size_t)n * sizeof *memory);
        h.made = 0;
        h.p = memory, h.m = memory + n, h.v = memory + 2 * n, h.g = memory + 3 * n;
        clt_status status = make_trainer(b, n, h.o, &graph, &trainer, r);
        if (status == CLT_OK) r->supported = PASSED;
        else result_error(r, &r->supported, status, "compiling");
        if (status == CLT_OK) status = train(c, b, &h, trainer, values);
        if (status < 0) result_error(r, &r->value, status, "training");
        else if (run == 0) judge_update(r, &h, values), memcpy(first, values, (size_t)n * sizeof *first);
        else if (memcmp(first, values, (size_t)n * sizeof *first))
            result_say(r, &r->repeat, FAILED, "the second run gave other bits");
        else r->repeat = PASSED;
        judge_fences(b, r);
        clt_trainer_destroy(trainer);
        clt_graph_destroy(graph);
    }
    free(memory), free(first), free(values);
}

/* ---- metrics ---- */

enum { ROWS = 37, CLASSES = 5 };

static void expect(case_result *r, const char *what, double got, double want) {
    if (r->value == NOT_ASKED) r->value = PASSED;
    if (!(fabs(got - want) <= 1e-5 * fmax(1, fabs(want))))
        result_say(r, &r->value, FAILED, "%s is %.9g, not %.9g", what, got, want);
}

/* What the losses, hits and squares of two evaluations should be; logits are x w, w a matrix of ones on its diagonal. */
static void run_metrics(const test_case *c, bench *b, case_result *r) {
    float x[ROWS * CLASSES], w[CLASSES * CLASSES] = {0};
    int32_t label[ROWS];
    double loss = 0, hits = 0;
    random_stream random = random_of(c->id);
    for (int i = 0; i < ROWS; i++) {
        double sum = 0, most = -10;
        int best = 0;
        label[i] = (int32_t)random_below(&random, CLASSES);
        for (int k = 0; k < CLASSES; k++) {
            double v = (double)(x[i * CLASSES + k] = (float)(4 * random_uniform(&random) - 2));
            sum += exp(v);
            if (v > most) most = v, best = k;
        }
        loss += (log(sum) - (double)x[i * CLASSES + label[i]]) / ROWS;
        hits += best == label[i];
    }
    for (int k = 0; k < CLASSES; k++) w[k * CLASSES + k] = 1;
    clt_graph *graph = NULL;
    clt_trainer *trainer = NULL;
    clt_metrics m = {0};
    clt_status status = clt_graph_create(&graph);
    clt_tensor *in = clt_input(graph, "x", CLT_F32, CLT_SHAPE(ROWS, CLASSES)),
               *truth = clt_input(graph, "y", CLT_I32, CLT_SHAPE(ROWS));
    clt_tensor *logits = clt_linear(in, "w", CLASSES, .no_bias = true);
    clt_train_options o = {.lr = 0.1f, .output = logits};
    clt_batch batch = {.samples = ROWS, .n_fields = 2,
                       .fields = {{CLT_F32, CLT_SHAPE(ROWS, CLASSES), x}, {CLT_I32, CLT_SHAPE(ROWS), label}}};
    clt_tensor *cost = clt_cross_entropy(logits, truth);
    note_step(b, cost, &o, r);
    if (status == CLT_OK) status = clt_trainer_create(&trainer, b->device, cost, &o);
    if (status == CLT_OK) r->supported = PASSED;
    else result_error(r, &r->supported, status, "compiling");
    if (status == CLT_OK) status = clt_trainer_set(trainer, "w.weight", w, CLASSES * CLASSES);
    for (int i = 0; i < 2 && status == CLT_OK; i++) status = clt_trainer_evaluate(trainer, &batch);
    if (status == CLT_OK) status = clt_trainer_eval_metrics(trainer, &m, true);
    if (status < 0) result_error(r, &r->value, status, "evaluating");
    else {
        expect(r, "the loss", m.loss, loss);
        expect(r, "the accuracy", m.accuracy, hits / ROWS);
        expect(r, "the count of samples", (double)m.samples, 2 * ROWS);
    }
    judge_fences(b, r);
    clt_trainer_destroy(trainer);
    clt_graph_destroy(graph);
}

void cases_update(case_list *list) {
    static const int sizes[] = {1031, 1, 65539};
    for (size_t i = 0; i < sizeof recipes / sizeof recipes[0]; i++)
        for (int k = 0; k < 3; k++) {
            char variant[64];
            snprintf(variant, sizeof variant, "%s/%d", recipes[i].name, sizes[k]);
            test_case *c = case_add_run(list, "update", variant, run_update);
            c->context = &recipes[i];
            c->number = sizes[k];
            c->full = recipes[i].full || k > 0;
            c->large = k == 2;
        }
    case_add_run(list, "metrics", "classes", run_metrics);
}
