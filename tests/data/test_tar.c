/* tar archives of images, as their headers tell of them. Whether the pixels are those of the same files in a folder is compare_images.py's matter. */
#include "tests/data/files.h"

#include <unistd.h>

#include <cltrain/data.h>

#include "runtime/data/images/tar_index.h"

/* An archive in memory. */
static unsigned char archive[1 << 16];
static size_t used;

static void begin(void) {
    memset(archive, 0, sizeof archive);
    used = 0;
}

static void put_sum(unsigned char *header) {
    unsigned sum = 0;
    memset(header + 148, ' ', 8);
    for (int i = 0; i < 512; i++) sum += header[i];
    snprintf((char *)header + 148, 8, "%06o", sum);
}

static unsigned char *put(const char *name, char type, const void *bytes, size_t length) {
    unsigned char *header = archive + used;
    snprintf((char *)header, 100, "%s", name);
    snprintf((char *)header + 124, 12, "%011zo", length);
    header[156] = (unsigned char)type;
    memcpy(header + 257, "ustar\00000", 8);
    put_sum(header);
    if (length) memcpy(header + 512, bytes, length);
    used += 512 + (length + 511) / 512 * 512;
    return header;
}

static void put_sample(const char *key, const char *label) {
    char name[100];
    snprintf(name, sizeof name, "%s.jpg", key), put(name, '0', "picture", 7);
    snprintf(name, sizeof name, "%s.cls", key), put(name, '0', label, strlen(label));
}

/* With the two blocks of zeros at its end. */
static const char *end(void) {
    used += 1024;
    return write_bytes("a.tar", archive, used);
}

static clt_status read_one(clt_tar_index *x, const char *path, bool labelled) {
    *x = (clt_tar_index){0};
    clt_status status = clt_tar_read(x, &path, 1, labelled);
    if (status < 0) clt_tar_free(x);
    return status;
}

static void members_of_one_name_are_a_sample(void **state) {
    clt_tar_index x;
    begin();
    put("data", '5', "", 0); /* a folder */
    put("data/README", '0', "no sample", 9);
    put_sample("data/000", "3\n");
    put("data/001.json", '0', "{}", 2), put("data/001.cls", '0', "12", 2), put("data/001.seg.png", '0', "mask", 4), put("data/001.PNG", '0', "image", 5);
    put("data/002.txt", '0', "of no image", 11);
    put("data/a.b/003.cls", '0', "0", 1), put("data/a.b/003.jpeg", '0', "x", 1);
    assert_ok(read_one(&x, end(), true));
    assert_int_equal(x.n, 3);
    assert_int_equal(x.ignored, 1);
    assert_int_equal(x.classes, 13);
    assert_int_equal(x.absent, 10);
    static const struct {
        const char *name;
        int32_t label;
        uint32_t bytes;
    } wanted[] = {{"data/000", 3, 7}, {"data/001", 12, 5}, {"data/a.b/003", 0, 1}};
    for (int i = 0; i < 3; i++) {
        assert_string_equal(x.names.data + x.samples[i].name, wanted[i].name);
        assert_int_equal(x.samples[i].label, wanted[i].label);
        assert_int_equal(x.samples[i].bytes, wanted[i].bytes);
    }
    assert_memory_equal(archive + x.samples[1].offset, "image", 5);
    clt_tar_free(&x);
    (void)state;
}

static void names_may_be_long(void **state) {
    char name[301], pax[400];
    clt_tar_index x;
    memset(name, 'n', 300);
    strcpy(name + 296, ".jpg");
    begin();
    put("././@LongLink", 'L', name, 301), put("cut short", '0', "one", 3);
    int length = snprintf(pax, sizeof pax, "27 mtime=1700000000.123456\n310 path=m%s\n", name + 1);
    put("PaxHeaders/x", 'x', pax, (size_t)length), put("cut short", '0', "three", 5);
    unsigned char *header = put("tail.png", '0', "two", 3); /* ustar's prefix */
    memcpy(header + 345, "the/front", 9);
    put_sum(header);
    assert_ok(read_one(&x, end(), false));
    assert_int_equal(x.n, 3);
    assert_int_equal(strlen(x.names.data + x.samples[0].name), 296);
    assert_int_equal(strlen(x.names.data + x.samples[1].name), 296);
    assert_int_equal(x.names.data[x.samples[1].name], 'm');
    assert_string_equal(x.names.data + x.samples[2].name, "the/front/tail");
    clt_tar_free(&x);
    (void)state;
}

static void refuses_what_is_no_archive(void **state) {
    clt_tar_index x;
    assert_status(read_one(&x, support_path("nowhere.tar"), true), CLT_E_IO);
    assert_status(read_one(&x, write_text("text.tar", "no archive"), true), CLT_E_FORMAT);
    assert_detail("is it a tar");
    begin(), put_sample("a", "1");
    archive[3] ^= 1;
    assert_status(read_one(&x, end(), true), CLT_E_FORMAT);
    assert_detail("a.tar: byte 0: no header of a tar archive");
    begin(), put("a.jpg", '0', "x", 1);
    assert_status(read_one(&x, end(), true), CLT_E_FORMAT);
    assert_detail("sample 'a' has an image, but no label");
    static const char *const labels[] = {"", "cat", "-1", "1.5", "16777216", "99999999999999999999", "1 2", "123456789012345678901234567890123"};
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        begin(), put_sample("a", labels[i]);
        assert_status(read_one(&x, end(), true), CLT_E_FORMAT);
        assert_detail("a.cls");
    }
    begin(), put("notes.txt", '0', "x", 1);
    assert_status(read_one(&x, end(), true), CLT_E_FORMAT);
    assert_detail("no image");
    /* Sizes that cannot be. */
    static const char *const sizes[] = {"77777777777", "9", "\x80\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "\xc0"};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        begin();
        unsigned char *header = put("a.jpg", '0', "x", 1);
        memset(header + 124, 0, 12);
        memcpy(header + 124, sizes[i], strlen(sizes[i]));
        put_sum(header);
        assert_status(read_one(&x, end(), false), CLT_E_FORMAT);
    }
    (void)state;
}

static int warnings;
static void count_warning(clt_log_level level, const char *message, void *user) {
    (void)user;
    warnings += level == CLT_LOG_WARNING && strstr(message, "it may have been cut off") != NULL;
}

/* Wherever it ends early: an error, or the samples that are whole and a warning. */
static void truncated_archives_are_errors(void **state) {
    begin(), put_sample("a", "1"), put_sample("b", "2");
    size_t whole = used;
    clt_log_set(count_warning, CLT_LOG_WARNING, NULL);
    for (size_t n = 1; n < whole; n += 64) {
        clt_tar_index x;
        warnings = 0;
        clt_status status = read_one(&x, write_bytes("cut.tar", archive, n), true);
        if (status == CLT_OK) {
            assert_true(n >= 2 * 512 + 512 && x.n >= 1);
            assert_int_equal(warnings, 1);
            clt_tar_free(&x);
        } else assert_int_equal(status, CLT_E_FORMAT);
    }
    clt_log_set(NULL, CLT_LOG_WARNING, NULL);
    (void)state;
}

static void survives_failing_memory(void **state) {
    begin(), put_sample("a", "1");
    const char *path = end();
    clt_status status = CLT_E_NO_MEMORY;
    for (long at = 0; status != CLT_OK; at++) {
        clt_tar_index x = {0};
        watch_begin(at);
        status = clt_tar_read(&x, &path, 1, true);
        clt_tar_free(&x);
        watch_end();
        if (status != CLT_OK) assert_int_equal(status, CLT_E_NO_MEMORY);
    }
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_of_one_name_are_a_sample),
        cmocka_unit_test(names_may_be_long),
        cmocka_unit_test(refuses_what_is_no_archive),
        cmocka_unit_test(truncated_archives_are_errors),
        cmocka_unit_test(survives_failing_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
