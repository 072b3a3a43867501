/*
 * Exchanges of a plan while it runs. One begins as soon as the launches before it are enqueued: its memory makes its way to the
 * host, and the communicator's thread does the rest. The host waits for it just before the first launch that needs the
 * result is enqueued, so that whatever lies between, the rest of backward above all, goes on meanwhile.
 */
#ifndef CLT_EXEC_EXCHANGE_H
#define CLT_EXEC_EXCHANGE_H

#include <cltrain/comm.h>

#include "runtime/device/device.h"
#include "runtime/graph/graph.h"

typedef struct clt_exchange {
    const clt_tensor *node;
    size_t begin;  /* the launch before which it begins */
    size_t finish; /* the launch before which it must be finished, or the number of launches */
    size_t *counts; /* of the ranks' parts, in elements; NULL: it has none */
    clt_transit *transit;
    clt_work *work;          /* of the communicator, once it has been given the memory */
    bool begun;
} clt_exchange;

typedef struct clt_exchanges {
    clt_comm *comm;
    clt_exchange *items; /* in the order in which they begin */
    size_t n, capacity;
    double waited_seconds; /* by the host for others, so far */
} clt_exchanges;

/* The tensor whose memory is exchanged. */
const clt_tensor *clt_exchange_whole(const clt_exchange *exchange);
/* Whether `node` works on the memory that the exchange does. */
bool clt_exchange_touches(const clt_exchange *exchange, const clt_tensor *node);

clt_status clt_exchanges_add(clt_exchanges *exchanges, const clt_tensor *node, size_t begin);
/* Before they are first run: makes the way of `memory` to the host. */
clt_status clt_exchange_bind(clt_exchange *exchange, clt_device *device, clt_memory *memory);
/* Those that would be finished one by one after the last has begun are finished together, before anything uses one of them. */
void clt_exchanges_join(clt_exchanges *exchanges);
/* What is due before launch `index`: those begin whose part is one of these, then others finish. */
clt_status clt_exchanges_step(clt_exchanges *exchanges, size_t index, int first_part, int last_part);
/* At the end of a run. */
clt_status clt_exchanges_finish(clt_exchanges *exchanges);
/* After an error: ends what is under way, here and, for they wait for this rank, on the others. The memory is the device's again. */
void clt_exchanges_abandon(clt_exchanges *exchanges, clt_status status, const char *reason);
void clt_exchanges_free(clt_exchanges *exchanges);

#endif
