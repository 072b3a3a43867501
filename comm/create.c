/* Joining a job, and going on with who is left of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/algorithms/algorithms.h"
#include "comm/mover/engine.h"
#include "comm/network.h"
#include "comm/plugins/plugins.h"
#include "comm/settings.h"

/* What the generations of a job share: a group that shrank, and what is left of the one before. */
struct clt_job {
    atomic_int references;
    clt_comm_settings settings;
    clt_security *security;
    clt_rendezvous *rendezvous;
};

/* Generations as they are told apart on the wire and in the store: those of the launcher, and the shrinks within each. */
static int64_t wire_generation(int64_t launched, int shrinks) {
    return launched * CLT_COMM_GENERATIONS + shrinks;
}

static void release_job(clt_job *job) {
    if (!job || atomic_fetch_sub(&job->references, 1) > 1) return;
    clt_rendezvous_close(job->rendezvous);
    clt_security_destroy(job->security);
    clt_comm_settings_free(&job->settings);
    clt_free(job);
}

/* Takes the settings over. */
static clt_status open_job(clt_job **out, clt_comm_settings *settings) {
    *out = NULL;
    clt_job *job = clt_calloc(1, sizeof *job);
    if (!job) {
        clt_comm_settings_free(settings);
        return clt_fail_memory(sizeof *job);
    }
    const clt_comm_settings *s = &job->settings;
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

/* Where a process is in a group. */
typedef struct place {
    int rank, size;
    int shrinks; /* before the group */
    int server;  /* the rank that serves the store; -1: none of the group */
} place;

/* Survivors of a network's group. */
typedef struct survivors {
    clt_network *network;
    place p;                     /* among them */
    int members[CLT_MOST_RANKS]; /* each one's rank in the network's group */
} survivors;

static int find_lost(void *survivors);

/* The network takes hold of the transport. */
static clt_status new_network(clt_network **out, clt_job *job, clt_transport *transport, const place *p) {
    clt_network *network = *out = clt_calloc(1, sizeof *network);
    char *algorithms = job->settings.algorithms ? clt_strdup(job->settings.algorithms) : NULL;
    if (!network || (job->settings.algorithms && !algorithms)) {
        clt_transport_destroy(transport);
        clt_free(network);
        clt_free(algorithms);
        return clt_fail_memory(sizeof *network);
    }
    atomic_fetch_add(&job->references, 1);
    *network = (clt_network){.transport = transport, .rank = p->rank, .size = p->size, .job = job, .shrinks = p->shrinks,
                             .server = p->server, .algorithms = algorithms, .timeout_seconds = job->settings.timeout_seconds};
    return CLT_OK;
}

/* `before`: the network whose survivors join; NULL: there is none. */
static clt_status join(clt_comm **comm, clt_job *job, const place *p, survivors *before) {
    const clt_comm_settings *s = &job->settings;
    clt_transport *transport;
    clt_network *network = NULL;
    int64_t generation = wire_generation(s->generation, p->shrinks);
    if (p->size == 1) return clt_comm_open_self(comm, generation);
    CLT_TRY(clt_transport_create(&transport,
                                 &(clt_transport_options){.rank = p->rank, .size = p->size,
                                                          .job = s->job, .network = s->network, .ports = s->ports,
                                                          .towards = s->towards, .generation = generation,
                                                          .rendezvous = job->rendezvous, .security = job->security,
                                                          .channels = s->channels, .connect_seconds = s->connect_seconds,
                                                          .heartbeat_seconds = s->heartbeat_seconds,
                                                          .find_lost = before ? find_lost : NULL, .context = before,
                                                          .describe = clt_algorithm_describe,
                                                          .describe_slot = clt_network_describe_slot}));
    CLT_TRY(new_network(&network, job, transport, p));
    return clt_comm_open(comm, &(clt_comm_setup){.engine = &clt_network_engine, .state = network, .rank = p->rank, .size = p->size,
                                                 .generation = generation, .timeout_seconds = s->timeout_seconds,
                                                 .idle_seconds = s->heartbeat_seconds / 8});
}

/* What MPI says of rank and size must be what the caller and the launcher say: started by another launcher, each of its processes would be alone. */
static clt_status check_place(const clt_comm *comm, const clt_comm_options *o) {
    clt_launch_environment launch = {.size = 1};
    int rank = clt_comm_rank(comm), size = clt_comm_size(comm);
    if (o && o->size && (o->size != size || o->rank != rank))
        return clt_fail(CLT_E_INVALID, "rank %d of %d was asked for; for MPI it is rank %d of %d", o->rank, o->size, rank, size);
    CLT_TRY(clt_launch_environment_read(&launch));
    if (!launch.launcher || launch.size == size) return CLT_OK;
    return clt_fail(CLT_E_INVALID, "%s says that there are %d ranks, and MPI sees %d: they do not belong together (srun needs --mpi=pmix or pmi2)", launch.launcher, launch.size, size);
}

static clt_status create_by_mpi(clt_comm **comm, const clt_comm_settings *s, const clt_comm_options *o) {
    const clt_mover *mover;
    CLT_TRY(clt_plugin_mover(&mover, s->engine));
    CLT_TRY(clt_mover_create(comm, mover, &(clt_mover_options){.rank = -1, .connect_seconds = s->connect_seconds}, wire_generation(s->generation, 0), s->timeout_seconds));
    clt_status status = check_place(*comm, o);
    if (status == CLT_OK) {
        if (clt_comm_size(*comm) == 1) clt_log_message(CLT_LOG_WARNING, "engine mpi: this process is its only rank; mpirun or srun starts several");
        else if (clt_comm_rank(*comm) == 0) clt_log_message(CLT_LOG_WARNING, "%d ranks by MPI: what they send is not encrypted", clt_comm_size(*comm));
        return CLT_OK;
    }
    clt_comm_destroy(*comm);
    *comm = NULL;
    return status;
}

/* What a mover asks of the store. */
typedef struct meeting {
    clt_rendezvous *rendezvous;
    double deadline;
    int64_t generation;
    clt_status status; /* of the last call, and its detail */
    char detail[1024];
} meeting;

static int noted(meeting *m, clt_status status) {
    m->status = status;
    if (status < 0) snprintf(m->detail, sizeof m->detail, "%s", clt_error_detail());
    return status < 0;
}

static int set_in_store(void *store, const char *key, const void *value, size_t bytes) {
    meeting *m = store;
    char name[CLT_RENDEZVOUS_KEY_BYTES];
    snprintf(name, sizeof name, "%lld/%s", (long long)m->generation, key);
    return noted(m, clt_rendezvous_set(m->rendezvous, name, value, bytes, m->deadline));
}

static int get_from_store(void *store, const char *key, void *value, size_t *bytes) {
    meeting *m = store;
    char name[CLT_RENDEZVOUS_KEY_BYTES], read[CLT_RENDEZVOUS_VALUE_BYTES];
    size_t room = *bytes;
    snprintf(name, sizeof name, "%lld/%s", (long long)m->generation, key);
    if (noted(m, clt_rendezvous_get(m->rendezvous, name, read, bytes, m->deadline))) return 1;
    if (*bytes > room) return noted(m, clt_fail(CLT_E_NETWORK, "key %s: %zu bytes; expected %zu at most", name, *bytes, room));
    memcpy(value, read, *bytes);
    return 0;
}

/* Where this returns all ranks have met, and need the store no more. */
static clt_status create_by_gloo(clt_comm **comm, const clt_job *job) {
    const clt_comm_settings *s = &job->settings;
    const clt_mover *mover;
    char host[64];
    meeting m = {.rendezvous = job->rendezvous, .deadline = clt_seconds() + s->connect_seconds, .generation = wire_generation(s->generation, 0)};
    CLT_TRY(clt_plugin_mover(&mover, s->engine));
    CLT_TRY(clt_own_address(s->network, s->towards, host));
    const clt_mover_options options = {.rank = s->rank, .size = s->size, .host = host, .connect_seconds = s->connect_seconds, .store = &m, .set = set_in_store, .get = get_from_store};
    clt_status status = clt_mover_create(comm, mover, &options, m.generation, s->timeout_seconds);
    return m.status < 0 ? clt_fail_again(m.status, m.detail) : status;
}

clt_status clt_comm_create(clt_comm **comm, const clt_comm_options *options) {
    clt_comm_settings settings;
    clt_job *job;
    if (!comm) return clt_fail(CLT_E_INVALID, "clt_comm_create: comm is NULL");
    *comm = NULL;
    CLT_TRY(clt_comm_settings_resolve(&settings, options));
    if (!strcmp(settings.engine, "mpi")) {
        clt_status status = create_by_mpi(comm, &settings, options);
        clt_comm_settings_free(&settings);
        return status;
    }
    if (settings.size == 1) {
        int64_t generation = wire_generation(settings.generation, 0);
        clt_comm_settings_free(&settings);
        return clt_comm_open_self(comm, generation);
    }
    CLT_TRY(open_job(&job, &settings));
    const place first = {.rank = job->settings.rank, .size = job->settings.size, .server = job->settings.rank_serves ? 0 : -1};
    clt_status status = strcmp(job->settings.engine, "gloo") ? join(comm, job, &first, NULL) : create_by_gloo(comm, job);
    release_job(job);
    return status;
}

void clt_network_leave_job(clt_network *network) {
    release_job(network->job);
}

/* ---- going on with who is left ----
 *
 * In rounds, each a generation of its own: the survivors agree on a list, and those in it join. If one of them is lost meanwhile the round was
 * in vain, and who is left of the list agrees anew. Who had joined before that happened finds the group ended at its first operation, calls
 * clt_comm_shrink, and so comes to the same round.
 */

static clt_status watch(void *context, bool unreachable, clt_presence *ranks) {
    const survivors *s = context;
    const clt_transport *old = s->network->transport;
    clt_transport_progress(s->network->transport, 0); /* its own end is known */
    for (int i = 0; i < s->p.size; i++) ranks[i] = clt_transport_presence(old, s->members[i]);
    if (!s->network->job->settings.rank_serves || s->p.server == s->p.rank) return CLT_OK;
    clt_presence server = s->p.server < 0 ? CLT_LEFT : ranks[s->p.server];
    if (server == CLT_PRESENT || (server != CLT_CLOSED && !unreachable)) return CLT_OK;
    return clt_fail(CLT_E_NETWORK, "the store %s was served by the job's rank 0, which is gone: those who are left cannot agree who goes on "
                                   "(a store that cltrain-run serves, file:// and redis:// outlive ranks)",
                    clt_rendezvous_url(s->network->job->rendezvous));
}

static int find_lost(void *context) {
    const survivors *s = context;
    clt_transport_progress(s->network->transport, 0);
    for (int i = 0; i < s->p.size; i++)
        if (clt_transport_presence(s->network->transport, s->members[i]) >= CLT_SILENT) return i;
    return -1;
}

/* Those of the list take the place of those who came to this round. */
static void take_members(survivors *s, const int *members, int n) {
    place next = {.rank = -1, .size = n, .shrinks = s->p.shrinks + 1, .server = -1};
    for (int i = 0; i < n; i++) {
        if (members[i] == s->p.rank) next.rank = i;
        if (members[i] == s->p.server) next.server = i;
        s->members[i] = s->members[members[i]]; /* in rising order: what is overwritten was read before */
    }
    s->p = next;
}

static clt_status agree(survivors *s) {
    const clt_comm_settings *settings = &s->network->job->settings;
    int members[CLT_MOST_RANKS], n = 0;
    if (s->p.shrinks + 1 >= CLT_COMM_GENERATIONS) return clt_fail(CLT_E_UNSUPPORTED, "a group can shrink %d times", CLT_COMM_GENERATIONS - 1);
    const clt_membership m = {.generation = wire_generation(settings->generation, s->p.shrinks + 1),
                              .rank = s->p.rank, .size = s->p.size, .grace_seconds = settings->connect_seconds,
                              .deadline = clt_seconds() + 2 * settings->connect_seconds, .watch = watch, .context = s};
    CLT_TRY(clt_membership_agree(s->network->job->rendezvous, &m, members, &n));
    take_members(s, members, n);
    return CLT_OK;
}

static void tell_members(const survivors *s) {
    clt_text text = {0};
    int left_out = 0;
    for (int r = 0, i = 0; r < s->network->size; r++) {
        if (i < s->p.size && s->members[i] == r) i++;
        else clt_text_add(&text, "%s %d", left_out++ ? "," : ", without", r);
    }
    clt_log_message(CLT_LOG_WARNING, "rank %d: %d of %d ranks go on%s", s->network->rank, s->p.size, s->network->size,
                    clt_text_data(&text));
    clt_text_free(&text);
}

clt_status clt_network_shrink(void *state, clt_comm **out) {
    clt_network *network = state;
    survivors s = {.network = network,
                   .p = {.rank = network->rank, .size = network->size, .shrinks = network->shrinks, .server = network->server}};
    for (int r = 0; r < network->size; r++) s.members[r] = r;
    for (int round = 0;; round++) {
        CLT_TRY(agree(&s));
        clt_status status = join(out, network->job, &s.p, &s);
        if (status == CLT_OK) tell_members(&s);
        /* Each round in vain has one rank fewer, or is that one's last. */
        if ((status != CLT_E_PEER && status != CLT_E_TIMEOUT) || round >= network->size) return status;
    }
}
