/*
 * Ranks of a job that are threads of this process, with a communicator each.
 */
#ifndef CLT_TESTS_FAULTS_RANKS_H
#define CLT_TESTS_FAULTS_RANKS_H

#include "tests/faults/model.h"

enum { RANKS = 2, MOST_RANKS = 3 };

typedef struct rank_thread rank_thread;
struct rank_thread {
    int rank, ranks;
    clt_status (*work)(rank_thread *r); /* what it does, with `comm` */
    bool network;  /* over TCP; else in memory */
    bool secure;   /* by TLS */
    bool lose_one; /* rank 1 dies before its third step, and the others go on */
    clt_shard shard; /* what is cut is saved and loaded, too */
    clt_compression method;

    clt_comm *comm;
    digest digest;
    clt_status status;
    char detail[1024];
    char store[600];
};

/* `n` ranks that are like that one. The digest is theirs if all have the same. */
clt_status ranks_run(const rank_thread *like, int n, digest *d);

#endif
