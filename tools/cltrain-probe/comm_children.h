/*
 * Ranks as processes of this host, with a folder as their store. Whatever ends the program, SIGKILL too, ends them, and the folder.
 */
#ifndef CLTRAIN_PROBE_COMM_CHILDREN_H
#define CLTRAIN_PROBE_COMM_CHILDREN_H

enum { COMM_MOST_CHILDREN = 64 };

/* Runs them at once and waits for all; `run` is called in each, with the address of the store, and returns its exit code. Returns 0,
 * EXIT_FAILED after a message, the code of one that failed, or EXIT_SIGNAL + the signal that the program was told to stop by. */
int comm_children_run(int n, int (*run)(int rank, const char *store, void *user), void *user);

#endif
