/*
 * Optimizer state that is cut between the ranks (options.shard): put together on the host for checkpoints, and
 * handed out again.
 */
#include <string.h>

#include "runtime/train/parallel.h"

int clt_trainer_shards(const clt_trainer *t) {
    return t->options.comm && t->options.shard ? clt_comm_size(t->options.comm) : 1;
}

static float **whole_of(const clt_trainer *t, int state, int group) {
    return &t->wholes[state * t->n_buckets + group];
}

const float *clt_shards_whole(const clt_trainer *t, int state, int group) {
    return t->wholes ? *whole_of(t, state, group) : NULL;
}

clt_status clt_shards_make(clt_trainer *t) {
    const char *names[CLT_MAX_OPTIMIZER_STATES];
    int n_states = clt_optimizer_states(&t->options, names);
    clt_shards_drop(t);
    t->wholes = clt_calloc((size_t)(n_states * t->n_buckets) + 1, sizeof *t->wholes);
    if (!t->wholes) return clt_fail_memory((size_t)(n_states * t->n_buckets) * sizeof *t->wholes);
    for (int s = 0; s < n_states; s++)
        for (int g = 0; g < t->n_buckets; g++) {
            size_t bytes = (size_t)t->buckets[g].elements * sizeof(float);
            *whole_of(t, s, g) = clt_alloc(bytes);
            if (!*whole_of(t, s, g)) return clt_fail_memory(bytes);
            memset(*whole_of(t, s, g), 0, bytes);
        }
    return CLT_OK;
}

void clt_shards_drop(clt_trainer *t) {
    const char *names[CLT_MAX_OPTIMIZER_STATES];
    int n = clt_optimizer_states(&t->options, names) * t->n_buckets;
    for (int i = 0; t->wholes && i < n; i++) clt_free(t->wholes[i]);
    clt_free(t->wholes);
    t->wholes = NULL;
}

/* ---- between the device's part and the whole ---- */

typedef clt_status part_function(clt_trainer *t, float *whole, size_t elements, clt_memory *part, int argument);

static clt_status for_all(clt_trainer *t, part_function *function, int argument) {
    const char *names[CLT_MAX_OPTIMIZER_STATES];
    int n_states = clt_optimizer_states(&t->options, names);
    for (int s = 0; s < n_states; s++)
        for (int g = 0; g < t->n_buckets; g++) {
            char name[64];
            clt_memory *memory;
            size_t elements = (size_t)(t->buckets[g].elements / clt_trainer_shards(t));
            CLT_TRY(clt_state_store_get(t->store, clt_bucket_name(names[s], g, name), elements * sizeof(float), &memory));
            CLT_TRY(function(t, *whole_of(t, s, g), elements, memory, argument));
        }
    return CLT_OK;
}

static clt_status gather(clt_trainer *t, float *whole, size_t elements, clt_memory *part, int unused) {
    size_t bytes = elements * sizeof *whole;
    (void)unused;
    CLT_TRY(clt_memory_read(part, 0, whole + (size_t)clt_comm_rank(t->options.comm) * elements, bytes));
    return clt_parallel_gather(t->options.comm, whole, bytes);
}

static clt_status hand_out(clt_trainer *t, float *whole, size_t elements, clt_memory *part, int root) {
    clt_comm *comm = t->options.comm;
    CLT_TRY(clt_comm_broadcast(comm, whole, elements * (size_t)clt_comm_size(comm), CLT_F32, root, NULL));
    return clt_memory_write(part, 0, whole + (size_t)clt_comm_rank(comm) * elements, elements * sizeof *whole);
}

clt_status clt_shards_gather(clt_trainer *t) {
    CLT_TRY(clt_parallel_agree(t->options.comm, clt_shards_make(t)));
    return for_all(t, gather, 0);
}

clt_status clt_shards_hand_out(clt_trainer *t, int root) {
    return for_all(t, hand_out, root);
}
