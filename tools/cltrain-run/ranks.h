/*
 * The ranks of one start, as processes: each leads a process group of its own, so that what it starts ends with it.
 */
#ifndef CLTRAIN_RUN_RANKS_H
#define CLTRAIN_RUN_RANKS_H

#include <sys/types.h>

#include "job.h"
#include "output.h"

typedef struct rank_process {
    int rank;
    pid_t pid;   /* and its group; 0: not started */
    bool ended;
    int status;  /* once it ended: its exit status, or 128 + the signal */
    int log;     /* -1: none */
    output out, err;
} rank_process;

typedef struct ranks {
    rank_process *all;
    int n, living;
} ranks;

/* Starts them. Returns 0, or an exit code after saying why; those that were started are then still to be ended. */
int ranks_start(ranks *r, const job *j);
/* To all groups of ranks that live. */
void ranks_signal(const ranks *r, int signal);
/* Takes note of the processes that ended: the next rank that did, or NULL. */
rank_process *ranks_reap(ranks *r);
/* Takes the next one that lives, after SIGKILL, for ended by it, or NULL: where a driver hangs in the kernel, it ends nobody. */
rank_process *ranks_give_up(ranks *r);
/* When none lives. Kills what is left of them, also what left its group, writes out what they wrote, and frees. */
void ranks_end(ranks *r);

#endif
