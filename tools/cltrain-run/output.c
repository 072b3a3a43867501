#define _GNU_SOURCE /* pipe2, pthread_tryjoin_np */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/common/clock.h"
#include "tools/common/message.h"

enum { LINE_BYTES = 65536, READ_BYTES = 65536, ROOM_BYTES = 262144, MOST_BYTES = 16 << 20 };
/* What was asked to end does not wait for longer until somebody reads. */
static const double hurried_seconds = 1;

/* ---- stdout and stderr: each has a thread that writes, so that nothing else waits for who reads them ---- */

typedef struct sink {
    int to;
    const char *name;
    bool started;
    pthread_t thread;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t some;
    char *bytes; /* to be written */
    size_t n, capacity;
    bool closing;
    atomic_int error; /* errno; what comes after it is thrown away */
    bool told;
} sink;

static sink sinks[] = {{.to = 1, .name = "stdout", .lock = PTHREAD_MUTEX_INITIALIZER, .some = PTHREAD_COND_INITIALIZER},
                       {.to = 2, .name = "stderr", .lock = PTHREAD_MUTEX_INITIALIZER, .some = PTHREAD_COND_INITIALIZER}};
enum { SINKS = sizeof sinks / sizeof sinks[0] };
static int room[2] = {-1, -1}; /* a byte for each time that there is room again */
static volatile sig_atomic_t hurried;
static bool given_up, lost;

static sink *sink_of(int to) {
    return &sinks[to - 1];
}

/* Returns 0 or errno. Our own output may be non-blocking, if whoever gave it to us has made it so. */
static int write_all(int to, const char *bytes, size_t n) {
    while (n > 0) {
        ssize_t done = write(to, bytes, n);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            poll(&(struct pollfd){to, POLLOUT, 0}, 1, 1000);
            continue;
        }
        if (done <= 0) return done < 0 ? errno : EIO;
        bytes += done;
        n -= (size_t)done;
    }
    return 0;
}

/* With the lock held, but while it writes. */
static void write_some(sink *s) {
    char *bytes = s->bytes;
    size_t n = s->n;
    s->bytes = NULL;
    s->n = s->capacity = 0;
    pthread_mutex_unlock(&s->lock);
    int error = atomic_load(&s->error) ? 0 : write_all(s->to, bytes, n);
    if (error) atomic_store(&s->error, error);
    free(bytes);
    if (write(room[1], "", 1) < 0) errno = 0; /* full: that is known */
    pthread_mutex_lock(&s->lock);
}

static void *write_on(void *argument) {
    sink *s = argument;
    pthread_mutex_lock(&s->lock);
    for (;;) {
        if (s->n) write_some(s);
        else if (s->closing) break;
        else pthread_cond_wait(&s->some, &s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static bool grow(sink *s, size_t more) {
    if (more <= s->capacity - s->n) return true;
    if (s->n + more > MOST_BYTES) return false;
    char *bytes = realloc(s->bytes, 2 * (s->n + more));
    if (!bytes) return false;
    s->bytes = bytes;
    s->capacity = 2 * (s->n + more);
    return true;
}

static void put(sink *s, const char *bytes, size_t n) {
    pthread_mutex_lock(&s->lock);
    if (grow(s, n)) {
        memcpy(s->bytes + s->n, bytes, n);
        s->n += n;
    } else {
        atomic_store(&s->error, ENOBUFS);
    }
    pthread_cond_signal(&s->some);
    pthread_mutex_unlock(&s->lock);
}

static bool has_room(int to) {
    sink *s = sink_of(to);
    pthread_mutex_lock(&s->lock);
    bool has = s->n < ROOM_BYTES;
    pthread_mutex_unlock(&s->lock);
    return has;
}

static void put_message(const char *text) {
    put(sink_of(2), text, strlen(text));
}

int outputs_begin(void) {
    sigset_t all, before;
    int error = 0;
    if (pipe2(room, O_CLOEXEC | O_NONBLOCK)) return run_error("a pipe: %s", strerror(errno));
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the main thread */
    for (int i = 0; i < SINKS && !error; i++) {
        error = pthread_create(&sinks[i].thread, NULL, write_on, &sinks[i]);
        sinks[i].started = !error;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) return run_error("a thread could not be started: %s", strerror(error));
    message_through(put_message);
    return 0;
}

void outputs_hurry(void) {
    hurried = 1;
}

int outputs_room(void) {
    return room[0];
}

void outputs_take_room(void) {
    char bytes[64];
    while (read(room[0], bytes, sizeof bytes) > 0) continue;
}

/* Whether what was asked to end has waited for long enough since `begun`, which is 0 at first; else a moment passes. */
static bool waited_enough(double *begun) {
    double now = now_seconds();
    if (*begun == 0 || !hurried) *begun = now;
    if (now - *begun > hurried_seconds) return true;
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    return false;
}

bool outputs_are_broken(void) {
    return atomic_load(&sink_of(1)->error) == EPIPE;
}

void outputs_look(void) {
    for (int i = 0; i < SINKS; i++) {
        int error = atomic_load(&sinks[i].error);
        if (!error || error == EPIPE || sinks[i].told) continue;
        sinks[i].told = lost = true;
        run_error("%s cannot be written: %s", sinks[i].name, strerror(error));
    }
}

static void finish(sink *s) {
    double begun = 0;
    if (!s->started) return;
    pthread_mutex_lock(&s->lock);
    s->closing = true;
    pthread_cond_signal(&s->some);
    pthread_mutex_unlock(&s->lock);
    s->started = false;
    while (pthread_tryjoin_np(s->thread, NULL) == EBUSY)
        if (waited_enough(&begun)) {
            pthread_detach(s->thread); /* it waits for who reads, until the program ends */
            return;
        }
}

bool outputs_end(void) {
    finish(sink_of(1));
    outputs_look();
    finish(sink_of(2));
    message_through(NULL);
    outputs_look();
    return !lost;
}

/* ---- of one rank ---- */

bool output_begin(output *o, int from, int to, int rank, int log) {
    static const int colours[] = {36, 33, 35, 32, 34, 31};
    *o = (output){.from = from, .to = to, .log = log, .line = malloc(LINE_BYTES)};
    const char *plain = getenv("NO_COLOR");
    bool coloured = isatty(to) && !(plain && plain[0]);
    if (rank >= 0 && coloured) snprintf(o->prefix, sizeof o->prefix, "\033[%dm[rank %d]\033[0m ", colours[rank % 6], rank);
    else if (rank >= 0) snprintf(o->prefix, sizeof o->prefix, "[rank %d] ", rank);
    return o->line;
}

/* At once, so that lines do not mix. */
static void write_line(output *o, const char *end, size_t end_bytes) {
    static char whole[LINE_BYTES + sizeof o->prefix + 1];
    size_t prefix = strlen(o->prefix);
    memcpy(whole, o->prefix, prefix);
    memcpy(whole + prefix, o->line, o->length);
    memcpy(whole + prefix + o->length, end, end_bytes);
    put(sink_of(o->to), whole, prefix + o->length + end_bytes);
    o->length = 0;
}

/* A line longer than the room for it is broken where that ends. */
static void take_bytes(output *o, const char *bytes, size_t n) {
    while (n > 0) {
        const char *end = memchr(bytes, '\n', n);
        size_t part = end ? (size_t)(end - bytes) : n, left = LINE_BYTES - o->length;
        if (part > left) part = left, end = NULL;
        memcpy(o->line + o->length, bytes, part);
        o->length += part;
        bytes += part;
        n -= part;
        if (end) bytes++, n--;
        if (end || o->length == LINE_BYTES) write_line(o, "\n", 1);
    }
}

static void write_log(output *o, const char *bytes, size_t n) {
    int error = o->log >= 0 ? write_all(o->log, bytes, n) : 0;
    if (!error) return;
    run_error("a log in --log-dir cannot be written: %s", strerror(error));
    o->log = -1; /* who opened it closes it */
    lost = true;
}

int output_source(const output *o) {
    return o->from >= 0 && has_room(o->to) ? o->from : -1;
}

bool output_await_room(const output *o) {
    double begun = 0;
    while (!has_room(o->to)) {
        given_up = given_up || waited_enough(&begun);
        if (given_up) return false;
    }
    return true;
}

bool output_move(output *o) {
    static char bytes[READ_BYTES];
    ssize_t n = read(o->from, bytes, sizeof bytes);
    if (n < 0) return errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK;
    if (n == 0) return false;
    write_log(o, bytes, (size_t)n);
    take_bytes(o, bytes, (size_t)n);
    return true;
}

void output_end(output *o) {
    if (o->length) write_line(o, "\n", 1);
    if (o->from >= 0) close(o->from);
    free(o->line);
    o->from = -1;
    o->line = NULL;
}
