/*
 * Small networks drawn from a seed. What a plan makes of one, with its passes and the rows that serve, is held against the
 * plan of the reference rows without any pass, on the same device: loss, and the gradients of input and parameters.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cltrain-conform/cases.h"

enum { MOST_NAMES = 64, NAME = 40, LONGEST = 12, WIDTH = 8, HEADS = 2 };

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
    clt_tensor *tied, *positions, *gain; /* what layers of sequences share; NULL: not used yet */
    int classes;
    clt_dtype low; /* that of mixed precision; CLT_F32: none */
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

/* ---- of sequences [samples, length, WIDTH], as transformers have them ---- */

/* One weight, wherever it is used. */
static clt_tensor *tied_linear(network *w, clt_tensor *h) {
    if (!w->tied) {
        w->tied = clt_parameter(w->graph, "tied", CLT_SHAPE(WIDTH, WIDTH), (clt_init){0});
        add_variable(w, "tied", "", (clt_shape)SHAPE(WIDTH, WIDTH), -0.6, 0.6, true);
    }
    return clt_linear_op(h, w->tied, NULL);
}

static clt_tensor *frozen_linear(network *w, clt_tensor *h) {
    int first = w->n;
    h = linear(w, h, WIDTH);
    for (int i = first; i < w->n; i++) {
        clt_parameter_set_trained(clt_graph_find(w->graph, w->all[i].name), false);
        w->all[i].trained = false;
    }
    return h;
}

/* A constant of the longest length, as much of it as the sequence is long. */
static clt_tensor *add_positions(network *w, clt_tensor *h) {
    float values[LONGEST * WIDTH];
    for (int i = 0; i < LONGEST * WIDTH; i++) values[i] = (float)sin(0.7 * i);
    if (!w->positions) w->positions = clt_constant(w->graph, "positions", &(clt_array){CLT_F32, CLT_SHAPE(LONGEST, WIDTH), values});
    return clt_add(h, clt_slice_like(w->positions, h, 1));
}

static clt_tensor *scale_by_input(network *w, clt_tensor *h) {
    if (!w->gain) {
        w->gain = clt_fixed_input(w->graph, "gain", CLT_F32, CLT_SHAPE(WIDTH));
        add_variable(w, "gain", "", (clt_shape)SHAPE(WIDTH), 0.5, 1.5, false);
    }
    return clt_mul(h, w->gain);
}

static clt_tensor *heads_of(clt_tensor *qkv, int which) {
    clt_tensor *part = clt_slice(qkv, 2, which * WIDTH, (which + 1) * WIDTH, 1);
    return clt_permute(clt_reshape(part, CLT_SHAPE(CLT_BATCH, CLT_LENGTH, HEADS, WIDTH / HEADS)), (int[]){0, 2, 1, 3});
}

static clt_tensor *attend(network *w, clt_tensor *h) {
    clt_tensor *qkv = linear(w, norm(w, h, false), 3 * WIDTH);
    clt_tensor *y = clt_attention(heads_of(qkv, 0), heads_of(qkv, 1), heads_of(qkv, 2), .causal = below(w, 2));
    y = clt_reshape(clt_permute(y, (int[]){0, 2, 1, 3}), CLT_SHAPE(CLT_BATCH, CLT_LENGTH, WIDTH));
    return clt_add(h, y);
}

/* Each half is scaled by the other. */
static clt_tensor *halves(clt_tensor *h) {
    clt_tensor *a = clt_slice(h, 2, 0, WIDTH / 2, 1), *b = clt_slice(h, 2, WIDTH / 2, WIDTH, 1);
    return clt_concat((clt_tensor *[]){clt_mul(a, clt_tanh(b)), clt_mul(b, clt_tanh(a))}, 2, 2);
}

static clt_tensor *sequence_layer(network *w, clt_tensor *h) {
    switch (below(w, 8)) {
    case 0: return clt_add(h, activation(w, tied_linear(w, h)));
    case 1: return attend(w, h);
    case 2: return norm(w, h, false);
    case 3: return add_positions(w, h);
    case 4: return scale_by_input(w, h);
    case 5: return halves(h);
    case 6: return clt_add(h, frozen_linear(w, activation(w, h)));
    default: return clt_add(h, linear(w, clt_dropout(activation(w, linear(w, h, 3 + below(w, 20))), 0.25f), WIDTH));
    }
}

static clt_status draw_sequence_network(network *w, int number) {
    char name[24];
    snprintf(name, sizeof name, "sequences %d", number);
    *w = (network){.random = random_of(name), .classes = 2};
    clt_status status = clt_graph_create(&w->graph);
    if (status < 0) return status;
    w->classes += below(w, 9);
    int samples = 2 + below(w, 3), length = 1 + below(w, LONGEST);
    add_variable(w, "x", "", (clt_shape)SHAPE(samples, length, WIDTH), -2, 2, true);
    w->x = w->h = clt_sequence_input(w->graph, "x", CLT_F32, CLT_SHAPE(samples, length, WIDTH), 1);
    w->label = clt_sequence_input(w->graph, "label", CLT_I32, CLT_SHAPE(samples, length), 1);
    for (int layers = 3 + below(w, 4); layers > 0; layers--) w->h = sequence_layer(w, w->h);
    clt_tensor *y = linear(w, tied_linear(w, w->h), w->classes);
    w->loss = clt_cross_entropy(clt_reshape(y, CLT_SHAPE(-1, w->classes)), clt_reshape(w->label, CLT_SHAPE(-1)));
    return clt_graph_status(w->graph);
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
    int32_t labels[4 * LONGEST];
    clt_shape shape = clt_tensor_shape(w->label);
    int64_t truths = clt_shape_elements(&shape);
    for (int64_t i = 0; i < truths; i++) labels[i] = (int32_t)random_below(&random, w->classes);
    if (status == CLT_OK) status = clt_trial_set(trial, "label", labels, (size_t)truths * sizeof *labels);
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

static clt_precision precision_of(clt_dtype low) {
    return low == CLT_F16 ? CLT_PRECISION_F16 : low == CLT_BF16 ? CLT_PRECISION_BF16 : CLT_PRECISION_F32;
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
    options.precision = precision_of(w->low);
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

/* What roundings in another order make of a result, relative to the largest: through all layers, each of which stores with 16 bits in mixed precision. */
static double slack(const network *w, bool rounding, double least) {
    return fmax(rounding ? 0.1 : least, 16 * float_roundoff(w->low));
}

static void compare_gradient(const network *w, int i, const answer *got, const answer *want,
                             bool rounding, case_result *r) {
    array a = {.values = NULL}, b = {.values = NULL};
    char what[80];
    array_resize(&a, w->all[i].shape), array_resize(&b, w->all[i].shape);
    for (int64_t k = 0; k < array_count(&a); k++)
        a.values[k] = (double)got->gradients[i][k], b.values[k] = (double)want->gradients[i][k];
    snprintf(what, sizeof what, "the gradient of %s", w->all[i].name);
    /* Of a bias in front of a norm roundings are all there is. */
    double tolerance = slack(w, rounding, 1e-3);
    bounds most = {.tolerance = tolerance, .floor = fmax(1e-4, 1e-2 * largest_gradient(w, want)), .nmse = rounding ? 1e-3 : tolerance * tolerance};
    judge(r, &r->gradient, what, &a, &b, NULL, array_count(&a), &most);
    array_free(&a), array_free(&b);
}

static void compare_answers(const network *w, const answer *got, const answer *again, const answer *want,
                            bool rounding, case_result *r) {
    r->value = r->repeat = PASSED;
    if (!(fabs(got->loss - want->loss) <= 0.1 * slack(w, rounding, 1e-4) * fmax(1, fabs(want->loss))))
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

enum { NETWORKS = 24, SEQUENCES = 1000, SEQUENCE_NETWORKS = 12 }; /* numbers of cases: those of sequences from SEQUENCES on */

static void run_case(const test_case *c, bench *b, case_result *r) {
    network w;
    answer got = {0}, again = {0}, want = {0};
    clt_status status = c->number < SEQUENCES ? draw_network(&w, c->number) : draw_sequence_network(&w, c->number - SEQUENCES);
    w.low = c->dtype;
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

static void add_cases(case_list *list, const char *kind, clt_dtype low, int first, int n, int quick) {
    for (int i = 0; i < n; i++) {
        char variant[32];
        snprintf(variant, sizeof variant, "%s%d", kind, i);
        test_case *c = case_add_run(list, "network", variant, run_case);
        c->number = first + i;
        c->dtype = low;
        c->full = i >= quick;
        c->classes = true;
    }
}

void cases_network(case_list *list) {
    add_cases(list, "", CLT_F32, 0, NETWORKS, 4);
    add_cases(list, "sequences-", CLT_F32, SEQUENCES, SEQUENCE_NETWORKS, 2);
    add_cases(list, "bf16-", CLT_BF16, 100, NETWORKS, 1);
    add_cases(list, "f16-", CLT_F16, 200, NETWORKS, 1);
    add_cases(list, "bf16-sequences-", CLT_BF16, SEQUENCES + 100, SEQUENCE_NETWORKS, 1);
    add_cases(list, "f16-sequences-", CLT_F16, SEQUENCES + 200, SEQUENCE_NETWORKS, 1);
}
