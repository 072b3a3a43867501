/* The graph's inputs: data of samples, fixed inputs, and what is a constant from here on. */
#include <string.h>

#include "runtime/exchange/onnx/onnx.h"

static const clt_onnx_fixed *fixed_of(const clt_onnx_options *options, const char *name) {
    for (int i = 0; i < options->n_fixed; i++)
        if (!strcmp(options->fixed[i].input, name)) return &options->fixed[i];
    return NULL;
}

/* The batch of this build, and the name that stands for it in the file ("" for none): or it is a number there. */
typedef struct batch {
    const char *symbol;
    int64_t size;
    bool is_number;
} batch;

static const clt_onnx_info *first_input(const clt_onnx *o, const clt_onnx_options *options) {
    const clt_onnx_model *m = &o->file.model;
    for (size_t i = 0; i < m->n_inputs; i++)
        if (!o->values[o->input_ids[i]].initializer && !fixed_of(options, m->inputs[i].name)) return &m->inputs[i];
    return NULL;
}

static clt_status batch_of(const clt_onnx *o, const clt_onnx_options *options, batch *b) {
    const clt_onnx_info *first = first_input(o, options);
    *b = (batch){"", 0, false};
    if (options->no_batch || !first || !first->has_shape || first->rank == 0) return CLT_OK;
    int64_t size = first->dims[0].size;
    b->symbol = options->batch_symbol ? options->batch_symbol : size < 0 ? first->dims[0].symbol : "";
    b->size = options->batch ? options->batch : size > 0 && !options->batch_symbol ? size : 1;
    b->is_number = size > 0 && !options->batch_symbol;
    const char *other = NULL; /* sequences may come first, and the batch behind them */
    for (size_t d = 1; d < first->rank && !other; d++)
        if (first->dims[d].size < 0 && *first->dims[d].symbol) other = first->dims[d].symbol;
    char symbol[CLT_SHOWN_TEXT];
    if (b->is_number && b->size != size && other)
        return clt_fail(CLT_E_INVALID, "the file was made for %lld places in dimension 0, not for %lld samples: where dimension \"%s\" is the batch, tell it by batch_symbol", (long long)size,
                        (long long)b->size, clt_show(other, symbol));
    if (b->is_number && b->size != size)
        return clt_fail(CLT_E_INVALID, "the file was made for %lld samples, not for %lld: export it with a dynamic batch", (long long)size, (long long)b->size);
    return b->size > 0 ? CLT_OK : clt_fail(CLT_E_INVALID, "a batch of %lld", (long long)b->size);
}

/* A number is the batch only where the batch is one. */
static bool is_batch(const batch *b, const clt_onnx_info *info, size_t d) {
    const clt_onnx_dim *dim = &info->dims[d];
    if (!b->size) return false;
    if (dim->size >= 0) return d == 0 && b->is_number && dim->size == b->size;
    return *dim->symbol ? !strcmp(dim->symbol, b->symbol) : d == 0;
}

static bool is_length(const clt_onnx_options *options, const clt_onnx_info *info, size_t d) {
    return options->length_symbol && info->dims[d].size < 0 && !strcmp(info->dims[d].symbol, options->length_symbol);
}

/* The dimension that is the length; 0: none is. */
static int length_axis(const clt_onnx_options *options, const clt_onnx_info *info) {
    size_t d = info->rank;
    while (d-- > 1)
        if (is_length(options, info, d)) return (int)d;
    return 0;
}

static clt_status dim_of(const clt_onnx_options *options, const batch *b, const clt_onnx_info *info, size_t d, int64_t *size) {
    const clt_onnx_dim *dim = &info->dims[d];
    char input[CLT_SHOWN_TEXT], symbol[CLT_SHOWN_TEXT];
    if (dim->size >= 0) {
        *size = dim->size;
        return CLT_OK;
    }
    if (is_batch(b, info, d)) {
        *size = b->size;
        return CLT_OK;
    }
    if (is_length(options, info, d)) {
        *size = options->length;
        return *size > 0 ? CLT_OK : clt_fail(CLT_E_INVALID, "a length of %lld", (long long)*size);
    }
    for (int i = 0; i < options->n_sizes; i++)
        if (!strcmp(options->sizes[i].symbol, dim->symbol)) {
            *size = options->sizes[i].size;
            return CLT_OK;
        }
    return clt_fail(CLT_E_INVALID, "input \"%s\": dimension %zu, \"%s\", has no size: give one in the options", clt_show(info->name, input), d,
                    clt_show(dim->symbol, symbol));
}

static clt_status dtype_of(int64_t type, clt_dtype *dtype) {
    switch (type) {
    case CLT_ONNX_FLOAT: *dtype = CLT_F32; return CLT_OK;
    case CLT_ONNX_INT64:
    case CLT_ONNX_INT32: *dtype = CLT_I32; return CLT_OK;
    case CLT_ONNX_UINT8:
    case CLT_ONNX_BOOL: *dtype = CLT_U8; return CLT_OK;
    default: return clt_fail(CLT_E_UNSUPPORTED, "tensors of type %s", clt_onnx_type_name(type));
    }
}

static clt_status add_input(clt_graph *graph, const clt_onnx_options *options, const batch *b, const clt_onnx_info *info, clt_onnx_value *value) {
    clt_shape shape = {0};
    clt_dtype dtype = CLT_F32;
    char shown[CLT_SHOWN_TEXT];
    if (!info->is_tensor) return clt_fail(CLT_E_UNSUPPORTED, "input \"%s\" is not a tensor", clt_show(info->name, shown));
    clt_status status = dtype_of(info->type, &dtype);
    if (status < 0) return clt_fail_context(status, "input \"%s\": ", clt_show(info->name, shown));
    if (!info->has_shape) return clt_fail(CLT_E_UNSUPPORTED, "input \"%s\" has no shape in the file", clt_show(info->name, shown));
    if (info->rank > CLT_MAX_RANK) return clt_fail(CLT_E_UNSUPPORTED, "input \"%s\" has more than %d dimensions", clt_show(info->name, shown), CLT_MAX_RANK);
    shape.rank = (int)info->rank;
    for (size_t d = 0; d < info->rank; d++) CLT_TRY(dim_of(options, b, info, d, &shape.dims[d]));
    for (int d = 0; d < shape.rank; d++)
        if (shape.dims[d] == 0) return clt_fail(CLT_E_UNSUPPORTED, "input \"%s\" has no elements", clt_show(info->name, shown));
    value->type = info->type;
    bool samples = shape.rank > 0 && is_batch(b, info, 0);
    int axis = length_axis(options, info);
    if (!samples && axis) return clt_fail(CLT_E_UNSUPPORTED, "input \"%s\" has the length of the sequences, and is not of samples", clt_show(info->name, shown));
    if (samples && axis) value->tensor = clt_sequence_input(graph, info->name, dtype, shape, axis);
    else value->tensor = samples ? clt_input(graph, info->name, dtype, shape) : clt_fixed_input(graph, info->name, dtype, shape);
    return clt_graph_status(graph);
}

static clt_status literal_of_array(clt_arena *arena, const clt_array *a, clt_literal **literal) {
    int64_t type = a->dtype == CLT_F32 ? CLT_ONNX_FLOAT : a->dtype == CLT_I64 ? CLT_ONNX_INT64 : a->dtype == CLT_I32 ? CLT_ONNX_INT32 : a->dtype == CLT_U8 ? CLT_ONNX_BOOL : 0;
    CLT_TRY(clt_literal_new(arena, type, &a->shape, literal));
    for (int64_t i = 0; i < (*literal)->elements; i++) {
        if (a->dtype == CLT_F32) (*literal)->floats[i] = ((const float *)a->data)[i];
        if (a->dtype == CLT_I64) (*literal)->integers[i] = ((const int64_t *)a->data)[i];
        if (a->dtype == CLT_I32) (*literal)->integers[i] = ((const int32_t *)a->data)[i];
        if (a->dtype == CLT_U8) (*literal)->integers[i] = ((const unsigned char *)a->data)[i] != 0;
    }
    return CLT_OK;
}

clt_status clt_onnx_add_inputs(clt_onnx *o, clt_graph *graph, const clt_onnx_options *options) {
    const clt_onnx_model *m = &o->file.model;
    batch b;
    CLT_TRY(batch_of(o, options, &b));
    o->fixed_batch = b.is_number;
    for (int i = 0; i < options->n_fixed; i++) {
        size_t k = 0;
        while (k < m->n_inputs && strcmp(m->inputs[k].name, options->fixed[i].input)) k++;
        if (k == m->n_inputs) return clt_fail(CLT_E_INVALID, "the file has no input \"%s\"", options->fixed[i].input);
    }
    for (size_t i = 0; i < m->n_inputs; i++) {
        clt_onnx_value *value = &o->values[o->input_ids[i]];
        const clt_onnx_fixed *fixed = fixed_of(options, m->inputs[i].name);
        clt_literal *literal;
        if (fixed) {
            CLT_TRY(literal_of_array(&o->build, &fixed->value, &literal));
            if (m->inputs[i].type == CLT_ONNX_INT64) literal->type = CLT_ONNX_INT64;
            clt_onnx_set_literal(value, literal);
        } else if (!value->initializer) {
            CLT_TRY(add_input(graph, options, &b, &m->inputs[i], value));
        }
    }
    return CLT_OK;
}
