/* The names of a graph's values: each made once, and before it is read. */
#include <string.h>

#include "runtime/base/table.h"
#include "runtime/exchange/onnx/onnx.h"

static int32_t find(const clt_onnx *o, const clt_table *table, const char *name) {
    const clt_table_entry *entry = clt_table_find(table, clt_table_key(name, strlen(name)));
    while (entry && strcmp(o->values[entry->value].name, name)) entry = clt_table_next(table, entry);
    return entry ? entry->value : -1;
}

static int32_t add(clt_onnx *o, clt_table *table, const char *name) {
    int32_t id = (int32_t)o->n_values++;
    o->values[id].name = name;
    clt_table_put(table, clt_table_key(name, strlen(name)), id, 0);
    return id;
}

static clt_status fail_name(const char *name, const char *what) {
    char shown[CLT_SHOWN_TEXT];
    return clt_fail(CLT_E_FORMAT, "\"%s\" %s", clt_show(name, shown), what);
}

static clt_status add_new(clt_onnx *o, clt_table *table, const char *name, int32_t *id) {
    if (!*name) return clt_fail(CLT_E_FORMAT, "an input or a weight of the graph has no name");
    if (find(o, table, name) >= 0) return fail_name(name, "is made twice");
    *id = add(o, table, name);
    return CLT_OK;
}

static clt_status resolve_node(clt_onnx *o, clt_table *table, const clt_onnx_node *node, int32_t *ids) {
    char shown[CLT_SHOWN_TEXT];
    for (size_t i = 0; i < node->n_inputs; i++) {
        ids[i] = *node->inputs[i] ? find(o, table, node->inputs[i]) : -1;
        if (*node->inputs[i] && ids[i] < 0) {
            clt_status status = fail_name(node->inputs[i], "is read before anything makes it");
            const char *name = *node->name || !node->n_outputs ? node->name : node->outputs[0];
            return clt_fail_context(status, "%.40s \"%s\": ", node->op, clt_show(name, shown));
        }
    }
    for (size_t i = 0; i < node->n_outputs; i++) {
        ids[node->n_inputs + i] = -1;
        if (*node->outputs[i]) CLT_TRY(add_new(o, table, node->outputs[i], &ids[node->n_inputs + i]));
    }
    return CLT_OK;
}

static clt_status resolve_all(clt_onnx *o, clt_table *table) {
    const clt_onnx_model *m = &o->file.model;
    for (size_t i = 0; i < m->n_initializers; i++) {
        int32_t id;
        CLT_TRY(add_new(o, table, m->initializers[i].name, &id));
        o->values[id].initializer = &m->initializers[i];
        o->values[id].file = &o->file;
        o->values[id].kind = m->initializers[i].kind;
    }
    for (size_t i = 0; i < m->n_notes; i++) {
        int32_t id = *m->notes[i].kind ? find(o, table, m->notes[i].name) : -1;
        if (id >= 0 && !*o->values[id].kind) o->values[id].kind = m->notes[i].kind;
    }
    for (size_t i = 0; i < m->n_inputs; i++) {
        /* In older files weights are listed here, too. */
        int32_t id = find(o, table, m->inputs[i].name);
        if (id < 0 || !o->values[id].initializer) CLT_TRY(add_new(o, table, m->inputs[i].name, &id));
        o->input_ids[i] = id;
    }
    for (size_t i = 0; i < m->n_nodes; i++) CLT_TRY(resolve_node(o, table, &m->nodes[i], o->ids + o->first_ids[i]));
    for (size_t i = 0; i < m->n_outputs; i++) {
        o->output_ids[i] = find(o, table, m->outputs[i].name);
        if (o->output_ids[i] < 0) return fail_name(m->outputs[i].name, "is an output of the graph, and nothing makes it");
    }
    return CLT_OK;
}

/* From the last node to the first, since each reads what was made before it. */
static void mark_needed(clt_onnx *o) {
    const clt_onnx_model *m = &o->file.model;
    bool *wanted = o->needed_outputs;
    for (size_t i = 0; i < m->n_outputs; i++) wanted[o->output_ids[i]] = true;
    for (size_t i = m->n_nodes; i-- > 0;) {
        const clt_onnx_node *node = &m->nodes[i];
        const int32_t *in = o->ids + o->first_ids[i], *out = in + node->n_inputs;
        for (size_t k = 0; k < node->n_outputs; k++) o->needed[i] |= out[k] >= 0 && wanted[out[k]];
        for (size_t k = 0; o->needed[i] && k < node->n_inputs; k++)
            if (in[k] >= 0) wanted[in[k]] = true;
    }
}

clt_status clt_onnx_resolve(clt_onnx *o) {
    const clt_onnx_model *m = &o->file.model;
    size_t n_ids = 0, n_names = m->n_initializers + m->n_inputs;
    for (size_t i = 0; i < m->n_nodes; i++) n_ids += m->nodes[i].n_inputs + m->nodes[i].n_outputs, n_names += m->nodes[i].n_outputs;
    if (n_names > INT32_MAX) return clt_fail(CLT_E_RANGE, "more than %d names", INT32_MAX);
    CLT_TRY(clt_arena_take(&o->arena, n_names, sizeof *o->values, &o->values));
    CLT_TRY(clt_arena_take(&o->arena, n_ids, sizeof *o->ids, &o->ids));
    CLT_TRY(clt_arena_take(&o->arena, m->n_nodes, sizeof *o->first_ids, &o->first_ids));
    CLT_TRY(clt_arena_take(&o->arena, m->n_nodes, sizeof *o->needed, &o->needed));
    CLT_TRY(clt_arena_take(&o->arena, n_names, sizeof *o->needed_outputs, &o->needed_outputs));
    CLT_TRY(clt_arena_take(&o->arena, m->n_inputs, sizeof *o->input_ids, &o->input_ids));
    CLT_TRY(clt_arena_take(&o->arena, m->n_outputs, sizeof *o->output_ids, &o->output_ids));
    for (size_t i = 0, at = 0; i < m->n_nodes; at += m->nodes[i].n_inputs + m->nodes[i].n_outputs, i++) o->first_ids[i] = at;
    clt_table table = {0};
    CLT_TRY(clt_table_reserve(&table, n_names));
    clt_status status = resolve_all(o, &table);
    clt_table_free(&table);
    if (status == CLT_OK) mark_needed(o);
    return status;
}
