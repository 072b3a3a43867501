/* What a trainer counts: loss and accuracy. */
#include <math.h>
#include <stdlib.h>

#include "tools/cltrain-conform/cases.h"

enum { ROWS = 131 /* more than a work-group counts at once */ };

static void expect(case_result *r, const char *what, double got, double want) {
    if (r->value == NOT_ASKED) r->value = PASSED;
    if (!(fabs(got - want) <= 1e-5 * fmax(1, fabs(want))))
        result_say(r, &r->value, FAILED, "%s is %.9g, not %.9g", what, got, want);
}

/* NaN is no largest of its row: with the first of a row that was right, or whose label is 0, that row is wrong. */
static void judge_nan(clt_trainer *trainer, const clt_batch *batch, int classes, float *x, int32_t *label, double accuracy,
                      case_result *r) {
    clt_metrics m = {0};
    int was = 0;
    for (int k = 1; k < classes; k++) was = x[k] > x[was] ? k : was;
    if (was == label[0]) accuracy -= 1.0 / ROWS;
    x[0] = NAN;
    label[0] = 0;
    clt_status status = clt_trainer_evaluate(trainer, batch);
    if (status == CLT_OK) status = clt_trainer_eval_metrics(trainer, &m, true);
    if (status < 0) result_error(r, &r->value, status, "evaluating");
    else expect(r, "the accuracy with NaN in a row", m.accuracy, accuracy);
}

/* Of equals the first is the largest. */
static void judge_ties(clt_trainer *trainer, const clt_batch *batch, int classes, float *x, const int32_t *label, case_result *r) {
    clt_metrics m = {0};
    double hits = 0;
    for (int i = 0; i < ROWS; i++) {
        for (int k = 0; k < classes; k++) x[i * classes + k] = k > 0 ? 1 : 0;
        hits += label[i] == 1;
    }
    clt_status status = clt_trainer_evaluate(trainer, batch);
    if (status == CLT_OK) status = clt_trainer_eval_metrics(trainer, &m, true);
    if (status < 0) result_error(r, &r->value, status, "evaluating");
    else expect(r, "the accuracy of rows with equals", m.accuracy, hits / ROWS);
}

/* Labels are the largest of their rows in many, whatever the number of classes; but in each fourth the largest of all classes but the
 * last, which is larger. Returns the loss. */
static double draw_rows(random_stream *random, int classes, float *x, int32_t *label, double *hits) {
    double loss = 0;
    for (int i = 0; i < ROWS; i++, x += classes) {
        double sum = 0;
        int best = 0, before = 0;
        for (int k = 0; k < classes; k++) {
            x[k] = i % 4 == 0 && k == classes - 1 ? 2 : (float)(4 * random_uniform(random) - 2);
            sum += exp((double)x[k]);
            if (x[k] > x[best]) before = best, best = k;
        }
        label[i] = i % 4 == 0 ? before : random_below(random, 2) ? best : (int32_t)random_below(random, classes);
        loss += (log(sum) - (double)x[label[i]]) / ROWS;
        *hits += best == label[i];
    }
    return loss;
}

/* What the losses and hits of two evaluations should be; logits are x w, w a vector of ones. */
static void judge_metrics(const test_case *c, bench *b, float *x, float *w, case_result *r) {
    int32_t label[ROWS];
    int classes = c->number;
    random_stream random = random_of(c->id);
    double hits = 0, loss = draw_rows(&random, classes, x, label, &hits);
    for (int k = 0; k < classes; k++) w[k] = 1;
    clt_graph *graph = NULL;
    clt_trainer *trainer = NULL;
    clt_metrics m = {0};
    clt_status status = clt_graph_create(&graph);
    clt_tensor *in = clt_input(graph, "x", CLT_F32, CLT_SHAPE(ROWS, classes)),
               *truth = clt_input(graph, "y", CLT_I32, CLT_SHAPE(ROWS));
    clt_tensor *logits = clt_mul(in, clt_parameter(graph, "w", CLT_SHAPE(classes), (clt_init){.kind = CLT_INIT_ZEROS}));
    clt_train_options o = {.lr = 0.1f, .output = logits};
    clt_batch batch = {.samples = ROWS, .n_fields = 2,
                       .fields = {{CLT_F32, CLT_SHAPE(ROWS, classes), x}, {CLT_I32, CLT_SHAPE(ROWS), label}}};
    clt_tensor *cost = clt_cross_entropy(logits, truth);
    note_step(b, cost, &o, r);
    if (status == CLT_OK) status = clt_trainer_create(&trainer, b->device, cost, &o);
    if (status == CLT_OK) r->supported = PASSED;
    else result_error(r, &r->supported, status, "compiling");
    if (status == CLT_OK) status = clt_trainer_set(trainer, "w", w, (size_t)classes);
    for (int i = 0; i < 2 && status == CLT_OK; i++) status = clt_trainer_evaluate(trainer, &batch);
    if (status == CLT_OK) status = clt_trainer_eval_metrics(trainer, &m, true);
    if (status < 0) result_error(r, &r->value, status, "evaluating");
    else {
        expect(r, "the loss", m.loss, loss);
        expect(r, "the accuracy", m.accuracy, hits / ROWS);
        expect(r, "the count of samples", (double)m.samples, 2 * ROWS);
        judge_nan(trainer, &batch, classes, x, label, hits / ROWS, r);
        judge_ties(trainer, &batch, classes, x, label, r);
    }
    judge_redzones(b, r);
    clt_trainer_destroy(trainer);
    clt_graph_destroy(graph);
}

static void run_metrics(const test_case *c, bench *b, case_result *r) {
    size_t classes = (size_t)c->number;
    float *x = calloc(ROWS * classes, sizeof *x), *w = calloc(classes, sizeof *w);
    if (!x || !w) exit(3);
    judge_metrics(c, b, x, w, r);
    free(x), free(w);
}

/* A loss of 2^24 and then, 64 times, of 1: each by itself is less than the sum can tell. */
static void run_long_sum(const test_case *c, bench *b, case_result *r) {
    enum { ADDED = 64 };
    const float large = 16777216;
    clt_graph *graph = NULL;
    clt_trainer *trainer = NULL;
    clt_metrics m = {0};
    clt_status status = clt_graph_create(&graph);
    (void)c;
    clt_tensor *x = clt_input(graph, "x", CLT_F32, CLT_SHAPE(1, 1));
    clt_tensor *p = clt_parameter(graph, "p", CLT_SHAPE(1), (clt_init){.kind = CLT_INIT_ZEROS});
    clt_tensor *loss = clt_sum(clt_mul(x, p), CLT_ALL_AXES);
    note_step(b, loss, &(clt_train_options){.lr = 0.1f}, r);
    if (status == CLT_OK) status = clt_trainer_create(&trainer, b->device, loss, &(clt_train_options){.lr = 0.1f});
    if (status == CLT_OK) r->supported = PASSED;
    else result_error(r, &r->supported, status, "compiling");
    if (status == CLT_OK) status = clt_trainer_set(trainer, "p", &(float){1}, 1);
    for (int i = 0; i <= ADDED && status == CLT_OK; i++) {
        float value = i ? 1 : large;
        clt_batch batch = {.samples = 1, .n_fields = 1, .fields = {{CLT_F32, CLT_SHAPE(1, 1), &value}}};
        status = clt_trainer_evaluate(trainer, &batch);
    }
    if (status == CLT_OK) status = clt_trainer_eval_metrics(trainer, &m, true);
    if (status < 0) result_error(r, &r->value, status, "evaluating");
    else expect(r, "what was added to 2^24", m.loss * (ADDED + 1) - (double)large, ADDED);
    judge_redzones(b, r);
    clt_trainer_destroy(trainer);
    clt_graph_destroy(graph);
}

/* Samples of a step that is left out are in no mean. */
static void run_skipped(const test_case *c, bench *b, case_result *r) {
    enum { SAMPLES = 4, STEPS = 3 };
    clt_graph *graph = NULL;
    clt_trainer *trainer = NULL;
    clt_metrics m = {0};
    clt_train_options o = {.lr = 1e-30f, .on_nonfinite = CLT_NONFINITE_SKIP};
    clt_status status = clt_graph_create(&graph);
    (void)c;
    clt_tensor *x = clt_input(graph, "x", CLT_F32, CLT_SHAPE(SAMPLES, 1));
    clt_tensor *p = clt_parameter(graph, "p", CLT_SHAPE(1), (clt_init){.kind = CLT_INIT_ZEROS});
    clt_tensor *loss = clt_mean(clt_mul(x, p), CLT_ALL_AXES);
    note_step(b, loss, &o, r);
    if (status == CLT_OK) status = clt_trainer_create(&trainer, b->device, loss, &o);
    if (status == CLT_OK) r->supported = PASSED;
    else result_error(r, &r->supported, status, "compiling");
    if (status == CLT_OK) status = clt_trainer_set(trainer, "p", &(float){1}, 1);
    for (int i = 0; i < STEPS && status == CLT_OK; i++) {
        float values[SAMPLES] = {1, 2, 3, i == 1 ? NAN : (float)i};
        clt_batch batch = {.samples = SAMPLES, .n_fields = 1, .fields = {{CLT_F32, CLT_SHAPE(SAMPLES, 1), values}}};
        status = clt_trainer_step(trainer, &batch);
    }
    if (status == CLT_OK) status = clt_trainer_train_metrics(trainer, &m, true);
    if (status < 0) result_error(r, &r->value, status, "training");
    else {
        expect(r, "the loss of the steps that were made", m.loss, 1.75);
        expect(r, "the count of updates left out", (double)m.skipped, 1);
    }
    judge_redzones(b, r);
    clt_trainer_destroy(trainer);
    clt_graph_destroy(graph);
}

/* Logits x + b, b zero: each second row is right, and in the others the largest class is the one behind the label's. */
static void run_many(const test_case *c, bench *b, case_result *r) {
    int rows = (int)c->at.first, classes = (int)c->at.last;
    float *x = calloc((size_t)rows * (size_t)classes, sizeof *x);
    int32_t *label = calloc((size_t)rows, sizeof *label);
    for (int i = 0; i < rows && x && label; i++) {
        int64_t best = (i * 7919L + classes - 1) % classes;
        x[i * (int64_t)classes + best] = 1;
        label[i] = (int32_t)(i % 2 ? (best + classes - 1) % classes : best);
    }
    clt_graph *graph = NULL;
    clt_trainer *trainer = NULL;
    clt_metrics m = {0};
    clt_status status = x && label ? clt_graph_create(&graph) : CLT_E_NO_MEMORY;
    clt_tensor *in = clt_input(graph, "x", CLT_F32, CLT_SHAPE(rows, classes)),
               *truth = clt_input(graph, "y", CLT_I32, CLT_SHAPE(rows)),
               *bias = clt_parameter(graph, "b", CLT_SHAPE(classes), (clt_init){.kind = CLT_INIT_ZEROS});
    clt_tensor *logits = clt_add(in, bias), *cost = clt_cross_entropy(logits, truth);
    clt_train_options o = {.lr = 0.1f, .output = logits};
    clt_batch batch = {.samples = rows, .n_fields = 2,
                       .fields = {{CLT_F32, CLT_SHAPE(rows, classes), x}, {CLT_I32, CLT_SHAPE(rows), label}}};
    note_step(b, cost, &o, r);
    if (status == CLT_OK) status = clt_trainer_create(&trainer, b->device, cost, &o);
    if (status == CLT_OK) r->supported = PASSED;
    else result_error(r, &r->supported, status, "compiling");
    if (status == CLT_OK) status = clt_trainer_evaluate(trainer, &batch);
    if (status == CLT_OK) status = clt_trainer_eval_metrics(trainer, &m, true);
    if (status < 0) result_error(r, &r->value, status, "evaluating");
    else expect(r, "the accuracy", m.accuracy, 0.5);
    judge_redzones(b, r);
    clt_trainer_destroy(trainer);
    clt_graph_destroy(graph);
    free(x);
    free(label);
}

static void add_classes(case_list *list, const char *variant, int number) {
    test_case *c = case_add_run(list, "metrics", variant, run_metrics);
    c->number = number;
    c->classes = true;
}

static void add_many(case_list *list, const char *variant, int rows, int classes) {
    test_case *c = case_add_run(list, "metrics", variant, run_many);
    c->at.first = rows, c->at.last = classes;
    c->full = c->large = true;
}

void cases_metrics(case_list *list) {
    add_classes(list, "classes", 5);
    add_classes(list, "classes-12", 12);
    add_classes(list, "classes-259", 259);
    case_add_run(list, "metrics", "long-sum", run_long_sum);
    case_add_run(list, "metrics", "skipped", run_skipped);
    /* More rounds than a work-item may make (see cl/prelude.cl). */
    add_many(list, "many-rows", 45000, 100);
    add_many(list, "many", 2048, 2200);
    add_many(list, "many-classes", 8, 70000);
}
