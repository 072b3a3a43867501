/*
 * The ranks of a job, as the environment tells them: who leads, who trains on how much of each batch, and who is left.
 */
#ifndef CLTRAIN_TRAIN_RANKS_H
#define CLTRAIN_TRAIN_RANKS_H

#include <stdbool.h>
#include <stdint.h>

#include <cltrain/comm.h>

#include "options.h"
#include "tools/common/shares.h"

typedef struct ranks {
    clt_comm *comm; /* NULL: this process is alone, and all below does nothing */
    int rank, size; /* in the group of now */
    int begun;      /* ranks that the job began with */
    int verbosity;  /* of the one that leads: rank 0 */
    bool local;     /* a thread of a process that has them all */
    double restarted; /* 0, or by the launcher after a failure: when the job was first started, in seconds since 1970 */
    uint64_t bytes_sent; /* in groups that are gone */
} ranks;

/* Joins the job, if there is one; ranks that do not lead become quiet. Returns 0, or EXIT_FAILED after saying why. */
int ranks_join(ranks *r, const options *given);
/* As the rank of a communicator between threads of this process, which becomes the group's. */
void ranks_join_local(ranks *r, const options *given, clt_comm *comm);
void ranks_leave(ranks *r);

/* Prints, logs and saves. */
bool ranks_lead(const ranks *r);
uint64_t ranks_bytes_sent(const ranks *r);

/* Each of n values becomes the largest that a rank has. */
clt_status ranks_max(const ranks *r, int32_t *values, int n);
/* Which part of the data is the own one, of how many: a rank's, or a pipeline's. */
int ranks_part(const ranks *r, const options *given);
int ranks_parts(const ranks *r, const options *given);
/* What all of them have together. */
clt_status ranks_sum(const ranks *r, int64_t *value);
/* all: `bytes` of each rank, one after the other, of which the own are given. */
clt_status ranks_gather(const ranks *r, void *all, size_t bytes);
/* values[i] becomes what rank i has as values[its own rank]. */
clt_status ranks_tell(const ranks *r, double *values);

/* Whether the group has ended with a rank that was lost or cut off, so that those who are left may go on. */
bool ranks_lost_one(const ranks *r, clt_status status);
/* A rank was lost, and the others are the group now. One of them may have come through a collective operation that the others have not: so each
 * tells whether it `trains`, and *all_train says whether all do. The error of a group that cannot go on. */
clt_status ranks_go_on(ranks *r, bool trains, bool *all_train);

enum { RANKS_MEET_ANEW = -2 }; /* in the place of an exit code: those who are left begin with what comes before the training */

/* Before the training: RANKS_MEET_ANEW, where others go on without the rank that was lost; else EXIT_FAILED after saying why. */
int ranks_meeting_failed(ranks *r, const options *given, clt_status status);

#endif
