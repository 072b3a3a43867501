/*
 * Ranks of a job as threads of a test, each with a transport of its own.
 */
#ifndef CLT_TESTS_COMM_RANKS_H
#define CLT_TESTS_COMM_RANKS_H

#include "comm/transport/transport.h"
#include "runtime/base/thread.h"

enum { RANKS_MOST = 16 };

typedef struct rank_thread rank_thread;

typedef struct rank_group {
    int size, channels;
    clt_comm_security level;
    double heartbeat_seconds, connect_seconds; /* 0: 5, 60 */
    void (*body)(rank_thread *self); /* on each rank, once all are connected */
    void *context;
    const char *store; /* NULL: a new one */
    int64_t generation;
} rank_group;

struct rank_thread {
    const rank_group *group;
    int rank, size;
    clt_transport *transport;
    clt_security *security;
    clt_rendezvous *store;
    char url[400], failure[600];
    clt_thread thread;
};

/* Opens what a rank needs and connects it. */
clt_status rank_open(rank_thread *self);
void rank_close(rank_thread *self);
/* A store's URL that nobody used before. */
const char *ranks_new_store(void);

/* Runs the body on all ranks, and fails the test with what CHECK noted. */
void ranks_run(const rank_group *group);

/* What assert_… is to the test's own thread: notes the failure and leaves the body. */
#define CHECK(self, condition)                                  \
    do {                                                        \
        if (!(condition)) {                                     \
            rank_note(self, #condition, __FILE__, __LINE__);    \
            return;                                             \
        }                                                       \
    } while (0)
void rank_note(rank_thread *self, const char *condition, const char *file, int line);

/* Progress until the transfers have ended; the status that ended it otherwise. */
clt_status rank_finish(rank_thread *self, const clt_transfer *transfers, size_t n);
/* Returns on `root` when all ranks are here, on the others at once. */
clt_status rank_gather(rank_thread *self, int root);
/* Progress until the group ends, for 20 seconds at most. */
clt_status rank_wait_end(rank_thread *self);

#endif
