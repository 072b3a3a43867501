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

/* Options that all ranks have; rank, size, token and job are filled in, and a folder for the store if none is named. NULL: loopback without security. */
typedef struct support_job {
    int ranks;
    const clt_comm_options *options;
    void (*body)(clt_comm *comm, void *argument);
    void *argument;
    int killed;      /* a rank that ends itself by a signal, or sleeps until it is killed; -1: none. Zero would be rank 0 */
    int killed_too;  /* another; 0: none */
} support_job;

/* Runs the body on each rank and fails the test if one fails or is not over in time. */
void support_run_job(const support_job *job);

/* The same with a thread a rank, all in one process, in a group of clt_comm_create_local. Of the options the timeout alone counts. */
void support_run_local_job(const support_job *job);

#endif
