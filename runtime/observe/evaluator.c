/*
 * What is counted of predictions. All of it can be added up, so that ranks put theirs together; scores are kept one by one while they are few,
 * and counted in bins then.
 */
#include <cltrain/metrics.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/base.h"
#include "runtime/observe/scores.h"

enum { TOP = 5, CALIBRATION_BINS = 15, DEFAULT_MOST_SCORES = 1 << 24, MOST_CLASSES = 1 << 20, MOST_CONFUSED = 1 << 13 };

/* Of predictions with a confidence: see clt_evaluation.calibration_error. */
typedef struct calibration {
    int64_t samples, correct;
    double confidence;
} calibration;

/* Of an output: how truth varies (Welford; Chan et al. 1979 to put two together), and errors. */
typedef struct moments {
    int64_t samples;
    double mean, deviations, squares, magnitudes;
} moments;

/* What of a class was said, and was so. */
typedef struct counts {
    int64_t truth, predicted, correct;
} class_counts;

struct clt_evaluator {
    clt_evaluator_options options;
    int curves;         /* classes whose scores matter: one of two says all */
    int64_t samples, top5;
    class_counts *classes;
    int64_t *confusion; /* [truth, predicted]; NULL: too many */
    calibration calibration[CALIBRATION_BINS];
    moments *outputs;
    float *scores;      /* [n, curves] */
    int32_t *labels;    /* of these */
    int64_t n, room;
    uint32_t *bins;     /* [curves, CLT_SCORE_BINS, negative and positive]; NULL: scores are kept */
    double *row;        /* probabilities of a sample */
    float *narrow;      /* the same as scores */
};

/* ---- making ---- */

static clt_status resolve(const clt_evaluator_options *given, clt_evaluator_options *o) {
    *o = given ? *given : (clt_evaluator_options){0};
    if (o->classes < 0 || o->classes == 1 || o->classes > MOST_CLASSES)
        return clt_fail(CLT_E_INVALID, "clt_evaluator_create: %d classes; expected 0, or 2 to %d", o->classes, MOST_CLASSES);
    if (!o->outputs) o->outputs = 1;
    if (o->outputs < 1 || o->outputs > INT32_MAX) return clt_fail(CLT_E_INVALID, "clt_evaluator_create: %lld outputs; expected 1 or more", (long long)o->outputs);
    if (!o->most_scores) o->most_scores = DEFAULT_MOST_SCORES;
    return CLT_OK;
}

static size_t bin_count(const clt_evaluator *e) {
    return (size_t)e->curves * CLT_SCORE_BINS * 2;
}

static clt_status make(void *block, size_t n, size_t bytes) {
    void *made = clt_calloc(CLT_MAX(n, 1), bytes);
    memcpy(block, &made, sizeof made);
    return made ? CLT_OK : clt_fail_memory(n * bytes);
}

static clt_status make_parts(clt_evaluator *e) {
    size_t k = (size_t)e->options.classes;
    if (!k) return make(&e->outputs, (size_t)e->options.outputs, sizeof *e->outputs);
    CLT_TRY(make(&e->classes, k, sizeof *e->classes));
    CLT_TRY(make(&e->row, k, sizeof *e->row));
    CLT_TRY(make(&e->narrow, k, sizeof *e->narrow));
    if (k <= MOST_CONFUSED) CLT_TRY(make(&e->confusion, k * k, sizeof *e->confusion));
    return e->options.most_scores < 0 ? make(&e->bins, bin_count(e), sizeof *e->bins) : CLT_OK;
}

clt_status clt_evaluator_create(clt_evaluator **evaluator, const clt_evaluator_options *options) {
    clt_evaluator_options o;
    if (!evaluator) return clt_fail(CLT_E_INVALID, "clt_evaluator_create: evaluator is NULL");
    CLT_TRY(resolve(options, &o));
    clt_evaluator *e = clt_calloc(1, sizeof *e);
    if (!e) return clt_fail_memory(sizeof *e);
    e->options = o;
    e->curves = o.classes == 2 ? 1 : o.classes;
    clt_status status = make_parts(e);
    if (status < 0) clt_evaluator_destroy(e);
    else *evaluator = e;
    return status;
}

void clt_evaluator_destroy(clt_evaluator *e) {
    if (!e) return;
    clt_free(e->classes);
    clt_free(e->confusion);
    clt_free(e->outputs);
    clt_free(e->scores);
    clt_free(e->labels);
    clt_free(e->bins);
    clt_free(e->row);
    clt_free(e->narrow);
    clt_free(e);
}

void clt_evaluator_reset(clt_evaluator *e) {
    if (!e) return;
    size_t k = (size_t)e->options.classes;
    e->samples = e->top5 = e->n = 0;
    memset(e->calibration, 0, sizeof e->calibration);
    if (e->classes) memset(e->classes, 0, k * sizeof *e->classes);
    if (e->confusion) memset(e->confusion, 0, k * k * sizeof *e->confusion);
    if (e->outputs) memset(e->outputs, 0, (size_t)e->options.outputs * sizeof *e->outputs);
    if (e->bins) memset(e->bins, 0, bin_count(e) * sizeof *e->bins);
}

/* ---- scores ---- */

static void count_score(clt_evaluator *e, const float *scores, int32_t label) {
    for (int c = 0; c < e->curves; c++) {
        bool positive = e->curves == 1 ? label == 1 : label == c;
        e->bins[((size_t)c * CLT_SCORE_BINS + (size_t)clt_score_bin((double)scores[c])) * 2 + positive]++;
    }
}

/* From now on they are counted. */
static clt_status begin_bins(clt_evaluator *e) {
    CLT_TRY(make(&e->bins, bin_count(e), sizeof *e->bins));
    for (int64_t i = 0; i < e->n; i++) count_score(e, e->scores + i * e->curves, e->labels[i]);
    clt_free(e->scores);
    clt_free(e->labels);
    e->scores = NULL;
    e->labels = NULL;
    e->n = e->room = 0;
    return CLT_OK;
}

/* For `more` samples, in memory or, beyond the limit, in bins. */
static clt_status make_room(clt_evaluator *e, int64_t more) {
    if (e->bins || !e->curves) return CLT_OK;
    if (more > e->options.most_scores / e->curves - e->n) return begin_bins(e);
    if (more <= e->room - e->n) return CLT_OK;
    int64_t room = CLT_MIN(CLT_MAX(2 * e->room, e->n + more), e->options.most_scores / e->curves);
    size_t bytes = (size_t)room * (size_t)e->curves * sizeof *e->scores;
    float *scores = clt_realloc(e->scores, bytes);
    if (!scores) return clt_fail_memory(bytes);
    e->scores = scores;
    int32_t *labels = clt_realloc(e->labels, (size_t)room * sizeof *labels);
    if (!labels) return clt_fail_memory((size_t)room * sizeof *labels);
    e->labels = labels;
    e->room = room;
    return CLT_OK;
}

static void keep_scores(clt_evaluator *e, const float *scores, int32_t label) {
    if (e->bins) {
        count_score(e, scores, label);
        return;
    }
    memcpy(e->scores + e->n * e->curves, scores, (size_t)e->curves * sizeof *scores);
    e->labels[e->n++] = label;
}

/* ---- a batch ---- */

static void find_probabilities(clt_evaluator *e, const float *predicted) {
    int k = e->options.classes;
    double most = (double)predicted[0], sum = 0;
    if (!e->options.logits) {
        for (int c = 0; c < k; c++) e->row[c] = (double)predicted[c];
        return;
    }
    for (int c = 1; c < k; c++) most = fmax(most, (double)predicted[c]);
    for (int c = 0; c < k; c++) sum += e->row[c] = exp((double)predicted[c] - most);
    for (int c = 0; c < k; c++) e->row[c] /= sum;
}

static void calibrate(clt_evaluator *e, double confidence, bool correct) {
    int bin = CLT_MIN(CLT_MAX((int)ceil(confidence * CALIBRATION_BINS) - 1, 0), CALIBRATION_BINS - 1);
    e->calibration[bin].samples++;
    e->calibration[bin].correct += correct;
    e->calibration[bin].confidence += confidence;
}

/* Of equal scores the first class wins, as in NumPy's argmax. */
static void count_sample(clt_evaluator *e, const float *predicted, int32_t label) {
    int k = e->options.classes, best = 0, above = 0;
    for (int c = 1; c < k; c++)
        if (predicted[c] > predicted[best]) best = c;
    for (int c = 0; c < k; c++) above += predicted[c] > predicted[label] || (c < label && !(predicted[c] < predicted[label]));
    find_probabilities(e, predicted);
    e->samples++;
    e->top5 += above < TOP;
    e->classes[label].truth++;
    e->classes[best].predicted++;
    e->classes[best].correct += best == label;
    if (e->confusion) e->confusion[(int64_t)label * k + best]++;
    calibrate(e, e->row[best], best == label);
    for (int c = 0; c < k; c++) e->narrow[c] = (float)e->row[c];
    keep_scores(e, e->curves == 1 ? e->narrow + 1 : e->narrow, label);
}

static void count_numbers(clt_evaluator *e, const float *predicted, const float *truth) {
    for (int64_t k = 0; k < e->options.outputs; k++) {
        moments *m = &e->outputs[k];
        double y = (double)truth[k], error = (double)predicted[k] - y, away = y - m->mean;
        m->mean += away / (double)++m->samples;
        m->deviations += away * (y - m->mean);
        m->squares += error * error;
        m->magnitudes += fabs(error);
    }
    e->samples++;
}

static clt_status check_predicted(const float *predicted, int64_t samples, int64_t width) {
    for (int64_t i = 0; i < samples * width; i++)
        if (isnan(predicted[i])) return clt_fail(CLT_E_RANGE, "clt_evaluator_add: prediction %lld of sample %lld is NaN", (long long)(i % width), (long long)(i / width));
    return CLT_OK;
}

clt_status clt_evaluator_add(clt_evaluator *e, const float *predicted, const void *truth, int64_t samples) {
    if (!e || samples < 0 || (samples && (!predicted || !truth))) return clt_fail(CLT_E_INVALID, "clt_evaluator_add: an argument is NULL, or samples below 0");
    int k = e->options.classes;
    int64_t width = k ? k : e->options.outputs;
    CLT_TRY(check_predicted(predicted, samples, width));
    CLT_TRY(make_room(e, samples));
    for (int64_t i = 0; i < samples; i++) {
        if (!k) count_numbers(e, predicted + i * width, (const float *)truth + i * width);
        else if (((const int32_t *)truth)[i] >= 0 && ((const int32_t *)truth)[i] < k) count_sample(e, predicted + i * width, ((const int32_t *)truth)[i]);
    }
    return CLT_OK;
}

/* ---- several ranks ---- */

/* All that is counted, in a fixed order. `bytes` NULL: only its length. */
typedef struct state_writer {
    char *bytes;
    size_t length;
} state_writer;

static void put(state_writer *w, const void *data, size_t bytes) {
    if (w->bytes && bytes) memcpy(w->bytes + w->length, data, bytes);
    w->length += bytes;
}

static void put_state(state_writer *w, const clt_evaluator *e) {
    size_t k = (size_t)e->options.classes;
    put(w, &e->samples, sizeof e->samples);
    put(w, &e->top5, sizeof e->top5);
    put(w, e->calibration, sizeof e->calibration);
    put(w, e->classes, k * sizeof *e->classes);
    if (e->confusion) put(w, e->confusion, k * k * sizeof *e->confusion);
    if (e->outputs) put(w, e->outputs, (size_t)e->options.outputs * sizeof *e->outputs);
    if (e->bins) put(w, e->bins, bin_count(e) * sizeof *e->bins);
    put(w, e->labels, (size_t)e->n * sizeof *e->labels);
    put(w, e->scores, (size_t)e->n * (size_t)e->curves * sizeof *e->scores);
}

static const char *add_whole(int64_t *to, size_t n, const char *from) {
    for (size_t i = 0; i < n; i++, from += sizeof(int64_t)) {
        int64_t value;
        memcpy(&value, from, sizeof value);
        to[i] += value;
    }
    return from;
}

static const char *add_calibration(clt_evaluator *e, const char *from) {
    for (int i = 0; i < CALIBRATION_BINS; i++, from += sizeof(calibration)) {
        calibration other;
        memcpy(&other, from, sizeof other);
        e->calibration[i].samples += other.samples;
        e->calibration[i].correct += other.correct;
        e->calibration[i].confidence += other.confidence;
    }
    return from;
}

static const char *add_moments(clt_evaluator *e, const char *from) {
    for (int64_t k = 0; k < e->options.outputs; k++, from += sizeof(moments)) {
        moments b, *a = &e->outputs[k];
        memcpy(&b, from, sizeof b);
        if (!b.samples) continue;
        double n = (double)(a->samples + b.samples), away = b.mean - a->mean;
        a->deviations += b.deviations + away * away * (double)a->samples * (double)b.samples / n;
        a->mean += away * (double)b.samples / n;
        a->squares += b.squares;
        a->magnitudes += b.magnitudes;
        a->samples += b.samples;
    }
    return from;
}

/* What put_state has written of another, whose n samples have their scores kept. There is room for these. */
static void add_state(clt_evaluator *e, const char *from, int64_t n) {
    size_t k = (size_t)e->options.classes;
    from = add_whole(&e->samples, 1, from);
    from = add_whole(&e->top5, 1, from);
    from = add_calibration(e, from);
    if (k) from = add_whole(&e->classes[0].truth, k * sizeof *e->classes / sizeof(int64_t), from);
    if (e->confusion) from = add_whole(e->confusion, k * k, from);
    if (e->outputs) from = add_moments(e, from);
    for (size_t i = 0; e->bins && i < bin_count(e); i++, from += sizeof *e->bins) {
        uint32_t more;
        memcpy(&more, from, sizeof more);
        e->bins[i] += more;
    }
    if (!n) return;
    memcpy(e->labels + e->n, from, (size_t)n * sizeof *e->labels);
    memcpy(e->scores + e->n * e->curves, from + (size_t)n * sizeof *e->labels, (size_t)n * (size_t)e->curves * sizeof *e->scores);
    e->n += n;
}

/* What ranks tell each other first. */
typedef struct told {
    int64_t bytes, n, binned;
} told;

static clt_status gather(clt_comm *comm, void *all, const size_t *counts, const void *own, int rank) {
    size_t before = 0;
    for (int r = 0; r < rank; r++) before += counts[r];
    memcpy((char *)all + before, own, counts[rank]);
    return clt_comm_all_gather(comm, all, counts, CLT_U8, NULL);
}

/* Each rank's own, in turn; what all have must fit, or becomes bins. */
static clt_status settle_bins(clt_evaluator *e, clt_comm *comm, told *all, size_t *counts) {
    int size = clt_comm_size(comm);
    told own = {.n = e->n, .binned = e->bins != NULL};
    for (int r = 0; r < size; r++) counts[r] = sizeof own;
    CLT_TRY(gather(comm, all, counts, &own, clt_comm_rank(comm)));
    int64_t n = 0;
    bool binned = false;
    for (int r = 0; r < size; r++) n += all[r].n, binned = binned || all[r].binned;
    if (e->curves && !e->bins && (binned || n > e->options.most_scores / e->curves)) CLT_TRY(begin_bins(e));
    return e->bins ? CLT_OK : make_room(e, n - e->n);
}

static clt_status gather_states(clt_evaluator *e, clt_comm *comm, told *all, size_t *counts) {
    int size = clt_comm_size(comm), rank = clt_comm_rank(comm);
    state_writer w = {0};
    put_state(&w, e);
    told own = {.bytes = (int64_t)w.length, .n = e->n, .binned = e->bins != NULL};
    for (int r = 0; r < size; r++) counts[r] = sizeof own;
    CLT_TRY(gather(comm, all, counts, &own, rank));
    size_t whole = 0, before = 0;
    for (int r = 0; r < size; r++) {
        counts[r] = (size_t)all[r].bytes;
        if (r < rank) before += counts[r];
        whole += counts[r];
    }
    char *states = clt_alloc(whole);
    if (!states) return clt_fail_memory(whole);
    w = (state_writer){.bytes = states + before};
    put_state(&w, e);
    clt_status status = clt_comm_all_gather(comm, states, counts, CLT_U8, NULL);
    if (status == CLT_OK) clt_evaluator_reset(e);
    before = 0;
    for (int r = 0; status == CLT_OK && r < size; r++) { /* in this order on all: the same sums */
        add_state(e, states + before, all[r].n);
        before += counts[r];
    }
    clt_free(states);
    return status;
}

clt_status clt_evaluator_gather(clt_evaluator *e, clt_comm *comm) {
    if (!e) return clt_fail(CLT_E_INVALID, "clt_evaluator_gather: evaluator is NULL");
    if (!comm || clt_comm_size(comm) == 1) return CLT_OK;
    size_t size = (size_t)clt_comm_size(comm);
    told *all = clt_calloc(size, sizeof *all);
    size_t *counts = clt_calloc(size, sizeof *counts);
    clt_status status = all && counts ? CLT_OK : clt_fail_memory(size * sizeof *all);
    if (status == CLT_OK) status = settle_bins(e, comm, all, counts);
    if (status == CLT_OK) status = gather_states(e, comm, all, counts);
    clt_free(all);
    clt_free(counts);
    return status;
}

/* ---- results ---- */

static double ratio(double a, double b) {
    return b > 0 ? a / b : 0;
}

static void average_classes(const clt_evaluator *e, clt_evaluation *r) {
    double present = 0, samples = (double)e->samples;
    r->precision = r->recall = r->f1 = r->precision_weighted = r->recall_weighted = r->f1_weighted = 0;
    for (int c = 0; c < e->options.classes; c++) {
        double truth = (double)e->classes[c].truth, predicted = (double)e->classes[c].predicted, correct = (double)e->classes[c].correct;
        if (truth + predicted == 0) continue;
        double p = ratio(correct, predicted), s = ratio(correct, truth), f = ratio(2 * correct, truth + predicted);
        present++;
        r->precision += p, r->recall += s, r->f1 += f;
        r->precision_weighted += p * truth / samples, r->recall_weighted += s * truth / samples, r->f1_weighted += f * truth / samples;
    }
    r->precision /= present, r->recall /= present, r->f1 /= present;
}

/* Of one class, all scores or bins. */
static size_t take_curve(const clt_evaluator *e, int c, clt_score *into) {
    int class_index = e->curves == 1 ? 1 : c;
    if (!e->bins) {
        for (int64_t i = 0; i < e->n; i++) {
            bool positive = e->labels[i] == class_index;
            into[i] = (clt_score){e->scores[i * e->curves + c], positive, !positive};
        }
        return (size_t)e->n;
    }
    const uint32_t *bins = e->bins + (size_t)c * CLT_SCORE_BINS * 2;
    for (int b = 0; b < CLT_SCORE_BINS; b++) into[b] = (clt_score){(float)b, bins[2 * b + 1], bins[2 * b]};
    return CLT_SCORE_BINS;
}

static clt_status find_areas(const clt_evaluator *e, clt_evaluation *r) {
    size_t most = e->bins ? CLT_SCORE_BINS : (size_t)e->n;
    clt_score *scores = clt_alloc((most + 1) * sizeof *scores);
    if (!scores) return clt_fail_memory(most * sizeof *scores);
    double roc = 0, precision = 0, n = 0;
    for (int c = 0; c < e->curves; c++) {
        clt_areas areas = clt_score_areas(scores, take_curve(e, c, scores));
        if (isnan(areas.roc)) continue; /* a class that all samples have, or none */
        roc += areas.roc, precision += areas.precision, n++;
    }
    clt_free(scores);
    if (n > 0) r->auc = roc / n, r->average_precision = precision / n;
    r->exact = !e->bins;
    return CLT_OK;
}

static double calibration_error(const clt_evaluator *e) {
    double error = 0;
    for (int i = 0; i < CALIBRATION_BINS; i++) error += fabs(e->calibration[i].confidence - (double)e->calibration[i].correct);
    return error / (double)e->samples;
}

static void average_outputs(const clt_evaluator *e, clt_evaluation *r) {
    double outputs = (double)e->options.outputs, all = outputs * (double)e->samples;
    r->mae = r->mse = r->r2 = 0;
    for (int64_t k = 0; k < e->options.outputs; k++) {
        const moments *m = &e->outputs[k];
        r->mae += m->magnitudes / all;
        r->mse += m->squares / all;
        r->r2 += (m->deviations > 0 ? 1 - m->squares / m->deviations : m->squares > 0 ? 0 : 1) / outputs;
    }
    if (e->samples < 2) r->r2 = (double)NAN;
}

clt_status clt_evaluator_result(clt_evaluator *e, clt_evaluation *result) {
    const double none = (double)NAN;
    if (!e || !result) return clt_fail(CLT_E_INVALID, "clt_evaluator_result: an argument is NULL");
    clt_evaluation r = {.samples = e->samples, .accuracy = none, .top5 = none, .precision = none, .recall = none, .f1 = none, .precision_weighted = none,
                        .recall_weighted = none, .f1_weighted = none, .auc = none, .average_precision = none, .calibration_error = none, .mae = none, .mse = none, .r2 = none};
    if (e->samples && e->options.classes) {
        double samples = (double)e->samples;
        r.accuracy = 0;
        for (int c = 0; c < e->options.classes; c++) r.accuracy += (double)e->classes[c].correct / samples;
        if (e->options.classes > TOP) r.top5 = (double)e->top5 / samples;
        average_classes(e, &r);
        r.calibration_error = calibration_error(e);
        CLT_TRY(find_areas(e, &r));
    } else if (e->samples) average_outputs(e, &r);
    *result = r;
    return CLT_OK;
}

int64_t clt_evaluator_confusion(const clt_evaluator *e, int truth, int predicted) {
    if (!e || !e->confusion || truth < 0 || predicted < 0 || truth >= e->options.classes || predicted >= e->options.classes) return 0;
    return e->confusion[(int64_t)truth * e->options.classes + predicted];
}
