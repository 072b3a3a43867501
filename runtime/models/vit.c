/* Dosovitskiy et al. 2020, "An Image is Worth 16x16 Words"; names of torchvision.models.vision_transformer. */
#include "runtime/models/models.h"

#define LAYER_NORM_EPS 1e-6f

typedef struct vit {
    clt_vit_options options;
    clt_graph *graph;
} vit;

static clt_tensor *norm(clt_tensor *x, const char *name) {
    return clt_layer_norm_with(x, name, 1, (clt_norm_options){.eps = LAYER_NORM_EPS});
}

static clt_tensor *dropped(const vit *m, clt_tensor *x) {
    return m->options.dropout > 0 ? clt_dropout(x, m->options.dropout) : x;
}

/* As torch.nn.MultiheadAttention: one weight for queries, keys and values. */
static clt_tensor *self_attention(const vit *m, clt_tensor *x, const char *name) {
    int64_t width = m->options.width;
    clt_tensor *weight = clt_parameter(m->graph, CLT_NAMED("%s.in_proj_weight", name), CLT_SHAPE(3 * width, width),
                                       (clt_init){CLT_INIT_XAVIER_UNIFORM});
    clt_tensor *bias = clt_parameter(m->graph, CLT_NAMED("%s.in_proj_bias", name), CLT_SHAPE(3 * width), (clt_init){CLT_INIT_ZEROS});
    clt_tensor *qkv = clt_linear_op(x, weight, bias), *heads[3];
    for (int i = 0; i < 3; i++)
        heads[i] = clt_model_split_heads(clt_slice(qkv, 2, i * width, (i + 1) * width, 1), m->options.heads);
    clt_tensor *y = clt_attention(heads[0], heads[1], heads[2], .causal = false);
    return clt_linear(clt_model_merge_heads(y), CLT_NAMED("%s.out_proj", name), width);
}

static clt_tensor *block(const vit *m, clt_tensor *x, const char *name) {
    clt_tensor *y = self_attention(m, norm(x, CLT_NAMED("%s.ln_1", name)), CLT_NAMED("%s.self_attention", name));
    x = clt_add(x, dropped(m, y));
    y = clt_linear(norm(x, CLT_NAMED("%s.ln_2", name)), CLT_NAMED("%s.mlp.0", name), m->options.hidden);
    y = clt_linear(dropped(m, clt_gelu(y)), CLT_NAMED("%s.mlp.3", name), m->options.width);
    return clt_add(x, dropped(m, y));
}

/* The image's patches as a sequence behind the class token, with positions: [N, patches + 1, width]. */
static clt_tensor *embed(const vit *m, clt_tensor *x) {
    int64_t width = m->options.width;
    clt_tensor *patches = clt_conv2d(x, "conv_proj", width, .kernel = (int)m->options.patch, .stride = (int)m->options.patch);
    patches = clt_transpose(clt_reshape(patches, CLT_SHAPE(CLT_BATCH, width, -1)), 1, 2);
    clt_tensor *token = clt_parameter(m->graph, "class_token", CLT_SHAPE(1, 1, width), (clt_init){CLT_INIT_ZEROS});
    token = clt_expand(token, CLT_SHAPE(CLT_BATCH, 1, width));
    clt_tensor *sequence = clt_concat((clt_tensor *[]){token, patches}, 2, 1);
    clt_tensor *positions = clt_parameter(m->graph, "encoder.pos_embedding", CLT_SHAPE(1, clt_tensor_shape(sequence).dims[1], width),
                                          (clt_init){CLT_INIT_NORMAL, .value = 0.02f});
    return dropped(m, clt_add(sequence, positions));
}

static clt_vit_options completed(clt_vit_options o) {
    if (!o.patch) o.patch = 16;
    if (!o.width) o.width = 768;
    if (!o.hidden) o.hidden = 4 * o.width;
    if (!o.layers) o.layers = 12;
    if (!o.heads) o.heads = 12;
    if (!o.outputs) o.outputs = 1000;
    return o;
}

clt_tensor *clt_model_vit_with(clt_tensor *x, clt_vit_options options) {
    if (!clt_tensor_valid(x)) return x;
    vit m = {completed(options), x->graph};
    const clt_vit_options *o = &m.options;
    if (x->shape.rank != 4 || o->patch < 1 || o->patch > CLT_MAX_WINDOW || x->shape.dims[2] % o->patch || x->shape.dims[3] % o->patch) {
        char text[CLT_SHAPE_TEXT];
        return clt_graph_fail(x->graph, clt_fail(CLT_E_SHAPE, "clt_model_vit: expected images [N, C, H, W] whose height and width are multiples of the "
                                                 "patch's %lld, got %s", (long long)o->patch, clt_shape_text(&x->shape, text)));
    }
    if (o->layers < 1 || o->heads < 1 || o->width < 1 || o->width % o->heads)
        return clt_graph_fail(x->graph, clt_fail(CLT_E_INVALID, "clt_model_vit: expected at least one layer and a width that the heads divide, got %d "
                                                 "layers, width %lld, %d heads", o->layers, (long long)o->width, o->heads));
    x = embed(&m, x);
    for (int i = 0; i < o->layers; i++) x = block(&m, x, CLT_NAMED("encoder.layers.encoder_layer_%d", i));
    clt_tensor *first = clt_slice(norm(x, "encoder.ln"), 1, 0, 1, 1);
    return clt_linear(clt_reshape(first, CLT_SHAPE(CLT_BATCH, o->width)), "heads.head", o->outputs);
}
