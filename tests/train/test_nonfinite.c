/* Updates whose gradients are NaN or infinite: left out, or the end of training, and what made them. */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cltrain/cltrain.h>

#include "runtime/base/random.h"
#include "runtime/base/thread.h"
#include "runtime/train/trainer.h"
#include "comm/local/local.h"

enum { BATCH = 6, D = 4, WIDTH = 5, STEPS = 5, MOST = 8192 };

SUPPORT_DEVICE

/* ---- a model whose batch norm, optimizer state and buffers could all be spoiled ---- */

typedef struct model {
    clt_device *device;
    clt_graph *graph;
    clt_trainer *trainer;
} model;

static clt_status build(model *m, clt_device *on, clt_train_options options) {
    m->device = on;
    CLT_TRY(clt_graph_create(&m->graph));
    clt_tensor *x = clt_input(m->graph, "x", CLT_F32, CLT_SHAPE(BATCH, D));
    clt_tensor *t = clt_input(m->graph, "t", CLT_F32, CLT_SHAPE(BATCH, 1));
    clt_tensor *y = clt_linear(clt_tanh(clt_batch_norm(clt_linear(x, "fc1", WIDTH, .no_bias = true), "bn")), "fc2", 1);
    options.output = y;
    return clt_trainer_create(&m->trainer, on, clt_mse_loss(y, t), &options);
}

static void destroy(model *m) {
    clt_trainer_destroy(m->trainer);
    clt_graph_destroy(m->graph);
}

/* Batch number `i`, whose values are finite but for `broken`. */
static clt_status step(model *m, int i, float broken) {
    float x[BATCH][D], t[BATCH];
    clt_random random;
    clt_random_init(&random, 5, (uint64_t)i);
    for (int n = 0; n < BATCH; n++) {
        for (int k = 0; k < D; k++) x[n][k] = (float)clt_random_normal(&random);
        t[n] = (float)clt_random_normal(&random);
    }
    if (!isfinite(broken) || broken != 0) t[2] = broken;
    clt_batch batch = {.samples = BATCH,
                       .n_fields = 2,
                       .fields = {{CLT_F32, CLT_SHAPE(BATCH, D), x}, {CLT_F32, CLT_SHAPE(BATCH, 1), t}}};
    return clt_trainer_step(m->trainer, &batch);
}

/* Parameters and buffers, then the optimizer's state. */
static int values_of(model *m, float *values) {
    const char *names[CLT_MAX_OPTIMIZER_STATES];
    int n = 0, states = clt_optimizer_states(&m->trainer->options, names);
    for (size_t i = 0; i < m->graph->n_variables; i++) {
        size_t count = (size_t)clt_shape_elements(&m->graph->variables[i]->shape);
        assert_ok(clt_trainer_get(m->trainer, m->graph->variables[i]->name, values + n, count));
        n += (int)count;
    }
    for (int s = 0; s < states; s++) {
        char name[64];
        size_t bytes;
        clt_memory *memory = clt_state_store_find(m->trainer->store, clt_bucket_name(names[s], 0, name), &bytes);
        assert_non_null(memory);
        assert_true((size_t)n + bytes / sizeof *values <= MOST);
        assert_ok(clt_memory_read(memory, 0, values + n, bytes));
        n += (int)(bytes / sizeof *values);
    }
    return n;
}

static void assert_same(const float *a, const float *b, int n, const char *what) {
    for (int i = 0; i < n; i++)
        if (memcmp(&a[i], &b[i], sizeof a[i])) fail_msg("%s: value %d is %.9g, not %.9g", what, i, (double)a[i], (double)b[i]);
}

typedef struct named_options {
    const char *name;
    clt_train_options options;
} named_options;

static const named_options cases[] = {
    {"sgd", {.optimizer = CLT_SGD, .lr = 0.05f}},
    {"momentum", {.optimizer = CLT_SGD, .lr = 0.05f, .momentum = 0.9f}},
    {"adam", {.optimizer = CLT_ADAM, .lr = 0.01f}},
    {"adamw, clip norm", {.optimizer = CLT_ADAMW, .lr = 0.01f, .clip_norm = 0.5f}},
    {"clip value", {.optimizer = CLT_SGD, .lr = 0.05f, .clip_value = 0.1f}}, /* which would make infinity finite */
    {"clip both", {.optimizer = CLT_SGD, .lr = 0.05f, .clip_value = 0.1f, .clip_norm = 0.2f}},
};

/* ---- skip ---- */

/* A step that is left out changes no bit, and those after it are as if it had not been. */
static void check_skip(const named_options *c, float broken) {
    model with = {0}, without = {0};
    float before[MOST], after[MOST], wanted[MOST];
    clt_train_options options = c->options;
    clt_metrics metrics;
    options.on_nonfinite = CLT_NONFINITE_SKIP;
    assert_ok(build(&with, device, options));
    assert_ok(build(&without, device, options));
    for (int i = 0; i < STEPS; i++) {
        if (i == 2) {
            int n = values_of(&with, before);
            assert_ok(step(&with, 100, broken));
            assert_int_equal(values_of(&with, after), n);
            /* Batch norm has seen finite values: its statistics move, and are a buffer. */
            for (size_t v = 0, at = 0; v < with.graph->n_variables; v++) {
                size_t count = (size_t)clt_shape_elements(&with.graph->variables[v]->shape);
                if (!with.graph->variables[v]->trained) memcpy(after + at, before + at, count * sizeof *after);
                at += count;
            }
            assert_same(after, before, n, c->name);
        }
        assert_ok(step(&with, i, 0));
        assert_ok(step(&without, i, 0));
    }
    int n = values_of(&without, wanted);
    assert_int_equal(values_of(&with, after), n);
    for (int i = 0, at = 0; i < (int)with.graph->n_variables; i++) {
        int count = (int)clt_shape_elements(&with.graph->variables[i]->shape);
        for (int k = at; with.graph->variables[i]->trained && k < at + count; k++)
            if (!(fabsf(after[k] - wanted[k]) <= 1e-6f * fmaxf(1, fabsf(wanted[k]))))
                fail_msg("%s: after the step was left out, value %d is %.9g, not %.9g", c->name, k, (double)after[k],
                         (double)wanted[k]);
        at += count;
    }
    assert_ok(clt_trainer_train_metrics(with.trainer, &metrics, true));
    assert_int_equal(metrics.skipped, 1);
    assert_true(isfinite(metrics.loss) && isfinite(metrics.mse));
    assert_int_equal(metrics.samples, (STEPS + 1) * BATCH);
    assert_ok(clt_trainer_train_metrics(with.trainer, &metrics, false));
    assert_int_equal(metrics.skipped, 0);
    destroy(&with);
    destroy(&without);
}

static void skipped_steps_change_nothing(void **state) {
    (void)state;
    for (size_t i = 0; i < CLT_COUNT_OF(cases); i++) {
        check_skip(&cases[i], NAN);
        check_skip(&cases[i], INFINITY);
    }
}

/* NaN in what batch norm sees. */
static void running_statistics_stay_finite(void **state) {
    (void)state;
    model m = {0};
    float x[BATCH][D] = {{0}}, t[BATCH] = {0}, mean[WIDTH], before[WIDTH];
    assert_ok(build(&m, device, (clt_train_options){.on_nonfinite = CLT_NONFINITE_SKIP}));
    assert_ok(step(&m, 0, 0));
    assert_ok(clt_trainer_get(m.trainer, "bn.running_mean", before, WIDTH));
    x[1][1] = NAN;
    clt_batch batch = {.samples = BATCH, .n_fields = 2,
                       .fields = {{CLT_F32, CLT_SHAPE(BATCH, D), x}, {CLT_F32, CLT_SHAPE(BATCH, 1), t}}};
    assert_ok(clt_trainer_step(m.trainer, &batch));
    assert_ok(clt_trainer_get(m.trainer, "bn.running_mean", mean, WIDTH));
    assert_memory_equal(mean, before, sizeof mean);
    destroy(&m);
}

static void micro_batches_are_skipped_together(void **state) {
    (void)state;
    model m = {0};
    float before[MOST], after[MOST];
    clt_metrics metrics;
    assert_ok(build(&m, device, (clt_train_options){.on_nonfinite = CLT_NONFINITE_SKIP, .accumulate = 2, .momentum = 0.5f}));
    for (int i = 0; i < 2; i++) assert_ok(step(&m, i, 0));
    values_of(&m, before);
    assert_ok(step(&m, 2, INFINITY));
    assert_ok(step(&m, 3, 0));
    values_of(&m, after);
    assert_memory_equal(after, before, WIDTH * D * sizeof *after); /* fc1 comes first */
    for (int i = 4; i < 6; i++) assert_ok(step(&m, i, 0));
    assert_ok(clt_trainer_train_metrics(m.trainer, &metrics, true));
    assert_int_equal(metrics.skipped, 1);
    assert_true(isfinite(metrics.loss));
    values_of(&m, after);
    assert_memory_not_equal(after, before, WIDTH * D * sizeof *after);
    destroy(&m);
}

/* Adam's bias corrections depend on what was left out: a resumed run has to know. */
static void checkpoints_count_what_was_skipped(void **state) {
    (void)state;
    model m = {0}, resumed = {0};
    float wanted[MOST], got[MOST];
    clt_train_options options = {.optimizer = CLT_ADAM, .on_nonfinite = CLT_NONFINITE_SKIP};
    const char *path = support_path("skipped.safetensors");
    assert_ok(build(&m, device, options));
    for (int i = 0; i < 3; i++) assert_ok(step(&m, i, i == 1 ? NAN : 0));
    assert_ok(clt_checkpoint_save(m.trainer, NULL, path));
    for (int i = 3; i < 5; i++) assert_ok(step(&m, i, 0));
    options.seed = 9;
    assert_ok(build(&resumed, device, options));
    assert_ok(clt_checkpoint_load(resumed.trainer, NULL, path));
    for (int i = 3; i < 5; i++) assert_ok(step(&resumed, i, 0));
    int n = values_of(&m, wanted);
    values_of(&resumed, got);
    assert_same(got, wanted, n, "resumed");
    destroy(&resumed);

    /* Where nothing is left out any more, the host counts. */
    options.on_nonfinite = CLT_NONFINITE_IGNORE;
    assert_ok(build(&resumed, device, options));
    assert_ok(clt_checkpoint_load(resumed.trainer, NULL, path));
    for (int i = 3; i < 5; i++) assert_ok(step(&resumed, i, 0));
    values_of(&resumed, got);
    for (int i = 0; i < WIDTH * D; i++) assert_true(fabsf(got[i] - wanted[i]) <= 1e-6f);
    destroy(&resumed);
    destroy(&m);
}

/* ---- stop ---- */

static void training_stops_before_the_update(void **state) {
    (void)state;
    model m = {0};
    float before[MOST], after[MOST];
    clt_metrics metrics;
    const char *path = support_path("stopped.safetensors");
    assert_ok(build(&m, device, (clt_train_options){.optimizer = CLT_ADAM, .on_nonfinite = CLT_NONFINITE_STOP}));
    for (int i = 0; i < 2; i++) assert_ok(step(&m, i, 0));
    assert_ok(clt_checkpoint_save(m.trainer, NULL, path));
    values_of(&m, before);
    assert_ok(step(&m, 2, INFINITY)); /* nobody waits */
    assert_ok(step(&m, 3, 0));
    assert_status(clt_trainer_wait(m.trainer), CLT_E_NONFINITE);
    assert_detail("update 3:");
    assert_status(clt_trainer_train_metrics(m.trainer, &metrics, true), CLT_E_NONFINITE);
    assert_status(step(&m, 4, 0), CLT_E_NONFINITE);
    assert_status(clt_checkpoint_save(m.trainer, NULL, path), CLT_E_NONFINITE);
    values_of(&m, after);
    assert_memory_equal(after, before, WIDTH * D * sizeof *after);
    assert_ok(clt_checkpoint_load(m.trainer, NULL, path));
    assert_ok(step(&m, 4, 0));
    assert_ok(clt_trainer_wait(m.trainer));
    destroy(&m);
}

static void ignored_they_reach_the_parameters(void **state) {
    (void)state;
    model m = {0};
    float values[WIDTH * D];
    clt_metrics metrics;
    assert_ok(build(&m, device, (clt_train_options){0}));
    assert_ok(step(&m, 0, NAN));
    assert_ok(clt_trainer_wait(m.trainer));
    assert_ok(clt_trainer_get(m.trainer, "fc1.weight", values, WIDTH * D));
    assert_true(isnan(values[0]));
    assert_ok(clt_trainer_train_metrics(m.trainer, &metrics, true));
    assert_true(isnan(metrics.loss));
    assert_int_equal(metrics.skipped, 0);
    destroy(&m);
}

/* Large ones are not infinite: their squares are. */
static void large_gradients_are_finite(void **state) {
    (void)state;
    model m = {0};
    clt_metrics metrics;
    assert_ok(build(&m, device, (clt_train_options){.lr = 1e-30f, .on_nonfinite = CLT_NONFINITE_SKIP}));
    assert_ok(step(&m, 0, 1e25f)); /* its loss is infinite */
    assert_ok(clt_trainer_train_metrics(m.trainer, &metrics, true));
    assert_int_equal(metrics.skipped, 0);
    destroy(&m);
}

/* Infinity alone, with no NaN beside it, which clipping would make finite. */
static void infinity_is_found_before_it_is_clipped(void **state) {
    (void)state;
    const clt_train_options clipped[] = {{.clip_value = 0.1f}, {.clip_value = 0.1f, .clip_norm = 0.2f}};
    for (size_t c = 0; c < CLT_COUNT_OF(clipped); c++) {
        clt_graph *graph;
        clt_trainer *trainer;
        clt_metrics metrics;
        clt_train_options options = clipped[c];
        float x[6] = {1, 2, 3, 4, 5, 6}, t[2] = {0, INFINITY};
        options.on_nonfinite = CLT_NONFINITE_SKIP;
        assert_ok(clt_graph_create(&graph));
        clt_tensor *in = clt_input(graph, "x", CLT_F32, CLT_SHAPE(2, 3)), *truth = clt_input(graph, "t", CLT_F32, CLT_SHAPE(2, 1));
        clt_tensor *loss = clt_mse_loss(clt_linear(in, "fc", 1, .no_bias = true), truth);
        assert_ok(clt_trainer_create(&trainer, device, loss, &options));
        clt_batch batch = {.samples = 2, .n_fields = 2,
                           .fields = {{CLT_F32, CLT_SHAPE(2, 3), x}, {CLT_F32, CLT_SHAPE(2, 1), t}}};
        assert_ok(clt_trainer_step(trainer, &batch));
        assert_ok(clt_trainer_train_metrics(trainer, &metrics, true));
        assert_int_equal(metrics.skipped, 1);
        clt_trainer_destroy(trainer);
        clt_graph_destroy(graph);
    }
}

/* A loss that is NaN for a computed target that is not a class makes no update. */
static void losses_of_no_class_make_no_update(void **state) {
    (void)state;
    for (int nll = 0; nll < 2; nll++)
        for (int none = 3; none >= 2; none--) {
            clt_graph *graph;
            clt_trainer *trainer;
            clt_metrics metrics;
            const float x[6] = {1, 2, 3, 4, 5, 6};
            assert_ok(clt_graph_create(&graph));
            clt_tensor *y = clt_linear(clt_input(graph, "x", CLT_F32, CLT_SHAPE(2, 3)), "fc", 3);
            clt_tensor *target = clt_cast(clt_input(graph, "t", CLT_F32, CLT_SHAPE(2)), CLT_I32);
            clt_tensor *loss = nll ? clt_nll_loss(clt_log_softmax(y, 1), target) : clt_cross_entropy(y, target);
            assert_ok(clt_trainer_create(&trainer, device, loss, &(clt_train_options){.on_nonfinite = CLT_NONFINITE_SKIP}));
            assert_ok(clt_trainer_step(trainer, &(clt_batch){.samples = 2, .n_fields = 2, .fields = {{CLT_F32, CLT_SHAPE(2, 3), x}, {CLT_F32, CLT_SHAPE(2), (float[]){0, (float)none}}}}));
            assert_ok(clt_trainer_train_metrics(trainer, &metrics, true));
            assert_int_equal(metrics.skipped, none == 3);
            clt_trainer_destroy(trainer);
            clt_graph_destroy(graph);
        }
}

static void options_are_checked(void **state) {
    (void)state;
    model m = {0};
    assert_status(build(&m, device, (clt_train_options){.locate_nonfinite = true}), CLT_E_INVALID);
    assert_detail("locate_nonfinite");
    clt_graph_destroy(m.graph);
    assert_status(build(&m, device, (clt_train_options){.on_nonfinite = (clt_nonfinite)7}), CLT_E_INVALID);
    assert_detail("on_nonfinite");
    clt_graph_destroy(m.graph);
}

/* ---- what made it ---- */

typedef struct location {
    const char *name;
    clt_tensor *(*make)(clt_tensor *h); /* from a linear layer's result, whose values are 1 for x = 1 */
    float x;
    const char *op, *words;
    bool in_backward;
} location;

static clt_tensor *log_of_negative(clt_tensor *h) {
    return clt_add_scalar(clt_log(clt_mul_scalar(h, -1)), 1);
}
static clt_tensor *exp_overflows(clt_tensor *h) {
    return clt_mul_scalar(clt_exp(clt_mul_scalar(h, 1000)), 2);
}
static clt_tensor *zero_by_zero(clt_tensor *h) {
    clt_tensor *zero = clt_add_scalar(h, -1);
    return clt_add(clt_div(zero, clt_mul_scalar(zero, 2)), h);
}
static clt_tensor *as_it_is(clt_tensor *h) {
    return h;
}
/* sqrt(0) is 0, but its slope is infinite. */
static clt_tensor *only_in_backward(clt_tensor *h) {
    return clt_sqrt(clt_add_scalar(h, -1));
}

static const location locations[] = {
    {"log of a negative", log_of_negative, 1, "log", "of mul_scalar", false},
    {"exp overflows", exp_overflows, 1, "exp", "inf", false},
    {"0/0", zero_by_zero, 1, "div", "nan", false},
    {"infinity in the data", as_it_is, INFINITY, "input", "input \"x\"", false},
    {"NaN in the data", as_it_is, NAN, "input", "input \"x\"", false},
    {"a parameter", as_it_is, 1, "parameter", "parameter \"fc.weight\"", false},
    {"only in backward", only_in_backward, 1, "", "in backward", true},
};

static clt_status locate_one(const location *c, clt_nonfinite_origin *origin, bool by_step) {
    clt_graph *graph;
    clt_trainer *trainer;
    float x[2 * 3], t[2] = {0}, ones[3] = {1.0f / 3, 1.0f / 3, 1.0f / 3};
    for (int i = 0; i < 6; i++) x[i] = i == 4 || isfinite(c->x) ? c->x : 1;
    if (!strcmp(c->op, "parameter")) ones[1] = NAN;
    else ones[0] = 1, ones[1] = ones[2] = 0;
    assert_ok(clt_graph_create(&graph));
    clt_tensor *in = clt_input(graph, "x", CLT_F32, CLT_SHAPE(2, 3)), *truth = clt_input(graph, "t", CLT_F32, CLT_SHAPE(2, 1));
    clt_tensor *y = c->make(clt_linear(in, "fc", 1, .no_bias = true));
    clt_train_options options = {.on_nonfinite = CLT_NONFINITE_STOP, .locate_nonfinite = by_step};
    assert_ok(clt_trainer_create(&trainer, device, clt_mse_loss(y, truth), &options));
    assert_ok(clt_trainer_set(trainer, "fc.weight", ones, 3));
    clt_batch batch = {.samples = 2, .n_fields = 2,
                       .fields = {{CLT_F32, CLT_SHAPE(2, 3), x}, {CLT_F32, CLT_SHAPE(2, 1), t}}};
    clt_status status = by_step ? clt_trainer_step(trainer, &batch) : clt_trainer_locate_nonfinite(trainer, &batch, origin);
    clt_trainer_destroy(trainer);
    clt_graph_destroy(graph);
    return status;
}

static void what_made_it_is_named(void **state) {
    (void)state;
    for (size_t i = 0; i < CLT_COUNT_OF(locations); i++) {
        const location *c = &locations[i];
        clt_nonfinite_origin origin;
        assert_ok(locate_one(c, &origin, false));
        if (!origin.found || (c->op[0] && strcmp(origin.op, c->op)) || !strstr(origin.words, c->words) ||
            origin.in_backward != c->in_backward || origin.step != 1 || isfinite(origin.value) ||
            (origin.backend[0] != 0) != (strcmp(c->op, "input") && strcmp(c->op, "parameter")))
            fail_msg("%s: op \"%s\" of \"%s\" by \"%s\": %s", c->name, origin.op, origin.tensor, origin.backend, origin.words);
        assert_status(locate_one(c, &origin, true), CLT_E_NONFINITE);
        assert_detail(c->words);
        assert_detail("update 1:");
    }
}

static void nothing_is_named_where_all_is_finite(void **state) {
    (void)state;
    clt_nonfinite_origin origin;
    const location fine = {"all is finite", as_it_is, 1, "", "", false};
    assert_ok(locate_one(&fine, &origin, false));
    assert_false(origin.found);
    assert_non_null(strstr(origin.words, "fused kernel"));
    assert_null(strstr(origin.words, "micro-batches")); /* which there are none of */
    assert_ok(locate_one(&fine, &origin, true));
}

static int warnings;
static char warning[1024];
static void keep_warning(clt_log_level level, const char *message, void *user) {
    (void)user;
    if (level != CLT_LOG_WARNING) return;
    warnings++;
    snprintf(warning, sizeof warning, "%s", message);
}

/* The micro-batch that had it, not the one that ends the update. */
static void skipping_tells_what_made_it(void **state) {
    (void)state;
    model m = {0};
    warnings = 0;
    assert_ok(build(&m, device, (clt_train_options){.on_nonfinite = CLT_NONFINITE_SKIP, .locate_nonfinite = true, .accumulate = 3}));
    clt_log_set(keep_warning, CLT_LOG_WARNING, NULL);
    for (int i = 0; i < 3; i++) assert_ok(step(&m, i, 0));
    assert_int_equal(warnings, 0);
    for (int i = 0; i < 6; i++) assert_ok(step(&m, i, i == 1 ? INFINITY : 0));
    clt_log_set(NULL, CLT_LOG_WARNING, NULL);
    assert_int_equal(warnings, 1);
    assert_non_null(strstr(warning, "update 2 "));
    assert_non_null(strstr(warning, "input \"t\""));
    destroy(&m);
}

/* ---- several ranks ---- */

enum { RANKS = 2 };

typedef struct rank {
    clt_comm *comm;
    int index;
    clt_train_options options;
    clt_status status, last;
    char detail[512];
    float values[MOST];
    int n;
    clt_metrics metrics;
} rank;

/* In update 3 the second rank has NaN. */
static clt_status run_steps(rank *r, clt_device *own, model *m) {
    r->options.comm = r->comm;
    CLT_TRY(build(m, own, r->options));
    for (int i = 0; i < 6; i++) {
        r->last = step(m, 10 * r->index + i, i == 2 && r->index == 1 ? NAN : 0);
        if (r->last < 0) break;
    }
    if (r->last >= 0) r->last = clt_trainer_train_metrics(m->trainer, &r->metrics, true);
    snprintf(r->detail, sizeof r->detail, "%s", clt_error_detail());
    r->n = 0;
    for (size_t i = 0; i < m->graph->n_variables; i++) {
        const clt_variable *v = m->graph->variables[i];
        size_t count = (size_t)clt_shape_elements(&v->shape);
        if (!v->trained) continue;
        CLT_TRY(clt_trainer_get(m->trainer, v->name, r->values + r->n, count));
        r->n += (int)count;
    }
    return CLT_OK;
}

static void *run_rank(void *argument) {
    rank *r = argument;
    clt_device *own = NULL;
    model m = {0};
    r->status = clt_device_open(&own, NULL);
    if (r->status == CLT_OK) r->status = run_steps(r, own, &m);
    if (r->status < 0) snprintf(r->detail, sizeof r->detail, "%s", clt_error_detail());
    destroy(&m);
    clt_device_close(own);
    clt_comm_destroy(r->comm);
    return NULL;
}

static void run_ranks(rank *ranks, clt_train_options options) {
    clt_comm *comms[RANKS];
    clt_thread threads[RANKS];
    assert_ok(clt_comm_create_local(comms, RANKS, 60));
    for (int i = 0; i < RANKS; i++) {
        ranks[i] = (rank){.comm = comms[i], .index = i, .options = options};
        assert_ok(clt_thread_start(&threads[i], run_rank, &ranks[i]));
    }
    for (int i = 0; i < RANKS; i++) clt_thread_join(threads[i]);
    for (int i = 0; i < RANKS; i++)
        if (ranks[i].status < 0) fail_msg("rank %d: %s", i, ranks[i].detail);
}

static const named_options rank_cases[] = {
    {"sums", {.optimizer = CLT_ADAM}},
    {"clip norm", {.optimizer = CLT_ADAM, .clip_norm = 0.5f}},
    {"shard", {.optimizer = CLT_ADAM, .shard = CLT_SHARD_OPTIMIZER}},
    {"shard gradients", {.optimizer = CLT_ADAM, .shard = CLT_SHARD_GRADIENTS}},
    {"shard, clip norm", {.optimizer = CLT_ADAM, .shard = CLT_SHARD_OPTIMIZER, .clip_norm = 0.5f}},
    {"recoverable", {.recoverable = true}},
    {"synchronized batch norm", {.sync_batch_norm = true}},
    {"f16", {.compress = {.method = CLT_COMPRESS_F16}}},
    {"int8", {.compress = {.method = CLT_COMPRESS_INT8}}},
    {"onebit", {.compress = {.method = CLT_COMPRESS_ONEBIT}}},
    {"topk", {.compress = {.method = CLT_COMPRESS_TOPK, .ratio = 0.2f}}},
    {"powersgd", {.compress = {.method = CLT_COMPRESS_POWERSGD, .force = true}}},
};

static void ranks_skip_alike(void **state) {
    (void)state;
    for (size_t c = 0; c < CLT_COUNT_OF(rank_cases); c++) {
        rank ranks[RANKS];
        clt_train_options options = rank_cases[c].options;
        options.on_nonfinite = CLT_NONFINITE_SKIP;
        run_ranks(ranks, options);
        for (int r = 0; r < RANKS; r++) {
            if (ranks[r].last < 0) fail_msg("%s, rank %d: %s", rank_cases[c].name, r, ranks[r].detail);
            if (ranks[r].metrics.skipped != 1)
                fail_msg("%s, rank %d: %d updates were left out", rank_cases[c].name, r, (int)ranks[r].metrics.skipped);
            for (int i = 0; i < ranks[r].n; i++) assert_true(isfinite(ranks[r].values[i]));
        }
        assert_same(ranks[1].values, ranks[0].values, ranks[0].n, rank_cases[c].name);
    }
}

static void ranks_stop_alike(void **state) {
    (void)state;
    rank ranks[RANKS];
    run_ranks(ranks, (clt_train_options){.on_nonfinite = CLT_NONFINITE_STOP});
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(ranks[r].last, CLT_E_NONFINITE);
        assert_non_null(strstr(ranks[r].detail, "update 3:"));
    }
    for (int synchronized = 0; synchronized < 2; synchronized++) {
        run_ranks(ranks, (clt_train_options){.on_nonfinite = CLT_NONFINITE_STOP, .locate_nonfinite = true,
                                             .sync_batch_norm = synchronized});
        for (int r = 0; r < RANKS; r++) assert_int_equal(ranks[r].last, CLT_E_NONFINITE);
        assert_non_null(strstr(ranks[1].detail, "input \"t\""));
        /* What batch norm exchanges in backward brings it to the other rank. */
        assert_non_null(strstr(ranks[0].detail, synchronized ? "in backward" : "this rank's forward and backward are finite"));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(infinity_is_found_before_it_is_clipped),
        cmocka_unit_test(large_gradients_are_finite),
        cmocka_unit_test(skipped_steps_change_nothing),
        cmocka_unit_test(running_statistics_stay_finite),
        cmocka_unit_test(micro_batches_are_skipped_together),
        cmocka_unit_test(checkpoints_count_what_was_skipped),
        cmocka_unit_test(training_stops_before_the_update),
        cmocka_unit_test(ignored_they_reach_the_parameters),
        cmocka_unit_test(losses_of_no_class_make_no_update),
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(what_made_it_is_named),
        cmocka_unit_test(nothing_is_named_where_all_is_finite),
        cmocka_unit_test(skipping_tells_what_made_it),
        cmocka_unit_test(ranks_skip_alike),
        cmocka_unit_test(ranks_stop_alike),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
