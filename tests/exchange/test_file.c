/* Data of tensors, wherever a file has them. */
#include "tests/data/files.h"

#include "runtime/exchange/onnx/literal.h"
#include "tests/exchange/messages.h"

static message tensor(int64_t type, int64_t elements) {
    message m = {.length = 0};
    put_number(&m, 1, (uint64_t)elements);
    put_number(&m, 2, (uint64_t)type);
    put_text(&m, 8, "w");
    return m;
}

static const char *write_tensor(const message *m) {
    message graph = {.length = 0}, model = {.length = 0};
    put_message(&graph, 5, m);
    put_message(&model, 7, &graph);
    return write_bytes("model.onnx", model.bytes, model.length);
}

/* The values of elements first .. first + count, or the error. */
static clt_status read_tensor(const message *m, int64_t first, int64_t count, void *to) {
    clt_onnx_file file;
    assert_ok(clt_onnx_file_open(&file, write_tensor(m)));
    clt_status status = clt_onnx_data_read(&file, &file.model.initializers[0], first, count, to);
    clt_onnx_file_close(&file);
    return status;
}

static void test_raw(void **state) {
    (void)state;
    static const float values[] = {1, 2, 3, 4};
    float got[4] = {0};
    message m = tensor(CLT_ONNX_FLOAT, 4);
    put_bytes(&m, 9, values, sizeof values);
    assert_ok(read_tensor(&m, 0, 4, got));
    assert_memory_equal(got, values, sizeof values);
    assert_ok(read_tensor(&m, 2, 1, got));
    assert_true(got[0] == 3);
    assert_ok(read_tensor(&m, 4, 0, got));
    assert_status(read_tensor(&m, 2, 3, got), CLT_E_RANGE);
    m = tensor(CLT_ONNX_FLOAT, 5);
    put_bytes(&m, 9, values, sizeof values);
    assert_status(read_tensor(&m, 0, 5, got), CLT_E_FORMAT);
    assert_detail("tensor \"w\": its raw data have another length");
    m = tensor(CLT_ONNX_STRING, 1);
    assert_status(read_tensor(&m, 0, 1, got), CLT_E_UNSUPPORTED);
    assert_detail("STRING");
    m = tensor(99, 1);
    assert_status(read_tensor(&m, 0, 1, got), CLT_E_UNSUPPORTED);
    m = tensor(CLT_ONNX_FLOAT, 0);
    assert_ok(read_tensor(&m, 0, 0, got));
}

static void test_typed(void **state) {
    (void)state;
    float floats[3];
    int64_t wide[4];
    unsigned char narrow[3];
    uint16_t halves[1];
    double doubles[1];
    message packed = {.length = 0}, m = tensor(CLT_ONNX_FLOAT, 3);
    put_float(&m, 4, 1);
    put_bytes(&m, 4, (float[]){2, 3}, 8); /* both ways of writing a list, in one */
    assert_ok(read_tensor(&m, 0, 3, floats));
    assert_true(floats[0] == 1 && floats[1] == 2 && floats[2] == 3);
    assert_ok(read_tensor(&m, 1, 2, floats));
    assert_true(floats[0] == 2 && floats[1] == 3);
    put_float(&m, 4, 4);
    assert_status(read_tensor(&m, 0, 3, floats), CLT_E_FORMAT);
    assert_detail("another number of values");

    m = tensor(CLT_ONNX_INT64, 4);
    for (int i = 0; i < 4; i++) put_varint(&packed, (uint64_t)(int64_t[]){-1, INT64_MIN, 0, 1 << 20}[i]);
    put_message(&m, 7, &packed);
    assert_ok(read_tensor(&m, 0, 4, wide));
    assert_true(wide[0] == -1 && wide[1] == INT64_MIN && wide[2] == 0 && wide[3] == 1 << 20);
    m = tensor(CLT_ONNX_BOOL, 3);
    for (int i = 0; i < 3; i++) put_number(&m, 5, i == 1);
    assert_ok(read_tensor(&m, 0, 3, narrow));
    assert_true(narrow[0] == 0 && narrow[1] == 1 && narrow[2] == 0);
    m = tensor(CLT_ONNX_FLOAT16, 1);
    put_number(&m, 5, 0x3c00);
    assert_ok(read_tensor(&m, 0, 1, halves));
    assert_int_equal(halves[0], 0x3c00);
    m = tensor(CLT_ONNX_DOUBLE, 1);
    put_bytes(&m, 10, (double[]){0.1}, 8);
    assert_ok(read_tensor(&m, 0, 1, doubles));
    assert_true(doubles[0] == 0.1);
    m = tensor(CLT_ONNX_UINT32, 1);
    put_number(&m, 11, 3000000000u);
    assert_ok(read_tensor(&m, 0, 1, floats));
    assert_memory_equal(floats, &(uint32_t){3000000000u}, 4);

    m = tensor(CLT_ONNX_INT64, 1);
    assert_status(read_tensor(&m, 0, 1, wide), CLT_E_FORMAT);
    assert_detail("it has no data");
    put_bytes(&m, 7, "\x80", 1);
    assert_status(read_tensor(&m, 0, 1, wide), CLT_E_FORMAT);
    assert_detail("malformed");
}

static message external(const char *location, const char *offset, const char *length) {
    static const char *const keys[] = {"location", "offset", "length"};
    const char *values[] = {location, offset, length};
    message m = tensor(CLT_ONNX_FLOAT, 2);
    for (int i = 0; i < 3; i++) {
        message pair = {.length = 0};
        if (!values[i]) continue;
        put_text(&pair, 1, keys[i]);
        put_text(&pair, 2, values[i]);
        put_message(&m, 13, &pair);
    }
    put_number(&m, 14, 1);
    return m;
}

static void test_external(void **state) {
    (void)state;
    static const float values[] = {1, 2, 3, 4};
    float got[2];
    write_bytes("weights.bin", values, sizeof values);
    message m = external("weights.bin", "8", "8");
    assert_ok(read_tensor(&m, 0, 2, got));
    assert_true(got[0] == 3 && got[1] == 4);
    assert_ok(read_tensor(&m, 1, 1, got));
    assert_true(got[0] == 4);
    m = external("weights.bin", NULL, NULL);
    assert_ok(read_tensor(&m, 0, 2, got));
    assert_true(got[0] == 1 && got[1] == 2);
    static const struct {
        const char *location, *offset, *length;
        clt_status status;
        const char *words;
    } wrong[] = {
        {"weights.bin", "12", NULL, CLT_E_FORMAT, "shorter than its shape"},  {"weights.bin", "9223372036854775807", NULL, CLT_E_FORMAT, "shorter"},
        {"weights.bin", "12", "8", CLT_E_FORMAT, "weights.bin"},              {"weights.bin", "0", "16", CLT_E_FORMAT, "another length"},
        {"../weights.bin", "0", "8", CLT_E_FORMAT, "leads out of its folder"}, {"none.bin", "0", "8", CLT_E_IO, "none.bin"},
        {"/etc/passwd", "0", "8", CLT_E_FORMAT, "leads out of its folder"},
    };
    for (size_t i = 0; i < CLT_COUNT_OF(wrong); i++) {
        m = external(wrong[i].location, wrong[i].offset, wrong[i].length);
        assert_status(read_tensor(&m, 0, 2, got), wrong[i].status);
        assert_detail(wrong[i].words);
    }
}

static void test_literals(void **state) {
    (void)state;
    clt_onnx_file file;
    clt_arena arena = {.limit = 1 << 20};
    clt_literal *literal;
    message m = tensor(CLT_ONNX_INT32, 2);
    put_number(&m, 5, (uint64_t)-5);
    put_number(&m, 5, 7);
    assert_ok(clt_onnx_file_open(&file, write_tensor(&m)));
    assert_true(clt_literal_takes(&file.model.initializers[0]));
    assert_ok(clt_literal_of_tensor(&arena, &file, &file.model.initializers[0], &literal));
    assert_true(literal->type == CLT_ONNX_INT32 && literal->elements == 2 && literal->integers[0] == -5 && literal->integers[1] == 7);
    clt_onnx_file_close(&file);
    m = tensor(CLT_ONNX_FLOAT, CLT_ONNX_MOST_LITERAL + 1);
    assert_ok(clt_onnx_file_open(&file, write_tensor(&m)));
    assert_false(clt_literal_takes(&file.model.initializers[0]));
    assert_status(clt_literal_of_tensor(&arena, &file, &file.model.initializers[0], &literal), CLT_E_RANGE);
    clt_onnx_file_close(&file);
    m = tensor(CLT_ONNX_DOUBLE, 1);
    put_bytes(&m, 10, (double[]){0.1}, 8);
    assert_ok(clt_onnx_file_open(&file, write_tensor(&m)));
    assert_ok(clt_literal_of_tensor(&arena, &file, &file.model.initializers[0], &literal));
    assert_true(literal->type == CLT_ONNX_FLOAT && literal->floats[0] == 0.1f);
    clt_onnx_file_close(&file);
    m = tensor(CLT_ONNX_UINT64, 1);
    assert_ok(clt_onnx_file_open(&file, write_tensor(&m)));
    assert_false(clt_literal_takes(&file.model.initializers[0]));
    assert_status(clt_literal_of_tensor(&arena, &file, &file.model.initializers[0], &literal), CLT_E_UNSUPPORTED);
    clt_onnx_file_close(&file);
    for (int i = 0; i < CLT_MAX_RANK; i++) put_number(&m, 1, 1);
    assert_ok(clt_onnx_file_open(&file, write_tensor(&m)));
    assert_status(clt_literal_of_tensor(&arena, &file, &file.model.initializers[0], &literal), CLT_E_UNSUPPORTED);
    assert_detail("9 dimensions, more than 8");
    clt_onnx_file_close(&file);
    clt_arena_free(&arena);
}

static void test_no_file(void **state) {
    (void)state;
    clt_onnx_file file;
    assert_status(clt_onnx_file_open(&file, support_path("nothing.onnx")), CLT_E_IO);
    clt_onnx_file_close(&file);
    assert_status(clt_onnx_file_open(&file, write_text("text.onnx", "no protocol buffer")), CLT_E_FORMAT);
    assert_detail("text.onnx");
    clt_onnx_file_close(&file);
    assert_status(clt_onnx_file_open(&file, write_text("empty.onnx", "")), CLT_E_FORMAT);
    assert_detail("is it an ONNX file?");
    clt_onnx_file_close(&file);
}

/* Each allocation fails once. */
static void test_failing_memory(void **state) {
    (void)state;
    float got[2];
    write_bytes("weights.bin", (float[]){1, 2}, 8);
    message m = external("weights.bin", "0", "8");
    const char *path = write_tensor(&m);
    clt_status status = CLT_E_NO_MEMORY;
    for (long at = 0; status != CLT_OK; at++) {
        clt_onnx_file file;
        watch_begin(at);
        status = clt_onnx_file_open(&file, path);
        if (status == CLT_OK) status = clt_onnx_data_read(&file, &file.model.initializers[0], 0, 2, got);
        clt_onnx_file_close(&file);
        watch_end();
        assert_true(status == CLT_OK || status == CLT_E_NO_MEMORY);
    }
    assert_true(got[1] == 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_raw),      cmocka_unit_test(test_typed),   cmocka_unit_test(test_external),
                                       cmocka_unit_test(test_literals), cmocka_unit_test(test_no_file), cmocka_unit_test(test_failing_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
