#include "tests/support.h"
#include "tests/comm/ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *ranks_new_store(void) {
    static char url[400];
    static int number;
    snprintf(url, sizeof url, "file://%s/store%d", support_folder(), number++);
    return url;
}

clt_status rank_open(rank_thread *self) {
    const rank_group *g = self->group;
    double connect = g->connect_seconds > 0 ? g->connect_seconds : 60;
    clt_rendezvous_options store = {.url = self->url, .job = "test", .connect_seconds = connect};
    CLT_TRY(clt_security_create(&self->security, g->level, "the token of the ranks", NULL, NULL, NULL));
    store.security = self->security;
    CLT_TRY(clt_rendezvous_open(&self->store, &store));
    clt_transport_options options = {
        .rank = self->rank,
        .size = self->size,
        .generation = g->generation,
        .rendezvous = self->store,
        .security = self->security,
        .channels = g->channels ? g->channels : 1,
        .connect_seconds = connect,
        .heartbeat_seconds = g->heartbeat_seconds > 0 ? g->heartbeat_seconds : 5,
    };
    return clt_transport_create(&self->transport, &options);
}

void rank_close(rank_thread *self) {
    clt_transport_destroy(self->transport);
    clt_rendezvous_close(self->store);
    clt_security_destroy(self->security);
}

void rank_note(rank_thread *self, const char *condition, const char *file, int line) {
    if (self->failure[0]) return;
    snprintf(self->failure, sizeof self->failure, "rank %d: %s:%d: %s (%.300s)", self->rank, file, line,
             condition, clt_error_detail());
}

static void *run_rank(void *argument) {
    rank_thread *self = argument;
    clt_status status = rank_open(self);
    if (status < 0) rank_note(self, "rank_open", __FILE__, __LINE__);
    else self->group->body(self);
    rank_close(self);
    return NULL;
}

void ranks_run(const rank_group *group) {
    rank_thread *ranks = calloc((size_t)group->size, sizeof *ranks);
    const char *store = group->store ? group->store : ranks_new_store();
    for (int r = 0; r < group->size; r++) {
        ranks[r] = (rank_thread){.group = group, .rank = r, .size = group->size};
        snprintf(ranks[r].url, sizeof ranks[r].url, "%s", store);
        assert_ok(clt_thread_start(&ranks[r].thread, run_rank, &ranks[r]));
    }
    for (int r = 0; r < group->size; r++) clt_thread_join(ranks[r].thread);
    bool failed = false;
    for (int r = 0; r < group->size; r++) {
        if (ranks[r].failure[0]) print_error("%s\n", ranks[r].failure);
        failed = failed || ranks[r].failure[0];
    }
    free(ranks);
    assert_false(failed);
}

clt_status rank_finish(rank_thread *self, const clt_transfer *transfers, size_t n) {
    double deadline = clt_seconds() + WATCHDOG_SECONDS;
    for (;;) {
        size_t active = 0;
        for (size_t i = 0; i < n; i++) active += transfers[i].active;
        if (!active) return CLT_OK;
        if (clt_seconds() > deadline)
            return clt_fail(CLT_E_TIMEOUT, "%zu transfers of %zu have not ended", active, n);
        CLT_TRY(clt_transport_progress(self->transport, 1));
    }
}

clt_status rank_gather(rank_thread *self, int root) {
    clt_transfer transfers[RANKS_MOST] = {0};
    for (int peer = 0; peer < self->size; peer++) {
        transfers[peer] = (clt_transfer){.peer = peer, .slot = UINT64_MAX};
        if (self->rank == root && peer != root)
            CLT_TRY(clt_transport_receive(self->transport, &transfers[peer]));
        if (self->rank != root && peer == root)
            CLT_TRY(clt_transport_send(self->transport, &transfers[peer]));
    }
    return rank_finish(self, transfers, (size_t)self->size);
}

clt_status rank_wait_end(rank_thread *self) {
    double deadline = clt_seconds() + WATCHDOG_SECONDS;
    clt_status status = CLT_OK;
    while (status == CLT_OK && clt_seconds() < deadline)
        status = clt_transport_progress(self->transport, 1);
    return status;
}
