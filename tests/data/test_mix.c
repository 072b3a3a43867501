/* Samples that are mixtures of two. */
#include <math.h>

#include "tests/data/files.h"

#include <cltrain/data.h>

enum { N = 200, CLASSES = 7, CHANNELS = 3, HEIGHT = 8, WIDTH = 10, PIXELS = HEIGHT * WIDTH };

/* Sample i is full of the number i, which is below 256, and has label i % CLASSES. */
static clt_dataset *numbers(clt_dtype dtype) {
    static float x[N][CHANNELS * PIXELS];
    static uint8_t u[N][CHANNELS * PIXELS];
    static int32_t y[N];
    clt_dataset *d = NULL;
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < CHANNELS * PIXELS; k++) x[i][k] = (float)i, u[i][k] = (uint8_t)i;
        y[i] = i % CLASSES;
    }
    void *data = dtype == CLT_F32 ? (void *)x : (void *)u;
    assert_ok(clt_dataset_from_arrays(&d, (clt_array[]){{dtype, CLT_SHAPE(N, CHANNELS, HEIGHT, WIDTH), data}, {CLT_I32, CLT_SHAPE(N), y}}, 2));
    return d;
}

typedef struct sample {
    float x[CHANNELS * PIXELS];
    int32_t other, label;
    float share;
} sample;

static sample take(const clt_dataset *d, clt_sample which) {
    sample s;
    uint8_t u[CHANNELS * PIXELS];
    bool bytes = clt_dataset_dtype(d, 0) == CLT_U8;
    assert_ok(clt_dataset_fetch(d, &which, (void *[]){bytes ? (void *)u : (void *)s.x, &s.other, &s.share, &s.label}));
    for (int k = 0; bytes && k < CHANNELS * PIXELS; k++) s.x[k] = u[k];
    assert_int_equal(s.label, which.index % CLASSES);
    return s;
}

static clt_dataset *mixed(const clt_dataset *base, clt_mix_options options) {
    clt_dataset *d = NULL;
    assert_ok(clt_dataset_mix(&d, base, &options));
    assert_int_equal(clt_dataset_fields(d), 4);
    assert_int_equal(clt_dataset_classes(d), CLASSES);
    return d;
}

/* Blends have shares of the right distribution, and the other's label. */
static void blends_two(void **state) {
    const double alphas[] = {0.2, 1, 4};
    for (int bytes = 0; bytes < 2; bytes++)
        for (int a = 0; a < 3; a++) {
            clt_dataset *base = numbers(bytes ? CLT_U8 : CLT_F32), *d = mixed(base, (clt_mix_options){.mixup = (float)alphas[a]});
            enum { EPOCHS = 20 };
            double sum = 0, squares = 0;
            for (int64_t e = 0; e < EPOCHS; e++)
                for (int64_t i = 0; i < N; i++) {
                    sample s = take(d, (clt_sample){i, 5, e});
                    for (int k = 1; k < CHANNELS * PIXELS; k++) assert_true(s.x[k] == s.x[0]);
                    assert_true(s.share >= 0 && s.share <= 1);
                    if (s.share < 0.9f) { /* which other one it is */
                        double j = (s.x[0] - (double)s.share * (double)i) / (1 - (double)s.share), tolerance = bytes ? 6 : 0.01;
                        int near = 0;
                        for (int k = s.other; k < N; k += CLASSES) near += fabs(j - k) < tolerance;
                        assert_true(near >= 1);
                    }
                    sum += (double)s.share, squares += (double)s.share * (double)s.share;
                }
            double n = EPOCHS * N, mean = sum / n, variance = squares / n - mean * mean, expected = 1 / (4 * (2 * alphas[a] + 1));
            assert_true(fabs(mean - 0.5) < 5 * sqrt(expected / n));
            assert_true(fabs(variance - expected) < 0.06 * expected);
            clt_dataset_destroy(d);
            clt_dataset_destroy(base);
        }
    (void)state;
}

/* A box of the other one, the same in each channel; the share is what is left. */
static void cuts_a_box(void **state) {
    for (int bytes = 0; bytes < 2; bytes++) {
        clt_dataset *base = numbers(bytes ? CLT_U8 : CLT_F32), *d = mixed(base, (clt_mix_options){.cutmix = 1});
        int partly = 0;
        for (int64_t i = 0; i < N; i++) {
            sample s = take(d, (clt_sample){i, 9, 3});
            int top = HEIGHT, bottom = -1, left = WIDTH, right = -1, cut = 0, other = -1;
            for (int k = 0; k < PIXELS; k++) {
                for (int c = 1; c < CHANNELS; c++) assert_true(s.x[c * PIXELS + k] == s.x[k]);
                if (s.x[k] == (float)i) continue;
                if (other < 0) other = (int)s.x[k];
                assert_true(s.x[k] == (float)other);
                int y = k / WIDTH, x = k % WIDTH;
                top = y < top ? y : top, bottom = y > bottom ? y : bottom, left = x < left ? x : left, right = x > right ? x : right;
                cut++;
            }
            if (cut) {
                assert_int_equal(cut, (bottom - top + 1) * (right - left + 1));
                assert_int_equal(s.other, other % CLASSES);
                assert_true(fabsf(s.share - (1 - (float)cut / PIXELS)) < 1e-6f);
            }
            partly += cut > 0 && cut < PIXELS;
        }
        assert_true(partly > N / 2);
        clt_dataset_destroy(d);
        clt_dataset_destroy(base);
    }
    (void)state;
}

static void depends_on_seed_epoch_and_sample(void **state) {
    clt_dataset *base = numbers(CLT_F32), *d = mixed(base, (clt_mix_options){.mixup = 1, .cutmix = 1}), *some = mixed(base, (clt_mix_options){.mixup = 1, .probability = 0.3f});
    int blended = 0, cut = 0, changed = 0, other_epoch = 0, other_seed = 0;
    for (int64_t i = 0; i < N; i++) {
        sample a = take(d, (clt_sample){i, 1, 2}), b = take(d, (clt_sample){i, 1, 2}), c = take(d, (clt_sample){i, 1, 3}), e = take(d, (clt_sample){i, 2, 2});
        assert_memory_equal(a.x, b.x, sizeof a.x);
        assert_true(a.share == b.share && a.other == b.other);
        other_epoch += a.share != c.share, other_seed += a.share != e.share;
        bool whole = a.x[0] == floorf(a.x[0]);
        blended += !whole, cut += whole;
        changed += take(some, (clt_sample){i, 1, 2}).share < 1;
    }
    assert_true(other_epoch > N / 2 && other_seed > N / 2);
    assert_true(blended > N / 4 && cut > N / 4);
    assert_true(changed > 0.15 * N && changed < 0.45 * N);
    clt_dataset_destroy(some);
    clt_dataset_destroy(d);
    clt_dataset_destroy(base);
    (void)state;
}

static void leaves_samples_as_they_are(void **state) {
    clt_dataset *base = numbers(CLT_U8), *d = NULL, *parts[2];
    assert_ok(clt_dataset_mix(&d, base, NULL));
    for (int64_t i = 0; i < N; i++) {
        sample s = take(d, (clt_sample){i, 1, 1});
        assert_true(s.x[0] == (float)i && s.x[CHANNELS * PIXELS - 1] == (float)i && s.share == 1 && s.other == s.label);
    }
    int32_t labels[N];
    assert_ok(clt_dataset_labels(d, labels));
    for (int i = 0; i < N; i++) assert_int_equal(labels[i], i % CLASSES);
    assert_ok(clt_dataset_split(d, (double[]){0.5, 0.5}, 2, 1, parts));
    clt_dataset_destroy(parts[0]), clt_dataset_destroy(parts[1]);
    clt_dataset_destroy(d);
    clt_dataset_destroy(base);
    (void)state;
}

static void refuses_what_cannot_be_mixed(void **state) {
    clt_dataset *base = numbers(CLT_F32), *d = NULL, *rows = NULL, *regression = NULL;
    const clt_mix_options bad[] = {{.mixup = -1}, {.cutmix = -1}, {.mixup = NAN}, {.mixup = 2000}, {.mixup = 1, .probability = 1.5f}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_status(clt_dataset_mix(&d, base, &bad[i]), CLT_E_INVALID);
    assert_status(clt_dataset_mix(NULL, base, NULL), CLT_E_INVALID);
    assert_status(clt_dataset_mix(&d, NULL, NULL), CLT_E_INVALID);
    assert_ok(clt_dataset_synthetic(&rows, CLT_SHAPE(4), 3, 20, 1));
    assert_status(clt_dataset_mix(&d, rows, &(clt_mix_options){.cutmix = 1}), CLT_E_SHAPE);
    assert_ok(clt_dataset_mix(&d, rows, &(clt_mix_options){.mixup = 1}));
    clt_dataset_destroy(d);
    assert_ok(clt_dataset_synthetic_regression(&regression, 20, 2, 0, 1));
    assert_status(clt_dataset_mix(&d, regression, NULL), CLT_E_DTYPE);
    clt_dataset_destroy(regression);
    clt_dataset_destroy(rows);
    for (int64_t at = 0; at < 8; at++) {
        float x[CHANNELS * PIXELS], share;
        int32_t other, label;
        watch_begin(at);
        clt_status status = clt_dataset_mix(&d, base, &(clt_mix_options){.mixup = 1});
        if (status == CLT_OK) {
            status = clt_dataset_fetch(d, &(clt_sample){.index = 1}, (void *[]){x, &other, &share, &label});
            clt_dataset_destroy(d);
        }
        watch_end();
        if (status != CLT_OK) assert_int_equal(status, CLT_E_NO_MEMORY);
    }
    clt_dataset_destroy(base);
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blends_two),
        cmocka_unit_test(cuts_a_box),
        cmocka_unit_test(depends_on_seed_epoch_and_sample),
        cmocka_unit_test(leaves_samples_as_they_are),
        cmocka_unit_test(refuses_what_cannot_be_mixed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
