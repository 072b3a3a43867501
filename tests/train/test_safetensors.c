#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/train/safetensors.h"

/* ---- files made by hand ---- */

static void put_length(unsigned char *bytes, uint64_t length) {
    for (int i = 0; i < 8; i++) bytes[i] = (unsigned char)(length >> (8 * i));
}

/* A file of that header, zeros up to a multiple of 8 not added, and `data` bytes 0, 1, 2 … */
static const char *raw_file(const char *header, size_t data) {
    static unsigned char bytes[65536];
    size_t length = strlen(header);
    assert_true(8 + length + data <= sizeof bytes);
    put_length(bytes, length);
    memcpy(bytes + 8, header, length);
    for (size_t i = 0; i < data; i++) bytes[8 + length + i] = (unsigned char)i;
    const char *path = support_path("raw.safetensors");
    support_write(path, bytes, 8 + length + data);
    return path;
}

static void refuse_path(const char *path, const char *words) {
    clt_safetensors *file = NULL;
    assert_status(clt_safetensors_open(&file, path), CLT_E_FORMAT);
    assert_null(file);
    assert_detail(path);
    assert_detail(words);
}

static void refuse(const char *header, size_t data, const char *words) {
    refuse_path(raw_file(header, data), words);
}

static void test_reads_what_others_write(void **state) {
    (void)state;
    /* Spaces behind the JSON, keys in another order, an unknown key, tensors not in the order of
     * their bytes: all of it is allowed. */
    const char *path =
        raw_file("{\"b\":{\"shape\":[2],\"dtype\":\"U8\",\"data_offsets\":[4,6]},"
                 "\"__metadata__\":{\"format\":\"pt\"},"
                 "\"a\":{\"dtype\":\"F16\",\"more\":1,\"shape\":[1,2],\"data_offsets\":[0,4]},"
                 "\"empty\":{\"dtype\":\"I64\",\"shape\":[0,3],\"data_offsets\":[4,4]},"
                 "\"scalar\":{\"dtype\":\"BF16\",\"shape\":[],\"data_offsets\":[6,8]}}    ",
                 8);
    clt_safetensors *file;
    assert_ok(clt_safetensors_open(&file, path));
    assert_int_equal(clt_safetensors_count(file), 4);
    static const char *const order[] = {"a", "empty", "b", "scalar"};
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(clt_safetensors_entry_at(file, i)->name, order[i]);
    assert_null(clt_safetensors_entry_at(file, 4));
    assert_null(clt_safetensors_find(file, "c"));
    assert_null(clt_safetensors_find(file, "__metadata__"));
    assert_string_equal(clt_safetensors_metadata(file, "format"), "pt");
    assert_null(clt_safetensors_metadata(file, "other"));

    const clt_safetensors_entry *b = clt_safetensors_find(file, "b");
    assert_int_equal(b->dtype, CLT_SAFETENSORS_U8);
    assert_int_equal(b->shape.rank, 1);
    assert_int_equal(b->shape.dims[0], 2);
    assert_int_equal(b->offset, 4);
    assert_int_equal(b->bytes, 2);
    unsigned char bytes[2];
    assert_ok(clt_safetensors_read(file, b, bytes, 2));
    assert_int_equal(bytes[0], 4);
    assert_int_equal(bytes[1], 5);
    assert_status(clt_safetensors_read(file, b, bytes, 1), CLT_E_INVALID);
    assert_detail("\"b\"");
    assert_ok(clt_safetensors_read(file, clt_safetensors_find(file, "empty"), NULL, 0));
    assert_int_equal(clt_safetensors_find(file, "scalar")->bytes, 2);
    clt_safetensors_close(file);
    clt_safetensors_close(NULL);
}

static void test_empty_file_of_tensors(void **state) {
    (void)state;
    clt_safetensors *file;
    assert_ok(clt_safetensors_open(&file, raw_file("{}", 0)));
    assert_int_equal(clt_safetensors_count(file), 0);
    assert_null(clt_safetensors_metadata(file, "format"));
    clt_safetensors_close(file);
}

/* ---- hostile files ---- */

#define TENSOR(name, dtype, shape, offsets)                                                             \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static void test_refuses_headers(void **state) {
    (void)state;
    refuse("[]", 0, "does not begin with '{'");
    refuse(" {}", 0, "does not begin with '{'");
    refuse("", 0, "does not begin with '{'");
    refuse("{\"a\":", 0, "not valid JSON");
    refuse("{} x", 0, "not valid JSON");
    refuse("{\"\xff\":1}", 0, "not valid JSON");
    refuse("{" TENSOR("a", "U8", "[1]", "[0,1]") "," TENSOR("a", "U8", "[1]", "[1,2]") "}", 2,
           "not valid JSON: duplicate object key");
    refuse("{\"a\":1}", 0, "not described by a JSON object");
    refuse("{\"__metadata__\":\"pt\"}", 0, "__metadata__ is not a JSON object");
    refuse("{\"__metadata__\":{\"step\":3}}", 0, "\"step\" is not a string");
}

/* Before a parser takes memory for it: the end of each, which is not JSON, is not met. */
static void test_refuses_what_cannot_be(void **state) {
    (void)state;
    refuse("{\"a\":[{},{},{},{", 0, "an array where there can be none, at byte 5");
    refuse("{\"__metadata__\":[", 0, "an array where there can be none, at byte 16");
    refuse("{\"a\":{\"b\":{", 0, "an object where there can be none, at byte 10");
    refuse("{\"a\":{\"data_offsets\":{", 0, "an object where there can be none, at byte 21");
    refuse("{\"a\":{\"shape\":[{", 0, "an object where there can be none, at byte 15");
    refuse("{\"a\":{\"shape\":[[", 0, "an array where there can be none, at byte 15");
    refuse("{\"a\":{\"shape\":[1,2],\"b\":\"]}\",\"c\":[]},\"d\":[", 0,
           "an array where there can be none, at byte 41");
    refuse("{\"\\\\\":[", 0, "an array where there can be none, at byte 6");
    refuse("{\"__metadata__\":{\"a\":[]}}", 0, "\"a\" is not a string");
    refuse("{\"a", 0, "not valid JSON");
    refuse("{\"a\\", 0, "not valid JSON");
    refuse("}}]]{\"a\":{\"b\":{}}}", 0, "does not begin with '{'");
    refuse("{}]]}}{\"a\":1}", 0, "not valid JSON");
}

static void test_refuses_deep_nesting(void **state) {
    (void)state;
    static char deep[60000];
    memset(deep, '[', sizeof deep - 1);
    memcpy(deep, "{\"a\":{\"shape\":", 14);
    refuse(deep, 0, "an array where there can be none, at byte 15");
    for (size_t i = 0; i + 5 < sizeof deep; i += 5) memcpy(deep + i, "{\"a\":", 5);
    refuse(deep, 0, "an object where there can be none, at byte 10");
}

/* Brackets, commas, quotes and escapes in texts are none. */
static void test_reads_brackets_in_texts(void **state) {
    (void)state;
    clt_safetensors *file;
    assert_ok(
        clt_safetensors_open(&file, raw_file("{\"__metadata__\":{\"[{,\":\"[[[{{{\\\"]\",\"\\\\\":\"\"},"
                                             "\"{\\\"[\\\\\":{\"dtype\":\"U8\",\"[[\":\"\\\\\\\"{{{{\","
                                             "\"shape\":[1],\"data_offsets\":[0,1]},"
                                             "\"\\u005b[\":{\"dtype\":\"U8\",\"more\":[\"[\",\"{\"],"
                                             "\"shape\":[1],\"data_offsets\":[1,2]}}",
                                             2)));
    assert_int_equal(clt_safetensors_count(file), 2);
    assert_non_null(clt_safetensors_find(file, "{\"[\\"));
    assert_non_null(clt_safetensors_find(file, "[["));
    assert_string_equal(clt_safetensors_metadata(file, "[{,"), "[[[{{{\"]");
    assert_string_equal(clt_safetensors_metadata(file, "\\"), "");
    clt_safetensors_close(file);
}

/* So many values as a header may have, of one shape; and one more. */
static void test_refuses_too_many_values(void **state) {
    (void)state;
    static const char begin[] = "{\"a\":{\"shape\":[0", end[] = "],\"dtype\":\"U8\"}}";
    const char *path = support_path("values.safetensors");
    size_t commas = CLT_SAFETENSORS_MOST_VALUES - 4,
           length = sizeof begin - 1 + 2 * commas + sizeof end - 1;
    unsigned char *bytes = malloc(8 + length + 2), *at = bytes + 8;
    assert_non_null(bytes);
    memcpy(at, begin, sizeof begin - 1);
    at += sizeof begin - 1;
    for (size_t i = 0; i <= commas; i++, at += 2) memcpy(at, ",0", 2);
    memcpy(at - 2, end, sizeof end - 1);
    put_length(bytes, length);
    support_write(path, bytes, 8 + length);
    refuse_path(path, "1999997 dimensions");
    memcpy(at - 2, ",0", 2);
    memcpy(at, end, sizeof end - 1);
    put_length(bytes, length + 2);
    support_write(path, bytes, 8 + length + 2);
    refuse_path(path, "more than 2000000 values");
    free(bytes);
}

static void test_refuses_dtypes_and_shapes(void **state) {
    (void)state;
    refuse("{\"a\":{}}", 0, "no dtype");
    refuse("{\"a\":{\"dtype\":4}}", 0, "no dtype");
    refuse("{" TENSOR("a", "F33", "[1]", "[0,4]") "}", 4, "unknown dtype \"F33\"");
    refuse("{" TENSOR("a", "f32", "[1]", "[0,4]") "}", 4, "unknown dtype \"f32\"");
    refuse("{" TENSOR("a", "F32", "1", "[0,4]") "}", 4, "no shape");
    refuse("{" TENSOR("a", "F32", "[-1]", "[0,4]") "}", 4, "dimension");
    refuse("{" TENSOR("a", "F32", "[1.0]", "[0,4]") "}", 4, "dimension");
    refuse("{" TENSOR("a", "F32", "[\"1\"]", "[0,4]") "}", 4, "dimension");
    refuse("{" TENSOR("a", "U8", "[1,1,1,1,1,1,1,1,1]", "[0,1]") "}", 1, "9 dimensions");
    refuse("{" TENSOR("a", "U8", "[4294967296,4294967296]", "[0,0]") "}", 0, "too large");
    refuse("{" TENSOR("a", "F64", "[2305843009213693952]", "[0,0]") "}", 0, "too large");
    refuse("{" TENSOR("a", "U8", "[9223372036854775807,2,0]", "[0,0]") "}", 0, "too large");
    refuse("{" TENSOR("a", "U8", "[9223372036854775808]", "[0,0]") "}", 0, "too big integer");
}

static void test_refuses_offsets(void **state) {
    (void)state;
    refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "data_offsets");
    refuse("{" TENSOR("a", "F32", "[1]", "[0]") "}", 4, "data_offsets");
    refuse("{" TENSOR("a", "F32", "[1]", "[0,4,4]") "}", 4, "data_offsets");
    refuse("{" TENSOR("a", "F32", "[1]", "[0,4.0]") "}", 4, "data_offsets");
    refuse("{" TENSOR("a", "F32", "[1]", "\"[0,4]\"") "}", 4, "data_offsets");
    refuse("{" TENSOR("a", "F32", "[1]", "[-4,0]") "}", 4, "[-4, 0)");
    refuse("{" TENSOR("a", "F32", "[1]", "[4,0]") "}", 4, "[4, 0)");
    refuse("{" TENSOR("a", "F32", "[1]", "[0,4]") "}", 3, "[0, 4) are not inside the 3");
    refuse("{" TENSOR("a", "F32", "[1]", "[9223372036854775804,9223372036854775807]") "}", 4,
           "not inside");
    refuse("{" TENSOR("a", "F32", "[2]", "[0,4]") "}", 4,
           "4 bytes of data, but its dtype and shape need 8");
    refuse("{" TENSOR("a", "F32", "[]", "[0,8]") "}", 8,
           "8 bytes of data, but its dtype and shape need 4");
}

static void test_refuses_overlaps_and_holes(void **state) {
    (void)state;
    refuse("{" TENSOR("a", "U8", "[4]", "[0,4]") "," TENSOR("b", "U8", "[4]", "[3,7]") "}", 7, "inside");
    refuse("{" TENSOR("a", "U8", "[4]", "[0,4]") "," TENSOR("b", "U8", "[4]", "[0,4]") "}", 4, "inside");
    refuse("{" TENSOR("a", "U8", "[4]", "[0,4]") "," TENSOR("b", "U8", "[4]", "[5,9]") "}", 9, "hole");
    refuse("{" TENSOR("a", "U8", "[4]", "[1,5]") "}", 5, "hole");
    refuse("{" TENSOR("a", "U8", "[4]", "[0,4]") "}", 5, "1 bytes after the last tensor");
    refuse("{}", 1, "1 bytes after the last tensor");
}

static void test_refuses_header_lengths(void **state) {
    (void)state;
    static const uint64_t lengths[] = {UINT64_C(1) << 63, UINT64_MAX,
                                       CLT_SAFETENSORS_MAX_HEADER_BYTES + 1};
    unsigned char bytes[16] = {0};
    const char *path = support_path("length.safetensors");
    for (size_t i = 0; i < CLT_COUNT_OF(lengths); i++) {
        put_length(bytes, lengths[i]);
        support_write(path, bytes, sizeof bytes);
        refuse_path(path, "more than 100000000");
    }
    put_length(bytes, 9);
    support_write(path, bytes, sizeof bytes);
    refuse_path(path, "does not fit into the file's 16");
    support_write(path, "PK\3\4\0\0\10\10archive/data.pkl", 24);
    refuse_path(path, "a zip, as torch.save and numpy.savez make it");
    support_write(path, "\x80\2\x8a\nl\xfc\x9c\x46\xf9", 9);
    refuse_path(path, "a pickle, as torch.save made it before 1.6");
    support_write(path, "GGUF\3\0\0\0\1", 9);
    refuse_path(path, "a GGUF file");
    support_write(path, bytes, 7);
    refuse_path(path, "only 7 bytes");
    support_write(path, bytes, 0);
    refuse_path(path, "only 0 bytes");
}

static void test_refuses_what_is_no_file(void **state) {
    (void)state;
    clt_safetensors *file = NULL;
    assert_status(clt_safetensors_open(&file, support_path("absent.safetensors")), CLT_E_IO);
    assert_detail("absent.safetensors");
    assert_status(clt_safetensors_open(&file, support_folder()), CLT_E_IO);
    assert_detail("regular file");
    assert_null(file);
}

/* Every shorter version of a good file is refused, and every file with one byte more. */
static void test_refuses_truncation(void **state) {
    (void)state;
    const char *path =
        raw_file("{\"__metadata__\":{\"k\":\"v\"}," TENSOR("a", "F32", "[2,3]", "[0,24]") "," TENSOR(
                     "b", "I64", "[1]", "[24,32]") "}",
                 32);
    void *bytes;
    size_t length;
    assert_ok(clt_file_read(path, 65536, &bytes, &length));
    const char *cut = support_path("cut.safetensors");
    for (size_t n = 0; n < length; n++) {
        support_write(cut, bytes, n);
        refuse_path(cut, "");
    }
    support_write(cut, bytes, length);
    clt_safetensors *file;
    assert_ok(clt_safetensors_open(&file, cut));
    clt_safetensors_close(file);
    support_write(cut, bytes, length + 1);
    refuse_path(cut, "after the last tensor");
    clt_free(bytes);
}

/* Any byte of the header changed to any of a few values: an answer, never a crash; and if the
 * file is taken, everything in it can be read. */
static void test_survives_changed_bytes(void **state) {
    (void)state;
    const char *path =
        raw_file("{" TENSOR("a", "F32", "[2]", "[0,8]") "," TENSOR("b", "U8", "[3]", "[8,11]") "}", 11);
    unsigned char *bytes, data[64];
    size_t length;
    assert_ok(clt_file_read(path, 65536, (void **)&bytes, &length));
    static const unsigned char values[] = {0, '"', '{', '}', '[', ']', ',', '0', '9', '-', 0x80, 0xff};
    int refused = 0;
    for (size_t i = 0; i < length - 11; i++) {
        unsigned char kept = bytes[i];
        for (size_t k = 0; k < sizeof values; k++) {
            bytes[i] = values[k];
            support_write(path, bytes, length);
            clt_safetensors *file;
            clt_status status = clt_safetensors_open(&file, path);
            if (status < 0) {
                assert_int_equal(status, CLT_E_FORMAT);
                refused++;
                continue;
            }
            for (size_t e = 0; e < clt_safetensors_count(file); e++) {
                const clt_safetensors_entry *entry = clt_safetensors_entry_at(file, e);
                assert_ok(clt_safetensors_read(file, entry, data, (size_t)entry->bytes));
            }
            clt_safetensors_close(file);
        }
        bytes[i] = kept;
    }
    assert_true(refused > 1000);
    clt_free(bytes);
}

static void test_file_that_shrinks(void **state) {
    (void)state;
    const char *path = raw_file("{" TENSOR("a", "U8", "[60000]", "[0,60000]") "}", 60000);
    clt_safetensors *file;
    assert_ok(clt_safetensors_open(&file, path));
    assert_int_equal(truncate(path, 1000), 0);
    static unsigned char data[60000];
    assert_status(clt_safetensors_read(file, clt_safetensors_find(file, "a"), data, sizeof data),
                  CLT_E_FORMAT);
    assert_detail(path);
    assert_detail("tensor \"a\"");
    clt_safetensors_close(file);
}

/* ---- writing ---- */

static const float weight[6] = {0.5f, -1, 2, -3e-39f, 1e30f, 6};
static const int64_t steps[1] = {-7};
static const unsigned char flags[3] = {0, 128, 255};

static const clt_safetensors_entry entries[] = {
    {"fc.weight", CLT_SAFETENSORS_F32, {2, {2, 3}}, 0, 0},
    {"nothing", CLT_SAFETENSORS_F32, {1, {0}}, 0, 0},
    {"steps", CLT_SAFETENSORS_I64, {0, {0}}, 0, 0},
    {"a \"quoted\"/\\ n\xc3\xa4me\n", CLT_SAFETENSORS_U8, {1, {3}}, 0, 0},
};
static const clt_safetensors_pair pairs[] = {{"format", "pt"}, {"a", "line\nand \"quote\""}};

static void write_sample(const char *path) {
    clt_safetensors_writer *writer;
    assert_ok(clt_safetensors_writer_open(&writer, path, entries, 4, pairs, 2));
    assert_ok(clt_safetensors_writer_write(writer, weight, 8)); /* in pieces */
    assert_ok(clt_safetensors_writer_write(writer, weight + 2, sizeof weight - 8));
    assert_ok(clt_safetensors_writer_write(writer, steps, sizeof steps));
    assert_ok(clt_safetensors_writer_write(writer, NULL, 0));
    assert_ok(clt_safetensors_writer_write(writer, flags, sizeof flags));
    assert_ok(clt_safetensors_writer_commit(writer));
}

static void test_round_trip(void **state) {
    (void)state;
    const char *path = support_path("round.safetensors");
    write_sample(path);
    clt_safetensors *file;
    assert_ok(clt_safetensors_open(&file, path));
    assert_int_equal(clt_safetensors_count(file), 4);
    for (size_t i = 0; i < 4; i++) {
        const clt_safetensors_entry *entry = clt_safetensors_find(file, entries[i].name);
        assert_non_null(entry);
        assert_int_equal(entry->dtype, entries[i].dtype);
        assert_memory_equal(&entry->shape, &entries[i].shape, sizeof entry->shape);
    }
    assert_string_equal(clt_safetensors_metadata(file, "a"), pairs[1].value);
    float got[6];
    assert_ok(clt_safetensors_read(file, clt_safetensors_find(file, "fc.weight"), got, sizeof got));
    assert_memory_equal(got, weight, sizeof got);
    int64_t step;
    assert_ok(clt_safetensors_read(file, clt_safetensors_find(file, "steps"), &step, sizeof step));
    assert_int_equal(step, -7);
    unsigned char got_flags[3];
    assert_ok(clt_safetensors_read(file, clt_safetensors_find(file, entries[3].name), got_flags, 3));
    assert_memory_equal(got_flags, flags, 3);
    clt_safetensors_close(file);
}

static void test_bytes_are_fixed(void **state) {
    (void)state;
    static const char header[] =
        "{\"__metadata__\":{\"format\":\"pt\",\"a\":\"line\\nand \\\"quote\\\"\"},"
        "\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
        "\"nothing\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[24,24]},"
        "\"steps\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[24,32]},"
        "\"a \\\"quoted\\\"/\\\\ "
        "n\xc3\xa4me\\n\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[32,35]}}";
    const char *path = support_path("fixed.safetensors");
    write_sample(path);
    unsigned char *bytes, length_field[8];
    size_t length, padded = (sizeof header - 1 + 7) / 8 * 8;
    assert_ok(clt_file_read(path, 65536, (void **)&bytes, &length));
    assert_int_equal(length, 8 + padded + 35);
    put_length(length_field, padded);
    assert_memory_equal(bytes, length_field, 8);
    assert_memory_equal(bytes + 8, header, sizeof header - 1);
    for (size_t i = sizeof header - 1; i < padded; i++) assert_int_equal(bytes[8 + i], ' ');
    assert_memory_equal(bytes + 8 + padded, weight, sizeof weight);
    clt_free(bytes);
}

static clt_status open_with(const char *path, const clt_safetensors_entry *entry) {
    clt_safetensors_writer *writer = NULL;
    clt_safetensors_entry both[2] = {*entry, *entry};
    clt_status status = clt_safetensors_writer_open(&writer, path, both, 1, NULL, 0);
    if (status == CLT_OK) clt_safetensors_writer_abort(writer);
    else assert_null(writer);
    return status;
}

static void test_writer_refuses(void **state) {
    (void)state;
    const char *path = support_path("refused.safetensors");
    clt_safetensors_writer *writer = NULL;
    clt_safetensors_entry entry = {"a", CLT_SAFETENSORS_F32, {1, {2}}, 0, 0};
    assert_ok(open_with(path, &entry));
    clt_safetensors_entry twice[2] = {entry, entry};
    assert_status(clt_safetensors_writer_open(&writer, path, twice, 2, NULL, 0), CLT_E_INVALID);
    assert_detail("\"a\" is there twice");
    assert_detail(path);
    const clt_safetensors_pair same[] = {{"k", "1"}, {"k", "2"}};
    assert_status(clt_safetensors_writer_open(&writer, path, &entry, 1, same, 2), CLT_E_INVALID);
    const clt_safetensors_pair latin = {"k", "\xe4"};
    assert_status(clt_safetensors_writer_open(&writer, path, &entry, 1, &latin, 1), CLT_E_INVALID);
    assert_detail("not UTF-8");
    const clt_safetensors_pair latin_key = {"\xe4", "v"};
    assert_status(clt_safetensors_writer_open(&writer, path, &entry, 1, &latin_key, 1), CLT_E_INVALID);
    assert_detail("\"\\xe4\" is not UTF-8");

    entry.name = "__metadata__";
    assert_status(open_with(path, &entry), CLT_E_INVALID);
    assert_detail("\"__metadata__\" is reserved");
    entry.name = "\xe4";
    assert_status(open_with(path, &entry), CLT_E_INVALID);
    assert_detail("\"\\xe4\" is not UTF-8");
    entry.name = "a";
    entry.dtype = CLT_SAFETENSORS_DTYPE_COUNT;
    assert_status(open_with(path, &entry), CLT_E_INVALID);
    entry.dtype = CLT_SAFETENSORS_F32;
    entry.shape = (clt_shape){2, {INT64_MAX, 2}};
    assert_status(open_with(path, &entry), CLT_E_INVALID);
    entry.shape = (clt_shape){2, {-1, -2}};
    assert_status(open_with(path, &entry), CLT_E_INVALID);
    entry.shape = (clt_shape){-1, {0}};
    assert_status(open_with(path, &entry), CLT_E_INVALID);

    clt_safetensors_entry huge = {"b", CLT_SAFETENSORS_U8, {1, {INT64_MAX}}, 0, 0};
    clt_safetensors_entry pair[2] = {huge, {"c", CLT_SAFETENSORS_U8, {1, {1}}, 0, 0}};
    assert_status(clt_safetensors_writer_open(&writer, path, pair, 2, NULL, 0), CLT_E_RANGE);
    assert_null(writer);
    assert_int_equal(access(path, F_OK), -1); /* none of it left a file */
    assert_status(open_with(support_path("no/such/folder/x"), &twice[0]), CLT_E_IO);
    assert_detail("no/such/folder/x");
}

/* No file is written that could not be read. */
static void test_writer_refuses_too_many_values(void **state) {
    (void)state;
    const char *path = support_path("many.safetensors");
    const clt_safetensors_entry entry = {"", CLT_SAFETENSORS_U8, {CLT_MAX_RANK, {0}}, 0, 0};
    size_t n = CLT_SAFETENSORS_MOST_VALUES /
               (CLT_MAX_RANK + 6); /* an object, a text, two arrays and what is in them */
    clt_safetensors_entry *many = malloc((n + 1) * sizeof *many);
    char(*names)[16] = malloc((n + 1) * sizeof *names);
    clt_safetensors_writer *writer = NULL;
    assert_true(many && names);
    for (size_t i = 0; i <= n; i++) {
        snprintf(names[i], sizeof names[i], "%zu", i);
        many[i] = entry;
        many[i].name = names[i];
    }
    assert_status(clt_safetensors_writer_open(&writer, path, many, n + 1, NULL, 0), CLT_E_RANGE);
    assert_detail("more than 2000000 values");
    assert_detail(path);
    assert_ok(clt_safetensors_writer_open(&writer, path, many, n, NULL, 0));
    assert_ok(clt_safetensors_writer_commit(writer));
    clt_safetensors *file;
    assert_ok(clt_safetensors_open(&file, path));
    assert_int_equal(clt_safetensors_count(file), n);
    clt_safetensors_close(file);
    free(names);
    free(many);
}

static void test_writer_counts(void **state) {
    (void)state;
    const char *path = support_path("counted.safetensors");
    support_write(path, "old", 3);
    clt_safetensors_writer *writer;
    assert_ok(clt_safetensors_writer_open(&writer, path, entries, 4, pairs, 2));
    assert_status(clt_safetensors_writer_write(writer, weight, sizeof weight + 1), CLT_E_INVALID);
    assert_detail("fc.weight");
    assert_ok(clt_safetensors_writer_write(writer, weight, 8));
    assert_status(clt_safetensors_writer_write(writer, weight, 17), CLT_E_INVALID);
    assert_status(clt_safetensors_writer_commit(writer), CLT_E_STATE);
    assert_detail("8 of its 24");

    assert_ok(clt_safetensors_writer_open(&writer, path, entries, 1, NULL, 0));
    assert_ok(clt_safetensors_writer_write(writer, weight, sizeof weight));
    assert_status(clt_safetensors_writer_write(writer, weight, 1), CLT_E_INVALID);
    assert_detail("after the last tensor");
    clt_safetensors_writer_abort(writer);
    clt_safetensors_writer_abort(NULL);

    /* Tensors of no bytes need no call, wherever they stand. */
    const char *first = support_path("first.safetensors");
    const clt_safetensors_entry empty_first[] = {entries[1], entries[2]};
    assert_ok(clt_safetensors_writer_open(&writer, first, empty_first, 2, NULL, 0));
    assert_ok(clt_safetensors_writer_write(writer, steps, sizeof steps));
    assert_ok(clt_safetensors_writer_commit(writer));
    assert_ok(clt_safetensors_writer_open(&writer, first, empty_first, 1, NULL, 0));
    assert_ok(clt_safetensors_writer_commit(writer));

    void *bytes; /* none of it touched the file that was there */
    size_t length;
    assert_ok(clt_file_read(path, 100, &bytes, &length));
    assert_int_equal(length, 3);
    clt_free(bytes);
}

/* The format read by an independent reader of it. */
static void test_python_reads_it(void **state) {
    (void)state;
    static const char script[] =
        "import json, struct, sys\n"
        "raw = open(sys.argv[1], 'rb').read()\n"
        "n, = struct.unpack('<Q', raw[:8])\n"
        "assert n % 8 == 0\n"
        "header = json.loads(raw[8:8 + n].decode())\n"
        "data = raw[8 + n:]\n"
        "assert header.pop('__metadata__') == {'format': 'pt', 'a': 'line\\nand \"quote\"'}\n"
        "assert list(header) == ['fc.weight', 'nothing', 'steps', 'a \"quoted\"/\\\\ n\\u00e4me\\n'], "
        "list(header)\n"
        "end = 0\n"
        "for tensor in header.values():\n"
        "    assert tensor['data_offsets'][0] == end\n"
        "    end = tensor['data_offsets'][1]\n"
        "assert end == len(data)\n"
        "weight = header['fc.weight']\n"
        "assert weight['shape'] == [2, 3] and weight['dtype'] == 'F32'\n"
        "assert struct.unpack('<6f', data[:24])[:3] == (0.5, -1, 2)\n"
        "assert struct.unpack('<q', data[24:32]) == (-7,)\n"
        "assert data[32:] == bytes([0, 128, 255])\n";
    if (system("python3 -c '' >/dev/null 2>&1")) skip();
    write_sample(support_path("python.safetensors"));
    support_write(support_path("read.py"), script, sizeof script - 1);
    char command[20000];
    snprintf(command, sizeof command, "python3 '%s' '%s'", support_path("read.py"),
             support_path("python.safetensors"));
    assert_int_equal(system(command), 0);
}

static size_t allocations_left;

static void *scarce_allocate(size_t bytes, void *user) {
    (void)user;
    return allocations_left && allocations_left-- ? malloc(bytes) : NULL;
}

static void *scarce_reallocate(void *memory, size_t bytes, void *user) {
    (void)user;
    return allocations_left && allocations_left-- ? realloc(memory, bytes) : NULL;
}

static void release(void *memory, void *user) {
    (void)user;
    free(memory);
}

/* Whichever allocation fails, reading and writing say so, and nothing leaks. */
static void test_out_of_memory(void **state) {
    (void)state;
    const char *path = support_path("scarce.safetensors"), *other = support_path("other.safetensors");
    write_sample(path);
    const clt_allocator scarce = {scarce_allocate, scarce_reallocate, release, NULL};
    assert_ok(clt_allocator_set(&scarce));
    int failed = 0;
    for (size_t n = 0, done = 0; !done; n++) {
        clt_safetensors *file = NULL;
        clt_safetensors_writer *writer = NULL;
        allocations_left = n;
        clt_status read = clt_safetensors_open(&file, path);
        allocations_left = n;
        clt_status write = clt_safetensors_writer_open(&writer, other, entries, 4, pairs, 2);
        assert_true(read == CLT_OK || read == CLT_E_NO_MEMORY);
        assert_true(write == CLT_OK || write == CLT_E_NO_MEMORY);
        done = read == CLT_OK && write == CLT_OK;
        failed += !done;
        clt_safetensors_close(file);
        clt_safetensors_writer_abort(writer);
    }
    assert_ok(clt_allocator_set(NULL));
    assert_true(failed >= 5);
    assert_int_equal(access(other, F_OK), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_what_others_write),
        cmocka_unit_test(test_empty_file_of_tensors),
        cmocka_unit_test(test_refuses_headers),
        cmocka_unit_test(test_refuses_what_cannot_be),
        cmocka_unit_test(test_refuses_deep_nesting),
        cmocka_unit_test(test_reads_brackets_in_texts),
        cmocka_unit_test(test_refuses_too_many_values),
        cmocka_unit_test(test_refuses_dtypes_and_shapes),
        cmocka_unit_test(test_refuses_offsets),
        cmocka_unit_test(test_refuses_overlaps_and_holes),
        cmocka_unit_test(test_refuses_header_lengths),
        cmocka_unit_test(test_refuses_what_is_no_file),
        cmocka_unit_test(test_refuses_truncation),
        cmocka_unit_test(test_survives_changed_bytes),
        cmocka_unit_test(test_file_that_shrinks),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_bytes_are_fixed),
        cmocka_unit_test(test_writer_refuses),
        cmocka_unit_test(test_writer_refuses_too_many_values),
        cmocka_unit_test(test_writer_counts),
        cmocka_unit_test(test_python_reads_it),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
