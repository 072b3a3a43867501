#include "scores.h"

#include <math.h>
#include <stdlib.h>

clt_status scores_begin(scores *s, bool classes, int64_t width, int64_t batch, const clt_preprocessing *preprocessing) {
    clt_evaluator_options options = {.classes = classes ? (int)width : 0, .outputs = width, .logits = true};
    *s = (scores){.width = width, .mean = clt_preprocessing_target_mean(preprocessing), .deviation = clt_preprocessing_target_deviation(preprocessing)};
    s->output = calloc((size_t)batch, (size_t)width * sizeof *s->output);
    if (!s->output) return CLT_E_NO_MEMORY;
    return clt_evaluator_create(&s->evaluator, &options);
}

static bool is_worse(const worst_sample *a, const worst_sample *b) {
    return a->loss > b->loss || (!(a->loss < b->loss) && a->index < b->index);
}

void scores_keep_worst(scores *s, worst_sample sample) {
    int at = s->n_worst;
    if (at == SCORES_WORST && !is_worse(&sample, &s->worst[at - 1])) return;
    if (at == SCORES_WORST) at--;
    else s->n_worst++;
    for (; at > 0 && is_worse(&sample, &s->worst[at - 1]); at--) s->worst[at] = s->worst[at - 1];
    s->worst[at] = sample;
}

int64_t scores_best(const float *logits, int64_t width) {
    int64_t best = 0;
    for (int64_t k = 1; k < width; k++)
        if (logits[k] > logits[best]) best = k;
    return best;
}

double scores_sum(const float *logits, int64_t width, int64_t best) {
    double sum = 1; /* of the largest itself */
    for (int64_t k = 0; k < width; k++)
        if (k != best) sum += exp((double)logits[k] - (double)logits[best]);
    return sum;
}

/* The cross-entropy of logits. */
static void compare_class(scores *s, int64_t index, const float *logits, int32_t label) {
    int64_t best = scores_best(logits, s->width);
    double loss = log(scores_sum(logits, s->width, best)) + (double)logits[best] - (double)logits[label];
    bool none = isnan(loss); /* nothing is predicted, which is as wrong as can be */
    scores_keep_worst(s, (worst_sample){.index = index, .loss = none ? INFINITY : loss, .truth = label, .predicted = none ? (double)NAN : (double)best});
}

static void compare_number(scores *s, int64_t index, float output, float truth) {
    double error = ((double)output - (double)truth) * s->deviation;
    scores_keep_worst(s, (worst_sample){.index = index, .loss = isnan(error) ? INFINITY : error * error, .truth = (double)truth * s->deviation + s->mean, .predicted = (double)output * s->deviation + s->mean});
}

static void compare(scores *s, const clt_batch *batch) {
    const clt_array *truth = &batch->fields[batch->n_fields - 1];
    for (int64_t i = 0; i < batch->samples; i++) {
        if (truth->dtype == CLT_I32) compare_class(s, batch->indices[i], s->output + i * s->width, ((const int32_t *)truth->data)[i]);
        else if (s->width == 1) compare_number(s, batch->indices[i], s->output[i], ((const float *)truth->data)[i]);
    }
}

clt_status scores_add(scores *s, clt_trainer *trainer, const clt_batch *batch) {
    clt_status status = clt_trainer_evaluate_output(trainer, batch, s->output, (size_t)(batch->samples * s->width));
    if (status < 0 || !batch->samples) return status;
    const clt_array *truth = &batch->fields[batch->n_fields - 1];
    status = clt_evaluator_add(s->evaluator, s->output, truth->data, batch->samples);
    if (status == CLT_E_RANGE) status = CLT_OK; /* NaN, which the loss tells */
    if (status == CLT_OK) compare(s, batch);
    return status;
}

clt_status scores_result(scores *s, clt_comm *comm, clt_evaluation *result) {
    clt_status status = clt_evaluator_gather(s->evaluator, comm);
    if (status >= 0) status = clt_evaluator_result(s->evaluator, result);
    result->mae *= s->deviation;
    result->mse *= s->deviation * s->deviation;
    return status;
}

int64_t *scores_confusion(const scores *s, bool classes) {
    int n = classes && s->width <= SCORES_MOST_CONFUSED ? (int)s->width : 0;
    int64_t *matrix = n ? malloc((size_t)(n * n) * sizeof *matrix) : NULL;
    for (int i = 0; matrix && i < n * n; i++) matrix[i] = clt_evaluator_confusion(s->evaluator, i / n, i % n);
    return matrix;
}

void scores_end(scores *s) {
    clt_evaluator_destroy(s->evaluator);
    free(s->output);
    *s = (scores){0};
}

const char *const scores_monitored[] = {"loss", "accuracy", "mse", "perplexity", "precision", "recall", "f1", "auc", "average_precision", "top5",
                                        "calibration_error", "mae", "r2", NULL};

bool scores_monitor_is_counted(int monitor) {
    return monitor < 4; /* to perplexity */
}

double scores_monitor(int monitor, const clt_metrics *t, const clt_evaluation *s, int *sign) {
    static const bool lower[] = {true, false, true, true, false, false, false, false, false, false, true, true, false};
    const double values[] = {t->loss, t->accuracy, t->mse, isnan(t->accuracy) ? (double)NAN : exp(t->loss), s->precision, s->recall, s->f1, s->auc, s->average_precision, s->top5,
                             s->calibration_error, s->mae, s->r2};
    bool there = scores_monitor_is_counted(monitor) ? t->samples > 0 : s->samples > 0;
    *sign = lower[monitor] ? 1 : -1;
    return there ? values[monitor] : (double)NAN;
}

const char *scores_key(char key[SCORES_KEY], const char *part, const char *name) {
    snprintf(key, SCORES_KEY, "%s_%s", part, name);
    return key;
}

void scores_put_json(json_t *object, const char *part, const clt_evaluation *r) {
    const struct {
        const char *name;
        double value;
    } all[] = {{"precision", r->precision}, {"recall", r->recall}, {"f1", r->f1}, {"precision_weighted", r->precision_weighted}, {"recall_weighted", r->recall_weighted},
               {"f1_weighted", r->f1_weighted}, {"auc", r->auc}, {"average_precision", r->average_precision}, {"top5", r->top5},
               {"calibration_error", r->calibration_error}, {"mae", r->mae}, {"r2", r->r2}};
    char key[SCORES_KEY];
    for (size_t i = 0; r->samples && i < sizeof all / sizeof *all; i++) {
        if (!isfinite(all[i].value)) continue;
        json_object_set_new(object, scores_key(key, part, all[i].name), json_real(all[i].value));
    }
}

void scores_put_confusion(json_t *object, const int64_t *confusion, int classes, const clt_preprocessing *preprocessing) {
    if (!confusion) return;
    json_t *rows = json_array(), *names = json_array();
    const char *name;
    for (int i = 0; i < classes; i++) {
        json_t *row = json_array();
        for (int k = 0; k < classes; k++) json_array_append_new(row, json_integer(confusion[i * classes + k]));
        json_array_append_new(rows, row);
    }
    for (int i = 0; i < classes && (name = clt_preprocessing_class(preprocessing, i)); i++) json_array_append_new(names, json_string(name));
    json_object_set(object, "test_confusion", rows);
    if (json_array_size(names)) json_object_set(object, "classes", names);
    json_decref(rows);
    json_decref(names);
}

void scores_print(FILE *file, const clt_evaluation *r) {
    if (!r->samples) return;
    if (isfinite(r->f1)) fprintf(file, ", F1 %.4f", r->f1);
    if (isfinite(r->auc)) fprintf(file, ", AUC %.4f", r->auc);
    if (isfinite(r->r2)) fprintf(file, fabs(r->r2) < 1e4 ? ", R2 %.4f" : ", R2 %.4g", r->r2);
}
