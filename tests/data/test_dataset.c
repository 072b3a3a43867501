#include "tests/data/files.h"

#include <math.h>
#include <cltrain/data.h>

static clt_array array_of(clt_dtype dtype, clt_shape shape, const void *data) {
    return (clt_array){dtype, shape, data};
}

/* n samples f32 [2] = (i, -i), label i % 4. */
static clt_dataset *numbered(int n) {
    float *x = malloc((size_t)n * 2 * sizeof *x);
    int32_t *y = malloc((size_t)n * sizeof *y);
    assert_true(x && y);
    for (int i = 0; i < n; i++) x[2 * i] = (float)i, x[2 * i + 1] = (float)-i, y[i] = i % 4;
    clt_array fields[] = {array_of(CLT_F32, CLT_SHAPE(n, 2), x), array_of(CLT_I32, CLT_SHAPE(n), y)};
    clt_dataset *d = NULL;
    assert_ok(clt_dataset_from_arrays(&d, fields, 2));
    free(x);
    free(y);
    return d;
}

static void copies_arrays(void **state) {
    float x[] = {1, 2, 3, 4, 5, 6};
    uint8_t u[] = {9, 8, 7};
    int32_t y[] = {0, 5, 2};
    clt_array fields[] = {array_of(CLT_F32, CLT_SHAPE(3, 1, 2), x), array_of(CLT_U8, CLT_SHAPE(3), u),
                          array_of(CLT_I32, CLT_SHAPE(3), y)};
    clt_dataset *d = NULL;
    assert_ok(clt_dataset_from_arrays(&d, fields, 3));
    x[0] = 99;
    assert_int_equal(clt_dataset_samples(d), 3);
    assert_int_equal(clt_dataset_fields(d), 3);
    assert_int_equal(clt_dataset_classes(d), 6);
    assert_int_equal(clt_dataset_dtype(d, 1), CLT_U8);
    clt_array a = clt_dataset_array(d, 0);
    assert_int_equal(a.shape.rank, 3);
    assert_memory_equal(a.shape.dims, ((int64_t[]){3, 1, 2}), 24);
    assert_memory_equal(a.data, ((float[]){1, 2, 3, 4, 5, 6}), 24);
    assert_memory_equal(clt_dataset_array(d, 1).data, u, 3);
    assert_int_equal(clt_dataset_shape(d, 3).rank, -1);
    assert_int_equal(clt_dataset_shape(d, -1).rank, -1);
    assert_null(clt_dataset_array(d, 3).data);
    assert_int_equal(clt_dataset_shape(NULL, 0).rank, -1);
    assert_int_equal(clt_dataset_samples(NULL), 0);
    clt_dataset_destroy(d);
    clt_dataset_destroy(NULL);
    (void)state;
}

static void only_a_label_has_classes(void **state) {
    const int32_t y[] = {3, 1};
    const clt_array token = array_of(CLT_I32, CLT_SHAPE(2), y),
                    pair = array_of(CLT_I32, CLT_SHAPE(2, 1), y);
    clt_dataset *d = NULL;
    assert_ok(clt_dataset_from_arrays(&d, &token, 1));
    assert_int_equal(clt_dataset_classes(d), 0);
    clt_dataset_destroy(d);
    assert_ok(clt_dataset_from_arrays(&d, (clt_array[]){token, pair}, 2));
    assert_int_equal(clt_dataset_classes(d), 0);
    clt_dataset_destroy(d);
    (void)state;
}

static void refuses_bad_arrays(void **state) {
    const float x[4] = {0};
    const int32_t y[] = {1, -1};
    clt_dataset *d;
    clt_array good = array_of(CLT_F32, CLT_SHAPE(2, 2), x), f = good;
    assert_status(clt_dataset_from_arrays(NULL, &good, 1), CLT_E_INVALID);
    assert_status(clt_dataset_from_arrays(&d, NULL, 1), CLT_E_INVALID);
    assert_status(clt_dataset_from_arrays(&d, &good, 0), CLT_E_INVALID);
    clt_array many[CLT_MAX_FIELDS + 1];
    for (int i = 0; i <= CLT_MAX_FIELDS; i++) many[i] = good;
    assert_status(clt_dataset_from_arrays(&d, many, CLT_MAX_FIELDS + 1), CLT_E_INVALID);
    f.data = NULL;
    assert_status(clt_dataset_from_arrays(&d, &f, 1), CLT_E_INVALID);
    f = good, f.dtype = CLT_F16;
    assert_status(clt_dataset_from_arrays(&d, &f, 1), CLT_E_DTYPE);
    assert_detail("field 0 is f16");
    f = good, f.shape.rank = 0;
    assert_status(clt_dataset_from_arrays(&d, &f, 1), CLT_E_SHAPE);
    f = good, f.shape.rank = 9;
    assert_status(clt_dataset_from_arrays(&d, &f, 1), CLT_E_SHAPE);
    f = good, f.shape.dims[1] = 0;
    assert_status(clt_dataset_from_arrays(&d, &f, 1), CLT_E_SHAPE);
    f = good, f.shape.dims[1] = -3;
    assert_status(clt_dataset_from_arrays(&d, &f, 1), CLT_E_SHAPE);
    f = good, f.shape.dims[0] = 1;
    assert_status(clt_dataset_from_arrays(&d, (clt_array[]){good, f}, 2), CLT_E_SHAPE);
    assert_detail("field 1 has 1 samples, field 0 has 2");
    f = good, f.shape.dims[0] = f.shape.dims[1] = INT64_MAX;
    assert_status(clt_dataset_from_arrays(&d, &f, 1), CLT_E_NO_MEMORY);
    watch_begin(-1);
    assert_status(
        clt_dataset_from_arrays(&d, (clt_array[]){good, array_of(CLT_I32, CLT_SHAPE(2), y)}, 2),
        CLT_E_RANGE);
    watch_end();
    assert_detail("label -1 of sample 1");
    (void)state;
}

/* Sums over the UCI file, computed from its text. */
static void digits_are_those_of_uci(void **state) {
    clt_dataset *d = NULL;
    assert_ok(clt_dataset_digits(&d));
    assert_int_equal(clt_dataset_samples(d), 1797);
    assert_int_equal(clt_dataset_classes(d), 10);
    clt_shape shape = clt_dataset_shape(d, 0);
    assert_int_equal(shape.rank, 3);
    assert_memory_equal(shape.dims, ((int64_t[]){1, 8, 8}), 24);
    const float *x = clt_dataset_array(d, 0).data;
    const int32_t *y = clt_dataset_array(d, 1).data;
    const float first[] = {0, 0, 5, 13, 9, 1, 0, 0, 0, 0, 13, 15, 10, 15, 5, 0};
    for (int i = 0; i < 16; i++) assert_true(x[i] == first[i] / 16);
    double sum = 0, weighted = 0;
    int count[10] = {0};
    for (int i = 0; i < 1797; i++) {
        count[y[i]]++;
        for (int p = 0; p < 64; p++)
            sum += 16 * x[64 * i + p], weighted += 16 * x[64 * i + p] * p * (y[i] + 1);
    }
    assert_true(sum == 561718);
    assert_true(weighted == 95870607);
    const int wanted[] = {178, 182, 177, 183, 181, 182, 181, 179, 174, 180};
    assert_memory_equal(count, wanted, sizeof wanted);
    clt_dataset_destroy(d);
    assert_status(clt_dataset_digits(NULL), CLT_E_INVALID);
    (void)state;
}

static void assert_parts(clt_dataset *const *parts, const int *sizes, int n, int samples) {
    char *seen = calloc((size_t)samples, 1);
    assert_non_null(seen);
    for (int p = 0; p < n; p++) {
        assert_int_equal(clt_dataset_samples(parts[p]), sizes[p]);
        assert_int_equal(clt_dataset_classes(parts[p]), 4);
        const float *x = clt_dataset_array(parts[p], 0).data;
        const int32_t *y = clt_dataset_array(parts[p], 1).data;
        for (int i = 0; i < sizes[p]; i++) {
            int sample = (int)x[2 * i];
            assert_true(x[2 * i + 1] == -x[2 * i]);
            assert_int_equal(y[i], sample % 4);
            assert_int_equal(seen[sample]++, 0);
        }
    }
    free(seen);
}

/* Each sample is in exactly one part, with its own label. */
static void splits_share_no_sample(void **state) {
    static const struct {
        int samples, n;
        double fractions[3];
        int sizes[3];
    } cases[] = {
        {1797, 2, {0.8, 0.2}, {1438, 359}},
        {100, 2, {0.71, 0.29}, {71, 29}},
        {10, 3, {0.7, 0.2, 0.1}, {7, 2, 1}},
        {7, 2, {0.5, 0.25}, {6, 1}},
        {10, 1, {0.1}, {10}},
        {9, 3, {1.0 / 3, 1.0 / 3, 1.0 / 3}, {3, 3, 3}},
        {1000, 3, {0.1, 0.1, 0.1}, {800, 100, 100}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        clt_dataset *whole = numbered(cases[i].samples), *parts[3];
        assert_ok(clt_dataset_split(whole, cases[i].fractions, cases[i].n, 5, parts));
        assert_parts(parts, cases[i].sizes, cases[i].n, cases[i].samples);
        for (int p = 0; p < cases[i].n; p++) clt_dataset_destroy(parts[p]);
        clt_dataset_destroy(whole);
    }
    (void)state;
}

static void splits_depend_on_the_seed_alone(void **state) {
    clt_dataset *whole = numbered(200), *parts[3][2];
    for (int i = 0; i < 3; i++)
        assert_ok(clt_dataset_split(whole, (double[]){0.5, 0.5}, 2, i == 2 ? 8 : 7, parts[i]));
    const void *a = clt_dataset_array(parts[0][0], 0).data;
    assert_memory_equal(a, clt_dataset_array(parts[1][0], 0).data, 100 * 8);
    assert_memory_not_equal(a, clt_dataset_array(parts[2][0], 0).data, 100 * 8);
    assert_memory_not_equal(a, clt_dataset_array(whole, 0).data, 100 * 8);
    for (int i = 0; i < 6; i++) clt_dataset_destroy(parts[i / 2][i % 2]);
    clt_dataset_destroy(whole);
    (void)state;
}

static void refuses_bad_splits(void **state) {
    clt_dataset *whole = numbered(5), *parts[3];
    assert_status(clt_dataset_split(whole, (double[]){0.9, 0.1}, 2, 1, parts), CLT_E_RANGE);
    assert_detail("part 1 of the split, 0.1 of 5 samples, has none");
    assert_null(parts[0]);
    assert_status(clt_dataset_split(whole, (double[]){0.9, 0.2}, 2, 1, parts), CLT_E_INVALID);
    assert_status(clt_dataset_split(whole, (double[]){0.9, 0}, 2, 1, parts), CLT_E_INVALID);
    assert_status(clt_dataset_split(whole, (double[]){-0.5, 0.5}, 2, 1, parts), CLT_E_INVALID);
    assert_status(clt_dataset_split(whole, (double[]){NAN, 0.5}, 2, 1, parts), CLT_E_INVALID);
    assert_status(clt_dataset_split(whole, (double[]){INFINITY}, 1, 1, parts), CLT_E_INVALID);
    assert_status(clt_dataset_split(whole, (double[]){1}, 0, 1, parts), CLT_E_INVALID);
    assert_status(clt_dataset_split(NULL, (double[]){1}, 1, 1, parts), CLT_E_INVALID);
    for (long at = 0; at < 4; at++) {
        watch_begin(at);
        assert_status(clt_dataset_split(whole, (double[]){0.5, 0.5}, 2, 1, parts), CLT_E_NO_MEMORY);
        watch_end();
    }
    clt_dataset_destroy(whole);
    (void)state;
}

static clt_dataset *wrap_x(clt_shape shape, const float *x) {
    clt_array field = array_of(CLT_F32, shape, x);
    clt_dataset *d = NULL;
    assert_ok(clt_dataset_from_arrays(&d, &field, 1));
    return d;
}

/* Against the definition in double, column by column; column 2 has no spread. */
static void standardizes_elements(void **state) {
    enum { N = 50, K = 4, M = 3 };
    float x[N][K], other[M][K];
    for (int i = 0; i < N; i++)
        for (int k = 0; k < K; k++)
            x[i][k] = k == 2 ? 0.1f : (float)(1e4 * k + sin(i * (k + 1.0)) * pow(10, k));
    for (int i = 0; i < M; i++)
        for (int k = 0; k < K; k++) other[i][k] = (float)(i * 3 - k);
    clt_dataset *like = wrap_x(CLT_SHAPE(N, K), &x[0][0]), *d = wrap_x(CLT_SHAPE(M, K), &other[0][0]);
    assert_ok(clt_dataset_standardize(d, like));
    assert_memory_equal(clt_dataset_array(like, 0).data, x, sizeof x);
    assert_ok(clt_dataset_standardize(like, like));
    const float *got = clt_dataset_array(d, 0).data, *own = clt_dataset_array(like, 0).data;
    for (int k = 0; k < K; k++) {
        double mean = 0, variance = 0;
        for (int i = 0; i < N; i++) mean += x[i][k] / (double)N;
        for (int i = 0; i < N; i++) variance += (x[i][k] - mean) * (x[i][k] - mean) / N;
        double deviation = k == 2 ? 1 : sqrt(variance);
        for (int i = 0; i < M; i++)
            assert_true(fabs(got[i * K + k] - (other[i][k] - mean) / deviation) <=
                        1e-6 * (1 + fabs(got[i * K + k])));
        for (int i = 0; i < N; i++)
            assert_true(fabs(own[i * K + k] - (x[i][k] - mean) / deviation) < 1e-6);
    }
    for (int i = 0; i < N; i++) assert_true(own[i * K + 2] == 0);
    clt_dataset_destroy(d);
    clt_dataset_destroy(like);
    (void)state;
}

static void standardizes_channels_of_images(void **state) {
    enum { N = 5, C = 2, P = 6 };
    float x[N][C][P];
    for (int i = 0; i < N * C * P; i++) (&x[0][0][0])[i] = (float)cos(i * i);
    clt_dataset *d = wrap_x(CLT_SHAPE(N, C, 2, 3), &x[0][0][0]);
    assert_ok(clt_dataset_standardize(d, d));
    const float *got = clt_dataset_array(d, 0).data;
    for (int c = 0; c < C; c++) {
        double mean = 0, variance = 0;
        for (int i = 0; i < N * P; i++) mean += x[i / P][c][i % P] / (double)(N * P);
        for (int i = 0; i < N * P; i++) variance += pow(x[i / P][c][i % P] - mean, 2) / (N * P);
        for (int i = 0; i < N * P; i++)
            assert_true(fabs(got[(i / P * C + c) * P + i % P] -
                             (x[i / P][c][i % P] - mean) / sqrt(variance)) < 1e-6);
    }
    clt_dataset_destroy(d);
    (void)state;
}

/* Of either type; each element finds its place, and samples do not mix. */
static void turns_images_to_channels_first(void **state) {
    enum { N = 3, H = 4, W = 5, C = 3, SAMPLE = H * W * C };
    float x[N * SAMPLE];
    uint8_t u[N * SAMPLE];
    for (int i = 0; i < N * SAMPLE; i++) x[i] = (float)i, u[i] = (uint8_t)i;
    clt_array fields[] = {array_of(CLT_F32, CLT_SHAPE(N, H, W, C), x), array_of(CLT_U8, CLT_SHAPE(N, H, W, C), u)};
    for (int which = 0; which < 2; which++) {
        clt_dataset *d = NULL;
        assert_ok(clt_dataset_from_arrays(&d, &fields[which], 1));
        assert_ok(clt_dataset_channels_first(d));
        clt_array a = clt_dataset_array(d, 0);
        assert_int_equal(a.shape.rank, 4);
        assert_memory_equal(a.shape.dims, ((int64_t[]){N, C, H, W}), 32);
        for (int i = 0; i < N; i++)
            for (int c = 0; c < C; c++)
                for (int p = 0; p < H * W; p++) {
                    int got = i * SAMPLE + c * H * W + p, wanted = i * SAMPLE + p * C + c;
                    assert_true(which ? ((const uint8_t *)a.data)[got] == u[wanted] : ((const float *)a.data)[got] == x[wanted]);
                }
        clt_dataset_destroy(d);
    }
    clt_dataset *table = numbered(4);
    assert_status(clt_dataset_channels_first(table), CLT_E_SHAPE);
    assert_detail("expected 3");
    assert_status(clt_dataset_channels_first(NULL), CLT_E_INVALID);
    clt_dataset_destroy(table);
    (void)state;
}

static void refuses_to_standardize(void **state) {
    const float x[] = {1, 2, 3, NAN};
    const int32_t y[] = {1, 2};
    clt_dataset *whole = numbered(4), *ints = NULL, *not_finite = wrap_x(CLT_SHAPE(2, 2), x);
    clt_dataset *wide = wrap_x(CLT_SHAPE(1, 3), x);
    assert_ok(clt_dataset_from_arrays(&ints, &(clt_array){CLT_I32, CLT_SHAPE(2, 1), y}, 1));
    assert_status(clt_dataset_standardize(whole, not_finite), CLT_E_RANGE);
    assert_detail("sample 1, element 1 of field 0: nan is not a finite number");
    assert_true(((const float *)clt_dataset_array(whole, 0).data)[2] == 1);
    assert_status(clt_dataset_standardize(whole, ints), CLT_E_DTYPE);
    assert_status(clt_dataset_standardize(ints, whole), CLT_E_DTYPE);
    assert_status(clt_dataset_standardize(whole, wide), CLT_E_SHAPE);
    assert_status(clt_dataset_standardize(NULL, whole), CLT_E_INVALID);
    assert_status(clt_dataset_standardize(whole, NULL), CLT_E_INVALID);
    clt_dataset_destroy(wide);
    clt_dataset_destroy(not_finite);
    clt_dataset_destroy(ints);
    clt_dataset_destroy(whole);
    (void)state;
}

/* Samples of a class surround its prototype: their mean is near it, their distance is the noise. */
static void synthetic_images_can_be_learned(void **state) {
    enum { N = 4000, K = 4, E = 12 };
    clt_dataset *d = NULL, *again = NULL, *other = NULL;
    assert_ok(clt_dataset_synthetic(&d, CLT_SHAPE(3, 2, 2), K, N, 1));
    assert_ok(clt_dataset_synthetic(&again, CLT_SHAPE(3, 2, 2), K, N, 1));
    assert_ok(clt_dataset_synthetic(&other, CLT_SHAPE(3, 2, 2), K, N, 2));
    assert_int_equal(clt_dataset_classes(d), K);
    const float *x = clt_dataset_array(d, 0).data;
    const int32_t *y = clt_dataset_array(d, 1).data;
    assert_memory_equal(x, clt_dataset_array(again, 0).data, N * E * sizeof *x);
    assert_memory_not_equal(x, clt_dataset_array(other, 0).data, N * E * sizeof *x);
    double mean[K][E] = {{0}}, noise = 0;
    for (int i = 0; i < N * E; i++) mean[y[i / E]][i % E] += x[i] / (double)(N / K);
    for (int i = 0; i < N * E; i++) noise += pow(x[i] - mean[y[i / E]][i % E], 2) / (N * E);
    assert_true(fabs(noise - 1) < 0.04);
    for (int i = 0; i < N; i++) assert_int_equal(y[i], i % K);
    int right = 0;
    for (int i = 0; i < N; i++) {
        double best = INFINITY;
        int nearest = -1;
        for (int k = 0; k < K; k++) {
            double distance = 0;
            for (int e = 0; e < E; e++) distance += pow(x[i * E + e] - mean[k][e], 2);
            if (distance < best) best = distance, nearest = k;
        }
        right += nearest == y[i];
    }
    assert_true(right > 0.8 * N);
    clt_dataset_destroy(d);
    clt_dataset_destroy(again);
    clt_dataset_destroy(other);
    (void)state;
}

/* Solves the normal equations by Gaussian elimination; what remains has the noise's deviation. */
static double residual(const clt_dataset *d, int n, int k) {
    enum { MOST = 8 };
    double a[MOST][MOST + 1] = {{0}};
    const float *x = clt_dataset_array(d, 0).data, *y = clt_dataset_array(d, 1).data;
    for (int i = 0; i < n; i++)
        for (int r = 0; r <= k; r++) {
            double left = r < k ? x[i * k + r] : 1;
            for (int c = 0; c <= k; c++) a[r][c] += left * (c < k ? x[i * k + c] : 1);
            a[r][k + 1] += left * y[i];
        }
    for (int p = 0; p <= k; p++)
        for (int r = 0; r <= k; r++) {
            double factor = r == p ? 0 : a[r][p] / a[p][p];
            for (int c = p; c <= k + 1; c++) a[r][c] -= factor * a[p][c];
        }
    double square = 0;
    for (int i = 0; i < n; i++) {
        double e = y[i] - a[k][k + 1] / a[k][k];
        for (int c = 0; c < k; c++) e -= x[i * k + c] * a[c][k + 1] / a[c][c];
        square += e * e / n;
    }
    return sqrt(square);
}

static void synthetic_regression_is_linear_with_noise(void **state) {
    clt_dataset *d = NULL;
    assert_ok(clt_dataset_synthetic_regression(&d, 20000, 5, 0.1f, 3));
    assert_int_equal(clt_dataset_classes(d), 0);
    assert_int_equal(clt_dataset_shape(d, 1).rank, 1);
    assert_int_equal(clt_dataset_shape(d, 1).dims[0], 1);
    double deviation = residual(d, 20000, 5);
    assert_true(fabs(deviation - 0.1) < 0.003);
    clt_dataset_destroy(d);
    assert_ok(clt_dataset_synthetic_regression(&d, 1000, 5, 0, 3));
    assert_true(residual(d, 1000, 5) < 1e-6);
    clt_dataset_destroy(d);
    (void)state;
}

static void refuses_bad_synthetic_sets(void **state) {
    clt_dataset *d;
    assert_status(clt_dataset_synthetic(NULL, CLT_SHAPE(2), 2, 2, 0), CLT_E_INVALID);
    assert_status(clt_dataset_synthetic(&d, CLT_SHAPE(2), 0, 2, 0), CLT_E_INVALID);
    assert_status(clt_dataset_synthetic(&d, CLT_SHAPE(2), 2, 0, 0), CLT_E_INVALID);
    assert_status(clt_dataset_synthetic(&d, CLT_SHAPE(2), 2, INT64_MAX, 0), CLT_E_INVALID);
    assert_status(clt_dataset_synthetic(&d, CLT_SHAPE(2, 0), 2, 2, 0), CLT_E_SHAPE);
    assert_status(clt_dataset_synthetic(&d, CLT_SHAPE(2, -1), 2, 2, 0), CLT_E_SHAPE);
    assert_status(
        clt_dataset_synthetic(&d, (clt_shape){.rank = 8, .dims = {1, 1, 1, 1, 1, 1, 1, 1}}, 2, 2, 0),
        CLT_E_SHAPE);
    assert_status(clt_dataset_synthetic(&d, CLT_SHAPE(1 << 30, 1 << 30), 2, 1 << 20, 0),
                  CLT_E_NO_MEMORY);
    assert_status(clt_dataset_synthetic_regression(&d, 2, 0, 0, 0), CLT_E_INVALID);
    assert_status(clt_dataset_synthetic_regression(&d, 2, 2, -1, 0), CLT_E_INVALID);
    assert_status(clt_dataset_synthetic_regression(&d, 2, 2, NAN, 0), CLT_E_INVALID);
    assert_status(clt_dataset_synthetic_regression(NULL, 2, 2, 0, 0), CLT_E_INVALID);
    assert_ok(clt_dataset_synthetic(&d, (clt_shape){0}, 7, 3, 0));
    assert_int_equal(clt_dataset_classes(d), 7);
    clt_dataset_destroy(d);
    (void)state;
}

/* Each part has of each class its share, within a sample; each sample is in one of them. */
static void stratified_parts_have_the_classes_of_the_whole(void **state) {
    enum { N = 1000, K = 5 };
    static float x[N];
    static int32_t y[N];
    static const int counts[K] = {600, 250, 100, 47, 3};
    for (int i = 0, c = 0, of = 0; i < N; i++, of++) {
        if (of == counts[c]) c++, of = 0;
        x[(i * 7) % N] = (float)((i * 7) % N), y[(i * 7) % N] = c;
    }
    clt_dataset *d = NULL, *parts[3], *again[3];
    assert_ok(clt_dataset_from_arrays(&d, (clt_array[]){{CLT_F32, CLT_SHAPE(N), x}, {CLT_I32, CLT_SHAPE(N), y}}, 2));
    const double fractions[] = {0.7, 0.2, 0.1};
    assert_ok(clt_dataset_split_stratified(d, fractions, 3, 5, parts));
    assert_ok(clt_dataset_split_stratified(d, fractions, 3, 5, again));
    char seen[N] = {0};
    for (int p = 0; p < 3; p++) {
        int found[K] = {0};
        int64_t n = clt_dataset_samples(parts[p]);
        const int32_t *labels = clt_dataset_array(parts[p], 1).data;
        const float *values = clt_dataset_array(parts[p], 0).data;
        assert_true(fabs((double)n - fractions[p] * N) <= 1);
        for (int64_t i = 0; i < n; i++) found[labels[i]]++, assert_int_equal(seen[(int)values[i]]++, 0);
        for (int c = 0; c < K; c++) assert_true(fabs(found[c] - fractions[p] * counts[c]) <= 1.5);
        assert_memory_equal(values, clt_dataset_array(again[p], 0).data, (size_t)n * sizeof *values);
        assert_true(labels[0] != labels[1] || labels[1] != labels[2] || labels[2] != labels[3] || p); /* not sorted by classes */
        clt_dataset_destroy(parts[p]);
        clt_dataset_destroy(again[p]);
    }
    for (int i = 0; i < N; i++) assert_int_equal(seen[i], 1);
    assert_status(clt_dataset_split_stratified(d, (double[]){0.9999, 0.0001}, 2, 1, parts), CLT_E_RANGE);
    assert_status(clt_dataset_split_stratified(NULL, fractions, 3, 1, parts), CLT_E_INVALID);
    clt_dataset_destroy(d);
    assert_ok(clt_dataset_synthetic_regression(&d, 50, 2, 0, 1));
    assert_status(clt_dataset_split_stratified(d, fractions, 3, 1, parts), CLT_E_DTYPE);
    clt_dataset_destroy(d);
    (void)state;
}

/* Each sample is held out once, the parts are as large, and stratified ones have the classes of the whole. */
static void folds_hold_out_each_sample_once(void **state) {
    enum { N = 103, K = 3, FOLDS = 5 };
    float x[N];
    int32_t y[N], labels[N];
    for (int i = 0; i < N; i++) x[i] = (float)i, y[i] = i < 60 ? 0 : i < 96 ? 1 : 2;
    clt_dataset *d = NULL, *train, *test, *again[2];
    assert_ok(clt_dataset_from_arrays(&d, (clt_array[]){{CLT_F32, CLT_SHAPE(N), x}, {CLT_I32, CLT_SHAPE(N), y}}, 2));
    assert_ok(clt_dataset_labels(d, labels));
    assert_memory_equal(labels, y, sizeof y);
    for (int stratified = 0; stratified < 2; stratified++) {
        int held[N] = {0};
        for (int fold = 0; fold < FOLDS; fold++) {
            assert_ok(clt_dataset_fold(d, fold, FOLDS, 7, stratified, &train, &test));
            assert_ok(clt_dataset_fold(d, fold, FOLDS, 7, stratified, &again[0], &again[1]));
            int64_t n = clt_dataset_samples(test);
            int in_either[N] = {0}, of_class[K] = {0};
            const float *out = clt_dataset_array(test, 0).data, *in = clt_dataset_array(train, 0).data;
            assert_true(n == N / FOLDS || n == N / FOLDS + 1);
            assert_int_equal(n + clt_dataset_samples(train), N);
            for (int64_t i = 0; i < n; i++) held[(int)out[i]]++, in_either[(int)out[i]]++, of_class[y[(int)out[i]]]++;
            for (int64_t i = 0; i < N - n; i++) in_either[(int)in[i]]++;
            for (int i = 0; i < N; i++) assert_int_equal(in_either[i], 1);
            const int counts[K] = {60, 36, 7};
            for (int c = 0; stratified && c < K; c++) assert_true(of_class[c] == counts[c] / FOLDS || of_class[c] == counts[c] / FOLDS + 1);
            assert_memory_equal(out, clt_dataset_array(again[1], 0).data, (size_t)n * sizeof *out);
            clt_dataset_destroy(train), clt_dataset_destroy(test);
            clt_dataset_destroy(again[0]), clt_dataset_destroy(again[1]);
        }
        for (int i = 0; i < N; i++) assert_int_equal(held[i], 1);
    }
    const struct {
        int fold, folds;
    } bad[] = {{0, 1}, {0, 0}, {-1, 5}, {5, 5}, {0, N + 1}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_status(clt_dataset_fold(d, bad[i].fold, bad[i].folds, 1, false, &train, &test), CLT_E_INVALID);
    assert_status(clt_dataset_fold(d, 0, 5, 1, false, NULL, &test), CLT_E_INVALID);
    assert_status(clt_dataset_labels(d, NULL), CLT_E_INVALID);
    for (int64_t at = 0; at < 20; at++) {
        watch_begin(at);
        clt_status status = clt_dataset_fold(d, 0, 3, 1, true, &train, &test);
        if (status == CLT_OK) clt_dataset_destroy(train), clt_dataset_destroy(test);
        else assert_int_equal(status, CLT_E_NO_MEMORY);
        watch_end();
    }
    clt_dataset_destroy(d);
    assert_ok(clt_dataset_synthetic_regression(&d, 50, 2, 0, 1));
    assert_status(clt_dataset_fold(d, 0, 5, 1, true, &train, &test), CLT_E_DTYPE);
    assert_status(clt_dataset_labels(d, labels), CLT_E_DTYPE);
    clt_dataset_destroy(d);
    (void)state;
}

enum { GROUPED = 500 };

/* Groups of 1 to 20 samples, in no order; group_of[i] is that of the sample whose x is i. */
static clt_dataset *make_grouped(int64_t group_of[GROUPED]) {
    static float x[GROUPED];
    int32_t y[GROUPED];
    clt_dataset *d = NULL;
    for (int i = 0, group = 0, left = 1; i < GROUPED; i++, left--) {
        if (!left) group++, left = 1 + group * 7 % 20;
        int at = (i * 37) % GROUPED;
        x[at] = (float)at, y[at] = i % 3, group_of[at] = 1000003 * (int64_t)group - 5;
    }
    assert_ok(clt_dataset_from_arrays(&d, (clt_array[]){{CLT_F32, CLT_SHAPE(GROUPED), x}, {CLT_I32, CLT_SHAPE(GROUPED), y}}, 2));
    assert_ok(clt_dataset_set_groups(d, group_of));
    return d;
}

/* Marks the part's samples, of which no group may be in another one; their number. */
static int64_t mark_groups(const clt_dataset *part, const int64_t *group_of, int *part_of, int number) {
    const float *x = clt_dataset_array(part, 0).data;
    for (int64_t i = 0; i < clt_dataset_samples(part); i++) {
        for (int k = 0; k < GROUPED; k++) assert_false(group_of[k] == group_of[(int)x[i]] && part_of[k] >= 0 && part_of[k] != number);
        assert_int_equal(part_of[(int)x[i]], -1);
        part_of[(int)x[i]] = number;
    }
    return clt_dataset_samples(part);
}

static void groups_stay_together(void **state) {
    int64_t group_of[GROUPED];
    int part_of[GROUPED];
    const double fractions[] = {0.6, 0.3, 0.1};
    clt_dataset *d = make_grouped(group_of), *parts[3], *more[2], *again[3];
    for (uint64_t seed = 0; seed < 20; seed++) {
        int64_t all = 0;
        memset(part_of, -1, sizeof part_of);
        assert_ok(clt_dataset_split(d, fractions, 3, seed, parts));
        assert_ok(clt_dataset_split(d, fractions, 3, seed, again));
        for (int p = 0; p < 3; p++) {
            int64_t n = mark_groups(parts[p], group_of, part_of, p);
            assert_true(fabs((double)n - fractions[p] * GROUPED) <= 20); /* the largest group */
            assert_int_equal(n, clt_dataset_samples(again[p]));
            assert_memory_equal(clt_dataset_array(parts[p], 0).data, clt_dataset_array(again[p], 0).data, (size_t)n * sizeof(float));
            all += n;
        }
        assert_int_equal(all, GROUPED);
        memset(part_of, -1, sizeof part_of); /* a part knows its groups */
        assert_ok(clt_dataset_split(parts[0], (double[]){0.5, 0.5}, 2, seed, more));
        for (int p = 0; p < 2; p++) mark_groups(more[p], group_of, part_of, p), clt_dataset_destroy(more[p]);
        for (int p = 0; p < 3; p++) clt_dataset_destroy(parts[p]), clt_dataset_destroy(again[p]);
    }
    memset(part_of, -1, sizeof part_of);
    for (int fold = 0; fold < 5; fold++) {
        assert_ok(clt_dataset_fold(d, fold, 5, 3, false, &parts[0], &parts[1]));
        assert_true(fabs((double)mark_groups(parts[1], group_of, part_of, fold) - GROUPED / 5.0) <= 20);
        assert_int_equal(clt_dataset_samples(parts[0]) + clt_dataset_samples(parts[1]), GROUPED);
        clt_dataset_destroy(parts[0]), clt_dataset_destroy(parts[1]);
    }
    for (int i = 0; i < GROUPED; i++) assert_true(part_of[i] >= 0);
    clt_dataset_destroy(d);
    (void)state;
}

static void refuses_bad_groups(void **state) {
    int64_t group_of[GROUPED];
    clt_dataset *d = make_grouped(group_of), *parts[3];
    assert_status(clt_dataset_split_stratified(d, (double[]){0.5, 0.5}, 2, 1, parts), CLT_E_UNSUPPORTED);
    assert_status(clt_dataset_fold(d, 0, 5, 1, true, &parts[0], &parts[1]), CLT_E_UNSUPPORTED);
    assert_status(clt_dataset_set_groups(NULL, group_of), CLT_E_INVALID);
    assert_status(clt_dataset_fold(d, 0, 400, 1, false, &parts[0], &parts[1]), CLT_E_RANGE);
    assert_detail("are too few for 400 parts");
    for (int i = 0; i < GROUPED; i++) group_of[i] = i % 2;
    assert_ok(clt_dataset_set_groups(d, group_of)); /* in the place of those before */
    assert_status(clt_dataset_split(d, (double[]){0.4, 0.3, 0.3}, 3, 1, parts), CLT_E_RANGE);
    assert_ok(clt_dataset_split(d, (double[]){0.9, 0.1}, 2, 1, parts)); /* no part is empty */
    for (int p = 0; p < 2; p++) assert_int_equal(clt_dataset_samples(parts[p]), GROUPED / 2), clt_dataset_destroy(parts[p]);
    for (int64_t at = 0; at < 40; at++) {
        watch_begin(at);
        clt_status status = clt_dataset_split(d, (double[]){0.9, 0.1}, 2, 1, parts);
        if (status == CLT_OK) clt_dataset_destroy(parts[0]), clt_dataset_destroy(parts[1]);
        else assert_int_equal(status, CLT_E_NO_MEMORY);
        watch_end();
    }
    assert_ok(clt_dataset_set_groups(d, NULL));
    assert_ok(clt_dataset_split_stratified(d, (double[]){0.5, 0.5}, 2, 1, parts));
    clt_dataset_destroy(parts[0]), clt_dataset_destroy(parts[1]);
    clt_dataset_destroy(d);
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_arrays),
        cmocka_unit_test(only_a_label_has_classes),
        cmocka_unit_test(refuses_bad_arrays),
        cmocka_unit_test(digits_are_those_of_uci),
        cmocka_unit_test(splits_share_no_sample),
        cmocka_unit_test(splits_depend_on_the_seed_alone),
        cmocka_unit_test(refuses_bad_splits),
        cmocka_unit_test(standardizes_elements),
        cmocka_unit_test(standardizes_channels_of_images),
        cmocka_unit_test(turns_images_to_channels_first),
        cmocka_unit_test(refuses_to_standardize),
        cmocka_unit_test(synthetic_images_can_be_learned),
        cmocka_unit_test(synthetic_regression_is_linear_with_noise),
        cmocka_unit_test(refuses_bad_synthetic_sets),
        cmocka_unit_test(stratified_parts_have_the_classes_of_the_whole),
        cmocka_unit_test(folds_hold_out_each_sample_once),
        cmocka_unit_test(groups_stay_together),
        cmocka_unit_test(refuses_bad_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
