/*
 * What the ranks of options.comm do together. All of these are called by all ranks; without a communicator they do
 * nothing.
 */
#ifndef CLT_TRAIN_PARALLEL_H
#define CLT_TRAIN_PARALLEL_H

#include "runtime/train/trainer.h"

/* agree.c: called at the end of creation with how it went here: an error anywhere is one everywhere, and graphs and options must be
 * the same on all ranks (CLT_E_MISMATCH says what is not). */
clt_status clt_parallel_check(clt_trainer *trainer, clt_status status);
/* The first error of any rank: the own one, or CLT_E_PEER with its words; what had no room on another's device is CLT_E_DEVICE_MEMORY here, too. */
clt_status clt_parallel_agree(clt_comm *comm, clt_status status);
/* Parameters, buffers, optimizer state and the counts of steps become those of rank `root`. */
clt_status clt_parallel_share(clt_trainer *trainer, int root);
/* With `recoverable`: keeps the buffers as they are before an update's first batch, for a step that fails has changed some. */
clt_status clt_parallel_keep_buffers(clt_trainer *trainer);
/* drift.c: after each option drift_steps updates all ranks have the parameters of rank 0, which are theirs already unless something has gone wrong. */
clt_status clt_parallel_check_drift(clt_trainer *trainer);
/* Bytes of rank 0 to all. */
clt_status clt_parallel_tell(clt_comm *comm, void *data, size_t bytes);
/* all: `bytes` of each rank, one after the other, of which the own are given. */
clt_status clt_parallel_gather(clt_comm *comm, void *all, size_t bytes);
/* Sums of n values over the ranks, added in the order of the ranks. */
clt_status clt_parallel_sum(clt_comm *comm, double *values, int n);

/* ---- shared by agree.c and parallel.c ---- */

/* How something went on a rank. */
enum { CLT_REPORT_WORDS = 240 };
typedef struct clt_parallel_report {
    int32_t status;
    char words[CLT_REPORT_WORDS];
} clt_parallel_report;
clt_parallel_report clt_parallel_make_report(clt_status status);
/* The first error of any rank; the own one, as it was, where there is one. `stride`: bytes from one rank's report to the next. */
clt_status clt_parallel_judge(clt_comm *comm, const clt_parallel_report *all, size_t stride);

/* (*all)[r] becomes what rank r has in *own; *all is to be freed, also on an error. */
clt_status clt_parallel_gather_new(clt_comm *comm, const void *own, size_t bytes, void *all);

#endif
