/* Between the host's memory and the device's on a queue of its own, so that kernels go on meanwhile. */
#include "runtime/device/cl.h"

static clt_status open_queue(clt_device *device) {
    cl_int error;
    if (device->lost) return clt_device_fail_lost(device);
    if (device->transfer_queue) return CLT_OK;
    device->transfer_queue = clCreateCommandQueue(device->context, device->id, 0, &error);
    error = clt_cl_made(device->transfer_queue, error);
    return error == CL_SUCCESS ? CLT_OK : clt_cl_fail(device, "making a queue", error);
}

static clt_status watch(clt_device *device, const char *name, cl_event event) {
    if (!device->watch) return CLT_OK;
    clRetainEvent(event);
    return clt_watch_add(device, name, event);
}

clt_status clt_async_copy_begin(clt_async_copy *t, clt_memory *memory, clt_memory *host, size_t offset, size_t bytes, bool back) {
    clt_device *device = memory->device;
    cl_event before = NULL, done = NULL;
    char *there = (char *)host->host + offset;
    CLT_TRY(open_queue(device));
    CLT_TRY_CL(device, "marking what is computed", clt_cl_with_event(&before, clEnqueueMarkerWithWaitList(device->queue, 0, NULL, &before)));
    clFlush(device->queue);
    cl_int error = back ? clEnqueueReadBuffer(device->transfer_queue, memory->memory, CL_FALSE, 0, bytes, there, 1, &before, &done)
                        : clEnqueueWriteBuffer(device->transfer_queue, memory->memory, CL_FALSE, 0, bytes, there, 1, &before, &done);
    error = clt_cl_with_event(&done, error);
    clReleaseEvent(before);
    if (error != CL_SUCCESS) return clt_cl_fail(device, back ? "taking a state to the host" : "bringing a state from the host", error);
    clFlush(device->transfer_queue);
    t->done = done;
    return watch(device, back ? "clEnqueueReadBuffer" : "clEnqueueWriteBuffer", done);
}

clt_status clt_async_copy_end(clt_async_copy *t, clt_device *device) {
    cl_event done = t->done;
    t->done = NULL;
    if (!done) return CLT_OK;
    cl_int error = device->lost ? CL_SUCCESS : clEnqueueBarrierWithWaitList(device->queue, 1, &done, NULL);
    CLT_RELEASE(device, clReleaseEvent(done));
    if (device->lost) return clt_device_fail_lost(device);
    return error == CL_SUCCESS ? CLT_OK : clt_cl_fail(device, "ordering kernels after a transfer", error);
}

void clt_async_copy_abandon(clt_async_copy *t, clt_device *device) {
    cl_event done = t->done;
    t->done = NULL;
    if (!done) return;
    clt_cl_wait_event(device, done, "ending transfers");
    CLT_RELEASE(device, clReleaseEvent(done));
}
