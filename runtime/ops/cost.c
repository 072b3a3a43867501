/*
 * What a node costs at least: its arithmetic, and the bytes that must be moved if every operand is read
 * once and every result written once. An estimate to hold times against; nothing depends on it.
 */
#include <ctype.h>
#include <string.h>

#include "runtime/ops/ops.h"

static double elements(const clt_tensor *t) {
    return (double)clt_tensor_elements(t);
}

static double bytes_of(const clt_tensor *t) {
    return elements(t) * (double)clt_dtype_bytes(t->dtype);
}

/* Operands that are the same tensor are read once; those written in place are also written. */
static double all_bytes(const clt_tensor *node) {
    double bytes = node->op->is_view ? 0 : bytes_of(node);
    for (int i = 0; i < node->n_inputs; i++) {
        bool seen = false;
        for (int k = 0; k < i; k++) seen |= node->inputs[k] == node->inputs[i];
        if (!seen) bytes += bytes_of(node->inputs[i]);
        if (node->op->writes >> i & 1) bytes += bytes_of(node->inputs[i]);
    }
    return bytes;
}

/* ---- contractions: two operations a product ---- */

static clt_cost matmul(const clt_tensor *node) {
    const clt_matmul_attributes *at = node->attributes;
    const clt_shape *a = &node->inputs[0]->shape;
    double depth = (double)a->dims[a->rank - (at->transpose_a ? 2 : 1)];
    return (clt_cost){2 * elements(node) * depth, all_bytes(node)};
}

/* Each value of the convolution's result is the sum of one filter's products. */
static clt_cost convolution(const clt_tensor *node, const clt_tensor *weight, const clt_tensor *y) {
    return (clt_cost){2 * elements(y) * elements(weight) / (double)weight->shape.dims[0], all_bytes(node)};
}

static clt_cost conv2d(const clt_tensor *node) {
    return convolution(node, node->inputs[1], node);
}

static clt_cost conv2d_grad_input(const clt_tensor *node) {
    return convolution(node, node->inputs[0], node->inputs[1]);
}

static clt_cost conv2d_grad_weight(const clt_tensor *node) {
    return convolution(node, node, node->inputs[1]);
}

/* ---- pointwise: operators and calls in the expression ---- */

static clt_cost pointwise(const clt_tensor *node) {
    const clt_pointwise_attributes *at = node->attributes;
    double operations = 0;
    for (const char *c = at->expression; *c; c++) {
        bool called = *c == '(' && c > at->expression && (isalnum((unsigned char)c[-1]) || c[-1] == '_');
        operations += called || strchr("+-*/<>?", *c) != NULL;
    }
    return (clt_cost){operations * elements(node), all_bytes(node)};
}

/* ---- pools: the window of each value of the smaller side ---- */

static clt_cost pool2d(const clt_tensor *node) {
    const clt_pool2d_attributes *at = node->attributes;
    double smaller = elements(node);
    for (int i = 0; i < node->n_inputs; i++) smaller = CLT_MIN(smaller, elements(node->inputs[i]));
    return (clt_cost){smaller * at->kernel_h * at->kernel_w, all_bytes(node)};
}

/* ---- copies that leave a part out ---- */

static clt_cost slice(const clt_tensor *node) {
    return (clt_cost){0, 2 * bytes_of(node)};
}

static clt_cost embedding(const clt_tensor *node) {
    return (clt_cost){0, 2 * bytes_of(node) + bytes_of(node->inputs[1])};
}

/* Parts that were written where they belong are not copied. */
static clt_cost pack(const clt_tensor *node) {
    double bytes = 0;
    const clt_tensor *flat = node->inputs[0];
    for (int i = 1; i < node->n_inputs; i++)
        if (node->inputs[i]->storage != (flat->storage ? flat->storage : flat)) bytes += 2 * bytes_of(node->inputs[i]);
    return (clt_cost){0, bytes};
}

/* ---- compression: gradient and residual are read and the residual written; or the flat tensor is written alone ---- */

static clt_cost decode(const clt_tensor *node) {
    const clt_compress_attributes *at = node->attributes;
    return (clt_cost){elements(node) * (at ? at->ranks : 1), bytes_of(node) + bytes_of(node->inputs[1])};
}

/* Both factors' sides are read once for each pair of columns. */
static clt_cost orthogonalize(const clt_tensor *node) {
    double rank = (double)node->shape.dims[1];
    return (clt_cost){2 * elements(node) * (rank + 1), 2 * bytes_of(node)};
}

/* ---- the rest: so many operations for each value of the largest operand or result ---- */

static clt_cost by_element(const clt_tensor *node, double operations) {
    double most = elements(node);
    for (int i = 0; i < node->n_inputs; i++) most = CLT_MAX(most, elements(node->inputs[i]));
    return (clt_cost){operations * most, all_bytes(node)};
}

clt_cost clt_node_cost(const clt_tensor *node) {
    static const struct {
        const clt_op *op;
        clt_cost (*cost)(const clt_tensor *node);
    } rules[] = {
        {&clt_op_matmul, matmul},
        {&clt_op_conv2d, conv2d},
        {&clt_op_conv2d_grad_input, conv2d_grad_input},
        {&clt_op_conv2d_grad_weight, conv2d_grad_weight},
        {&clt_op_pointwise, pointwise},
        {&clt_op_max_pool2d, pool2d},
        {&clt_op_max_pool2d_grad, pool2d},
        {&clt_op_avg_pool2d, pool2d},
        {&clt_op_avg_pool2d_grad, pool2d},
        {&clt_op_slice, slice},
        {&clt_op_embedding, embedding},
        {&clt_op_pack, pack},
        {&clt_op_widen, decode},
        {&clt_op_int8_decode, decode},
        {&clt_op_onebit_decode, decode},
        {&clt_op_topk_decode, decode},
        {&clt_op_orthogonalize, orthogonalize},
    };
    static const struct {
        const clt_op *op;
        double operations;
    } each[] = {
        {&clt_op_batch_norm_stats, 4},      {&clt_op_batch_norm, 2},
        {&clt_op_batch_norm_grad_stats, 4}, {&clt_op_batch_norm_grad_input, 6},
        {&clt_op_layer_norm_stats, 4},      {&clt_op_layer_norm, 4},
        {&clt_op_layer_norm_grad_input, 9}, {&clt_op_layer_norm_grad_weight, 4},
        {&clt_op_reduce, 1},                {&clt_op_softmax, 5},
        {&clt_op_softmax_grad, 4},          {&clt_op_log_softmax, 5},
        {&clt_op_log_softmax_grad, 4},      {&clt_op_cross_entropy, 4},
        {&clt_op_cross_entropy_grad, 6},    {&clt_op_dropout, 1},
        {&clt_op_accumulate, 2},            {&clt_op_norm_squared, 3},
        {&clt_op_sgd, 6},                   {&clt_op_adam, 14},
        {&clt_op_metric_correct, 1},        {&clt_op_narrow, 1},
        {&clt_op_int8_encode, 6},           {&clt_op_onebit_encode, 8},
        {&clt_op_topk_encode, 5},           {&clt_op_feedback_add, 1},
        {&clt_op_feedback_subtract, 2},
    };
    if (node->kind != CLT_NODE_OP) return (clt_cost){0, 0};
    for (size_t i = 0; i < CLT_COUNT_OF(rules); i++)
        if (rules[i].op == node->op) return rules[i].cost(node);
    for (size_t i = 0; i < CLT_COUNT_OF(each); i++)
        if (each[i].op == node->op) return by_element(node, each[i].operations);
    return (clt_cost){0, all_bytes(node)};
}
