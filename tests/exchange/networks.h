/* ONNX files of small networks. */
#ifndef CLT_TESTS_EXCHANGE_NETWORKS_H
#define CLT_TESTS_EXCHANGE_NETWORKS_H

#include "tests/data/files.h"

#include <cltrain/cltrain.h>

#include "runtime/exchange/onnx/model.h"
#include "tests/exchange/messages.h"

typedef struct network {
    message graph;
    int64_t opset;
    const char *producer;
    bool wide; /* weights are f64, each a little beside a number of f32 */
    const char *location; /* of a file that has the weights, one behind the other; NULL: they are in the model */
    size_t external_bytes;
} network;

static unsigned char external_data[4096];

static inline void put_pair(message *m, const char *key, const char *value) {
    message pair = {.length = 0};
    put_text(&pair, 1, key);
    put_text(&pair, 2, value);
    put_message(m, 13, &pair);
}

static inline void put_external(network *n, message *m, const void *values, size_t bytes) {
    char offset[24];
    snprintf(offset, sizeof offset, "%zu", n->external_bytes);
    memcpy(external_data + n->external_bytes, values, bytes);
    n->external_bytes += bytes;
    put_pair(m, "location", n->location);
    put_pair(m, "offset", offset);
    put_number(m, 14, 1);
}

static inline void add_weight(network *n, const char *name, clt_shape shape, const float *values) {
    enum { MOST = 256 };
    message m = {.length = 0};
    double wide[MOST];
    size_t count = (size_t)clt_shape_elements(&shape), bytes = count * (n->wide ? sizeof *wide : sizeof *values);
    for (size_t i = 0; n->wide && i < count && i < MOST; i++) wide[i] = values[i] * (1 + 1e-10);
    for (int d = 0; d < shape.rank; d++) put_number(&m, 1, (uint64_t)shape.dims[d]);
    put_number(&m, 2, n->wide ? CLT_ONNX_DOUBLE : CLT_ONNX_FLOAT);
    put_text(&m, 8, name);
    if (n->location) put_external(n, &m, n->wide ? (const void *)wide : values, bytes);
    else put_bytes(&m, 9, n->wide ? (const void *)wide : values, bytes);
    put_message(&n->graph, 5, &m);
}

static inline void add_list(network *n, const char *name, const int64_t *values, int count) {
    message m = {.length = 0};
    put_number(&m, 1, (uint64_t)count);
    put_number(&m, 2, CLT_ONNX_INT64);
    put_text(&m, 8, name);
    put_bytes(&m, 9, values, (size_t)count * sizeof *values);
    put_message(&n->graph, 5, &m);
}

/* A dimension of -1 is named "batch", of -2 "length". */
static inline void add_info(network *n, unsigned field, const char *name, int64_t type, clt_shape shape) {
    message dims = {.length = 0}, tensor = {.length = 0}, kind = {.length = 0}, m = {.length = 0};
    for (int d = 0; d < shape.rank; d++) {
        message dim = {.length = 0};
        if (shape.dims[d] < 0) put_text(&dim, 2, shape.dims[d] == -1 ? "batch" : "length");
        else put_number(&dim, 1, (uint64_t)shape.dims[d]);
        put_message(&dims, 1, &dim);
    }
    put_number(&tensor, 1, (uint64_t)type);
    put_message(&tensor, 2, &dims);
    put_message(&kind, 1, &tensor);
    put_text(&m, 1, name);
    put_message(&m, 2, &kind);
    put_message(&n->graph, field, &m);
}

/* "Op name: inputs -> outputs", with one attribute of an integer, if it has a name. */
static inline void add_node(network *n, const char *op, const char *const *inputs, const char *output, const char *attribute, int64_t value) {
    message m = {.length = 0}, a = {.length = 0};
    for (; *inputs; inputs++) put_text(&m, 1, *inputs);
    put_text(&m, 2, output);
    put_text(&m, 4, op);
    put_text(&a, 1, attribute ? attribute : "");
    put_number(&a, 3, (uint64_t)value);
    put_number(&a, 20, CLT_ONNX_A_INT);
    if (attribute) put_message(&m, 5, &a);
    put_message(&n->graph, 1, &m);
}
/* The same with a text. */
static inline void add_node_of_text(network *n, const char *op, const char *const *inputs, const char *output, const char *attribute, const char *value) {
    message m = {.length = 0}, a = {.length = 0};
    for (; *inputs; inputs++) put_text(&m, 1, *inputs);
    put_text(&m, 2, output);
    put_text(&m, 4, op);
    put_text(&a, 1, attribute);
    put_text(&a, 4, value);
    put_number(&a, 20, CLT_ONNX_A_STRING);
    put_message(&m, 5, &a);
    put_message(&n->graph, 1, &m);
}
#define NODE(n, op, output, ...) add_node((n), (op), (const char *const[]){__VA_ARGS__, NULL}, (output), NULL, 0)

static inline const char *write_network(const network *n) {
    message opset = {.length = 0}, m = {.length = 0};
    put_number(&opset, 2, (uint64_t)(n->opset ? n->opset : 17));
    if (n->producer) put_text(&m, 2, n->producer);
    put_message(&m, 8, &opset);
    put_message(&m, 7, &n->graph);
    return write_bytes("network.onnx", m.bytes, m.length);
}

/* That a build of it is refused so. */
static inline void assert_build_fails(const network *n, const clt_onnx_options *options, clt_status status, const char *words) {
    clt_onnx *onnx;
    clt_graph *graph;
    assert_ok(clt_onnx_open(&onnx, write_network(n)));
    assert_ok(clt_graph_create(&graph));
    assert_status(clt_onnx_build(onnx, graph, options), status);
    assert_detail(words);
    clt_graph_destroy(graph);
    clt_onnx_close(onnx);
}

#endif
