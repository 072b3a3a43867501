#include "tests/data/files.h"

#include <cltrain/data.h>

enum { N = 3, H = 2, W = 4, PIXELS = N * H * W };

typedef struct pair {
    unsigned char images[16 + PIXELS + 1];
    unsigned char labels[8 + N + 1];
} pair;

static pair good_pair(void) {
    pair p = {0};
    const uint32_t images[] = {0x803, N, H, W}, labels[] = {0x801, N};
    for (int i = 0; i < 4; i++) big_endian(p.images + 4 * i, images[i]);
    for (int i = 0; i < 2; i++) big_endian(p.labels + 4 * i, labels[i]);
    for (int i = 0; i < PIXELS; i++) p.images[16 + i] = (unsigned char)(i * 11);
    memcpy(p.labels + 8, "\3\0\7", N);
    return p;
}

static void assert_good(const char *images, const char *labels) {
    clt_dataset *d = NULL;
    watch_begin(-1);
    assert_ok(clt_dataset_idx(&d, images, labels));
    assert_int_equal(clt_dataset_samples(d), N);
    assert_int_equal(clt_dataset_classes(d), 8);
    clt_shape shape = clt_dataset_shape(d, 0);
    assert_int_equal(shape.rank, 3);
    assert_int_equal(shape.dims[0], 1);
    assert_int_equal(shape.dims[1], H);
    assert_int_equal(shape.dims[2], W);
    const float *x = clt_dataset_array(d, 0).data;
    for (int i = 0; i < PIXELS; i++) assert_true(x[i] == (float)(i * 11) / 255.0f);
    assert_memory_equal(clt_dataset_array(d, 1).data, ((int32_t[]){3, 0, 7}), 12);
    clt_dataset_destroy(d);
    watch_end();
}

static void reads_images_and_labels(void **state) {
    pair p = good_pair();
    const char *images = write_bytes("images", p.images, 16 + PIXELS);
    const char *labels = write_bytes("labels", p.labels, 8 + N);
    const char *images_gz = write_gz("images.gz", p.images, 16 + PIXELS);
    const char *labels_gz = write_gz("labels.gz", p.labels, 8 + N);
    assert_good(images, labels);
    assert_good(images_gz, labels_gz);
    assert_good(images_gz, labels);
    (void)state;
}

/* What stays in its file has the samples of what is read, and is refused where that is. */
static void streams_images(void **state) {
    pair p = good_pair();
    const char *images = write_bytes("images", p.images, 16 + PIXELS), *labels = write_bytes("labels", p.labels, 8 + N);
    clt_dataset *read, *streamed;
    assert_ok(clt_dataset_idx(&read, images, labels));
    assert_ok(clt_dataset_idx_stream(&streamed, images, labels));
    assert_int_equal(clt_dataset_samples(streamed), N);
    assert_int_equal(clt_dataset_classes(streamed), 8);
    assert_null(clt_dataset_array(streamed, 0).data);
    for (int64_t i = 0; i < N; i++) {
        float x[2][H * W];
        int32_t y[2];
        assert_ok(clt_dataset_fetch(read, &(clt_sample){.index = i}, (void *[]){x[0], &y[0]}));
        assert_ok(clt_dataset_fetch(streamed, &(clt_sample){.index = i}, (void *[]){x[1], &y[1]}));
        assert_memory_equal(x[0], x[1], sizeof x[0]);
        assert_int_equal(y[0], y[1]);
    }
    clt_dataset_destroy(read);
    clt_dataset_destroy(streamed);
    for (size_t cut = 0; cut < 16 + PIXELS; cut++)
        assert_status(clt_dataset_idx_stream(&streamed, write_bytes("cut", p.images, cut), write_bytes("labels", p.labels, 8 + N)), CLT_E_FORMAT);
    images = write_bytes("images", p.images, 16 + PIXELS);
    labels = write_bytes("labels", p.labels, 8 + N);
    assert_status(clt_dataset_idx_stream(&streamed, write_bytes("long", p.images, 16 + PIXELS + 1), labels), CLT_E_FORMAT);
    assert_detail("25 bytes of data, where the header tells of 24");
    assert_status(clt_dataset_idx_stream(&streamed, images, write_bytes("cut", p.labels, 8 + N - 1)), CLT_E_FORMAT);
    assert_status(clt_dataset_idx_stream(&streamed, write_gz("images.gz", p.images, 16 + PIXELS), labels), CLT_E_UNSUPPORTED);
    p.labels[7] = N - 1;
    assert_status(clt_dataset_idx_stream(&streamed, images, write_bytes("fewer", p.labels, 8 + N - 1)), CLT_E_FORMAT);
    assert_detail("has 3 images, but");
    memset(p.images + 4, 0xff, 12); /* more than there are numbers for */
    assert_status(clt_dataset_idx_stream(&streamed, write_bytes("huge", p.images, 16 + PIXELS), labels), CLT_E_FORMAT);
    (void)state;
}

/* The pair with other lengths, plain and gzipped, is refused with those words. */
static void refuse(const pair *p, size_t images_bytes, size_t labels_bytes, const char *words) {
    for (int packed = 0; packed < 2; packed++) {
        clt_dataset *d;
        const char *images = (packed ? write_gz : write_bytes)("bad-images", p->images, images_bytes);
        const char *labels = (packed ? write_gz : write_bytes)("bad-labels", p->labels, labels_bytes);
        watch_begin(-1);
        assert_status(clt_dataset_idx(&d, images, labels), CLT_E_FORMAT);
        assert_true(watch_end() < 1 << 20);
        assert_detail("bad-");
        assert_detail(words);
    }
}

static void refuses_every_truncation(void **state) {
    pair p = good_pair();
    for (size_t cut = 0; cut < 16 + PIXELS; cut++) refuse(&p, cut, 8 + N, "bad-images");
    for (size_t cut = 0; cut < 8 + N; cut++) refuse(&p, 16 + PIXELS, cut, "bad-labels");
    refuse(&p, 15, 8 + N, "ends at byte 15, inside its header");
    refuse(&p, 16 + PIXELS + 1, 8 + N, "more bytes follow");
    refuse(&p, 16 + PIXELS, 8 + N + 1, "more bytes follow");
    (void)state;
}

static void says_how_many_bytes_are_missing(void **state) {
    pair p = good_pair();
    clt_dataset *d;
    const char *images = write_bytes("short", p.images, 16 + PIXELS - 5);
    assert_status(clt_dataset_idx(&d, images, write_bytes("labels", p.labels, 8 + N)), CLT_E_FORMAT);
    assert_detail("short: its header tells of 24 bytes, but 19 follow it");
    (void)state;
}

static void refuses_wrong_headers(void **state) {
    pair p = good_pair();
    big_endian(p.images, 0x801);
    refuse(&p, 16 + PIXELS, 8 + N, "begins with 0x00000801, not 0x00000803");
    p = good_pair();
    big_endian(p.labels, 0xd01);
    refuse(&p, 16 + PIXELS, 8 + N, "begins with 0x00000d01, not 0x00000801");
    p = good_pair();
    big_endian(p.labels + 4, N - 1);
    refuse(&p, 16 + PIXELS, 8 + N - 1, "has 3 images, but");
    p = good_pair();
    big_endian(p.images + 12, 0);
    refuse(&p, 16 + PIXELS, 8 + N, "dimension 2 is 0");
    p = good_pair();
    big_endian(p.images + 4, 0);
    big_endian(p.labels + 4, 0);
    refuse(&p, 16, 8, "dimension 0 is 0");
    (void)state;
}

/* Small files that claim 32 GiB, 2^62 bytes, 2^93 bytes: refused before memory is taken. */
static void refuses_hostile_sizes(void **state) {
    static const uint32_t dims[][3] = {{N, 1u << 16, 1u << 18},
                                       {N, 1u << 31, 1u << 31},
                                       {0xffffffff, 0xffffffff, 0xffffffff},
                                       {1u << 31, 1u << 31, 1},
                                       {N, 1u << 31, 1}};
    for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++) {
        pair p = good_pair();
        for (int k = 0; k < 3; k++) big_endian(p.images + 4 + 4 * k, dims[i][k]);
        big_endian(p.labels + 4, dims[i][0]);
        refuse(&p, 16 + PIXELS, 8 + N, "its header tells of");
    }
    (void)state;
}

/* A stream that could expand to what its header claims, but does not, and one that expands to more. */
static void memory_grows_with_what_arrives(void **state) {
    pair p = good_pair();
    const char *labels = write_bytes("labels", p.labels, 8 + N);
    big_endian(p.images + 8, 1u << 12);
    big_endian(p.images + 12, 1u << 12);
    const char *images = write_gz_zeros("short.gz", p.images, 16, 1 << 20);
    clt_dataset *d;
    watch_begin(-1);
    /* 48 MiB are claimed; 1 MiB of zeros is about 1 KiB of file, which could not be so many. */
    assert_status(clt_dataset_idx(&d, images, labels), CLT_E_FORMAT);
    assert_detail("cannot expand");
    assert_true(watch_end() < 1 << 20);
    images = write_gz_zeros("half.gz", p.images, 16, 25 << 20);
    char padding[40000];
    uint32_t x = 1;
    for (size_t i = 0; i < sizeof padding; i++)
        padding[i] = (char)((x = x * 1664525 + 1013904223) >> 24);
    FILE *file = fopen(images, "ab"); /* a second member that makes the file large enough */
    assert_non_null(file);
    const char *more = write_gz("more.gz", padding, sizeof padding);
    FILE *from = fopen(more, "rb");
    assert_non_null(from);
    for (int c; (c = fgetc(from)) != EOF;) assert_int_equal(fputc(c, file), c);
    fclose(from);
    fclose(file);
    watch_begin(-1);
    assert_status(clt_dataset_idx(&d, images, labels), CLT_E_FORMAT);
    assert_detail("half.gz: ends at byte");
    /* 25 MiB arrived, as f32 100 MiB; doubling may reach 128 MiB, the claim would take 192 MiB. */
    assert_true(watch_end() <= (size_t)128 << 20);
    big_endian(p.images + 8, H);
    big_endian(p.images + 12, W);
    images = write_gz_zeros("bomb.gz", p.images, 16, 64 << 20);
    watch_begin(-1);
    assert_status(clt_dataset_idx(&d, images, labels), CLT_E_FORMAT);
    assert_detail("more bytes follow");
    assert_true(watch_end() < 1 << 20);
    (void)state;
}

static void refuses_what_is_no_file(void **state) {
    pair p = good_pair();
    clt_dataset *d;
    const char *images = write_bytes("images", p.images, 16 + PIXELS);
    assert_status(clt_dataset_idx(&d, images, support_path("absent")), CLT_E_IO);
    assert_detail("absent");
    assert_status(clt_dataset_idx(&d, support_folder(), images), CLT_E_IO);
    assert_detail("not a regular file");
    assert_status(clt_dataset_idx(&d, NULL, images), CLT_E_INVALID);
    assert_status(clt_dataset_idx(NULL, images, images), CLT_E_INVALID);
    (void)state;
}

/* Whichever allocation fails: an error, and nothing is left behind. */
static void survives_failing_memory(void **state) {
    pair p = good_pair();
    const char *images = write_gz("images.gz", p.images, 16 + PIXELS);
    const char *labels = write_bytes("labels", p.labels, 8 + N);
    clt_status status = CLT_E_NO_MEMORY;
    long at = 0;
    for (; status != CLT_OK; at++) {
        clt_dataset *d = NULL;
        watch_begin(at);
        status = clt_dataset_idx(&d, images, labels);
        if (status != CLT_OK) assert_int_equal(status, CLT_E_NO_MEMORY);
        clt_dataset_destroy(d);
        watch_end();
    }
    assert_true(at > 4);
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_images_and_labels),
        cmocka_unit_test(streams_images),
        cmocka_unit_test(refuses_every_truncation),
        cmocka_unit_test(says_how_many_bytes_are_missing),
        cmocka_unit_test(refuses_wrong_headers),
        cmocka_unit_test(refuses_hostile_sizes),
        cmocka_unit_test(memory_grows_with_what_arrives),
        cmocka_unit_test(refuses_what_is_no_file),
        cmocka_unit_test(survives_failing_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
