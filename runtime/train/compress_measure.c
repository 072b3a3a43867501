/*
 * What compression does to the collective of gradients, measured before the first step: all buckets of random numbers are
 * exchanged as they are and compressed, by plans with nothing else in them.
 */
#include "runtime/train/compress.h"
#include "runtime/train/parallel.h"

enum { TURNS = 3 }; /* after one to warm up; the best is taken */

typedef struct trial {
    clt_trainer *t;
    bool compressed;
    clt_graph *graph;
    clt_plan *plan;
    clt_tensor **results; /* a group's each, then the last one's number to wait for */
} trial;

/* Random numbers in the memory of a group's gradients: zeros would be taken for what has to be filled. */
static clt_tensor *random_gradient(const trial *r, int g) {
    char name[64];
    clt_tensor *flat = clt_state(r->graph, clt_bucket_name("gradients", g, name), CLT_F32, CLT_SHAPE(r->t->buckets[g].elements));
    return clt_seed_factor(flat, g);
}

static clt_tensor *exchange_bucket(const trial *r, int g, clt_tensor *samples) {
    clt_trainer *t = r->t;
    clt_tensor *flat = random_gradient(r, g);
    if (!r->compressed) return clt_all_reduce(flat, CLT_REDUCE_SUM);
    clt_gradient_reduction exchange = {.options = &t->options.compress,
                                      .rank = clt_comm_rank(t->options.comm),
                                      .size = clt_comm_size(t->options.comm),
                                      .bucket = &t->buckets[g],
                                      .index = g,
                                      .flat = flat,
                                      .samples = samples};
    return clt_reduce_gradient(&exchange);
}

static clt_status open_trial(trial *r) {
    clt_trainer *t = r->t;
    CLT_TRY(clt_graph_create(&r->graph));
    r->results = clt_calloc((size_t)t->n_buckets, sizeof *r->results);
    if (!r->results) return clt_fail_memory((size_t)t->n_buckets * sizeof *r->results);
    clt_tensor *samples = clt_fill(r->graph, CLT_SHAPE(1), (float)clt_comm_size(t->options.comm));
    for (int g = 0; g < t->n_buckets; g++) r->results[g] = exchange_bucket(r, g, samples);
    CLT_TRY(clt_graph_status(r->graph));
    clt_plan_options options = {.device = t->device,
                                .store = t->store,
                                .graph = r->graph,
                                .targets = r->results,
                                .n_targets = t->n_buckets,
                                .training = true,
                                .comms = {[CLT_AMONG_RANKS] = t->options.comm},
                                .backends = t->options.backends,
                                .passes = t->options.passes};
    return clt_plan_compile(&r->plan, &options);
}

static void close_trial(trial *r) {
    clt_plan_destroy(r->plan);
    clt_graph_destroy(r->graph);
    clt_free(r->results);
}

/* The best of some turns. All ranks begin a turn together. */
static clt_status time_trial(trial *r, double *seconds) {
    clt_trainer *t = r->t;
    *seconds = 1e300;
    for (int turn = 0; turn <= TURNS; turn++) {
        CLT_TRY(clt_comm_barrier(t->options.comm, NULL));
        double since = clt_seconds();
        CLT_TRY(clt_plan_run(r->plan));
        CLT_TRY(clt_plan_wait(r->plan, r->results[t->n_buckets - 1]));
        if (turn > 0) *seconds = CLT_MIN(*seconds, clt_seconds() - since);
    }
    return CLT_OK;
}

/* As a ring does it: of a sum every rank sends all but its own part twice, of what is gathered its own to all others. */
static double bytes_sent(const trial *r) {
    double size = clt_comm_size(r->t->options.comm), bytes = 0;
    for (size_t i = 0; i < r->graph->n_nodes; i++) {
        const clt_tensor *node = r->graph->nodes[i];
        double given = clt_is_collective(node) ? (double)clt_tensor_elements(node->inputs[0]) : 0;
        bytes += given * (double)clt_dtype_bytes(node->dtype) * (node->op == &clt_op_all_reduce ? 2 * (size - 1) / size : size - 1);
    }
    return bytes;
}

/* The same on all ranks. */
static clt_status check_bytes(const clt_trainer *t) {
    const clt_compress_report *r = &t->compress_report;
    const char *name = clt_compression_name(t->options.compress.method);
    if (r->bytes < r->bytes_uncompressed || t->options.compress.force) return CLT_OK;
    return clt_fail(CLT_E_INVALID, "compression by %s sends %.3f MB a step from each of %d ranks, none at all %.3f: leave it out, take f16, bf16 or powersgd, or set force",
                    name, 1e-6 * r->bytes, clt_comm_size(t->options.comm), 1e-6 * r->bytes_uncompressed);
}

static clt_status run_trial(clt_trainer *t, bool compressed, double *seconds, double *bytes) {
    trial r = {.t = t, .compressed = compressed};
    clt_status status = clt_parallel_agree(t->options.comm, open_trial(&r));
    if (status == CLT_OK) *bytes = bytes_sent(&r);
    if (status == CLT_OK && compressed) status = check_bytes(t);
    if (status == CLT_OK) status = time_trial(&r, seconds);
    close_trial(&r);
    return status;
}

static void log_report(const clt_trainer *t) {
    const clt_compress_report *r = &t->compress_report;
    double gain = r->seconds_uncompressed - r->seconds;
    if (clt_comm_rank(t->options.comm) > 0) return;
    clt_log_message(gain < 0 ? CLT_LOG_WARNING : CLT_LOG_INFO,
                    "compression by %s: %.3f MB a step are sent instead of %.3f (%.1f times fewer); a collective by itself takes "
                    "%.2f ms instead of %.2f: %.2f ms are %s",
                    clt_compression_name(t->options.compress.method), 1e-6 * r->bytes, 1e-6 * r->bytes_uncompressed,
                    r->bytes_uncompressed / r->bytes, 1e3 * r->seconds, 1e3 * r->seconds_uncompressed,
                    1e3 * (gain < 0 ? -gain : gain), gain < 0 ? "lost" : "saved");
}

/* What lies between the parts of a flat gradient has to be zero. */
static clt_status clear_gradients(clt_trainer *t) {
    for (int g = 0; g < t->n_buckets; g++) {
        char name[64];
        size_t bytes;
        clt_memory *memory = clt_state_store_find(t->store, clt_bucket_name("gradients", g, name), &bytes);
        if (memory) CLT_TRY(clt_memory_zero(memory));
    }
    return CLT_OK;
}

clt_status clt_compress_measure(clt_trainer *t) {
    clt_compress_report *r = &t->compress_report;
    if (!t->options.comm || !t->options.compress.method || clt_comm_size(t->options.comm) < 2) return CLT_OK;
    CLT_TRY(run_trial(t, false, &r->seconds_uncompressed, &r->bytes_uncompressed));
    CLT_TRY(run_trial(t, true, &r->seconds, &r->bytes));
    log_report(t);
    CLT_TRY(clear_gradients(t));
    return clt_compress_reset(t);
}

clt_status clt_trainer_compress_report(const clt_trainer *t, clt_compress_report *report) {
    if (!t || !report) return clt_fail(CLT_E_INVALID, "clt_trainer_compress_report: an argument is NULL");
    if (!(t->compress_report.bytes > 0)) return clt_fail(CLT_E_STATE, "the trainer compresses nothing that is sent");
    *report = t->compress_report;
    return CLT_OK;
}
