/*
 * Scaled dot-product attention (Vaswani et al. 2017), without a matrix of T x S in memory (Dao et al. 2022). With s_ij = scale q_i . k_j,
 * m_i = max_j s_ij, l_i = sum_j exp(s_ij - m_i) and p_ij = exp(s_ij - m_i) / l_i:
 *
 *   y_i = sum_j p_ij v_j
 *   D_i = dy_i . y_i,  ds_ij = p_ij (dy_i . v_j - D_i)
 *   dq_i = scale sum_j ds_ij k_j,  dk_j = scale sum_i ds_ij q_i,  dv_j = sum_i p_ij dy_i
 *
 * A mask is added to s, and dropout makes z_ij p_ij of p_ij in y, where z_ij is 0 or 1 / (1 - dropout); then ds_ij = p_ij (z_ij dy_i . v_j - D_i) and
 * dv_j = sum_i z_ij p_ij dy_i. Backward keeps m and 1 / l alone, and computes p and z again.
 * Their sum m + log l would do but for rows of which a mask adds -1e9 to every score: there log l is lost beside m.
 */
#include "runtime/ops/ops.h"

#include <float.h>
#include <math.h>

clt_attention_size clt_attention_sizes(const clt_tensor *node) {
    const clt_shape *q = &node->inputs[0]->shape, *k = &node->inputs[1]->shape;
    return (clt_attention_size){q->dims[0], q->dims[1], k->dims[1], q->dims[2], k->dims[2], q->dims[3]};
}

float clt_attention_scale(const clt_tensor *node) {
    const clt_attention_attributes *at = node->attributes;
    return at->scale != 0 ? at->scale : (float)(1 / sqrt((double)clt_attention_sizes(node).d));
}

/* Those of i32 differ in their rank: 2 of position_ids, 1 of the random numbers. */
static clt_tensor *find(const clt_tensor *node, bool i32, int rank) {
    for (int i = node->op->least_inputs; i < node->n_inputs; i++)
        if ((node->inputs[i]->dtype == CLT_I32) == i32 && node->inputs[i]->shape.rank == rank) return node->inputs[i];
    return NULL;
}

clt_tensor *clt_attention_mask(const clt_tensor *node) { return find(node, false, 4); }
clt_tensor *clt_attention_position_ids(const clt_tensor *node) { return find(node, true, 2); }
clt_tensor *clt_attention_rng(const clt_tensor *node) { return find(node, true, 1); }

void clt_attention_mask_strides(const clt_tensor *node, int64_t strides[4]) {
    const clt_tensor *mask = clt_attention_mask(node);
    int64_t dense[CLT_MAX_RANK];
    if (mask) clt_shape_strides(&mask->shape, dense);
    for (int d = 0; d < 4; d++) strides[d] = mask && mask->shape.dims[d] > 1 ? dense[d] : 0;
}

static int64_t index_limit(const clt_tensor *node, int input) {
    return node->inputs[input] == clt_attention_position_ids(node) ? clt_attention_sizes(node).s : 0;
}

static clt_status check_mask(const clt_tensor *mask, const clt_attention_size *z) {
    const clt_shape scores = CLT_SHAPE(z->n, z->heads, z->t, z->s);
    char text[CLT_SHAPE_TEXT], wanted[CLT_SHAPE_TEXT];
    bool fits = (mask->dtype == CLT_F32 || mask->dtype == CLT_U8) && mask->shape.rank == 4;
    for (int d = 0; fits && d < 4; d++) fits = mask->shape.dims[d] == 1 || mask->shape.dims[d] == scores.dims[d];
    if (fits) return CLT_OK;
    return clt_fail(CLT_E_SHAPE, "the mask is %s %s: expected f32 or u8 %s, or 1 in the place of any", clt_dtype_name(mask->dtype), clt_shape_text(&mask->shape, text),
                    clt_shape_text(&scores, wanted));
}

static clt_status infer(clt_tensor *node) {
    const clt_shape *q = &node->inputs[0]->shape, *k = &node->inputs[1]->shape;
    char text[CLT_PAIR_TEXT];
    CLT_TRY(clt_check_floats(node, 3));
    for (int i = 0; i < 3; i++) CLT_TRY(clt_check_rank(node, i, 4, 4));
    if (!clt_shape_equal(k, &node->inputs[2]->shape))
        return clt_fail(CLT_E_SHAPE, "keys and values %s differ: expected both [N, key heads, S, D]", clt_pair_text(node->inputs[1], node->inputs[2], text));
    if (q->dims[0] != k->dims[0] || q->dims[3] != k->dims[3])
        return clt_fail(CLT_E_SHAPE, "queries and keys %s: expected [N, heads, T, D] and [N, key heads, S, D]",
                        clt_pair_text(node->inputs[0], node->inputs[1], text));
    if (k->dims[1] < 1 || q->dims[1] % k->dims[1])
        return clt_fail(CLT_E_SHAPE, "%lld heads of queries: expected a multiple of the %lld heads of keys", (long long)q->dims[1], (long long)k->dims[1]);
    const clt_tensor *ids = clt_attention_position_ids(node), *mask = clt_attention_mask(node);
    clt_attention_size z = clt_attention_sizes(node);
    if (mask) CLT_TRY(check_mask(mask, &z));
    if (ids && !clt_shape_equal(&ids->shape, &CLT_SHAPE(q->dims[0], q->dims[2])))
        return clt_fail(CLT_E_SHAPE, "position_ids %s: expected [%lld, %lld]", clt_shape_text(&ids->shape, text), (long long)q->dims[0], (long long)q->dims[2]);
    node->shape = *q;
    node->outputs[0]->shape = CLT_SHAPE(q->dims[0], q->dims[1], q->dims[2], 2);
    node->dtype = node->inputs[0]->dtype;
    node->outputs[0]->dtype = CLT_F32;
    return CLT_OK;
}

static clt_status infer_grad_query(clt_tensor *node) {
    node->shape = node->inputs[0]->shape;
    node->dtype = node->inputs[0]->dtype;
    return CLT_OK;
}

static clt_status infer_grad_key_value(clt_tensor *node) {
    node->shape = node->outputs[0]->shape = node->inputs[1]->shape;
    node->dtype = node->outputs[0]->dtype = node->inputs[1]->dtype;
    return CLT_OK;
}

static void gradient(clt_tensor *node, clt_tensor *dy, const bool *wanted, clt_tensor **dx) {
    clt_tensor *q = node->inputs[0], *k = node->inputs[1], *v = node->inputs[2], *tops = node->outputs[0];
    clt_tensor *inputs[9] = {q, k, v, tops, clt_sum(clt_mul(clt_cast(dy, CLT_F32), clt_cast(node, CLT_F32)), CLT_AXES(3)), dy};
    int n = 6;
    for (int i = 3; i < node->n_inputs; i++) {
        if (wanted[i]) clt_graph_fail(node->graph, clt_fail(CLT_E_UNSUPPORTED, "attention: its mask has no gradient, but depends on what is trained"));
        inputs[n++] = node->inputs[i];
    }
    if (wanted[0]) dx[0] = clt_node(NULL, &clt_op_attention_grad_query, node->attributes, inputs, n);
    if (!wanted[1] && !wanted[2]) return;
    clt_tensor *both = clt_node(NULL, &clt_op_attention_grad_key_value, node->attributes, inputs, n);
    if (!clt_tensor_valid(both)) return;
    dx[1] = both;
    dx[2] = both->outputs[0];
}

/* `products` of T x D by S each; half of them where a query sees the keys before it alone. */
static clt_cost cost(const clt_tensor *node, double products) {
    const clt_attention_attributes *at = node->attributes;
    clt_attention_size z = clt_attention_sizes(node);
    double scores = (double)z.n * (double)z.heads * (double)z.t * (double)z.s * (at->causal ? 0.5 : 1);
    double bytes = 4 * (double)clt_tensor_elements(node);
    for (int i = 0; i < node->n_inputs; i++) bytes += 4 * (double)clt_tensor_elements(node->inputs[i]);
    for (int i = 0; i < node->op->more_outputs; i++) bytes += 4 * (double)clt_tensor_elements(node->outputs[i]);
    return (clt_cost){2 * products * scores * (double)z.d, bytes};
}

static clt_cost cost_forward(const clt_tensor *node) { return cost(node, 2); }
static clt_cost cost_grad_query(const clt_tensor *node) { return cost(node, 3); }
static clt_cost cost_grad_key_value(const clt_tensor *node) { return cost(node, 4); }

static const clt_attribute schema[] = {
    CLT_ATTRIBUTE(clt_attention_attributes, scale, FLOAT),
    CLT_ATTRIBUTE(clt_attention_attributes, causal, BOOL, .key = "c"),
    CLT_ATTRIBUTE(clt_attention_attributes, dropout, FLOAT, .least = 0, .most = 1, .below = true),
    CLT_ATTRIBUTE(clt_attention_attributes, site, INT),
    {0},
};

#define COMMON .attributes_bytes = sizeof(clt_attention_attributes), .schema = schema, .tuned = true, .index_limit = index_limit

const clt_op clt_op_attention = {
    .name = "attention", COMMON, .more_outputs = 1, .least_inputs = 3, .most_inputs = 6, .infer = infer, .gradient = gradient, .cost = cost_forward,
    .autocast = CLT_AUTOCAST_LOW, .f32_inputs = ~7u};
const clt_op clt_op_attention_grad_query = {
    .name = "attention_grad_query", COMMON, .least_inputs = 6, .most_inputs = 9, .infer = infer_grad_query, .cost = cost_grad_query};
const clt_op clt_op_attention_grad_key_value = {
    .name = "attention_grad_key_value", COMMON, .more_outputs = 1, .least_inputs = 6, .most_inputs = 9, .infer = infer_grad_key_value, .cost = cost_grad_key_value};

clt_tensor *clt_attention_with(clt_tensor *q, clt_tensor *k, clt_tensor *v, clt_attention_options options) {
    if (!clt_tensor_valid(q)) return q;
    bool zero = options.scale == 0 && signbit(options.scale); /* CLT_ZERO: all keys alike; 0 itself is the default */
    clt_attention_attributes at = {.scale = zero ? FLT_MIN : options.scale, .causal = options.causal && !options.position_ids, .dropout = options.dropout};
    clt_tensor *inputs[6] = {q, k, v}, *ids = options.position_ids;
    char text[CLT_SHAPE_TEXT];
    int n = 3;
    if (!isfinite(at.scale))
        return clt_graph_fail(q->graph, clt_fail(CLT_E_INVALID, "attention: expected a finite scale, got %g", (double)at.scale));
    if (clt_tensor_valid(ids) && (ids->dtype != CLT_I32 || ids->shape.rank != 2))
        return clt_graph_fail(q->graph, clt_fail(CLT_E_SHAPE, "attention: position_ids are %s %s: expected i32 [N, T]", clt_dtype_name(ids->dtype),
                                                 clt_shape_text(&ids->shape, text)));
    if (clt_tensor_valid(options.mask) && (options.mask->dtype == CLT_I32 || options.mask->shape.rank != 4))
        return clt_graph_fail(q->graph, clt_fail(CLT_E_SHAPE, "attention: the mask is %s %s: expected f32 or u8 [N, heads, T, S], or 1 in the place of any",
                                                 clt_dtype_name(options.mask->dtype), clt_shape_text(&options.mask->shape, text)));
    if (options.mask) inputs[n++] = options.mask;
    if (ids) inputs[n++] = ids;
    if (options.dropout != 0) inputs[n++] = clt_random_site(q->graph, &at.site);
    return clt_node(NULL, &clt_op_attention, &at, inputs, n);
}
