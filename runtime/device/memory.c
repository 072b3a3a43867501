#include <string.h>

#include "runtime/base/file.h"
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

/* It is mapped for as long as it lives. */
static void unmap(const clt_memory *buffer) {
    clt_device *device = buffer->device;
    if (!buffer->host || buffer->parent || device->lost) return;
    clt_cl_wait_queue(device, device->queue, "ending transfers");
    if (!buffer->memory) {
        clt_file_space_destroy(buffer->host, buffer->bytes);
        return;
    }
    clEnqueueUnmapMemObject(device->mapping_queue, buffer->memory, buffer->host, 0, NULL, NULL);
    clt_cl_wait_queue(device, device->mapping_queue, "unmapping the host's memory");
}

void clt_memory_free(clt_memory *buffer) {
    unmap(buffer);
    if (buffer->memory) CLT_RELEASE(buffer->device, clReleaseMemObject(buffer->memory));
    if (!buffer->is_slice) buffer->device->bytes -= buffer->bytes;
    clt_free(buffer);
}

void clt_device_trim(clt_device *device) {
    while (device->n_pool > 0) clt_memory_free(device->pool[--device->n_pool]);
}

uint64_t clt_device_left_bytes(const clt_device *device) {
    uint64_t used = device->bytes;
    for (size_t i = 0; i < device->n_pool; i++) used -= device->pool[i]->bytes;
    return device->info.memory_bytes - CLT_MIN(device->info.memory_bytes, used);
}

bool clt_device_is_limited(const clt_device *device) {
    return device->memory_limited;
}

/* ---- buffers ---- */

clt_status clt_memory_wrap(clt_device *device, cl_mem memory, size_t bytes, bool is_slice, clt_memory **buffer) {
    clt_memory *b = clt_calloc(1, sizeof *b);
    if (!b) {
        clReleaseMemObject(memory);
        return clt_fail_memory(sizeof *b);
    }
    *b = (clt_memory){.device = device, .memory = memory, .bytes = bytes, .is_slice = is_slice};
    *buffer = b;
    return CLT_OK;
}

clt_status (clt_memory_fail)(const clt_device *device, size_t bytes, cl_int error) {
    char text[64];
    return clt_fail(CLT_E_DEVICE_MEMORY,
                    "%s: a buffer of %zu bytes cannot be had (%s); the device has %llu bytes, %llu of them "
                    "in use here, and its largest buffer is %llu",
                    device->info.name, bytes, clt_cl_error_name(error, text),
                    (unsigned long long)device->info.memory_bytes, (unsigned long long)device->bytes,
                    (unsigned long long)device->info.max_buffer_bytes);
}

/* With a limit, the pool's buffers go first. */
static clt_status check_limit(clt_device *device, size_t bytes) {
    uint64_t most = device->info.memory_bytes;
    if (!device->memory_limited || (bytes <= most && device->bytes <= most - bytes)) return CLT_OK;
    clt_device_trim(device);
    if (bytes <= most && device->bytes <= most - bytes) return CLT_OK;
    return clt_fail(CLT_E_DEVICE_MEMORY, "%s: a buffer of %zu bytes is beyond the memory limit of %llu bytes, %llu of which are in use", device->info.name,
                    bytes, (unsigned long long)most, (unsigned long long)device->bytes);
}

clt_status clt_memory_allocate(clt_device *device, size_t bytes, clt_memory **buffer) {
    cl_int error;
    CLT_TRY(check_limit(device, bytes));
    cl_mem memory = clCreateBuffer(device->context, CL_MEM_READ_WRITE, bytes, NULL, &error);
    if (error != CL_SUCCESS) {
        clt_device_trim(device);
        memory = clCreateBuffer(device->context, CL_MEM_READ_WRITE, bytes, NULL, &error);
    }
    error = clt_cl_made(memory, error);
    if (error != CL_SUCCESS) return clt_memory_fail(device, bytes, error);
    CLT_TRY(clt_memory_wrap(device, memory, bytes, false, buffer));
    device->bytes += bytes;
    device->peak_bytes = CLT_MAX(device->peak_bytes, device->bytes);
    return CLT_OK;
}

clt_status clt_memory_create(clt_device *device, size_t bytes, clt_memory **buffer) {
    if (device->lost) return clt_device_fail_lost(device);
    if (device->redzones_on) return clt_redzone_create(device, bytes, buffer);
    bytes = (CLT_MAX(bytes, 1) + device->alignment - 1) / device->alignment * device->alignment;
    if (bytes > device->info.max_buffer_bytes) return clt_memory_fail(device, bytes, CL_INVALID_BUFFER_SIZE);
    if ((*buffer = pool_take(device, bytes))) return CLT_OK;
    return clt_memory_allocate(device, bytes, buffer);
}

/* ---- shared ---- */

static bool is_among(const clt_memory *memory, clt_memory *const *others, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (others[i] == memory) return true;
    return false;
}

clt_memory *clt_memory_find_shared(const clt_device *device, size_t bytes, clt_memory *const *others, size_t n) {
    clt_memory *best = NULL;
    for (clt_memory *m = device->shared; m; m = m->next)
        if (m->bytes >= bytes && (!best || m->bytes < best->bytes) && !is_among(m, others, n)) best = m;
    return best;
}

void clt_memory_share(clt_memory *memory) {
    memory->users++;
}

clt_status clt_memory_create_shared(clt_device *device, size_t bytes, clt_memory **memory) {
    CLT_TRY(clt_memory_create(device, bytes, memory));
    if (device->redzones_on) return CLT_OK;
    (*memory)->users = 1;
    (*memory)->next = device->shared;
    device->shared = *memory;
    return CLT_OK;
}

/* One user less: whether there are others. */
static bool leave_to_others(clt_memory *memory) {
    clt_memory **at = &memory->device->shared;
    if (!memory->users) return false;
    if (--memory->users > 0) return true;
    while (*at != memory) at = &(*at)->next;
    *at = memory->next;
    return false;
}

/* ---- slices ---- */

static clt_status slice_host(clt_memory *parent, size_t offset, size_t bytes, clt_memory **slice) {
    clt_memory *m = clt_calloc(1, sizeof *m);
    if (!m) return clt_fail_memory(sizeof *m);
    *m = (clt_memory){.device = parent->device, .bytes = bytes, .is_slice = true, .host = (char *)parent->host + offset, .parent = parent, .offset = offset};
    *slice = m;
    return CLT_OK;
}

clt_status clt_memory_slice(clt_memory *parent, size_t offset, size_t bytes, clt_memory **slice) {
    cl_int error;
    if (parent->parent) { /* OpenCL cuts no slices from slices */
        offset += parent->offset;
        parent = parent->parent;
    }
    cl_buffer_region region = {offset, CLT_MAX(bytes, 1)};
    if (parent->device->lost) return clt_device_fail_lost(parent->device);
    if (parent->host) return slice_host(parent, offset, bytes, slice);
    cl_mem memory = clCreateSubBuffer(parent->memory, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
    error = clt_cl_made(memory, error);
    if (error != CL_SUCCESS) return clt_cl_fail(parent->device, "making a sub-buffer", error);
    CLT_TRY(clt_memory_wrap(parent->device, memory, bytes, true, slice));
    (*slice)->parent = parent;
    (*slice)->offset = offset;
    return CLT_OK;
}

void clt_memory_destroy(clt_memory *buffer) {
    if (!buffer || leave_to_others(buffer)) return;
    clt_device *device = buffer->device;
    if (buffer->redzones_on) clt_redzone_destroy(buffer);
    else if (!buffer->is_slice &&
        clt_grow(&device->pool, &device->pool_capacity, device->n_pool, sizeof *device->pool) == CLT_OK)
        device->pool[device->n_pool++] = buffer;
    else
        clt_memory_free(buffer);
}

/* ---- in the host's memory ---- */

static clt_status create_in_file(clt_device *device, size_t bytes, const char *folder, clt_memory **memory) {
    clt_memory *m = clt_calloc(1, sizeof *m);
    if (!m) return clt_fail_memory(sizeof *m);
    *m = (clt_memory){.device = device, .bytes = bytes, .is_slice = true};
    clt_status status = clt_file_space_create(folder, bytes, &m->host);
    if (status < 0) clt_free(m);
    else *memory = m;
    return status;
}

clt_status clt_memory_create_host(clt_device *device, size_t bytes, const char *folder, clt_memory **memory) {
    cl_int error;
    if (device->lost) return clt_device_fail_lost(device);
    bytes = CLT_MAX(bytes, 1);
    if (folder) return create_in_file(device, bytes, folder, memory);
    cl_mem made = clCreateBuffer(device->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes, NULL, &error);
    error = clt_cl_made(made, error);
    if (error != CL_SUCCESS) return clt_memory_fail(device, bytes, error);
    clt_memory *m = NULL;
    CLT_TRY(clt_memory_wrap(device, made, bytes, true, &m)); /* counted like a slice: it is none of the device's */
    clt_status status = clt_cl_map(device, made, CL_MAP_READ | CL_MAP_WRITE, bytes, "mapping the host's memory", &m->host);
    if (status < 0) clt_memory_destroy(m);
    else *memory = m;
    return status;
}

/* Once what is enqueued has been done to it. */
static clt_status settle(const clt_memory *host, const char *what) {
    return clt_cl_wait_queue(host->device, host->device->queue, what);
}

clt_status clt_memory_from_host(const clt_memory *host, size_t offset, clt_memory *to, size_t bytes) {
    clt_device *device = to->device;
    cl_event event = NULL, *wanted = device->watch ? &event : NULL;
    CLT_TRY_CL(device, "bringing a state from the host",
               clt_cl_with_event(wanted, clEnqueueWriteBuffer(device->queue, to->memory, CL_FALSE, 0, bytes, (char *)host->host + offset, 0, NULL, wanted)));
    return device->watch ? clt_watch_add(device, "clEnqueueWriteBuffer", event) : CLT_OK;
}

clt_status clt_memory_to_host(const clt_memory *from, clt_memory *host, size_t offset, size_t bytes) {
    clt_device *device = from->device;
    cl_event event = NULL, *wanted = device->watch ? &event : NULL;
    CLT_TRY_CL(device, "taking a state to the host",
               clt_cl_with_event(wanted, clEnqueueReadBuffer(device->queue, from->memory, CL_FALSE, 0, bytes, (char *)host->host + offset, 0, NULL, wanted)));
    return device->watch ? clt_watch_add(device, "clEnqueueReadBuffer", event) : CLT_OK;
}

/* ---- copies that are waited for ---- */

clt_status clt_memory_write(clt_memory *buffer, size_t offset, const void *source, size_t bytes) {
    if (buffer->host) {
        CLT_TRY(settle(buffer, "writing a state"));
        memcpy((char *)buffer->host + offset, source, bytes);
        return CLT_OK;
    }
    CLT_TRY(clt_cl_before_blocking(buffer->device, "writing a buffer"));
    CLT_TRY_CL(buffer->device, "writing a buffer",
               clEnqueueWriteBuffer(buffer->device->queue, buffer->memory, CL_TRUE, offset, bytes, source, 0,
                                    NULL, NULL));
    return CLT_OK;
}

clt_status clt_memory_read(clt_memory *buffer, size_t offset, void *destination, size_t bytes) {
    clt_device *device = buffer->device;
    if (buffer->host) {
        CLT_TRY(settle(buffer, "reading a state"));
        memcpy(destination, (const char *)buffer->host + offset, bytes);
        return CLT_OK;
    }
    CLT_TRY(clt_cl_before_blocking(device, "reading a buffer"));
    if (device->lost) return clt_device_fail_lost(device);
    cl_int error = clEnqueueReadBuffer(device->queue, buffer->memory, CL_TRUE, offset, bytes, destination, 0, NULL, NULL);
    if (error == CL_OUT_OF_RESOURCES) return clt_cl_fail_wait(device, "reading a buffer", error); /* a launch before it */
    return error == CL_SUCCESS ? CLT_OK : clt_cl_fail(device, "reading a buffer", error);
}

/* ---- what is only launched, and nobody waits for by itself: its event is watched as a kernel's ---- */

clt_status clt_memory_fill(clt_memory *buffer, size_t offset, size_t bytes, uint32_t word) {
    clt_device *device = buffer->device;
    cl_event event = NULL, *wanted = device->watch ? &event : NULL;
    size_t pattern = bytes % sizeof word ? 1 : sizeof word; /* the bytes of what is filled are a multiple of it */
    CLT_TRY_CL(device, "filling a buffer",
               clt_cl_with_event(wanted, clEnqueueFillBuffer(device->queue, buffer->memory, &word, pattern, offset, bytes,
                                                             0, NULL, wanted)));
    return device->watch ? clt_watch_add(device, "clEnqueueFillBuffer", event) : CLT_OK;
}

clt_status clt_memory_zero(clt_memory *buffer) {
    if (buffer->host) {
        CLT_TRY(settle(buffer, "zeroing a state"));
        memset(buffer->host, 0, buffer->bytes);
        return CLT_OK;
    }
    /* In pieces: some drivers fill wrongly past 4 GiB. */
    const size_t piece = (size_t)1 << 28;
    for (size_t done = 0; done < buffer->bytes; done += piece)
        CLT_TRY(clt_memory_fill(buffer, done, CLT_MIN(piece, buffer->bytes - done), 0));
    return CLT_OK;
}

clt_status clt_memory_copy(clt_memory *from, size_t offset, clt_memory *to, size_t bytes) {
    clt_device *device = from->device;
    if (from->host) return to->host ? clt_memory_write(to, 0, (const char *)from->host + offset, bytes) : clt_memory_from_host(from, offset, to, bytes);
    if (to->host) return clt_memory_read(from, offset, to->host, bytes);
    cl_event event = NULL, *wanted = device->watch ? &event : NULL;
    CLT_TRY_CL(device, "copying a buffer",
               clt_cl_with_event(wanted, clEnqueueCopyBuffer(device->queue, from->memory, to->memory, offset, 0, bytes, 0, NULL,
                                                             wanted)));
    return device->watch ? clt_watch_add(device, "clEnqueueCopyBuffer", event) : CLT_OK;
}

void *clt_memory_handle(const clt_memory *memory) {
    return memory->memory;
}
