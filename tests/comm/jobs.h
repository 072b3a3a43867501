/*
 * Ranks as processes: each a fork of the test with a communicator of its own over the network. Or as threads of one such.
 */
#ifndef CLT_TESTS_COMM_JOBS_H
#define CLT_TESTS_COMM_JOBS_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cltrain/comm.h>

/* In a rank: says what is wrong and ends the process as failed. */
#define CHECK(condition)                                                                                  \
    do {                                                                                                  \
        if (!(condition)) {                                                                               \
            fprintf(stderr, "%s:%d: %s (detail: %s)\n", __FILE__, __LINE__, #condition, clt_error_detail()); \
            _exit(1);                                                                                     \
        }                                                                                                 \
    } while (0)

/* What a job asks of an engine besides collectives and messages, their differences, deadlines and aborts. */
enum {
    SUPPORT_OPTIONS = 1,  /* algorithms, security, stores: added where the job's options have them */
    SUPPORT_DEATHS = 2,   /* a rank is a process of its own, and its death does not end the others: added where one is killed */
    SUPPORT_SILENCE = 4,  /* a rank that hangs is lost */
    SUPPORT_SURVIVORS = 8 /* others go on without a rank */
};

/* Options that all ranks have; rank, size, token and job are filled in, and a folder for the store if none is named. NULL: loopback without security. */
typedef struct support_job {
    int ranks;
    const clt_comm_options *options;
    void (*body)(clt_comm *comm, void *argument);
    void *argument;
    int killed;      /* a rank that ends itself by a signal, or sleeps until it is killed; -1: none. Zero would be rank 0 */
    int killed_too;  /* another; 0: none */
    unsigned needs;
    const char *hosts; /* a letter a rank, of its host: an address of loopback each. NULL: one host */
} support_job;

/* Runs the body on each rank, once by each engine that has what is needed, and fails the test if one fails or is not over in time. Where mpirun has started
 * this process, which says CLTRAIN_TEST_MPI, by MPI instead, which runs jobs of its number of ranks. */
void support_run_job(const support_job *job);

/* By the engine "local" alone: a thread a rank, all in one process. Of the options the timeout alone counts. */
void support_run_local_job(const support_job *job);

#endif
