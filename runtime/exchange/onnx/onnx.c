/* ONNX files as programs see them. */
#include <string.h>

#include "runtime/exchange/onnx/onnx.h"
#include "runtime/train/preprocessing.h"

/* Opsets of ONNX's own domain: the first and last whose meaning is known here. */
enum { FIRST_OPSET = 6, LAST_OPSET = 27 };

/* Nodes of a graph here take some 600 bytes each. */
enum { MOST_NODES = 1 << 17 };

/* Literals of a build, whatever the size of the file. */
enum { MOST_LITERAL_BYTES = 1 << 28 };

static clt_status check_model(clt_onnx *o) {
    const clt_onnx_model *m = &o->file.model;
    char shown[CLT_SHOWN_TEXT];
    o->opset = 1;
    for (size_t i = 0; i < m->n_opsets; i++)
        if (!*m->opsets[i].domain) o->opset = m->opsets[i].version;
    if (o->opset < FIRST_OPSET || o->opset > LAST_OPSET)
        return clt_fail(CLT_E_UNSUPPORTED, "opset %lld; %d to %d are known", (long long)o->opset, FIRST_OPSET, LAST_OPSET);
    if (m->n_functions) return clt_fail(CLT_E_UNSUPPORTED, "it has %zu functions of its own, which are not known here", m->n_functions);
    if (m->n_sparse) return clt_fail(CLT_E_UNSUPPORTED, "it has sparse weights, which are not known here");
    if (m->n_nodes > MOST_NODES) return clt_fail(CLT_E_UNSUPPORTED, "%zu nodes, more than %d", m->n_nodes, MOST_NODES);
    if (m->n_outputs == 0) return clt_fail(CLT_E_FORMAT, "the graph \"%s\" has no output", clt_show(m->name, shown));
    return CLT_OK;
}

clt_status clt_onnx_open(clt_onnx **onnx, const char *path) {
    if (!onnx || !path) return clt_fail(CLT_E_INVALID, "clt_onnx_open: onnx or path is NULL");
    clt_onnx *o = clt_calloc(1, sizeof *o);
    if (!o) return clt_fail_memory(sizeof *o);
    clt_status status = clt_onnx_file_open(&o->file, path);
    if (status == CLT_OK) {
        o->arena.limit = o->file.model.arena.limit;
        o->build.limit = MOST_LITERAL_BYTES;
        status = check_model(o);
        if (status == CLT_OK) status = clt_onnx_resolve(o);
        if (status < 0) clt_fail_context(status, "%s: ", path);
    }
    if (status < 0) clt_onnx_close(o);
    else *onnx = o;
    return status;
}

void clt_onnx_close(clt_onnx *onnx) {
    if (!onnx) return;
    clt_arena_free(&onnx->build);
    clt_arena_free(&onnx->arena);
    clt_onnx_file_close(&onnx->file);
    clt_free(onnx->problems);
    clt_free(onnx);
}

static const clt_onnx_info *input_at(const clt_onnx *onnx, size_t index) {
    for (size_t i = 0; onnx && i < onnx->file.model.n_inputs; i++)
        if (!onnx->values[onnx->input_ids[i]].initializer && index-- == 0) return &onnx->file.model.inputs[i];
    return NULL;
}

const char *clt_onnx_input_name(const clt_onnx *onnx, size_t index) {
    const clt_onnx_info *input = input_at(onnx, index);
    return input ? input->name : NULL;
}

const char *clt_onnx_input_symbol(const clt_onnx *onnx, size_t index, int dimension) {
    const clt_onnx_info *input = input_at(onnx, index);
    bool named = input && input->has_shape && dimension >= 0 && (size_t)dimension < input->rank && input->dims[dimension].size < 0;
    return named ? input->dims[dimension].symbol : NULL;
}

const char *clt_onnx_output_name(const clt_onnx *onnx, size_t index) {
    return onnx && index < onnx->file.model.n_outputs ? onnx->file.model.outputs[index].name : NULL;
}

clt_status clt_onnx_preprocessing(const clt_onnx *onnx, clt_preprocessing **preprocessing) {
    if (!onnx || !preprocessing) return clt_fail(CLT_E_INVALID, "clt_onnx_preprocessing: onnx or preprocessing is NULL");
    const clt_onnx_model *m = &onnx->file.model;
    for (size_t i = 0; i < m->n_metadata; i++)
        if (!strcmp(m->metadata[i].key, clt_preprocessing_key)) return clt_preprocessing_read(preprocessing, m->metadata[i].value, onnx->file.path);
    return clt_fail(CLT_E_NOT_FOUND, "%s does not tell what data the model was trained on", onnx->file.path);
}

/* ---- tensors by themselves ---- */

clt_status clt_onnx_array_read(clt_array *array, clt_onnx_file *file, const clt_onnx_tensor *t) {
    switch (t->type) {
    case CLT_ONNX_FLOAT: array->dtype = CLT_F32; break;
    case CLT_ONNX_INT32: array->dtype = CLT_I32; break;
    case CLT_ONNX_INT64: array->dtype = CLT_I64; break;
    case CLT_ONNX_UINT8:
    case CLT_ONNX_BOOL: array->dtype = CLT_U8; break;
    default: return clt_fail(CLT_E_UNSUPPORTED, "a tensor of type %s (%lld)", clt_onnx_type_name(t->type), (long long)t->type);
    }
    if (t->rank > CLT_MAX_RANK) return clt_fail(CLT_E_UNSUPPORTED, "a tensor of %zu dimensions, more than %d", t->rank, CLT_MAX_RANK);
    array->shape.rank = (int)t->rank;
    for (size_t d = 0; d < t->rank; d++) array->shape.dims[d] = t->dims[d];
    size_t bytes;
    CLT_TRY(clt_onnx_data_check(file, t));
    if (!clt_mul_size((size_t)t->elements, clt_dtype_bytes(array->dtype), &bytes)) return clt_fail_memory(SIZE_MAX);
    void *data = clt_alloc(bytes);
    array->data = data;
    clt_status status = data ? clt_onnx_data_read(file, t, 0, t->elements, data) : clt_fail_memory(bytes);
    for (size_t i = 0; status == CLT_OK && t->type == CLT_ONNX_BOOL && i < bytes; i++) ((unsigned char *)data)[i] = ((unsigned char *)data)[i] != 0;
    return status;
}

clt_status clt_onnx_tensor_load(clt_array *array, const char *path) {
    clt_onnx_file file;
    clt_onnx_tensor tensor;
    if (!array || !path) return clt_fail(CLT_E_INVALID, "clt_onnx_tensor_load: array or path is NULL");
    *array = (clt_array){.shape = {0}};
    clt_status status = clt_onnx_file_open_tensor(&file, path, &tensor);
    if (status == CLT_OK) {
        status = clt_onnx_array_read(array, &file, &tensor);
        if (status < 0) clt_fail_context(status, "%s: ", path);
    }
    if (status < 0) clt_onnx_tensor_free(array);
    clt_onnx_file_close(&file);
    return status;
}

void clt_onnx_tensor_free(clt_array *array) {
    if (!array) return;
    clt_free((void *)(uintptr_t)array->data);
    array->data = NULL;
}

/* ---- problems ---- */

static const char *kept_text(clt_onnx *o, const char *text) {
    char *copy;
    if (clt_arena_take(&o->build, strlen(text) + 1, 1, &copy) < 0) return "";
    return strcpy(copy, text);
}

/* A name as it is, but for what terminals would take for commands. */
static const char *plain_text(clt_onnx *o, const char *text) {
    char shown[CLT_SHOWN_TEXT];
    for (const char *at = text; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 127) return kept_text(o, clt_show(text, shown));
    return text;
}

clt_status clt_onnx_add_problem(clt_onnx *o, const clt_onnx_node *node, int64_t opset) {
    CLT_TRY(clt_grow(&o->problems, &o->problems_capacity, o->n_problems, sizeof *o->problems));
    const char *name = node->name;
    for (size_t i = 0; !*name && i < node->n_outputs; i++) name = node->outputs[i];
    o->problems[o->n_problems++] = (clt_onnx_problem){plain_text(o, name), plain_text(o, node->op), plain_text(o, node->domain), opset, kept_text(o, clt_error_detail())};
    return CLT_OK;
}

const clt_onnx_problem *clt_onnx_problem_at(const clt_onnx *onnx, size_t index) {
    return onnx && index < onnx->n_problems ? &onnx->problems[index] : NULL;
}

/* The first ones by their words. */
static clt_status fail_problems(const clt_onnx *o) {
    enum { SHOWN = 4 };
    clt_text text = {0};
    char name[CLT_SHOWN_TEXT], op[CLT_SHOWN_TEXT];
    for (size_t i = 0; i < o->n_problems && i < SHOWN; i++)
        clt_text_add(&text, "%s%s \"%s\": %s", i ? "; " : "", clt_show(o->problems[i].op, op), clt_show(o->problems[i].node, name), o->problems[i].reason);
    if (o->n_problems > SHOWN) clt_text_add(&text, "; and %zu more", o->n_problems - SHOWN);
    clt_status status = clt_fail(CLT_E_UNSUPPORTED, "%s: %s", o->file.path, clt_text_data(&text));
    clt_text_free(&text);
    return status;
}

/* ---- a build ---- */

static void reset(clt_onnx *o) {
    clt_arena_free(&o->build);
    o->n_problems = 0;
    for (size_t i = 0; i < o->n_values; i++) o->values[i] = (clt_onnx_value){.name = o->values[i].name, .initializer = o->values[i].initializer, .file = o->values[i].file, .kind = o->values[i].kind};
}

clt_status clt_onnx_build(clt_onnx *onnx, clt_graph *graph, const clt_onnx_options *options) {
    if (!onnx || !graph) return clt_fail(CLT_E_INVALID, "clt_onnx_build: onnx or graph is NULL");
    CLT_TRY(clt_graph_status(graph));
    reset(onnx);
    static const clt_onnx_options none;
    clt_status status = clt_onnx_add_inputs(onnx, graph, options ? options : &none);
    if (status == CLT_OK) status = clt_onnx_add_nodes(onnx, graph);
    if (status < 0) return clt_fail_context(status, "%s: ", onnx->file.path);
    return onnx->n_problems ? fail_problems(onnx) : CLT_OK;
}
clt_tensor *clt_onnx_output(const clt_onnx *onnx, const char *name) {
    for (size_t i = 0; onnx && i < onnx->file.model.n_outputs; i++) {
        const clt_onnx_value *value = &onnx->values[onnx->output_ids[i]];
        if (!name || !strcmp(value->name, name)) return value->tensor;
    }
    return NULL;
}
