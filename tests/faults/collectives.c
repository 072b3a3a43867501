/* Communicators by themselves: every operation, alone, among threads and over the network; stores. */
#include "tests/faults/ranks.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/base.h"

enum { SHORT = 5, LONG = 40000 };

static void fill(float *values, size_t n, int rank) {
    for (size_t i = 0; i < n; i++) values[i] = (float)(i % 13) + (float)rank;
}

static clt_status reduce(clt_comm *comm, float *values, digest *d) {
    static const clt_reduction reductions[] = {CLT_REDUCE_SUM, CLT_REDUCE_MAX, CLT_REDUCE_MIN};
    clt_status status = CLT_OK;
    for (int i = 0; i < 3; i++) {
        fill(values, SHORT, clt_comm_rank(comm));
        TRY(clt_comm_all_reduce(comm, values, SHORT, CLT_F32, reductions[i], NULL));
        digest_add(d, values, SHORT * sizeof *values);
    }
    fill(values, LONG, clt_comm_rank(comm));
    TRY(clt_comm_all_reduce(comm, values, LONG, CLT_F32, CLT_REDUCE_SUM, NULL));
    digest_add(d, values, LONG * sizeof *values);
done:
    return status;
}

/* Parts of unequal size, reduced where they belong, and gathered: all ranks have all then. */
static clt_status scatter_and_gather(clt_comm *comm, float *values, digest *d) {
    size_t counts[MOST_RANKS], all = 0;
    clt_status status;
    for (int r = 0; r < clt_comm_size(comm); r++) all += counts[r] = LONG / 4 + (size_t)r;
    fill(values, all, clt_comm_rank(comm));
    TRY(clt_comm_reduce_scatter(comm, values, counts, CLT_F32, CLT_REDUCE_SUM, NULL));
    TRY(clt_comm_all_gather(comm, values, counts, CLT_F32, NULL));
    digest_add(d, values, all * sizeof *values);
    fill(values, SHORT, clt_comm_rank(comm));
    TRY(clt_comm_broadcast(comm, values, SHORT, CLT_F32, clt_comm_size(comm) - 1, NULL));
    digest_add(d, values, SHORT * sizeof *values);
done:
    return status;
}

/* Whatever was started is waited for, else what it works on would be gone before it. The first error is told. */
static clt_status wait_all(clt_work **works, int n, clt_status status) {
    char detail[1024];
    snprintf(detail, sizeof detail, "%s", clt_error_detail());
    for (int i = 0; i < n; i++) {
        if (!works[i]) continue;
        clt_status ended = clt_work_wait(works[i]);
        if (status < 0 || ended >= 0) continue;
        status = ended;
        snprintf(detail, sizeof detail, "%s", clt_error_detail());
    }
    return status < 0 ? clt_fail_again(status, detail) : CLT_OK;
}

/* Several under way at once, and a ring of messages; alone there is nobody to send to. */
static clt_status at_once(clt_comm *comm, float *values, digest *d) {
    clt_work *works[4] = {NULL};
    int rank = clt_comm_rank(comm), size = clt_comm_size(comm), n = 0;
    float received[SHORT] = {0};
    fill(values, 3 * SHORT, rank);
    clt_status status = clt_comm_all_reduce(comm, values, SHORT, CLT_F32, CLT_REDUCE_SUM, &works[n++]);
    if (status == CLT_OK) status = clt_comm_broadcast(comm, values + SHORT, SHORT, CLT_F32, 0, &works[n++]);
    if (status == CLT_OK && size > 1)
        status = clt_comm_receive(comm, received, SHORT, CLT_F32, (rank + size - 1) % size, 7, &works[n++]);
    if (status == CLT_OK && size > 1)
        status = clt_comm_send(comm, values + 2 * SHORT, SHORT, CLT_F32, (rank + 1) % size, 7, &works[n++]);
    for (int i = 0; i < n && works[i]; i++) (void)clt_work_done(works[i]);
    status = wait_all(works, n, status);
    if (status < 0) return status;
    digest_add(d, values, 2 * SHORT * sizeof *values);
    /* Of which rank it came is told by its values: they are not in the digest, which all ranks share. */
    for (int i = 0; size > 1 && i < SHORT; i++)
        if (received[i] != (float)((2 * SHORT + i) % 13 + (rank + size - 1) % size))
            snprintf(d->words, sizeof d->words, "rank %d received %g", rank, (double)received[i]);
    return CLT_OK;
}

/* What ends it for all of them: operations to come fail, each with the reason. */
static clt_status abort_all(clt_comm *comm, float *values, digest *d) {
    clt_status status = clt_comm_barrier(comm, NULL);
    if (status < 0 && status != CLT_E_ABORTED) return status; /* others may be faster */
    clt_comm_abort(comm, "of the test");
    if (clt_comm_state(comm) == CLT_OK || clt_comm_all_reduce(comm, values, SHORT, CLT_F32, CLT_REDUCE_SUM, NULL) == CLT_OK)
        snprintf(d->words, sizeof d->words, "an aborted group goes on");
    return clt_fail(CLT_OK, "%s", "");
}

static clt_status all_operations(clt_comm *comm, digest *d) {
    static _Thread_local float values[LONG];
    clt_status status;
    if (clt_comm_is_lost(comm, 0)) snprintf(d->words, sizeof d->words, "rank 0 is lost");
    TRY(clt_comm_state(comm));
    digest_add_text(d, clt_comm_algorithm(comm, LONG * sizeof *values));
    TRY(reduce(comm, values, d));
    TRY(scatter_and_gather(comm, values, d));
    TRY(at_once(comm, values, d));
    clt_comm_stats stats = clt_comm_get_stats(comm);
    digest_add(d, &stats.operations, sizeof stats.operations);
    TRY(abort_all(comm, values, d));
done:
    return status;
}

static clt_status operate(rank_thread *r) {
    return all_operations(r->comm, &r->digest);
}

clt_status run_self(clt_device *device, digest *d) {
    clt_comm *comm = NULL;
    clt_status status = clt_comm_create_self(&comm);
    (void)device;
    if (status == CLT_OK) status = all_operations(comm, d);
    clt_comm_destroy(comm);
    return status;
}

clt_status run_collectives(clt_device *device, digest *d) {
    (void)device;
    return ranks_run(&(rank_thread){.work = operate}, RANKS, d);
}

clt_status run_wire(clt_device *device, digest *d) {
    (void)device;
    return ranks_run(&(rank_thread){.work = operate, .network = true, .secure = true}, RANKS, d);
}

/* ---- stores ---- */

/* What one sets the other gets; who comes second with set_once gets what the first one set. */
static clt_status talk(clt_store *server, clt_store *client, digest *d) {
    char value[CLT_STORE_TEXT_BYTES];
    clt_status status;
    TRY(clt_store_set(server, "a", "one", 5));
    TRY(clt_store_get(client, "a", value, 5));
    digest_add_text(d, value);
    TRY(clt_store_set_once(client, "b", "first", value, 5));
    TRY(clt_store_set_once(server, "b", "second", value, 5));
    digest_add_text(d, value);
    if (clt_store_get(client, "c", value, 0) == CLT_OK) snprintf(d->words, sizeof d->words, "a key that nobody set is there");
done:
    return status;
}

static clt_status use_store(const char *url, bool serve, digest *d) {
    clt_comm_options options = {.store = url, .job = "faults", .network = "127.0.0.1", .security = CLT_SECURITY_TLS,
                                .token = "a secret of the faults", .connect_seconds = 2};
    clt_store *server = NULL, *client = NULL;
    clt_status status;
    TRY(clt_store_open(&server, &options, serve));
    options.store = clt_store_url(server);
    TRY(clt_store_open(&client, &options, false));
    TRY(talk(server, client, d));
done:
    clt_store_close(client);
    clt_store_close(server);
    return status;
}

clt_status run_store(clt_device *device, digest *d) {
    static int number;
    char url[600];
    (void)device;
    snprintf(url, sizeof url, "file://%s/kept%d", scenario_folder, ++number);
    clt_status status = use_store("tcp://127.0.0.1:0", true, d);
    return status == CLT_OK ? use_store(url, false, d) : status;
}
