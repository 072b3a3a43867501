/*
 * Engines side by side: which there are, and ranks that mpirun starts so that MPI is one of them.
 */
#ifndef CLTRAIN_PROBE_COMM_ENGINES_H
#define CLTRAIN_PROBE_COMM_ENGINES_H

#include <stdbool.h>

#include <cltrain/cltrain.h>

typedef enum comm_engine { COMM_CLTRAIN, COMM_GLOO, COMM_LOCAL, COMM_MPI, COMM_ENGINES } comm_engine;

const char *comm_engine_name(comm_engine engine);

/* A list, or "all": of these MPI where mpirun is. Returns 0 or EXIT_USAGE. */
int comm_engines_read(const char *list, comm_engine engines[COMM_ENGINES], int *n);

/* Of a job's options those that the engine takes. */
void comm_engine_choose(clt_comm_options *options, comm_engine engine);

/* Becomes an mpirun that starts the program anew, n times, with the same words behind its name. */
int comm_engine_start_mpi(int n, const char *store, const char *token, char **argv);
bool comm_engine_started_by_mpi(const char **store, const char **token);

#endif
