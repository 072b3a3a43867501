/* Every builder of <cltrain/ops.h> in one graph, built, trained and asked about. */
#include "tests/faults/model.h"

#include <string.h>

#include <cltrain/experimental/probe.h>
#include <cltrain/experimental/trial.h>

#include "runtime/base/base.h"

enum { LENGTH = 4, SIDE = 6, PIXELS = SIDE * SIDE, WIDTH = 4 };

/* ---- the graph ---- */

static clt_tensor *every_pointwise(clt_tensor *x, clt_tensor *bias) {
    clt_tensor *positive = clt_add_scalar(clt_abs(clt_add(x, bias)), 0.5f);
    clt_tensor *y = clt_sub(clt_log(positive), clt_exp(clt_neg(clt_pow_scalar(positive, 2))));
    y = clt_div(y, clt_sqrt(clt_pow(positive, clt_sigmoid(bias))));
    y = clt_clip(clt_mul(clt_gelu(y), clt_tanh(clt_silu(y))), -2, 2);
    y = clt_where(clt_less(y, x), clt_maximum(clt_sin(y), clt_leaky_relu(x, 0.1f)), y);
    return clt_add(clt_relu(clt_mul_scalar(y, 0.5f)), x);
}

static clt_tensor *every_shape(clt_tensor *x) {
    static const int64_t before[] = {0, 1}, after[] = {0, 2};
    clt_tensor *padded = clt_pad(x, before, after, 0.25f);
    clt_tensor *parts[] = {clt_slice(padded, 1, 0, 20, 1), clt_slice(padded, 1, 1, -2, 2)};
    clt_tensor *y = clt_concat(parts, 2, 1);
    y = clt_reshape(clt_slice(y, 1, 0, PIXELS, 1), CLT_SHAPE(BATCH, 2, PIXELS / 2));
    return clt_flatten(clt_permute(clt_transpose(y, 1, 2), (const int[]){0, 2, 1}));
}

static clt_tensor *every_image(clt_graph *g, clt_tensor *x) {
    clt_tensor *weight = clt_parameter(g, "kernel", CLT_SHAPE(2, 1, 3, 3), (clt_init){CLT_INIT_KAIMING_UNIFORM, 0, 0});
    clt_tensor *y = clt_batch_norm(clt_conv2d_op(x, weight, NULL, (clt_conv2d_options){.padding = 1}), "bn");
    clt_tensor *small = clt_avg_pool2d(clt_max_pool2d(y, .kernel = 2), .kernel = 3);
    small = clt_add(small, clt_global_avg_pool2d(clt_conv2d(y, "conv", 2, .kernel = 1)));
    return clt_flatten(clt_expand(small, CLT_SHAPE(BATCH, 2, 1, 2)));
}

static clt_tensor *every_reduction(clt_tensor *x) {
    clt_tensor *rows = clt_sum(x, (clt_reduce_options){.axes = {1}, .n_axes = 1, .keep_dims = true});
    clt_tensor *best = clt_max(x, (clt_reduce_options){.axes = {1}, .n_axes = 1, .keep_dims = true});
    return clt_add(clt_mul_scalar(clt_sub(clt_softmax(x, 1), clt_log_softmax(x, 1)), 0.1f), clt_mul(rows, best));
}

/* y = s x, with a kernel of the caller's. */
static clt_tensor *of_the_user(clt_tensor *x) {
    static const clt_user_op op = {
        .name = "scale",
        .source = "kernel void user_scale(global const float *x, global float *y, int count, float s) {\n"
                  "    int i = get_global_id(0); if (i < count) y[i] = s * x[i]; }\n"
                  "kernel void user_scale_back(global const float *x, global const float *y, global const float *dy,\n"
                  "                            global float *dx, int count, float s) {\n"
                  "    int i = get_global_id(0); if (i < count) dx[i] = s * dy[i]; }\n",
        .n_inputs = 1, .forward = "user_scale", .backward = {"user_scale_back"}};
    const float scale = 0.5f;
    return clt_apply(&op, &x, &scale, 1);
}

typedef struct everything {
    clt_graph *graph;
    clt_tensor *output, *loss;
} everything;

static clt_status build_everything(everything *e) {
    CLT_TRY(clt_graph_create(&e->graph));
    clt_graph *g = e->graph;
    clt_tensor *x = clt_input(g, "x", CLT_F32, CLT_SHAPE(BATCH, 1, SIDE, SIDE));
    clt_tensor *series = clt_sequence_input(g, "series", CLT_F32, CLT_SHAPE(BATCH, LENGTH, WIDTH), 1);
    clt_tensor *index = clt_input(g, "index", CLT_I32, CLT_SHAPE(BATCH)), *label = clt_input(g, "label", CLT_I32, CLT_SHAPE(BATCH));
    clt_tensor *bias = clt_parameter(g, "bias", CLT_SHAPE(PIXELS), (clt_init){CLT_INIT_NORMAL, 0.1f, 0});
    clt_tensor *offset = clt_buffer(g, "offset", CLT_SHAPE(WIDTH), (clt_init){CLT_INIT_CONSTANT, 0.25f, 0});
    static const float halves[WIDTH] = {0.5f, 0.5f, 0.5f};
    clt_tensor *halved = clt_constant(g, "halves", &(clt_array){CLT_F32, CLT_SHAPE(WIDTH), (void *)(uintptr_t)halves});
    clt_tensor *h = clt_linear(every_shape(every_pointwise(clt_flatten(x), bias)), "fc", WIDTH);
    clt_tensor *mix = clt_parameter(g, "mix", CLT_SHAPE(WIDTH, WIDTH), (clt_init){CLT_INIT_XAVIER_NORMAL, 0, 0});
    h = clt_add(clt_layer_norm(h, "ln", 1), clt_matmul(clt_embedding(index, "words", 5, WIDTH), mix));
    h = clt_add(clt_add(every_reduction(h), every_image(g, x)), clt_add(offset, clt_tanh(halved)));
    clt_tensor *curve = clt_slice(clt_parameter(g, "curve", CLT_SHAPE(LENGTH, WIDTH), (clt_init){0}), 0, 0, CLT_LENGTH, 1);
    h = clt_add(h, clt_mean(clt_linear(clt_add(series, curve), "series", WIDTH), CLT_AXES(1)));
    e->output = of_the_user(clt_dropout(h, 0.1f));
    clt_tensor *truth = clt_cast(label, CLT_F32);
    clt_tensor *mean = clt_mean(e->output, (clt_reduce_options){.axes = {1}, .n_axes = 1});
    e->loss = clt_add(clt_cross_entropy(e->output, label), clt_mse_loss(mean, truth));
    e->loss = clt_add(e->loss, clt_bce_with_logits(mean, clt_clip(truth, 0, 1)));
    return clt_graph_status(g);
}

static clt_batch batch_of_everything(int64_t length) {
    static float x[BATCH * PIXELS], series[BATCH * LENGTH * WIDTH];
    static int32_t index[BATCH], label[BATCH];
    for (int i = 0; i < BATCH * PIXELS; i++) x[i] = 0.1f * (float)(i % 17) - 0.8f;
    for (int i = 0; i < BATCH; i++) index[i] = i % 5, label[i] = i % CLASSES;
    for (int i = 0; i < BATCH * LENGTH * WIDTH; i++) series[i] = 0.2f * (float)(i % 13) - 1;
    return (clt_batch){BATCH, 4, {{CLT_F32, CLT_SHAPE(BATCH, 1, SIDE, SIDE), x}, {CLT_F32, CLT_SHAPE(BATCH, length, WIDTH), series},
                                  {CLT_I32, CLT_SHAPE(BATCH), index}, {CLT_I32, CLT_SHAPE(BATCH), label}}};
}

/* ---- scenarios ---- */

static void add_facts(digest *d, clt_trainer *t, const everything *e) {
    int64_t numbers[] = {clt_trainer_steps(t), clt_graph_parameter_count(e->graph)};
    clt_shape shape = clt_tensor_shape(e->output);
    float lr = clt_trainer_lr(t);
    digest_add(d, numbers, sizeof numbers);
    digest_add(d, &lr, sizeof lr);
    digest_add(d, shape.dims, (size_t)shape.rank * sizeof *shape.dims);
}

clt_status run_ops(clt_device *device, digest *d) {
    everything e = {0};
    clt_trainer *t = NULL;
    const clt_batch batch = batch_of_everything(LENGTH), shorter = batch_of_everything(LENGTH - 2);
    float result[BATCH * WIDTH];
    clt_status status;
    TRY(build_everything(&e));
    TRY(clt_trainer_create(&t, device, e.loss, &(clt_train_options){.optimizer = CLT_SGD, .output = e.output, .seed = 5}));
    TRY(clt_trainer_step(t, &batch));
    TRY(clt_trainer_set_lr(t, 0.02f));
    TRY(clt_trainer_step(t, &shorter));
    TRY(clt_trainer_wait(t));
    add_facts(d, t, &e);
    TRY(digest_add_values(d, t, "bias", PIXELS));
    TRY(digest_add_values(d, t, "words.weight", 5 * WIDTH));
    TRY(clt_trainer_predict(t, e.output, &batch, result, BATCH * WIDTH));
    digest_add(d, result, sizeof result);
done:
    clt_trainer_destroy(t);
    clt_graph_destroy(e.graph);
    return status;
}

static bool add_row(const clt_row_info *row, void *user) {
    digest_add_text(user, row->op);
    digest_add_text(user, row->missing);
    return true;
}

static bool add_problem(const clt_problem_info *problem, void *user) {
    digest_add_text(user, problem->problem);
    digest_add_text(user, problem->backend);
    return true;
}

static bool add_kernel(const clt_kernel_info *kernel, void *user) {
    digest_add_text(user, kernel->kernel);
    digest_add_text(user, kernel->source);
    return true;
}

clt_status run_rows(clt_device *device, digest *d) {
    everything e = {0};
    clt_status status;
    TRY(clt_problem_check("matmul 8x36 36x12 -> 8x12"));
    TRY(clt_probe_rows(device, add_row, d));
    TRY(build_everything(&e));
    TRY(clt_probe_problems(device, e.loss, &(clt_train_options){.optimizer = CLT_SGD, .output = e.output}, add_problem, d));
    TRY(clt_probe_kernels(device, e.loss, &(clt_train_options){.optimizer = CLT_SGD, .output = e.output}, add_kernel, d));
done:
    clt_graph_destroy(e.graph);
    return status;
}
