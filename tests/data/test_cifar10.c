#include "tests/data/files.h"

#include <cltrain/data.h>

enum { RECORD = 3073, RECORDS = 5 };

static unsigned char records[RECORDS * RECORD];

static int fill(void **state) {
    uint32_t x = 1;
    for (size_t i = 0; i < sizeof records; i++)
        records[i] = (unsigned char)((x = x * 1664525 + 1013904223) >> 24);
    for (int r = 0; r < RECORDS; r++) records[r * RECORD] = (unsigned char)(9 - r);
    (void)state;
    return 0;
}

static void reads_files_one_after_the_other(void **state) {
    const char *paths[] = {write_bytes("a.bin", records, 2 * RECORD),
                           write_bytes("b.bin", records + 2 * RECORD, 3 * RECORD)};
    clt_dataset *d = NULL;
    watch_begin(-1);
    assert_ok(clt_dataset_cifar10(&d, paths, 2));
    assert_int_equal(clt_dataset_samples(d), RECORDS);
    assert_int_equal(clt_dataset_classes(d), 10);
    clt_array x = clt_dataset_array(d, 0), y = clt_dataset_array(d, 1);
    assert_int_equal(x.shape.rank, 4);
    assert_memory_equal(x.shape.dims, ((int64_t[]){RECORDS, 3, 32, 32}), 32);
    for (int r = 0; r < RECORDS; r++) {
        assert_int_equal(((const int32_t *)y.data)[r], 9 - r);
        for (int i = 0; i < 3072; i++)
            assert_true(((const float *)x.data)[r * 3072 + i] ==
                        (float)records[r * RECORD + 1 + i] / 255.0f);
    }
    clt_dataset_destroy(d);
    watch_end();
    (void)state;
}

static void refuse(const char *path, clt_status status, const char *words) {
    const char *paths[] = {write_bytes("good.bin", records, RECORD), path};
    clt_dataset *d;
    watch_begin(-1);
    assert_status(clt_dataset_cifar10(&d, paths, 2), status);
    watch_end();
    assert_detail(words);
}

static void refuses_bad_files(void **state) {
    refuse(write_bytes("bad.bin", records, RECORD - 1), CLT_E_FORMAT,
           "bad.bin: 3072 bytes are not a whole number of records of 3073");
    refuse(write_bytes("bad.bin", records, 2 * RECORD + 7), CLT_E_FORMAT, "bad.bin: 6153 bytes");
    refuse(write_bytes("bad.bin", records, 0), CLT_E_FORMAT, "bad.bin: 0 bytes");
    refuse(write_gz("bad.gz", records, RECORD + 9), CLT_E_FORMAT, "bad.gz: record 1 has 9 bytes");
    refuse(write_gz("bad.gz", records, 0), CLT_E_FORMAT, "bad.gz: record 0 has 0 bytes");
    records[RECORD] = 10;
    refuse(write_bytes("bad.bin", records, 2 * RECORD), CLT_E_RANGE,
           "bad.bin: record 1: label 10, not 0 to 9");
    fill(NULL);
    refuse(support_path("absent.bin"), CLT_E_IO, "absent.bin");
    refuse(support_folder(), CLT_E_IO, "not a regular file");
    refuse(NULL, CLT_E_INVALID, "NULL");
    clt_dataset *d;
    assert_status(clt_dataset_cifar10(&d, NULL, 1), CLT_E_INVALID);
    assert_status(clt_dataset_cifar10(&d, (const char *[]){"x"}, 0), CLT_E_INVALID);
    (void)state;
}

/* As many bytes more a record: the superclass, which is left out. */
static void reads_the_hundred_classes(void **state) {
    static unsigned char hundred[3 * (RECORD + 1)];
    clt_dataset *d = NULL;
    for (int r = 0; r < 3; r++) {
        hundred[r * (RECORD + 1)] = 200;
        memcpy(hundred + r * (RECORD + 1) + 1, records + r * RECORD, RECORD);
        hundred[r * (RECORD + 1) + 1] = (unsigned char)(99 - 7 * r);
    }
    watch_begin(-1);
    assert_ok(clt_dataset_cifar100(&d, write_bytes("train.bin", hundred, sizeof hundred)));
    assert_int_equal(clt_dataset_samples(d), 3);
    assert_int_equal(clt_dataset_classes(d), 100);
    for (int r = 0; r < 3; r++) {
        assert_int_equal(((const int32_t *)clt_dataset_array(d, 1).data)[r], 99 - 7 * r);
        for (int i = 0; i < 3072; i++) assert_true(((const float *)clt_dataset_array(d, 0).data)[r * 3072 + i] == (float)records[r * RECORD + 1 + i] / 255.0f);
    }
    clt_dataset_destroy(d);
    hundred[RECORD + 1 + 1] = 100;
    assert_status(clt_dataset_cifar100(&d, write_bytes("bad.bin", hundred, sizeof hundred)), CLT_E_RANGE);
    assert_detail("bad.bin: record 1: label 100, not 0 to 99");
    assert_status(clt_dataset_cifar100(&d, write_bytes("bad.bin", hundred, RECORD)), CLT_E_FORMAT);
    assert_detail("bad.bin: 3073 bytes are not a whole number of records of 3074");
    assert_status(clt_dataset_cifar100(&d, NULL), CLT_E_INVALID);
    watch_end();
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_files_one_after_the_other),
        cmocka_unit_test(refuses_bad_files),
        cmocka_unit_test(reads_the_hundred_classes),
    };
    return cmocka_run_group_tests(tests, fill, NULL);
}
