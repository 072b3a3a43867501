#include <string.h>

#include "runtime/device/cl.h"

/* Fewer bytes are sooner copied than mapped. */
enum { LEAST_MAPPED = 32768 };

struct clt_transit {
    clt_device *device;
    clt_memory *memory;
    size_t bytes;
    bool maps;          /* else copies, to and from `pinned`, but where the memory is the host's */
    clt_memory *pinned;
    void *host;         /* while it is mapped; of `pinned` always */
    cl_event there;     /* when the bytes are on the host; NULL: nothing is under way */
    cl_event back;      /* when the last bytes were copied back: until then `pinned` is in use */
};

static clt_status make_pinned(clt_transit *t) {
    CLT_TRY(clt_memory_create_host(t->device, t->bytes, NULL, &t->pinned));
    t->host = t->pinned->host;
    return CLT_OK;
}

clt_status clt_transit_create(clt_device *device, clt_memory *memory, size_t bytes, clt_transit **transit) {
    clt_transit *t = clt_calloc(1, sizeof *t);
    if (!t) return clt_fail_memory(sizeof *t);
    *t = (clt_transit){.device = device, .memory = memory, .bytes = CLT_MAX(bytes, 1)};
    t->maps = !memory->host && device->info.unified_memory && bytes >= LEAST_MAPPED;
    t->host = memory->host;
    clt_status status = t->maps || t->host ? CLT_OK : make_pinned(t);
    if (status < 0) clt_transit_destroy(t);
    else *transit = t;
    return status;
}

static void release(clt_device *device, cl_event *event) {
    if (*event) CLT_RELEASE(device, clReleaseEvent(*event));
    *event = NULL;
}

void clt_transit_destroy(clt_transit *t) {
    if (!t) return;
    void *host;
    if (t->there && clt_transit_wait(t, &host) == CLT_OK) clt_transit_end(t, 0, 0);
    clt_device *device = t->device;
    clt_cl_wait_queue(device, device->mapping_queue, "ending transfers");
    clt_cl_wait_queue(device, device->queue, "ending transfers");
    release(device, &t->there);
    release(device, &t->back);
    clt_memory_destroy(t->pinned);
    clt_free(t);
}

/* ---- by mapping, in the order of the kernels: no bytes move ---- */

static clt_status begin_map(clt_transit *t, size_t offset, size_t bytes) {
    cl_int error;
    if (t->device->lost) return clt_device_fail_lost(t->device);
    char *host = clEnqueueMapBuffer(t->device->queue, t->memory->memory, CL_FALSE, CL_MAP_READ | CL_MAP_WRITE, 0, t->bytes,
                                    0, NULL, &t->there, &error);
    error = clt_cl_with_event(&t->there, clt_cl_made(host, error));
    (void)offset;
    (void)bytes;
    if (error != CL_SUCCESS) return clt_cl_fail(t->device, "mapping memory for the host", error);
    t->host = host;
    return CLT_OK;
}

static clt_status end_map(clt_transit *t) {
    CLT_TRY_CL(t->device, "unmapping memory",
               clEnqueueUnmapMemObject(t->device->queue, t->memory->memory, t->host, 0, NULL, NULL));
    t->host = NULL;
    return CLT_OK;
}

/* ---- by copying, on a queue of its own so that kernels go on meanwhile ---- */

static clt_status begin_copy(clt_transit *t, size_t offset, size_t bytes) {
    clt_device *device = t->device;
    cl_event computed = NULL;
    CLT_TRY_CL(device, "marking what is computed",
               clt_cl_with_event(&computed, clEnqueueMarkerWithWaitList(device->queue, 0, NULL, &computed)));
    clFlush(device->queue);
    cl_int error = clEnqueueReadBuffer(device->mapping_queue, t->memory->memory, CL_FALSE, offset, bytes,
                                       (char *)t->host + offset, 1, &computed, &t->there);
    error = clt_cl_with_event(&t->there, error);
    clReleaseEvent(computed);
    if (error != CL_SUCCESS) return clt_cl_fail(device, "reading memory for the host", error);
    clFlush(device->mapping_queue);
    return CLT_OK;
}

static clt_status end_copy(clt_transit *t, size_t offset, size_t bytes) {
    clt_device *device = t->device;
    if (!bytes) return CLT_OK;
    release(device, &t->back);
    CLT_TRY_CL(device, "writing memory from the host",
               clt_cl_with_event(&t->back, clEnqueueWriteBuffer(device->mapping_queue, t->memory->memory, CL_FALSE, offset, bytes,
                                                                (char *)t->host + offset, 0, NULL, &t->back)));
    clFlush(device->mapping_queue);
    CLT_TRY_CL(device, "ordering kernels after a transfer",
               clEnqueueBarrierWithWaitList(device->queue, 1, &t->back, NULL));
    return CLT_OK;
}

/* ---- in the host's memory: as soon as what is enqueued has been done to it ---- */

static clt_status begin_host(clt_transit *t) {
    CLT_TRY_CL(t->device, "marking what is computed", clt_cl_with_event(&t->there, clEnqueueMarkerWithWaitList(t->device->queue, 0, NULL, &t->there)));
    return CLT_OK;
}

/* ---- any of them ---- */

clt_status clt_transit_begin(clt_transit *t, size_t offset, size_t bytes) {
    if (t->there) return clt_fail(CLT_E_STATE, "memory is on its way to the host already");
    if (t->memory->host) return begin_host(t);
    return t->maps ? begin_map(t, offset, bytes) : begin_copy(t, offset, bytes);
}

clt_status clt_transit_wait(clt_transit *t, void **host) {
    if (!t->there) return clt_fail(CLT_E_STATE, "no memory is on its way to the host");
    if (!t->device->lost) clFlush(t->device->queue);
    CLT_TRY(clt_cl_wait_event(t->device, t->there, "waiting for memory"));
    *host = t->host;
    return CLT_OK;
}

clt_status clt_transit_end(clt_transit *t, size_t offset, size_t bytes) {
    if (!t->there) return CLT_OK;
    release(t->device, &t->there);
    if (t->memory->host) return CLT_OK;
    return t->maps ? end_map(t) : end_copy(t, offset, bytes);
}
