#include "options.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "tools/common/help.h"
#include "tools/common/message.h"
#include "tools/common/option_parser.h"

static const char *const security_names[] = {"tls", "auth", "none", NULL};
static const char *const engine_names[] = {"cltrain", "gloo", NULL};
static const char *const failure_names[] = {"stop", "continue", NULL};

#define AT(field) .offset = offsetof(run_options, field)

static const option_row rows[] = {
    {OPTION_HEADING, .help = "Ranks:"},
    {OPTION_WHOLE, 'n', "ranks", "N", AT(ranks), 1, .aliases = "nproc-per-node np", .help = "processes on this host; default 1"},
    {OPTION_TEXT, 0, "devices", "A,B,...", AT(devices),
     .help = "OpenCL devices of this host's ranks, in turn: sets CLTRAIN_DEVICE"},
    {OPTION_HEADING, .help = "Several hosts: the same command on each, but for --node-rank"},
    {OPTION_WHOLE, 0, "nnodes", "K", AT(nodes), 1, .aliases = "num-nodes", .help = "hosts; default 1"},
    {OPTION_WHOLE, 0, "node-rank", "I", AT(node_rank), 0, .help = "which of them this is; 0 serves the store"},
    {OPTION_TEXT, 0, "master", "HOST:PORT", AT(master), .aliases = "master-addr rdzv-endpoint", .help = "where host 0 serves the store; default port 29500"},
    {OPTION_WHOLE, 0, "master-port", "PORT", AT(master_port), 1, .help = "of --master, where that has none"},
    {OPTION_FLAG, 0, "standalone", NULL, AT(standalone), .help = "one host alone, which is the default: as torchrun has it"},
    {OPTION_TEXT, 0, "interface", "IF", AT(interface),
     .help = "to be reached on, by name or address; default: the one that\nroutes to the master"},
    {OPTION_TEXT, 0, "store", "URL", AT(store),
     .help = "where ranks find each other, if not at the master:\ntcp://HOST:PORT, file:///FOLDER,\n"
             "redis://[USER:PASSWORD@]HOST[:PORT][/DB]"},
    {OPTION_TEXT, 0, "job", "NAME", AT(job), .help = "of this start of the job, where several share a store"},
    {OPTION_CHOICE, 0, "security", "LEVEL", AT(security), .choices = security_names,
     .help = "tls, auth or none; default: CLTRAIN_COMM_SECURITY, else tls"},
    {OPTION_CHOICE, 0, "engine", "NAME", AT(engine), .choices = engine_names,
     .help = "what carries the job: cltrain, or gloo, which is in the clear and\nneeds --security none; default: CLTRAIN_COMM_ENGINE, else cltrain.\n"
             "mpirun starts ranks that MPI carries"},
    {OPTION_POSITIVE, 0, "connect", "SECONDS", AT(connect_seconds), .help = "to wait for the other hosts; default 120"},
    {OPTION_POSITIVE, 0, "outage", "SECONDS", AT(outage_seconds),
     .help = "for which the store may be out of reach; default 30"},
    {OPTION_HEADING, .help = "Failures:"},
    {OPTION_WHOLE, 0, "max-restarts", "R", AT(max_restarts), 0,
     .help = "start all ranks again, R times at most, when one fails;\ndefault 0"},
    {OPTION_CHOICE, 0, "on-failure", "WHAT", AT(on_failure), .choices = failure_names,
     .help = "stop: a rank that fails ends all (default); continue: the\nothers go on without it"},
    {OPTION_POSITIVE, 0, "late", "SECONDS", AT(late_seconds),
     .help = "continue: how long ranks may go on when others have ended\nwell; then they are taken for hung, or lost (default 300)"},
    {OPTION_POSITIVE, 0, "grace", "SECONDS", AT(grace_seconds),
     .help = "between asking ranks to end and killing them; default 10"},
    {OPTION_HEADING, .help = "Output:"},
    {OPTION_TEXT, 0, "log-dir", "DIR", AT(log_dir), .help = "also writes each rank's output to DIR/rank-R.log"},
    {OPTION_FLAG, 0, "tag-output", NULL, AT(prefix), .aliases = "prefix", .help = "puts '[rank 0]' before the lines of rank 0, too, which are else as\nthey are: its output may be piped into another program"},
    {OPTION_FLAG, 'q', "quiet", NULL, AT(quiet), .help = "says nothing of its own but errors"},
    {OPTION_FLAG, 'h', "help", NULL, AT(help), .help = "prints this"},
    {OPTION_FLAG, 'V', "version", NULL, AT(version), .help = "prints the version"},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static int check(const run_options *o) {
    if (!o->program || !o->program[0]) return usage_error("no program given: expected PROGRAM [ARGUMENT...] after the options");
    if (o->node_rank >= o->nodes)
        return usage_error("--node-rank %lld: expected a number below --nnodes %lld", (long long)o->node_rank, (long long)o->nodes);
    if (o->ranks > 4096 || o->nodes > 4096) return usage_error("more than 4096 ranks or hosts");
    if (o->standalone && o->nodes > 1) return usage_error("--standalone and --nnodes %lld exclude each other", (long long)o->nodes);
    if (o->master_port > 65535) return usage_error("--master-port %lld: expected 1 to 65535", (long long)o->master_port);
    if (o->nodes > 1 && !o->master && !o->store) return usage_error("--nnodes %lld needs --master HOST[:PORT] or --store URL", (long long)o->nodes);
    if (o->engine == ENGINE_GLOO && o->on_failure == ON_FAILURE_CONTINUE)
        return usage_error("--on-failure continue: with --engine gloo no group goes on without a rank");
    bool kept = o->store && strncmp(o->store, "tcp://", 6);
    if (o->nodes > 1 && kept && !o->job)
        return usage_error("--store %.*s... needs --job NAME: one that no former start had, the same on all hosts",
                           (int)strcspn(o->store, ":"), o->store);
    return 0;
}

int options_read(run_options *options, int argc, char **argv) {
    int own;
    *options = (run_options){.ranks = 1, .nodes = 1, .security = OPTION_UNSET, .engine = OPTION_UNSET, .on_failure = ON_FAILURE_STOP, .grace_seconds = 10, .late_seconds = 300,
                             .connect_seconds = 120, .outage_seconds = 30};
    int code = option_parse_front(rows, ROWS, argc, argv, options, &own);
    if (code || options->help || options->version) return code;
    if (own < argc) options->program = argv + own;
    return check(options);
}

void options_print_help(void) {
    printf("Usage: " PROGRAM " [options] [--] PROGRAM [ARGUMENT...]\n"
           "\n"
           "Starts the ranks of a job, and ends them all when one fails.\n"
           "\n"
           "  " PROGRAM " -n 4 -- cltrain-train convnet --data digits\n"
           "  " PROGRAM " -n 2 --nnodes 2 --node-rank 1 --master node0 -- ./train\n");
    option_print(rows, ROWS, stdout);
    help_print(stdout, "\nRanks are told of their place by RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR,\n"
                       "MASTER_PORT, CLTRAIN_RESTART_COUNT, CLTRAIN_RUN_STARTED, CLTRAIN_RUN_ON_FAILURE and\n"
                       "CLTRAIN_COMM_*. Their standard input is empty, but for rank 0's if it is not a terminal.\n"
                       "\nThe secret that makes a process a rank is CLTRAIN_COMM_TOKEN, or in the file that\n"
                       "CLTRAIN_COMM_TOKEN_FILE names: the same on all hosts. On one host it is made, if there is none.\n"
                       "\nExit status: that of the first rank that failed, 128 + the signal if one ended it; with\n"
                       "--on-failure continue 0 if the rank that ended last ended well; 1 it could not be done; 2 usage\n"
                       "error; 126, 127 the program could not be started.\n");
}

const char *options_engine_name(const run_options *options) {
    return options->engine == OPTION_UNSET ? NULL : engine_names[options->engine];
}

const char *options_security_name(const run_options *options) {
    return options->security == OPTION_UNSET ? NULL : security_names[options->security];
}
