#include "tests/support.h"
/* cmocka's header comes before. */
#include "tests/comm/jobs.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "comm/plugins/plugins.h"
#include "runtime/base/base.h"
#include "runtime/base/thread.h"

enum { MOST_RANKS = 16 };

static void run_body(const support_job *job, clt_comm *comm);

static void run_rank(const support_job *job, int rank, const char *engine, const char *store, const char *name) {
    clt_comm_options options = job->options ? *job->options : (clt_comm_options){.security = CLT_SECURITY_NONE};
    options.engine = engine;
    options.rank = rank;
    options.size = job->ranks;
    if (!options.store) options.store = store;
    options.job = name;
    options.token = "a token for tests alone";
    char network[16];
    snprintf(network, sizeof network, "127.0.0.%d", job->hosts ? 1 + job->hosts[rank] - 'a' : 1);
    if (!options.network) options.network = network;
    clt_comm *comm;
    CHECK(clt_comm_create(&comm, &options) == CLT_OK);
    CHECK(job->ranks == 1 || !strcmp(clt_comm_engine(comm), engine));
    run_body(job, comm);
    fflush(stderr);
    _exit(0);
}

static void nap(void) {
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

/* Whether the rank did as it should; not yet: -1. */
static int result_of(const support_job *job, pid_t *child, int rank) {
    int status;
    pid_t ended = waitpid(*child, &status, WNOHANG);
    if (ended == 0) return -1;
    *child = 0;
    if (rank == job->killed || (job->killed_too && rank == job->killed_too)) return WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) == 0);
    if (WIFSIGNALED(status)) fprintf(stderr, "rank %d was ended by signal %d\n", rank, WTERMSIG(status));
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool watch(const support_job *job, pid_t *children) {
    double until = clt_seconds() + WATCHDOG_SECONDS;
    bool right = true;
    for (int left = job->ranks; left > 0 && clt_seconds() < until; nap())
        for (int r = 0; r < job->ranks; r++) {
            int result = children[r] ? result_of(job, &children[r], r) : -1;
            if (result < 0) continue;
            left--;
            right = right && result;
            if (left == 1 && job->killed >= 0 && children[job->killed]) kill(children[job->killed], SIGKILL);
        }
    for (int r = 0; r < job->ranks; r++) {
        if (!children[r]) continue;
        fprintf(stderr, "rank %d was not done in time\n", r);
        kill(children[r], SIGKILL);
        waitpid(children[r], NULL, 0);
        right = false;
    }
    return right;
}

/* ---- ranks as threads ---- */

typedef struct local_rank {
    const support_job *job;
    clt_comm *comm;
    clt_thread thread;
} local_rank;

static void *run_local_rank(void *argument) {
    const local_rank *r = argument;
    run_body(r->job, r->comm);
    return NULL;
}

static void run_local_ranks(const support_job *job) {
    clt_comm *comms[MOST_RANKS];
    local_rank ranks[MOST_RANKS];
    CHECK(clt_comm_create_local(comms, job->ranks, job->options ? job->options->timeout_seconds : 0) == CLT_OK);
    for (int r = 0; r < job->ranks; r++) {
        ranks[r] = (local_rank){.job = job, .comm = comms[r]};
        CHECK(clt_thread_start(&ranks[r].thread, run_local_rank, &ranks[r]) == CLT_OK);
    }
    for (int r = 0; r < job->ranks; r++) clt_thread_join(ranks[r].thread);
    fflush(stderr);
    _exit(0);
}

void support_run_local_job(const support_job *job) {
    support_job one = {.ranks = 1, .killed = -1};
    assert_true(job->ranks >= 1 && job->ranks <= MOST_RANKS);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) run_local_ranks(job);
    if (!watch(&one, &child)) fail_msg("a job of %d threads failed", job->ranks);
}

/* ---- ranks that mpirun has started, of which this process is one ---- */

/* Jobs of another number of ranks are left out. */
static void run_in_place(const support_job *job, const char *engine) {
    const char *size = getenv("OMPI_COMM_WORLD_SIZE") ? getenv("OMPI_COMM_WORLD_SIZE") : getenv("PMI_SIZE");
    clt_comm *comm;
    if (!size || atoi(size) != job->ranks) return;
    CHECK(clt_comm_create(&comm, &(clt_comm_options){.engine = engine, .timeout_seconds = job->options ? job->options->timeout_seconds : 0}) == CLT_OK);
    CHECK(clt_comm_size(comm) == job->ranks);
    run_body(job, comm);
}

/* ---- ranks as processes ---- */

static void run_processes(const support_job *job, const char *engine) {
    static int jobs;
    char store[4200], name[32];
    pid_t children[MOST_RANKS];
    assert_true(job->ranks >= 1 && job->ranks <= MOST_RANKS);
    snprintf(store, sizeof store, "file://%s", support_folder());
    snprintf(name, sizeof name, "job%d", jobs++);
    fflush(NULL);
    for (int r = 0; r < job->ranks; r++) {
        children[r] = fork();
        assert_true(children[r] >= 0);
        if (children[r] == 0) run_rank(job, r, engine, store, name);
    }
    if (!watch(job, children)) fail_msg("a job of %d ranks by engine %s failed", job->ranks, engine);
}

/* ---- engines ---- */

static void run_threads(const support_job *job, const char *engine) {
    (void)engine;
    support_run_local_job(job);
}

static const struct {
    const char *name;
    unsigned abilities, can;
    void (*run)(const support_job *job, const char *engine);
} engines[] = {
    {"cltrain", CLT_CAN_ENCRYPT | CLT_CAN_NAME_LOST | CLT_CAN_SHRINK, SUPPORT_OPTIONS | SUPPORT_DEATHS | SUPPORT_SILENCE | SUPPORT_SURVIVORS, run_processes},
    {"gloo", CLT_CAN_NAME_LOST, SUPPORT_DEATHS, run_processes},
    {"local", CLT_CAN_NAME_LOST | CLT_CAN_SHRINK, SUPPORT_SURVIVORS, run_threads},
    {"mpi", 0, 0, run_in_place}, /* mpirun ends all ranks where one dies */
};

/* Each rank's group says what the table says of its engine. */
static void run_body(const support_job *job, clt_comm *comm) {
    for (size_t i = 0; i < CLT_COUNT_OF(engines); i++)
        if (!strcmp(engines[i].name, clt_comm_engine(comm))) CHECK(clt_comm_abilities(comm) == engines[i].abilities);
    job->body(comm, job->argument);
    clt_comm_destroy(comm);
}

static unsigned needs_of(const support_job *job) {
    const clt_comm_options *o = job->options;
    bool options = o && (o->algorithms || o->store || o->security != CLT_SECURITY_NONE);
    return job->needs | (options || job->hosts ? SUPPORT_OPTIONS : 0) | (job->killed >= 0 ? SUPPORT_DEATHS : 0);
}

/* Gloo's plugin is built where Gloo is. */
static bool is_here(const char *engine) {
    const clt_mover *mover;
    if (getenv("CLTRAIN_TEST_MPI") || !strcmp(engine, "mpi")) return getenv("CLTRAIN_TEST_MPI") && !strcmp(engine, "mpi");
    return strcmp(engine, "gloo") || clt_plugin_mover(&mover, engine) == CLT_OK;
}

void support_run_job(const support_job *job) {
    unsigned needs = needs_of(job);
    for (size_t i = 0; i < CLT_COUNT_OF(engines); i++)
        if (is_here(engines[i].name) && !(needs & ~engines[i].can)) engines[i].run(job, engines[i].name);
}
