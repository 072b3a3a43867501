#include "tests/data/files.h"

#include <cltrain/data.h>
#include <cltrain/text.h>

#define MODEL_BEGIN "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2, \"\\u0120\": 3, \"c\": 4, \"abc\": 5}, \"merges\": "
#define BYTE_LEVEL ", \"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false}"

static void assert_encodes(const clt_tokenizer *t, const char *text, const int32_t *wanted, size_t n) {
    int32_t ids[64];
    char decoded[64];
    size_t count = 0, bytes = 0;
    assert_ok(clt_tokenizer_encode(t, text, strlen(text), NULL, 0, &count));
    assert_int_equal(count, n);
    assert_ok(clt_tokenizer_encode(t, text, strlen(text), ids, 64, &count));
    assert_memory_equal(ids, wanted, n * sizeof *ids);
    assert_ok(clt_tokenizer_decode(t, ids, n, decoded, sizeof decoded, &bytes));
    assert_int_equal(bytes, strlen(text));
    assert_memory_equal(decoded, text, bytes);
}

static void bytes_are_themselves(void **state) {
    (void)state;
    clt_tokenizer *t;
    watch_begin(-1);
    assert_ok(clt_tokenizer_bytes(&t));
    assert_int_equal(clt_tokenizer_vocabulary(t), 256);
    assert_encodes(t, "a\xff", (int32_t[]){97, 255}, 2);
    clt_tokenizer_destroy(t);
    watch_end();
}

static void chars_are_sorted(void **state) {
    (void)state;
    clt_tokenizer *t;
    size_t count;
    watch_begin(-1);
    assert_ok(clt_tokenizer_chars(&t, "b\xc3\xa9" "a b", 6));
    assert_int_equal(clt_tokenizer_vocabulary(t), 4);
    assert_encodes(t, "\xc3\xa9 ab", (int32_t[]){3, 0, 1, 2}, 4);
    assert_status(clt_tokenizer_encode(t, "abz", 3, NULL, 0, &count), CLT_E_FORMAT);
    assert_detail("U+007A at byte 2 has no token");
    assert_status(clt_tokenizer_encode(t, "a\xc3", 2, NULL, 0, &count), CLT_E_FORMAT);
    assert_detail("found the byte 0xc3 at byte 1");
    clt_tokenizer_destroy(t);
    assert_status(clt_tokenizer_chars(&t, "", 0), CLT_E_FORMAT);
    assert_status(clt_tokenizer_chars(&t, "\xed\xa0\x80", 3), CLT_E_FORMAT); /* a surrogate */
    watch_end();
}

static void text_and_back(void **state) {
    (void)state;
    clt_tokenizer *made[2], *again;
    static char json[40000], part[10];
    size_t bytes, same;
    watch_begin(-1);
    assert_ok(clt_tokenizer_bytes(&made[0]));
    assert_ok(clt_tokenizer_chars(&made[1], "b\xc3\xa9" "a b", 6));
    for (int i = 0; i < 2; i++) {
        assert_ok(clt_tokenizer_json(made[i], NULL, 0, &bytes));
        assert_in_range(bytes, 10, sizeof json - 1);
        assert_ok(clt_tokenizer_json(made[i], json, sizeof json, &same));
        assert_true(same == bytes && strlen(json) == bytes);
        assert_ok(clt_tokenizer_json(made[i], part, sizeof part, &same));
        assert_true(same == bytes && strlen(part) == sizeof part - 1 && !memcmp(part, json, sizeof part - 1));
        assert_ok(clt_tokenizer_parse(&again, json, bytes));
        assert_int_equal(clt_tokenizer_vocabulary(again), clt_tokenizer_vocabulary(made[i]));
        if (i) assert_encodes(again, "\xc3\xa9 ab", (int32_t[]){3, 0, 1, 2}, 4);
        else assert_encodes(again, "a\xc3\xa9", (int32_t[]){97, 0xc3, 0xa9}, 3); /* as BPE without merges, which reads UTF-8 */
        assert_status(clt_tokenizer_parse(&again, json, bytes - 1), CLT_E_FORMAT);
        clt_tokenizer_destroy(again);
        clt_tokenizer_destroy(made[i]);
    }
    assert_ok(clt_tokenizer_parse(&again, MODEL_BEGIN "[\"a b\"]}" BYTE_LEVEL "}", strlen(MODEL_BEGIN "[\"a b\"]}" BYTE_LEVEL "}")));
    assert_status(clt_tokenizer_json(again, NULL, 0, &bytes), CLT_E_UNSUPPORTED);
    assert_status(clt_tokenizer_json(again, NULL, 3, &bytes), CLT_E_INVALID);
    assert_status(clt_tokenizer_json(NULL, NULL, 0, &bytes), CLT_E_INVALID);
    assert_status(clt_tokenizer_parse(NULL, "{}", 2), CLT_E_INVALID);
    assert_status(clt_tokenizer_parse(&again, NULL, 2), CLT_E_INVALID);
    clt_tokenizer_destroy(again);
    watch_end();
}

static void refuses_ids_that_are_none(void **state) {
    (void)state;
    clt_tokenizer *t;
    size_t bytes;
    assert_ok(clt_tokenizer_bytes(&t));
    assert_status(clt_tokenizer_decode(t, (int32_t[]){1, 256}, 2, NULL, 0, &bytes), CLT_E_RANGE);
    assert_detail("id 256 at place 1");
    assert_status(clt_tokenizer_decode(t, (int32_t[]){-1}, 1, NULL, 0, &bytes), CLT_E_RANGE);
    clt_tokenizer_destroy(t);
}

#ifdef CLT_WITH_PCRE2
static void merges_by_rank(void **state) {
    (void)state;
    clt_tokenizer *t;
    const char *path = write_text("bpe.json", MODEL_BEGIN "[\"a b\", [\"ab\", \"c\"]]}" BYTE_LEVEL
                                              ", \"added_tokens\": [{\"id\": 6, \"content\": \"<x>\", \"special\": true}]}");
    watch_begin(-1);
    assert_ok(clt_tokenizer_load(&t, path));
    assert_int_equal(clt_tokenizer_vocabulary(t), 7);
    assert_encodes(t, "abcab a<x>b", (int32_t[]){5, 2, 3, 0, 6, 1}, 6);
    clt_tokenizer_destroy(t);
    size_t count;
    assert_ok(clt_tokenizer_load(&t, path));
    assert_status(clt_tokenizer_encode(t, "ad", 2, NULL, 0, &count), CLT_E_FORMAT);
    assert_detail("the byte 0x64 has no token");
    clt_tokenizer_destroy(t);
    watch_end();
}

/* A run of 200,000 bytes without a place to split: n log n, or the test times out. */
static void merges_long_pieces(void **state) {
    (void)state;
    enum { LENGTH = 200000 };
    clt_tokenizer *t;
    size_t count;
    char *text = malloc(LENGTH);
    assert_non_null(text);
    for (size_t i = 0; i < LENGTH; i++) text[i] = "ab"[i % 2];
    assert_ok(clt_tokenizer_load(&t, write_text("long.json", MODEL_BEGIN "[\"a b\"]}" BYTE_LEVEL "}")));
    assert_ok(clt_tokenizer_encode(t, text, LENGTH, NULL, 0, &count));
    assert_int_equal(count, LENGTH / 2);
    clt_tokenizer_destroy(t);
    free(text);
}

static void survives_missing_memory(void **state) {
    (void)state;
    const char *path = write_text("memory.json", MODEL_BEGIN "[\"a b\"]}" BYTE_LEVEL ", \"added_tokens\": [{\"id\": 9, \"content\": \"<x>\"}]}");
    for (long i = 0; i < 60; i++) {
        clt_tokenizer *t = NULL;
        size_t count;
        watch_begin(i);
        clt_status status = clt_tokenizer_load(&t, path);
        if (status == CLT_OK) status = clt_tokenizer_encode(t, "abcab<x>", 8, NULL, 0, &count);
        assert_true(status == CLT_OK || status == CLT_E_NO_MEMORY);
        clt_tokenizer_destroy(t);
        watch_end();
    }
}
#endif

static void refuses_other_kinds_by_name(void **state) {
    (void)state;
    static const struct {
        const char *text, *words;
        clt_status status;
    } cases[] = {
        {"", "", CLT_E_FORMAT},
        {"{\"model\"", "line 1", CLT_E_FORMAT},
        {"{}", "no object \"model\"", CLT_E_FORMAT},
        {"{\"model\": {\"type\": \"Unigram\"}}", "model 'Unigram' is not supported: expected BPE", CLT_E_UNSUPPORTED},
        {"{\"model\": {\"type\": \"WordLevel\", \"vocab\": {}}}", "WordLevel", CLT_E_UNSUPPORTED},
        {MODEL_BEGIN "[]}, \"normalizer\": {\"type\": \"NFC\"}" BYTE_LEVEL "}", "normalizer 'NFC'", CLT_E_UNSUPPORTED},
        {MODEL_BEGIN "[], \"byte_fallback\": true}" BYTE_LEVEL "}", "byte_fallback", CLT_E_UNSUPPORTED},
        {MODEL_BEGIN "[]}, \"pre_tokenizer\": {\"type\": \"Metaspace\"}}", "pre_tokenizer 'Metaspace'", CLT_E_UNSUPPORTED},
        {MODEL_BEGIN "[]}}", "pre_tokenizer ''", CLT_E_UNSUPPORTED},
#ifdef CLT_WITH_PCRE2
        {MODEL_BEGIN "[]}, \"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Split\", \"pattern\": {\"Regex\": \"(a+)+\"}, "
                     "\"behavior\": \"Isolated\"}, {\"type\": \"ByteLevel\", \"use_regex\": false}]}}",
         "(a+)+", CLT_E_UNSUPPORTED},
        {MODEL_BEGIN "[\"a z\"]}" BYTE_LEVEL "}", "model.merges: entry 0", CLT_E_FORMAT},
        {MODEL_BEGIN "[7]}" BYTE_LEVEL "}", "model.merges: entry 0", CLT_E_FORMAT},
        {MODEL_BEGIN "[]}" BYTE_LEVEL ", \"added_tokens\": [{\"id\": 99999999, \"content\": \"x\"}]}", "found 99999999", CLT_E_FORMAT},
        {MODEL_BEGIN "[]}" BYTE_LEVEL ", \"added_tokens\": [{\"id\": 7, \"content\": \"\"}]}", "added_tokens: entry 0", CLT_E_FORMAT},
        {MODEL_BEGIN "[]}" BYTE_LEVEL ", \"added_tokens\": [{\"id\": 7, \"content\": \"x\", \"lstrip\": true}]}", "lstrip", CLT_E_UNSUPPORTED},
        {"{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 1, \"b\": 1}, \"merges\": []}" BYTE_LEVEL "}", "two tokens have the id 1", CLT_E_FORMAT},
#endif
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        clt_tokenizer *t = NULL;
        const char *path = write_text("other.json", cases[i].text);
        watch_begin(-1);
        assert_status(clt_tokenizer_load(&t, path), cases[i].status);
        watch_end();
        assert_detail("other.json");
        assert_detail(cases[i].words);
    }
    clt_tokenizer *t = NULL;
    assert_status(clt_tokenizer_load(&t, support_path("missing.json")), CLT_E_IO);
}

/* ---- data sets of text ---- */

static void windows_are_shifted(void **state) {
    (void)state;
    clt_dataset *train, *validation;
    clt_tokenizer *bytes;
    const char text[] = "0123456789abcdefghij";
    assert_ok(clt_tokenizer_bytes(&bytes));
    const char *paths[] = {write_text("plain.txt", text), write_gz("text.gz", text, 20)};
    for (int i = 0; i < 2; i++) {
        watch_begin(-1);
        assert_ok(clt_dataset_text(&train, &validation, paths[i], &(clt_text_options){.tokenizer = bytes, .context = 4, .validation = 0.3}));
        assert_int_equal(clt_dataset_samples(train), 3); /* of 14 tokens */
        assert_int_equal(clt_dataset_samples(validation), 1);
        const int32_t *x = clt_dataset_array(train, 0).data, *y = clt_dataset_array(train, 1).data;
        for (int k = 0; k < 12; k++) assert_true(x[k] == text[k] && y[k] == text[k + 1]);
        assert_int_equal(*(const int32_t *)clt_dataset_array(validation, 0).data, 'e');
        clt_dataset_destroy(validation);
        clt_dataset_destroy(train);
        watch_end();
    }
    assert_status(clt_dataset_text(&train, NULL, paths[0], &(clt_text_options){.tokenizer = bytes, .context = 20}), CLT_E_RANGE);
    assert_status(clt_dataset_text(&train, NULL, paths[0], &(clt_text_options){.context = 4}), CLT_E_INVALID);
    assert_status(clt_dataset_text(&train, NULL, support_path("none"), &(clt_text_options){.tokenizer = bytes}), CLT_E_IO);
    clt_tokenizer_destroy(bytes);
}

static void reads_files_of_tokens(void **state) {
    (void)state;
    enum { COUNT = 10, BYTES = 1024 + 2 * COUNT };
    uint32_t header[256] = {20240520, 1, COUNT};
    unsigned char file[BYTES + 1];
    clt_dataset *train = NULL;
    clt_tokenizer *bytes;
    const clt_text_options options = {.context = 3};
    memcpy(file, header, sizeof header); /* little-endian, as the machines that tests run on */
    for (int i = 0; i < COUNT; i++) file[1024 + 2 * i] = (unsigned char)i, file[1025 + 2 * i] = 0xc3;
    watch_begin(-1);
    assert_ok(clt_dataset_text(&train, NULL, write_bytes("tokens.bin", file, BYTES), &options));
    assert_int_equal(clt_dataset_samples(train), 3);
    assert_int_equal(((const int32_t *)clt_dataset_array(train, 1).data)[8], 0xc309);
    clt_dataset_destroy(train);
    assert_status(clt_dataset_text(&train, NULL, write_bytes("short.bin", file, BYTES - 1), &options), CLT_E_FORMAT);
    assert_detail("10 tokens, which are 1044 bytes; the file has 1043");
    assert_status(clt_dataset_text(&train, NULL, write_bytes("header.bin", file, 100), &options), CLT_E_FORMAT);
    file[4] = 2;
    assert_status(clt_dataset_text(&train, NULL, write_bytes("version.bin", file, BYTES), &options), CLT_E_UNSUPPORTED);
    file[4] = 1;
    assert_ok(clt_tokenizer_bytes(&bytes));
    assert_status(clt_dataset_text(&train, NULL, write_bytes("ids.bin", file, BYTES), &(clt_text_options){.tokenizer = bytes, .context = 3}), CLT_E_RANGE);
    assert_detail("token 0 is 49920: expected ids from 0 to 255");
    clt_tokenizer_destroy(bytes);
    watch_end();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_themselves),
        cmocka_unit_test(chars_are_sorted),
        cmocka_unit_test(text_and_back),
        cmocka_unit_test(refuses_ids_that_are_none),
#ifdef CLT_WITH_PCRE2
        cmocka_unit_test(merges_by_rank),
        cmocka_unit_test(merges_long_pieces),
        cmocka_unit_test(survives_missing_memory),
#endif
        cmocka_unit_test(refuses_other_kinds_by_name),
        cmocka_unit_test(windows_are_shifted),
        cmocka_unit_test(reads_files_of_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
