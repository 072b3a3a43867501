/*
 * Small networks drawn from a seed. What a plan makes of one, with its passes and the rows that serve, is held against the
 * plan of the reference rows without any pass, on the same device: loss, and the gradients of input and parameters.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cltrain-conform/cases.h"

enum { MOST_NAMES = 64, NAME = 40 };

typedef struct variable {
    char name[NAME];
    clt_shape shape;
    double low, high;
    bool trained;
} variable;

typedef struct network {
    random_stream random;
    clt_graph *graph;
    variable all[MOST_NAMES]; /* x first, then parameters and buffers */
    int n, layers;
    clt_tensor *x, *label, *h, *loss;
    int classes;
} network;

/* ---- drawing one ---- */

static int below(network *w, int limit) {
    return (int)random_below(&w->random, limit);
}

static void add_variable(network *w, const char *layer, const char *part, clt_shape shape, double low,
                         double high, bool trained) {
    if (w->n == MOST_NAMES) return;
    variable *v = &w->all[w->n++];
    *v = (variable){.shape = shape, .low = low, .high = high, .trained = trained};
    snprintf(v->name, sizeof v->name, "%s%s%s", layer, part[0] ? "." : "", part);
}

static void next_name(network *w, char name[16]) {
    snprintf(name, 16, "l%d", w->layers++);
}

static clt_tensor *conv(network *w, clt_tensor *h, int out, int kernel, int stride) {
    char name[16];
    next_name(w, name);
    int64_t in = clt_tensor_shape(h).dims[1];
    double most = sqrt(3.0 / (double)(in * kernel * kernel));
    add_variable(w, name, "weight", (clt_shape)SHAPE(out, in, kernel, kernel), -most, most, true);
    add_variable(w, name, "bias", (clt_shape)SHAPE(out), -0.2, 0.2, true);
    return clt_conv2d_with(
        h, name, (clt_conv2d_options){out, .kernel = kernel, .stride = stride, .padding = kernel / 2});
}

static clt_tensor *linear(network *w, clt_tensor *h, int out) {
    char name[16];
    clt_shape shape = clt_tensor_shape(h);
    int64_t in = shape.dims[shape.rank - 1];
    double most = sqrt(3.0 / (double)in);
    next_name(w, name);
    add_variable(w, name, "weight", (clt_shape)SHAPE(out, in), -most, most, true);
    add_variable(w, name, "bias", (clt_shape)SHAPE(out), -0.2, 0.2, true);
    return clt_linear_with(h, name, (clt_linear_options){.out_features = out});
}

static clt_tensor *norm(network *w, clt_tensor *h, bool batch) {
    char name[16];
    clt_shape shape = clt_tensor_shape(h);
    int64_t c = batch ? shape.dims[1] : shape.dims[shape.rank - 1];
    next_name(w, name);
    add_variable(w, name, "weight", (clt_shape)SHAPE(c), 0.5, 1.5, true);
    add_variable(w, name, "bias", (clt_shape)SHAPE(c), -0.5, 0.5, true);
    if (!batch) return clt_layer_norm(h, name, 1);
    add_variable(w, name, "running_mean", (clt_shape)SHAPE(c), -0.5, 0.5, false);
    add_variable(w, name, "running_var", (clt_shape)SHAPE(c), 0.5, 1.5, false);
    return clt_batch_norm(h, name);
}

static clt_tensor *activation(network *w, clt_tensor *h) {
    switch (below(w, 6)) {
    case 0: return clt_relu(h);
    case 1: return clt_gelu(h);
    case 2: return clt_silu(h);
    case 3: return clt_tanh(h);
    case 4: return clt_mul(h, clt_sigmoid(h));
    default: return clt_relu(clt_add_scalar(clt_mul_scalar(h, 1.1f), 0.05f));
    }
}

static clt_tensor *pool(network *w, clt_tensor *h) {
    clt_shape shape = clt_tensor_shape(h);
    if (shape.dims[2] < 4 || shape.dims[3] < 4) return activation(w, h);
    if (below(w, 2)) return clt_max_pool2d(h, .kernel = 3, .stride = 2, .padding = 1);
    return clt_avg_pool2d(h, .kernel = 2);
}

static clt_tensor *residual(network *w, clt_tensor *h) {
    int c = (int)clt_tensor_shape(h).dims[1];
    clt_tensor *inside = conv(w, clt_relu(norm(w, conv(w, h, c, 3, 1), true)), c, 1, 1);
    return clt_relu(clt_add(inside, h));
}

static clt_tensor *branches(network *w, clt_tensor *h) {
    clt_tensor *two[] = {conv(w, h, 1 + below(w, 5), 1, 1), activation(w, conv(w, h, 1 + below(w, 7), 3, 1))};
    return clt_concat(two, 2, 1);
}

static clt_tensor *image_layer(network *w, clt_tensor *h) {
    switch (below(w, 7)) {
    case 0: return activation(w, conv(w, h, 1 + below(w, 12), 3, 1));
    case 1: return conv(w, h, 1 + below(w, 8), 1 + 2 * below(w, 3), 1 + below(w, 2));
    case 2: return activation(w, norm(w, conv(w, h, 2 + below(w, 8), 3, 1), true));
    case 3: return pool(w, h);
    case 4: return residual(w, h);
    case 5: return branches(w, h);
    default: return clt_dropout(activation(w, h), 0.25f);
    }
}

static clt_tensor *vector_layer(network *w, clt_tensor *h) {
    int64_t width = clt_tensor_shape(h).dims[1];
    switch (below(w, 7)) {
    case 0: return activation(w, linear(w, h, 3 + below(w, 40)));
    case 1: return norm(w, linear(w, h, 4 + below(w, 20)), false);
    case 2: return clt_add(h, linear(w, activation(w, h), (int)width));
    case 3: return clt_mul(h, clt_softmax(linear(w, h, (int)width), 1));
    case 4: return clt_concat((clt_tensor *[]){clt_slice(h, 1, 0, (width + 1) / 2, 1), h}, 2, 1);
    case 5: return clt_dropout(norm(w, h, true), 0.25f);
    default: return clt_pad(h, (int64_t[]){0, 1}, (int64_t[]){0, 2}, 0.5f);
    }
}

static clt_status draw_network(network *w, int number) {
    char name[24];
    snprintf(name, sizeof name, "network %d", number);
    *w = (network){.random = random_of(name), .classes = 2};
    clt_status status = clt_graph_create(&w->graph);
    if (status < 0) return status;
    bool image = number % 3 != 2;
    w->classes += below(w, 9);
    int samples = 3 + below(w, 4);
    clt_shape shape = image
                          ? (clt_shape)SHAPE(samples, 1 + below(w, 4), 6 + below(w, 7), 6 + below(w, 7))
                          : (clt_shape)SHAPE(samples, 3 + below(w, 30));
    add_variable(w, "x", "", shape, -2, 2, true);
    w->x = w->h = clt_input(w->graph, "x", CLT_F32, shape);
    w->label = clt_input(w->graph, "label", CLT_I32, CLT_SHAPE(samples));
    for (int layers = 2 + below(w, 4); layers > 0; layers--)
        w->h = image ? image_layer(w, w->h) : vector_layer(w, w->h);
    if (image) w->h = below(w, 2) ? clt_flatten(w->h) : clt_flatten(clt_global_avg_pool2d(w->h));
    w->loss = clt_cross_entropy(linear(w, w->h, w->classes), w->label);
    return clt_graph_status(w->graph);
}

/* ---- running it ---- */

typedef struct answer {
    double loss;
    float *gradients[MOST_NAMES];
} answer;

static clt_status feed(const network *w, clt_trial *trial) {
    random_stream random = random_of("values");
    clt_status status = CLT_OK;
    for (int i = 0; i < w->n && status == CLT_OK; i++) {
        int64_t count = clt_shape_elements(&w->all[i].shape);
        float *values = malloc((size_t)count * sizeof *values);
        if (!values) exit(3);
        for (int64_t k = 0; k < count; k++)
            values[k] = (float)(w->all[i].low + (w->all[i].high - w->all[i].low) * random_uniform(&random));
        status = clt_trial_set(trial, w->all[i].name, values, (size_t)count * sizeof *values);
        free(values);
    }
    int32_t labels[16];
    int64_t samples = w->all[0].shape.dims[0];
    for (int64_t i = 0; i < samples; i++) labels[i] = (int32_t)random_below(&random, w->classes);
    if (status == CLT_OK) status = clt_trial_set(trial, "label", labels, (size_t)samples * sizeof *labels);
    return status == CLT_OK ? clt_trial_set(trial, NULL, &(float){1}, sizeof(float)) : status;
}

static clt_status read_answer(const network *w, clt_trial *trial, answer *a) {
    float loss;
    clt_status status = clt_trial_get(trial, NULL, &loss, sizeof loss);
    a->loss = (double)loss;
    for (int i = 0; i < w->n && status == CLT_OK; i++) {
        if (!w->all[i].trained) continue;
        size_t count = (size_t)clt_shape_elements(&w->all[i].shape);
        a->gradients[i] = malloc(count * sizeof(float));
        if (!a->gradients[i]) exit(3);
        status = clt_trial_gradient(trial, w->all[i].name, a->gradients[i], count);
    }
    return status;
}

/* Plain: with the reference rows, without passes. These rows alone are tried with the passes that there are. */
static clt_trial_options options_of(const bench *b, bool plain) {
    if (plain) return (clt_trial_options){.backends = "reference", .passes = "none"};
    return (clt_trial_options){.backend = b->backend, .passes = strcmp(b->row, "reference") == 0 ? "" : NULL};
}

static clt_status run_network(const network *w, bench *b, bool plain, case_result *r, answer *first,
                              answer *again) {
    const char *wrt[MOST_NAMES];
    clt_trial_options options = options_of(b, plain);
    options.wrt = wrt;
    clt_trial *trial = NULL;
    for (int i = 0; i < w->n; i++)
        if (w->all[i].trained) wrt[options.n_wrt++] = w->all[i].name;
    clt_status status = clt_trial_create(&trial, b->device, w->loss, &options);
    if (status == CLT_OK && !plain) note_rows(trial, r);
    answer *answers[] = {first, again};
    for (int i = 0; i < 2 && status == CLT_OK; i++) {
        if (!answers[i]) break;
        status = feed(w, trial);
        if (status == CLT_OK) status = clt_trial_run(trial);
        if (status == CLT_OK) status = read_answer(w, trial, answers[i]);
    }
    clt_trial_destroy(trial);
    return status;
}

/* The largest of all gradients. */
static double largest_gradient(const network *w, const answer *a) {
    double largest = 0;
    for (int i = 0; i < w->n; i++)
        for (int64_t k = 0; w->all[i].trained && k < clt_shape_elements(&w->all[i].shape); k++)
            largest = fmax(largest, fabs((double)a->gradients[i][k]));
    return largest;
}

static void compare_gradient(const network *w, int i, const answer *got, const answer *want,
                             bool rounding, case_result *r) {
    array a = {.values = NULL}, b = {.values = NULL};
    char what[80];
    array_resize(&a, w->all[i].shape), array_resize(&b, w->all[i].shape);
    for (int64_t k = 0; k < array_count(&a); k++)
        a.values[k] = (double)got->gradients[i][k], b.values[k] = (double)want->gradients[i][k];
    snprintf(what, sizeof what, "the gradient of %s", w->all[i].name);
    /* Roundings in another order go through all layers. Of a bias in front of a norm they are all there is. */
    bounds most = {.tolerance = 1e-3, .floor = fmax(1e-4, 1e-2 * largest_gradient(w, want)), .nmse = 1e-6};
    if (rounding) most.tolerance = 0.1, most.nmse = 1e-3;
    judge(r, &r->gradient, what, &a, &b, NULL, array_count(&a), &most);
    array_free(&a), array_free(&b);
}

static void compare_answers(const network *w, const answer *got, const answer *again, const answer *want,
                            bool rounding, case_result *r) {
    r->value = r->repeat = PASSED;
    if (!(fabs(got->loss - want->loss) <= (rounding ? 1e-2 : 1e-5) * fmax(1, fabs(want->loss))))
        result_say(r, &r->value, FAILED, "the loss is %.9g, %.9g by the reference rows without passes",
                   got->loss, want->loss);
    if (got->loss != again->loss)
        result_say(r, &r->repeat, FAILED, "the second run gave other bits for the loss");
    for (int i = 0; i < w->n; i++) {
        if (!w->all[i].trained) continue;
        compare_gradient(w, i, got, want, rounding, r);
        if (memcmp(got->gradients[i], again->gradients[i],
                   (size_t)clt_shape_elements(&w->all[i].shape) * sizeof(float)))
            result_say(r, &r->repeat, FAILED, "the second run gave other bits for the gradient of %s",
                       w->all[i].name);
    }
}

static void run_case(const test_case *c, bench *b, case_result *r) {
    network w;
    answer got = {0}, again = {0}, want = {0};
    clt_status status = draw_network(&w, c->number);
    if (status < 0) result_say(r, &r->supported, FAILED, "drawing the network: %s", clt_error_detail());
    if (status == CLT_OK) {
        status = run_network(&w, b, false, r, &got, &again);
        if (status < 0) result_error(r, &r->supported, status, "running");
        else r->supported = PASSED;
    }
    if (status == CLT_OK && (status = run_network(&w, b, true, r, &want, NULL)) < 0)
        result_error(r, &r->value, status, "running with the reference rows");
    if (status == CLT_OK) compare_answers(&w, &got, &again, &want, b->rounding, r);
    judge_redzones(b, r);
    for (int i = 0; i < w.n; i++) free(got.gradients[i]), free(again.gradients[i]), free(want.gradients[i]);
    clt_graph_destroy(w.graph);
}

void cases_network(case_list *list) {
    for (int i = 0; i < 24; i++) {
        char variant[16];
        snprintf(variant, sizeof variant, "%d", i);
        test_case *c = case_add_run(list, "network", variant, run_case);
        c->number = i;
        c->full = i >= 4;
        c->classes = true;
    }
}
