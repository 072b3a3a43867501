/* Dropout: as an op; as exporters write what was done in place: x times (u < p) / p, of u from 0 to 1; and as networks write it that drop whole paths:
 * x / p times floor(p + u), of a u for each sample. */
#include <math.h>
#include <string.h>

#include "runtime/exchange/onnx/onnx.h"
#include "runtime/ops/ops.h"

struct clt_onnx_drawn {
    clt_tensor *like; /* it has its shape */
    bool compared;    /* else it is uniform from 0 to 1 */
    float added;      /* to that */
    clt_tensor *kept; /* 1 / chance where it is not 0 */
    float chance, scale; /* of being `scale`, else 0 */
    clt_onnx_drawn *root; /* of what was drawn first: how it was compared */
};

static clt_status map_dropout(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *x;
    float ratio = clt_onnx_float_attribute(c, "ratio", 0.5f);
    CLT_TRY(clt_onnx_float(c, 0, &x));
    CLT_TRY(clt_onnx_known_float(c, 1, ratio, &ratio));
    if (clt_onnx_is_wanted(c, 1)) return clt_fail(CLT_E_UNSUPPORTED, "its mask is an output");
    if (!(ratio >= 0 && ratio < 1)) return clt_fail(CLT_E_UNSUPPORTED, "a ratio of %g", (double)ratio);
    out[0] = ratio == 0 ? x : clt_dropout(x, ratio);
    return CLT_OK;
}

/* The node's output, which has no tensor. */
static clt_status draw(clt_onnx_call *c, clt_onnx_drawn drawn, int64_t type) {
    clt_onnx_value *value = clt_onnx_value_at(c->onnx, c->out[0]);
    if (!value) return clt_fail(CLT_E_FORMAT, "output 0 is missing");
    CLT_TRY(clt_arena_take(&c->onnx->build, 1, sizeof *value->drawn, &value->drawn));
    *value->drawn = drawn;
    if (!drawn.root) value->drawn->root = value->drawn;
    c->out_type = type;
    return CLT_OK;
}

static clt_status map_uniform(clt_onnx_call *c, clt_tensor **out) {
    clt_onnx_drawn drawn = {.scale = 1};
    float low = clt_onnx_float_attribute(c, "low", 0), high = clt_onnx_float_attribute(c, "high", 1);
    (void)out;
    CLT_TRY(clt_onnx_any(c, 0, &drawn.like));
    if (low != 0 || high != 1) return clt_fail(CLT_E_UNSUPPORTED, "from %g to %g", (double)low, (double)high);
    return draw(c, drawn, CLT_ONNX_FLOAT);
}

/* u < chance, of the type: drawn here once, whoever compares and reads it. */
static clt_status map_chance(clt_onnx_call *c, clt_onnx_drawn drawn, float chance, int64_t type) {
    clt_onnx_drawn *root = drawn.root;
    if (root->kept && root->chance != chance) return clt_fail(CLT_E_UNSUPPORTED, "random values that are compared with %g and with %g", (double)root->chance, (double)chance);
    if (!root->kept) {
        root->chance = chance;
        root->kept = clt_expand(clt_fill(c->graph, (clt_shape){0}, 1), clt_tensor_extent(drawn.like));
        if (chance < 1) root->kept = clt_dropout(root->kept, 1 - chance);
    }
    drawn.compared = true;
    drawn.chance = chance;
    drawn.kept = root->kept;
    return draw(c, drawn, type);
}

/* x times what was drawn. Where nothing is dropped it is what that is in the mean. */
static clt_status drop(clt_onnx_call *c, size_t i, const clt_onnx_drawn *drawn, clt_tensor **y) {
    clt_tensor *x;
    CLT_TRY(clt_onnx_float(c, i, &x));
    if (!drawn->compared) return clt_fail(CLT_E_UNSUPPORTED, "random values that are not those of dropout");
    float mean = drawn->scale * drawn->chance;
    *y = clt_mul(x, drawn->kept);
    if (fabsf(mean - 1) > 1e-5f) *y = clt_mul_scalar(*y, mean);
    return CLT_OK;
}

/* A number that stretches nothing. */
static clt_status number_of(clt_onnx_call *c, size_t i, const clt_onnx_drawn *drawn, float *number) {
    const clt_literal *l;
    *number = 0;
    if (!clt_onnx_has(c, i)) return CLT_OK;
    CLT_TRY(clt_onnx_known(c, i, &l));
    if (l->shape.rank > drawn->like->shape.rank) return clt_fail(CLT_E_UNSUPPORTED, "random values that are stretched");
    return clt_onnx_known_float(c, i, 0, number);
}

/* u + p, in either order. */
static clt_status add_chance(clt_onnx_call *c, const clt_onnx_drawn *drawn, size_t number_at) {
    clt_onnx_drawn next = *drawn;
    CLT_TRY(number_of(c, number_at, drawn, &next.added));
    return draw(c, next, CLT_ONNX_FLOAT);
}

static int64_t cast_to(const clt_onnx_call *c) {
    int64_t to = !strcmp(c->node->op, "CastLike") ? clt_onnx_has(c, 1) ? clt_onnx_type_of(c, 1) : 0 : clt_onnx_int(c, "to", 0);
    return clt_onnx_computed_type(to);
}

bool clt_onnx_reads_drawn(const clt_onnx_call *c) {
    for (size_t i = 0; i < c->node->n_inputs; i++)
        if (c->in[i] >= 0 && c->onnx->values[c->in[i]].drawn) return true;
    return false;
}

clt_status clt_onnx_map_drawn(clt_onnx_call *c, clt_tensor **out) {
    const char *op = c->node->op;
    const clt_onnx_value *first = clt_onnx_value_at(c->onnx, c->in[0]), *second = c->node->n_inputs > 1 ? clt_onnx_value_at(c->onnx, c->in[1]) : NULL;
    const clt_onnx_drawn *drawn = first ? first->drawn : NULL;
    bool is_mul = !strcmp(op, "Mul"), is_cast = !strcmp(op, "Cast") || !strcmp(op, "CastLike");
    float number;
    if (is_mul && second && second->drawn && !drawn) return drop(c, 0, second->drawn, out);
    if (is_mul && drawn && second && !second->drawn) return drop(c, 1, drawn, out);
    if (drawn && is_cast && cast_to(c) == CLT_ONNX_FLOAT) return draw(c, *drawn, CLT_ONNX_FLOAT);
    bool is_add = !strcmp(op, "Add");
    if (is_add && drawn && second && !second->drawn && !drawn->compared && !drawn->added) return add_chance(c, drawn, 1);
    if (is_add && !drawn && second && second->drawn && !second->drawn->compared && !second->drawn->added) return add_chance(c, second->drawn, 0);
    if (drawn && !strcmp(op, "Floor") && !drawn->compared && drawn->added > 0 && drawn->added <= 1) return map_chance(c, *drawn, drawn->added, CLT_ONNX_FLOAT);
    bool compares = drawn && !strcmp(op, "Less") && !drawn->compared && !drawn->added, divides = drawn && !strcmp(op, "Div") && drawn->compared;
    if ((compares || divides) && !(second && second->drawn)) {
        clt_onnx_drawn next = *drawn;
        CLT_TRY(number_of(c, 1, drawn, &number));
        if (compares && number > 0 && number <= 1) return map_chance(c, next, number, CLT_ONNX_BOOL);
        if (divides && number > 0) return next.scale /= number, draw(c, next, CLT_ONNX_FLOAT);
    }
    return clt_fail(CLT_E_UNSUPPORTED, "it reads random values, of which only dropout is known");
}

const clt_onnx_rule clt_onnx_dropout_rules[] = {{"Dropout", map_dropout}, {"RandomUniformLike", map_uniform}, {0}};
