#include "tests/support.h"

#include <stdlib.h>

#include "runtime/exchange/onnx/model.h"
#include "tests/exchange/messages.h"

/* A model of one node, "Gemm" of x and w, with w a tensor of 2 x 3. */
static message tensor_message(void) {
    static const float values[] = {1, 2, 3, 4, 5, 6};
    message dims = {.length = 0}, m = {.length = 0};
    put_varint(&dims, 2);
    put_varint(&dims, 3);
    put_message(&m, 1, &dims);
    put_number(&m, 2, CLT_ONNX_FLOAT);
    put_text(&m, 8, "w");
    put_bytes(&m, 9, values, sizeof values);
    return m;
}

static message node_message(void) {
    message a = {.length = 0}, b = {.length = 0}, m = {.length = 0};
    put_text(&m, 1, "x");
    put_text(&m, 1, "w");
    put_text(&m, 1, "");
    put_text(&m, 2, "y");
    put_text(&m, 3, "the node");
    put_text(&m, 4, "Gemm");
    put_text(&m, 7, "ai.onnx");
    put_text(&a, 1, "alpha");
    put_float(&a, 2, 0.5f);
    put_number(&a, 20, CLT_ONNX_A_FLOAT);
    put_text(&b, 1, "axes");
    put_number(&b, 8, 7); /* not packed, as proto2 writes it */
    put_number(&b, 8, (uint64_t)-2);
    put_number(&b, 20, CLT_ONNX_A_INTS);
    put_message(&m, 5, &a);
    put_message(&m, 5, &b);
    return m;
}

static message info_message(const char *name) {
    message one = {.length = 0}, two = {.length = 0}, shape = {.length = 0}, tensor = {.length = 0}, type = {.length = 0}, m = {.length = 0};
    put_text(&one, 2, "batch");
    put_number(&two, 1, 2);
    put_message(&shape, 1, &one);
    put_message(&shape, 1, &two);
    put_number(&tensor, 1, CLT_ONNX_FLOAT);
    put_message(&tensor, 2, &shape);
    put_message(&type, 1, &tensor);
    put_text(&m, 1, name);
    put_message(&m, 2, &type);
    return m;
}

static message graph_message(void) {
    message node = node_message(), tensor = tensor_message(), x = info_message("x"), y = info_message("y"), m = {.length = 0};
    put_message(&m, 1, &node);
    put_text(&m, 2, "the graph");
    put_message(&m, 5, &tensor);
    put_message(&m, 11, &x);
    put_message(&m, 12, &y);
    return m;
}

static message model_message(const message *graph) {
    message opset = {.length = 0}, m = {.length = 0};
    put_number(&m, 1, 8);
    put_text(&m, 2, "test");
    put_number(&opset, 2, 17);
    put_message(&m, 8, &opset);
    put_message(&m, 7, graph);
    return m;
}

static void test_read(void **state) {
    (void)state;
    message graph = graph_message(), m = model_message(&graph);
    clt_onnx_model model;
    assert_ok(clt_onnx_model_read(&model, wire_of(&m)));
    assert_int_equal(model.ir_version, 8);
    assert_string_equal(model.producer, "test");
    assert_true(model.n_opsets == 1 && model.opsets[0].version == 17 && !*model.opsets[0].domain);
    assert_string_equal(model.name, "the graph");
    assert_true(model.n_nodes == 1 && model.n_initializers == 1 && model.n_inputs == 1 && model.n_outputs == 1);

    const clt_onnx_node *node = &model.nodes[0];
    assert_string_equal(node->op, "Gemm");
    assert_string_equal(node->name, "the node");
    assert_string_equal(node->domain, "");
    assert_true(node->n_inputs == 3 && node->n_outputs == 1);
    assert_string_equal(node->inputs[1], "w");
    assert_string_equal(node->inputs[2], "");
    assert_string_equal(node->outputs[0], "y");
    assert_true(clt_onnx_attribute_of(node, "alpha", CLT_ONNX_A_FLOAT)->f == 0.5f);
    const clt_onnx_attribute *axes = clt_onnx_attribute_of(node, "axes", CLT_ONNX_A_INTS);
    assert_true(axes->n == 2 && axes->ints[0] == 7 && axes->ints[1] == -2);
    assert_null(clt_onnx_attribute_of(node, "beta", 0));
    assert_ok(clt_onnx_attributes_check(node));
    assert_null(clt_onnx_attribute_of(node, "alpha", CLT_ONNX_A_INT));
    assert_status(clt_onnx_attributes_check(node), CLT_E_FORMAT);
    assert_detail("its attribute \"alpha\" is FLOAT: expected INT");

    const clt_onnx_tensor *w = &model.initializers[0];
    assert_string_equal(w->name, "w");
    assert_true(w->type == CLT_ONNX_FLOAT && w->rank == 2 && w->dims[0] == 2 && w->dims[1] == 3 && w->elements == 6);
    assert_true(w->has_raw && clt_wire_length(w->raw) == 24 && !w->external);
    assert_true(w->raw.at > m.bytes && w->raw.end < m.bytes + m.length); /* where it is in the file */

    const clt_onnx_info *x = &model.inputs[0];
    assert_true(x->is_tensor && x->type == CLT_ONNX_FLOAT && x->has_shape && x->rank == 2);
    assert_string_equal(x->dims[0].symbol, "batch");
    assert_true(x->dims[0].size == -1 && x->dims[1].size == 2);
    clt_onnx_model_free(&model);
}

/* Any part of a file is a model, or an error: nothing behind it is looked at, and nothing is left. */
static void test_truncation(void **state) {
    (void)state;
    message graph = graph_message(), m = model_message(&graph);
    for (size_t length = 0; length < m.length; length++) {
        unsigned char *cut = malloc(length ? length : 1);
        assert_non_null(cut);
        memcpy(cut, m.bytes, length);
        clt_onnx_model model;
        assert_status(clt_onnx_model_read(&model, (clt_wire){cut, cut + length}), CLT_E_FORMAT);
        clt_onnx_model_free(&model);
        free(cut);
    }
}

static void assert_refused(const message *graph, const char *words) {
    message m = model_message(graph);
    clt_onnx_model model;
    assert_status(clt_onnx_model_read(&model, wire_of(&m)), CLT_E_FORMAT);
    assert_detail(words);
    clt_onnx_model_free(&model);
}

static message with_tensor(const message *tensor) {
    message m = {.length = 0};
    put_message(&m, 5, tensor);
    return m;
}

static void test_malformed(void **state) {
    (void)state;
    message tensor, graph = {.length = 0};
    put_number(&graph, 1, 3);
    assert_refused(&graph, "byte ");
    assert_refused(&graph, "in the graph: field 1 is of type 0, and not of 2");

    tensor = tensor_message();
    put_number(&tensor, 1, (uint64_t)-1);
    graph = with_tensor(&tensor);
    assert_refused(&graph, "a dimension below 0");
    tensor = tensor_message();
    for (int i = 0; i < 2; i++) put_number(&tensor, 1, INT64_MAX);
    graph = with_tensor(&tensor);
    assert_refused(&graph, "the product of its dimensions is too large");
    tensor = tensor_message();
    put_bytes(&tensor, 9, "", 0);
    graph = with_tensor(&tensor);
    assert_refused(&graph, "raw data twice");
    tensor = tensor_message();
    put_bytes(&tensor, 3, "", 0);
    graph = with_tensor(&tensor);
    assert_refused(&graph, "segments");
    tensor = tensor_message();
    put_bytes(&tensor, 8, "a\0b", 3);
    graph = with_tensor(&tensor);
    assert_refused(&graph, "a NUL inside");
    tensor = tensor_message();
    put_number(&tensor, 14, 1);
    graph = with_tensor(&tensor);
    assert_refused(&graph, "both here and external");

    message twice = model_message(&(message){.length = 0});
    put_message(&twice, 7, &(message){.length = 0});
    clt_onnx_model model;
    assert_status(clt_onnx_model_read(&model, wire_of(&twice)), CLT_E_FORMAT);
    assert_detail("2 graphs");
    clt_onnx_model_free(&model);
}

static message external_message(const char *key, const char *value, const char *location) {
    message pair = {.length = 0}, place = {.length = 0}, m = {.length = 0};
    put_number(&m, 1, 3);
    put_number(&m, 2, CLT_ONNX_FLOAT);
    put_text(&place, 1, "location");
    put_text(&place, 2, location);
    put_text(&pair, 1, key);
    put_text(&pair, 2, value);
    put_message(&m, 13, &place);
    put_message(&m, 13, &pair);
    put_number(&m, 14, 1);
    return m;
}

static void test_external(void **state) {
    (void)state;
    message tensor = external_message("offset", "4096", "weights.bin"), graph = with_tensor(&tensor), m = model_message(&graph);
    clt_onnx_model model;
    assert_ok(clt_onnx_model_read(&model, wire_of(&m)));
    const clt_onnx_external *external = model.initializers[0].external;
    assert_non_null(external);
    assert_string_equal(external->location, "weights.bin");
    assert_true(external->offset == 4096 && !external->has_length);
    clt_onnx_model_free(&model);
    static const char *const numbers[] = {"-1", "", "1e3", "99999999999999999999"};
    for (size_t i = 0; i < CLT_COUNT_OF(numbers); i++) {
        tensor = external_message("length", numbers[i], "weights.bin");
        graph = with_tensor(&tensor);
        assert_refused(&graph, "not a whole number");
    }
    tensor = external_message("length", "12", "");
    graph = with_tensor(&tensor);
    assert_refused(&graph, "name no file");
}

/* Empty messages are the least bytes for the most memory. */
static void test_memory_is_bounded(void **state) {
    (void)state;
    enum { MOST = 1 << 18 };
    static const struct { unsigned char field; const char *refused; } lists[] = {
        {1 << 3 | 2, "1000000 nodes, more than 262144"}, {5 << 3 | 2, "1000000 weights, more than"}, {11 << 3 | 2, "1000000 inputs, more than"}};
    unsigned char *bytes = malloc(2 * 1000000 + 16);
    assert_non_null(bytes);
    for (size_t k = 0; k < 2 * CLT_COUNT_OF(lists); k++) {
        size_t n = k % 2 ? MOST : 1000000;
        message head = {.length = 0};
        put_varint(&head, 7 << 3 | CLT_WIRE_BYTES);
        put_varint(&head, 2 * n);
        memcpy(bytes, head.bytes, head.length);
        for (size_t i = 0; i < n; i++) {
            bytes[head.length + 2 * i] = lists[k / 2].field;
            bytes[head.length + 2 * i + 1] = 0;
        }
        clt_onnx_model model;
        clt_status status = clt_onnx_model_read(&model, (clt_wire){bytes, bytes + head.length + 2 * n});
        assert_true(model.arena.used <= (n == MOST ? 64 * 2 * n : 65536));
        if (n == MOST) {
            assert_ok(status);
            assert_true(model.n_nodes + model.n_initializers + model.n_inputs == n);
        } else {
            assert_status(status, CLT_E_UNSUPPORTED);
            assert_detail(lists[k / 2].refused);
        }
        clt_onnx_model_free(&model);
    }
    free(bytes);
}

/* A graph in a graph in a graph: what is not read is not entered, however deep. */
static void test_nesting(void **state) {
    (void)state;
    message attribute = {.length = 0};
    for (int i = 0; i < 500; i++) {
        message graph = {.length = 0}, node = {.length = 0}, outer = {.length = 0};
        put_message(&node, 5, &attribute);
        put_message(&graph, 1, &node);
        put_text(&outer, 1, "body");
        put_message(&outer, 6, &graph);
        if (outer.length > sizeof outer.bytes - 64) break;
        attribute = outer;
    }
    message node = {.length = 0}, graph = {.length = 0};
    put_text(&node, 4, "Loop");
    put_message(&node, 5, &attribute);
    put_message(&graph, 1, &node);
    message m = model_message(&graph);
    clt_onnx_model model;
    assert_ok(clt_onnx_model_read(&model, wire_of(&m)));
    assert_string_equal(model.nodes[0].attributes[0].name, "body");
    clt_onnx_model_free(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_read),     cmocka_unit_test(test_truncation),        cmocka_unit_test(test_malformed),
                                       cmocka_unit_test(test_external), cmocka_unit_test(test_memory_is_bounded), cmocka_unit_test(test_nesting)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
