/*
 * Whole runs: the losses of the same training, which other devices and rows must give too; a run that is stopped and resumed; and
 * one that takes up what another device left.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cltrain-conform/cases.h"

enum { STEPS = 12, STOP = 6, BATCH = 24 };

typedef struct model {
    const char *name;
    clt_tensor *(*build)(clt_tensor *image);
    clt_train_options options;
} model;

static clt_tensor *build_mlp(clt_tensor *image) {
    clt_tensor *h = clt_relu(clt_linear(clt_flatten(image), "fc1", 19));
    return clt_linear(clt_layer_norm(h, "norm", 1), "fc2", 10);
}

static clt_tensor *build_convnet(clt_tensor *image) {
    clt_tensor *h = clt_relu(clt_batch_norm(clt_conv2d(image, "conv1", 5, .kernel = 3, .padding = 1), "bn1"));
    h = clt_max_pool2d(h, .kernel = 2);
    h = clt_relu(clt_conv2d(h, "conv2", 7, .kernel = 3, .padding = 1));
    return clt_linear(clt_dropout(clt_flatten(h), 0.1f), "fc", 10);
}

static const model models[] = {
    {"mlp", build_mlp, {.optimizer = CLT_SGD, .lr = 0.1f, .momentum = 0.9f, .seed = 7}},
    {"convnet", build_convnet, {.optimizer = CLT_ADAMW, .lr = 3e-3f, .clip_norm = 5, .seed = 7}},
};

/* ---- a run ---- */

typedef struct run {
    clt_graph *graph;
    clt_trainer *trainer;
    clt_dataset *digits;
    clt_loader *loader;
} run;

static void close_run(run *t) {
    clt_trainer_destroy(t->trainer);
    clt_graph_destroy(t->graph);
    clt_loader_destroy(t->loader);
    clt_dataset_destroy(t->digits);
    *t = (run){.graph = NULL};
}

static clt_status open_run(run *t, const model *m, bench *b) {
    *t = (run){.graph = NULL};
    clt_status status = clt_graph_create(&t->graph);
    if (status < 0) return status;
    clt_tensor *image = clt_input(t->graph, "image", CLT_F32, CLT_SHAPE(BATCH, 1, 8, 8));
    clt_tensor *label = clt_input(t->graph, "label", CLT_I32, CLT_SHAPE(BATCH));
    clt_tensor *logits = m->build(image);
    clt_train_options options = m->options;
    options.output = logits;
    status = clt_trainer_create(&t->trainer, b->device, clt_cross_entropy(logits, label), &options);
    if (status == CLT_OK) status = clt_dataset_digits(&t->digits);
    clt_loader_options loading = {.batch = BATCH, .shuffle = true, .seed = 3};
    return status == CLT_OK ? clt_loader_create(&t->loader, t->digits, &loading) : status;
}

static clt_status train(run *t, double *losses, int n) {
    clt_batch batch;
    clt_metrics m = {0};
    for (int i = 0; i < n; i++) {
        clt_status status = clt_loader_next(t->loader, &batch);
        if (status == CLT_OK) status = clt_trainer_step(t->trainer, &batch);
        if (status == CLT_OK) status = clt_trainer_train_metrics(t->trainer, &m, true);
        if (status < 0) return status;
        losses[i] = m.loss;
    }
    return CLT_OK;
}

static void file_of(char path[4096], const bench *b, const char *who, const model *m, const char *suffix) {
    snprintf(path, 4096, "%s/%s-%s.%s", b->folder, who, m->name, suffix);
}

/* ---- the same losses everywhere ---- */

/* For others to be held against: nothing is held against losses of which one is not finite. */
static void keep_series(case_result *r, const double *losses, int n) {
    for (int i = 0; i < n; i++)
        if (!isfinite(losses[i])) return;
    r->series = json_array();
    for (int i = 0; i < n; i++) json_array_append_new(r->series, json_real(losses[i]));
}

static void run_train(const test_case *c, bench *b, case_result *r) {
    double losses[2][STEPS] = {{0}};
    for (int k = 0; k < 2 && !r->reason[0]; k++) {
        run t;
        clt_status status = open_run(&t, c->context, b);
        if (status == CLT_OK) r->supported = PASSED;
        else result_error(r, &r->supported, status, "compiling");
        if (status == CLT_OK && (status = train(&t, losses[k], STEPS)) < 0)
            result_error(r, &r->value, status, "training");
        judge_redzones(b, r);
        close_run(&t);
    }
    if (r->reason[0]) return;
    r->value = r->repeat = PASSED;
    for (int i = 0; i < STEPS; i++)
        if (!isfinite(losses[0][i]))
            result_say(r, &r->value, FAILED, "the loss of step %d is %g", i + 1, losses[0][i]);
    if (!(losses[0][STEPS - 1] < losses[0][0]))
        result_say(r, &r->value, FAILED, "the loss did not fall: %.6g, then %.6g", losses[0][0],
                   losses[0][STEPS - 1]);
    if (memcmp(losses[0], losses[1], sizeof losses[0])) /* NOLINT: the bits are meant */
        result_say(r, &r->repeat, FAILED, "the second run gave other losses");
    keep_series(r, losses[0], STEPS);
}

/* ---- stopped and resumed ---- */

static clt_status leave(run *t, const bench *b, const model *m, const double *losses) {
    char path[4096];
    file_of(path, b, b->who, m, "losses");
    FILE *file = fopen(path, "w");
    if (!file) return CLT_E_IO;
    for (int i = STOP; i < STEPS; i++) fprintf(file, "%.17g\n", losses[i]);
    fclose(file);
    (void)t;
    return CLT_OK;
}

static void run_resume(const test_case *c, bench *b, case_result *r) {
    const model *m = c->context;
    run t;
    char path[4096];
    double whole[STEPS] = {0}, resumed[STEPS] = {0};
    file_of(path, b, b->who, m, "safetensors");
    clt_status status = open_run(&t, m, b);
    if (status == CLT_OK) r->supported = PASSED;
    else result_error(r, &r->supported, status, "compiling");
    if (status == CLT_OK) status = train(&t, whole, STOP);
    if (status == CLT_OK) status = clt_checkpoint_save(t.trainer, t.loader, path);
    if (status == CLT_OK) status = train(&t, whole + STOP, STEPS - STOP);
    if (status == CLT_OK) status = leave(&t, b, m, whole);
    close_run(&t);
    if (status == CLT_OK) status = open_run(&t, m, b);
    if (status == CLT_OK) status = clt_checkpoint_load(t.trainer, t.loader, path);
    if (status == CLT_OK) status = train(&t, resumed, STEPS - STOP);
    if (status < 0) result_error(r, &r->value, status, "training, saving and resuming");
    judge_redzones(b, r);
    close_run(&t);
    if (status < 0) return;
    r->value = PASSED;
    for (int i = STOP; i < STEPS; i++)
        if (whole[i] != resumed[i - STOP])
            result_say(r, &r->value, FAILED, "the loss of step %d is %.9g after resuming, %.9g without",
                       i + 1, resumed[i - STOP], whole[i]);
}

/* ---- taken up from another device ---- */

static bool read_losses(const bench *b, const char *who, const model *m, double *losses) {
    char path[4096];
    file_of(path, b, who, m, "losses");
    FILE *file = fopen(path, "r");
    int n = 0;
    while (file && n < STEPS - STOP && fscanf(file, "%lf", &losses[n]) == 1) n++;
    if (file) fclose(file);
    return n == STEPS - STOP;
}

static void take_up(const model *m, bench *b, const char *who, const double *wanted, case_result *r) {
    run t;
    char path[4096];
    double got[STEPS] = {0};
    file_of(path, b, who, m, "safetensors");
    clt_status status = open_run(&t, m, b);
    if (status == CLT_OK) status = clt_checkpoint_load(t.trainer, t.loader, path);
    if (status == CLT_OK) status = train(&t, got, STEPS - STOP);
    if (status < 0) result_error(r, &r->value, status, "resuming");
    judge_redzones(b, r);
    close_run(&t);
    if (status < 0) return;
    r->supported = PASSED;
    if (r->value == NOT_ASKED) r->value = PASSED;
    for (int i = 0; i < STEPS - STOP; i++)
        if (!(fabs(got[i] - wanted[i]) <= 1e-3 * fmax(0.1, fabs(wanted[i]))))
            result_say(r, &r->value, FAILED, "from %s: the loss of step %d is %.9g, %.9g there", who,
                       STOP + i + 1, got[i], wanted[i]);
}

static void run_handover(const test_case *c, bench *b, case_result *r) {
    if (!b->others || !b->others[0]) {
        result_say(r, &r->supported, SKIPPED, "there is no other device in this run");
        return;
    }
    const char *missing = NULL;
    for (int i = 0; b->others[i]; i++) {
        double wanted[STEPS] = {0};
        if (read_losses(b, b->others[i], c->context, wanted)) take_up(c->context, b, b->others[i], wanted, r);
        else missing = b->others[i];
    }
    if (missing) result_say(r, &r->supported, SKIPPED, "%s left no checkpoint", missing);
}

void cases_train(case_list *list) {
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        test_case *c = case_add_run(list, "train", models[i].name, run_train);
        c->context = &models[i];
        c->compared = c->classes = true;
        case_add_run(list, "resume", models[i].name, run_resume)->context = &models[i];
        c = case_add_run(list, "handover", models[i].name, run_handover);
        c->context = &models[i];
        c->handed = true;
    }
}
