/*
 * Devices that are lost. An error that says that the device, its context or its queue is gone, or that work that was
 * accepted has failed, is remembered: the results of that work are not there, so everything that follows is refused at
 * once, in the same words, and nothing waits for the device any more.
 */
#include <stdio.h>
#include <string.h>

#include "runtime/device/cl.h"

enum { NVIDIA_ILLEGAL_ACCESS = -9999 };

bool clt_device_is_lost(const clt_device *device) {
    return device->lost;
}

clt_status (clt_device_fail_lost)(const clt_device *device) {
    return clt_fail(CLT_E_DEVICE_LOST, "%s", device->lost_words);
}

/* "relu #5 by native (kernel fused_0)" */
static void name_launch(const clt_device *device, const void *origin, const char *kernel, char *text, size_t bytes) {
    char op[CLT_ORIGIN_TEXT] = "";
    if (origin && device->describe) device->describe(origin, op);
    snprintf(text, bytes, "%s%s%s%s", op, op[0] ? ", " : "", strncmp(kernel, "clEnqueue", 9) ? "kernel " : "", kernel);
}

static void add_launches(clt_device *device, clt_text *words) {
    char text[CLT_ORIGIN_TEXT + 96];
    clt_watched done, stuck;
    if (!clt_watch_find(device, &done, &stuck)) {
        if (device->origin && device->describe) {
            device->describe(device->origin, text);
            clt_text_add(words, "; what was being launched: %s", text);
        }
        return;
    }
    if (done.event) {
        name_launch(device, done.origin, done.kernel, text, sizeof text);
        clt_text_add(words, "; the last launch that finished: %s", text);
    }
    if (stuck.event) {
        name_launch(device, stuck.origin, stuck.kernel, text, sizeof text);
        clt_text_add(words, "; the first that did not: %s", text);
    }
}

clt_status (clt_device_lose)(clt_device *device, bool hangs, const char *why) {
    clt_text words = {0};
    if (device->lost) return clt_device_fail_lost(device);
    clt_text_add(&words, "%s %s: %s", device->info.name, hangs ? "hangs" : "was lost", why);
    add_launches(device, &words);
    clt_text_add(&words, "; close it and open it anew");
    snprintf(device->lost_words, sizeof device->lost_words, "%s", clt_text_data(&words));
    clt_text_free(&words);
    device->lost = true;
    device->hangs = hangs;
    return clt_device_fail_lost(device);
}

static bool means_lost(cl_int error) {
    return error == CL_DEVICE_NOT_AVAILABLE || error == CL_INVALID_COMMAND_QUEUE || error == CL_INVALID_CONTEXT ||
           error == CL_INVALID_DEVICE || error == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST ||
           error == NVIDIA_ILLEGAL_ACCESS;
}

static clt_status lose_by(clt_device *device, const char *what, cl_int error) {
    char text[64], why[160];
    snprintf(why, sizeof why, "%s: %s", what, clt_cl_error_name(error, text));
    return clt_device_lose(device, false, why);
}

clt_status (clt_cl_fail)(clt_device *device, const char *what, cl_int error) {
    if (device->lost) return clt_device_fail_lost(device);
    return means_lost(error) ? lose_by(device, what, error) : clt_cl_fail_build(device, what, error);
}

clt_status (clt_cl_fail_build)(const clt_device *device, const char *what, cl_int error) {
    char text[64];
    clt_status status = CLT_E_DEVICE;
    if (error == CL_MEM_OBJECT_ALLOCATION_FAILURE || error == CL_OUT_OF_RESOURCES) status = CLT_E_DEVICE_MEMORY;
    if (error == CL_OUT_OF_HOST_MEMORY) status = CLT_E_NO_MEMORY;
    return clt_fail(status, "%s: %s: %s", device->info.name, what, clt_cl_error_name(error, text));
}

clt_status (clt_cl_fail_wait)(clt_device *device, const char *what, cl_int error) {
    if (device->lost) return clt_device_fail_lost(device);
    return lose_by(device, what, error);
}
