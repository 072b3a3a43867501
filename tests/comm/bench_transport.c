/*
 * What the transport reaches beside plain TCP, on loopback, by turns: bench_transport [tls|auth|none]
 * [MiB] [KIND]. Two processes; each figure is the median of the turns. Streams go both ways at once,
 * one thread a process.
 */
#define _GNU_SOURCE
#include "tests/support.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/comm/ranks.h"

enum { TURNS = 9, PINGS = 3000 };
static size_t bytes = 64 << 20;
static int only = -1; /* one kind alone, for profiling */
static float *out, *in;

/* ---- plain TCP ---- */

static int plain; /* connected, non-blocking */

static void plain_stream(void) {
    size_t sent = 0, got = 0;
    while (sent < bytes || got < bytes) {
        bool moved = false;
        if (sent < bytes) {
            ssize_t n = send(plain, (char *)out + sent, CLT_MIN(bytes - sent, 1 << 17), MSG_NOSIGNAL);
            if (n > 0) sent += (size_t)n, moved = true;
        }
        if (got < bytes) {
            ssize_t n = recv(plain, (char *)in + got, CLT_MIN(bytes - got, 1 << 17), 0);
            if (n > 0) got += (size_t)n, moved = true;
        }
        struct pollfd one = {plain, (short)((sent < bytes ? POLLOUT : 0) | (got < bytes ? POLLIN : 0)),
                             0};
        if (!moved) poll(&one, 1, 1000);
    }
}

static void read_word(uint32_t *word) {
    struct pollfd one = {plain, POLLIN, 0};
    while (recv(plain, word, sizeof *word, 0) != sizeof *word) poll(&one, 1, 1000);
}

static void plain_ping(int rank) {
    uint32_t word = 0;
    for (int i = 0; i < PINGS; i++) {
        if (rank == 0) send(plain, &word, sizeof word, MSG_NOSIGNAL);
        read_word(&word);
        if (rank == 1) send(plain, &word, sizeof word, MSG_NOSIGNAL);
    }
}

/* As plain as can be: calls that block. */
static void blocking_ping(int rank) {
    uint32_t word = 0;
    int flags = fcntl(plain, F_GETFL);
    fcntl(plain, F_SETFL, flags & ~O_NONBLOCK);
    for (int i = 0; i < PINGS; i++) {
        if (rank == 0) send(plain, &word, sizeof word, MSG_NOSIGNAL);
        if (recv(plain, &word, sizeof word, 0) != sizeof word) _exit(1);
        if (rank == 1) send(plain, &word, sizeof word, MSG_NOSIGNAL);
    }
    fcntl(plain, F_SETFL, flags);
}

/* ---- the transport ---- */

static rank_thread *self;
static uint64_t slot;

static void must(clt_status status) {
    if (status >= 0) return;
    fprintf(stderr, "%s\n", clt_error_detail());
    _exit(1);
}

static void stream(clt_consume *consume, bool chained) {
    clt_transfer two[2] = {
        {.peer = 1 - self->rank, .slot = slot, .bytes = bytes, .data = in, .consume = consume},
        {.peer = 1 - self->rank,
         .slot = slot,
         .bytes = bytes,
         .data = out,
         .ready = chained ? bytes / 2 : bytes},
    };
    slot++;
    must(clt_transport_receive(self->transport, &two[0]));
    must(clt_transport_send(self->transport, &two[1]));
    while (two[0].active || two[1].active) {
        /* As a ring does: what is sent in the second half has to come in the first. */
        if (chained) two[1].ready = CLT_MIN(bytes, bytes / 2 + two[0].done);
        must(clt_transport_progress(self->transport, 1));
    }
}

static void add(void *destination, const void *source, size_t n, void *context) {
    (void)context;
    float *to = destination;
    const float *from = source;
    for (size_t i = 0; i < n / sizeof *to; i++) to[i] += from[i];
}

static void ping(int rank) {
    uint32_t word = 0;
    for (int i = 0; i < PINGS; i++) {
        clt_transfer send = {.peer = 1 - rank, .slot = slot, .bytes = 4, .ready = 4, .data = &word},
                     receive = send;
        slot++;
        must(clt_transport_receive(self->transport, &receive));
        if (rank == 0) must(clt_transport_send(self->transport, &send));
        while (receive.active) must(clt_transport_progress(self->transport, 1));
        if (rank == 1) must(clt_transport_send(self->transport, &send));
    }
}

/* ---- turns ---- */

static void meet(void) {
    char word = 0;
    clt_transfer two[2] = {
        {.peer = 1 - self->rank, .slot = ~slot, .bytes = 1, .data = &word},
        {.peer = 1 - self->rank, .slot = ~slot, .bytes = 1, .ready = 1, .data = &word}};
    must(clt_transport_receive(self->transport, &two[0]));
    must(clt_transport_send(self->transport, &two[1]));
    must(rank_finish(self, two, 2));
}

enum { PLAIN, COPIED, CONSUMED, CHAINED, BLOCKING_PING, PLAIN_PING, PING, KINDS };
static const char *const names[KINDS] = {
    "plain duplex TCP",     "transport, copied", "transport, consumed", "transport, consumed, chained",
    "plain ping, blocking", "plain ping, poll",  "transport ping"};

static double time_kind(int kind, int rank, double *processor) {
    meet();
    struct timespec cpu[2];
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu[0]);
    double before = clt_seconds();
    switch (kind) {
    case PLAIN:
        plain_stream();
        break;
    case COPIED:
        stream(NULL, false);
        break;
    case CONSUMED:
        stream(add, false);
        break;
    case CHAINED:
        stream(add, true);
        break;
    case BLOCKING_PING:
        blocking_ping(rank);
        break;
    case PLAIN_PING:
        plain_ping(rank);
        break;
    case PING:
        ping(rank);
        break;
    default:
        break;
    }
    meet();
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu[1]);
    *processor =
        (double)(cpu[1].tv_sec - cpu[0].tv_sec) + 1e-9 * (double)(cpu[1].tv_nsec - cpu[0].tv_nsec);
    return clt_seconds() - before;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void run(rank_thread *rank) {
    double times[KINDS][TURNS] = {0}, processor[KINDS][TURNS] = {0}, used;
    self = rank;
    for (int turn = -1; turn < TURNS; turn++)
        for (int k = 0; k < KINDS; k++) {
            if (only >= 0 && k != only) continue;
            double seconds = time_kind(k, rank->rank, &used);
            if (turn >= 0) times[k][turn] = seconds, processor[k][turn] = used;
        }
    for (int k = 0; k < KINDS && rank->rank == 0; k++) {
        qsort(times[k], TURNS, sizeof times[k][0], compare);
        qsort(processor[k], TURNS, sizeof processor[k][0], compare);
        double median = times[k][TURNS / 2], time = processor[k][TURNS / 2];
        if (k < BLOCKING_PING)
            printf("%-30s %6.2f GB/s each way (%.2f of plain), %6.2f by processor time (%.2f)\n",
                   names[k], 1e-9 * (double)bytes / median, times[PLAIN][TURNS / 2] / median,
                   1e-9 * (double)bytes / time, processor[PLAIN][TURNS / 2] / time);
        else
            printf("%-30s %6.1f us (%.2f of blocking), %6.1f of processor time (%.2f)\n", names[k],
                   1e6 * median / PINGS, median / times[BLOCKING_PING][TURNS / 2], 1e6 * time / PINGS,
                   time / processor[BLOCKING_PING][TURNS / 2]);
    }
}

int main(int count, char **arguments) {
    clt_comm_security level = CLT_SECURITY_NONE;
    if (count > 1)
        level = !strcmp(arguments[1], "tls")    ? CLT_SECURITY_TLS
                : !strcmp(arguments[1], "auth") ? CLT_SECURITY_AUTH
                                                : CLT_SECURITY_NONE;
    if (count > 2) bytes = (size_t)atoi(arguments[2]) << 20;
    if (count > 3) only = atoi(arguments[3]);
    int listener;
    char text[64], url[400];
    struct sockaddr_storage address;
    socklen_t length;
    out = calloc(1, bytes), in = calloc(1, bytes);
    memset(out, 0, bytes), memset(in, 0, bytes);
    snprintf(url, sizeof url, "%s", ranks_new_store());
    must(clt_listen(NULL, NULL, NULL, &listener, text));
    must(clt_resolve(text, clt_seconds() + 30, &address, &length));
    pid_t child = fork();
    rank_group group = {.size = 2, .level = level, .channels = 1};
    rank_thread rank = {.group = &group, .size = 2, .rank = child == 0};
    snprintf(rank.url, sizeof rank.url, "%s", url);
    if (child == 0) {
        plain = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(plain, (struct sockaddr *)&address, length)) _exit(1);
    } else {
        struct pollfd one = {listener, POLLIN, 0};
        poll(&one, 1, 5000);
        plain = accept(listener, NULL, NULL);
    }
    int one = 1;
    setsockopt(plain, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    fcntl(plain, F_SETFL, fcntl(plain, F_GETFL) | O_NONBLOCK);
    must(rank_open(&rank));
    run(&rank);
    rank_close(&rank);
    if (child == 0) _exit(0);
    waitpid(child, NULL, 0);
    return 0;
}
