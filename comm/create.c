/* Joining a job, and going on with who is left of it. */
#include <stdlib.h>

#include "comm/algorithms/algorithms.h"
#include "comm/network.h"
#include "comm/settings.h"

/* What the generations of a job share: a group that shrank, and what is left of the one before. */
struct clt_job {
    atomic_int references;
    clt_settings settings;
    clt_security *security;
    clt_rendezvous *rendezvous;
};

enum { SHRINKS = 1000 };

/* Generations as they are told apart on the wire and in the store: those of the launcher, and the shrinks within each. */
static int64_t wire_generation(int64_t launched, int shrinks) {
    return launched * SHRINKS + shrinks;
}

static void release_job(clt_job *job) {
    if (!job || atomic_fetch_sub(&job->references, 1) > 1) return;
    clt_rendezvous_close(job->rendezvous);
    clt_security_destroy(job->security);
    clt_settings_free(&job->settings);
    clt_free(job);
}

/* Takes the settings over. */
static clt_status open_job(clt_job **out, clt_settings *settings) {
    *out = NULL;
    clt_job *job = clt_calloc(1, sizeof *job);
    if (!job) {
        clt_settings_free(settings);
        return clt_fail_memory(sizeof *job);
    }
    const clt_settings *s = &job->settings;
    job->settings = *settings;
    atomic_init(&job->references, 1);
    clt_status status = clt_security_create(&job->security, s->security, s->token, s->certificate, s->key, s->authority);
    if (status == CLT_OK)
        status = clt_rendezvous_open(&job->rendezvous,
                                     &(clt_rendezvous_options){.url = s->store, .job = s->job, .network = s->network,
                                                               .security = job->security, .serve = s->serve,
                                                               .connect_seconds = s->connect_seconds});
    if (status < 0) release_job(job);
    else *out = job;
    return status;
}

/* The network takes hold of the transport. */
static clt_status new_network(clt_network **out, clt_job *job, clt_transport *transport, int rank, int size, int shrinks) {
    clt_network *network = *out = clt_calloc(1, sizeof *network);
    char *algorithms = job->settings.algorithms ? clt_strdup(job->settings.algorithms) : NULL;
    if (!network || (job->settings.algorithms && !algorithms)) {
        clt_transport_destroy(transport);
        clt_free(network);
        clt_free(algorithms);
        return clt_fail_memory(sizeof *network);
    }
    atomic_fetch_add(&job->references, 1);
    *network = (clt_network){.transport = transport, .rank = rank, .size = size, .job = job, .shrinks = shrinks,
                             .algorithms = algorithms, .timeout_seconds = job->settings.timeout_seconds};
    return CLT_OK;
}

static clt_status join(clt_comm **comm, clt_job *job, int rank, int size, int shrinks) {
    const clt_settings *s = &job->settings;
    clt_transport *transport;
    clt_network *network = NULL;
    CLT_TRY(clt_transport_create(&transport,
                                 &(clt_transport_options){.rank = rank, .size = size,
                                                          .job = s->job, .network = s->network, .ports = s->ports,
                                                          .towards = s->towards,
                                                          .generation = wire_generation(s->generation, shrinks),
                                                          .rendezvous = job->rendezvous, .security = job->security,
                                                          .channels = s->channels, .connect_seconds = s->connect_seconds,
                                                          .heartbeat_seconds = s->heartbeat_seconds,
                                                          .describe = clt_algorithm_describe}));
    CLT_TRY(new_network(&network, job, transport, rank, size, shrinks));
    return clt_comm_open(comm, &(clt_comm_setup){.engine = &clt_network_engine, .state = network, .rank = rank, .size = size,
                                                 .generation = s->generation + shrinks,
                                                 .timeout_seconds = s->timeout_seconds,
                                                 .idle_seconds = s->heartbeat_seconds / 8});
}

clt_status clt_comm_create(clt_comm **comm, const clt_comm_options *options) {
    clt_settings settings;
    clt_job *job;
    if (!comm) return clt_fail(CLT_E_INVALID, "clt_comm_create: comm is NULL");
    *comm = NULL;
    CLT_TRY(clt_settings_resolve(&settings, options));
    if (settings.size == 1) {
        int64_t generation = settings.generation;
        clt_settings_free(&settings);
        return clt_comm_open_self(comm, generation);
    }
    CLT_TRY(open_job(&job, &settings));
    clt_status status = join(comm, job, job->settings.rank, job->settings.size, 0);
    release_job(job);
    return status;
}

void clt_network_leave_job(clt_network *network) {
    release_job(network->job);
}

/* ---- survivors ---- */

static clt_status agree(clt_network *network, int *members, int *n) {
    const clt_settings *s = &network->job->settings;
    bool lost[CLT_MOST_RANKS];
    for (int r = 0; r < network->size; r++) lost[r] = clt_transport_is_lost(network->transport, r);
    double grace = s->connect_seconds, deadline = clt_seconds() + 2 * s->connect_seconds;
    return clt_membership_agree(network->job->rendezvous, wire_generation(s->generation, network->shrinks + 1), network->rank,
                                network->size, lost, grace, deadline, members, n);
}

clt_status clt_network_shrink(void *state, clt_comm **survivors) {
    clt_network *network = state;
    int members[CLT_MOST_RANKS], n = 0, rank = -1;
    if (network->shrinks + 1 >= SHRINKS) return clt_fail(CLT_E_UNSUPPORTED, "a group can shrink %d times", SHRINKS - 1);
    CLT_TRY(agree(network, members, &n));
    for (int i = 0; i < n; i++)
        if (members[i] == network->rank) rank = i;
    if (rank < 0) return clt_fail(CLT_E_FENCED, "rank %d is not among those who go on", network->rank);
    if (n == 1) return clt_comm_open_self(survivors, network->job->settings.generation + network->shrinks + 1);
    return join(survivors, network->job, rank, n, network->shrinks + 1);
}
