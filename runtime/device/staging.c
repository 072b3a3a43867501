#include <string.h>

#include "runtime/device/cl.h"

enum { MOST_SLOTS = 4 };

/* From so many bytes on, kernels read what the host has filled, where both share memory. Fewer are sooner
 * copied by a command that nobody waits for than mapped and unmapped. */
enum { LEAST_SHARED = 32768 };

typedef struct staging_slot {
    clt_memory *memory; /* host-visible */
    void *host;         /* not shared: mapped for as long as the slot lives */
    cl_event busy;      /* until its last use is done; NULL: free */
} staging_slot;

struct clt_staging {
    clt_device *device;
    size_t bytes;
    bool shared;        /* kernels read the slots */
    clt_memory *target; /* else what they read */
    int n_slots, current, next;
    staging_slot slots[MOST_SLOTS];
};

/* ---- making ---- */

static clt_status make_slot(clt_staging *staging, staging_slot *slot) {
    clt_device *device = staging->device;
    cl_int error;
    cl_mem memory =
        clCreateBuffer(device->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, staging->bytes, NULL, &error);
    error = clt_cl_made(memory, error);
    if (error != CL_SUCCESS) return clt_memory_fail(device, staging->bytes, error);
    /* Counted like a slice: the pool has nothing to do with it. */
    CLT_TRY(clt_memory_wrap(device, memory, staging->bytes, true, &slot->memory));
    if (staging->shared) return CLT_OK;
    return clt_cl_map(device, memory, CL_MAP_READ | CL_MAP_WRITE, staging->bytes, "mapping a staging buffer", &slot->host);
}

static bool is_shared(const clt_device *device, size_t bytes) {
    return device->info.unified_memory && bytes >= LEAST_SHARED;
}

/* Where the host's memory is the device's, the slots are in it too. */
size_t clt_staging_bytes(const clt_device *device, size_t bytes, int slots) {
    size_t target = (bytes + device->alignment - 1) / device->alignment * device->alignment;
    return (device->info.unified_memory ? bytes * (size_t)slots : 0) + (is_shared(device, bytes) ? 0 : target);
}

clt_status clt_staging_create(clt_device *device, size_t bytes, int slots, clt_staging **staging) {
    clt_staging *s = clt_calloc(1, sizeof *s);
    if (!s) return clt_fail_memory(sizeof *s);
    s->device = device;
    s->bytes = CLT_MAX(bytes, 1);
    s->shared = is_shared(device, bytes) && !device->redzones_on;
    s->n_slots = CLT_MIN(CLT_MAX(slots, 1), MOST_SLOTS);
    clt_status status = CLT_OK;
    for (int i = 0; i < s->n_slots && status == CLT_OK; i++) status = make_slot(s, &s->slots[i]);
    if (status == CLT_OK && !s->shared) status = clt_memory_create(device, s->bytes, &s->target);
    if (status < 0) clt_staging_destroy(s);
    else *staging = s;
    return status;
}

static clt_status wait_for_slot(clt_staging *staging, staging_slot *slot) {
    if (!slot->busy) return CLT_OK;
    clt_status status = clt_cl_wait_event(staging->device, slot->busy, "waiting for an input's last use");
    CLT_RELEASE(staging->device, clReleaseEvent(slot->busy));
    slot->busy = NULL;
    return status;
}

void clt_staging_destroy(clt_staging *staging) {
    if (!staging) return;
    clt_device *device = staging->device;
    cl_command_queue queue = device->mapping_queue;
    for (int i = 0; i < staging->n_slots; i++) {
        staging_slot *slot = &staging->slots[i];
        wait_for_slot(staging, slot);
        if (slot->host && !device->lost) clEnqueueUnmapMemObject(queue, slot->memory->memory, slot->host, 0, NULL, NULL);
    }
    clt_cl_wait_queue(device, queue, "unmapping inputs");
    for (int i = 0; i < staging->n_slots; i++) clt_memory_destroy(staging->slots[i].memory);
    clt_memory_destroy(staging->target);
    clt_free(staging);
}

/* ---- feeding ---- */

clt_memory *clt_staging_memory(const clt_staging *staging) {
    return staging->shared ? staging->slots[staging->current].memory : staging->target;
}

static clt_status fill_shared(clt_staging *staging, staging_slot *slot, const void *source, size_t bytes) {
    clt_device *device = staging->device;
    void *host;
    CLT_TRY(clt_cl_map(device, slot->memory->memory, CL_MAP_WRITE_INVALIDATE_REGION, bytes, "mapping an input", &host));
    memcpy(host, source, bytes);
    CLT_TRY_CL(device, "unmapping an input",
               clEnqueueUnmapMemObject(device->mapping_queue, slot->memory->memory, host, 0, NULL, NULL));
    return clt_cl_wait_queue(device, device->mapping_queue, "unmapping an input");
}

clt_status clt_staging_feed(clt_staging *staging, const void *source, size_t bytes) {
    clt_device *device = staging->device;
    staging_slot *slot = &staging->slots[staging->next];
    CLT_TRY(wait_for_slot(staging, slot));
    staging->current = staging->next;
    staging->next = (staging->next + 1) % staging->n_slots;
    if (staging->shared) return fill_shared(staging, slot, source, bytes);
    memcpy(slot->host, source, bytes);
    CLT_TRY_CL(device, "feeding an input",
               clt_cl_with_event(&slot->busy, clEnqueueWriteBuffer(device->queue, staging->target->memory, CL_FALSE, 0, bytes,
                                                                   slot->host, 0, NULL, &slot->busy)));
    return CLT_OK;
}

clt_status clt_staging_used(clt_staging *staging) {
    staging_slot *slot = &staging->slots[staging->current];
    if (!staging->shared) return CLT_OK; /* the transfer's own event tells */
    if (slot->busy) CLT_RELEASE(staging->device, clReleaseEvent(slot->busy)); /* used again: the later use counts */
    slot->busy = NULL;
    CLT_TRY_CL(staging->device, "marking an input's use",
               clt_cl_with_event(&slot->busy, clEnqueueMarkerWithWaitList(staging->device->queue, 0, NULL, &slot->busy)));
    return CLT_OK;
}
