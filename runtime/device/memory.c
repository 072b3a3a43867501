#include <string.h>

#include "runtime/device/cl.h"

/* ---- the pool: released buffers are kept and serve requests of nearly their size ---- */

static clt_memory *pool_take(clt_device *device, size_t bytes) {
    size_t best = device->n_pool;
    for (size_t i = 0; i < device->n_pool; i++) {
        size_t size = device->pool[i]->bytes;
        if (size < bytes || size > bytes + bytes / 4) continue;
        if (best == device->n_pool || size < device->pool[best]->bytes) best = i;
    }
    if (best == device->n_pool) return NULL;
    clt_memory *buffer = device->pool[best];
    device->pool[best] = device->pool[--device->n_pool];
    return buffer;
}

static void buffer_free(clt_memory *buffer) {
    clReleaseMemObject(buffer->memory);
    if (!buffer->is_slice) buffer->device->bytes -= buffer->bytes;
    clt_free(buffer);
}

void clt_device_trim(clt_device *device) {
    while (device->n_pool > 0) buffer_free(device->pool[--device->n_pool]);
}

/* ---- buffers ---- */

static clt_status buffer_new(clt_device *device, cl_mem memory, size_t bytes, bool is_slice, clt_memory **buffer) {
    clt_memory *b = clt_calloc(1, sizeof *b);
    if (!b) {
        clReleaseMemObject(memory);
        return clt_fail_memory(sizeof *b);
    }
    *b = (clt_memory){.device = device, .memory = memory, .bytes = bytes, .is_slice = is_slice};
    *buffer = b;
    return CLT_OK;
}

static clt_status fail_allocation(const clt_device *device, size_t bytes, cl_int error) {
    char text[64];
    return clt_fail(CLT_E_DEVICE_MEMORY,
                    "%s: a buffer of %zu bytes cannot be had (%s); the device has %llu bytes, %llu of them "
                    "in use here, and its largest buffer is %llu",
                    device->info.name, bytes, clt_cl_error_name(error, text),
                    (unsigned long long)device->info.memory_bytes, (unsigned long long)device->bytes,
                    (unsigned long long)device->info.max_buffer_bytes);
}

clt_status clt_memory_create(clt_device *device, size_t bytes, clt_memory **buffer) {
    bytes = (CLT_MAX(bytes, 1) + device->alignment - 1) / device->alignment * device->alignment;
    if (bytes > device->info.max_buffer_bytes) return fail_allocation(device, bytes, CL_INVALID_BUFFER_SIZE);
    if ((*buffer = pool_take(device, bytes))) return CLT_OK;
    cl_int error;
    cl_mem memory = clCreateBuffer(device->context, CL_MEM_READ_WRITE, bytes, NULL, &error);
    if (error != CL_SUCCESS) {
        clt_device_trim(device);
        memory = clCreateBuffer(device->context, CL_MEM_READ_WRITE, bytes, NULL, &error);
    }
    if (error != CL_SUCCESS) return fail_allocation(device, bytes, error);
    CLT_TRY(buffer_new(device, memory, bytes, false, buffer));
    device->bytes += bytes;
    device->peak_bytes = CLT_MAX(device->peak_bytes, device->bytes);
    return CLT_OK;
}

clt_status clt_memory_slice(clt_memory *parent, size_t offset, size_t bytes, clt_memory **slice) {
    cl_int error;
    cl_buffer_region region = {offset, CLT_MAX(bytes, 1)};
    cl_mem memory = clCreateSubBuffer(parent->memory, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
    if (error != CL_SUCCESS) return clt_cl_fail(parent->device, "making a sub-buffer", error);
    return buffer_new(parent->device, memory, bytes, true, slice);
}

void clt_memory_destroy(clt_memory *buffer) {
    if (!buffer) return;
    clt_device *device = buffer->device;
    if (!buffer->is_slice &&
        clt_grow(&device->pool, &device->pool_capacity, device->n_pool, sizeof *device->pool) == CLT_OK)
        device->pool[device->n_pool++] = buffer;
    else
        buffer_free(buffer);
}

clt_status clt_memory_write(clt_memory *buffer, size_t offset, const void *source, size_t bytes) {
    CLT_TRY_CL(buffer->device, "writing a buffer",
               clEnqueueWriteBuffer(buffer->device->queue, buffer->memory, CL_TRUE, offset, bytes, source, 0,
                                    NULL, NULL));
    return CLT_OK;
}

clt_status clt_memory_read(clt_memory *buffer, size_t offset, void *destination, size_t bytes) {
    CLT_TRY_CL(buffer->device, "reading a buffer",
               clEnqueueReadBuffer(buffer->device->queue, buffer->memory, CL_TRUE, offset, bytes, destination, 0,
                                   NULL, NULL));
    return CLT_OK;
}

clt_status clt_memory_zero(clt_memory *buffer) {
    /* In pieces: some drivers fill wrongly past 4 GiB. */
    const size_t piece = (size_t)1 << 28;
    const cl_uint zero = 0;
    for (size_t done = 0; done < buffer->bytes; done += piece)
        CLT_TRY_CL(buffer->device, "clearing a buffer",
                   clEnqueueFillBuffer(buffer->device->queue, buffer->memory, &zero, sizeof zero, done,
                                       CLT_MIN(piece, buffer->bytes - done), 0, NULL, NULL));
    return CLT_OK;
}

/* ---- staging ---- */

enum { MOST_SLOTS = 4 };

struct clt_staging {
    clt_device *device;
    size_t bytes;
    int n_slots, next;
    struct {
        cl_mem memory; /* pinned by the driver, mapped for as long as it lives */
        void *host;
        cl_event arrived; /* NULL: free */
    } slots[MOST_SLOTS];
};

static clt_status pin(clt_staging *staging, int slot) {
    clt_device *device = staging->device;
    cl_int error;
    cl_mem memory = clCreateBuffer(device->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, staging->bytes, NULL, &error);
    if (error != CL_SUCCESS) return fail_allocation(device, staging->bytes, error);
    staging->slots[slot].memory = memory;
    staging->slots[slot].host = clEnqueueMapBuffer(device->queue, memory, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                                                   staging->bytes, 0, NULL, NULL, &error);
    if (error != CL_SUCCESS) return clt_cl_fail(device, "mapping a staging buffer", error);
    return CLT_OK;
}

clt_status clt_staging_create(clt_device *device, size_t bytes, int slots, clt_staging **staging) {
    clt_staging *s = clt_calloc(1, sizeof *s);
    if (!s) return clt_fail_memory(sizeof *s);
    s->device = device;
    s->bytes = CLT_MAX(bytes, 1);
    s->n_slots = CLT_MIN(CLT_MAX(slots, 1), MOST_SLOTS);
    for (int i = 0; i < s->n_slots; i++) {
        clt_status status = pin(s, i);
        if (status < 0) {
            clt_staging_destroy(s);
            return status;
        }
    }
    *staging = s;
    return CLT_OK;
}

void clt_staging_destroy(clt_staging *staging) {
    if (!staging) return;
    cl_command_queue queue = staging->device->queue;
    for (int i = 0; i < staging->n_slots; i++) {
        if (staging->slots[i].arrived) {
            clWaitForEvents(1, &staging->slots[i].arrived);
            clReleaseEvent(staging->slots[i].arrived);
        }
        if (staging->slots[i].host)
            clEnqueueUnmapMemObject(queue, staging->slots[i].memory, staging->slots[i].host, 0, NULL, NULL);
    }
    clFinish(queue);
    for (int i = 0; i < staging->n_slots; i++)
        if (staging->slots[i].memory) clReleaseMemObject(staging->slots[i].memory);
    clt_free(staging);
}

clt_status clt_staging_feed(clt_staging *staging, const void *source, size_t bytes, clt_memory *buffer) {
    clt_device *device = staging->device;
    int slot = staging->next;
    staging->next = (slot + 1) % staging->n_slots;
    cl_event *arrived = &staging->slots[slot].arrived;
    if (*arrived) {
        cl_int error = clWaitForEvents(1, arrived);
        clReleaseEvent(*arrived);
        *arrived = NULL;
        if (error != CL_SUCCESS) return clt_cl_fail(device, "feeding an input", error);
    }
    memcpy(staging->slots[slot].host, source, bytes);
    CLT_TRY_CL(device, "feeding an input",
               clEnqueueWriteBuffer(device->queue, buffer->memory, CL_FALSE, 0, bytes, staging->slots[slot].host, 0,
                                    NULL, arrived));
    return CLT_OK;
}
