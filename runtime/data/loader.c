/*
 * Threads gather batches into a ring of slots; the caller takes them out in order. The batch
 * that the caller has at hand keeps its slot until the next call, so the ring has one more
 * than are prefetched. A slot is opened by one thread, which finds the indices of its samples, and
 * filled by all: each takes a few samples at a time.
 *
 * Where several ranks share the batches, each gathers its piece alone. Pieces are cut by sums of shares: of S samples,
 * those from S first/batch to S last/batch, rounded down. So a full batch is cut as the shares say, any
 * other in proportion, and no sample is in two pieces or in none.
 */
#include "runtime/data/data.h"
#include "runtime/base/thread.h"

#include <math.h>
#include <string.h>

enum { LEFT_OUT = -1, DEFAULT_BATCH = 32, DEFAULT_PREFETCH = 2, MOST_PREFETCH = 1024, MOST_THREADS = 256, MOST_BROKEN = 100 /* one after the other */ };

typedef struct slot {
    clt_batch batch;  /* its arrays lie in the loader's memory */
    int64_t *indices; /* of its samples, in the data set; LEFT_OUT */
    int64_t epoch;
    int64_t begun, done; /* samples that a thread has taken, and those that are there */
    int64_t broken;      /* that could not be fetched */
    clt_status status;   /* of the first sample that failed */
    int64_t failed;      /* which it is */
    char *detail;
    clt_text warnings;   /* of samples that could not be fetched, a line each */
} slot;

struct clt_loader {
    const clt_dataset *dataset;
    int64_t batch, batches;
    int64_t share_first, share_last; /* of a full batch: the own piece's samples */
    bool shuffle;
    clt_broken on_broken;

    /* The caller's alone. */
    clt_loader_position position; /* what is handed out next */
    bool holds_batch;             /* the caller may still read the slot before `taken` */
    uint64_t taken;
    int64_t broken;
    double waited; /* seconds */
    int running; /* threads that there are */
    clt_thread *threads;
    int n_threads; /* that are wanted */
    int64_t chunk; /* samples that a thread takes at a time */

    /* Of the thread that opens a slot. */
    clt_loader_position gathering; /* what is gathered next */
    clt_indices order;             /* of this epoch's samples; none: as they are */
    double *weight_sums;           /* of each sample's weight and those before it; NULL: each sample once */
    bool ordered;

    /* Under the mutex. Counts since the threads started; slot number is count % slots. */
    clt_mutex mutex;
    clt_condition changed;
    bool stop, opening;
    uint64_t opened, released;

    int slots;
    slot *ring;
    char *memory;
    int64_t *indices; /* of all slots */
};

/* ---- the threads ---- */

/* The first sample whose sum is above `at`, which is below the last one's. */
static int64_t find_sum(const double *sums, int64_t n, double at) {
    int64_t low = 0, high = n - 1;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (sums[middle] > at) high = middle;
        else low = middle + 1;
    }
    return low;
}

static void draw_weighted(clt_loader *loader, clt_random *random) {
    int64_t n = loader->dataset->samples;
    double all = loader->weight_sums[n - 1], most = nextafter(all, 0);
    for (int64_t i = 0; i < n; i++) clt_indices_set(&loader->order, i, find_sum(loader->weight_sums, n, fmin(clt_random_uniform(random) * all, most)));
}

static void order_epoch(clt_loader *loader) {
    if (!clt_indices_there(&loader->order)) return;
    clt_random random;
    clt_random_init(&random, loader->gathering.seed,
                    CLT_RANDOM_STREAM(CLT_RANDOM_LOADER, loader->gathering.epoch));
    if (loader->weight_sums) draw_weighted(loader, &random);
    else clt_indices_permute(&loader->order, loader->dataset->samples, &random);
}

/* batch x samples fits: see find_part. */
static int64_t cut(const clt_loader *loader, int64_t samples, int64_t at) {
    return samples == loader->batch ? at : samples * at / loader->batch;
}

static void find_samples(const clt_loader *loader, slot *s) {
    int64_t first = loader->gathering.batch * loader->batch;
    int64_t samples = CLT_MIN(loader->batch, loader->dataset->samples - first);
    clt_batch *batch = &s->batch;
    batch->samples = cut(loader, samples, loader->share_last) - cut(loader, samples, loader->share_first);
    first += cut(loader, samples, loader->share_first);
    for (int i = 0; i < batch->n_fields; i++) batch->fields[i].shape.dims[0] = batch->samples;
    for (int64_t i = 0; i < batch->samples; i++) s->indices[i] = clt_indices_at(&loader->order, first + i);
    s->epoch = loader->gathering.epoch;
    s->begun = s->done = s->broken = 0;
    s->status = CLT_OK;
    clt_text_free(&s->warnings);
}

/* With the mutex, which is given back meanwhile: an epoch of millions takes a while to be ordered. */
static void open_slot(clt_loader *loader) {
    loader->opening = true;
    clt_mutex_unlock(&loader->mutex);
    if (loader->gathering.batch == loader->batches) {
        loader->gathering.batch = 0;
        loader->gathering.epoch++;
        loader->ordered = false;
    }
    if (!loader->ordered) order_epoch(loader);
    loader->ordered = true;
    find_samples(loader, &loader->ring[loader->opened % (uint64_t)loader->slots]);
    loader->gathering.batch++;
    clt_mutex_lock(&loader->mutex);
    loader->opening = false;
    loader->opened++;
    clt_condition_wake_all(&loader->changed);
}

static void note_broken(clt_text *warnings, const char *becomes) {
    clt_text_add(warnings, "%s; %s\n", clt_error_detail(), becomes);
}

/* When the batch is handed out: others nobody gets. */
static void log_broken(slot *s) {
    for (char *line = s->warnings.data, *end; line && *line && (end = strchr(line, '\n')); line = end + 1)
        clt_log_message(CLT_LOG_WARNING, "%.*s", (int)(end - line), line);
}

/* Sample number `at` of a slot. `broken` counts those that could not be fetched. */
static clt_status fetch(const clt_loader *loader, const slot *s, int64_t at, int64_t *broken, clt_text *warnings) {
    const clt_dataset *d = loader->dataset;
    void *fields[CLT_MAX_FIELDS];
    for (int i = 0; i < d->n_fields; i++) fields[i] = (char *)(uintptr_t)s->batch.fields[i].data + (size_t)at * d->fields[i].sample_bytes;
    clt_sample sample = {.index = s->indices[at], .seed = loader->gathering.seed, .epoch = s->epoch};
    clt_status status = clt_dataset_fetch(d, &sample, fields);
    if (status == CLT_OK || status == CLT_E_NO_MEMORY || loader->on_broken == CLT_BROKEN_STOP) return status;
    if (loader->on_broken == CLT_BROKEN_LEAVE_OUT) {
        note_broken(warnings, "it is left out");
        ++*broken;
        s->indices[at] = LEFT_OUT;
        return CLT_OK;
    }
    ++*broken;
    for (int tries = 1; status < 0 && status != CLT_E_NO_MEMORY && tries <= MOST_BROKEN; tries++) {
        note_broken(warnings, tries < MOST_BROKEN ? "the next sample takes its place" : "so did all the samples before it");
        s->indices[at] = sample.index = (sample.index + 1) % d->samples;
        status = clt_dataset_fetch(d, &sample, fields);
    }
    return status;
}

/* Of those that fail in a batch, the first is told, whatever threads do. */
static void keep_error(slot *s, clt_status status, int64_t at) {
    if (s->status < 0 && s->failed < at) return;
    clt_free(s->detail);
    s->detail = clt_strdup(clt_error_detail());
    s->status = status;
    s->failed = at;
}

/* With the mutex, which is given back meanwhile. */
static void fill_slot(clt_loader *loader, slot *s) {
    clt_status status = CLT_OK;
    int64_t samples = s->batch.samples, at = s->begun, last = CLT_MIN(at + loader->chunk, samples), count = last - at, broken = 0;
    clt_text warnings = {0};
    s->begun = last;
    if (last == samples) clt_condition_wake_all(&loader->changed); /* there is a slot to be opened */
    clt_mutex_unlock(&loader->mutex);
    while (at < last && (status = fetch(loader, s, at, &broken, &warnings)) == CLT_OK) at++;
    clt_mutex_lock(&loader->mutex);
    if (status < 0) keep_error(s, status, at);
    s->broken += broken;
    if (warnings.length) clt_text_add_bytes(&s->warnings, warnings.data, warnings.length);
    clt_text_free(&warnings);
    s->done += count;
    if (s->done == samples) clt_condition_wake_all(&loader->changed);
}

/* The slot that was opened last, if it has samples that no thread has taken. */
static slot *slot_to_fill(const clt_loader *loader) {
    slot *s = loader->opened > 0 ? &loader->ring[(loader->opened - 1) % (uint64_t)loader->slots] : NULL;
    return s && s->begun < s->batch.samples ? s : NULL;
}

static void *gather_batches(void *argument) {
    clt_loader *loader = argument;
    clt_mutex_lock(&loader->mutex);
    while (!loader->stop) {
        slot *s = slot_to_fill(loader);
        if (s && !loader->opening) fill_slot(loader, s);
        else if (!loader->opening && loader->opened - loader->released < (uint64_t)loader->slots) open_slot(loader);
        else clt_condition_wait(&loader->changed, &loader->mutex);
    }
    clt_mutex_unlock(&loader->mutex);
    return NULL;
}

/* One thread is enough, where the system has no more. */
static clt_status start(clt_loader *loader) {
    if (loader->running) return CLT_OK;
    loader->gathering = loader->position;
    loader->opened = loader->released = loader->taken = 0;
    loader->stop = loader->opening = loader->ordered = false;
    clt_status status = CLT_OK;
    while (loader->running < loader->n_threads && status == CLT_OK) {
        status = clt_thread_start(&loader->threads[loader->running], gather_batches, loader);
        if (status == CLT_OK) loader->running++;
    }
    return loader->running ? CLT_OK : status;
}

static void stop(clt_loader *loader) {
    loader->holds_batch = false;
    if (!loader->running) return;
    clt_mutex_lock(&loader->mutex);
    loader->stop = true;
    clt_condition_wake_all(&loader->changed);
    clt_mutex_unlock(&loader->mutex);
    while (loader->running) clt_thread_join(loader->threads[--loader->running]);
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
    if (options->threads == 0) options->threads = 1;
    if (options->threads < 0 || options->threads > MOST_THREADS)
        return clt_fail(CLT_E_INVALID, "a loader of %d threads; up to %d", options->threads, MOST_THREADS);
    if (options->broken != CLT_BROKEN_STOP && options->broken != CLT_BROKEN_SKIP && options->broken != CLT_BROKEN_LEAVE_OUT)
        return clt_fail(CLT_E_INVALID, "%d is no way to treat broken samples; expected CLT_BROKEN_STOP, _SKIP or _LEAVE_OUT", (int)options->broken);
    if (options->weights && !options->shuffle) return clt_fail(CLT_E_INVALID, "a loader with weights, by which samples are drawn, but without shuffle");
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

static void free_ring(slot *ring, int slots) {
    for (int i = 0; ring && i < slots; i++) {
        clt_free(ring[i].detail);
        clt_text_free(&ring[i].warnings);
    }
    clt_free(ring);
}

static void set_out_ring(clt_loader *loader, const size_t *offsets, size_t bytes, int64_t piece) {
    for (int i = 0; i < loader->slots; i++) {
        clt_batch *batch = &loader->ring[i].batch;
        batch->indices = loader->ring[i].indices = loader->indices + i * piece;
        batch->n_fields = loader->dataset->n_fields;
        for (int f = 0; f < batch->n_fields; f++) {
            batch->fields[f] = clt_dataset_array(loader->dataset, f);
            batch->fields[f].data = loader->memory + (size_t)i * bytes + offsets[f];
        }
    }
}

/* Slots for pieces of up to `piece` samples, in the place of those that there are. On error those stay. */
static clt_status make_ring(clt_loader *loader, int64_t piece) {
    size_t offsets[CLT_MAX_FIELDS], bytes, all, samples;
    piece = CLT_MIN(piece, loader->dataset->samples);
    CLT_TRY(measure_slot(loader, piece, offsets, &bytes));
    if (!clt_mul_size(bytes, (size_t)loader->slots, &all) || !clt_mul_size((size_t)piece * sizeof(int64_t), (size_t)loader->slots, &samples))
        return clt_fail_memory(SIZE_MAX);
    char *memory = clt_alloc(all);
    int64_t *indices = clt_alloc(samples);
    slot *ring = clt_calloc((size_t)loader->slots, sizeof *ring);
    if (!memory || !indices || !ring) {
        clt_free(memory);
        clt_free(indices);
        clt_free(ring);
        return clt_fail_memory(all);
    }
    clt_free(loader->memory);
    clt_free(loader->indices);
    free_ring(loader->ring, loader->slots);
    loader->memory = memory;
    loader->indices = indices;
    loader->ring = ring;
    loader->chunk = loader->n_threads == 1 ? INT64_MAX / 2 : piece / (4 * loader->n_threads) + 1; /* few, so that all end together */
    set_out_ring(loader, offsets, bytes, piece);
    return CLT_OK;
}

static clt_status make_order(clt_loader *loader) {
    return loader->shuffle ? clt_indices_create(&loader->order, loader->dataset->samples, loader->dataset->samples) : CLT_OK;
}

static clt_status add_weights(clt_loader *loader, const double *weights) {
    double sum = 0;
    int64_t n = loader->dataset->samples;
    if (!weights) return CLT_OK;
    size_t bytes;
    if (!clt_mul_size((size_t)n, sizeof *loader->weight_sums, &bytes)) return clt_fail_memory(SIZE_MAX);
    loader->weight_sums = clt_alloc(bytes);
    if (!loader->weight_sums) return clt_fail_memory(bytes);
    for (int64_t i = 0; i < n; i++) {
        if (!(weights[i] >= 0)) return clt_fail(CLT_E_INVALID, "weight %lld of a loader is %g: expected 0 or more", (long long)i, weights[i]);
        loader->weight_sums[i] = sum += weights[i];
    }
    if (!(sum > 0) || !isfinite(sum)) return clt_fail(CLT_E_INVALID, "the weights of a loader add up to %g: expected a finite sum above 0", sum);
    return CLT_OK;
}

static void free_memory(clt_loader *loader) {
    clt_free(loader->weight_sums);
    clt_indices_free(&loader->order);
    free_ring(loader->ring, loader->slots);
    clt_free(loader->indices);
    clt_free(loader->memory);
    clt_free(loader->threads);
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
    l->on_broken = o.broken;
    l->n_threads = o.threads;
    l->position.seed = o.seed;
    l->threads = clt_calloc((size_t)o.threads, sizeof *l->threads);
    clt_status status = l->threads ? CLT_OK : clt_fail_memory((size_t)o.threads * sizeof *l->threads);
    CLT_TRY_GOTO(status);
    CLT_TRY_GOTO(find_part(l->batch, o.rank, o.ranks, o.shares, &l->share_first, &l->share_last));
    CLT_TRY_GOTO(make_ring(l, l->share_last - l->share_first));
    CLT_TRY_GOTO(make_order(l));
    CLT_TRY_GOTO(add_weights(l, o.weights));
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

static void wait_for_slot(clt_loader *loader, const slot *s) {
    double began = 0;
    clt_mutex_lock(&loader->mutex);
    while (loader->opened == loader->taken || s->done < s->batch.samples) {
        if (!(began > 0)) began = clt_seconds();
        clt_condition_wait(&loader->changed, &loader->mutex);
    }
    clt_mutex_unlock(&loader->mutex);
    if (began > 0) loader->waited += clt_seconds() - began;
}

/* Moves what is there together. */
static void close_gaps(clt_loader *loader, slot *s) {
    clt_batch *batch = &s->batch;
    int64_t kept = 0;
    for (int64_t i = 0; i < batch->samples; i++) {
        if (s->indices[i] == LEFT_OUT) continue;
        for (int f = 0; f < batch->n_fields && kept < i; f++) {
            size_t bytes = loader->dataset->fields[f].sample_bytes;
            char *at = (char *)(uintptr_t)batch->fields[f].data;
            memcpy(at + (size_t)kept * bytes, at + (size_t)i * bytes, bytes);
        }
        s->indices[kept++] = s->indices[i];
    }
    batch->samples = kept;
    for (int f = 0; f < batch->n_fields; f++) batch->fields[f].shape.dims[0] = kept;
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
    slot *s = &loader->ring[loader->taken % (uint64_t)loader->slots];
    wait_for_slot(loader, s);
    log_broken(s);
    if (s->status < 0) {
        clt_status status = s->status;
        stop(loader);
        return clt_fail_again(status, s->detail ? s->detail : "");
    }
    if (s->broken && loader->on_broken == CLT_BROKEN_LEAVE_OUT) close_gaps(loader, s);
    *batch = s->batch;
    loader->taken++;
    loader->broken += s->broken;
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

int64_t clt_loader_broken(const clt_loader *loader) {
    return loader ? loader->broken : 0;
}

double clt_loader_waited_seconds(const clt_loader *loader) {
    return loader ? loader->waited : 0;
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
