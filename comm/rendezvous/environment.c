/*
 * What launchers tell in the environment. One launcher may start another's processes (Hydra's proxies by Slurm, torchrun in a pod), so
 * the innermost is asked first.
 */
#include "comm/rendezvous/rendezvous.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/rendezvous/nodelist.h"
#include "runtime/base/number.h"

enum { DEFAULT_PORT = 29500, FIRST_DERIVED_PORT = 20000, DERIVED_PORTS = 10000 };

typedef clt_launch_environment environment;

const char *clt_environment_text(const char *variable) {
    const char *text = getenv(variable);
    return text && text[0] ? text : NULL;
}

static clt_status parse_number(const char *name, const char *text, int64_t low, int64_t high, int64_t *value) {
    uint64_t number;
    if (!clt_number_whole(text, (uint64_t)high, &number) || (int64_t)number < low)
        return clt_fail(CLT_E_INVALID, "%s is '%.64s': expected a whole number from %lld to %lld", name, text, (long long)low,
                        (long long)high);
    *value = (int64_t)number;
    return CLT_OK;
}

static clt_status read_number(const char *name, int64_t low, int64_t high, int64_t *value) {
    const char *text = clt_environment_text(name);
    return text ? parse_number(name, text, low, high, value) : clt_fail(CLT_E_INVALID, "%s is not set", name);
}

clt_status clt_environment_number(const char *name, int64_t low, int64_t high, int64_t *value) {
    const char *text = clt_environment_text(name);
    return text ? parse_number(name, text, low, high, value) : CLT_OK;
}

/* Rank and size, and the local rank where it is told (NULL, or not set: 0). `names` and `because` of errors: the variable that says who started us. */
static clt_status read_place(environment *e, const char *rank, const char *size, const char *local, const char *because) {
    int64_t r, n, l = 0;
    if (!clt_environment_text(size) || !clt_environment_text(rank))
        return clt_fail(CLT_E_INVALID, "%s is set, but %s is not", because, clt_environment_text(size) ? rank : size);
    CLT_TRY(read_number(size, 1, CLT_RENDEZVOUS_RANKS, &n));
    CLT_TRY(read_number(rank, 0, n - 1, &r));
    if (local) CLT_TRY(clt_environment_number(local, 0, n - 1, &l));
    e->rank = (int)r;
    e->size = (int)n;
    e->local_rank = (int)l;
    return CLT_OK;
}

static clt_status set_master(environment *e, const char *host, int64_t port) {
    bool bare_v6 = strchr(host, ':') && host[0] != '[';
    int length = snprintf(e->master, sizeof e->master, bare_v6 ? "[%s]:%lld" : "%s:%lld", host, (long long)port);
    if (length > 0 && (size_t)length < sizeof e->master) return CLT_OK;
    return clt_fail(CLT_E_INVALID, "the master's name '%.32s…' has more than %zu characters", host, sizeof e->master - 8);
}

/* MASTER_ADDR and MASTER_PORT where they are set; else `host` (NULL: not known) and `port`. */
static clt_status read_master(environment *e, const char *host, int64_t port) {
    if (clt_environment_text("MASTER_ADDR")) {
        host = clt_environment_text("MASTER_ADDR");
        port = DEFAULT_PORT;
    }
    CLT_TRY(clt_environment_number("MASTER_PORT", 1, 65535, &port));
    return host ? set_master(e, host, port) : CLT_OK;
}

/* Jobs on one machine should not meet at one port: it is made of the job's name. */
static int64_t derived_port(const char *job) {
    char hash[CLT_HASH_TEXT];
    clt_hash_text(job, strlen(job), hash);
    hash[8] = 0;
    return FIRST_DERIVED_PORT + (int64_t)(strtoul(hash, NULL, 16) % DERIVED_PORTS);
}

/* A name that is too long, or holds what a name should not, is a hash. A restart has another name than what it replaces. */
static void set_job(environment *e, const char *prefix, const char *name) {
    char hash[CLT_HASH_TEXT];
    if (!name) return;
    clt_hash_text(name, strlen(name), hash);
    const char *used = strlen(name) <= 80 ? name : hash;
    if (e->generation) snprintf(e->job, sizeof e->job, "%s%s+%lld", prefix, used, (long long)e->generation);
    else snprintf(e->job, sizeof e->job, "%s%s", prefix, used);
}

/* ---- one function a launcher: CLT_END if it is another ---- */

static clt_status read_torchrun(environment *e) {
    if (!clt_environment_text("RANK")) return CLT_END;
    e->launcher = "torchrun";
    CLT_TRY(read_place(e, "RANK", "WORLD_SIZE", "LOCAL_RANK", "RANK"));
    CLT_TRY(clt_environment_number("TORCHELASTIC_RESTART_COUNT", 0, 1000000, &e->generation));
    const char *id = clt_environment_text("TORCHELASTIC_RUN_ID");
    if (id && strcmp(id, "none")) set_job(e, "torchrun-", id);
    CLT_TRY(read_master(e, NULL, DEFAULT_PORT));
    /* The agent's own store is at the master's port then: ours is beside it. */
    const char *agent = clt_environment_text("TORCHELASTIC_USE_AGENT_STORE"), *address = clt_environment_text("MASTER_ADDR");
    if (!agent || strcmp(agent, "True") || !address) return CLT_OK;
    int64_t port = DEFAULT_PORT;
    CLT_TRY(clt_environment_number("MASTER_PORT", 1, 65535, &port));
    return set_master(e, address, port < 65535 ? port + 1 : port - 1);
}

/* Where all ranks are on one host that host is the master, at a port of the job's own. */
static clt_status read_master_of_one_host(environment *e, const char *local_size) {
    int64_t local = 0;
    CLT_TRY(clt_environment_number(local_size, 1, CLT_RENDEZVOUS_RANKS, &local));
    bool one_host = local == e->size && e->job[0];
    return read_master(e, one_host ? "127.0.0.1" : NULL, one_host ? derived_port(e->job) : DEFAULT_PORT);
}

static clt_status read_open_mpi(environment *e) {
    if (!clt_environment_text("OMPI_COMM_WORLD_RANK")) return CLT_END;
    e->launcher = "Open MPI";
    CLT_TRY(read_place(e, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_RANK"));
    const char *name = clt_environment_text("PMIX_NAMESPACE");
    set_job(e, "ompi-", name ? name : clt_environment_text("OMPI_MCA_ess_base_jobid"));
    return read_master_of_one_host(e, "OMPI_COMM_WORLD_LOCAL_SIZE");
}

static clt_status read_pmi(environment *e) {
    if (!clt_environment_text("PMI_RANK")) return CLT_END;
    e->launcher = "PMI";
    CLT_TRY(read_place(e, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "PMI_RANK"));
    set_job(e, "pmi-", clt_environment_text("PMI_JOBID"));
    return read_master_of_one_host(e, "MPI_LOCALNRANKS");
}

/* A shell that Slurm gave somebody, or a batch script, carries its variables too: only a task of a step is a rank. Steps of
 * batch scripts and the like have numbers near 2^32; an interactive step has a terminal. */
static bool is_slurm_task(void) {
    int64_t step;
    if (!clt_environment_text("SLURM_STEP_ID") || !clt_environment_text("SLURM_PROCID") || clt_environment_text("SLURM_PTY_PORT")) return false;
    return read_number("SLURM_STEP_ID", 0, UINT32_MAX, &step) < 0 || step < 0xfffffff0;
}

/* Hydra's proxies are tasks of a step too, and what they start inherits their variables: then PMI_RANK tells. Where srun itself speaks PMI, both
 * agree. */
static bool pmi_differs(void) {
    const char *pmi = clt_environment_text("PMI_RANK"), *slurm = clt_environment_text("SLURM_PROCID");
    const char *pmi_size = clt_environment_text("PMI_SIZE"), *size = clt_environment_text("SLURM_STEP_NUM_TASKS");
    return pmi && (strcmp(pmi, slurm) || (pmi_size && size && strcmp(pmi_size, size)));
}

static clt_status read_slurm(environment *e) {
    if (!is_slurm_task() || pmi_differs()) return CLT_END;
    e->launcher = "Slurm";
    const char *size = clt_environment_text("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
    CLT_TRY(read_place(e, "SLURM_PROCID", size, "SLURM_LOCALID", "SLURM_PROCID"));
    int64_t job = 0, step;
    CLT_TRY(read_number("SLURM_STEP_ID", 0, UINT32_MAX, &step));
    CLT_TRY(clt_environment_number("SLURM_JOB_ID", 0, INT64_MAX / 2, &job));
    CLT_TRY(clt_environment_number("SLURM_RESTART_COUNT", 0, 1000000, &e->generation));
    char name[64], node[256];
    snprintf(name, sizeof name, "%lld.%lld", (long long)job, (long long)step);
    set_job(e, "slurm-", name);
    static const char *const lists[] = {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"};
    const char *list = NULL;
    for (size_t i = 0; !list && i < CLT_COUNT_OF(lists); i++) {
        list = clt_environment_text(lists[i]);
        if (!list) continue;
        clt_status status = clt_nodelist_first(list, node, sizeof node);
        if (status < 0) return clt_fail_context(status, "%s: ", lists[i]);
    }
    return read_master(e, list ? node : NULL, FIRST_DERIVED_PORT + (job + step) % DERIVED_PORTS);
}

static clt_status read_kubernetes(environment *e) {
    if (!clt_environment_text("JOB_COMPLETION_INDEX")) return CLT_END;
    e->launcher = "Kubernetes";
    CLT_TRY(read_place(e, "JOB_COMPLETION_INDEX", "WORLD_SIZE", "LOCAL_RANK", "JOB_COMPLETION_INDEX"));
    return read_master(e, NULL, DEFAULT_PORT);
}

clt_status clt_launch_environment_read(clt_launch_environment *environment_out) {
    static clt_status (*const readers[])(environment *) = {read_torchrun, read_open_mpi, read_slurm, read_pmi, read_kubernetes};
    environment e = {.size = 1};
    for (size_t i = 0; i < CLT_COUNT_OF(readers); i++) {
        clt_status status = readers[i](&e);
        if (status < 0) return status;
        if (status == CLT_OK) break;
    }
    *environment_out = e;
    return CLT_OK;
}
