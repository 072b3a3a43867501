/*
 * What a plan brings from the host's memory to the device's, and takes back, between its launches: by commands of the device's queue, so that nobody waits; or
 * by those of a queue for transfers, while kernels go on, where host and device have memory of their own.
 */
#ifndef CLT_EXEC_CARRY_H
#define CLT_EXEC_CARRY_H

#include "runtime/device/device.h"
#include "runtime/graph/graph.h"

typedef struct clt_carry {
    const clt_tensor *node;
    bool back;  /* to the host */
    size_t at;  /* the launch before which it is due */
    size_t end; /* on a queue of its own: the launch before which it must be done; SIZE_MAX: the end of the segment */
    clt_memory *host, *device;
    clt_async_copy copy;
} clt_carry;

typedef struct clt_carries {
    clt_device *device;
    bool apart;       /* on a queue of their own */
    clt_carry *items; /* in the order in which they are due */
    size_t n, capacity;
} clt_carries;

/* Whether a device has them on a queue of its own; then what is brought is so one ahead. */
bool clt_carries_are_apart(const clt_device *device);
clt_status clt_carries_add(clt_carries *carries, const clt_tensor *node, size_t at);
/* What must be done before launch `index` of a segment is so before what is enqueued next, and what is due begins. */
clt_status clt_carries_step(clt_carries *carries, size_t index, int segment);
/* All that has begun is done before what is enqueued next. */
clt_status clt_carries_finish(clt_carries *carries);
/* After an error. */
void clt_carries_abandon(clt_carries *carries);
void clt_carries_free(clt_carries *carries);

#endif
