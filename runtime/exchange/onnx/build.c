/* From an ONNX file to a graph: each node that an output depends on is computed now, if all it reads is known, else mapped to ops. */
#include <string.h>

#include "runtime/exchange/onnx/onnx.h"

clt_onnx_map *clt_onnx_map_of(const char *op) {
    const clt_onnx_rule *const tables[] = {clt_onnx_pointwise_rules, clt_onnx_product_rules, clt_onnx_shape_rules, clt_onnx_norm_rules, clt_onnx_network_rules, clt_onnx_attention_rules, clt_onnx_image_rules, clt_onnx_index_rules, clt_onnx_dropout_rules};
    for (size_t t = 0; t < CLT_COUNT_OF(tables); t++)
        for (const clt_onnx_rule *rule = tables[t]; rule->op; rule++)
            if (!strcmp(rule->op, op)) return rule->map;
    return NULL;
}

/* Whether of input i nothing but its type matters. */
static bool is_type_alone(const clt_onnx_call *c, size_t i) {
    return i == 1 && !strcmp(c->node->op, "CastLike") && clt_onnx_type_of(c, i);
}

/* Whether all that a node reads is known; *same, whether it is the same at all sizes. */
static clt_status all_known(clt_onnx_call *c, bool *known, bool *same) {
    *known = *same = true;
    for (size_t i = 0; i < c->node->n_inputs; i++) {
        clt_onnx_value *value = clt_onnx_value_at(c->onnx, c->in[i]);
        if (!value || is_type_alone(c, i)) continue;
        if (!clt_onnx_is_weight(value)) CLT_TRY(clt_onnx_load_literal(c->onnx, value));
        *known &= value->literals[0] && !(clt_onnx_is_weight(value));
        for (int s = 1; s < CLT_ONNX_SIZES; s++) *same &= value->literals[s] == value->literals[0];
    }
    return CLT_OK;
}

static clt_status fold_at(clt_onnx_call *c, clt_onnx_fold *fold, int s, const clt_tensor *shaped, clt_literal **in, clt_literal **out) {
    for (size_t i = 0; i < c->node->n_inputs; i++) {
        clt_onnx_value *value = clt_onnx_value_at(c->onnx, c->in[i]);
        in[i] = value ? value->literals[s] : NULL;
        if (value && is_type_alone(c, i)) CLT_TRY(clt_literal_new(&c->onnx->build, clt_onnx_type_of(c, i), &(clt_shape){.rank = 1}, &in[i]));
    }
    clt_onnx_folding f = {.arena = &c->onnx->build, .file = &c->onnx->file, .node = c->node, .opset = c->opset, .in = in, .out = out};
    if (!shaped) return fold(&f);
    clt_shape shape = clt_onnx_shape_at(shaped, s);
    if (shape.rank < 0) return clt_fail(CLT_E_UNSUPPORTED, "a shape that depends on the batch in an unknown way");
    return clt_onnx_fold_shape_of(&f, &shape);
}

/* Shape and Size need the shape alone. */
static clt_status shape_operand(clt_onnx_call *c, clt_tensor **tensor) {
    *tensor = NULL;
    if (strcmp(c->node->op, "Shape") && strcmp(c->node->op, "Size")) return CLT_OK;
    clt_onnx_value *value = c->node->n_inputs ? clt_onnx_value_at(c->onnx, c->in[0]) : NULL;
    if (!value || value->literals[0]) return CLT_OK;
    return clt_onnx_any(c, 0, tensor);
}

/* Whether all inputs that there are have literals at size s. */
static bool are_there(const clt_onnx_call *c, int s) {
    for (size_t i = 0; i < c->node->n_inputs; i++) {
        const clt_onnx_value *value = clt_onnx_value_at(c->onnx, c->in[i]);
        if (value && !is_type_alone(c, i) && value->literals[0] && !value->literals[s]) return false;
    }
    return true;
}

static clt_status fold_sizes(clt_onnx_call *c, clt_onnx_fold *fold, bool same, const clt_tensor *shaped) {
    clt_literal **in, **out;
    CLT_TRY(clt_arena_take(&c->onnx->build, c->node->n_inputs, sizeof *in, &in));
    CLT_TRY(clt_arena_take(&c->onnx->build, c->node->n_outputs, sizeof *out, &out));
    for (int s = 0; s < CLT_ONNX_SIZES; s++) {
        bool must = s <= CLT_GREATER_BATCHES, there = are_there(c, s);
        if (there && (s == 0 || !same || (shaped && shaped->follows))) {
            clt_status status = fold_at(c, fold, s, shaped, in, out);
            if (status == CLT_E_NO_MEMORY || (status < 0 && must)) return status;
            there = status == CLT_OK;
        }
        for (size_t i = 0; i < c->node->n_outputs; i++) {
            clt_onnx_value *value = clt_onnx_value_at(c->onnx, c->out[i]);
            if (!value || !out[i]) continue;
            value->literals[s] = !there ? NULL : s && clt_literal_equal(out[i], value->literals[0]) ? value->literals[0] : out[i];
            value->type = out[i]->type;
        }
    }
    return CLT_OK;
}

static clt_status fold_node(clt_onnx_call *c, bool *folded) {
    clt_onnx_fold *fold = *c->node->domain ? NULL : clt_onnx_fold_of(c->node->op);
    bool known, same;
    clt_tensor *shaped;
    *folded = false;
    if (!fold) return CLT_OK;
    CLT_TRY(all_known(c, &known, &same));
    CLT_TRY(shape_operand(c, &shaped));
    if (!known && !shaped) return CLT_OK;
    clt_status status = fold_sizes(c, fold, same, shaped);
    *folded = status == CLT_OK;
    for (size_t i = 0; !*folded && i < c->node->n_outputs; i++) { /* some may have been there at the first sizes */
        clt_onnx_value *value = clt_onnx_value_at(c->onnx, c->out[i]);
        if (value) memset(value->literals, 0, sizeof value->literals), value->type = 0;
    }
    return status;
}

static int64_t type_of_tensor(const clt_onnx_call *c, const clt_tensor *t) {
    if (t->dtype == CLT_U8) return c->node->n_inputs > 0 && clt_onnx_type_of(c, 0) == CLT_ONNX_UINT8 ? CLT_ONNX_UINT8 : CLT_ONNX_BOOL;
    return t->dtype == CLT_I32 ? CLT_ONNX_INT64 : CLT_ONNX_FLOAT;
}

static clt_status map_node(clt_onnx_call *c) {
    char shown[CLT_SHOWN_TEXT];
    clt_tensor **out;
    clt_onnx_map *map = *c->node->domain ? NULL : clt_onnx_map_of(c->node->op);
    if (!map) return clt_fail(CLT_E_UNSUPPORTED, "the op is not known here%s%s", *c->node->domain ? ", of domain " : "", clt_show(c->node->domain, shown));
    CLT_TRY(clt_arena_take(&c->onnx->build, c->node->n_outputs, sizeof *out, &out));
    CLT_TRY(clt_onnx_reads_drawn(c) ? clt_onnx_map_drawn(c, out) : map(c, out));
    CLT_TRY(clt_graph_status(c->graph));
    for (size_t i = 0; i < c->node->n_outputs; i++) {
        clt_onnx_value *value = clt_onnx_value_at(c->onnx, c->out[i]);
        if (!value) continue;
        value->tensor = out[i];
        value->type = c->out_type ? c->out_type : out[i] ? type_of_tensor(c, out[i]) : 0;
    }
    return CLT_OK;
}

static bool reads_broken(const clt_onnx_call *c) {
    for (size_t i = 0; i < c->node->n_inputs; i++)
        if (c->in[i] >= 0 && c->onnx->values[c->in[i]].broken) return true;
    return false;
}

/* A node that is refused is told, and those that depend on it are not. */
static clt_status build_node(clt_onnx *o, clt_graph *graph, size_t i) {
    const clt_onnx_node *node = &o->file.model.nodes[i];
    const int32_t *ids = o->ids + o->first_ids[i];
    clt_onnx_call c = {.onnx = o, .graph = graph, .node = node, .opset = o->opset, .in = ids, .out = ids + node->n_inputs};
    bool broken = reads_broken(&c) || clt_graph_status(graph) < 0, folded = false;
    if (!broken) {
        clt_status status = fold_node(&c, &folded);
        /* What is too large for the host is the device's. */
        if (status == CLT_E_RANGE && clt_onnx_map_of(node->op)) status = CLT_OK;
        if (status == CLT_OK && !folded) status = map_node(&c);
        if (status != CLT_E_NO_MEMORY && clt_onnx_attributes_check(node) < 0) status = CLT_E_FORMAT;
        if (status == CLT_E_NO_MEMORY) return status;
        if (status < 0) CLT_TRY(clt_onnx_add_problem(o, node, c.opset));
        broken = status < 0;
    }
    for (size_t k = 0; broken && k < node->n_outputs; k++)
        if (c.out[k] >= 0) o->values[c.out[k]].broken = true;
    return CLT_OK;
}

clt_status clt_onnx_add_nodes(clt_onnx *o, clt_graph *graph) {
    const clt_onnx_model *m = &o->file.model;
    for (size_t i = 0; i < m->n_nodes; i++)
        if (o->needed[i]) CLT_TRY(build_node(o, graph, i));
    if (o->n_problems) return CLT_OK;
    for (size_t i = 0; i < m->n_outputs; i++) {
        clt_onnx_call c = {.onnx = o, .graph = graph, .node = &(clt_onnx_node){.n_inputs = 1}, .opset = o->opset, .in = &o->output_ids[i]};
        clt_tensor *ignored;
        clt_status status = clt_onnx_any(&c, 0, &ignored); /* an output may be a constant, or a weight */
        if (status < 0) return clt_fail_context(status, "output \"%s\": ", o->values[o->output_ids[i]].name);
    }
    return clt_graph_status(graph);
}
