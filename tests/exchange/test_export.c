/* Graphs as ONNX files: each op and model once, written, read back, and compared, at the batch and length of the graph and at others. With EXPORT_FOLDER set, the
 * files stay there with inputs and outputs, for serve_onnx.py. */
#include "tests/data/files.h"

#include <math.h>

#include <cltrain/cltrain.h>

#include "runtime/exchange/onnx/model.h"
#include "runtime/graph/graph.h"

SUPPORT_DEVICE

enum { N = 4, OTHER_N = 3, T = 6, OTHER_T = 5, MOST_OUTPUTS = 48, MOST_VALUES = 1 << 16 };

/* What a case exports. */
typedef struct outputs {
    clt_tensor *at[MOST_OUTPUTS];
    int n;
} outputs;

#define OUT(o, tensor) ((o)->at[(o)->n++] = (tensor))

typedef struct export_case {
    const char *name;
    void (*build)(clt_graph *g, outputs *o);
    float tolerance; /* relative to the largest value of an output; 0: the usual one */
} export_case;

/* ---- cases ---- */

static void unary(clt_graph *g, outputs *o) {
    clt_tensor *x = clt_input(g, "x", CLT_F32, CLT_SHAPE(N, 7)), *above = clt_add_scalar(clt_abs(x), 0.5f);
    clt_tensor *(*const plain[])(clt_tensor *) = {clt_neg, clt_abs, clt_exp, clt_relu, clt_gelu, clt_gelu_tanh, clt_tanh, clt_sigmoid, clt_silu, clt_softplus,
                                                  clt_hard_sigmoid, clt_hard_swish, clt_erf, clt_sin, clt_cos};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) OUT(o, plain[i](clt_mul_scalar(x, 2)));
    OUT(o, clt_log(above));
    OUT(o, clt_sqrt(above));
    OUT(o, clt_pow_scalar(above, 1.5f));
    OUT(o, clt_pow_scalar(x, 2));
    OUT(o, clt_clip(x, -0.5f, 0.25f));
    OUT(o, clt_leaky_relu(x, 0.1f));
    OUT(o, clt_elu(x, 0.7f));
    OUT(o, clt_cast(clt_cast(clt_mul_scalar(x, 5), CLT_I32), CLT_F32));
    OUT(o, clt_cast(clt_cast(clt_mul_scalar(x, 400), CLT_U8), CLT_F32));
    OUT(o, clt_cast(clt_cast(clt_cast(clt_mul_scalar(x, 400), CLT_I32), CLT_U8), CLT_F32));
}

static void binary(clt_graph *g, outputs *o) {
    clt_tensor *x = clt_input(g, "x", CLT_F32, CLT_SHAPE(N, 2, 3)), *b = clt_parameter(g, "b", CLT_SHAPE(3), (clt_init){CLT_INIT_NORMAL, .value = 1});
    clt_tensor *above = clt_add_scalar(clt_abs(x), 0.5f), *t = clt_input(g, "t", CLT_F32, CLT_SHAPE(N, 2, 3)), *p = clt_sigmoid(t);
    clt_tensor *(*const plain[])(clt_tensor *, clt_tensor *) = {clt_add, clt_sub, clt_mul, clt_maximum, clt_minimum, clt_equal, clt_greater, clt_greater_equal, clt_less, clt_less_equal};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) OUT(o, plain[i](x, b));
    OUT(o, clt_div(b, above));
    OUT(o, clt_pow(above, b));
    OUT(o, clt_where(clt_greater(x, b), b, clt_neg(x)));
    clt_tensor *whole = clt_cast(clt_mul_scalar(x, 5), CLT_I32), *byte = clt_cast(clt_mul_scalar(clt_abs(x), 5), CLT_U8);
    OUT(o, clt_equal(whole, byte));
    OUT(o, clt_less(whole, x));
    OUT(o, clt_where(clt_greater(x, b), whole, x));
    OUT(o, clt_cast(clt_where(clt_greater(x, b), whole, byte), CLT_F32));
    clt_loss_options each = {CLT_LOSS_NONE};
    OUT(o, clt_bce_with_logits_with(x, p, each));
    OUT(o, clt_mse_loss_with(x, t, each));
    OUT(o, clt_l1_loss_with(x, t, (clt_loss_options){CLT_LOSS_SUM}));
    OUT(o, clt_huber_loss_with(x, t, 0.3f, each));
    OUT(o, clt_kl_div_loss_with(clt_log_softmax(x, 2), clt_softmax(t, 2), each));
}

static void products(clt_graph *g, outputs *o) {
    clt_tensor *x = clt_input(g, "x", CLT_F32, CLT_SHAPE(N, 5)), *y = clt_input(g, "y", CLT_F32, CLT_SHAPE(N, 2, 3, 5));
    clt_init drawn = {CLT_INIT_NORMAL, .value = 1};
    clt_tensor *w = clt_parameter(g, "w", CLT_SHAPE(5, 6), drawn), *turned = clt_parameter(g, "turned", CLT_SHAPE(6, 5), drawn);
    OUT(o, clt_matmul(x, w));
    OUT(o, clt_matmul_with(x, turned, (clt_matmul_options){.transpose_b = true}));
    OUT(o, clt_matmul_with(x, x, (clt_matmul_options){.transpose_a = true}));
    OUT(o, clt_matmul_with(y, y, (clt_matmul_options){.transpose_b = true}));
    OUT(o, clt_matmul_with(y, y, (clt_matmul_options){.transpose_a = true}));
    OUT(o, clt_linear(x, "fc", 3));
    OUT(o, clt_linear(y, "deep", 4));
}

static void windows(clt_graph *g, outputs *o) {
    clt_tensor *x = clt_input(g, "x", CLT_F32, CLT_SHAPE(N, 4, 9, 8)), *s = clt_input(g, "s", CLT_F32, CLT_SHAPE(N, 4, 11));
    OUT(o, clt_conv2d(x, "c1", 6, .kernel = 3, .padding = 1));
    OUT(o, clt_conv2d(x, "c2", 8, .kernel_h = 3, .kernel_w = 2, .stride_h = 2, .stride_w = 1, .padding_h = 1, .dilation_h = 2, .groups = 2, .no_bias = true));
    OUT(o, clt_conv1d(s, "c3", 5, .kernel = 3, .stride = 2, .padding = 1));
    OUT(o, clt_conv_transpose2d(x, "t1", 6, .kernel = 3, .stride = 2, .padding = 1, .output_padding = 1, .groups = 2));
    OUT(o, clt_max_pool2d(x, .kernel = 3, .stride = 2, .padding = 1));
    OUT(o, clt_avg_pool2d(x, .kernel = 3, .stride = 2, .padding = 1));
    OUT(o, clt_avg_pool2d(x, .kernel = 3, .stride = 1, .padding = 1, .exclude_padding = true));
    OUT(o, clt_global_avg_pool2d(x));
    OUT(o, clt_adaptive_avg_pool2d(x, 4, 3));
    OUT(o, clt_upsample_nearest2d(x, 2));
    OUT(o, clt_upsample_bilinear2d(x, 12, 5));
}

static void norms(clt_graph *g, outputs *o) {
    clt_tensor *x = clt_input(g, "x", CLT_F32, CLT_SHAPE(N, 4, 3, 5));
    OUT(o, clt_batch_norm(x, "bn"));
    OUT(o, clt_batch_norm_with(clt_reshape(x, CLT_SHAPE(0, -1)), "bn1", (clt_norm_options){.eps = 1e-3f}));
    OUT(o, clt_layer_norm(x, "ln", 1));
    OUT(o, clt_layer_norm_with(x, "ln2", 2, (clt_norm_options){.eps = 1e-2f}));
    OUT(o, clt_group_norm(x, "gn", 2));
    OUT(o, clt_rms_norm(x, "rms", 1));
    OUT(o, clt_dropout(x, 0.5f));
    OUT(o, clt_relu(clt_dropout(x, 0.5f)));
    OUT(o, clt_softmax(x, 1));
    OUT(o, clt_log_softmax(x, -1));
}

static void reductions(clt_graph *g, outputs *o) {
    clt_tensor *x = clt_input(g, "x", CLT_F32, CLT_SHAPE(N, 4, 3, 5));
    clt_reduce_options kept = CLT_AXES(1, 3);
    kept.keep_dims = true;
    OUT(o, clt_sum(x, CLT_ALL_AXES));
    OUT(o, clt_sum(x, CLT_AXES(1, 2)));
    OUT(o, clt_mean(x, kept));
    OUT(o, clt_max(x, CLT_AXES(2)));
    OUT(o, clt_cast(clt_argmax(x, 1), CLT_F32));
    OUT(o, clt_cumsum(x, 2));
}

static void shapes(clt_graph *g, outputs *o) {
    clt_tensor *x = clt_input(g, "x", CLT_F32, CLT_SHAPE(N, 4, 6)), *parts[2];
    OUT(o, clt_flatten(x));
    OUT(o, clt_reshape(x, CLT_SHAPE(0, 2, 2, -1)));
    OUT(o, clt_reshape(x, CLT_SHAPE(-1, 6)));
    OUT(o, clt_reshape(x, CLT_SHAPE(2 * N, 12)));
    OUT(o, clt_reshape(x, CLT_SHAPE(4, CLT_BATCH, -1)));
    OUT(o, clt_permute(x, (int[]){2, 0, 1}));
    OUT(o, clt_transpose(x, 1, 2));
    OUT(o, clt_concat((clt_tensor *[]){x, clt_neg(x), x}, 3, 1));
    OUT(o, clt_stack((clt_tensor *[]){x, clt_neg(x)}, 2, 1));
    OUT(o, clt_unsqueeze(x, -1));
    OUT(o, clt_squeeze(clt_sum(x, (clt_reduce_options){.axes = {1}, .n_axes = 1, .keep_dims = true}), 1));
    OUT(o, clt_slice(x, 2, 1, 5, 2));
    OUT(o, clt_slice(x, 1, -3, -1, 1));
    OUT(o, clt_slice(x, 0, 1, INT64_MAX, 1));
    clt_split(x, 2, (int64_t[]){2, 4}, 2, parts);
    OUT(o, parts[0]);
    OUT(o, parts[1]);
    OUT(o, clt_pad(x, (int64_t[]){0, 1, 2}, (int64_t[]){0, 0, 3}, 0.75f));
    OUT(o, clt_expand(clt_unsqueeze(x, 1), CLT_SHAPE(-1, 3, -1, -1)));
    OUT(o, clt_mul(x, clt_expand(clt_parameter(g, "row", CLT_SHAPE(6), (clt_init){CLT_INIT_NORMAL, .value = 1}), CLT_SHAPE(CLT_BATCH, 4, 6))));
}

static void indices(clt_graph *g, outputs *o) {
    clt_tensor *i = clt_input(g, "i", CLT_I32, CLT_SHAPE(N, 5)), *x = clt_input(g, "x", CLT_F32, CLT_SHAPE(N, 4)), *one = clt_reshape(clt_slice(i, 1, 0, 1, 1), CLT_SHAPE(-1));
    clt_tensor *places = clt_constant(g, "places", &(clt_array){CLT_I32, CLT_SHAPE(3), (int32_t[]){2, 0, 2}});
    OUT(o, clt_embedding(i, "table", 4, 6));
    OUT(o, clt_one_hot(clt_cast(clt_add_scalar(clt_cast(i, CLT_F32), -1), CLT_I32), 2)); /* -1 and 2 are none of them */
    OUT(o, clt_index_select(x, 1, places));
    OUT(o, clt_cross_entropy_with(x, one, (clt_cross_entropy_options){.reduction = CLT_LOSS_NONE}));
    OUT(o, clt_cross_entropy_with(x, one, (clt_cross_entropy_options){.label_smoothing = 0.1f}));
    OUT(o, clt_cross_entropy_with(x, one, (clt_cross_entropy_options){.ignore_index = &(int32_t){2}}));
    OUT(o, clt_nll_loss(clt_log_softmax(x, 1), one));
}

static void attentions(clt_graph *g, outputs *o) {
    clt_tensor *q = clt_input(g, "q", CLT_F32, CLT_SHAPE(N, 4, T, 6)), *k = clt_input(g, "k", CLT_F32, CLT_SHAPE(N, 2, 7, 6)), *ids = clt_input(g, "ids", CLT_I32, CLT_SHAPE(N, T));
    static const unsigned char seen[7] = {1, 0, 1, 1, 0, 0, 1}, none[7];
    clt_tensor *bytes = clt_constant(g, "bytes", &(clt_array){CLT_U8, CLT_SHAPE(1, 1, 1, 7), seen}), *hidden = clt_constant(g, "hidden", &(clt_array){CLT_U8, CLT_SHAPE(1, 1, 1, 7), none});
    clt_tensor *floats = clt_parameter(g, "mask", CLT_SHAPE(1, 4, 1, 7), (clt_init){CLT_INIT_NORMAL, .value = 1});
    OUT(o, clt_attention(q, k, clt_neg(k)));
    OUT(o, clt_attention(q, k, k, .causal = true, .scale = 0.3f, .dropout = 0.5f));
    OUT(o, clt_attention(q, k, k, .mask = bytes));
    OUT(o, clt_attention(q, k, k, .mask = hidden));
    OUT(o, clt_attention(q, k, k, .mask = floats, .causal = true));
    OUT(o, clt_attention(q, k, k, .position_ids = ids));
    OUT(o, clt_rotary(q));
    OUT(o, clt_rotary(q, .interleaved = true, .position_ids = ids));
}

static void recurrent(clt_graph *g, outputs *o) {
    clt_tensor *x = clt_input(g, "x", CLT_F32, CLT_SHAPE(N, T, 5));
    OUT(o, clt_lstm(x, "lstm", 4, .layers = 2, .bidirectional = true));
    OUT(o, clt_gru(x, "gru", 3));
}

/* At any length. */
static void sequences(clt_graph *g, outputs *o) {
    clt_tensor *x = clt_sequence_input(g, "x", CLT_F32, CLT_SHAPE(N, T, 8), 1), *table = clt_parameter(g, "positions", CLT_SHAPE(T, 8), (clt_init){CLT_INIT_NORMAL, .value = 1});
    clt_tensor *h = clt_add(x, clt_slice_like(table, x, 1)), *heads = clt_permute(clt_reshape(h, CLT_SHAPE(CLT_BATCH, CLT_LENGTH, 2, 4)), (int[]){0, 2, 1, 3});
    OUT(o, clt_reshape(clt_permute(clt_attention(clt_rotary(heads), heads, heads, .causal = true), (int[]){0, 2, 1, 3}), CLT_SHAPE(0, 0, 8)));
    OUT(o, clt_slice(x, 1, 0, CLT_LENGTH - 1, 1));
    OUT(o, clt_reshape(clt_slice(x, 1, 1, CLT_LENGTH, 1), CLT_SHAPE(-1, 8)));
    OUT(o, clt_reshape(x, CLT_SHAPE(CLT_BATCH, 2, CLT_LENGTH, -1)));
    OUT(o, clt_expand(clt_mean(x, (clt_reduce_options){.axes = {1}, .n_axes = 1, .keep_dims = true}), CLT_SHAPE(CLT_BATCH, CLT_LENGTH, 8)));
    clt_tensor *twice = clt_concat((clt_tensor *[]){x, clt_slice(x, 1, 1, INT64_MAX, 1)}, 2, 1), *rows = clt_reshape(x, CLT_SHAPE(-1, 8));
    OUT(o, clt_unsqueeze(clt_matmul_with(twice, twice, (clt_matmul_options){.transpose_b = true}), 0)); /* [1, N, 2T - 1, 2T - 1] */
    OUT(o, clt_unsqueeze(clt_matmul_with(rows, rows, (clt_matmul_options){.transpose_b = true}), 1)); /* [N T, 1, N T] */
}

/* What is exported may be an input or a weight, have a name, or be what another output reads. */
static void ends(clt_graph *g, outputs *o) {
    clt_tensor *x = clt_input(g, "output", CLT_F32, CLT_SHAPE(N, 3)), *w = clt_parameter(g, "/w", CLT_SHAPE(3), (clt_init){CLT_INIT_NORMAL, .value = 1});
    clt_tensor *named = clt_add(x, w);
    assert_ok(clt_tensor_set_name(named, "output_1"));
    OUT(o, x);
    OUT(o, w);
    OUT(o, named);
    OUT(o, clt_exp(named));
    OUT(o, clt_neg(named));
    OUT(o, clt_dropout(x, 0.25f));
}

static void resnet(clt_graph *g, outputs *o) { OUT(o, clt_model_resnet(clt_input(g, "x", CLT_F32, CLT_SHAPE(N, 3, 8, 8)), .depth = 18, .small_images = true, .outputs = 5)); }
static void mobilenet(clt_graph *g, outputs *o) { OUT(o, clt_model_mobilenet_v2(clt_input(g, "x", CLT_F32, CLT_SHAPE(N, 3, 32, 32)), .width = 0.25f, .outputs = 5)); }
static void vit(clt_graph *g, outputs *o) { OUT(o, clt_model_vit(clt_input(g, "x", CLT_F32, CLT_SHAPE(N, 3, 16, 16)), .patch = 8, .width = 16, .layers = 2, .heads = 2, .outputs = 5)); }
static void unet(clt_graph *g, outputs *o) { OUT(o, clt_model_unet(clt_input(g, "x", CLT_F32, CLT_SHAPE(N, 3, 16, 16)), .outputs = 2, .width = 4)); }
static clt_tensor *tokens(clt_graph *g) { return clt_sequence_input(g, "tokens", CLT_I32, CLT_SHAPE(N, T), 1); }
static void gpt2(clt_graph *g, outputs *o) { OUT(o, clt_model_gpt2(tokens(g), .vocabulary = 11, .positions = T, .width = 16, .layers = 2, .heads = 2, .dropout = 0.1f)); }
static void llama(clt_graph *g, outputs *o) { OUT(o, clt_model_llama(tokens(g), .vocabulary = 11, .width = 16, .hidden = 24, .layers = 2, .heads = 4, .key_heads = 2)); }
static void lstm(clt_graph *g, outputs *o) { OUT(o, clt_model_lstm(clt_input(g, "tokens", CLT_I32, CLT_SHAPE(N, T)), .vocabulary = 11, .hidden = 6, .dropout = 0.2f)); }
static void adapted(clt_graph *g, outputs *o) {
    clt_tensor *x = clt_input(g, "x", CLT_F32, CLT_SHAPE(N, 5));
    OUT(o, clt_linear(clt_relu(clt_linear(x, "fc1", 6)), "fc2", 3));
    assert_ok(clt_graph_add_lora(g, "*", &(clt_lora_options){.rank = 2, .alpha = 5, .dropout = 0.1f}));
}

static const export_case cases[] = {
    {.name = "unary", unary},       {.name = "binary", binary},         {.name = "products", products},     {.name = "windows", windows}, {.name = "norms", norms},
    {.name = "reductions", reductions}, {.name = "shapes", shapes},     {.name = "indices", indices},       {.name = "attentions", attentions},
    {.name = "recurrent", recurrent},   {.name = "sequences", sequences}, {.name = "ends", ends},           {.name = "resnet", resnet},   {.name = "mobilenet", mobilenet},
    {.name = "vit", vit},           {.name = "unet", unet},             {.name = "gpt2", gpt2},             {.name = "llama", llama},     {.name = "lstm", lstm},
    {.name = "adapted", adapted},
};

/* ---- one case ---- */

/* A batch for all inputs of a graph: floats that look random, small indices. */
static unsigned char fed[8][1 << 16];

static clt_batch batch_for(const clt_graph *g, int64_t samples, int64_t length) {
    clt_batch batch = {.samples = samples};
    for (size_t i = 0; i < g->n_nodes; i++) {
        const clt_tensor *t = g->nodes[i];
        if (t->kind != CLT_NODE_INPUT) continue;
        clt_shape shape = t->shape;
        shape.dims[0] = samples;
        if (t->length_axis) shape.dims[t->length_axis] = length;
        int field = batch.n_fields++, seed = (int)strlen(t->name) + t->name[0];
        for (int64_t k = 0; k < clt_shape_elements(&shape); k++) {
            if (t->dtype == CLT_F32) ((float *)fed[field])[k] = sinf((float)(k * 7 + seed));
            else ((int32_t *)fed[field])[k] = (int32_t)((k * 7 + 1) % 4);
        }
        batch.fields[field] = (clt_array){t->dtype, shape, fed[field]};
    }
    return batch;
}

static size_t elements_at(const clt_tensor *t, int64_t samples, int64_t length) {
    clt_graph *clone;
    clt_tensor **map;
    assert_ok(clt_graph_clone(t->graph, &(clt_tensor *){(clt_tensor *)(uintptr_t)t}, 1, (clt_sizes){samples, t->graph->length ? length : 0}, &clone, &map));
    size_t n = (size_t)clt_shape_elements(&map[t->index]->shape);
    clt_free(map);
    clt_graph_destroy(clone);
    return n;
}

static size_t file_bytes(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) return 0;
    fseek(file, 0, SEEK_END);
    long bytes = ftell(file);
    fclose(file);
    return (size_t)bytes;
}

static void keep_values(FILE *list, const char *what, const char *name, const char *file, clt_dtype dtype, const clt_shape *shape, const void *values, size_t bytes) {
    fprintf(list, "%s\t%s\t%s\t%s\t", what, name, file, clt_dtype_name(dtype));
    for (int d = 0; shape && d < shape->rank; d++) fprintf(list, "%lld ", (long long)shape->dims[d]);
    fprintf(list, "\n");
    char path[600];
    snprintf(path, sizeof path, "%s/%s", getenv("EXPORT_FOLDER"), file);
    support_write(path, values, bytes);
}

static void keep_case(const export_case *c, const char *model, const clt_graph *g, const clt_batch *batch, const outputs *o, const clt_onnx *onnx, float *const *values, const size_t *n) {
    char path[600], file[64];
    void *bytes = NULL;
    if (!getenv("EXPORT_FOLDER") || file_bytes(support_path("exported.onnx.data"))) return; /* or the weights are elsewhere */
    snprintf(path, sizeof path, "%s/%s-%lld.list", getenv("EXPORT_FOLDER"), c->name, (long long)batch->samples);
    FILE *list = fopen(path, "w"), *from = fopen(model, "rb");
    assert_true(list && from);
    fseek(from, 0, SEEK_END);
    size_t length = (size_t)ftell(from);
    rewind(from);
    bytes = malloc(length);
    assert_true(fread(bytes, 1, length, from) == length);
    fclose(from);
    snprintf(path, sizeof path, "%s/%s.onnx", getenv("EXPORT_FOLDER"), c->name);
    support_write(path, bytes, length);
    free(bytes);
    int field = 0;
    for (size_t i = 0; i < g->n_nodes; i++) {
        if (g->nodes[i]->kind != CLT_NODE_INPUT) continue;
        const clt_array *a = &batch->fields[field++];
        snprintf(file, sizeof file, "%s-%lld-in%d", c->name, (long long)batch->samples, field);
        keep_values(list, "in", g->nodes[i]->name, file, a->dtype, &a->shape, a->data, (size_t)clt_shape_elements(&a->shape) * clt_dtype_bytes(a->dtype));
    }
    for (int k = 0; k < o->n; k++) {
        snprintf(file, sizeof file, "%s-%lld-out%d", c->name, (long long)batch->samples, k);
        keep_values(list, "out", clt_onnx_output_name(onnx, (size_t)k), file, CLT_F32, NULL, values[k], n[k] * sizeof(float));
    }
    fclose(list);
}

static float error_of(const float *a, const float *b, size_t n) {
    float largest = 1e-6f, error = 0;
    for (size_t i = 0; i < n; i++) {
        if (!(fabsf(a[i] - b[i]) <= error)) error = fabsf(a[i] - b[i]);
        if (fabsf(a[i]) > largest) largest = fabsf(a[i]);
    }
    return error / largest;
}

static void compare(const export_case *c, clt_trainer *t, const outputs *o, const clt_onnx *onnx, const clt_graph *read, const char *model, int64_t samples, int64_t length) {
    static float values[MOST_VALUES], again[MOST_VALUES];
    float *at[MOST_OUTPUTS];
    size_t n[MOST_OUTPUTS], used = 0;
    for (int k = 0; k < o->n; k++) {
        clt_batch own = batch_for(o->at[0]->graph, samples, length);
        n[k] = elements_at(o->at[k], samples, length);
        at[k] = values + used;
        assert_true((used += n[k]) <= MOST_VALUES);
        assert_ok(clt_trainer_predict(t, o->at[k], &own, at[k], n[k]));
        clt_predictor *p;
        clt_tensor *output = clt_onnx_output(onnx, clt_onnx_output_name(onnx, (size_t)k));
        assert_non_null(output);
        assert_ok(clt_predictor_create(&p, device, output, NULL));
        clt_batch given = batch_for(read, samples, length);
        assert_ok(clt_predictor_run(p, &given, again, n[k]));
        clt_predictor_destroy(p);
        float error = error_of(at[k], again, n[k]);
        if (!(error <= (c->tolerance > 0 ? c->tolerance : 1e-5f))) fail_msg("%s: output %d, %s: error %g", c->name, k, clt_onnx_output_name(onnx, (size_t)k), (double)error);
    }
    clt_batch own = batch_for(o->at[0]->graph, samples, length);
    keep_case(c, model, o->at[0]->graph, &own, o, onnx, at, n);
}

/* Something to train; what is exported need not be part of it. */
static clt_tensor *loss_of(clt_graph *g) {
    clt_tensor *p = clt_parameter(g, "of the loss", CLT_SHAPE(1), (clt_init){CLT_INIT_NORMAL, .value = 1});
    return clt_mean(clt_mul(p, p), CLT_ALL_AXES);
}

static void run_case(const export_case *c, const clt_onnx_export_options *options) {
    clt_graph *g, *read;
    clt_trainer *t;
    clt_onnx *onnx;
    outputs o = {.n = 0};
    char path[600];
    snprintf(path, sizeof path, "%s", support_path("exported.onnx"));
    assert_ok(clt_graph_create(&g));
    c->build(g, &o);
    clt_tensor *loss = loss_of(g);
    assert_ok(clt_graph_status(g));
    assert_ok(clt_trainer_create(&t, device, loss, NULL));
    assert_ok(clt_onnx_export(t, o.at, o.n, path, options));
    assert_ok(clt_onnx_open(&onnx, path));
    assert_ok(clt_graph_create(&read));
    clt_onnx_options at = {.batch = N, .length_symbol = g->length ? "length" : NULL, .length = g->length};
    clt_status status = clt_onnx_build(onnx, read, &at);
    if (status < 0) fail_msg("%s: %s", c->name, clt_error_detail());
    compare(c, t, &o, onnx, read, path, N, T);
    compare(c, t, &o, onnx, read, path, OTHER_N, OTHER_T);
    clt_graph_destroy(read);
    clt_onnx_close(onnx);
    clt_trainer_destroy(t);
    clt_graph_destroy(g);
}

static void each_case(void **state) {
    (void)state;
    const char *only = getenv("EXPORT_CASE");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (!only || !strcmp(only, cases[i].name)) run_case(&cases[i], NULL);
}

/* ---- files ---- */

/* A graph that is as large as it has to be, and its trainer. */
typedef struct small {
    clt_graph *graph;
    clt_tensor *x, *y, *loss;
    clt_trainer *trainer;
} small;

static small make_small(void) {
    small s;
    assert_ok(clt_graph_create(&s.graph));
    s.x = clt_input(s.graph, "x", CLT_F32, CLT_SHAPE(N, 5));
    s.y = clt_gelu(clt_linear(s.x, "fc", 3));
    s.loss = clt_mse_loss(s.y, clt_input(s.graph, "target", CLT_F32, CLT_SHAPE(N, 3)));
    assert_ok(clt_trainer_create(&s.trainer, device, s.loss, NULL));
    return s;
}

static void free_small(small *s) {
    clt_trainer_destroy(s->trainer);
    clt_graph_destroy(s->graph);
}

/* By name from the same folder, wherever that is. */
static void external_data_lie_beside(void **state) {
    (void)state;
    run_case(&cases[2], &(clt_onnx_export_options){.external_data = true});
    run_case(&cases[7], &(clt_onnx_export_options){.external_data = true}); /* with constants */
    small s = make_small();
    char path[600];
    snprintf(path, sizeof path, "%s", support_path("outside.onnx"));
    assert_ok(clt_onnx_export(s.trainer, &s.y, 1, path, &(clt_onnx_export_options){.external_data = true}));
    assert_int_equal(file_bytes(support_path("outside.onnx.data")), (3 * 5 + 3) * sizeof(float));
    free_small(&s);
}

/* The trained weights of now, and the metadata that a file of weights has. */
static void trained_weights_are_written(void **state) {
    (void)state;
    small s = make_small();
    float values[15], trained[15], read[15];
    for (int i = 0; i < 15; i++) values[i] = (float)i;
    clt_batch batch = {.samples = N, .n_fields = 2, .fields = {{CLT_F32, CLT_SHAPE(N, 5), fed[0]}, {CLT_F32, CLT_SHAPE(N, 3), fed[1]}}};
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 5 * N; k++) ((float *)fed[i])[k] = (float)(k % 3);
    assert_ok(clt_trainer_set(s.trainer, "fc.weight", values, 15));
    for (int i = 0; i < 3; i++) assert_ok(clt_trainer_step(s.trainer, &batch));
    assert_ok(clt_trainer_get(s.trainer, "fc.weight", trained, 15));
    assert_true(memcmp(trained, values, sizeof trained) != 0);
    clt_onnx *onnx;
    clt_graph *graph;
    clt_predictor *p;
    assert_ok(clt_onnx_export(s.trainer, &s.y, 1, support_path("trained.onnx"), NULL));
    assert_ok(clt_onnx_open(&onnx, support_path("trained.onnx")));
    assert_ok(clt_graph_create(&graph));
    assert_ok(clt_onnx_build(onnx, graph, NULL));
    assert_null(clt_graph_find(graph, "target"));
    assert_ok(clt_predictor_create(&p, device, clt_onnx_output(onnx, "output"), NULL));
    assert_ok(clt_predictor_get(p, "fc.weight", read, 15));
    assert_memory_equal(read, trained, sizeof read);
    clt_predictor_destroy(p);
    clt_graph_destroy(graph);
    clt_onnx_close(onnx);
    free_small(&s);
}

/* What is not trained is not trained where it is read again, of any type and size; and the input of samples comes first. */
static void constants_and_buffers_come_back(void **state) {
    (void)state;
    enum { LONG = 70000, WIDTH = 5 };
    static float values[LONG];
    static int32_t integers[LONG];
    clt_graph *g, *again;
    clt_trainer *t;
    clt_predictor *p;
    clt_onnx *onnx;
    float written[N * WIDTH], read[N * WIDTH], *x = (float *)fed[0];
    for (int i = 0; i < LONG; i++) values[i] = sinf((float)i), integers[i] = i % 1000 - 500;
    assert_ok(clt_graph_create(&g));
    clt_fixed_input(g, "scale", CLT_F32, CLT_SHAPE(WIDTH));
    clt_tensor *in = clt_input(g, "x", CLT_F32, CLT_SHAPE(N, WIDTH)), *weight = clt_parameter(g, "weight", CLT_SHAPE(WIDTH), (clt_init){CLT_INIT_NORMAL, .value = 1});
    clt_tensor *table = clt_constant(g, "table", &(clt_array){CLT_F32, CLT_SHAPE(1, WIDTH), values + 1}), *shift = clt_buffer(g, "shift", CLT_SHAPE(WIDTH), (clt_init){CLT_INIT_CONSTANT, .value = 2});
    clt_tensor *reals = clt_constant(g, "reals", &(clt_array){CLT_F32, CLT_SHAPE(1, LONG), values}), *wholes = clt_constant(g, "wholes", &(clt_array){CLT_I32, CLT_SHAPE(1, LONG), integers});
    clt_tensor *ends = clt_add(clt_slice(reals, 1, LONG - WIDTH, LONG, 1), clt_cast(clt_slice(wholes, 1, LONG - WIDTH, LONG, 1), CLT_F32));
    clt_tensor *y = clt_add(clt_add(clt_mul(clt_mul(in, table), clt_mul(weight, clt_graph_find(g, "scale"))), shift), ends);
    assert_ok(clt_trainer_create(&t, device, clt_mean(clt_mul(y, y), CLT_ALL_AXES), NULL));
    assert_ok(clt_trainer_set_input(t, "scale", &(clt_array){CLT_F32, CLT_SHAPE(WIDTH), values + 7}));
    assert_ok(clt_onnx_export(t, &y, 1, support_path("kinds.onnx"), NULL));
    for (int i = 0; i < N * WIDTH; i++) x[i] = (float)(i % 7) - 3;
    clt_batch batch = {.samples = N, .n_fields = 1, .fields = {{CLT_F32, CLT_SHAPE(N, WIDTH), x}}};
    assert_ok(clt_trainer_predict(t, y, &batch, written, N * WIDTH));

    assert_ok(clt_onnx_open(&onnx, support_path("kinds.onnx")));
    assert_string_equal(clt_onnx_input_name(onnx, 0), "x");
    assert_string_equal(clt_onnx_input_name(onnx, 1), "scale");
    assert_ok(clt_graph_create(&again));
    assert_ok(clt_onnx_build(onnx, again, NULL));
    assert_int_equal(clt_graph_parameter_count(again), WIDTH);
    assert_true(clt_graph_find(again, "weight")->variable->trained && clt_graph_find(again, "shift")->variable->is_buffer);
    assert_ok(clt_predictor_create(&p, device, clt_onnx_output(onnx, NULL), NULL));
    assert_ok(clt_predictor_set_input(p, "scale", &(clt_array){CLT_F32, CLT_SHAPE(WIDTH), values + 7}));
    assert_ok(clt_predictor_run(p, &batch, read, N * WIDTH));
    for (int i = 0; i < N * WIDTH; i++) assert_true(fabsf(read[i] - written[i]) < 1e-4f);
    clt_predictor_destroy(p);
    clt_graph_destroy(again);
    clt_onnx_close(onnx);
    clt_trainer_destroy(t);
    clt_graph_destroy(g);
}

static void preprocessing_comes_back(void **state) {
    (void)state;
    static const char json[] = "{\"dtype\":\"f32\",\"shape\":[5],\"mean\":[1.0,2.0,3.0,4.0,5.0],\"deviation\":[1.0,0.5,2.0,1.0,1.0],\"target\":[3]}";
    char again[sizeof json + 64];
    clt_preprocessing *p, *read = NULL;
    clt_trainer *told;
    clt_onnx *onnx;
    small s = make_small();
    assert_ok(clt_preprocessing_parse(&p, json));
    assert_ok(clt_trainer_create(&told, device, s.loss, &(clt_train_options){.preprocessing = p}));
    assert_ok(clt_onnx_export(told, &s.y, 1, support_path("told.onnx"), NULL));
    assert_ok(clt_onnx_open(&onnx, support_path("told.onnx")));
    assert_ok(clt_onnx_preprocessing(onnx, &read));
    clt_preprocessing_json(read, again, sizeof again);
    assert_string_equal(again, json);
    clt_preprocessing_destroy(read);
    clt_onnx_close(onnx);
    clt_trainer_destroy(told);
    clt_preprocessing_destroy(p);

    assert_ok(clt_onnx_export(s.trainer, &s.y, 1, support_path("untold.onnx"), NULL));
    assert_ok(clt_onnx_open(&onnx, support_path("untold.onnx")));
    assert_status(clt_onnx_preprocessing(onnx, &read), CLT_E_NOT_FOUND);
    assert_detail("untold.onnx does not tell");
    assert_status(clt_onnx_preprocessing(onnx, NULL), CLT_E_INVALID);
    assert_status(clt_onnx_preprocessing(NULL, &read), CLT_E_INVALID);
    clt_onnx_close(onnx);
    free_small(&s);
}

static void assert_refused(clt_trainer *t, clt_tensor *const *outputs_, int n, clt_status status, const char *words) {
    char path[600];
    snprintf(path, sizeof path, "%s", support_path("refused.onnx"));
    assert_status(clt_onnx_export(t, outputs_, n, path, NULL), status);
    assert_detail(words);
    assert_int_equal(file_bytes(path), 0);
}

static void what_cannot_be_written_is_told(void **state) {
    (void)state;
    static const clt_user_op doubled = {.name = "doubled", .source = "kernel void f(global const float *x, global float *y, int count) { int i = get_global_id(0); if (i < count) y[i] = 2 * x[i]; }",
                                        .n_inputs = 1, .forward = "f"};
    small s = make_small(), other = make_small();
    clt_tensor *ids = clt_input(s.graph, "ids", CLT_I32, CLT_SHAPE(N, 2)), *rows = clt_input(s.graph, "rows", CLT_F32, CLT_SHAPE(N, 2, 2, 4));
    clt_tensor *user = clt_apply(&doubled, &s.x, NULL, 0), *cache = clt_cache(rows, "keys", 8, ids), *half = clt_cast(s.x, CLT_F16);
    assert_ok(clt_graph_status(s.graph));
    assert_refused(s.trainer, &s.y, 0, CLT_E_INVALID, "0 outputs");
    assert_refused(s.trainer, (clt_tensor *[]){s.y, NULL}, 2, CLT_E_INVALID, "output 1 is NULL");
    assert_refused(s.trainer, (clt_tensor *[]){s.y, s.x, s.y}, 3, CLT_E_INVALID, "outputs 0 and 2 are the same");
    assert_refused(s.trainer, &other.y, 1, CLT_E_INVALID, "another graph");
    assert_refused(s.trainer, (clt_tensor *[]){clt_exp(user)}, 1, CLT_E_UNSUPPORTED, "doubled #");
    assert_refused(s.trainer, &cache, 1, CLT_E_UNSUPPORTED, "cache #");
    assert_refused(s.trainer, (clt_tensor *[]){clt_cast(half, CLT_F32)}, 1, CLT_E_UNSUPPORTED, "f16 or bf16");
    clt_tensor *copies[N];
    for (int i = 0; i < N; i++) copies[i] = s.y;
    assert_refused(s.trainer, (clt_tensor *[]){clt_reshape(clt_concat(copies, N, 0), CLT_SHAPE(N, -1, 3))}, 1, CLT_E_UNSUPPORTED, "may be the batch or the length"); /* of as many copies */
    clt_tensor *latin = clt_exp(s.y);
    assert_ok(clt_tensor_set_name(latin, "caf\xe9"));
    assert_refused(s.trainer, &latin, 1, CLT_E_INVALID, "UTF-8");
    assert_status(clt_onnx_export(NULL, &s.y, 1, "x.onnx", NULL), CLT_E_INVALID);
    assert_status(clt_onnx_export(s.trainer, NULL, 1, "x.onnx", NULL), CLT_E_INVALID);
    assert_status(clt_onnx_export(s.trainer, &s.y, 1, NULL, NULL), CLT_E_INVALID);
    assert_status(clt_onnx_export(s.trainer, &s.y, 1, support_path("none/x.onnx"), NULL), CLT_E_IO);
    assert_detail("none/x.onnx");
    free_small(&s);
    free_small(&other);
}

/* Each allocation fails once: there is no file then, or that of before. */
static void survives_failing_memory(void **state) {
    (void)state;
    small s = make_small();
    char path[600];
    clt_status status = CLT_E_NO_MEMORY;
    snprintf(path, sizeof path, "%s", support_path("memory.onnx"));
    for (long at = 0; status != CLT_OK; at++) {
        watch_begin(at);
        status = clt_onnx_export(s.trainer, &s.y, 1, path, NULL);
        watch_end();
        if (status != CLT_OK && status != CLT_E_NO_MEMORY) fail_msg("allocation %ld: %s: %s", at, clt_status_name(status), clt_error_detail());
        if (status != CLT_OK) assert_int_equal(file_bytes(path), 0);
    }
    assert_true(file_bytes(path) > 0);
    free_small(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_case),
        cmocka_unit_test(external_data_lie_beside),
        cmocka_unit_test(trained_weights_are_written),
        cmocka_unit_test(constants_and_buffers_come_back),
        cmocka_unit_test(preprocessing_comes_back),
        cmocka_unit_test(what_cannot_be_written_is_told),
        cmocka_unit_test(survives_failing_memory),
    };
    return cmocka_run_group_tests_name("export", tests, open_device, close_device);
}
