/*
 * Several ranks that train together: threads with a device each, the one at hand opened once more, that meet over the host's loopback.
 * What they have in the end must be that of the same steps in double precision, with the same bits on all.
 *
 * The loss is sum(x p), which weighs a rank's gradient by its number of samples; or that of what a batch norm over all ranks makes of
 * it. Ranks have unequal batches, one of them none, and change places from step to step.
 */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cltrain-conform/updates.h"

enum { RANKS = 3, SAMPLES = 4, STEPS = 4, MOST_SAMPLES = 3, MOST_VALUES = 5 };

static const recipe recipes[] = {
    {"sgd", {.lr = 0.1f}, .full = true, .size = 1031},
    {"shard", {.optimizer = CLT_ADAM, .lr = 0.05f, .clip_norm = 1.5f, .shard = CLT_SHARD_OPTIMIZER}, .full = true, .size = 1031},
    {"shard-gradients", {.optimizer = CLT_ADAM, .lr = 0.05f, .clip_norm = 1.5f, .shard = CLT_SHARD_GRADIENTS}, .full = true, .size = 1031},
    {"shard-parameters", {.optimizer = CLT_ADAM, .lr = 0.05f, .clip_norm = 1.5f, .shard = CLT_SHARD_PARAMETERS}, .full = true, .size = 1031},
    {"dropout", {.lr = 0.1f, .seed = 0x123456789abc}, .full = true, .dropout = 0.5f, .size = 1031},
    /* What no other case launches, in one. */
    {"sync-batch-norm", {.lr = 0.02f, .sync_batch_norm = true, .shard = CLT_SHARD_OPTIMIZER}, .size = 5 * 7, .columns = 7},
    {"f16", {.lr = 0.1f, .compress = {.method = CLT_COMPRESS_F16}}, .full = true, .size = 1031},
    {"bf16", {.lr = 0.1f, .compress = {.method = CLT_COMPRESS_BF16}}, .full = true, .size = 1031},
    {"int8", {.lr = 0.05f, .compress = {.method = CLT_COMPRESS_INT8}}, .full = true, .size = 1031},
    {"onebit", {.lr = 0.1f, .compress = {.method = CLT_COMPRESS_ONEBIT}}, .full = true, .size = 1031},
    {"topk", {.lr = 0.1f, .compress = {.method = CLT_COMPRESS_TOPK, .ratio = 0.1f}}, .full = true, .size = 130 * 256},
    {"powersgd", {.lr = 0.1f, .compress = {.method = CLT_COMPRESS_POWERSGD, .rank = 2}}, .full = true, .size = 33 * 32, .columns = 32},
};

/* Large enough to be seen in what comes of it. */
static const attributes norm_attributes = {.norm = {.eps = 0.25f, .momentum = 0.3f}};

static int batch_of(int rank, int step) {
    static const int samples[RANKS] = {1, 0, MOST_SAMPLES};
    return samples[(rank + step) % RANKS];
}

/* Batches of a step lie one behind the other. */
static int first_of(int rank, int step) {
    int first = 0;
    for (int before = 0; before < rank; before++) first += batch_of(before, step);
    return first;
}

static int rank_of(int sample, int step) {
    int rank = 0;
    while (sample >= first_of(rank + 1, step)) rank++;
    return rank;
}

/* What is trained, then what is kept beside. */
typedef struct value {
    const char *name;
    int n;
} value;

static int values_of(const recipe *of, value values[MOST_VALUES]) {
    int channels = of->columns ? of->size / of->columns : 0;
    const value all[MOST_VALUES] = {{"p", of->size},
                                    {"norm.weight", channels},
                                    {"norm.bias", channels},
                                    {"norm.running_mean", channels},
                                    {"norm.running_var", channels}};
    memcpy(values, all, sizeof all);
    return of->options.sync_batch_norm ? MOST_VALUES : 1;
}

static int count_of(const recipe *of) {
    value values[MOST_VALUES];
    int count = 0;
    for (int i = 0, n = values_of(of, values); i < n; i++) count += values[i].n;
    return count;
}

/* ---- in double precision ---- */

/* What arrives of the ranks' gradients. PowerSGD is linear but for what is done to the sum: it is that of one rank with all. */
static void exchange(host ranks[RANKS], host *all) {
    clt_compression method = all->o->compress.method;
    bool codes = method == CLT_COMPRESS_INT8 || method == CLT_COMPRESS_ONEBIT || method == CLT_COMPRESS_TOPK;
    for (int r = 0; r < RANKS; r++) {
        if (method != CLT_COMPRESS_POWERSGD) compress_on_host(&ranks[r]);
        for (int i = 0; i < all->n; i++) all->g[i] += ranks[r].g[i];
    }
    if (!codes) compress_on_host(all);
}

/* What dropout leaves of element i of a rank's batch: each rank has masks of its own. */
static double kept(const host *h, double x, int64_t i, int rank, int step) {
    double p = (double)h->of->dropout;
    uint64_t count = (uint64_t)step ^ (uint64_t)rank << 48;
    if (p == 0) return x;
    return reference_dropout_keeps(i, 0, count, h->o->seed, p) ? x / (1 - p) : 0;
}

static void update_of_all(host ranks[RANKS], host *all, const float *x, int step) {
    int n = all->n;
    for (int i = 0; i < SAMPLES * n; i++) {
        int rank = rank_of(i / n, step);
        double left = kept(all, (double)x[i], i - first_of(rank, step) * n, rank, step);
        ranks[rank].g[i % n] += batch_of(rank, step) * left / SAMPLES;
    }
    exchange(ranks, all);
    update_on_host(all, step);
}

static void train_on_host(const recipe *of, const float *x, double *values) {
    size_t n = (size_t)of->size;
    double *memory = calloc((5 + 2 * RANKS) * n, sizeof *memory);
    if (!memory) exit(3);
    double *next = memory + 5 * n;
    host ranks[RANKS], all = {.of = of, .o = &of->options, .n = of->size, .p = values, .m = memory, .v = memory + n,
                              .g = memory + 2 * n, .residual = memory + 3 * n, .factor = memory + 4 * n};
    for (int r = 0; r < RANKS; r++, next += 2 * n)
        ranks[r] = (host){.of = of, .o = &of->options, .n = of->size, .g = next, .residual = next + n};
    for (int step = 0; step < STEPS; step++) {
        memset(all.g, 0, n * sizeof *all.g);
        for (int r = 0; r < RANKS; r++) memset(ranks[r].g, 0, n * sizeof *all.g);
        update_of_all(ranks, &all, x + step * SAMPLES * of->size, step);
    }
    free(memory);
}

/* The operands of the batch norm, of all ranks' samples as if they were one batch. */
static void norm_operands(const recipe *of, const float *x, const double *values, array operands[5]) {
    array_resize(&operands[0], shape_of_batch(of, of->size, SAMPLES));
    for (int i = 0; i < SAMPLES * of->size; i++) operands[0].values[i] = (double)x[i] * values[i % of->size];
    values += of->size;
    for (int k = 1; k < 5; k++, values += of->size / of->columns) {
        array_resize(&operands[k], CLT_SHAPE(of->size / of->columns));
        memcpy(operands[k].values, values, (size_t)array_count(&operands[k]) * sizeof *values);
    }
}

/* Of all samples, each weighed as its rank is. */
static double norm_loss(const recipe *of, const float *x, const double *values, int step, array operands[5], array *y) {
    double loss = 0;
    norm_operands(of, x, values, operands);
    reference_batch_norm(operands, 5, y, &norm_attributes, false);
    for (int i = 0; i < SAMPLES * of->size; i++)
        loss += batch_of(rank_of(i / of->size, step), step) * y->values[i] * (double)x[i] / SAMPLES;
    return loss;
}

static void norm_step(const recipe *of, const float *x, double *values, int step, array operands[5], array *y) {
    const double eps = 1e-5;
    int channels = of->size / of->columns, trained = of->size + 2 * channels;
    double *gradient = calloc((size_t)trained, sizeof *gradient);
    if (!gradient) exit(3);
    for (int i = 0; i < trained; i++) {
        double kept = values[i];
        values[i] = kept + eps;
        gradient[i] = norm_loss(of, x, values, step, operands, y) / (2 * eps);
        values[i] = kept - eps;
        gradient[i] -= norm_loss(of, x, values, step, operands, y) / (2 * eps);
        values[i] = kept;
    }
    norm_operands(of, x, values, operands);
    for (int k = 3; k < 5; k++) {
        reference_batch_norm_buffers(operands, k, y, &norm_attributes);
        memcpy(values + trained + (k - 3) * channels, y->values, (size_t)channels * sizeof *values);
    }
    for (int i = 0; i < trained; i++) values[i] -= (double)of->options.lr * gradient[i];
    free(gradient);
}

static void train_norm_on_host(const recipe *of, const float *x, double *values) {
    array operands[5] = {{.values = NULL}}, y = {.values = NULL};
    for (int step = 0; step < STEPS; step++) norm_step(of, x + step * SAMPLES * of->size, values, step, operands, &y);
    for (int k = 0; k < 5; k++) array_free(&operands[k]);
    array_free(&y);
}

/* ---- a rank ---- */

typedef struct rank {
    int number;
    const recipe *of;
    const char *store;
    clt_settings settings; /* of its device */
    const float *x, *start;
    clt_device *device;
    clt_comm *comm;
    float *values; /* in the end */
    case_result *served; /* of one of them: which rows serve it */
    clt_status status;
    const char *doing;
    char detail[CASE_REASON];
    pthread_t thread;
} rank;

static clt_status meet(rank *r) {
    const clt_comm_options options = {.rank = r->number, .size = RANKS, .store = r->store, .token = r->store, .job = "conform",
                                      .network = "127.0.0.1", .security = CLT_SECURITY_AUTH, .connect_seconds = 30, .heartbeat_seconds = 60};
    r->doing = "meeting over loopback";
    return clt_comm_create(&r->comm, &options);
}

static clt_status open_device(rank *r) {
    r->doing = "opening the device once more";
    clt_status status = clt_device_open_with(&r->device, &r->settings);
    return status == CLT_OK ? clt_device_enable_redzones(r->device) : status;
}

static clt_tensor *build(const rank *r, clt_graph *graph) {
    const recipe *of = r->of;
    clt_tensor *x = clt_input(graph, "x", CLT_F32, shape_of_batch(of, of->size, MOST_SAMPLES));
    clt_tensor *p = clt_parameter(graph, "p", shape_of_parameter(of, of->size), (clt_init){.kind = CLT_INIT_ZEROS});
    clt_tensor *y = clt_mul(of->dropout > 0 ? clt_dropout(x, of->dropout) : x, p);
    if (of->options.sync_batch_norm) y = clt_mul(clt_batch_norm_with(y, "norm", norm_attributes.norm), x);
    return clt_sum(y, CLT_ALL_AXES);
}

static clt_status take_steps(const rank *r, clt_trainer *trainer) {
    int n = r->of->size;
    const float *x = r->x;
    clt_status status = CLT_OK;
    for (int step = 0; step < STEPS && status == CLT_OK; step++, x += SAMPLES * n) {
        int samples = batch_of(r->number, step), first = first_of(r->number, step);
        clt_batch batch = {.samples = samples, .n_fields = 1, .fields = {{CLT_F32, shape_of_batch(r->of, n, samples), x + first * n}}};
        status = clt_trainer_step(trainer, &batch);
    }
    return status;
}

static clt_status train(const rank *r, clt_trainer *trainer) {
    value values[MOST_VALUES];
    int n = values_of(r->of, values), at = 0;
    clt_status status = CLT_OK;
    for (int i = 0; i < n && status == CLT_OK; at += values[i++].n)
        status = clt_trainer_set(trainer, values[i].name, r->start + at, (size_t)values[i].n);
    if (status == CLT_OK) status = take_steps(r, trainer);
    at = 0;
    for (int i = 0; i < n && status == CLT_OK; at += values[i++].n)
        status = clt_trainer_get(trainer, values[i].name, r->values + at, (size_t)values[i].n);
    return status;
}

static clt_status work(rank *r) {
    clt_graph *graph = NULL;
    clt_trainer *trainer = NULL;
    clt_train_options options = r->of->options;
    options.comm = r->comm;
    r->doing = "compiling";
    clt_status status = clt_graph_create(&graph);
    clt_tensor *loss = status == CLT_OK ? build(r, graph) : NULL;
    if (loss && r->served) note_step(&(bench){.device = r->device}, loss, &options, r->served);
    if (status == CLT_OK) status = clt_trainer_create(&trainer, r->device, loss, &options);
    if (status == CLT_OK) r->doing = "training", status = train(r, trainer);
    if (status < 0) snprintf(r->detail, sizeof r->detail, "%s", clt_error_detail());
    clt_trainer_destroy(trainer);
    clt_graph_destroy(graph);
    return status;
}

/* The others are not left waiting. */
static void *run_rank(void *argument) {
    rank *r = argument;
    r->status = meet(r);
    if (r->status == CLT_OK) r->status = open_device(r);
    if (r->status < 0) snprintf(r->detail, sizeof r->detail, "%s", clt_error_detail());
    else r->status = work(r);
    if (r->status < 0 && r->comm) clt_comm_fail(r->comm, r->status, r->detail);
    clt_comm_destroy(r->comm);
    return NULL;
}

/* ---- all of them ---- */

/* Who only tells of another one's failure comes last. A host without loopback is no fault of the device. */
static void judge_ends(const rank ranks[RANKS], case_result *r) {
    const rank *first = NULL;
    for (int i = 0; i < RANKS; i++)
        if (ranks[i].status < 0 && (!first || first->status == CLT_E_PEER)) first = &ranks[i];
    bool skip = first && (first->status == CLT_E_UNSUPPORTED || !first->comm);
    if (!first) r->supported = PASSED;
    else result_say(r, &r->supported, skip ? SKIPPED : FAILED, "rank %d, %s: %s", first->number, first->doing, first->detail);
}

static void judge_values(const rank ranks[RANKS], const double *want, case_result *r) {
    const recipe *of = ranks[0].of;
    int n = count_of(of);
    double slack = of->options.compress.method == CLT_COMPRESS_INT8 ? RANKS * (double)of->options.lr * 5 / 127 / 2 : 0;
    bounds exact = {.nmse = 1e-10}, rough = {.tolerance = slack, .floor = 1, .nmse = 1e-6};
    array got = {.values = NULL}, all = {.values = NULL};
    array_resize(&got, CLT_SHAPE(n)), array_resize(&all, CLT_SHAPE(n));
    memcpy(all.values, want, (size_t)n * sizeof *want);
    for (int i = 0; i < n; i++) got.values[i] = (double)ranks[0].values[i];
    judge(r, &r->value, "what the ranks have", &got, &all, NULL, n, slack > 0 ? &rough : &exact);
    for (int i = 1; i < RANKS; i++)
        if (memcmp(ranks[i].values, ranks[0].values, (size_t)n * sizeof *ranks[i].values))
            result_say(r, &r->value, FAILED, "rank %d has other bits than rank 0", i);
    array_free(&got), array_free(&all);
}

static void run_together(rank ranks[RANKS], bench *b, case_result *r) {
    clt_device *device = b->device;
    for (int i = 0; i < RANKS; i++)
        if (pthread_create(&ranks[i].thread, NULL, run_rank, &ranks[i])) exit(3);
    for (int i = 0; i < RANKS; i++) pthread_join(ranks[i].thread, NULL);
    judge_ends(ranks, r);
    for (int i = 0; i < RANKS; i++) {
        b->device = ranks[i].device;
        if (b->device) judge_redzones(b, r);
        clt_device_close(b->device);
    }
    b->device = device;
}

/* Oclgrind crashes, or gives nonsense, where two threads use it at once. */
static bool is_of_one_thread(const clt_device *device) {
    return strcmp(clt_device_get_info(device)->platform, "Oclgrind") == 0;
}

static void run_ranks(const test_case *c, bench *b, case_result *r) {
    static int number;
    if (is_of_one_thread(b->device)) {
        result_say(r, &r->supported, SKIPPED, "the driver cannot be used by several threads at once, as ranks are here");
        return;
    }
    char store[4200];
    const recipe *of = c->context;
    int n = count_of(of), inputs = STEPS * SAMPLES * of->size;
    float *memory = calloc((size_t)((1 + RANKS) * n + inputs), sizeof *memory);
    double *want = calloc((size_t)n, sizeof *want);
    rank ranks[RANKS];
    random_stream random = random_of(c->id);
    if (!memory || !want) exit(3);
    float *x = memory + (1 + RANKS) * n;
    for (int i = 0; i < n; i++) want[i] = (double)(memory[i] = (float)(0.5 + random_uniform(&random)));
    for (int i = 0; i < inputs; i++) x[i] = (float)(floor(256 * random_uniform(&random)) / 64 - 2);
    snprintf(store, sizeof store, "file://%s/ranks-%s-%s-%d", b->folder, b->who, b->row, number++);
    clt_settings settings = b->settings;
    settings.device = clt_device_get_info(b->device)->id;
    for (int i = 0; i < RANKS; i++)
        ranks[i] = (rank){.number = i, .of = of, .store = store, .settings = settings, .x = x, .start = memory,
                          .values = memory + (1 + i) * n, .served = i ? NULL : r};
    run_together(ranks, b, r);
    if (of->options.sync_batch_norm) train_norm_on_host(of, x, want);
    else train_on_host(of, x, want);
    if (!r->reason[0]) judge_values(ranks, want, r);
    free(memory), free(want);
}

void cases_ranks(case_list *list) {
    for (size_t i = 0; i < sizeof recipes / sizeof recipes[0]; i++) {
        char variant[64];
        snprintf(variant, sizeof variant, "%s/%d", recipes[i].name, recipes[i].size);
        test_case *c = case_add_run(list, "ranks", variant, run_ranks);
        c->context = &recipes[i];
        c->full = recipes[i].full;
        c->large = recipes[i].size > 32768;
    }
}
