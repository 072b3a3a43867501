/* Trainers of which each has a stage of a model: the bits of one process that accumulates over as many micro-batches, in every schedule; checkpoints that go from any number of stages
 * to any other; and what cannot be. */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cltrain/cltrain.h>

#include "runtime/base/random.h"
#include "runtime/base/thread.h"
#include "runtime/pipeline/schedule.h"

enum { BATCH = 8, LENGTH = 6, WIDTH = 12, WORDS = 20, STEPS = 4, MOST_RANKS = 4, VALUES = 4096, PREDICTED = BATCH * LENGTH * WORDS };

static int32_t words[STEPS][BATCH][LENGTH], next_words[STEPS][BATCH][LENGTH];
static clt_device *devices[MOST_RANKS];

/* One process, or one stage. */
typedef struct rank {
    clt_comm *comm;
    int index, batch;
    bool no_dropout; /* whose masks are of a micro-batch's number */
    bool timed;
    const clt_train_options *options;
    const char *load, *save;
    clt_graph *graph;
    clt_tensor *output;
    clt_trainer *trainer;
    float values[VALUES], gradients[VALUES], predicted[PREDICTED];
    bool known[VALUES];
    size_t n;
    clt_metrics trained, tested;
    int in_flight;
    int64_t parameters;
    clt_status status;
    char detail[512];
} rank;

static int open_all(void **state) {
    clt_random random;
    clt_random_init(&random, 3, 0);
    for (int i = 0; i < STEPS * BATCH * LENGTH; i++) {
        (&words[0][0][0])[i] = (int32_t)clt_random_below(&random, WORDS);
        (&next_words[0][0][0])[i] = (int32_t)clt_random_below(&random, WORDS);
    }
    for (int i = 0; i < MOST_RANKS; i++) assert_ok(clt_device_open(&devices[i], NULL));
    (void)state;
    return 0;
}

static int close_all(void **state) {
    for (int i = 0; i < MOST_RANKS; i++) clt_device_close(devices[i]);
    (void)state;
    return 0;
}

/* A language model with an embedding that is its head, and residuals. */
static void build(rank *r) {
    char name[32];
    assert_ok(clt_graph_create(&r->graph));
    clt_tensor *x = clt_input(r->graph, "words", CLT_I32, CLT_SHAPE(BATCH, LENGTH)), *y = clt_input(r->graph, "next", CLT_I32, CLT_SHAPE(BATCH, LENGTH));
    clt_tensor *table = clt_parameter(r->graph, "table", CLT_SHAPE(WORDS, WIDTH), (clt_init){.kind = CLT_INIT_NORMAL, .value = 0.3});
    clt_tensor *h = clt_embedding_op(x, table);
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "h.%d.norm", i);
        clt_tensor *inner = clt_layer_norm(h, name, 1);
        snprintf(name, sizeof name, "h.%d.mlp", i);
        inner = clt_gelu(clt_linear(inner, name, WIDTH));
        h = clt_add(h, r->no_dropout ? inner : clt_dropout(inner, 0.1f));
    }
    r->output = clt_linear_op(h, table, NULL);
    assert_ok(clt_graph_status(r->graph));
    (void)y;
}

static clt_tensor *loss_of(const rank *r) {
    return clt_cross_entropy(clt_reshape(r->output, CLT_SHAPE(-1, WORDS)), clt_reshape(clt_graph_find(r->graph, "next"), CLT_SHAPE(-1)));
}

static clt_batch batch_of(int step, int samples) {
    return (clt_batch){.samples = samples, .n_fields = 2, .fields = {{CLT_I32, CLT_SHAPE(samples, LENGTH), words[step]}, {CLT_I32, CLT_SHAPE(samples, LENGTH), next_words[step]}}};
}

/* Those of other stages are left out. */
static clt_status keep_values(rank *r) {
    clt_shape shape;
    const char *name;
    r->n = 0;
    for (int64_t i = 0; (name = clt_graph_parameter(r->graph, i, &shape)); i++) {
        size_t n = 1;
        for (int d = 0; d < shape.rank; d++) n *= (size_t)shape.dims[d];
        if (r->n + n > VALUES) return clt_fail(CLT_E_INVALID, "too many values");
        clt_status status = clt_trainer_get(r->trainer, name, r->values + r->n, n);
        if (status < 0 && status != CLT_E_NOT_FOUND) return status;
        for (size_t k = 0; k < n; k++) r->known[r->n + k] = status == CLT_OK;
        if (status == CLT_OK) CLT_TRY(clt_trainer_get_gradient(r->trainer, name, r->gradients + r->n, n));
        r->n += n;
    }
    return CLT_OK;
}

static int stages_of(const clt_train_options *options) {
    return options->pipeline.stages ? options->pipeline.stages : 1;
}

/* Samples of each pipeline, or rank, behind those of the one before. */
static clt_batch own_batch(const rank *r, int step, int part, int parts) {
    clt_batch batch = batch_of(step, r->batch / parts);
    int first = r->index / stages_of(r->options) * r->batch + part * (int)batch.samples;
    for (int k = 0; k < 2; k++) batch.fields[k].data = (const int32_t *)batch.fields[k].data + first * LENGTH;
    return batch;
}

static clt_status use(rank *r, int begin, int end) {
    int parts = r->options->pipeline.stages ? 1 : r->options->accumulate;
    for (int step = begin; step < end; step++)
        for (int i = 0; i < parts; i++) {
            clt_batch part = own_batch(r, step, i, parts);
            CLT_TRY(clt_trainer_step(r->trainer, &part));
        }
    clt_batch last = batch_of(0, BATCH);
    CLT_TRY(clt_trainer_train_metrics(r->trainer, &r->trained, true));
    CLT_TRY(clt_trainer_evaluate(r->trainer, &last));
    CLT_TRY(clt_trainer_eval_metrics(r->trainer, &r->tested, true));
    CLT_TRY(clt_trainer_predict(r->trainer, r->output, &last, r->predicted, PREDICTED));
    r->in_flight = clt_trainer_in_flight(r->trainer);
    r->parameters = clt_trainer_stage_parameters(r->trainer);
    return keep_values(r);
}

/* Turns come in the order of the schedule, one behind the other; none are known of a step that was not timed. */
static clt_status check_turns(const rank *r, const clt_train_options *options) {
    clt_pipeline shape = clt_pipeline_of(&options->pipeline);
    clt_turn expected[64];
    size_t n;
    const clt_turn *turns = clt_trainer_turns(r->trainer, &n);
    if (!r->timed) return turns || n ? clt_fail(CLT_E_INVALID, "turns of a step that was not timed") : CLT_OK;
    if (!turns || n != clt_simulate_turns(&options->pipeline)) return clt_fail(CLT_E_INVALID, "%zu turns", n);
    clt_pipeline_turns(&shape, r->index % stages_of(options), expected);
    double end = 0;
    for (size_t i = 0; i < n; end = turns[i].begin + turns[i].seconds, i++)
        if (turns[i].kind != expected[i].kind || turns[i].micro != expected[i].micro || turns[i].chunk != expected[i].chunk || turns[i].begin < end || !(turns[i].seconds > 0))
            return clt_fail(CLT_E_INVALID, "turn %zu of stage %d: kind %d, micro-batch %d, from %g to %g s", i, r->index, (int)turns[i].kind, turns[i].micro, turns[i].begin, end);
    return CLT_OK;
}

static clt_status train(rank *r) {
    clt_train_options options = *r->options;
    options.comm = r->comm;
    options.output = r->output;
    CLT_TRY(clt_trainer_create(&r->trainer, devices[r->index], loss_of(r), &options));
    if (clt_trainer_stage(r->trainer) != r->index % stages_of(r->options)) return clt_fail(CLT_E_INVALID, "stage %d", clt_trainer_stage(r->trainer));
    if (r->load) CLT_TRY(clt_checkpoint_load(r->trainer, NULL, r->load));
    if (r->timed) CLT_TRY(clt_trainer_time_turns(r->trainer, true));
    CLT_TRY(use(r, r->load ? STEPS / 2 : 0, r->save ? STEPS / 2 : STEPS));
    if (options.pipeline.stages) CLT_TRY(check_turns(r, &options));
    return r->save ? clt_checkpoint_save(r->trainer, NULL, r->index ? NULL : r->save) : CLT_OK;
}

static void *run(void *argument) {
    rank *r = argument;
    build(r);
    r->status = train(r);
    snprintf(r->detail, sizeof r->detail, "%s", clt_error_detail());
    clt_trainer_destroy(r->trainer);
    clt_graph_destroy(r->graph);
    clt_comm_destroy(r->comm);
    return NULL;
}

static void run_stages(rank *ranks, int n, const clt_train_options *options) {
    clt_comm *comms[MOST_RANKS];
    clt_thread threads[MOST_RANKS];
    assert_ok(clt_comm_create_local(comms, n, 120));
    for (int i = 0; i < n; i++) {
        ranks[i].comm = comms[i];
        ranks[i].index = i;
        ranks[i].options = options;
        if (!ranks[i].batch) ranks[i].batch = BATCH;
        assert_ok(clt_thread_start(&threads[i], run, &ranks[i]));
    }
    for (int i = 0; i < n; i++) clt_thread_join(threads[i]);
}

static void run_alone(rank *r, const clt_train_options *options) {
    r->options = options;
    if (!r->batch) r->batch = BATCH;
    run(r);
    if (r->status < 0) fail_msg("%s", r->detail);
}

static void assert_all_ok(const rank *ranks, int n) {
    for (int i = 0; i < n; i++)
        if (ranks[i].status < 0) print_error("stage %d of %d: %s\n", i, n, ranks[i].detail);
    for (int i = 0; i < n; i++) assert_int_equal(ranks[i].status, CLT_OK);
}

static bool is_close(float a, float b, float tolerance) {
    return tolerance > 0 ? fabsf(a - b) <= tolerance : memcmp(&a, &b, sizeof a) == 0;
}

/* Each parameter is of one stage, and has the bits that it has in one process; or nearly so, where the squares of all stages' gradients are added up in another order. */
static void assert_same(const rank *ranks, int n, const rank *alone, float tolerance) {
    for (size_t i = 0; i < alone->n; i++) {
        int owners = 0;
        for (int r = 0; r < n; r++) {
            if (!ranks[r].known[i]) continue;
            owners++;
            if (!is_close(ranks[r].values[i], alone->values[i], tolerance) || !is_close(ranks[r].gradients[i], alone->gradients[i], tolerance))
                fail_msg("stage %d of %d, value %zu: %.9g with gradient %.9g, expected %.9g and %.9g", r, n, i, (double)ranks[r].values[i], (double)ranks[r].gradients[i],
                         (double)alone->values[i], (double)alone->gradients[i]);
        }
        assert_int_equal(owners, 1);
    }
    for (int r = 0; r < n; r++) {
        assert_int_equal(ranks[r].trained.samples, alone->trained.samples);
        assert_true(is_close((float)ranks[r].trained.loss, (float)alone->trained.loss, tolerance) && ranks[r].trained.accuracy == alone->trained.accuracy);
        assert_float_equal(ranks[r].tested.loss, alone->tested.loss, 1e-6);
        for (int i = 0; i < PREDICTED; i++) assert_true(is_close(ranks[r].predicted[i], alone->predicted[i], 10 * tolerance));
    }
}

static void stages_train_as_one_process_does(void **state) {
    static const struct {
        clt_train_options options;
        int stages, micros;
        clt_pipeline_schedule schedule;
        const char *split;
        int chunks;
    } cases[] = {
        {{.optimizer = CLT_SGD, .lr = 0.1f}, 2, 2, CLT_PIPELINE_1F1B, NULL, 1},
        {{.optimizer = CLT_ADAM, .lr = 0.01f, .clip_norm = 0.5f}, 3, 4, CLT_PIPELINE_1F1B, "h.1,h.3", 1},
        {{.optimizer = CLT_ADAMW, .lr = 0.01f, .average = 0.9f}, 2, 8, CLT_PIPELINE_GPIPE, "h.2", 1},
        {{.optimizer = CLT_SGD, .lr = 0.1f, .momentum = 0.9f, .on_nonfinite = CLT_NONFINITE_SKIP}, 4, 8, CLT_PIPELINE_ZB_H1, "h.1,h.2,h.3", 1},
        {{.optimizer = CLT_ADAM, .lr = 0.01f, .recompute = CLT_RECOMPUTE_ALL}, 3, 4, CLT_PIPELINE_ZB_H1, "h.0.mlp,h.3.norm", 1},
        {{.optimizer = CLT_ADAM, .lr = 0.01f, .precision = CLT_PRECISION_BF16}, 2, 4, CLT_PIPELINE_1F1B, "h.2", 1},
        {{.optimizer = CLT_SGD, .lr = 0.1f, .precision = CLT_PRECISION_F16, .on_nonfinite = CLT_NONFINITE_SKIP}, 3, 2, CLT_PIPELINE_GPIPE, NULL, 1},
        {{.optimizer = CLT_ADAM, .lr = 0.01f}, 2, 4, CLT_PIPELINE_INTERLEAVED, NULL, 0},
        {{.optimizer = CLT_SGD, .lr = 0.1f, .momentum = 0.9f, .on_nonfinite = CLT_NONFINITE_SKIP}, 4, 8, CLT_PIPELINE_INTERLEAVED, NULL, 2},
        {{.optimizer = CLT_SGD, .lr = 0.1f, .recompute = CLT_RECOMPUTE_ALL}, 2, 4, CLT_PIPELINE_INTERLEAVED, "h.0.mlp,h.2.norm,h.3.mlp", 2},
        {{.optimizer = CLT_ADAMW, .lr = 0.01f, .precision = CLT_PRECISION_BF16, .average = 0.9f}, 2, 8, CLT_PIPELINE_INTERLEAVED, "h.0.mlp,h.1,h.2,h.3,h.3.mlp", 3},
        {{.optimizer = CLT_ADAM, .lr = 0.01f, .clip_norm = 0.5f}, 2, 2, CLT_PIPELINE_GPIPE, "h.1,h.2,h.3", 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static rank alone, ranks[MOST_RANKS];
        clt_train_options single = cases[i].options, piped = cases[i].options;
        int n = cases[i].stages;
        single.accumulate = cases[i].micros;
        piped.pipeline = (clt_pipeline_options){.stages = n, .microbatches = cases[i].micros, .schedule = cases[i].schedule, .chunks = cases[i].chunks, .split = cases[i].split};
        memset(&alone, 0, sizeof alone);
        memset(ranks, 0, sizeof ranks);
        run_alone(&alone, &single);
        for (int r = 0; r < n; r++) ranks[r].timed = i % 2; /* the same bits */
        run_stages(ranks, n, &piped);
        assert_all_ok(ranks, n);
        assert_same(ranks, n, &alone, single.clip_norm > 0 || single.on_nonfinite ? 2e-6f : 0);
        for (int r = 0; r < n; r++) {
            int most = cases[i].schedule == CLT_PIPELINE_1F1B ? n - r : cases[i].schedule == CLT_PIPELINE_GPIPE ? cases[i].micros : cases[i].schedule == CLT_PIPELINE_ZB_H1 ? n : 2 * n;
            if (ranks[r].in_flight > CLT_MIN(most, cases[i].micros)) fail_msg("case %zu, stage %d: %d micro-batches in flight", i, r, ranks[r].in_flight);
        }
    }
    (void)state;
}

/* A last batch of an epoch: as many micro-batches of equal size as there can be. */
static void small_batches_have_fewer_micro_batches(void **state) {
    static const clt_pipeline_schedule schedules[] = {CLT_PIPELINE_1F1B, CLT_PIPELINE_INTERLEAVED};
    static rank alone, ranks[2];
    alone.batch = 7;
    alone.no_dropout = true;
    run_alone(&alone, &(clt_train_options){.optimizer = CLT_ADAM, .lr = 0.01f, .accumulate = 1});
    for (size_t k = 0; k < sizeof schedules / sizeof *schedules; k++) {
        memset(ranks, 0, sizeof ranks);
        ranks[0].batch = ranks[1].batch = 7;
        ranks[0].no_dropout = ranks[1].no_dropout = true;
        run_stages(ranks, 2, &(clt_train_options){.optimizer = CLT_ADAM, .lr = 0.01f, .pipeline = {.stages = 2, .microbatches = 2, .schedule = schedules[k]}});
        assert_all_ok(ranks, 2);
        for (size_t i = 0; i < alone.n; i++)
            for (int r = 0; r < 2; r++)
                if (ranks[r].known[i]) assert_float_equal(ranks[r].values[i], alone.values[i], 1e-6);
        assert_int_equal(ranks[0].trained.samples, 7 * STEPS);
    }
    (void)state;
}

/* Two pipelines of two stages are two ranks that accumulate: each has a batch of its own. */
static void pipelines_train_as_ranks_do(void **state) {
    static const struct {
        clt_train_options options;
        clt_pipeline_schedule schedule;
        int micros, batches[2];
    } cases[] = {
        {{.optimizer = CLT_SGD, .lr = 0.1f, .momentum = 0.9f}, CLT_PIPELINE_1F1B, 2, {6, 2}},
        {{.optimizer = CLT_ADAM, .lr = 0.01f, .average = 0.9f}, CLT_PIPELINE_GPIPE, 4, {4, 4}},
        {{.optimizer = CLT_ADAM, .lr = 0.01f, .clip_norm = 0.5f, .bucket_bytes = 400}, CLT_PIPELINE_ZB_H1, 2, {4, 4}},
        {{.optimizer = CLT_ADAMW, .lr = 0.01f, .precision = CLT_PRECISION_BF16, .recompute = CLT_RECOMPUTE_ALL}, CLT_PIPELINE_INTERLEAVED, 4, {4, 4}},
        {{.optimizer = CLT_SGD, .lr = 0.1f, .precision = CLT_PRECISION_F16, .on_nonfinite = CLT_NONFINITE_SKIP}, CLT_PIPELINE_1F1B, 1, {2, 3}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static rank plain[2], grid[4];
        clt_train_options each = cases[i].options, piped = cases[i].options;
        each.accumulate = cases[i].micros;
        piped.pipeline = (clt_pipeline_options){.stages = 2, .microbatches = cases[i].micros, .schedule = cases[i].schedule};
        memset(plain, 0, sizeof plain);
        memset(grid, 0, sizeof grid);
        for (int r = 0; r < 4; r++) grid[r].batch = plain[r / 2].batch = cases[i].batches[r / 2];
        run_stages(plain, 2, &each);
        assert_all_ok(plain, 2);
        run_stages(grid, 4, &piped);
        assert_all_ok(grid, 4);
        for (int p = 0; p < 2; p++) assert_same(grid + 2 * p, 2, &plain[0], each.clip_norm > 0 || each.on_nonfinite ? 2e-6f : 0);
        assert_int_equal(grid[3].trained.samples, STEPS * (cases[i].batches[0] + cases[i].batches[1]));
    }
    (void)state;
}

/* From a grid to a grid, over the file of its first rank; and to one pipeline and one process. */
static void checkpoints_of_grids(void **state) {
    static rank whole[4], half[4], alone;
    clt_train_options options = {.optimizer = CLT_ADAM, .lr = 0.01f, .average = 0.9f, .pipeline = {.stages = 2, .microbatches = 2}};
    char path[4096];
    snprintf(path, sizeof path, "%s", support_path("grid"));
    for (int r = 0; r < 4; r++) whole[r].batch = half[r].batch = BATCH / 2, half[r].save = path;
    run_stages(whole, 4, &options);
    assert_all_ok(whole, 4);
    run_stages(half, 4, &options);
    assert_all_ok(half, 4);
    memset(half, 0, sizeof half);
    for (int r = 0; r < 4; r++) half[r].batch = BATCH / 2, half[r].load = r ? "not there" : path; /* which the first alone reads */
    run_stages(half, 4, &options);
    assert_all_ok(half, 4);
    for (int r = 0; r < 4; r++) assert_memory_equal(half[r].values, whole[r].values, whole[r].n * sizeof(float));
    memset(half, 0, sizeof half);
    for (int r = 0; r < 2; r++) half[r].load = path;
    run_stages(half, 2, &options);
    assert_all_ok(half, 2);
    alone.load = path;
    options.pipeline = (clt_pipeline_options){0};
    options.accumulate = 1;
    run_alone(&alone, &options);
    (void)state;
}

/* From one process to stages, from these to others, and back. */
static void checkpoints_go_from_any_stages_to_any(void **state) {
    static rank alone, half, ranks[MOST_RANKS];
    clt_train_options single = {.optimizer = CLT_ADAM, .lr = 0.01f, .accumulate = 4, .average = 0.9f}, piped = single;
    char path[2][4096];
    for (int i = 0; i < 2; i++) snprintf(path[i], sizeof path[i], "%s", support_path(i ? "b" : "a"));
    run_alone(&alone, &single);
    piped.accumulate = 1;
    for (int from = 2; from <= 3; from++) {
        int to = 5 - from;
        piped.pipeline = (clt_pipeline_options){.stages = from, .microbatches = 4};
        memset(ranks, 0, sizeof ranks);
        for (int i = 0; i < from; i++) ranks[i].save = path[0];
        run_stages(ranks, from, &piped);
        assert_all_ok(ranks, from);
        piped.pipeline = (clt_pipeline_options){.stages = to, .microbatches = 4, .schedule = CLT_PIPELINE_GPIPE};
        memset(ranks, 0, sizeof ranks);
        for (int i = 0; i < to; i++) ranks[i].load = path[0];
        run_stages(ranks, to, &piped);
        assert_all_ok(ranks, to);
        for (size_t i = 0; i < alone.n; i++)
            for (int r = 0; r < to; r++)
                if (ranks[r].known[i]) assert_memory_equal(&ranks[r].values[i], &alone.values[i], sizeof(float));
    }
    memset(&half, 0, sizeof half);
    half.load = path[0];
    piped = single;
    piped.accumulate = 1; /* a batch of the file is an update */
    run_alone(&half, &piped);
    (void)state;
}

/* The faster device has more of the model; a bad number is refused. */
static void a_split_follows_the_devices(void **state) {
    static rank ranks[2];
    int64_t parameters[2][2];
    clt_peaks peaks[2] = {{1e9, 1e8}, {1e9, 1e8}}; /* so slow that sends do not matter */
    clt_train_options options = {.lr = 0.1f, .pipeline = {.stages = 2, .microbatches = 2, .peaks = peaks}};
    for (int fast = 0; fast < 2; fast++) {
        peaks[fast] = (clt_peaks){4e9, 4e8};
        peaks[1 - fast] = (clt_peaks){1e9, 1e8};
        memset(ranks, 0, sizeof ranks);
        run_stages(ranks, 2, &options);
        assert_all_ok(ranks, 2);
        for (int r = 0; r < 2; r++) parameters[fast][r] = ranks[r].parameters;
    }
    assert_true(parameters[0][0] > 2 * parameters[1][0] && parameters[1][1] > 2 * parameters[0][1]); /* the embedding is of the first, however slow it is */
    peaks[1].copy_bytes = 0;
    memset(ranks, 0, sizeof ranks);
    run_stages(ranks, 2, &options);
    for (int r = 0; r < 2; r++) assert_int_equal(ranks[r].status, CLT_E_INVALID);
    assert_non_null(strstr(ranks[0].detail, "pipeline.peaks[1]"));
    (void)state;
}

static void assert_refused(clt_train_options options, int n, clt_status expected, const char *words_of_it) {
    static rank ranks[MOST_RANKS];
    memset(ranks, 0, sizeof ranks);
    run_stages(ranks, n, &options);
    assert_int_equal(ranks[0].status, expected);
    if (!strstr(ranks[0].detail, words_of_it)) fail_msg("expected \"%s\", found \"%s\"", words_of_it, ranks[0].detail);
}

static void what_cannot_be_is_refused(void **state) {
    assert_refused((clt_train_options){.pipeline = {.stages = 4, .microbatches = 2, .split = "h.3.norm,h.3.mlp,next"}}, 4, CLT_E_NOT_FOUND, "named \"next\"");
    assert_refused((clt_train_options){.pipeline = {.stages = 3}}, 2, CLT_E_INVALID, "expected a communicator of as many ranks, or a multiple, found one of 2");
    assert_refused((clt_train_options){.pipeline = {.stages = 2, .split = "h.9"}}, 2, CLT_E_NOT_FOUND, "no layer and no tensor named \"h.9\"");
    assert_refused((clt_train_options){.pipeline = {.stages = 2, .split = "h.1,h.2"}}, 2, CLT_E_INVALID, "has 2 names: expected 1");
    assert_refused((clt_train_options){.pipeline = {.stages = 2, .schedule = CLT_PIPELINE_INTERLEAVED, .split = "h.1"}}, 2, CLT_E_INVALID, "has 1 names: expected 3");
    assert_refused((clt_train_options){.pipeline = {.stages = 2, .schedule = CLT_PIPELINE_INTERLEAVED, .microbatches = 3}}, 2, CLT_E_INVALID, "a multiple of its 2 stages");
    assert_refused((clt_train_options){.pipeline = {.stages = 2, .schedule = CLT_PIPELINE_ZB_H1, .chunks = 2}}, 2, CLT_E_INVALID, "zb-h1 has one chunk a stage");
    assert_refused((clt_train_options){.pipeline = {.stages = 4, .schedule = CLT_PIPELINE_INTERLEAVED, .chunks = 5}}, 4, CLT_E_INVALID, "make 20 parts of the model: expected at most");
    assert_refused((clt_train_options){.pipeline = {.stages = 3, .split = "h.2,h.1"}}, 3, CLT_E_INVALID, "\"h.1\" is computed before");
    assert_refused((clt_train_options){.pipeline = {.stages = 2}, .accumulate = 2}, 2, CLT_E_UNSUPPORTED, "pipeline and accumulate exclude each other");
    assert_refused((clt_train_options){.pipeline = {.stages = 2, .schedule = (clt_pipeline_schedule)9}}, 2, CLT_E_INVALID, "pipeline.schedule");
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stages_train_as_one_process_does),
        cmocka_unit_test(small_batches_have_fewer_micro_batches),
        cmocka_unit_test(checkpoints_go_from_any_stages_to_any),
        cmocka_unit_test(pipelines_train_as_ranks_do),
        cmocka_unit_test(checkpoints_of_grids),
        cmocka_unit_test(a_split_follows_the_devices),
        cmocka_unit_test(what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
