#include "comm_engines.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "tools/common/message.h"

/* From the program that starts mpirun to those that mpirun starts. */
#define STORE "CLTRAIN_PROBE_STORE"
#define TOKEN "CLTRAIN_PROBE_TOKEN"

static const char *const names[COMM_ENGINES] = {"cltrain", "gloo", "local", "mpi"};

const char *comm_engine_name(comm_engine engine) {
    return names[engine];
}

/* Looked for as execvp does. */
static bool has_mpirun(void) {
    char path[4096];
    for (const char *at = getenv("PATH"); at && *at;) {
        size_t length = strcspn(at, ":");
        snprintf(path, sizeof path, "%.*s/mpirun", (int)length, at);
        if (length && access(path, X_OK) == 0) return true;
        at += length + (at[length] == ':');
    }
    return false;
}

static int find_engine(const char *name, size_t length) {
    for (int e = 0; e < COMM_ENGINES; e++)
        if (strlen(names[e]) == length && !strncmp(names[e], name, length)) return e;
    return -1;
}

int comm_engines_read(const char *list, comm_engine engines[COMM_ENGINES], int *n) {
    bool all = !strcmp(list, "all"), named[COMM_ENGINES] = {all, all, all, all && has_mpirun()};
    for (const char *at = list; !all && *at;) {
        size_t length = strcspn(at, ",");
        int engine = find_engine(at, length);
        if (engine < 0) return usage_error("--engines '%s': expected some of cltrain, gloo, local and mpi, or all", list);
        if (engine == COMM_MPI && !has_mpirun()) return usage_error("--engines mpi: there is no mpirun (Debian: openmpi-bin or mpich)");
        named[engine] = true;
        at += length + (at[length] == ',');
    }
    if (all && !named[COMM_MPI]) warning("mpi is left out: there is no mpirun");
    *n = 0;
    for (int e = 0; e < COMM_ENGINES; e++)
        if (named[e]) engines[(*n)++] = (comm_engine)e;
    return *n ? 0 : usage_error("--engines: the list is empty");
}

void comm_engine_choose(clt_comm_options *options, comm_engine engine) {
    if (engine == COMM_MPI) *options = (clt_comm_options){0};
    if (engine == COMM_GLOO) options->security = CLT_SECURITY_NONE;
    options->engine = names[engine];
}

/* Ranks may be more than cores, and the user root, as in a container. */
int comm_engine_start_mpi(int n, const char *store, const char *token, char **argv) {
    static const char *const settings[][2] = {{"OMPI_ALLOW_RUN_AS_ROOT", "1"}, {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}, {"OMPI_MCA_rmaps_base_oversubscribe", "1"}, {"OMPI_MCA_mpi_yield_when_idle", "1"}};
    char count[16], self[4096];
    int words = 0;
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0) return run_error("the path of this program is not known: %s", strerror(errno));
    self[length] = 0;
    snprintf(count, sizeof count, "%d", n);
    while (argv[words]) words++;
    char **line = calloc((size_t)words + 6, sizeof *line);
    if (!line) return run_error("out of memory");
    char *const front[] = {"mpirun", "-n", count, self, "comm"};
    memcpy(line, front, sizeof front);
    memcpy(line + 5, argv, (size_t)words * sizeof *line);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) setenv(settings[i][0], settings[i][1], 0);
    setenv(STORE, store, 1);
    setenv(TOKEN, token, 1);
    execvp(line[0], line);
    int code = run_error("mpirun could not be started: %s", strerror(errno));
    free(line);
    return code;
}

bool comm_engine_started_by_mpi(const char **store, const char **token) {
    *store = getenv(STORE);
    *token = getenv(TOKEN);
    return *store && *token;
}
