/* The command line of cltrain-run. */
#ifndef CLTRAIN_RUN_OPTIONS_H
#define CLTRAIN_RUN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#define PROGRAM "cltrain-run"

enum { ON_FAILURE_STOP, ON_FAILURE_CONTINUE };
enum { ENGINE_CLTRAIN, ENGINE_GLOO };

typedef struct run_options {
    int64_t ranks, nodes, node_rank, max_restarts;
    int64_t master_port; /* 0: not given */
    bool standalone;
    const char *master, *interface, *store, *job, *devices, *log_dir;
    int security, engine, on_failure; /* OPTION_UNSET: from the environment */
    double grace_seconds, connect_seconds, outage_seconds, late_seconds;
    bool prefix, quiet, help, version;
    char **program; /* NULL-terminated */
} run_options;

/* Returns 0, or an exit code after saying what was expected. Words behind "--" are the program. */
int options_read(run_options *options, int argc, char **argv);

void options_print_help(void);

/* "tls", "auth" or "none"; NULL: as the environment says. */
const char *options_security_name(const run_options *options);
/* "cltrain" or "gloo"; NULL likewise. */
const char *options_engine_name(const run_options *options);

#endif
