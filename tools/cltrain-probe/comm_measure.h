/*
 * All-reduces measured by turns with plain TCP.
 */
#ifndef CLTRAIN_PROBE_COMM_MEASURE_H
#define CLTRAIN_PROBE_COMM_MEASURE_H

#include <cltrain/cltrain.h>

#include "comm_raw.h"

/* Medians over `samples` turns; of each turn the slowest rank counts. */
typedef struct comm_row {
    char algorithm[32];
    size_t bytes;
    double seconds;     /* of one all-reduce */
    double raw_seconds; /* of plain TCP moving what a ring moves, 2 (n - 1) / n of the bytes in each direction */
    int samples, repeats; /* all-reduces a turn */
} comm_row;

/* On every rank: fills the row in for all. f32 sums; the result is checked before and after. Returns 0 or EXIT_FAILED. */
int measure_all_reduce(comm_row *row, clt_comm *comm, raw_ring *ring, size_t bytes, double seconds);

/* The same of so many threads of rank 0 as the job has ranks, while the others wait. raw_seconds are the job's. */
int measure_threads(comm_row *row, clt_comm *job, raw_ring *ring, size_t bytes, double seconds);

#endif
