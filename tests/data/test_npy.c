#include "tests/data/files.h"

#include <float.h>
#include <unistd.h>
#include <math.h>
#include <cltrain/data.h>

#define X_DICT "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"
static const float x_values[] = {1, -2, 3.5f, 0, 1e-3f, 7};
static const int64_t y_values[] = {4, 0};

static const char *good_x(void) {
    return write_npy("x.npy", 1, X_DICT, x_values, sizeof x_values);
}

static const char *good_y(void) {
    return write_npy("y.npy", 1, "{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }", y_values,
                     sizeof y_values);
}

static clt_dataset *read_npy(const char *x, const char *y) {
    clt_dataset *d = NULL;
    assert_ok(clt_dataset_npy(&d, x, y));
    return d;
}

static void reads_arrays_of_every_version(void **state) {
    for (int version = 1; version <= 3; version++) {
        clt_dataset *d =
            read_npy(write_npy("x.npy", version, X_DICT, x_values, sizeof x_values), good_y());
        assert_int_equal(clt_dataset_samples(d), 2);
        assert_int_equal(clt_dataset_classes(d), 5);
        assert_int_equal(clt_dataset_shape(d, 0).rank, 1);
        assert_int_equal(clt_dataset_shape(d, 0).dims[0], 3);
        assert_memory_equal(clt_dataset_array(d, 0).data, x_values, sizeof x_values);
        assert_memory_equal(clt_dataset_array(d, 1).data, ((int32_t[]){4, 0}), 8);
        clt_dataset_destroy(d);
    }
    (void)state;
}

static void converts_every_type(void **state) {
    const struct {
        const char *dict;
        const void *data;
        size_t bytes;
    } cases[] = {
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (2, 1), }", (double[]){1.5, -3}, 16},
        {"{'descr': '<i4', 'fortran_order': False, 'shape': (2, 1), }", (int32_t[]){-7, 2147483647}, 8},
        {"{'descr': '<i8', 'fortran_order': False, 'shape': (2, 1), }",
         (int64_t[]){-7, (int64_t)1 << 40}, 16},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (2, 1), }", (uint8_t[]){255, 3}, 2},
        {"{'descr': '<f2', 'fortran_order': False, 'shape': (2, 1), }", (uint16_t[]){0x3e00, 0xfbff}, 4},
        {"{'descr': '|b1', 'fortran_order': False, 'shape': (2, 1), }", (uint8_t[]){1, 0}, 2},
        {"{'descr': '|i1', 'fortran_order': False, 'shape': (2, 1), }", (int8_t[]){-128, 127}, 2},
        {"{'descr': '<i2', 'fortran_order': False, 'shape': (2, 1), }", (int16_t[]){-32768, 258}, 4},
        {"{'descr': '<u2', 'fortran_order': False, 'shape': (2, 1), }", (uint16_t[]){65535, 258}, 4},
        {"{'descr': '<u4', 'fortran_order': False, 'shape': (2, 1), }", (uint32_t[]){4294967295u, 66051}, 8},
    };
    static const float wanted[][2] = {{1.5f, -3}, {-7, 2147483648.0f}, {-7, 1099511627776.0f}, {255, 3}, {1.5f, -65504}, {1, 0}, {-128, 127}, {-32768, 258}, {65535, 258}, {4294967296.0f, 66051}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        clt_dataset *d =
            read_npy(write_npy("x.npy", 1, cases[i].dict, cases[i].data, cases[i].bytes), good_y());
        assert_memory_equal(clt_dataset_array(d, 0).data, wanted[i], 8);
        clt_dataset_destroy(d);
    }
    (void)state;
}

/* What stays in its files has the samples of what is read. */
static void assert_streams_alike(const char *x, const char *y) {
    clt_dataset *read = read_npy(x, y), *streamed = NULL;
    assert_ok(clt_dataset_npy_stream(&streamed, x, y));
    assert_int_equal(clt_dataset_samples(streamed), clt_dataset_samples(read));
    assert_int_equal(clt_dataset_fields(streamed), clt_dataset_fields(read));
    assert_int_equal(clt_dataset_classes(streamed), clt_dataset_classes(read));
    assert_null(clt_dataset_array(streamed, 0).data);
    for (int64_t i = 0; i < clt_dataset_samples(read); i++) {
        char a[2][64] = {{0}}, b[2][64] = {{0}};
        assert_ok(clt_dataset_fetch(read, &(clt_sample){.index = i}, (void *[]){a[0], a[1]}));
        assert_ok(clt_dataset_fetch(streamed, &(clt_sample){.index = i}, (void *[]){b[0], b[1]}));
        assert_memory_equal(a, b, sizeof a);
    }
    clt_dataset_destroy(streamed);
    clt_dataset_destroy(read);
}

static void streams_samples_from_their_files(void **state) {
    assert_streams_alike(good_x(), good_y());
    assert_streams_alike(good_x(), NULL);
    assert_streams_alike(good_x(), write_npy("y.npy", 2, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", x_values, sizeof x_values));
    assert_streams_alike(write_npy("x.npy", 3, "{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }", "\x07\xff", 2), good_y());
    assert_streams_alike(write_npy("x.npy", 1, "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), }", (double[]){1.5, -3, 0.1, 7}, 32), good_y());
    (void)state;
}

static void refuses_what_cannot_be_streamed(void **state) {
    clt_dataset *d = NULL;
    unsigned char header[128] = {0};
    assert_status(clt_dataset_npy_stream(NULL, good_x(), NULL), CLT_E_INVALID);
    assert_status(clt_dataset_npy_stream(&d, support_path("nowhere.npy"), NULL), CLT_E_IO);
    assert_status(clt_dataset_npy_stream(&d, write_npy("x.npy", 1, X_DICT, x_values, sizeof x_values - 4), NULL), CLT_E_FORMAT);
    assert_detail("20 bytes of data, where the header tells of 24");
    assert_status(clt_dataset_npy_stream(&d, write_gz("x.npy.gz", header, sizeof header), NULL), CLT_E_FORMAT);
    assert_status(clt_dataset_npy_stream(&d, good_x(), write_npy("y.npy", 1, "{'descr': '<i8', 'fortran_order': False, 'shape': (3,), }", (int64_t[]){1, 0, 2}, 24)), CLT_E_SHAPE);
    assert_status(clt_dataset_npy_stream(&d, good_x(), write_npy("y.npy", 1, "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }", (int32_t[]){3, -1}, 8)), CLT_E_RANGE);
    assert_detail("item 1 is out of range");
    /* Of a file that is cut while it is used the samples that are gone are errors, and the others are there. */
    const char *path = good_x();
    assert_ok(clt_dataset_npy_stream(&d, path, NULL));
    assert_int_equal(truncate(path, 128 + 12), 0);
    float x[3];
    assert_ok(clt_dataset_fetch(d, &(clt_sample){.index = 0}, (void *[]){x}));
    assert_status(clt_dataset_fetch(d, &(clt_sample){.index = 1}, (void *[]){x}), CLT_E_FORMAT);
    assert_detail("ends at byte 140");
    clt_dataset_destroy(d);
    (void)state;
}

static void streaming_survives_failing_memory(void **state) {
    const char *x = good_x(), *y = good_y();
    clt_status status = CLT_E_NO_MEMORY;
    for (long at = 0; status != CLT_OK; at++) {
        clt_dataset *d = NULL;
        float values[3];
        int32_t label;
        watch_begin(at);
        status = clt_dataset_npy_stream(&d, x, y);
        if (status == CLT_OK) status = clt_dataset_standardize(d, d);
        if (status == CLT_OK) status = clt_dataset_fetch(d, &(clt_sample){.index = 1}, (void *[]){values, &label});
        clt_dataset_destroy(d);
        watch_end();
        if (status != CLT_OK) assert_int_equal(status, CLT_E_NO_MEMORY);
    }
    (void)state;
}

static void not_finite_values_stay(void **state) {
    const double values[] = {NAN, -INFINITY};
    clt_dataset *d = read_npy(
        write_npy("x.npy", 1, "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }", values, 16),
        good_y());
    const float *x = clt_dataset_array(d, 0).data;
    assert_true(isnan(x[0]) && isinf(x[1]) && x[1] < 0);
    assert_int_equal(clt_dataset_shape(d, 0).rank, 1);
    assert_int_equal(clt_dataset_shape(d, 0).dims[0], 1);
    clt_dataset_destroy(d);
    (void)state;
}

static void floats_are_targets(void **state) {
    static const char *const dicts[] = {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }",
                                        "{\"shape\":(2,3,),\"descr\":\"<f4\",\"fortran_order\":False}"};
    for (int i = 0; i < 2; i++) {
        clt_dataset *d = read_npy(good_x(), write_npy("t.npy", 1, dicts[i], x_values, i ? 24 : 8));
        assert_int_equal(clt_dataset_dtype(d, 1), CLT_F32);
        assert_int_equal(clt_dataset_shape(d, 1).rank, 1);
        assert_int_equal(clt_dataset_shape(d, 1).dims[0], i ? 3 : 1);
        assert_int_equal(clt_dataset_classes(d), 0);
        assert_memory_equal(clt_dataset_array(d, 1).data, x_values, i ? 24 : 8);
        clt_dataset_destroy(d);
    }
    (void)state;
}

static void refuse_pair(const char *x, const char *y, clt_status status, const char *words) {
    clt_dataset *d;
    watch_begin(-1);
    assert_status(clt_dataset_npy(&d, x, y), status);
    assert_true(watch_end() < 1 << 20);
    assert_detail("npy");
    assert_detail(words);
}

static void refuse(const char *dict, clt_status status, const char *words) {
    refuse_pair(write_npy("x.npy", 1, dict, x_values, sizeof x_values), good_y(), status, words);
}

#define HEAD "{'descr': '<f4', 'fortran_order': False, 'shape': "

static void refuses_malformed_headers(void **state) {
    static const char *const dicts[] = {
        "",
        "{",
        "}",
        "{}",
        "[]",
        HEAD,
        HEAD "(2, 3)",
        HEAD "(2, 3}",
        HEAD "(2 3)}",
        HEAD "(-2, 3)}",
        HEAD "(2.0, 3)}",
        HEAD "(2, 3)} x",
        HEAD "(2, x)}",
        HEAD "(6)}",
        HEAD "(,)}",
        HEAD "2}",
        HEAD "(2, 3), 'a': 1}",
        HEAD "(2, 3), 'shape': (2, 3)}",
        HEAD "(99999999999999999999, 3)}",
        "{'descr': '<f4', 'shape': (2, 3)}",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 3)}",
        "{'descr': <f4, 'fortran_order': False, 'shape': (2, 3)}",
        "{'descr' '<f4', 'fortran_order': False, 'shape': (2, 3)}",
        "{'descr': '<f4' 'fortran_order': False, 'shape': (2, 3)}",
        "{'descr': '<f4, 'fortran_order': False, 'shape': (2, 3)}",
        "{'descr': 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'fortran_order': False, 'shape': (2, 3)}",
    };
    for (size_t i = 0; i < sizeof dicts / sizeof dicts[0]; i++)
        refuse(dicts[i], CLT_E_FORMAT, "x.npy: its NPY header is malformed");
    (void)state;
}

static void refuses_other_arrays(void **state) {
    refuse("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}", CLT_E_UNSUPPORTED,
           "in Fortran order");
    refuse("{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3)}", CLT_E_UNSUPPORTED,
           "its type is >f4; <f2, <f4, <f8, |b1, |i1, |u1, <i2, <u2, <i4, <u4 and <i8 are read: save numpy.asarray(x, '<f4'), or '<i8' of labels");
    refuse("{'descr': '<c8', 'fortran_order': False, 'shape': (2, 3)}", CLT_E_UNSUPPORTED,
           "its type is <c8");
    refuse("{'descr': '|O', 'fortran_order': False, 'shape': (2, 3)}", CLT_E_UNSUPPORTED,
           "its type is |O");
    refuse("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}", CLT_E_UNSUPPORTED,
           "records");
    refuse(HEAD "()}", CLT_E_SHAPE, "a scalar");
    refuse(HEAD "(2, 0)}", CLT_E_SHAPE, "a dimension is 0");
    refuse(HEAD "(2, 1, 1, 1, 1, 1, 1, 1, 1)}", CLT_E_SHAPE, "more than 8 dimensions");
    refuse(HEAD "(3, 2)}", CLT_E_SHAPE, "has 3 samples, but");
    refuse(HEAD "(2, 4)}", CLT_E_FORMAT, "tells of 32 bytes, but 24 follow");
    refuse(HEAD "(2, 2)}", CLT_E_FORMAT, "more bytes follow");
    (void)state;
}

/* 2^31 x 2^31, products that do not fit in 64 bits, 32 GiB: refused before memory is taken. */
static void refuses_hostile_sizes(void **state) {
    refuse(HEAD "(2, 2147483648, 2147483648)}", CLT_E_FORMAT, "x.npy");
    refuse(HEAD "(2, 4294967296, 4294967296)}", CLT_E_FORMAT, "dimensions are too large");
    refuse(HEAD "(2, 4294967296)}", CLT_E_FORMAT, "its header tells of 34359738368 bytes");
    refuse(HEAD "(2, 4611686018427387903)}", CLT_E_FORMAT, "x.npy");
    unsigned char start[80] = "\x93NUMPY\2\0\xff\xff\xff\xff";
    refuse_pair(write_bytes("x.npy", start, sizeof start), good_y(), CLT_E_FORMAT,
                "an NPY header of 4294967295 bytes");
    start[8] = 0x00, start[9] = 0x10, start[10] = start[11] = 0;
    refuse_pair(write_bytes("x.npy", start, sizeof start), good_y(), CLT_E_FORMAT, "inside its header");
    start[8] = 8, start[9] = 0;
    refuse_pair(write_bytes("x.npy", start, sizeof start), good_y(), CLT_E_FORMAT, "a zero byte");
    start[6] = 4;
    refuse_pair(write_bytes("x.npy", start, sizeof start), good_y(), CLT_E_UNSUPPORTED, "NPY version 4");
    refuse_pair(write_bytes("x.npy", "PK\3\4 this is a zip", 19), good_y(), CLT_E_FORMAT, "not an NPY file");
    refuse_pair(write_bytes("x.npy", "", 0), good_y(), CLT_E_FORMAT, "ends at byte 0");
    refuse_pair(support_path("absent.npy"), good_y(), CLT_E_IO, "absent.npy");
    clt_dataset *d;
    assert_status(clt_dataset_npy(&d, good_x(), support_folder()), CLT_E_IO);
    assert_status(clt_dataset_npy(&d, NULL, good_y()), CLT_E_INVALID);
    assert_status(clt_dataset_npy(NULL, good_x(), good_y()), CLT_E_INVALID);
    (void)state;
}

static void checks_labels(void **state) {
    static const int64_t bad[] = {-1, 2147483647, (int64_t)1 << 32, INT64_MIN};
    for (int i = 0; i < 4; i++) {
        const int64_t labels[] = {1, bad[i]};
        refuse_pair(
            good_x(),
            write_npy("y.npy", 1, "{'descr': '<i8', 'fortran_order': False, 'shape': (2,)}", labels, 16),
            CLT_E_RANGE, "y.npy: item 1 is out of range");
    }
    refuse_pair(good_x(),
                write_npy("y.npy", 1, "{'descr': '<i4', 'fortran_order': False, 'shape': (2,)}",
                          (int32_t[]){-5, 1}, 8),
                CLT_E_RANGE, "y.npy: item 0 is out of range");
    refuse_pair(good_x(),
                write_npy("y.npy", 1, "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 1)}",
                          (int32_t[]){0, 1}, 8),
                CLT_E_SHAPE, "y.npy: 2 dimensions");
    clt_dataset *d = read_npy(
        good_x(),
        write_npy("y.npy", 1, "{'descr': '|u1', 'fortran_order': False, 'shape': (2,)}", "\x07\xff", 2));
    assert_int_equal(clt_dataset_classes(d), 256);
    clt_dataset_destroy(d);
    (void)state;
}

static void refuses_values_too_large_for_f32(void **state) {
    static const char dict[] = "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }";
    static const double large[] = {1e300, -3.5e38};
    for (int i = 0; i < 2; i++) {
        const double values[] = {FLT_MAX, large[i]};
        refuse_pair(write_npy("x.npy", 1, dict, values, 16), good_y(), CLT_E_RANGE, "x.npy: item 1 is out of range");
        refuse_pair(good_x(), write_npy("t.npy", 1, dict, values, 16), CLT_E_RANGE, "t.npy: item 1 is out of range");
    }
    (void)state;
}

static void refuses_every_truncation(void **state) {
    unsigned char bytes[4096];
    FILE *file = fopen(good_x(), "rb");
    assert_non_null(file);
    size_t length = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    const char *y = good_y();
    for (size_t cut = 0; cut < length; cut++) {
        clt_dataset *d;
        assert_status(clt_dataset_npy(&d, write_bytes("cut.npy", bytes, cut), y), CLT_E_FORMAT);
    }
    (void)state;
}

/* Whichever allocation fails: an error, and nothing is left behind. */
static void survives_failing_memory(void **state) {
    const char *x = good_x(), *y = good_y();
    clt_status status = CLT_E_NO_MEMORY;
    long at = 0;
    for (; status != CLT_OK; at++) {
        clt_dataset *d = NULL;
        watch_begin(at);
        status = clt_dataset_npy(&d, x, y);
        if (status != CLT_OK) assert_int_equal(status, CLT_E_NO_MEMORY);
        clt_dataset_destroy(d);
        watch_end();
    }
    assert_true(at > 4);
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_arrays_of_every_version), cmocka_unit_test(converts_every_type),
        cmocka_unit_test(not_finite_values_stay),        cmocka_unit_test(floats_are_targets),
        cmocka_unit_test(refuses_malformed_headers),     cmocka_unit_test(refuses_other_arrays),
        cmocka_unit_test(refuses_hostile_sizes),         cmocka_unit_test(checks_labels),
        cmocka_unit_test(refuses_values_too_large_for_f32),
        cmocka_unit_test(streams_samples_from_their_files),
        cmocka_unit_test(refuses_what_cannot_be_streamed),
        cmocka_unit_test(streaming_survives_failing_memory),
        cmocka_unit_test(refuses_every_truncation),      cmocka_unit_test(survives_failing_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
