#define _GNU_SOURCE /* environ, getrandom, vasprintf */
#include "job.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tools/common/message.h"
#include "tools/common/option_parser.h"

enum { DEFAULT_PORT = 29500, LEAST_TOKEN = 16, MOST_TOKEN_FILE = 65536, MOST_VARIABLES = 24 };

static const char *variable(const char *name) {
    const char *text = getenv(name);
    return text && text[0] ? text : NULL;
}

/* `bytes` random bytes as hex digits. */
static bool make_secret(char *text, size_t bytes) {
    unsigned char random[32];
    if (getrandom(random, bytes, 0) != (ssize_t)bytes) return false;
    for (size_t i = 0; i < bytes; i++) sprintf(text + 2 * i, "%02x", random[i]);
    return true;
}

/* ---- the token ---- */

/* All of it, without the white space at its end: as ranks read it that others start. */
static int read_token_file(job *j, const char *path) {
    FILE *file = fopen(path, "r");
    j->file_token = calloc(1, MOST_TOKEN_FILE + 2);
    if (!file || !j->file_token) {
        int code = run_error("CLTRAIN_COMM_TOKEN_FILE %s: %s", path, strerror(errno));
        if (file) fclose(file);
        return code;
    }
    size_t length = fread(j->file_token, 1, MOST_TOKEN_FILE + 1, file);
    struct stat facts;
    bool failed = ferror(file), again = !fstat(fileno(file), &facts) && S_ISREG(facts.st_mode);
    fclose(file);
    if (failed) return run_error("CLTRAIN_COMM_TOKEN_FILE %s cannot be read", path);
    if (length > MOST_TOKEN_FILE) return run_error("CLTRAIN_COMM_TOKEN_FILE %s has more than %d bytes", path, MOST_TOKEN_FILE);
    while (length > 0 && isspace((unsigned char)j->file_token[length - 1])) j->file_token[--length] = 0;
    if (strlen(j->file_token) != length) return run_error("CLTRAIN_COMM_TOKEN_FILE %s holds a zero byte", path);
    j->token = j->file_token;
    j->token_path = again ? realpath(path, NULL) : NULL;
    return 0;
}

static clt_comm_security security_level(const run_options *o) {
    const char *name = options_security_name(o);
    if (!name) name = variable("CLTRAIN_COMM_SECURITY");
    if (!name || !strcmp(name, "tls")) return CLT_SECURITY_TLS;
    if (!strcmp(name, "auth")) return CLT_SECURITY_AUTH;
    if (!strcmp(name, "none")) return CLT_SECURITY_NONE;
    return CLT_SECURITY_DEFAULT;
}

static int find_token(job *j) {
    const char *file = variable("CLTRAIN_COMM_TOKEN_FILE");
    j->token = variable("CLTRAIN_COMM_TOKEN");
    if (!j->token && file) {
        int code = read_token_file(j, file);
        if (code) return code;
    }
    if (j->token && strlen(j->token) < LEAST_TOKEN)
        return run_error("the token (CLTRAIN_COMM_TOKEN%s) has fewer than %d characters", j->token == j->file_token ? "_FILE" : "",
                         LEAST_TOKEN);
    if (j->token || j->store_options.security == CLT_SECURITY_NONE || variable("CLTRAIN_COMM_CERTIFICATE")) return 0;
    if (j->options->nodes > 1)
        return run_error("several hosts need one secret: set the same CLTRAIN_COMM_TOKEN, of %d characters at least, or "
                         "CLTRAIN_COMM_TOKEN_FILE on all of them",
                         LEAST_TOKEN);
    if (!make_secret(j->made_token, 32)) return run_error("no random numbers for a token: %s", strerror(errno));
    j->token = j->made_token;
    return 0;
}

/* ---- names and addresses ---- */

static int find_name(job *j) {
    const char *name = j->options->job ? j->options->job : variable("CLTRAIN_COMM_JOB");
    char secret[17] = "";
    if (!name && j->options->nodes == 1 && !make_secret(secret, 8)) return run_error("no random numbers: %s", strerror(errno));
    if (name && strlen(name) > 100) return usage_error("the job's name has more than 100 characters");
    if (name) snprintf(j->name, sizeof j->name, "%s", name);
    else snprintf(j->name, sizeof j->name, "run%s%s", secret[0] ? "-" : "", secret);
    return 0;
}

/* A port that is free now: for programs that let rank 0 listen at MASTER_PORT. */
static void find_free_port(char port[8]) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s >= 0 && bind(s, (struct sockaddr *)&address, bytes) == 0 && getsockname(s, (struct sockaddr *)&address, &bytes) == 0)
        snprintf(port, 8, "%d", ntohs(address.sin_port));
    if (s >= 0) close(s);
}

/* HOST, HOST:PORT, [V6] or [V6]:PORT; an IPv6 address alone has no port. */
static bool split_master(const char *text, int64_t usual, char *host, size_t capacity, long *port) {
    const char *bracket = text[0] == '[' ? strchr(text, ']') : NULL, *colon = strrchr(text, ':');
    bool bare_v6 = !bracket && colon && strchr(text, ':') != colon;
    if (bare_v6 || (bracket && colon < bracket)) colon = NULL;
    const char *from = bracket ? text + 1 : text, *to = bracket ? bracket : colon ? colon : text + strlen(text);
    if (to == from || (size_t)(to - from) >= capacity || (text[0] == '[' && (!bracket || (bracket[1] && bracket[1] != ':')))) return false;
    snprintf(host, capacity, "%.*s", (int)(to - from), from);
    char *end;
    *port = colon ? strtol(colon + 1, &end, 10) : usual ? (long)usual : DEFAULT_PORT;
    return !colon || (colon[1] >= '0' && colon[1] <= '9' && !*end && *port >= 1 && *port <= 65535);
}

/* The store is beside MASTER_PORT, at which the program itself may listen. */
static int find_addresses(job *j) {
    const run_options *o = j->options;
    long port;
    if (!o->master) {
        if (o->nodes > 1) return 0;
        snprintf(j->master, sizeof j->master, "127.0.0.1");
        if (o->master_port) snprintf(j->port, sizeof j->port, "%hu", (unsigned short)o->master_port);
        else find_free_port(j->port);
        if (!o->store) snprintf(j->url, sizeof j->url, "tcp://127.0.0.1:0");
        return 0;
    }
    if (!split_master(o->master, o->master_port, j->master, sizeof j->master - 8, &port))
        return usage_error("--master '%s': expected HOST or HOST:PORT", o->master);
    snprintf(j->port, sizeof j->port, "%hu", (unsigned short)(port < 65535 ? port + 1 : port - 1));
    if (!o->store) snprintf(j->url, sizeof j->url, strchr(j->master, ':') ? "tcp://[%s]:%ld" : "tcp://%s:%ld", j->master, port);
    return 0;
}

void job_name_of_start(const job *j, char name[NAME_BYTES]) {
    if (j->restarts) snprintf(name, NAME_BYTES, "%.*s+%d", NAME_BYTES - 16, j->name, (int)j->restarts);
    else snprintf(name, NAME_BYTES, "%s", j->name);
}

const char *job_url(const job *j) {
    if (j->url[0]) return j->url;
    return j->options->store ? j->options->store : "";
}

/* ---- begin and end ---- */

static bool is_tcp(const job *j) {
    return !strncmp(job_url(j), "tcp://", 6);
}

bool job_serves_store(const job *j) {
    return is_tcp(j) && j->options->node_rank == 0;
}

static int open_store(job *j) {
    const run_options *o = j->options;
    bool tcp = is_tcp(j), serve = job_serves_store(j);
    static char launchers[NAME_BYTES + 16];
    snprintf(launchers, sizeof launchers, "%s.launchers", j->name);
    j->store_options.store = job_url(j);
    j->store_options.token = j->token;
    j->store_options.job = launchers;
    j->store_options.network = o->interface ? o->interface : variable("CLTRAIN_COMM_INTERFACE");
    /* What is served for one host is for that alone, whatever the ranks' interface. */
    if (o->nodes == 1 && !o->master && !o->store) j->store_options.network = NULL;
    j->store_options.connect_seconds = o->connect_seconds;
    if (o->nodes == 1 && !serve) return 0;
    clt_status status = clt_store_open(&j->store, &j->store_options, serve);
    if (status < 0) return library_error(status, serve ? "serving the store" : "reaching the store");
    if (tcp) snprintf(j->url, sizeof j->url, "%.*s", (int)sizeof j->url - 1, o->store && !serve ? o->store : clt_store_url(j->store));
    j->store_options.store = job_url(j);
    return 0;
}

int job_begin(job *j, const run_options *options) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    *j = (job){.options = options, .started = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec};
    j->store_options.security = security_level(options);
    j->store_options.certificate = variable("CLTRAIN_COMM_CERTIFICATE");
    j->store_options.key = variable("CLTRAIN_COMM_KEY");
    j->store_options.authority = variable("CLTRAIN_COMM_AUTHORITY");
    if (j->store_options.security == CLT_SECURITY_DEFAULT)
        return usage_error("CLTRAIN_COMM_SECURITY '%s': expected tls, auth or none", variable("CLTRAIN_COMM_SECURITY"));
    if (options->engine == ENGINE_GLOO && j->store_options.security != CLT_SECURITY_NONE)
        return usage_error("--engine gloo needs --security none: Gloo neither authenticates nor encrypts");
    if (!make_secret(j->self, sizeof j->self / 2)) return run_error("no random numbers: %s", strerror(errno));
    int code = find_addresses(j);
    if (!code) code = find_token(j);
    if (!code) code = find_name(j);
    if (!code) code = open_store(j);
    return code;
}

int job_reopen_store(job *j) {
    if (job_serves_store(j)) return EXIT_FAILED;
    clt_store_close(j->store);
    j->store = NULL;
    clt_status status = clt_store_open(&j->store, &j->store_options, false);
    return status < 0 ? library_error(status, "reaching the store") : 0;
}

void job_end(job *j) {
    clt_store_close(j->store);
    free(j->file_token);
    free(j->token_path);
}

/* ---- what ranks are told ---- */

typedef struct variables {
    char *all[MOST_VARIABLES]; /* "NAME=VALUE", or "NAME" to leave out */
    int n;
    bool failed;
} variables;

static void add(variables *v, const char *format, ...) CLT_PRINTF(2, 3);
static void add(variables *v, const char *format, ...) {
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    bool made = vasprintf(&text, format, arguments) >= 0;
    va_end(arguments);
    v->all[v->n++] = made ? text : NULL;
    v->failed |= !made;
}

/* The local rank's of "A,B,…", in turn. */
static void add_device(variables *v, const char *devices, int local_rank) {
    int n = 1;
    for (const char *c = devices; *c; c++) n += *c == ',';
    for (int i = local_rank % n; i > 0; i--) devices = strchr(devices, ',') + 1;
    add(v, "CLTRAIN_DEVICE=%.*s", (int)strcspn(devices, ","), devices);
}

static void add_place(const job *j, variables *v, int local_rank) {
    add(v, "RANK=%d", j->first_rank + local_rank);
    add(v, "WORLD_SIZE=%d", j->world);
    add(v, "LOCAL_RANK=%d", local_rank);
    add(v, "LOCAL_WORLD_SIZE=%d", (int)j->options->ranks);
    add(v, "GROUP_RANK=%d", (int)j->options->node_rank);
    if (j->master[0]) add(v, "MASTER_ADDR=%s", j->master);
    if (j->port[0]) add(v, "MASTER_PORT=%s", j->port);
    /* An outer launcher's. */
    add(v, "TORCHELASTIC_RESTART_COUNT");
    add(v, "TORCHELASTIC_RUN_ID");
    add(v, "TORCHELASTIC_USE_AGENT_STORE");
}

static void add_comm(const job *j, variables *v) {
    char name[NAME_BYTES];
    add(v, "CLTRAIN_COMM_STORE=%s", job_url(j));
    /* Rank 0 need not. */
    add(v, strncmp(job_url(j), "tcp://", 6) ? "CLTRAIN_COMM_STORE_SERVED" : "CLTRAIN_COMM_STORE_SERVED=1");
    if (j->token_path) add(v, "CLTRAIN_COMM_TOKEN_FILE=%s", j->token_path); /* and the secret in no environment */
    else if (j->token) add(v, "CLTRAIN_COMM_TOKEN=%s", j->token);
    job_name_of_start(j, name);
    add(v, "CLTRAIN_COMM_JOB=%s", name);
    add(v, "CLTRAIN_COMM_GENERATION=%d", (int)j->restarts);
    add(v, "CLTRAIN_RESTART_COUNT=%d", (int)j->restarts);
    add(v, "CLTRAIN_RUN_STARTED=%.3f", j->started);
    add(v, "CLTRAIN_RUN_ON_FAILURE=%s", j->options->on_failure == ON_FAILURE_CONTINUE ? "continue" : "stop");
    if (options_engine_name(j->options)) add(v, "CLTRAIN_COMM_ENGINE=%s", options_engine_name(j->options));
    if (options_security_name(j->options)) add(v, "CLTRAIN_COMM_SECURITY=%s", options_security_name(j->options));
    if (j->options->interface) add(v, "CLTRAIN_COMM_INTERFACE=%s", j->options->interface);
}

static bool is_replaced(const variables *v, const char *entry) {
    size_t length = strcspn(entry, "=");
    for (int i = 0; i < v->n; i++)
        if (strcspn(v->all[i], "=") == length && !strncmp(v->all[i], entry, length)) return true;
    return false;
}

char **job_environment(const job *j, int local_rank) {
    variables v = {0};
    add_place(j, &v, local_rank);
    add_comm(j, &v);
    if (j->options->devices) add_device(&v, j->options->devices, local_rank);
    size_t own = 0, n = 0;
    while (environ[own]) own++;
    char **all = v.failed ? NULL : calloc(own + (size_t)v.n + 1, sizeof *all);
    for (size_t i = 0; all && i < own; i++)
        if (!is_replaced(&v, environ[i])) all[n++] = strdup(environ[i]);
    for (int i = 0; i < v.n; i++) {
        if (all && v.all[i] && strchr(v.all[i], '=')) all[n++] = v.all[i];
        else free(v.all[i]);
    }
    return all;
}

void job_free_environment(char **environment) {
    for (char **e = environment; e && *e; e++) free(*e);
    free(environment);
}
