/* What launchers tell: variables, one a line; lists of nodes; and settings of the communicator. Nothing is looked up. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "comm/rendezvous/nodelist.h"
#include "comm/rendezvous/rendezvous.h"
#include "comm/settings.h"

/* The first character of a line chooses among these. */
static const char *const names[] = {
    "RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT",
    "TORCHELASTIC_USE_AGENT_STORE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
    "OMPI_COMM_WORLD_LOCAL_SIZE", "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID",
    "PMI_JOBID", "MPI_LOCALNRANKS", "SLURM_STEP_ID", "SLURM_PROCID", "SLURM_PTY_PORT", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS",
    "SLURM_LOCALID", "SLURM_JOB_ID", "SLURM_RESTART_COUNT", "SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST",
    "JOB_COMPLETION_INDEX", "CLTRAIN_COMM_STORE", "CLTRAIN_COMM_STORE_SERVED", "CLTRAIN_COMM_GENERATION",
    "CLTRAIN_COMM_SECURITY", "CLTRAIN_COMM_CHANNELS", "CLTRAIN_COMM_ALGORITHMS", "CLTRAIN_COMM_TOKEN", "CLTRAIN_COMM_JOB",
    "CLTRAIN_COMM_PORTS", "CLTRAIN_COMM_INTERFACE", "CLTRAIN_COMM_CERTIFICATE", "CLTRAIN_COMM_KEY", "CLTRAIN_COMM_AUTHORITY",
};
enum { NAMES = sizeof names / sizeof names[0] };

static void check_launch(void) {
    clt_launch_environment e;
    if (clt_launch_environment_read(&e) < 0) return;
    FUZZ_CHECK(e.rank >= 0 && e.rank < e.size && e.size <= CLT_RENDEZVOUS_RANKS && e.local_rank >= 0);
    FUZZ_CHECK(strlen(e.master) < sizeof e.master && strlen(e.job) < sizeof e.job);
}

static void check_settings(void) {
    clt_comm_settings s;
    if (clt_comm_settings_resolve(&s, NULL) == CLT_OK) {
        FUZZ_CHECK(s.size >= 1 && s.rank >= 0 && s.rank < s.size && s.channels >= 1);
        clt_comm_settings_free(&s);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input input = {data, size};
    char node[64];
    fuzz_begin(size);
    for (int i = 0; i < NAMES; i++) unsetenv(names[i]);
    while (input.size) {
        char *line = fuzz_line(&input);
        if (line[0]) setenv(names[(unsigned char)(line[0] - '0') % NAMES], line + 1, 1);
        if (line[0] && clt_nodelist_first(line + 1, node, sizeof node) == CLT_OK) FUZZ_CHECK(node[0] && strlen(node) < sizeof node);
        fuzz_free(line);
    }
    check_launch();
    check_settings();
    return 0;
}
