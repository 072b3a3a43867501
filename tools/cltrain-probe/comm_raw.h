/*
 * What TCP itself does between the ranks: each sends to the next and receives from the one before at the same time, on one thread.
 */
#ifndef CLTRAIN_PROBE_COMM_RAW_H
#define CLTRAIN_PROBE_COMM_RAW_H

#include <cltrain/cltrain.h>

typedef struct raw_ring raw_ring;

/* Connects the ranks of a job in a ring of plain connections; addresses are told by the communicator. Returns 0 or EXIT_FAILED. */
int raw_ring_open(raw_ring **ring, clt_comm *comm);
/* Moves so many bytes in each direction. Returns 0 or EXIT_FAILED. */
int raw_ring_exchange(raw_ring *ring, size_t bytes);
void raw_ring_close(raw_ring *ring);

#endif
