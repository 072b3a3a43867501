#include "comm_measure.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/clock.h"
#include "tools/common/message.h"

enum { MOST_SAMPLES = 101, LEAST_SAMPLES = 5, MOST_REPEATS = 1000 };

/* Small whole numbers, whose sums are exact. */
static int check(clt_comm *comm, float *data, size_t count) {
    int n = clt_comm_size(comm), rank = clt_comm_rank(comm);
    for (size_t i = 0; i < count; i++) data[i] = (float)((rank + 1) * (int)(i % 17));
    clt_status status = clt_comm_all_reduce(comm, data, count, CLT_F32, CLT_REDUCE_SUM, NULL);
    if (status < 0) return library_error(status, "all-reduce");
    for (size_t i = 0; i < count; i++) {
        float wanted = (float)(n * (n + 1) / 2 * (int)(i % 17));
        if (data[i] != wanted)
            return run_error("WRONG RESULT: element %zu of %zu is %g, not %g", i, count, (double)data[i], (double)wanted);
    }
    return 0;
}

/* The slowest rank's. */
static int agree(clt_comm *comm, double *seconds) {
    float most = (float)*seconds;
    clt_status status = clt_comm_all_reduce(comm, &most, 1, CLT_F32, CLT_REDUCE_MAX, NULL);
    if (status < 0) return library_error(status, "all-reduce");
    *seconds = (double)most;
    return 0;
}

static int time_all_reduce(clt_comm *comm, float *data, size_t count, int repeats, double *seconds) {
    clt_status status = clt_comm_barrier(comm, NULL);
    double begun = now_seconds();
    for (int i = 0; i < repeats && status == CLT_OK; i++)
        status = clt_comm_all_reduce(comm, data, count, CLT_F32, CLT_REDUCE_SUM, NULL);
    *seconds = (now_seconds() - begun) / repeats;
    return status < 0 ? library_error(status, "all-reduce") : agree(comm, seconds);
}

static int time_raw(clt_comm *comm, raw_ring *ring, size_t bytes, int repeats, double *seconds) {
    clt_status status = clt_comm_barrier(comm, NULL);
    if (status < 0) return library_error(status, "barrier");
    double begun = now_seconds();
    int code = 0;
    for (int i = 0; i < repeats && !code; i++) code = raw_ring_exchange(ring, bytes);
    *seconds = (now_seconds() - begun) / repeats;
    return code ? code : agree(comm, seconds);
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int n) {
    qsort(values, (size_t)n, sizeof *values, ascending);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* The same numbers on all ranks, from times that are. */
static void plan(comm_row *row, double all_reduce, double raw, double seconds) {
    double repeats = 2e-3 / all_reduce;
    row->repeats = repeats < 1 ? 1 : repeats > MOST_REPEATS ? MOST_REPEATS : (int)repeats;
    double samples = seconds / ((all_reduce + raw) * row->repeats);
    row->samples = samples < LEAST_SAMPLES ? LEAST_SAMPLES : samples > MOST_SAMPLES ? MOST_SAMPLES : (int)samples;
}

/* ring NULL: plain TCP is left out. */
static int measure(comm_row *row, clt_comm *comm, raw_ring *ring, float *data, double seconds) {
    double ours[MOST_SAMPLES], raw[MOST_SAMPLES] = {0}, first = 0, first_raw = 0;
    size_t count = row->bytes / sizeof *data, n = (size_t)clt_comm_size(comm);
    size_t wire = 2 * (n - 1) * row->bytes / n;
    int code = check(comm, data, count);
    memset(data, 0, row->bytes);
    for (int i = 0; i < 2 && !code; i++) { /* the first warms up */
        code = time_all_reduce(comm, data, count, 1, &first);
        if (!code && ring) code = time_raw(comm, ring, wire, 1, &first_raw);
    }
    if (code) return code;
    plan(row, first, first_raw, seconds);
    for (int i = 0; i < row->samples && !code; i++) {
        code = time_all_reduce(comm, data, count, row->repeats, &ours[i]);
        if (!code && ring) code = time_raw(comm, ring, wire, row->repeats, &raw[i]);
    }
    if (code) return code;
    row->seconds = median(ours, row->samples);
    row->raw_seconds = median(raw, row->samples);
    return check(comm, data, count);
}

int measure_all_reduce(comm_row *row, clt_comm *comm, raw_ring *ring, size_t bytes, double seconds) {
    *row = (comm_row){.bytes = bytes};
    snprintf(row->algorithm, sizeof row->algorithm, "%s", clt_comm_algorithm(comm, bytes));
    float *data = malloc(bytes);
    if (!data) return run_error("%zu bytes of memory could not be had", bytes);
    int code = measure(row, comm, ring, data, seconds);
    free(data);
    return code;
}

/* ---- threads ---- */

enum { MOST_THREADS = 64 };

typedef struct thread_rank {
    pthread_t thread;
    clt_comm *comm;
    comm_row row;
    double seconds;
    int code;
} thread_rank;

static void *run_thread(void *argument) {
    thread_rank *r = argument;
    r->code = measure_all_reduce(&r->row, r->comm, NULL, r->row.bytes, r->seconds);
    return NULL;
}

/* A thread that is not there keeps the others waiting: all end. */
static int run_threads(comm_row *row, int n, double seconds) {
    thread_rank ranks[MOST_THREADS];
    clt_comm *comms[MOST_THREADS];
    clt_status status = n > MOST_THREADS ? CLT_E_UNSUPPORTED : clt_comm_create_local(comms, n, 0);
    if (status < 0) return library_error(status, "ranks that are threads");
    int started = 0, code = 0;
    for (; started < n && !code; started++) {
        ranks[started] = (thread_rank){.comm = comms[started], .row = *row, .seconds = seconds};
        if (pthread_create(&ranks[started].thread, NULL, run_thread, &ranks[started])) code = run_error("a thread could not be started");
    }
    if (code) clt_comm_abort(comms[0], "a thread could not be started"), started--;
    for (int r = 0; r < started; r++) {
        pthread_join(ranks[r].thread, NULL);
        if (!code) code = ranks[r].code;
    }
    *row = ranks[0].row;
    for (int r = 0; r < n; r++) clt_comm_destroy(comms[r]);
    return code;
}

int measure_threads(comm_row *row, clt_comm *job, raw_ring *ring, size_t bytes, double seconds) {
    size_t n = (size_t)clt_comm_size(job);
    double raw[LEAST_SAMPLES];
    int code = 0;
    *row = (comm_row){.bytes = bytes};
    if (clt_comm_rank(job) == 0) code = run_threads(row, (int)n, seconds);
    for (int i = 0; i < LEAST_SAMPLES && !code; i++) code = time_raw(job, ring, 2 * (n - 1) * bytes / n, 1, &raw[i]);
    if (!code) row->raw_seconds = median(raw, LEAST_SAMPLES);
    return code;
}
