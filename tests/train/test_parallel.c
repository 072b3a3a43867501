/* Data parallelism: ranks that are threads with a device each, against one process on all their samples together. */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cltrain/cltrain.h>

#include "runtime/base/random.h"
#include "runtime/base/thread.h"
#include "runtime/train/trainer.h"
#include "comm/local/local.h"

enum { MOST_RANKS = 4, SAMPLES = 203, D = 7, HIDDEN = 20, CLASSES = 4, BATCH = 24, STEPS = 10, MOST_VALUES = 4096 };

static float features[SAMPLES][D];
static int32_t labels[SAMPLES];
static clt_device *device; /* of the process that is alone */
static clt_device *devices[MOST_RANKS]; /* of the ranks, one after the other: what is compiled for one case is there for the next */
static clt_dataset *data;

static int open_all(void **state) {
    (void)state;
    clt_random random;
    clt_random_init(&random, 11, 0);
    for (int i = 0; i < SAMPLES; i++) {
        for (int k = 0; k < D; k++) features[i][k] = (float)clt_random_normal(&random);
        labels[i] = (int32_t)clt_random_below(&random, CLASSES);
    }
    clt_array fields[] = {{CLT_F32, CLT_SHAPE(SAMPLES, D), features}, {CLT_I32, CLT_SHAPE(SAMPLES), labels}};
    assert_ok(clt_dataset_from_arrays(&data, fields, 2));
    assert_ok(clt_device_open(&device, NULL));
    for (int i = 0; i < MOST_RANKS; i++) assert_ok(clt_device_open(&devices[i], NULL));
    return 0;
}

static int close_all(void **state) {
    (void)state;
    clt_dataset_destroy(data);
    for (int i = 0; i < MOST_RANKS; i++) clt_device_close(devices[i]);
    clt_device_close(device);
    return 0;
}

/* ---- a rank, or a process that is alone ---- */

typedef struct rank rank;
struct rank {
    clt_comm *comm; /* NULL: alone */
    int index, size;
    clt_status (*run)(rank *rank);
    const void *argument;
    bool normalized; /* options of the model */
    float dropout, eps, scale; /* 0: no such layer */
    bool of_two; /* a term that needs two samples */
    float constant; /* a constant's value; 0: there is none */
    int rows;       /* that a term is expanded to; 0: there is none */
    int sample;     /* 1 or 2: a term is the first one, or the second; 0: there is none */
    int version;    /* of the source of an op of the caller's with many scalars; 0: there is none */
    int kernel;     /* of a convolution; 0: there is none */
    int sequence;   /* 1: there is an input more, 2: a sequence */
    int term;       /* what is added of all samples: see along_samples; 0: nothing */
    bool turned;    /* a layer norm has the batch elsewhere than in dimension 0 */
    int hidden;
    const char *first_layer;

    clt_device *device;
    clt_graph *graph;
    clt_tensor *output;
    clt_trainer *trainer;
    clt_loader *loader;

    clt_status status;
    char detail[512];
    float values[MOST_VALUES]; /* of all parameters and buffers */
    int n_values;
    clt_metrics metrics;
    clt_loader_position position; /* of the loader at the end */
};

/* What makes buckets hard: two biases whose gradients are one tensor; a product whose factors' gradients are made in another
 * order than the factors; and a parameter whose gradient backward goes on with. */
static clt_tensor *add_biases(rank *r, clt_tensor *y) {
    clt_init half = {CLT_INIT_CONSTANT, 0.5f, 0};
    clt_tensor *scale = clt_parameter(r->graph, "scale2", CLT_SHAPE(CLASSES), half);
    clt_tensor *shift = clt_parameter(r->graph, "shift2", CLT_SHAPE(1), half);
    clt_tensor *u = clt_parameter(r->graph, "u", CLT_SHAPE(1, 3), half), *v = clt_parameter(r->graph, "v", CLT_SHAPE(3, CLASSES), half);
    y = clt_add(y, clt_parameter(r->graph, "bias2", CLT_SHAPE(CLASSES), (clt_init){0}));
    y = clt_add(y, clt_mul(shift, scale));
    clt_tensor *product = clt_matmul(u, v);
    return clt_add(y, clt_add(clt_parameter(r->graph, "bias3", CLT_SHAPE(1, CLASSES), half), product));
}

/* scale x, by an op of the caller's. */
static clt_tensor *scaled(clt_tensor *x, float scale) {
    clt_user_op op = {.name = "scaled", .n_inputs = 1, .forward = "forward", .backward = {"backward"}};
    op.source = "kernel void forward(global const float *x, global float *y, int count, float s) {\n"
                "    int i = get_global_id(0); if (i < count) y[i] = s * x[i]; }\n"
                "kernel void backward(global const float *x, global const float *y, global const float *dy, global float *dx, int count,\n"
                "                     float s) { int i = get_global_id(0); if (i < count) dx[i] = s * dy[i]; }\n";
    return clt_apply(&op, &x, &scale, 1);
}

/* The mean of as many rows. */
static clt_tensor *expanded(rank *r) {
    clt_tensor *row = clt_parameter(r->graph, "row", CLT_SHAPE(1, HIDDEN), (clt_init){0});
    return clt_mean(clt_expand(row, CLT_SHAPE(r->rows, HIDDEN)), CLT_AXES(0));
}

/* x, by an op whose scalars have long texts. */
static clt_tensor *copied(clt_tensor *x, int version) {
    static const float scalars[CLT_USER_OP_MAX_SCALARS] = {0.123456789f, 1.23456789f, 12.3456789f, 123.456789f,
                                                           1234.56789f,  12345.6789f, 123456.789f, 1234567.89f};
    static const char *const sources[] = {
        "kernel void a_forward_kernel(global const float *x, global float *y, int count, float a, float b, float c, float d, float e, float f,\n"
        "                             float g, float h) { int i = get_global_id(0); if (i < count) y[i] = x[i]; }\n"
        "kernel void a_backward_kernel(global const float *x, global const float *y, global const float *dy, global float *dx, int count,\n"
        "                              float a, float b, float c, float d, float e, float f, float g, float h) {\n"
        "    int i = get_global_id(0); if (i < count) dx[i] = dy[i]; }\n",
        "kernel void a_forward_kernel(global const float *x, global float *y, int count, float a, float b, float c, float d, float e, float f,\n"
        "                             float g, float h) { int i = get_global_id(0); if (i < count) y[i] = 1 * x[i]; }\n"
        "kernel void a_backward_kernel(global const float *x, global const float *y, global const float *dy, global float *dx, int count,\n"
        "                              float a, float b, float c, float d, float e, float f, float g, float h) {\n"
        "    int i = get_global_id(0); if (i < count) dx[i] = dy[i]; }\n"};
    clt_user_op op = {.name = "copied", .n_inputs = 1, .forward = "a_forward_kernel", .backward = {"a_backward_kernel"}, .source = sources[version - 1]};
    return clt_apply(&op, &x, scalars, CLT_USER_OP_MAX_SCALARS);
}

/* The mean of products of samples, whose number follows the batch in another way each. */
static clt_tensor *along_samples(clt_tensor *h, int term) {
    clt_tensor *x = NULL, *parts = term > 4 ? clt_reshape(h, CLT_SHAPE(0, 4, HIDDEN / 4)) : NULL;
    const int order[] = {1, 0, 2};
    switch (term) {
    case 1: x = clt_mul(clt_slice(h, 0, 0, -1, 1), clt_slice(h, 0, 1, INT64_MAX, 1)); break;                /* neighbours */
    case 2: x = clt_mul(clt_slice(h, 0, 0, INT64_MAX, 2), clt_slice(h, 0, 1, INT64_MAX, 2)); break;         /* pairs */
    case 3: x = clt_slice(h, 0, -2, INT64_MAX, 1); break;                                                   /* the last two */
    case 5: x = clt_flatten(clt_linear(parts, "q", HIDDEN / 4)); break;                                     /* a layer of rows of samples */
    case 6: parts = clt_concat((clt_tensor *[]){parts, clt_tanh(parts)}, 2, 0);                             /* twice as many, in the middle */
        x = clt_reshape(clt_permute(clt_linear(clt_permute(parts, order), "q", HIDDEN / 4), order), CLT_SHAPE(-1, HIDDEN));
        break;
    case 7: parts = clt_slice(parts, 0, 1, INT64_MAX, 1);                                                   /* one less */
        x = clt_flatten(clt_permute(clt_linear(clt_permute(parts, order), "q", HIDDEN / 4), order));
        break;
    default: x = clt_reshape(clt_matmul(h, clt_permute(h, (int[]){1, 0})), CLT_SHAPE(-1, 1)); /* of each with each */
    }
    return clt_mean(x, CLT_AXES(0));
}

/* Two layers. */
static clt_status build(rank *r, int batch, clt_train_options options) {
    CLT_TRY(clt_graph_create(&r->graph));
    clt_tensor *x = clt_input(r->graph, "x", CLT_F32, CLT_SHAPE(batch, D));
    clt_tensor *y = clt_input(r->graph, "y", CLT_I32, CLT_SHAPE(batch));
    clt_tensor *h = clt_linear(x, r->first_layer ? r->first_layer : "fc1", r->hidden ? r->hidden : HIDDEN);
    if (r->normalized) h = clt_batch_norm(h, "bn");
    if (r->dropout > 0) h = clt_dropout(h, r->dropout);
    if (r->scale > 0) h = scaled(h, r->scale);
    if (r->constant > 0) h = clt_mul(h, clt_constant(r->graph, "gain", &(clt_array){CLT_F32, CLT_SHAPE(1), &r->constant}));
    if (r->of_two) h = clt_add(h, clt_slice(h, 0, 1, 2, 1));
    if (r->sample > 0) h = clt_add(h, clt_slice(h, 0, r->sample - 1, r->sample, 1));
    if (r->rows > 0) h = clt_add(h, expanded(r));
    if (r->version > 0) h = copied(h, r->version);
    if (r->kernel > 0) {
        h = clt_reshape(h, CLT_SHAPE(CLT_BATCH, 1, 4, HIDDEN / 4));
        h = clt_flatten(clt_conv2d(h, "conv", 1, .kernel = r->kernel, .padding = r->kernel / 2));
    }
    if (r->sequence == 1) clt_input(r->graph, "z", CLT_F32, CLT_SHAPE(batch, 5));
    if (r->sequence == 3) clt_input(r->graph, "z", CLT_F32, CLT_SHAPE(batch, 6));
    if (r->sequence == 2) clt_sequence_input(r->graph, "z", CLT_F32, CLT_SHAPE(batch, 5), 1);
    if (r->term) h = clt_add(h, along_samples(h, r->term));
    if (r->turned) h = clt_permute(clt_tanh(clt_permute(h, (int[]){1, 0})), (int[]){1, 0});
    if (r->eps > 0) h = clt_layer_norm_with(h, "ln", 1, (clt_norm_options){.eps = r->eps});
    r->output = clt_linear(clt_tanh(h), "fc2", CLASSES);
    r->output = add_biases(r, r->output);
    options.comm = r->comm;
    options.output = r->output;
    return clt_trainer_create(&r->trainer, r->device, clt_cross_entropy(r->output, y), &options);
}

static clt_batch batch_of(int from, int count) {
    return (clt_batch){.samples = count,
                       .n_fields = 2,
                       .fields = {{CLT_F32, CLT_SHAPE(count, D), features[from]}, {CLT_I32, CLT_SHAPE(count), &labels[from]}}};
}

static clt_status keep_values(rank *r) {
    r->n_values = 0;
    for (size_t i = 0; i < r->graph->n_variables; i++) {
        const clt_variable *v = r->graph->variables[i];
        size_t n = (size_t)clt_shape_elements(&v->shape);
        if ((size_t)r->n_values + n > MOST_VALUES) return clt_fail(CLT_E_INVALID, "too many values");
        CLT_TRY(clt_trainer_get(r->trainer, v->name, r->values + r->n_values, n));
        r->n_values += (int)n;
    }
    return CLT_OK;
}

/* Behind the values. */
static clt_status keep_gradients(rank *r) {
    for (size_t i = 0; i < r->graph->n_variables; i++) {
        const clt_variable *v = r->graph->variables[i];
        size_t n = (size_t)clt_shape_elements(&v->shape);
        if (!v->trained) continue;
        if ((size_t)r->n_values + n > MOST_VALUES) return clt_fail(CLT_E_INVALID, "too many values");
        CLT_TRY(clt_trainer_get_gradient(r->trainer, v->name, r->values + r->n_values, n));
        r->n_values += (int)n;
    }
    return CLT_OK;
}

static void tear_down(rank *r) {
    clt_trainer_destroy(r->trainer);
    clt_loader_destroy(r->loader);
    clt_graph_destroy(r->graph);
    r->trainer = NULL;
    r->loader = NULL;
    r->graph = NULL;
}

static void *run_rank(void *argument) {
    rank *r = argument;
    r->device = devices[r->index];
    r->status = r->run(r);
    snprintf(r->detail, sizeof r->detail, "%s", clt_error_detail());
    tear_down(r);
    /* As a process that ends: others do not wait for what it never does. */
    clt_comm_destroy(r->comm);
    return NULL;
}

static void run_group(rank *ranks, int n, clt_status (*run)(rank *), const void *argument) {
    clt_comm *comms[MOST_RANKS];
    clt_thread threads[MOST_RANKS];
    assert_ok(clt_comm_create_local(comms, n, 60));
    for (int i = 0; i < n; i++) {
        ranks[i].comm = comms[i];
        ranks[i].index = i;
        ranks[i].size = n;
        ranks[i].run = run;
        ranks[i].argument = argument;
        assert_ok(clt_thread_start(&threads[i], run_rank, &ranks[i]));
    }
    for (int i = 0; i < n; i++) clt_thread_join(threads[i]);
}

static void assert_all_ok(const rank *ranks, int n, const char *what) {
    for (int i = 0; i < n; i++)
        if (ranks[i].status < 0) print_error("%s, rank %d of %d: %s\n", what, i, n, ranks[i].detail);
    for (int i = 0; i < n; i++) assert_int_equal(ranks[i].status, CLT_OK);
}

static void run_alone(rank *r, clt_status (*run)(rank *), const void *argument) {
    *r = (rank){.device = device, .size = 1, .argument = argument, .normalized = r->normalized};
    assert_ok(run(r));
    tear_down(r);
}

/* All ranks the same bits, and within 1e-5 of the largest value from what is wanted. */
static void assert_values(const rank *ranks, int n, const rank *wanted, const char *what) {
    float largest = 0;
    for (int i = 0; i < wanted->n_values; i++) largest = fmaxf(largest, fabsf(wanted->values[i]));
    for (int r = 0; r < n; r++) {
        assert_int_equal(ranks[r].n_values, wanted->n_values);
        if (memcmp(ranks[r].values, ranks[0].values, (size_t)wanted->n_values * sizeof(float)))
            fail_msg("%s: rank %d of %d has other bits than rank 0", what, r, n);
        for (int i = 0; i < wanted->n_values; i++)
            if (!(fabsf(ranks[r].values[i] - wanted->values[i]) <= 1e-5f * largest))
                fail_msg("%s, rank %d of %d: value %d is %.8g, not %.8g", what, r, n, i, (double)ranks[r].values[i],
                         (double)wanted->values[i]);
    }
}

/* ---- steps are those of one process ---- */

typedef struct steps_case {
    const char *name;
    clt_train_options options;
    int ranks; /* 0: one of 1 to 4, with equal shares */
    int shares[MOST_RANKS];
    bool normalized;
    float eps; /* of a layer norm; 0: there is none */
} steps_case;

/* This rank's part of a batch. */
static clt_batch piece_of(const rank *r, const steps_case *c, int from) {
    int begin = 0, count = BATCH;
    if (r->comm) {
        count = c->ranks ? c->shares[r->index] : BATCH / r->size;
        for (int i = 0; i < r->index; i++) begin += c->ranks ? c->shares[i] : BATCH / r->size;
    }
    return batch_of(from + begin, count);
}

static clt_status take_steps(rank *r) {
    const steps_case *c = r->argument;
    clt_batch first = piece_of(r, c, 0);
    r->normalized = c->normalized;
    r->eps = c->eps;
    int micro = c->options.accumulate ? c->options.accumulate : 1;
    CLT_TRY(build(r, first.samples ? (int)first.samples : 3, c->options));
    for (int step = 0; step < STEPS * micro; step++) {
        clt_batch batch = piece_of(r, c, step % 7 * BATCH);
        CLT_TRY(clt_trainer_step(r->trainer, &batch));
    }
    if (clt_trainer_steps(r->trainer) != STEPS) return clt_fail(CLT_E_INVALID, "%d steps", (int)clt_trainer_steps(r->trainer));
    CLT_TRY(clt_trainer_train_metrics(r->trainer, &r->metrics, true));
    CLT_TRY(keep_values(r));
    return c->options.shard ? CLT_OK : keep_gradients(r);
}

static void assert_case(const steps_case *c) {
    static rank alone, ranks[MOST_RANKS];
    static int turn; /* each number of ranks in some cases */
    int n = c->ranks ? c->ranks : 1 + turn++ % MOST_RANKS;
    run_alone(&alone, take_steps, c);
    memset(ranks, 0, sizeof ranks);
    run_group(ranks, n, take_steps, c);
    assert_all_ok(ranks, n, c->name);
    assert_values(ranks, n, &alone, c->name);
    for (int r = 0; r < n; r++) {
        assert_int_equal(ranks[r].metrics.samples, alone.metrics.samples);
        assert_float_equal(ranks[r].metrics.loss, alone.metrics.loss, 1e-5 * alone.metrics.loss);
        assert_float_equal(ranks[r].metrics.accuracy, alone.metrics.accuracy, 1e-12);
        assert_true(isnan(ranks[r].metrics.mse));
    }
}

static const clt_parameter_rule no_decay[] = {{"*bias*", 0, -1}, {"fc2.*", 0.5f, 0.1f}};

static void steps_are_those_of_one_process(void **state) {
    (void)state;
    static const steps_case cases[] = {
        {"sgd", {.optimizer = CLT_SGD, .lr = 0.1f}},
        {"nesterov", {.optimizer = CLT_SGD, .lr = 0.05f, .momentum = 0.9f, .nesterov = true, .weight_decay = 0.01f}},
        {"adam", {.optimizer = CLT_ADAM, .lr = 0.01f, .eps = 1e-4f}},
        {"adamw, clip_norm", {.optimizer = CLT_ADAMW, .lr = 0.01f, .eps = 1e-4f, .clip_norm = 0.2f}},
        {"clip_value", {.optimizer = CLT_SGD, .lr = 0.1f, .clip_value = 0.01f}},
        {"accumulate", {.optimizer = CLT_SGD, .lr = 0.1f, .momentum = 0.5f, .accumulate = 3}},
        {"rules", {.optimizer = CLT_ADAMW, .lr = 0.01f, .eps = 1e-4f, .bucket_bytes = 1024, .rules = no_decay, .n_rules = 2}},
        {"many buckets", {.optimizer = CLT_SGD, .lr = 0.1f, .momentum = 0.9f, .bucket_bytes = 1024}},
        {"buckets, clip_norm", {.optimizer = CLT_ADAM, .lr = 0.01f, .eps = 1e-4f, .clip_norm = 0.2f, .bucket_bytes = 1024}},
        {"buckets, accumulate", {.optimizer = CLT_SGD, .lr = 0.1f, .accumulate = 2, .clip_norm = 0.3f, .bucket_bytes = 1024}},
        {"recoverable", {.optimizer = CLT_SGD, .lr = 0.1f, .momentum = 0.9f, .bucket_bytes = 1024, .recoverable = true}},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) assert_case(&cases[c]);
}

static void unequal_batches_weigh_by_samples(void **state) {
    (void)state;
    static const steps_case cases[] = {
        {"4 8 12", {.optimizer = CLT_SGD, .lr = 0.1f, .clip_norm = 0.3f}, 3, {4, 8, 12}},
        {"1 23", {.optimizer = CLT_ADAM, .lr = 0.01f, .eps = 1e-4f, .bucket_bytes = 1024}, 2, {1, 23}},
        {"3 9 6 6, accumulate", {.optimizer = CLT_SGD, .lr = 0.1f, .accumulate = 2}, 4, {3, 9, 6, 6}},
        {"none on the first", {.optimizer = CLT_SGD, .lr = 0.1f, .momentum = 0.9f, .bucket_bytes = 1024}, 3, {0, 10, 14}},
        {"none on two", {.optimizer = CLT_ADAM, .lr = 0.01f, .eps = 1e-4f, .clip_norm = 0.2f}, 4, {12, 0, 12, 0}},
        {"none, accumulate", {.optimizer = CLT_SGD, .lr = 0.1f, .accumulate = 3, .bucket_bytes = 1024}, 2, {24, 0}},
        {"none, recoverable", {.optimizer = CLT_SGD, .lr = 0.1f, .bucket_bytes = 1024, .recoverable = true}, 2, {24, 0}},
        /* Its statistics have the batch in another place than the first. */
        {"2 3 19, layer norm", {.optimizer = CLT_SGD, .lr = 0.1f}, 3, {2, 3, 19}, .eps = 1e-5f},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) assert_case(&cases[c]);
}

static void batch_norm_over_all_ranks(void **state) {
    (void)state;
    static const steps_case cases[] = {
        {"sgd", {.optimizer = CLT_SGD, .lr = 0.05f, .sync_batch_norm = true}, .normalized = true},
        {"2 16 6", {.optimizer = CLT_SGD, .lr = 0.05f, .sync_batch_norm = true}, 3, {2, 16, 6}, true},
        {"1 23", {.optimizer = CLT_SGD, .lr = 0.05f, .bucket_bytes = 1024, .sync_batch_norm = true}, 2, {1, 23}, true},
        {"0 14 10", {.optimizer = CLT_SGD, .lr = 0.05f, .momentum = 0.5f, .sync_batch_norm = true}, 3, {0, 14, 10}, true},
        {"24 0, accumulate", {.optimizer = CLT_SGD, .lr = 0.05f, .accumulate = 2, .sync_batch_norm = true}, 2, {24, 0}, true},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) assert_case(&cases[c]);
}

static void the_optimizer_in_parts(void **state) {
    (void)state;
    static const steps_case cases[] = {
        {"sgd", {.optimizer = CLT_SGD, .lr = 0.1f, .shard = CLT_SHARD_OPTIMIZER}},
        {"nesterov", {.optimizer = CLT_SGD, .lr = 0.05f, .momentum = 0.9f, .nesterov = true, .shard = CLT_SHARD_OPTIMIZER}},
        {"adamw, clip_norm", {.optimizer = CLT_ADAMW, .lr = 0.01f, .eps = 1e-4f, .clip_norm = 0.2f, .shard = CLT_SHARD_OPTIMIZER}},
        {"buckets", {.optimizer = CLT_ADAM, .lr = 0.01f, .eps = 1e-4f, .bucket_bytes = 1024, .shard = CLT_SHARD_OPTIMIZER}},
        {"accumulate", {.optimizer = CLT_ADAM, .lr = 0.01f, .eps = 1e-4f, .accumulate = 3, .shard = CLT_SHARD_OPTIMIZER}},
        {"4 0 20", {.optimizer = CLT_SGD, .lr = 0.1f, .momentum = 0.5f, .shard = CLT_SHARD_OPTIMIZER}, 3, {4, 0, 20}},
        {"0 14 10, buckets, accumulate", {.optimizer = CLT_SGD, .lr = 0.1f, .accumulate = 2, .clip_norm = 0.3f, .bucket_bytes = 1024, .shard = CLT_SHARD_OPTIMIZER}, 3, {0, 14, 10}},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (clt_shard shard = CLT_SHARD_OPTIMIZER; shard <= CLT_SHARD_PARAMETERS; shard++) {
            steps_case one = cases[c];
            one.options.shard = shard;
            assert_case(&one);
        }
}

/* Two steps of a network of many buckets; of its parameters some, and the most memory that it took. */
typedef struct deep_case {
    clt_shard shard;
    uint64_t peak;
    float values[256];
} deep_case;

static clt_status train_deep(rank *r, deep_case *c, clt_device *own) {
    enum { WIDTH = 128, LAYERS = 24, BUCKET = WIDTH * WIDTH * 5 };
    CLT_TRY(clt_graph_create(&r->graph));
    clt_tensor *h = clt_input(r->graph, "x", CLT_F32, CLT_SHAPE(BATCH / 2, D)), *y = clt_input(r->graph, "y", CLT_I32, CLT_SHAPE(BATCH / 2));
    for (int i = 0; i < LAYERS; i++) {
        const char name[] = {'l', (char)('a' + i), 0};
        h = clt_relu(clt_linear(h, name, WIDTH));
    }
    clt_train_options options = {.lr = 0.1f, .momentum = 0.9f, .comm = r->comm, .shard = c->shard, .bucket_bytes = BUCKET, .clip_norm = 1};
    CLT_TRY(clt_trainer_create(&r->trainer, own, clt_cross_entropy(clt_linear(h, "fc", CLASSES), y), &options));
    for (int i = 0; i < 2; i++) {
        clt_batch batch = batch_of(i * BATCH + r->index * BATCH / 2, BATCH / 2);
        CLT_TRY(clt_trainer_step(r->trainer, &batch));
    }
    c->peak = clt_device_peak_bytes(own);
    return clt_trainer_get(r->trainer, "lx.bias", c->values, 128);
}

static clt_status deep(rank *r) {
    clt_device *own;
    CLT_TRY(clt_device_open(&own, NULL));
    clt_status status = train_deep(r, (deep_case *)(uintptr_t)r->argument + r->index, own);
    tear_down(r);
    clt_device_close(own);
    return status;
}

/* 24 layers of 64 KiB: 1.5 MiB of parameters, of gradients, and of state. */
static void parts_take_less_memory(void **state) {
    static deep_case cases[4][2];
    static rank ranks[MOST_RANKS];
    const double whole = 24.0 * 65536;
    (void)state;
    for (int s = 0; s < 4; s++) {
        memset(ranks, 0, sizeof ranks);
        for (int i = 0; i < 2; i++) cases[s][i].shard = (clt_shard)s;
        run_group(ranks, 2, deep, cases[s]);
        assert_all_ok(ranks, 2, "many layers");
        for (int i = 0; i < 2; i++) assert_memory_equal(cases[s][i].values, cases[0][0].values, sizeof cases[0][0].values);
    }
    for (int i = 0; i < 2; i++) {
        assert_true((double)cases[1][i].peak < (double)cases[0][i].peak - 0.45 * whole);
        assert_true((double)cases[2][i].peak < (double)cases[1][i].peak - 0.3 * whole); /* half, but for what is under way */
        assert_true((double)cases[3][i].peak < (double)cases[2][i].peak - 0.5 * whole); /* all, but for those in use */
    }
}

/* 203 samples in batches of 50 leave 3, which two of four ranks share; evaluation goes the same way. */
static clt_status two_epochs(rank *r) {
    const int64_t *shares = r->argument;
    clt_batch batch;
    clt_status status;
    clt_loader_options options = {.batch = 50, .shuffle = true, .seed = 5, .rank = r->index, .ranks = r->size,
                                  .shares = r->comm ? shares : NULL};
    CLT_TRY(clt_loader_create(&r->loader, data, &options));
    CLT_TRY(build(r, 12, (clt_train_options){.optimizer = CLT_SGD, .lr = 0.1f, .momentum = 0.9f}));
    for (int epoch = 0; epoch < 2; epoch++)
        while ((status = clt_loader_next(r->loader, &batch)) != CLT_END) {
            CLT_TRY(status);
            CLT_TRY(clt_trainer_step(r->trainer, &batch));
        }
    while ((status = clt_loader_next(r->loader, &batch)) != CLT_END) {
        CLT_TRY(status);
        CLT_TRY(clt_trainer_evaluate(r->trainer, &batch));
    }
    CLT_TRY(clt_trainer_eval_metrics(r->trainer, &r->metrics, true));
    return keep_values(r);
}

static void uneven_last_batches(void **state) {
    (void)state;
    static const int64_t shares[] = {10, 20, 8, 12};
    static rank alone, ranks[MOST_RANKS];
    run_alone(&alone, two_epochs, NULL);
    for (int given = 0; given < 2; given++) {
        memset(ranks, 0, sizeof ranks);
        run_group(ranks, MOST_RANKS, two_epochs, given ? shares : NULL);
        assert_all_ok(ranks, MOST_RANKS, "uneven");
        assert_values(ranks, MOST_RANKS, &alone, "uneven");
        for (int r = 0; r < MOST_RANKS; r++) {
            assert_int_equal(ranks[r].metrics.samples, SAMPLES);
            assert_float_equal(ranks[r].metrics.loss, alone.metrics.loss, 1e-5 * alone.metrics.loss);
            assert_float_equal(ranks[r].metrics.accuracy, alone.metrics.accuracy, 1e-12);
        }
    }
}

/* ---- what is exchanged, and when ---- */

static clt_status count_operations(rank *r) {
    clt_batch batch = batch_of(0, 4);
    CLT_TRY(build(r, 4, (clt_train_options){.accumulate = 3, .bucket_bytes = 1024}));
    if (r->trainer->n_buckets != 10) return clt_fail(CLT_E_INVALID, "%d buckets", r->trainer->n_buckets);
    for (int step = 0; step < 9; step++) {
        uint64_t before = clt_comm_get_stats(r->comm).operations;
        CLT_TRY(clt_trainer_step(r->trainer, &batch));
        uint64_t done = clt_comm_get_stats(r->comm).operations - before;
        if (done != (step % 3 == 2 ? 11 : 0)) return clt_fail(CLT_E_INVALID, "%d operations in step %d", (int)done, step);
    }
    return CLT_OK;
}

static void nothing_is_exchanged_between_updates(void **state) {
    (void)state;
    static rank ranks[2];
    memset(ranks, 0, sizeof ranks);
    run_group(ranks, 2, count_operations, NULL);
    assert_all_ok(ranks, 2, "operations");
}

/* In reverse order of use: "fc2" and what is added to it before "fc1". */
static void buckets_are_in_reverse_order_of_use(void **state) {
    (void)state;
    static const char *const wanted[] = {"bias3", "u", "v", "scale2", "shift2", "bias2", "fc2.bias", "fc2.weight", "fc1.bias", "fc1.weight"};
    rank r = {.device = device};
    assert_ok(clt_comm_create_self(&r.comm));
    assert_ok(build(&r, 4, (clt_train_options){.bucket_bytes = 1024}));
    int at = 0;
    for (int g = 0; g < r.trainer->n_buckets; g++)
        for (int i = 0; i < r.trainer->buckets[g].n; i++, at++) assert_string_equal(r.trainer->buckets[g].variables[i]->name, wanted[at]);
    assert_int_equal(at, 10);
    assert_int_equal(r.trainer->n_buckets, 10);
    tear_down(&r);
    assert_ok(build(&r, 4, (clt_train_options){0}));
    assert_int_equal(r.trainer->n_buckets, 1);
    tear_down(&r);
    clt_comm_destroy(r.comm);
}

/* Of the mean of two ranks' masks about half the elements are kept in one of them alone. */
static clt_status drop(rank *r) {
    enum { N = 2, WIDTH = 300 };
    float x[N * WIDTH];
    for (int i = 0; i < N * WIDTH; i++) x[i] = 1;
    CLT_TRY(clt_graph_create(&r->graph));
    clt_tensor *weights = clt_parameter(r->graph, "w", CLT_SHAPE(1, WIDTH), (clt_init){0});
    clt_tensor *rows = clt_mean(clt_input(r->graph, "x", CLT_F32, CLT_SHAPE(N, WIDTH)), CLT_AXES(0));
    clt_tensor *loss = clt_sum(clt_mul(clt_dropout(rows, 0.5f), weights), CLT_ALL_AXES);
    CLT_TRY(clt_trainer_create(&r->trainer, r->device, loss, &(clt_train_options){.lr = 1, .seed = 3, .comm = r->comm}));
    CLT_TRY(clt_trainer_step(r->trainer, &(clt_batch){N, 1, {{CLT_F32, CLT_SHAPE(N, WIDTH), x}}}));
    return keep_values(r);
}

static void ranks_have_masks_of_their_own(void **state) {
    (void)state;
    static rank ranks[2];
    int once = 0;
    memset(ranks, 0, sizeof ranks);
    run_group(ranks, 2, drop, NULL);
    assert_all_ok(ranks, 2, "dropout");
    for (int i = 0; i < ranks[0].n_values; i++) once += ranks[0].values[i] == -1;
    assert_in_range(once, 100, 200);
}

/* ---- ranks that do not train the same ---- */

typedef struct odd_one {
    clt_train_options options;
    int hidden;
    const char *first_layer;
    bool normalized;
    float dropout, eps, scale; /* the others have 0.5, 1e-5 and 2 */
    bool of_two; /* all have it */
    float constant; /* the others have 2 */
    int rows, version; /* the others have 3 and 1 */
    int sample;        /* the others have sample 0 in the place of it, which there is in any batch */
    int kernel, sequence; /* the others have 3 and 1 */
    const char *words;
} odd_one;

/* The second rank is another one. */
static clt_status disagree(rank *r) {
    const odd_one *odd = r->argument;
    r->dropout = odd->dropout > 0 ? 0.5f : 0;
    r->eps = odd->eps > 0 ? 1e-5f : 0;
    r->scale = odd->scale > 0 ? 2 : 0;
    r->of_two = odd->of_two;
    r->constant = odd->constant > 0 ? 2 : 0;
    r->rows = odd->rows > 0 ? 3 : 0;
    r->version = odd->version > 0;
    r->sample = odd->sample > 0 ? 1 : 0;
    r->kernel = odd->kernel > 0 ? 3 : 0;
    r->sequence = odd->sequence > 0;
    if (r->index != 1) return build(r, 6, (clt_train_options){.optimizer = CLT_SGD});
    r->hidden = odd->hidden;
    r->first_layer = odd->first_layer;
    r->normalized = odd->normalized;
    r->dropout = odd->dropout;
    r->eps = odd->eps;
    r->scale = odd->scale;
    r->constant = odd->constant;
    r->rows = odd->rows;
    r->version = odd->version;
    r->sample = odd->sample > 0 ? 2 : 0;
    r->kernel = odd->kernel;
    r->sequence = odd->sequence;
    return build(r, 7, odd->options);
}

static void other_graphs_and_options_are_refused(void **state) {
    (void)state;
    static const odd_one odd[] = {
        {.options = {.lr = 0.5f}, .words = "rank 1 and rank 0 differ in option lr: 0.5 and 0.01"},
        {.options = {.seed = 1}, .words = "option seed: 1 and 0"},
        {.options = {.accumulate = 2}, .words = "option accumulate: 2 and 1"},
        {.options = {.recoverable = true}, .words = "recoverable"},
        {.options = {.rules = no_decay, .n_rules = 2}, .words = "option rules (a hash)"},
        {.options = {.bucket_bytes = 512}, .words = "number of buckets"},
        {.hidden = HIDDEN + 1, .words = "different graphs; the first tensor that differs, \"fc1.weight\", is \"parameter"},
        {.first_layer = "fc0", .words = "the first tensor"},
        {.normalized = true, .words = "number of tensors"},
        {.dropout = 0.25f, .words = "p=0.25"},
        {.eps = 1e-6f, .words = "eps=1e-06"},
        {.scale = 3, .words = "is \"user_op f32 [1, 20] scalars=3 "},
        {.constant = 3, .words = "is \"constant \"gain\" f32 [1] values "},
        {.eps = 1e-6f, .of_two = true, .words = "layer_norm f32 [*, *] eps=1e-06"},
        {.rows = 4, .words = "expand f32 [4, 20] shape=[4, -1]"},
        {.rows = 4, .of_two = true, .words = "expand f32 [4, 20] shape=[4, -1]"},
        {.sample = 1, .words = "slice f32 [*, *] axis=0 start=1 stop=2"},
        {.version = 2, .words = " ... definition=copied "},
        {.kernel = 1, .words = "the first tensor that differs, conv2d"}, /* and not its weight */
        {.sequence = 2, .words = "input \"z\" f32 [1, 5] length_axis=1\" and \"input \"z\" f32 [1, 5]\""},
        {.sequence = 2, .of_two = true, .words = "input \"z\" f32 [*, *] length_axis=1\""},
        {.sequence = 3, .of_two = true, .words = "input \"z\" f32 [*, 6]"},
    };
    static rank ranks[3];
    for (size_t c = 0; c < sizeof odd / sizeof *odd; c++) {
        memset(ranks, 0, sizeof ranks);
        run_group(ranks, 3, disagree, &odd[c]);
        for (int r = 0; r < 3; r++) {
            assert_int_equal(ranks[r].status, CLT_E_MISMATCH);
            if (!strstr(ranks[r].detail, odd[c].words)) fail_msg("\"%s\" has no \"%s\"", ranks[r].detail, odd[c].words);
        }
    }
}

typedef struct uneven {
    int term, batches[2];
    bool of_two;
} uneven;

static clt_status share_unequally(rank *r) {
    const uneven *u = r->argument;
    clt_batch samples = batch_of(8 * r->index, u->batches[r->index]);
    r->of_two = u->of_two;
    r->term = u->term;
    r->turned = true;
    r->eps = 1e-5f;
    CLT_TRY(build(r, u->batches[r->index], (clt_train_options){.optimizer = CLT_SGD}));
    CLT_TRY(clt_trainer_step(r->trainer, &samples));
    return keep_values(r);
}

/* Where a graph for one sample cannot be made, ranks have all but the batch in common, wherever that lies, and however sizes follow it. */
static void unequal_batches_agree_without_a_graph_for_one(void **state) {
    (void)state;
    static const uneven cases[] = {{0, {4, 7}, true}, {1, {2, 3}}, {1, {7, 2}}, {2, {2, 8}}, {2, {4, 6}}, {3, {2, 3}}, {4, {4, 6}, true}, {4, {1, 3}},
                                  {5, {1, 5}}, {5, {5, 1}}, {6, {2, 3}}, {6, {4, 2}}, {6, {1, 5}}, {7, {2, 3}}, {7, {4, 6}}};
    static rank ranks[2];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memset(ranks, 0, sizeof ranks);
        run_group(ranks, 2, share_unequally, &cases[i]);
        assert_all_ok(ranks, 2, "unequal batches");
        assert_memory_equal(ranks[0].values, ranks[1].values, (size_t)ranks[0].n_values * sizeof(float));
    }
}

/* ---- checkpoints ---- */

typedef struct part {
    const char *load, *save; /* NULL: not */
    int steps;
    bool shard;
} part;

/* Batch norm has buffers; only rank 0 can read the file. */
static clt_status take_part(rank *r) {
    const part *p = r->argument;
    clt_batch batch;
    clt_loader_options options = {.batch = BATCH, .shuffle = true, .drop_last = true, .seed = 5, .rank = r->index,
                                  .ranks = r->size};
    CLT_TRY(clt_loader_create(&r->loader, data, &options));
    CLT_TRY(build(r, 6, (clt_train_options){.optimizer = CLT_ADAM, .eps = 1e-4f, .lr = 0.01f, .bucket_bytes = 1024,
                                            .shard = p->shard ? CLT_SHARD_OPTIMIZER : CLT_SHARD_NONE}));
    if (p->load) CLT_TRY(clt_checkpoint_load(r->trainer, r->loader, r->index == 0 ? p->load : "/nowhere"));
    for (int done = 0; done < p->steps;) {
        clt_status status = clt_loader_next(r->loader, &batch);
        CLT_TRY(status);
        if (status == CLT_END) continue;
        CLT_TRY(clt_trainer_step(r->trainer, &batch));
        done++;
    }
    if (p->save && (p->shard || r->index == 0))
        CLT_TRY(clt_checkpoint_save(r->trainer, r->loader, r->index == 0 ? p->save : NULL));
    return keep_values(r);
}

/* 1 rank saves, 4 go on, then 3, then 1: the run of one that was never stopped. */
/* `shard`: the optimizer's state is in parts whose number changes. */
static void resume_as(bool shard) {
    static rank whole, alone, ranks[MOST_RANKS];
    const char *a = support_path("a"), *b = support_path("b"), *c = support_path("c");
    run_alone(&whole, take_part, &(part){NULL, NULL, 24});
    run_alone(&alone, take_part, &(part){NULL, a, 5});
    memset(ranks, 0, sizeof ranks);
    run_group(ranks, 4, take_part, &(part){a, b, 6, shard});
    assert_all_ok(ranks, 4, "4 ranks");
    memset(ranks, 0, sizeof ranks);
    run_group(ranks, 3, take_part, &(part){b, c, 9, shard});
    assert_all_ok(ranks, 3, "3 ranks");
    run_alone(&alone, take_part, &(part){c, NULL, 4});
    assert_values(&alone, 1, &whole, "resumed");
}

static void any_number_of_ranks_goes_on_from_a_checkpoint(void **state) {
    (void)state;
    static rank ranks[MOST_RANKS];
    resume_as(false);
    resume_as(true);
    memset(ranks, 0, sizeof ranks);
    run_group(ranks, 2, take_part, &(part){support_path("missing"), NULL, 1});
    assert_int_equal(ranks[0].status, CLT_E_IO);
    assert_int_equal(ranks[1].status, CLT_E_PEER);
    assert_non_null(strstr(ranks[1].detail, "rank 0"));
    assert_non_null(strstr(ranks[1].detail, "missing"));
}

static clt_status take_over(rank *r) {
    r->normalized = true;
    CLT_TRY(build(r, 6, (clt_train_options){.optimizer = CLT_ADAM}));
    CLT_TRY(clt_checkpoint_load(r->trainer, NULL, r->argument));
    return keep_values(r);
}

static clt_status train_normalized(rank *r) {
    clt_batch batch = batch_of(0, 6);
    r->normalized = true;
    CLT_TRY(build(r, 6, (clt_train_options){.optimizer = CLT_ADAM}));
    for (int i = 0; i < 3; i++) CLT_TRY(clt_trainer_step(r->trainer, &batch));
    CLT_TRY(clt_checkpoint_save(r->trainer, NULL, r->argument));
    return keep_values(r);
}

static void loading_reaches_buffers_of_all_ranks(void **state) {
    (void)state;
    static rank alone, ranks[2];
    const char *path = support_path("normalized");
    run_alone(&alone, train_normalized, path);
    memset(ranks, 0, sizeof ranks);
    run_group(ranks, 2, take_over, path);
    assert_all_ok(ranks, 2, "buffers");
    for (int r = 0; r < 2; r++) assert_memory_equal(ranks[r].values, alone.values, (size_t)alone.n_values * sizeof(float));
}

/* Each on samples of its own: the running mean before, after the exchange, and after another one. */
static clt_status train_apart(rank *r) {
    clt_batch batch = batch_of(20 * r->index, 6);
    r->normalized = true;
    CLT_TRY(build(r, 6, (clt_train_options){.optimizer = CLT_ADAM}));
    for (int i = 0; i < 3; i++) CLT_TRY(clt_trainer_step(r->trainer, &batch));
    for (int i = 0; i < 3; i++) {
        CLT_TRY(clt_trainer_get(r->trainer, "bn.running_mean", r->values + i * HIDDEN, HIDDEN));
        CLT_TRY(clt_trainer_sync_buffers(r->trainer));
    }
    return CLT_OK;
}

static void buffers_become_their_mean(void **state) {
    (void)state;
    static rank alone, ranks[3];
    memset(ranks, 0, sizeof ranks);
    run_group(ranks, 3, train_apart, NULL);
    assert_all_ok(ranks, 3, "buffers");
    for (int i = 0; i < HIDDEN; i++) {
        float mean = (ranks[0].values[i] + ranks[1].values[i] + ranks[2].values[i]) / 3;
        assert_true(ranks[0].values[i] != ranks[1].values[i] && fabsf(ranks[0].values[HIDDEN + i] - mean) < 1e-6f);
    }
    for (int r = 0; r < 3; r++)
        for (int i = 1; i < 3; i++) assert_memory_equal(ranks[r].values + i * HIDDEN, ranks[0].values + HIDDEN, HIDDEN * sizeof(float));
    run_alone(&alone, train_apart, NULL);
    assert_memory_equal(alone.values, alone.values + HIDDEN, HIDDEN * sizeof(float));
    assert_status(clt_trainer_sync_buffers(NULL), CLT_E_INVALID);
}

/* ---- unlike devices ---- */

enum { LONG = 60 };

/* Gradients are sums over the ranks and have the same bits everywhere: updates must keep them. A step whose gradients overflow is left out. */
static clt_status train_long(rank *r) {
    CLT_TRY(build(r, BATCH, *(const clt_train_options *)r->argument));
    for (int i = 0; i < LONG; i++) {
        float broken[BATCH][D];
        clt_batch batch = batch_of((37 * i + 53 * r->index) % (SAMPLES - BATCH), BATCH);
        if (i == LONG / 2 && r->index == 0) {
            memcpy(broken, batch.fields[0].data, sizeof broken);
            broken[3][2] = INFINITY;
            batch.fields[0].data = broken;
        }
        CLT_TRY(clt_trainer_step(r->trainer, &batch));
        if (i == LONG / 2) CLT_TRY(clt_trainer_wait(r->trainer));
    }
    return keep_values(r);
}

static void unlike_devices_keep_the_same_bits(void **state) {
    (void)state;
    const clt_train_options all[] = {
        {.optimizer = CLT_SGD, .lr = 0.05f, .weight_decay = 1e-3f, .on_nonfinite = CLT_NONFINITE_SKIP},
        {.optimizer = CLT_SGD, .lr = 0.05f, .momentum = 0.9f, .nesterov = true, .on_nonfinite = CLT_NONFINITE_SKIP, .average = 0.99f},
        {.optimizer = CLT_ADAMW, .lr = 3e-3f, .weight_decay = 1e-2f, .on_nonfinite = CLT_NONFINITE_SKIP},
        {.optimizer = CLT_ADAM, .lr = 3e-3f, .clip_norm = 0.05f, .accumulate = 2, .on_nonfinite = CLT_NONFINITE_SKIP},
    };
    static rank ranks[2];
    clt_device *own = devices[1], *other;
    if (clt_device_open(&other, "llvmpipe") < 0) skip();
    devices[1] = other;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        memset(ranks, 0, sizeof ranks);
        run_group(ranks, 2, train_long, &all[i]);
        assert_all_ok(ranks, 2, "unlike devices");
        for (int k = 0; k < ranks[0].n_values; k++) assert_true(isfinite(ranks[0].values[k]));
        assert_memory_equal(ranks[0].values, ranks[1].values, (size_t)ranks[0].n_values * sizeof(float));
    }
    devices[1] = own;
    clt_device_close(other);
}

/* ---- what makes replicas differ yet ---- */

enum { DRIFT_STEPS = 4, FLIPPED_AFTER = 5 };

typedef struct drifting {
    clt_train_options options;
    int victim; /* whose memory flips a bit; -1: nobody's */
} drifting;

/* The last bit of the first parameter's first value. */
static clt_status flip_a_bit(rank *r) {
    const clt_variable *v = r->graph->variables[0];
    size_t n = (size_t)clt_shape_elements(&v->shape);
    float values[MOST_VALUES];
    uint32_t bits;
    CLT_TRY(clt_trainer_get(r->trainer, v->name, values, n));
    memcpy(&bits, values, sizeof bits);
    bits ^= 1;
    memcpy(values, &bits, sizeof bits);
    return clt_trainer_set(r->trainer, v->name, values, n);
}

static clt_status train_drifting(rank *r) {
    const drifting *d = r->argument;
    CLT_TRY(build(r, BATCH, d->options));
    for (int i = 0; i < 3 * DRIFT_STEPS; i++) {
        clt_batch batch = batch_of((37 * i + 53 * r->index) % (SAMPLES - BATCH), BATCH);
        if (i == FLIPPED_AFTER && r->index == d->victim) CLT_TRY(flip_a_bit(r));
        int64_t found = clt_trainer_drifts(r->trainer);
        CLT_TRY(clt_trainer_step(r->trainer, &batch));
        if (found != clt_trainer_drifts(r->trainer) && clt_trainer_steps(r->trainer) != 2 * DRIFT_STEPS) return clt_fail(CLT_E_STATE, "found after %d steps", i + 1);
    }
    r->metrics.samples = clt_trainer_drifts(r->trainer);
    return keep_values(r);
}

static void drift_is_found_and_mended(void **state) {
    (void)state;
    const drifting cases[] = {
        {{.optimizer = CLT_ADAM, .lr = 3e-3f, .drift_steps = DRIFT_STEPS, .average = 0.9f}, .victim = 1},
        {{.optimizer = CLT_SGD, .lr = 0.05f, .momentum = 0.9f, .drift_steps = DRIFT_STEPS, .recoverable = true}, .victim = 0},
        {{.optimizer = CLT_SGD, .lr = 0.05f, .drift_steps = -1}, .victim = 1},
        {{.optimizer = CLT_ADAMW, .lr = 3e-3f, .drift_steps = DRIFT_STEPS}, .victim = -1},
        {{.optimizer = CLT_ADAMW, .lr = 3e-3f, .drift_steps = DRIFT_STEPS, .shard = CLT_SHARD_OPTIMIZER, .bucket_bytes = 512}, .victim = -1},
    };
    static rank ranks[3];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const drifting *d = &cases[i];
        bool mended = d->victim >= 0 && d->options.drift_steps > 0;
        memset(ranks, 0, sizeof ranks);
        run_group(ranks, 3, train_drifting, d);
        assert_all_ok(ranks, 3, "drift");
        bool same = true;
        for (int r = 0; r < 3; r++) {
            assert_int_equal(ranks[r].metrics.samples, mended);
            same &= !memcmp(ranks[r].values, ranks[0].values, (size_t)ranks[0].n_values * sizeof(float));
        }
        assert_true(same == (mended || d->victim < 0));
    }
    assert_int_equal(clt_trainer_drifts(NULL), 0);
}

/* ---- faults ---- */

typedef struct fault {
    int victim, at; /* it dies before step `at` */
    int accumulate;
    bool normalized; /* batch norm over all ranks, whose running statistics are buffers */
    int second, collectives; /* if above 0: this rank dies after so many collectives of the recovery */
    clt_train_options options;
} fault;

static clt_train_options fault_options(const fault *f) {
    clt_train_options options = {.optimizer = CLT_SGD, .lr = 0.1f, .momentum = 0.9f, .bucket_bytes = 1024,
                                 .accumulate = f->accumulate, .recoverable = true,
                                 .sync_batch_norm = f->normalized};
    return options;
}

static clt_status train_through(rank *r);

static clt_status go_on_once(rank *r, const fault *f) {
    clt_comm *survivors;
    CLT_TRY(clt_comm_shrink(r->comm, &survivors));
    if (f && f->second > 0 && f->second == r->index) clt_local_lose_after(survivors, f->collectives);
    clt_status status = clt_trainer_recover(r->trainer, r->loader, survivors);
    clt_comm_destroy(r->comm);
    r->comm = survivors;
    return status;
}

/* CLT_E_PEER: it was this rank that was lost meanwhile. */
static clt_status go_on(rank *r) {
    const fault *f = r->run == train_through ? r->argument : NULL;
    clt_status status = go_on_once(r, f);
    if (status == CLT_E_PEER && f && f->second > 0 && f->second != r->index) status = go_on_once(r, NULL);
    return status;
}

static clt_status train_through(rank *r) {
    const fault *f = r->argument;
    clt_batch batch;
    clt_loader_options options = {.batch = BATCH, .shuffle = true, .drop_last = true, .seed = 5, .rank = r->index,
                                  .ranks = r->size};
    CLT_TRY(clt_loader_create(&r->loader, data, &options));
    r->normalized = f->normalized;
    CLT_TRY(build(r, 6, fault_options(f)));
    for (int calls = 0; clt_trainer_steps(r->trainer) < 20; calls++) {
        clt_status status = clt_loader_next(r->loader, &batch);
        CLT_TRY(status);
        if (status == CLT_END) continue;
        if (r->comm && r->index == f->victim && calls == f->at) {
            clt_local_lose(r->comm);
            return CLT_OK;
        }
        status = clt_trainer_step(r->trainer, &batch);
        if (status == CLT_E_PEER) {
            char name[16];
            snprintf(name, sizeof name, "rank %d", f->victim);
            if (!strstr(clt_error_detail(), name)) return clt_fail(CLT_E_INVALID, "who died? %s", clt_error_detail());
            if (clt_trainer_step(r->trainer, &batch) != CLT_E_STATE) return clt_fail(CLT_E_INVALID, "a step after the failed one");
            status = go_on(r);
            if (status == CLT_E_PEER && r->index == f->second) return CLT_OK;
            CLT_TRY(status);
            if (clt_comm_size(r->comm) != r->size - 1 - (f->second > 0)) return clt_fail(CLT_E_INVALID, "%d survivors", clt_comm_size(r->comm));
            continue;
        }
        CLT_TRY(status);
    }
    r->position = clt_loader_get_position(r->loader);
    return keep_values(r);
}

/* The survivors end with the parameters and buffers of one process that saw all batches. */
static void survivors_go_on(void **state) {
    (void)state;
    static const fault faults[] = {{.victim = 1, .at = 4}, {.victim = 0, .at = 10}, {.victim = 2, .at = 0},
                                   {.victim = 2, .at = 13, .accumulate = 3},
                                   {.victim = 1, .at = 6, .normalized = true},
                                   {.victim = 0, .at = 56, .accumulate = 3, .normalized = true}};
    static rank alone, ranks[3];
    for (size_t c = 0; c < sizeof faults / sizeof *faults; c++) {
        rank left[2];
        run_alone(&alone, train_through, &faults[c]);
        memset(ranks, 0, sizeof ranks);
        run_group(ranks, 3, train_through, &faults[c]);
        assert_all_ok(ranks, 3, "faults");
        for (int r = 0, k = 0; r < 3; r++)
            if (r != faults[c].victim) left[k++] = ranks[r];
        assert_values(left, 2, &alone, "survivors");
    }
}

/* A second one dies in the recovery from the first's death: before each tells where it stands, or before all agree at the end. What
 * was taken back from the loader then is not taken back again. */
static void survivors_go_on_after_a_death_in_the_recovery(void **state) {
    (void)state;
    static rank alone, ranks[4];
    for (int c = 0; c < 4; c++) {
        fault f = {.victim = 1, .at = c < 2 ? 10 : 11, .accumulate = c < 2 ? 0 : 3, .second = 3, .collectives = c % 2};
        rank left[2];
        run_alone(&alone, train_through, &f);
        memset(ranks, 0, sizeof ranks);
        run_group(ranks, 4, train_through, &f);
        assert_all_ok(ranks, 4, "second death");
        left[0] = ranks[0];
        left[1] = ranks[2];
        assert_values(left, 2, &alone, "survivors of two deaths");
        for (int r = 0; r < 2; r++) {
            assert_int_equal(left[r].position.epoch, alone.position.epoch);
            assert_int_equal(left[r].position.batch, alone.position.batch);
        }
    }
}

/* After the eighth update rank 2 dies in the comparison of parameters: the update is done, and its batch is in no other. */
static clt_status lose_one_in_the_comparison(rank *r) {
    CLT_TRY(build(r, BATCH, (clt_train_options){.optimizer = CLT_SGD, .lr = 0.05f, .momentum = 0.9f, .recoverable = true, .drift_steps = DRIFT_STEPS}));
    for (int i = 0; i < 3 * DRIFT_STEPS; i++) {
        clt_batch batch = batch_of((37 * i + 53 * r->index) % (SAMPLES - BATCH), BATCH);
        bool dies = i == 2 * DRIFT_STEPS - 1;
        if (dies && r->index == 2) clt_local_lose_after(r->comm, 1 + r->trainer->n_buckets);
        clt_status status = clt_trainer_step(r->trainer, &batch);
        if (status == CLT_E_PEER && dies && r->index == 2) return CLT_OK;
        if (status == CLT_E_PEER && dies) status = go_on_once(r, NULL);
        else if (dies) return clt_fail(CLT_E_STATE, "nobody died");
        CLT_TRY(status);
        if (clt_trainer_steps(r->trainer) != i + 1) return clt_fail(CLT_E_STATE, "%lld updates after step %d", (long long)clt_trainer_steps(r->trainer), i + 1);
    }
    return keep_values(r);
}

static void survivors_of_a_comparison_go_on(void **state) {
    (void)state;
    static rank ranks[3];
    memset(ranks, 0, sizeof ranks);
    run_group(ranks, 3, lose_one_in_the_comparison, NULL);
    assert_all_ok(ranks, 3, "a death in the comparison");
    assert_memory_equal(ranks[0].values, ranks[1].values, (size_t)ranks[0].n_values * sizeof(float));
}

/* The last rank has done a step more than the first, and the second is lost. */
static clt_status recover_from_the_newest(rank *r) {
    clt_batch batch = batch_of(6 * r->index, 6);
    float bias[CLASSES] = {1, 2, 3, 4};
    CLT_TRY(build(r, 6, (clt_train_options){.optimizer = CLT_SGD, .momentum = 0.5f, .recoverable = true}));
    CLT_TRY(clt_trainer_step(r->trainer, &batch));
    if (r->index == 2) {
        CLT_TRY(clt_trainer_set(r->trainer, "bias2", bias, CLASSES));
        r->trainer->steps++;
    }
    CLT_TRY(clt_comm_barrier(r->comm, NULL));
    if (r->index == 1) {
        clt_local_lose(r->comm);
        return CLT_OK;
    }
    if (clt_trainer_step(r->trainer, &batch) != CLT_E_PEER) return clt_fail(CLT_E_INVALID, "no error");
    CLT_TRY(go_on(r));
    if (clt_trainer_steps(r->trainer) != 2) return clt_fail(CLT_E_INVALID, "%d steps", (int)clt_trainer_steps(r->trainer));
    CLT_TRY(clt_trainer_get(r->trainer, "bias2", bias, CLASSES));
    for (int i = 0; i < CLASSES; i++)
        if (bias[i] != (float)(i + 1)) return clt_fail(CLT_E_INVALID, "bias %d is %g", i, (double)bias[i]);
    CLT_TRY(clt_trainer_step(r->trainer, &batch));
    return keep_values(r);
}

static void survivors_take_the_newest_state(void **state) {
    (void)state;
    static rank ranks[3];
    memset(ranks, 0, sizeof ranks);
    run_group(ranks, 3, recover_from_the_newest, NULL);
    assert_all_ok(ranks, 3, "newest");
    assert_memory_equal(ranks[0].values, ranks[2].values, (size_t)ranks[0].n_values * sizeof(float));
}

/* The second rank dies when the samples and the first of the buckets are exchanged, and there was time to use that one. */
static clt_status fail_between_buckets(rank *r) {
    const struct timespec while_others_go_on = {.tv_nsec = 200000000};
    clt_batch batch = batch_of(6 * r->index, 6);
    CLT_TRY(build(r, 6, (clt_train_options){.lr = 0.5f, .bucket_bytes = 1024, .recoverable = true}));
    CLT_TRY(clt_trainer_step(r->trainer, &batch));
    CLT_TRY(keep_values(r));
    if (r->index == 1) {
        float sent[1024] = {0};
        CLT_TRY(clt_comm_all_reduce(r->comm, sent, 1, CLT_F32, CLT_REDUCE_SUM, NULL));
        CLT_TRY(clt_comm_all_reduce(r->comm, sent, (size_t)r->trainer->buckets[0].elements, CLT_F32, CLT_REDUCE_SUM, NULL));
        nanosleep(&while_others_go_on, NULL);
        clt_local_lose(r->comm);
        return CLT_OK;
    }
    if (clt_trainer_step(r->trainer, &batch) != CLT_E_PEER) return clt_fail(CLT_E_INVALID, "no error");
    return keep_values(r);
}

static void a_recoverable_step_that_fails_changes_nothing(void **state) {
    (void)state;
    static rank ranks[2];
    memset(ranks, 0, sizeof ranks);
    run_group(ranks, 2, fail_between_buckets, NULL);
    assert_all_ok(ranks, 2, "between buckets");
    assert_memory_equal(ranks[0].values, ranks[1].values, (size_t)ranks[1].n_values * sizeof(float));
}

/* ---- a rank that fails before it has anything to exchange ---- */

typedef struct bad_batch {
    clt_status status;
    const char *words;
    int accumulate, at; /* step `at` has it */
    bool recoverable;
} bad_batch;

static clt_status spoil(const bad_batch *bad, clt_batch *batch, int32_t *spoilt) {
    memcpy(spoilt, batch->fields[1].data, (size_t)batch->samples * sizeof *spoilt);
    spoilt[2] = CLASSES;
    if (bad->status == CLT_E_RANGE) batch->fields[1].data = spoilt;
    if (bad->status == CLT_E_SHAPE) batch->fields[0].shape.dims[1]--;
    if (bad->status == CLT_E_INVALID) batch->fields[0].data = NULL;
    return bad->status;
}

/* The second rank's batch is no good, once. All go on, also that one. */
static clt_status train_past(rank *r) {
    const bad_batch *bad = r->argument;
    int32_t spoilt[BATCH];
    bool seen = false;
    clt_loader_options options = {.batch = BATCH, .shuffle = true, .drop_last = true, .seed = 5, .rank = r->index,
                                  .ranks = r->size};
    CLT_TRY(clt_loader_create(&r->loader, data, &options));
    CLT_TRY(build(r, 8, (clt_train_options){.lr = 0.1f, .accumulate = bad->accumulate, .recoverable = bad->recoverable}));
    for (int calls = 0; clt_trainer_steps(r->trainer) < 6; calls++) {
        clt_batch batch;
        clt_status status = clt_loader_next(r->loader, &batch), wanted = CLT_E_PEER;
        CLT_TRY(status);
        if (status == CLT_END) continue;
        if (r->index == 1 && calls == bad->at) wanted = spoil(bad, &batch, spoilt);
        status = clt_trainer_step(r->trainer, &batch);
        if (status == CLT_OK) continue;
        if (seen || !r->comm || status != wanted || !strstr(clt_error_detail(), bad->words))
            return clt_fail(CLT_E_INVALID, "%s: %s", clt_status_name(status), clt_error_detail());
        if (wanted == CLT_E_PEER && !strstr(clt_error_detail(), "rank 1: ")) return clt_fail(CLT_E_INVALID, "who? %s", clt_error_detail());
        seen = true;
        if (!bad->recoverable) return CLT_OK;
        CLT_TRY(go_on(r));
    }
    if (r->comm && !seen) return clt_fail(CLT_E_INVALID, "nobody saw the bad batch");
    return keep_values(r);
}

static void a_rank_that_cannot_begin_a_step_ends_that_of_all(void **state) {
    (void)state;
    static const bad_batch cases[] = {{CLT_E_RANGE, "sample 2 of the batch", 1, 2, true},
                                      {CLT_E_SHAPE, "field 0 of the batch is", 3, 4, true},
                                      {CLT_E_INVALID, "has no data", 2, 0, false}};
    static rank alone, ranks[3];
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        run_alone(&alone, train_past, &cases[c]);
        memset(ranks, 0, sizeof ranks);
        run_group(ranks, 3, train_past, &cases[c]);
        assert_all_ok(ranks, 3, cases[c].words);
        if (cases[c].recoverable) assert_values(ranks, 3, &alone, cases[c].words);
    }
}

/* Not recoverable: nothing half-written is saved. */
static clt_status fail_for_good(rank *r) {
    clt_batch batch = batch_of(0, 6);
    CLT_TRY(build(r, 6, (clt_train_options){.accumulate = 2, .bucket_bytes = 1024}));
    CLT_TRY(clt_trainer_step(r->trainer, &batch));
    if (clt_checkpoint_save(r->trainer, NULL, r->argument) != CLT_E_STATE) return clt_fail(CLT_E_INVALID, "saved between updates");
    if (r->index == 1) {
        clt_local_lose(r->comm);
        return CLT_OK;
    }
    if (clt_trainer_step(r->trainer, &batch) != CLT_E_PEER) return clt_fail(CLT_E_INVALID, "no error");
    if (clt_checkpoint_save(r->trainer, NULL, r->argument) != CLT_E_STATE) return clt_fail(CLT_E_INVALID, "saved");
    if (clt_weights_save(r->trainer, r->argument) != CLT_E_STATE) return clt_fail(CLT_E_INVALID, "weights saved");
    if (clt_trainer_recover(r->trainer, NULL, r->comm) != CLT_E_STATE) return clt_fail(CLT_E_INVALID, "recovered");
    return CLT_OK;
}

static void nothing_half_done_is_saved(void **state) {
    (void)state;
    static rank ranks[3];
    memset(ranks, 0, sizeof ranks);
    run_group(ranks, 3, fail_for_good, support_path("half"));
    assert_all_ok(ranks, 3, "for good");
}

int main(void) {
    setenv("RUSTICL_ENABLE", "llvmpipe", 0); /* else it shows no device */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_those_of_one_process),
        cmocka_unit_test(unequal_batches_weigh_by_samples),
        cmocka_unit_test(batch_norm_over_all_ranks),
        cmocka_unit_test(the_optimizer_in_parts),
        cmocka_unit_test(parts_take_less_memory),
        cmocka_unit_test(uneven_last_batches),
        cmocka_unit_test(nothing_is_exchanged_between_updates),
        cmocka_unit_test(buckets_are_in_reverse_order_of_use),
        cmocka_unit_test(ranks_have_masks_of_their_own),
        cmocka_unit_test(other_graphs_and_options_are_refused),
        cmocka_unit_test(unequal_batches_agree_without_a_graph_for_one),
        cmocka_unit_test(any_number_of_ranks_goes_on_from_a_checkpoint),
        cmocka_unit_test(loading_reaches_buffers_of_all_ranks),
        cmocka_unit_test(buffers_become_their_mean),
        cmocka_unit_test(drift_is_found_and_mended),
        cmocka_unit_test(unlike_devices_keep_the_same_bits),
        cmocka_unit_test(survivors_go_on),
        cmocka_unit_test(survivors_of_a_comparison_go_on),
        cmocka_unit_test(survivors_go_on_after_a_death_in_the_recovery),
        cmocka_unit_test(survivors_take_the_newest_state),
        cmocka_unit_test(a_recoverable_step_that_fails_changes_nothing),
        cmocka_unit_test(a_rank_that_cannot_begin_a_step_ends_that_of_all),
        cmocka_unit_test(nothing_half_done_is_saved),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
