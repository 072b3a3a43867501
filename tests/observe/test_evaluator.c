/* Metrics of predictions, beside what their definitions say for few samples. Whether they are scikit-learn's for many is compare_metrics.py's matter. */
#include "tests/data/files.h"

#include <math.h>

#include <cltrain/metrics.h>

#include "runtime/observe/scores.h"
#include "tests/comm/jobs.h"

static clt_evaluator *create(clt_evaluator_options options) {
    clt_evaluator *e = NULL;
    assert_ok(clt_evaluator_create(&e, &options));
    return e;
}

static clt_evaluation result_of(clt_evaluator *e) {
    clt_evaluation r;
    assert_ok(clt_evaluator_result(e, &r));
    return r;
}

#define assert_near(a, b) assert_true(fabs((a) - (b)) < 1e-12)

/* Three classes, of which the truth lacks the last. */
static void counts_are_those_of_the_definitions(void **state) {
    static const float p[][3] = {{0.7f, 0.2f, 0.1f}, {0.3f, 0.6f, 0.1f}, {0.1f, 0.2f, 0.7f}, {0.4f, 0.5f, 0.1f}, {0.5f, 0.5f, 0}};
    static const int32_t y[] = {0, 1, 1, 0, 0};
    clt_evaluator *e = create((clt_evaluator_options){.classes = 3});
    assert_ok(clt_evaluator_add(e, p[0], y, 2));
    assert_ok(clt_evaluator_add(e, p[2], y + 2, 3));
    clt_evaluation r = result_of(e);
    assert_int_equal(r.samples, 5);
    assert_near(r.accuracy, 3 / 5.0);
    assert_near(r.precision, (1 + 1 / 2.0 + 0) / 3);
    assert_near(r.recall, (2 / 3.0 + 1 / 2.0 + 0) / 3);
    assert_near(r.f1, (4 / 5.0 + 2 / 4.0 + 0) / 3);
    assert_near(r.precision_weighted, (3 * 1 + 2 / 2.0) / 5);
    assert_true(isnan(r.top5) && isnan(r.mae));
    assert_near(r.auc, (1 + 3.5 / 6) / 2); /* class 0: 0.7 0.5 0.4 beside 0.3 0.1; class 1: 0.6 0.2 beside 0.5 0.5 0.2 */
    assert_true(r.exact);
    static const int64_t wanted[3][3] = {{2, 1, 0}, {0, 1, 1}, {0, 0, 0}};
    for (int t = -1; t < 4; t++)
        for (int c = -1; c < 4; c++)
            assert_int_equal(clt_evaluator_confusion(e, t, c), t < 0 || c < 0 || t > 2 || c > 2 ? 0 : wanted[t][c]);
    clt_evaluator_reset(e);
    r = result_of(e);
    assert_true(r.samples == 0 && isnan(r.accuracy) && isnan(r.auc) && isnan(r.f1));
    clt_evaluator_destroy(e);
    (void)state;
}

/* As torcheval's documentation has it: of five bins 0.5, exactly 2/3. Here a bin is narrower than these are apart. */
static void ties_are_one_step(void **state) {
    static const float p[][2] = {{0.9f, 0.1f}, {0.5f, 0.5f}, {0.3f, 0.7f}, {0.2f, 0.8f}, {0.5f, 0.5f}};
    static const int32_t y[] = {0, 0, 1, 0, 1};
    for (int bins = 0; bins < 2; bins++) {
        clt_evaluator *e = create((clt_evaluator_options){.classes = 2, .most_scores = bins ? -1 : 0});
        assert_ok(clt_evaluator_add(e, p[0], y, 5));
        clt_evaluation r = result_of(e);
        assert_true(r.exact == !bins);
        assert_near(r.auc, 3.5 / 6);
        assert_near(r.average_precision, 0.5 * 1 / 2 + 0.5 * 2 / 4);
        clt_evaluator_destroy(e);
    }
    (void)state;
}

static void bins_keep_the_order(void **state) {
    int before = -1;
    for (double p = 1e-9; p < 0.5; p *= 1.07) {
        int bin = clt_score_bin(p), other = clt_score_bin(1 - p);
        assert_true(bin >= before && bin >= 0 && bin < CLT_SCORE_BINS / 2);
        assert_true(other >= CLT_SCORE_BINS / 2 && other < CLT_SCORE_BINS);
        assert_true(abs(CLT_SCORE_BINS - 1 - other - bin) <= 1);
        before = bin;
    }
    assert_true(clt_score_bin(0) == 0 && clt_score_bin(1) == CLT_SCORE_BINS - 1 && clt_score_bin(-1) == 0 && clt_score_bin(2) == CLT_SCORE_BINS - 1);
    assert_true(clt_score_bin(0.25) < clt_score_bin(0.252) && clt_score_bin(0.999) < clt_score_bin(0.99901));
    (void)state;
}

static void numbers_have_errors_and_r2(void **state) {
    static const float y[][2] = {{1, 5}, {2, 5}, {3, 5}, {6, 5}}, p[][2] = {{1, 5}, {3, 5}, {3, 5}, {5, 5}}, off[][2] = {{1, 5}, {3, 6}, {3, 5}, {5, 5}};
    clt_evaluator *e = create((clt_evaluator_options){.outputs = 2});
    assert_ok(clt_evaluator_add(e, p[0], y, 1));
    assert_true(isnan(result_of(e).r2)); /* of one sample */
    assert_ok(clt_evaluator_add(e, p[1], y[1], 3));
    clt_evaluation r = result_of(e);
    assert_near(r.mae, 2 / 8.0);
    assert_near(r.mse, 2 / 8.0);
    assert_near(r.r2, (1 - 2 / 14.0 + 1) / 2); /* the second does not vary, and is met */
    clt_evaluator_reset(e);
    assert_ok(clt_evaluator_add(e, off[0], y, 4));
    assert_near(result_of(e).r2, (1 - 2 / 14.0) / 2);
    assert_true(isnan(r.f1) && isnan(r.auc));
    clt_evaluator_destroy(e);
    (void)state;
}

static void logits_and_labels_that_are_none(void **state) {
    static const float logits[][7] = {{1000, 999, 0, 0, 0, 0, 0}, {6, 5, 4, 3, 2, 1, 0}, {6, 5, 4, 3, 2, 1, 0}, {0}};
    static const int32_t y[] = {0, 4, 5, -100};
    clt_evaluator *e = create((clt_evaluator_options){.classes = 7, .logits = true});
    assert_ok(clt_evaluator_add(e, logits[0], y, 4));
    clt_evaluation r = result_of(e);
    assert_int_equal(r.samples, 3);
    assert_near(r.top5, 2 / 3.0);
    double sum = 0;
    for (int i = 0; i < 7; i++) sum += exp(-i);
    double sure = 1 / (1 + exp(-1)), less = 1 / sum; /* both lie in bins of their own */
    assert_near(r.calibration_error, ((1 - sure) + 2 * less) / 3);
    clt_evaluator_destroy(e);
    (void)state;
}

static void refuses_bad_arguments(void **state) {
    static const float p[] = {0.5f, NAN};
    clt_evaluator *e = NULL;
    assert_status(clt_evaluator_create(NULL, NULL), CLT_E_INVALID);
    assert_status(clt_evaluator_create(&e, &(clt_evaluator_options){.classes = 1}), CLT_E_INVALID);
    assert_status(clt_evaluator_create(&e, &(clt_evaluator_options){.classes = -2}), CLT_E_INVALID);
    assert_status(clt_evaluator_create(&e, &(clt_evaluator_options){.outputs = -1}), CLT_E_INVALID);
    e = create((clt_evaluator_options){.classes = 2});
    assert_status(clt_evaluator_add(e, p, (int32_t[]){0}, 1), CLT_E_RANGE);
    assert_detail("prediction 1 of sample 0 is NaN");
    assert_int_equal(result_of(e).samples, 0);
    assert_status(clt_evaluator_add(e, NULL, NULL, 1), CLT_E_INVALID);
    assert_ok(clt_evaluator_add(e, NULL, NULL, 0));
    assert_status(clt_evaluator_result(e, NULL), CLT_E_INVALID);
    assert_status(clt_evaluator_gather(NULL, NULL), CLT_E_INVALID);
    assert_ok(clt_evaluator_gather(e, NULL));
    clt_evaluator_destroy(e);
    clt_evaluator_destroy(NULL);
    (void)state;
}

static void survives_failing_memory(void **state) {
    float p[300];
    int32_t y[100];
    for (int i = 0; i < 300; i++) p[i] = (float)(i * 7 % 11);
    for (int i = 0; i < 100; i++) y[i] = i % 3;
    clt_status status = CLT_E_NO_MEMORY;
    for (long at = 0; status != CLT_OK; at++) {
        clt_evaluator *e = NULL;
        clt_evaluation r;
        watch_begin(at);
        status = clt_evaluator_create(&e, &(clt_evaluator_options){.classes = 3, .logits = true, .most_scores = 200});
        for (int i = 0; status == CLT_OK && i < 4; i++) status = clt_evaluator_add(e, p + i * 75, y + i * 25, 25);
        if (status == CLT_OK) status = clt_evaluator_result(e, &r);
        clt_evaluator_destroy(e);
        watch_end();
        if (status != CLT_OK) assert_int_equal(status, CLT_E_NO_MEMORY);
        else assert_true(!r.exact && r.samples == 100);
    }
    (void)state;
}

/* ---- several ranks ---- */

enum { SAMPLES = 200, CLASSES = 4 };

static void fill(float *p, int32_t *y) {
    uint32_t state = 1;
    for (int i = 0; i < SAMPLES; i++) {
        y[i] = i * 13 % 5 % CLASSES;
        for (int c = 0; c < CLASSES; c++) p[i * CLASSES + c] = (float)((state = state * 1664525u + 1013904223u) >> 24) / 64 + (c == y[i]);
    }
}

/* `argument`: how many scores may be kept. Rank 1 has no sample where there are three. */
static void put_together(clt_comm *comm, void *argument) {
    float p[SAMPLES * CLASSES];
    int32_t y[SAMPLES];
    int rank = clt_comm_rank(comm), size = clt_comm_size(comm);
    int first = size == 3 ? (rank == 0 ? 0 : 70) : SAMPLES * rank / size, last = size == 3 ? (rank < 2 ? 70 : SAMPLES) : SAMPLES * (rank + 1) / size;
    clt_evaluator_options o = {.classes = CLASSES, .logits = true, .most_scores = *(const int64_t *)argument};
    clt_evaluator *own = NULL, *whole = NULL;
    clt_evaluation a, b;
    fill(p, y);
    CHECK(clt_evaluator_create(&own, &o) == CLT_OK && clt_evaluator_create(&whole, &o) == CLT_OK);
    CHECK(clt_evaluator_add(own, p + first * CLASSES, y + first, last - first) == CLT_OK);
    CHECK(clt_evaluator_add(whole, p, y, SAMPLES) == CLT_OK);
    CHECK(clt_evaluator_gather(own, comm) == CLT_OK);
    CHECK(clt_evaluator_result(own, &a) == CLT_OK && clt_evaluator_result(whole, &b) == CLT_OK);
    CHECK(a.samples == SAMPLES && a.exact == b.exact && a.exact == (o.most_scores > SAMPLES * CLASSES));
    CHECK(a.f1 == b.f1 && a.precision == b.precision && a.auc == b.auc && a.average_precision == b.average_precision);
    CHECK(fabs(a.calibration_error - b.calibration_error) < 1e-12);
    for (int i = 0; i < CLASSES * CLASSES; i++)
        CHECK(clt_evaluator_confusion(own, i / CLASSES, i % CLASSES) == clt_evaluator_confusion(whole, i / CLASSES, i % CLASSES));
    clt_evaluator_destroy(own);
    clt_evaluator_destroy(whole);
}

static void ranks_put_theirs_together(void **state) {
    static const int64_t kept[] = {1 << 20, 300, -1};
    for (int ranks = 1; ranks <= 4; ranks++)
        for (int i = 0; i < 3; i++) {
            int64_t most = kept[i];
            support_run_local_job(&(support_job){.ranks = ranks, .body = put_together, .argument = &most, .killed = -1});
        }
    (void)state;
}

static void put_numbers_together(clt_comm *comm, void *argument) {
    float y[40], p[40];
    for (int i = 0; i < 40; i++) y[i] = 1e4f + (float)(i * 7 % 13), p[i] = y[i] + (float)(i % 3) - 1;
    int rank = clt_comm_rank(comm), size = clt_comm_size(comm), first = 40 * rank / size, last = 40 * (rank + 1) / size;
    clt_evaluator *own = NULL, *whole = NULL;
    clt_evaluation a, b;
    CHECK(clt_evaluator_create(&own, NULL) == CLT_OK && clt_evaluator_create(&whole, NULL) == CLT_OK);
    CHECK(clt_evaluator_add(own, p + first, y + first, last - first) == CLT_OK && clt_evaluator_add(whole, p, y, 40) == CLT_OK);
    CHECK(clt_evaluator_gather(own, comm) == CLT_OK);
    CHECK(clt_evaluator_result(own, &a) == CLT_OK && clt_evaluator_result(whole, &b) == CLT_OK);
    CHECK(a.samples == 40 && fabs(a.r2 - b.r2) < 1e-9 && fabs(a.mae - b.mae) < 1e-12);
    clt_evaluator_destroy(own);
    clt_evaluator_destroy(whole);
    (void)argument;
}

static void ranks_put_numbers_together(void **state) {
    for (int ranks = 2; ranks <= 4; ranks++) support_run_local_job(&(support_job){.ranks = ranks, .body = put_numbers_together, .killed = -1});
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_are_those_of_the_definitions),
        cmocka_unit_test(ties_are_one_step),
        cmocka_unit_test(bins_keep_the_order),
        cmocka_unit_test(numbers_have_errors_and_r2),
        cmocka_unit_test(logits_and_labels_that_are_none),
        cmocka_unit_test(refuses_bad_arguments),
        cmocka_unit_test(survives_failing_memory),
        cmocka_unit_test(ranks_put_theirs_together),
        cmocka_unit_test(ranks_put_numbers_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
