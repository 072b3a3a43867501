/*
 * Replicas stay alike because their updates round alike on all devices (cl/reference/optimizer.cl). What makes them differ yet, such as a device
 * with a division of its own or a bit that was flipped in its memory, is found by comparing a hash of all parameters now and then, and mended.
 */
#include <string.h>

#include "runtime/train/parallel.h"

/* Piece by piece, so that no memory of a model's size is needed on the host. */
static clt_status hash_memory(clt_memory *memory, size_t bytes, char hash[CLT_HASH_TEXT]) {
    enum { PIECE_BYTES = 4 << 20 };
    void *piece = clt_alloc(CLT_MIN(bytes, PIECE_BYTES));
    clt_status status = piece ? CLT_OK : clt_fail_memory(CLT_MIN(bytes, PIECE_BYTES));
    for (size_t at = 0; status == CLT_OK && at < bytes; at += PIECE_BYTES) {
        size_t n = CLT_MIN(bytes - at, PIECE_BYTES);
        status = clt_memory_read(memory, at, piece, n);
        if (status == CLT_OK) clt_hash_add(hash, piece, n);
    }
    clt_free(piece);
    return status;
}

static clt_status hash_parameters(clt_trainer *t, char hash[CLT_HASH_TEXT]) {
    hash[0] = 0;
    for (int g = 0; g < t->n_buckets; g++) {
        char name[64];
        clt_memory *memory;
        size_t bytes = (size_t)t->buckets[g].elements * sizeof(float);
        CLT_TRY(clt_state_store_get(t->store, clt_bucket_name("parameters", g, name), bytes, &memory));
        CLT_TRY(hash_memory(memory, bytes, hash));
    }
    return CLT_OK;
}

/* Rank 0's parameters and optimizer state become everyone's. */
static clt_status mend(clt_trainer *t, int first, bool differs) {
    if (clt_comm_rank(t->options.comm) == 0)
        clt_log_message(CLT_LOG_WARNING, "after step %lld the parameters of rank %d are not those of rank 0, which all take over", (long long)t->steps, first);
    t->taking_over = differs;
    CLT_TRY(clt_parallel_share(t, 0));
    t->taking_over = false;
    t->drifts++;
    return CLT_OK;
}

clt_status clt_parallel_check_drift(clt_trainer *t) {
    typedef struct finding {
        clt_parallel_report report;
        char hash[CLT_HASH_TEXT];
    } finding;
    clt_comm *comm = t->options.comm;
    finding own = {.hash = ""}, *all = NULL;
    if (!comm || clt_comm_size(comm) == 1 || t->options.drift_steps <= 0 || t->steps % t->options.drift_steps) return CLT_OK;
    own.report = clt_parallel_make_report(hash_parameters(t, own.hash));
    clt_status status = clt_parallel_gather_new(comm, &own, sizeof own, &all);
    if (status == CLT_OK) status = clt_parallel_judge(comm, &all->report, sizeof own);
    int first = 0;
    while (status == CLT_OK && first < clt_comm_size(comm) && !strcmp(all[first].hash, all[0].hash)) first++;
    if (status == CLT_OK && first < clt_comm_size(comm)) status = mend(t, first, strcmp(own.hash, all[0].hash) != 0);
    clt_free(all);
    return status;
}

int64_t clt_trainer_drifts(const clt_trainer *t) {
    return t ? t->drifts : 0;
}
