/*
 * A thread gathers batches into a ring of buffers; the caller takes them out in order. The batch
 * that the caller has at hand keeps its buffer until the next call, so the ring has one more
 * than are prefetched.
 *
 * Where several ranks share the batches, each gathers its piece alone. Pieces are cut by sums of shares: of S samples,
 * those from S first/batch to S last/batch, rounded down. So a full batch is cut as the shares say, any
 * other in proportion, and no sample is in two pieces or in none.
 */
#include "runtime/data/data.h"
#include "runtime/base/thread.h"

#include <string.h>

enum { DEFAULT_BATCH = 32, DEFAULT_PREFETCH = 2, MOST_PREFETCH = 1024 };

struct clt_loader {
    const clt_dataset *dataset;
    int64_t batch, batches;
    int64_t share_first, share_last; /* of a full batch: the own piece's samples */
    bool shuffle;

    /* The caller's alone. */
    clt_loader_position position; /* what is handed out next */
    bool holds_batch;             /* the caller may still read the slot before `taken` */
    bool running;                 /* there is a thread */
    clt_thread thread;

    /* The thread's alone while it runs. */
    clt_loader_position gathering; /* what is gathered next */
    int64_t *order;                /* of this epoch's samples; NULL: as they are */

    /* Under the mutex. Counts since the thread started; slot number is count % slots. */
    clt_mutex mutex;
    clt_condition changed;
    bool stop;
    uint64_t filled, released;
    uint64_t taken; /* the caller's alone */

    int slots;
    clt_batch *ring; /* their arrays lie in `memory` */
    char *memory;
};

/* ---- the thread ---- */

static void order_epoch(clt_loader *loader) {
    if (!loader->order) return;
    clt_random random;
    clt_random_init(&random, loader->gathering.seed,
                    CLT_RANDOM_STREAM(CLT_RANDOM_LOADER, loader->gathering.epoch));
    clt_random_permutation(&random, loader->order, loader->dataset->samples);
}

static void gather_field(const clt_loader *loader, int field, int64_t first, int64_t count, void *to) {
    const clt_field *f = &loader->dataset->fields[field];
    if (loader->order) clt_dataset_gather(loader->dataset, field, loader->order + first, count, to);
    else
        memcpy(to, (const char *)f->data + (size_t)first * f->sample_bytes,
               (size_t)count * f->sample_bytes);
}

/* batch x samples fits: see find_part. */
static int64_t cut(const clt_loader *loader, int64_t samples, int64_t at) {
    return samples == loader->batch ? at : samples * at / loader->batch;
}

static void gather(const clt_loader *loader, clt_batch *batch) {
    int64_t first = loader->gathering.batch * loader->batch;
    int64_t samples = CLT_MIN(loader->batch, loader->dataset->samples - first);
    batch->samples = cut(loader, samples, loader->share_last) - cut(loader, samples, loader->share_first);
    first += cut(loader, samples, loader->share_first);
    for (int i = 0; i < batch->n_fields; i++) {
        batch->fields[i].shape.dims[0] = batch->samples;
        gather_field(loader, i, first, batch->samples, (void *)batch->fields[i].data);
    }
}

/* Waits for a free slot; NULL when the loader is being stopped. */
static clt_batch *free_slot(clt_loader *loader) {
    clt_mutex_lock(&loader->mutex);
    while (!loader->stop && loader->filled - loader->released == (uint64_t)loader->slots)
        clt_condition_wait(&loader->changed, &loader->mutex);
    clt_batch *slot = loader->stop ? NULL : &loader->ring[loader->filled % (uint64_t)loader->slots];
    clt_mutex_unlock(&loader->mutex);
    return slot;
}

static void announce(clt_loader *loader) {
    clt_mutex_lock(&loader->mutex);
    loader->filled++;
    clt_condition_wake_all(&loader->changed);
    clt_mutex_unlock(&loader->mutex);
}

static void *gather_batches(void *argument) {
    clt_loader *loader = argument;
    bool ordered = false;
    for (clt_batch *slot; (slot = free_slot(loader));) {
        if (loader->gathering.batch == loader->batches) {
            loader->gathering.batch = 0;
            loader->gathering.epoch++;
            ordered = false;
        }
        if (!ordered) order_epoch(loader);
        ordered = true;
        gather(loader, slot);
        loader->gathering.batch++;
        announce(loader);
    }
    return NULL;
}

static clt_status start(clt_loader *loader) {
    if (loader->running) return CLT_OK;
    loader->gathering = loader->position;
    loader->filled = loader->released = loader->taken = 0;
    loader->stop = false;
    CLT_TRY(clt_thread_start(&loader->thread, gather_batches, loader));
    loader->running = true;
    return CLT_OK;
}

static void stop(clt_loader *loader) {
    loader->holds_batch = false;
    if (!loader->running) return;
    clt_mutex_lock(&loader->mutex);
    loader->stop = true;
    clt_condition_wake_all(&loader->changed);
    clt_mutex_unlock(&loader->mutex);
    clt_thread_join(loader->thread);
    loader->running = false;
}

/* ---- the caller ---- */

static clt_status resolve(const clt_dataset *dataset, const clt_loader_options *given,
                          clt_loader_options *options) {
    *options = given ? *given : (clt_loader_options){0};
    if (options->batch == 0) options->batch = DEFAULT_BATCH;
    if (options->prefetch == 0) options->prefetch = DEFAULT_PREFETCH;
    if (options->batch < 0)
        return clt_fail(CLT_E_INVALID, "a loader with a batch of %lld", (long long)options->batch);
    if (options->prefetch < 0 || options->prefetch > MOST_PREFETCH)
        return clt_fail(CLT_E_INVALID, "a loader that prefetches %d batches; up to %d",
                        options->prefetch, MOST_PREFETCH);
    if (options->drop_last && options->batch > dataset->samples)
        return clt_fail(CLT_E_INVALID, "a loader of batches of %lld would drop all of %lld samples",
                        (long long)options->batch, (long long)dataset->samples);
    return CLT_OK;
}

static clt_status fail_shares(int64_t sum, int64_t batch) {
    return clt_fail(CLT_E_INVALID, "a loader's shares are %lld samples in all, of a batch of %lld", (long long)sum,
                    (long long)batch);
}

/* Checks which part of a batch this rank has, and finds where it lies. */
static clt_status find_part(int64_t batch, int rank, int ranks, const int64_t *shares, int64_t *first, int64_t *last) {
    int64_t sum = 0;
    if (ranks == 0) ranks = 1;
    if (rank < 0 || rank >= ranks)
        return clt_fail(CLT_E_INVALID, "a loader of rank %d among %d", rank, ranks);
    if (ranks > 1 && batch > INT32_MAX)
        return clt_fail(CLT_E_INVALID, "a batch of %lld is too large to be shared", (long long)batch);
    *first = batch * rank / ranks;
    *last = batch * (rank + 1) / ranks;
    for (int r = 0; shares && r < ranks; r++) {
        if (shares[r] < 0 || shares[r] > batch - sum) return fail_shares(shares[r] < 0 ? shares[r] : sum + shares[r], batch);
        if (r == rank) *first = sum;
        sum += shares[r];
        if (r == rank) *last = sum;
    }
    return shares && sum != batch ? fail_shares(sum, batch) : CLT_OK;
}

/* Bytes of a slot, each field of a batch on its own cache lines. */
static clt_status measure_slot(const clt_loader *loader, int64_t samples, size_t *offsets,
                               size_t *bytes) {
    *bytes = 0;
    for (int i = 0; i < loader->dataset->n_fields; i++) {
        size_t field;
        offsets[i] = *bytes;
        if (!clt_mul_size(loader->dataset->fields[i].sample_bytes, (size_t)samples, &field) ||
            field > SIZE_MAX / 2 - *bytes)
            return clt_fail_memory(SIZE_MAX);
        *bytes += (field + 63) / 64 * 64;
    }
    return CLT_OK;
}

static void fill_ring(clt_loader *loader, const size_t *offsets, size_t bytes) {
    for (int s = 0; s < loader->slots; s++) {
        clt_batch *slot = &loader->ring[s];
        slot->n_fields = loader->dataset->n_fields;
        for (int i = 0; i < slot->n_fields; i++) {
            slot->fields[i] = clt_dataset_array(loader->dataset, i);
            slot->fields[i].data = loader->memory + (size_t)s * bytes + offsets[i];
        }
    }
}

/* Buffers for pieces of up to `piece` samples, in the place of those that there are. On error those stay. */
static clt_status make_ring(clt_loader *loader, int64_t piece) {
    size_t offsets[CLT_MAX_FIELDS], bytes, all;
    CLT_TRY(measure_slot(loader, CLT_MIN(piece, loader->dataset->samples), offsets, &bytes));
    if (!clt_mul_size(bytes, (size_t)loader->slots, &all)) return clt_fail_memory(SIZE_MAX);
    char *memory = clt_alloc(all);
    clt_batch *ring = clt_calloc((size_t)loader->slots, sizeof *ring);
    if (!memory || !ring) {
        clt_free(memory);
        clt_free(ring);
        return clt_fail_memory(all);
    }
    clt_free(loader->memory);
    clt_free(loader->ring);
    loader->memory = memory;
    loader->ring = ring;
    fill_ring(loader, offsets, bytes);
    return CLT_OK;
}

static clt_status make_order(clt_loader *loader) {
    if (!loader->shuffle) return CLT_OK;
    size_t bytes;
    if (!clt_mul_size((size_t)loader->dataset->samples, sizeof(int64_t), &bytes))
        return clt_fail_memory(SIZE_MAX);
    loader->order = clt_alloc(bytes);
    return loader->order ? CLT_OK : clt_fail_memory(bytes);
}

static void free_memory(clt_loader *loader) {
    clt_free(loader->order);
    clt_free(loader->ring);
    clt_free(loader->memory);
    clt_free(loader);
}

clt_status clt_loader_create(clt_loader **loader, const clt_dataset *dataset,
                             const clt_loader_options *options) {
    if (!loader || !dataset)
        return clt_fail(CLT_E_INVALID, "clt_loader_create: loader or dataset is NULL");
    clt_loader_options o;
    CLT_TRY(resolve(dataset, options, &o));
    CLT_TRY(clt_low_check(dataset));
    clt_loader *l = clt_calloc(1, sizeof *l);
    if (!l) return clt_fail_memory(sizeof *l);
    l->dataset = dataset;
    l->batch = o.batch;
    l->batches = dataset->samples / o.batch + (!o.drop_last && dataset->samples % o.batch != 0);
    l->shuffle = o.shuffle;
    l->slots = o.prefetch + 1;
    l->position.seed = o.seed;
    clt_status status;
    CLT_TRY_GOTO(find_part(l->batch, o.rank, o.ranks, o.shares, &l->share_first, &l->share_last));
    CLT_TRY_GOTO(make_ring(l, l->share_last - l->share_first));
    CLT_TRY_GOTO(make_order(l));
    CLT_TRY_GOTO(clt_mutex_init(&l->mutex));
    status = clt_condition_init(&l->changed);
    if (status < 0) {
        clt_mutex_destroy(&l->mutex);
        goto fail;
    }
    *loader = l;
    return CLT_OK;
fail:
    free_memory(l);
    return status;
}

void clt_loader_destroy(clt_loader *loader) {
    if (!loader) return;
    stop(loader);
    clt_condition_destroy(&loader->changed);
    clt_mutex_destroy(&loader->mutex);
    free_memory(loader);
}

static void release_batch(clt_loader *loader) {
    if (!loader->holds_batch) return;
    loader->holds_batch = false;
    clt_mutex_lock(&loader->mutex);
    loader->released++;
    clt_condition_wake_all(&loader->changed);
    clt_mutex_unlock(&loader->mutex);
}

clt_status clt_loader_next(clt_loader *loader, clt_batch *batch) {
    if (!loader || !batch) return clt_fail(CLT_E_INVALID, "clt_loader_next: loader or batch is NULL");
    release_batch(loader);
    if (loader->position.batch == loader->batches) {
        loader->position.batch = 0;
        loader->position.epoch++;
        return CLT_END;
    }
    CLT_TRY(start(loader));
    clt_mutex_lock(&loader->mutex);
    while (loader->filled == loader->taken) clt_condition_wait(&loader->changed, &loader->mutex);
    clt_mutex_unlock(&loader->mutex);
    *batch = loader->ring[loader->taken++ % (uint64_t)loader->slots];
    loader->holds_batch = true;
    loader->position.batch++;
    return CLT_OK;
}

clt_status clt_loader_set_shares(clt_loader *loader, int rank, int ranks, const int64_t *shares) {
    int64_t first, last;
    if (!loader) return clt_fail(CLT_E_INVALID, "clt_loader_set_shares: loader is NULL");
    CLT_TRY(find_part(loader->batch, rank, ranks, shares, &first, &last));
    stop(loader);
    CLT_TRY(make_ring(loader, last - first));
    loader->share_first = first;
    loader->share_last = last;
    return CLT_OK;
}

int64_t clt_loader_batch(const clt_loader *loader) {
    return loader ? loader->batch : 0;
}

int64_t clt_loader_batches(const clt_loader *loader) {
    return loader ? loader->batches : 0;
}

clt_loader_position clt_loader_get_position(const clt_loader *loader) {
    return loader ? loader->position : (clt_loader_position){0};
}

clt_status clt_loader_set_position(clt_loader *loader, clt_loader_position position) {
    if (!loader) return clt_fail(CLT_E_INVALID, "clt_loader_set_position: loader is NULL");
    if (position.epoch < 0 || position.epoch >> 48 || position.batch < 0 ||
        position.batch > loader->batches)
        return clt_fail(CLT_E_RANGE, "epoch %lld, batch %lld is not a position of a loader of %lld batches",
                        (long long)position.epoch, (long long)position.batch,
                        (long long)loader->batches);
    stop(loader);
    loader->position = position;
    return CLT_OK;
}
