/*
 * Times of single launches, from the driver's profiling events. They are taken on a queue of their
 * own that takes the place of the device's for so long: a device that is not timed has no events.
 */
#include <stdio.h>
#include <string.h>

#include "runtime/device/cl.h"

enum { MOST_PENDING = 8192 }; /* events not yet read: then they are waited for */

typedef struct pending_launch {
    cl_event event;
    size_t launch;
} pending_launch;

struct clt_timer {
    cl_command_queue plain; /* the device's own queue */
    clt_timed_launch *launches;
    size_t n_launches, launches_capacity;
    pending_launch *pending;
    size_t n_pending, pending_capacity;
    int64_t tag;
};

clt_status clt_device_time_start(clt_device *device) {
    cl_int error;
    if (device->timer) return clt_fail(CLT_E_STATE, "%s: its launches are timed already", device->info.name);
    CLT_TRY(clt_device_finish(device));
    clt_timer *timer = clt_calloc(1, sizeof *timer);
    if (!timer) return clt_fail_memory(sizeof *timer);
    timer->plain = device->queue;
    cl_command_queue queue = clCreateCommandQueue(device->context, device->id, CL_QUEUE_PROFILING_ENABLE, &error);
    if (error != CL_SUCCESS) {
        clt_free(timer);
        return clt_cl_fail(device, "making a queue that takes times", error);
    }
    device->queue = queue;
    device->timer = timer;
    return CLT_OK;
}

static cl_int event_seconds(cl_event event, cl_profiling_info info, double *seconds) {
    cl_ulong nanoseconds = 0;
    cl_int error = clGetEventProfilingInfo(event, info, sizeof nanoseconds, &nanoseconds, NULL);
    *seconds = 1e-9 * (double)nanoseconds;
    return error;
}

static clt_status collect(clt_device *device) {
    clt_timer *timer = device->timer;
    clt_status status = clt_device_finish(device);
    for (size_t i = 0; i < timer->n_pending; i++) {
        clt_timed_launch *launch = &timer->launches[timer->pending[i].launch];
        if (device->hangs) continue;
        cl_event event = timer->pending[i].event;
        cl_int error = event_seconds(event, CL_PROFILING_COMMAND_START, &launch->start_seconds);
        if (error == CL_SUCCESS) error = event_seconds(event, CL_PROFILING_COMMAND_END, &launch->end_seconds);
        if (error != CL_SUCCESS && status == CLT_OK) status = clt_cl_fail(device, "asking when a kernel ran", error);
        CLT_RELEASE(device, clReleaseEvent(event));
    }
    timer->n_pending = 0;
    return status;
}

void clt_device_time_tag(clt_device *device, int64_t tag) {
    if (device->timer) device->timer->tag = tag;
}

clt_status clt_timer_reserve(clt_device *device) {
    clt_timer *timer = device->timer;
    CLT_TRY(clt_grow(&timer->launches, &timer->launches_capacity, timer->n_launches, sizeof *timer->launches));
    CLT_TRY(clt_grow(&timer->pending, &timer->pending_capacity, timer->n_pending, sizeof *timer->pending));
    return timer->n_pending < MOST_PENDING ? CLT_OK : collect(device);
}

void clt_timer_add(clt_device *device, const char *kernel, cl_event event) {
    clt_timer *timer = device->timer;
    clt_timed_launch *launch = &timer->launches[timer->n_launches];
    *launch = (clt_timed_launch){.tag = timer->tag};
    snprintf(launch->kernel, sizeof launch->kernel, "%s", kernel);
    timer->pending[timer->n_pending++] = (pending_launch){event, timer->n_launches++};
}

clt_status clt_device_time_stop(clt_device *device, clt_timed_launch **launches, size_t *count) {
    clt_timer *timer = device->timer;
    if (!timer) return clt_fail(CLT_E_STATE, "%s: its launches are not timed", device->info.name);
    clt_status status = collect(device);
    CLT_RELEASE(device, clReleaseCommandQueue(device->queue));
    device->queue = timer->plain;
    device->timer = NULL;
    if (launches && status == CLT_OK) {
        *launches = timer->launches;
        *count = timer->n_launches;
    } else {
        clt_free(timer->launches);
    }
    clt_free(timer->pending);
    clt_free(timer);
    return status;
}
