#define _POSIX_C_SOURCE 200809L /* setenv, unlink */
/*
 * A step of a model, predicted: its time as the sum of its problems' times, its memory as it turns out to be, the largest
 * batch; and the file of times, whole, cut off, or of something else.
 */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cltrain/cltrain.h>
#include <cltrain/experimental/predict.h>

#include "runtime/base/base.h"
#include "runtime/device/cl.h"

enum { SIDE = 9, CLASSES = 5, MOST_SAMPLES = 64 };

static clt_device *device;
static float values[MOST_SAMPLES * SIDE * SIDE * 2];
static int32_t labels[MOST_SAMPLES];

/* ---- a model of odd sizes ---- */

typedef struct model {
    clt_graph *graph;
    clt_tensor *loss;
    clt_train_options options;
} model;

static model build(int64_t samples) {
    model m = {.options = {.optimizer = CLT_ADAM}};
    assert_ok(clt_graph_create(&m.graph));
    clt_tensor *x = clt_input(m.graph, "x", CLT_F32, CLT_SHAPE(samples, 2, SIDE, SIDE));
    clt_tensor *y = clt_input(m.graph, "y", CLT_I32, CLT_SHAPE(samples));
    clt_tensor *h = clt_relu(clt_batch_norm(clt_conv2d(x, "conv", 7, .kernel = 3, .padding = 1), "bn"));
    h = clt_max_pool2d(h, .kernel = 2);
    m.options.output = clt_linear(clt_flatten(h), "fc", CLASSES);
    m.loss = clt_cross_entropy(m.options.output, y);
    return m;
}

static clt_batch batch_of(int64_t samples) {
    clt_batch b = {.samples = samples, .n_fields = 2};
    b.fields[0] = (clt_array){CLT_F32, CLT_SHAPE(samples, 2, SIDE, SIDE), values};
    b.fields[1] = (clt_array){CLT_I32, CLT_SHAPE(samples), labels};
    return b;
}

static void measure(clt_times *times, int64_t samples, int steps) {
    model m = build(samples);
    clt_batch batch = batch_of(samples);
    clt_trainer *trainer;
    assert_ok(clt_trainer_create(&trainer, device, m.loss, &m.options));
    assert_ok(clt_times_measure(times, trainer, &batch, steps));
    clt_trainer_destroy(trainer);
    clt_graph_destroy(m.graph);
}

typedef struct sum {
    double seconds, last;
    int problems, feeds, of[CLT_TIMES_SOURCES_]; /* problems of each source */
    double shares[CLT_TIMES_SOURCES_];           /* their seconds */
    bool sorted;
} sum;

static bool add(const clt_predicted_problem *p, void *user) {
    sum *s = user;
    double seconds = p->seconds * p->count;
    s->sorted &= s->problems == 0 || seconds <= s->last;
    s->last = seconds;
    s->seconds += seconds;
    s->problems++;
    s->of[p->source]++;
    s->shares[p->source] += seconds;
    s->feeds += strncmp(p->problem, "feed ", 5) == 0;
    assert_true(p->count > 0 && p->seconds >= 0 && p->roofline_seconds >= 0);
    return true;
}

static clt_prediction predict_of(clt_times *times, int64_t samples, int of[CLT_TIMES_SOURCES_]) {
    model m = build(24);
    clt_prediction p;
    sum s = {.sorted = true};
    assert_ok(clt_predict_step(times, m.loss, &m.options, samples, add, &s, &p));
    assert_true(fabs(s.seconds / p.seconds - 1) < 1e-9 && s.sorted);
    assert_int_equal(s.feeds, 1);
    for (int i = 0; i < CLT_TIMES_SOURCES_; i++) {
        assert_true(fabs(p.shares[i] - s.shares[i] / p.seconds) < 1e-9);
        of[i] = s.of[i];
    }
    assert_int_equal(p.batch, samples ? samples : 24);
    clt_graph_destroy(m.graph);
    return p;
}

static clt_prediction predict(clt_times *times, int64_t samples) {
    int of[CLT_TIMES_SOURCES_];
    return predict_of(times, samples, of);
}

/* ---- time ---- */

static void known_and_between(void **state) {
    (void)state;
    clt_times *times;
    assert_ok(clt_times_open(&times, device, support_path("known.jsonl")));
    assert_int_equal(clt_times_count(times), 0);
    int of[CLT_TIMES_SOURCES_];
    clt_prediction p = predict(times, 24);
    assert_true(p.shares[CLT_TIMES_OTHERS] == 1 && isnan(p.error) && p.seconds > 0);
    measure(times, 8, 6);
    p = predict(times, 8);
    assert_true(p.shares[CLT_TIMES_MEASURED] == 1 && p.error >= 0 && p.launches > 5 && p.flops > 0);
    p = predict_of(times, 32, of);
    assert_true(of[CLT_TIMES_BATCH] > 10 && of[CLT_TIMES_ROOFLINE] + of[CLT_TIMES_OTHERS] == 0);
    measure(times, 64, 6);
    p = predict_of(times, 0, of);
    assert_true(of[CLT_TIMES_BATCHES] > 10 && of[CLT_TIMES_MEASURED] > 0); /* the update is of any batch */
    assert_true(p.error > 0 || isnan(p.error));
    /* Between the two, and not both at once. */
    double low = predict(times, 8).seconds, high = predict(times, 64).seconds;
    assert_true(p.seconds < 3 * (low + high) && p.seconds > 0.2 * (low < high ? low : high));
    clt_times_close(times);
}

/* Layers that are the same problem: each takes its part of the step's time, and a step no more than there was. */
static void repeated(void **state) {
    (void)state;
    enum { WIDTH = 2 * SIDE * SIDE, LAYERS = 8, STEPS = 300 };
    clt_graph *graph;
    clt_trainer *trainer;
    clt_times *times;
    clt_prediction p;
    clt_batch batch = batch_of(32);
    assert_ok(clt_graph_create(&graph));
    clt_tensor *h = clt_flatten(clt_input(graph, "x", CLT_F32, CLT_SHAPE(32, 2, SIDE, SIDE)));
    clt_tensor *y = clt_input(graph, "y", CLT_I32, CLT_SHAPE(32));
    for (int i = 0; i < LAYERS; i++) {
        char name[16];
        snprintf(name, sizeof name, "fc%d", i);
        h = clt_relu(clt_linear(h, name, WIDTH));
    }
    clt_tensor *loss = clt_cross_entropy(clt_linear(h, "out", CLASSES), y);
    assert_ok(clt_trainer_create(&trainer, device, loss, NULL));
    for (int i = 0; i < 5; i++) assert_ok(clt_trainer_step(trainer, &batch));
    assert_ok(clt_trainer_wait(trainer));
    assert_ok(clt_times_open(&times, device, support_path("repeated.jsonl")));
    double start = clt_seconds();
    assert_ok(clt_times_measure(times, trainer, &batch, STEPS));
    double wall = clt_seconds() - start;
    sum s = {.sorted = true};
    assert_ok(clt_predict_step(times, loss, NULL, 0, add, &s, &p));
    assert_true(p.shares[CLT_TIMES_MEASURED] == 1 && s.problems < p.launches);
    assert_true(p.seconds * STEPS < 1.001 * wall);
    clt_times_close(times);
    clt_trainer_destroy(trainer);
    clt_graph_destroy(graph);
}

/* Of the same steps there is one time, however often it is asked for. */
static void again(void **state) {
    (void)state;
    clt_times *times;
    assert_ok(clt_times_open(&times, device, support_path("again.jsonl")));
    measure(times, 8, 3);
    size_t count = clt_times_count(times);
    measure(times, 8, 3);
    assert_int_equal(clt_times_count(times), count);
    clt_times_close(times);
}

/* ---- memory ---- */

static void memory(void **state) {
    (void)state;
    static const int64_t batches[] = {1, 7, 64};
    for (size_t i = 0; i < sizeof batches / sizeof batches[0]; i++) {
        model m = build(batches[i]);
        clt_batch batch = batch_of(batches[i]);
        clt_device *own;
        clt_trainer *trainer;
        clt_step_memory need;
        assert_ok(clt_device_open(&own, NULL));
        assert_ok(clt_predict_memory(own, m.loss, &m.options, 0, &need));
        assert_int_equal(clt_device_bytes(own), 0); /* nothing was put there */
        assert_ok(clt_trainer_create(&trainer, own, m.loss, &m.options));
        assert_ok(clt_trainer_step(trainer, &batch));
        assert_ok(clt_trainer_wait(trainer));
        /* Slots of inputs that the host fills are not among the device's own bytes. */
        uint64_t there = clt_device_bytes(own);
        if (there > need.total || there < need.activations + need.states)
            fail_msg("%llu bytes are there; %llu activations, %llu states, %llu inputs were told", (unsigned long long)there,
                     (unsigned long long)need.activations, (unsigned long long)need.states, (unsigned long long)need.inputs);
        assert_true(need.total == need.activations + need.states + need.inputs && need.largest <= need.total);
        clt_trainer_destroy(trainer);
        clt_device_close(own);
        clt_graph_destroy(m.graph);
    }
}

static void largest(void **state) {
    (void)state;
    model m = build(24);
    char reason[256];
    int64_t batch;
    clt_step_memory at, next;
    const uint64_t most = 4000000;
    assert_ok(clt_largest_batch(device, m.loss, &m.options, most, &batch, reason));
    assert_true(batch > 1);
    assert_ok(clt_predict_memory(device, m.loss, &m.options, batch, &at));
    assert_ok(clt_predict_memory(device, m.loss, &m.options, batch + batch / 64 + 1, &next));
    assert_true(at.total <= most && next.total > most);
    assert_non_null(strstr(reason, "takes"));
    assert_non_null(strstr(reason, " MiB of 3.8"));
    assert_ok(clt_largest_batch(device, m.loss, &m.options, 100, &batch, reason));
    assert_int_equal(batch, 0);
    /* The largest buffer ends it, if nothing else does: one of a device that has not more than 2^31 elements in it. */
    uint64_t own = device->info.max_buffer_bytes;
    device->info.max_buffer_bytes = CLT_MIN(own, (uint64_t)1 << 30);
    assert_ok(clt_largest_batch(device, m.loss, &m.options, UINT64_MAX, &batch, reason));
    assert_true(batch > 1000);
    assert_status(clt_predict_memory(device, m.loss, &m.options, batch * 2, &next), CLT_E_DEVICE_MEMORY);
    device->info.max_buffer_bytes = own;
    clt_graph_destroy(m.graph);
}

/* ---- the file ---- */

static size_t read_whole(const char *path, char *bytes, size_t room) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t length = fread(bytes, 1, room, file);
    fclose(file);
    assert_true(length < room);
    return length;
}

static size_t count_in(const char *path) {
    clt_times *times;
    assert_ok(clt_times_open(&times, device, path));
    size_t count = clt_times_count(times);
    clt_times_close(times);
    return count;
}

static void kept(void **state) {
    (void)state;
    static char bytes[1 << 18];
    const char *path = support_path("kept.jsonl"), *cut = support_path("cut.jsonl");
    clt_times *times;
    assert_ok(clt_times_open(&times, device, path));
    measure(times, 8, 3);
    size_t count = clt_times_count(times);
    assert_ok(clt_times_save(times));
    assert_int_equal(count_in(path), count);
    /* What someone else has saved meanwhile stays. */
    clt_times *other;
    assert_ok(clt_times_open(&other, device, support_path("none.jsonl")));
    measure(other, 16, 3);
    clt_times_close(other);
    assert_ok(clt_times_open(&other, device, path));
    measure(other, 16, 3);
    assert_ok(clt_times_save(other));
    clt_times_close(other);
    assert_ok(clt_times_save(times));
    assert_true(count_in(path) > count);
    clt_times_close(times);

    size_t length = read_whole(path, bytes, sizeof bytes);
    size_t all = count_in(path);
    size_t header = (size_t)(strchr(bytes, '\n') - bytes) + 1;
    for (size_t n = 0; n < length; n += 97) {
        support_write(cut, bytes, n);
        if (n > 0 && n < header) assert_status(clt_times_open(&times, device, cut), CLT_E_FORMAT);
        else assert_true(count_in(cut) < all);
    }
    /* Of another device, or no such file at all: it may be of worth to someone, and is not taken, so that it is not written over. */
    char *id = strstr(bytes, "\"id\": \"");
    assert_non_null(id);
    id[7] = id[7] == '0' ? '1' : '0';
    support_write(cut, bytes, length);
    assert_status(clt_times_open(&times, device, cut), CLT_E_INVALID);
    assert_detail("cut.jsonl: times of another device");
    support_write(cut, "\0\0\0\xff{}\n\n[", 9);
    assert_status(clt_times_open(&times, device, cut), CLT_E_FORMAT);
    assert_detail("cut.jsonl: no file of times");
}

static void not_writable(void **state) {
    (void)state;
    clt_times *times;
    assert_ok(clt_times_open(&times, device, support_path("no/such/folder/times.jsonl")));
    measure(times, 8, 2);
    assert_status(clt_times_save(times), CLT_E_IO);
    assert_detail("times.jsonl");
    assert_true(clt_times_count(times) > 0);
    clt_times_close(times);
}

/* ---- what makes no sense ---- */

static void refused(void **state) {
    (void)state;
    clt_times *times;
    clt_prediction p;
    clt_trainer *trainer;
    clt_batch batch = batch_of(8);
    model m = build(8);
    assert_status(clt_times_open(NULL, device, NULL), CLT_E_INVALID);
    assert_ok(clt_times_open(&times, device, support_path("refused.jsonl")));
    assert_status(clt_predict_step(times, m.loss, &m.options, -1, NULL, NULL, &p), CLT_E_INVALID);
    assert_status(clt_predict_step(times, NULL, &m.options, 1, NULL, NULL, &p), CLT_E_INVALID);
    assert_status(clt_predict_step(NULL, m.loss, &m.options, 1, NULL, NULL, &p), CLT_E_INVALID);
    m.options.accumulate = 2;
    assert_status(clt_predict_step(times, m.loss, &m.options, 8, NULL, NULL, &p), CLT_E_UNSUPPORTED);
    assert_ok(clt_trainer_create(&trainer, device, m.loss, &m.options));
    assert_status(clt_times_measure(times, trainer, &batch, 2), CLT_E_UNSUPPORTED);
    clt_trainer_destroy(trainer);
    m.options.accumulate = 1;
    assert_ok(clt_trainer_create(&trainer, device, m.loss, &m.options));
    assert_status(clt_times_measure(times, trainer, &batch, 0), CLT_E_INVALID);
    labels[3] = CLASSES; /* no class: the step's own error, and the device is timed no more */
    assert_status(clt_times_measure(times, trainer, &batch, 2), CLT_E_RANGE);
    labels[3] = 0;
    assert_ok(clt_times_measure(times, trainer, &batch, 2));
    clt_trainer_destroy(trainer);
    clt_times_close(times);
    clt_graph_destroy(m.graph);
}

static int set_up(void **state) {
    (void)state;
    setenv("CLTRAIN_TUNE", "off", 1);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) values[i] = (float)(i * 7919 % 2003) / 1001.0f - 1.0f;
    return clt_device_open(&device, NULL);
}

static int tear_down(void **state) {
    (void)state;
    clt_device_close(device);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_and_between), cmocka_unit_test(repeated), cmocka_unit_test(again), cmocka_unit_test(memory),
        cmocka_unit_test(largest),           cmocka_unit_test(kept),  cmocka_unit_test(not_writable),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
