/*
 * Waits with a deadline, which OpenCL 1.2 does not know. With a timeout (CLTRAIN_DEVICE_TIMEOUT, clt_device_set_timeout)
 * each launch leaves its event here, and whoever waits is woken by a callback, or gives up when no launch has finished for
 * that long. The events then tell which launch hangs, and of launches that failed after the driver had taken them, which it
 * need not tell otherwise. Without a timeout waits are the driver's own.
 *
 * A wait that gave up leaves its event to the driver, which may call back at any later time.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "runtime/device/cl.h"

enum { MOST_WATCHED = 2048 }; /* launches; hosts run ahead of a device by two steps or so */

struct clt_watch {
    double timeout_seconds;
    clt_watched launches[MOST_WATCHED]; /* number n lies at n % MOST_WATCHED */
    size_t n, done;                     /* launches so far, and those of them known to be finished */
};

/* ---- launches ---- */

static clt_watched *launch_at(clt_watch *watch, size_t number) {
    return &watch->launches[number % MOST_WATCHED];
}

static void forget(clt_device *device) {
    clt_watch *watch = device->watch;
    for (size_t i = 0; i < MOST_WATCHED && i < watch->n; i++) {
        if (watch->launches[i].event && !device->hangs) clReleaseEvent(watch->launches[i].event);
        watch->launches[i].event = NULL;
    }
    watch->n = watch->done = 0;
}

static cl_int status_of(cl_event event) {
    cl_int status = CL_QUEUED;
    cl_int error = clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
    return error == CL_SUCCESS ? status : error;
}

/* Launches finish in their order: counts those that did, and gives the status of the first that did not; below 0: it failed. */
static cl_int count_finished(clt_watch *watch) {
    cl_int status = CL_COMPLETE;
    while (watch->done < watch->n && (status = status_of(launch_at(watch, watch->done)->event)) == CL_COMPLETE) watch->done++;
    return status;
}

/* A launch that the driver took may fail later, which its event alone tells: waits for what comes after it need not. */
static clt_status check_launches(clt_device *device, const char *what) {
    cl_int status = count_finished(device->watch);
    return status < 0 ? clt_cl_fail_wait(device, what, status) : CLT_OK;
}

clt_status clt_watch_add(clt_device *device, const char *name, cl_event event) {
    clt_watch *watch = device->watch;
    clt_watched *launch = launch_at(watch, watch->n);
    clt_status status = CLT_OK;
    if (watch->n - watch->done == MOST_WATCHED) {
        status = check_launches(device, "launching");
        if (watch->n - watch->done == MOST_WATCHED) watch->done++; /* nobody asks for it any more */
    }
    if (launch->event) clReleaseEvent(launch->event);
    launch->event = event;
    launch->origin = device->origin;
    snprintf(launch->kernel, sizeof launch->kernel, "%s", name);
    watch->n++;
    return status;
}

bool clt_watch_find(clt_device *device, clt_watched *done, clt_watched *stuck) {
    clt_watch *watch = device->watch;
    if (!watch || !watch->n) return false;
    count_finished(watch);
    size_t at = watch->done;
    *done = at > 0 && at + MOST_WATCHED > watch->n ? *launch_at(watch, at - 1) : (clt_watched){0};
    *stuck = at < watch->n ? *launch_at(watch, at) : (clt_watched){0};
    return true;
}

/* ---- waiting ---- */

/* Who waits, while it does. Calls of the driver name its ticket: one that comes too late, or twice, finds nobody. */
typedef struct waiter {
    struct waiter *next;
    uintptr_t ticket;
    bool called;
    clt_condition condition;
} waiter;

static clt_mutex waiting = PTHREAD_MUTEX_INITIALIZER;
static waiter *waiters;

static void enter(waiter *w) {
    static uintptr_t tickets;
    clt_mutex_lock(&waiting);
    w->ticket = ++tickets;
    w->next = waiters;
    waiters = w;
    clt_mutex_unlock(&waiting);
}

static void leave(waiter *w) {
    clt_mutex_lock(&waiting);
    waiter **at = &waiters;
    while (*at != w) at = &(*at)->next;
    *at = w->next;
    clt_mutex_unlock(&waiting);
}

static void CL_CALLBACK wake(cl_event event, cl_int status, void *ticket) {
    (void)event;
    (void)status;
    clt_mutex_lock(&waiting);
    waiter *w = waiters;
    while (w && w->ticket != (uintptr_t)ticket) w = w->next;
    if (w) {
        w->called = true;
        clt_condition_wake_all(&w->condition);
    }
    clt_mutex_unlock(&waiting);
}

/* Whether the event came before the deadline, or a launch failed. The event alone tells: some drivers never call back, and one
 * that calls too early does not call again. */
static bool wait_here(clt_watch *watch, waiter *w, cl_event event) {
    double pause = fmin(0.05, watch->timeout_seconds / 8), progress = clt_seconds();
    size_t before = watch->done;
    for (;;) {
        clt_mutex_lock(&waiting);
        double until = clt_seconds() + pause;
        while (!w->called && clt_seconds() < until) clt_condition_wait_until(&w->condition, &waiting, until);
        if (w->called) pause = fmin(pause, 0.001);
        w->called = false;
        clt_mutex_unlock(&waiting);
        if (status_of(event) <= CL_COMPLETE || count_finished(watch) < 0) return true;
        if (watch->done != before) progress = clt_seconds();
        before = watch->done;
        if (clt_seconds() - progress >= watch->timeout_seconds) return false;
    }
}

static clt_status wait_for_call(clt_device *device, cl_event event, const char *what) {
    waiter w = {0};
    char why[160];
    CLT_TRY(clt_condition_init(&w.condition));
    enter(&w);
    clSetEventCallback(event, CL_COMPLETE, wake, (void *)w.ticket); /* one that fails is one that never calls */
    bool done = wait_here(device->watch, &w, event);
    leave(&w);
    clt_condition_destroy(&w.condition);
    if (done) return CLT_OK;
    snprintf(why, sizeof why, "%s: no launch has finished for %g s", what, device->watch->timeout_seconds);
    return clt_device_lose(device, true, why);
}

static clt_status wait_watched(clt_device *device, cl_event event, const char *what) {
    if (status_of(event) > CL_COMPLETE) CLT_TRY(wait_for_call(device, event, what));
    cl_int status = status_of(event);
    return status < 0 ? clt_cl_fail_wait(device, what, status) : check_launches(device, what);
}

clt_status clt_cl_wait_event(clt_device *device, cl_event event, const char *what) {
    if (device->lost) return clt_device_fail_lost(device);
    if (device->watch) return wait_watched(device, event, what);
    cl_int error = clWaitForEvents(1, &event);
    return error == CL_SUCCESS ? CLT_OK : clt_cl_fail_wait(device, what, error);
}

/* The queue is empty after this, so that what blocks by itself does not wait for launches. */
static clt_status reach_end(clt_device *device, cl_command_queue queue, const char *what) {
    cl_event end = NULL;
    CLT_TRY_CL(device, what, clt_cl_with_event(&end, clEnqueueMarkerWithWaitList(queue, 0, NULL, &end)));
    cl_int error = clFlush(queue);
    clt_status status = error == CL_SUCCESS ? wait_watched(device, end, what) : clt_cl_fail(device, what, error);
    CLT_RELEASE(device, clReleaseEvent(end));
    return status;
}

clt_status clt_cl_wait_queue(clt_device *device, cl_command_queue queue, const char *what) {
    if (device->lost) return clt_device_fail_lost(device);
    if (device->watch) {
        /* Queues are in order: with their end all is done, and clFinish might wait for ever. */
        CLT_TRY(reach_end(device, queue, what));
        if (queue == device->queue) forget(device);
        return CLT_OK;
    }
    cl_int error = clFinish(queue);
    return error == CL_SUCCESS ? CLT_OK : clt_cl_fail_wait(device, what, error);
}

clt_status clt_cl_before_blocking(clt_device *device, const char *what) {
    return device->watch ? clt_cl_wait_queue(device, device->queue, what) : CLT_OK;
}

clt_status clt_cl_map(clt_device *device, cl_mem memory, cl_map_flags flags, size_t bytes, const char *what, void **host) {
    cl_event mapped = NULL, *wanted = device->watch ? &mapped : NULL;
    cl_int error;
    if (device->lost) return clt_device_fail_lost(device);
    *host = clEnqueueMapBuffer(device->mapping_queue, memory, !wanted, flags, 0, bytes, 0, NULL, wanted, &error);
    error = clt_cl_with_event(wanted, clt_cl_made(*host, error));
    if (error != CL_SUCCESS) return clt_cl_fail(device, what, error);
    if (!wanted) return CLT_OK;
    clFlush(device->mapping_queue);
    clt_status status = wait_watched(device, mapped, what);
    CLT_RELEASE(device, clReleaseEvent(mapped));
    return status;
}

/* ---- the timeout ---- */

void clt_watch_free(clt_device *device) {
    if (!device->watch) return;
    forget(device);
    clt_free(device->watch);
    device->watch = NULL;
}

clt_status clt_device_set_timeout(clt_device *device, double seconds) {
    if (!device || !(seconds >= 0 && seconds < INFINITY))
        return clt_fail(CLT_E_INVALID, "clt_device_set_timeout: device is NULL or %g is not a number of seconds", seconds);
    CLT_TRY(clt_device_finish(device));
    if (seconds == 0) {
        clt_watch_free(device);
        return CLT_OK;
    }
    if (!device->watch && !(device->watch = clt_calloc(1, sizeof *device->watch)))
        return clt_fail_memory(sizeof *device->watch);
    device->watch->timeout_seconds = seconds;
    return CLT_OK;
}

clt_status clt_watch_as(clt_device *device, const clt_device *other) {
    return clt_device_set_timeout(device, other->watch ? other->watch->timeout_seconds : 0);
}
