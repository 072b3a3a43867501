#include "ranks.h"

#include <stdio.h>
#include <stdlib.h>

#include "tools/common/message.h"
#include "tools/common/numbers.h"

static int verbosity_of(const options *given) {
    return given->quiet ? -1 : given->verbose;
}

static double was_restarted(void) {
    const char *count = getenv("CLTRAIN_RESTART_COUNT"), *text = getenv("CLTRAIN_RUN_STARTED");
    int64_t restarts;
    double started;
    return count && text && number_whole(count, 1, INT32_MAX, &restarts) && number_real(text, &started) ? started : 0;
}

static void take_place(ranks *r, clt_comm *comm) {
    r->comm = comm;
    r->rank = clt_comm_rank(comm);
    r->size = clt_comm_size(comm);
    if (r->local) message_of_thread(!ranks_lead(r));
    else message_start(ranks_lead(r) ? r->verbosity : -1);
}

int ranks_join(ranks *r, const options *given) {
    clt_comm *comm;
    *r = (ranks){.size = 1, .begun = 1, .verbosity = verbosity_of(given), .restarted = was_restarted()};
    clt_status status = clt_comm_create(&comm, NULL);
    if (status < 0) return library_error(status, "joining the other ranks");
    if (clt_comm_size(comm) == 1) {
        clt_comm_destroy(comm);
        return 0;
    }
    take_place(r, comm);
    r->begun = r->size;
    if (given->on_failure != ON_FAILURE_SHRINK || clt_comm_abilities(comm) & CLT_CAN_SHRINK) return 0;
    int code = usage_error("--on-failure shrink: engine %s cannot go on without a rank that is lost; expected stop, or CLTRAIN_COMM_ENGINE=cltrain", clt_comm_engine(comm));
    ranks_leave(r);
    return code;
}

void ranks_join_local(ranks *r, const options *given, clt_comm *comm) {
    *r = (ranks){.verbosity = verbosity_of(given), .restarted = was_restarted(), .local = true};
    take_place(r, comm);
    r->begun = r->size;
}

void ranks_leave(ranks *r) {
    clt_comm_destroy(r->comm);
    r->comm = NULL;
}

bool ranks_lead(const ranks *r) {
    return r->rank == 0;
}

uint64_t ranks_bytes_sent(const ranks *r) {
    return r->bytes_sent + (r->comm ? clt_comm_get_stats(r->comm).bytes_sent : 0);
}

clt_status ranks_max(const ranks *r, int32_t *values, int n) {
    return r->comm ? clt_comm_all_reduce(r->comm, values, (size_t)n, CLT_I32, CLT_REDUCE_MAX, NULL) : CLT_OK;
}

clt_status ranks_gather(const ranks *r, void *all, size_t bytes) {
    if (!r->comm) return CLT_OK;
    size_t *counts = malloc((size_t)r->size * sizeof *counts);
    if (!counts) return CLT_E_NO_MEMORY;
    for (int i = 0; i < r->size; i++) counts[i] = bytes;
    clt_status status = clt_comm_all_gather(r->comm, all, counts, CLT_U8, NULL);
    free(counts);
    return status;
}

clt_status ranks_tell(const ranks *r, double *values) {
    return ranks_gather(r, values, sizeof *values);
}

int ranks_part(const ranks *r, const options *given) {
    return given->pipeline ? r->rank / given->pipeline_spec.options.stages : r->rank;
}

int ranks_parts(const ranks *r, const options *given) {
    return given->pipeline ? r->size / given->pipeline_spec.options.stages : r->size;
}

clt_status ranks_sum(const ranks *r, int64_t *value) {
    if (!r->comm) return CLT_OK;
    int64_t *all = calloc((size_t)r->size, sizeof *all);
    if (!all) return CLT_E_NO_MEMORY;
    all[r->rank] = *value;
    clt_status status = ranks_gather(r, all, sizeof *all);
    *value = 0;
    for (int i = 0; i < r->size; i++) *value += all[i];
    free(all);
    return status;
}

bool ranks_lost_one(const ranks *r, clt_status status) {
    return r->comm && (status == CLT_E_PEER || status == CLT_E_ABORTED || status == CLT_E_NETWORK || status == CLT_E_TIMEOUT) &&
           clt_comm_state(r->comm) < 0;
}

/* A group of those who are left; the old one is gone. */
static clt_status shrink(ranks *r) {
    clt_comm *old = r->comm, *survivors;
    char reason[512];
    snprintf(reason, sizeof reason, "%s", clt_error_detail());
    clt_status status = clt_comm_shrink(old, &survivors);
    if (status < 0) return status;
    r->bytes_sent = ranks_bytes_sent(r);
    take_place(r, survivors);
    clt_comm_destroy(old);
    if (ranks_lead(r)) message_line("%s: %d rank%s go%s on.", reason, r->size, PLURAL(r->size), r->size == 1 ? "es" : "");
    return CLT_OK;
}

clt_status ranks_go_on(ranks *r, bool trains, bool *all_train) {
    int32_t meets;
    clt_status status;
    do {
        meets = !trains;
        status = shrink(r);
        if (status < 0) return status;
        status = ranks_max(r, &meets, 1);
    } while (ranks_lost_one(r, status)); /* another one, meanwhile */
    *all_train = !meets;
    return status;
}

int ranks_meeting_failed(ranks *r, const options *given, clt_status status) {
    bool all_train;
    if (given->on_failure == ON_FAILURE_SHRINK && ranks_lost_one(r, status)) {
        status = ranks_go_on(r, false, &all_train);
        if (status >= 0) return RANKS_MEET_ANEW;
    }
    return library_error(status, "meeting the other ranks");
}
