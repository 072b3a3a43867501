#include "tests/data/files.h"

#include <sys/stat.h>

#include "runtime/base/base.h"
#include "runtime/base/source.h"

enum { LENGTH = 300000 };

static unsigned char *some_bytes(void) {
    unsigned char *bytes = malloc(LENGTH);
    assert_non_null(bytes);
    uint32_t x = 1;
    for (int i = 0; i < LENGTH; i++) bytes[i] = (unsigned char)((x = x * 1664525 + 1013904223) >> 24);
    return bytes;
}

static void assert_reads(clt_source *source, const unsigned char *wanted, size_t length) {
    unsigned char *got = malloc(length + 1);
    assert_non_null(got);
    size_t n, done = 0;
    for (size_t piece = 1; done < length; piece = piece * 3 % 50000 + 1) {
        assert_ok(clt_source_read(source, got + done, CLT_MIN(piece, length - done), &n));
        assert_true(n > 0);
        done += n;
    }
    assert_memory_equal(got, wanted, length);
    assert_ok(clt_source_expect_end(source));
    assert_ok(clt_source_read(source, got, 1, &n));
    assert_int_equal(n, 0);
    free(got);
    clt_source_close(source);
}

static void reads_plain_and_gzipped(void **state) {
    unsigned char *bytes = some_bytes();
    clt_source *source;
    uint64_t left;
    assert_ok(clt_source_open(&source, write_bytes("plain", bytes, LENGTH)));
    assert_true(clt_source_left(source, &left));
    assert_int_equal(left, LENGTH);
    assert_reads(source, bytes, LENGTH);
    assert_ok(clt_source_open(&source, write_gz("packed", bytes, LENGTH)));
    assert_false(clt_source_left(source, &left));
    assert_reads(source, bytes, LENGTH);
    assert_ok(clt_source_open_memory(&source, "memory", bytes, LENGTH));
    assert_reads(source, bytes, LENGTH);
    free(bytes);
    (void)state;
}

static size_t slurp(const char *path, unsigned char **bytes) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    *bytes = malloc(LENGTH * 3);
    assert_non_null(*bytes);
    size_t length = fread(*bytes, 1, LENGTH * 3, file);
    fclose(file);
    return length;
}

static void reads_members_one_after_the_other(void **state) {
    unsigned char *bytes = some_bytes(), *packed;
    size_t first = slurp(write_gz("a.gz", bytes, LENGTH / 2), &packed);
    unsigned char *second;
    size_t rest = slurp(write_gz("b.gz", bytes + LENGTH / 2, LENGTH / 2), &second);
    memcpy(packed + first, second, rest);
    clt_source *source;
    assert_ok(clt_source_open(&source, write_bytes("both.gz", packed, first + rest)));
    assert_reads(source, bytes, LENGTH);
    free(second);
    free(packed);
    free(bytes);
    (void)state;
}

static clt_status read_all(const unsigned char *bytes, size_t length) {
    clt_source *source;
    clt_status status = clt_source_open_memory(&source, "memory", bytes, length);
    if (status < 0) return status;
    char *out = malloc(LENGTH + 1);
    assert_non_null(out);
    size_t got;
    status = clt_source_read(source, out, LENGTH + 1, &got);
    free(out);
    clt_source_close(source);
    return status;
}

/* Every cut of a gzip stream is an error, not a shorter file; so is a wrong checksum. */
static void refuses_damaged_gzip(void **state) {
    unsigned char *bytes = some_bytes(), *packed;
    size_t length = slurp(write_gz("whole.gz", bytes, 1000), &packed);
    assert_ok(read_all(packed, length));
    for (size_t cut = 2; cut < length; cut++) {
        assert_status(read_all(packed, cut), CLT_E_FORMAT);
        assert_detail("ends too early");
    }
    packed[length - 8] ^= 1; /* the CRC */
    assert_status(read_all(packed, length), CLT_E_FORMAT);
    assert_detail("damaged");
    packed[length - 8] ^= 1;
    packed[length - 1] ^= 1; /* the length */
    assert_status(read_all(packed, length), CLT_E_FORMAT);
    packed[length - 1] ^= 1;
    packed[length] = 'x';
    assert_status(read_all(packed, length + 1), CLT_E_FORMAT);
    assert_detail("other bytes follow");
    packed[length] = 0x1f;
    assert_status(read_all(packed, length + 1), CLT_E_FORMAT);
    free(packed);
    free(bytes);
    (void)state;
}

static void limits_what_a_bomb_expands_to(void **state) {
    clt_source *source;
    const char *path = write_gz_zeros("bomb.gz", NULL, 0, 1 << 24);
    assert_ok(clt_source_open(&source, path));
    clt_source_limit(source, 1 << 20);
    char block[4096];
    size_t got = 1, all = 0;
    clt_status status = CLT_OK;
    while (got > 0 && (status = clt_source_read(source, block, sizeof block, &got)) == CLT_OK)
        all += got;
    assert_int_equal(status, CLT_E_FORMAT);
    assert_int_equal(all, 1 << 20);
    assert_detail("expands to more than the 1048576 bytes");
    clt_source_close(source);
    (void)state;
}

static void refuses_what_is_no_file(void **state) {
    clt_source *source;
    assert_status(clt_source_open(&source, support_path("absent")), CLT_E_IO);
    assert_detail("absent");
    assert_status(clt_source_open(&source, support_folder()), CLT_E_IO);
    assert_detail("not a regular file");
    assert_status(clt_source_open(&source, NULL), CLT_E_INVALID);
    assert_status(clt_source_open(&source, ""), CLT_E_IO);
    clt_source_close(NULL);
    (void)state;
}

static size_t copy_below_100(const unsigned char *from, size_t count, void *to) {
    for (size_t i = 0; i < count; i++) {
        if (from[i] >= 100) return i;
        ((unsigned char *)to)[i] = from[i];
    }
    return count;
}

static void arrays_say_which_item_is_out_of_range(void **state) {
    unsigned char bytes[20000];
    memset(bytes, 5, sizeof bytes);
    bytes[12345] = 100;
    clt_source *source;
    void *array;
    watch_begin(-1);
    assert_ok(clt_source_open(&source, write_bytes("items", bytes, sizeof bytes)));
    assert_status(clt_source_read_array(source, sizeof bytes, 1, 1, copy_below_100, &array),
                  CLT_E_RANGE);
    assert_detail("item 12345 is out of range");
    clt_source_close(source);
    watch_end();
    (void)state;
}

/* Claims are held against the size of the file before memory is taken. */
static void arrays_do_not_trust_claims(void **state) {
    static const uint64_t claims[] = {81, (uint64_t)32 << 30, (uint64_t)1 << 62, UINT64_MAX};
    const char *plain = write_bytes("80", (char[80]){0}, 80);
    const char *packed = write_gz("80.gz", (char[80]){0}, 80);
    for (int i = 0; i < 8; i++) {
        clt_source *source;
        void *array;
        watch_begin(-1);
        assert_ok(clt_source_open(&source, i % 2 ? packed : plain));
        assert_status(clt_source_read_array(source, claims[i / 2], 8, 8, copy_below_100, &array),
                      CLT_E_FORMAT);
        clt_source_close(source);
        assert_true(watch_end() < 1 << 20);
    }
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_plain_and_gzipped),
        cmocka_unit_test(reads_members_one_after_the_other),
        cmocka_unit_test(refuses_damaged_gzip),
        cmocka_unit_test(limits_what_a_bomb_expands_to),
        cmocka_unit_test(refuses_what_is_no_file),
        cmocka_unit_test(arrays_say_which_item_is_out_of_range),
        cmocka_unit_test(arrays_do_not_trust_claims),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
