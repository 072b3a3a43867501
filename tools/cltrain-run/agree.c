#define _GNU_SOURCE /* pipe2 */
#include "agree.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/common/clock.h"
#include "tools/common/message.h"
#include "tools/common/numbers.h"

enum { KEY_BYTES = 64 };
static const double tell_seconds = 10, listen_seconds = 2, lost_seconds = 1;

static void name_key(const job *j, const char *what, int number, char key[KEY_BYTES]) {
    if (number < 0) snprintf(key, KEY_BYTES, "%lld/%s", (long long)j->restarts, what);
    else snprintf(key, KEY_BYTES, "%lld/%s/%d", (long long)j->restarts, what, number);
}

/* The number before the next `after`: as it is written, without blanks or a plus. What is behind, or NULL. */
static const char *take_number(const char *text, char after, int64_t low, int64_t high, int *value) {
    char digits[12];
    int64_t number;
    const char *end = strchr(text, after);
    size_t length = end ? (size_t)(end - text) : 0;
    if (length == 0 || length >= sizeof digits || text[0] == '+') return NULL;
    memcpy(digits, text, length);
    digits[length] = '\0';
    if (!number_whole(digits, low, high, &number)) return NULL;
    *value = (int)number;
    return end + (after != '\0');
}

static const char *const kind_names[] = {[END_DONE] = "done", [END_FAILED] = "failed", [END_STOPPED] = "stopped"};

/* "KIND STATUS RANK" */
static bool read_end(const char *text, end_of_start *end) {
    for (end_kind kind = END_DONE; kind <= END_STOPPED; kind++) {
        size_t length = strlen(kind_names[kind]);
        if (strncmp(text, kind_names[kind], length) != 0 || text[length] != ' ') continue;
        end_of_start e = {.kind = kind};
        const char *rank = take_number(text + length + 1, ' ', 0, 255, &e.status);
        if (!rank || !take_number(rank, '\0', -1, INT32_MAX, &e.rank)) return false;
        *end = e;
        return true;
    }
    return false;
}

/* ---- the beginning ---- */

static int get_count(const job *j, int node, int *count) {
    char key[KEY_BYTES], text[CLT_STORE_TEXT_BYTES];
    name_key(j, "ranks", node, key);
    clt_status status = clt_store_get(j->store, key, text, j->options->connect_seconds);
    if (status == CLT_E_TIMEOUT)
        return run_error("host %d did not come within %g s (--connect)", node, j->options->connect_seconds);
    if (status < 0) return library_error(status, "waiting for the other hosts");
    if (!take_number(text, ' ', 1, 4096, count)) return run_error("host %d says that it has '%.40s' ranks", node, text);
    return 0;
}

/* Goes to the start after the present one once that has failed, for which it waits as long; *next: it has. */
static int go_to_next(job *j, double seconds, bool *next) {
    char key[KEY_BYTES], text[CLT_STORE_TEXT_BYTES];
    end_of_start end;
    *next = false;
    if (j->restarts >= j->options->max_restarts) return 0;
    name_key(j, "end", -1, key);
    clt_status status = clt_store_get(j->store, key, text, seconds);
    if (status < 0 && status != CLT_E_TIMEOUT) return library_error(status, "looking for the start under way");
    *next = status == CLT_OK && read_end(text, &end) && end.kind == END_FAILED;
    j->restarts += *next;
    return 0;
}

/* "RANKS WHO": a host comes once, however often it was started; who comes second goes, and leaves the others alone, unless that start fails,
 * as it does when the first one was lost, and may be repeated. */
static int come(job *j) {
    bool next = false;
    char key[KEY_BYTES], text[64], stands[CLT_STORE_TEXT_BYTES];
    name_key(j, "ranks", (int)j->options->node_rank, key);
    snprintf(text, sizeof text, "%lld %s", (long long)j->options->ranks, j->self);
    clt_status status = clt_store_set_once(j->store, key, text, stands, j->options->connect_seconds);
    if (status < 0) return library_error(status, "waiting for the other hosts");
    if (!strcmp(text, stands)) return 0;
    if (j->restarts < j->options->max_restarts)
        message_line(PROGRAM ": another launcher is host %lld of job '%s': waiting for the end of its start", (long long)j->options->node_rank, j->name);
    int code = go_to_next(j, j->options->connect_seconds, &next);
    if (code || next) return code ? code : come(j);
    return run_error("another launcher is host %lld of job '%s' already: give each host its --node-rank, and each start its --job, "
                     "in a store that several share",
                     (long long)j->options->node_rank, j->name);
}

int agree_begin(job *j) {
    j->first_rank = 0;
    j->world = (int)j->options->ranks;
    if (j->options->nodes == 1) return 0;
    int code = 0;
    for (bool next = true; !code && next;) code = go_to_next(j, 0, &next); /* of a job that goes on while this launcher comes anew */
    if (!code) code = come(j);
    if (code) return code;
    j->world = 0;
    for (int node = 0; node < j->options->nodes; node++) {
        int count;
        code = get_count(j, node, &count);
        if (code) return code;
        if (node < j->options->node_rank) j->first_rank += count;
        j->world += count;
    }
    return 0;
}

/* ---- the end ---- */

void agree_tell(const job *j, end_of_start *end) {
    if (j->options->nodes == 1 || end->kind == END_LOST) return;
    char key[KEY_BYTES], text[64], stands[CLT_STORE_TEXT_BYTES];
    name_key(j, "end", -1, key);
    snprintf(text, sizeof text, "%s %d %d", kind_names[end->kind], end->status, end->rank);
    double patience = end->kind == END_DONE ? j->options->outage_seconds : tell_seconds; /* what failed has ended anyway */
    clt_status status = clt_store_set_once(j->store, key, text, stands, patience);
    if (status < 0) library_error(status, "telling the other hosts");
    if (status < 0 || !read_end(stands, end)) end->kind = END_LOST;
}

void agree_done(const job *j, int status) {
    if (j->options->nodes == 1) return;
    char key[KEY_BYTES], text[CLT_STORE_TEXT_BYTES];
    name_key(j, "done", (int)j->options->node_rank, key);
    clt_status result = clt_store_set(j->store, key, "", j->options->outage_seconds);
    /* Who comes last sees all others: each says so before it looks. */
    for (int node = 0; node < j->options->nodes && result == CLT_OK; node++) {
        name_key(j, "done", node, key);
        result = clt_store_get(j->store, key, text, 0);
    }
    if (result == CLT_OK) agree_tell(j, &(end_of_start){END_DONE, status, -1});
}

void agree_part(const job *j, const end_of_start *end) {
    if (j->options->nodes == 1 || end->kind == END_LOST) return;
    char key[KEY_BYTES], text[CLT_STORE_TEXT_BYTES];
    bool serves = job_serves_store(j);
    /* After anything but a good end, hosts may be gone. */
    double deadline = now_seconds() + (end->kind == END_DONE ? tell_seconds : listen_seconds);
    for (int node = 0; serves && node < j->options->nodes; node++) {
        if (node == (int)j->options->node_rank) continue;
        name_key(j, "heard", node, key);
        double left = deadline - now_seconds();
        clt_store_get(j->store, key, text, left > 0 ? left : 0);
    }
    name_key(j, "heard", (int)j->options->node_rank, key);
    if (!serves) clt_store_set(j->store, key, "", lost_seconds); /* who served may be gone: we know the end */
}

/* Below the ranks' own name, see comm.h. Who waits does not wait longer than without it: whether it was written does not matter to us. */
void agree_lost(const job *j, int rank, int status) {
    char name[NAME_BYTES], key[KEY_BYTES], text[64], stands[CLT_STORE_TEXT_BYTES];
    clt_comm_options options = j->store_options;
    clt_store *store;
    job_name_of_start(j, name);
    options.job = name;
    options.connect_seconds = lost_seconds;
    snprintf(key, sizeof key, "lost/%lld", (long long)j->restarts * CLT_COMM_GENERATIONS);
    snprintf(text, sizeof text, "%d %d", rank, status);
    if (clt_store_open(&store, &options, false) < 0) return;
    clt_store_set_once(store, key, text, stands, lost_seconds);
    clt_store_close(store);
}

bool agree_return(job *j) {
    bool next = false;
    if (j->restarts >= j->options->max_restarts || job_reopen_store(j)) return false;
    if (go_to_next(j, j->options->connect_seconds, &next) || next) return next;
    run_error("the start that this host was lost from did not end within %g s (--connect)", j->options->connect_seconds);
    return false;
}

/* ---- listening ---- */

static struct {
    clt_comm_options options;
    char key[KEY_BYTES];
    double outage_seconds;
    pthread_t thread;
    bool started;
    atomic_bool stopping;
    int ends[2];
    end_of_start news; /* before the byte is written */
} listener;

/* The news, or END_NONE when nobody wants to know any more. The store may be out of reach for a while: a network that is cut comes back. */
static end_of_start await_news(clt_store *store) {
    char text[CLT_STORE_TEXT_BYTES];
    end_of_start end = {END_NONE, 0, -1};
    double reached = now_seconds();
    while (!atomic_load(&listener.stopping)) {
        clt_status status = clt_store_get(store, listener.key, text, listen_seconds);
        if (status == CLT_OK && read_end(text, &end)) return end;
        if (status == CLT_E_TIMEOUT) reached = now_seconds();
        else if (status != CLT_E_NETWORK || now_seconds() - reached > listener.outage_seconds) return (end_of_start){END_LOST, EXIT_FAILED, -1};
    }
    return end;
}

static void *listen_for_news(void *argument) {
    (void)argument;
    clt_store *store;
    listener.news = (end_of_start){END_LOST, EXIT_FAILED, -1};
    if (clt_store_open(&store, &listener.options, false) == CLT_OK) {
        listener.news = await_news(store);
        clt_store_close(store);
    }
    while (write(listener.ends[1], "", 1) < 0 && errno == EINTR) continue;
    return NULL;
}

int agree_listen(const job *j, int *descriptor) {
    *descriptor = -1;
    if (j->options->nodes == 1) return 0;
    listener.options = j->store_options;
    listener.options.connect_seconds = listener.outage_seconds = j->options->outage_seconds;
    name_key(j, "end", -1, listener.key);
    atomic_store(&listener.stopping, false);
    if (pipe2(listener.ends, O_CLOEXEC)) return run_error("a pipe: %s", strerror(errno));
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the main thread */
    int error = pthread_create(&listener.thread, NULL, listen_for_news, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) return run_error("a thread could not be started: %s", strerror(error));
    listener.started = true;
    *descriptor = listener.ends[0];
    return 0;
}

end_of_start agree_news(void) {
    char byte;
    while (read(listener.ends[0], &byte, 1) < 0 && errno == EINTR) continue;
    return listener.news;
}

void agree_listen_end(void) {
    if (!listener.started) return;
    atomic_store(&listener.stopping, true);
    pthread_join(listener.thread, NULL);
    close(listener.ends[0]);
    close(listener.ends[1]);
    listener.started = false;
}
