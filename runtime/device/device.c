#include <math.h>
#include <string.h>

#include "runtime/device/bundle.h"
#include "runtime/device/cl.h"
#include "runtime/device/settings.h"

static clt_status open_queue(clt_device *device) {
    cl_int error;
    cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, (cl_context_properties)device->platform, 0};
    device->context = clCreateContext(properties, 1, &device->id, NULL, NULL, &error);
    if (error != CL_SUCCESS) return clt_cl_fail(device, "making a context", error);
    device->queue = clCreateCommandQueue(device->context, device->id, 0, &error);
    if (error != CL_SUCCESS) return clt_cl_fail(device, "making a queue", error);
    device->mapping_queue = clCreateCommandQueue(device->context, device->id, 0, &error);
    if (error != CL_SUCCESS) return clt_cl_fail(device, "making a queue", error);
    return CLT_OK;
}

static clt_status identify(clt_device *device) {
    clt_text text = {0};
    const clt_device_info *info = &device->info;
    clt_text_add(&text, "%s|%s|%s|%s|%s", info->platform, info->vendor, info->name, info->cl_version, info->driver);
    clt_hash_text(clt_text_data(&text), text.length, device->identity);
    clt_status status = text.status;
    clt_text_free(&text);
    return status;
}

/* What a driver does not know is as good as the least; one that fails is not to be believed. */
static clt_status ask_number(clt_device *device, cl_device_info what, cl_uint *number) {
    *number = 0;
    cl_int error = clGetDeviceInfo(device->id, what, sizeof *number, number, NULL);
    return clt_cl_is_broken(error) ? clt_cl_fail(device, "asking what it can do", error) : CLT_OK;
}

static clt_status set_up(clt_device *device) {
    cl_uint bits, width;
    CLT_TRY(ask_number(device, CL_DEVICE_MEM_BASE_ADDR_ALIGN, &bits));
    device->alignment = CLT_MAX(bits / 8, 128);
    CLT_TRY(ask_number(device, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, &width));
    device->vector_width = width ? (int)width : 1;
    CLT_TRY(identify(device));
    return open_queue(device);
}

static void limit_memory(clt_device *device) {
    uint64_t most = clt_settings_bytes(device->settings.memory_limit);
    if (!most) return;
    device->info.memory_bytes = CLT_MIN(device->info.memory_bytes, most);
    device->info.max_buffer_bytes = CLT_MIN(device->info.max_buffer_bytes, most);
    device->memory_limited = true;
}

/* Takes the texts of the settings over, also on error. */
static clt_status open_found(const clt_found_device *found, const clt_settings *settings, char *texts, clt_device **device) {
    clt_device *d = clt_calloc(1, sizeof *d);
    clt_status status = d ? clt_mutex_init(&d->mutex) : clt_fail_memory(sizeof *d);
    if (status < 0) {
        clt_free(texts);
        clt_free(d);
        return status;
    }
    d->settings = *settings;
    d->settings_texts = texts;
    d->info = found->info;
    limit_memory(d);
    d->platform = found->platform;
    d->id = found->id;
    for (int i = 0; i < CLT_CAP_COUNT_; i++) d->capabilities[i] = -1;
    status = set_up(d);
    if (status == CLT_OK && settings->timeout_seconds < INFINITY) status = clt_device_set_timeout(d, settings->timeout_seconds);
    if (status == CLT_OK) status = clt_bundle_load(d);
    if (status < 0) {
        clt_device_close(d);
        return status;
    }
    *device = d;
    return CLT_OK;
}

static clt_status find_and_open(const clt_settings *settings, char *texts, bool by_environment, clt_device **device) {
    clt_found_device *found = NULL;
    by_environment &= settings->device[0] != 0;
    size_t count, chosen = 0;
    char reason[256];
    clt_status status = clt_devices_find(&found, &count);
    if (status == CLT_OK) {
        status = clt_devices_select(found, count, settings->device, &chosen, reason);
        if (status < 0 && by_environment) clt_fail_context(status, "CLTRAIN_DEVICE: ");
    }
    if (status < 0) clt_free(texts);
    else status = open_found(&found[chosen], settings, texts, device);
    if (status == CLT_OK)
        clt_log_message(CLT_LOG_INFO, "device %s (%s, driver %s) [%s]: %s%s", found[chosen].info.name,
                        found[chosen].info.platform, found[chosen].info.driver, found[chosen].info.id, reason,
                        by_environment ? " by CLTRAIN_DEVICE" : "");
    clt_free(found);
    return status;
}

clt_status clt_device_open_with(clt_device **device, const clt_settings *given) {
    if (!device) return clt_fail(CLT_E_INVALID, "clt_device_open: device is NULL");
    clt_settings settings;
    char *texts;
    CLT_TRY(clt_settings_resolve(given, &settings, &texts));
    return find_and_open(&settings, texts, !(given && given->device), device);
}

clt_status clt_device_open(clt_device **device, const char *selector) {
    return clt_device_open_with(device, &(clt_settings){.device = selector && selector[0] ? selector : NULL});
}

clt_status clt_device_open_again(const clt_device *device, clt_device **again) {
    clt_found_device found = {.info = device->info, .platform = device->platform, .id = device->id};
    clt_settings settings;
    char *texts;
    CLT_TRY(clt_settings_resolve(&device->settings, &settings, &texts));
    CLT_TRY(open_found(&found, &settings, texts, again));
    (*again)->for_trials = true;
    clt_status status = clt_watch_as(*again, device);
    if (status < 0) clt_device_close(*again);
    return status;
}

void clt_device_keep(clt_device *device, void *kept, void (*release)(void *kept)) {
    if (device->kept) device->kept_release(device->kept);
    device->kept = kept;
    device->kept_release = release;
}

void *clt_device_kept(const clt_device *device) {
    return device->kept;
}

static void close_queues(clt_device *device) {
    if (device->transfer_queue) clReleaseCommandQueue(device->transfer_queue);
    if (device->mapping_queue) clReleaseCommandQueue(device->mapping_queue);
    if (device->queue) clReleaseCommandQueue(device->queue);
    if (device->context) clReleaseContext(device->context);
}

void clt_device_close(clt_device *device) {
    if (!device) return;
    if (device->timer) clt_device_time_stop(device, NULL, NULL);
    clt_device_keep(device, NULL, NULL);
    if (device->queue) clt_cl_wait_queue(device, device->queue, "closing it");
    clt_watch_free(device);
    clt_helper_end(device);
    clt_device_free_programs(device);
    clt_device_trim(device);
    clt_free(device->pool);
    clt_free(device->redzones);
    if (device->hangs)
        clt_log_message(CLT_LOG_WARNING, "%s hangs: its memory, programs and queues are left to the driver, since releasing "
                                         "them might never end", device->info.name);
    else
        close_queues(device);
    clt_mutex_destroy(&device->mutex);
    clt_free(device->settings_texts);
    clt_free(device);
}

const clt_device_info *clt_device_get_info(const clt_device *device) {
    return &device->info;
}

uint64_t clt_device_bytes(const clt_device *device) {
    return device ? device->bytes : 0;
}

uint64_t clt_device_peak_bytes(const clt_device *device) {
    return device ? device->peak_bytes : 0;
}

int clt_device_vector_width(const clt_device *device) {
    return device->vector_width;
}

clt_device_class clt_device_get_class(const clt_device *device) {
    const char *wanted = device->settings.device_class;
    if (!strcmp(wanted, "cpu")) return CLT_CLASS_CPU;
    if (!strcmp(wanted, "gpu") || !strcmp(wanted, "intel-gpu")) return CLT_CLASS_GPU;
    return device->info.type == CLT_DEVICE_CPU && device->vector_width > 1 ? CLT_CLASS_CPU : CLT_CLASS_GPU;
}

bool clt_device_has_few_registers(const clt_device *device) {
    const char *wanted = device->settings.device_class;
    if (wanted[0]) return !strcmp(wanted, "intel-gpu");
    return device->info.type == CLT_DEVICE_GPU && clt_text_contains(device->info.vendor, "Intel");
}

clt_handles clt_device_handles(const clt_device *device) {
    return (clt_handles){device->context, device->id, device->queue};
}

size_t clt_device_alignment(const clt_device *device) {
    return device->alignment;
}

struct clt_observer *clt_device_observer(const clt_device *device) {
    return device->observer;
}

void clt_device_set_observer(clt_device *device, struct clt_observer *observer) {
    device->observer = observer;
}

void clt_device_set_origin(clt_device *device, const void *origin) {
    device->origin = origin;
}

void clt_device_describe_by(clt_device *device, clt_describe *describe) {
    device->describe = describe;
}

clt_status clt_device_flush(clt_device *device) {
    CLT_TRY_CL(device, "flushing the queue", clFlush(device->queue));
    return CLT_OK;
}

clt_status clt_device_finish(clt_device *device) {
    return clt_cl_wait_queue(device, device->queue, "waiting for the queue");
}
