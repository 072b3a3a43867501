/*
 * Collectives of a plan while it runs. One begins as soon as the launches before it are enqueued: its memory makes its way to the
 * host, and the communicator's thread does the rest. The host waits for it just before the first launch that needs the
 * result is enqueued, so that whatever lies between, the rest of backward above all, goes on meanwhile.
 */
#ifndef CLT_EXEC_COLLECTIVE_H
#define CLT_EXEC_COLLECTIVE_H

#include <cltrain/comm.h>

#include "runtime/device/device.h"
#include "runtime/graph/graph.h"

typedef struct clt_collective {
    const clt_tensor *node;
    size_t begin;  /* the launch before which it begins */
    size_t finish; /* the launch before which it must be finished, or the number of launches */
    size_t *counts; /* of the ranks' parts, in elements; NULL: it has none */
    clt_transit *transit;
    clt_work *work;          /* of the communicator, once it has been given the memory */
    bool begun;
    const char *awaited; /* the row, from clt_collectives_await until its result was given */
    bool arrived;
} clt_collective;

typedef struct clt_collectives {
    clt_comm *comms[2]; /* by clt_among */
    clt_collective *items; /* in the order in which they begin */
    size_t n, capacity;
    double waited_seconds; /* by the host for others, so far */
} clt_collectives;

/* The tensor whose memory is exchanged. */
const clt_tensor *clt_collective_whole(const clt_collective *collective);
/* Whether `node` works on the memory that the collective does. */
bool clt_collective_touches(const clt_collective *collective, const clt_tensor *node);

clt_status clt_collectives_add(clt_collectives *collectives, const clt_tensor *node, size_t begin);
/* Before they are first run: makes the way of `memory` to the host. */
clt_status clt_collective_bind(clt_collective *collective, clt_device *device, clt_memory *memory);
/* Those that would be finished one by one after the last has begun are finished together, before anything uses one of them. */
void clt_collectives_join(clt_collectives *collectives);
/* What is due before launch `index`: those of the segment begin, then others finish. */
clt_status clt_collectives_step(clt_collectives *collectives, size_t index, int segment);
/* True if the node's result is exchanged: clt_collectives_arrived gives it, with the row, once it is there. */
bool clt_collectives_await(clt_collectives *collectives, const clt_tensor *node, const char *row);
/* Another one that is there; NULL: none. */
const clt_tensor *clt_collectives_arrived(clt_collectives *collectives, const char **row);
/* At the end of a run. */
clt_status clt_collectives_finish(clt_collectives *collectives);
/* After an error: ends what is under way, here and, for they wait for this rank, on the others. The memory is the device's again. */
void clt_collectives_abandon(clt_collectives *collectives, clt_status status, const char *reason);
void clt_collectives_free(clt_collectives *collectives);

#endif
