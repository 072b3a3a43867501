#include "backends/codegen.h"

#include <stdio.h>
#include <string.h>

const char *clt_code_type(clt_dtype dtype) {
    return dtype == CLT_I32 ? "int" : dtype == CLT_U8 ? "uchar" : "float";
}

const char *clt_code_storage_type(clt_dtype dtype) {
    return dtype == CLT_F16 ? "clt_f16" : dtype == CLT_BF16 ? "clt_bf16" : clt_code_type(dtype);
}

const char *clt_code_index_type(const clt_code *code) {
    return code->large ? "long" : "int";
}

/* Loads and stores are no mere assignments. */
static bool is_half(clt_dtype dtype) {
    return dtype == CLT_F16 || dtype == CLT_BF16;
}

/* ---- how inputs are read ---- */

/* Elements from one to the next in each dimension, in the tensor's own layout. */
static void own_strides(const clt_tensor *t, int64_t strides[CLT_MAX_RANK]) {
    int order[CLT_MAX_RANK];
    int64_t stride = 1;
    clt_tensor_order(t, order);
    for (int i = t->shape.rank - 1; i >= 0; i--) {
        strides[order[i]] = stride;
        stride *= t->shape.dims[order[i]];
    }
}

/* Strides of the result's logical dimensions. */
static void logical_strides(const clt_tensor *y, const clt_tensor *x, const clt_form_operand *operand,
                            int64_t strides[CLT_MAX_RANK]) {
    int64_t own[CLT_MAX_RANK];
    memset(strides, 0, CLT_MAX_RANK * sizeof *strides);
    if (operand->read == CLT_READ_CHANNEL) {
        strides[1] = 1;
    } else if (operand->read == CLT_READ_ROW) {
        int64_t stride = 1;
        for (int d = y->shape.rank - operand->dims - 1; d >= 0; d--) {
            strides[d] = stride;
            stride *= y->shape.dims[d];
        }
    } else {
        own_strides(x, own);
        int lead = y->shape.rank - x->shape.rank;
        for (int d = lead; d < y->shape.rank; d++) strides[d] = x->shape.dims[d - lead] > 1 ? own[d - lead] : 0;
    }
}

static bool same_read(const clt_code_read *a, const clt_code_read *b) {
    return a->input == b->input && a->offset == b->offset && !memcmp(a->stride, b->stride, sizeof a->stride);
}

static int add_read(clt_code *code, const clt_code_read *read) {
    for (int i = 0; i < code->n_reads; i++)
        if (same_read(&code->reads[i], read)) return i;
    if (code->n_reads == CLT_CODE_READS) return -1;
    code->reads[code->n_reads] = *read;
    return code->n_reads++;
}

/* Of all stages, over the result's dimensions as they lie in memory. */
static bool find_reads(clt_code *code, const clt_tensor *y, clt_tensor *const *inputs) {
    int order[CLT_MAX_RANK];
    clt_tensor_order(y, order);
    for (int s = 0; s < code->fused.n_stages; s++) {
        const clt_form *form = &code->fused.stages[s].form;
        for (int k = 0; k < form->n_operands; k++) {
            const clt_form_operand *operand = &form->operands[k];
            int64_t strides[CLT_MAX_RANK];
            code->read_of[s][k] = -1;
            if (operand->input < 0) continue;
            clt_code_read read = {.input = operand->input, .offset = operand->offset};
            if (inputs[operand->input]) logical_strides(y, inputs[operand->input], operand, strides);
            else own_strides(y, strides); /* the value itself */
            for (int d = 0; d < y->shape.rank; d++) read.stride[d] = strides[order[d]];
            code->read_of[s][k] = add_read(code, &read);
            if (code->read_of[s][k] < 0) return false;
        }
    }
    return true;
}

/* True if dimension d continues dimension e, which lies outside it, in all reads. */
static bool mergeable(const clt_code *code, int e, int d) {
    for (int k = 0; k < code->n_reads; k++)
        if (code->reads[k].stride[e] != code->reads[k].stride[d] * code->size[d]) return false;
    return true;
}

static void drop(clt_code *code, int d) {
    for (int i = d; i + 1 < code->rank; i++) {
        code->size[i] = code->size[i + 1];
        for (int k = 0; k < code->n_reads; k++) code->reads[k].stride[i] = code->reads[k].stride[i + 1];
    }
    code->rank--;
    for (int k = 0; k < code->n_reads; k++) code->reads[k].stride[code->rank] = 0;
}

static void merge(clt_code *code) {
    for (int d = 0; d < code->rank;) {
        if (code->size[d] == 1 && code->rank > 1) {
            drop(code, d);
        } else if (d > 0 && mergeable(code, d - 1, d)) {
            code->size[d] *= code->size[d - 1];
            drop(code, d - 1);
        } else {
            d++;
        }
    }
}

/* The loop as it is, its dimensions not merged. `inputs` are NULL where the value itself is meant. */
static bool make_loop(const clt_tensor *y, clt_tensor *const *inputs, clt_code *code) {
    int order[CLT_MAX_RANK];
    clt_tensor_order(y, order);
    code->n_reads = 0;
    code->rank = CLT_MAX(y->shape.rank, 1);
    code->size[0] = 1;
    for (int d = 0; d < y->shape.rank; d++) code->size[d] = y->shape.dims[order[d]];
    return find_reads(code, y, inputs);
}

static bool make_code(const clt_tensor *y, clt_tensor *const *inputs, clt_code *code) {
    if (!make_loop(y, inputs, code)) return false;
    merge(code);
    code->large = clt_tensor_is_large(y);
    for (int k = 0; k < code->n_reads; k++) code->large |= clt_tensor_is_large(inputs[code->reads[k].input]);
    return true;
}

bool clt_code_of(const clt_tensor *node, bool training, clt_code *code) {
    return clt_fused_of(node, training, &code->fused) && make_code(node, node->inputs, code);
}

bool clt_code_of_chain(const clt_fused *chain, clt_tensor *const *inputs, clt_code *code) {
    const clt_tensor result = {.shape = chain->shape, .dtype = chain->dtype};
    code->fused = *chain;
    return make_code(&result, inputs, code);
}

int64_t clt_code_stride(const clt_code *code, int read, int d) {
    return d < code->rank ? code->reads[read].stride[code->rank - 1 - d] : 0;
}

bool clt_code_is_same(const clt_code *code, int read) {
    int64_t stride = 1;
    if (code->reads[read].offset) return false;
    for (int d = code->rank - 1; d >= 0; d--) {
        if (code->size[d] > 1 && code->reads[read].stride[d] != stride) return false;
        stride *= code->size[d];
    }
    return true;
}

/* ---- text ---- */

static bool reads_input(const clt_code *code, int input) {
    for (int k = 0; k < code->n_reads; k++)
        if (code->reads[k].input == input) return true;
    return false;
}

void clt_code_input_parameters(clt_text *text, const clt_code *code, const clt_tensor *node) {
    for (int i = 0; i < node->n_inputs; i++)
        if (reads_input(code, i)) clt_text_add(text, "global const %s *x%d, ", clt_code_storage_type(node->inputs[i]->dtype), i);
}

void clt_launch_code_inputs(clt_lowering *l, const clt_code *code, const clt_tensor *node) {
    for (int i = 0; i < node->n_inputs; i++)
        if (reads_input(code, i)) clt_launch_tensor(l, node->inputs[i]);
}

static bool uses_scalar(const clt_form *form, int s) {
    return strstr(form->expression, s ? "s1" : "s0") != NULL;
}

static void add_scalars(clt_text *text, const clt_fused *fused, const char *type) {
    for (int i = 0; i < fused->n_stages; i++)
        for (int s = 0; s < 2; s++)
            if (uses_scalar(&fused->stages[i].form, s)) clt_text_add(text, ", %sc%d_%d", type, i, s);
}

void clt_code_scalar_parameters(clt_text *text, const clt_fused *fused) {
    add_scalars(text, fused, "float ");
}

void clt_launch_code_scalars(clt_lowering *l, const clt_fused *fused) {
    for (int i = 0; i < fused->n_stages; i++)
        for (int s = 0; s < 2; s++)
            if (uses_scalar(&fused->stages[i].form, s)) clt_launch_float(l, fused->stages[i].form.s[s]);
}

void clt_code_loads(clt_text *text, const clt_code *code, const clt_tensor *node, clt_code_index *index) {
    for (int k = 0; k < code->n_reads; k++) {
        int input = code->reads[k].input;
        clt_dtype dtype = node->inputs[input]->dtype;
        clt_text_add(text, "    const %s r%d_ = ", clt_code_type(dtype), k);
        if (is_half(dtype)) clt_text_add(text, "clt_load_%s(x%d, ", clt_dtype_name(dtype), input);
        else clt_text_add(text, "x%d[", input);
        index(text, code, k);
        clt_text_add(text, is_half(dtype) ? ");\n" : "];\n");
    }
}

void clt_code_round(clt_dtype dtype, char value[CLT_CODE_VALUE]) {
    char plain[CLT_CODE_VALUE];
    if (!is_half(dtype)) return;
    snprintf(plain, sizeof plain, "%s", value);
    snprintf(value, CLT_CODE_VALUE, "clt_round_%s(%.16s)", clt_dtype_name(dtype), plain);
}

void clt_code_store(clt_text *text, clt_dtype dtype, const char *pointer, const char *index, const char *value) {
    if (is_half(dtype)) clt_text_add(text, "clt_store_%s(%s, %s, %s);", clt_dtype_name(dtype), pointer, index, value);
    else clt_text_add(text, "%s[%s] = %s;", pointer, index, value);
}

static void add_stage(clt_text *text, const clt_code *code, const clt_dtype *read_types, int s) {
    const clt_fused_stage *stage = &code->fused.stages[s];
    const clt_form *form = &stage->form;
    clt_text_add(text, "    %s v%d_;\n    {\n", clt_code_type(stage->dtype), s);
    for (int i = 0; i < 2; i++)
        if (uses_scalar(form, i)) clt_text_add(text, "        const float s%d = c%d_%d;\n", i, s, i);
    for (int k = 0; k < form->n_operands; k++) {
        const clt_form_operand *operand = &form->operands[k];
        int read = code->read_of[s][k];
        clt_dtype dtype = read < 0 ? code->fused.stages[~operand->input].dtype : read_types[read];
        clt_text_add(text, "        const %s %c = %c%d_;\n", clt_code_type(dtype), operand->letter, read < 0 ? 'v' : 'r',
                     read < 0 ? ~operand->input : read);
    }
    bool rounded = is_half(stage->dtype) && s + 1 < code->fused.n_stages; /* as if it had been stored between two kernels */
    if (rounded) clt_text_add(text, "        v%d_ = clt_round_%s(%s);\n    }\n", s, clt_dtype_name(stage->dtype), form->expression);
    else clt_text_add(text, "        v%d_ = %s;\n    }\n", s, form->expression);
}

static void add_stages(clt_text *text, const clt_code *code, const clt_dtype *read_types, char value[CLT_CODE_VALUE]) {
    for (int s = 0; s < code->fused.n_stages; s++) add_stage(text, code, read_types, s);
    snprintf(value, CLT_CODE_VALUE, "v%d_", code->fused.n_stages - 1);
}

void clt_code_stages(clt_text *text, const clt_code *code, const clt_tensor *node, char value[CLT_CODE_VALUE]) {
    clt_dtype types[CLT_CODE_READS];
    for (int k = 0; k < code->n_reads; k++) types[k] = node->inputs[code->reads[k].input]->dtype;
    add_stages(text, code, types, value);
}

bool clt_code_begin(clt_lowering *l, const clt_code *code, const char *before, clt_text *body, int64_t count, int group) {
    char hash[CLT_HASH_TEXT], name[64];
    clt_text text = {0};
    clt_hash_text(clt_text_data(body), body->length, hash);
    snprintf(name, sizeof name, "pw_%.36s_%.16s", code->fused.stages[code->fused.n_stages - 1].form.name, hash);
    clt_text_add(&text, "%skernel void %s%s", before, name, clt_text_data(body));
    clt_status status = CLT_MIN(body->status, text.status);
    if (status < 0) clt_lower_fail(l, status);
    else clt_launch_begin_text(l, "a pointwise kernel", text.data, false, name, count, group);
    clt_text_free(body);
    clt_text_free(&text);
    if (l->status == CLT_OK) l->launches[l->n_launches - 1].wide = code->large;
    return l->status == CLT_OK;
}

void clt_launch_code_vector(clt_lowering *l, const clt_code *code, const int64_t *values) {
    int64_t right[CLT_MAX_RANK] = {0};
    for (int d = 0; d < code->rank; d++) right[CLT_MAX_RANK - code->rank + d] = values[d];
    clt_launch_indices(l, right, CLT_MAX_RANK, CLT_MAX_RANK);
}

/* ---- epilogues ---- */

/* The dimension of a contraction's result, as it lies in memory, that its channel is. */
static int channel_dimension(const clt_tensor *node) {
    bool last = node->op->epilogue == CLT_EPILOGUE_COLUMNS || node->layout == CLT_LAYOUT_CHANNELS_LAST;
    return last ? node->shape.rank - 1 : 1;
}

/* The stages' inputs are NULL for the value itself, then the node's last ones. Dimensions are not merged: the channel is
 * told by its own. */
static bool epilogue_code(const clt_tensor *node, const clt_fused *fused, clt_tensor *const *others, clt_code *code) {
    clt_tensor *inputs[CLT_FUSED_INPUTS] = {NULL};
    code->fused = *fused;
    for (int i = 1; i < fused->n_inputs; i++) inputs[i] = others[i - 1];
    return make_loop(node, inputs, code);
}

typedef enum access { ACCESS_NONE, ACCESS_SAME, ACCESS_SCALAR, ACCESS_CHANNEL } access;

static access access_of(const clt_code *code, int read, int channel) {
    const int64_t *stride = code->reads[read].stride;
    if (clt_code_is_same(code, read)) return ACCESS_SAME;
    for (int d = 0; d < code->rank; d++)
        if (d != channel && code->size[d] > 1 && stride[d]) return ACCESS_NONE;
    if (code->size[channel] == 1 || stride[channel] == 0) return ACCESS_SCALAR;
    return stride[channel] == 1 ? ACCESS_CHANNEL : ACCESS_NONE;
}

/* As if it had been stored, and read again. */
static bool may_be(clt_dtype dtype, bool halves) {
    return dtype == CLT_F32 || (halves && is_half(dtype));
}

bool clt_epilogue_possible(const clt_tensor *node, const clt_fused *fused, clt_tensor *const *others, bool halves) {
    clt_code code;
    if (!epilogue_code(node, fused, others, &code)) return false;
    for (int k = 0; k < code.n_reads; k++)
        if (access_of(&code, k, channel_dimension(node)) == ACCESS_NONE) return false;
    for (int i = 1; i < fused->n_inputs; i++)
        if (!may_be(others[i - 1]->dtype, halves)) return false;
    return may_be(fused->dtype, halves) && may_be(node->dtype, halves);
}

/* Input i of the epilogue, from 1; input 0 is the value. */
static const clt_tensor *epilogue_input(const clt_tensor *node, int i) {
    return node->inputs[clt_own_inputs(node) + i - 1];
}

static void add_epilogue_function(clt_text *text, const clt_tensor *node, const clt_code *code) {
    static const char *const places[] = {"", "index_", "0", "channel_"};
    clt_dtype all_floats[CLT_CODE_READS];
    for (int k = 0; k < code->n_reads; k++) all_floats[k] = CLT_F32;
    char value[CLT_CODE_VALUE];
    for (int k = 0; k < code->n_reads; k++) {
        int input = code->reads[k].input;
        access how = access_of(code, k, channel_dimension(node));
        if (input == 0) {
            clt_text_add(text, "    const float r%d_ = value_;\n", k);
            continue;
        }
        clt_dtype dtype = epilogue_input(node, input)->dtype;
        if (is_half(dtype)) clt_text_add(text, "    const float r%d_ = clt_load_%s(x%d, %s + o%d_);\n", k, clt_dtype_name(dtype), input, places[how], k);
        else clt_text_add(text, "    const float r%d_ = x%d[%s + o%d_];\n", k, input, places[how], k);
    }
    add_stages(text, code, all_floats, value);
    clt_text_add(text, "    return %s;\n}\n", value);
}

/* Parameters of the function and of the kernel, or the names alone. */
static void add_epilogue_list(clt_text *text, const clt_tensor *node, const clt_code *code, bool types) {
    for (int i = 1; i < code->fused.n_inputs; i++) {
        if (!reads_input(code, i)) continue;
        if (types) clt_text_add(text, ", global const %s *x%d", clt_code_storage_type(epilogue_input(node, i)->dtype), i);
        else clt_text_add(text, ", x%d", i);
    }
    for (int k = 0; k < code->n_reads; k++)
        if (code->reads[k].input > 0) clt_text_add(text, types ? ", int o%d_" : ", o%d_", k);
    add_scalars(text, &code->fused, types ? "float " : "");
}

void clt_epilogue_define(clt_text *text, const clt_tensor *node) {
    clt_code code;
    char own[CLT_CODE_VALUE] = "value";
    clt_code_round(node->inputs[0]->dtype, own);
    epilogue_code(node, node->epilogue, node->inputs + clt_own_inputs(node), &code);
    clt_text_add(text, "#undef CLT_EPILOGUE_PARAMETERS\n#undef CLT_EPILOGUE_ARGUMENTS\n#undef CLT_EPILOGUE\n"
                       "#define CLT_EPILOGUE_TYPE %s\n#define CLT_EPILOGUE_PARAMETERS ", clt_dtype_name(node->inputs[0]->dtype));
    add_epilogue_list(text, node, &code, true);
    clt_text_add(text, "\n#define CLT_EPILOGUE_ARGUMENTS ");
    add_epilogue_list(text, node, &code, false);
    clt_text_add(text, "\nstatic float clt_epilogue(float value_, int index_, int channel_ CLT_EPILOGUE_PARAMETERS) {\n");
    add_epilogue_function(text, node, &code);
    clt_text_add(text, "#define CLT_EPILOGUE_ROUNDED(value, index, ch) clt_epilogue(value, index, ch CLT_EPILOGUE_ARGUMENTS)\n"
                       "#define CLT_EPILOGUE(value, index, ch) CLT_EPILOGUE_ROUNDED(%s, index, ch)\n", own);
}

void clt_launch_epilogue(clt_lowering *l, const clt_tensor *node) {
    clt_code code;
    if (!node->epilogue) return;
    int own = clt_own_inputs(node);
    epilogue_code(node, node->epilogue, node->inputs + own, &code);
    for (int i = 1; i < code.fused.n_inputs; i++)
        if (reads_input(&code, i)) clt_launch_tensor(l, node->inputs[own + i - 1]);
    for (int k = 0; k < code.n_reads; k++)
        if (code.reads[k].input > 0) clt_launch_int(l, code.reads[k].offset);
    clt_launch_code_scalars(l, &code.fused);
}
