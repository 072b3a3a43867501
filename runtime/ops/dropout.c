/*
 * Dropout (Srivastava et al. 2014) with a mask that is never stored: element i of
 * site s in step t is kept by what Philox gives for (seed, t, s, i), which the
 * backward pass asks again.
 */
#include "runtime/ops/ops.h"

static clt_status infer(clt_tensor *node) {
    CLT_TRY(clt_check_float(node, 0));
    node->shape = node->inputs[0]->shape;
    node->dtype = node->inputs[0]->dtype;
    return CLT_OK;
}

static void gradient(clt_tensor *node, clt_tensor *dy, const bool *wanted, clt_tensor **dx) {
    if (wanted[0])
        dx[0] = clt_node(NULL, &clt_op_dropout, node->attributes, (clt_tensor *[]){dy, node->inputs[1]}, 2);
}

static const clt_attribute schema[] = {
    CLT_ATTRIBUTE(clt_dropout_attributes, p, FLOAT, .usual = 0.5, .least = 0, .most = 1, .below = true),
    CLT_ATTRIBUTE(clt_dropout_attributes, site, INT),
    {0},
};

const clt_op clt_op_dropout = {
    .name = "dropout", .least_inputs = 2,
    .attributes_bytes = sizeof(clt_dropout_attributes),
    .schema = schema,
    .infer = infer,
    .gradient = gradient,
    .operations = 1,
};

clt_tensor *clt_random_site(clt_graph *graph, int *site) {
    if (!graph->rng) {
        clt_tensor *rng = clt_state(graph, "rng", CLT_I32, CLT_SHAPE(4));
        if (!clt_tensor_valid(rng)) return graph->invalid;
        graph->rng = rng;
    }
    *site = graph->n_random_sites++;
    return graph->rng;
}

clt_tensor *clt_dropout(clt_tensor *x, float p) {
    if (!clt_tensor_valid(x)) return x;
    clt_dropout_attributes at = {.p = p};
    clt_tensor *rng = clt_random_site(x->graph, &at.site);
    return clt_node(NULL, &clt_op_dropout, &at, (clt_tensor *[]){x, rng}, 2);
}
