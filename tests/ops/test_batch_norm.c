/* Batch normalization in training (statistics of the batch, running ones moved) and in evaluation. */
#include "tests/ops/harness.h"

#include <math.h>

/* ---- definitions ---- */

static int64_t channel_of(const clt_shape *shape, int64_t i) {
    for (int d = shape->rank - 1; d > 1; d--) i /= shape->dims[d];
    return i % shape->dims[1];
}

/* Mean and biased variance of a channel; its number of elements is returned. */
static int64_t moments(const array *x, int64_t channel, double *mean, double *variance) {
    long double sum = 0, squares = 0;
    int64_t n = 0;
    for (int64_t i = 0; i < array_count(x); i++)
        if (channel_of(&x->shape, i) == channel) sum += x->values[i], n++;
    *mean = (double)(sum / n);
    for (int64_t i = 0; i < array_count(x); i++)
        if (channel_of(&x->shape, i) == channel)
            squares += ((long double)x->values[i] - *mean) * ((long double)x->values[i] - *mean);
    *variance = (double)(squares / n);
    return n;
}

/* Operands: x, weight, bias. */
static void reference_training(const array *inputs, array *y, const void *context) {
    const clt_norm_options *options = context;
    double eps = options->eps > 0 ? options->eps : 1e-5f;
    const array *x = &inputs[0];
    array_resize(y, x->shape);
    for (int64_t c = 0; c < x->shape.dims[1]; c++) {
        double mean, variance;
        moments(x, c, &mean, &variance);
        for (int64_t i = 0; i < array_count(x); i++)
            if (channel_of(&x->shape, i) == c)
                y->values[i] = (x->values[i] - mean) / sqrt(variance + eps) * inputs[1].values[c] +
                               inputs[2].values[c];
    }
}

/* Operands: x, weight, bias, running mean, running variance. */
static void reference_evaluation(const array *inputs, array *y, const void *context) {
    const clt_norm_options *options = context;
    double eps = options->eps > 0 ? options->eps : 1e-5f;
    array_resize(y, inputs[0].shape);
    for (int64_t i = 0; i < array_count(y); i++) {
        int64_t c = channel_of(&y->shape, i);
        y->values[i] = (inputs[0].values[i] - inputs[3].values[c]) / sqrt(inputs[4].values[c] + eps) *
                           inputs[1].values[c] +
                       inputs[2].values[c];
    }
}

static clt_tensor *build(clt_graph *graph, clt_tensor *const *inputs, const void *context) {
    (void)graph;
    return clt_batch_norm_with(inputs[0], "bn", *(const clt_norm_options *)context);
}

static clt_tensor *build_plain(clt_graph *graph, clt_tensor *const *inputs, const void *context) {
    (void)graph, (void)context;
    return clt_batch_norm(inputs[0], "bn");
}

/* ---- cases ---- */

static const clt_norm_options defaults = {0}, wide = {.eps = 0.5f, .momentum = 0.25f};

#define WEIGHT(channels) {.variable = "bn.weight", .shape = OP_SHAPE(channels)}
#define BIAS(channels) {.variable = "bn.bias", .shape = OP_SHAPE(channels)}
#define TRAINING(label, channels, size, options, ...)                                                 \
    {.name = label, .n_inputs = 3, .build = build, .reference = reference_training, .context = &(options), \
     .inputs = {{.shape = size, __VA_ARGS__}, WEIGHT(channels), BIAS(channels)}, .samples = 100}
#define EVALUATION(label, channels, size, builder, options)                                           \
    {.name = label, .n_inputs = 5, .build = builder, .reference = reference_evaluation,               \
     .context = &(options), .evaluation = true,                                                       \
     .inputs = {{.shape = size}, WEIGHT(channels), BIAS(channels),                                    \
                {.variable = "bn.running_mean", .shape = OP_SHAPE(channels), .constant = true},       \
                {.variable = "bn.running_var", .shape = OP_SHAPE(channels), .low = 0.25, .high = 3,   \
                 .constant = true}}}

/* A mean far from 0 leaves few digits of the values; sums of squares would leave none. */
#define OFFSET .low = 1000, .high = 1002
static op_case cases[] = {
    TRAINING("rank 2", 3, OP_SHAPE(7, 3), defaults),
    TRAINING("rank 3", 4, OP_SHAPE(3, 4, 5), defaults),
    TRAINING("images", 3, OP_SHAPE(4, 3, 5, 7), defaults),
    TRAINING("rank 5", 2, OP_SHAPE(2, 2, 3, 1, 4), defaults),
    TRAINING("one channel", 1, OP_SHAPE(3, 1, 4, 4), defaults),
    TRAINING("one image", 5, OP_SHAPE(1, 5, 3, 3), defaults),
    TRAINING("two elements a channel", 3, OP_SHAPE(2, 3), wide),
    TRAINING("eps and momentum given", 3, OP_SHAPE(4, 3, 3, 3), wide),
    TRAINING("many channels", 131, OP_SHAPE(2, 131, 2, 2), defaults),
    TRAINING("many elements", 2, OP_SHAPE(9, 2, 29, 31), defaults),
    TRAINING("many rows", 3, OP_SHAPE(1100, 3), defaults),
    TRAINING("mean far from 0", 2, OP_SHAPE(8, 2, 5, 5), defaults, OFFSET),
    EVALUATION("evaluation", 3, OP_SHAPE(4, 3, 5, 7), build, wide),
    EVALUATION("evaluation, defaults", 4, OP_SHAPE(2, 4), build_plain, defaults),
    EVALUATION("evaluation of one element", 1, OP_SHAPE(1, 1, 1, 1), build, defaults),
};

/* ---- running statistics ---- */

typedef struct running {
    double mean[3], var[3];
} running;

/* One step by the definition: toward the batch's mean and unbiased variance. */
static void move(running *r, const array *x, double momentum) {
    for (int64_t c = 0; c < 3; c++) {
        double mean, variance;
        int64_t n = moments(x, c, &mean, &variance);
        r->mean[c] += momentum * (mean - r->mean[c]);
        r->var[c] += momentum * (variance * (double)n / (double)(n - 1) - r->var[c]);
    }
}

static void assert_running(op_run *run, const running *want) {
    float mean[3], var[3];
    op_variable_read(run->store, run->inputs[3], mean);
    op_variable_read(run->store, run->inputs[4], var);
    for (int c = 0; c < 3; c++) {
        assert_true(fabs(mean[c] - want->mean[c]) < 1e-5);
        assert_true(fabs(var[c] - want->var[c]) < 1e-5);
    }
}

static void running_statistics_move(const clt_norm_options *options, double momentum, bool training) {
    static const float mean[] = {0, 0.5f, -1}, var[] = {1, 2, 0.25f};
    op_case spec = {.name = "running statistics",
                    .n_inputs = 5,
                    .inputs = {{.shape = OP_SHAPE(4, 3, 2, 3)},
                               WEIGHT(3),
                               BIAS(3),
                               {.variable = "bn.running_mean", .shape = OP_SHAPE(3), .values = mean},
                               {.variable = "bn.running_var", .shape = OP_SHAPE(3), .values = var}},
                    .build = build,
                    .context = options,
                    .no_gradient = true,
                    .evaluation = !training};
    op_run run;
    running want = {{0, 0.5, -1}, {1, 2, 0.25}};
    op_open(&run, &spec);
    for (int step = 0; step < 3; step++) {
        op_step(&run);
        if (training) move(&want, &run.values[0], momentum);
        assert_running(&run, &want);
    }
    op_close(&run);
}

static void training_moves_running_statistics(void **state) {
    (void)state;
    running_statistics_move(&defaults, 0.1, true);
    running_statistics_move(&wide, 0.25, true);
}

static void evaluation_leaves_them(void **state) {
    (void)state;
    running_statistics_move(&wide, 0.25, false);
}

/* All values of a channel equal: xhat is 0, and dx is weight / sqrt(eps) times what dy has beyond its mean. */
static void no_variance(void **state) {
    (void)state;
    static const float x[] = {2, -7, 2, -7, 2, -7}, weight[] = {3, 5}, bias[] = {0.5f, -1};
    const double istd = 1 / sqrt(1e-5f);
    op_expect(&(op_case){.name = "no variance",
                         .n_inputs = 3,
                         .inputs = {{.shape = OP_SHAPE(3, 2), .values = x},
                                    {.variable = "bn.weight", .shape = OP_SHAPE(2), .values = weight},
                                    {.variable = "bn.bias", .shape = OP_SHAPE(2), .values = bias}},
                         .build = build,
                         .context = &defaults,
                         .seed = (const float[]){1, 2, 3, 4, 5, 6}},
              (double[]){0.5, -1, 0.5, -1, 0.5, -1},
              (const double *[]){(double[]){-6 * istd, -10 * istd, 0, 0, 6 * istd, 10 * istd}, (double[]){0, 0},
                                 (double[]){9, 12}});
}

/* One element has no variance: training would divide 0 by 0, and spoil the running variance for good. */
static void one_element_a_channel_is_refused(void **state) {
    (void)state;
    clt_graph *graph;
    clt_store *store;
    assert_ok(clt_graph_create(&graph));
    clt_tensor *y = clt_batch_norm(clt_input(graph, "x", CLT_F32, CLT_SHAPE(1, 2)), "bn");
    assert_ok(clt_store_create(op_device(), &store));
    clt_plan_options options = {.device = op_device(), .store = store, .graph = graph, .targets = &y, .n_targets = 1};
    clt_plan *plan = NULL;
    options.training = true;
    assert_status(clt_plan_compile(&plan, &options), CLT_E_SHAPE);
    assert_detail("batch_norm");
    assert_detail("[1, 2]");
    options.training = false;
    assert_ok(clt_plan_compile(&plan, &options));
    clt_plan_destroy(plan);
    clt_store_destroy(store);
    clt_graph_destroy(graph);
}

/* A new model normalizes: weight 1, bias 0. */
static void initial_values(void **state) {
    (void)state;
    clt_graph *graph;
    assert_ok(clt_graph_create(&graph));
    clt_batch_norm(clt_input(graph, "x", CLT_F32, CLT_SHAPE(2, 3)), "bn");
    assert_ok(clt_graph_status(graph));
    const struct {
        const char *name;
        bool trained;
        float value;
    } wanted[] = {
        {"bn.weight", true, 1},
        {"bn.bias", true, 0},
        {"bn.running_mean", false, 0},
        {"bn.running_var", false, 1},
    };
    for (int i = 0; i < 4; i++) {
        const clt_variable *v = clt_graph_find_variable(graph, wanted[i].name);
        assert_non_null(v);
        assert_int_equal(v->trained, wanted[i].trained);
        assert_true((v->init.kind == CLT_INIT_ZEROS ? 0 : v->init.value) == wanted[i].value);
    }
    assert_int_equal(clt_graph_parameter_count(graph), 6);
    clt_graph_destroy(graph);
}

int main(void) {
    for (size_t i = 0; i < CLT_COUNT_OF(cases); i++)
        if (cases[i].inputs[0].low == 1000) cases[i].tolerance = 2e-3;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_moves_running_statistics),
        cmocka_unit_test(evaluation_leaves_them),
        cmocka_unit_test(no_variance),
        cmocka_unit_test(one_element_a_channel_is_refused),
        cmocka_unit_test(initial_values),
    };
    return op_main("batch_norm", cases, CLT_COUNT_OF(cases), tests, CLT_COUNT_OF(tests));
}
