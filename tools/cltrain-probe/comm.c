/*
 * cltrain-probe comm: how fast ranks reduce over the network, beside what TCP itself does.
 */
#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "comm_children.h"
#include "comm_engines.h"
#include "comm_measure.h"
#include "statistics.h"
#include "tools/common/help.h"
#include "tools/common/message.h"
#include "tools/survey/output.h"
#include "tools/common/numbers.h"
#include "tools/survey/document.h"

enum { MOST_SIZES = 64, MOST_GROUPS = 16, MOST_CHANNELS = 16 };

typedef struct comm_options {
    shared_options shared;
    int64_t ranks, channels;
    int security;
    const char *sizes, *algorithms, *engines;
    double seconds;
} comm_options;

static const char *const securities[] = {"tls", "auth", "none", NULL}; /* as clt_comm_security, from TLS on */

static const option_row rows[] = {
    {OPTION_HEADING, .help = "Ranks:"},
    {OPTION_WHOLE, 'n', "ranks", "N", offsetof(comm_options, ranks), .low = 2,
     .help = "starts so many processes on this host (default: the ranks of the job\n"
             "that this is started in, or 2)"},
    {OPTION_CHOICE, 0, "security", "LEVEL", offsetof(comm_options, security), .choices = securities,
     .help = "tls, auth or none (default: $CLTRAIN_COMM_SECURITY, or tls)"},
    {OPTION_WHOLE, 0, "channels", "N", offsetof(comm_options, channels), .low = 1,
     .help = "connections a pair for large messages, 1 to 16 (default 1)"},
    {OPTION_HEADING, .help = "Measuring:"},
    {OPTION_TEXT, 0, "sizes", "LIST", offsetof(comm_options, sizes),
     .help = "bytes, as 4,64K,16M (default 4,1K,16K,64K,256K,1M,4M,16M,64M,256M)"},
    {OPTION_TEXT, 0, "algorithms", "LIST", offsetof(comm_options, algorithms),
     .help = "each is measured for itself, as ring,direct (default: what is\n"
             "chosen; one that there is not: the error names them)"},
    {OPTION_TEXT, 0, "engines", "LIST", offsetof(comm_options, engines),
     .help = "what carries the bytes, each measured for itself: of cltrain, gloo,\n"
             "local (threads of one process) and mpi (by mpirun), or all"},
    {OPTION_POSITIVE, 0, "seconds", "SECONDS", offsetof(comm_options, seconds), .help = "for a row (default 1)"},
    OUTPUT_ROWS,
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static void print_help(void) {
    help_print(stdout, "Usage: " PROGRAM " comm [options]\n"
                       "\n"
                       "Measures all-reduces of f32 between processes, by turns with plain TCP in a ring, both directions at\n"
                       "once on one thread a process. Bandwidths are nccl-tests': algbw is bytes by time, busbw what that takes\n"
                       "of each link, 2 (n - 1) / n times as much. Times are medians; the slowest rank's count.\n");
    option_print(rows, ROWS, stdout);
    help_print(stdout, "\nExit status: 0 done; 1 it failed, or a result was wrong; 2 usage error;\n130 Ctrl-C.\n");
}

/* ---- sizes ---- */

static int read_size(const char *text, size_t length, size_t *bytes) {
    char digits[32];
    int64_t value;
    size_t unit = 1;
    if (length > 1 && strchr("KMG", text[length - 1])) {
        unit = text[length - 1] == 'K' ? 1 << 10 : text[length - 1] == 'M' ? 1 << 20 : 1 << 30;
        length--;
    }
    if (length == 0 || length >= sizeof digits) return -1;
    memcpy(digits, text, length);
    digits[length] = 0;
    if (!number_whole(digits, 1, 1 << 20, &value) && (unit > 1 || !number_whole(digits, 1, INT32_MAX, &value))) return -1;
    *bytes = (size_t)value * unit;
    return *bytes % sizeof(float) ? -1 : 0;
}

/* Their count, or -1. */
static int read_sizes(const char *text, size_t *sizes) {
    int n = 0;
    while (*text) {
        size_t length = strcspn(text, ",");
        if (n == MOST_SIZES || read_size(text, length, &sizes[n])) return -1;
        n++;
        text += length + (text[length] == ',');
    }
    return n;
}

/* ---- one rank ---- */

typedef struct rank_run {
    const comm_options *options;
    size_t sizes[MOST_SIZES];
    int n_sizes;
    clt_comm_options base; /* NULL strings: from the environment */
    const char *names[MOST_GROUPS]; /* of algorithms; NULL: what is chosen */
    comm_engine engines[MOST_GROUPS];
    clt_comm *groups[MOST_GROUPS]; /* NULL: of threads */
    int n_groups;
    clt_comm *job; /* by which ranks agree: the first group where no engines are named */
    json_t *rows;
    const char *security;
    int write_error; /* errno of stdout; 0: all was written. Of rank 0, and on others of it */
    int file_code;   /* of --json=FILE, after a message */
    char token[65]; /* the secret that the children share, in hexadecimal digits */
    char **argv;
} rank_run;

static double gigabytes(double bytes, double seconds) {
    return bytes / seconds * 1e-9;
}

static void tell_row(rank_run *run, const comm_row *row, int n, comm_engine engine) {
    const char *security = engine == COMM_CLTRAIN ? run->security : "none";
    double share = 2.0 * (n - 1) / n, bytes = (double)row->bytes;
    double algbw = gigabytes(bytes, row->seconds), raw = gigabytes(share * bytes, row->raw_seconds);
    if (run->options->shared.json) {
        json_array_append_new(run->rows,
                              json_pack("{s:s, s:s, s:I, s:f, s:f, s:f, s:f, s:i, s:i, s:s}", "engine", comm_engine_name(engine), "algorithm", row->algorithm,
                                        "bytes", (json_int_t)row->bytes, "latency_us", row->seconds * 1e6, "algbw_gbs", algbw,
                                        "busbw_gbs", algbw * share, "raw_tcp_gbs", raw, "samples", row->samples, "ranks", n,
                                        "security", security));
        return;
    }
    char texts[4][32];
    errno = 0;
    printf("%-18s %12zu %12.1f %10s %10s %10s %8s %8d\n", row->algorithm, row->bytes, row->seconds * 1e6,
           statistics_text(algbw, texts[0]), statistics_text(algbw * share, texts[1]), statistics_text(raw, texts[2]),
           statistics_text(algbw * share / raw, texts[3]), row->samples);
    if (fflush(stdout) || ferror(stdout)) run->write_error = errno ? errno : EIO;
}

/* Nobody reads on what rank 0 writes: all ranks end here, and none finds out by a connection that is gone. */
static int agree_written(rank_run *run) {
    float error = (float)run->write_error;
    clt_status status = clt_comm_all_reduce(run->job, &error, 1, CLT_F32, CLT_REDUCE_MAX, NULL);
    run->write_error = (int)error;
    return status < 0 ? library_error(status, "all-reduce") : 0;
}

static int measure_rows(rank_run *run, raw_ring *ring) {
    int n = clt_comm_size(run->job);
    bool tells = clt_comm_rank(run->job) == 0;
    bool others = false; /* have no security */
    for (int g = 0; g < run->n_groups; g++) others |= run->engines[g] != COMM_CLTRAIN;
    if (tells && !run->options->shared.json)
        printf("%d ranks, security %s%s\n%-18s %12s %12s %10s %10s %10s %8s %8s\n", n, run->security,
               others && strcmp(run->security, "none") ? " (engine cltrain; the others have none)" : "", "algorithm", "bytes", "latency us", "algbw GB/s", "busbw GB/s", "TCP GB/s", "of TCP", "samples");
    for (int i = 0; i < run->n_sizes; i++)
        for (int g = 0; g < run->n_groups && !run->write_error; g++) {
            comm_row row;
            clt_comm *group = run->groups[g];
            int code = group ? measure_all_reduce(&row, group, ring, run->sizes[i], run->options->seconds)
                             : measure_threads(&row, run->job, ring, run->sizes[i], run->options->seconds);
            if (code) return code;
            if (tells) tell_row(run, &row, n, run->engines[g]);
            code = agree_written(run);
            if (code) return code;
        }
    return 0;
}

static void tell_all(rank_run *run) {
    if (!run->rows) return;
    json_t *object = json_pack("{s:s, s:i, s:s, s:s, s:s, s:o}", "schema", "cltrain-comm/1", "ranks",
                               clt_comm_size(run->job), "security", run->security, "operation", "all_reduce", "dtype",
                               "f32", "rows", run->rows);
    run->rows = NULL;
    json_t *where = document_new("comm"); /* tool, host and time */
    json_object_update_missing(object, where);
    json_decref(where);
    errno = 0;
    bool to_stdout = output_is_stdout(run->options->shared.json);
    errno = 0;
    if (!object) run->write_error = ENOMEM;
    else if (!to_stdout) run->file_code = document_write_at(object, run->options->shared.json);
    else if (json_dumpf(object, stdout, JSON_INDENT(1)) || puts("") < 0 || fflush(stdout)) run->write_error = errno ? errno : EIO;
    json_decref(object);
}

/* Of rank 0, once the others do not need it any more: a reader that has seen enough ends it as it ends other programs. */
static int judge_writing(const rank_run *run, void (*on_pipe)(int)) {
    signal(SIGPIPE, on_pipe);
    if (run->write_error == EPIPE) raise(SIGPIPE);
    return run->write_error ? run_error("stdout cannot be written") : 0;
}

/* A communicator for each algorithm, or engine. */
static int open_groups(rank_run *run) {
    bool all = run->options->engines && !strcmp(run->options->engines, "all");
    for (int g = 0; g < run->n_groups; g++) {
        char job[64];
        clt_comm_options options = run->base;
        options.algorithms = run->names[g];
        snprintf(job, sizeof job, "%s-%d", options.job ? options.job : "probe", g);
        if (options.job) options.job = job;
        if (run->options->engines) comm_engine_choose(&options, run->engines[g]);
        if (run->engines[g] == COMM_LOCAL) continue;
        clt_status status = clt_comm_create(&run->groups[g], &options);
        if (status == CLT_E_UNSUPPORTED && all) {
            if (run->job && clt_comm_rank(run->job) == 0) warning("%s is left out: %s", comm_engine_name(run->engines[g]), clt_error_detail());
            run->n_groups--;
            memmove(run->engines + g, run->engines + g + 1, (size_t)(run->n_groups - g) * sizeof *run->engines);
            g--;
        } else if (status < 0) return library_error(status, "joining the job");
    }
    return 0;
}

/* Where engines are named, a group of its own, so that none of them carries what is not measured. */
static int open_job(rank_run *run) {
    clt_comm_options options = run->base;
    comm_engine_choose(&options, COMM_CLTRAIN);
    clt_status status = run->options->engines ? clt_comm_create(&run->job, &options) : CLT_OK;
    if (status < 0) return library_error(status, "joining the job");
    int code = open_groups(run);
    if (!run->job) run->job = run->groups[0];
    return code;
}

static void close_groups(rank_run *run) {
    for (int g = 0; g < run->n_groups; g++)
        if (run->groups[g] != run->job) clt_comm_destroy(run->groups[g]);
    clt_comm_destroy(run->job);
}

static int run_rank(rank_run *run) {
    raw_ring *ring = NULL;
    void (*on_pipe)(int) = signal(SIGPIPE, SIG_IGN);
    if (run->options->engines) clt_log_set(NULL, CLT_LOG_ERROR, NULL); /* each group of each rank would say that it is in the clear */
    int code = open_job(run);
    bool tells = !code && clt_comm_rank(run->job) == 0;
    if (!code && clt_comm_size(run->job) == 1) code = run_error("a job of one rank has no network to measure");
    if (!code && run->options->shared.json && tells) run->rows = json_array();
    if (!code) code = raw_ring_open(&ring, run->job);
    if (!code) code = measure_rows(run, ring);
    if (!code) tell_all(run);
    raw_ring_close(ring);
    json_decref(run->rows);
    close_groups(run);
    if (!code) code = run->file_code;
    return code || !tells ? code : judge_writing(run, on_pipe);
}

/* ---- ranks as children ---- */

static int make_token(rank_run *run) {
    unsigned char bytes[32];
    FILE *random = fopen("/dev/urandom", "rb");
    size_t got = random ? fread(bytes, 1, sizeof bytes, random) : 0;
    if (random) fclose(random);
    if (got != sizeof bytes) return run_error("/dev/urandom cannot be read");
    for (size_t i = 0; i < sizeof bytes; i++) snprintf(run->token + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

static void take_job(rank_run *run, const char *store, const char *token) {
    run->base.store = store;
    run->base.token = token;
    run->base.job = "probe";
    run->base.network = "127.0.0.1";
    run->base.connect_seconds = 60;
}

static int run_child(int rank, const char *store, void *user) {
    rank_run *run = user;
    take_job(run, store, run->token);
    run->base.rank = rank;
    return run_rank(run);
}

static int run_mpirun(int rank, const char *store, void *user) {
    const rank_run *run = user;
    (void)rank;
    return comm_engine_start_mpi(run->base.size, store, run->token, run->argv);
}

static int run_children(rank_run *run, int n) {
    int code = make_token(run);
    run->base.size = n;
    if (code) return code;
    for (int g = 0; g < run->n_groups; g++)
        if (run->options->engines && run->engines[g] == COMM_MPI) return comm_children_run(1, run_mpirun, run);
    return comm_children_run(n, run_child, run);
}

/* ---- the command line ---- */

static bool in_a_job(void) {
    static const char *const signs[] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "JOB_COMPLETION_INDEX"};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (getenv(signs[i])) return true;
    return false;
}

static int split_algorithms(rank_run *run, char *list) {
    run->n_groups = 1;
    if (!list) return 0;
    char *rest;
    for (char *name = strtok_r(list, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
        if (run->n_groups == MOST_GROUPS) return usage_error("more than %d algorithms", MOST_GROUPS);
        run->names[run->n_groups - 1] = name;
        run->n_groups++;
    }
    if (run->n_groups > 1) run->n_groups--;
    return 0;
}

static int run_with(const comm_options *options, char *algorithms, char **argv) {
    rank_run run = {.options = options, .argv = argv};
    run.n_sizes = read_sizes(options->sizes, run.sizes);
    if (run.n_sizes <= 0)
        return usage_error("--sizes '%s': expected multiples of 4 with K, M or G after them, such as 4,64K,16M", options->sizes);
    if (options->ranks > COMM_MOST_CHILDREN) return usage_error("--ranks: %d at most", COMM_MOST_CHILDREN);
    int code = split_algorithms(&run, algorithms);
    if (!code && options->engines && algorithms) code = usage_error("--engines and --algorithms: one of them");
    if (!code && options->engines) code = comm_engines_read(options->engines, run.engines, &run.n_groups);
    if (code) return code;
    const char *wish = getenv("CLTRAIN_COMM_SECURITY");
    run.security = options->security != OPTION_UNSET ? securities[options->security] : wish && wish[0] ? wish : "tls";
    if (options->security != OPTION_UNSET) run.base.security = (clt_comm_security)(CLT_SECURITY_TLS + options->security);
    if (options->channels != OPTION_UNSET) run.base.channels = (int)options->channels;
    const char *store, *token;
    if (comm_engine_started_by_mpi(&store, &token)) {
        take_job(&run, store, token);
        return run_rank(&run);
    }
    if (options->ranks == OPTION_UNSET && in_a_job()) {
        if (options->engines) return usage_error("--engines: the ranks of a job have one, which CLTRAIN_COMM_ENGINE names");
        if (run.n_groups > 1) return usage_error("--algorithms: one at a time within a job");
        return run_rank(&run);
    }
    return run_children(&run, options->ranks == OPTION_UNSET ? 2 : (int)options->ranks);
}

int run_comm(int argc, char **argv) {
    comm_options options = {.shared = shared_options_unset(), .ranks = OPTION_UNSET, .channels = OPTION_UNSET,
                            .security = OPTION_UNSET, .seconds = 1,
                            .sizes = "4,1K,16K,64K,256K,1M,4M,16M,64M,256M"};
    int code = option_parse(rows, ROWS, argc, argv, &options, refuse_word);
    if (code) return code;
    if (options.shared.help) return print_help(), fflush(stdout) ? run_error("stdout cannot be written") : 0;
    if (options.channels > MOST_CHANNELS) return usage_error("--channels: at most %d", MOST_CHANNELS);
    message_start(options.shared.verbose);
    char *algorithms = options.algorithms ? strdup(options.algorithms) : NULL;
    code = run_with(&options, algorithms, argv);
    free(algorithms);
    return code;
}
