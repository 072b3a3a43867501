/*
 * What a plan brings from the host's memory to the device's, and takes back, between its launches: by commands of their queue, so that nobody waits.
 */
#ifndef CLT_EXEC_CARRY_H
#define CLT_EXEC_CARRY_H

#include "runtime/device/device.h"
#include "runtime/graph/graph.h"

typedef struct clt_carry {
    const clt_tensor *node;
    bool back;              /* to the host */
    size_t at;              /* the launch before which it is due */
    clt_memory *host, *device;
} clt_carry;

typedef struct clt_carries {
    clt_carry *items; /* in the order in which they are due */
    size_t n, capacity;
} clt_carries;

clt_status clt_carries_add(clt_carries *carries, const clt_tensor *node, size_t at);
/* Enqueues what is due before launch `index` of a segment. */
clt_status clt_carries_step(const clt_carries *carries, size_t index, int segment);
void clt_carries_free(clt_carries *carries);

#endif
