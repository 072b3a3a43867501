#include "tests/faults/ranks.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/thread.h"
#include "comm/local/local.h"

/* ---- ranks, threads with a device each ---- */

static clt_status join(rank_thread *r) {
    const clt_comm_options options = {.rank = r->rank, .size = r->ranks, .store = r->store, .job = "faults", .network = "127.0.0.1",
                                      .security = r->secure ? CLT_SECURITY_TLS : CLT_SECURITY_NONE,
                                      .token = "a secret of the faults", .connect_seconds = 3, .timeout_seconds = 20,
                                      .heartbeat_seconds = 5};
    return r->network ? clt_comm_create(&r->comm, &options) : CLT_OK;
}

static clt_status go_on_without(rank_thread *r, model *m) {
    clt_comm *survivors;
    clt_status status = clt_comm_shrink(r->comm, &survivors);
    if (status < 0) return status;
    status = clt_trainer_recover(m->trainer, m->loader, survivors);
    clt_comm_destroy(r->comm);
    r->comm = survivors;
    return status;
}

static clt_status train_on(rank_thread *r, model *m) {
    if (!r->lose_one) return model_train(m, 3);
    clt_status status = model_train(m, 2);
    if (status < 0) return status;
    if (r->rank == 1) return clt_local_lose(r->comm), CLT_END;
    status = model_train(m, 1);
    if (status == CLT_E_PEER) status = go_on_without(r, m);
    return status == CLT_OK ? model_train(m, 2) : status;
}

/* The state of all parts in one file, which a trainer of the same ranks takes over. */
static clt_status save_and_load(rank_thread *r, model *m) {
    char path[512], other[512];
    clt_status status;
    scenario_path(path, "parts.safetensors");
    scenario_path(other, "nowhere.safetensors"); /* rank 0 alone reads */
    TRY(clt_checkpoint_save(m->trainer, m->loader, r->rank ? NULL : path));
    TRY(model_train(m, 1));
    TRY(clt_checkpoint_load(m->trainer, m->loader, r->rank ? other : path));
    TRY(model_train(m, 1));
done:
    return status;
}

static clt_status look_at_compression(rank_thread *r, const model *m) {
    clt_compress_report report = {0};
    clt_status status = clt_trainer_compress_report(m->trainer, &report);
    if (status == CLT_OK && !(report.bytes > 0 && report.bytes < report.bytes_uncompressed))
        snprintf(r->digest.words, sizeof r->digest.words, "%s: %g bytes, not %g", clt_compression_name(r->method), report.bytes,
                 report.bytes_uncompressed);
    return status;
}

static clt_status train_on_device(rank_thread *r, clt_device *device) {
    model m = {0};
    clt_train_options options = {.optimizer = CLT_ADAM, .clip_norm = 0.5f, .seed = 5, .comm = r->comm, .bucket_bytes = 512,
                                 .recoverable = r->lose_one, .shard = r->shard,
                                 .compress = {.method = r->method, .ratio = r->method == CLT_COMPRESS_TOPK ? 0.1f : 0}};
    clt_metrics metrics;
    clt_loader_options loading = {.batch = BATCH * r->ranks, .rank = r->rank, .ranks = r->ranks};
    clt_status status;
    TRY(model_create(&m, device, model_mlp, options, loading));
    TRY(train_on(r, &m));
    if (status == CLT_END) goto done;
    if (r->shard) TRY(save_and_load(r, &m));
    if (r->method) TRY(look_at_compression(r, &m));
    TRY(clt_trainer_train_metrics(m.trainer, &metrics, true));
    TRY(digest_add_mlp(&r->digest, &m));
done:
    model_destroy(&m);
    return status;
}

static clt_status train_together(rank_thread *r) {
    clt_device *device = NULL;
    clt_status status = clt_device_open(&device, NULL);
    if (status == CLT_OK) status = train_on_device(r, device);
    if (status < 0) snprintf(r->detail, sizeof r->detail, "%s", clt_error_detail());
    if (status < 0 && r->lose_one && r->comm) clt_local_lose(r->comm); /* nobody waits for it */
    clt_comm_destroy(r->comm); /* before the device is closed: nobody waits for that */
    r->comm = NULL;
    clt_device_close(device);
    return status;
}

static void *run_rank(void *argument) {
    rank_thread *r = argument;
    r->status = join(r);
    if (r->status == CLT_OK) r->status = r->work(r);
    if (r->status < 0 && !r->detail[0]) snprintf(r->detail, sizeof r->detail, "%s", clt_error_detail());
    clt_comm_destroy(r->comm);
    return NULL;
}

static clt_status run_threads(rank_thread *ranks, digest *d) {
    clt_thread threads[MOST_RANKS];
    int started = 0, n = ranks[0].ranks;
    clt_status status = CLT_OK;
    for (; started < n && status == CLT_OK; started += status == CLT_OK)
        status = clt_thread_start(&threads[started], run_rank, &ranks[started]);
    for (int i = started; i < n; i++) {
        if (ranks[i].lose_one) clt_local_lose(ranks[i].comm);
        clt_comm_destroy(ranks[i].comm);
    }
    for (int i = 0; i < started; i++) clt_thread_join(threads[i]);
    for (int i = 0; i < started && status == CLT_OK; i++) {
        status = CLT_MIN(ranks[i].status, CLT_OK);
        if (status < 0) clt_fail_again(status, ranks[i].detail);
    }
    snprintf(d->words, sizeof d->words, "%s", ranks[0].digest.words);
    if (status == CLT_OK && ranks[0].digest.hash != ranks[n - 1].digest.hash)
        snprintf(d->words, sizeof d->words, "the ranks' bits differ");
    d->hash = ranks[0].digest.hash;
    return status;
}

clt_status ranks_run(const rank_thread *like, int n, digest *d) {
    static int number;
    rank_thread ranks[MOST_RANKS];
    clt_comm *comms[MOST_RANKS] = {NULL};
    clt_status status = like->network ? CLT_OK : clt_comm_create_local(comms, n, 20);
    if (status < 0) return status;
    number++;
    for (int i = 0; i < n; i++) {
        ranks[i] = *like;
        ranks[i].rank = i, ranks[i].ranks = n, ranks[i].comm = comms[i];
        snprintf(ranks[i].store, sizeof ranks[i].store, "file://%s/store%d", scenario_folder, number);
    }
    return run_threads(ranks, d);
}

clt_status run_ranks(clt_device *device, digest *d) {
    (void)device;
    return ranks_run(&(rank_thread){.work = train_together}, RANKS, d);
}

clt_status run_recover(clt_device *device, digest *d) {
    (void)device;
    return ranks_run(&(rank_thread){.work = train_together, .lose_one = true}, MOST_RANKS, d);
}

clt_status run_network(clt_device *device, digest *d) {
    (void)device;
    return ranks_run(&(rank_thread){.work = train_together, .network = true}, RANKS, d);
}

clt_status run_shard(clt_device *device, digest *d) {
    (void)device;
    return ranks_run(&(rank_thread){.work = train_together, .shard = CLT_SHARD_OPTIMIZER}, RANKS, d);
}

clt_status run_shard_gradients(clt_device *device, digest *d) {
    (void)device;
    return ranks_run(&(rank_thread){.work = train_together, .shard = CLT_SHARD_GRADIENTS}, RANKS, d);
}

clt_status run_shard_parameters(clt_device *device, digest *d) {
    (void)device;
    return ranks_run(&(rank_thread){.work = train_together, .shard = CLT_SHARD_PARAMETERS}, RANKS, d);
}

#define COMPRESS(name, value)                                                                       \
    clt_status run_##name(clt_device *device, digest *d) {                                          \
        (void)device;                                                                               \
        return ranks_run(&(rank_thread){.work = train_together, .method = (value)}, RANKS, d);      \
    }
COMPRESS(f16, CLT_COMPRESS_F16)
COMPRESS(bf16, CLT_COMPRESS_BF16)
COMPRESS(int8, CLT_COMPRESS_INT8)
COMPRESS(onebit, CLT_COMPRESS_ONEBIT)
COMPRESS(topk, CLT_COMPRESS_TOPK)
COMPRESS(powersgd, CLT_COMPRESS_POWERSGD)
