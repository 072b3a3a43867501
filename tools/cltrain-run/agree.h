/*
 * How the launchers of several hosts agree: on who starts with how many ranks, and on how a start ended, which the first to say so in the
 * store decides for all. With one host nobody is asked.
 */
#ifndef CLTRAIN_RUN_AGREE_H
#define CLTRAIN_RUN_AGREE_H

#include "job.h"

typedef enum end_kind { END_NONE, END_DONE, END_FAILED, END_STOPPED, END_LOST } end_kind;

/* How a start ended. */
typedef struct end_of_start {
    end_kind kind; /* none yet; all ended; a rank failed (restart if you may); do not go on; the store is out of reach */
    int status;    /* for the exit */
    int rank;      /* of END_FAILED; -1: none in particular */
} end_of_start;

/* Waits for all hosts, and finds first_rank and world. Returns 0 or an exit code. */
int agree_begin(job *j);

/* After END_LOST: reaches the store anew, and goes to the start that the others begin when this one has failed, as it does without this host's ranks. */
bool agree_return(job *j);

/* Begins to listen for how this start ends; a byte in *descriptor says that it is known. -1 with one host. */
int agree_listen(const job *j, int *descriptor);
/* The news, after that byte. */
end_of_start agree_news(void);
void agree_listen_end(void);

/* Says to ranks of all hosts that one has ended: those that wait for it to come need not. */
void agree_lost(const job *j, int rank, int status);

/* Says how it ended; *end becomes what stands. */
void agree_tell(const job *j, end_of_start *end);
/* Says that this host's ranks have all ended, with that status; the last host of all ends the start. */
void agree_done(const job *j, int status);
/* Once the job has ended: who serves the store keeps it until each host has said here that it knows the end, or for a few seconds. */
void agree_part(const job *j, const end_of_start *end);

#endif
